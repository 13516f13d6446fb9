//! Keys in the database.

use std::collections::{BTreeSet, HashMap};

use nudge_db::{Error, Result, Rows, Timestamp, Tx};
use uuid::Uuid;

use crate::key::{Key, Kind, NewKey};

/// A key to be added.
#[derive(Clone, Copy, Debug)]
pub struct NewRow<'a> {
    /// Its id.
    pub id: Uuid,
    /// The app.
    pub app_id: Uuid,
    /// The app's workspace.
    pub workspace_id: Uuid,
    /// What people call it.
    pub name: &'a str,
    /// What it allows.
    pub scopes: &'a [&'a str],
    /// When it stops working.
    pub expires_at: Option<Timestamp>,
}

/// A key as people see it.
#[derive(Debug, nudge_db::FromRow)]
pub struct KeyRow {
    /// Its id.
    pub id: Uuid,
    /// What it is for.
    pub kind: String,
    /// What people call it.
    pub name: String,
    /// What it allows, separated by spaces.
    pub scopes: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was last used, to about a minute.
    pub last_used_at: Option<Timestamp>,
    /// When it stops working.
    pub expires_at: Option<Timestamp>,
}

#[derive(nudge_db::FromRow)]
struct SecretRow {
    id: Uuid,
    kind: String,
    hash: Vec<u8>,
    scopes: String,
    expires_at: Option<Timestamp>,
    last_used_at: Option<Timestamp>,
}

#[derive(nudge_db::FromRow)]
struct FoundRow {
    hash: Vec<u8>,
    id: Uuid,
    app_id: Uuid,
    revoked_at: Option<Timestamp>,
}

/// Whose a key is.
#[derive(Clone, Copy, Debug)]
pub struct KeyOwner {
    /// The key.
    pub id: Uuid,
    /// The app.
    pub app_id: Uuid,
    /// Whether it was revoked.
    pub revoked: bool,
}

/// Adds a key.
pub async fn insert(tx: &mut Tx, row: &NewRow<'_>, key: &NewKey, now: Timestamp) -> Result<()> {
    tx.sql(
        "INSERT INTO keys (id, app_id, workspace_id, kind, name, hash, scopes, created_at, expires_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
    )
    .bind(row.id)
    .bind(row.app_id)
    .bind(row.workspace_id)
    .bind(key.kind.name())
    .bind(row.name.to_owned())
    .bind(key.hash.to_vec())
    .bind(row.scopes.join(" "))
    .bind(now)
    .bind(row.expires_at)
    .execute()
    .await?;
    Ok(())
}

/// Whose keys are, revoked or not, by hash; those that are nobody's are left out. At most [`Rows::MOST`].
pub async fn find_by_hashes(
    tx: &mut Tx,
    hashes: impl Iterator<Item = &[u8; 32]>,
) -> Result<HashMap<[u8; 32], KeyOwner>> {
    let hashes: BTreeSet<[u8; 32]> = hashes.copied().collect();
    let rows: Vec<FoundRow> = tx
        .with_rows(
            "v(hash)",
            Rows::new().bytes(hashes.iter().map(|hash| hash.to_vec())),
        )
        .push(" SELECT k.hash, k.id, k.app_id, k.revoked_at FROM v JOIN keys k ON k.hash = v.hash")
        .fetch_all()
        .await?;
    rows.into_iter()
        .map(|row| {
            let hash = row.hash.try_into();
            let hash = hash.map_err(|_| Error::corrupt("keys", "hash", "not 32 bytes"))?;
            let found = KeyOwner {
                id: row.id,
                app_id: row.app_id,
                revoked: row.revoked_at.is_some(),
            };
            Ok((hash, found))
        })
        .collect()
}

/// The keys of an app that are not revoked, by hash.
pub async fn unrevoked(tx: &mut Tx, app_id: Uuid) -> Result<Vec<([u8; 32], Key)>> {
    let rows: Vec<SecretRow> = tx
        .sql(
            "SELECT id, kind, hash, scopes, expires_at, last_used_at FROM keys
             WHERE app_id = $1 AND revoked_at IS NULL",
        )
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
            let key = Key::new(row.id, kind, scopes, row.expires_at, row.last_used_at);
            Ok((hash, key))
        })
        .collect()
}

/// Lists the keys of an app that are not revoked, newest first, from below an id on.
pub async fn list(
    tx: &mut Tx,
    app_id: Uuid,
    before: Option<Uuid>,
    limit: i64,
) -> Result<Vec<KeyRow>> {
    tx.sql(
        "SELECT id, kind, name, scopes, created_at, last_used_at, expires_at FROM keys
         WHERE revoked_at IS NULL AND app_id = $1",
    )
    .bind(app_id)
    .newest_below(before, limit)
    .fetch_all()
    .await
}

/// How many keys of an app work.
pub async fn count_live(tx: &mut Tx, app_id: Uuid, now: Timestamp) -> Result<i64> {
    tx.sql(
        "SELECT count(*) AS count FROM keys
             WHERE app_id = $1 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $2)",
    )
    .bind(app_id)
    .bind(now)
    .fetch_scalar()
    .await
}

/// How many keys of an app are not revoked, expired ones included.
pub async fn count(tx: &mut Tx, app_id: Uuid) -> Result<i64> {
    tx.sql("SELECT count(*) AS count FROM keys WHERE app_id = $1 AND revoked_at IS NULL")
        .bind(app_id)
        .fetch_scalar()
        .await
}

/// Revokes a key; answers whether there was one to revoke.
pub async fn revoke(tx: &mut Tx, app_id: Uuid, id: Uuid, now: Timestamp) -> Result<bool> {
    let revoked = tx
        .sql("UPDATE keys SET revoked_at = $3 WHERE app_id = $1 AND id = $2 AND revoked_at IS NULL")
        .bind(app_id)
        .bind(id)
        .bind(now)
        .execute()
        .await?;
    Ok(revoked == 1)
}

/// Whether an app has a key of this name, revoked or not.
pub async fn has_named(tx: &mut Tx, app_id: Uuid, name: &str) -> Result<bool> {
    let found: i64 = tx
        .sql("SELECT count(*) AS count FROM keys WHERE app_id = $1 AND name = $2")
        .bind(app_id)
        .bind(name.to_owned())
        .fetch_scalar()
        .await?;
    Ok(found > 0)
}

/// Revokes an app's keys of a name but for the newest.
pub async fn revoke_older(
    tx: &mut Tx,
    app_id: Uuid,
    name: &str,
    kept: i64,
    now: Timestamp,
) -> Result<()> {
    tx.sql(
        "UPDATE keys SET revoked_at = $4 WHERE app_id = $1 AND name = $2 AND revoked_at IS NULL AND id NOT IN (
            SELECT id FROM keys WHERE app_id = $1 AND name = $2 AND revoked_at IS NULL ORDER BY id DESC LIMIT $3)",
    )
    .bind(app_id)
    .bind(name.to_owned())
    .bind(kept)
    .bind(now)
    .execute()
    .await?;
    Ok(())
}

/// Notes when keys, given with their apps, were used. Nothing is noted twice in a minute.
pub async fn note_uses(tx: &mut Tx, uses: &[(Uuid, Uuid, Timestamp)]) -> Result<()> {
    for chunk in uses.chunks(Rows::MOST) {
        let rows = Rows::new()
            .uuids(chunk.iter().map(|(_, id, _)| *id))
            .uuids(chunk.iter().map(|(app_id, _, _)| *app_id))
            .timestamps(chunk.iter().map(|(_, _, at)| *at));
        tx.with_rows("v(id, app_id, at)", rows)
            .push(
                " UPDATE keys SET last_used_at = v.at FROM v
                  WHERE keys.app_id = v.app_id AND keys.id = v.id
                    AND (keys.last_used_at IS NULL OR keys.last_used_at <= v.at - 60000000)",
            )
            .execute()
            .await?;
    }
    Ok(())
}
