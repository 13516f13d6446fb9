//! Plugins in the database.

pub mod plugin_state;
mod versions;

use std::collections::{BTreeSet, HashSet};

use nudge_db::{Error, Result, Timestamp, Tx};
use nudge_wasm::Kind;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::catalogue::{Catalogue, Entry, SERVER, Slot};
use super::rollback::Rollback;
use super::rollout::{Candidate, Release, Rollout, Strategy};

pub use versions::{
    UPLOADED, Version, component, count_versions, delete_version, find_version, in_force_or_before,
    insert_component, insert_version, uploaded_since, versions, with_digest,
};

#[derive(nudge_db::FromRow)]
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
    last_rollback: Option<String>,
    revision: i64,
    created_at: Timestamp,
    updated_at: Timestamp,
}

const SELECT: &str = "SELECT p.app_id, p.name, p.kind, p.active_version, a.digest AS active_digest, p.activated_at,
        p.previous_version, b.digest AS previous_digest,
        p.candidate_version, c.digest AS candidate_digest, p.candidate_strategy, p.candidate_percent, p.candidate_since,
        p.last_rollback, p.revision, p.created_at, p.updated_at
     FROM plugins p
     LEFT JOIN plugin_versions a ON a.app_id = p.app_id AND a.name = p.name AND a.version = p.active_version
     LEFT JOIN plugin_versions b ON b.app_id = p.app_id AND b.name = p.name AND b.version = p.previous_version
     LEFT JOIN plugin_versions c ON c.app_id = p.app_id AND c.name = p.name AND c.version = p.candidate_version";

#[derive(nudge_db::FromRow)]
struct SlotRow {
    app_id: Uuid,
    kind: String,
    plugin: String,
}

fn kind(text: &str) -> Result<Kind> {
    text.parse()
        .map_err(|cause| Error::corrupt("plugins", "kind", cause))
}

/// Roll-backs as a plugin's row has them.
#[derive(Serialize, Deserialize)]
struct Rollbacks {
    #[serde(flatten)]
    last: Rollback,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    earlier: Option<Rollback>,
}

impl Row {
    fn read(self) -> Result<Entry> {
        // A version without a row has no component either, which is found out where it would be loaded.
        let release = |version: Option<String>, digest: Option<String>| {
            let digest = digest.unwrap_or_default();
            version.map(|version| Release { version, digest })
        };
        let candidate = match (
            release(self.candidate_version, self.candidate_digest),
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
        let rollbacks = self.last_rollback.as_deref().map(serde_json::from_str);
        let rollbacks: Option<Rollbacks> = rollbacks
            .transpose()
            .map_err(|cause| Error::corrupt("plugins", "last_rollback", cause))?;
        let (last_rollback, earlier_rollback) = match rollbacks {
            Some(Rollbacks { last, earlier }) => (Some(last), earlier),
            None => (None, None),
        };
        Ok(Entry {
            app_id: self.app_id,
            kind: kind(&self.kind)?,
            name: self.name,
            rollout: Rollout {
                active: release(self.active_version, self.active_digest),
                activated_at: self.activated_at,
                previous: release(self.previous_version, self.previous_digest),
                candidate,
            },
            last_rollback,
            earlier_rollback,
            revision: self.revision,
            created_at: self.created_at,
            updated_at: self.updated_at,
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
    let row: Option<String> = tx
        .sql("SELECT name FROM plugins WHERE app_id = ")
        .push_bind(app_id)
        .push(" AND name = ")
        .push_bind(name.to_owned())
        .push(for_update)
        .fetch_value()
        .await?;
    Ok(row.is_some_and(|row| row == name))
}

/// Fails as a lost race where neither an app nor the server has a plugin of each name: one was removed since the names were checked.
/// Call it once the app's version is moved, which a removal does before it looks for the plugin's name.
pub(crate) async fn require(tx: &mut Tx, app_id: Uuid, names: BTreeSet<&str>) -> Result<()> {
    let uploaded: Vec<String> = names.into_iter().map(str::to_owned).collect();
    if uploaded.is_empty() {
        return Ok(());
    }
    let expected = uploaded.len();
    let found: Vec<String> = tx
        .sql("SELECT DISTINCT name FROM plugins WHERE app_id IN ")
        .push_list([app_id, SERVER])
        .push(" AND name IN ")
        .push_list(uploaded)
        .fetch_values()
        .await?;
    if found.len() == expected {
        Ok(())
    } else {
        Err(Error::lost_race())
    }
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
    let count: i64 = tx
        .sql("SELECT count(*) AS count FROM plugins WHERE app_id = $1")
        .bind(app_id)
        .fetch_scalar()
        .await?;
    Ok(usize::try_from(count).unwrap_or(usize::MAX))
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

/// Replaces a plugin's roll-out, if nobody did since it was read.
pub async fn update(tx: &mut Tx, entry: &Entry) -> Result<bool> {
    let Rollout {
        active,
        activated_at,
        previous,
        candidate,
    } = entry.rollout.clone();
    let rollbacks = entry.last_rollback.clone().map(|last| Rollbacks {
        last,
        earlier: entry.earlier_rollback.clone(),
    });
    let last_rollback = rollbacks.and_then(|rollbacks| serde_json::to_string(&rollbacks).ok());
    let version = |release: Option<Release>| release.map(|release| release.version);
    let strategy = candidate.as_ref().map(|candidate| candidate.strategy);
    let since = candidate.as_ref().map(|candidate| candidate.since);
    let changed = tx
        .sql(
            "UPDATE plugins SET active_version = $4, activated_at = $5, previous_version = $6,
                candidate_version = $7, candidate_strategy = $8, candidate_percent = $9, candidate_since = $10,
                revision = revision + 1, updated_at = $11, last_rollback = $12
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
        .bind(last_rollback)
        .execute()
        .await?;
    Ok(changed == 1)
}

/// The name of one of an app's own plugins, if it has any.
pub async fn first_name(tx: &mut Tx, app_id: Uuid) -> Result<Option<String>> {
    tx.sql("SELECT name FROM plugins WHERE app_id = $1 ORDER BY name LIMIT 1")
        .bind(app_id)
        .fetch_value()
        .await
}

/// Removes a plugin with all its versions and the components that nothing else needs.
pub async fn delete(tx: &mut Tx, app_id: Uuid, name: &str) -> Result<()> {
    let digests: Vec<String> = tx
        .sql("SELECT DISTINCT digest FROM plugin_versions WHERE app_id = $1 AND name = $2 ORDER BY digest")
        .bind(app_id)
        .bind(name.to_owned())
        .fetch_values()
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
        versions::delete_unused_component(tx, &row).await?;
    }
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

/// Whose slots a plugin's name is in: of an app, or for one of the server's, of anybody.
pub async fn slots_with(tx: &mut Tx, app_id: Uuid, name: &str) -> Result<Vec<Uuid>> {
    let mut statement = tx
        .sql("SELECT app_id FROM plugin_slots WHERE plugin = $1")
        .bind(name.to_owned());
    if app_id != SERVER {
        statement = statement.push(" AND app_id = ").push_bind(app_id);
    }
    statement.push(" ORDER BY app_id").fetch_values().await
}

/// The apps that run a plugin of their own under a name: there it stands for none of the server's.
pub async fn apps_with_their_own(tx: &mut Tx, name: &str) -> Result<HashSet<Uuid>> {
    let apps = tx
        .sql("SELECT app_id FROM plugins WHERE name = $1 AND app_id <> $2 AND active_version IS NOT NULL")
        .bind(name.to_owned())
        .bind(SERVER)
        .fetch_values()
        .await?;
    Ok(apps.into_iter().collect())
}
