//! What is past its retention, in the database.

use nudge_db::{Result, Timestamp, Tx};
use uuid::Uuid;

/// Rows that one statement removes at the most.
const STEP: i64 = 500;

/// Removes dead letters of an app that are there since before an instant; answers how many. Those that servers of earlier
/// versions made are as old as their events.
pub(super) async fn delete_letters(tx: &mut Tx, app_id: Uuid, before: Timestamp) -> Result<u64> {
    tx.sql(
        "DELETE FROM dead_letters WHERE (app_id = $1) IS TRUE AND id IN (
            SELECT id FROM dead_letters WHERE app_id = $1 AND received_at < $2 AND coalesce(kept_at, received_at) < $2
            ORDER BY coalesce(kept_at, received_at) LIMIT $3)",
    )
    .bind(app_id)
    .bind(before)
    .bind(STEP)
    .execute()
    .await
}

/// Removes notes of an app that dead letters were replayed which were there before an instant; answers how many.
pub(super) async fn forget_replays(tx: &mut Tx, app_id: Uuid, before: Timestamp) -> Result<u64> {
    tx.sql(
        "DELETE FROM replayed_letters WHERE (app_id = $1) IS TRUE AND id IN (
            SELECT id FROM replayed_letters WHERE app_id = $1 AND received_at < $2
            ORDER BY received_at LIMIT $3)",
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
