//! Apps and keys in the database.

use nudge_db::{Error, Result, Timestamp, Tx};
use uuid::Uuid;

use super::Settings;
use super::key::{Key, Kind, NewKey};

/// An app as it is stored.
#[derive(Debug, sqlx::FromRow)]
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
}

#[derive(sqlx::FromRow)]
struct KeyRow {
    kind: String,
    hash: Vec<u8>,
    scopes: String,
    expires_at: Option<Timestamp>,
}

#[derive(sqlx::FromRow)]
struct IdRow {
    id: Uuid,
}

#[derive(sqlx::FromRow)]
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
    tx.sql("SELECT id, workspace_id, name, settings, version FROM apps WHERE id = $1")
        .bind(id)
        .fetch_optional()
        .await
}

/// The first app of the database, if there is one.
pub async fn first(tx: &mut Tx) -> Result<Option<AppRow>> {
    tx.sql("SELECT id, workspace_id, name, settings, version FROM apps ORDER BY id LIMIT 1")
        .fetch_optional()
        .await
}

/// Replaces an app's settings.
pub async fn update_settings(
    tx: &mut Tx,
    id: Uuid,
    settings: &Settings,
    now: Timestamp,
) -> Result<()> {
    let settings = serde_json::to_string(settings)
        .map_err(|cause| Error::corrupt("apps", "settings", cause))?;
    tx.sql("UPDATE apps SET settings = $2 WHERE id = $1")
        .bind(id)
        .bind(settings)
        .execute()
        .await?;
    touch(tx, id, now).await
}

/// Notes that the app's snapshot has changed. Every change of what is in it calls this.
pub async fn touch(tx: &mut Tx, id: Uuid, now: Timestamp) -> Result<()> {
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

/// The versions of all apps.
pub async fn versions(tx: &mut Tx) -> Result<Vec<(Uuid, i64)>> {
    let rows: Vec<VersionRow> = tx.sql("SELECT id, version FROM apps").fetch_all().await?;
    Ok(rows.into_iter().map(|row| (row.id, row.version)).collect())
}

/// Adds a key.
#[expect(clippy::too_many_arguments, reason = "one column each")]
pub async fn insert_key(
    tx: &mut Tx,
    id: Uuid,
    app_id: Uuid,
    workspace_id: Uuid,
    key: &NewKey,
    name: &str,
    scopes: &[&str],
    now: Timestamp,
) -> Result<()> {
    tx.sql(
        "INSERT INTO keys (id, app_id, workspace_id, kind, name, hash, scopes, created_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
    )
    .bind(id)
    .bind(app_id)
    .bind(workspace_id)
    .bind(key.kind.name())
    .bind(name.to_owned())
    .bind(key.hash.to_vec())
    .bind(scopes.join(" "))
    .bind(now)
    .execute()
    .await?;
    Ok(())
}

/// The app that a key belongs to.
pub async fn app_of_key(tx: &mut Tx, hash: &[u8; 32]) -> Result<Option<Uuid>> {
    let row: Option<IdRow> = tx
        .sql("SELECT app_id AS id FROM keys WHERE hash = $1 AND revoked_at IS NULL")
        .bind(hash.to_vec())
        .fetch_optional()
        .await?;
    Ok(row.map(|row| row.id))
}

/// The keys of an app that are not revoked.
pub async fn keys(tx: &mut Tx, app_id: Uuid) -> Result<Vec<([u8; 32], Key)>> {
    let rows: Vec<KeyRow> = tx
        .sql("SELECT kind, hash, scopes, expires_at FROM keys WHERE app_id = $1 AND revoked_at IS NULL")
        .bind(app_id)
        .fetch_all()
        .await?;
    rows.into_iter()
        .map(|row| {
            let hash = row
                .hash
                .try_into()
                .map_err(|_| Error::corrupt("keys", "hash", "not 32 bytes"))?;
            let kind =
                Kind::parse(&row.kind).ok_or_else(|| Error::corrupt("keys", "kind", &row.kind))?;
            let scopes = row.scopes.split_whitespace().map(str::to_owned).collect();
            Ok((
                hash,
                Key {
                    kind,
                    scopes,
                    expires_at: row.expires_at,
                },
            ))
        })
        .collect()
}
