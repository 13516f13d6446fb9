//! What happens around every request: its id, its log line, its metrics, its quotas, panics, refusals.

use std::time::Instant;

use axum::extract::{MatchedPath, Request};
use axum::http::{HeaderName, HeaderValue, header};
use axum::middleware::Next;
use axum::response::Response;
use futures_util::FutureExt as _;
use nudge_platform::clock::Clock;
use nudge_platform::traces::{self, FutureExt as _, KeyValue, NewSpan, SpanKind, Traces};
use uuid::Uuid;

use super::error::ApiError;
use super::meters::Meters;
use super::request_context::{Notes, client_address};
use super::retry;
use super::unread::Unread;

/// The header that carries a request's id.
pub const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Routes that machines ask every few seconds. They are counted, and have no line in the log.
const PROBES: [&str; 3] = ["/livez", "/readyz", "/metrics"];

/// The routes that SDKs of others send to (contract 24).
pub(super) const COLLECTION: [&str; 4] = [
    "/v1/compat/v1/{kind}",
    "/v1/compat/v1/{kind}/",
    "/v1/compat/beacon/v1/batch",
    "/v1/batch",
];

/// What a listener's requests are answered with. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Around {
    /// The clock.
    pub clock: Clock,
    /// What counts them.
    pub meters: Meters,
    /// Where their spans go; none: they have none.
    pub traces: Option<Traces>,
    /// Proxies in front that are believed (`server.trustedProxies`).
    pub trusted_proxies: usize,
}

impl Around {
    /// Requests without spans, counted by themselves.
    pub fn untraced(clock: &Clock) -> Self {
        Self {
            clock: clock.clone(),
            meters: Meters::default(),
            traces: None,
            trusted_proxies: 0,
        }
    }
}

/// Answers a request and takes care of its connection.
pub async fn layer(around: Around, mut request: Request, next: Next) -> Response {
    let unread = Unread::watch(&mut request);
    let mut response = answer(around, request, next).await;
    if let Some(unread) = unread
        && !unread.read().await
    {
        let headers = response.headers_mut();
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// Gives the request an id, answers it, logs one line and counts it.
async fn answer(around: Around, mut request: Request, next: Next) -> Response {
    let Around {
        clock,
        meters,
        traces,
        trusted_proxies,
    } = around;
    let started = Instant::now();
    let method = request.method().clone();
    let path = request.extensions().get::<MatchedPath>().cloned();
    let route = path.as_ref().map_or("unmatched", MatchedPath::as_str);
    let id = request_id(&request, &clock);
    let address = client_address(request.extensions(), request.headers(), trusted_proxies);
    let app_id = app_of_path(route, request.uri().path());
    let notes = Notes::default();
    request.extensions_mut().insert(notes.clone());
    let span = begin_span(traces.as_ref(), &request, route);
    let trace_id = traces::trace_id(&span).or_else(|| traces::callers_trace_id(request.headers()));

    let answered = std::panic::AssertUnwindSafe(retry::run(next, request))
        .catch_unwind()
        .with_context(span.clone())
        .await;
    let mut response = answered.unwrap_or_else(|_| {
        axum::response::IntoResponse::into_response(ApiError::internal(anyhow::anyhow!(
            "the handler panicked"
        )))
    });
    let mut refused = None;
    if let Some(error) = response.extensions_mut().remove::<ApiError>() {
        refused = Some(error.code().name());
        response = keep_headers(&response, error.at(route).told_at(route).render(&id));
    }

    notes.write_quotas(response.headers_mut());
    notes.write_vary(response.headers_mut());

    let elapsed = started.elapsed();
    let status = response.status().as_u16();
    if !PROBES.contains(&route) {
        let (caller, key_id) = notes.caller().unzip();
        tracing::info!(
            request.id = id,
            http.method = %method,
            http.route = route,
            http.status = status,
            error.code = refused,
            app.id = caller.or(app_id).map(tracing::field::display),
            key.id = key_id.map(tracing::field::display),
            client.address = address.map(tracing::field::display),
            trace.id = trace_id,
            elapsed_us = u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX),
            "request"
        );
    }
    traces::end_request(&span, status, &id);
    meters.count(route, &method, status, elapsed);
    if let Ok(value) = HeaderValue::from_str(&id) {
        response.headers_mut().insert(REQUEST_ID, value);
    }
    response
}

/// The span of a request; of nothing where nothing is traced.
fn begin_span(traces: Option<&Traces>, request: &Request, route: &str) -> traces::Context {
    let Some(traces) = traces else {
        return traces::Context::new();
    };
    let method = request.method();
    let span = NewSpan {
        name: format!("{method} {route}"),
        kind: SpanKind::Server,
        attributes: vec![
            KeyValue::new("http.request.method", method.to_string()),
            KeyValue::new("http.route", route.to_owned()),
        ],
    };
    traces.request(request.headers(), span)
}

/// The app that a route of the API is about, by its path.
fn app_of_path(route: &str, path: &str) -> Option<Uuid> {
    let rest = route
        .starts_with("/v1/apps/{appId}")
        .then(|| path.strip_prefix("/v1/apps/"))??;
    Uuid::parse_str(rest.split('/').next()?).ok()
}

/// Refusals keep what inner layers put into the response's head, such as `Allow`.
fn keep_headers(from: &Response, mut to: Response) -> Response {
    for (name, value) in from.headers() {
        if !to.headers().contains_key(name) && name != header::CONTENT_LENGTH {
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
            || Uuid::to_string(&nudge_platform::id::new(clock.now())),
            str::to_owned,
        )
}
