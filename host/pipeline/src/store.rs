//! What the pipeline reads and writes.

pub(super) mod plugin_states;
pub(super) mod timers;

use std::collections::HashMap;

use nudge_db::{Error, IS, Result, Rows, Tx};
use nudge_records::events::store::RequestKey;
use nudge_wasm::Value;
use uuid::Uuid;

use super::claims::HAS_EARLIER;
use super::earlier;
use super::projection::Subject;

#[derive(nudge_db::FromRow)]
struct SubjectRow {
    alias: i64,
    #[sqlx(flatten)]
    subject: Subject,
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
