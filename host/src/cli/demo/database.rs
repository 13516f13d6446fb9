//! What the demo reads past the API, to hold against what the API says.

use std::collections::HashMap;

use nudge_db::{Result, Tx};
use uuid::Uuid;

/// Which plugin issued each instruction: name and version by the instruction's id.
pub(super) type Decided = HashMap<Uuid, (String, String)>;

#[derive(nudge_db::FromRow)]
struct DecidedRow {
    id: Uuid,
    plugin_name: String,
    plugin_version: String,
}

/// How many committed requests are not evaluated yet.
pub(super) async fn waiting(tx: &mut Tx) -> Result<i64> {
    tx.sql("SELECT count(*) AS waiting FROM pending")
        .fetch_scalar()
        .await
}

/// Every instruction of an app with the plugin that decided.
pub(super) async fn decided(tx: &mut Tx, app_id: Uuid) -> Result<Decided> {
    let rows: Vec<DecidedRow> = tx
        .sql("SELECT id, plugin_name, plugin_version FROM instructions WHERE app_id = $1")
        .bind(app_id)
        .fetch_all()
        .await?;
    Ok(rows
        .into_iter()
        .map(|row| (row.id, (row.plugin_name, row.plugin_version)))
        .collect())
}
