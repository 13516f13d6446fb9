//! What needs a plugin, so that it can't be removed.

use nudge_campaigns::push::{self, personalization};
use nudge_campaigns::{definitions, surveys};
use nudge_db::Tx;
use nudge_plugin_runtime::catalogue::SERVER;
use nudge_plugin_runtime::store;
use uuid::Uuid;

/// What needs a plugin, in words; none: nothing does. For one of the server's the apps are not named, they are
/// nothing to each other.
pub(super) async fn of(tx: &mut Tx, app_id: Uuid, name: &str) -> nudge_db::Result<Option<String>> {
    if store::in_a_slot(tx, app_id, name).await? {
        let detail = "the plugin is in a slot; put another one there, or DELETE the slot";
        return Ok(Some(detail.to_owned()));
    }
    // Bodies are written without spaces, and a plugin's name has nothing that JSON or LIKE would escape.
    let text = format!("\"plugin\":\"{name}\"");
    let scope = (app_id != SERVER).then_some(app_id);
    let surveys = surveys::store::with_text(tx, scope, &text).await?;
    let survey = surveys
        .iter()
        .find(|survey| survey.content.terms().named_plugin() == Some(name));
    if let Some(survey) = survey {
        return Ok(Some(format!(
            "the trigger of survey {} names the plugin; change or archive the survey",
            survey.id
        )));
    }
    let campaigns = push::store::with_text(tx, scope, &text).await?;
    let campaign = campaigns.iter().find(|campaign| {
        let content = &campaign.content;
        let personalizations = content.variants.iter();
        let mut personalizations =
            personalizations.filter_map(|variant| variant.personalization.as_ref());
        content.terms().named_plugin() == Some(name)
            || personalizations.any(|it| personalization::named_plugin(it) == Some(name))
    });
    if let Some(campaign) = campaign {
        return Ok(Some(format!(
            "push campaign {} names the plugin; change or archive the campaign",
            campaign.id
        )));
    }
    let definitions = definitions::store::with_text(tx, scope, &text).await?;
    let definition = definitions.iter().find(|definition| {
        let validator = definition.content.validator.as_ref();
        validator.is_some_and(|validator| validator.plugin == name)
    });
    Ok(definition.map(|definition| {
        format!(
            "the validator of event definition {} names the plugin; change or archive the definition",
            definition.id
        )
    }))
}
