//! What the bindings of a variant stand for, for many recipients at once.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use nudge_apps::App;
use nudge_campaigns::push::personalization::{Kind, Spec};
use nudge_campaigns::push::verdict::{Values, is_withheld};
use nudge_db::{Db, Timestamp};
use nudge_platform::traces;
use nudge_plugin_runtime::{Accepted, Plugins, halving, logs};
use nudge_records::events;
use nudge_wasm::{Description, PastEvent};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::call::{Answer, Entry, RecipientBatch};
use super::digits;
use super::shadow::ShadowCall;
use crate::groups::seed;
use crate::projection::Subject;
use crate::recipients::{KnownRecipients, Reads};

/// Recipients of one call of a plugin; of one that reads many events of each, fewer: they are in memory together.
const TOGETHER: usize = 64;
const TOGETHER_WITH_HISTORY: usize = 8;
const DAY: Duration = Duration::from_hours(24);

/// What resolving takes.
#[derive(Clone, Copy, Debug)]
pub struct Resolver<'a> {
    /// The database.
    pub db: &'a Db,
    /// The plugins.
    pub plugins: &'a Plugins,
}

/// Who gets a message, and what is known beside the person.
#[derive(Clone, Debug)]
pub struct Recipient {
    /// The person.
    pub subject_id: Uuid,
    /// The data of the request that asks for the send.
    pub data: Option<Map<String, Value>>,
    /// The event that caused the message.
    pub trigger: Option<PastEvent>,
}

/// Why nothing was resolved.
#[derive(Clone, Debug, PartialEq)]
pub enum Failure {
    /// The plugin failed on it.
    Plugin {
        /// How: `trap`, `deadline`, ….
        code: &'static str,
        /// What happened, for people.
        detail: String,
        /// Which plugin.
        plugin: Box<Description>,
    },
    /// The plugin could not be asked properly; it may be asked again later.
    Unavailable,
}

/// Resolves the bindings of a variant for recipients, in their order. A batch goes through one call; a call that
/// fails is taken apart, so that one recipient spoils no other. Of a campaign's messages, a shadow candidate is shown
/// the same afterwards; of a preview (no `campaign`) it is not.
pub async fn resolve(
    resolver: Resolver<'_>,
    app: &App,
    campaign: Option<Uuid>,
    variant: (&Spec, &Accepted),
    recipients: &[Recipient],
    now: Timestamp,
) -> nudge_db::Result<Vec<Result<Values, Failure>>> {
    resolve_for(resolver, app, campaign, variant, (recipients, &[]), now).await
}

/// Resolves as [`resolve`] does, for recipients of whom some are `known` as of an event that is being processed.
pub(crate) async fn resolve_for(
    resolver: Resolver<'_>,
    app: &App,
    campaign: Option<Uuid>,
    variant: (&Spec, &Accepted),
    (recipients, subjects): (&[Recipient], &[Subject]),
    now: Timestamp,
) -> nudge_db::Result<Vec<Result<Values, Failure>>> {
    let (spec, accepted) = variant;
    let ids: Vec<Uuid> = recipients
        .iter()
        .map(|recipient| recipient.subject_id)
        .collect();
    let reads = reads(spec, accepted, now);
    let known = KnownRecipients::load(resolver.db, app, &ids, subjects, &reads).await?;
    let mut outcomes: Vec<Result<Values, Failure>> = recipients
        .iter()
        .map(|_| Err(Failure::Unavailable))
        .collect();
    for (plugin, places) in by_version(accepted, recipients) {
        for places in places.chunks(together(spec)) {
            let entries = places.iter().filter_map(|place| recipients.get(*place));
            let entries: Vec<Entry> = entries
                .map(|recipient| entry(app, &known, recipient))
                .collect();
            let work = RecipientBatch {
                app_id: app.id,
                campaign_id: campaign,
                seed: seed(app.id, &plugin),
                period: Arc::clone(accepted.decider.period_of(&plugin)),
                recorder: Arc::clone(&resolver.plugins.recorder),
                now,
                config: Arc::clone(&accepted.config),
                reading: Arc::clone(accepted.reading_of(&plugin)),
                recipients: known.clone(),
                plugin: Arc::clone(&plugin),
                kind: logs::Kind::Decision,
            };
            let shadow = campaign.and_then(|id| shadow_call(app, id, variant, &work, &entries));
            let span = || traces::NewSpan::internal("plugin personalization", Vec::new());
            let run = move || halving::ask(&work, &entries);
            let answers = resolver.plugins.workers.run(app.id, run);
            let answers = traces::within(span, answers).await;
            // A panic of the host's is no reason to lose a message.
            let Ok(answers) = answers else { continue };
            if let Some(shadow) = shadow {
                shadow.offer(resolver.plugins, answers.clone());
            }
            for (place, answer) in places.iter().zip(answers) {
                let Some(recipient) = recipients.get(*place) else {
                    continue;
                };
                let values = values(resolver.db, app, spec, recipient, answer, &plugin).await?;
                if let Some(slot) = outcomes.get_mut(*place) {
                    *slot = values;
                }
            }
        }
    }
    Ok(outcomes)
}

/// What an answer of the plugin's means for a recipient.
async fn values(
    db: &Db,
    app: &App,
    spec: &Spec,
    recipient: &Recipient,
    answer: Answer,
    plugin: &nudge_wasm::Plugin,
) -> nudge_db::Result<Result<Values, Failure>> {
    Ok(match answer {
        Answer::Resolved(mut resolutions) => {
            digits::restore(db, app.id, spec, recipient, &mut resolutions).await?;
            Ok(Values::new(spec, &app.settings.privacy, resolutions))
        }
        Answer::Failed { code, detail } => Err(Failure::Plugin {
            code,
            detail,
            plugin: Box::new(plugin.description().clone()),
        }),
        Answer::Unavailable => Err(Failure::Unavailable),
    })
}

/// What a shadow candidate is shown besides; none: there is no candidate, as nearly always.
fn shadow_call(
    app: &App,
    campaign_id: Uuid,
    variant: (&Spec, &Accepted),
    work: &RecipientBatch,
    entries: &[Entry],
) -> Option<ShadowCall> {
    let (candidate, reading) = variant.1.shadow()?;
    Some(ShadowCall {
        campaign_id,
        work: RecipientBatch {
            seed: seed(app.id, &candidate.plugin),
            period: Arc::clone(&candidate.period),
            reading: Arc::clone(reading),
            plugin: Arc::clone(&candidate.plugin),
            ..work.clone()
        },
        entries: entries.to_vec(),
        spec: variant.0.clone(),
        privacy: app.settings.privacy.clone(),
    })
}

/// Recipients of one call.
fn together(spec: &Spec) -> usize {
    let mut events = spec.latest_events().into_iter();
    if events.any(|(_, _, filtered)| filtered) {
        TOGETHER_WITH_HISTORY
    } else {
        TOGETHER
    }
}

/// What is read before the plugin is asked: its time is short. No event has a name that can't be one.
fn reads(spec: &Spec, accepted: &Accepted, now: Timestamp) -> Reads {
    let latest = spec.latest_events().into_iter();
    let newest = latest
        .filter(|(name, _, filtered)| !filtered && events::is_name(name))
        .map(|(name, days, _)| {
            let back = DAY * u32::try_from(days).unwrap_or_default();
            (name.to_owned(), now.minus(back))
        });
    Reads {
        properties: accepted.reads_subject(),
        newest: newest.collect(),
    }
}

/// Divides recipients among the versions that resolve for them.
fn by_version(
    accepted: &Accepted,
    recipients: &[Recipient],
) -> Vec<(Arc<nudge_wasm::Plugin>, Vec<usize>)> {
    let mut groups: HashMap<&str, (Arc<nudge_wasm::Plugin>, Vec<usize>)> = HashMap::new();
    for (place, recipient) in recipients.iter().enumerate() {
        let (plugin, _) = accepted.for_subject(recipient.subject_id);
        let group = groups
            .entry(plugin.digest())
            .or_insert_with(|| (Arc::clone(plugin), Vec::new()));
        group.1.push(place);
    }
    groups.into_values().collect()
}

/// A recipient without what the privacy policy keeps from messages.
fn entry(app: &App, known: &KnownRecipients, recipient: &Recipient) -> Entry {
    let mut data = recipient.data.clone().unwrap_or_default();
    data.retain(|key, _| !is_withheld(&app.settings.privacy, &Kind::SendData, key));
    Entry {
        subject_id: recipient.subject_id,
        data: Value::Object(data).to_string().into(),
        trigger: recipient
            .trigger
            .clone()
            .map(|event| known.permitted(event)),
    }
}
