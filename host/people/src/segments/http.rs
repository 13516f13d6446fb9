//! Routes of segments.

use std::collections::HashMap;
use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use nudge_apps::auth::{Editor, Scope, Viewer};
use nudge_campaigns::segments::looking;
use nudge_campaigns::segments::store::{self, Use};
use nudge_campaigns::segments::{self, Content, Error, Segment};
use nudge_campaigns::store::Hold;
use nudge_db::{Timestamp, Tx};
use nudge_http::cursor::Cursors;
use nudge_http::merge::{self, Patched};
use nudge_http::page::{Page, PageQuery};
use nudge_http::precondition::IfMatch;
use nudge_http::query::range;
use nudge_http::{ApiError, Data, Json, Params, ResourceId, created};
use nudge_pipeline::segments::{job, knowing, known, preview, store as members};
use nudge_pipeline::services::{Services, Shared};
use nudge_platform::{audit, clock};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use crate::users::http::{UserView, views};

/// Segments.
pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(list_segments, create_segment))
        .routes(routes!(preview_segment))
        .routes(routes!(get_segment, update_segment, delete_segment))
        .routes(routes!(list_segment_members))
        .routes(routes!(list_segment_history))
}

/// Days of a history unless it says otherwise.
const HISTORY: Duration = Duration::from_hours(24 * 90);

/// A segment as the API shows it.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SegmentView {
    id: Uuid,
    app_id: Uuid,
    #[serde(flatten)]
    content: Content,
    version: i64,
    /// How many people are in it; null until everybody was looked at once.
    size: Option<i64>,
    /// As of when, at most an hour ago.
    size_at: Option<String>,
    /// What names it.
    used_by: Vec<Use>,
    created_at: String,
    updated_at: String,
}

/// Conditions to try.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = SegmentPreviewInput)]
#[serde(deny_unknown_fields)]
pub struct PreviewInput {
    /// Who would be in the segment: `include` and `exclude`.
    #[schema(value_type = Object)]
    audience: Value,
}

/// Who would be in a segment.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SegmentPreviewView)]
#[serde(rename_all = "camelCase")]
pub struct PreviewView {
    /// How many people.
    count: i64,
    /// Of how many.
    total: i64,
    /// Whether that is an estimate: of more than 10,000 people only a sample is looked at.
    is_estimate: bool,
    /// Some who would be in it, 20 at the most.
    sample: Vec<UserView>,
}

/// Members of a segment.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SegmentMembersView)]
#[serde(rename_all = "camelCase")]
pub struct MembersView {
    #[serde(flatten)]
    page: Page<UserView>,
    /// As of when, at most an hour ago; null until everybody was looked at once.
    as_of: Option<String>,
}

/// Which days of a segment's history.
#[derive(Debug, Default, Deserialize, IntoParams)]
pub struct HistoryQuery {
    /// From here on: an ISO 8601 instant, or a day (UTC). Unless given, 90 days ago.
    from: Option<String>,
    /// Before: an ISO 8601 instant; or a day, which is included.
    to: Option<String>,
}

/// The size of a segment on a day.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SegmentSizeView)]
pub struct SizeView {
    at: String,
    size: i64,
}

impl SegmentView {
    fn new(segment: Segment, used_by: Vec<Use>) -> Self {
        Self {
            id: segment.id,
            app_id: segment.app_id,
            content: segment.content,
            version: segment.version,
            size: segment.size,
            size_at: segment.size_at.map(clock::to_text),
            used_by,
            created_at: clock::to_text(segment.created_at),
            updated_at: clock::to_text(segment.updated_at),
        }
    }
}

/// A segment of the caller's app.
async fn find(tx: &mut Tx, scope: &Scope, id: Uuid) -> Result<Segment, ApiError> {
    let found = store::find(tx, scope.app.id, id).await?;
    Ok(found.ok_or(Error::NotFound)?)
}

/// A segment with what names it.
async fn shown(tx: &mut Tx, segment: Segment) -> Result<SegmentView, ApiError> {
    let uses = store::uses(tx, segment.app_id, &[segment.id]).await?;
    Ok(SegmentView::new(
        segment,
        uses.into_iter().map(|(_, used)| used).collect(),
    ))
}

async fn record(
    tx: &mut Tx,
    scope: &Scope,
    action: &'static str,
    segment: &Segment,
    patch: Map<String, Value>,
    now: Timestamp,
) -> nudge_db::Result<()> {
    let resource = format!("segment/{}", segment.id);
    let mut detail = patch;
    detail.insert("version".to_owned(), json!(segment.version));
    scope.record(tx, action, resource, detail.into(), now).await
}

/// Waits a moment until everybody was looked at; answers the segment as it is then.
async fn looked_at(services: &Services, scope: &Scope, id: Uuid) -> Result<SegmentView, ApiError> {
    known(services, scope.app.id, id).await?;
    let mut tx = services.db.read().await?;
    let segment = find(&mut tx, scope, id).await?;
    shown(&mut tx, segment).await
}

/// Lists an app's segments, newest first.
#[utoipa::path(get, path = "/v1/apps/{appId}/segments", tag = "segments",
    params(("appId" = Uuid, Path), PageQuery), responses((status = 200, body = Data<Page<SegmentView>>)))]
pub async fn list_segments(
    Viewer(scope): Viewer,
    State(services): State<Shared>,
    Params(query): Params<PageQuery>,
) -> Result<Data<Page<SegmentView>>, ApiError> {
    let (app_id, now, limit) = (scope.app.id, services.clock.now(), query.limit()?);
    let list = format!("segments {app_id}");
    let cursors = Cursors::new(&services.secrets, list, now);
    let before: Option<Uuid> = cursors.open(query.cursor.as_deref())?;
    let mut tx = services.db.read().await?;
    let before = before.unwrap_or(Uuid::max());
    let found = store::page(&mut tx, app_id, before, i64::from(limit) + 1).await?;
    let ids: Vec<Uuid> = found.iter().map(|segment| segment.id).collect();
    let mut uses: HashMap<Uuid, Vec<Use>> = HashMap::new();
    for (id, used) in store::uses(&mut tx, app_id, &ids).await? {
        uses.entry(id).or_default().push(used);
    }
    let page = cursors.page(found, limit, |segment| segment.id);
    let data = page.map(|segment| {
        let used_by = uses.remove(&segment.id).unwrap_or_default();
        SegmentView::new(segment, used_by)
    });
    Ok(Data { data })
}

/// Creates a segment. Who is in it is found out at once; of many people that goes on after the answer.
#[utoipa::path(post, path = "/v1/apps/{appId}/segments", tag = "segments", params(("appId" = Uuid, Path)),
    request_body = Content, responses((status = 201, body = Data<SegmentView>)))]
pub async fn create_segment(
    Editor(scope): Editor,
    State(services): State<Shared>,
    Json(content): Json<Content>,
) -> Result<(StatusCode, Data<SegmentView>), ApiError> {
    let now = services.clock.now();
    let id = nudge_platform::id::new(now);
    let app = knowing(&services, &scope, &segments::named(&content.audience)).await?;
    let audiences = &app.segments.audiences;
    segments::check(&services.plugins, &app.deciders, audiences, id, &content).await?;
    let segment = Segment {
        id,
        app_id: app.id,
        version: 1,
        content,
        size: None,
        size_at: None,
        created_at: now,
        updated_at: now,
    };
    let mut tx = services.db.write().await?;
    segments::create(&mut tx, &segment).await?;
    looking::anew(&mut tx, app.id, &[id], now).await?;
    record(
        &mut tx,
        &scope,
        "segment.created",
        &segment,
        Map::new(),
        now,
    )
    .await?;
    tx.commit().await?;
    services.apps.refresh(app.id).await?;
    services.jobs.wake();
    Ok(created(looked_at(&services, &scope, id).await?))
}

/// Shows a segment.
#[utoipa::path(get, path = "/v1/apps/{appId}/segments/{segmentId}", tag = "segments",
    params(("appId" = Uuid, Path), ("segmentId" = Uuid, Path)), responses((status = 200, body = Data<SegmentView>)))]
pub async fn get_segment(
    Viewer(scope): Viewer,
    State(services): State<Shared>,
    ResourceId(id): ResourceId,
) -> Result<Data<SegmentView>, ApiError> {
    let mut tx = services.db.read().await?;
    let segment = find(&mut tx, &scope, id).await?;
    let data = shown(&mut tx, segment).await?;
    Ok(Data { data })
}

/// Changes a segment (JSON merge patch). Whoever is in it or out of it by a change of its conditions has neither entered nor left.
#[utoipa::path(patch, path = "/v1/apps/{appId}/segments/{segmentId}", tag = "segments",
    params(("appId" = Uuid, Path), ("segmentId" = Uuid, Path)), request_body = Value,
    responses((status = 200, body = Data<SegmentView>)))]
pub async fn update_segment(
    Editor(scope): Editor,
    State(services): State<Shared>,
    ResourceId(id): ResourceId,
    if_match: IfMatch,
    Json(patch): Json<Map<String, Value>>,
) -> Result<Data<SegmentView>, ApiError> {
    let mut tx = services.db.read().await?;
    let current = find(&mut tx, &scope, id).await?;
    drop(tx);
    if_match.check(current.version)?;
    let detail = audit::of_patch(&patch);
    let patched: Patched<Content> = merge::patched_and_tried(&current.content, patch)?;
    let named = segments::named(&patched.content.audience);
    let app = knowing(&services, &scope, &named).await?;
    let (plugins, audiences) = (&services.plugins, &app.segments.audiences);
    let check = |content| segments::check(plugins, &app.deciders, audiences, id, content);
    patched.check(check).await?;
    let content = patched.content;
    let is_other = content.audience != current.content.audience;
    let now = services.clock.now();
    let segment = Segment {
        version: current.version + 1,
        content,
        updated_at: now,
        ..current
    };
    let mut tx = services.db.write().await?;
    let mut renewed = segments::update(&mut tx, &segment).await?;
    renewed.push(id);
    if is_other {
        looking::anew(&mut tx, app.id, &renewed, now).await?;
    }
    record(&mut tx, &scope, "segment.updated", &segment, detail, now).await?;
    tx.commit().await?;
    services.apps.refresh(app.id).await?;
    services.jobs.wake();
    let data = looked_at(&services, &scope, id).await?;
    Ok(Data { data })
}

/// Deletes a segment that nothing names.
#[utoipa::path(delete, path = "/v1/apps/{appId}/segments/{segmentId}", tag = "segments",
    params(("appId" = Uuid, Path), ("segmentId" = Uuid, Path)), responses((status = 204)))]
pub async fn delete_segment(
    Editor(scope): Editor,
    State(services): State<Shared>,
    ResourceId(id): ResourceId,
    if_match: IfMatch,
) -> Result<StatusCode, ApiError> {
    let (app_id, now) = (scope.app.id, services.clock.now());
    let mut tx = services.db.write().await?;
    let held = store::hold_one(&mut tx, app_id, id, Hold::Alone).await?;
    let segment = held.ok_or(Error::NotFound)?;
    if_match.check(segment.version)?;
    segments::delete(&mut tx, app_id, id, now).await?;
    job::queue_forgetting(&mut tx, app_id, id, now).await?;
    record(
        &mut tx,
        &scope,
        "segment.deleted",
        &segment,
        Map::new(),
        now,
    )
    .await?;
    tx.commit().await?;
    services.jobs.wake();
    services.apps.refresh(app_id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Tries conditions: who would be in the segment.
#[utoipa::path(post, path = "/v1/apps/{appId}/segments/preview", tag = "segments", params(("appId" = Uuid, Path)),
    request_body = PreviewInput, responses((status = 200, body = Data<PreviewView>)))]
pub async fn preview_segment(
    Viewer(scope): Viewer,
    State(services): State<Shared>,
    Json(input): Json<PreviewInput>,
) -> Result<Data<PreviewView>, ApiError> {
    let app = knowing(&services, &scope, &segments::named(&input.audience)).await?;
    let (deciders, audiences) = (&app.deciders, &app.segments.audiences);
    let conditions = segments::conditions(&services.plugins, deciders, audiences, &input.audience);
    let found = preview::preview(&services, app.id, &conditions.await?).await?;
    let mut tx = services.db.repeatable_read().await?;
    let data = PreviewView {
        count: found.count,
        total: found.total,
        is_estimate: found.is_estimate,
        sample: views(&mut tx, app.id, &found.sample).await?,
    };
    Ok(Data { data })
}

/// Lists the members of a segment, newest people first.
#[utoipa::path(get, path = "/v1/apps/{appId}/segments/{segmentId}/members", tag = "segments",
    params(("appId" = Uuid, Path), ("segmentId" = Uuid, Path), PageQuery),
    responses((status = 200, body = Data<MembersView>)))]
pub async fn list_segment_members(
    Viewer(scope): Viewer,
    State(services): State<Shared>,
    ResourceId(id): ResourceId,
    Params(query): Params<PageQuery>,
) -> Result<Data<MembersView>, ApiError> {
    let (app_id, now, limit) = (scope.app.id, services.clock.now(), query.limit()?);
    let list = format!("segment members {app_id} {id}");
    let cursors = Cursors::new(&services.secrets, list, now);
    let before: Option<Uuid> = cursors.open(query.cursor.as_deref())?;
    let mut tx = services.db.repeatable_read().await?;
    let segment = find(&mut tx, &scope, id).await?;
    let before = before.unwrap_or(Uuid::max());
    let found = members::members(&mut tx, app_id, id, before, i64::from(limit) + 1).await?;
    let found = cursors.page(found, limit, |id| *id);
    let page = Page {
        items: views(&mut tx, app_id, &found.items).await?,
        next_cursor: found.next_cursor,
    };
    let data = MembersView {
        page,
        as_of: segment.size_at.map(clock::to_text),
    };
    Ok(Data { data })
}

/// Lists the sizes of a segment, one a day, the oldest first.
#[utoipa::path(get, path = "/v1/apps/{appId}/segments/{segmentId}/history", tag = "segments",
    params(("appId" = Uuid, Path), ("segmentId" = Uuid, Path), HistoryQuery),
    responses((status = 200, body = Data<Vec<SizeView>>)))]
pub async fn list_segment_history(
    Viewer(scope): Viewer,
    State(services): State<Shared>,
    ResourceId(id): ResourceId,
    Params(query): Params<HistoryQuery>,
) -> Result<Data<Vec<SizeView>>, ApiError> {
    let (from, to) = range("", query.from.as_deref(), query.to.as_deref())?;
    let from = from.unwrap_or_else(|| services.clock.now().minus(HISTORY));
    let mut tx = services.db.read().await?;
    let segment = find(&mut tx, &scope, id).await?;
    let span = (from, to.unwrap_or(Timestamp(i64::MAX)));
    let sizes = store::history(&mut tx, scope.app.id, segment.id, span).await?;
    let view = |(at, size)| SizeView {
        at: clock::to_text(at),
        size,
    };
    Ok(Data {
        data: sizes.into_iter().map(view).collect(),
    })
}
