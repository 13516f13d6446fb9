//! What results are read from.

use nudge_db::{Error, Result, Timestamp, Tx};
use nudge_platform::hidden;
use uuid::Uuid;

use super::Range;
use crate::attempts::tally::{Measure, Tally};

#[derive(nudge_db::FromRow)]
struct SumRow {
    question_id: String,
    measure: String,
    value: String,
    count: i64,
}

#[derive(nudge_db::FromRow)]
struct LiveRow {
    position_question_id: Option<String>,
    count: i64,
}

/// The counts of a survey's days, from one on and before another.
pub(super) async fn sum(
    tx: &mut Tx,
    (app_id, survey_id): (Uuid, Uuid),
    first: i64,
    last: i64,
) -> Result<Tally> {
    let rows: Vec<SumRow> = tx
        .sql(
            "SELECT question_id, measure, value, CAST(sum(count) AS BIGINT) AS count
             FROM survey_counts WHERE app_id = $1 AND survey_id = $2 AND day >= $3 AND day < $4
             GROUP BY question_id, measure, value",
        )
        .bind(app_id)
        .bind(survey_id)
        .bind(first)
        .bind(last)
        .fetch_all()
        .await?;
    let mut tally = Tally::default();
    for row in rows {
        let measure = Measure::parse(&row.measure)
            .ok_or_else(|| Error::corrupt("survey_counts", "measure", &row.measure))?;
        let key = (row.question_id, measure, row.value);
        tally.0.insert(key, row.count);
    }
    Ok(tally)
}

/// Attempts that were active after an instant and are not over, by the question that they are at. `+ 0`: few were
/// active of late, and no index but that one is to be taken.
pub(super) async fn live(
    tx: &mut Tx,
    (app_id, survey_id): (Uuid, Uuid),
    range: Range,
    active_after: Timestamp,
) -> Result<Vec<(Option<String>, i64)>> {
    let rows: Vec<LiveRow> = tx
        .sql(
            "SELECT position_question_id, count(*) AS count FROM survey_attempts
             WHERE app_id = $1 AND survey_id = $2 AND active_at > $3 AND state = 'started'
               AND started_at + 0 >= $4 AND started_at + 0 < $5 AND subject_id NOT IN ",
        )
        .push(hidden::SUBJECTS)
        .push(" GROUP BY position_question_id")
        .bind(app_id)
        .bind(survey_id)
        .bind(active_after)
        .bind(range.from)
        .bind(range.to)
        .fetch_all()
        .await?;
    let live = rows.into_iter();
    Ok(live
        .map(|row| (row.position_question_id, row.count))
        .collect())
}

/// Instructions that were shown, by when they were issued. A button that its person has answered is shown as often as it
/// was answered, which is not counted here.
pub(super) async fn shown(
    tx: &mut Tx,
    (app_id, survey_id): (Uuid, Uuid),
    range: Range,
) -> Result<i64> {
    let mut shown = 0;
    // One status after the other: each is a stretch of an index that has all that is asked for.
    for status in ["displayed", "dismissed", "clicked", "completed"] {
        let count: i64 = tx
            .sql(
                "SELECT count(*) AS count FROM instructions
                 WHERE campaign_id = $1 AND status = $2 AND created_at >= $3 AND created_at < $4
                   AND EXISTS (SELECT 1 FROM campaigns WHERE id = $1 AND app_id = $5)",
            )
            .bind(survey_id)
            .bind(status)
            .bind(range.from)
            .bind(range.to)
            .bind(app_id)
            .fetch_scalar()
            .await?;
        shown += count;
    }
    // Those of people who are being deleted are found by way of the few people.
    let count: i64 = tx
        .sql(
            "SELECT count(*) AS count FROM subjects hidden CROSS JOIN instructions i
             WHERE i.subject_id = hidden.id AND hidden.app_id = $1 AND hidden.suppressed AND i.campaign_id = $2
               AND i.created_at + 0 >= $3 AND i.created_at + 0 < $4
               AND i.status IN ('displayed', 'dismissed', 'clicked', 'completed')",
        )
        .bind(app_id)
        .bind(survey_id)
        .bind(range.from)
        .bind(range.to)
        .fetch_scalar()
        .await?;
    Ok(shown - count - answered_buttons(tx, (app_id, survey_id), range).await?)
}

/// Buttons that were shown, and have attempts of their person, but for those of people who are being deleted.
async fn answered_buttons(
    tx: &mut Tx,
    (app_id, survey_id): (Uuid, Uuid),
    range: Range,
) -> Result<i64> {
    // A survey that comes with its instructions has no such attempt: one look spares it the count. The order, and
    // the bound of ids, lead SQLite to the index of such attempts of the survey.
    let alone: Option<Uuid> = tx
        .sql(
            "SELECT id FROM survey_attempts
             WHERE app_id = $1 AND survey_id = $2 AND instruction_id IS NULL AND id > $3 ORDER BY id LIMIT 1",
        )
        .bind(app_id)
        .bind(survey_id)
        .bind(Uuid::nil())
        .fetch_value()
        .await?;
    if alone.is_none() {
        return Ok(0);
    }
    tx.sql(
        "SELECT count(*) AS count FROM instructions i
         WHERE i.app_id = $1 AND i.campaign_id = $2 AND i.status IN ('displayed', 'dismissed', 'clicked', 'completed')
           AND i.created_at >= $3 AND i.created_at < $4 AND i.kind = 'feedback'
           AND EXISTS (SELECT 1 FROM survey_attempts alone
                       WHERE alone.subject_id = i.subject_id AND alone.survey_id = $2
                         AND (alone.instruction_id IS NULL) IS TRUE)
           AND i.subject_id NOT IN ",
    )
    .push(hidden::SUBJECTS)
    .bind(app_id)
    .bind(survey_id)
    .bind(range.from)
    .bind(range.to)
    .fetch_scalar()
    .await
}

/// The newest answers in words to a question.
pub(super) async fn texts(
    tx: &mut Tx,
    (app_id, survey_id): (Uuid, Uuid),
    range: Range,
    question_id: &str,
    limit: i64,
) -> Result<Vec<String>> {
    let rows: Vec<String> = tx
        .sql(
            "SELECT value FROM survey_answers
             WHERE app_id = $1 AND survey_id = $2 AND question_id = $3 AND counted = $4
               AND started_at >= $5 AND started_at < $6 AND attempt_id NOT IN ",
        )
        .push(hidden::ATTEMPTS)
        .push(" ORDER BY answered_at DESC, attempt_id DESC LIMIT $7")
        .bind(app_id)
        .bind(survey_id)
        .bind(question_id.to_owned())
        .bind(true)
        .bind(range.from)
        .bind(range.to)
        .bind(limit)
        .fetch_values()
        .await?;
    let texts = rows
        .into_iter()
        .filter_map(|row| serde_json::from_str::<String>(&row).ok());
    Ok(texts.collect())
}
