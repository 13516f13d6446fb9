//! A person's events, newest first (contract 5).
//!
//! Every alias has its events in order under an index of its own; several are merged here, so that nobody's
//! history is ever sorted.

use nudge_db::{Result, Timestamp, Tx};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// Which events to show.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Of this name.
    pub name: Option<String>,
    /// Happened at or after.
    pub from: Option<Timestamp>,
    /// Happened before.
    pub to: Option<Timestamp>,
}

/// A place in a timeline: the last event that was shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TimelinePosition {
    timestamp: i64,
    event_id: Uuid,
    alias: i64,
}

/// An event as a timeline shows it.
#[derive(Debug, nudge_db::FromRow)]
pub struct Event {
    /// Its id.
    pub event_id: Uuid,
    /// Whose it is.
    #[sqlx(rename = "alias_number")]
    pub alias: i64,
    /// What happened.
    pub name: String,
    /// When.
    pub timestamp: Timestamp,
    /// When by the client's clock, where that was corrected.
    pub client_timestamp: Option<Timestamp>,
    /// When the server learned of it.
    pub received_at: Timestamp,
    /// Its properties, in JSON.
    pub properties: String,
    /// Such as `ios`.
    pub platform: Option<String>,
    /// The app's version.
    pub app_version: Option<String>,
    /// Who sent it: `sdk` or `server`.
    pub source: String,
}

impl Event {
    /// Its place.
    pub fn position(&self) -> TimelinePosition {
        TimelinePosition {
            timestamp: self.timestamp.0,
            event_id: self.event_id,
            alias: self.alias,
        }
    }
}

/// The newest events of aliases after a place.
pub async fn page(
    tx: &mut Tx,
    app_id: Uuid,
    aliases: &[i64],
    filter: &Filter,
    after: Option<TimelinePosition>,
    limit: usize,
) -> Result<Vec<Event>> {
    let mut newest: Vec<Event> = Vec::new();
    for alias in aliases {
        // Once the page is full, what is older than all of it need not be read.
        let full = newest.len() >= limit;
        let oldest = newest.last().filter(|_| full).map(|event| event.timestamp);
        let from = filter.from.max(oldest);
        let events = of_alias(tx, app_id, *alias, filter, from, after, limit).await?;
        newest.extend(events);
        newest.sort_unstable_by_key(|event| std::cmp::Reverse(event.position()));
        newest.truncate(limit);
    }
    Ok(newest)
}

async fn of_alias(
    tx: &mut Tx,
    app_id: Uuid,
    alias: i64,
    filter: &Filter,
    from: Option<Timestamp>,
    after: Option<TimelinePosition>,
    limit: usize,
) -> Result<Vec<Event>> {
    let mut statement = tx
        .sql(
            "SELECT event_id, alias_number, name, timestamp, client_timestamp, received_at, properties, platform,
                    app_version, source
             FROM events WHERE app_id = $1 AND alias_number = $2",
        )
        .bind(app_id)
        .bind(alias);
    if let Some(name) = &filter.name {
        statement = statement.push(" AND name = ").push_bind(name.clone());
    }
    if let Some(from) = from {
        statement = statement.push(" AND timestamp >= ").push_bind(from);
    }
    if let Some(to) = filter.to {
        statement = statement.push(" AND timestamp < ").push_bind(to);
    }
    if let Some(after) = after {
        // Two aliases may have an event of the same id and time.
        let comparison = if alias < after.alias { " <= (" } else { " < (" };
        statement = statement
            .push(" AND (timestamp, event_id)")
            .push(comparison)
            .push_bind(after.timestamp)
            .push(", ")
            .push_bind(after.event_id)
            .push(")");
    }
    statement
        .push(" ORDER BY timestamp DESC, event_id DESC LIMIT ")
        .push_bind(i64::try_from(limit).unwrap_or(i64::MAX))
        .fetch_all()
        .await
}
