//! Routes of surveys (specification 4.3, contract 7).

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use nudge_apps::auth::{Editor, Viewer};
use nudge_apps::campaigns::http::{delete, find};
use nudge_campaigns::listing::{self, Listed};
use nudge_campaigns::store::{self as campaigns, Hold};
use nudge_campaigns::surveys::{self, Content, Survey};
use nudge_http::precondition::IfMatch;
use nudge_http::{ApiError, Data, Json, ResourceId, created};
use nudge_pipeline::saving::{self, CheckedChange};
use nudge_platform::clock;
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use crate::attempts;
use crate::services::Shared;

/// Surveys.
pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(list_surveys, create_survey))
        .routes(routes!(get_survey, update_survey, delete_survey))
}

/// What the list has.
const LISTED: &[Listed] = &[Listed::of::<Content>()];

/// A survey as the API shows it.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SurveyView {
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

impl From<Survey> for SurveyView {
    fn from(survey: Survey) -> Self {
        Self {
            id: survey.id,
            app_id: survey.app_id,
            version: survey.version,
            content: survey.content,
            created_at: clock::to_text(survey.created_at),
            updated_at: clock::to_text(survey.updated_at),
            activated_at: survey.activated_at.map(clock::to_text),
        }
    }
}

/// Lists every survey of an app, newest first.
#[utoipa::path(get, path = "/v1/apps/{appId}/surveys", tag = "surveys",
    params(("appId" = Uuid, Path)), responses((status = 200, body = Data<Vec<SurveyView>>)))]
pub async fn list_surveys(
    Viewer(scope): Viewer,
    State(services): State<Shared>,
) -> Result<Response, ApiError> {
    listing::answer(&services.db, scope.app.id, LISTED, |_| None).await
}

/// Creates a survey; an active one runs from the answer on.
#[utoipa::path(post, path = "/v1/apps/{appId}/surveys", tag = "surveys", params(("appId" = Uuid, Path)),
    request_body = Content, responses((status = 201, body = Data<SurveyView>)))]
pub async fn create_survey(
    Editor(scope): Editor,
    State(services): State<Shared>,
    Json(content): Json<Content>,
) -> Result<(StatusCode, Data<SurveyView>), ApiError> {
    let survey = saving::create(&services, &scope, content).await?;
    Ok(created(survey.into()))
}

/// Reads a survey.
#[utoipa::path(get, path = "/v1/apps/{appId}/surveys/{surveyId}", tag = "surveys",
    params(("appId" = Uuid, Path), ("surveyId" = Uuid, Path)), responses((status = 200, body = Data<SurveyView>)))]
pub async fn get_survey(
    Viewer(scope): Viewer,
    State(services): State<Shared>,
    ResourceId(id): ResourceId,
) -> Result<Data<SurveyView>, ApiError> {
    let survey: Survey = find(&services, &scope, id).await?;
    Ok(Data {
        data: survey.into(),
    })
}

/// Changes a survey (JSON merge patch). Delivery stops when it is no longer active.
#[utoipa::path(patch, path = "/v1/apps/{appId}/surveys/{surveyId}", tag = "surveys",
    params(("appId" = Uuid, Path), ("surveyId" = Uuid, Path)), request_body = Value,
    responses((status = 200, body = Data<SurveyView>)))]
pub async fn update_survey(
    Editor(scope): Editor,
    State(services): State<Shared>,
    ResourceId(id): ResourceId,
    if_match: IfMatch,
    Json(patch): Json<Map<String, Value>>,
) -> Result<Data<SurveyView>, ApiError> {
    let change: CheckedChange<Content> =
        saving::check_change(&services, &scope, id, if_match, patch).await?;
    let (activates, now) = (change.activates, change.now);
    let mut tx = services.db.write().await?;
    let mut survey = change.write(&services, &scope, &mut tx).await?;
    // It may have as many responses already as it is to get now.
    let app_id = scope.app.id;
    if let Some(most) = surveys::max_responses(&mut tx, app_id, id).await?
        && let Some(stored) = campaigns::stored(&mut tx, app_id, id, Hold::No).await?
        && attempts::end_when_full(&mut tx, stored, most, now).await?
        && let Some(ended) = campaigns::find(&mut tx, app_id, id).await?
    {
        survey = ended;
    }
    tx.commit().await?;
    saving::put_in_force(&services, app_id, id).await?;
    if activates {
        // What was issued before is on offer again.
        services.polls.wake_all();
    }
    Ok(Data {
        data: survey.into(),
    })
}

/// Permanently deletes a survey and what depends on it.
#[utoipa::path(delete, path = "/v1/apps/{appId}/surveys/{surveyId}", tag = "surveys",
    params(("appId" = Uuid, Path), ("surveyId" = Uuid, Path)), responses((status = 204)))]
pub async fn delete_survey(
    Editor(scope): Editor,
    State(services): State<Shared>,
    ResourceId(id): ResourceId,
    if_match: IfMatch,
) -> Result<StatusCode, ApiError> {
    let now = services.clock.now();
    let mut tx = services.db.write().await?;
    delete::<Content>(&mut tx, &scope, id, if_match, now).await?;
    tx.commit().await?;
    services.jobs.wake();
    services.apps.refresh(scope.app.id).await?;
    Ok(StatusCode::NO_CONTENT)
}
