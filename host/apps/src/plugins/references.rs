//! What needs a plugin, so that it can't be removed.

use std::collections::HashSet;

use nudge_campaigns::lifecycle::{Content, named_plugins};
use nudge_campaigns::push;
use nudge_campaigns::{definitions, in_app, store as campaigns, surveys};
use nudge_db::Tx;
use nudge_plugin_runtime::catalogue::SERVER;
use nudge_plugin_runtime::store;
use uuid::Uuid;

/// Whose plugin it is that something may need.
struct Plugin<'a> {
    app_id: Uuid,
    name: &'a str,
    /// Apps to which the name is another plugin: their own.
    others: HashSet<Uuid>,
}

/// What needs a plugin, in words; none: nothing does, such as of an app's own where the server's of its name decides. Operators are
/// told in which app.
pub(super) async fn of(tx: &mut Tx, app_id: Uuid, name: &str) -> nudge_db::Result<Option<String>> {
    let decides = store::catalogue(tx, app_id).await?;
    if decides.active(name).is_some_and(|it| it.app_id != app_id) {
        return Ok(None);
    }
    let others = if app_id == SERVER {
        store::apps_with_their_own(tx, name).await?
    } else {
        HashSet::new()
    };
    let plugin = Plugin {
        app_id,
        name,
        others,
    };
    if let Some(slot) = plugin.slot(tx).await? {
        return Ok(Some(slot));
    }
    let survey = plugin.campaign::<surveys::Content>(tx, "the trigger of survey");
    if let Some(survey) = survey.await? {
        return Ok(Some(survey));
    }
    let campaign = plugin.campaign::<push::Content>(tx, "push campaign");
    if let Some(campaign) = campaign.await? {
        return Ok(Some(campaign));
    }
    let message = plugin.campaign::<in_app::Content>(tx, "in-app message");
    if let Some(message) = message.await? {
        return Ok(Some(message));
    }
    plugin.definition(tx).await
}

impl Plugin<'_> {
    async fn slot(&self, tx: &mut Tx) -> nudge_db::Result<Option<String>> {
        let slots = store::slots_with(tx, self.app_id, self.name).await?;
        let whose = slots.into_iter().find(|whose| self.is_theirs(*whose));
        Ok(whose.map(|whose| {
            let slot = match (self.app_id == SERVER, whose == SERVER) {
                (true, true) => "a slot of the server".to_owned(),
                (true, false) => format!("a slot of app {whose}"),
                (false, _) => "a slot".to_owned(),
            };
            format!("the plugin is in {slot}; put another one there, or DELETE the slot")
        }))
    }

    /// A campaign of a kind, `what` in words.
    async fn campaign<C: Content>(
        &self,
        tx: &mut Tx,
        what: &str,
    ) -> nudge_db::Result<Option<String>> {
        let campaigns = campaigns::with_text::<C>(tx, self.scope(), &self.text()).await?;
        let campaign = campaigns.iter().find(|campaign| {
            self.is_theirs(campaign.app_id) && named_plugins(&campaign.content).contains(self.name)
        });
        Ok(campaign.map(|campaign| {
            let of_app = self.of_app(campaign.app_id);
            let (id, resource) = (campaign.id, C::KIND.resource());
            format!("{what} {id}{of_app} names the plugin; change or archive the {resource}")
        }))
    }

    async fn definition(&self, tx: &mut Tx) -> nudge_db::Result<Option<String>> {
        let definitions = definitions::store::with_text(tx, self.scope(), &self.text()).await?;
        let definition = definitions.iter().find(|definition| {
            let validator = definition.content.validator.as_ref();
            self.is_theirs(definition.app_id)
                && validator.is_some_and(|validator| validator.plugin == self.name)
        });
        Ok(definition.map(|definition| {
            let of_app = self.of_app(definition.app_id);
            let id = definition.id;
            format!(
                "the validator of event definition {id}{of_app} names the plugin; change or archive the definition"
            )
        }))
    }

    /// Whether the name is this plugin to an app.
    fn is_theirs(&self, app_id: Uuid) -> bool {
        !self.others.contains(&app_id)
    }

    fn of_app(&self, app_id: Uuid) -> String {
        if self.app_id == SERVER {
            format!(" of app {app_id}")
        } else {
            String::new()
        }
    }

    fn scope(&self) -> Option<Uuid> {
        (self.app_id != SERVER).then_some(self.app_id)
    }

    /// Bodies are written without spaces, and a plugin's name has nothing that JSON or LIKE would escape.
    fn text(&self) -> String {
        format!("\"plugin\":\"{}\"", self.name)
    }
}
