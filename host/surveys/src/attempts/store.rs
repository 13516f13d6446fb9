//! Attempts, answers and counts in the database.

use nudge_db::{Error, Result, Rows, Timestamp, Tx};
use nudge_platform::hidden;
use serde_json::Value;
use uuid::Uuid;

use super::tally::Tally;
use super::{Answer, Attempt, State};

/// The length of a day of the counts, in microseconds.
pub const DAY: i64 = 86_400_000_000;

/// The day of the counts that an instant is in.
pub fn day_of(at: Timestamp) -> i64 {
    at.0.div_euclid(DAY)
}

#[derive(nudge_db::FromRow)]
pub(super) struct AttemptRow {
    id: Uuid,
    app_id: Uuid,
    survey_id: Uuid,
    survey_version: i64,
    subject_id: Uuid,
    instruction_id: Option<Uuid>,
    client_attempt_id: Option<Uuid>,
    state: String,
    started_at: Timestamp,
    active_at: Timestamp,
    completed_at: Option<Timestamp>,
    last_question_id: Option<String>,
    position_question_id: Option<String>,
}

/// The columns of an [`AttemptRow`], of an attempt `a`.
const ATTEMPT_COLUMNS: &str =
    "a.id, a.app_id, a.survey_id, a.survey_version, a.subject_id, a.instruction_id, a.client_attempt_id, a.state,
     a.started_at, a.active_at, a.completed_at, a.last_question_id, a.position_question_id";

#[derive(nudge_db::FromRow)]
pub(super) struct AnswerRow {
    pub(super) attempt_id: Uuid,
    pub(super) question_id: String,
    /// As JSON.
    pub(super) value: String,
    pub(super) counted: bool,
    pub(super) answered_at: Timestamp,
}

impl AttemptRow {
    pub(super) fn read(self) -> Result<Attempt> {
        let state = State::parse(&self.state)
            .ok_or_else(|| Error::corrupt("survey_attempts", "state", &self.state))?;
        Ok(Attempt {
            id: self.id,
            app_id: self.app_id,
            survey_id: self.survey_id,
            survey_version: self.survey_version,
            subject_id: self.subject_id,
            instruction_id: self.instruction_id,
            client_attempt_id: self.client_attempt_id,
            state,
            started_at: self.started_at,
            active_at: self.active_at,
            completed_at: self.completed_at,
            last_question_id: self.last_question_id,
            position_question_id: self.position_question_id,
        })
    }
}

/// Finds an attempt.
pub async fn find(tx: &mut Tx, app_id: Uuid, id: Uuid) -> Result<Option<Attempt>> {
    let row: Option<AttemptRow> = tx
        .sql("SELECT ")
        .push(ATTEMPT_COLUMNS)
        .push(" FROM survey_attempts a WHERE a.app_id = $1 AND a.id = $2")
        .bind(app_id)
        .bind(id)
        .fetch_optional()
        .await?;
    row.map(AttemptRow::read).transpose()
}

/// Finds a subject's attempt at a survey by the SDK's own id of it.
pub async fn find_by_client(
    tx: &mut Tx,
    app_id: Uuid,
    subject_id: Uuid,
    survey_id: Uuid,
    client_attempt_id: Uuid,
) -> Result<Option<Attempt>> {
    let row: Option<AttemptRow> = tx
        .sql("SELECT ")
        .push(ATTEMPT_COLUMNS)
        .push(
            " FROM survey_attempts a
              WHERE a.app_id = $1 AND a.subject_id = $2 AND a.survey_id = $3 AND a.client_attempt_id = $4",
        )
        .bind(app_id)
        .bind(subject_id)
        .bind(survey_id)
        .bind(client_attempt_id)
        .fetch_optional()
        .await?;
    row.map(AttemptRow::read).transpose()
}

/// A subject's attempts, some of them.
pub async fn of_subject(
    tx: &mut Tx,
    app_id: Uuid,
    subject_id: Uuid,
    limit: i64,
) -> Result<Vec<Attempt>> {
    let rows: Vec<AttemptRow> = tx
        .sql("SELECT ")
        .push(ATTEMPT_COLUMNS)
        .push(" FROM survey_attempts a WHERE a.app_id = $1 AND a.subject_id = $2 LIMIT $3")
        .bind(app_id)
        .bind(subject_id)
        .bind(limit)
        .fetch_all()
        .await?;
    rows.into_iter().map(AttemptRow::read).collect()
}

/// Whose attempts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// Everybody's: of who is being deleted too, as long as the attempts are in the counts.
    Everybody,
    /// Of nobody who is being deleted.
    Shown,
    /// Of those alone who are being deleted.
    Hidden,
}

/// A person's attempts, newest first, after one of them.
pub async fn list_of_subject(
    tx: &mut Tx,
    (app_id, subject_id): (Uuid, Uuid),
    after: Option<(Timestamp, Uuid)>,
    limit: i64,
) -> Result<Vec<Attempt>> {
    let mut statement = tx
        .sql("SELECT ")
        .push(ATTEMPT_COLUMNS)
        .push(" FROM survey_attempts a WHERE a.app_id = $1 AND a.subject_id = $2 AND a.subject_id NOT IN ")
        .push(hidden::SUBJECTS)
        .bind(app_id)
        .bind(subject_id);
    if let Some((started_at, id)) = after {
        statement = statement
            .push(" AND (a.started_at, a.id) < ")
            .push_pair(started_at, id);
    }
    let rows: Vec<AttemptRow> = statement
        .push(" ORDER BY a.started_at DESC, a.id DESC LIMIT ")
        .push_bind(limit)
        .fetch_all()
        .await?;
    rows.into_iter().map(AttemptRow::read).collect()
}

/// A survey's attempts that began from an instant on and before another, newest first, after one of them.
pub async fn list(
    tx: &mut Tx,
    (app_id, survey_id): (Uuid, Uuid),
    (from, to): (Timestamp, Timestamp),
    after: Option<(Timestamp, Uuid)>,
    limit: i64,
    whose: Whose,
) -> Result<Vec<Attempt>> {
    let mut statement = tx
        .sql("SELECT ")
        .push(ATTEMPT_COLUMNS)
        .push(match whose {
            Whose::Everybody | Whose::Shown => " FROM survey_attempts a WHERE",
            // By way of the few people.
            Whose::Hidden => {
                " FROM subjects hidden CROSS JOIN survey_attempts a
                 WHERE a.subject_id = hidden.id AND hidden.app_id = $1 AND hidden.suppressed AND"
            }
        })
        .push(" a.app_id = $1 AND a.survey_id = $2 AND a.started_at >= $3 AND a.started_at < $4")
        .bind(app_id)
        .bind(survey_id)
        .bind(from)
        .bind(to);
    if whose == Whose::Shown {
        statement = statement
            .push(" AND a.subject_id NOT IN ")
            .push(hidden::SUBJECTS);
    }
    if let Some((started_at, id)) = after {
        statement = statement
            .push(" AND (a.started_at, a.id) < ")
            .push_pair(started_at, id);
    }
    let rows: Vec<AttemptRow> = statement
        .push(" ORDER BY a.started_at DESC, a.id DESC LIMIT ")
        .push_bind(limit)
        .fetch_all()
        .await?;
    rows.into_iter().map(AttemptRow::read).collect()
}

/// Adds an attempt.
pub async fn insert(tx: &mut Tx, attempt: &Attempt) -> Result<()> {
    tx.sql(
        "INSERT INTO survey_attempts (id, app_id, survey_id, survey_version, subject_id, instruction_id,
                                      client_attempt_id, state, started_at, active_at, completed_at,
                                      last_question_id, position_question_id)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)",
    )
    .bind(attempt.id)
    .bind(attempt.app_id)
    .bind(attempt.survey_id)
    .bind(attempt.survey_version)
    .bind(attempt.subject_id)
    .bind(attempt.instruction_id)
    .bind(attempt.client_attempt_id)
    .bind(attempt.state.name())
    .bind(attempt.started_at)
    .bind(attempt.active_at)
    .bind(attempt.completed_at)
    .bind(attempt.last_question_id.clone())
    .bind(attempt.position_question_id.clone())
    .execute()
    .await?;
    Ok(())
}

/// Writes how an attempt stands. One that was deleted meanwhile is an error of kind `Serialization`.
pub async fn update(tx: &mut Tx, attempt: &Attempt) -> Result<()> {
    let updated = tx
        .sql(
            "UPDATE survey_attempts SET state = $3, active_at = $4, completed_at = $5, last_question_id = $6,
                    position_question_id = $7
             WHERE app_id = $1 AND id = $2",
        )
        .bind(attempt.app_id)
        .bind(attempt.id)
        .bind(attempt.state.name())
        .bind(attempt.active_at)
        .bind(attempt.completed_at)
        .bind(attempt.last_question_id.clone())
        .bind(attempt.position_question_id.clone())
        .execute()
        .await?;
    if updated == 1 {
        Ok(())
    } else {
        Err(Error::lost_race())
    }
}

/// Removes an attempt with its answers; answers how many answers it had.
pub async fn delete(tx: &mut Tx, app_id: Uuid, id: Uuid) -> Result<u64> {
    let answers = tx
        .sql("DELETE FROM survey_answers WHERE app_id = $1 AND attempt_id = $2")
        .bind(app_id)
        .bind(id)
        .execute()
        .await?;
    tx.sql("DELETE FROM survey_attempts WHERE app_id = $1 AND id = $2")
        .bind(app_id)
        .bind(id)
        .execute()
        .await?;
    Ok(answers)
}

/// The answers of attempts: each with its attempt and question, oldest first.
pub async fn answers(
    tx: &mut Tx,
    app_id: Uuid,
    attempts: &[Uuid],
) -> Result<Vec<(Uuid, String, Answer)>> {
    let read = |row: AnswerRow| {
        let value: Value = serde_json::from_str(&row.value)
            .map_err(|cause| Error::corrupt("survey_answers", "value", cause))?;
        let answer = Answer {
            value,
            counted: row.counted,
            answered_at: row.answered_at,
        };
        Ok((row.attempt_id, row.question_id, answer))
    };
    let rows = answer_rows(tx, app_id, attempts).await?;
    rows.into_iter().map(read).collect()
}

/// The answers of attempts as they are stored, oldest first.
pub(super) async fn answer_rows(
    tx: &mut Tx,
    app_id: Uuid,
    attempts: &[Uuid],
) -> Result<Vec<AnswerRow>> {
    let mut found = Vec::new();
    for chunk in attempts.chunks(Rows::MOST) {
        let rows: Vec<AnswerRow> = tx
            .with_rows("v(id)", Rows::new().uuids(chunk.iter().copied()))
            .push(
                " SELECT n.attempt_id, n.question_id, n.value, n.counted, n.answered_at
                  FROM v JOIN survey_answers n ON n.attempt_id = v.id AND n.app_id = ",
            )
            .push_bind(app_id)
            .push(" ORDER BY n.answered_at, n.question_id")
            .fetch_all()
            .await?;
        found.extend(rows);
    }
    Ok(found)
}

/// Adds answers of an attempt, or replaces them.
pub async fn write_answers(
    tx: &mut Tx,
    attempt: &Attempt,
    answers: impl Iterator<Item = (&String, &Answer)>,
) -> Result<()> {
    let answers: Vec<(&String, &Answer)> = answers.collect();
    for chunk in answers.chunks(Rows::MOST) {
        let rows = Rows::new()
            .texts(chunk.iter().map(|(id, _)| (*id).clone()))
            .texts(chunk.iter().map(|(_, answer)| answer.value.to_string()))
            .booleans(chunk.iter().map(|(_, answer)| answer.counted))
            .timestamps(chunk.iter().map(|(_, answer)| answer.answered_at));
        tx.with_rows("v(question_id, value, counted, answered_at)", rows)
            .push(
                " INSERT INTO survey_answers (question_id, value, counted, answered_at, attempt_id, app_id, survey_id,
                                              started_at)
                  SELECT v.question_id, v.value, v.counted, v.answered_at, ",
            )
            .push_bind(attempt.id)
            .push(", ")
            .push_bind(attempt.app_id)
            .push(", ")
            .push_bind(attempt.survey_id)
            .push(", ")
            .push_bind(attempt.started_at)
            .push(
                " FROM v WHERE true
                  ON CONFLICT (attempt_id, question_id) DO UPDATE SET value = excluded.value,
                      counted = excluded.counted, answered_at = excluded.answered_at",
            )
            .execute()
            .await?;
    }
    Ok(())
}

/// Changes the counts of the day on which an attempt began. Rows that count nothing any longer are removed: a
/// value may say something of the person who gave it.
pub async fn count(tx: &mut Tx, attempt: &Attempt, change: &Tally) -> Result<()> {
    let day = day_of(attempt.started_at);
    add_counts(tx, (attempt.app_id, attempt.survey_id), day, change).await?;
    if change.0.values().any(|count| *count < 0) {
        tx.sql(
            "DELETE FROM survey_counts WHERE app_id = $1 AND survey_id = $2 AND day = $3 AND count = 0",
        )
        .bind(attempt.app_id)
        .bind(attempt.survey_id)
        .bind(day)
        .execute()
        .await?;
    }
    Ok(())
}

/// Adds to the counts of a survey's day. Their `total` is what earlier versions added numbers up in. The rows are changed in the
/// order of their keys, so that transactions that meet wait for each other, and none for ever.
pub async fn add_counts(
    tx: &mut Tx,
    (app_id, survey_id): (Uuid, Uuid),
    day: i64,
    change: &Tally,
) -> Result<()> {
    let changes: Vec<_> = change.0.iter().collect();
    for chunk in changes.chunks(Rows::MOST) {
        let rows = Rows::new()
            .texts(chunk.iter().map(|((question, ..), _)| question.clone()))
            .texts(
                chunk
                    .iter()
                    .map(|((_, measure, _), _)| measure.name().to_owned()),
            )
            .texts(chunk.iter().map(|((.., value), _)| value.clone()))
            .integers(chunk.iter().map(|(_, count)| **count));
        tx.with_rows("v(question_id, measure, value, count)", rows)
            .push(
                " INSERT INTO survey_counts (question_id, measure, value, count, total, survey_id, day, app_id)
                  SELECT v.question_id, v.measure, v.value, v.count, 0, ",
            )
            .push_bind(survey_id)
            .push(", ")
            .push_bind(day)
            .push(", ")
            .push_bind(app_id)
            .push(
                " FROM v WHERE true ORDER BY v.question_id, v.measure, v.value
                  ON CONFLICT (survey_id, day, question_id, measure, value) DO UPDATE SET
                      count = survey_counts.count + excluded.count",
            )
            .execute()
            .await?;
    }
    Ok(())
}

/// How many attempts at a survey are complete.
pub async fn completed(tx: &mut Tx, app_id: Uuid, survey_id: Uuid) -> Result<i64> {
    tx.sql(
        "SELECT CAST(COALESCE(sum(count), 0) AS BIGINT) AS count FROM survey_counts
             WHERE app_id = $1 AND survey_id = $2 AND question_id = '' AND measure = 'completed'",
    )
    .bind(app_id)
    .bind(survey_id)
    .fetch_scalar()
    .await
}
