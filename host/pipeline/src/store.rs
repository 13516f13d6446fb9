//! What the pipeline reads and writes.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use nudge_db::{Error, IS, Result, Rows, Timestamp, Tx};
use nudge_records::events::store::RequestKey;
use nudge_wasm::Value;
use nudge_wasm::limits::TIMERS_PER_SUBJECT;
use uuid::Uuid;

use super::claims::HAS_EARLIER;
use super::earlier;
use super::effects::{NewTimer, StateChange, TimerKey};
use super::projection::Subject;

#[derive(nudge_db::FromRow)]
struct SubjectRow {
    alias: i64,
    #[sqlx(flatten)]
    subject: Subject,
}

#[derive(nudge_db::FromRow)]
struct StateRow {
    campaign_id: Uuid,
    subject_id: Uuid,
    #[sqlx(flatten)]
    stored: StoredState,
}

/// What a plugin keeps of a subject for a campaign.
#[derive(Clone, Debug, nudge_db::FromRow)]
pub(super) struct StoredState {
    /// In the plugin's own form.
    pub state: Vec<u8>,
    /// The event of the firing that the host held back last.
    pub held_back: Option<Uuid>,
    /// What it kept of people who were merged into the subject since it stored the state.
    pub merged: Option<String>,
    /// The plugin's name, if it is known.
    pub plugin: Option<String>,
}

impl StoredState {
    /// Whether anything stands beside the state.
    pub(super) fn is_marked(&self) -> bool {
        self.held_back.is_some() || self.merged.is_some()
    }
}

#[derive(nudge_db::FromRow)]
struct PropertyRow {
    subject_id: Uuid,
    key: String,
    value: String,
}

/// The subjects behind aliases of an app.
pub(super) async fn subjects(
    tx: &mut Tx,
    app_id: Uuid,
    aliases: Vec<i64>,
) -> Result<Vec<(i64, Subject)>> {
    let mut found = Vec::with_capacity(aliases.len());
    for chunk in aliases.chunks(Rows::MOST) {
        let rows: Vec<SubjectRow> = tx
            .with_rows("v(number)", Rows::new().integers(chunk.iter().copied()))
            .push(
                " SELECT a.number AS alias, s.id, s.version, s.external_id, s.messaging_consent, s.suppressed,
                         s.first_seen_at, s.last_seen_at, s.event_count, s.country, s.platform, s.app_version,
                         s.locale, s.timezone, s.session_number, s.session_active_at, s.session_ids,
                         s.instruction_count, s.last_seq
                  FROM v JOIN aliases a ON a.number = v.number JOIN subjects s ON s.id = a.subject_id
                  WHERE a.app_id",
            )
            .push(IS)
            .push_bind(app_id)
            .fetch_all()
            .await?;
        found.extend(rows.into_iter().map(|row| (row.alias, row.subject)));
    }
    Ok(found)
}

/// Subjects by their ids.
pub(super) async fn subjects_of(tx: &mut Tx, app_id: Uuid, ids: &[Uuid]) -> Result<Vec<Subject>> {
    let mut found = Vec::with_capacity(ids.len());
    for chunk in ids.chunks(Rows::MOST) {
        let rows: Vec<Subject> = tx
            .with_rows("v(id)", Rows::new().uuids(chunk.iter().copied()))
            .push(
                " SELECT s.id, s.version, s.external_id, s.messaging_consent, s.suppressed, s.first_seen_at,
                         s.last_seen_at, s.event_count, s.country, s.platform, s.app_version, s.locale, s.timezone,
                         s.session_number, s.session_active_at, s.session_ids, s.instruction_count, s.last_seq
                  FROM v JOIN subjects s ON s.id = v.id WHERE s.app_id",
            )
            .push(IS)
            .push_bind(app_id)
            .fetch_all()
            .await?;
        found.extend(rows);
    }
    Ok(found)
}

/// Plugin states by campaign and subject.
pub(super) async fn states(
    tx: &mut Tx,
    app_id: Uuid,
    pairs: Vec<(Uuid, Uuid)>,
) -> Result<HashMap<(Uuid, Uuid), StoredState>> {
    let mut found = HashMap::new();
    for chunk in pairs.chunks(Rows::MOST) {
        let rows = Rows::new()
            .uuids(chunk.iter().map(|pair| pair.0))
            .uuids(chunk.iter().map(|pair| pair.1));
        let rows: Vec<StateRow> = tx
            .with_rows("v(campaign_id, subject_id)", rows)
            .push(
                " SELECT p.campaign_id, p.subject_id, p.state, p.held_back, p.merged, p.plugin
                  FROM v JOIN plugin_states p ON p.campaign_id = v.campaign_id AND p.subject_id = v.subject_id
                  WHERE p.app_id = ",
            )
            .push_bind(app_id)
            .fetch_all()
            .await?;
        found.extend(
            rows.into_iter()
                .map(|row| ((row.campaign_id, row.subject_id), row.stored)),
        );
    }
    Ok(found)
}

/// The saved properties of subjects.
pub(super) async fn properties(
    tx: &mut Tx,
    app_id: Uuid,
    subjects: &[Uuid],
) -> Result<HashMap<(Uuid, String), Value>> {
    let mut found = HashMap::new();
    for chunk in subjects.chunks(Rows::MOST) {
        let rows: Vec<PropertyRow> = tx
            .with_rows("v(subject_id)", Rows::new().uuids(chunk.iter().copied()))
            .push(
                " SELECT p.subject_id, p.key, p.value
                  FROM v JOIN subject_properties p ON p.subject_id = v.subject_id WHERE p.app_id = ",
            )
            .push_bind(app_id)
            .fetch_all()
            .await?;
        for row in rows {
            match property(&row.value) {
                Ok(value) => {
                    found.insert((row.subject_id, row.key), value);
                }
                // Its person has none of the name: an error would keep everybody waiting who is read together.
                Err(error) => {
                    tracing::error!(error = ?error, subject.id = %row.subject_id, "a saved property can't be read");
                }
            }
        }
    }
    Ok(found)
}

/// A saved property as plugins get it.
fn property(text: &str) -> Result<Value> {
    let corrupt =
        |cause: &dyn std::fmt::Display| Error::corrupt("subject_properties", "value", cause);
    let value = serde_json::from_str(text).map_err(|cause| corrupt(&cause))?;
    Ok(match value {
        serde_json::Value::Null => Value::Null,
        serde_json::Value::Bool(value) => Value::Boolean(value),
        serde_json::Value::Number(value) => {
            let value = value.as_f64();
            Value::Number(value.ok_or_else(|| corrupt(&"a number that is none"))?)
        }
        serde_json::Value::String(value) => Value::Text(value),
        other => Value::Json(other.to_string()),
    })
}

/// Removes requests that are processed. False: one is not this process's any longer, or an earlier one
/// of the same person, under whichever alias, is not processed yet.
pub(super) async fn delete_requests(
    tx: &mut Tx,
    requests: &[RequestKey],
    node: Uuid,
) -> Result<bool> {
    if tx.shards().is_some() {
        return earlier::delete(tx, requests, node).await;
    }
    // Ascending, so that an earlier request of the same person is gone when a later one is looked at.
    let mut ids: Vec<i64> = requests.iter().map(|(_, id)| *id).collect();
    ids.sort_unstable();
    // For the same reason several statements can't go together.
    let waits = ids.len() <= Rows::MOST;
    for chunk in ids.chunks(Rows::MOST) {
        let rows = Rows::new().integers(chunk.iter().copied());
        let statement = if waits {
            tx.change_rows("v(id)", rows)
        } else {
            tx.with_rows("v(id)", rows)
        };
        let done = statement
            .push(" DELETE FROM pending WHERE id IN (SELECT v.id FROM v) AND NOT (")
            .push(HAS_EARLIER)
            .push(") AND node = ")
            .push_bind(node)
            .change(Some(chunk.len() as u64))
            .await?;
        if !done {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Removes timers that were due. False: one is not this process's any longer, was set anew or cancelled.
pub(super) async fn delete_due_timers(tx: &mut Tx, ids: &[Uuid], node: Uuid) -> Result<bool> {
    let mut deleted = 0;
    for chunk in ids.chunks(Rows::MOST) {
        deleted += tx
            .with_rows("v(id)", Rows::new().uuids(chunk.iter().copied()))
            .push(" DELETE FROM timers WHERE id IN (SELECT v.id FROM v) AND node = ")
            .push_bind(node)
            .execute()
            .await?;
    }
    Ok(deleted == ids.len() as u64)
}

/// Writes subjects. False: one has changed since it was read.
pub(super) async fn update_subjects(
    tx: &mut Tx,
    app_id: Uuid,
    subjects: &[Subject],
) -> Result<bool> {
    // One order for all processes, so that they do not deadlock.
    let mut sorted: Vec<&Subject> = subjects.iter().collect();
    sorted.sort_unstable_by_key(|subject| subject.id);
    let write_all = subjects.iter().any(|subject| subject.has_changed);
    for chunk in sorted.chunks(Rows::MOST) {
        let written = if write_all {
            write_subjects(tx, app_id, chunk).await?
        } else {
            count_versions_up(tx, app_id, chunk).await?
        };
        if !written {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Notes that something followed for subjects of which nothing has changed, as from a run. False: one has since it was read.
async fn count_versions_up(tx: &mut Tx, app_id: Uuid, subjects: &[&Subject]) -> Result<bool> {
    let rows = Rows::new()
        .uuids(subjects.iter().map(|subject| subject.id))
        .integers(subjects.iter().map(|subject| subject.version));
    tx.change_rows("v(id, version)", rows)
        .push(
            " UPDATE subjects SET version = subjects.version + 1
              FROM v WHERE subjects.id = v.id AND subjects.version = v.version AND subjects.app_id",
        )
        .push(IS)
        .push_bind(app_id)
        .change(Some(subjects.len() as u64))
        .await
}

async fn write_subjects(tx: &mut Tx, app_id: Uuid, subjects: &[&Subject]) -> Result<bool> {
    let rows = Rows::new()
        .uuids(subjects.iter().map(|subject| subject.id))
        .integers(subjects.iter().map(|subject| subject.version))
        .timestamps(subjects.iter().map(|subject| subject.first_seen_at))
        .timestamps(subjects.iter().map(|subject| subject.last_seen_at))
        .integers(subjects.iter().map(|subject| subject.event_count))
        .texts(subjects.iter().map(|subject| subject.country.clone()))
        .texts(subjects.iter().map(|subject| subject.platform.clone()))
        .texts(subjects.iter().map(|subject| subject.app_version.clone()))
        .texts(subjects.iter().map(|subject| subject.locale.clone()))
        .texts(subjects.iter().map(|subject| subject.timezone.clone()))
        .integers(subjects.iter().map(|subject| subject.session_number))
        .timestamps(subjects.iter().map(|subject| subject.session_active_at))
        .texts(subjects.iter().map(|subject| subject.session_ids.clone()))
        .integers(subjects.iter().map(|subject| subject.instruction_count))
        .integers(subjects.iter().map(|subject| subject.last_seq));
    tx.change_rows(
            "v(id, version, first_seen_at, last_seen_at, event_count, country, platform, app_version, locale,
               timezone, session_number, session_active_at, session_ids, instruction_count, last_seq)",
            rows,
        )
        .push(
            " UPDATE subjects SET version = subjects.version + 1, first_seen_at = v.first_seen_at,
                     last_seen_at = v.last_seen_at, event_count = v.event_count, country = v.country,
                     platform = v.platform, app_version = v.app_version, locale = v.locale,
                     timezone = v.timezone, session_number = v.session_number,
                     session_active_at = v.session_active_at, session_ids = v.session_ids,
                     instruction_count = v.instruction_count, last_seq = v.last_seq
              FROM v WHERE subjects.id = v.id AND subjects.version = v.version AND subjects.app_id",
        )
        .push(IS)
        .push_bind(app_id)
        .change(Some(subjects.len() as u64))
        .await
}

/// Stores and removes plugin states. A state takes the place of one that another plugin keeps, which nobody else removes.
pub(super) async fn write_states(
    tx: &mut Tx,
    app_id: Uuid,
    states: &[StateChange],
    now: Timestamp,
) -> Result<()> {
    let (stored, removed): (Vec<&StateChange>, Vec<&StateChange>) =
        states.iter().partition(|change| change.state.is_some());
    for chunk in stored.chunks(Rows::MOST) {
        let rows = Rows::new()
            .uuids(chunk.iter().map(|change| change.campaign_id))
            .uuids(chunk.iter().map(|change| change.subject_id))
            .texts(chunk.iter().map(|change| change.plugin.clone()))
            .bytes(chunk.iter().map(|change| change.state.clone()));
        tx.change_rows("v(campaign_id, subject_id, plugin, state)", rows)
            .push(
                " INSERT INTO plugin_states (campaign_id, subject_id, plugin, state, app_id, updated_at)
                  SELECT v.campaign_id, v.subject_id, v.plugin, v.state, ",
            )
            .push_bind(app_id)
            .push(", ")
            .push_bind(now)
            .push(
                " FROM v WHERE true ON CONFLICT (campaign_id, subject_id)
                  DO UPDATE SET state = excluded.state, merged = NULL, updated_at = excluded.updated_at,
                                plugin = excluded.plugin,
                                held_back = CASE WHEN plugin_states.plugin <> excluded.plugin THEN NULL
                                                 ELSE plugin_states.held_back END",
            )
            .change(None)
            .await?;
    }
    for chunk in removed.chunks(Rows::MOST) {
        let rows = Rows::new()
            .uuids(chunk.iter().map(|change| change.campaign_id))
            .uuids(chunk.iter().map(|change| change.subject_id))
            .texts(chunk.iter().map(|change| change.plugin.clone()));
        tx.change_rows("v(campaign_id, subject_id, plugin)", rows)
            .push(
                " DELETE FROM plugin_states
                  WHERE (campaign_id, subject_id) IN (SELECT v.campaign_id, v.subject_id FROM v)
                    AND (plugin IS NULL
                         OR (campaign_id, subject_id, plugin) IN (SELECT v.campaign_id, v.subject_id, v.plugin FROM v))
                    AND app_id = ",
            )
            .push_bind(app_id)
            .change(None)
            .await?;
    }
    Ok(())
}

/// Notes of firings that they were held back: campaigns, subjects and events. Campaigns whose plugins keep nothing
/// of a subject do not ask.
pub(super) async fn hold_back(
    tx: &mut Tx,
    app_id: Uuid,
    firings: &BTreeMap<(Uuid, Uuid), Uuid>,
) -> Result<()> {
    let firings: Vec<(&(Uuid, Uuid), &Uuid)> = firings.iter().collect();
    for chunk in firings.chunks(Rows::MOST) {
        let rows = Rows::new()
            .uuids(chunk.iter().map(|(pair, _)| pair.0))
            .uuids(chunk.iter().map(|(pair, _)| pair.1))
            .uuids(chunk.iter().map(|(_, event_id)| **event_id))
            .uuids(chunk.iter().map(|_| app_id));
        tx.with_rows("v(campaign_id, subject_id, event_id, app_id)", rows)
            .push(
                " UPDATE plugin_states SET held_back = v.event_id FROM v
                  WHERE plugin_states.campaign_id = v.campaign_id AND plugin_states.subject_id = v.subject_id
                    AND plugin_states.app_id = v.app_id",
            )
            .execute()
            .await?;
    }
    Ok(())
}

/// The same of firings that waited and are dropped with their campaigns: occasions, which are still there, and events.
pub(super) async fn hold_back_dropped(
    tx: &mut Tx,
    app_id: Uuid,
    firings: &[(Uuid, Uuid)],
) -> Result<()> {
    for chunk in firings.chunks(Rows::MOST) {
        let rows = Rows::new()
            .uuids(chunk.iter().map(|(occasion_id, _)| *occasion_id))
            .uuids(chunk.iter().map(|(_, event_id)| *event_id))
            .uuids(chunk.iter().map(|_| app_id));
        tx.with_rows("v(id, event_id, app_id)", rows)
            .push(
                " UPDATE plugin_states SET held_back = v.event_id FROM v JOIN occasions o ON o.id = v.id
                  WHERE plugin_states.campaign_id = o.campaign_id AND plugin_states.subject_id = o.subject_id
                    AND plugin_states.app_id = v.app_id",
            )
            .execute()
            .await?;
    }
    Ok(())
}

/// Removes timers: all of some campaigns and subjects, and single ones, but for those that were due before an instant.
pub(super) async fn cancel_timers(
    tx: &mut Tx,
    app_id: Uuid,
    all: &[(Uuid, Uuid, Timestamp)],
    single: &[(TimerKey, Timestamp)],
) -> Result<()> {
    for chunk in all.chunks(Rows::MOST) {
        let rows = Rows::new()
            .uuids(chunk.iter().map(|of| of.0))
            .uuids(chunk.iter().map(|of| of.1))
            .timestamps(chunk.iter().map(|of| of.2));
        tx.with_rows("v(campaign_id, subject_id, at)", rows)
            .push(
                " DELETE FROM timers WHERE (campaign_id, subject_id) IN (SELECT v.campaign_id, v.subject_id FROM v)
                    AND due_at >= (SELECT min(v.at) FROM v WHERE v.campaign_id = timers.campaign_id
                                     AND v.subject_id = timers.subject_id)
                    AND app_id = ",
            )
            .push_bind(app_id)
            .execute()
            .await?;
    }
    for chunk in single.chunks(Rows::MOST) {
        let rows = Rows::new()
            .uuids(chunk.iter().map(|((campaign_id, ..), _)| *campaign_id))
            .uuids(chunk.iter().map(|((_, subject_id, _), _)| *subject_id))
            .texts(chunk.iter().map(|((.., key), _)| key.clone()))
            .timestamps(chunk.iter().map(|(_, at)| *at));
        tx.with_rows("v(campaign_id, subject_id, key, at)", rows)
            .push(
                " DELETE FROM timers
                  WHERE (campaign_id, subject_id, key) IN (SELECT v.campaign_id, v.subject_id, v.key FROM v)
                    AND due_at >= (SELECT min(v.at) FROM v WHERE v.campaign_id = timers.campaign_id
                                     AND v.subject_id = timers.subject_id AND v.key = timers.key)
                    AND app_id = ",
            )
            .push_bind(app_id)
            .execute()
            .await?;
    }
    Ok(())
}

/// Removes the timers of a plugin that a campaign and subject have too many of, those that are due last. A plugin is
/// told of its own call's only: it does not know what earlier calls have set.
async fn delete_surplus_timers(tx: &mut Tx, app_id: Uuid, timers: &[NewTimer]) -> Result<()> {
    let limited = timers.iter().filter(|timer| timer.limited);
    let owners: BTreeSet<(Uuid, Uuid, &str)> = limited
        .map(|timer| (timer.campaign_id, timer.subject_id, &*timer.plugin))
        .collect();
    if owners.is_empty() {
        return Ok(());
    }
    let rows = Rows::new()
        .uuids(owners.iter().map(|owner| owner.0))
        .uuids(owners.iter().map(|owner| owner.1))
        .texts(owners.iter().map(|owner| owner.2.to_owned()));
    let most = i64::try_from(TIMERS_PER_SUBJECT).unwrap_or(i64::MAX);
    let deleted = tx
        .with_rows("v(campaign_id, subject_id, plugin)", rows)
        .push(
            " DELETE FROM timers WHERE id IN (
                SELECT ranked.id FROM (
                    SELECT t.id, row_number() OVER (PARTITION BY t.campaign_id, t.subject_id ORDER BY t.due_at, t.id) AS place
                    FROM timers t WHERE (t.campaign_id, t.subject_id) IN (SELECT v.campaign_id, v.subject_id FROM v)
                      AND (t.plugin IS NULL
                           OR (t.campaign_id, t.subject_id, t.plugin) IN (SELECT v.campaign_id, v.subject_id, v.plugin FROM v))
                ) ranked WHERE ranked.place > ",
        )
        .push_bind(most)
        .push(") AND app_id = ")
        .push_bind(app_id)
        .execute()
        .await?;
    if deleted > 0 {
        tracing::warn!(app.id = %app_id, timers = deleted, "a plugin has set more timers than it may");
    }
    Ok(())
}

/// Sets timers, each in place of one with the same key.
pub(super) async fn set_timers(
    tx: &mut Tx,
    app_id: Uuid,
    timers: &[NewTimer],
    now: Timestamp,
) -> Result<()> {
    for chunk in timers.chunks(Rows::MOST) {
        let rows = Rows::new()
            .uuids(chunk.iter().map(|timer| timer.id))
            .uuids(chunk.iter().map(|timer| timer.campaign_id))
            .uuids(chunk.iter().map(|timer| timer.subject_id))
            .texts(chunk.iter().map(|timer| timer.key.clone()))
            .texts(chunk.iter().map(|timer| timer.plugin.clone()))
            .timestamps(chunk.iter().map(|timer| timer.due_at))
            .bytes(chunk.iter().map(|timer| timer.payload.clone()))
            .integers(chunk.iter().map(|timer| timer.event_seq));
        tx.with_rows("v(id, campaign_id, subject_id, key, plugin, due_at, payload, event_seq)", rows)
            .push(
                " INSERT INTO timers (id, campaign_id, subject_id, key, plugin, due_at, payload, event_seq, app_id, set_at)
                  SELECT v.id, v.campaign_id, v.subject_id, v.key, v.plugin, v.due_at, v.payload, v.event_seq, ",
            )
            .push_bind(app_id)
            .push(", ")
            .push_bind(now)
            .push(
                " FROM v WHERE true ON CONFLICT (campaign_id, subject_id, key)
                  DO UPDATE SET id = excluded.id, due_at = excluded.due_at, payload = excluded.payload, plugin = excluded.plugin,
                                event_seq = excluded.event_seq, set_at = excluded.set_at, node = NULL",
            )
            .execute()
            .await?;
        delete_surplus_timers(tx, app_id, chunk).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_property_that_cannot_be_read_is_none_and_not_null() {
        assert_eq!(property("null").unwrap(), Value::Null);
        assert_eq!(property("1.5").unwrap(), Value::Number(1.5));
        assert_eq!(property("[1]").unwrap(), Value::Json("[1]".to_owned()));
        for text in ["", "{", "nul"] {
            let error = property(text).unwrap_err();
            assert_eq!(error.kind(), nudge_db::Kind::Corrupt, "{text}");
        }
    }
}
