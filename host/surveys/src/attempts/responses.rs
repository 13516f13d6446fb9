//! Answers of a survey, newest first (specification 4.3).

use nudge_db::{Result, Timestamp, Tx};
use nudge_platform::hidden;
use uuid::Uuid;

use super::analytics::Range;

/// Answers that a count is exact up to (contract 0).
pub const MOST_COUNTED: i64 = 10_000;

/// An answer.
#[derive(Debug, nudge_db::FromRow)]
pub struct ResponseRow {
    /// The attempt.
    pub attempt_id: Uuid,
    /// The question.
    pub question_id: String,
    /// The answer, as JSON.
    pub value: String,
    /// When it was given.
    pub answered_at: Timestamp,
}

/// Answers that were given within a range. What lies before the page is passed over in an index that has all that
/// it takes.
pub async fn page(
    tx: &mut Tx,
    (app_id, survey_id): (Uuid, Uuid),
    range: Range,
    offset: i64,
    limit: i64,
) -> Result<Vec<ResponseRow>> {
    tx.sql(
        "SELECT n.attempt_id, n.question_id, n.value, n.answered_at
         FROM (SELECT attempt_id, question_id FROM survey_answers
               WHERE survey_id = $2 AND counted = $5 AND answered_at >= $3 AND answered_at < $4 AND attempt_id NOT IN ",
    )
    .push(hidden::ATTEMPTS)
    .push(
        " ORDER BY answered_at DESC, attempt_id DESC, question_id DESC LIMIT $6 OFFSET $7) p
         JOIN survey_answers n ON n.attempt_id = p.attempt_id AND n.question_id = p.question_id AND n.app_id = $1
         ORDER BY n.answered_at DESC, n.attempt_id DESC, n.question_id DESC",
    )
    .bind(app_id)
    .bind(survey_id)
    .bind(range.from)
    .bind(range.to)
    .bind(true)
    .bind(limit)
    .bind(offset)
    .fetch_all()
    .await
}

/// A position in the answers of a survey.
pub type ResponsePosition = (Timestamp, Uuid, String);

impl ResponseRow {
    /// Its position.
    pub fn position(&self) -> ResponsePosition {
        let question_id = self.question_id.clone();
        (self.answered_at, self.attempt_id, question_id)
    }
}

/// Answers that were given within a range, from after a position on.
pub async fn after(
    tx: &mut Tx,
    (app_id, survey_id): (Uuid, Uuid),
    range: Range,
    after: Option<ResponsePosition>,
    limit: i64,
) -> Result<Vec<ResponseRow>> {
    let mut statement = tx
        .sql(
            "SELECT n.attempt_id, n.question_id, n.value, n.answered_at FROM survey_answers n
             WHERE n.app_id = $1 AND n.survey_id = $2 AND n.counted = $5 AND n.answered_at >= $3 AND n.answered_at < $4
               AND n.attempt_id NOT IN ",
        )
        .push(hidden::ATTEMPTS)
        .bind(app_id)
        .bind(survey_id)
        .bind(range.from)
        .bind(range.to)
        .bind(true);
    if let Some((answered_at, attempt_id, question_id)) = after {
        statement = statement
            .push(" AND (n.answered_at, n.attempt_id, n.question_id) < (")
            .push_bind(answered_at)
            .push(", ")
            .push_bind(attempt_id)
            .push(", ")
            .push_bind(question_id)
            .push(")");
    }
    statement
        .push(" ORDER BY n.answered_at DESC, n.attempt_id DESC, n.question_id DESC LIMIT ")
        .push_bind(limit)
        .fetch_all()
        .await
}

/// How many answers were given within a range, up to one more than [`MOST_COUNTED`].
pub async fn count(tx: &mut Tx, (app_id, survey_id): (Uuid, Uuid), range: Range) -> Result<i64> {
    tx
        .sql(
            "SELECT count(*) AS count FROM (
                SELECT 1 FROM survey_answers
                WHERE survey_id = $2 AND counted = $5 AND answered_at >= $3 AND answered_at < $4
                  AND EXISTS (SELECT 1 FROM campaigns WHERE id = $2 AND app_id = $1) AND attempt_id NOT IN ",
        )
        .push(hidden::ATTEMPTS)
        .push(" LIMIT $6) AS counted")
        .bind(app_id)
        .bind(survey_id)
        .bind(range.from)
        .bind(range.to)
        .bind(true)
        .bind(MOST_COUNTED + 1)
        .fetch_scalar()
        .await
}
