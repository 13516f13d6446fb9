//! An app as the database has it becomes the snapshot that a process decides by.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Instant;

use nudge_campaigns::campaign::{self, ActiveCampaign};
use nudge_campaigns::definitions::{self, Enforced, Enforcement};
use nudge_campaigns::lifecycle::Presented;
use nudge_campaigns::push::Sending;
use nudge_campaigns::segments::{self, Audiences};
use nudge_campaigns::store::{self as campaigns, Stored};
use nudge_campaigns::{apps as store, in_app, surveys};
use nudge_db::{Db, Timestamp, Tx};
use nudge_plugin_runtime as plugins;
use nudge_plugin_runtime::catalogue::Catalogue;
use nudge_plugin_runtime::{Deciders, Plugins};
use serde_json::Value;
use uuid::Uuid;

use super::{App, Basics};
use crate::segments::Segments;
use crate::{identity_keys, keys};

/// An app as the database has it, before the plugins were asked about it.
pub(super) struct Loaded {
    id: Uuid,
    workspace_id: Uuid,
    pub(super) basics: Arc<Basics>,
    catalogue: Catalogue,
    definitions: Vec<definitions::Definition>,
    surveys: Vec<Stored>,
    push_campaigns: Vec<Stored>,
    in_app: Vec<Stored>,
    segments: Vec<(Uuid, i64, Value)>,
}

/// Reads what no plugin is asked about.
pub(super) async fn load_basics(tx: &mut Tx, row: &store::AppRow) -> nudge_db::Result<Basics> {
    let settings = serde_json::from_str(&row.settings)
        .map_err(|cause| nudge_db::Error::corrupt("apps", "settings", cause))?;
    let keys = keys::store::unrevoked(tx, row.id).await?;
    let keys = keys
        .into_iter()
        .map(|(hash, key)| (hash, Arc::new(key)))
        .collect();
    let identity_keys = identity_keys::store::list(tx, row.id).await?;
    let webhooks = nudge_campaigns::webhooks::subscriptions(tx, row.id).await?;
    Ok(Basics::new(
        row.version,
        settings,
        keys,
        identity_keys,
        webhooks,
    ))
}

/// Reads all of an app.
pub(super) async fn load(tx: &mut Tx, row: &store::AppRow) -> nudge_db::Result<Loaded> {
    let basics = load_basics(tx, row).await?;
    let catalogue = plugins::store::catalogue(tx, row.id).await?;
    let definitions = definitions::store::active(tx, row.id).await?;
    let surveys = campaigns::active_stored(tx, row.id, campaign::Kind::Survey).await?;
    let push_campaigns = campaigns::active_stored(tx, row.id, campaign::Kind::Push).await?;
    let in_app = campaigns::active_stored(tx, row.id, campaign::Kind::InApp).await?;
    let segments = segments::store::audiences(tx, row.id).await?;
    Ok(Loaded {
        id: row.id,
        workspace_id: row.workspace_id,
        basics: Arc::new(basics),
        catalogue,
        definitions,
        surveys,
        push_campaigns,
        in_app,
        segments,
    })
}

impl Loaded {
    fn last_activation(&self) -> Option<Timestamp> {
        let presented = self.surveys.iter().chain(&self.in_app);
        let activations = presented.map(|campaign| campaign.activated_at);
        activations.max().flatten()
    }

    /// Loads the plugins and asks them what each configuration reads, but for what `before` knows already. What
    /// a plugin refuses does not run; that it was accepted when it was saved makes this a defect worth an error
    /// in the log, not a reason to stop.
    pub(super) async fn finish(
        self,
        plugins: &Plugins,
        db: &Db,
        before: Option<Arc<App>>,
    ) -> nudge_db::Result<App> {
        let last_activation = self.last_activation();
        let before = before.as_deref();
        let known = before.map(|before| &before.deciders);
        let lowered = self.basics.settings.plugins.lowered();
        let deciders =
            plugins::active::resolve(plugins, db, (self.id, &self.catalogue), known, &lowered)
                .await?;
        let known = before.map(|before| &before.segments);
        let mut unasked = false;
        let segments = Segments::load(plugins, &deciders, self.segments, known, &mut unasked);
        let mut segments = segments.await;
        let enforced = enforce(plugins, &deciders, self.definitions, before, &mut unasked);
        let (definitions, unchecked) = enforced.await;
        let running: HashMap<Uuid, &ActiveCampaign> = before
            .iter()
            .flat_map(|before| &before.campaigns)
            .map(|campaign| (campaign.id, campaign))
            .collect();
        let decided = (&deciders, &segments.audiences);
        let known = (&running, &mut unasked);
        let surveys = run_presented::<surveys::Content>(plugins, decided, self.surveys, known);
        let mut campaigns = surveys.await?;
        let known = (&running, &mut unasked);
        let messages = run_presented::<in_app::Content>(plugins, decided, self.in_app, known);
        campaigns.extend(messages.await?);
        let known = (&running, &mut unasked);
        let pushed = run_push(plugins, decided, self.push_campaigns, before, known);
        let (push, running) = pushed.await?;
        campaigns.extend(running);
        let (routes, everywhere) = routes(&campaigns);
        segments.watch(&campaigns);
        Ok(App {
            id: self.id,
            workspace_id: self.workspace_id,
            version: self.basics.version,
            basics: self.basics,
            deciders,
            read_at: Instant::now(),
            definitions,
            unchecked,
            unasked,
            history: history(&campaigns),
            feedback: feedback(&campaigns),
            campaigns,
            last_activation,
            push,
            routes,
            everywhere,
            segments,
        })
    }
}

/// Definitions with what their plugins read, and the events of those in force that no plugin takes: nobody knows whether they match.
async fn enforce(
    plugins: &Plugins,
    deciders: &Deciders,
    definitions: Vec<definitions::Definition>,
    before: Option<&App>,
    unasked: &mut bool,
) -> (HashMap<String, Arc<Enforced>>, HashSet<String>) {
    let (mut all, mut unchecked) = (HashMap::new(), HashSet::new());
    for definition in definitions {
        let before = before.and_then(|before| before.definitions.get(&definition.name));
        let before = before.map(|before| &**before);
        match definitions::enforce(plugins, deciders, &definition, before).await {
            Ok(enforced) => {
                all.insert(definition.name.clone(), Arc::new(enforced));
            }
            Err(error) => {
                *unasked |= error.is_unknown();
                tracing::error!(definition.id = %definition.id, error = %error, "events of a definition can't be checked");
                if definition.content.enforcement == Enforcement::Enforce {
                    unchecked.insert(definition.name);
                }
            }
        }
    }
    (all, unchecked)
}

/// Campaigns of a kind that SDKs present, in the form in which they run. `unasked`: whether one does not whose plugin could not be
/// asked.
async fn run_presented<C: Presented>(
    plugins: &Plugins,
    (deciders, segments): (&Deciders, &Audiences),
    campaigns: Vec<Stored>,
    (running, unasked): (&HashMap<Uuid, &ActiveCampaign>, &mut bool),
) -> nudge_db::Result<Vec<ActiveCampaign>> {
    let mut all = Vec::new();
    for campaign in campaigns {
        let campaign = campaign.read::<C>()?;
        let before = running.get(&campaign.id).copied();
        match C::run(plugins, deciders, segments, &campaign, before).await {
            Ok(running) => all.push(running),
            Err(error) => {
                *unasked |= error.is_unknown();
                let kind = C::KIND.name();
                tracing::error!(campaign.id = %campaign.id, campaign.kind = kind, error = %error, problems = ?error.fields(), "campaign does not run");
            }
        }
    }
    Ok(all)
}

/// Names of events whose past a campaign asks for.
fn history(campaigns: &[ActiveCampaign]) -> HashSet<String> {
    let asked = campaigns
        .iter()
        .flat_map(|campaign| campaign.accepted.history());
    asked.cloned().collect()
}

/// The surveys that a button opens.
fn feedback(campaigns: &[ActiveCampaign]) -> Vec<usize> {
    let campaigns = campaigns.iter().enumerate();
    let opened = campaigns.filter(|(_, campaign)| campaign.action.feedback().is_some());
    opened.map(|(index, _)| index).collect()
}

/// Push campaigns in the forms in which they run: how their messages are made, and what they wait for.
async fn run_push(
    plugins: &Plugins,
    (deciders, segments): (&Deciders, &Audiences),
    campaigns: Vec<Stored>,
    before: Option<&App>,
    (running, unasked): (&HashMap<Uuid, &ActiveCampaign>, &mut bool),
) -> nudge_db::Result<(HashMap<Uuid, Arc<Sending>>, Vec<ActiveCampaign>)> {
    let (mut sendings, mut all) = (HashMap::new(), Vec::new());
    for campaign in campaigns {
        let campaign = campaign.read()?;
        let id = campaign.id;
        let sending = before.and_then(|before| before.push.get(&id));
        let before = (sending.map(|sending| &**sending), running.get(&id).copied());
        match nudge_campaigns::push::run(plugins, deciders, segments, &campaign, before).await {
            Ok((sending, running)) => {
                sendings.insert(id, sending);
                all.extend(running);
            }
            Err(error) => {
                *unasked |= error.is_unknown();
                tracing::error!(campaign.id = %id, error = %error, problems = ?error.fields(), "campaign does not run");
            }
        }
    }
    Ok((sendings, all))
}

/// For each event name the campaigns that read it, and those that read every event, all ascending.
fn routes(campaigns: &[ActiveCampaign]) -> (HashMap<String, Vec<usize>>, Vec<usize>) {
    let mut routes: HashMap<String, Vec<usize>> = HashMap::new();
    let mut everywhere = Vec::new();
    for (index, campaign) in campaigns.iter().enumerate() {
        for name in campaign.accepted.event_names() {
            if name == "*" {
                everywhere.push(index);
            } else {
                routes.entry(name.clone()).or_default().push(index);
            }
        }
    }
    for indexes in routes.values_mut().chain([&mut everywhere]) {
        indexes.dedup();
    }
    (routes, everywhere)
}
