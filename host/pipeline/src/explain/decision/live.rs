//! For which campaigns that wait for nothing somebody is now.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use nudge_apps::App;
use nudge_campaigns::campaign::ActiveCampaign;
use nudge_campaigns::targeting::Opening;
use nudge_db::Timestamp;
use nudge_plugin_runtime::Reading;
use nudge_records::scheduled_work;
use nudge_wasm::{Plugin, trigger};
use uuid::Uuid;

use super::view::{ViewScope, as_item, session, view};
use super::{Error, ONLY, subject};
use crate::groups;
use crate::projection::Subject;
use crate::services::Services;

/// For which campaigns somebody is, and of which that can't be said now.
#[derive(Debug, Default)]
pub struct Live {
    /// The campaigns that the person may have now.
    pub holding: BTreeSet<Uuid>,
    /// The campaigns whose plugin failed, and why.
    pub unknown: Vec<(Uuid, Error)>,
}

/// A campaign that only its plugin has still to decide about.
struct UndecidedCampaign<'a> {
    running: &'a ActiveCampaign,
    plugin: &'a Arc<Plugin>,
    reading: &'a Reading,
}

/// For which campaigns consent, the sample, the schedule and the audience let somebody have them now. What waits for nothing
/// disturbs nobody, so that the app's quiet hours do not count. Nothing is counted, and nothing takes effect. Each plugin is
/// asked once for all of its campaigns, as by a run of them; if it fails, once more for each by itself, so that a campaign is
/// no other's trouble.
pub async fn all_for(
    services: &Services,
    app: &App,
    campaigns: &[&ActiveCampaign],
    alias: i64,
) -> Result<Live, Error> {
    let mut live = Live::default();
    if campaigns.is_empty() {
        return Ok(live);
    }
    let now = services.clock.now();
    let mut tx = services.db.read().await?;
    let subject = subject(&mut tx, app, alias).await?;
    drop(tx);
    let Some(subject) = subject else {
        return Ok(live);
    };
    let mut by_plugin: HashMap<usize, Vec<UndecidedCampaign<'_>>> = HashMap::new();
    for undecided in may_have(app, campaigns, &subject, now) {
        let of_plugin = by_plugin
            .entry(Arc::as_ptr(undecided.plugin).addr())
            .or_default();
        of_plugin.push(undecided);
    }
    for undecided in by_plugin.values() {
        match ask(services, app, undecided, &subject, now).await {
            Ok(holding) => live.holding.extend(holding),
            Err(error) if undecided.len() == 1 => {
                let failed = undecided.iter().map(|one| one.running.id);
                live.unknown.extend(failed.zip([error]));
            }
            Err(_) => {
                for one in undecided {
                    let one = std::slice::from_ref(one);
                    match ask(services, app, one, &subject, now).await {
                        Ok(holding) => live.holding.extend(holding),
                        Err(error) => {
                            let failed = one.iter().map(|one| one.running.id);
                            live.unknown.extend(failed.zip([error]));
                        }
                    }
                }
            }
        }
    }
    Ok(live)
}

/// The campaigns that the host lets the person have.
fn may_have<'a>(
    app: &App,
    campaigns: &[&'a ActiveCampaign],
    subject: &Subject,
    now: Timestamp,
) -> Vec<UndecidedCampaign<'a>> {
    if subject.suppressed || !subject.may_message(app) {
        return Vec::new();
    }
    let timezone = subject.timezone.as_deref();
    let undecided = campaigns.iter().filter_map(|running| {
        let rules = &running.rules;
        let may = rules.sample.includes(running.id, subject.id)
            && matches!(rules.schedule.opening(now, timezone, None), Opening::Open);
        let (plugin, reading) = running.accepted.for_subject(subject.id);
        may.then_some(UndecidedCampaign {
            running,
            plugin,
            reading,
        })
    });
    undecided.collect()
}

/// Asks the plugin of some campaigns about all of them in one call; answers those that are for the person.
async fn ask(
    services: &Services,
    app: &App,
    undecided: &[UndecidedCampaign<'_>],
    subject: &Subject,
    now: Timestamp,
) -> Result<Vec<Uuid>, Error> {
    let Some(first) = undecided.first() else {
        return Ok(Vec::new());
    };
    let ids: Vec<Uuid> = undecided.iter().map(|one| one.running.id).collect();
    let before = subject.last_seq.saturating_add(1);
    let mut tx = services.db.read().await?;
    let campaigns: Vec<&ActiveCampaign> = undecided.iter().map(|one| one.running).collect();
    let scope = ViewScope::new(&campaigns, before, now);
    let facts = view(&mut tx, services, app, subject.clone(), scope).await?;
    drop(tx);
    // What stands for all of them: that the person is there.
    let stored = scheduled_work::event(app.id, now);
    let campaigns = undecided.iter().map(|one| trigger::Campaign {
        id: one.running.id,
        config: Arc::clone(&one.running.accepted.config),
        properties: Arc::clone(&one.reading.properties),
        items: vec![ONLY],
    });
    let batch = trigger::Batch {
        now: now.0,
        items: vec![as_item(
            &stored,
            session(subject.session_number),
            None,
            now.0,
        )],
        campaigns: campaigns.collect(),
        explaining: false,
        seed: groups::seed(app.id, first.plugin),
    };
    let plugin = Arc::clone(first.plugin);
    let made = move || plugin.evaluate(batch, Box::new(facts));
    let outcome = services.plugins.workers.run(app.id, made).await?;
    let outcome = outcome.map_err(|failed| Error::Failed(failed.failure.to_string()))?;
    let fired = outcome.fired.iter();
    let holding = fired.filter_map(|firing| ids.get(firing.campaign as usize).copied());
    Ok(holding.collect())
}
