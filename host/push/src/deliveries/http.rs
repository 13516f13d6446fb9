//! Routes of deliveries (contract 9).

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use futures_util::FutureExt as _;
use nudge_apps::auth::Viewer;
use nudge_db::Timestamp;
use nudge_http::csv::{self, WantsCsv};
use nudge_http::cursor::Cursors;
use nudge_http::page::{self, MOST, Page};
use nudge_http::query::range;
use nudge_http::{ApiError, Code, Data, Params, ResourceId};
use nudge_platform::{clock, hidden};
use nudge_records::deliveries::Status;
use nudge_records::deliveries::store::{self, DeliveryRow, Filter};
use nudge_records::subjects;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use crate::services::{Services, Shared};

/// Deliveries.
pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(list_deliveries))
        .routes(routes!(get_delivery))
}

/// A delivery as the API shows it.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeliveryView {
    delivery_id: Uuid,
    campaign_id: Uuid,
    variant_id: Uuid,
    subject_id: Uuid,
    status: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// What was resolved, the same on each retry; null until then.
    content: Option<Value>,
    test: bool,
    attempts: i64,
    transitions: Vec<TransitionView>,
    created_at: String,
}

/// A state that a delivery came into.
#[derive(Debug, Serialize, ToSchema)]
pub struct TransitionView {
    status: String,
    at: String,
}

/// Which deliveries to list.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
pub struct ListQuery {
    /// Of this campaign.
    campaign_id: Option<Uuid>,
    /// To this person.
    subject_id: Option<Uuid>,
    /// In this status.
    #[param(inline)]
    status: Option<Status>,
    /// Made at or after: an ISO 8601 instant, or a day (UTC).
    from: Option<String>,
    /// Made before: an ISO 8601 instant; or a day, which is included.
    to: Option<String>,
    /// How many items, 1 to 200; 50 unless given.
    #[param(minimum = 1, maximum = 200, default = 50)]
    limit: Option<u32>,
    /// Where to go on.
    cursor: Option<String>,
}

impl From<DeliveryRow> for DeliveryView {
    fn from(row: DeliveryRow) -> Self {
        let transitions = row
            .transitions()
            .into_iter()
            .map(|(status, at)| TransitionView {
                status: status.to_owned(),
                at: clock::to_text(at),
            });
        Self {
            transitions: transitions.collect(),
            delivery_id: row.id,
            campaign_id: row.campaign_id,
            variant_id: row.variant_id,
            subject_id: row.subject_id,
            content: row
                .content
                .as_deref()
                .and_then(|text| serde_json::from_str(text).ok()),
            status: row.status,
            reason: row.reason,
            test: row.test,
            attempts: row.attempts,
            created_at: clock::to_text(row.created_at),
        }
    }
}

/// Lists deliveries, newest first.
#[utoipa::path(get, path = "/v1/apps/{appId}/push/deliveries", tag = "push",
    params(("appId" = Uuid, Path), ListQuery),
    responses((status = 200, content((Data<Page<DeliveryView>> = "application/json"), (String = "text/csv")))))]
pub async fn list_deliveries(
    Viewer(scope): Viewer,
    State(services): State<Shared>,
    WantsCsv(wants_csv): WantsCsv,
    Params(query): Params<ListQuery>,
) -> Result<Response, ApiError> {
    let limit = page::limit(query.limit)?;
    let now = services.clock.now();
    let (from, to) = range("", query.from.as_deref(), query.to.as_deref())?;
    let mut filter = Filter {
        from,
        to,
        campaign_id: query.campaign_id,
        subject_id: query.subject_id,
        status: query.status,
    };
    let list = format!("deliveries {} {filter:?}", scope.app.id);
    let mut tx = services.db.read().await?;
    if let Some(id) = query.subject_id {
        filter.subject_id = Some(subjects::store::canonical(&mut tx, scope.app.id, id).await?);
    }
    if wants_csv {
        drop(tx);
        return rows(&services, scope.app.id, filter).await;
    }
    let cursors = Cursors::new(&services.secrets, list, now);
    let before: Option<(i64, Uuid)> = cursors.open(query.cursor.as_deref())?;
    let before = before.map(|(at, id)| (Timestamp(at), id));
    let found = store::list(&mut tx, scope.app.id, &filter, before, i64::from(limit) + 1).await?;
    let page = cursors.page(found, limit, |last| (last.created_at.0, last.id));
    let data = page.map(DeliveryView::from);
    Ok(Data { data }.into_response())
}

/// All deliveries of a filter, as CSV.
async fn rows(services: &Services, app_id: Uuid, filter: Filter) -> Result<Response, ApiError> {
    let filter = Arc::new(filter);
    let list = csv::reader(move |tx, before, most| {
        let filter = Arc::clone(&filter);
        async move { store::list(tx, app_id, &filter, before, most).await }.boxed()
    });
    let place = |row: &DeliveryRow| (row.created_at, row.id);
    csv::answer_rows(COLUMNS, &services.db, MOST, list, place, DeliveryView::from).await
}

/// The columns of deliveries as CSV.
const COLUMNS: &[&str] = &[
    "deliveryId",
    "campaignId",
    "variantId",
    "subjectId",
    "status",
    "reason",
    "test",
    "attempts",
    "createdAt",
    "transitions",
    "content",
];

/// Reads a delivery.
#[utoipa::path(get, path = "/v1/apps/{appId}/push/deliveries/{deliveryId}", tag = "push",
    params(("appId" = Uuid, Path), ("deliveryId" = Uuid, Path)),
    responses((status = 200, body = Data<DeliveryView>)))]
pub async fn get_delivery(
    Viewer(scope): Viewer,
    State(services): State<Shared>,
    ResourceId(id): ResourceId,
) -> Result<Data<DeliveryView>, ApiError> {
    let mut tx = services.db.read().await?;
    let found = store::find(&mut tx, scope.app.id, id).await?;
    let found = found.ok_or_else(|| ApiError::new(Code::NotFound))?;
    if hidden::is_hidden(&mut tx, scope.app.id, found.subject_id).await? {
        return Err(ApiError::new(Code::NotFound));
    }
    Ok(Data { data: found.into() })
}
