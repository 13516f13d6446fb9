//! The feed in the database. The indexes of an app's events are of expressions, so that the planner takes them for nothing
//! else: that of each name is of `coalesce(app_id, app_id)`, that of all by receipt of `coalesce(app_id, app_id, app_id)`.

use nudge_db::{Result, Rows, Statement, Timestamp, Tx};
use nudge_platform::event_names::{PROPERTY_CHANGED, SCHEDULED};
use nudge_platform::hidden;
use nudge_records::events::SEQ_BLOCK;
use nudge_records::subjects::AliasKind;
use uuid::Uuid;

use super::{EventKey, FeedPosition, Filter};

/// An event as the feed shows it.
#[derive(Debug)]
pub struct FeedEvent {
    key: EventKey,
    /// The subject.
    pub subject_id: Uuid,
    /// The anonymous id that it came under.
    pub anonymous_id: Option<String>,
    /// The customer's own id that it came under.
    pub external_id: Option<String>,
    /// Its own id; a refused one may have none.
    pub event_id: Option<Uuid>,
    /// What happened, as far as a refused one says it.
    pub name: Option<String>,
    /// When, as far as a refused one says it.
    pub timestamp: Option<Timestamp>,
    /// When by the client's clock, where that was corrected.
    pub client_timestamp: Option<Timestamp>,
    /// When it arrived.
    pub received_at: Timestamp,
    /// Its properties, in JSON.
    pub properties: String,
    /// Such as `ios`.
    pub platform: Option<String>,
    /// The app's version.
    pub app_version: Option<String>,
    /// Who sent it: `sdk` or `server`.
    pub source: String,
    /// Why it was refused, in JSON; none: it was not.
    pub errors: Option<String>,
}

impl FeedEvent {
    /// Its position.
    pub fn position(&self) -> FeedPosition {
        FeedPosition {
            at: self.received_at,
            event: self.key,
        }
    }
}

/// A name that an app has events of.
#[derive(Clone, Debug, nudge_db::FromRow)]
pub struct Name {
    /// The name.
    pub name: String,
    /// When its newest event arrived, of those that were asked about.
    pub newest: Option<Timestamp>,
}

#[derive(nudge_db::FromRow)]
struct Owner {
    subject_id: Uuid,
    kind: String,
    value: String,
}

impl Owner {
    /// Its value, if it is of a kind.
    fn of(&self, kind: AliasKind) -> Option<String> {
        (self.kind == kind.name()).then(|| self.value.clone())
    }
}

#[derive(nudge_db::FromRow)]
struct AcceptedRow {
    seq: i64,
    event_id: Uuid,
    name: String,
    timestamp: Timestamp,
    client_timestamp: Option<Timestamp>,
    received_at: Timestamp,
    properties: String,
    platform: Option<String>,
    app_version: Option<String>,
    source: String,
    #[sqlx(flatten)]
    owner: Owner,
}

impl From<AcceptedRow> for FeedEvent {
    fn from(row: AcceptedRow) -> Self {
        Self {
            key: EventKey::Accepted(row.seq),
            subject_id: row.owner.subject_id,
            anonymous_id: row.owner.of(AliasKind::Anonymous),
            external_id: row.owner.of(AliasKind::External),
            event_id: Some(row.event_id),
            name: Some(row.name),
            timestamp: Some(row.timestamp),
            client_timestamp: row.client_timestamp,
            received_at: row.received_at,
            properties: row.properties,
            platform: row.platform,
            app_version: row.app_version,
            source: row.source,
            errors: None,
        }
    }
}

#[derive(nudge_db::FromRow)]
struct RejectedRow {
    id: Uuid,
    event_id: Option<Uuid>,
    name: Option<String>,
    timestamp: Option<Timestamp>,
    received_at: Timestamp,
    properties: Option<String>,
    platform: Option<String>,
    app_version: Option<String>,
    source: String,
    errors: String,
    #[sqlx(flatten)]
    owner: Owner,
}

impl From<RejectedRow> for FeedEvent {
    fn from(row: RejectedRow) -> Self {
        Self {
            key: EventKey::Rejected(row.id),
            subject_id: row.owner.subject_id,
            anonymous_id: row.owner.of(AliasKind::Anonymous),
            external_id: row.owner.of(AliasKind::External),
            event_id: row.event_id,
            name: row.name,
            timestamp: row.timestamp,
            client_timestamp: None,
            received_at: row.received_at,
            properties: row.properties.unwrap_or_else(|| "{}".to_owned()),
            platform: row.platform,
            app_version: row.app_version,
            source: row.source,
            errors: Some(row.errors),
        }
    }
}

/// The columns of an [`AcceptedRow`], of an event `e` and its alias `a`.
const TAKEN: &str =
    "e.seq, e.event_id, e.name, e.timestamp, e.client_timestamp, e.received_at, e.properties, e.platform, e.app_version,
     e.source, a.subject_id, a.kind, a.value";

/// The columns of a [`RejectedRow`], of a refused event `r` and its alias `a`.
const REFUSED: &str =
    "r.id, r.event_id, r.name, r.timestamp, r.received_at, r.properties, r.platform, r.app_version, r.source, r.errors,
     a.subject_id, a.kind, a.value";

/// After which position, and not before which instant.
type Range = (Option<FeedPosition>, Option<Timestamp>);

/// The first names that an app has events of, so many at the most, each with its newest that was received by an instant.
/// Every name takes two looks into the index, however many events it has.
pub async fn names(
    tx: &mut Tx,
    app_id: Uuid,
    to: Option<Timestamp>,
    most: usize,
) -> Result<Vec<Name>> {
    tx.sql(
        "WITH RECURSIVE known(name, number) AS (
            SELECT (SELECT min(e.name) FROM events e WHERE coalesce(e.app_id, e.app_id) = $1), 1
            UNION ALL
            SELECT (SELECT min(e.name) FROM events e WHERE coalesce(e.app_id, e.app_id) = $1 AND e.name > known.name),
                   known.number + 1
            FROM known WHERE known.name IS NOT NULL AND known.number < $3)
         SELECT known.name, (SELECT max(e.received_at) FROM events e
                         WHERE coalesce(e.app_id, e.app_id) = $1 AND e.name = known.name AND e.received_at <= $2) AS newest
         FROM known WHERE known.name IS NOT NULL",
    )
    .bind(app_id)
    .bind(to.unwrap_or(Timestamp(i64::MAX)))
    .bind(count(most))
    .fetch_all()
    .await
}

/// Before which event, by its receipt and number, those begin that belong to the feed after a position.
fn end_of(filter: &Filter, after: Option<FeedPosition>) -> (Timestamp, i64) {
    let after = after.map(|after| match after.event {
        EventKey::Accepted(seq) => (after.at, seq),
        EventKey::Rejected(_) => (after.at, i64::MIN),
    });
    let to = filter.to.map(|to| (to, i64::MIN));
    let end = after.into_iter().chain(to).min();
    end.unwrap_or((Timestamp(i64::MAX), i64::MAX))
}

/// The event that is so many behind a position, whatever it is called; none: there are fewer.
pub async fn events_behind(
    tx: &mut Tx,
    app_id: Uuid,
    filter: &Filter,
    after: Option<FeedPosition>,
    number: usize,
) -> Result<Option<FeedPosition>> {
    let (end, end_seq) = end_of(filter, after);
    let found: Option<(Timestamp, i64)> = tx
        .sql(
            "SELECT e.received_at, e.seq FROM events e
             WHERE coalesce(e.app_id, e.app_id, e.app_id) = $1 AND (e.received_at, e.seq) < ($2, $3)
               AND e.received_at >= $4
             ORDER BY e.received_at DESC, e.seq DESC LIMIT 1 OFFSET $5",
        )
        .bind(app_id)
        .bind(end)
        .bind(end_seq)
        .bind(filter.from.unwrap_or(Timestamp(i64::MIN)))
        .bind(count(number.saturating_sub(1)))
        .fetch_optional()
        .await?;
    Ok(found.map(|(at, seq)| FeedPosition {
        at,
        event: EventKey::Accepted(seq),
    }))
}

/// Events after a position and up to another one, newest first by receipt, but for those that the server noted by itself; of
/// nobody who is being deleted.
pub async fn by_receipt(
    tx: &mut Tx,
    app_id: Uuid,
    filter: &Filter,
    (after, up_to): (Option<FeedPosition>, Option<FeedPosition>),
    limit: usize,
) -> Result<Vec<FeedEvent>> {
    let (end, end_seq) = end_of(filter, after);
    let first = up_to.map(|position| match position.event {
        EventKey::Accepted(seq) => (position.at, seq),
        EventKey::Rejected(_) => (position.at, i64::MIN),
    });
    let from = filter.from.unwrap_or(Timestamp(i64::MIN));
    let (first, first_seq) = first.unwrap_or((from, i64::MIN));
    let mut statement = tx
        .sql("SELECT ")
        .push(TAKEN)
        .push(
            " FROM events e CROSS JOIN aliases a
             WHERE a.number = e.alias_number AND coalesce(e.app_id, e.app_id, e.app_id) = $1
               AND (e.received_at, e.seq) < ($2, $3) AND (e.received_at, e.seq) >= ($4, $5) AND e.alias_number NOT IN ",
        )
        .push(hidden::ALIASES)
        .bind(app_id)
        .bind(end)
        .bind(end_seq)
        .bind(first)
        .bind(first_seq)
        .push(" AND e.name NOT IN ")
        .push_list(OWN_NAMES);
    if let Some(name) = &filter.exclude_name {
        statement = statement.push(" AND e.name <> ").push_bind(name.clone());
    }
    let rows: Vec<AcceptedRow> = statement
        .push(" ORDER BY e.received_at DESC, e.seq DESC LIMIT ")
        .push_bind(count(limit))
        .fetch_all()
        .await?;
    Ok(rows.into_iter().map(FeedEvent::from).collect())
}

/// Events of a name, newest first by receipt; of nobody who is being deleted.
pub async fn named(
    tx: &mut Tx,
    app_id: Uuid,
    name: &str,
    filter: &Filter,
    (after, from): Range,
    limit: usize,
) -> Result<Vec<FeedEvent>> {
    let (end, end_seq) = end_of(filter, after);
    let rows: Vec<AcceptedRow> = tx
        .sql("SELECT ")
        .push(TAKEN)
        .push(
            " FROM events e CROSS JOIN aliases a
             WHERE a.number = e.alias_number AND coalesce(e.app_id, e.app_id) = $1 AND e.name = $2
               AND (e.received_at, e.seq) < ($3, $4) AND e.received_at >= $5 AND e.alias_number NOT IN ",
        )
        .push(hidden::ALIASES)
        .push(" ORDER BY e.received_at DESC, e.seq DESC LIMIT $6")
        .bind(app_id)
        .bind(name.to_owned())
        .bind(end)
        .bind(end_seq)
        .bind(from.unwrap_or(Timestamp(i64::MIN)))
        .bind(count(limit))
        .fetch_all()
        .await?;
    Ok(rows.into_iter().map(FeedEvent::from).collect())
}

/// Refused events, newest first; of nobody who is being deleted.
pub async fn rejected(
    tx: &mut Tx,
    app_id: Uuid,
    filter: &Filter,
    (after, from): Range,
    limit: usize,
) -> Result<Vec<FeedEvent>> {
    let after = after.map(|after| match after.event {
        EventKey::Accepted(_) => (after.at, Uuid::max()),
        EventKey::Rejected(id) => (after.at, id),
    });
    let to = filter.to.map(|to| (to, Uuid::nil()));
    let end = after.into_iter().chain(to).min();
    let (end, end_id) = end.unwrap_or((Timestamp(i64::MAX), Uuid::max()));
    let statement = tx
        .sql("SELECT ")
        .push(REFUSED)
        .push(
            " FROM rejected_events r CROSS JOIN aliases a
             WHERE a.number = r.alias_number AND r.app_id = $1 AND (r.received_at, r.id) < ($2, $3)
               AND r.received_at >= $4",
        )
        .bind(app_id)
        .bind(end)
        .bind(end_id)
        .bind(from.unwrap_or(Timestamp(i64::MIN)));
    let rows: Vec<RejectedRow> = refused_of_names(statement, filter)
        .push(" ORDER BY r.received_at DESC, r.id DESC LIMIT ")
        .push_bind(count(limit))
        .fetch_all()
        .await?;
    Ok(rows.into_iter().map(FeedEvent::from).collect())
}

/// Goes on with refused events `r`: as far as a filter says their names, of nobody who is being deleted.
fn refused_of_names<'t>(statement: Statement<'t>, filter: &Filter) -> Statement<'t> {
    let mut statement = statement
        .push(" AND r.alias_number NOT IN ")
        .push(hidden::ALIASES);
    if let Some(name) = &filter.name {
        statement = statement.push(" AND r.name = ").push_bind(name.clone());
    }
    if let Some(name) = &filter.exclude_name {
        statement = statement
            .push(" AND (r.name IS NULL OR r.name <> ")
            .push_bind(name.clone())
            .push(")");
    }
    statement
}

/// The ids of an app's refused events since an instant, with the instants of their receipt, newest first.
pub async fn refused_since(
    tx: &mut Tx,
    app_id: Uuid,
    filter: &Filter,
    from: Timestamp,
    most: i64,
) -> Result<Vec<(Uuid, Timestamp)>> {
    let statement = tx
        .sql(
            "SELECT r.id, r.received_at FROM rejected_events r
             WHERE r.app_id = $1 AND r.received_at >= $2",
        )
        .bind(app_id)
        .bind(from);
    refused_of_names(statement, filter)
        .push(" ORDER BY r.received_at DESC, r.id DESC LIMIT ")
        .push_bind(most)
        .fetch_all()
        .await
}

/// How many events of an app were refused since an instant and before one of them.
pub async fn count_refused(
    tx: &mut Tx,
    app_id: Uuid,
    filter: &Filter,
    from: Timestamp,
    (end_id, end): (Uuid, Timestamp),
) -> Result<usize> {
    let statement = tx
        .sql(
            "SELECT count(*) FROM rejected_events r
             WHERE r.app_id = $1 AND r.received_at >= $2 AND (r.received_at, r.id) < ($3, $4)",
        )
        .bind(app_id)
        .bind(from)
        .bind(end)
        .bind(end_id);
    let count: i64 = refused_of_names(statement, filter).fetch_scalar().await?;
    Ok(usize::try_from(count).unwrap_or_default())
}

/// Refused events by their ids, in no order.
pub async fn refused(tx: &mut Tx, app_id: Uuid, ids: &[Uuid]) -> Result<Vec<FeedEvent>> {
    let mut found = Vec::with_capacity(ids.len());
    for chunk in ids.chunks(Rows::MOST) {
        let rows: Vec<RejectedRow> = tx
            .with_rows("v(id)", Rows::new().uuids(chunk.iter().copied()))
            .push(" SELECT ")
            .push(REFUSED)
            .push(
                " FROM v JOIN rejected_events r ON r.id = v.id JOIN aliases a ON a.number = r.alias_number
                  WHERE r.app_id = ",
            )
            .push_bind(app_id)
            .fetch_all()
            .await?;
        found.extend(rows.into_iter().map(FeedEvent::from));
    }
    Ok(found)
}

/// The newest event's number, of whichever app; 0 if there is none.
pub async fn newest_seq(tx: &mut Tx) -> Result<i64> {
    let newest: Option<i64> = tx
        .sql("SELECT seq FROM events ORDER BY seq DESC LIMIT 1")
        .fetch_value()
        .await?;
    Ok(newest.unwrap_or_default())
}

/// Which events of an app a stream may not have sent yet.
#[derive(Clone, Copy, Debug)]
pub struct Unsent<'a> {
    /// The app.
    pub app_id: Uuid,
    /// As far as it says their names.
    pub filter: &'a Filter,
    /// Only those with greater numbers.
    pub floor: i64,
    /// Requests whose events were sent, or were there before.
    pub settled: &'a [i64],
}

/// The names of what the server notes by itself, which nobody is shown.
const OWN_NAMES: [&str; 2] = [PROPERTY_CHANGED, SCHEDULED];

// The statements divide numbers of events by it.
const _: () = assert!(SEQ_BLOCK == 512);

/// The numbers of unsent events, with the instants of their receipt, newest first.
pub async fn unsent_seqs(
    tx: &mut Tx,
    unsent: Unsent<'_>,
    most: i64,
) -> Result<Vec<(i64, Timestamp)>> {
    let statement = tx.sql("SELECT e.seq, e.received_at");
    of_unsent(statement, unsent)
        .push(" ORDER BY e.seq DESC LIMIT ")
        .push_bind(most)
        .fetch_all()
        .await
}

/// How many unsent events have numbers below one.
pub async fn count_unsent(tx: &mut Tx, unsent: Unsent<'_>, end: i64) -> Result<usize> {
    let statement = tx.sql("SELECT count(*)");
    let count: i64 = of_unsent(statement, unsent)
        .push(" AND e.seq < ")
        .push_bind(end)
        .fetch_scalar()
        .await?;
    Ok(usize::try_from(count).unwrap_or_default())
}

/// The requests of unsent events with numbers below one, in no order.
pub async fn unsent_requests(tx: &mut Tx, unsent: Unsent<'_>, end: i64) -> Result<Vec<i64>> {
    let statement = tx.sql("SELECT DISTINCT e.seq / 512 AS request");
    of_unsent(statement, unsent)
        .push(" AND e.seq < ")
        .push_bind(end)
        .fetch_values()
        .await
}

/// Goes on with unsent events `e`.
fn of_unsent<'t>(statement: Statement<'t>, unsent: Unsent<'_>) -> Statement<'t> {
    let mut statement = statement
        .push(" FROM events e WHERE e.seq > $2 AND e.app_id = $1 AND e.alias_number NOT IN ")
        .push(hidden::ALIASES)
        .bind(unsent.app_id)
        .bind(unsent.floor)
        .push(" AND e.name NOT IN ")
        .push_list(OWN_NAMES);
    if !unsent.settled.is_empty() {
        statement = statement
            .push(" AND e.seq / 512 NOT IN ")
            .push_list(unsent.settled.iter().copied());
    }
    if let Some(name) = &unsent.filter.name {
        statement = statement.push(" AND e.name = ").push_bind(name.clone());
    }
    if let Some(name) = &unsent.filter.exclude_name {
        statement = statement.push(" AND e.name <> ").push_bind(name.clone());
    }
    statement
}

/// Events by their numbers, in that order, but for those that the server noted by itself.
pub async fn at(tx: &mut Tx, app_id: Uuid, seqs: &[i64]) -> Result<Vec<FeedEvent>> {
    let mut found = Vec::with_capacity(seqs.len());
    for chunk in seqs.chunks(Rows::MOST) {
        let rows: Vec<AcceptedRow> = tx
            .with_rows("v(seq)", Rows::new().integers(chunk.iter().copied()))
            .push(" SELECT ")
            .push(TAKEN)
            .push(
                " FROM v JOIN events e ON e.seq = v.seq JOIN aliases a ON a.number = e.alias_number
                  WHERE a.kind <> 'system' AND e.app_id = ",
            )
            .push_bind(app_id)
            .push(" ORDER BY e.seq")
            .fetch_all()
            .await?;
        found.extend(rows.into_iter().map(FeedEvent::from));
    }
    Ok(found)
}

fn count(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}
