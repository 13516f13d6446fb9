//! Whether earlier requests of the same people are left, on a distributed database: people's aliases are in one place, their
//! requests in the shards of their aliases, and no statement compares rows of several shards.

use std::collections::{HashMap, HashSet};

use nudge_db::{Result, Rows, Tx};
use nudge_records::events::store::{RequestKey, request_rows};
use uuid::Uuid;

#[derive(nudge_db::FromRow)]
struct AliasRow {
    asked: i64,
    number: i64,
}

#[derive(nudge_db::FromRow)]
struct LeftRow {
    id: i64,
    alias_number: i64,
}

/// As [`claims::own_requests`](super::claims::own_requests) has it.
pub(super) async fn own_requests(
    tx: &mut Tx,
    requests: &[RequestKey],
    node: Uuid,
) -> Result<HashMap<i64, bool>> {
    let mut own: Vec<RequestKey> = Vec::with_capacity(requests.len());
    for chunk in requests.chunks(Rows::MOST) {
        let rows: Vec<LeftRow> = tx
            .with_rows("v(id, alias_number)", request_rows(chunk))
            .push(
                " SELECT pending.id, pending.alias_number
                  FROM v JOIN pending ON pending.id = v.id AND pending.alias_number = v.alias_number
                  WHERE pending.node = ",
            )
            .push_bind(node)
            .in_shards_of(
                "pending.alias_number",
                chunk.iter().map(|(alias, _)| *alias),
            )
            .fetch_all()
            .await?;
        own.extend(rows.into_iter().map(|row| (row.alias_number, row.id)));
    }
    let waiting = waiting(tx, &own).await?;
    let waits = own.iter().map(|(_, id)| (*id, waiting.contains(id)));
    Ok(waits.collect())
}

/// Those of some requests before which there is another one of the same person, under whichever alias, that is none of them.
pub(super) async fn waiting(tx: &mut Tx, requests: &[RequestKey]) -> Result<HashSet<i64>> {
    let aliases = aliases(tx, requests).await?;
    let all: HashSet<i64> = aliases.values().flatten().copied().collect();
    let mut first: HashMap<i64, i64> = HashMap::with_capacity(all.len());
    let asked: HashSet<i64> = requests.iter().map(|(_, id)| *id).collect();
    for chunk in Vec::from_iter(all).chunks(Rows::MOST) {
        let rows: Vec<LeftRow> = tx
            .sql("SELECT id, alias_number FROM pending WHERE true")
            .in_shards_of("alias_number", chunk.iter().copied())
            .fetch_all()
            .await?;
        for row in rows.iter().filter(|row| !asked.contains(&row.id)) {
            let earliest = first.entry(row.alias_number).or_insert(row.id);
            *earliest = row.id.min(*earliest);
        }
    }
    let waits = |(alias, id): &&RequestKey| {
        let of_person = aliases.get(alias).into_iter().flatten();
        of_person
            .filter_map(|alias| first.get(alias))
            .any(|earlier| earlier < id)
    };
    Ok(requests.iter().filter(waits).map(|(_, id)| *id).collect())
}

/// As [`store::delete_requests`](super::store::delete_requests) has it.
pub(super) async fn delete(tx: &mut Tx, requests: &[RequestKey], node: Uuid) -> Result<bool> {
    if !waiting(tx, requests).await?.is_empty() {
        return Ok(false);
    }
    let mut deleted = 0;
    for chunk in requests.chunks(Rows::MOST) {
        let aliases = || chunk.iter().map(|(alias, _)| *alias);
        // A change of one shard is committed there before anything here is, and what is done here instead of the request could
        // be lost between. Changes of several are prepared first.
        let beside = aliases().next().zip(tx.shards());
        let beside = beside.and_then(|(alias, shards)| shards.neighbour(alias));
        deleted += tx
            .with_rows("v(id, alias_number)", request_rows(chunk))
            .push(
                " DELETE FROM pending WHERE (id, alias_number) IN (SELECT v.id, v.alias_number FROM v)
                  AND node = ",
            )
            .push_bind(node)
            .in_shards_of("alias_number", aliases().chain(beside))
            .execute()
            .await?;
    }
    Ok(deleted == requests.len() as u64)
}

/// All aliases of the people behind those of some requests.
async fn aliases(tx: &mut Tx, requests: &[RequestKey]) -> Result<HashMap<i64, Vec<i64>>> {
    let asked: HashSet<i64> = requests.iter().map(|(alias, _)| *alias).collect();
    let mut found: HashMap<i64, Vec<i64>> = HashMap::with_capacity(asked.len());
    for chunk in Vec::from_iter(asked).chunks(Rows::MOST) {
        let rows: Vec<AliasRow> = tx
            .with_rows("v(number)", Rows::new().integers(chunk.iter().copied()))
            .push(
                " SELECT own.number AS asked, a.number FROM v JOIN aliases own ON own.number = v.number
                  JOIN aliases a ON a.subject_id = own.subject_id",
            )
            .fetch_all()
            .await?;
        for row in rows {
            found.entry(row.asked).or_default().push(row.number);
        }
    }
    Ok(found)
}
