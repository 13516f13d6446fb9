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

/// Which entries a list shows.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// This action.
    pub action: Option<String>,
    /// By this actor.
    pub actor: Option<String>,
    /// Done to this resource.
    pub resource: Option<String>,
    /// At or after.
    pub from: Option<Timestamp>,
    /// Before.
    pub to: Option<Timestamp>,
}

/// An entry as it is stored.
#[derive(Debug, nudge_db::FromRow)]
pub struct EntryRow {
    /// Its id; ids ascend with time.
    pub id: Uuid,
    /// When it was added.
    pub at: Timestamp,
    /// Who did it.
    pub actor: String,
    /// What was done.
    pub action: String,
    /// To what.
    pub resource: String,
    /// What else is known, as JSON.
    pub detail: String,
}

/// Lists entries of an app, newest first, from below an id on.
pub async fn list(
    tx: &mut Tx,
    app_id: Uuid,
    filter: &Filter,
    before: Option<Uuid>,
    limit: i64,
) -> Result<Vec<EntryRow>> {
    let mut statement = tx
        .sql("SELECT id, at, actor, action, resource, detail FROM audit_log WHERE app_id = $1")
        .bind(app_id);
    if let Some(action) = &filter.action {
        statement = statement.push(" AND action = ").push_bind(action.clone());
    }
    if let Some(actor) = &filter.actor {
        statement = statement.push(" AND actor = ").push_bind(actor.clone());
    }
    if let Some(resource) = &filter.resource {
        statement = statement
            .push(" AND resource = ")
            .push_bind(resource.clone());
    }
    if let Some(from) = filter.from {
        statement = statement.push(" AND at >= ").push_bind(from);
    }
    if let Some(to) = filter.to {
        statement = statement.push(" AND at < ").push_bind(to);
    }
    statement.newest_below(before, limit).fetch_all().await
}
