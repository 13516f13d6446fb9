//! Identity keys in the database.

use nudge_db::{Error, Result, Timestamp, Tx};
use nudge_platform::public_key::PublicKey;
use uuid::Uuid;

use super::IdentityKey;

#[derive(nudge_db::FromRow)]
struct Row {
    kid: String,
    spki: Vec<u8>,
    created_at: Timestamp,
}

/// Adds a key.
pub async fn insert(tx: &mut Tx, app_id: Uuid, key: &IdentityKey) -> Result<()> {
    tx.sql("INSERT INTO identity_keys (app_id, kid, spki, created_at) VALUES ($1, $2, $3, $4)")
        .bind(app_id)
        .bind(key.kid.clone())
        .bind(key.key.spki().to_vec())
        .bind(key.created_at)
        .execute()
        .await?;
    Ok(())
}

/// The keys of an app, newest first.
pub async fn list(tx: &mut Tx, app_id: Uuid) -> Result<Vec<IdentityKey>> {
    let rows: Vec<Row> = tx
        .sql(
            "SELECT kid, spki, created_at FROM identity_keys WHERE app_id = $1
             ORDER BY created_at DESC, kid",
        )
        .bind(app_id)
        .fetch_all()
        .await?;
    rows.into_iter()
        .map(|row| {
            let key = PublicKey::from_spki(&row.spki)
                .map_err(|cause| Error::corrupt("identity_keys", "spki", cause))?;
            Ok(IdentityKey {
                kid: row.kid,
                key,
                created_at: row.created_at,
            })
        })
        .collect()
}

/// Removes a key; answers whether it was there.
pub async fn delete(tx: &mut Tx, app_id: Uuid, kid: &str) -> Result<bool> {
    let removed = tx
        .sql("DELETE FROM identity_keys WHERE app_id = $1 AND kid = $2")
        .bind(app_id)
        .bind(kid.to_owned())
        .execute()
        .await?;
    Ok(removed == 1)
}
