//! Whose turn it is among timers and occasions, on a distributed database: they are in one place, the requests before them in the
//! shards of their aliases, and no statement compares rows of several shards. See [`scheduled_work`](super::scheduled_work).

use std::collections::{HashMap, HashSet};

use nudge_db::{Result, Rows, Timestamp, Tx};
use uuid::Uuid;

use crate::events::SEQ_BLOCK;
use crate::events::store::RequestKey;

/// Rows that are looked at, the longest due first.
const MOST_LOOKED_AT: i64 = 500;

#[derive(nudge_db::FromRow)]
struct DueRow {
    id: Uuid,
    subject_id: Uuid,
    due_at: Timestamp,
}

/// The ids of rows that are due, that no process has, and whose turn has come. `table` is `timers` or `occasions`.
pub async fn due(
    tx: &mut Tx,
    table: &'static str,
    now: Timestamp,
    limit: i64,
) -> Result<Vec<Uuid>> {
    let rows: Vec<DueRow> = tx
        .sql("SELECT id, subject_id, due_at FROM ")
        .push(table)
        .push(" WHERE node IS NULL AND due_at <= ")
        .push_bind(now)
        .push(" ORDER BY due_at LIMIT ")
        .push_bind(MOST_LOOKED_AT)
        .fetch_all()
        .await?;
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let people: HashSet<Uuid> = rows.iter().map(|row| row.subject_id).collect();
    let arrivals = arrivals(tx, people).await?;
    let in_turn = rows.iter().filter(|row| {
        let arrived = arrivals.get(&row.subject_id);
        arrived.is_none_or(|arrived| *arrived > row.due_at)
    });
    let limit = usize::try_from(limit).unwrap_or_default();
    Ok(in_turn.map(|row| row.id).take(limit).collect())
}

/// When the oldest request arrived that is still to be processed of each of some people.
async fn arrivals(tx: &mut Tx, people: HashSet<Uuid>) -> Result<HashMap<Uuid, Timestamp>> {
    let aliases: Vec<(i64, Uuid)> = tx
        .with_rows("v(subject_id)", Rows::new().uuids(people))
        .push(" SELECT a.number, a.subject_id FROM v JOIN aliases a ON a.subject_id = v.subject_id")
        .fetch_all()
        .await?;
    let owners: HashMap<i64, Uuid> = aliases.into_iter().collect();
    let requests: Vec<(i64, i64)> = tx
        .sql("SELECT alias_number, id FROM pending WHERE true")
        .in_shards_of("alias_number", owners.keys().copied())
        .fetch_all()
        .await?;
    let mut arrivals: HashMap<Uuid, Timestamp> = HashMap::new();
    for chunk in requests.chunks(Rows::MOST) {
        for (alias, received_at) in received(tx, chunk).await? {
            if let Some(owner) = owners.get(&alias) {
                let oldest = arrivals.entry(*owner).or_insert(received_at);
                *oldest = received_at.min(*oldest);
            }
        }
    }
    Ok(arrivals)
}

/// When events of requests were received, by their aliases.
async fn received(tx: &mut Tx, requests: &[RequestKey]) -> Result<Vec<(i64, Timestamp)>> {
    let rows = Rows::new()
        .integers(requests.iter().map(|(_, request)| request * SEQ_BLOCK))
        .integers(requests.iter().map(|(alias, _)| *alias));
    tx.with_rows("v(first, alias_number)", rows)
        .push(
            " SELECT DISTINCT e.alias_number, e.received_at
              FROM v JOIN events e ON e.alias_number = v.alias_number
              WHERE e.seq >= v.first AND e.seq < v.first + ",
        )
        .push_bind(SEQ_BLOCK)
        .in_shards_of("e.alias_number", requests.iter().map(|(alias, _)| *alias))
        .fetch_all()
        .await
}
