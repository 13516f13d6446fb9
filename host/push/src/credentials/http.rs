//! Routes of push credentials (specification 2.7, 4.4; contract 9).

use axum::extract::State;
use axum::http::StatusCode;
use nudge_apps::auth::Admin;
use nudge_http::{ApiError, Code, Data, Json, ResourceId, created};
use nudge_platform::audit::{self, Entry};
use nudge_platform::clock;
use nudge_records::deliveries::provider::{Platform, Provider};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::{Checked, Error, Identity, Record, parse, store};
use crate::providers::Environment;
use crate::services::{Services, Shared};

/// Credentials of push services.
pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(list_push_credentials, create_push_credential))
        .routes(routes!(delete_push_credential))
}

/// A credential, without anything secret.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CredentialView {
    id: Uuid,
    platform: Platform,
    provider: Provider,
    /// What is public: `keyId`, `teamId`, `bundleId`, `environment` of Apple's; `projectId`, `clientEmail` of
    /// Google's; `publicKey`, `subject` of browsers'.
    #[schema(value_type = Object)]
    identity: Identity,
    /// SHA-256 of the public key's `SubjectPublicKeyInfo`, in hexadecimal digits.
    fingerprint: String,
    /// `active`, or `invalid` once its provider has refused it.
    status: &'static str,
    /// Why it is invalid.
    #[serde(skip_serializing_if = "Option::is_none")]
    status_reason: Option<String>,
    created_at: String,
}

/// A credential to be stored. Which members it takes depends on the platform.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CreateCredentialRequest {
    platform: Platform,
    /// `ios`: the text of Apple's .p8 file.
    p8: Option<String>,
    /// `ios`.
    key_id: Option<String>,
    /// `ios`.
    team_id: Option<String>,
    /// `ios`.
    bundle_id: Option<String>,
    /// `ios`; production unless it says otherwise.
    environment: Option<Environment>,
    /// `android`: the service account as Google gives it.
    #[schema(value_type = Option<Object>)]
    service_account: Option<Value>,
    /// `web`.
    #[schema(value_type = Option<VapidRequest>)]
    vapid: Option<Value>,
}

/// A VAPID key, or the wish for one.
#[derive(Default, ToSchema)]
#[schema(rename_all = "camelCase")]
pub struct VapidRequest {
    /// A point of P-256, uncompressed, in URL-safe Base64.
    public_key: Option<String>,
    /// 32 bytes in URL-safe Base64.
    private_key: Option<String>,
    /// A `mailto:` or `https:` URL.
    subject: Option<String>,
    /// Whether the server makes the key.
    generate: Option<bool>,
}

impl From<Record> for CredentialView {
    fn from(record: Record) -> Self {
        let platform = record.identity.platform();
        Self {
            id: record.id,
            platform,
            provider: platform.provider(),
            identity: record.identity,
            fingerprint: record.fingerprint,
            status: record.status.name(),
            status_reason: record.status_reason,
            created_at: clock::to_text(record.created_at),
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
                    "an app has at most {} push credentials; remove one first",
                    super::MOST
                ),
            ),
            Error::Seal(cause) => Self::internal(cause),
            Error::Storage(cause) => cause.into(),
        }
    }
}

impl CreateCredentialRequest {
    fn check(self, services: &Services) -> Result<Checked, ApiError> {
        self.refuse_others()?;
        match self.platform {
            Platform::Ios => parse::apple(
                &required("/p8", self.p8)?,
                required("/keyId", self.key_id)?,
                required("/teamId", self.team_id)?,
                required("/bundleId", self.bundle_id)?,
                self.environment.unwrap_or_default(),
            ),
            Platform::Android => {
                let account = required("/serviceAccount", self.service_account)?;
                parse::google(object("/serviceAccount", &account)?)
            }
            Platform::Web => {
                let vapid = required("/vapid", self.vapid)?;
                VapidRequest::read(object("/vapid", &vapid)?)?.check(services)
            }
        }
    }

    /// Members of other platforms are mistakes.
    fn refuse_others(&self) -> Result<(), ApiError> {
        let present = [
            ("/p8", Platform::Ios, self.p8.is_some()),
            ("/keyId", Platform::Ios, self.key_id.is_some()),
            ("/teamId", Platform::Ios, self.team_id.is_some()),
            ("/bundleId", Platform::Ios, self.bundle_id.is_some()),
            ("/environment", Platform::Ios, self.environment.is_some()),
            (
                "/serviceAccount",
                Platform::Android,
                self.service_account.is_some(),
            ),
            ("/vapid", Platform::Web, self.vapid.is_some()),
        ];
        for (pointer, platform, is_present) in present {
            if is_present && platform != self.platform {
                let detail = format!("only the platform {} has it", platform.name());
                return Err(ApiError::field(pointer, "unknown_key", detail));
            }
        }
        Ok(())
    }
}

/// An object with a secret in it. What it is instead is not repeated, as messages of the general parser would.
fn object<'a>(pointer: &str, value: &'a Value) -> Result<&'a Map<String, Value>, ApiError> {
    let refused = || ApiError::field(pointer, "invalid", "must be an object");
    value.as_object().ok_or_else(refused)
}

impl VapidRequest {
    fn read(members: &Map<String, Value>) -> Result<Self, ApiError> {
        let mut read = Self::default();
        for (name, value) in members {
            let text = value.as_str().map(str::to_owned);
            let taken = match name.as_str() {
                "publicKey" => set(&mut read.public_key, text),
                "privateKey" => set(&mut read.private_key, text),
                "subject" => set(&mut read.subject, text),
                "generate" => set(&mut read.generate, value.as_bool()),
                _ => {
                    let detail = "a VAPID key has publicKey, privateKey, subject and generate";
                    return Err(ApiError::field("/vapid", "unknown_key", detail));
                }
            };
            if !taken && !value.is_null() {
                let pointer = format!("/vapid/{name}");
                return Err(ApiError::field(pointer, "invalid", "has another type"));
            }
        }
        Ok(read)
    }

    fn check(self, services: &Services) -> Result<Checked, ApiError> {
        if self.generate == Some(true) {
            if self.public_key.is_some() || self.private_key.is_some() {
                let detail = "send a key or generate, not both";
                return Err(ApiError::field("/vapid/generate", "invalid", detail));
            }
            let address = Some(services.public_url.clone());
            let reachable = address.filter(|url| url.starts_with("https://"));
            return parse::generate(self.subject.or(reachable));
        }
        parse::vapid(
            &required("/vapid/publicKey", self.public_key)?,
            &required("/vapid/privateKey", self.private_key)?,
            Some(required("/vapid/subject", self.subject)?),
        )
    }
}

fn set<T>(slot: &mut Option<T>, value: Option<T>) -> bool {
    *slot = value;
    slot.is_some()
}

fn required<T>(pointer: &str, value: Option<T>) -> Result<T, ApiError> {
    value.ok_or_else(|| ApiError::field(pointer, "required", "the platform takes it"))
}

/// Lists the push credentials of an app, newest first.
#[utoipa::path(get, path = "/v1/apps/{appId}/push/credentials", tag = "push", params(("appId" = Uuid, Path)),
    responses((status = 200, body = Data<Vec<CredentialView>>)))]
pub async fn list_push_credentials(
    Admin(scope): Admin,
    State(services): State<Shared>,
) -> Result<Data<Vec<CredentialView>>, ApiError> {
    let mut tx = services.db.read().await?;
    let records = store::list(&mut tx, scope.app.id).await?;
    Ok(Data {
        data: records.into_iter().map(CredentialView::from).collect(),
    })
}

/// Stores a push credential. Of a platform and environment the newest is used.
#[utoipa::path(post, path = "/v1/apps/{appId}/push/credentials", tag = "push", params(("appId" = Uuid, Path)),
    request_body = CreateCredentialRequest, responses((status = 201, body = Data<CredentialView>)))]
pub async fn create_push_credential(
    Admin(scope): Admin,
    State(services): State<Shared>,
    Json(request): Json<CreateCredentialRequest>,
) -> Result<(StatusCode, Data<CredentialView>), ApiError> {
    let now = services.clock.now();
    let checked = request.check(&services)?;
    let mut tx = services.db.write().await?;
    let record = super::create(&mut tx, &services.secrets, scope.app.id, checked, now).await?;
    let entry = Entry {
        app_id: scope.app.id,
        actor: &scope.actor,
        action: "push_credential.created",
        resource: format!("push-credential/{}", record.id),
        detail: json!({"identity": record.identity, "fingerprint": record.fingerprint}),
    };
    audit::record(&mut tx, &entry, now).await?;
    tx.commit().await?;
    services.providers.credentials_changed(scope.app.id);
    Ok(created(record.into()))
}

/// Removes a push credential; the one before it is used again.
#[utoipa::path(delete, path = "/v1/apps/{appId}/push/credentials/{credId}", tag = "push",
    params(("appId" = Uuid, Path), ("credId" = Uuid, Path)), responses((status = 204)))]
pub async fn delete_push_credential(
    Admin(scope): Admin,
    ResourceId(id): ResourceId,
    State(services): State<Shared>,
) -> Result<StatusCode, ApiError> {
    let now = services.clock.now();
    let mut tx = services.db.write().await?;
    if !store::delete(&mut tx, scope.app.id, id).await? {
        return Err(Error::NotFound.into());
    }
    let entry = Entry {
        app_id: scope.app.id,
        actor: &scope.actor,
        action: "push_credential.deleted",
        resource: format!("push-credential/{id}"),
        detail: json!({}),
    };
    audit::record(&mut tx, &entry, now).await?;
    tx.commit().await?;
    services.providers.credentials_changed(scope.app.id);
    Ok(StatusCode::NO_CONTENT)
}
