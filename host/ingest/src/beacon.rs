//! Events of a page that goes away.
//!
//! A browser sends what a closing page leaves without asking the server first only if the request has no headers of its
//! own: with `Authorization` it would ask (a preflight), and the page may be gone before the answer. A beacon therefore
//! has the credentials in the first line of its body.

use axum::extract::{FromRequest, FromRequestParts as _, Request, State};
use axum::http::{HeaderName, HeaderValue, header};
use nudge_http::request_context::Notes;
use nudge_http::{ApiError, Code, Data, JsonText};
use serde::Deserialize;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::http::{IngestView, take};
use super::owner::Caller;
use crate::services::Shared;

/// Events that a page sends as it closes.
pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new().routes(routes!(ingest_beacon))
}

/// The first line of a beacon. The rest is the body of `POST /v1/sdk/ingest`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Credentials {
    write_key: String,
    subject_token: String,
}

/// A beacon, and who sends it.
pub struct Beacon {
    caller: Caller,
    notes: Notes,
    text: String,
}

impl FromRequest<Shared> for Beacon {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &Shared) -> Result<Self, ApiError> {
        let (mut parts, body) = request.into_parts();
        require_plain_text(parts.headers.get(header::CONTENT_TYPE))?;
        let json = HeaderValue::from_static("application/json");
        parts.headers.insert(header::CONTENT_TYPE, json);
        let whole = Request::from_parts(parts.clone(), body);
        let JsonText(mut text) = JsonText::from_request(whole, state).await?;
        // serde would take a list of both for an object, too.
        let Some((first, _)) = text.split_once('\n').filter(|_| text.starts_with('{')) else {
            return Err(no_credentials());
        };
        let length = first.len() + 1;
        let credentials: Credentials = serde_json::from_str(first).map_err(|_| no_credentials())?;
        text.drain(..length);
        for (name, value) in [
            (
                header::AUTHORIZATION,
                format!("Bearer {}", credentials.write_key),
            ),
            (
                HeaderName::from_static("x-service-subject-token"),
                credentials.subject_token,
            ),
        ] {
            let value = HeaderValue::try_from(value)
                .map_err(|_| ApiError::new(Code::InvalidCredentials))?;
            parts.headers.insert(name, value);
        }
        let caller = Caller::from_request_parts(&mut parts, state).await?;
        let notes = Notes::of(&parts.extensions);
        // The body came before it was known whose it is.
        notes.count_bytes(text.len())?;
        Ok(Self {
            caller,
            notes,
            text,
        })
    }
}

/// Takes events of a page that goes away: a request that browsers send without a preflight. The first line of the body has the
/// credentials, `{"writeKey": …, "subjectToken": …}`; the rest is the body of `POST /v1/sdk/ingest`.
#[utoipa::path(post, path = "/v1/sdk/beacon", tag = "sdk",
    request_body(content = String, content_type = "text/plain"),
    responses((status = 200, body = Data<IngestView>)))]
pub async fn ingest_beacon(
    State(services): State<Shared>,
    beacon: Beacon,
) -> Result<Data<IngestView>, ApiError> {
    let Beacon {
        caller,
        notes,
        text,
    } = beacon;
    take(&services, &caller, &notes, &text).await
}

fn require_plain_text(content_type: Option<&HeaderValue>) -> Result<(), ApiError> {
    let media_type = content_type
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.split(';').next());
    if media_type.is_some_and(|name| name.trim().eq_ignore_ascii_case("text/plain")) {
        return Ok(());
    }
    let detail = "send the body as text/plain, as navigator.sendBeacon does with a string";
    Err(ApiError::because(Code::UnsupportedMediaType, detail))
}

fn no_credentials() -> ApiError {
    let detail = "the first line of a beacon is {\"writeKey\": …, \"subjectToken\": …}";
    ApiError::because(Code::InvalidCredentials, detail)
}
