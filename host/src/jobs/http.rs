//! The route of jobs (contract 11).

use axum::extract::State;
use nudge_apps::auth::Viewer;
use nudge_http::{ApiError, Code, Data, ResourceId};
use nudge_people::privacy;
use nudge_platform::clock;
use nudge_platform::jobs::store::{self, JobRow};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use crate::services::Shared;

/// Jobs.
pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new().routes(routes!(get_job))
}

/// A job and how far it is.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobView {
    job_id: Uuid,
    kind: String,
    /// `queued`, `running`, `completed` or `failed`.
    status: String,
    progress: Progress,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    requested_by: String,
    created_at: String,
    updated_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    completed_at: Option<String>,
}

/// How far a job is.
#[derive(Debug, Serialize, ToSchema)]
pub struct Progress {
    done: i64,
    /// Absent until it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    total: Option<i64>,
}

impl From<JobRow> for JobView {
    fn from(row: JobRow) -> Self {
        Self {
            job_id: row.id,
            kind: row.kind,
            status: row.state,
            progress: Progress {
                done: row.done,
                total: row.total,
            },
            result: row
                .result
                .and_then(|result| serde_json::from_str(&result).ok()),
            error: row.error,
            requested_by: row.requested_by,
            created_at: clock::to_text(row.created_at),
            updated_at: clock::to_text(row.updated_at),
            completed_at: row.completed_at.map(clock::to_text),
        }
    }
}

/// Shows how far a job is, and what came of it. Jobs about somebody's privacy are admins' (contract 1).
#[utoipa::path(get, path = "/v1/apps/{appId}/jobs/{id}", tag = "jobs",
    params(("appId" = Uuid, Path), ("id" = Uuid, Path)), responses((status = 200, body = Data<JobView>)))]
pub async fn get_job(
    Viewer(scope): Viewer,
    State(services): State<Shared>,
    ResourceId(id): ResourceId,
) -> Result<Data<JobView>, ApiError> {
    let mut tx = services.db.read().await?;
    let found = store::find(&mut tx, scope.app.id, id).await?;
    let job = found.ok_or_else(|| ApiError::new(Code::NotFound))?;
    if [privacy::exports::KIND, privacy::deletion::KIND].contains(&job.kind.as_str()) {
        scope.require_admin()?;
    }
    Ok(Data { data: job.into() })
}
