//! Requests and their events on their way into the database.
//!
//! What all events of a request share goes to the database once a request and is joined there. Texts are
//! shared with the statement, not copied.

use std::sync::Arc;

use nudge_db::{Dialect, Result, Rows, Timestamp, Tx};
use uuid::Uuid;

use super::{Event, Origin, SEQ_BLOCK};

/// A request about to be stored.
#[derive(Clone, Copy, Debug)]
pub struct NewRequest<'a> {
    /// The app.
    pub app_id: Uuid,
    /// Whose events it has.
    pub alias: i64,
    /// The process that has it in hand; none: whichever has room.
    pub node: Option<Uuid>,
    /// When it arrived.
    pub received_at: Timestamp,
    /// What it said about its events.
    pub origin: &'a Origin,
    /// Its events; at least one.
    pub events: &'a [Arc<Event>],
}

/// What became of requests.
#[derive(Debug)]
pub struct Inserted {
    /// Their numbers, in the same order. Request `n` owns the event numbers from `n * 512` on.
    pub ids: Vec<i64>,
    /// How many of their events were not there already.
    pub events: u64,
}

#[derive(nudge_db::FromRow)]
struct PendingRow {
    id: i64,
    ordinal: i64,
}

#[derive(nudge_db::FromRow)]
struct BothRow {
    id: i64,
    ordinal: i64,
    /// How many events were new, where some may have been there; the same in each row.
    inserted: Option<i64>,
}

const EVENTS: &str = "e(ordinal, place, event_id, name, timestamp, client_timestamp, properties)";
const REQUESTS: &str = "r(ordinal, id, app_id, alias_number, node, received_at, platform, app_version, locale, timezone, source, device_id, sdk_version, session_id)";

/// Inserts the events of `e` whose request `r` has the number `r.id`, but for those that are there already.
const INSERT_EVENTS: &str =
    " INSERT INTO events (seq, app_id, alias_number, event_id, name, timestamp, client_timestamp, received_at,
                          properties, platform, app_version, locale, timezone, source)
      SELECT r.id * 512 + e.place, r.app_id, r.alias_number, e.event_id, e.name, e.timestamp, e.client_timestamp,
             r.received_at, e.properties, r.platform, r.app_version, r.locale, r.timezone, r.source
      FROM e CROSS JOIN r WHERE r.ordinal = e.ordinal
      ON CONFLICT (alias_number, event_id) DO NOTHING";

// The numbers are drawn where the requests stand, so that nothing needs to be joined to find them again.
const INSERT_BOTH: &str = ", q AS (SELECT r.*, nextval('pending_id_seq') AS number FROM r),
       p AS (INSERT INTO pending (id, app_id, alias_number, ordinal, node, device_id, sdk_version, session_id)
             SELECT q.number, q.app_id, q.alias_number, q.ordinal, q.node, q.device_id, q.sdk_version, q.session_id FROM q),
       n AS (INSERT INTO events (seq, app_id, alias_number, event_id, name, timestamp, client_timestamp,
                                 received_at, properties, platform, app_version, locale, timezone, source)
             SELECT q.number * 512 + e.place, q.app_id, q.alias_number, e.event_id, e.name, e.timestamp,
                    e.client_timestamp, q.received_at, e.properties, q.platform, q.app_version, q.locale,
                    q.timezone, q.source
             FROM e JOIN q ON q.ordinal = e.ordinal";
/// All events or an error: there is nothing to count.
const ALL_NEW: &str = ") SELECT q.number AS id, q.ordinal, CAST(NULL AS BIGINT) AS inserted FROM q";
const BUT_KNOWN: &str = " ON CONFLICT (alias_number, event_id) DO NOTHING RETURNING 1)
      SELECT q.number AS id, q.ordinal, (SELECT count(*) FROM n) AS inserted FROM q";

/// Adds a row of `pending` for each request, and the events, but for those that are there already.
///
/// On a PostgreSQL of one machine this is one statement, and so all or nothing outside of a transaction too. Skipping rows
/// costs it a fifth of the insert even where there is nothing to skip; `expect_new` does without, and an
/// event that is there already makes the whole an error of kind [`Conflict`](nudge_db::Kind::Conflict).
pub async fn insert(
    tx: &mut Tx,
    requests: &[NewRequest<'_>],
    expect_new: bool,
) -> Result<Inserted> {
    let mut inserted = Inserted {
        ids: vec![0; requests.len()],
        events: 0,
    };
    let mut rest = requests;
    let mut first = 0;
    while !rest.is_empty() {
        // Where the shards are on several workers, one statement for both tables would need all of them.
        let is_one_statement = tx.dialect() == Dialect::Postgres && tx.shards().is_none();
        let fitting = match tx.dialect() {
            Dialect::Sqlite => fitting(rest),
            Dialect::Postgres => rest.len(),
        };
        let (group, more) = rest.split_at(fitting);
        let ids = inserted.ids.get_mut(first..first + group.len());
        let ids = ids.unwrap_or_default();
        inserted.events += if is_one_statement {
            insert_both(tx, group, ids, expect_new).await?
        } else {
            insert_pending(tx, group, ids).await?;
            insert_events(tx, group, ids).await?
        };
        first += group.len();
        rest = more;
    }
    Ok(inserted)
}

/// How many requests fit into one statement of SQLite, at least one.
fn fitting(requests: &[NewRequest<'_>]) -> usize {
    let mut events = 0;
    let fitting = requests.iter().take(Rows::MOST).take_while(|request| {
        events += request.events.len();
        events <= Rows::MOST
    });
    fitting.count().max(1)
}

async fn insert_pending(tx: &mut Tx, requests: &[NewRequest<'_>], ids: &mut [i64]) -> Result<()> {
    let rows = Rows::new()
        .integers((0_i64..).zip(requests).map(|(ordinal, _)| ordinal))
        .uuids(requests.iter().map(|request| request.app_id))
        .integers(requests.iter().map(|request| request.alias))
        .uuids(requests.iter().map(|request| request.node))
        .texts(
            requests
                .iter()
                .map(|request| request.origin.device_id.clone()),
        )
        .texts(
            requests
                .iter()
                .map(|request| request.origin.sdk_version.clone()),
        )
        .texts(
            requests
                .iter()
                .map(|request| request.origin.session_id.clone()),
        );
    let inserted: Vec<PendingRow> = tx
        .with_rows(
            "v(ordinal, app_id, alias_number, node, device_id, sdk_version, session_id)",
            rows,
        )
        .push(
            " INSERT INTO pending (app_id, alias_number, ordinal, node, device_id, sdk_version, session_id)
              SELECT v.app_id, v.alias_number, v.ordinal, v.node, v.device_id, v.sdk_version, v.session_id
              FROM v WHERE true ORDER BY v.ordinal
              RETURNING id, ordinal",
        )
        .fetch_all()
        .await?;
    for row in inserted {
        assign(ids, row.ordinal, row.id);
    }
    Ok(())
}

/// Answers how many of the events were not there yet.
async fn insert_events(tx: &mut Tx, requests: &[NewRequest<'_>], ids: &[i64]) -> Result<u64> {
    let is_distributed = tx.shards().is_some();
    let statement = tx
        .with_rows(EVENTS, event_rows(requests))
        .and_rows(REQUESTS, request_rows(requests, ids))
        .push(INSERT_EVENTS);
    if !is_distributed {
        return statement.execute().await;
    }
    // The number of rows that Citus says has those in it that were skipped.
    let inserted: Vec<i64> = statement.push(" RETURNING seq").fetch_values().await?;
    Ok(inserted.len() as u64)
}

async fn insert_both(
    tx: &mut Tx,
    requests: &[NewRequest<'_>],
    ids: &mut [i64],
    expect_new: bool,
) -> Result<u64> {
    let delayed_commit = tx.delayed_commit();
    let inserted: Vec<BothRow> = tx
        .with_rows(EVENTS, event_rows(requests))
        .and_rows(REQUESTS, request_rows(requests, ids))
        .push(INSERT_BOTH)
        .push(if expect_new { ALL_NEW } else { BUT_KNOWN })
        .push(delayed_commit)
        .fetch_all()
        .await?;
    let events: usize = requests.iter().map(|request| request.events.len()).sum();
    let counted = inserted.first().and_then(|row| row.inserted);
    for row in inserted {
        assign(ids, row.ordinal, row.id);
    }
    Ok(counted.map_or(events as u64, |counted| {
        u64::try_from(counted).unwrap_or_default()
    }))
}

fn assign(ids: &mut [i64], ordinal: i64, id: i64) {
    let slot = usize::try_from(ordinal).ok();
    if let Some(slot) = slot.and_then(|ordinal| ids.get_mut(ordinal)) {
        *slot = id;
    }
}

/// The columns of `e`.
fn event_rows(requests: &[NewRequest<'_>]) -> Rows {
    let events = || {
        (0_i64..).zip(requests).flat_map(|(ordinal, request)| {
            let numbered = (0_i64..).zip(request.events);
            numbered.map(move |(place, event)| (ordinal, place, event))
        })
    };
    Rows::new()
        .integers(events().map(|(ordinal, ..)| ordinal))
        .integers(events().map(|(_, place, _)| place))
        .uuids(events().map(|(.., event)| event.id))
        .shared_texts(events().map(|(.., event)| Arc::clone(&event.name)))
        .timestamps(events().map(|(.., event)| event.timestamp))
        .timestamps(events().map(|(.., event)| event.client_timestamp))
        .shared_texts(events().map(|(.., event)| Arc::clone(&event.properties)))
}

/// The columns of `r`. On PostgreSQL the numbers are not known yet, and not read.
fn request_rows(requests: &[NewRequest<'_>], ids: &[i64]) -> Rows {
    let origins = || requests.iter().map(|request| request.origin);
    Rows::new()
        .integers((0_i64..).zip(requests).map(|(ordinal, _)| ordinal))
        .integers(ids.iter().copied())
        .uuids(requests.iter().map(|request| request.app_id))
        .integers(requests.iter().map(|request| request.alias))
        .uuids(requests.iter().map(|request| request.node))
        .timestamps(requests.iter().map(|request| request.received_at))
        .texts(origins().map(|origin| origin.platform.clone()))
        .texts(origins().map(|origin| origin.app_version.clone()))
        .texts(origins().map(|origin| origin.locale.clone()))
        .texts(origins().map(|origin| origin.timezone.clone()))
        .texts(origins().map(|origin| origin.source.name().to_owned()))
        .texts(origins().map(|origin| origin.device_id.clone()))
        .texts(origins().map(|origin| origin.sdk_version.clone()))
        .texts(origins().map(|origin| origin.session_id.clone()))
}

// The statements say 512.
const _: () = assert!(SEQ_BLOCK == 512);
