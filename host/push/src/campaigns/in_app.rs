//! In-app messages as the routes of campaigns create, show, change and delete them (contract 20).

use axum::http::StatusCode;
use nudge_apps::auth::Scope;
use nudge_apps::campaigns::http::{find, hold, patched, record};
use nudge_campaigns::campaign::size;
use nudge_campaigns::in_app::{self, Campaign, Content};
use nudge_campaigns::lifecycle;
use nudge_campaigns::variants::{self, Content as _};
use nudge_http::precondition::IfMatch;
use nudge_http::{ApiError, Data};
use nudge_pipeline::segments;
use nudge_platform::{audit, clock, id};
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

/// Creates one; an active one runs from the answer on.
pub(super) async fn create(
    services: &Services,
    scope: &Scope,
    mut content: Content,
) -> Result<InAppView, ApiError> {
    let growth = size::check(&content, None)?;
    let app = segments::renewed(services, scope).await?;
    variants::check(
        &services.plugins,
        &app.deciders,
        &app.segments.audiences,
        &content,
        None,
    )
    .await?;
    let now = services.clock.now();
    content.identify(&[], || id::new(now));
    let campaign = Campaign::new(id::new(now), scope.app.id, content, now);
    let mut tx = services.db.write().await?;
    lifecycle::create(&mut tx, &services.plugins, &campaign).await?;
    size::check_total(&mut tx, scope.app.id, growth).await?;
    record(
        &mut tx,
        scope,
        "campaign.created",
        &campaign,
        Map::new(),
        now,
    )
    .await?;
    tx.commit().await?;
    let app = services.apps.refresh(scope.app.id).await?;
    segments::watched(services, app.as_deref(), campaign.id).await?;
    Ok(campaign.into())
}

/// Changes one. What was issued says what it said, and is on offer while the campaign is active.
pub(super) async fn update(
    services: &Services,
    scope: &Scope,
    campaign_id: Uuid,
    if_match: IfMatch,
    patch: Map<String, Value>,
) -> Result<Data<AnyView>, ApiError> {
    let current: Campaign = find(services, scope, campaign_id).await?;
    let detail = audit::of_patch(&patch);
    let patched = patched(&current, if_match, patch)?;
    let before = Some(&current.content);
    let growth = size::check(&patched.content, before)?;
    let app = segments::renewed(services, scope).await?;
    let (plugins, audiences) = (&services.plugins, &app.segments.audiences);
    let check = |content| variants::check(plugins, &app.deciders, audiences, content, before);
    patched.check(check).await?;
    let mut content = patched.content;
    let now = services.clock.now();
    content.identify(&current.content.variants, || id::new(now));
    let (campaign, activated) = current.changed(content, now);
    let mut tx = services.db.write().await?;
    lifecycle::update(&mut tx, &services.plugins, &campaign).await?;
    size::check_total(&mut tx, scope.app.id, growth).await?;
    record(&mut tx, scope, "campaign.updated", &campaign, detail, now).await?;
    tx.commit().await?;
    let app = services.apps.refresh(scope.app.id).await?;
    segments::watched(services, app.as_deref(), campaign.id).await?;
    if activated {
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
    let campaign: Campaign = hold(&mut tx, scope, campaign_id, if_match).await?;
    in_app::delete(&mut tx, scope.app.id, campaign_id, &scope.actor, now).await?;
    record(
        &mut tx,
        scope,
        "campaign.deleted",
        &campaign,
        Map::new(),
        now,
    )
    .await?;
    tx.commit().await?;
    services.jobs.wake();
    services.apps.refresh(scope.app.id).await?;
    Ok(StatusCode::NO_CONTENT)
}
