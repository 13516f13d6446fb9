//! What exports copy, as the database has it.

use nudge_db::{Result, Timestamp, Tx};
use nudge_platform::clock;
use nudge_records::deliveries::store::DeliveryRow;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use uuid::Uuid;

use super::store::Key;

/// Records that are read at once: events are 64 KiB at the most.
const PAGE: i64 = 100;

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
    RejectedEvents,
    Devices,
    Deliveries,
    SurveyAttempts,
    SurveyAnswers,
    Segments,
}

impl List {
    /// All lists, with their names in `profile.json`.
    pub(super) const ALL: &[(&'static str, Self)] = &[
        ("aliases", Self::Aliases),
        ("properties", Self::Properties),
        ("clientSessions", Self::ClientSessions),
        ("instructions", Self::Instructions),
        ("deadLetters", Self::DeadLetters),
        ("rejectedEvents", Self::RejectedEvents),
        ("surveyAttempts", Self::SurveyAttempts),
        ("segments", Self::Segments),
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
    content: Option<String>,
    variant_id: Option<Uuid>,
    clicked_at: Option<Timestamp>,
    action_id: Option<String>,
}

#[derive(sqlx::FromRow)]
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

#[derive(sqlx::FromRow)]
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

#[derive(sqlx::FromRow)]
struct AttemptRow {
    id: Uuid,
    survey_id: Uuid,
    survey_version: i64,
    instruction_id: Option<Uuid>,
    client_attempt_id: Option<Uuid>,
    state: String,
    started_at: Timestamp,
    active_at: Timestamp,
    completed_at: Option<Timestamp>,
}

#[derive(sqlx::FromRow)]
struct AnswerRow {
    attempt_id: Uuid,
    survey_id: Uuid,
    question_id: String,
    value: String,
    answered_at: Timestamp,
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

/// A record with members that are JSON already and stay as they are written, so that no digit is lost.
fn with_texts(record: &Value, members: &[(&str, &str)]) -> String {
    let mut text = record.to_string();
    text.pop();
    for (name, value) in members {
        let is_json = serde_json::from_str::<&RawValue>(value).is_ok();
        // A record is a line; in JSON the ends of lines are blanks.
        let value = if is_json {
            value.replace(['\n', '\r'], " ")
        } else {
            Value::from(*value).to_string()
        };
        text.extend([",\"", name, "\":", &value]);
    }
    text.push('}');
    text
}

/// Records as texts.
fn texts<T>(rows: Vec<T>, record: impl Fn(T) -> Value) -> Vec<String> {
    rows.into_iter()
        .map(|row| record(row).to_string())
        .collect()
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

/// The aliases of a person from above a number on, the server's own among them.
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

/// The names that clients know a person by, from above a number on.
async fn names(tx: &mut Tx, key: Key, after: &mut After) -> Result<Vec<String>> {
    let rows: Vec<AliasRow> = tx
        .sql(
            "SELECT number, kind, value, created_at FROM aliases
             WHERE app_id = $1 AND subject_id = $2 AND number > $3 AND kind <> 'system' ORDER BY number LIMIT $4",
        )
        .bind(key.app_id)
        .bind(key.subject_id)
        .bind(after.number)
        .bind(PAGE)
        .fetch_all()
        .await?;
    after.number = rows.last().map_or(after.number, |row| row.number);
    let record = |row: AliasRow| json!({"kind": row.kind, "value": row.value, "createdAt": clock::to_text(row.created_at)});
    Ok(texts(rows, record))
}

/// Some records of a list; `after` moves to the last of them. Empty: there are no more.
pub(super) async fn records(
    tx: &mut Tx,
    key: Key,
    list: List,
    after: &mut After,
) -> Result<Vec<String>> {
    match list {
        List::Aliases => names(tx, key, after).await,
        List::Properties => properties(tx, key, after).await,
        List::ClientSessions => client_sessions(tx, key, after).await,
        List::Instructions => instructions(tx, key, after).await,
        List::DeadLetters => dead_letters(tx, key, after).await,
        List::RejectedEvents => rejected_events(tx, key, after).await,
        List::Devices => devices(tx, key, after).await,
        List::Deliveries => deliveries(tx, key, after).await,
        List::SurveyAttempts => survey_attempts(tx, key, after).await,
        List::SurveyAnswers => survey_answers(tx, key, after).await,
        List::Segments => segments(tx, key, after).await,
    }
}

/// The segments that a person was in when that was last looked at.
async fn segments(tx: &mut Tx, key: Key, after: &mut After) -> Result<Vec<String>> {
    #[derive(sqlx::FromRow)]
    struct SegmentRow {
        id: Uuid,
        name: String,
    }
    let rows: Vec<SegmentRow> = tx
        .sql(
            "SELECT s.id, s.name FROM segment_members m JOIN segments s ON s.id = m.segment_id
             WHERE m.app_id = $1 AND m.subject_id = $2 AND s.id > $3 ORDER BY s.id LIMIT $4",
        )
        .bind(key.app_id)
        .bind(key.subject_id)
        .bind(after.id)
        .bind(PAGE)
        .fetch_all()
        .await?;
    after.id = rows.last().map_or(after.id, |row| row.id);
    Ok(texts(
        rows,
        |row| json!({"segmentId": row.id, "name": row.name}),
    ))
}

async fn properties(tx: &mut Tx, key: Key, after: &mut After) -> Result<Vec<String>> {
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

async fn devices(tx: &mut Tx, key: Key, after: &mut After) -> Result<Vec<String>> {
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

async fn deliveries(tx: &mut Tx, key: Key, after: &mut After) -> Result<Vec<String>> {
    let place = after.at.map(|at| (Timestamp(at), after.id));
    let rows =
        nudge_records::deliveries::store::of_subject(tx, key.app_id, key.subject_id, place, PAGE)
            .await?;
    if let Some(last) = rows.last() {
        (after.at, after.id) = (Some(last.created_at.0), last.id);
    }
    Ok(rows.iter().map(|row| delivery(row).to_string()).collect())
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

async fn client_sessions(tx: &mut Tx, key: Key, after: &mut After) -> Result<Vec<String>> {
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
    Ok(texts(rows, record))
}

async fn instructions(tx: &mut Tx, key: Key, after: &mut After) -> Result<Vec<String>> {
    let rows: Vec<InstructionRow> = tx
        .sql(
            "SELECT id, position, kind, campaign_id, trigger_event_id, trigger_name, created_at, status, status_at,
                    suppressed_by, content, variant_id, clicked_at, action_id
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
            "message": row.content.and_then(|text| serde_json::from_str::<Value>(&text).ok()),
            "variantId": row.variant_id, "clickedAt": row.clicked_at.map(clock::to_text), "actionId": row.action_id,
        })
    };
    Ok(texts(rows, record))
}

async fn dead_letters(tx: &mut Tx, key: Key, after: &mut After) -> Result<Vec<String>> {
    let rows: Vec<LetterRow> = tx
        .sql(
            "SELECT d.id, d.event_name, d.stage, d.reason, d.event, d.client_timestamp, d.received_at, d.origin
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
        let rest = json!({
            "id": row.id, "eventName": row.event_name, "stage": row.stage, "reason": row.reason,
            "clientTimestamp": row.client_timestamp.map(clock::to_text),
            "receivedAt": clock::to_text(row.received_at), "origin": row.origin.as_deref().map(parsed),
        });
        with_texts(&rest, &[("event", &row.event)])
    };
    Ok(rows.into_iter().map(record).collect())
}

async fn rejected_events(tx: &mut Tx, key: Key, after: &mut After) -> Result<Vec<String>> {
    let rows: Vec<RejectedRow> = tx
        .sql(
            "SELECT r.id, r.event_id, r.name, r.timestamp, r.received_at, r.properties, r.platform, r.app_version,
                    r.source, r.errors
             FROM aliases a JOIN rejected_events r ON r.alias_number = a.number
             WHERE a.app_id = $1 AND a.subject_id = $2 AND r.id > $3 ORDER BY r.id LIMIT $4",
        )
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

async fn survey_attempts(tx: &mut Tx, key: Key, after: &mut After) -> Result<Vec<String>> {
    let rows: Vec<AttemptRow> = tx
        .sql(
            "SELECT id, survey_id, survey_version, instruction_id, client_attempt_id, state, started_at, active_at,
                    completed_at
             FROM survey_attempts WHERE app_id = $1 AND subject_id = $2 AND id > $3 ORDER BY id LIMIT $4",
        )
        .bind(key.app_id)
        .bind(key.subject_id)
        .bind(after.id)
        .bind(PAGE)
        .fetch_all()
        .await?;
    after.id = rows.last().map_or(after.id, |row| row.id);
    let record = |row: AttemptRow| {
        json!({
            "attemptId": row.id, "campaignId": row.survey_id, "surveyVersion": row.survey_version,
            "instructionId": row.instruction_id, "clientAttemptId": row.client_attempt_id, "state": row.state,
            "startedAt": clock::to_text(row.started_at), "activeAt": clock::to_text(row.active_at),
            "completedAt": row.completed_at.map(clock::to_text),
        })
    };
    Ok(texts(rows, record))
}

/// All answers, those of ways that were left too.
async fn survey_answers(tx: &mut Tx, key: Key, after: &mut After) -> Result<Vec<String>> {
    let rows: Vec<AnswerRow> = tx
        .sql(
            "SELECT n.attempt_id, n.survey_id, n.question_id, n.value, n.answered_at
             FROM survey_attempts a JOIN survey_answers n ON n.attempt_id = a.id
             WHERE a.app_id = $1 AND a.subject_id = $2 AND (n.attempt_id, n.question_id) > ($3, $4)
             ORDER BY n.attempt_id, n.question_id LIMIT $5",
        )
        .bind(key.app_id)
        .bind(key.subject_id)
        .bind(after.id)
        .bind(after.text.clone())
        .bind(PAGE)
        .fetch_all()
        .await?;
    if let Some(last) = rows.last() {
        (after.id, after.text) = (last.attempt_id, last.question_id.clone());
    }
    let record = |row: AnswerRow| {
        json!({
            "attemptId": row.attempt_id, "campaignId": row.survey_id, "questionId": row.question_id,
            "answerValue": parsed(&row.value), "answeredAt": clock::to_text(row.answered_at),
        })
    };
    Ok(texts(rows, record))
}

/// Some events of an alias, the oldest first; `after` moves to the last of them. Empty: there are no more.
pub(super) async fn events(
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
