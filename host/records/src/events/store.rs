//! Events in the database.
//!
//! Request `n` (the id of its row in `pending`) owns the event numbers from `n * 512` on. So numbers
//! ascend in the order of commits for whoever waits for an answer before asking again, on any number
//! of processes, and no counter is locked across a commit.
//!
//! A request's events are found by their numbers. Their alias is said as a difference of nought, which no index has: an
//! index of the alias would lead to all events that it has ever had.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use nudge_db::{Result, Rows, Statement, Timestamp, Tx};
use nudge_platform::hidden;
use uuid::Uuid;

use super::{Event, Key, Origin, SEQ_BLOCK, Source};
use crate::subjects::store::SUBJECT_OF_APP;

/// An event as it is stored.
#[derive(Clone, Debug)]
pub struct Stored {
    /// Its number.
    pub seq: i64,
    /// When it arrived.
    pub received_at: Timestamp,
    /// What its request said about it.
    pub origin: Arc<Origin>,
    /// The event.
    pub event: Arc<Event>,
}

#[derive(nudge_db::FromRow)]
struct EventRow {
    seq: i64,
    event_id: Uuid,
    name: String,
    timestamp: Timestamp,
    client_timestamp: Option<Timestamp>,
    received_at: Timestamp,
    properties: String,
    platform: Option<String>,
    app_version: Option<String>,
    locale: Option<String>,
    timezone: Option<String>,
    source: String,
}

/// The columns of an [`EventRow`], of an event `e`.
const EVENT_COLUMNS: &str =
    "e.seq, e.event_id, e.name, e.timestamp, e.client_timestamp, e.received_at, e.properties, e.platform, e.app_version,
     e.locale, e.timezone, e.source";

#[derive(nudge_db::FromRow)]
struct OwnedRow {
    app_id: Uuid,
    alias_number: i64,
    #[sqlx(flatten)]
    event: EventRow,
}

impl EventRow {
    fn read(self) -> Stored {
        Stored {
            seq: self.seq,
            received_at: self.received_at,
            origin: Arc::new(Origin {
                platform: self.platform,
                app_version: self.app_version,
                locale: self.locale,
                timezone: self.timezone,
                device_id: None,
                sdk_version: None,
                session_id: None,
                source: if self.source == Source::Server.name() {
                    Source::Server
                } else {
                    Source::Sdk
                },
            }),
            event: Arc::new(Event {
                id: self.event_id,
                name: self.name.into(),
                timestamp: self.timestamp,
                client_timestamp: self.client_timestamp,
                properties: self.properties.into(),
            }),
        }
    }
}

/// A request: its alias's number, and the id of its row in `pending`.
pub type RequestKey = (i64, i64);

/// Removes requests all of whose events were there already.
pub async fn delete_pending(tx: &mut Tx, requests: &[RequestKey]) -> Result<()> {
    for chunk in requests.chunks(Rows::MOST) {
        tx.with_rows("v(id, alias_number)", request_rows(chunk))
            .push(" DELETE FROM pending WHERE (id, alias_number) IN (SELECT v.id, v.alias_number FROM v)")
            .in_shards_of("alias_number", chunk.iter().map(|(alias, _)| *alias))
            .execute()
            .await?;
    }
    Ok(())
}

/// Requests as a table of ids and aliases.
pub fn request_rows(requests: &[RequestKey]) -> Rows {
    Rows::new()
        .integers(requests.iter().map(|(_, id)| *id))
        .integers(requests.iter().map(|(alias, _)| *alias))
}

/// The numbers of events of requests that are there, by the request, each in order.
pub async fn seqs_of(tx: &mut Tx, requests: &[RequestKey]) -> Result<HashMap<i64, Vec<i64>>> {
    let mut found: HashMap<i64, Vec<i64>> = HashMap::with_capacity(requests.len());
    for chunk in requests.chunks(Rows::MOST) {
        let seqs: Vec<i64> = of_requests(tx, chunk, "e.seq").fetch_values().await?;
        for seq in seqs {
            found.entry(seq / SEQ_BLOCK).or_default().push(seq);
        }
    }
    Ok(found)
}

/// Reads columns of the events of requests that are there, in the order of their numbers.
fn of_requests<'t>(
    tx: &'t mut Tx,
    requests: &[RequestKey],
    columns: &'static str,
) -> Statement<'t> {
    let rows = Rows::new()
        .integers(requests.iter().map(|(_, request)| request * SEQ_BLOCK))
        .integers(requests.iter().map(|(alias, _)| *alias));
    // The join's order is said, so that SQLite does not go through all events instead.
    tx.with_rows("v(first, alias_number)", rows)
        .push(" SELECT ")
        .push(columns)
        .push(
            " FROM v CROSS JOIN events e WHERE e.alias_number - v.alias_number = 0
                AND e.seq >= v.first AND e.seq < v.first + ",
        )
        .push_bind(SEQ_BLOCK)
        .in_shards_of("e.alias_number", requests.iter().map(|(alias, _)| *alias))
        .push(" ORDER BY e.seq")
}

/// Requests that are still to be processed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Backlog {
    /// How many.
    pub requests: i64,
    /// When the oldest arrived.
    pub oldest: Option<Timestamp>,
}

/// How many requests wait, as far as a number, and since when the oldest one.
pub async fn backlog(tx: &mut Tx, at_most: i64) -> Result<Backlog> {
    #[derive(nudge_db::FromRow)]
    struct OldestRow {
        id: i64,
        alias_number: i64,
        requests: i64,
    }
    let oldest: Option<OldestRow> = tx
        .sql(
            "SELECT id, alias_number, (SELECT count(*) FROM (SELECT id FROM pending LIMIT $1) w) AS requests
             FROM pending ORDER BY id LIMIT 1",
        )
        .bind(at_most)
        .fetch_optional()
        .await?;
    let Some(oldest) = oldest else {
        return Ok(Backlog::default());
    };
    Ok(Backlog {
        requests: oldest.requests,
        oldest: received_at(tx, (oldest.alias_number, oldest.id)).await?,
    })
}

/// When the first event of a request was received that is there.
pub async fn received_at(tx: &mut Tx, (alias, request): RequestKey) -> Result<Option<Timestamp>> {
    tx.sql("SELECT received_at FROM events WHERE seq BETWEEN $1 AND $2 AND alias_number - $3 = 0")
        .bind(request * SEQ_BLOCK)
        .bind(request * SEQ_BLOCK + SEQ_BLOCK - 1)
        .bind(alias)
        .in_shards_of("alias_number", [alias])
        .push(" ORDER BY seq LIMIT 1")
        .fetch_value()
        .await
}

/// The events of requests, by the request, each in order.
pub async fn events_of(tx: &mut Tx, requests: &[RequestKey]) -> Result<HashMap<i64, Vec<Stored>>> {
    let mut found: HashMap<i64, Vec<Stored>> = HashMap::with_capacity(requests.len());
    for chunk in requests.chunks(Rows::MOST) {
        let rows: Vec<EventRow> = of_requests(tx, chunk, EVENT_COLUMNS).fetch_all().await?;
        for row in rows {
            let request = row.seq / SEQ_BLOCK;
            found.entry(request).or_default().push(row.read());
        }
    }
    Ok(found)
}

/// Events by their numbers, with their apps and aliases.
pub async fn at(tx: &mut Tx, seqs: &[i64]) -> Result<Vec<(Uuid, i64, Stored)>> {
    let mut found = Vec::with_capacity(seqs.len());
    for chunk in seqs.chunks(Rows::MOST) {
        let rows: Vec<OwnedRow> = tx
            .with_rows("v(seq)", Rows::new().integers(chunk.iter().copied()))
            .push(" SELECT e.app_id, e.alias_number, ")
            .push(EVENT_COLUMNS)
            .push(" FROM v JOIN events e ON e.seq = v.seq")
            .fetch_all()
            .await?;
        found.extend(
            rows.into_iter()
                .map(|row| (row.app_id, row.alias_number, row.event.read())),
        );
    }
    Ok(found)
}

/// One event of an alias, by its id.
pub async fn find_by_id(
    tx: &mut Tx,
    app_id: Uuid,
    alias: i64,
    event_id: Uuid,
) -> Result<Option<Stored>> {
    let row: Option<EventRow> = tx
        .sql("SELECT ")
        .push(EVENT_COLUMNS)
        .push(" FROM events e WHERE e.alias_number = $2 AND e.event_id = $3 AND e.app_id = $1")
        .bind(app_id)
        .bind(alias)
        .bind(event_id)
        .fetch_optional()
        .await?;
    Ok(row.map(EventRow::read))
}

/// Which of some events, each with its alias and subject, are there under another alias of the subject; with the alias
/// that was asked about.
pub async fn known_elsewhere(tx: &mut Tx, asked: &[(i64, Uuid, Uuid)]) -> Result<HashSet<Key>> {
    let statement =
        " SELECT v.alias_number, v.event_id FROM v CROSS JOIN aliases a CROSS JOIN events e
          WHERE a.subject_id = v.subject_id AND a.number <> v.alias_number
            AND e.alias_number = a.number AND e.event_id = v.event_id";
    keys(tx, asked, statement).await
}

/// The keys that a statement finds for some events, each with its alias and subject, which it reads from the table `v`.
pub(super) async fn keys(
    tx: &mut Tx,
    asked: &[(i64, Uuid, Uuid)],
    statement: &'static str,
) -> Result<HashSet<Key>> {
    let mut found = HashSet::new();
    for chunk in asked.chunks(Rows::MOST) {
        let rows = Rows::new()
            .integers(chunk.iter().map(|(alias, ..)| *alias))
            .uuids(chunk.iter().map(|(_, subject_id, _)| *subject_id))
            .uuids(chunk.iter().map(|(.., event_id)| *event_id));
        let keys: Vec<Key> = tx
            .with_rows("v(alias_number, subject_id, event_id)", rows)
            .push(statement)
            .fetch_all()
            .await?;
        found.extend(keys);
    }
    Ok(found)
}

/// Which of some ids events of a subject have, whichever alias they came under.
pub async fn committed(
    tx: &mut Tx,
    app_id: Uuid,
    subject_id: Uuid,
    ids: &[Uuid],
) -> Result<HashSet<Uuid>> {
    let mut found = HashSet::new();
    for chunk in ids.chunks(Rows::MOST) {
        let rows: Vec<Uuid> = tx
            .with_rows("v(event_id)", Rows::new().uuids(chunk.iter().copied()))
            .push(
                " SELECT e.event_id FROM v CROSS JOIN aliases a
                  JOIN events e ON e.alias_number = a.number AND e.event_id = v.event_id
                  WHERE a.subject_id = (SELECT s.id FROM subjects s WHERE s.app_id = ",
            )
            .push_bind(app_id)
            .push(" AND s.id = ")
            .push_bind(subject_id)
            .push(")")
            .fetch_values()
            .await?;
        found.extend(rows);
    }
    Ok(found)
}

/// One event of a subject, by its id, whichever alias it came under.
pub async fn of_subject(
    tx: &mut Tx,
    app_id: Uuid,
    subject_id: Uuid,
    event_id: Uuid,
) -> Result<Option<Stored>> {
    let row: Option<EventRow> = tx
        .sql("SELECT ")
        .push(EVENT_COLUMNS)
        .push(" FROM aliases a JOIN events e ON e.alias_number = a.number WHERE a.subject_id = ")
        .push(SUBJECT_OF_APP)
        .push(" AND e.event_id = $3 ORDER BY e.seq LIMIT 1")
        .bind(app_id)
        .bind(subject_id)
        .bind(event_id)
        .fetch_optional()
        .await?;
    Ok(row.map(EventRow::read))
}

/// The first name in order that an app has events of, after another one.
pub async fn next_name(tx: &mut Tx, app_id: Uuid, after: &str) -> Result<Option<String>> {
    tx.sql("SELECT name FROM events WHERE coalesce(app_id, app_id) = $1 AND name > $2 ORDER BY name LIMIT 1")
        .bind(app_id)
        .bind(after.to_owned())
        .fetch_value()
        .await
}

/// A position among an app's events of a name, which are in the order of their receipt.
pub type EventPosition = (Timestamp, i64);

/// Events of an app and a name that arrived after a position and before an instant, with their aliases, in order; of nobody who
/// is being deleted.
pub async fn named_after(
    tx: &mut Tx,
    (app_id, name): (Uuid, &str),
    (after, after_seq): EventPosition,
    until: Timestamp,
    limit: i64,
) -> Result<Vec<(i64, Stored)>> {
    let rows: Vec<OwnedRow> = tx
        .sql("SELECT e.app_id, e.alias_number, ")
        .push(EVENT_COLUMNS)
        .push(
            " FROM events e WHERE coalesce(e.app_id, e.app_id) = $1 AND e.name = $2 AND (e.received_at, e.seq) > ($3, $4)
              AND e.received_at < $5 AND e.alias_number NOT IN ",
        )
        .push(hidden::ALIASES)
        .push(" ORDER BY e.received_at, e.seq LIMIT $6")
        .bind(app_id)
        .bind(name.to_owned())
        .bind(after)
        .bind(after_seq)
        .bind(until)
        .bind(limit)
        .fetch_all()
        .await?;
    let owned = |row: OwnedRow| (row.alias_number, row.event.read());
    Ok(rows.into_iter().map(owned).collect())
}

/// Events of an app and a name that arrived at or after an instant, by their receipt, newest first; of nobody who is being
/// deleted. The index of an app's events is of an expression, so that the planner takes it for nothing else.
pub async fn newest_named(
    tx: &mut Tx,
    app_id: Uuid,
    name: &str,
    since: Timestamp,
    limit: i64,
) -> Result<Vec<Stored>> {
    let rows: Vec<EventRow> = tx
        .sql("SELECT ")
        .push(EVENT_COLUMNS)
        .push(
            " FROM events e WHERE coalesce(e.app_id, e.app_id) = $1 AND e.name = $2 AND e.received_at >= $3
              AND e.alias_number NOT IN ",
        )
        .push(hidden::ALIASES)
        .push(" ORDER BY e.received_at DESC, e.seq DESC LIMIT $4")
        .bind(app_id)
        .bind(name.to_owned())
        .bind(since)
        .bind(limit)
        .fetch_all()
        .await?;
    Ok(rows.into_iter().map(EventRow::read).collect())
}
