//! What happens around every request: its id, its log line, its metrics, its quotas, panics, refusals.

use std::time::Instant;

use axum::extract::{MatchedPath, Request};
use axum::http::{HeaderName, HeaderValue, Method};
use axum::middleware::Next;
use axum::response::Response;
use futures_util::FutureExt as _;
use uuid::Uuid;

use super::error::ApiError;
use super::notes::Notes;
use crate::clock::Clock;

/// The header that carries a request's id.
pub const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Gives the request an id, answers it, logs one line and counts it.
pub async fn layer(clock: Clock, mut request: Request, next: Next) -> Response {
    let started = Instant::now();
    let method = request.method().clone();
    let route = request
        .extensions()
        .get::<MatchedPath>()
        .map_or_else(|| "unmatched".to_owned(), |path| path.as_str().to_owned());
    let id = request_id(&request, &clock);
    let notes = Notes::default();
    request.extensions_mut().insert(notes.clone());

    let answered = std::panic::AssertUnwindSafe(next.run(request))
        .catch_unwind()
        .await;
    let mut response = answered.unwrap_or_else(|_| {
        axum::response::IntoResponse::into_response(ApiError::internal(anyhow::anyhow!(
            "the handler panicked"
        )))
    });
    if let Some(error) = response.extensions_mut().remove::<ApiError>() {
        response = keep_headers(&response, error.render(&id));
    }

    notes.write_quotas(response.headers_mut());

    let elapsed = started.elapsed();
    let status = response.status().as_u16();
    tracing::info!(
        request.id = id,
        http.method = %method,
        http.route = route,
        http.status = status,
        elapsed_us = u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX),
        "request"
    );
    let labels = [
        ("method", label(&method).to_owned()),
        ("route", route),
        ("status", status.to_string()),
    ];
    metrics::counter!("nudge_http_requests_total", &labels).increment(1);
    metrics::histogram!("nudge_http_request_seconds", &labels[..2]).record(elapsed.as_secs_f64());
    if let Ok(value) = HeaderValue::from_str(&id) {
        response.headers_mut().insert(REQUEST_ID, value);
    }
    response
}

/// A method as metrics have it: clients may make up as many as they like.
fn label(method: &Method) -> &str {
    match *method {
        Method::GET
        | Method::POST
        | Method::PUT
        | Method::PATCH
        | Method::DELETE
        | Method::HEAD
        | Method::OPTIONS => method.as_str(),
        _ => "other",
    }
}

/// Refusals keep what inner layers put into the response's head, such as `Allow`.
fn keep_headers(from: &Response, mut to: Response) -> Response {
    for (name, value) in from.headers() {
        if !to.headers().contains_key(name) && name != axum::http::header::CONTENT_LENGTH {
            to.headers_mut().insert(name.clone(), value.clone());
        }
    }
    to
}

/// The caller's id where it is a sane one: up to 128 letters, digits and `-_.:`.
fn request_id(request: &Request, clock: &Clock) -> String {
    request
        .headers()
        .get(&REQUEST_ID)
        .and_then(|value| value.to_str().ok())
        .filter(|id| !id.is_empty() && id.len() <= 128)
        .filter(|id| {
            id.bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte))
        })
        .map_or_else(
            || Uuid::to_string(&crate::id::new(clock.now())),
            str::to_owned,
        )
}
