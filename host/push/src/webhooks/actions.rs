//! Routes of what can be done with a webhook: another secret, a test, its attempts, sending again (contract 10).

use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use nudge_apps::auth::Admin;
use nudge_apps::webhooks;
use nudge_http::body::OptionalJson;
use nudge_http::cursor::Cursors;
use nudge_http::page::{Page, PageQuery};
use nudge_http::query::since;
use nudge_http::{ApiError, Code, Data, Json, NestedId, Params, ResourceId};
use nudge_platform::clock;
use nudge_records::webhooks::messages::{self, AttemptRow, Retried};
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::http::{WebhookView, find, record};
use super::request::{self, Outgoing};
use super::{Error, KEPT, Secret, recover, secrets_of, store};
use crate::services::Shared;

/// Actions on endpoints and their messages.
pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(rotate_webhook_secret))
        .routes(routes!(test_webhook))
        .routes(routes!(enable_webhook))
        .routes(routes!(list_webhook_attempts))
        .routes(routes!(recover_webhook))
        .routes(routes!(retry_webhook_message))
}

/// How long both secrets sign unless a rotation says otherwise.
const GRACE_SECONDS: u64 = 86_400;
/// How long they do at the most: a week.
const MOST_GRACE_SECONDS: u64 = 604_800;
/// How far a caller's clock may be behind when it asks for all that is kept.
const LEEWAY: Duration = Duration::from_mins(1);

/// How a secret is replaced.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RotateRequest {
    /// How long the old secret signs beside the new one: 0 to 604800, 86400 unless given. Secrets from before it
    /// sign as long as they were to; with 0 none does any longer.
    grace_period_seconds: Option<u64>,
}

/// What came of a test.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = WebhookTestView)]
#[serde(rename_all = "camelCase")]
pub struct TestView {
    /// What was answered; absent if no whole answer came.
    #[serde(skip_serializing_if = "Option::is_none")]
    status_code: Option<u16>,
    latency_ms: i64,
    /// Why it did not arrive.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// A time that a message was sent.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = WebhookAttemptView)]
#[serde(rename_all = "camelCase")]
pub struct AttemptView {
    id: Uuid,
    message_id: Uuid,
    event_type: String,
    attempt: i64,
    at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    status_code: Option<i64>,
    latency_ms: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_attempt_at: Option<String>,
}

/// What is to be sent again.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RecoverRequest {
    /// From here on: an ISO 8601 instant, or a day (UTC); 14 days ago at most.
    since: String,
}

/// A message that is sent once more.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = WebhookRetryView)]
#[serde(rename_all = "camelCase")]
pub struct RetryView {
    message_id: Uuid,
    status: &'static str,
}

/// A recovery that was queued.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RecoverView {
    /// The job, as `GET /v1/apps/{appId}/jobs/{id}` shows it.
    job_id: Uuid,
    status: &'static str,
}

impl From<AttemptRow> for AttemptView {
    fn from(row: AttemptRow) -> Self {
        Self {
            id: row.id,
            message_id: row.message_id,
            event_type: row.event_type,
            attempt: row.attempt,
            at: clock::to_text(row.at),
            status_code: row.status_code,
            latency_ms: row.latency_ms,
            error: row.error,
            next_attempt_at: row.next_attempt_at.map(clock::to_text),
        }
    }
}

/// Gives a webhook another secret, which the answer has, this once. The old one signs beside it for a while.
#[utoipa::path(post, path = "/v1/apps/{appId}/push/webhooks/{webhookId}/rotate-secret", tag = "webhooks",
    params(("appId" = Uuid, Path), ("webhookId" = Uuid, Path)), request_body = Option<RotateRequest>,
    responses((status = 200, body = Data<WebhookView>)))]
pub async fn rotate_webhook_secret(
    Admin(scope): Admin,
    State(services): State<Shared>,
    ResourceId(id): ResourceId,
    OptionalJson(request): OptionalJson<RotateRequest>,
) -> Result<Data<WebhookView>, ApiError> {
    let grace = request.grace_period_seconds.unwrap_or(GRACE_SECONDS);
    if grace > MOST_GRACE_SECONDS {
        let detail = format!("0 to {MOST_GRACE_SECONDS} seconds");
        return Err(ApiError::field(
            "/gracePeriodSeconds",
            "out_of_range",
            detail,
        ));
    }
    let now = services.clock.now();
    let secret = Secret::random();
    let mut tx = services.db.write().await?;
    // Two at once would each let the other's secret expire.
    if !store::lock(&mut tx, scope.app.id, id).await? {
        return Err(Error::NotFound.into());
    }
    let webhook = store::find(&mut tx, scope.app.id, id).await?;
    let webhook = webhook.ok_or(Error::NotFound)?;
    let grace = Duration::from_secs(grace);
    super::rotate(&mut tx, &services.secrets, &webhook, &secret, grace, now).await?;
    record(&mut tx, &scope, "webhook.secret_rotated", &webhook, now).await?;
    tx.commit().await?;
    Ok(Data {
        data: WebhookView::with_secret(webhook, &secret),
    })
}

/// Sends the event `ping` to a webhook now, once, and tells what was answered. It says nothing of the webhook's
/// health and is not in the log of attempts.
#[utoipa::path(post, path = "/v1/apps/{appId}/push/webhooks/{webhookId}/test", tag = "webhooks",
    params(("appId" = Uuid, Path), ("webhookId" = Uuid, Path)),
    responses((status = 200, body = Data<TestView>)))]
pub async fn test_webhook(
    Admin(scope): Admin,
    State(services): State<Shared>,
    ResourceId(id): ResourceId,
) -> Result<Data<TestView>, ApiError> {
    let webhook = find(&services, &scope, id).await?;
    let now = services.clock.now();
    let mut tx = services.db.write().await?;
    let secrets = secrets_of(&mut tx, &services.secrets, id, now).await?;
    record(&mut tx, &scope, "webhook.tested", &webhook, now).await?;
    tx.commit().await?;
    let message_id = nudge_platform::id::new(now);
    let data = json!({"webhookId": id});
    let body = webhooks::body(message_id, "ping", scope.app.id, now, &data);
    let outgoing = Outgoing {
        app_id: scope.app.id,
        url: &webhook.url,
        secrets: &secrets,
        id: message_id,
        event: "ping",
        attempt: 1,
        body: &body,
        at: now,
    };
    let exchange = request::send(&services.webhooks, &outgoing).await;
    Ok(Data {
        data: TestView {
            status_code: exchange.status,
            latency_ms: exchange.latency_ms,
            error: exchange.error,
        },
    })
}

/// Lets a webhook begin anew that was disabled because it only failed. What happened meanwhile is kept for
/// `recover`.
#[utoipa::path(post, path = "/v1/apps/{appId}/push/webhooks/{webhookId}/enable", tag = "webhooks",
    params(("appId" = Uuid, Path), ("webhookId" = Uuid, Path)),
    responses((status = 200, body = Data<WebhookView>)))]
pub async fn enable_webhook(
    Admin(scope): Admin,
    State(services): State<Shared>,
    ResourceId(id): ResourceId,
) -> Result<Data<WebhookView>, ApiError> {
    let now = services.clock.now();
    let mut tx = services.db.write().await?;
    let webhook = super::enable(&mut tx, scope.app.id, id, now).await?;
    record(&mut tx, &scope, "webhook.enabled", &webhook, now).await?;
    tx.commit().await?;
    services.apps.refresh(scope.app.id).await?;
    services.webhooks.ring();
    Ok(Data {
        data: webhook.into(),
    })
}

/// Lists the times that messages were sent to a webhook, newest first; for 14 days.
#[utoipa::path(get, path = "/v1/apps/{appId}/push/webhooks/{webhookId}/attempts", tag = "webhooks",
    params(("appId" = Uuid, Path), ("webhookId" = Uuid, Path), PageQuery),
    responses((status = 200, body = Data<Page<AttemptView>>)))]
pub async fn list_webhook_attempts(
    Admin(scope): Admin,
    State(services): State<Shared>,
    ResourceId(id): ResourceId,
    Params(query): Params<PageQuery>,
) -> Result<Data<Page<AttemptView>>, ApiError> {
    let limit = query.limit()?;
    let webhook = find(&services, &scope, id).await?;
    let now = services.clock.now();
    let list = format!("webhook attempts {id}");
    let cursors = Cursors::new(&services.secrets, list, now);
    let before = cursors.open(query.cursor.as_deref())?;
    let mut tx = services.db.read().await?;
    let limit_and_one = i64::from(limit) + 1;
    let (app_id, id) = (scope.app.id, webhook.id);
    let found = messages::list_attempts(&mut tx, app_id, id, before, limit_and_one).await?;
    let data = cursors
        .page(found, limit, |row| row.id)
        .map(AttemptView::from);
    Ok(Data { data })
}

/// Sends again what never arrived at a webhook: what failed for good, and what was kept while it was disabled.
#[utoipa::path(post, path = "/v1/apps/{appId}/push/webhooks/{webhookId}/recover", tag = "webhooks",
    params(("appId" = Uuid, Path), ("webhookId" = Uuid, Path)), request_body = RecoverRequest,
    responses((status = 202, body = Data<RecoverView>)))]
pub async fn recover_webhook(
    Admin(scope): Admin,
    State(services): State<Shared>,
    ResourceId(id): ResourceId,
    Json(request): Json<RecoverRequest>,
) -> Result<(StatusCode, Data<RecoverView>), ApiError> {
    let now = services.clock.now();
    let since = since("since", &request.since)?;
    if since < now.minus(KEPT + LEEWAY) {
        let detail = "messages are kept for 14 days";
        return Err(ApiError::field("/since", "out_of_range", detail));
    }
    let webhook = find(&services, &scope, id).await?;
    let mut tx = services.db.write().await?;
    let queued = recover::queue(&mut tx, &webhook, since, &scope.actor, now).await?;
    let job_id = queued.ok_or_else(|| {
        let most = recover::MOST_AT_ONCE;
        let detail = format!("an app has at most {most} recoveries at a time");
        ApiError::because(Code::LimitExceeded, detail)
    })?;
    record(&mut tx, &scope, "webhook.recovered", &webhook, now).await?;
    tx.commit().await?;
    services.jobs.wake();
    let data = RecoverView {
        job_id,
        status: "queued",
    };
    Ok((StatusCode::ACCEPTED, Data { data }))
}

/// Sends one message again that has not arrived: one that failed for good, was kept while the webhook was disabled, or
/// waits for its next attempt. It keeps its id.
#[utoipa::path(post, path = "/v1/apps/{appId}/push/webhooks/{webhookId}/messages/{messageId}/retry", tag = "webhooks",
    params(("appId" = Uuid, Path), ("webhookId" = Uuid, Path), ("messageId" = Uuid, Path)),
    responses((status = 202, body = Data<RetryView>)))]
pub async fn retry_webhook_message(
    Admin(scope): Admin,
    State(services): State<Shared>,
    NestedId { outer, inner }: NestedId,
) -> Result<(StatusCode, Data<RetryView>), ApiError> {
    let now = services.clock.now();
    let webhook = find(&services, &scope, outer).await?;
    let mut tx = services.db.write().await?;
    let retried = messages::retry(&mut tx, scope.app.id, webhook.id, inner, now).await?;
    match retried.ok_or(ApiError::new(Code::NotFound))? {
        Retried::Due => {}
        Retried::Arrived => return Err(ApiError::new(Code::MessageArrived)),
    }
    record(&mut tx, &scope, "webhook.message_retried", &webhook, now).await?;
    tx.commit().await?;
    services.webhooks.ring();
    let data = RetryView {
        message_id: inner,
        status: "queued",
    };
    Ok((StatusCode::ACCEPTED, Data { data }))
}
