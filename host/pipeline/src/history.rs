//! A subject's earlier events, as plugins ask for them. What a question reads is bounded, however long the history is.

use std::cmp::Reverse;

use nudge_db::{Result, Timestamp, Tx};
use nudge_records::events::store::{self as events, Stored};
use nudge_wasm::PastEvent;
use uuid::Uuid;

#[derive(sqlx::FromRow)]
struct PastRow {
    seq: i64,
    event_id: Uuid,
    timestamp: Timestamp,
    properties: String,
}

/// The aliases of a subject.
pub async fn aliases(tx: &mut Tx, app_id: Uuid, subject_id: Uuid) -> Result<Vec<i64>> {
    tx.sql("SELECT number FROM aliases WHERE app_id = $1 AND subject_id = $2 ORDER BY number")
        .bind(app_id)
        .bind(subject_id)
        .fetch_values()
        .await
}

/// A subject's event and the alias that it came under.
pub async fn event_of(
    tx: &mut Tx,
    app_id: Uuid,
    subject_id: Uuid,
    event_id: Uuid,
) -> Result<Option<(i64, Stored)>> {
    for alias in aliases(tx, app_id, subject_id).await? {
        if let Some(stored) = events::find_by_id(tx, app_id, alias, event_id).await? {
            return Ok(Some((alias, stored)));
        }
    }
    Ok(None)
}

/// Leaves out events that wait to be processed. The requests of one alias are processed in their order, so
/// that the last number says it all; those of several aliases overtake each other.
fn only_processed(aliases: &[i64]) -> &'static str {
    if aliases.len() < 2 {
        return "";
    }
    " AND NOT EXISTS (SELECT 1 FROM pending p WHERE p.alias_number = events.alias_number AND p.id = events.seq / 512)"
}

/// How many events of a name aliases have, up to a number, among those processed already.
pub async fn count_events(
    tx: &mut Tx,
    app_id: Uuid,
    aliases: &[i64],
    name: &str,
    since: Option<i64>,
    last_seq: i64,
    at_most: u32,
) -> Result<u32> {
    let number: i64 = tx
        .sql("SELECT count(*) AS number FROM (SELECT 1 AS one FROM events WHERE app_id = $1 AND name = $2 AND timestamp >= $3 AND seq <= $4 AND alias_number IN ")
        .bind(app_id)
        .bind(name.to_owned())
        .bind(since.unwrap_or(i64::MIN))
        .bind(last_seq)
        .push_list(aliases.iter().copied())
        .push(only_processed(aliases))
        .push(" LIMIT ")
        .push_bind(i64::from(at_most))
        .push(") AS counted")
        .fetch_scalar()
        .await?;
    Ok(u32::try_from(number).unwrap_or(at_most))
}

/// When the newest events of a name were that an alias has, among those processed already.
pub async fn newest_events(
    tx: &mut Tx,
    app_id: Uuid,
    alias: i64,
    name: &str,
    last_seq: i64,
    limit: u32,
) -> Result<Vec<i64>> {
    tx
        .sql(
            "SELECT timestamp AS number FROM events
             WHERE app_id = $1 AND alias_number = $2 AND name = $3 AND seq <= $4 ORDER BY timestamp DESC LIMIT $5",
        )
        .bind(app_id)
        .bind(alias)
        .bind(name.to_owned())
        .bind(last_seq)
        .bind(i64::from(limit))
        .fetch_values()
        .await
}

/// The events of a name that aliases have, with their numbers, newest first, among those processed already.
///
/// Each alias is asked by itself, since the index has its events in order: what is read is at the most `limit` times
/// the number of aliases, however many events there are. What is older than as many that are known is not read.
pub async fn recent_events(
    tx: &mut Tx,
    app_id: Uuid,
    aliases: &[i64],
    name: &str,
    since: Option<i64>,
    last_seq: i64,
    limit: u32,
) -> Result<Vec<(i64, PastEvent)>> {
    let mut since = since.unwrap_or(i64::MIN);
    let mut newest: Vec<(i64, PastEvent)> = Vec::new();
    for alias in aliases {
        let rows: Vec<PastRow> = tx
            .sql("SELECT seq, event_id, timestamp, properties FROM events WHERE app_id = $1 AND alias_number = $2 AND name = $3 AND timestamp >= $4 AND seq <= $5")
            .bind(app_id)
            .bind(*alias)
            .bind(name.to_owned())
            .bind(since)
            .bind(last_seq)
            .push(only_processed(aliases))
            .push(" ORDER BY timestamp DESC LIMIT ")
            .push_bind(i64::from(limit))
            .fetch_all()
            .await?;
        newest.extend(rows.into_iter().map(PastRow::read));
        newest.sort_by_key(|(seq, event)| Reverse((event.timestamp, *seq)));
        newest.truncate(limit as usize);
        if let Some((_, oldest)) = newest.get((limit as usize).saturating_sub(1)) {
            since = since.max(oldest.timestamp);
        }
    }
    Ok(newest)
}

impl PastRow {
    fn read(self) -> (i64, PastEvent) {
        let event = PastEvent {
            id: self.event_id,
            timestamp: self.timestamp.0,
            properties: self.properties.into(),
        };
        (self.seq, event)
    }
}
