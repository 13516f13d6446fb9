//! Decisions in the database.

use nudge_db::{Error, Result, Rows, Timestamp, Tx};
use nudge_platform::hidden;
use uuid::Uuid;

use super::{Config, NewDecision};

/// A decision as it is stored.
#[derive(Debug, nudge_db::FromRow)]
pub struct DecisionRow {
    /// Its id, which says when it was made.
    pub id: Uuid,
    /// The encoded [`Record`](super::Record).
    pub record: Vec<u8>,
}

#[derive(nudge_db::FromRow)]
struct ConfigRow {
    digest: Vec<u8>,
    config: String,
    properties: String,
}

/// Adds decisions and says whose they are.
pub(super) async fn insert(tx: &mut Tx, app_id: Uuid, decisions: &[NewDecision]) -> Result<()> {
    for chunk in decisions.chunks(Rows::MOST) {
        let rows = Rows::new()
            .uuids(chunk.iter().map(|decision| decision.id))
            .bytes(chunk.iter().map(|decision| decision.record.clone()));
        tx.change_rows("v(id, record)", rows)
            .push(" INSERT INTO decisions (app_id, id, record) SELECT ")
            .push_bind(app_id)
            .push(", v.id, v.record FROM v WHERE true")
            .change(None)
            .await?;
    }
    let subjects: Vec<(Uuid, Uuid)> = decisions.iter().flat_map(pairs).collect();
    for chunk in subjects.chunks(Rows::MOST) {
        let rows = Rows::new()
            .uuids(chunk.iter().map(|pair| pair.0))
            .uuids(chunk.iter().map(|pair| pair.1));
        tx.change_rows("v(decision_id, subject_id)", rows)
            .push(" INSERT INTO decision_subjects (app_id, decision_id, subject_id) SELECT ")
            .push_bind(app_id)
            .push(", v.decision_id, v.subject_id FROM v WHERE true")
            .change(None)
            .await?;
    }
    Ok(())
}

fn pairs(decision: &NewDecision) -> impl Iterator<Item = (Uuid, Uuid)> {
    let subjects = decision.subjects.iter();
    subjects.map(|subject| (decision.id, *subject))
}

/// Notes that configurations are in use; adds those that are not there.
pub(super) async fn use_configs(
    tx: &mut Tx,
    app_id: Uuid,
    configs: &[&Config],
    now: Timestamp,
) -> Result<()> {
    for config in configs {
        let properties = serde_json::to_string(&config.properties)
            .map_err(|cause| Error::corrupt("decision_configs", "properties", cause))?;
        tx.sql(
            "INSERT INTO decision_configs (app_id, digest, config, properties, used_at) VALUES ($1, $2, $3, $4, $5)
             ON CONFLICT (app_id, digest) DO UPDATE SET used_at = excluded.used_at",
        )
        .bind(app_id)
        .bind(config.digest.to_vec())
        .bind(config.text.to_string())
        .bind(properties)
        .bind(now)
        .execute()
        .await?;
    }
    Ok(())
}

/// A configuration that decisions were made under.
pub async fn config(tx: &mut Tx, app_id: Uuid, digest: [u8; 32]) -> Result<Option<Config>> {
    let row: Option<ConfigRow> = tx
        .sql("SELECT digest, config, properties FROM decision_configs WHERE app_id = $1 AND digest = $2")
        .bind(app_id)
        .bind(digest.to_vec())
        .fetch_optional()
        .await?;
    let corrupt = |column| move |cause| Error::corrupt("decision_configs", column, cause);
    row.map(|row| {
        let properties: Vec<String> =
            serde_json::from_str(&row.properties).map_err(corrupt("properties"))?;
        let digest = row
            .digest
            .try_into()
            .map_err(|_| Error::corrupt("decision_configs", "digest", "not 32 bytes"))?;
        Ok(Config {
            digest,
            text: row.config.into(),
            properties: properties.into(),
        })
    })
    .transpose()
}

/// Finds a decision, unless it holds data of somebody who is being deleted.
pub async fn find(tx: &mut Tx, app_id: Uuid, id: Uuid) -> Result<Option<DecisionRow>> {
    tx.sql("SELECT id, record FROM decisions WHERE app_id = $1 AND id = $2 AND id NOT IN ")
        .push(hidden::DECISIONS)
        .bind(app_id)
        .bind(id)
        .fetch_optional()
        .await
}

/// Decisions that were made before one, the latest first, of all subjects or of one; none that holds data of somebody who
/// is being deleted.
pub async fn list(
    tx: &mut Tx,
    app_id: Uuid,
    subject_id: Option<Uuid>,
    before: Uuid,
    limit: i64,
) -> Result<Vec<DecisionRow>> {
    let statement = match subject_id {
        None => tx
            .sql("SELECT id, record FROM decisions WHERE app_id = $1 AND id < $2 AND id NOT IN ")
            .push(hidden::DECISIONS)
            .push(" ORDER BY id DESC LIMIT $3")
            .bind(app_id)
            .bind(before)
            .bind(limit),
        Some(subject_id) => tx
            .sql(
                "SELECT d.id, d.record FROM (
                    SELECT DISTINCT s.decision_id FROM decision_subjects s
                    WHERE (s.app_id = $1) IS TRUE AND s.decision_id < $3 AND s.subject_id IN ",
            )
            .push(PERSON)
            .push(" AND s.decision_id NOT IN ")
            .push(hidden::DECISIONS)
            .push(
                " ORDER BY s.decision_id DESC LIMIT $4) own
                 CROSS JOIN decisions d WHERE d.app_id = $1 AND d.id = own.decision_id ORDER BY d.id DESC",
            )
            .bind(app_id)
            .bind(subject_id)
            .bind(before)
            .bind(limit),
    };
    statement.fetch_all().await
}

/// A subject, the second parameter, with those that became part of it: what was decided before names them.
const PERSON: &str = "(SELECT id FROM subjects WHERE id = $2 UNION ALL SELECT id FROM merged_subjects WHERE subject_id = $2)";

/// Decisions that hold data of a subject and were made at an id or after it, the first of them first.
pub async fn of_subject(
    tx: &mut Tx,
    app_id: Uuid,
    subject_id: Uuid,
    from: Uuid,
    limit: i64,
) -> Result<Vec<DecisionRow>> {
    tx.sql(
        "SELECT d.id, d.record FROM (
            SELECT DISTINCT s.decision_id FROM decision_subjects s
            WHERE (s.app_id = $1) IS TRUE AND s.decision_id >= $3 AND s.subject_id IN ",
    )
    .push(PERSON)
    .push(
        " ORDER BY s.decision_id LIMIT $4) own
         CROSS JOIN decisions d WHERE d.app_id = $1 AND d.id = own.decision_id ORDER BY d.id",
    )
    .bind(app_id)
    .bind(subject_id)
    .bind(from)
    .bind(limit)
    .fetch_all()
    .await
}

/// Removes the oldest decisions that were made before an id; answers whether there may be more.
pub(super) async fn delete_before(
    tx: &mut Tx,
    app_id: Uuid,
    before: Uuid,
    most: i64,
) -> Result<bool> {
    let rows: Vec<Uuid> = tx
        .sql("SELECT id FROM decisions WHERE app_id = $1 AND id < $2 ORDER BY id LIMIT $3")
        .bind(app_id)
        .bind(before)
        .bind(most)
        .fetch_values()
        .await?;
    let Some(last) = rows.last() else {
        return Ok(false);
    };
    for text in [
        "DELETE FROM decision_subjects WHERE app_id = $1 AND decision_id <= $2",
        "DELETE FROM decisions WHERE app_id = $1 AND id <= $2",
    ] {
        tx.sql(text).bind(app_id).bind(*last).execute().await?;
    }
    Ok(i64::try_from(rows.len()).is_ok_and(|found| found >= most))
}

/// Removes configurations that were last used before a time.
pub(super) async fn delete_unused_configs(
    tx: &mut Tx,
    app_id: Uuid,
    before: Timestamp,
) -> Result<()> {
    tx.sql("DELETE FROM decision_configs WHERE app_id = $1 AND used_at < $2")
        .bind(app_id)
        .bind(before)
        .execute()
        .await?;
    Ok(())
}
