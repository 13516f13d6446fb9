//! Routes of dead letters (contract 11).

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use nudge_apps::auth::{Editor, Scope, Viewer};
use nudge_db::Timestamp;
use nudge_http::body::OptionalJson;
use nudge_http::csv::WantsCsv;
use nudge_http::cursor::Cursors;
use nudge_http::page::{self, Gathering, Page};
use nudge_http::query::range;
use nudge_http::{ApiError, Code, Data, Json, Params, ResourceId};
use nudge_platform::audit::{self, Entry};
use nudge_platform::clock;
use nudge_platform::jobs::{self, NewJob};
use nudge_records::dead_letters::store::{
    self, Filter, FoundLetter, Group, GroupPosition, LetterPosition,
};
use nudge_records::dead_letters::violation::Violation;
use nudge_records::dead_letters::{PluginVersion, Stage};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::bulk::{self, BulkLettersInput};
use super::replay::{self, Replayed};
use super::rows;
use crate::services::Shared;

/// Dead letters.
pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(list_dead_letters))
        .routes(routes!(get_dead_letter, acknowledge_dead_letter))
        .routes(routes!(replay_dead_letter))
        .routes(routes!(summarize_dead_letters))
        .routes(routes!(replay_dead_letters))
        .routes(routes!(acknowledge_dead_letters))
}

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
    /// When by the client's clock, where that differed from the server's and `timestamp` was corrected.
    #[serde(skip_serializing_if = "Option::is_none")]
    client_timestamp: Option<String>,
    stage: Stage,
    reason: String,
    /// What the plugin said when it failed, such as the message and place of a panic.
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
    violations: Vec<Violation>,
    #[serde(skip_serializing_if = "Option::is_none")]
    plugin: Option<PluginVersion>,
    #[serde(skip_serializing_if = "Option::is_none")]
    campaign_id: Option<Uuid>,
    /// The timer that the plugin failed on, where it was not the event itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    timer: Option<LetterTimerView>,
    #[schema(value_type = Value)]
    event: Box<RawValue>,
    attempts: i64,
    state: &'static str,
}

/// A timer that the event has set.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LetterTimerView {
    /// The plugin's key for it.
    key: String,
    /// When it fell due.
    due_at: String,
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
    /// Received at or after: an ISO 8601 instant, or a day (UTC).
    from: Option<String>,
    /// Received before: an ISO 8601 instant; or a day, which is included.
    to: Option<String>,
    /// How many items, 1 to 200; 50 unless given.
    #[param(minimum = 1, maximum = 200, default = 50)]
    limit: Option<u32>,
    /// Where to go on.
    cursor: Option<String>,
}

/// Which letters to count.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
pub struct SummaryQuery {
    /// Events of this name.
    event_name: Option<String>,
    /// This reason.
    reason: Option<String>,
    /// This stage.
    stage: Option<Stage>,
    /// Received at or after: an ISO 8601 instant, or a day (UTC).
    from: Option<String>,
    /// Received before: an ISO 8601 instant; or a day, which is included.
    to: Option<String>,
    /// How many items, 1 to 200; 50 unless given.
    #[param(minimum = 1, maximum = 200, default = 50)]
    limit: Option<u32>,
    /// Where to go on. The pages that follow count what the first one has counted.
    cursor: Option<String>,
}

/// Letters of an event name with a reason.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct GroupView {
    event_name: String,
    reason: String,
    count: i64,
    first_seen_at: String,
    last_seen_at: String,
    /// One of them: the last.
    sample_id: Uuid,
}

/// Which letters a job is about. All conditions must hold; none: all letters.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FilterRequest {
    /// Events of this name.
    event_name: Option<String>,
    /// This reason.
    reason: Option<String>,
    /// This stage.
    stage: Option<Stage>,
    /// Received at or after: an ISO 8601 instant, or a day (UTC).
    from: Option<String>,
    /// Received before: an ISO 8601 instant; or a day, which is included.
    to: Option<String>,
}

/// Which letters to replay, and how.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BulkReplayRequest {
    filter: FilterRequest,
    /// A merge patch (RFC 7396) on the events' properties. Only events that broke their definition are replayed
    /// then: the others were accepted as they are.
    patch: Option<serde_json::Map<String, Value>>,
}

/// Which letters to acknowledge.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BulkAcknowledgeRequest {
    filter: FilterRequest,
}

/// The job that does it.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct QueuedView {
    job_id: Uuid,
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
    /// `replayed` or `still_failing`.
    status: &'static str,
    /// Why it fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    violations: Option<Vec<Violation>>,
}

impl From<FoundLetter> for LetterView {
    fn from(found: FoundLetter) -> Self {
        let FoundLetter {
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
            client_timestamp: letter.client_timestamp.map(clock::to_text),
            stage: letter.stage,
            reason: letter.reason,
            detail: letter.detail,
            violations: letter.violations,
            plugin: letter.plugin,
            campaign_id: letter.campaign_id,
            timer: letter.timer.map(|timer| LetterTimerView {
                key: timer.key,
                due_at: clock::to_text(timer.due_at),
            }),
            event: RawValue::from_string(letter.event).unwrap_or_default(),
            attempts: letter.attempts,
            state: "open",
        }
    }
}

impl From<Group> for GroupView {
    fn from(group: Group) -> Self {
        Self {
            event_name: group.event_name,
            reason: group.reason,
            count: group.count,
            first_seen_at: clock::to_text(group.first_seen_at),
            last_seen_at: clock::to_text(group.last_seen_at),
            sample_id: group.sample_id,
        }
    }
}

impl FilterRequest {
    /// The letters that are there already; those that come later are another request's.
    fn filter(self, now: Timestamp) -> Result<Filter, ApiError> {
        let until_now = Timestamp(now.0 + 1);
        let (from, to) = range("filter/", self.from.as_deref(), self.to.as_deref())?;
        let filter = Filter {
            from,
            to: Some(to.map_or(until_now, |to| to.min(until_now))),
            event_name: self.event_name,
            reason: self.reason,
            stage: self.stage,
        };
        match bulk::nul(&filter) {
            None => Ok(filter),
            Some(name) => {
                let detail = format!("`{name}` has a NUL character");
                Err(ApiError::field(
                    format!("/filter/{name}"),
                    "invalid",
                    detail,
                ))
            }
        }
    }
}

/// Lists dead letters, newest first.
#[utoipa::path(get, path = "/v1/apps/{appId}/dead-letters", tag = "dead letters",
    params(("appId" = Uuid, Path), ListQuery),
    responses((status = 200, content((Data<Page<LetterView>> = "application/json"), (String = "text/csv")))))]
pub async fn list_dead_letters(
    Viewer(scope): Viewer,
    State(services): State<Shared>,
    WantsCsv(wants_csv): WantsCsv,
    Params(query): Params<ListQuery>,
) -> Result<Response, ApiError> {
    let limit = page::limit(query.limit)?;
    let now = services.clock.now();
    let (from, to) = range("", query.from.as_deref(), query.to.as_deref())?;
    let filter = Filter {
        from,
        to,
        event_name: query.event_name,
        reason: query.reason,
        stage: query.stage,
    };
    if wants_csv {
        return rows::answer(&services, scope.app.id, filter).await;
    }
    let list = format!("dead letters {} {filter:?}", scope.app.id);
    let cursors = Cursors::new(&services.secrets, list, now);
    let before: Option<LetterPosition> = cursors.open(query.cursor.as_deref())?;
    let mut tx = services.db.read().await?;
    let mut page = Gathering::new(limit as usize);
    while let Some(wanted) = page.wanted() {
        let shown = page
            .last()
            .map(|FoundLetter { letter, .. }| (letter.timestamp, letter.id));
        let wanted = i64::try_from(wanted).unwrap_or(i64::MAX);
        let before = shown.or(before);
        let found = store::list(&mut tx, scope.app.id, &filter, before, wanted).await?;
        page.add(found, |FoundLetter { letter, .. }| letter.event.len());
    }
    drop(tx);
    let (found, more) = page.end();
    let position = |FoundLetter { letter, .. }: &FoundLetter| -> LetterPosition {
        (letter.timestamp, letter.id)
    };
    let next_cursor = cursors.behind(&found, more, position);
    let items = found.into_iter().map(LetterView::from).collect();
    let data = Page { items, next_cursor };
    Ok(Data { data }.into_response())
}

/// Counts dead letters by event name and reason, the most frequent first.
#[utoipa::path(get, path = "/v1/apps/{appId}/dead-letters/summary", tag = "dead letters",
    params(("appId" = Uuid, Path), SummaryQuery), responses((status = 200, body = Data<Page<GroupView>>)))]
pub async fn summarize_dead_letters(
    Viewer(scope): Viewer,
    State(services): State<Shared>,
    Params(query): Params<SummaryQuery>,
) -> Result<Data<Page<GroupView>>, ApiError> {
    let limit = page::limit(query.limit)?;
    let now = services.clock.now();
    let (from, to) = range("", query.from.as_deref(), query.to.as_deref())?;
    let filter = Filter {
        from,
        to,
        event_name: query.event_name,
        reason: query.reason,
        stage: query.stage,
    };
    let list = format!("summary of dead letters {} {filter:?}", scope.app.id);
    let cursors = Cursors::new(&services.secrets, list, now);
    let after: Option<GroupPosition> = cursors.open(query.cursor.as_deref())?;
    let mut tx = services.db.read().await?;
    let until = match &after {
        Some(after) => after.until,
        None => store::end(&mut tx, scope.app.id, &filter).await?,
    };
    let wanted = i64::from(limit) + 1;
    let counted = filter.until(until);
    let groups = store::summary(&mut tx, scope.app.id, &counted, after.as_ref(), wanted).await?;
    drop(tx);
    let page = cursors.page(groups, limit, |group| group.position(until));
    Ok(Data {
        data: page.map(GroupView::from),
    })
}

/// Replays many dead letters: a job, whose progress is at its route.
#[utoipa::path(post, path = "/v1/apps/{appId}/dead-letters/replay", tag = "dead letters",
    params(("appId" = Uuid, Path)), request_body = BulkReplayRequest,
    responses((status = 202, body = Data<QueuedView>)))]
pub async fn replay_dead_letters(
    Editor(scope): Editor,
    State(services): State<Shared>,
    Json(request): Json<BulkReplayRequest>,
) -> Result<(StatusCode, Data<QueuedView>), ApiError> {
    let mut filter = request.filter.filter(services.clock.now())?;
    if let Some(patch) = &request.patch {
        let stage = *filter.stage.get_or_insert(Stage::Validation);
        if stage != Stage::Validation {
            let detail = "events of this stage were accepted; only events that broke their definition can be patched";
            return Err(ApiError::field("/patch", "not_allowed", detail));
        }
        nudge_records::events::check_properties(&Value::Object(patch.clone()).to_string())
            .map_err(|detail| ApiError::field("/patch", "invalid", detail))?;
    }
    let input = BulkLettersInput {
        filter,
        patch: request.patch,
    };
    let action = "dead_letters.replay_queued";
    queue(&services, &scope, bulk::REPLAY, action, &input).await
}

/// Acknowledges many dead letters: a job deletes them.
#[utoipa::path(post, path = "/v1/apps/{appId}/dead-letters/acknowledge", tag = "dead letters",
    params(("appId" = Uuid, Path)), request_body = BulkAcknowledgeRequest,
    responses((status = 202, body = Data<QueuedView>)))]
pub async fn acknowledge_dead_letters(
    Editor(scope): Editor,
    State(services): State<Shared>,
    Json(request): Json<BulkAcknowledgeRequest>,
) -> Result<(StatusCode, Data<QueuedView>), ApiError> {
    let input = BulkLettersInput {
        filter: request.filter.filter(services.clock.now())?,
        patch: None,
    };
    let action = "dead_letters.acknowledgement_queued";
    queue(&services, &scope, bulk::ACKNOWLEDGE, action, &input).await
}

async fn queue(
    services: &Shared,
    scope: &Scope,
    kind: &'static str,
    action: &'static str,
    input: &BulkLettersInput,
) -> Result<(StatusCode, Data<QueuedView>), ApiError> {
    let now = services.clock.now();
    let app_id = scope.app.id;
    let mut tx = services.db.write().await?;
    let job = NewJob {
        app_id,
        kind,
        input: serde_json::to_value(input).map_err(ApiError::internal)?,
        requested_by: &scope.actor,
    };
    let most = bulk::MOST_AT_ONCE;
    let queued = jobs::queue_limited(&mut tx, &job, most, now).await?;
    let job_id = queued.ok_or_else(|| {
        let detail = format!("{most} such jobs are under way; wait until one has ended");
        ApiError::because(Code::LimitExceeded, detail)
    })?;
    let filter = &input.filter;
    let entry = Entry {
        app_id,
        actor: &scope.actor,
        action,
        resource: format!("job/{job_id}"),
        detail: json!({
            "eventName": filter.event_name,
            "reason": filter.reason,
            "stage": filter.stage,
            "from": filter.from.map(clock::to_text),
            "to": filter.to.map(clock::to_text),
            "patched": input.patch.is_some(),
        }),
    };
    audit::record(&mut tx, &entry, now).await?;
    tx.commit().await?;
    services.jobs.wake();
    let data = QueuedView { job_id };
    Ok((StatusCode::ACCEPTED, Data { data }))
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

/// Replays a dead letter: the stage that failed is run again. One that was replayed before is `replayed`, and nothing is done.
#[utoipa::path(post, path = "/v1/apps/{appId}/dead-letters/{id}/replay", tag = "dead letters",
    params(("appId" = Uuid, Path), ("id" = Uuid, Path)), request_body = Option<ReplayRequest>,
    responses((status = 200, body = Data<ReplayView>)))]
pub async fn replay_dead_letter(
    Editor(scope): Editor,
    State(services): State<Shared>,
    ResourceId(id): ResourceId,
    OptionalJson(request): OptionalJson<ReplayRequest>,
) -> Result<Data<ReplayView>, ApiError> {
    let view = match replay::replay(&services, &scope, id, request.patch.as_ref()).await? {
        Replayed::Done => ReplayView {
            status: "replayed",
            reason: None,
            violations: None,
        },
        Replayed::StillFailing { reason, violations } => ReplayView {
            status: "still_failing",
            reason: Some(reason),
            violations: Some(violations),
        },
    };
    Ok(Data { data: view })
}
