//! Routes of surveys (specification 4.3, contract 7).

use axum::extract::State;
use axum::http::StatusCode;
use nudge_db::{Timestamp, Tx};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;
use uuid::Uuid;

use super::{Content, Error, Status, Survey, store};
use crate::audit::{self, Entry};
use crate::clock;
use crate::http::auth::{Editor, Scope, Viewer};
use crate::http::precondition::IfMatch;
use crate::http::{ApiError, Code, Data, Json, ResourceId, body, created, merge};
use crate::services::Shared;

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

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        match error {
            Error::NotFound => Self::new(Code::NotFound),
            Error::TooMany => Self::because(
                Code::LimitExceeded,
                format!("an app has at most {} surveys", super::MOST),
            ),
            Error::VersionMismatch => Self::new(Code::VersionMismatch),
            Error::Invalid(errors) => Self::fields(Code::ValidationFailed, errors),
            Error::InvalidFlow(errors) => Self::fields(Code::InvalidFlow, errors),
            Error::NotActivatable(errors) => Self::fields(Code::NotActivatable, errors),
            Error::Check(cause) => Self::unavailable(cause),
            Error::Storage(cause) => cause.into(),
        }
    }
}

/// Lists every survey of an app, newest first.
#[utoipa::path(get, path = "/v1/apps/{appId}/surveys", tag = "surveys",
    params(("appId" = Uuid, Path)), responses((status = 200, body = Data<Vec<SurveyView>>)))]
pub async fn list_surveys(
    Viewer(scope): Viewer,
    State(services): State<Shared>,
) -> Result<Data<Vec<SurveyView>>, ApiError> {
    let mut tx = services.db.read().await?;
    let surveys = store::list(&mut tx, scope.app.id).await?;
    Ok(Data {
        data: surveys.into_iter().map(SurveyView::from).collect(),
    })
}

/// Creates a survey; an active one runs from the answer on.
#[utoipa::path(post, path = "/v1/apps/{appId}/surveys", tag = "surveys", params(("appId" = Uuid, Path)),
    request_body = Content, responses((status = 201, body = Data<SurveyView>)))]
pub async fn create_survey(
    Editor(scope): Editor,
    State(services): State<Shared>,
    Json(content): Json<Content>,
) -> Result<(StatusCode, Data<SurveyView>), ApiError> {
    super::check(&services.plugins, &scope.app.deciders, &content, None).await?;
    let now = services.clock.now();
    let activated_at = (content.status == Status::Active).then_some(now);
    let id = crate::id::new(now);
    let survey = Survey {
        id,
        app_id: scope.app.id,
        version: 1,
        content,
        created_at: now,
        updated_at: now,
        activated_at,
    };
    let mut tx = services.db.write().await?;
    super::create(&mut tx, &survey).await?;
    let detail = json!({"version": 1, "status": survey.content.status});
    record(&mut tx, &scope, "survey.created", id, detail, now).await?;
    tx.commit().await?;
    services.apps.refresh(scope.app.id).await?;
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
    let mut tx = services.db.read().await?;
    let survey = store::find(&mut tx, scope.app.id, id)
        .await?
        .ok_or(Error::NotFound)?;
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
    Json(patch): Json<serde_json::Map<String, Value>>,
) -> Result<Data<SurveyView>, ApiError> {
    let mut tx = services.db.read().await?;
    let current = store::find(&mut tx, scope.app.id, id)
        .await?
        .ok_or(Error::NotFound)?;
    drop(tx);
    if_match.check(current.version)?;
    let mut document = serde_json::to_value(&current.content).map_err(ApiError::internal)?;
    merge::apply(&mut document, Value::Object(patch));
    let content: Content = body::parse_value(document)?;
    let deciders = &scope.app.deciders;
    super::check(
        &services.plugins,
        deciders,
        &content,
        Some(&current.content),
    )
    .await?;

    let now = services.clock.now();
    let activated = content.status == Status::Active && current.content.status != Status::Active;
    let survey = Survey {
        version: current.version + 1,
        content,
        updated_at: now,
        activated_at: if activated {
            Some(now)
        } else {
            current.activated_at
        },
        ..current
    };
    let mut tx = services.db.write().await?;
    super::update(&mut tx, &survey).await?;
    let detail = json!({"version": survey.version, "status": survey.content.status});
    record(&mut tx, &scope, "survey.updated", id, detail, now).await?;
    tx.commit().await?;
    services.apps.refresh(scope.app.id).await?;
    if activated {
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
    let mut tx = services.db.write().await?;
    let current = store::find(&mut tx, scope.app.id, id).await?;
    if_match.check(current.ok_or(Error::NotFound)?.version)?;
    let now = services.clock.now();
    super::delete(&mut tx, scope.app.id, id, &scope.actor, now).await?;
    record(&mut tx, &scope, "survey.deleted", id, json!({}), now).await?;
    tx.commit().await?;
    services.jobs.wake();
    services.apps.refresh(scope.app.id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Adds what was done to a survey to the audit log.
async fn record(
    tx: &mut Tx,
    scope: &Scope,
    action: &'static str,
    id: Uuid,
    detail: Value,
    now: Timestamp,
) -> nudge_db::Result<()> {
    let entry = Entry {
        app_id: scope.app.id,
        actor: &scope.actor,
        action,
        resource: format!("survey/{id}"),
        detail,
    };
    audit::record(tx, &entry, now).await
}
