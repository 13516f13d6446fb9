//! What plugins keep of a subject, in the database.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use nudge_db::{Result, Timestamp, Tx};
use serde_json::{Value, json};
use uuid::Uuid;

/// A state or payload that is JSON.
pub fn as_json(bytes: &[u8]) -> Option<Value> {
    serde_json::from_slice(bytes).ok()
}

/// A state or payload for people: JSON as it is, anything else in base64.
pub fn shown(bytes: &[u8]) -> Value {
    as_json(bytes).unwrap_or_else(|| json!({"base64": STANDARD.encode(bytes)}))
}

/// What a campaign's plugin stored of a subject.
#[derive(Debug, nudge_db::FromRow)]
pub struct StateRow {
    /// The campaign.
    pub campaign_id: Uuid,
    /// What it stored.
    pub state: Vec<u8>,
    /// When.
    pub updated_at: Timestamp,
}

/// A timer that a campaign's plugin set for a subject.
#[derive(Debug, nudge_db::FromRow)]
pub struct TimerRow {
    /// The campaign.
    pub campaign_id: Uuid,
    /// The plugin's key for it.
    pub key: String,
    /// When it is due.
    pub due_at: Timestamp,
    /// What the plugin wants back.
    pub payload: Vec<u8>,
}

/// What plugins stored of a subject, by campaign.
pub async fn states(tx: &mut Tx, app_id: Uuid, subject_id: Uuid) -> Result<Vec<StateRow>> {
    tx.sql(
        "SELECT campaign_id, state, updated_at FROM plugin_states
         WHERE app_id = $1 AND subject_id = $2 ORDER BY campaign_id",
    )
    .bind(app_id)
    .bind(subject_id)
    .fetch_all()
    .await
}

/// The timers of a subject, by campaign and time.
pub async fn timers(tx: &mut Tx, app_id: Uuid, subject_id: Uuid) -> Result<Vec<TimerRow>> {
    tx.sql(
        "SELECT campaign_id, key, due_at, payload FROM timers
         WHERE app_id = $1 AND subject_id = $2 ORDER BY campaign_id, due_at, key",
    )
    .bind(app_id)
    .bind(subject_id)
    .fetch_all()
    .await
}

/// Removes everything that plugins keep of a subject; answers how many states and timers that was. What is being
/// decided about the subject meanwhile is decided again, from nothing.
pub async fn erase(tx: &mut Tx, app_id: Uuid, subject_id: Uuid) -> Result<(u64, u64)> {
    // First, so that it waits for effects that are being written, and those to come find the subject changed.
    tx.sql("UPDATE subjects SET version = version + 1 WHERE app_id = $1 AND id = $2")
        .bind(app_id)
        .bind(subject_id)
        .execute()
        .await?;
    let mut removed = [0, 0];
    let texts = [
        "DELETE FROM plugin_states WHERE app_id = $1 AND subject_id = $2",
        "DELETE FROM timers WHERE app_id = $1 AND subject_id = $2",
    ];
    for (removed, text) in removed.iter_mut().zip(texts) {
        *removed = tx.sql(text).bind(app_id).bind(subject_id).execute().await?;
    }
    let [states, timers] = removed;
    Ok((states, timers))
}
