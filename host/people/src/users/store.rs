//! People in the database, as lists and profiles show them.

use nudge_db::{Result, Rows, Statement, Timestamp, Tx};
use nudge_platform::hidden;
use uuid::Uuid;

use super::{MOST_SCANNED, Search};

/// Properties of one person in a list.
const TOP_PROPERTIES: i64 = 100;
/// The longest value of a property in a list, in characters of JSON.
const TOP_PROPERTY_LENGTH: i64 = 1_024;
/// Properties in a profile (contract 5).
const RECENT_PROPERTIES: i64 = 100;
/// Devices in a profile.
const DEVICES: i64 = 100;

/// A person's own row.
#[derive(Debug, nudge_db::FromRow)]
pub struct Person {
    /// The subject.
    pub id: Uuid,
    /// The customer's own id of the user.
    pub external_id: Option<String>,
    /// Consent to analytics, if it was ever given or refused.
    pub analytics_consent: Option<bool>,
    /// Consent to messages, if it was ever given or refused.
    pub messaging_consent: Option<bool>,
    /// When consent was last given or refused.
    pub consent_at: Option<Timestamp>,
    /// When the first event happened, or the first session began.
    pub first_seen_at: Timestamp,
    /// When the last event happened.
    pub last_seen_at: Timestamp,
    /// How many events there were.
    pub event_count: i64,
    /// Two letters.
    pub country: Option<String>,
    /// Such as `ios`.
    pub platform: Option<String>,
    /// Language and region.
    pub locale: Option<String>,
    /// IANA time zone.
    pub timezone: Option<String>,
}

/// An alias and whose it is.
#[derive(Debug, nudge_db::FromRow)]
pub struct Alias {
    /// The subject.
    pub subject_id: Uuid,
    /// Its number.
    pub number: i64,
    /// Its kind's name.
    pub kind: String,
    /// What it says.
    pub value: String,
}

/// A saved property.
#[derive(Debug, nudge_db::FromRow)]
pub struct Property {
    /// The subject.
    pub subject_id: Uuid,
    /// Its key.
    pub key: String,
    /// Its value, in JSON.
    pub value: String,
    /// When it was set.
    pub updated_at: Timestamp,
    /// Who set it: `sdk` or `api`.
    pub source: String,
}

/// A device.
#[derive(Debug, nudge_db::FromRow)]
pub struct Device {
    /// What its SDK calls it.
    pub device_id: String,
    /// Such as `ios`.
    pub platform: Option<String>,
    /// The app's version.
    pub app_version: Option<String>,
    /// The SDK's version.
    pub sdk_version: Option<String>,
    /// Language and region.
    pub locale: Option<String>,
    /// When its first event arrived.
    pub first_seen_at: Timestamp,
    /// When its last event arrived.
    pub last_seen_at: Timestamp,
}

/// A name that a search found.
#[derive(Debug, nudge_db::FromRow)]
pub struct NameRow {
    /// The subject.
    pub subject_id: Uuid,
    /// The name in lower case.
    pub folded: String,
    /// The alias's number.
    pub number: i64,
}

/// What a look through values found.
#[derive(Debug)]
pub struct Scan {
    /// People with such a value, whom no name and no id finds.
    pub ids: Vec<Uuid>,
    /// Behind whom to go on, if values are left.
    pub rest: Option<Uuid>,
}

/// The ids of people, newest first.
pub async fn ids(tx: &mut Tx, app_id: Uuid, after: Option<Uuid>, limit: i64) -> Result<Vec<Uuid>> {
    tx.sql("SELECT id FROM subjects WHERE app_id = $1 AND id < $2 AND id NOT IN ")
        .push(hidden::SUBJECTS)
        .push(" ORDER BY id DESC LIMIT $3")
        .bind(app_id)
        .bind(after.unwrap_or(Uuid::max()))
        .bind(limit)
        .fetch_values()
        .await
}

/// How many people there are, up to a number.
pub async fn count(tx: &mut Tx, app_id: Uuid, most: i64) -> Result<i64> {
    tx.sql("SELECT count(*) AS count FROM (SELECT 1 FROM subjects WHERE app_id = $1 AND id NOT IN ")
        .push(hidden::SUBJECTS)
        .push(" ORDER BY id LIMIT $2) AS counted")
        .bind(app_id)
        .bind(most)
        .fetch_scalar()
        .await
}

/// People with a name that begins so, each under the first such name.
pub async fn by_name(
    tx: &mut Tx,
    app_id: Uuid,
    search: &Search,
    after: Option<(String, i64)>,
    limit: i64,
) -> Result<Vec<NameRow>> {
    let (low, high) = search.names.clone();
    let after = after.unwrap_or((low.clone(), 0));
    tx.sql("SELECT a.subject_id, a.folded, a.number")
        .push(FIRST_NAMES)
        .push(hidden::SUBJECTS)
        .bind(app_id)
        .bind(low)
        .bind(high)
        .push(" AND a.folded >= $4 AND (a.folded, a.number) > ($4, $5) ORDER BY a.folded, a.number LIMIT $6")
        .bind(after.0)
        .bind(after.1)
        .bind(limit)
        .fetch_all()
        .await
}

/// Aliases `a` of the app `$1` from `$2` to before `$3`, each subject's first, but for those of subjects in a set.
const FIRST_NAMES: &str = " FROM aliases a WHERE a.app_id = $1 AND a.folded >= $2 AND a.folded < $3
    AND NOT EXISTS (SELECT 1 FROM aliases b
                    WHERE b.subject_id = a.subject_id AND b.folded >= $2 AND b.folded < $3
                      AND (b.folded, b.number) < (a.folded, a.number)) AND a.subject_id NOT IN ";

/// How many people [`by_name`] finds, up to a number.
pub async fn count_by_name(tx: &mut Tx, app_id: Uuid, search: &Search, most: i64) -> Result<i64> {
    let (low, high) = search.names.clone();
    tx.sql("SELECT count(*) AS count FROM (SELECT 1")
        .push(FIRST_NAMES)
        .push(hidden::SUBJECTS)
        .push(" LIMIT $4) AS counted")
        .bind(app_id)
        .bind(low)
        .bind(high)
        .bind(most)
        .fetch_scalar()
        .await
}

/// People whose id begins so, newest first, but for those whom a name finds.
pub async fn by_id(
    tx: &mut Tx,
    app_id: Uuid,
    search: &Search,
    after: Option<Uuid>,
    limit: i64,
) -> Result<Vec<Uuid>> {
    let Some((low, high)) = search.ids else {
        return Ok(Vec::new());
    };
    let high = after.map_or(high, |after| high.min(before(after)));
    unnamed_ids(
        tx.sql("SELECT s.id FROM subjects s WHERE s.app_id = $1 AND s.id BETWEEN $2 AND $3"),
        app_id,
        (low, high),
        search,
    )
    .push(" ORDER BY s.id DESC LIMIT $6")
    .bind(limit)
    .fetch_values()
    .await
}

/// How many people [`by_id`] finds, up to a number.
pub async fn count_by_id(tx: &mut Tx, app_id: Uuid, search: &Search, most: i64) -> Result<i64> {
    let Some(range) = search.ids else {
        return Ok(0);
    };
    let text = "SELECT count(*) AS count FROM (SELECT 1 FROM subjects s WHERE s.app_id = $1 AND s.id BETWEEN $2 AND $3";
    unnamed_ids(tx.sql(text), app_id, range, search)
        .push(" LIMIT $6) AS counted")
        .bind(most)
        .fetch_scalar()
        .await
}

fn unnamed_ids<'t>(
    statement: Statement<'t>,
    app_id: Uuid,
    range: (Uuid, Uuid),
    search: &Search,
) -> Statement<'t> {
    let (low, high) = search.names.clone();
    statement
        .bind(app_id)
        .bind(range.0)
        .bind(range.1)
        .push(
            " AND NOT EXISTS (SELECT 1 FROM aliases b
                              WHERE b.subject_id = s.id AND b.folded >= $4 AND b.folded < $5) AND s.id NOT IN ",
        )
        .push(hidden::SUBJECTS)
        .bind(low)
        .bind(high)
}

/// The id before an id.
fn before(id: Uuid) -> Uuid {
    Uuid::from_u128(id.as_u128().saturating_sub(1))
}

/// People with a property whose value has the text in it, newest first, but for those whom a name or an id
/// finds. Looks through [`MOST_SCANNED`] values.
pub async fn by_value(
    tx: &mut Tx,
    app_id: Uuid,
    search: &Search,
    after: Option<Uuid>,
    limit: i64,
) -> Result<Scan> {
    let after = after.unwrap_or(Uuid::max());
    let last: Option<Uuid> = tx
        .sql(
            "SELECT subject_id AS id FROM property_texts WHERE app_id = $1 AND subject_id < $2
             ORDER BY subject_id DESC LIMIT 1 OFFSET $3",
        )
        .bind(app_id)
        .bind(after)
        .bind(MOST_SCANNED)
        .fetch_value()
        .await?;
    // Not all values of the last subject may be within reach: the next scan begins with it.
    let rest = last;
    let (low, high) = search.names.clone();
    let (first_id, last_id) = search.ids.unwrap_or((Uuid::max(), Uuid::nil()));
    let rows: Vec<Uuid> = tx
        .sql(
            "SELECT DISTINCT t.subject_id AS id FROM property_texts t
             WHERE t.app_id = $1 AND t.subject_id > $2 AND t.subject_id < $3 AND t.folded LIKE $4 ESCAPE '\\'
               AND NOT (t.subject_id >= $5 AND t.subject_id <= $6)
               AND NOT EXISTS (SELECT 1 FROM aliases b
                               WHERE b.subject_id = t.subject_id AND b.folded >= $7 AND b.folded < $8)
               AND t.subject_id NOT IN ",
        )
        .push(hidden::SUBJECTS)
        .push(" ORDER BY id DESC LIMIT $9")
        .bind(app_id)
        .bind(rest.unwrap_or(Uuid::nil()))
        .bind(after)
        .bind(search.pattern.clone())
        .bind(first_id)
        .bind(last_id)
        .bind(low)
        .bind(high)
        .bind(limit)
        .fetch_values()
        .await?;
    Ok(Scan {
        ids: rows,
        rest: rest.map(|id| Uuid::from_u128(id.as_u128().saturating_add(1))),
    })
}

/// People by their ids, in any order.
pub async fn people(tx: &mut Tx, app_id: Uuid, ids: &[Uuid]) -> Result<Vec<Person>> {
    tx.with_rows("v(id)", Rows::new().uuids(ids.iter().copied()))
        .push(
            " SELECT s.id, s.external_id, s.analytics_consent, s.messaging_consent, s.consent_at, s.first_seen_at,
                     s.last_seen_at, s.event_count, s.country, s.platform, s.locale, s.timezone
              FROM v JOIN subjects s ON s.id = v.id WHERE NOT s.suppressed AND s.app_id = ",
        )
        .push_bind(app_id)
        .fetch_all()
        .await
}

/// The names that clients know people by, the oldest first.
pub async fn aliases(tx: &mut Tx, app_id: Uuid, ids: &[Uuid]) -> Result<Vec<Alias>> {
    tx.with_rows("v(id)", Rows::new().uuids(ids.iter().copied()))
        .push(
            " SELECT a.subject_id, a.number, a.kind, a.value FROM v JOIN aliases a ON a.subject_id = v.id
              WHERE a.kind <> 'system' AND a.app_id = ",
        )
        .push_bind(app_id)
        .push(" ORDER BY a.subject_id, a.number")
        .fetch_all()
        .await
}

/// The first properties of people by key, of those that are not long.
pub async fn top_properties(tx: &mut Tx, app_id: Uuid, ids: &[Uuid]) -> Result<Vec<Property>> {
    tx.with_rows("v(id)", Rows::new().uuids(ids.iter().copied()))
        .push(
            " SELECT p.subject_id, p.key, p.value, p.updated_at, p.source
              FROM v JOIN subject_properties p ON p.subject_id = v.id
              WHERE p.key <= (SELECT max(shown.key) FROM (
                        SELECT f.key FROM subject_properties f WHERE f.subject_id = v.id AND length(f.value) <= ",
        )
        .push_bind(TOP_PROPERTY_LENGTH)
        .push(" ORDER BY f.key LIMIT ")
        .push_bind(TOP_PROPERTIES)
        .push(") shown) AND length(p.value) <= ")
        .push_bind(TOP_PROPERTY_LENGTH)
        .push(" AND p.app_id = ")
        .push_bind(app_id)
        .fetch_all()
        .await
}

/// The properties of a person that were set last.
pub async fn recent_properties(tx: &mut Tx, app_id: Uuid, id: Uuid) -> Result<Vec<Property>> {
    tx.sql(
        "SELECT subject_id, key, value, updated_at, source FROM subject_properties
         WHERE subject_id = $2 AND app_id = $1 ORDER BY updated_at DESC, key LIMIT $3",
    )
    .bind(app_id)
    .bind(id)
    .bind(RECENT_PROPERTIES)
    .fetch_all()
    .await
}

/// The devices of a person, those that were seen last first.
pub async fn devices(tx: &mut Tx, app_id: Uuid, id: Uuid) -> Result<Vec<Device>> {
    tx.sql(
        "SELECT device_id, platform, app_version, sdk_version, locale, first_seen_at, last_seen_at FROM devices
         WHERE subject_id = $2 AND app_id = $1 ORDER BY last_seen_at DESC, device_id LIMIT $3",
    )
    .bind(app_id)
    .bind(id)
    .bind(DEVICES)
    .fetch_all()
    .await
}
