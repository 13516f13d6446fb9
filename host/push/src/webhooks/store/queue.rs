//! Which process sends which message, and what came of it, in the database. A server's processes share all apps.

use nudge_apps::webhooks::in_hand::ClaimedMessage;
use nudge_db::{IS, Result, Rows, Timestamp, Tx};
use nudge_platform::claims::Claims;
use uuid::Uuid;

/// Rows that one statement changes at the most.
const STEP: i64 = 500;

/// An endpoint that messages may be sent to now.
#[derive(Clone, Debug, nudge_db::FromRow)]
pub(crate) struct EndpointRow {
    pub id: Uuid,
    pub app_id: Uuid,
    pub url: String,
    /// Since when it only fails.
    pub failing_since: Option<Timestamp>,
}

/// What came of an attempt.
#[derive(Clone, Debug)]
pub(crate) struct AttemptOutcome {
    pub attempt_id: Uuid,
    pub message_id: Uuid,
    pub app_id: Uuid,
    pub webhook_id: Uuid,
    pub delivery_id: Uuid,
    pub event_type: String,
    pub attempt: i64,
    pub at: Timestamp,
    pub status: Option<i64>,
    pub latency_ms: i64,
    pub error: Option<String>,
    /// `succeeded`, `failed`, or `pending` with a time.
    pub state: &'static str,
    /// Whether it was no attempt at all: it counts nowhere and is in no log.
    pub put_off: bool,
    pub next_attempt_at: Option<Timestamp>,
}

/// What attempts at an endpoint mean for its health.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Change {
    /// Whether any succeeded.
    pub succeeded: bool,
    /// Those that failed after the last that succeeded.
    pub failures: i64,
    /// The first of those.
    pub failing_since: Option<Timestamp>,
    pub last_success_at: Option<Timestamp>,
    pub last_failure_at: Option<Timestamp>,
    pub last_status: Option<i64>,
    pub last_error: Option<String>,
}

/// Whether any message waits, due or not, that no process has.
pub(crate) async fn anything_waits(tx: &mut Tx) -> Result<bool> {
    let waiting: Option<Uuid> = tx
        .sql(
            "SELECT webhook_id FROM webhook_messages WHERE due_at IS NOT NULL AND node IS NULL
             ORDER BY webhook_id LIMIT 1",
        )
        .fetch_value()
        .await?;
    Ok(waiting.is_some())
}

/// The endpoints with messages to be sent now that no process has in hand. Goes from endpoint to endpoint, so
/// that it costs a few look-ups for each that has messages at all, however many those are.
pub(crate) async fn due(tx: &mut Tx, now: Timestamp) -> Result<Vec<EndpointRow>> {
    tx.sql(
        "WITH RECURSIVE e(webhook_id) AS (
            SELECT f.webhook_id FROM (
                SELECT webhook_id FROM webhook_messages WHERE due_at IS NOT NULL AND node IS NULL
                ORDER BY webhook_id LIMIT 1) f
            UNION ALL
            SELECT (SELECT m.webhook_id FROM webhook_messages m
                    WHERE m.due_at IS NOT NULL AND m.node IS NULL AND m.webhook_id > e.webhook_id
                    ORDER BY m.webhook_id LIMIT 1)
            FROM e WHERE e.webhook_id IS NOT NULL)
         SELECT w.id, w.app_id, w.url, w.failing_since FROM e
         JOIN webhooks w ON w.id = e.webhook_id JOIN apps a ON a.id = w.app_id
         WHERE w.active AND w.disabled_at IS NULL AND EXISTS (
            SELECT 1 FROM webhook_messages m
            WHERE m.webhook_id = e.webhook_id AND m.due_at <= $1 AND m.node IS NULL)
         ORDER BY w.id",
    )
    .bind(now)
    .fetch_all()
    .await
}

/// Endpoints by their ids, but those that are gone or are told nothing now.
pub(crate) async fn endpoints(
    tx: &mut Tx,
    webhook_ids: impl IntoIterator<Item = Uuid>,
) -> Result<Vec<EndpointRow>> {
    tx.with_rows("v(id)", Rows::new().uuids(webhook_ids))
        .push(
            " SELECT w.id, w.app_id, w.url, w.failing_since FROM v
              JOIN webhooks w ON w.id = v.id JOIN apps a ON a.id = w.app_id
              WHERE w.active AND w.disabled_at IS NULL",
        )
        .fetch_all()
        .await
}

/// Lets messages be sent now that the clock, which was set back, would keep waiting for longer than they were to: those
/// whose last attempt was after `latest`, and of those without one the ones that are due after `deferred`. Answers of how
/// many it did so; there may be more.
pub(crate) async fn advance(
    tx: &mut Tx,
    now: Timestamp,
    latest: Timestamp,
    deferred: Timestamp,
) -> Result<u64> {
    let skip_locked = tx.dialect().skip_locked();
    tx.sql(
        "UPDATE webhook_messages SET due_at = $1 WHERE id IN (
            SELECT m.id FROM webhook_messages m WHERE m.due_at > $1 AND m.node IS NULL
              AND ((m.attempts = 0 AND m.due_at > $3) OR EXISTS (
                SELECT 1 FROM webhook_attempts a
                WHERE a.message_id = m.id AND a.attempt = m.attempts AND a.at > $2))
            LIMIT $4",
    )
    .bind(now)
    .bind(latest)
    .bind(deferred)
    .bind(STEP)
    .push(skip_locked)
    .push(")")
    .execute()
    .await
}

/// Claims messages of an endpoint, those that are due longest first. A message waits for the earlier ones of its
/// delivery that may still arrive.
pub(crate) async fn claim(
    tx: &mut Tx,
    node: Uuid,
    webhook: &EndpointRow,
    now: Timestamp,
    limit: usize,
) -> Result<Vec<ClaimedMessage>> {
    let skip_locked = tx.dialect().skip_locked();
    tx.sql(
        "UPDATE webhook_messages SET node = $4 WHERE id IN (
            SELECT m.id FROM webhook_messages m
            WHERE m.webhook_id = $1 AND m.app_id = $2 AND m.due_at <= $3 AND m.node IS NULL
              AND NOT EXISTS (SELECT 1 FROM webhook_messages e
                  WHERE e.webhook_id = m.webhook_id AND e.delivery_id = m.delivery_id
                    AND e.position < m.position AND e.due_at IS NOT NULL)
            ORDER BY m.due_at LIMIT $5",
    )
    .bind(webhook.id)
    .bind(webhook.app_id)
    .bind(now)
    .bind(node)
    .bind(i64::try_from(limit).unwrap_or(i64::MAX))
    .push(skip_locked)
    .push(") RETURNING id, delivery_id, event_type, body, attempts")
    .fetch_all()
    .await
}

/// Puts messages of an endpoint off that wait for earlier ones of their delivery which are not due, so that they
/// do not stand in the way of others: until the last of those that are due before `until`, or else until that.
pub(crate) async fn defer(
    tx: &mut Tx,
    webhook: &EndpointRow,
    now: Timestamp,
    until: Timestamp,
) -> Result<()> {
    tx.sql(
        "UPDATE webhook_messages SET due_at = COALESCE((
            SELECT max(e.due_at) FROM webhook_messages e
            WHERE e.webhook_id = webhook_messages.webhook_id AND e.delivery_id = webhook_messages.delivery_id
              AND e.position < webhook_messages.position AND e.due_at > $3 AND e.due_at < $4), $4)
         WHERE id IN (
            SELECT m.id FROM webhook_messages m
            WHERE m.webhook_id = $1 AND m.app_id = $2 AND m.due_at <= $3 AND m.node IS NULL
              AND EXISTS (SELECT 1 FROM webhook_messages e
                  WHERE e.webhook_id = m.webhook_id AND e.delivery_id = m.delivery_id
                    AND e.position < m.position AND e.due_at > $3)
            LIMIT $5)",
    )
    .bind(webhook.id)
    .bind(webhook.app_id)
    .bind(now)
    .bind(until)
    .bind(STEP)
    .execute()
    .await?;
    Ok(())
}

/// Notes what came of messages that this process has in hand; answers which those were. Others are gone, or
/// another process has them.
pub(crate) async fn settle(
    tx: &mut Tx,
    node: Uuid,
    outcomes: &[AttemptOutcome],
) -> Result<Vec<Uuid>> {
    let mut settled = Vec::with_capacity(outcomes.len());
    for chunk in outcomes.chunks(Rows::MOST) {
        let rows = Rows::new()
            .uuids(chunk.iter().map(|outcome| outcome.message_id))
            .texts(chunk.iter().map(|outcome| outcome.state.to_owned()))
            .integers(chunk.iter().map(|outcome| outcome.attempt))
            .timestamps(chunk.iter().map(|outcome| outcome.next_attempt_at));
        let ids: Vec<Uuid> = tx
            .with_rows("v(message_id, new_state, attempt, next_at)", rows)
            .push(
                " UPDATE webhook_messages SET state = v.new_state, attempts = v.attempt, due_at = v.next_at, node = NULL
                  FROM v WHERE webhook_messages.id = v.message_id AND webhook_messages.node",
            )
            .push(IS)
            .push_bind(node)
            .push(" RETURNING id")
            .fetch_values()
            .await?;
        settled.extend(ids);
    }
    Ok(settled)
}

/// Adds attempts to the log.
pub(crate) async fn insert_attempts(tx: &mut Tx, outcomes: &[&AttemptOutcome]) -> Result<()> {
    for chunk in outcomes.chunks(Rows::MOST) {
        let rows = Rows::new()
            .uuids(chunk.iter().map(|outcome| outcome.attempt_id))
            .uuids(chunk.iter().map(|outcome| outcome.app_id))
            .uuids(chunk.iter().map(|outcome| outcome.webhook_id))
            .uuids(chunk.iter().map(|outcome| outcome.message_id))
            .texts(chunk.iter().map(|outcome| outcome.event_type.clone()))
            .integers(chunk.iter().map(|outcome| outcome.attempt))
            .timestamps(chunk.iter().map(|outcome| outcome.at))
            .integers(chunk.iter().map(|outcome| outcome.status))
            .integers(chunk.iter().map(|outcome| outcome.latency_ms))
            .texts(chunk.iter().map(|outcome| outcome.error.clone()))
            .timestamps(chunk.iter().map(|outcome| outcome.next_attempt_at));
        tx.with_rows(
            "v(id, app_id, webhook_id, message_id, event_type, attempt, at, status_code, latency_ms, error,
               next_attempt_at)",
            rows,
        )
        .push(
            " INSERT INTO webhook_attempts (id, app_id, webhook_id, message_id, event_type, attempt, at, status_code,
                                            latency_ms, error, next_attempt_at)
              SELECT id, app_id, webhook_id, message_id, event_type, attempt, at, status_code, latency_ms, error,
                     next_attempt_at
              FROM v WHERE true",
        )
        .execute()
        .await?;
    }
    Ok(())
}

/// Lets messages be sent that were put off because of one that has ended since. The sum keeps SQLite from going
/// through all that the endpoint has to be sent later, rather than through the delivery's.
pub(crate) async fn follow(tx: &mut Tx, ended: &[&AttemptOutcome], now: Timestamp) -> Result<()> {
    for chunk in ended.chunks(Rows::MOST) {
        let rows = Rows::new()
            .uuids(chunk.iter().map(|outcome| outcome.webhook_id))
            .uuids(chunk.iter().map(|outcome| outcome.delivery_id));
        tx.with_rows("v(of_webhook, of_delivery)", rows)
            .push(" UPDATE webhook_messages SET due_at = ")
            .push_bind(now)
            .push(
                " FROM v WHERE webhook_messages.webhook_id = v.of_webhook
                    AND webhook_messages.delivery_id = v.of_delivery
                    AND webhook_messages.attempts = 0 AND webhook_messages.node IS NULL
                    AND webhook_messages.due_at IS NOT NULL AND webhook_messages.due_at + 0 > ",
            )
            .push_bind(now)
            .execute()
            .await?;
    }
    Ok(())
}

/// Notes how an endpoint fares; answers since when it only fails.
pub(crate) async fn note(
    tx: &mut Tx,
    app_id: Uuid,
    webhook_id: Uuid,
    change: &Change,
) -> Result<Option<Timestamp>> {
    let row = tx
        .sql(
            "UPDATE webhooks SET
                consecutive_failures = CASE WHEN $3 THEN $4 ELSE consecutive_failures + $4 END,
                failing_since = CASE WHEN $3 THEN $5 ELSE COALESCE(failing_since, $5) END,
                last_success_at = COALESCE($6, last_success_at),
                last_failure_at = COALESCE($7, last_failure_at),
                last_status_code = COALESCE($8, last_status_code),
                last_error = COALESCE($9, last_error)
             WHERE app_id = $1 AND id = $2 RETURNING failing_since",
        )
        .bind(app_id)
        .bind(webhook_id)
        .bind(change.succeeded)
        .bind(change.failures)
        .bind(change.failing_since)
        .bind(change.last_success_at)
        .bind(change.last_failure_at)
        .bind(change.last_status)
        .bind(change.last_error.clone())
        .fetch_value::<Option<Timestamp>>()
        .await?;
    Ok(row.flatten())
}

/// Gives an endpoint up; answers whether that is new.
pub(crate) async fn disable(
    tx: &mut Tx,
    app_id: Uuid,
    webhook_id: Uuid,
    now: Timestamp,
) -> Result<bool> {
    let disabled = tx
        .sql("UPDATE webhooks SET disabled_at = $3 WHERE app_id = $1 AND id = $2 AND disabled_at IS NULL")
        .bind(app_id)
        .bind(webhook_id)
        .bind(now)
        .execute()
        .await?;
    Ok(disabled == 1)
}

/// The claims of messages.
pub(crate) const CLAIMS: Claims = Claims {
    rows: "messages",
    claimed: "SELECT id FROM webhook_messages WHERE node = $1",
    table: "webhook_messages",
};
