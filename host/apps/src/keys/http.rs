//! Routes of keys (contract 13).

use axum::extract::State;
use axum::http::StatusCode;
use nudge_http::cursor::Cursors;
use nudge_http::page::{Page, PageQuery};
use nudge_http::{ApiError, Code, Data, Json, Params, ResourceId, created};
use nudge_platform::audit::{self, Entry};
use nudge_platform::clock;
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::store::{self, KeyRow};
use super::{Error, Wanted, uses};
use crate::auth::Admin;
use crate::key::Kind;
use crate::services::Shared;

/// Keys of an app.
pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(list_keys, create_key))
        .routes(routes!(revoke_key))
}

/// A key without what is secret of it.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct KeyView {
    id: Uuid,
    /// `write`, `server` or `api`.
    kind: String,
    name: String,
    scopes: Vec<String>,
    created_at: String,
    /// To about a minute.
    last_used_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<String>,
}

/// A key that was just made.
#[derive(Debug, Serialize, ToSchema)]
pub struct NewKeyView {
    #[serde(flatten)]
    view: KeyView,
    /// What the caller sends. It is never shown again.
    key: String,
}

/// A key to be made.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CreateKeyRequest {
    kind: Kind,
    name: String,
    #[serde(default)]
    scopes: Vec<String>,
    expires_at: Option<String>,
}

impl From<KeyRow> for KeyView {
    fn from(row: KeyRow) -> Self {
        Self {
            id: row.id,
            kind: row.kind,
            name: row.name,
            scopes: row.scopes.split_whitespace().map(str::to_owned).collect(),
            created_at: clock::to_text(row.created_at),
            last_used_at: row.last_used_at.map(clock::to_text),
            expires_at: row.expires_at.map(clock::to_text),
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
                    "an app has at most {} live keys, and 1000 with expired ones; revoke some first",
                    super::MOST
                ),
            ),
            Error::Invalid(errors) => Self::fields(Code::ValidationFailed, errors),
            Error::Storage(cause) => cause.into(),
        }
    }
}

/// Lists the keys of an app that are not revoked, newest first.
#[utoipa::path(get, path = "/v1/apps/{appId}/keys", tag = "apps",
    params(("appId" = Uuid, Path), PageQuery), responses((status = 200, body = Data<Page<KeyView>>)))]
pub async fn list_keys(
    Admin(scope): Admin,
    State(services): State<Shared>,
    Params(query): Params<PageQuery>,
) -> Result<Data<Page<KeyView>>, ApiError> {
    let limit = query.limit()?;
    let now = services.clock.now();
    let list = format!("keys {}", scope.app.id);
    let cursors = Cursors::new(&services.secrets, list, now);
    let before = cursors.open(query.cursor.as_deref())?;
    uses::flush(&services).await?;
    let mut tx = services.db.read().await?;
    let found = store::list(&mut tx, scope.app.id, before, i64::from(limit) + 1).await?;
    let data = cursors.page(found, limit, |row| row.id).map(KeyView::from);
    Ok(Data { data })
}

/// Makes a key; the answer is the only one that shows it.
#[utoipa::path(post, path = "/v1/apps/{appId}/keys", tag = "apps", params(("appId" = Uuid, Path)),
    request_body = CreateKeyRequest, responses((status = 201, body = Data<NewKeyView>)))]
pub async fn create_key(
    Admin(scope): Admin,
    State(services): State<Shared>,
    Json(request): Json<CreateKeyRequest>,
) -> Result<(StatusCode, Data<NewKeyView>), ApiError> {
    let expires_at = match request.expires_at.as_deref() {
        None => None,
        Some(text) => Some(clock::from_text(text).ok_or_else(|| {
            ApiError::field(
                "/expiresAt",
                "invalid",
                "an ISO 8601 instant with an offset",
            )
        })?),
    };
    let wanted = Wanted {
        kind: request.kind,
        name: request.name,
        scopes: request.scopes,
        expires_at,
    };
    let now = services.clock.now();
    let (app_id, workspace_id) = (scope.app.id, scope.app.workspace_id);
    let mut tx = services.db.write().await?;
    let (id, key) = super::create(&mut tx, app_id, workspace_id, &wanted, now).await?;
    let entry = Entry {
        app_id,
        actor: &scope.actor,
        action: "key.created",
        resource: format!("key/{id}"),
        detail: json!({"kind": wanted.kind, "name": wanted.name, "scopes": wanted.scopes}),
    };
    audit::record(&mut tx, &entry, now).await?;
    tx.commit().await?;
    services.apps.refresh(app_id).await?;
    let view = KeyView {
        id,
        kind: wanted.kind.name().to_owned(),
        name: wanted.name,
        scopes: wanted.scopes,
        created_at: clock::to_text(now),
        last_used_at: None,
        expires_at: expires_at.map(clock::to_text),
    };
    Ok(created(NewKeyView {
        view,
        key: key.text,
    }))
}

/// Revokes a key: it stops working at once; on other servers of the database within `pipeline.pollMs` (250 ms).
#[utoipa::path(delete, path = "/v1/apps/{appId}/keys/{keyId}", tag = "apps",
    params(("appId" = Uuid, Path), ("keyId" = Uuid, Path)), responses((status = 204)))]
pub async fn revoke_key(
    Admin(scope): Admin,
    State(services): State<Shared>,
    ResourceId(id): ResourceId,
) -> Result<StatusCode, ApiError> {
    let now = services.clock.now();
    let mut tx = services.db.write().await?;
    super::revoke(&mut tx, scope.app.id, id, now).await?;
    let entry = Entry {
        app_id: scope.app.id,
        actor: &scope.actor,
        action: "key.revoked",
        resource: format!("key/{id}"),
        detail: json!({}),
    };
    audit::record(&mut tx, &entry, now).await?;
    tx.commit().await?;
    services.apps.refresh(scope.app.id).await?;
    services.polls.wake_all();
    Ok(StatusCode::NO_CONTENT)
}
