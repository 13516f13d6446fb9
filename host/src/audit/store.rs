//! The audit log in the database.

use nudge_db::{Result, Timestamp, Tx};
use uuid::Uuid;

use super::Entry;

/// Adds an entry.
pub(super) async fn insert(tx: &mut Tx, id: Uuid, entry: &Entry<'_>, now: Timestamp) -> Result<()> {
    tx.sql(
        "INSERT INTO audit_log (id, app_id, at, actor, action, resource, detail)
         VALUES ($1, $2, $3, $4, $5, $6, $7)",
    )
    .bind(id)
    .bind(entry.app_id)
    .bind(now)
    .bind(entry.actor.to_owned())
    .bind(entry.action)
    .bind(entry.resource.clone())
    .bind(entry.detail.to_string())
    .execute()
    .await?;
    Ok(())
}
