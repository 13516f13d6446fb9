//! Versions and components in the database.

use nudge_db::{Error, Result, Timestamp, Tx};
use nudge_platform::id;
use serde::Deserialize;
use uuid::Uuid;

use super::super::rollout::Release;
use crate::check::Check;

/// What the audit log calls an upload; its detail has the component's `digest`.
pub const UPLOADED: &str = "plugin.uploaded";

#[derive(nudge_db::FromRow)]
struct VersionRow {
    version: String,
    digest: String,
    size_bytes: i64,
    description: String,
    config_schema: String,
    imports: String,
    checks: String,
    uploaded_by: String,
    uploaded_at: Timestamp,
}

/// A version of a plugin, as it is stored.
#[derive(Clone, Debug)]
pub struct Version {
    /// The version and its digest.
    pub release: Release,
    /// The component's size.
    pub size_bytes: i64,
    /// What it says of itself.
    pub description: String,
    /// A JSON Schema of its configuration, or an empty text.
    pub config_schema: String,
    /// The interfaces that it imports.
    pub imports: Vec<String>,
    /// What was checked when it was uploaded.
    pub checks: Vec<Check>,
    /// Who uploaded it.
    pub uploaded_by: String,
    /// When.
    pub uploaded_at: Timestamp,
}

impl VersionRow {
    fn read(self) -> Result<Version> {
        let corrupt = |column| move |cause| Error::corrupt("plugin_versions", column, cause);
        Ok(Version {
            release: Release {
                version: self.version,
                digest: self.digest,
            },
            size_bytes: self.size_bytes,
            description: self.description,
            config_schema: self.config_schema,
            imports: serde_json::from_str(&self.imports).map_err(corrupt("imports"))?,
            checks: serde_json::from_str(&self.checks).map_err(corrupt("checks"))?,
            uploaded_by: self.uploaded_by,
            uploaded_at: self.uploaded_at,
        })
    }
}

/// How many versions a plugin has.
pub async fn count_versions(tx: &mut Tx, app_id: Uuid, name: &str) -> Result<usize> {
    let count: i64 = tx
        .sql("SELECT count(*) AS count FROM plugin_versions WHERE app_id = $1 AND name = $2")
        .bind(app_id)
        .bind(name.to_owned())
        .fetch_scalar()
        .await?;
    Ok(usize::try_from(count).unwrap_or(usize::MAX))
}

/// Keeps a component, and locks it until the transaction ends, so that nobody removes it meanwhile.
pub async fn insert_component(
    tx: &mut Tx,
    digest: &str,
    bytes: Vec<u8>,
    now: Timestamp,
) -> Result<()> {
    if lock_component(tx, digest).await? {
        return Ok(());
    }
    let added = tx
        .sql(
            "INSERT INTO plugin_components (digest, bytes, created_at) VALUES ($1, $2, $3)
             ON CONFLICT (digest) DO NOTHING",
        )
        .bind(digest.to_owned())
        .bind(bytes)
        .bind(now)
        .execute()
        .await?;
    if added == 1 || lock_component(tx, digest).await? {
        return Ok(());
    }
    // Somebody else added it and somebody else removed it again, all within this transaction.
    Err(Error::unavailable(std::io::Error::other(
        "the component was removed",
    )))
}

/// Locks a component until the transaction ends; answers whether it is there.
async fn lock_component(tx: &mut Tx, digest: &str) -> Result<bool> {
    let for_update = tx.dialect().for_update();
    let row: Option<String> = tx
        .sql("SELECT digest FROM plugin_components WHERE digest = ")
        .push_bind(digest.to_owned())
        .push(for_update)
        .fetch_value()
        .await?;
    Ok(row.is_some_and(|row| row == digest))
}

/// A component.
pub async fn component(tx: &mut Tx, digest: &str) -> Result<Option<Vec<u8>>> {
    tx.sql("SELECT bytes FROM plugin_components WHERE digest = $1")
        .bind(digest.to_owned())
        .fetch_value()
        .await
}

/// Adds a version.
pub async fn insert_version(
    tx: &mut Tx,
    app_id: Uuid,
    name: &str,
    version: &Version,
) -> Result<()> {
    let corrupt = |column| move |cause| Error::corrupt("plugin_versions", column, cause);
    tx.sql(
        "INSERT INTO plugin_versions (app_id, name, version, digest, size_bytes, description, config_schema,
            imports, checks, uploaded_by, uploaded_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
    )
    .bind(app_id)
    .bind(name.to_owned())
    .bind(version.release.version.clone())
    .bind(version.release.digest.clone())
    .bind(version.size_bytes)
    .bind(version.description.clone())
    .bind(version.config_schema.clone())
    .bind(serde_json::to_string(&version.imports).map_err(corrupt("imports"))?)
    .bind(serde_json::to_string(&version.checks).map_err(corrupt("checks"))?)
    .bind(version.uploaded_by.clone())
    .bind(version.uploaded_at)
    .execute()
    .await?;
    Ok(())
}

const SELECT_VERSION: &str =
    "SELECT version, digest, size_bytes, description, config_schema, imports, checks,
        uploaded_by, uploaded_at
     FROM plugin_versions";

/// Finds a version. None has a zero character, and a database may refuse to look for one.
pub async fn find_version(
    tx: &mut Tx,
    app_id: Uuid,
    name: &str,
    version: &str,
) -> Result<Option<Version>> {
    if version.contains('\0') {
        return Ok(None);
    }
    let row: Option<VersionRow> = tx
        .sql(SELECT_VERSION)
        .push(" WHERE app_id = ")
        .push_bind(app_id)
        .push(" AND name = ")
        .push_bind(name.to_owned())
        .push(" AND version = ")
        .push_bind(version.to_owned())
        .fetch_optional()
        .await?;
    row.map(VersionRow::read).transpose()
}

/// The version with this component that an app or the server has, and its plugin's name.
pub async fn with_digest(
    tx: &mut Tx,
    app_id: Uuid,
    digest: &str,
) -> Result<Option<(String, Version)>> {
    #[derive(nudge_db::FromRow)]
    struct FoundRow {
        name: String,
        version: String,
    }
    let row: Option<FoundRow> = tx
        .sql("SELECT name, version FROM plugin_versions WHERE app_id = $1 AND digest = $2")
        .bind(app_id)
        .bind(digest.to_owned())
        .fetch_optional()
        .await?;
    let Some(row) = row else {
        return Ok(None);
    };
    let version = find_version(tx, app_id, &row.name, &row.version).await?;
    Ok(version.map(|version| (row.name, version)))
}

/// All versions of a plugin, the latest upload first.
pub async fn versions(tx: &mut Tx, app_id: Uuid, name: &str) -> Result<Vec<Version>> {
    let rows: Vec<VersionRow> = tx
        .sql(SELECT_VERSION)
        .push(" WHERE app_id = ")
        .push_bind(app_id)
        .push(" AND name = ")
        .push_bind(name.to_owned())
        .push(" ORDER BY uploaded_at DESC, version DESC")
        .fetch_all()
        .await?;
    rows.into_iter().map(VersionRow::read).collect()
}

/// Removes a version, and its component where nothing else needs it.
pub async fn delete_version(
    tx: &mut Tx,
    app_id: Uuid,
    name: &str,
    release: &Release,
) -> Result<()> {
    tx.sql("DELETE FROM plugin_versions WHERE app_id = $1 AND name = $2 AND version = $3")
        .bind(app_id)
        .bind(name.to_owned())
        .bind(release.version.clone())
        .execute()
        .await?;
    delete_unused_component(tx, &release.digest).await
}

/// Removes a component that no version has any more.
pub(super) async fn delete_unused_component(tx: &mut Tx, digest: &str) -> Result<()> {
    // Waits for an upload that has the same component in hand: the next statement sees its version.
    if !lock_component(tx, digest).await? {
        return Ok(());
    }
    tx.sql(
        "DELETE FROM plugin_components WHERE digest = $1
         AND NOT EXISTS (SELECT 1 FROM plugin_versions v WHERE v.digest = plugin_components.digest)",
    )
    .bind(digest.to_owned())
    .execute()
    .await?;
    Ok(())
}

/// The digests of all versions in force, of all apps and the server; behind them those that a roll-back would bring back.
pub async fn in_force_or_before(tx: &mut Tx) -> Result<Vec<String>> {
    tx.sql(
        "SELECT v.digest FROM plugins p
             JOIN plugin_versions v ON v.app_id = p.app_id AND v.name = p.name
             WHERE v.version IN (p.active_version, p.candidate_version, p.previous_version)
             GROUP BY v.digest
             ORDER BY min(CASE WHEN v.version = p.previous_version THEN 1 ELSE 0 END), v.digest",
    )
    .fetch_values()
    .await
}

/// The digests of components that were uploaded since an instant, the earliest first. The audit log has them by time.
pub async fn uploaded_since(tx: &mut Tx, since: Timestamp) -> Result<Vec<String>> {
    #[derive(Deserialize)]
    struct Detail {
        digest: String,
    }
    let details: Vec<String> = tx
        .sql("SELECT detail FROM audit_log WHERE id >= $1 AND action = $2 ORDER BY id")
        .bind(id::first_of(since))
        .bind(UPLOADED)
        .fetch_values()
        .await?;
    let read = |detail: String| {
        let detail: Detail = serde_json::from_str(&detail)
            .map_err(|cause| Error::corrupt("audit_log", "detail", cause))?;
        Ok(detail.digest)
    };
    details.into_iter().map(read).collect()
}
