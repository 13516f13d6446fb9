//! Exports in the database.

use nudge_db::{Result, Timestamp, Tx};
use uuid::Uuid;

/// An export.
#[derive(Debug, nudge_db::FromRow)]
pub(super) struct ExportRow {
    pub subject_id: Option<Uuid>,
    pub reference: Option<String>,
    pub size_bytes: Option<i64>,
    pub sha256: Option<String>,
    pub expires_at: Option<Timestamp>,
}

/// Which export of whom.
#[derive(Clone, Copy, Debug)]
#[expect(
    clippy::struct_field_names,
    reason = "they are called as the columns are"
)]
pub(super) struct Key {
    pub app_id: Uuid,
    pub export_id: Uuid,
    pub subject_id: Uuid,
}

/// Adds an export.
pub(super) async fn insert(tx: &mut Tx, key: Key, reference: String) -> Result<()> {
    tx.sql(
        "INSERT INTO privacy_exports (id, app_id, subject_id, reference) VALUES ($1, $2, $3, $4)",
    )
    .bind(key.export_id)
    .bind(key.app_id)
    .bind(key.subject_id)
    .bind(reference)
    .execute()
    .await?;
    Ok(())
}

/// Finds an export.
pub(super) async fn find(tx: &mut Tx, app_id: Uuid, id: Uuid) -> Result<Option<ExportRow>> {
    tx.sql(
        "SELECT subject_id, reference, size_bytes, sha256, expires_at FROM privacy_exports
         WHERE app_id = $1 AND id = $2",
    )
    .bind(app_id)
    .bind(id)
    .fetch_optional()
    .await
}

/// Ends the exports of a person: whoever has a link gets nothing for it, and what is being made is not finished.
pub(super) async fn end(tx: &mut Tx, app_id: Uuid, subject_id: Uuid) -> Result<()> {
    tx.sql(
        "UPDATE privacy_exports SET reference = NULL, expires_at = 0
         WHERE app_id = $1 AND subject_id = $2",
    )
    .bind(app_id)
    .bind(subject_id)
    .execute()
    .await?;
    Ok(())
}

/// Notes how large the archive is so far. False: the person was deleted, or is about to be, and nothing more may be
/// written. The row stays locked, so that a deletion waits for what is written with it, and ends and erases it then.
pub(super) async fn grow(tx: &mut Tx, key: Key, size_bytes: i64) -> Result<bool> {
    let updated = tx
        .sql(
            "UPDATE privacy_exports SET size_bytes = $4
             WHERE app_id = $1 AND id = $2 AND subject_id = $3 AND reference IS NOT NULL",
        )
        .bind(key.app_id)
        .bind(key.export_id)
        .bind(key.subject_id)
        .bind(size_bytes)
        .execute()
        .await?;
    Ok(updated == 1)
}

/// Adds a piece of an archive.
pub(super) async fn insert_chunk(tx: &mut Tx, key: Key, number: i64, bytes: Vec<u8>) -> Result<()> {
    tx.sql("INSERT INTO privacy_export_chunks (export_id, number, app_id, subject_id, bytes) VALUES ($1, $2, $3, $4, $5)")
        .bind(key.export_id)
        .bind(number)
        .bind(key.app_id)
        .bind(key.subject_id)
        .bind(bytes)
        .execute()
        .await?;
    Ok(())
}

/// Notes that an archive is whole.
pub(super) async fn complete(
    tx: &mut Tx,
    key: Key,
    sha256: String,
    expires_at: Timestamp,
) -> Result<()> {
    tx.sql("UPDATE privacy_exports SET sha256 = $3, expires_at = $4 WHERE app_id = $1 AND id = $2")
        .bind(key.app_id)
        .bind(key.export_id)
        .bind(sha256)
        .bind(expires_at)
        .execute()
        .await?;
    Ok(())
}

/// A piece of an archive, unless the export has ended with its person's data.
pub(super) async fn chunk(
    tx: &mut Tx,
    app_id: Uuid,
    export_id: Uuid,
    number: i64,
) -> Result<Option<Vec<u8>>> {
    tx
        .sql(
            "SELECT c.bytes FROM privacy_exports e JOIN privacy_export_chunks c ON c.export_id = e.id AND c.number = $3
             WHERE e.app_id = $1 AND e.id = $2 AND e.reference IS NOT NULL AND c.app_id = $1",
        )
        .bind(app_id)
        .bind(export_id)
        .bind(number)
        .fetch_value()
        .await
}

/// Removes some pieces of an archive; answers how many.
pub(super) async fn remove_chunks(tx: &mut Tx, app_id: Uuid, export_id: Uuid) -> Result<u64> {
    tx.sql(
        "DELETE FROM privacy_export_chunks WHERE (export_id, number) IN (
            SELECT export_id, number FROM privacy_export_chunks WHERE app_id = $1 AND export_id = $2 LIMIT 16)",
    )
    .bind(app_id)
    .bind(export_id)
    .execute()
    .await
}

/// Removes some pieces of archives whose time is over; answers how many.
pub(super) async fn remove_expired(tx: &mut Tx, app_id: Uuid, now: Timestamp) -> Result<u64> {
    tx.sql(
        "DELETE FROM privacy_export_chunks WHERE (export_id, number) IN (
            SELECT c.export_id, c.number FROM privacy_exports e JOIN privacy_export_chunks c ON c.export_id = e.id
            WHERE e.app_id = $1 AND e.expires_at <= $2 LIMIT 16)",
    )
    .bind(app_id)
    .bind(now)
    .execute()
    .await
}
