//! Apps and keys in the database.

use nudge_db::{Error, Result, Rows, Timestamp, Tx};
use uuid::Uuid;

use crate::settings::Settings;

/// An app as it is stored.
#[derive(Debug, nudge_db::FromRow)]
pub struct AppRow {
    /// Its id.
    pub id: Uuid,
    /// The workspace that it belongs to.
    pub workspace_id: Uuid,
    /// Its name.
    pub name: String,
    /// Its settings, as JSON.
    pub settings: String,
    /// Grows with each change of the snapshot.
    pub version: i64,
    /// Grows with each change of the app itself.
    pub revision: i64,
    /// Grows with each change of the settings.
    pub settings_revision: i64,
    /// When it was made.
    pub created_at: Timestamp,
    /// When something of it changed last.
    pub updated_at: Timestamp,
}

#[derive(nudge_db::FromRow)]
struct SettingsRow {
    id: Uuid,
    version: i64,
    settings: String,
}

#[derive(nudge_db::FromRow)]
struct VersionRow {
    id: Uuid,
    version: i64,
}

/// Adds an app.
pub async fn insert(
    tx: &mut Tx,
    id: Uuid,
    workspace_id: Uuid,
    name: &str,
    settings: &Settings,
    now: Timestamp,
) -> Result<()> {
    let settings = serde_json::to_string(settings)
        .map_err(|cause| Error::corrupt("apps", "settings", cause))?;
    tx.sql(
        "INSERT INTO apps (id, workspace_id, name, settings, version, created_at, updated_at)
         VALUES ($1, $2, $3, $4, 1, $5, $5)",
    )
    .bind(id)
    .bind(workspace_id)
    .bind(name.to_owned())
    .bind(settings)
    .bind(now)
    .execute()
    .await?;
    Ok(())
}

/// Finds an app.
pub async fn find(tx: &mut Tx, id: Uuid) -> Result<Option<AppRow>> {
    tx.sql(
        "SELECT id, workspace_id, name, settings, version, revision, settings_revision, created_at, updated_at
         FROM apps WHERE id = $1",
    )
    .bind(id)
    .fetch_optional()
    .await
}

/// The first app of the database, if there is one.
pub async fn first(tx: &mut Tx) -> Result<Option<AppRow>> {
    tx.sql(
        "SELECT id, workspace_id, name, settings, version, revision, settings_revision, created_at, updated_at
         FROM apps ORDER BY id LIMIT 1",
    )
    .fetch_optional()
    .await
}

/// The id of the first app, by columns that every schema has had.
pub async fn oldest(tx: &mut Tx) -> Result<Option<Uuid>> {
    tx.sql("SELECT id FROM apps ORDER BY id LIMIT 1")
        .fetch_value()
        .await
}

/// Whether there is an app of this id.
pub async fn exists(tx: &mut Tx, id: Uuid) -> Result<bool> {
    let found: i64 = tx
        .sql("SELECT count(*) AS count FROM apps WHERE id = $1")
        .bind(id)
        .fetch_scalar()
        .await?;
    Ok(found > 0)
}

/// Keeps an app from being deleted until the transaction ends; answers whether it is there.
pub async fn hold(tx: &mut Tx, id: Uuid) -> Result<bool> {
    let for_key_share = tx.dialect().for_key_share();
    let found: Option<Uuid> = tx
        .sql("SELECT id FROM apps WHERE id = ")
        .push_bind(id)
        .push(for_key_share)
        .fetch_value()
        .await?;
    Ok(found.is_some())
}

/// The apps of this id or name, two at the most.
pub async fn named(tx: &mut Tx, name: &str) -> Result<Vec<Uuid>> {
    let id = name.parse().unwrap_or(Uuid::nil());
    tx.sql("SELECT id FROM apps WHERE id = $1 OR name = $2 ORDER BY id LIMIT 2")
        .bind(id)
        .bind(name.to_owned())
        .fetch_values()
        .await
}

/// Lists the apps of workspaces, newest first, from below an id on.
pub async fn list(
    tx: &mut Tx,
    workspaces: impl IntoIterator<Item = Uuid>,
    before: Option<Uuid>,
    limit: i64,
) -> Result<Vec<AppRow>> {
    tx.sql(
        "SELECT id, workspace_id, name, settings, version, revision, settings_revision, created_at, updated_at
         FROM apps WHERE workspace_id IN ",
    )
    .push_list(workspaces)
    .newest_below(before, limit)
    .fetch_all()
    .await
}

/// How many apps a workspace has. Nobody else counts them until the transaction ends: two that each make one more would both
/// find room for the last.
pub async fn count(tx: &mut Tx, workspace_id: Uuid) -> Result<i64> {
    // A workspace has no row of its own. The oldest of its apps stands for it.
    let for_update = tx.dialect().for_update();
    let _: Option<Uuid> = tx
        .sql("SELECT id FROM apps WHERE workspace_id = $1 ORDER BY id LIMIT 1")
        .bind(workspace_id)
        .push(for_update)
        .fetch_value()
        .await?;
    tx.sql("SELECT count(*) AS count FROM apps WHERE workspace_id = $1")
        .bind(workspace_id)
        .fetch_scalar()
        .await
}

/// Renames an app that is still of a revision; answers whether it was.
pub async fn rename(
    tx: &mut Tx,
    id: Uuid,
    name: &str,
    revision: i64,
    now: Timestamp,
) -> Result<bool> {
    let renamed = tx
        .sql(
            "UPDATE apps SET name = $3, revision = revision + 1, version = version + 1, updated_at = $4
             WHERE id = $1 AND revision = $2",
        )
        .bind(id)
        .bind(revision)
        .bind(name.to_owned())
        .bind(now)
        .execute()
        .await?;
    Ok(renamed == 1)
}

/// Removes an app itself that still has some revision; what belongs to it is still there. Answers whether it had.
pub async fn delete(tx: &mut Tx, id: Uuid, revision: i64) -> Result<bool> {
    let removed = tx
        .sql("DELETE FROM apps WHERE id = $1 AND revision = $2")
        .bind(id)
        .bind(revision)
        .execute()
        .await?;
    Ok(removed == 1)
}

/// Replaces the settings of an app that still has some revision of them; answers whether it had.
pub async fn replace_settings(
    tx: &mut Tx,
    id: Uuid,
    settings: &Settings,
    revision: i64,
    now: Timestamp,
) -> Result<bool> {
    let settings = serde_json::to_string(settings)
        .map_err(|cause| Error::corrupt("apps", "settings", cause))?;
    let replaced = tx
        .sql(
            "UPDATE apps SET settings = $3, settings_revision = settings_revision + 1, version = version + 1,
                             updated_at = $4
             WHERE id = $1 AND settings_revision = $2",
        )
        .bind(id)
        .bind(revision)
        .bind(settings)
        .bind(now)
        .execute()
        .await?;
    Ok(replaced == 1)
}

/// Settings of apps, with the version of the snapshot that they are of. One app's that can't be read are an
/// error in the log and no reason to leave the others alone.
pub async fn settings(tx: &mut Tx, ids: &[Uuid]) -> Result<Vec<(Uuid, i64, Option<Settings>)>> {
    let mut found = Vec::with_capacity(ids.len());
    for chunk in ids.chunks(Rows::MOST) {
        let rows: Vec<SettingsRow> = tx
            .with_rows("v(id)", Rows::new().uuids(chunk.iter().copied()))
            .push(" SELECT a.id, a.version, a.settings FROM v JOIN apps a ON a.id = v.id")
            .fetch_all()
            .await?;
        for row in rows {
            let settings = serde_json::from_str(&row.settings)
                .inspect_err(|error| {
                    tracing::error!(app.id = %row.id, error = %error, "settings can't be read");
                })
                .ok();
            found.push((row.id, row.version, settings));
        }
    }
    Ok(found)
}

/// Notes that the app's snapshot has changed. Every change of what is in it calls this.
pub async fn bump_version(tx: &mut Tx, id: Uuid, now: Timestamp) -> Result<()> {
    tx.sql("UPDATE apps SET version = version + 1, updated_at = $2 WHERE id = $1")
        .bind(id)
        .bind(now)
        .execute()
        .await?;
    Ok(())
}

/// Notes that the snapshots of all apps have changed.
pub async fn touch_all(tx: &mut Tx, now: Timestamp) -> Result<()> {
    tx.sql("UPDATE apps SET version = version + 1, updated_at = $1")
        .bind(now)
        .execute()
        .await?;
    Ok(())
}

/// The version of an app; none: there is no such app.
pub async fn version(tx: &mut Tx, id: Uuid) -> Result<Option<i64>> {
    tx.sql("SELECT version FROM apps WHERE id = $1")
        .bind(id)
        .fetch_value()
        .await
}

/// The versions of all apps.
pub async fn versions(tx: &mut Tx) -> Result<Vec<(Uuid, i64)>> {
    let rows: Vec<VersionRow> = tx.sql("SELECT id, version FROM apps").fetch_all().await?;
    Ok(rows.into_iter().map(|row| (row.id, row.version)).collect())
}
