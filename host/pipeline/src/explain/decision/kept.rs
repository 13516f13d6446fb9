//! The decision about an event, if it was kept.

use std::collections::HashMap;
use std::sync::Arc;

use nudge_apps::App;
use nudge_db::{Timestamp, Tx};
use nudge_platform::event_names::SESSION_BEGAN;
use nudge_platform::id;
use nudge_records::decisions;
use nudge_records::decisions::record::{Item, Record};
use nudge_records::decisions::transcript::Heard;
use nudge_records::events::store::Stored;
use nudge_records::scheduled_work;
use nudge_wasm::{Plugin, trigger};
use uuid::Uuid;

use super::recalled::{Recalled, events_at, past};
use super::view::{ViewScope, as_item, view};
use super::{About, Call, Error, Told, make, subject};
use crate::projection::Subject;
use crate::services::Services;

/// Decisions of a subject after an event that are looked through for the one about it.
const MOST_DECISIONS: i64 = 100;

/// A decision that was kept, and the place of the event in it.
struct FoundDecision {
    id: Uuid,
    record: Record,
    campaign: usize,
    item: usize,
}

/// Asks the version that decided about an event, if the decision was kept: what decides today need not be there.
pub async fn ask_kept(
    services: &Services,
    app: &App,
    campaign_id: Uuid,
    (alias, stored): (i64, &Stored),
) -> Result<Option<Told>, Error> {
    let mut tx = services.db.read().await?;
    let Some(subject) = subject(&mut tx, app, alias).await? else {
        return Ok(None);
    };
    let about = (app, campaign_id, stored);
    let call = kept(&mut tx, services, about, &subject, None).await?;
    drop(tx);
    match call {
        Some(call) => make(services, app.id, call).await.map(Some),
        None => Ok(None),
    }
}

/// The call in which it was decided about an event, or since an instant about a timer of it, if that was kept.
pub(super) async fn kept(
    tx: &mut Tx,
    services: &Services,
    (app, campaign_id, stored): About<'_>,
    subject: &Subject,
    timer_since: Option<Timestamp>,
) -> Result<Option<Call>, Error> {
    let found = find(tx, (app.id, subject.id, campaign_id), stored, timer_since).await?;
    let Some(found) = found else {
        return Ok(None);
    };
    // A version that is gone can't say why; the one that decides today may.
    let digest = &found.record.plugin.digest;
    let Ok(plugin) = services.plugins.by_digest(&services.db, digest).await else {
        return Ok(None);
    };
    Ok(recall(tx, services, app, subject, plugin, found).await?)
}

/// The decision about an event and campaign, or since an instant about a timer of it, if it was kept.
async fn find(
    tx: &mut Tx,
    (app_id, subject_id, campaign_id): (Uuid, Uuid, Uuid),
    stored: &Stored,
    timer_since: Option<Timestamp>,
) -> nudge_db::Result<Option<FoundDecision>> {
    let from = id::first_of(timer_since.unwrap_or(stored.received_at));
    let rows = decisions::store::of_subject(tx, app_id, subject_id, from, MOST_DECISIONS).await?;
    for row in rows {
        let Ok(record) = Record::decode(&row.record) else {
            continue;
        };
        let is_it = |item: &Item| {
            item.event_id == stored.event.id && item.timer.is_some() == timer_since.is_some()
        };
        let concerned = |number: usize| {
            let number = u32::try_from(number).unwrap_or(u32::MAX);
            let mut campaigns = record.campaigns.iter();
            campaigns.position(|it| it.id == campaign_id && it.items.contains(&number))
        };
        let mut items = record.items.iter().enumerate();
        let place = items.find_map(|(number, item)| {
            let campaign = is_it(item).then(|| concerned(number)).flatten()?;
            Some((number, campaign))
        });
        if let Some((item, campaign)) = place {
            return Ok(Some(FoundDecision {
                id: row.id,
                record,
                campaign,
                item,
            }));
        }
    }
    Ok(None)
}

/// A call like the one that was kept: the subject's items up to the event, under the one campaign. None: something
/// that it takes is gone.
async fn recall(
    tx: &mut Tx,
    services: &Services,
    app: &App,
    subject: &Subject,
    plugin: Arc<Plugin>,
    found: FoundDecision,
) -> nudge_db::Result<Option<Call>> {
    let FoundDecision {
        id,
        mut record,
        campaign: place,
        item: last,
    } = found;
    let heard = record.heard.take().unwrap_or_default();
    let (Some(campaign), Some(item)) = (record.campaigns.get(place), record.items.get(last)) else {
        return Ok(None);
    };
    let number = item.subject;
    let campaign_version = Some(campaign.version);
    let could_message = could_message(&record, number);
    let until_it = (0_u32..).zip(&record.items).take(last + 1);
    let own: Vec<(u32, &Item)> = until_it
        .filter(|(_, item)| item.subject == number)
        .collect();
    let events = events_at(tx, app.id, &seqs(&own, &heard)).await?;
    let Some(config) = decisions::store::config(tx, app.id, campaign.config).await? else {
        return Ok(None);
    };
    let Some(items) = given(&own, &events, &record.beginnings) else {
        return Ok(None);
    };
    let concerned = (0_u32..).zip(own.iter().map(|(place, _)| place));
    let concerned = concerned.filter(|(_, place)| campaign.items.contains(place));
    let batch = trigger::Batch {
        now: record.now,
        campaigns: vec![trigger::Campaign {
            id: campaign.id,
            config: config.text,
            properties: config.properties,
            items: concerned.map(|(number, _)| number).collect(),
        }],
        explaining: true,
        seed: record.seed,
        items,
    };
    let item = u32::try_from(batch.items.len().saturating_sub(1)).unwrap_or(u32::MAX);
    let scope = ViewScope::new(&[], before(&own, subject), Timestamp(record.now));
    let now = view(tx, services, app, subject.clone(), scope).await?;
    Ok(Some(Call {
        plugin,
        batch,
        facts: Recalled {
            heard,
            places: (u32::try_from(place).unwrap_or(u32::MAX), number),
            past: events.into_iter().map(past).collect(),
            now,
        },
        item,
        decided_at: id::made_at(id),
        campaign_version,
        could_message,
    }))
}

/// Whether a subject of a decision could be messaged, if that was noted.
fn could_message(record: &Record, number: u32) -> Option<bool> {
    let not_to_message = record.not_to_message.as_ref()?;
    Some(!not_to_message.contains(&number))
}

/// The numbers of the events that a call is about, or that it was told of.
fn seqs(items: &[(u32, &Item)], heard: &Heard) -> Vec<i64> {
    let own = items.iter().map(|(_, item)| item.seq);
    own.chain(heard.histories.values().flatten().copied())
        .collect()
}

/// The number of the event before which a subject is known for a call about some items: the first one that arrived. For a
/// timer that of now is taken: its own event is long past.
fn before(items: &[(u32, &Item)], subject: &Subject) -> i64 {
    let is_timer = items.last().is_some_and(|(_, item)| item.timer.is_some());
    let arrived = |item: &&Item| item.timer.is_none() && item.seq >= 0;
    match items.iter().map(|(_, item)| *item).find(arrived) {
        Some(first) if !is_timer => first.seq,
        _ => subject.last_seq.saturating_add(1),
    }
}

/// Items of a decision, each as the plugin got it; those among `beginnings` were the beginnings of sessions. None: one is gone.
fn given(
    own: &[(u32, &Item)],
    events: &HashMap<i64, Stored>,
    beginnings: &[u32],
) -> Option<Vec<trigger::Item>> {
    let item = |(number, item): &(u32, &Item)| {
        let timer = item.timer.as_ref().map(|(key, payload)| trigger::Timer {
            key: key.clone(),
            payload: payload.clone(),
        });
        // The event of a campaign's own occasion is stored nowhere.
        let occasion = scheduled_work::instant_of(item.seq);
        let occasion = occasion.map(|at| scheduled_work::event_with_id(item.event_id, at));
        let stored = occasion.as_ref().or_else(|| events.get(&item.seq))?;
        let mut given = as_item(stored, item.session, timer, item.received);
        if beginnings.contains(number) {
            given.name = SESSION_BEGAN.into();
        }
        Some(given)
    };
    own.iter().map(item).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_that_was_decided_about_together_with_an_occasion_is_known_with_it() {
        let at = Timestamp(60_000_000);
        let item = |seq, id| Item {
            seq,
            event_id: Uuid::from_u128(id),
            subject: 0,
            session: 1,
            received: at.0,
            timer: None,
        };
        let (occasion, event) = (item(scheduled_work::seq_of(at), 1), item(512, 2));
        let items = [(0, &occasion), (1, &event)];
        let stored = Stored {
            seq: 512,
            ..scheduled_work::event_with_id(event.event_id, at)
        };
        let given = given(&items, &HashMap::from([(512, stored)]), &[]);
        let ids = given.map(|given| given.iter().map(|item| item.event_id).collect::<Vec<_>>());
        assert_eq!(ids, Some(vec![occasion.event_id, event.event_id]));
        let subject = Subject {
            last_seq: 2_000,
            ..Subject::nobody()
        };
        assert_eq!(before(&items, &subject), 512);
        assert_eq!(before(&items[..1], &subject), 2_001);
    }
}
