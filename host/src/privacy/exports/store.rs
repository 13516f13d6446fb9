//! Exports and what they copy, in the database.

use nudge_db::{Result, Timestamp, Tx};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::clock;
use crate::push::deliveries::store::DeliveryRow;

/// Records that are read at once: events are 64 KiB at the most.
const PAGE: i64 = 100;

/// An export.
#[derive(Debug, sqlx::FromRow)]
pub(super) struct ExportRow {
    pub subject_id: Option<Uuid>,
    pub reference: Option<String>,
    pub size_bytes: Option<i64>,
    pub sha256: Option<String>,
    pub expires_at: Option<Timestamp>,
}

#[derive(sqlx::FromRow)]
struct CountRow {
    count: i64,
}

#[derive(sqlx::FromRow)]
struct BytesRow {
    bytes: Vec<u8>,
}

/// Which export of whom.
#[derive(Clone, Copy, Debug)]
#[expect(
    clippy::struct_field_names,
    reason = "they are called as the columns are"
)]
pub(super) struct Key {
    pub app_id: Uuid,
    pub export_id: Uuid,
    pub subject_id: Uuid,
}

/// How many exports of an app have not ended.
pub(super) async fn unfinished(tx: &mut Tx, app_id: Uuid, kind: &'static str) -> Result<i64> {
    let row: CountRow = tx
        .sql("SELECT count(*) AS count FROM jobs WHERE app_id = $1 AND kind = $2 AND completed_at IS NULL")
        .bind(app_id)
        .bind(kind)
        .fetch_one()
        .await?;
    Ok(row.count)
}

/// Adds an export.
pub(super) async fn insert(tx: &mut Tx, key: Key, reference: String) -> Result<()> {
    tx.sql(
        "INSERT INTO privacy_exports (id, app_id, subject_id, reference) VALUES ($1, $2, $3, $4)",
    )
    .bind(key.export_id)
    .bind(key.app_id)
    .bind(key.subject_id)
    .bind(reference)
    .execute()
    .await?;
    Ok(())
}

/// Finds an export.
pub(super) async fn find(tx: &mut Tx, app_id: Uuid, id: Uuid) -> Result<Option<ExportRow>> {
    tx.sql(
        "SELECT subject_id, reference, size_bytes, sha256, expires_at FROM privacy_exports
         WHERE app_id = $1 AND id = $2",
    )
    .bind(app_id)
    .bind(id)
    .fetch_optional()
    .await
}

/// Notes how large the archive is so far. False: the person was deleted, and nothing more may be written. The row
/// stays locked, so that a deletion waits for what is written with it, and erases it then.
pub(super) async fn grow(tx: &mut Tx, key: Key, size_bytes: i64) -> Result<bool> {
    let updated = tx
        .sql("UPDATE privacy_exports SET size_bytes = $4 WHERE app_id = $1 AND id = $2 AND subject_id = $3")
        .bind(key.app_id)
        .bind(key.export_id)
        .bind(key.subject_id)
        .bind(size_bytes)
        .execute()
        .await?;
    Ok(updated == 1)
}

/// Adds a piece of an archive.
pub(super) async fn insert_chunk(tx: &mut Tx, key: Key, number: i64, bytes: Vec<u8>) -> Result<()> {
    tx.sql("INSERT INTO privacy_export_chunks (export_id, number, app_id, subject_id, bytes) VALUES ($1, $2, $3, $4, $5)")
        .bind(key.export_id)
        .bind(number)
        .bind(key.app_id)
        .bind(key.subject_id)
        .bind(bytes)
        .execute()
        .await?;
    Ok(())
}

/// Notes that an archive is whole.
pub(super) async fn complete(
    tx: &mut Tx,
    key: Key,
    sha256: String,
    expires_at: Timestamp,
) -> Result<()> {
    tx.sql("UPDATE privacy_exports SET sha256 = $3, expires_at = $4 WHERE app_id = $1 AND id = $2")
        .bind(key.app_id)
        .bind(key.export_id)
        .bind(sha256)
        .bind(expires_at)
        .execute()
        .await?;
    Ok(())
}

/// A piece of an archive.
pub(super) async fn chunk(
    tx: &mut Tx,
    app_id: Uuid,
    export_id: Uuid,
    number: i64,
) -> Result<Option<Vec<u8>>> {
    let row: Option<BytesRow> = tx
        .sql("SELECT bytes FROM privacy_export_chunks WHERE app_id = $1 AND export_id = $2 AND number = $3")
        .bind(app_id)
        .bind(export_id)
        .bind(number)
        .fetch_optional()
        .await?;
    Ok(row.map(|row| row.bytes))
}

/// Removes some pieces of an archive; answers how many.
pub(super) async fn remove_chunks(tx: &mut Tx, app_id: Uuid, export_id: Uuid) -> Result<u64> {
    tx.sql(
        "DELETE FROM privacy_export_chunks WHERE (export_id, number) IN (
            SELECT export_id, number FROM privacy_export_chunks WHERE app_id = $1 AND export_id = $2 LIMIT 16)",
    )
    .bind(app_id)
    .bind(export_id)
    .execute()
    .await
}

/// Removes some pieces of archives whose time is over; answers how many.
pub(super) async fn remove_expired(tx: &mut Tx, app_id: Uuid, now: Timestamp) -> Result<u64> {
    tx.sql(
        "DELETE FROM privacy_export_chunks WHERE (export_id, number) IN (
            SELECT c.export_id, c.number FROM privacy_exports e JOIN privacy_export_chunks c ON c.export_id = e.id
            WHERE e.app_id = $1 AND e.expires_at <= $2 LIMIT 16)",
    )
    .bind(app_id)
    .bind(now)
    .execute()
    .await
}

/// Where a list goes on. Each list uses what its order is by.
#[derive(Clone, Debug, Default)]
pub(super) struct After {
    pub number: i64,
    pub text: String,
    pub id: Uuid,
    pub at: Option<i64>,
}

/// A list of records of a person.
#[derive(Clone, Copy, Debug)]
pub(super) enum List {
    Aliases,
    Properties,
    ClientSessions,
    Instructions,
    DeadLetters,
    Devices,
    Deliveries,
}

impl List {
    /// All lists, with their names in `profile.json`.
    pub(super) const ALL: &[(&'static str, Self)] = &[
        ("aliases", Self::Aliases),
        ("properties", Self::Properties),
        ("clientSessions", Self::ClientSessions),
        ("instructions", Self::Instructions),
        ("deadLetters", Self::DeadLetters),
    ];
}

/// An alias.
#[derive(Debug, sqlx::FromRow)]
pub(super) struct AliasRow {
    pub number: i64,
    pub kind: String,
    pub value: String,
    created_at: Timestamp,
}

#[derive(sqlx::FromRow)]
struct PropertyRow {
    key: String,
    value: String,
    source: String,
    updated_at: Timestamp,
}

#[derive(sqlx::FromRow)]
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

#[derive(sqlx::FromRow)]
struct ClientRow {
    client_id: Uuid,
    started_at: Timestamp,
    ended_at: Option<Timestamp>,
}

#[derive(sqlx::FromRow)]
struct InstructionRow {
    id: Uuid,
    position: i64,
    kind: String,
    campaign_id: Uuid,
    trigger_event_id: Option<Uuid>,
    trigger_name: Option<String>,
    created_at: Timestamp,
    status: String,
    status_at: Timestamp,
    suppressed_by: Option<String>,
}

#[derive(sqlx::FromRow)]
struct LetterRow {
    id: Uuid,
    event_name: String,
    stage: String,
    reason: String,
    event: String,
    received_at: Timestamp,
}

#[derive(sqlx::FromRow)]
struct ProfileRow {
    external_id: Option<String>,
    analytics_consent: Option<bool>,
    messaging_consent: Option<bool>,
    consent_at: Option<Timestamp>,
    first_seen_at: Timestamp,
    last_seen_at: Timestamp,
    event_count: i64,
    country: Option<String>,
    platform: Option<String>,
    app_version: Option<String>,
    locale: Option<String>,
    timezone: Option<String>,
}

#[derive(sqlx::FromRow)]
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

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::from(text))
}

/// What is known of a person. None: nobody is there any longer.
pub(super) async fn profile(tx: &mut Tx, key: Key) -> Result<Option<Value>> {
    let row: Option<ProfileRow> = tx
        .sql(
            "SELECT external_id, analytics_consent, messaging_consent, consent_at, first_seen_at, last_seen_at,
                    event_count, country, platform, app_version, locale, timezone
             FROM subjects WHERE app_id = $1 AND id = $2",
        )
        .bind(key.app_id)
        .bind(key.subject_id)
        .fetch_optional()
        .await?;
    Ok(row.map(|row| {
        json!({
            "subjectId": key.subject_id,
            "externalId": row.external_id,
            "consent": {
                "analytics": row.analytics_consent,
                "messaging": row.messaging_consent,
                "updatedAt": row.consent_at.map(clock::to_text),
            },
            "firstSeenAt": clock::to_text(row.first_seen_at),
            "lastSeenAt": clock::to_text(row.last_seen_at),
            "eventCount": row.event_count,
            "country": row.country,
            "platform": row.platform,
            "appVersion": row.app_version,
            "locale": row.locale,
            "timezone": row.timezone,
        })
    }))
}

/// The aliases of a person from above a number on.
pub(super) async fn aliases(tx: &mut Tx, key: Key, after: i64) -> Result<Vec<AliasRow>> {
    tx.sql(
        "SELECT number, kind, value, created_at FROM aliases
         WHERE app_id = $1 AND subject_id = $2 AND number > $3 ORDER BY number LIMIT $4",
    )
    .bind(key.app_id)
    .bind(key.subject_id)
    .bind(after)
    .bind(PAGE)
    .fetch_all()
    .await
}

/// Some records of a list; `after` moves to the last of them. Empty: there are no more.
pub(super) async fn records(
    tx: &mut Tx,
    key: Key,
    list: List,
    after: &mut After,
) -> Result<Vec<Value>> {
    match list {
        List::Aliases => {
            let rows = aliases(tx, key, after.number).await?;
            after.number = rows.last().map_or(after.number, |row| row.number);
            let record = |row: AliasRow| json!({"kind": row.kind, "value": row.value, "createdAt": clock::to_text(row.created_at)});
            Ok(rows.into_iter().map(record).collect())
        }
        List::Properties => properties(tx, key, after).await,
        List::ClientSessions => client_sessions(tx, key, after).await,
        List::Instructions => instructions(tx, key, after).await,
        List::DeadLetters => dead_letters(tx, key, after).await,
        List::Devices => devices(tx, key, after).await,
        List::Deliveries => deliveries(tx, key, after).await,
    }
}

async fn properties(tx: &mut Tx, key: Key, after: &mut After) -> Result<Vec<Value>> {
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
        json!({
            "key": row.key, "value": parsed(&row.value), "source": row.source,
            "updatedAt": clock::to_text(row.updated_at),
        })
    };
    Ok(rows.into_iter().map(record).collect())
}

async fn devices(tx: &mut Tx, key: Key, after: &mut After) -> Result<Vec<Value>> {
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
    Ok(rows.into_iter().map(record).collect())
}

async fn deliveries(tx: &mut Tx, key: Key, after: &mut After) -> Result<Vec<Value>> {
    let place = after.at.map(|at| (Timestamp(at), after.id));
    let rows =
        crate::push::deliveries::store::of_subject(tx, key.app_id, key.subject_id, place, PAGE)
            .await?;
    if let Some(last) = rows.last() {
        (after.at, after.id) = (Some(last.created_at.0), last.id);
    }
    Ok(rows.iter().map(delivery).collect())
}

fn delivery(row: &DeliveryRow) -> Value {
    let transitions: Vec<Value> = row
        .transitions()
        .into_iter()
        .map(|(status, at)| json!({"status": status, "at": clock::to_text(at)}))
        .collect();
    json!({
        "deliveryId": row.id, "campaignId": row.campaign_id, "variantId": row.variant_id, "status": row.status,
        "reason": row.reason, "content": row.content.as_deref().map(parsed), "test": row.test,
        "transitions": transitions, "createdAt": clock::to_text(row.created_at),
    })
}

async fn client_sessions(tx: &mut Tx, key: Key, after: &mut After) -> Result<Vec<Value>> {
    let rows: Vec<ClientRow> = tx
        .sql(
            "SELECT client_id, started_at, ended_at FROM client_sessions
             WHERE app_id = $1 AND subject_id = $2 AND client_id > $3 ORDER BY client_id LIMIT $4",
        )
        .bind(key.app_id)
        .bind(key.subject_id)
        .bind(after.id)
        .bind(PAGE)
        .fetch_all()
        .await?;
    after.id = rows.last().map_or(after.id, |row| row.client_id);
    let record = |row: ClientRow| {
        json!({
            "clientId": row.client_id, "startedAt": clock::to_text(row.started_at),
            "endedAt": row.ended_at.map(clock::to_text),
        })
    };
    Ok(rows.into_iter().map(record).collect())
}

async fn instructions(tx: &mut Tx, key: Key, after: &mut After) -> Result<Vec<Value>> {
    let rows: Vec<InstructionRow> = tx
        .sql(
            "SELECT id, position, kind, campaign_id, trigger_event_id, trigger_name, created_at, status, status_at,
                    suppressed_by
             FROM instructions WHERE app_id = $1 AND subject_id = $2 AND (position, id) > ($3, $4)
             ORDER BY position, id LIMIT $5",
        )
        .bind(key.app_id)
        .bind(key.subject_id)
        .bind(after.number)
        .bind(after.id)
        .bind(PAGE)
        .fetch_all()
        .await?;
    // What was suppressed has the position of the instruction before it.
    if let Some(last) = rows.last() {
        (after.number, after.id) = (last.position, last.id);
    }
    let record = |row: InstructionRow| {
        json!({
            "instructionId": row.id, "kind": row.kind, "campaignId": row.campaign_id,
            "trigger": {"eventId": row.trigger_event_id, "name": row.trigger_name},
            "createdAt": clock::to_text(row.created_at), "status": row.status,
            "statusAt": clock::to_text(row.status_at), "suppressedBy": row.suppressed_by,
        })
    };
    Ok(rows.into_iter().map(record).collect())
}

async fn dead_letters(tx: &mut Tx, key: Key, after: &mut After) -> Result<Vec<Value>> {
    let rows: Vec<LetterRow> = tx
        .sql(
            "SELECT d.id, d.event_name, d.stage, d.reason, d.event, d.received_at
             FROM aliases a JOIN dead_letters d ON d.alias_number = a.number
             WHERE a.app_id = $1 AND a.subject_id = $2 AND d.id > $3 ORDER BY d.id LIMIT $4",
        )
        .bind(key.app_id)
        .bind(key.subject_id)
        .bind(after.id)
        .bind(PAGE)
        .fetch_all()
        .await?;
    after.id = rows.last().map_or(after.id, |row| row.id);
    let record = |row: LetterRow| {
        json!({
            "id": row.id, "eventName": row.event_name, "stage": row.stage, "reason": row.reason,
            "event": parsed(&row.event), "receivedAt": clock::to_text(row.received_at),
        })
    };
    Ok(rows.into_iter().map(record).collect())
}

/// Some events of an alias, the oldest first; `after` moves to the last of them. Empty: there are no more.
pub(super) async fn events(
    tx: &mut Tx,
    key: Key,
    alias: &AliasRow,
    after: &mut After,
) -> Result<Vec<Value>> {
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
    let owner = match alias.kind.as_str() {
        "external" => "externalId",
        _ => "anonymousId",
    };
    let record = |row: EventRow| {
        json!({
            "eventId": row.event_id, "name": row.name, "timestamp": clock::to_text(row.timestamp),
            "clientTimestamp": row.client_timestamp.map(clock::to_text),
            "receivedAt": clock::to_text(row.received_at), "properties": parsed(&row.properties),
            owner: alias.value, "platform": row.platform, "appVersion": row.app_version, "locale": row.locale,
            "timezone": row.timezone, "source": row.source,
        })
    };
    Ok(rows.into_iter().map(record).collect())
}
