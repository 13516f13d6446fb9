//! Which process has which row in hand, in the database.

use std::collections::{HashMap, HashSet};

use nudge_db::{Dialect, Result, Rows, Timestamp, Tx};
use nudge_records::events::store::{RequestKey, request_rows};
use nudge_records::{across_shards, scheduled_work};
use uuid::Uuid;

use super::earlier;
use super::work::Claim;

/// Claims that are looked at in one go.
const MOST_CLAIMS: i64 = 20_000;
/// Unclaimed requests that a process looks at to find some that it may claim, the oldest first.
const MOST_LOOKED_AT: i64 = 2_000;

#[derive(nudge_db::FromRow)]
struct OwnRequestRow {
    id: i64,
    /// Whether an earlier one of the person is left.
    waits: bool,
}

/// The condition of a row of `pending` that a request of the same person that came earlier is left, under whichever alias, but for
/// those of `v`. Values in values, not joins: no planner begins with all that waits, or with all aliases.
pub(super) const HAS_EARLIER: &str = "(SELECT a.number FROM aliases a
     WHERE a.subject_id = (SELECT own.subject_id FROM aliases own WHERE own.number = pending.alias_number)
       AND (SELECT earlier.id FROM pending AS earlier
            WHERE earlier.alias_number = a.number AND earlier.id < pending.id
              AND earlier.id NOT IN (SELECT v.id FROM v) LIMIT 1) IS NOT NULL LIMIT 1) IS NOT NULL";

/// Those of some requests that are still this process's, and whether each has to wait: an earlier one of the same person, under whichever
/// alias, that is none of them is still to be processed.
pub(super) async fn own_requests(
    tx: &mut Tx,
    requests: &[RequestKey],
    node: Uuid,
) -> Result<HashMap<i64, bool>> {
    if tx.shards().is_some() {
        return earlier::own_requests(tx, requests, node).await;
    }
    let mut found = HashMap::with_capacity(requests.len());
    for chunk in requests.chunks(Rows::MOST) {
        let rows: Vec<OwnRequestRow> = tx
            .with_rows("v(id, alias_number)", request_rows(chunk))
            .push(" SELECT pending.id, ")
            .push(HAS_EARLIER)
            .push(
                " AS waits FROM v JOIN pending ON pending.id = v.id AND pending.alias_number = v.alias_number
                  WHERE pending.node = ",
            )
            .push_bind(node)
            .fetch_all()
            .await?;
        found.extend(rows.into_iter().map(|row| (row.id, row.waits)));
    }
    Ok(found)
}

/// The rows of a list that are still to be processed by this process. `table` is `timers` or `occasions`.
pub(super) async fn own(
    tx: &mut Tx,
    table: &'static str,
    ids: &[Uuid],
    node: Uuid,
) -> Result<Vec<Uuid>> {
    let mut found = Vec::with_capacity(ids.len());
    for chunk in ids.chunks(Rows::MOST) {
        let rows: Vec<Uuid> = tx
            .with_rows("v(id)", Rows::new().uuids(chunk.iter().copied()))
            .push(" SELECT t.id FROM v JOIN ")
            .push(table)
            .push(" t ON t.id = v.id WHERE t.node = ")
            .push_bind(node)
            .fetch_values()
            .await?;
        found.extend(rows);
    }
    Ok(found)
}

#[derive(nudge_db::FromRow)]
struct PlaceRow {
    id: i64,
    alias_number: i64,
}

/// A request that this process has just claimed.
#[derive(Debug, nudge_db::FromRow)]
pub(super) struct ClaimedRequest {
    pub id: i64,
    pub app_id: Uuid,
    pub alias_number: i64,
    pub device_id: Option<String>,
    pub sdk_version: Option<String>,
    pub session_id: Option<String>,
}

/// A timer that this process has just claimed.
#[derive(Debug, nudge_db::FromRow)]
pub(super) struct ClaimedTimer {
    pub id: Uuid,
    pub app_id: Uuid,
    pub campaign_id: Uuid,
    pub subject_id: Uuid,
    pub key: String,
    pub plugin: Option<String>,
    pub due_at: Timestamp,
    pub payload: Vec<u8>,
    pub event_seq: i64,
}

/// Whether a request or a timer whose turn has come waits that no process has claimed.
pub(super) async fn anything_waits(tx: &mut Tx, now: Timestamp) -> Result<bool> {
    let requests: Option<i64> = tx
        .sql("SELECT id AS number FROM pending WHERE node IS NULL ORDER BY id LIMIT 1")
        .fetch_value()
        .await?;
    if requests.is_some() {
        return Ok(true);
    }
    if tx.shards().is_some() {
        return Ok(!across_shards::due(tx, "timers", now, 1).await?.is_empty());
    }
    let due = tx
        .sql("SELECT event_seq AS number FROM timers WHERE node IS NULL AND due_at <= ")
        .push_bind(now)
        .push(" AND");
    let timers: Option<i64> = scheduled_work::in_turn(due, "timers")
        .push(" ORDER BY due_at LIMIT 1")
        .fetch_value()
        .await?;
    Ok(timers.is_some())
}

/// When the next timer falls due that no process has.
pub(super) async fn next_timer(tx: &mut Tx) -> Result<Option<Timestamp>> {
    tx.sql("SELECT due_at FROM timers WHERE node IS NULL ORDER BY due_at LIMIT 1")
        .fetch_value()
        .await
}

/// Claims the oldest requests that no process has, but for those of people whose first request is another
/// process's: they would only wait here. So what a person has left over comes to one process.
pub(super) async fn claim_requests(
    tx: &mut Tx,
    node: Uuid,
    limit: i64,
) -> Result<Vec<ClaimedRequest>> {
    if tx.dialect() == Dialect::Postgres {
        // Two that claim at the same moment would not see each other's claims, and share an alias between them.
        // A row that all have in common keeps them apart, where an advisory lock is not known to every database
        // that speaks PostgreSQL's protocol.
        tx.sql("SELECT id FROM nodes ORDER BY id LIMIT 1 FOR UPDATE")
            .execute()
            .await?;
    }
    let waiting = "SELECT id, alias_number FROM pending WHERE node IS NULL ORDER BY id LIMIT $1";
    let mut waiting: Vec<PlaceRow> = tx.sql(waiting).bind(MOST_LOOKED_AT).fetch_all().await?;
    leave_out_others(tx, node, &mut waiting).await?;
    waiting.truncate(usize::try_from(limit).unwrap_or_default());
    let mut claimed: Vec<ClaimedRequest> = Vec::with_capacity(waiting.len());
    for chunk in waiting.chunks(Rows::MOST) {
        let ids = Rows::new().integers(chunk.iter().map(|place| place.id));
        let rows: Vec<ClaimedRequest> = tx
            .with_rows("v(id)", ids)
            .push(" UPDATE pending SET node = ")
            .push_bind(node)
            .push(" WHERE node IS NULL AND id IN (SELECT v.id FROM v)")
            .in_shards_of("alias_number", chunk.iter().map(|place| place.alias_number))
            .push(" RETURNING id, app_id, alias_number, device_id, sdk_version, session_id")
            .fetch_all()
            .await?;
        claimed.extend(rows);
    }
    claimed.sort_unstable_by_key(|request| request.id);
    Ok(claimed)
}

/// Leaves out requests of people whose first request is another process's. `waiting` has all unclaimed requests up to its
/// last one, so that a person's first one is there or claimed.
async fn leave_out_others(tx: &mut Tx, node: Uuid, waiting: &mut Vec<PlaceRow>) -> Result<()> {
    let Some(last) = waiting.last().map(|place| place.id) else {
        return Ok(());
    };
    let claimed = "SELECT id, alias_number FROM pending WHERE id < $2 AND ";
    let theirs = tx.sql(claimed).push("node <> $1").bind(node).bind(last);
    let theirs: Vec<PlaceRow> = theirs.fetch_all().await?;
    if theirs.is_empty() {
        return Ok(());
    }
    let own = tx.sql(claimed).push("node = $1").bind(node).bind(last);
    let own: Vec<PlaceRow> = own.fetch_all().await?;
    let all = || waiting.iter().chain(&own).chain(&theirs);
    let aliases: HashSet<i64> = all().map(|place| place.alias_number).collect();
    let people = owners(tx, &Vec::from_iter(aliases)).await?;
    // The first request of each person, and whether it is another process's.
    let mut first: HashMap<Uuid, (i64, bool)> = HashMap::with_capacity(people.len());
    let theirs = theirs.iter().map(|place| (place, true));
    let rest = waiting.iter().chain(&own).map(|place| (place, false));
    for (place, is_theirs) in theirs.chain(rest) {
        if let Some(person) = people.get(&place.alias_number) {
            let found = (place.id, is_theirs);
            let earliest = first.entry(*person).or_insert(found);
            *earliest = (*earliest).min(found);
        }
    }
    waiting.retain(|place| {
        let person = people.get(&place.alias_number);
        let first = person.and_then(|person| first.get(person));
        first.is_none_or(|(_, is_theirs)| !is_theirs)
    });
    Ok(())
}

/// The subjects behind aliases.
async fn owners(tx: &mut Tx, aliases: &[i64]) -> Result<HashMap<i64, Uuid>> {
    let mut found = HashMap::with_capacity(aliases.len());
    for chunk in aliases.chunks(Rows::MOST) {
        let rows: Vec<(i64, Uuid)> = tx
            .with_rows("v(number)", Rows::new().integers(chunk.iter().copied()))
            .push(" SELECT a.number, a.subject_id FROM v JOIN aliases a ON a.number = v.number")
            .fetch_all()
            .await?;
        found.extend(rows);
    }
    Ok(found)
}

/// Gives up requests, for whichever process has those before them.
pub(super) async fn release_requests(
    tx: &mut Tx,
    requests: &[RequestKey],
    node: Uuid,
) -> Result<()> {
    for chunk in requests.chunks(Rows::MOST) {
        tx.with_rows("v(id, alias_number)", request_rows(chunk))
            .push(
                " UPDATE pending SET node = NULL
                  WHERE (id, alias_number) IN (SELECT v.id, v.alias_number FROM v) AND node = ",
            )
            .push_bind(node)
            .in_shards_of("alias_number", chunk.iter().map(|(alias, _)| *alias))
            .execute()
            .await?;
    }
    Ok(())
}

/// Claims timers that are due, that no process has, and whose turn has come.
pub(super) async fn claim_timers(
    tx: &mut Tx,
    node: Uuid,
    now: Timestamp,
    limit: i64,
) -> Result<Vec<ClaimedTimer>> {
    scheduled_work::claim_due(tx, "timers", node, now, limit)
        .await?
        .push(" RETURNING id, app_id, campaign_id, subject_id, key, plugin, due_at, payload, event_seq")
        .fetch_all()
        .await
}

/// Rows that a process has claimed, the oldest first.
#[derive(Clone, Debug)]
pub(super) struct NodeClaims {
    requests: Vec<RequestKey>,
    timers: Vec<Uuid>,
    occasions: Vec<Uuid>,
}

impl NodeClaims {
    /// Leaves out those that are not wanted.
    pub(super) fn retain(&mut self, is_wanted: impl Fn(&Claim) -> bool) {
        let (requests, timers) = (&mut self.requests, &mut self.timers);
        requests.retain(|(_, id)| is_wanted(&Claim::Request(*id)));
        timers.retain(|id| is_wanted(&Claim::Timer(*id)));
        self.occasions.retain(|id| is_wanted(&Claim::Occasion(*id)));
    }

    /// All of them.
    pub(super) fn all(&self) -> impl Iterator<Item = Claim> {
        let requests = self.requests.iter().map(|(_, id)| Claim::Request(*id));
        let timers = self.timers.iter().copied().map(Claim::Timer);
        let occasions = self.occasions.iter().copied().map(Claim::Occasion);
        requests.chain(timers).chain(occasions)
    }
}

/// The rows that a process has claimed.
pub(super) async fn claims(tx: &mut Tx, node: Uuid) -> Result<NodeClaims> {
    let requests: Vec<RequestKey> = tx
        .sql("SELECT alias_number, id FROM pending WHERE node = $1 ORDER BY id LIMIT $2")
        .bind(node)
        .bind(MOST_CLAIMS)
        .fetch_all()
        .await?;
    let timers: Vec<Uuid> = tx
        .sql("SELECT id FROM timers WHERE node = $1 ORDER BY due_at LIMIT $2")
        .bind(node)
        .bind(MOST_CLAIMS)
        .fetch_values()
        .await?;
    let occasions = scheduled_work::claimed_by(tx, node, MOST_CLAIMS).await?;
    Ok(NodeClaims {
        requests,
        timers,
        occasions,
    })
}

/// Gives up claims of a process.
pub(super) async fn release_claims(tx: &mut Tx, node: Uuid, claims: &NodeClaims) -> Result<()> {
    release_requests(tx, &claims.requests, node).await?;
    nudge_platform::claims::release(tx, "timers", &claims.timers, node).await?;
    nudge_platform::claims::release(tx, "occasions", &claims.occasions, node).await
}

/// Whether no other process is noted.
pub(super) async fn is_alone(tx: &mut Tx, node: Uuid) -> Result<bool> {
    let other: Option<Uuid> = tx
        .sql("SELECT id FROM nodes WHERE id <> $1 LIMIT 1")
        .bind(node)
        .fetch_value()
        .await?;
    Ok(other.is_none())
}

/// Notes that a process lives.
pub(super) async fn beat(tx: &mut Tx, node: Uuid, now: Timestamp) -> Result<()> {
    tx.sql(
        "INSERT INTO nodes (id, started_at, heartbeat_at) VALUES ($1, $2, $2)
         ON CONFLICT (id) DO UPDATE SET heartbeat_at = excluded.heartbeat_at",
    )
    .bind(node)
    .bind(now)
    .execute()
    .await?;
    Ok(())
}

/// Changes something, so that a commit follows that waits for the disk.
pub(super) async fn touch(tx: &mut Tx, node: Uuid, now: Timestamp) -> Result<()> {
    // SQLite writes nothing where nothing differs.
    let touched = tx
        .sql("UPDATE nodes SET heartbeat_at = heartbeat_at + 1 WHERE id = $1")
        .bind(node)
        .execute()
        .await?;
    if touched == 0 {
        beat(tx, node, now).await?;
    }
    Ok(())
}

/// The other processes that are noted, with their last signs of life.
pub(super) async fn others(tx: &mut Tx, node: Uuid) -> Result<Vec<(Uuid, Timestamp)>> {
    tx.sql("SELECT id, heartbeat_at FROM nodes WHERE id <> $1")
        .bind(node)
        .fetch_all()
        .await
}

/// Forgets processes that have given no sign of life since these; answers how many.
pub(super) async fn bury(tx: &mut Tx, silent: &[(Uuid, Timestamp)]) -> Result<u64> {
    let mut buried = 0;
    for (node, beat_at) in silent {
        buried += tx
            .sql("DELETE FROM nodes WHERE id = $1 AND heartbeat_at = $2")
            .bind(*node)
            .bind(*beat_at)
            .execute()
            .await?;
    }
    Ok(buried)
}

/// Forgets a process.
pub(super) async fn leave(tx: &mut Tx, node: Uuid) -> Result<()> {
    tx.sql("DELETE FROM nodes WHERE id = $1")
        .bind(node)
        .execute()
        .await?;
    release(tx).await
}

/// Forgets all processes but one: it has the database for itself.
pub(super) async fn leave_all_but(tx: &mut Tx, node: Uuid) -> Result<()> {
    tx.sql("DELETE FROM nodes WHERE id <> $1")
        .bind(node)
        .execute()
        .await?;
    release(tx).await
}

/// Gives up the claims of processes that are not there.
pub(super) async fn release(tx: &mut Tx) -> Result<()> {
    for text in [
        "UPDATE pending SET node = NULL WHERE node IS NOT NULL AND node NOT IN (SELECT id FROM nodes)",
        "UPDATE timers SET node = NULL WHERE node IS NOT NULL AND node NOT IN (SELECT id FROM nodes)",
        "UPDATE occasions SET node = NULL WHERE node IS NOT NULL AND node NOT IN (SELECT id FROM nodes)",
        "UPDATE jobs SET node = NULL WHERE node IS NOT NULL AND node NOT IN (SELECT id FROM nodes)",
        "UPDATE deliveries SET node = NULL WHERE node IS NOT NULL AND node NOT IN (SELECT id FROM nodes)",
        "UPDATE webhook_messages SET node = NULL WHERE node IS NOT NULL AND node NOT IN (SELECT id FROM nodes)",
        "UPDATE rounds SET node = NULL WHERE node IS NOT NULL AND node NOT IN (SELECT id FROM nodes)",
    ] {
        tx.sql(text).execute().await?;
    }
    Ok(())
}
