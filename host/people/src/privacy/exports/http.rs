//! Routes of exports (contract 6).

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use futures_util::stream;
use nudge_apps::auth::Admin;
use nudge_db::Timestamp;
use nudge_http::{ApiError, Code, Data, Json, Params, ResourceId};
use nudge_platform::{clock, jobs};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::{ExportRefusal, KIND, queue, store};
use crate::privacy::http::{PersonRequest, UNKNOWN_PERSON};
use crate::services::Shared;

/// Copies of what is kept of people.
pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(export_person))
        .routes(routes!(get_export))
        .routes(routes!(download_export))
}

/// How long a download URL is good for (contract 6).
const URL_LIFETIME: Duration = Duration::from_mins(15);
const PURPOSE: &str = "export download";

/// An export that was queued.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct QueuedExportView {
    export_id: Uuid,
    /// `queued`.
    status: &'static str,
}

/// An export.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExportView {
    export_id: Uuid,
    /// `queued`, `running`, `completed`, `failed` or `expired`.
    status: String,
    /// How the request named the person; null once the person is deleted.
    subject: Value,
    requested_by: String,
    requested_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    completed_at: Option<String>,
    /// Where the archive is, without another credential, for a quarter of an hour.
    #[serde(skip_serializing_if = "Option::is_none")]
    download_url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    download_url_expires_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    size_bytes: Option<i64>,
    /// In hexadecimal.
    #[serde(skip_serializing_if = "Option::is_none")]
    sha256: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// What a download URL is signed with.
#[derive(Debug, Deserialize, IntoParams)]
pub struct DownloadQuery {
    /// The app.
    app: Uuid,
    /// Until when the URL is good, in microseconds since the epoch.
    expires: i64,
    /// The server's signature.
    signature: String,
}

impl From<ExportRefusal> for ApiError {
    fn from(refusal: ExportRefusal) -> Self {
        match refusal {
            ExportRefusal::NotFound => Self::because(Code::NotFound, UNKNOWN_PERSON),
            ExportRefusal::TooMany => Self::because(
                Code::LimitExceeded,
                "too many exports are queued; wait until some have ended",
            ),
            ExportRefusal::Storage(cause) => cause.into(),
        }
    }
}

/// Queues a copy of everything that is stored of a person.
#[utoipa::path(post, path = "/v1/apps/{appId}/gdpr/export", tag = "privacy", params(("appId" = Uuid, Path)),
    request_body = PersonRequest, responses((status = 202, body = Data<QueuedExportView>)))]
pub async fn export_person(
    Admin(scope): Admin,
    State(services): State<Shared>,
    Json(request): Json<PersonRequest>,
) -> Result<(StatusCode, Data<QueuedExportView>), ApiError> {
    let reference = request.reference()?;
    let now = services.clock.now();
    let mut tx = services.db.write().await?;
    let pseudonyms = &services.pseudonyms;
    let export_id = queue(
        &mut tx,
        pseudonyms,
        scope.app.id,
        &reference,
        &scope.actor,
        now,
    )
    .await?;
    tx.commit().await?;
    services.jobs.wake();
    let data = QueuedExportView {
        export_id,
        status: "queued",
    };
    Ok((StatusCode::ACCEPTED, Data { data }))
}

/// Shows an export; once it is completed, with a new URL of the archive each time.
#[utoipa::path(get, path = "/v1/apps/{appId}/gdpr/exports/{exportId}", tag = "privacy",
    params(("appId" = Uuid, Path), ("exportId" = Uuid, Path)), responses((status = 200, body = Data<ExportView>)))]
pub async fn get_export(
    Admin(scope): Admin,
    State(services): State<Shared>,
    ResourceId(id): ResourceId,
) -> Result<Data<ExportView>, ApiError> {
    let now = services.clock.now();
    let app_id = scope.app.id;
    let mut tx = services.db.read().await?;
    let not_found = || ApiError::new(Code::NotFound);
    let job = jobs::store::find(&mut tx, app_id, id)
        .await?
        .filter(|job| job.kind == KIND)
        .ok_or_else(not_found)?;
    let row = store::find(&mut tx, app_id, id)
        .await?
        .ok_or_else(not_found)?;
    drop(tx);
    let completed = job.state == "completed";
    let expires_at = row
        .expires_at
        .filter(|expires_at| completed && now < *expires_at);
    let url = expires_at.map(|expires_at| {
        let good_until = now.plus(URL_LIFETIME).min(expires_at);
        (download_url(&services, app_id, id, good_until), good_until)
    });
    let subject = row.reference.as_deref().map(serde_json::from_str::<Value>);
    let subject = subject
        .transpose()
        .map_err(|cause| nudge_db::Error::corrupt("privacy_exports", "reference", cause))?;
    let view = ExportView {
        export_id: id,
        status: if completed && expires_at.is_none() {
            "expired".to_owned()
        } else {
            job.state
        },
        subject: subject.unwrap_or_default(),
        requested_by: job.requested_by,
        requested_at: clock::to_text(job.created_at),
        completed_at: job.completed_at.map(clock::to_text),
        download_url_expires_at: url.as_ref().map(|(_, until)| clock::to_text(*until)),
        download_url: url.map(|(url, _)| url),
        size_bytes: row.size_bytes.filter(|_| completed),
        sha256: row.sha256.filter(|_| completed),
        error: job.error,
    };
    Ok(Data { data: view })
}

fn download_url(services: &Shared, app_id: Uuid, id: Uuid, until: Timestamp) -> String {
    let parts: [&[u8]; 3] = [app_id.as_bytes(), id.as_bytes(), &until.0.to_be_bytes()];
    let signature = URL_SAFE_NO_PAD.encode(services.secrets.sign(PURPOSE, &parts));
    let (base, expires) = (&services.public_url, until.0);
    format!("{base}/v1/exports/{id}/archive?app={app_id}&expires={expires}&signature={signature}")
}

/// Downloads an archive: a zip file of JSON files, and of `.ndjson` files with an object on each line. The URL is the credential;
/// one that is not good is that of nothing.
#[utoipa::path(get, path = "/v1/exports/{exportId}/archive", tag = "privacy",
    params(("exportId" = Uuid, Path), DownloadQuery),
    responses((status = 200, content_type = "application/zip", body = Vec<u8>)))]
pub async fn download_export(
    State(services): State<Shared>,
    ResourceId(id): ResourceId,
    query: Result<Params<DownloadQuery>, ApiError>,
) -> Result<Response, ApiError> {
    let not_found = || {
        let detail = "the link is not good, or not any longer; read the export again for a new one";
        ApiError::because(Code::NotFound, detail)
    };
    let Params(query) = query.map_err(|_| not_found())?;
    let signature = URL_SAFE_NO_PAD
        .decode(&query.signature)
        .map_err(|_| not_found())?;
    let now = services.clock.now();
    let parts: [&[u8]; 3] = [
        query.app.as_bytes(),
        id.as_bytes(),
        &query.expires.to_be_bytes(),
    ];
    let genuine = signature.len() == 32 && services.secrets.verify(PURPOSE, &parts, &signature);
    if !genuine || query.expires <= now.0 {
        return Err(not_found());
    }
    // What is left of a deleted app is removed later.
    let app = services.apps.get(query.app).await?;
    app.ok_or_else(not_found)?;
    let mut tx = services.db.read().await?;
    let row = store::find(&mut tx, query.app, id)
        .await?
        .filter(|row| row.expires_at.is_some_and(|expires_at| now < expires_at))
        .ok_or_else(not_found)?;
    drop(tx);
    let size_bytes = row.size_bytes.unwrap_or_default();
    let headers = [
        (header::CONTENT_TYPE, "application/zip".to_owned()),
        (header::CONTENT_LENGTH, size_bytes.to_string()),
        (header::CACHE_CONTROL, "no-store".to_owned()),
        (
            header::CONTENT_DISPOSITION,
            format!("attachment; filename=\"export-{id}.zip\""),
        ),
    ];
    Ok((headers, chunks(services, query.app, id, size_bytes)).into_response())
}

/// The archive, of which one piece at a time is in memory. One that is deleted meanwhile breaks off.
fn chunks(services: Shared, app_id: Uuid, id: Uuid, size_bytes: i64) -> Body {
    let state = (services, 0_i64, size_bytes);
    let chunks = stream::try_unfold(state, move |(services, number, left)| async move {
        if left <= 0 {
            return Ok(None);
        }
        let mut tx = services.db.read().await?;
        let chunk = store::chunk(&mut tx, app_id, id, number).await?;
        drop(tx);
        let gone =
            || nudge_db::Error::corrupt("privacy_export_chunks", "bytes", "the archive is gone");
        let chunk = chunk.ok_or_else(gone)?;
        let left = left - i64::try_from(chunk.len()).unwrap_or(i64::MAX);
        Ok::<_, nudge_db::Error>(Some((chunk, (Arc::clone(&services), number + 1, left))))
    });
    Body::from_stream(chunks)
}
