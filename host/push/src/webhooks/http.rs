//! Routes of webhooks: the endpoints themselves (specification 4.5, contract 10). What can be done with one is in
//! [`super::actions`].

use axum::extract::State;
use axum::http::StatusCode;
use nudge_apps::auth::{Admin, Scope};
use nudge_campaigns::webhooks::EventType;
use nudge_db::{Timestamp, Tx};
use nudge_http::cursor::Cursors;
use nudge_http::page::{Page, PageQuery};
use nudge_http::precondition::IfMatch;
use nudge_http::{ApiError, Code, Data, Json, Params, ResourceId, created};
use nudge_platform::audit::{self, Entry};
use nudge_platform::clock;
use nudge_platform::field_error::FieldError;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::{Error, Health, Secret, Webhook, clear, store};
use crate::services::Shared;

/// Endpoints that are told of push deliveries.
pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(list_webhooks, create_webhook))
        .routes(routes!(get_webhook, update_webhook, delete_webhook))
}

/// A webhook.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct WebhookView {
    id: Uuid,
    url: String,
    event_types: Vec<EventType>,
    active: bool,
    description: String,
    version: i64,
    created_at: String,
    updated_at: String,
    health: HealthView,
    /// `whsec_` and the Base64 of the 32 bytes that requests are signed with. Only where it is new.
    #[serde(skip_serializing_if = "Option::is_none")]
    secret: Option<String>,
}

/// How a webhook fares.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = WebhookHealthView)]
#[serde(rename_all = "camelCase")]
pub struct HealthView {
    state: HealthState,
    /// Failed attempts since the last one that succeeded.
    consecutive_failures: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_success_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_failure_at: Option<String>,
    /// The status that was answered last.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_status_code: Option<i64>,
    /// Why an attempt failed last.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_error: Option<String>,
}

/// How a webhook fares, in a word.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum HealthState {
    /// The last attempt succeeded, or there was none.
    Healthy,
    /// The last attempt failed.
    Degraded,
    /// All attempts failed for so long that none are made any longer. `enable` begins anew.
    Disabled,
}

/// What of a webhook can be changed.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WebhookRequest {
    /// Where requests go: `https`, on the public internet.
    url: String,
    /// What it is told of: `sent`, `delivered`, `displayed`, `opened`, `clicked`, `dismissed`, `bounced`, `failed` of deliveries;
    /// `plugin.rolled_back`, `plugin.degraded`, `dead_letter.created`.
    event_types: Vec<String>,
    #[serde(default = "yes")]
    active: bool,
    #[serde(default)]
    description: String,
}

fn yes() -> bool {
    true
}

impl WebhookView {
    /// With the secret, where it is new.
    pub(super) fn with_secret(webhook: Webhook, secret: &Secret) -> Self {
        Self {
            secret: Some(secret.text()),
            ..Self::from(webhook)
        }
    }
}

impl From<Webhook> for WebhookView {
    fn from(webhook: Webhook) -> Self {
        Self {
            id: webhook.id,
            url: webhook.url,
            event_types: webhook.event_types,
            active: webhook.active,
            description: webhook.description,
            version: webhook.version,
            created_at: clock::to_text(webhook.created_at),
            updated_at: clock::to_text(webhook.updated_at),
            health: webhook.health.into(),
            secret: None,
        }
    }
}

impl From<Health> for HealthView {
    fn from(health: Health) -> Self {
        let state = match (health.disabled_at, health.consecutive_failures) {
            (Some(_), _) => HealthState::Disabled,
            (None, 0) => HealthState::Healthy,
            (None, _) => HealthState::Degraded,
        };
        Self {
            state,
            consecutive_failures: health.consecutive_failures,
            last_success_at: health.last_success_at.map(clock::to_text),
            last_failure_at: health.last_failure_at.map(clock::to_text),
            last_status_code: health.last_status_code,
            last_error: health.last_error,
        }
    }
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        match error {
            Error::NotFound => Self::new(Code::NotFound),
            Error::TooMany => Self::because(
                Code::LimitExceeded,
                format!(
                    "an app has at most {} webhooks; remove one first",
                    super::MOST
                ),
            ),
            Error::VersionMismatch => Self::overtaken(),
            Error::Url(cause) => {
                let field = FieldError::new("/url", cause.code(), cause.to_string());
                Self::fields(Code::WebhookUrlNotAllowed, vec![field]).with_detail(cause.to_string())
            }
            Error::Secret(cause) => Self::internal(cause),
            Error::Storage(cause) => cause.into(),
        }
    }
}

/// Lists the webhooks of an app, newest first.
#[utoipa::path(get, path = "/v1/apps/{appId}/push/webhooks", tag = "webhooks",
    params(("appId" = Uuid, Path), PageQuery), responses((status = 200, body = Data<Page<WebhookView>>)))]
pub async fn list_webhooks(
    Admin(scope): Admin,
    State(services): State<Shared>,
    Params(query): Params<PageQuery>,
) -> Result<Data<Page<WebhookView>>, ApiError> {
    let limit = query.limit()?;
    let now = services.clock.now();
    let list = format!("webhooks {}", scope.app.id);
    let cursors = Cursors::new(&services.secrets, list, now);
    let before = cursors.open(query.cursor.as_deref())?;
    let mut tx = services.db.read().await?;
    let found = store::list(&mut tx, scope.app.id, before, i64::from(limit) + 1).await?;
    let data = cursors
        .page(found, limit, |row| row.id)
        .map(WebhookView::from);
    Ok(Data { data })
}

/// Subscribes an endpoint to what becomes of push deliveries. The answer has its secret, this once.
#[utoipa::path(post, path = "/v1/apps/{appId}/push/webhooks", tag = "webhooks",
    params(("appId" = Uuid, Path)), request_body = WebhookRequest,
    responses((status = 201, body = Data<WebhookView>)))]
pub async fn create_webhook(
    Admin(scope): Admin,
    State(services): State<Shared>,
    Json(request): Json<WebhookRequest>,
) -> Result<(StatusCode, Data<WebhookView>), ApiError> {
    let event_types = check(&request)?;
    let guard = &services.webhooks.guard;
    guard
        .check_resolved(scope.app.id, &request.url)
        .await
        .map_err(Error::from)?;
    let now = services.clock.now();
    let webhook = Webhook {
        id: nudge_platform::id::new(now),
        app_id: scope.app.id,
        url: request.url,
        event_types,
        active: request.active,
        description: request.description,
        version: 1,
        created_at: now,
        updated_at: now,
        health: Health::default(),
    };
    let secret = Secret::random();
    let mut tx = services.db.write().await?;
    super::create(&mut tx, &services.secrets, &webhook, &secret).await?;
    record(&mut tx, &scope, "webhook.created", &webhook, now).await?;
    tx.commit().await?;
    services.apps.refresh(scope.app.id).await?;
    Ok(created(WebhookView::with_secret(webhook, &secret)))
}

/// Reads a webhook.
#[utoipa::path(get, path = "/v1/apps/{appId}/push/webhooks/{webhookId}", tag = "webhooks",
    params(("appId" = Uuid, Path), ("webhookId" = Uuid, Path)),
    responses((status = 200, body = Data<WebhookView>)))]
pub async fn get_webhook(
    Admin(scope): Admin,
    State(services): State<Shared>,
    ResourceId(id): ResourceId,
) -> Result<Data<WebhookView>, ApiError> {
    let found = find(&services, &scope, id).await?;
    Ok(Data { data: found.into() })
}

/// Changes a webhook (JSON merge patch). What waits to be sent goes to the new URL; to one that is not active
/// nothing is sent, and nothing new is kept for it.
#[utoipa::path(patch, path = "/v1/apps/{appId}/push/webhooks/{webhookId}", tag = "webhooks",
    params(("appId" = Uuid, Path), ("webhookId" = Uuid, Path)), request_body = Value,
    responses((status = 200, body = Data<WebhookView>)))]
pub async fn update_webhook(
    Admin(scope): Admin,
    State(services): State<Shared>,
    ResourceId(id): ResourceId,
    if_match: IfMatch,
    Json(patch): Json<Map<String, Value>>,
) -> Result<Data<WebhookView>, ApiError> {
    let current = find(&services, &scope, id).await?;
    if_match.check(current.version)?;
    let request = changed(&current, patch)?;
    let event_types = check(&request)?;
    if request.url != current.url {
        let guard = &services.webhooks.guard;
        guard
            .check_resolved(scope.app.id, &request.url)
            .await
            .map_err(Error::from)?;
    }
    let now = services.clock.now();
    let webhook = Webhook {
        url: request.url,
        event_types,
        active: request.active,
        description: request.description,
        version: current.version + 1,
        updated_at: now,
        ..current
    };
    let mut tx = services.db.write().await?;
    super::update(&mut tx, &webhook).await?;
    let webhook = store::find(&mut tx, scope.app.id, id).await?;
    let webhook = webhook.ok_or(Error::NotFound)?;
    record(&mut tx, &scope, "webhook.updated", &webhook, now).await?;
    tx.commit().await?;
    services.apps.refresh(scope.app.id).await?;
    services.webhooks.ring();
    Ok(Data {
        data: webhook.into(),
    })
}

/// Removes a webhook, with everything that was to be sent to it.
#[utoipa::path(delete, path = "/v1/apps/{appId}/push/webhooks/{webhookId}", tag = "webhooks",
    params(("appId" = Uuid, Path), ("webhookId" = Uuid, Path)), responses((status = 204)))]
pub async fn delete_webhook(
    Admin(scope): Admin,
    State(services): State<Shared>,
    ResourceId(id): ResourceId,
    if_match: IfMatch,
) -> Result<StatusCode, ApiError> {
    let now = services.clock.now();
    let mut tx = services.db.write().await?;
    store::lock(&mut tx, scope.app.id, id).await?;
    let webhook = store::find(&mut tx, scope.app.id, id).await?;
    let webhook = webhook.ok_or(Error::NotFound)?;
    if_match.check(webhook.version)?;
    super::delete(&mut tx, scope.app.id, id, now).await?;
    clear::queue(&mut tx, scope.app.id, id, &scope.actor, now).await?;
    record(&mut tx, &scope, "webhook.deleted", &webhook, now).await?;
    tx.commit().await?;
    services.apps.refresh(scope.app.id).await?;
    services.jobs.wake();
    Ok(StatusCode::NO_CONTENT)
}

/// The webhook of an id.
pub(super) async fn find(services: &Shared, scope: &Scope, id: Uuid) -> Result<Webhook, ApiError> {
    let mut tx = services.db.read().await?;
    let found = store::find(&mut tx, scope.app.id, id).await?;
    Ok(found.ok_or(Error::NotFound)?)
}

/// Adds what was done to a webhook to the audit log. Of its URL only the host is told: paths have secrets.
pub(super) async fn record(
    tx: &mut Tx,
    scope: &Scope,
    action: &'static str,
    webhook: &Webhook,
    now: Timestamp,
) -> nudge_db::Result<()> {
    let url = reqwest::Url::parse(&webhook.url).ok();
    let host = url.as_ref().and_then(reqwest::Url::host_str);
    let entry = Entry {
        app_id: scope.app.id,
        actor: &scope.actor,
        action,
        resource: format!("webhook/{}", webhook.id),
        detail: json!({"host": host, "active": webhook.active, "eventTypes": webhook.event_types}),
    };
    audit::record(tx, &entry, now).await
}

/// What a patch makes of a webhook.
fn changed(current: &Webhook, patch: Map<String, Value>) -> Result<WebhookRequest, ApiError> {
    let request = WebhookRequest {
        url: current.url.clone(),
        event_types: current
            .event_types
            .iter()
            .map(|event| event.name().to_owned())
            .collect(),
        active: current.active,
        description: current.description.clone(),
    };
    nudge_http::merge::patched(&request, patch)
}

/// Checks everything but the URL; answers the types, each once.
fn check(request: &WebhookRequest) -> Result<Vec<EventType>, ApiError> {
    let mut errors = Vec::new();
    let mut event_types = Vec::new();
    for (index, name) in request.event_types.iter().enumerate() {
        match EventType::of(name) {
            Some(event) if event_types.contains(&event) => {}
            Some(event) => event_types.push(event),
            None => {
                let names: Vec<&str> = EventType::ALL.iter().map(|event| event.name()).collect();
                let detail = format!("must be one of {}", names.join(", "));
                let pointer = format!("/eventTypes/{index}");
                errors.push(FieldError::new(pointer, "unknown_event_type", detail));
            }
        }
        if errors.len() > EventType::ALL.len() {
            break;
        }
    }
    if request.event_types.is_empty() {
        let detail = "name at least one event type; to be told nothing, set active to false";
        errors.push(FieldError::new("/eventTypes", "required", detail));
    }
    if request.description.chars().count() > super::MOST_DESCRIPTION
        || request.description.contains('\0')
    {
        let detail = format!(
            "a description has at most {} characters and no NUL",
            super::MOST_DESCRIPTION
        );
        errors.push(FieldError::new("/description", "invalid", detail));
    }
    if errors.is_empty() {
        return Ok(event_types);
    }
    Err(ApiError::fields(Code::ValidationFailed, errors))
}
