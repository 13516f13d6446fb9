//! Counts in the database.

use std::collections::HashMap;

use nudge_db::{Result, Rows, Timestamp, Tx};
use uuid::Uuid;

use super::{DefinitionKey, Tally};

/// Rows that one statement removes at the most.
const STEP: i64 = 500;

/// A count of an app.
#[derive(Debug, nudge_db::FromRow)]
pub struct CountRow {
    /// The beginning of the hour.
    pub begins_at: Timestamp,
    /// The kind of things counted.
    pub kind: String,
    /// The count.
    pub count: i64,
}

#[derive(nudge_db::FromRow)]
struct TallyRow {
    definition_id: Uuid,
    seen: i64,
    violations: i64,
}

/// Adds counts of apps: the app, the begin of the hour, what was counted, how many.
pub(super) async fn add(tx: &mut Tx, counts: &[(Uuid, i64, String, i64)]) -> Result<()> {
    for chunk in counts.chunks(Rows::MOST) {
        let rows = Rows::new()
            .uuids(chunk.iter().map(|row| row.0))
            .integers(chunk.iter().map(|row| row.1))
            .texts(chunk.iter().map(|row| row.2.clone()))
            .integers(chunk.iter().map(|row| row.3));
        tx.with_rows("v(app_id, begins_at, kind, count)", rows)
            .push(
                " INSERT INTO app_counts (app_id, begins_at, kind, count)
                  SELECT v.app_id, v.begins_at, v.kind, v.count FROM v WHERE true
                  ON CONFLICT (app_id, begins_at, kind) DO UPDATE SET count = app_counts.count + excluded.count",
            )
            .execute()
            .await?;
    }
    Ok(())
}

/// Adds counts of definitions.
pub(super) async fn add_definitions(tx: &mut Tx, counts: &[(DefinitionKey, Tally)]) -> Result<()> {
    for chunk in counts.chunks(Rows::MOST) {
        let rows = Rows::new()
            .uuids(chunk.iter().map(|(key, _)| key.0))
            .uuids(chunk.iter().map(|(key, _)| key.1))
            .integers(chunk.iter().map(|(key, _)| key.2))
            .integers(chunk.iter().map(|(_, tally)| tally.seen))
            .integers(chunk.iter().map(|(_, tally)| tally.violations));
        tx.with_rows("v(app_id, definition_id, begins_at, seen, violations)", rows)
            .push(
                " INSERT INTO definition_counts (app_id, definition_id, begins_at, seen, violations)
                  SELECT v.app_id, v.definition_id, v.begins_at, v.seen, v.violations FROM v WHERE true
                  ON CONFLICT (app_id, definition_id, begins_at) DO UPDATE SET
                    seen = definition_counts.seen + excluded.seen,
                    violations = definition_counts.violations + excluded.violations",
            )
            .execute()
            .await?;
    }
    Ok(())
}

/// The counts of an app in spans that begin at or after `from` and before `to`.
pub async fn of_app(
    tx: &mut Tx,
    app_id: Uuid,
    from: Timestamp,
    to: Timestamp,
) -> Result<Vec<CountRow>> {
    tx.sql(
        "SELECT begins_at, kind, count FROM app_counts
         WHERE app_id = $1 AND begins_at >= $2 AND begins_at < $3 ORDER BY begins_at, kind",
    )
    .bind(app_id)
    .bind(from)
    .bind(to)
    .fetch_all()
    .await
}

/// How the events of definitions fared in spans that begin after an instant.
pub async fn of_definitions(
    tx: &mut Tx,
    app_id: Uuid,
    definitions: &[Uuid],
    after: Timestamp,
) -> Result<HashMap<Uuid, Tally>> {
    let mut found = HashMap::new();
    for chunk in definitions.chunks(Rows::MOST) {
        let rows = Rows::new()
            .uuids(chunk.iter().copied())
            .uuids(chunk.iter().map(|_| app_id));
        let rows: Vec<TallyRow> = tx
            .with_rows("v(id, app_id)", rows)
            .push(
                " SELECT c.definition_id, CAST(sum(c.seen) AS BIGINT) AS seen,
                         CAST(sum(c.violations) AS BIGINT) AS violations
                  FROM v JOIN definition_counts c ON c.app_id = v.app_id AND c.definition_id = v.id
                  WHERE c.begins_at > ",
            )
            .push_bind(after)
            .push(" GROUP BY c.definition_id")
            .fetch_all()
            .await?;
        found.extend(rows.into_iter().map(|row| {
            let tally = Tally {
                seen: row.seen,
                violations: row.violations,
            };
            (row.definition_id, tally)
        }));
    }
    Ok(found)
}

/// Removes counts of definitions of spans that began before an instant; answers how many.
pub async fn forget_definitions(tx: &mut Tx, app_id: Uuid, before: Timestamp) -> Result<u64> {
    tx.sql(
        "DELETE FROM definition_counts WHERE (app_id, definition_id, begins_at) IN (
            SELECT app_id, definition_id, begins_at FROM definition_counts
            WHERE app_id = $1 AND begins_at < $2 LIMIT $3)",
    )
    .bind(app_id)
    .bind(before)
    .bind(STEP)
    .execute()
    .await
}

/// Removes counts of an app of spans that began before an instant; answers how many.
pub async fn forget(tx: &mut Tx, app_id: Uuid, before: Timestamp) -> Result<u64> {
    tx.sql(
        "DELETE FROM app_counts WHERE (app_id, begins_at, kind) IN (
            SELECT app_id, begins_at, kind FROM app_counts WHERE app_id = $1 AND begins_at < $2 LIMIT $3)",
    )
    .bind(app_id)
    .bind(before)
    .bind(STEP)
    .execute()
    .await
}
