//! Dead letters in the database.

mod replayed;
mod row;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use nudge_db::{Result, Rows, Statement, Timestamp, Tx};
use nudge_platform::hidden;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{Letter, Stage};
use crate::dead_letters::violation::Violation;
use crate::events::Origin;

pub use replayed::{take, was_replayed};
use row::{LETTERS, Row};

/// A position in the letters of an app, which are in the order in which their events happened.
pub type LetterPosition = (Timestamp, Uuid);

/// A position in the groups of letters, the largest first.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct GroupPosition {
    /// Letters received from here on are not counted.
    pub until: Timestamp,
    /// The group's letters.
    pub count: i64,
    /// The group's event name.
    pub event_name: String,
    /// The group's reason.
    pub reason: String,
}

/// Which letters.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Filter {
    /// Events of this name.
    pub event_name: Option<String>,
    /// This reason.
    pub reason: Option<String>,
    /// This stage.
    pub stage: Option<Stage>,
    /// Received at or after.
    pub from: Option<Timestamp>,
    /// Received before.
    pub to: Option<Timestamp>,
}

/// A letter and whose it is.
#[derive(Debug)]
pub struct FoundLetter {
    /// The letter.
    pub letter: Letter,
    /// The subject.
    pub subject_id: Uuid,
    /// The alias, if it is an anonymous id.
    pub anonymous_id: Option<String>,
}

/// A replay that was in vain.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The letter.
    pub id: Uuid,
    /// Why it fails now.
    pub reason: String,
    /// What the plugin says now.
    pub detail: Option<String>,
    /// What is wrong now.
    pub violations: Vec<Violation>,
}

impl Failure {
    /// That of a letter which says already why it failed.
    pub fn of(letter: &Letter) -> Self {
        Self {
            id: letter.id,
            reason: letter.reason.clone(),
            detail: letter.detail.clone(),
            violations: letter.violations.clone(),
        }
    }

    /// What is noted of it with its letter: what is wrong with the event there, which a patch leaves as it was.
    #[must_use]
    pub fn noted(&self, letter: &Letter, patched: bool) -> Self {
        if patched {
            Self::of(letter)
        } else {
            self.clone()
        }
    }
}

/// Letters of an event name with a reason.
#[derive(Clone, Debug, nudge_db::FromRow)]
pub struct Group {
    /// The events' name.
    pub event_name: String,
    /// The reason.
    pub reason: String,
    /// How many there are.
    pub count: i64,
    /// When the first of them came.
    pub first_seen_at: Timestamp,
    /// When the last of them came.
    pub last_seen_at: Timestamp,
    /// The last of them.
    pub sample_id: Uuid,
}

impl Group {
    /// Its position among the groups of letters that were received before an instant.
    pub fn position(&self, until: Timestamp) -> GroupPosition {
        GroupPosition {
            until,
            count: self.count,
            event_name: self.event_name.clone(),
            reason: self.reason.clone(),
        }
    }
}

impl Filter {
    /// The same letters, as far as they were received before an instant.
    #[must_use]
    pub fn until(&self, instant: Timestamp) -> Self {
        Self {
            to: Some(self.to.map_or(instant, |to| to.min(instant))),
            ..self.clone()
        }
    }

    /// Appends the conditions on the letters `d` of the app `$1`; of nobody who is being deleted.
    fn apply<'t>(&self, mut statement: Statement<'t>) -> Statement<'t> {
        statement = statement
            .push(" AND d.alias_number NOT IN ")
            .push(hidden::ALIASES);
        if let Some(name) = &self.event_name {
            statement = statement
                .push(" AND d.event_name = ")
                .push_bind(name.clone());
        }
        if let Some(reason) = &self.reason {
            statement = statement.push(" AND d.reason = ").push_bind(reason.clone());
        }
        if let Some(stage) = self.stage {
            statement = statement.push(" AND d.stage = ").push_bind(stage.name());
        }
        if let Some(from) = self.from {
            statement = statement.push(" AND d.received_at >= ").push_bind(from);
        }
        if let Some(to) = self.to {
            statement = statement.push(" AND d.received_at < ").push_bind(to);
        }
        statement
    }
}

/// What came of letters that were to be added.
#[derive(Debug, Default)]
pub struct Inserted {
    /// Those that are there now.
    pub kept: HashSet<Uuid>,
    /// Those of them that were not there before.
    pub new: HashSet<Uuid>,
}

/// Adds letters, each in place of one with its id. They are kept for their days from now on, however old their events are.
///
/// A letter of the validation stage is left out if an event of its id is there: that one was accepted.
pub async fn insert(tx: &mut Tx, letters: &[&Letter], now: Timestamp) -> Result<Inserted> {
    // What a client sends twice at once may be here twice, and a statement takes each row once.
    let distinct: HashMap<Uuid, &Letter> =
        letters.iter().map(|letter| (letter.id, *letter)).collect();
    let mut distinct: Vec<&Letter> = distinct.into_values().collect();
    let accepted = accepted(tx, &distinct).await?;
    distinct.retain(|letter| {
        letter.stage != Stage::Validation || !accepted.contains(&(letter.alias, letter.event_id))
    });
    // One order for all processes, so that they do not deadlock: all that are new, then all others.
    distinct.sort_unstable_by_key(|letter| letter.id);
    let mut new = HashSet::with_capacity(distinct.len());
    for chunk in distinct.chunks(Rows::MOST) {
        new.extend(write(tx, chunk, LEAVE, now).await?);
    }
    let mut kept = new.clone();
    distinct.retain(|letter| !new.contains(&letter.id));
    for chunk in distinct.chunks(Rows::MOST) {
        kept.extend(write(tx, chunk, REPLACE, now).await?);
    }
    Ok(Inserted { kept, new })
}

/// A letter whose id is there stays as it is.
const LEAVE: &str = " ON CONFLICT (id) DO NOTHING RETURNING id";
/// A letter whose id is there is replaced.
const REPLACE: &str = " ON CONFLICT (id) DO UPDATE SET event_name = excluded.event_name,
        reason = excluded.reason, violations = excluded.violations,
        plugin_name = excluded.plugin_name, plugin_version = excluded.plugin_version,
        event = excluded.event, timestamp = excluded.timestamp, received_at = excluded.received_at,
        kept_at = excluded.kept_at,
        session_number = excluded.session_number, opens_session = excluded.opens_session,
        origin = excluded.origin, client_timestamp = excluded.client_timestamp,
        detail = excluded.detail RETURNING id";

/// Adds letters; answers which were added, or replaced if that is what is done about those that are there.
async fn write(
    tx: &mut Tx,
    letters: &[&Letter],
    if_there: &'static str,
    now: Timestamp,
) -> Result<Vec<Uuid>> {
    tx.with_rows(
        "v(id, app_id, alias_number, event_id, event_name, stage, reason, violations, plugin_name,
           plugin_version, campaign_id, event, timestamp, received_at, session_number, opens_session,
           origin, client_timestamp, detail, timer_id, timer_key, timer_payload, timer_due_at, timer_last_seq)",
        rows(letters),
    )
    .push(
        " INSERT INTO dead_letters (id, app_id, alias_number, event_id, event_name, stage, reason, violations,
                                    plugin_name, plugin_version, campaign_id, event, timestamp, received_at,
                                    session_number, opens_session, origin, client_timestamp, detail,
                                    timer_id, timer_key, timer_payload, timer_due_at, timer_last_seq,
                                    attempts, state, kept_at)
          SELECT v.id, v.app_id, v.alias_number, v.event_id, v.event_name, v.stage, v.reason, v.violations,
                 v.plugin_name, v.plugin_version, v.campaign_id, v.event, v.timestamp, v.received_at,
                 v.session_number, v.opens_session, v.origin, v.client_timestamp, v.detail,
                 v.timer_id, v.timer_key, v.timer_payload, v.timer_due_at, v.timer_last_seq, 0, 'open', ",
    )
    .push_bind(now)
    .push(" FROM v WHERE true")
    .push(if_there)
    .fetch_values()
    .await
}

/// Aliases and ids of letters of the validation stage that events have.
async fn accepted(tx: &mut Tx, letters: &[&Letter]) -> Result<HashSet<(i64, Uuid)>> {
    let validation = |letter: &&&Letter| letter.stage == Stage::Validation;
    let asked: Vec<&&Letter> = letters.iter().filter(validation).collect();
    let mut found = HashSet::new();
    for chunk in asked.chunks(Rows::MOST) {
        let rows = Rows::new()
            .integers(chunk.iter().map(|letter| letter.alias))
            .uuids(chunk.iter().map(|letter| letter.event_id));
        let rows: Vec<(i64, Uuid)> = tx
            .with_rows("v(alias_number, event_id)", rows)
            .push(
                " SELECT e.alias_number, e.event_id FROM v CROSS JOIN events e
                  WHERE e.alias_number = v.alias_number AND e.event_id = v.event_id",
            )
            .in_shards_of("e.alias_number", chunk.iter().map(|letter| letter.alias))
            .fetch_all()
            .await?;
        found.extend(rows);
    }
    Ok(found)
}

fn rows(letters: &[&Letter]) -> Rows {
    let all = || letters.iter().copied();
    let plugin = |letter: &Letter| letter.plugin.clone();
    let timers = || all().map(|letter| letter.timer.as_ref());
    Rows::new()
        .uuids(all().map(|letter| letter.id))
        .uuids(all().map(|letter| letter.app_id))
        .integers(all().map(|letter| letter.alias))
        .uuids(all().map(|letter| letter.event_id))
        .texts(all().map(|letter| letter.event_name.clone()))
        .texts(all().map(|letter| letter.stage.name().to_owned()))
        .texts(all().map(|letter| letter.reason.clone()))
        .texts(all().map(|letter| violations_text(&letter.violations)))
        .texts(all().map(|letter| plugin(letter).map(|plugin| plugin.name)))
        .texts(all().map(|letter| plugin(letter).map(|plugin| plugin.version)))
        .uuids(all().map(|letter| letter.campaign_id))
        .texts(all().map(|letter| letter.event.clone()))
        .timestamps(all().map(|letter| letter.timestamp))
        .timestamps(all().map(|letter| letter.received_at))
        .integers(all().map(|letter| letter.session))
        .integers(all().map(|letter| i64::from(letter.opens_session)))
        .shared_texts(origins(letters))
        .timestamps(all().map(|letter| letter.client_timestamp))
        .texts(all().map(|letter| letter.detail.clone()))
        .uuids(timers().map(|timer| timer.map(|timer| timer.id)))
        .texts(timers().map(|timer| timer.map(|timer| timer.key.clone())))
        .bytes(timers().map(|timer| timer.map(|timer| timer.payload.clone())))
        .timestamps(timers().map(|timer| timer.map(|timer| timer.due_at)))
        .integers(timers().map(|timer| timer.and_then(|timer| timer.last_seq)))
}

/// What is known of the letters' requests, as JSON: once for each request.
fn origins(letters: &[&Letter]) -> Vec<Option<Arc<str>>> {
    let mut texts: HashMap<*const Origin, Option<Arc<str>>> = HashMap::new();
    let text = |letter: &&Letter| {
        // The events of other stages are stored, and say it.
        let origin = Some(&letter.origin).filter(|_| letter.stage == Stage::Validation)?;
        let text = texts
            .entry(Arc::as_ptr(origin))
            .or_insert_with(|| serde_json::to_string(&**origin).ok().map(Arc::from));
        text.clone()
    };
    letters.iter().map(text).collect()
}

fn violations_text(violations: &[Violation]) -> String {
    serde_json::to_string(violations).unwrap_or_else(|_| "[]".to_owned())
}

/// Removes so many letters of an app; answers how many there were.
pub async fn delete_some(tx: &mut Tx, app_id: Uuid, filter: &Filter, limit: i64) -> Result<u64> {
    let statement = tx
        .sql(
            "DELETE FROM dead_letters WHERE (app_id = $1) IS TRUE AND id IN (
                SELECT d.id FROM dead_letters d WHERE d.app_id = $1",
        )
        .bind(app_id);
    filter
        .apply(statement)
        .push(" ORDER BY d.timestamp, d.id LIMIT ")
        .push_bind(limit)
        .push(")")
        .execute()
        .await
}

/// Removes a letter; answers whether it was there.
pub async fn delete(tx: &mut Tx, app_id: Uuid, id: Uuid) -> Result<bool> {
    let removed = tx
        .sql("DELETE FROM dead_letters WHERE app_id = $1 AND id = $2")
        .bind(app_id)
        .bind(id)
        .execute()
        .await?;
    Ok(removed == 1)
}

/// Notes that replays of letters of an app were in vain, and why; answers of how many, those that are gone not
/// among them.
pub async fn update_failed(tx: &mut Tx, app_id: Uuid, failures: &[Failure]) -> Result<u64> {
    let mut updated = 0;
    for chunk in failures.chunks(Rows::MOST) {
        let rows = Rows::new()
            .uuids(chunk.iter().map(|failure| failure.id))
            .texts(chunk.iter().map(|failure| failure.reason.clone()))
            .texts(
                chunk
                    .iter()
                    .map(|failure| violations_text(&failure.violations)),
            )
            .texts(chunk.iter().map(|failure| failure.detail.clone()));
        updated += tx
            .with_rows("v(id, reason, violations, detail)", rows)
            .push(
                " UPDATE dead_letters SET attempts = dead_letters.attempts + 1, reason = v.reason,
                         violations = v.violations, detail = v.detail
                  FROM v WHERE dead_letters.id = v.id AND dead_letters.app_id = ",
            )
            .push_bind(app_id)
            .execute()
            .await?;
    }
    Ok(updated)
}

/// How many letters of an app there are.
pub async fn count(tx: &mut Tx, app_id: Uuid, filter: &Filter) -> Result<i64> {
    let statement = tx
        .sql("SELECT count(*) AS count FROM dead_letters d WHERE d.app_id = $1")
        .bind(app_id);
    filter.apply(statement).fetch_scalar().await
}

/// The instant before which all letters of an app were received that are there.
pub async fn end(tx: &mut Tx, app_id: Uuid, filter: &Filter) -> Result<Timestamp> {
    let statement = tx
        .sql("SELECT d.received_at FROM dead_letters d WHERE d.app_id = $1")
        .bind(app_id);
    let last: Option<Timestamp> = filter
        .apply(statement)
        .push(" ORDER BY d.received_at DESC LIMIT 1")
        .fetch_value()
        .await?;
    Ok(last.map_or(Timestamp::default(), |last| Timestamp(last.0 + 1)))
}

/// The letters of an app by event name and reason, the most frequent first, from after a position on.
pub async fn summary(
    tx: &mut Tx,
    app_id: Uuid,
    filter: &Filter,
    after: Option<&GroupPosition>,
    limit: i64,
) -> Result<Vec<Group>> {
    let statement = tx
        .sql(
            "SELECT g.event_name, g.reason, g.count, g.first_seen_at, g.last_seen_at,
                    (SELECT d.id FROM dead_letters d
                     WHERE d.app_id = $1 AND d.event_name = g.event_name AND d.reason = g.reason",
        )
        .bind(app_id);
    let statement = filter.apply(statement).push(
        " ORDER BY d.received_at DESC, d.id DESC LIMIT 1) AS sample_id
             FROM (SELECT d.event_name, d.reason, count(*) AS count, min(d.received_at) AS first_seen_at,
                          max(d.received_at) AS last_seen_at
                   FROM dead_letters d WHERE d.app_id = $1",
    );
    let mut statement = filter
        .apply(statement)
        .push(" GROUP BY d.event_name, d.reason");
    if let Some(after) = after {
        statement = statement
            .push(" HAVING count(*) < ")
            .push_bind(after.count)
            .push(" OR (count(*) = ")
            .push_bind(after.count)
            .push(" AND (d.event_name, d.reason) > ")
            .push_pair(after.event_name.clone(), after.reason.clone())
            .push(")");
    }
    statement
        .push(" ORDER BY count(*) DESC, d.event_name, d.reason LIMIT ")
        .push_bind(limit)
        .push(") g ORDER BY g.count DESC, g.event_name, g.reason")
        .fetch_all()
        .await
}

/// Finds a letter.
pub async fn find(tx: &mut Tx, app_id: Uuid, id: Uuid) -> Result<Option<FoundLetter>> {
    let row: Option<Row> = tx
        .sql(LETTERS)
        .bind(app_id)
        .push(" AND d.id = ")
        .push_bind(id)
        .push(" AND d.alias_number NOT IN ")
        .push(hidden::ALIASES)
        .fetch_optional()
        .await?;
    row.map(Row::read).transpose()
}

/// Letters of an alias's event that a campaign's trigger plugin failed on: of the event itself, and of timers that it has set. At
/// most ten.
pub async fn of_event(
    tx: &mut Tx,
    app_id: Uuid,
    (alias, event_id): (i64, Uuid),
    campaign_id: Uuid,
) -> Result<Vec<FoundLetter>> {
    let rows: Vec<Row> = tx
        .sql(LETTERS)
        .bind(app_id)
        .push(" AND d.alias_number = ")
        .push_bind(alias)
        .push(" AND d.event_id = ")
        .push_bind(event_id)
        .push(" AND d.stage = ")
        .push_bind(Stage::Trigger.name())
        .push(" AND d.campaign_id = ")
        .push_bind(campaign_id)
        .push(" ORDER BY COALESCE(d.timer_due_at, 0), d.id LIMIT 10")
        .fetch_all()
        .await?;
    rows.into_iter().map(Row::read).collect()
}

/// Lists letters, newest first, from before a position on.
pub async fn list(
    tx: &mut Tx,
    app_id: Uuid,
    filter: &Filter,
    before: Option<LetterPosition>,
    limit: i64,
) -> Result<Vec<FoundLetter>> {
    let mut statement = filter.apply(tx.sql(LETTERS).bind(app_id));
    if let Some((timestamp, id)) = before {
        statement = statement
            .push(" AND (d.timestamp, d.id) < ")
            .push_pair(timestamp, id);
    }
    let rows: Vec<Row> = statement
        .push(" ORDER BY d.timestamp DESC, d.id DESC LIMIT ")
        .push_bind(limit)
        .fetch_all()
        .await?;
    rows.into_iter().map(Row::read).collect()
}

/// Lists letters, oldest first, from after a position on.
pub async fn page(
    tx: &mut Tx,
    app_id: Uuid,
    filter: &Filter,
    after: Option<LetterPosition>,
    limit: i64,
) -> Result<Vec<FoundLetter>> {
    let mut statement = filter.apply(tx.sql(LETTERS).bind(app_id));
    if let Some((timestamp, id)) = after {
        statement = statement
            .push(" AND (d.timestamp, d.id) > ")
            .push_pair(timestamp, id);
    }
    let rows: Vec<Row> = statement
        .push(" ORDER BY d.timestamp, d.id LIMIT ")
        .push_bind(limit)
        .fetch_all()
        .await?;
    rows.into_iter().map(Row::read).collect()
}
