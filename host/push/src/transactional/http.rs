//! The route of transactional sends (specification 4.4).

use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use nudge_apps::auth::PushSender;
use nudge_http::{ApiError, Code, Data, Json};
use nudge_platform::clock;
use nudge_records::subjects::AliasKind;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::{Error, MOST_IDEMPOTENCY_KEY, Order, Placed};
use crate::services::Shared;

/// Transactional messages.
pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new().routes(routes!(send_transactional))
}

/// The header of an answer that an earlier request got.
const REPLAYED: &str = "idempotent-replayed";

/// A message to be sent.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SendRequest {
    /// A transactional campaign that is active.
    campaign_id: Uuid,
    /// Whom it is for, by the customer's own id.
    external_id: Option<String>,
    /// Or by an anonymous id.
    anonymous_id: Option<String>,
    /// Flat values that fill `send_data` sources.
    #[serde(default)]
    data: Option<Map<String, Value>>,
    /// Names this send within the app: a second request with it gets the first one's answer.
    idempotency_key: Option<String>,
}

/// A message that was queued.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SendView {
    delivery_id: Uuid,
    campaign_id: Uuid,
    status: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    duplicate: bool,
    /// Active devices of the person when it was asked for.
    recipients: i64,
    created_at: String,
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        match error {
            Error::CampaignNotFound => Self::new(Code::CampaignNotFound),
            Error::NotTransactional => Self::new(Code::CampaignNotTransactional),
            Error::NotActive => Self::new(Code::CampaignNotActive),
            Error::NotScheduled => Self::because(
                Code::CampaignNotActive,
                "the campaign's schedule has not begun, or is over: change its `schedule`, or send within it",
            ),
            Error::SubjectNotFound => Self::new(Code::SubjectNotFound),
            Error::MissingData(errors) => {
                let names: Vec<String> = errors.iter().map(|error| error.detail.clone()).collect();
                Self::fields(Code::MissingSendData, errors).with_detail(names.join("; "))
            }
            Error::Storage(cause) => cause.into(),
        }
    }
}

impl From<Placed> for SendView {
    fn from(placed: Placed) -> Self {
        let delivery = placed.delivery;
        Self {
            delivery_id: delivery.id,
            campaign_id: delivery.campaign_id,
            status: delivery.status,
            reason: delivery.reason,
            duplicate: placed.duplicate,
            recipients: delivery.recipients,
            created_at: clock::to_text(delivery.created_at),
        }
    }
}

/// Queues a message to one person. That it is queued does not say that a provider has it.
#[utoipa::path(post, path = "/v1/apps/{appId}/push/transactional", tag = "push",
    params(("appId" = Uuid, Path)), request_body = SendRequest,
    responses((status = 202, body = Data<SendView>), (status = 200, body = Data<SendView>)))]
pub async fn send_transactional(
    PushSender { app }: PushSender,
    State(services): State<Shared>,
    Json(request): Json<SendRequest>,
) -> Result<(StatusCode, HeaderMap, Data<SendView>), ApiError> {
    let recipient = match (request.external_id, request.anonymous_id) {
        (Some(external), None) => (AliasKind::External, external),
        (None, Some(anonymous)) => (AliasKind::Anonymous, anonymous),
        _ => return Err(ApiError::new(Code::ExactlyOneRecipient)),
    };
    let data = request.data.unwrap_or_default();
    let errors = super::check_data(&data);
    if !errors.is_empty() {
        return Err(ApiError::fields(Code::ValidationFailed, errors));
    }
    if let Some(key) = &request.idempotency_key
        && (!(1..=MOST_IDEMPOTENCY_KEY).contains(&key.chars().count()) || key.contains('\0'))
    {
        let detail = format!("idempotencyKey has 1 to {MOST_IDEMPOTENCY_KEY} characters");
        return Err(ApiError::field("/idempotencyKey", "invalid", detail));
    }
    if recipient.1.contains('\0') {
        return Err(ApiError::new(Code::SubjectNotFound));
    }
    let order = Order {
        campaign_id: request.campaign_id,
        recipient,
        data,
        idempotency_key: request.idempotency_key,
    };
    let placed = super::place(&services, &app, &order).await?;
    let mut headers = HeaderMap::new();
    let status = if placed.duplicate {
        headers.insert(REPLAYED, HeaderValue::from_static("true"));
        StatusCode::OK
    } else {
        StatusCode::ACCEPTED
    };
    let data = SendView::from(placed);
    Ok((status, headers, Data { data }))
}
