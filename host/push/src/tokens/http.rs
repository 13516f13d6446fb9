//! Routes of push tokens (contract 9).

use axum::extract::State;
use axum::http::StatusCode;
use nudge_apps::auth::SdkSubject;
use nudge_http::{ApiError, Code, Data, Json, ResourceName};
use nudge_records::deliveries::provider::Provider;
use nudge_records::subjects::current::{check_not_erasing, current, current_of};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{Error, check};
use crate::providers::Environment;
use crate::services::Shared;

/// Devices, from SDKs.
pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(register_push_token))
        .routes(routes!(remove_push_token))
}

/// A device's token. What a browser has instead is a subscription.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RegisterRequest {
    /// One of the subject's anonymous ids.
    pub(super) anonymous_id: String,
    /// What the SDK calls the device, as in the context of events.
    pub(super) device_id: String,
    pub(super) provider: Provider,
    /// `apns`, `fcm`.
    pub(super) token: Option<String>,
    /// `webpush`.
    pub(super) subscription: Option<SubscriptionRequest>,
    /// `apns`; production unless it says otherwise.
    pub(super) environment: Option<Environment>,
    /// Whether the person lets the app show messages; granted unless it says otherwise. Without permission no token
    /// is needed.
    pub(super) permission: Option<Permission>,
}

/// A browser's `PushSubscription`.
#[derive(Deserialize, ToSchema)]
pub struct SubscriptionRequest {
    pub(super) endpoint: String,
    pub(super) keys: KeysRequest,
}

/// A subscription's keys, in URL-safe Base64.
#[derive(Deserialize, ToSchema)]
pub struct KeysRequest {
    pub(super) p256dh: String,
    pub(super) auth: String,
}

/// Whether the person lets the app show messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Permission {
    /// Yes.
    Granted,
    /// No.
    Denied,
}

/// What became of a registration.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RegisteredView {
    device_id: String,
    /// `active`, or `opted_out` without permission.
    status: &'static str,
}

impl Permission {
    pub(super) fn is_granted(self) -> bool {
        self == Self::Granted
    }
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        match error {
            Error::TokenRevoked => Self::new(Code::SubjectTokenExpired),
            Error::SubjectMismatch => Self::new(Code::SubjectMismatch),
            Error::NotFound => Self::new(Code::NotFound),
            Error::Seal(cause) => Self::internal(cause),
            Error::Storage(cause) => cause.into(),
        }
    }
}

/// Registers where a device of the subject is reached. The token is the subject's from then on, and nobody else's.
#[utoipa::path(post, path = "/v1/sdk/push-tokens", tag = "sdk", request_body = RegisterRequest,
    responses((status = 200, body = Data<RegisteredView>)))]
pub async fn register_push_token(
    subject: SdkSubject,
    State(services): State<Shared>,
    Json(request): Json<RegisterRequest>,
) -> Result<Data<RegisteredView>, ApiError> {
    let anonymous_id = request.anonymous_id.clone();
    let standing = current_of(&services, &subject, &anonymous_id).await?;
    let token = check::check(request, services.providers.guard())?;
    check_not_erasing(&standing)?;
    let status = if standing.is_nobody() {
        // Somebody who was deleted, of whom nothing is stored.
        token.status()
    } else {
        super::register(
            &services,
            subject.app.id,
            &subject.token,
            &anonymous_id,
            &token,
        )
        .await?
    };
    let data = RegisteredView {
        device_id: token.device_id,
        status: status.name(),
    };
    Ok(Data { data })
}

/// Forgets where a device is reached.
#[utoipa::path(delete, path = "/v1/sdk/push-tokens/{deviceId}", tag = "sdk",
    params(("deviceId" = String, Path)), responses((status = 204)))]
pub async fn remove_push_token(
    subject: SdkSubject,
    ResourceName(device_id): ResourceName,
    State(services): State<Shared>,
) -> Result<StatusCode, ApiError> {
    let standing = current(&services, &subject).await?;
    if standing.is_nobody() {
        return Err(ApiError::new(Code::NotFound));
    }
    super::remove(&services, subject.app.id, &subject.token, &device_id).await?;
    Ok(StatusCode::NO_CONTENT)
}
