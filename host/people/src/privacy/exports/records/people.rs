//! What exports copy of a person beside events and messages: properties, devices, sessions, segments.

use nudge_db::{Result, Timestamp, Tx};
use nudge_platform::clock;
use serde_json::json;
use uuid::Uuid;

use super::{After, Key, PAGE, page, texts, with_texts};

#[derive(nudge_db::FromRow)]
struct PropertyRow {
    key: String,
    value: String,
    source: String,
    updated_at: Timestamp,
}

#[derive(nudge_db::FromRow)]
struct DeviceRow {
    provider: Option<String>,
    environment: Option<String>,
    token_suffix: Option<String>,
    status: Option<String>,
    device_id: String,
    platform: Option<String>,
    app_version: Option<String>,
    sdk_version: Option<String>,
    locale: Option<String>,
    first_seen_at: Timestamp,
    last_seen_at: Timestamp,
}

#[derive(nudge_db::FromRow)]
struct ClientRow {
    client_id: Uuid,
    started_at: Timestamp,
    ended_at: Option<Timestamp>,
}

pub(super) async fn properties(tx: &mut Tx, key: Key, after: &mut After) -> Result<Vec<String>> {
    let rows: Vec<PropertyRow> = tx
        .sql(
            "SELECT key, value, source, updated_at FROM subject_properties
             WHERE app_id = $1 AND subject_id = $2 AND key > $3 ORDER BY key LIMIT $4",
        )
        .bind(key.app_id)
        .bind(key.subject_id)
        .bind(after.text.clone())
        .bind(PAGE)
        .fetch_all()
        .await?;
    if let Some(last) = rows.last() {
        after.text.clone_from(&last.key);
    }
    let record = |row: PropertyRow| {
        let rest = json!({
            "key": row.key, "source": row.source, "updatedAt": clock::to_text(row.updated_at),
        });
        with_texts(&rest, &[("value", &row.value)])
    };
    Ok(rows.into_iter().map(record).collect())
}

pub(super) async fn devices(tx: &mut Tx, key: Key, after: &mut After) -> Result<Vec<String>> {
    let rows: Vec<DeviceRow> = tx
        .sql(
            "SELECT d.device_id, d.platform, d.app_version, d.sdk_version, d.locale, d.first_seen_at, d.last_seen_at,
                    t.provider, t.environment, t.token_suffix, t.status
             FROM devices d LEFT JOIN push_tokens t
                ON t.app_id = d.app_id AND t.device_id = d.device_id AND t.subject_id = d.subject_id
             WHERE d.app_id = $1 AND d.subject_id = $2 AND d.device_id > $3 ORDER BY d.device_id LIMIT $4",
        )
        .bind(key.app_id)
        .bind(key.subject_id)
        .bind(after.text.clone())
        .bind(PAGE)
        .fetch_all()
        .await?;
    if let Some(last) = rows.last() {
        after.text.clone_from(&last.device_id);
    }
    let record = |row: DeviceRow| {
        let push = row.provider.map(|provider| {
            json!({
                "provider": provider, "environment": row.environment, "tokenSuffix": row.token_suffix,
                "status": row.status,
            })
        });
        json!({
            "push": push,
            "deviceId": row.device_id, "platform": row.platform, "appVersion": row.app_version,
            "sdkVersion": row.sdk_version, "locale": row.locale,
            "firstSeenAt": clock::to_text(row.first_seen_at), "lastSeenAt": clock::to_text(row.last_seen_at),
        })
    };
    Ok(texts(rows, record))
}

pub(super) async fn client_sessions(
    tx: &mut Tx,
    key: Key,
    after: &mut After,
) -> Result<Vec<String>> {
    let sql = "SELECT client_id, started_at, ended_at FROM client_sessions
             WHERE app_id = $1 AND subject_id = $2 AND client_id > $3 ORDER BY client_id LIMIT $4";
    let rows = page(tx, key, after, sql, |row: &ClientRow| row.client_id).await?;
    let record = |row: ClientRow| {
        json!({
            "clientId": row.client_id, "startedAt": clock::to_text(row.started_at),
            "endedAt": row.ended_at.map(clock::to_text),
        })
    };
    Ok(texts(rows, record))
}

/// The segments that a person was in when that was last looked at.
pub(super) async fn segments(tx: &mut Tx, key: Key, after: &mut After) -> Result<Vec<String>> {
    #[derive(nudge_db::FromRow)]
    struct SegmentRow {
        id: Uuid,
        name: String,
    }
    let sql = "SELECT s.id, s.name FROM segment_members m JOIN segments s ON s.id = m.segment_id
             WHERE m.app_id = $1 AND m.subject_id = $2 AND s.id > $3 ORDER BY s.id LIMIT $4";
    let rows = page(tx, key, after, sql, |row: &SegmentRow| row.id).await?;
    Ok(texts(
        rows,
        |row| json!({"segmentId": row.id, "name": row.name}),
    ))
}
