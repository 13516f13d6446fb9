//! What exports copy of a person's events, also of those that were refused.

use nudge_db::{Result, Timestamp, Tx};
use nudge_platform::clock;
use nudge_records::subjects::store::SUBJECT_OF_APP;
use serde_json::json;
use uuid::Uuid;

use super::{After, AliasRow, Key, PAGE, parsed, with_texts};

#[derive(nudge_db::FromRow)]
struct EventRow {
    event_id: Uuid,
    name: String,
    timestamp: Timestamp,
    client_timestamp: Option<Timestamp>,
    received_at: Timestamp,
    properties: String,
    platform: Option<String>,
    app_version: Option<String>,
    locale: Option<String>,
    timezone: Option<String>,
    source: String,
}

#[derive(nudge_db::FromRow)]
struct LetterRow {
    id: Uuid,
    event_name: String,
    stage: String,
    reason: String,
    event: String,
    client_timestamp: Option<Timestamp>,
    received_at: Timestamp,
    origin: Option<String>,
}

#[derive(nudge_db::FromRow)]
struct RejectedRow {
    id: Uuid,
    event_id: Option<Uuid>,
    name: Option<String>,
    timestamp: Option<Timestamp>,
    received_at: Timestamp,
    properties: Option<String>,
    platform: Option<String>,
    app_version: Option<String>,
    source: String,
    errors: String,
}

/// Some events of an alias, the oldest first; `after` moves to the last of them. Empty: there are no more.
pub(in super::super) async fn events(
    tx: &mut Tx,
    key: Key,
    alias: &AliasRow,
    after: &mut After,
) -> Result<Vec<String>> {
    let rows: Vec<EventRow> = tx
        .sql(
            "SELECT event_id, name, timestamp, client_timestamp, received_at, properties, platform, app_version,
                    locale, timezone, source
             FROM events WHERE app_id = $1 AND alias_number = $2 AND (timestamp, event_id) > ($3, $4)
             ORDER BY timestamp, event_id LIMIT $5",
        )
        .bind(key.app_id)
        .bind(alias.number)
        .bind(after.at.unwrap_or(i64::MIN))
        .bind(after.id)
        .bind(PAGE)
        .fetch_all()
        .await?;
    if let Some(last) = rows.last() {
        (after.at, after.id) = (Some(last.timestamp.0), last.event_id);
    }
    // What the server noted by itself came under no name of the person's.
    let owner = match alias.kind.as_str() {
        "external" => Some("externalId"),
        "anonymous" => Some("anonymousId"),
        _ => None,
    };
    let record = |row: EventRow| {
        let mut rest = json!({
            "eventId": row.event_id, "name": row.name, "timestamp": clock::to_text(row.timestamp),
            "clientTimestamp": row.client_timestamp.map(clock::to_text),
            "receivedAt": clock::to_text(row.received_at), "platform": row.platform, "appVersion": row.app_version, "locale": row.locale,
            "timezone": row.timezone, "source": row.source,
        });
        if let (Some(owner), Some(members)) = (owner, rest.as_object_mut()) {
            members.insert(owner.to_owned(), alias.value.clone().into());
        }
        with_texts(&rest, &[("properties", &row.properties)])
    };
    Ok(rows.into_iter().map(record).collect())
}

pub(super) async fn dead_letters(tx: &mut Tx, key: Key, after: &mut After) -> Result<Vec<String>> {
    let rows: Vec<LetterRow> = tx
        .sql(
            "SELECT d.id, d.event_name, d.stage, d.reason, d.event, d.client_timestamp, d.received_at, d.origin
             FROM aliases a JOIN dead_letters d ON d.alias_number = a.number
             WHERE a.subject_id = ",
        )
        .push(SUBJECT_OF_APP)
        .push(" AND d.id > $3 ORDER BY d.id LIMIT $4")
        .bind(key.app_id)
        .bind(key.subject_id)
        .bind(after.id)
        .bind(PAGE)
        .fetch_all()
        .await?;
    after.id = rows.last().map_or(after.id, |row| row.id);
    let record = |row: LetterRow| {
        let rest = json!({
            "id": row.id, "eventName": row.event_name, "stage": row.stage, "reason": row.reason,
            "clientTimestamp": row.client_timestamp.map(clock::to_text),
            "receivedAt": clock::to_text(row.received_at), "origin": row.origin.as_deref().map(parsed),
        });
        with_texts(&rest, &[("event", &row.event)])
    };
    Ok(rows.into_iter().map(record).collect())
}

pub(super) async fn rejected_events(
    tx: &mut Tx,
    key: Key,
    after: &mut After,
) -> Result<Vec<String>> {
    let rows: Vec<RejectedRow> = tx
        .sql(
            "SELECT r.id, r.event_id, r.name, r.timestamp, r.received_at, r.properties, r.platform, r.app_version,
                    r.source, r.errors
             FROM aliases a JOIN rejected_events r ON r.alias_number = a.number
             WHERE a.subject_id = ",
        )
        .push(SUBJECT_OF_APP)
        .push(" AND r.id > $3 ORDER BY r.id LIMIT $4")
        .bind(key.app_id)
        .bind(key.subject_id)
        .bind(after.id)
        .bind(PAGE)
        .fetch_all()
        .await?;
    after.id = rows.last().map_or(after.id, |row| row.id);
    let record = |row: RejectedRow| {
        let rest = json!({
            "eventId": row.event_id, "name": row.name, "timestamp": row.timestamp.map(clock::to_text),
            "receivedAt": clock::to_text(row.received_at), "platform": row.platform,
            "appVersion": row.app_version, "source": row.source, "errors": parsed(&row.errors),
        });
        let properties = row.properties.as_deref().unwrap_or("{}");
        with_texts(&rest, &[("properties", properties)])
    };
    Ok(rows.into_iter().map(record).collect())
}
