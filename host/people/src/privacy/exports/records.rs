//! What exports copy, as the database has it.

mod events;
mod messages;
mod people;
mod plugins;

use nudge_db::{Record, Result, Timestamp, Tx};
use nudge_platform::clock;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use uuid::Uuid;

use super::store::Key;
pub(super) use events::events;

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
    PluginStates,
    PluginTimers,
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
        ("pluginStates", Self::PluginStates),
        ("pluginTimers", Self::PluginTimers),
    ];
}

/// An alias.
#[derive(Debug, nudge_db::FromRow)]
pub(super) struct AliasRow {
    pub number: i64,
    pub kind: String,
    pub value: String,
    created_at: Timestamp,
}

#[derive(nudge_db::FromRow)]
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

/// A page of rows that have ids, by a statement that takes the app, the person, the id before the page, and how many rows;
/// `after` moves to the last of them.
async fn page<T: Record>(
    tx: &mut Tx,
    key: Key,
    after: &mut After,
    sql: &'static str,
    id: impl Fn(&T) -> Uuid,
) -> Result<Vec<T>> {
    let rows: Vec<T> = tx
        .sql(sql)
        .bind(key.app_id)
        .bind(key.subject_id)
        .bind(after.id)
        .bind(PAGE)
        .fetch_all()
        .await?;
    after.id = rows.last().map_or(after.id, id);
    Ok(rows)
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
        List::Properties => people::properties(tx, key, after).await,
        List::ClientSessions => people::client_sessions(tx, key, after).await,
        List::Instructions => messages::instructions(tx, key, after).await,
        List::DeadLetters => events::dead_letters(tx, key, after).await,
        List::RejectedEvents => events::rejected_events(tx, key, after).await,
        List::Devices => people::devices(tx, key, after).await,
        List::Deliveries => messages::deliveries(tx, key, after).await,
        List::SurveyAttempts => messages::survey_attempts(tx, key, after).await,
        List::SurveyAnswers => messages::survey_answers(tx, key, after).await,
        List::Segments => people::segments(tx, key, after).await,
        List::PluginStates => plugins::states(tx, key, after).await,
        List::PluginTimers => plugins::timers(tx, key, after).await,
    }
}
