//! Routes of campaigns of both types (specification 4.4, contracts 9 and 20). What is particular to in-app messages is in [`in_app`](super::in_app).

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use nudge_apps::App;
use nudge_apps::auth::{Editor, Viewer};
use nudge_apps::campaigns::http::{delete, find};
use nudge_campaigns::campaign::Status;
use nudge_campaigns::lifecycle;
use nudge_campaigns::listing;
use nudge_campaigns::listing::Listed;
use nudge_campaigns::push::{Campaign, Content};
use nudge_campaigns::store::{self as campaigns, Hold, Stored};
use nudge_campaigns::{campaign, in_app};
use nudge_http::body::parse_value;
use nudge_http::csv::WantsCsv;
use nudge_http::page::Page;
use nudge_http::precondition::IfMatch;
use nudge_http::{ApiError, Data, Json, Params, ResourceId, created};
use nudge_pipeline::saving::{self, CheckedChange};
use nudge_platform::clock;
use nudge_records::deliveries::{self, Change, Stats};
use nudge_records::instructions::recipients::http::{RecipientView, RecipientsQuery, answer};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::in_app::{self as messages, InAppView};
use crate::services::{Services, Shared};

/// Campaigns.
pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(list_campaigns, create_campaign))
        .routes(routes!(get_campaign, update_campaign, delete_campaign))
        .routes(routes!(list_campaign_recipients))
}

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

/// What is written of a campaign, by its `type`; that of a push campaign may be left out. It describes the body, which is
/// read by its type.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub enum CampaignContent {
    /// A push campaign.
    Push(Content),
    /// An in-app message.
    InApp(in_app::Content),
}

/// A campaign of either type as the API shows it.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AnyCampaignView)]
#[serde(untagged)]
pub enum AnyView {
    /// A push campaign.
    Push(Box<CampaignView>),
    /// An in-app message.
    InApp(Box<InAppView>),
}

/// The types of campaigns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[schema(as = CampaignType)]
#[serde(rename_all = "snake_case")]
pub enum Type {
    /// Push campaigns.
    Push,
    /// In-app messages.
    InApp,
}

/// Which campaigns to list.
#[derive(Debug, Default, Deserialize, IntoParams)]
pub struct ListQuery {
    /// Of this type; all unless given.
    #[param(inline)]
    #[serde(rename = "type")]
    kind: Option<Type>,
}

const PUSH: Listed = Listed::of::<Content>();
const IN_APP: Listed = Listed::of::<in_app::Content>();

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
    params(("appId" = Uuid, Path), ListQuery), responses((status = 200, body = Data<Vec<AnyView>>)))]
pub async fn list_campaigns(
    Viewer(scope): Viewer,
    State(services): State<Shared>,
    Params(query): Params<ListQuery>,
) -> Result<Response, ApiError> {
    let kinds: &[Listed] = match query.kind {
        None => &[PUSH, IN_APP],
        Some(Type::Push) => &[PUSH],
        Some(Type::InApp) => &[IN_APP],
    };
    let mut tx = services.db.read().await?;
    let stats = deliveries::store::stats(&mut tx, scope.app.id, None).await?;
    drop(tx);
    let none = Stats::default();
    let stats = move |row: &Stored| {
        let is_push = row.kind().is_ok_and(|kind| kind == campaign::Kind::Push);
        let stats = is_push.then(|| stats.get(&row.id).unwrap_or(&none))?;
        serde_json::value::to_raw_value(stats).ok()
    };
    listing::answer(&services.db, scope.app.id, kinds, stats).await
}

/// Creates a campaign; an active one runs from the answer on.
#[utoipa::path(post, path = "/v1/apps/{appId}/campaigns", tag = "push", params(("appId" = Uuid, Path)),
    request_body = CampaignContent, responses((status = 201, body = Data<AnyView>)))]
pub async fn create_campaign(
    Editor(scope): Editor,
    State(services): State<Shared>,
    Json(body): Json<Map<String, Value>>,
) -> Result<(StatusCode, Data<AnyView>), ApiError> {
    match body.get("type").map(Value::as_str) {
        None | Some(Some("push")) => {}
        Some(Some("in_app")) => {
            let content: in_app::Content = parse_value(body.into())?;
            let campaign = saving::create(&services, &scope, content).await?;
            return Ok(created(AnyView::InApp(Box::new(campaign.into()))));
        }
        Some(_) => {
            let detail = "`push` or `in_app`";
            return Err(ApiError::field("/type", "invalid", detail));
        }
    }
    let content: Content = parse_value(body.into())?;
    let campaign = saving::create(&services, &scope, content).await?;
    let view = CampaignView::new(campaign, Stats::default());
    Ok(created(AnyView::Push(Box::new(view))))
}

/// Reads a campaign.
#[utoipa::path(get, path = "/v1/apps/{appId}/campaigns/{campaignId}", tag = "push",
    params(("appId" = Uuid, Path), ("campaignId" = Uuid, Path)),
    responses((status = 200, body = Data<AnyView>)))]
pub async fn get_campaign(
    Viewer(scope): Viewer,
    State(services): State<Shared>,
    ResourceId(id): ResourceId,
) -> Result<Data<AnyView>, ApiError> {
    if kind_of(&services, scope.app.id, id).await? == campaign::Kind::InApp {
        let campaign: in_app::Campaign = find(&services, &scope, id).await?;
        return Ok(messages::shown(campaign));
    }
    let campaign: Campaign = find(&services, &scope, id).await?;
    shown(&services, campaign).await
}

/// Changes a campaign (JSON merge patch). What is queued waits while it is paused, and is not sent once it is
/// archived or a draft again.
#[utoipa::path(patch, path = "/v1/apps/{appId}/campaigns/{campaignId}", tag = "push",
    params(("appId" = Uuid, Path), ("campaignId" = Uuid, Path)), request_body = Value,
    responses((status = 200, body = Data<AnyView>)))]
pub async fn update_campaign(
    Editor(scope): Editor,
    State(services): State<Shared>,
    ResourceId(id): ResourceId,
    if_match: IfMatch,
    Json(patch): Json<Map<String, Value>>,
) -> Result<Data<AnyView>, ApiError> {
    if kind_of(&services, scope.app.id, id).await? == campaign::Kind::InApp {
        return messages::update(&services, &scope, id, if_match, patch).await;
    }
    let change: CheckedChange<Content> =
        saving::check_change(&services, &scope, id, if_match, patch).await?;
    let now = change.now;
    let status = change.campaign.content.status;
    let resumes = change.was == Status::Paused && status != Status::Paused;
    let mut tx = services.db.write().await?;
    let campaign = change.write(&services, &scope, &mut tx).await?;
    if resumes {
        deliveries::store::resume(&mut tx, scope.app.id, id, now).await?;
    }
    tx.commit().await?;
    saving::put_in_force(&services, scope.app.id, id).await?;
    if resumes {
        services.pipeline.deliveries().wake();
    }
    shown(&services, campaign).await
}

/// Permanently deletes a campaign. Of a push campaign what is queued is cancelled, and what was sent stays on record; the
/// instructions of an in-app message go with it.
#[utoipa::path(delete, path = "/v1/apps/{appId}/campaigns/{campaignId}", tag = "push",
    params(("appId" = Uuid, Path), ("campaignId" = Uuid, Path)), responses((status = 204)))]
pub async fn delete_campaign(
    Editor(scope): Editor,
    State(services): State<Shared>,
    ResourceId(id): ResourceId,
    if_match: IfMatch,
) -> Result<StatusCode, ApiError> {
    if kind_of(&services, scope.app.id, id).await? == campaign::Kind::InApp {
        return messages::delete(&services, &scope, id, if_match).await;
    }
    let now = services.clock.now();
    let mut tx = services.db.write().await?;
    delete::<Content>(&mut tx, &scope, id, if_match, now).await?;
    // What waited for a paused campaign, too, is the sender's to cancel if this process ends before it has.
    deliveries::store::resume(&mut tx, scope.app.id, id, now).await?;
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
    let queued =
        deliveries::announce(&mut tx, app, &changes, &services.webhooks.in_hand, now).await?;
    tx.commit().await?;
    services.webhooks.wake(queued);
    Ok(!changes.is_empty())
}

/// Lists who was to get a campaign and what became of it, newest first.
#[utoipa::path(get, path = "/v1/apps/{appId}/campaigns/{campaignId}/recipients", tag = "push",
    params(("appId" = Uuid, Path), ("campaignId" = Uuid, Path), RecipientsQuery),
    responses((status = 200, content((Data<Page<RecipientView>> = "application/json"), (String = "text/csv")))))]
pub async fn list_campaign_recipients(
    Viewer(scope): Viewer,
    State(services): State<Shared>,
    ResourceId(id): ResourceId,
    WantsCsv(wants_csv): WantsCsv,
    Params(query): Params<RecipientsQuery>,
) -> Result<Response, ApiError> {
    let kind = kind_of(&services, scope.app.id, id).await?;
    answer(&services, kind, (scope.app.id, id), query, wants_csv).await
}

/// The kind of a campaign of the app; a survey is none.
pub(crate) async fn kind_of(
    services: &Services,
    app_id: Uuid,
    id: Uuid,
) -> Result<campaign::Kind, ApiError> {
    let mut tx = services.db.read().await?;
    let stored = campaigns::stored(&mut tx, app_id, id, Hold::No).await?;
    let stored = stored.ok_or(lifecycle::Error::NotFound)?;
    match stored.kind()? {
        campaign::Kind::Survey => Err(lifecycle::Error::NotFound.into()),
        kind => Ok(kind),
    }
}

async fn shown(services: &Services, campaign: Campaign) -> Result<Data<AnyView>, ApiError> {
    let mut tx = services.db.read().await?;
    let mut stats = deliveries::store::stats(&mut tx, campaign.app_id, Some(campaign.id)).await?;
    let stats = stats.remove(&campaign.id).unwrap_or_default();
    Ok(Data {
        data: AnyView::Push(Box::new(CampaignView::new(campaign, stats))),
    })
}
