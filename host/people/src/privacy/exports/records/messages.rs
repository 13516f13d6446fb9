//! What exports copy of what a person was shown and sent, and answered.

use nudge_db::{Result, Timestamp, Tx};
use nudge_platform::clock;
use nudge_records::deliveries::store::DeliveryRow;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{After, Key, PAGE, page, parsed, texts};

#[derive(nudge_db::FromRow)]
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
    test: bool,
}

#[derive(nudge_db::FromRow)]
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

#[derive(nudge_db::FromRow)]
struct AnswerRow {
    attempt_id: Uuid,
    survey_id: Uuid,
    question_id: String,
    value: String,
    answered_at: Timestamp,
}

pub(super) async fn instructions(tx: &mut Tx, key: Key, after: &mut After) -> Result<Vec<String>> {
    let rows: Vec<InstructionRow> = tx
        .sql(
            "SELECT id, position, kind, campaign_id, trigger_event_id, trigger_name, created_at, status, status_at,
                    suppressed_by, content, variant_id, clicked_at, action_id, test
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
            "test": row.test,
        })
    };
    Ok(texts(rows, record))
}

pub(super) async fn deliveries(tx: &mut Tx, key: Key, after: &mut After) -> Result<Vec<String>> {
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
        "actionId": row.action_id, "transitions": transitions, "createdAt": clock::to_text(row.created_at),
    })
}

pub(super) async fn survey_attempts(
    tx: &mut Tx,
    key: Key,
    after: &mut After,
) -> Result<Vec<String>> {
    let sql = "SELECT id, survey_id, survey_version, instruction_id, client_attempt_id, state, started_at, active_at,
                    completed_at
             FROM survey_attempts WHERE app_id = $1 AND subject_id = $2 AND id > $3 ORDER BY id LIMIT $4";
    let rows = page(tx, key, after, sql, |row: &AttemptRow| row.id).await?;
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
pub(super) async fn survey_answers(
    tx: &mut Tx,
    key: Key,
    after: &mut After,
) -> Result<Vec<String>> {
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
