//! Routes of push campaigns (specification 4.4, contract 9).

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use nudge_apps::App;
use nudge_apps::auth::{Editor, Viewer};
use nudge_apps::campaigns::http::{find, patched, record};
use nudge_campaigns::campaign::{Status, size};
use nudge_campaigns::listing;
use nudge_campaigns::push::content::Kind;
use nudge_campaigns::push::{Campaign, Content};
use nudge_http::precondition::IfMatch;
use nudge_http::{ApiError, Data, Json, Params, ResourceId, created};
use nudge_platform::clock;
use nudge_records::deliveries::{self, Change, Stats};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use crate::services::{Services, Shared};

/// Queued deliveries of a deleted campaign that are cancelled in one transaction.
const STEP: i64 = 500;

/// A campaign as the API shows it.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = PushCampaignView)]
#[serde(rename_all = "camelCase")]
pub struct CampaignView {
    id: Uuid,
    app_id: Uuid,
    version: i64,
    #[serde(flatten)]
    content: Content,
    stats: Stats,
    created_at: String,
    updated_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    activated_at: Option<String>,
}

/// Which campaigns to list.
#[derive(Debug, Default, Deserialize, IntoParams)]
pub struct ListQuery {
    /// Of this type; there are push campaigns only.
    #[serde(rename = "type")]
    kind: Option<Kind>,
}

impl CampaignView {
    fn new(campaign: Campaign, stats: Stats) -> Self {
        Self {
            id: campaign.id,
            app_id: campaign.app_id,
            version: campaign.version,
            content: campaign.content,
            stats,
            created_at: clock::to_text(campaign.created_at),
            updated_at: clock::to_text(campaign.updated_at),
            activated_at: campaign.activated_at.map(clock::to_text),
        }
    }
}

/// Lists every campaign of an app, newest first.
#[utoipa::path(get, path = "/v1/apps/{appId}/campaigns", tag = "push",
    params(("appId" = Uuid, Path), ListQuery), responses((status = 200, body = Data<Vec<CampaignView>>)))]
pub async fn list_campaigns(
    Viewer(scope): Viewer,
    State(services): State<Shared>,
    Params(query): Params<ListQuery>,
) -> Result<Response, ApiError> {
    let Kind::Push = query.kind.unwrap_or_default();
    let mut tx = services.db.read().await?;
    let stats = deliveries::store::stats(&mut tx, scope.app.id, None).await?;
    drop(tx);
    let none = Stats::default();
    let stats = move |id: Uuid| {
        let stats = stats.get(&id).unwrap_or(&none);
        serde_json::value::to_raw_value(stats).ok()
    };
    listing::answer::<Content, _>(&services.db, scope.app.id, stats).await
}

/// Creates a campaign; an active one runs from the answer on.
#[utoipa::path(post, path = "/v1/apps/{appId}/campaigns", tag = "push", params(("appId" = Uuid, Path)),
    request_body = Content, responses((status = 201, body = Data<CampaignView>)))]
pub async fn create_campaign(
    Editor(scope): Editor,
    State(services): State<Shared>,
    Json(mut content): Json<Content>,
) -> Result<(StatusCode, Data<CampaignView>), ApiError> {
    let growth = size::check(&content, None)?;
    nudge_campaigns::push::check(
        &services.plugins,
        &scope.app.deciders,
        &scope.app.segments.audiences,
        &content,
        None,
    )
    .await?;
    let now = services.clock.now();
    content.identify(&[], || nudge_platform::id::new(now));
    let campaign = Campaign::new(nudge_platform::id::new(now), scope.app.id, content, now);
    let mut tx = services.db.write().await?;
    nudge_campaigns::lifecycle::create(&mut tx, &campaign).await?;
    size::check_total(&mut tx, scope.app.id, growth).await?;
    record(&mut tx, &scope, "campaign.created", &campaign, now).await?;
    tx.commit().await?;
    services.apps.refresh(scope.app.id).await?;
    Ok(created(CampaignView::new(campaign, Stats::default())))
}

/// Reads a campaign.
#[utoipa::path(get, path = "/v1/apps/{appId}/campaigns/{campaignId}", tag = "push",
    params(("appId" = Uuid, Path), ("campaignId" = Uuid, Path)),
    responses((status = 200, body = Data<CampaignView>)))]
pub async fn get_campaign(
    Viewer(scope): Viewer,
    State(services): State<Shared>,
    ResourceId(id): ResourceId,
) -> Result<Data<CampaignView>, ApiError> {
    let campaign: Campaign = find(&services, &scope, id).await?;
    shown(&services, campaign).await
}

/// Changes a campaign (JSON merge patch). What is queued waits while it is paused, and is not sent once it is
/// archived or a draft again.
#[utoipa::path(patch, path = "/v1/apps/{appId}/campaigns/{campaignId}", tag = "push",
    params(("appId" = Uuid, Path), ("campaignId" = Uuid, Path)), request_body = Value,
    responses((status = 200, body = Data<CampaignView>)))]
pub async fn update_campaign(
    Editor(scope): Editor,
    State(services): State<Shared>,
    ResourceId(id): ResourceId,
    if_match: IfMatch,
    Json(patch): Json<serde_json::Map<String, Value>>,
) -> Result<Data<CampaignView>, ApiError> {
    let current: Campaign = find(&services, &scope, id).await?;
    let mut content = patched(&current, if_match, patch)?;
    let before = Some(&current.content);
    let growth = size::check(&content, before)?;
    nudge_campaigns::push::check(
        &services.plugins,
        &scope.app.deciders,
        &scope.app.segments.audiences,
        &content,
        before,
    )
    .await?;
    let now = services.clock.now();
    content.identify(&current.content.variants, || nudge_platform::id::new(now));

    let was = current.content.status;
    let (campaign, _) = current.changed(content, now);
    let resumes = was == Status::Paused && campaign.content.status != Status::Paused;
    let mut tx = services.db.write().await?;
    nudge_campaigns::lifecycle::update(&mut tx, &campaign).await?;
    size::check_total(&mut tx, scope.app.id, growth).await?;
    if resumes {
        deliveries::store::resume(&mut tx, scope.app.id, id, now).await?;
    }
    record(&mut tx, &scope, "campaign.updated", &campaign, now).await?;
    tx.commit().await?;
    services.apps.refresh(scope.app.id).await?;
    if resumes {
        services.pipeline.deliveries().wake();
    }
    shown(&services, campaign).await
}

/// Permanently deletes a campaign. What is queued is cancelled; what was sent stays on record.
#[utoipa::path(delete, path = "/v1/apps/{appId}/campaigns/{campaignId}", tag = "push",
    params(("appId" = Uuid, Path), ("campaignId" = Uuid, Path)), responses((status = 204)))]
pub async fn delete_campaign(
    Editor(scope): Editor,
    State(services): State<Shared>,
    ResourceId(id): ResourceId,
    if_match: IfMatch,
) -> Result<StatusCode, ApiError> {
    let campaign: Campaign = find(&services, &scope, id).await?;
    if_match.check(campaign.version)?;
    let now = services.clock.now();
    let mut tx = services.db.write().await?;
    nudge_campaigns::push::delete(&mut tx, scope.app.id, id, now).await?;
    record(&mut tx, &scope, "campaign.deleted", &campaign, now).await?;
    tx.commit().await?;
    services.apps.refresh(scope.app.id).await?;
    // A process that ends meanwhile leaves the rest to the sender, which finds no campaign.
    loop {
        match cancel(&services, &scope.app, id).await {
            Ok(false) => break,
            Ok(true) => {}
            // It met the sender.
            Err(error) if error.kind() == nudge_db::Kind::Serialization => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(StatusCode::NO_CONTENT)
}

/// Cancels some of what is queued; answers whether there was any.
async fn cancel(services: &Services, app: &App, id: Uuid) -> nudge_db::Result<bool> {
    let now = services.clock.now();
    let mut tx = services.db.write().await?;
    let cancelled = deliveries::store::cancel(&mut tx, app.id, id, STEP, now).await?;
    let changes: Vec<Change> = cancelled
        .iter()
        .map(|delivery| Change {
            delivery_id: delivery.id,
            campaign_id: id,
            variant_id: delivery.variant_id,
            subject_id: delivery.subject_id,
            platform: None,
            test: delivery.test,
            status: deliveries::Status::Cancelled,
            at: now,
            more: Vec::new(),
        })
        .collect();
    let queued = deliveries::announce(&mut tx, app, &changes, now).await?;
    tx.commit().await?;
    services.webhooks.wake(queued);
    Ok(!changes.is_empty())
}

async fn shown(services: &Services, campaign: Campaign) -> Result<Data<CampaignView>, ApiError> {
    let mut tx = services.db.read().await?;
    let mut stats = deliveries::store::stats(&mut tx, campaign.app_id, Some(campaign.id)).await?;
    let stats = stats.remove(&campaign.id).unwrap_or_default();
    Ok(Data {
        data: CampaignView::new(campaign, stats),
    })
}
