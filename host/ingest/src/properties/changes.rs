//! Notes of changed properties, for the campaigns that listen for them (contract 8, `property_changed`).

use std::sync::Arc;

use nudge_db::{Result, Timestamp, Tx};
use nudge_pipeline::{Size, Source as WorkSource, Work};
use nudge_platform::event_names::PROPERTY_CHANGED;
use nudge_platform::id;
use nudge_records::events::insert::{self, NewRequest};
use nudge_records::events::store::Stored;
use nudge_records::events::{Event, Origin, SEQ_BLOCK, Source};
use nudge_records::subjects;
use uuid::Uuid;

use super::update::Change;
use crate::services::Services;

/// Stores changes as events of the subject's own system alias, claimed like a request. What is lost between
/// the commit and the pipeline is found there.
pub(super) async fn note(
    services: &Services,
    tx: &mut Tx,
    app_id: Uuid,
    subject_id: Uuid,
    source: Source,
    changes: &[Change],
    now: Timestamp,
) -> Result<Option<Work>> {
    if changes.is_empty() {
        return Ok(None);
    }
    let alias = subjects::store::system_alias(tx, app_id, subject_id, now).await?;
    let events: Vec<Arc<Event>> = changes
        .iter()
        .map(|change| Arc::new(event(change, now)))
        .collect();
    let origin = Arc::new(Origin {
        source,
        ..Origin::default()
    });
    let room = services
        .pipeline
        .room(Size::of(events.iter().map(|event| &**event)));
    let request = NewRequest {
        app_id,
        alias,
        node: room.as_ref().map(|_| services.pipeline.node()),
        received_at: now,
        origin: &origin,
        events: &events,
    };
    let inserted = insert::insert(tx, &[request], true).await?;
    let Some((number, room)) = inserted.ids.first().copied().zip(room) else {
        return Ok(None);
    };
    let stored = (number * SEQ_BLOCK..)
        .zip(events)
        .map(|(seq, event)| Stored {
            seq,
            received_at: now,
            origin: Arc::clone(&origin),
            event,
        })
        .collect();
    let work = Work::new(
        WorkSource::Request(number),
        app_id,
        alias,
        stored,
        Some(room),
    );
    Ok(Some(work.of_subject(subject_id)))
}

fn event(change: &Change, now: Timestamp) -> Event {
    let mut properties = serde_json::Map::new();
    properties.insert("key".to_owned(), change.key.clone().into());
    for (side, value) in [("from", &change.from), ("to", &change.to)] {
        if let Some(value) = value {
            properties.insert(side.to_owned(), value.clone());
        }
    }
    Event {
        id: id::new(now),
        name: PROPERTY_CHANGED.into(),
        timestamp: now,
        client_timestamp: None,
        properties: serde_json::Value::Object(properties).to_string().into(),
    }
}
