//! Telling endpoints of dead letters.

use std::collections::HashMap;

use nudge_apps::webhooks::{self, Queued, Transition};
use nudge_campaigns::webhooks::{EventType, Subscription};
use nudge_db::{Result, Timestamp, Tx};
use nudge_platform::clock;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::Letter;
use crate::subjects;

/// Tells endpoints of an app of letters, in the transaction that writes them. Each is told once, however often its
/// event fails. Costs nothing where no endpoint listens.
pub async fn announce(
    tx: &mut Tx,
    app_id: Uuid,
    subscriptions: &[Subscription],
    letters: &[&Letter],
    now: Timestamp,
) -> Result<Queued> {
    if letters.is_empty() || !webhooks::listens(subscriptions, EventType::DeadLetterCreated) {
        return Ok(Queued::default());
    }
    let mut aliases: Vec<i64> = letters.iter().map(|letter| letter.alias).collect();
    aliases.sort_unstable();
    aliases.dedup();
    let standings = subjects::store::standings(tx, aliases).await?;
    let subjects: HashMap<i64, Uuid> = standings
        .into_iter()
        .map(|found| (found.standing.alias, found.standing.subject_id))
        .collect();
    let told = letters.iter().filter_map(|letter| {
        let subject_id = *subjects.get(&letter.alias)?;
        Some(Transition {
            subject_id,
            source_id: letter.id,
            event: EventType::DeadLetterCreated,
            data: data(letter, subject_id),
            at: now,
        })
    });
    let told: Vec<Transition> = told.collect();
    webhooks::enqueue(tx, app_id, subscriptions, &told, None, now).await
}

/// What endpoints are told of a letter. The event's properties stay in the letter.
fn data(letter: &Letter, subject_id: Uuid) -> Value {
    let mut data = Map::new();
    let mut set = |key: &str, value: Value| drop(data.insert(key.to_owned(), value));
    set("deadLetterId", json!(letter.id));
    set("eventId", json!(letter.event_id));
    set("eventName", json!(letter.event_name));
    set("subjectId", json!(subject_id));
    set("stage", json!(letter.stage));
    set("reason", json!(letter.reason));
    if let Some(detail) = &letter.detail {
        set("detail", json!(detail));
    }
    if let Some(plugin) = &letter.plugin {
        set("plugin", json!(plugin));
    }
    if let Some(campaign_id) = letter.campaign_id {
        set("campaignId", json!(campaign_id));
    }
    set("receivedAt", json!(clock::to_text(letter.received_at)));
    Value::Object(data)
}
