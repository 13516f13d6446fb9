//! Routes of deletion (contract 6).

use axum::extract::State;
use axum::http::StatusCode;
use nudge_apps::auth::Admin;
use nudge_http::cursor::Cursors;
use nudge_http::page::{Page, PageQuery};
use nudge_http::{ApiError, Code, Data, Json, Params, ResourceId};
use nudge_platform::clock;
use nudge_platform::jobs::store::{self, JobRow};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::deletion::{KIND, Progress, Stage};
use super::{Reference, delete};
use crate::services::Shared;

/// Deletions of people.
pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(delete_person))
        .routes(routes!(get_deletion))
        .routes(routes!(list_deletions))
}

/// The detail of the refusal where a body names somebody unknown.
pub(super) const UNKNOWN_PERSON: &str = "the app has no such person; check the id in the body";

/// The longest id of a person, in characters.
const MOST_ID: usize = 256;

/// Whose data a request is about: exactly one of the two.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PersonRequest {
    /// The customer's own id of the person.
    external_id: Option<String>,
    /// Any anonymous id of the person.
    anonymous_id: Option<String>,
}

/// A deletion that was queued, or was there already.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct QueuedDeletionView {
    job_id: Uuid,
    /// `queued`, `running` or `analytics_pending`.
    status: &'static str,
}

/// A deletion and how far it is.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeletionView {
    job_id: Uuid,
    /// `queued`, `running`, `analytics_pending`, `completed` or `failed`.
    status: &'static str,
    requested_by: String,
    requested_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    completed_at: Option<String>,
    steps: Vec<StepView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    receipt: Option<ReceiptView>,
}

/// How far the deletion from one store is.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct StepView {
    store: String,
    /// `pending`, `running` or `completed`.
    state: &'static str,
    deleted_count: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    completed_at: Option<String>,
}

/// Proof of a deletion.
#[derive(Debug, Serialize, ToSchema)]
pub struct ReceiptView {
    /// SHA-256 of the signed JSON, in hexadecimal.
    digest: String,
    /// The JSON, signed: a JWS in compact form, to be verified with `/.well-known/jwks.json`.
    signature: String,
}

impl PersonRequest {
    /// The one reference.
    pub(super) fn reference(self) -> Result<Reference, ApiError> {
        let (reference, pointer) = match (self.external_id, self.anonymous_id) {
            (Some(id), None) => (Reference::ExternalId(id), "/externalId"),
            (None, Some(id)) => (Reference::AnonymousId(id), "/anonymousId"),
            _ => {
                let detail = "name the person by exactly one of externalId and anonymousId";
                return Err(ApiError::field("", "exactly_one", detail));
            }
        };
        let (_, id) = reference.alias();
        if id.is_empty() || id.chars().count() > MOST_ID || id.chars().any(char::is_control) {
            let detail = format!("an id has 1 to {MOST_ID} characters and no control characters");
            return Err(ApiError::field(pointer, "invalid", detail));
        }
        Ok(reference)
    }
}

/// The stage of a deletion, as people see it.
fn status(job: &JobRow, progress: &Progress) -> &'static str {
    match job.state.as_str() {
        "queued" => "queued",
        "completed" => "completed",
        "failed" => "failed",
        _ if progress.stage == Stage::Analytics => "analytics_pending",
        _ => "running",
    }
}

fn progress(job: &JobRow) -> Result<Progress, ApiError> {
    let progress: Option<Progress> = serde_json::from_str(&job.progress)
        .map_err(|cause| nudge_db::Error::corrupt("jobs", "progress", cause))?;
    Ok(progress.unwrap_or_default())
}

fn view(job: JobRow) -> Result<DeletionView, ApiError> {
    let progress = progress(&job)?;
    let status = status(&job, &progress);
    let steps = progress.steps.into_iter().map(|step| StepView {
        state: match (step.completed_at, step.deleted_count, status) {
            (Some(_), ..) => "completed",
            (None, 0, "queued") => "pending",
            (None, ..) if step.store == "analytics" && status != "analytics_pending" => "pending",
            (None, ..) => "running",
        },
        completed_at: step.completed_at.map(clock::to_text),
        store: step.store,
        deleted_count: step.deleted_count,
    });
    Ok(DeletionView {
        job_id: job.id,
        status,
        steps: steps.collect(),
        requested_by: job.requested_by,
        requested_at: clock::to_text(job.created_at),
        completed_at: job.completed_at.map(clock::to_text),
        receipt: progress
            .receipt
            .filter(|_| status == "completed")
            .map(|receipt| ReceiptView {
                digest: receipt.digest,
                signature: receipt.signature,
            }),
    })
}

/// Queues the deletion of everything that is stored of a person. From then on nothing more is stored.
#[utoipa::path(post, path = "/v1/apps/{appId}/gdpr/delete", tag = "privacy", params(("appId" = Uuid, Path)),
    request_body = PersonRequest, responses((status = 202, body = Data<QueuedDeletionView>)))]
pub async fn delete_person(
    Admin(scope): Admin,
    State(services): State<Shared>,
    Json(request): Json<PersonRequest>,
) -> Result<(StatusCode, Data<QueuedDeletionView>), ApiError> {
    let reference = request.reference()?;
    let app_id = scope.app.id;
    let now = services.clock.now();
    let mut tx = services.db.write().await?;
    let queued = delete(
        &mut tx,
        &services.pseudonyms,
        app_id,
        &reference,
        &scope.actor,
        now,
    )
    .await?
    .ok_or_else(|| ApiError::because(Code::NotFound, UNKNOWN_PERSON))?;
    let job = store::find(&mut tx, app_id, queued.job_id)
        .await?
        .ok_or_else(|| ApiError::new(Code::NotFound))?;
    tx.commit().await?;
    if let Some(subject_id) = queued.newly {
        services.polls.wake(subject_id);
        services.jobs.wake();
    }
    let data = QueuedDeletionView {
        job_id: job.id,
        status: status(&job, &progress(&job)?),
    };
    Ok((StatusCode::ACCEPTED, Data { data }))
}

/// Shows how far a deletion is.
#[utoipa::path(get, path = "/v1/apps/{appId}/gdpr/deletions/{jobId}", tag = "privacy",
    params(("appId" = Uuid, Path), ("jobId" = Uuid, Path)), responses((status = 200, body = Data<DeletionView>)))]
pub async fn get_deletion(
    Admin(scope): Admin,
    State(services): State<Shared>,
    ResourceId(id): ResourceId,
) -> Result<Data<DeletionView>, ApiError> {
    let mut tx = services.db.read().await?;
    let job = store::find(&mut tx, scope.app.id, id)
        .await?
        .filter(|job| job.kind == KIND)
        .ok_or_else(|| ApiError::new(Code::NotFound))?;
    Ok(Data { data: view(job)? })
}

/// Lists the deletions of an app, newest first.
#[utoipa::path(get, path = "/v1/apps/{appId}/gdpr/jobs", tag = "privacy",
    params(("appId" = Uuid, Path), PageQuery), responses((status = 200, body = Data<Page<DeletionView>>)))]
pub async fn list_deletions(
    Admin(scope): Admin,
    State(services): State<Shared>,
    Params(query): Params<PageQuery>,
) -> Result<Data<Page<DeletionView>>, ApiError> {
    let limit = query.limit()?;
    let now = services.clock.now();
    let list = format!("deletions {}", scope.app.id);
    let cursors = Cursors::new(&services.secrets, list, now);
    let before = cursors.open(query.cursor.as_deref())?;
    let mut tx = services.db.read().await?;
    let found = store::list(&mut tx, scope.app.id, KIND, before, i64::from(limit) + 1).await?;
    drop(tx);
    let views = found.into_iter().map(view).collect::<Result<_, _>>()?;
    let data = cursors.page(views, limit, |view: &DeletionView| view.job_id);
    Ok(Data { data })
}
