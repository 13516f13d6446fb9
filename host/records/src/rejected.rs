//! Events that were refused, kept for an hour so that people see what goes wrong with them.
//!
//! Who has asked to be deleted, or does not consent to analytics, has none of them.

use std::collections::HashSet;
use std::hash::BuildHasher;
use std::sync::Arc;
use std::time::Duration;

use nudge_db::{Result, Rows, Timestamp, Tx};
use uuid::Uuid;

use crate::events::Origin;

/// How long they are kept (contract 21).
pub const KEPT: Duration = Duration::from_hours(1);
/// Events that one statement removes at the most.
const STEP: i64 = 500;

/// An event that was refused.
#[derive(Clone, Debug)]
pub struct RejectedEvent {
    /// Tells it from others.
    pub id: Uuid,
    /// The app.
    pub app_id: Uuid,
    /// Whose it is.
    pub alias: i64,
    /// Its own id, where it has a usable one.
    pub event_id: Option<Uuid>,
    /// Its name, as far as it could be read.
    pub name: Option<String>,
    /// When it happened, as far as it could be read.
    pub timestamp: Option<Timestamp>,
    /// When it arrived.
    pub received_at: Timestamp,
    /// The text of a JSON object, without what the privacy policy denies.
    pub properties: Option<String>,
    /// What its request said.
    pub origin: Arc<Origin>,
    /// Why it was refused: a list in JSON.
    pub errors: String,
    /// The dead letter that it is kept in too.
    pub letter: Option<Uuid>,
}

/// Keeps refused events, but for those whose dead letters are not among the ones that were kept: an event of that id
/// was taken before.
pub async fn insert(
    tx: &mut Tx,
    events: &[&RejectedEvent],
    letters: &HashSet<Uuid, impl BuildHasher + Sync>,
) -> Result<()> {
    let is_kept = |event: &&&RejectedEvent| event.letter.is_none_or(|id| letters.contains(&id));
    let kept: Vec<&&RejectedEvent> = events.iter().filter(is_kept).collect();
    for chunk in kept.chunks(Rows::MOST) {
        let all = || chunk.iter();
        let rows = Rows::new()
            .uuids(all().map(|event| event.id))
            .uuids(all().map(|event| event.app_id))
            .integers(all().map(|event| event.alias))
            .uuids(all().map(|event| event.event_id))
            .texts(all().map(|event| event.name.clone()))
            .timestamps(all().map(|event| event.timestamp))
            .timestamps(all().map(|event| event.received_at))
            .texts(all().map(|event| event.properties.clone()))
            .texts(all().map(|event| event.origin.platform.clone()))
            .texts(all().map(|event| event.origin.app_version.clone()))
            .texts(all().map(|event| event.origin.source.name().to_owned()))
            .texts(all().map(|event| event.errors.clone()));
        tx.with_rows(
            "v(id, app_id, alias_number, event_id, name, timestamp, received_at, properties, platform, app_version, source, errors)",
            rows,
        )
        .push(
            " INSERT INTO rejected_events (id, app_id, alias_number, event_id, name, timestamp, received_at, properties,
                                           platform, app_version, source, errors)
              SELECT v.id, v.app_id, v.alias_number, v.event_id, v.name, v.timestamp, v.received_at, v.properties,
                     v.platform, v.app_version, v.source, v.errors
              FROM v WHERE true ON CONFLICT (id) DO NOTHING",
        )
        .execute()
        .await?;
    }
    Ok(())
}

/// Whether an app has refused events that arrived before an instant.
pub async fn is_any_before(tx: &mut Tx, app_id: Uuid, before: Timestamp) -> Result<bool> {
    let found: Option<Uuid> = tx
        .sql("SELECT id FROM rejected_events WHERE app_id = $1 AND received_at < $2 ORDER BY received_at LIMIT 1")
        .bind(app_id)
        .bind(before)
        .fetch_value()
        .await?;
    Ok(found.is_some())
}

/// Removes refused events of an app that arrived before an instant; answers how many.
pub async fn delete_before(tx: &mut Tx, app_id: Uuid, before: Timestamp) -> Result<u64> {
    tx.sql(
        "DELETE FROM rejected_events WHERE (app_id = $1) IS TRUE AND id IN (
            SELECT id FROM rejected_events WHERE app_id = $1 AND received_at < $2
            ORDER BY received_at LIMIT $3)",
    )
    .bind(app_id)
    .bind(before)
    .bind(STEP)
    .execute()
    .await
}
