//! Events that are past their retention.
//!
//! An index has an app's events by name and receipt (`events_of_app`). A look into it finds a name's oldest event, so that
//! what costs time is what is removed, and one look for each name. No index is made for this alone.
//!
//! Of an event that may still be sent again the id is noted first, and the event goes with the next round.

use std::collections::HashSet;
use std::time::Duration;

use nudge_db::{Result, Rows, Timestamp, Tx};
use nudge_records::events::store::EventPosition;
use nudge_records::events::{Key, removed};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::services::Shared;

/// Events that one transaction removes at the most.
const STEP: i64 = 500;
/// More than the time of an event differs by when it is sent again: a device's clock is corrected for each request.
const DRIFT: Duration = Duration::from_hours(1);
/// Comes before every event.
const START: EventPosition = (Timestamp(i64::MIN), i64::MIN);

/// A name that an app has events of.
#[derive(Debug, nudge_db::FromRow)]
pub struct NameRow {
    /// The name.
    pub name: String,
    /// When the oldest of its events was received.
    pub received_at: Timestamp,
}

/// An event that is old enough to go.
#[derive(Clone, Copy, Debug, nudge_db::FromRow)]
pub struct OldRow {
    /// Its number.
    pub seq: i64,
    /// Its alias's number.
    pub alias_number: i64,
    /// Its id.
    pub event_id: Uuid,
    /// When it happened.
    pub timestamp: Timestamp,
    /// When it was received.
    pub received_at: Timestamp,
}

/// Which events of an app go.
#[derive(Clone, Copy, Debug)]
pub(super) struct Age {
    /// Those that were received before.
    pub before: Timestamp,
    /// How long ingest takes an event after its time.
    pub taken_for: Duration,
    /// The server's time.
    pub now: Timestamp,
}

/// Removes events of an app that are old enough, but for those that are still needed. Each step is a transaction, and
/// whatever was not removed is found by the next round.
pub(super) async fn remove(
    services: &Shared,
    app_id: Uuid,
    age: Age,
    halt: &CancellationToken,
) -> Result<()> {
    let mut after = None;
    while !halt.is_cancelled() {
        let mut tx = services.db.read().await?;
        let found = next_name(&mut tx, app_id, after.as_deref()).await?;
        drop(tx);
        let Some(NameRow { name, received_at }) = found else {
            return Ok(());
        };
        if received_at < age.before {
            remove_named(services, (app_id, &name), age, halt).await?;
        }
        after = Some(name);
    }
    Ok(())
}

async fn remove_named(
    services: &Shared,
    (app_id, name): (Uuid, &str),
    age: Age,
    halt: &CancellationToken,
) -> Result<()> {
    let mut after = START;
    while !halt.is_cancelled() {
        let mut tx = services.db.write().await?;
        let mut old = oldest(&mut tx, (app_id, name), after, age.before).await?;
        let Some(last) = old.last() else {
            return Ok(());
        };
        after = (last.received_at, last.seq);
        // A timer that an event sets is there before its request is gone, so that it is looked for later than that.
        let waiting = with_requests(&mut tx, &old).await?;
        old.retain(|event| !waiting.contains(&event.alias_number));
        let asked_about = with_work(&mut tx, &old).await?;
        old.retain(|event| !asked_about.contains(&event.seq));
        keep_ids(&mut tx, app_id, &mut old, age).await?;
        delete(&mut tx, app_id, &old).await?;
        tx.commit().await?;
    }
    Ok(())
}

/// Notes the ids of events that may still be sent again, and leaves those among the events that were noted long enough ago.
async fn keep_ids(tx: &mut Tx, app_id: Uuid, old: &mut Vec<OldRow>, age: Age) -> Result<()> {
    let until = |event: &OldRow| event.timestamp.plus(age.taken_for).plus(DRIFT);
    let key = |event: &OldRow| (event.alias_number, event.event_id);
    let taken = old.iter().filter(|event| until(event) >= age.now);
    let taken: Vec<(Key, Timestamp)> = taken.map(|event| (key(event), until(event))).collect();
    let settled = removed::note(tx, app_id, &taken, age.now).await?;
    old.retain(|event| until(event) < age.now || settled.contains(&key(event)));
    Ok(())
}

/// The next name of an app, in the order of the index.
pub async fn next_name(tx: &mut Tx, app_id: Uuid, after: Option<&str>) -> Result<Option<NameRow>> {
    let mut statement = tx
        .sql("SELECT name, received_at FROM events WHERE coalesce(app_id, app_id) = $1")
        .bind(app_id);
    if let Some(after) = after {
        statement = statement.push(" AND name > ").push_bind(after.to_owned());
    }
    statement
        .push(" ORDER BY name, received_at LIMIT 1")
        .fetch_optional()
        .await
}

/// The oldest events of a name behind a position that were received before an instant.
pub async fn oldest(
    tx: &mut Tx,
    (app_id, name): (Uuid, &str),
    (after, after_seq): EventPosition,
    before: Timestamp,
) -> Result<Vec<OldRow>> {
    tx.sql(
        "SELECT seq, alias_number, event_id, timestamp, received_at FROM events
         WHERE coalesce(app_id, app_id) = $1 AND name = $2 AND (received_at, seq) > ($3, $4) AND received_at < $5
         ORDER BY received_at, seq LIMIT $6",
    )
    .bind(app_id)
    .bind(name.to_owned())
    .bind(after)
    .bind(after_seq)
    .bind(before)
    .bind(STEP)
    .fetch_all()
    .await
}

/// Those of the events' aliases that have requests which are still to be processed.
pub async fn with_requests(tx: &mut Tx, events: &[OldRow]) -> Result<HashSet<i64>> {
    let aliases: HashSet<i64> = events.iter().map(|event| event.alias_number).collect();
    let found: Vec<i64> = tx
        .with_rows("v(alias_number)", Rows::new().integers(aliases))
        .push(
            " SELECT DISTINCT alias_number FROM pending WHERE alias_number IN (SELECT v.alias_number FROM v)",
        )
        .fetch_values()
        .await?;
    Ok(found.into_iter().collect())
}

/// The numbers of the events that will be asked about: by a timer or an occasion, by a dead letter's replay, or by a message
/// that waits for its campaign.
pub async fn with_work(tx: &mut Tx, events: &[OldRow]) -> Result<HashSet<i64>> {
    if events.is_empty() {
        return Ok(HashSet::new());
    }
    let ids = events.iter().map(|event| event.event_id);
    // One statement: what a timer leads to takes its place in one transaction. Values in values, not joins: no planner
    // begins with all timers.
    let found: Vec<i64> = tx
        .with_rows("v(seq, alias_number, event_id)", rows(events).uuids(ids))
        .push(
            " SELECT v.seq FROM v WHERE
                (SELECT t.id FROM timers t WHERE t.event_seq = v.seq AND t.subject_id =
                    (SELECT a.subject_id FROM aliases a WHERE a.number = v.alias_number) LIMIT 1) IS NOT NULL OR
                (SELECT o.id FROM occasions o WHERE o.event_seq = v.seq AND o.subject_id =
                    (SELECT a.subject_id FROM aliases a WHERE a.number = v.alias_number) LIMIT 1) IS NOT NULL OR
                (SELECT l.id FROM dead_letters l WHERE l.alias_number = v.alias_number AND l.event_id = v.event_id
                    AND l.stage <> 'validation' LIMIT 1) IS NOT NULL OR
                (SELECT d.id FROM deliveries d WHERE d.event_seq = v.seq AND d.status = 'queued' AND d.subject_id =
                    (SELECT a.subject_id FROM aliases a WHERE a.number = v.alias_number) LIMIT 1) IS NOT NULL",
        )
        .fetch_values()
        .await?;
    Ok(found.into_iter().collect())
}

/// Removes events of an app.
pub async fn delete(tx: &mut Tx, app_id: Uuid, events: &[OldRow]) -> Result<()> {
    if events.is_empty() {
        return Ok(());
    }
    tx.with_rows("v(seq, alias_number)", rows(events))
        .push(
            " DELETE FROM events WHERE seq IN (SELECT v.seq FROM v)
              AND +alias_number IN (SELECT v.alias_number FROM v) AND app_id = ",
        )
        .push_bind(app_id)
        .execute()
        .await?;
    Ok(())
}

fn rows(events: &[OldRow]) -> Rows {
    Rows::new()
        .integers(events.iter().map(|event| event.seq))
        .integers(events.iter().map(|event| event.alias_number))
}
