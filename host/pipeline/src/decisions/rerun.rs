//! Making a decision again: the same version, the same items, the same answers.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use nudge_db::{Timestamp, Tx};
use nudge_platform::clock;
use nudge_platform::event_names::SESSION_BEGAN;
use nudge_plugin_runtime::cases::{Difference, exactly};
use nudge_plugin_runtime::{Lost, Unloadable};
use nudge_records::decisions::record::{Decided, Record, Unreadable};
use nudge_records::decisions::store;
use nudge_records::decisions::transcript::{Heard, Replay};
use nudge_records::events::store::Stored;
use nudge_records::scheduled_work;
use nudge_wasm::trigger::{self, Batch, TimerChange};
use nudge_wasm::{PastEvent, Plugin};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::services::Services;

/// What came of making a decision again.
#[derive(Debug)]
pub(super) struct Rerun {
    /// Whether it is the same decision.
    pub same: bool,
    /// What was decided then.
    pub recorded: Value,
    /// What is decided now, or how the call failed.
    pub again: Value,
    /// Where they differ.
    pub differences: Vec<Difference>,
    /// Questions that the plugin asked now and not then.
    pub new_questions: u32,
}

/// Why a decision can't be made again.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    /// There is no such decision.
    #[error("no such decision")]
    NotFound,
    /// Something that it takes is gone. The text is for the person who asked.
    #[error("{0}")]
    Gone(String),
    /// The version does not load.
    #[error("the version can't be loaded")]
    Unloadable(#[from] Unloadable),
    /// The record is damaged.
    #[error("a decision can't be read")]
    Unreadable(#[from] Unreadable),
    /// The host panicked.
    #[error(transparent)]
    Lost(#[from] Lost),
    /// The database.
    #[error("storage failed")]
    Storage(#[from] nudge_db::Error),
}

/// Makes a decision of an app again. Nothing takes effect.
pub(super) async fn rerun(services: &Services, app_id: Uuid, id: Uuid) -> Result<Rerun, Error> {
    let mut tx = services.db.read().await?;
    let row = store::find(&mut tx, app_id, id).await?;
    let mut record = Record::decode(&row.ok_or(Error::NotFound)?.record)?;
    let Some(heard) = record.heard.take() else {
        let detail =
            "the plugin asked for more in this call than is kept, so that it can't be made again";
        return Err(Error::Gone(detail.to_owned()));
    };
    let events = events(&mut tx, app_id, &record, &heard).await?;
    let batch = batch(&mut tx, app_id, &record, &events).await?;
    drop(tx);
    let plugin = plugin(services, &record).await?;

    let new_questions = Arc::<AtomicU32>::default();
    let replay = Replay {
        heard,
        events: events
            .iter()
            .map(|(seq, stored)| (*seq, past(stored)))
            .collect(),
        new_questions: Arc::clone(&new_questions),
    };
    let made = services
        .plugins
        .aside(app_id, move || plugin.evaluate(batch, Box::new(replay)));
    let again = match made.await? {
        Ok(outcome) => shown(&record, &Decided::of(&outcome)),
        Err(failed) => json!({
            "failure": failed.failure.code(),
            "detail": failed.failure.to_string(),
        }),
    };
    let recorded = shown(&record, &record.decided);
    let differences = exactly(&recorded, &again);
    let new_questions = new_questions.load(Ordering::Relaxed);
    Ok(Rerun {
        same: differences.is_empty() && new_questions == 0,
        recorded,
        again,
        differences,
        new_questions,
    })
}

/// The version: a built-in one, or the component that is still stored.
async fn plugin(services: &Services, record: &Record) -> Result<Arc<Plugin>, Error> {
    let loaded = services
        .plugins
        .by_digest(&services.db, &record.plugin.digest);
    match loaded.await {
        Ok(plugin) => Ok(plugin),
        Err(Unloadable::Missing) => Err(Error::Gone(format!(
            "version {} of `{}` with the digest {} is not on this server any more",
            record.plugin.version, record.plugin.name, record.plugin.digest
        ))),
        Err(Unloadable::Storage(error)) => Err(error.into()),
        Err(error) => Err(error.into()),
    }
}

/// All events that the decision names, by number.
async fn events(
    tx: &mut Tx,
    app_id: Uuid,
    record: &Record,
    heard: &Heard,
) -> Result<HashMap<i64, Stored>, Error> {
    let of_campaigns = record.items.iter().filter_map(|item| {
        let at = scheduled_work::instant_of(item.seq)?;
        Some((item.seq, scheduled_work::event_with_id(item.event_id, at)))
    });
    let items = record.items.iter().map(|item| item.seq);
    let histories = heard.histories.values().flatten().copied();
    let mut seqs: Vec<i64> = items.chain(histories).filter(|seq| *seq >= 0).collect();
    seqs.sort_unstable();
    seqs.dedup();
    let found = nudge_records::events::store::at(tx, &seqs).await?;
    let mut events: HashMap<i64, Stored> = found
        .into_iter()
        .filter(|(of, _, _)| *of == app_id)
        .map(|(_, _, stored)| (stored.seq, stored))
        .collect();
    if events.len() == seqs.len() {
        events.extend(of_campaigns);
        return Ok(events);
    }
    Err(Error::Gone(
        "events that the decision was made from were removed since".to_owned(),
    ))
}

async fn batch(
    tx: &mut Tx,
    app_id: Uuid,
    record: &Record,
    events: &HashMap<i64, Stored>,
) -> Result<Batch, Error> {
    let mut campaigns = Vec::with_capacity(record.campaigns.len());
    for campaign in &record.campaigns {
        let config = store::config(tx, app_id, campaign.config).await?;
        let Some(config) = config else {
            let detail = "a configuration that the decision was made under was removed since";
            return Err(Error::Gone(detail.to_owned()));
        };
        campaigns.push(trigger::Campaign {
            id: campaign.id,
            config: config.text,
            properties: config.properties,
            items: campaign.items.clone(),
        });
    }
    let item = |(number, item): (u32, &nudge_records::decisions::record::Item)| {
        let event = &events.get(&item.seq)?.event;
        let timer = item.timer.as_ref();
        Some(trigger::Item {
            subject: item.subject,
            // The own occasions of several campaigns at one instant share a number.
            event_id: item.event_id,
            name: if record.beginnings.contains(&number) {
                SESSION_BEGAN.into()
            } else {
                Arc::clone(&event.name)
            },
            timestamp: event.timestamp.0,
            received: item.received,
            session: item.session,
            properties: Arc::clone(&event.properties),
            timer: timer.map(|(key, payload)| trigger::Timer {
                key: key.clone(),
                payload: payload.clone(),
            }),
        })
    };
    Ok(Batch {
        now: record.now,
        items: (0..).zip(&record.items).filter_map(item).collect(),
        campaigns,
        explaining: false,
        seed: record.seed,
    })
}

fn past(stored: &Stored) -> PastEvent {
    PastEvent {
        id: stored.event.id,
        timestamp: stored.event.timestamp.0,
        properties: Arc::clone(&stored.event.properties),
    }
}

/// What was decided, for people and to be compared: numbers of the batch become ids.
fn shown(record: &Record, decided: &Decided) -> Value {
    let campaign = |number: u32| {
        let campaign = record.campaigns.get(number as usize);
        campaign.map(|campaign| campaign.id)
    };
    let item = |number: u32| record.items.get(number as usize);
    let bytes = |bytes: &Vec<u8>| STANDARD.encode(bytes);
    let fired = decided.fired.iter().map(|firing| {
        let item = item(firing.item);
        let mut shown = json!({
            "campaignId": campaign(firing.campaign),
            "subjectId": item.and_then(|item| record.subject(item.subject)),
            "eventId": item.map(|item| item.event_id),
        });
        let key = item
            .and_then(|item| item.timer.as_ref())
            .map(|timer| &timer.0);
        if let (Some(key), Some(shown)) = (key, shown.as_object_mut()) {
            shown.insert("timer".to_owned(), key.clone().into());
        }
        shown
    });
    let states = decided.states.iter().map(|write| {
        json!({
            "campaignId": campaign(write.campaign),
            "subjectId": record.subject(write.subject),
            "state": write.state.as_ref().map(bytes),
        })
    });
    let timers = decided
        .timers
        .iter()
        .map(|change| shown_timer(record, change));
    json!({
        "fired": fired.collect::<Vec<_>>(),
        "states": states.collect::<Vec<_>>(),
        "timers": timers.collect::<Vec<_>>(),
    })
}

fn shown_timer(record: &Record, change: &TimerChange) -> Value {
    let campaign = |number: u32| {
        let campaign = record.campaigns.get(number as usize);
        campaign.map(|campaign| campaign.id)
    };
    match change {
        TimerChange::Set {
            campaign: number,
            item: at_item,
            key,
            at,
            payload,
        } => json!({
            "change": "set",
            "campaignId": campaign(*number),
            "subjectId": record.items.get(*at_item as usize).and_then(|item| record.subject(item.subject)),
            "key": key,
            "dueAt": clock::to_text(Timestamp(*at)),
            "payload": STANDARD.encode(payload),
        }),
        TimerChange::Cancel {
            campaign: number,
            subject,
            key,
        } => json!({
            "change": "cancel",
            "campaignId": campaign(*number),
            "subjectId": record.subject(*subject),
            "key": key,
        }),
        TimerChange::CancelAll {
            campaign: number,
            subject,
        } => json!({
            "change": "cancel_all",
            "campaignId": campaign(*number),
            "subjectId": record.subject(*subject),
        }),
    }
}
