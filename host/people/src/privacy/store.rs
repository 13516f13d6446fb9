//! The suppression list in the database, and the statements that suppress and erase.

use nudge_db::{Result, Timestamp, Tx};
use nudge_platform::tables::{Personal, Store};
use uuid::Uuid;

use super::again::Entry;

/// Aliases that are suppressed together.
const ALIASES: i64 = 200;

/// An alias that is not on the suppression list yet.
#[derive(Debug, nudge_db::FromRow)]
pub(super) struct AliasRow {
    pub number: i64,
    pub kind: String,
    pub value: String,
}

/// Whose deletion an erasing statement is part of.
#[derive(Clone, Copy, Debug)]
#[expect(
    clippy::struct_field_names,
    reason = "they are called as the columns are"
)]
pub(super) struct Deleted {
    pub app_id: Uuid,
    pub subject_id: Uuid,
    pub job_id: Uuid,
}

/// Lets nothing more be stored of a subject. False: that was so already. The version moves, so that whatever
/// the pipeline has in hand of the subject starts over, and finds it suppressed.
pub(super) async fn suppress(tx: &mut Tx, app_id: Uuid, subject_id: Uuid) -> Result<bool> {
    let updated = tx
        .sql(
            "UPDATE subjects SET suppressed = $3, version = version + 1
             WHERE app_id = $1 AND id = $2 AND suppressed <> $3",
        )
        .bind(app_id)
        .bind(subject_id)
        .bind(true)
        .execute()
        .await?;
    Ok(updated == 1)
}

/// Some aliases of a subject, from above a number on.
pub(super) async fn aliases(
    tx: &mut Tx,
    app_id: Uuid,
    subject_id: Uuid,
    after: i64,
) -> Result<Vec<AliasRow>> {
    tx.sql(
        "SELECT number, kind, value FROM aliases
         WHERE app_id = $1 AND subject_id = $2 AND number > $3 ORDER BY number LIMIT $4",
    )
    .bind(app_id)
    .bind(subject_id)
    .bind(after)
    .bind(ALIASES)
    .fetch_all()
    .await
}

/// Puts a name on the list. A name whose deletion was over begins a new time: it belonged to somebody else since.
pub(super) async fn add(
    tx: &mut Tx,
    deleted: Deleted,
    hash: String,
    alias: Option<i64>,
    since: Timestamp,
) -> Result<()> {
    tx.sql(
        "INSERT INTO suppressions (app_id, hash, job_id, alias_number, created_at) VALUES ($1, $2, $3, $4, $5)
         ON CONFLICT (app_id, hash) DO UPDATE
         SET job_id = excluded.job_id, alias_number = COALESCE(excluded.alias_number, suppressions.alias_number),
             created_at = CASE WHEN suppressions.job_id = excluded.job_id THEN suppressions.created_at
                               ELSE excluded.created_at END",
    )
    .bind(deleted.app_id)
    .bind(hash)
    .bind(deleted.job_id)
    .bind(alias)
    .bind(since)
    .execute()
    .await?;
    Ok(())
}

/// Has a name on the list count as deleted since an entry's instant, unless it was deleted later.
pub(super) async fn move_on(tx: &mut Tx, entry: &Entry) -> Result<()> {
    tx.sql("UPDATE suppressions SET created_at = $3 WHERE app_id = $1 AND hash = $2 AND created_at < $3")
        .bind(entry.app_id)
        .bind(entry.hash.clone())
        .bind(entry.created_at)
        .execute()
        .await?;
    Ok(())
}

/// The numbers that owned events of a person.
pub(super) async fn alias_numbers(tx: &mut Tx, deleted: Deleted) -> Result<Vec<i64>> {
    tx.sql(
        "SELECT alias_number AS number FROM suppressions
             WHERE app_id = $1 AND job_id = $2 AND alias_number IS NOT NULL ORDER BY alias_number",
    )
    .bind(deleted.app_id)
    .bind(deleted.job_id)
    .fetch_values()
    .await
}

/// Erases some rows of a person; answers how many.
pub(super) async fn erase(tx: &mut Tx, store: &Store, deleted: Deleted) -> Result<i64> {
    let owner = match store.rows {
        Personal::Alias => deleted.job_id,
        Personal::Where(_) | Personal::Selected(_) => deleted.subject_id,
    };
    let rows = store
        .erase(tx)
        .bind(deleted.app_id)
        .bind(owner)
        .bind(store.step)
        .execute()
        .await?;
    Ok(i64::try_from(rows).unwrap_or(i64::MAX))
}

/// The subjects that became part of one.
pub(super) async fn merged(tx: &mut Tx, app_id: Uuid, subject_id: Uuid) -> Result<Vec<Uuid>> {
    tx.sql("SELECT id FROM merged_subjects WHERE app_id = $1 AND subject_id = $2")
        .bind(app_id)
        .bind(subject_id)
        .fetch_values()
        .await
}

/// A person.
#[derive(Clone, Copy, Debug, nudge_db::FromRow)]
pub(super) struct Owner {
    pub app_id: Uuid,
    pub subject_id: Uuid,
}

/// A name that somebody has in an app.
#[derive(Debug, nudge_db::FromRow)]
pub(super) struct AppAliasRow {
    pub number: i64,
    pub kind: String,
    pub value: String,
    #[sqlx(flatten)]
    pub owner: Owner,
}

/// Somebody with an id of the customer's.
#[derive(Debug, nudge_db::FromRow)]
pub(super) struct UserRow {
    pub external_id: String,
    #[sqlx(flatten)]
    pub owner: Owner,
}

/// Some aliases of all apps, from above a number on.
pub(super) async fn all_aliases(tx: &mut Tx, after: i64, limit: i64) -> Result<Vec<AppAliasRow>> {
    tx.sql(
        "SELECT number, kind, value, app_id, subject_id FROM aliases
         WHERE number > $1 ORDER BY number LIMIT $2",
    )
    .bind(after)
    .bind(limit)
    .fetch_all()
    .await
}

/// Some identified people of all apps, from above an id on.
pub(super) async fn all_users(tx: &mut Tx, after: Uuid, limit: i64) -> Result<Vec<UserRow>> {
    tx.sql(
        "SELECT external_id, app_id, id AS subject_id FROM subjects
         WHERE id > $1 AND external_id IS NOT NULL ORDER BY id LIMIT $2",
    )
    .bind(after)
    .bind(limit)
    .fetch_all()
    .await
}

/// Some entries of the suppression list, from above one on.
pub(super) async fn entries(tx: &mut Tx, after: &(Uuid, String), limit: i64) -> Result<Vec<Entry>> {
    tx.sql(
        "SELECT app_id, hash, job_id, created_at FROM suppressions
         WHERE (app_id, hash) > ($1, $2) ORDER BY app_id, hash LIMIT $3",
    )
    .bind(after.0)
    .bind(after.1.clone())
    .bind(limit)
    .fetch_all()
    .await
}
