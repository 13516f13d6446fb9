//! What exports copy of what plugins keep of a person: states and timers.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use nudge_campaigns::runs;
use nudge_db::{Result, Timestamp, Tx};
use nudge_platform::clock;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{After, Key, page, with_texts};

#[derive(nudge_db::FromRow)]
struct StateRow {
    campaign_id: Uuid,
    state: Vec<u8>,
    updated_at: Timestamp,
}

#[derive(nudge_db::FromRow)]
struct TimerRow {
    id: Uuid,
    campaign_id: Uuid,
    key: String,
    due_at: Timestamp,
    payload: Vec<u8>,
}

/// A record with a plugin's bytes in base64 and, where they are JSON, as that.
fn with_bytes(mut record: Value, (name, json_name): (&str, &str), bytes: &[u8]) -> String {
    if let Some(members) = record.as_object_mut() {
        members.insert(name.to_owned(), STANDARD.encode(bytes).into());
    }
    let text = std::str::from_utf8(bytes).ok();
    let text = text.filter(|text| serde_json::from_str::<&RawValue>(text).is_ok());
    let texts = text.map(|text| (json_name, text));
    with_texts(&record, texts.as_slice())
}

/// States, by campaign.
pub(super) async fn states(tx: &mut Tx, key: Key, after: &mut After) -> Result<Vec<String>> {
    let sql = "SELECT campaign_id, state, updated_at FROM plugin_states
             WHERE app_id = $1 AND subject_id = $2 AND campaign_id > $3 ORDER BY campaign_id LIMIT $4";
    let rows = page(tx, key, after, sql, |row: &StateRow| row.campaign_id).await?;
    let record = |row: StateRow| {
        let rest =
            json!({"campaignId": row.campaign_id, "updatedAt": clock::to_text(row.updated_at)});
        with_bytes(rest, ("state", "stateJson"), &row.state)
    };
    Ok(rows.into_iter().map(record).collect())
}

/// Timers. One that is put off has no time.
pub(super) async fn timers(tx: &mut Tx, key: Key, after: &mut After) -> Result<Vec<String>> {
    let sql = "SELECT id, campaign_id, key, due_at, payload FROM timers
             WHERE app_id = $1 AND subject_id = $2 AND id > $3 ORDER BY id LIMIT $4";
    let rows = page(tx, key, after, sql, |row: &TimerRow| row.id).await?;
    let record = |row: TimerRow| {
        let due_at = runs::due(row.due_at).map(clock::to_text);
        let rest = json!({"campaignId": row.campaign_id, "key": row.key, "dueAt": due_at});
        with_bytes(rest, ("payload", "payloadJson"), &row.payload)
    };
    Ok(rows.into_iter().map(record).collect())
}
