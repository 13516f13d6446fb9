//! Routes of dead letters (contract 11).

use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::replay::{self, Replayed};
use super::store::{self, Filter, Found};
use super::{PluginVersion, Stage};
use crate::audit::{self, Entry};
use crate::clock;
use crate::http::auth::{Editor, Viewer};
use crate::http::body::OptionalJson;
use crate::http::page::{Page, PageQuery, page};
use crate::http::query::instant;
use crate::http::{ApiError, Code, Data, Params, ResourceId, cursor};
use crate::ingest::validation::Violation;
use crate::services::Shared;

/// A dead letter as the API shows it.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LetterView {
    id: Uuid,
    event_id: Uuid,
    event_name: String,
    anonymous_id: Option<String>,
    subject_id: Uuid,
    received_at: String,
    timestamp: String,
    stage: Stage,
    reason: String,
    violations: Vec<Violation>,
    #[serde(skip_serializing_if = "Option::is_none")]
    plugin: Option<PluginVersion>,
    #[serde(skip_serializing_if = "Option::is_none")]
    campaign_id: Option<Uuid>,
    event: Value,
    attempts: i64,
    state: &'static str,
}

/// Which letters to list.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
pub struct ListQuery {
    /// Events of this name.
    event_name: Option<String>,
    /// This reason.
    reason: Option<String>,
    /// This stage.
    stage: Option<Stage>,
    /// Received at or after, ISO 8601.
    from: Option<String>,
    /// Received before, ISO 8601.
    to: Option<String>,
    /// How many items, 1 to 200; 50 unless given.
    limit: Option<u32>,
    /// Where to go on.
    cursor: Option<String>,
}

/// How to replay.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReplayRequest {
    /// A merge patch (RFC 7396) on the event's properties.
    patch: Option<serde_json::Map<String, Value>>,
}

/// What became of a replay.
#[derive(Debug, Serialize, ToSchema)]
pub struct ReplayView {
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    violations: Option<Vec<Violation>>,
}

impl From<Found> for LetterView {
    fn from(found: Found) -> Self {
        let Found {
            letter,
            subject_id,
            anonymous_id,
        } = found;
        Self {
            id: letter.id,
            event_id: letter.event_id,
            event_name: letter.event_name,
            anonymous_id,
            subject_id,
            received_at: clock::to_text(letter.received_at),
            timestamp: clock::to_text(letter.timestamp),
            stage: letter.stage,
            reason: letter.reason,
            violations: letter.violations,
            plugin: letter.plugin,
            campaign_id: letter.campaign_id,
            event: serde_json::from_str(&letter.event).unwrap_or_default(),
            attempts: letter.attempts,
            state: "open",
        }
    }
}

/// Lists dead letters, newest first.
#[utoipa::path(get, path = "/v1/apps/{appId}/dead-letters", tag = "dead letters",
    params(("appId" = Uuid, Path), ListQuery), responses((status = 200, body = Data<Page<LetterView>>)))]
pub async fn list_dead_letters(
    Viewer(scope): Viewer,
    State(services): State<Shared>,
    Params(query): Params<ListQuery>,
) -> Result<Data<Page<LetterView>>, ApiError> {
    let paging = PageQuery {
        limit: query.limit,
        cursor: query.cursor.clone(),
    };
    let limit = paging.limit()?;
    let now = services.clock.now();
    let filter = Filter {
        from: instant("from", query.from.as_deref())?,
        to: instant("to", query.to.as_deref())?,
        event_name: query.event_name,
        reason: query.reason,
        stage: query.stage,
    };
    let list = format!("dead letters {} {filter:?}", scope.app.id);
    let before = paging.position(&services.secrets, &list, now)?;
    let mut tx = services.db.read().await?;
    let found = store::list(&mut tx, scope.app.id, &filter, before, i64::from(limit) + 1).await?;
    let views = found.into_iter().map(LetterView::from).collect();
    let seal = |id: &Uuid| cursor::encode(&services.secrets, &list, id, now.plus(cursor::LIFETIME));
    Ok(Data {
        data: page(views, limit, |view: &LetterView| view.id, seal),
    })
}

/// Reads a dead letter.
#[utoipa::path(get, path = "/v1/apps/{appId}/dead-letters/{id}", tag = "dead letters",
    params(("appId" = Uuid, Path), ("id" = Uuid, Path)), responses((status = 200, body = Data<LetterView>)))]
pub async fn get_dead_letter(
    Viewer(scope): Viewer,
    State(services): State<Shared>,
    ResourceId(id): ResourceId,
) -> Result<Data<LetterView>, ApiError> {
    let mut tx = services.db.read().await?;
    let found = store::find(&mut tx, scope.app.id, id).await?;
    Ok(Data {
        data: found.ok_or_else(|| ApiError::new(Code::NotFound))?.into(),
    })
}

/// Acknowledges a dead letter: it is deleted.
#[utoipa::path(delete, path = "/v1/apps/{appId}/dead-letters/{id}", tag = "dead letters",
    params(("appId" = Uuid, Path), ("id" = Uuid, Path)), responses((status = 204)))]
pub async fn acknowledge_dead_letter(
    Editor(scope): Editor,
    State(services): State<Shared>,
    ResourceId(id): ResourceId,
) -> Result<StatusCode, ApiError> {
    let mut tx = services.db.write().await?;
    if !store::delete(&mut tx, scope.app.id, id).await? {
        return Err(ApiError::new(Code::NotFound));
    }
    let entry = Entry {
        app_id: scope.app.id,
        actor: &scope.actor,
        action: "dead_letter.acknowledged",
        resource: format!("dead-letter/{id}"),
        detail: json!({}),
    };
    audit::record(&mut tx, &entry, services.clock.now()).await?;
    tx.commit().await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Replays a dead letter: the stage that failed is run again.
#[utoipa::path(post, path = "/v1/apps/{appId}/dead-letters/{id}/replay", tag = "dead letters",
    params(("appId" = Uuid, Path), ("id" = Uuid, Path)), request_body = ReplayRequest,
    responses((status = 200, body = Data<ReplayView>)))]
pub async fn replay_dead_letter(
    Editor(scope): Editor,
    State(services): State<Shared>,
    ResourceId(id): ResourceId,
    OptionalJson(request): OptionalJson<ReplayRequest>,
) -> Result<Data<ReplayView>, ApiError> {
    let view = match replay::replay(&services, &scope, id, request.patch.map(Value::Object)).await?
    {
        Replayed::Done => ReplayView {
            status: "replayed",
            violations: None,
        },
        Replayed::StillFailing(violations) => ReplayView {
            status: "still_failing",
            violations: Some(violations),
        },
    };
    Ok(Data { data: view })
}
