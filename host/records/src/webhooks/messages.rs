//! Messages to webhooks, and the log of attempts.

use nudge_db::{Result, Timestamp, Tx};
use nudge_platform::hidden;
use uuid::Uuid;

/// Rows that one statement changes at the most.
pub const STEP: i64 = 500;

/// An attempt, as its endpoint's log has it.
#[derive(Debug, nudge_db::FromRow)]
pub struct AttemptRow {
    /// Its id.
    pub id: Uuid,
    /// The message.
    pub message_id: Uuid,
    /// Of which type it was.
    pub event_type: String,
    /// The how manieth it was, from 1 on.
    pub attempt: i64,
    /// When.
    pub at: Timestamp,
    /// What was answered.
    pub status_code: Option<i64>,
    /// How long the exchange took, in milliseconds.
    pub latency_ms: i64,
    /// Why it failed.
    pub error: Option<String>,
    /// When the next one is due.
    pub next_attempt_at: Option<Timestamp>,
}

/// Lists attempts at an endpoint, newest first, from below an id on; none about anybody who is being deleted.
pub async fn list_attempts(
    tx: &mut Tx,
    app_id: Uuid,
    webhook_id: Uuid,
    before: Option<Uuid>,
    limit: i64,
) -> Result<Vec<AttemptRow>> {
    tx.sql(
        "SELECT id, message_id, event_type, attempt, at, status_code, latency_ms, error, next_attempt_at
         FROM webhook_attempts WHERE app_id = $1 AND webhook_id = $2 AND message_id NOT IN ",
    )
    .push(hidden::MESSAGES)
    .bind(app_id)
    .bind(webhook_id)
    .newest_below(before, limit)
    .fetch_all()
    .await
}

#[derive(nudge_db::FromRow)]
struct PlaceRow {
    created_at: Timestamp,
    id: Uuid,
}

/// Has messages of an endpoint sent again that never arrived, some of them, from after a place on until an
/// instant; answers their places. Those that are still being tried are left to that, those about somebody who is being deleted
/// to the deletion.
pub async fn revive(
    tx: &mut Tx,
    app_id: Uuid,
    webhook_id: Uuid,
    (after, until): ((Timestamp, Uuid), Timestamp),
    now: Timestamp,
) -> Result<Vec<(Timestamp, Uuid)>> {
    let rows: Vec<PlaceRow> = tx
        .sql(
            "UPDATE webhook_messages SET state = 'pending', attempts = 0, due_at = $6 WHERE id IN (
                SELECT id FROM webhook_messages
                WHERE app_id = $1 AND webhook_id = $2 AND (created_at, id) > ($3, $4) AND created_at <= $5
                  AND state IN ('failed', 'held') AND id NOT IN ",
        )
        .push(hidden::MESSAGES)
        .push(" ORDER BY created_at, id LIMIT $7) RETURNING created_at, id")
        .bind(app_id)
        .bind(webhook_id)
        .bind(after.0)
        .bind(after.1)
        .bind(until)
        .bind(now)
        .bind(STEP)
        .fetch_all()
        .await?;
    let places = rows.into_iter().map(|row| (row.created_at, row.id));
    Ok(places.collect())
}

/// What became of a request to send a message once more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retried {
    /// It is sent next, or is being sent now.
    Due,
    /// It has arrived, and is not sent twice.
    Arrived,
}

/// Has a message of an endpoint sent as soon as can be: one that failed for good or was kept as a new one, one that waits
/// for its next attempt as the same. None: there is no such message, or it is about somebody who is being deleted.
pub async fn retry(
    tx: &mut Tx,
    app_id: Uuid,
    webhook_id: Uuid,
    id: Uuid,
    now: Timestamp,
) -> Result<Option<Retried>> {
    let state: Option<String> = tx
        .sql("SELECT state FROM webhook_messages WHERE app_id = $1 AND webhook_id = $2 AND id = $3 AND id NOT IN ")
        .push(hidden::MESSAGES)
        .bind(app_id)
        .bind(webhook_id)
        .bind(id)
        .fetch_value()
        .await?;
    match state.as_deref() {
        None => return Ok(None),
        Some("succeeded") => return Ok(Some(Retried::Arrived)),
        Some(_) => {}
    }
    tx.sql(
        "UPDATE webhook_messages SET attempts = CASE state WHEN 'pending' THEN attempts ELSE 0 END, state = 'pending',
                                     due_at = $4
         WHERE app_id = $1 AND webhook_id = $2 AND id = $3 AND node IS NULL AND state <> 'succeeded'",
    )
    .bind(app_id)
    .bind(webhook_id)
    .bind(id)
    .bind(now)
    .execute()
    .await?;
    Ok(Some(Retried::Due))
}

/// Keeps messages of an endpoint that wait to be sent without sending them, some of them, while it is disabled; answers how
/// many.
pub async fn hold(tx: &mut Tx, app_id: Uuid, webhook_id: Uuid) -> Result<u64> {
    tx.sql(
        "UPDATE webhook_messages SET state = 'held', due_at = NULL WHERE id IN (
            SELECT id FROM webhook_messages
            WHERE webhook_id = $2 AND app_id = $1 AND due_at IS NOT NULL AND node IS NULL LIMIT $3)
         AND EXISTS (SELECT 1 FROM webhooks w WHERE w.id = $2 AND w.app_id = $1 AND w.disabled_at IS NOT NULL)",
    )
    .bind(app_id)
    .bind(webhook_id)
    .bind(STEP)
    .execute()
    .await
}

/// Removes messages of an endpoint with their attempts, some of them; answers how many.
pub async fn delete_of(tx: &mut Tx, app_id: Uuid, webhook_id: Uuid) -> Result<u64> {
    tx.sql(
        "DELETE FROM webhook_messages WHERE id IN (
            SELECT id FROM webhook_messages WHERE webhook_id = $2 AND app_id = $1 LIMIT $3)",
    )
    .bind(app_id)
    .bind(webhook_id)
    .bind(STEP)
    .execute()
    .await
}

/// Removes messages of an app that were created before an instant, with their attempts, some of them; answers
/// how many.
pub async fn delete_before(tx: &mut Tx, app_id: Uuid, before: Timestamp) -> Result<u64> {
    tx.sql(
        "DELETE FROM webhook_messages WHERE id IN (
            SELECT id FROM webhook_messages WHERE app_id = $1 AND created_at < $2 LIMIT $3)",
    )
    .bind(app_id)
    .bind(before)
    .bind(STEP)
    .execute()
    .await
}
