//! Plugins in the database.

use nudge_db::{Error, Result, Timestamp, Tx};
use nudge_wasm::Kind;
use uuid::Uuid;

use super::catalogue::{Catalogue, Entry, SERVER, Slot};
use super::rollout::{Candidate, Release, Rollout, Strategy};
use super::views::Check;

#[derive(sqlx::FromRow)]
struct Row {
    app_id: Uuid,
    name: String,
    kind: String,
    active_version: Option<String>,
    active_digest: Option<String>,
    activated_at: Option<Timestamp>,
    previous_version: Option<String>,
    previous_digest: Option<String>,
    candidate_version: Option<String>,
    candidate_digest: Option<String>,
    candidate_strategy: Option<String>,
    candidate_percent: Option<i64>,
    candidate_since: Option<Timestamp>,
    revision: i64,
    created_at: Timestamp,
    updated_at: Timestamp,
}

const SELECT: &str = "SELECT p.app_id, p.name, p.kind, p.active_version, a.digest AS active_digest, p.activated_at,
        p.previous_version, b.digest AS previous_digest,
        p.candidate_version, c.digest AS candidate_digest, p.candidate_strategy, p.candidate_percent, p.candidate_since,
        p.revision, p.created_at, p.updated_at
     FROM plugins p
     LEFT JOIN plugin_versions a ON a.app_id = p.app_id AND a.name = p.name AND a.version = p.active_version
     LEFT JOIN plugin_versions b ON b.app_id = p.app_id AND b.name = p.name AND b.version = p.previous_version
     LEFT JOIN plugin_versions c ON c.app_id = p.app_id AND c.name = p.name AND c.version = p.candidate_version";

#[derive(sqlx::FromRow)]
struct SlotRow {
    app_id: Uuid,
    kind: String,
    plugin: String,
}

#[derive(sqlx::FromRow)]
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

#[derive(sqlx::FromRow)]
struct BytesRow {
    bytes: Vec<u8>,
}

#[derive(sqlx::FromRow)]
struct CountRow {
    count: i64,
}

#[derive(sqlx::FromRow)]
struct DigestRow {
    digest: String,
}

#[derive(sqlx::FromRow)]
struct NameRow {
    name: String,
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

fn kind(text: &str) -> Result<Kind> {
    text.parse()
        .map_err(|cause| Error::corrupt("plugins", "kind", cause))
}

impl Row {
    fn read(self) -> Result<Entry> {
        let release = |version: Option<String>, digest: Option<String>| match (version, digest) {
            (Some(version), Some(digest)) => Ok(Some(Release { version, digest })),
            (None, _) => Ok(None),
            (Some(version), None) => Err(Error::corrupt("plugins", "active_version", version)),
        };
        let candidate = match (
            release(self.candidate_version, self.candidate_digest)?,
            self.candidate_strategy,
            self.candidate_since,
        ) {
            (Some(release), Some(strategy), Some(since)) => Some(Candidate {
                release,
                strategy: Strategy::parse(&strategy, self.candidate_percent)
                    .ok_or_else(|| Error::corrupt("plugins", "candidate_strategy", &strategy))?,
                since,
            }),
            _ => None,
        };
        Ok(Entry {
            app_id: self.app_id,
            kind: kind(&self.kind)?,
            name: self.name,
            rollout: Rollout {
                active: release(self.active_version, self.active_digest)?,
                activated_at: self.activated_at,
                previous: release(self.previous_version, self.previous_digest)?,
                candidate,
            },
            revision: self.revision,
            created_at: self.created_at,
            updated_at: self.updated_at,
        })
    }
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

/// The plugins and slots that an app sees; for [`SERVER`], the server's.
pub async fn catalogue(tx: &mut Tx, app_id: Uuid) -> Result<Catalogue> {
    let rows: Vec<Row> = tx
        .sql(SELECT)
        .push(" WHERE p.app_id IN ")
        .push_list([app_id, SERVER])
        .push(" ORDER BY p.name, p.app_id")
        .fetch_all()
        .await?;
    let slots: Vec<SlotRow> = tx
        .sql("SELECT app_id, kind, plugin FROM plugin_slots WHERE app_id IN ")
        .push_list([app_id, SERVER])
        .fetch_all()
        .await?;
    let slots = slots.into_iter().map(|row| {
        Ok(Slot {
            app_id: row.app_id,
            kind: kind(&row.kind)?,
            plugin: row.plugin,
        })
    });
    Ok(Catalogue {
        entries: rows.into_iter().map(Row::read).collect::<Result<_>>()?,
        slots: slots.collect::<Result<_>>()?,
    })
}

/// Locks a plugin until the transaction ends; answers whether it is there.
pub async fn lock(tx: &mut Tx, app_id: Uuid, name: &str) -> Result<bool> {
    let for_update = tx.dialect().for_update();
    let row: Option<NameRow> = tx
        .sql("SELECT name FROM plugins WHERE app_id = ")
        .push_bind(app_id)
        .push(" AND name = ")
        .push_bind(name.to_owned())
        .push(for_update)
        .fetch_optional()
        .await?;
    Ok(row.is_some_and(|row| row.name == name))
}

/// Finds a plugin.
pub async fn find(tx: &mut Tx, app_id: Uuid, name: &str) -> Result<Option<Entry>> {
    let row: Option<Row> = tx
        .sql(SELECT)
        .push(" WHERE p.app_id = ")
        .push_bind(app_id)
        .push(" AND p.name = ")
        .push_bind(name.to_owned())
        .fetch_optional()
        .await?;
    row.map(Row::read).transpose()
}

/// How many plugins an app or the server has.
pub async fn count(tx: &mut Tx, app_id: Uuid) -> Result<usize> {
    let row: CountRow = tx
        .sql("SELECT count(*) AS count FROM plugins WHERE app_id = $1")
        .bind(app_id)
        .fetch_one()
        .await?;
    Ok(usize::try_from(row.count).unwrap_or(usize::MAX))
}

/// How many versions a plugin has.
pub async fn count_versions(tx: &mut Tx, app_id: Uuid, name: &str) -> Result<usize> {
    let row: CountRow = tx
        .sql("SELECT count(*) AS count FROM plugin_versions WHERE app_id = $1 AND name = $2")
        .bind(app_id)
        .bind(name.to_owned())
        .fetch_one()
        .await?;
    Ok(usize::try_from(row.count).unwrap_or(usize::MAX))
}

/// Adds a plugin without versions in force, unless it is there.
pub async fn insert(
    tx: &mut Tx,
    app_id: Uuid,
    name: &str,
    kind: Kind,
    now: Timestamp,
) -> Result<()> {
    tx.sql(
        "INSERT INTO plugins (app_id, name, kind, revision, created_at, updated_at)
         VALUES ($1, $2, $3, 1, $4, $4) ON CONFLICT (app_id, name) DO NOTHING",
    )
    .bind(app_id)
    .bind(name.to_owned())
    .bind(kind.as_str())
    .bind(now)
    .execute()
    .await?;
    Ok(())
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
    let row: Option<DigestRow> = tx
        .sql("SELECT digest FROM plugin_components WHERE digest = ")
        .push_bind(digest.to_owned())
        .push(for_update)
        .fetch_optional()
        .await?;
    Ok(row.is_some_and(|row| row.digest == digest))
}

/// A component.
pub async fn component(tx: &mut Tx, digest: &str) -> Result<Option<Vec<u8>>> {
    let row: Option<BytesRow> = tx
        .sql("SELECT bytes FROM plugin_components WHERE digest = $1")
        .bind(digest.to_owned())
        .fetch_optional()
        .await?;
    Ok(row.map(|row| row.bytes))
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

/// Finds a version.
pub async fn find_version(
    tx: &mut Tx,
    app_id: Uuid,
    name: &str,
    version: &str,
) -> Result<Option<Version>> {
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
    #[derive(sqlx::FromRow)]
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

/// Replaces a plugin's roll-out, if nobody did since it was read.
pub async fn update(tx: &mut Tx, entry: &Entry) -> Result<bool> {
    let Rollout {
        active,
        activated_at,
        previous,
        candidate,
    } = entry.rollout.clone();
    let version = |release: Option<Release>| release.map(|release| release.version);
    let strategy = candidate.as_ref().map(|candidate| candidate.strategy);
    let since = candidate.as_ref().map(|candidate| candidate.since);
    let changed = tx
        .sql(
            "UPDATE plugins SET active_version = $4, activated_at = $5, previous_version = $6,
                candidate_version = $7, candidate_strategy = $8, candidate_percent = $9, candidate_since = $10,
                revision = revision + 1, updated_at = $11
             WHERE app_id = $1 AND name = $2 AND revision = $3",
        )
        .bind(entry.app_id)
        .bind(entry.name.clone())
        .bind(entry.revision)
        .bind(version(active))
        .bind(activated_at)
        .bind(version(previous))
        .bind(version(candidate.map(|candidate| candidate.release)))
        .bind(strategy.map(Strategy::name))
        .bind(strategy.and_then(Strategy::percent).map(i64::from))
        .bind(since)
        .bind(entry.updated_at)
        .execute()
        .await?;
    Ok(changed == 1)
}

/// Removes a plugin with all its versions and the components that nothing else needs.
pub async fn delete(tx: &mut Tx, app_id: Uuid, name: &str) -> Result<()> {
    let digests: Vec<DigestRow> = tx
        .sql("SELECT DISTINCT digest FROM plugin_versions WHERE app_id = $1 AND name = $2 ORDER BY digest")
        .bind(app_id)
        .bind(name.to_owned())
        .fetch_all()
        .await?;
    for text in [
        "DELETE FROM plugin_versions WHERE app_id = $1 AND name = $2",
        "DELETE FROM plugins WHERE app_id = $1 AND name = $2",
    ] {
        tx.sql(text)
            .bind(app_id)
            .bind(name.to_owned())
            .execute()
            .await?;
    }
    for row in digests {
        delete_unused_component(tx, &row.digest).await?;
    }
    Ok(())
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

async fn delete_unused_component(tx: &mut Tx, digest: &str) -> Result<()> {
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

/// Puts a plugin into a slot.
pub async fn set_slot(tx: &mut Tx, slot: &Slot, now: Timestamp) -> Result<()> {
    tx.sql(
        "INSERT INTO plugin_slots (app_id, kind, plugin, updated_at) VALUES ($1, $2, $3, $4)
         ON CONFLICT (app_id, kind) DO UPDATE SET plugin = excluded.plugin, updated_at = excluded.updated_at",
    )
    .bind(slot.app_id)
    .bind(slot.kind.as_str())
    .bind(slot.plugin.clone())
    .bind(now)
    .execute()
    .await?;
    Ok(())
}

/// Empties a slot.
pub async fn clear_slot(tx: &mut Tx, app_id: Uuid, kind: Kind) -> Result<()> {
    tx.sql("DELETE FROM plugin_slots WHERE app_id = $1 AND kind = $2")
        .bind(app_id)
        .bind(kind.as_str())
        .execute()
        .await?;
    Ok(())
}

/// Whether a plugin is in a slot of an app, or for one of the server's, in any slot at all.
pub async fn in_a_slot(tx: &mut Tx, app_id: Uuid, name: &str) -> Result<bool> {
    let mut statement = tx
        .sql("SELECT count(*) AS count FROM plugin_slots WHERE plugin = $1")
        .bind(name.to_owned());
    if app_id != SERVER {
        statement = statement.push(" AND app_id = ").push_bind(app_id);
    }
    let row: CountRow = statement.fetch_one().await?;
    Ok(row.count > 0)
}
