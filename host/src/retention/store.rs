//! What is past its retention, in the database.

use nudge_db::{Result, Rows, Timestamp, Tx};
use uuid::Uuid;

/// Rows that one statement removes at the most.
const STEP: i64 = 500;
/// Aliases that are looked at together.
const ALIASES: i64 = 200;

/// An alias, as a place in the list of an app's aliases.
#[derive(Clone, Debug, sqlx::FromRow)]
pub(super) struct AliasRow {
    pub(super) number: i64,
    kind: String,
    value: String,
}

/// Removes dead letters of an app that came before an instant; answers how many.
pub(super) async fn delete_letters(tx: &mut Tx, app_id: Uuid, before: Timestamp) -> Result<u64> {
    tx.sql(
        "DELETE FROM dead_letters WHERE app_id = $1 AND id IN (
            SELECT id FROM dead_letters WHERE app_id = $1 AND received_at < $2 ORDER BY id LIMIT $3)",
    )
    .bind(app_id)
    .bind(before)
    .bind(STEP)
    .execute()
    .await
}

/// Removes notes of an app that firings were suppressed, of before an instant; answers how many.
pub(super) async fn delete_suppressed(tx: &mut Tx, app_id: Uuid, before: Timestamp) -> Result<u64> {
    tx.sql(
        "DELETE FROM instructions WHERE app_id = $1 AND id IN (
            SELECT id FROM instructions WHERE app_id = $1 AND suppressed_by IS NOT NULL AND created_at < $2
            ORDER BY created_at LIMIT $3)",
    )
    .bind(app_id)
    .bind(before)
    .bind(STEP)
    .execute()
    .await
}

/// The next aliases of an app.
pub(super) async fn aliases(
    tx: &mut Tx,
    app_id: Uuid,
    after: Option<&AliasRow>,
) -> Result<Vec<AliasRow>> {
    let mut statement = tx
        .sql("SELECT number, kind, value FROM aliases WHERE app_id = $1")
        .bind(app_id);
    if let Some(after) = after {
        statement = statement
            .push(" AND (kind, value) > (")
            .push_bind(after.kind.clone())
            .push(", ")
            .push_bind(after.value.clone())
            .push(")");
    }
    statement
        .push(" ORDER BY kind, value LIMIT ")
        .push_bind(ALIASES)
        .fetch_all()
        .await
}

/// Removes events of aliases that happened before an instant; answers how many. Events that are still to be
/// processed stay, and so do those that a timer will ask about.
pub(super) async fn delete_events(
    tx: &mut Tx,
    app_id: Uuid,
    aliases: &[i64],
    before: Timestamp,
) -> Result<u64> {
    if aliases.is_empty() {
        return Ok(0);
    }
    tx.with_rows("v(number)", Rows::new().integers(aliases.iter().copied()))
        .push(
            " DELETE FROM events WHERE seq IN (
                SELECT e.seq FROM v JOIN aliases a ON a.number = v.number JOIN events e ON e.alias_number = a.number
                WHERE e.app_id = ",
        )
        .push_bind(app_id)
        .push(" AND e.timestamp < ")
        .push_bind(before)
        .push(
            " AND NOT EXISTS (SELECT 1 FROM pending p WHERE p.alias_number = a.number)
              AND NOT EXISTS (SELECT 1 FROM timers t WHERE t.subject_id = a.subject_id AND t.event_seq = e.seq)
              AND NOT EXISTS (SELECT 1 FROM occasions o WHERE o.subject_id = a.subject_id AND o.event_seq = e.seq)
              LIMIT ",
        )
        .push_bind(STEP)
        .push(")")
        .execute()
        .await
}
