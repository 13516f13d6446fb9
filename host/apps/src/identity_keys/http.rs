//! Routes of identity keys (contract 13).

use axum::extract::{Path, State};
use axum::http::StatusCode;
use nudge_http::cursor::Cursors;
use nudge_http::page::{Page, PageQuery};
use nudge_http::{ApiError, Code, Data, Json, Params, created};
use nudge_platform::audit::{self, Entry};
use nudge_platform::clock;
use nudge_platform::public_key::PublicKey;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{Error, IdentityKey, IdentityKeyPosition, store};
use crate::auth::Admin;
use crate::services::Shared;

/// Identity keys of an app.
pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(list_identity_keys, create_identity_key))
        .routes(routes!(delete_identity_key))
}

/// An identity key.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct IdentityKeyView {
    kid: String,
    /// `ES256`, `EdDSA` or `RS256`.
    algorithm: &'static str,
    /// SHA-256 of the `SubjectPublicKeyInfo`, in hexadecimal digits.
    fingerprint: String,
    created_at: String,
}

/// An identity key to be registered.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CreateIdentityKeyRequest {
    kid: String,
    /// A PEM text, or a JWK object.
    public_key: Value,
}

impl From<&IdentityKey> for IdentityKeyView {
    fn from(key: &IdentityKey) -> Self {
        Self {
            kid: key.kid.clone(),
            algorithm: key.key.algorithm(),
            fingerprint: key.key.fingerprint(),
            created_at: clock::to_text(key.created_at),
        }
    }
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        match error {
            Error::NotFound => Self::new(Code::NotFound),
            Error::KidTaken => Self::new(Code::IdentityKeyExists),
            Error::TooMany => Self::because(
                Code::LimitExceeded,
                format!(
                    "an app has at most {} identity keys; remove one first",
                    super::MOST
                ),
            ),
            Error::InvalidKid => Self::field(
                "/kid",
                "invalid",
                format!("kid has 1 to {} visible ASCII characters", super::MOST_KID),
            ),
            Error::Unusable(cause) => Self::field("/publicKey", "invalid", cause.to_string()),
            Error::Storage(cause) => cause.into(),
        }
    }
}

/// Lists the identity keys of an app, newest first.
#[utoipa::path(get, path = "/v1/apps/{appId}/identity-keys", tag = "apps", params(("appId" = Uuid, Path), PageQuery),
    responses((status = 200, body = Data<Page<IdentityKeyView>>)))]
pub async fn list_identity_keys(
    Admin(scope): Admin,
    State(services): State<Shared>,
    Params(query): Params<PageQuery>,
) -> Result<Data<Page<IdentityKeyView>>, ApiError> {
    let limit = query.limit()?;
    let now = services.clock.now();
    let list = format!("identity keys {}", scope.app.id);
    let cursors = Cursors::new(&services.secrets, list, now);
    let after: Option<IdentityKeyPosition> = cursors.open(query.cursor.as_deref())?;
    let mut tx = services.db.read().await?;
    let mut keys = store::list(&mut tx, scope.app.id).await?;
    drop(tx);
    // An app has so few that all are read.
    keys.sort_by_key(IdentityKey::position);
    keys.retain(|key| after.as_ref().is_none_or(|after| key.position() > *after));
    let page = cursors.page(keys, limit, IdentityKey::position);
    let data = page.map(|key| IdentityKeyView::from(&key));
    Ok(Data { data })
}

/// Registers a public key whose identity tokens are taken from the answer on.
#[utoipa::path(post, path = "/v1/apps/{appId}/identity-keys", tag = "apps", params(("appId" = Uuid, Path)),
    request_body = CreateIdentityKeyRequest, responses((status = 201, body = Data<IdentityKeyView>)))]
pub async fn create_identity_key(
    Admin(scope): Admin,
    State(services): State<Shared>,
    Json(request): Json<CreateIdentityKeyRequest>,
) -> Result<(StatusCode, Data<IdentityKeyView>), ApiError> {
    let now = services.clock.now();
    let key = IdentityKey {
        kid: request.kid,
        key: PublicKey::from_value(&request.public_key).map_err(Error::Unusable)?,
        created_at: now,
    };
    let view = IdentityKeyView::from(&key);
    let mut tx = services.db.write().await?;
    super::create(&mut tx, scope.app.id, &key).await?;
    let entry = Entry {
        app_id: scope.app.id,
        actor: &scope.actor,
        action: "identity_key.created",
        resource: format!("identity-key/{}", key.kid),
        detail: json!({"algorithm": view.algorithm, "fingerprint": view.fingerprint}),
    };
    audit::record(&mut tx, &entry, now).await?;
    tx.commit().await?;
    services.apps.refresh(scope.app.id).await?;
    Ok(created(view))
}

/// Removes a public key: identity tokens that it signed are refused at once; on other servers of the database within
/// `pipeline.pollMs` (250 ms).
#[utoipa::path(delete, path = "/v1/apps/{appId}/identity-keys/{kid}", tag = "apps",
    params(("appId" = Uuid, Path), ("kid" = String, Path)), responses((status = 204)))]
pub async fn delete_identity_key(
    Admin(scope): Admin,
    State(services): State<Shared>,
    path: Path<(String, String)>,
) -> Result<StatusCode, ApiError> {
    let Path((_, kid)) = path;
    let now = services.clock.now();
    // No kid has one, and PostgreSQL takes none.
    if kid.contains('\0') {
        return Err(ApiError::new(Code::NotFound));
    }
    let mut tx = services.db.write().await?;
    super::delete(&mut tx, scope.app.id, &kid, now).await?;
    let entry = Entry {
        app_id: scope.app.id,
        actor: &scope.actor,
        action: "identity_key.deleted",
        resource: format!("identity-key/{kid}"),
        detail: json!({}),
    };
    audit::record(&mut tx, &entry, now).await?;
    tx.commit().await?;
    services.apps.refresh(scope.app.id).await?;
    Ok(StatusCode::NO_CONTENT)
}
