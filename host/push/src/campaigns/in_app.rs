//! In-app messages as the routes of campaigns show, change and delete them (contract 20).

use axum::http::StatusCode;
use nudge_apps::auth::Scope;
use nudge_apps::campaigns::http;
use nudge_campaigns::in_app::{Campaign, Content};
use nudge_http::precondition::IfMatch;
use nudge_http::{ApiError, Data};
use nudge_pipeline::saving::{self, CheckedChange};
use nudge_platform::clock;
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;
use uuid::Uuid;

use super::http::AnyView;
use crate::services::Services;

/// An in-app message as the API shows it.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct InAppView {
    id: Uuid,
    app_id: Uuid,
    version: i64,
    #[serde(flatten)]
    content: Content,
    created_at: String,
    updated_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    activated_at: Option<String>,
}

impl From<Campaign> for InAppView {
    fn from(campaign: Campaign) -> Self {
        Self {
            id: campaign.id,
            app_id: campaign.app_id,
            version: campaign.version,
            content: campaign.content,
            created_at: clock::to_text(campaign.created_at),
            updated_at: clock::to_text(campaign.updated_at),
            activated_at: campaign.activated_at.map(clock::to_text),
        }
    }
}

/// The answer that shows one.
pub(super) fn shown(campaign: Campaign) -> Data<AnyView> {
    Data {
        data: AnyView::InApp(Box::new(campaign.into())),
    }
}

/// Changes one. What was issued says what it said, and is on offer while the campaign is active.
pub(super) async fn update(
    services: &Services,
    scope: &Scope,
    campaign_id: Uuid,
    if_match: IfMatch,
    patch: Map<String, Value>,
) -> Result<Data<AnyView>, ApiError> {
    let change: CheckedChange<Content> =
        saving::check_change(services, scope, campaign_id, if_match, patch).await?;
    let activates = change.activates;
    let mut tx = services.db.write().await?;
    let campaign = change.write(services, scope, &mut tx).await?;
    tx.commit().await?;
    saving::put_in_force(services, scope.app.id, campaign_id).await?;
    if activates {
        // What was issued before is on offer again.
        services.polls.wake_all();
    }
    Ok(shown(campaign))
}

/// Deletes one, with its instructions.
pub(super) async fn delete(
    services: &Services,
    scope: &Scope,
    campaign_id: Uuid,
    if_match: IfMatch,
) -> Result<StatusCode, ApiError> {
    let now = services.clock.now();
    let mut tx = services.db.write().await?;
    http::delete::<Content>(&mut tx, scope, campaign_id, if_match, now).await?;
    tx.commit().await?;
    services.jobs.wake();
    services.apps.refresh(scope.app.id).await?;
    Ok(StatusCode::NO_CONTENT)
}
