//! Saved properties and remembered updates in the database.

use std::collections::{BTreeMap, BTreeSet};

use nudge_db::{Error, Result, Rows, Timestamp, Tx};
use serde_json::Value;
use uuid::Uuid;

use crate::search::fold;

/// Remembered updates that one statement removes at the most.
const STEP: i64 = 500;

/// An update that is remembered.
#[derive(Debug, nudge_db::FromRow)]
pub struct Remembered {
    /// Stands for what it says.
    pub digest: Vec<u8>,
    /// The request that it was taken with.
    pub made_by: Option<Uuid>,
}

#[derive(nudge_db::FromRow)]
struct ValueRow {
    key: String,
    value: String,
}

/// Remembers an update that a request makes; answers whether it is the first of its id.
pub async fn remember(
    tx: &mut Tx,
    app_id: Uuid,
    mutation_id: Uuid,
    subject_id: Uuid,
    (digest, made_by): (&[u8; 32], Uuid),
    now: Timestamp,
) -> Result<bool> {
    let inserted = tx
        .sql(
            "INSERT INTO property_mutations (app_id, mutation_id, subject_id, digest, created_at, made_by)
             VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (app_id, mutation_id) DO NOTHING",
        )
        .bind(app_id)
        .bind(mutation_id)
        .bind(subject_id)
        .bind(digest.to_vec())
        .bind(now)
        .bind(made_by)
        .execute()
        .await?;
    Ok(inserted == 1)
}

/// An update that was remembered before.
pub async fn remembered(
    tx: &mut Tx,
    app_id: Uuid,
    mutation_id: Uuid,
) -> Result<Option<Remembered>> {
    tx.sql("SELECT digest, made_by FROM property_mutations WHERE app_id = $1 AND mutation_id = $2")
        .bind(app_id)
        .bind(mutation_id)
        .fetch_optional()
        .await
}

/// Forgets updates of before an instant; answers how many.
pub async fn forget_before(tx: &mut Tx, app_id: Uuid, before: Timestamp) -> Result<u64> {
    tx.sql(
        "DELETE FROM property_mutations WHERE app_id = $1 AND mutation_id IN (
            SELECT mutation_id FROM property_mutations WHERE app_id = $1 AND created_at < $2
            ORDER BY created_at LIMIT $3)",
    )
    .bind(app_id)
    .bind(before)
    .bind(STEP)
    .execute()
    .await
}

/// A person's values of some keys.
pub async fn values(
    tx: &mut Tx,
    app_id: Uuid,
    subject_id: Uuid,
    keys: impl Iterator<Item = &str>,
) -> Result<BTreeMap<String, Value>> {
    let rows: Vec<ValueRow> = tx
        .sql("SELECT key, value FROM subject_properties WHERE app_id = $1 AND subject_id = $2 AND key IN ")
        .bind(app_id)
        .bind(subject_id)
        .push_list(keys.map(str::to_owned))
        .fetch_all()
        .await?;
    rows.into_iter()
        .map(|row| {
            let value = serde_json::from_str(&row.value)
                .map_err(|cause| Error::corrupt("subject_properties", "value", cause))?;
            Ok((row.key, value))
        })
        .collect()
}

/// How many properties a person has.
pub async fn count(tx: &mut Tx, app_id: Uuid, subject_id: Uuid) -> Result<i64> {
    tx.sql("SELECT count(*) AS count FROM subject_properties WHERE app_id = $1 AND subject_id = $2")
        .bind(app_id)
        .bind(subject_id)
        .fetch_scalar()
        .await
}

/// Stores properties. `source` is `sdk` or `api`.
pub async fn set(
    tx: &mut Tx,
    app_id: Uuid,
    subject_id: Uuid,
    set: &BTreeMap<String, Value>,
    source: &'static str,
    now: Timestamp,
) -> Result<()> {
    if set.is_empty() {
        return Ok(());
    }
    let rows = Rows::new()
        .texts(set.keys().cloned())
        .texts(set.values().map(Value::to_string));
    tx.with_rows("v(key, value)", rows)
        .push(" INSERT INTO subject_properties (subject_id, key, app_id, value, source, updated_at) SELECT ")
        .push_bind(subject_id)
        .push(", v.key, ")
        .push_bind(app_id)
        .push(", v.value, ")
        .push_bind(source)
        .push(", ")
        .push_bind(now)
        .push(
            " FROM v WHERE true ON CONFLICT (subject_id, key)
              DO UPDATE SET value = excluded.value, source = excluded.source, updated_at = excluded.updated_at",
        )
        .execute()
        .await?;
    Ok(())
}

/// Removes properties.
pub async fn unset(
    tx: &mut Tx,
    app_id: Uuid,
    subject_id: Uuid,
    keys: &BTreeSet<String>,
) -> Result<()> {
    if keys.is_empty() {
        return Ok(());
    }
    tx.sql("DELETE FROM subject_properties WHERE app_id = $1 AND subject_id = $2 AND key IN ")
        .bind(app_id)
        .bind(subject_id)
        .push_list(keys.iter().cloned())
        .execute()
        .await?;
    Ok(())
}

/// Makes the texts of an update findable, and those that it replaces or removes no longer.
pub async fn index_texts(
    tx: &mut Tx,
    app_id: Uuid,
    subject_id: Uuid,
    set: &BTreeMap<String, Value>,
    unset: &BTreeSet<String>,
) -> Result<()> {
    tx.sql("DELETE FROM property_texts WHERE app_id = $1 AND subject_id = $2 AND key IN ")
        .bind(app_id)
        .bind(subject_id)
        .push_list(set.keys().chain(unset).cloned())
        .execute()
        .await?;
    let texts: Vec<(&String, &str)> = set
        .iter()
        .filter_map(|(key, value)| Some((key, value.as_str()?)))
        .collect();
    if texts.is_empty() {
        return Ok(());
    }
    let rows = Rows::new()
        .texts(texts.iter().map(|(key, _)| (*key).clone()))
        .texts(texts.iter().map(|(_, text)| fold(text)));
    tx.with_rows("v(key, folded)", rows)
        .push(" INSERT INTO property_texts (app_id, subject_id, key, folded) SELECT ")
        .push_bind(app_id)
        .push(", ")
        .push_bind(subject_id)
        .push(", v.key, v.folded FROM v WHERE true")
        .execute()
        .await?;
    Ok(())
}

/// Properties of a person.
pub const MOST: i64 = 1_000;
