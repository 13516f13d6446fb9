//! The route of beacons (contract 9).

use axum::extract::State;
use nudge_apps::auth::SdkSubject;
use nudge_http::{ApiError, Data, Json};
use nudge_platform::clock;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::{Beacon, Type, take};
use crate::services::Shared;

/// What became of messages on devices, from SDKs.
pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new().routes(routes!(send_receipts))
}

/// Receipts of one request.
const MOST: usize = 100;
/// The longest name of a button, in characters.
const MOST_ACTION: usize = 200;

/// What became of messages on a device.
#[derive(Debug, Deserialize, ToSchema)]
pub struct ReceiptsRequest {
    receipts: Vec<Receipt>,
}

/// What became of a message on a device.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Receipt {
    delivery_id: Uuid,
    r#type: Type,
    /// Which button was tapped.
    action_id: Option<String>,
    /// When, ISO 8601; now unless given. Before the message was sent is when it was sent.
    at: Option<String>,
}

/// Which receipts were taken.
#[derive(Debug, Serialize, ToSchema)]
pub struct ReceiptsView {
    accepted: usize,
    /// Deliveries that are not the subject's.
    unknown: Vec<Uuid>,
}

/// Says what became of messages on a device. Saying it again changes nothing.
#[utoipa::path(post, path = "/v1/sdk/push/receipts", tag = "sdk", request_body = ReceiptsRequest,
    responses((status = 200, body = Data<ReceiptsView>)))]
pub async fn send_receipts(
    subject: SdkSubject,
    State(services): State<Shared>,
    Json(request): Json<ReceiptsRequest>,
) -> Result<Data<ReceiptsView>, ApiError> {
    if request.receipts.is_empty() || request.receipts.len() > MOST {
        let detail = format!("receipts must have 1 to {MOST} items");
        return Err(ApiError::field("/receipts", "out_of_range", detail));
    }
    let now = services.clock.now();
    let mut beacons = Vec::with_capacity(request.receipts.len());
    for (index, receipt) in request.receipts.into_iter().enumerate() {
        let place = |name: &str| format!("/receipts/{index}/{name}");
        let at = receipt.at.map_or(Some(now), |text| clock::from_text(&text));
        let at = at.ok_or_else(|| {
            ApiError::field(place("at"), "invalid", "an ISO 8601 instant with an offset")
        })?;
        let action = receipt.action_id.as_deref().unwrap_or_default();
        if action.chars().count() > MOST_ACTION || action.contains('\0') {
            let detail = format!("actionId has at most {MOST_ACTION} characters");
            return Err(ApiError::field(place("actionId"), "invalid", detail));
        }
        beacons.push(Beacon {
            delivery_id: receipt.delivery_id,
            kind: receipt.r#type,
            action_id: receipt.action_id,
            at: at.min(now),
        });
    }
    let taken = take(&services, &subject.app, &subject.token, &beacons).await?;
    let mut view = ReceiptsView {
        accepted: 0,
        unknown: Vec::new(),
    };
    for (beacon, taken) in beacons.iter().zip(taken) {
        if taken {
            view.accepted += 1;
        } else {
            view.unknown.push(beacon.delivery_id);
        }
    }
    Ok(Data { data: view })
}
