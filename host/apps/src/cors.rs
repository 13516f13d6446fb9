//! Which pages may read the answers of the SDK's routes (contract 0, `settings.allowedOrigins`).
//!
//! Credentials are in headers that a page must know, never in cookies, so that the rule protects nobody's
//! session: it keeps an app's write key from being useful on other people's pages. An answer to a request
//! with a write key follows that key's app. A preflight (Fetch Standard, section 3.2) carries no key, nor does
//! a refused request have an app: these are answered for each origin that any app of the server allows.

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::Response;
use nudge_http::request_context::Notes;

use crate::services::Services;

const METHODS: HeaderValue = HeaderValue::from_static("GET,POST,DELETE");
/// Also what clients of the tracking protocol send, Segment's and those by `RudderStack`: browsers would not let them otherwise.
const REQUEST_HEADERS: HeaderValue = HeaderValue::from_static(
    "authorization,content-type,content-encoding,x-service-subject-token,x-write-key,x-request-id,x-retry-count,\
     anonymousid,sentat,rsa-retry-attempt,rsa-retry-reason,rsa-since-first-attempt,rsa-since-last-attempt,rsa-recovered",
);
const RESPONSE_HEADERS: HeaderValue =
    HeaderValue::from_static("x-request-id,retry-after,ratelimit,ratelimit-policy");
/// How long browsers remember a preflight, in seconds.
const MAX_AGE: HeaderValue = HeaderValue::from_static("3600");
const VARY: HeaderValue = HeaderValue::from_static("origin");

/// Answers preflights, and says in other answers whether the page may read them.
pub async fn around<F: Future<Output = Response>>(
    services: &Services,
    request: Request,
    answer: impl FnOnce(Request) -> F,
) -> Response {
    let origin = request.headers().get(header::ORIGIN).cloned();
    let preflight = request.method() == Method::OPTIONS
        && request
            .headers()
            .contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
    let Some(origin) = origin else {
        let mut response = answer(request).await;
        response.headers_mut().append(header::VARY, VARY);
        return response;
    };
    if preflight {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::OK;
        let headers = response.headers_mut();
        if allow(headers, &origin, services.apps.allows_origin(&origin)) {
            headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, METHODS);
            headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, REQUEST_HEADERS);
            headers.insert(header::ACCESS_CONTROL_MAX_AGE, MAX_AGE);
        }
        return response;
    }
    let notes = Notes::of(request.extensions());
    let mut response = answer(request).await;
    let rule = match notes.origins() {
        Some(origins) => Rule::of(&origins, &origin),
        None => services.apps.allows_origin(&origin),
    };
    let headers = response.headers_mut();
    if allow(headers, &origin, rule) {
        headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, RESPONSE_HEADERS);
    }
    response
}

/// What a list of origins says of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Every origin is allowed.
    Any,
    /// This one is.
    This,
    /// This one is not.
    No,
}

impl Rule {
    /// What a list says. Origins are compared as browsers send them: in lower case, without a path.
    pub fn of(allowed: &[String], origin: &HeaderValue) -> Self {
        if allowed.iter().any(|allowed| allowed == "*") {
            Self::Any
        } else if allowed
            .iter()
            .any(|allowed| allowed.as_bytes() == origin.as_bytes())
        {
            Self::This
        } else {
            Self::No
        }
    }
}

fn allow(headers: &mut HeaderMap, origin: &HeaderValue, rule: Rule) -> bool {
    let allow_origin: HeaderName = header::ACCESS_CONTROL_ALLOW_ORIGIN;
    headers.append(header::VARY, VARY);
    match rule {
        Rule::Any => headers.insert(allow_origin, HeaderValue::from_static("*")),
        Rule::This => headers.insert(allow_origin, origin.clone()),
        Rule::No => return false,
    };
    true
}
