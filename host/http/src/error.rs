//! The one place where errors become responses (RFC 9457).

use std::borrow::Cow;
use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderValue, Response, header};
use axum::response::IntoResponse;
use nudge_platform::field_error::FieldError;
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::code::Code;
use super::request::COLLECTION;

/// Seconds after which a client should try again what could not be done now.
const RETRY_AFTER_SECONDS: i64 = 1;

/// A refusal on its way to the client.
#[derive(Clone, Debug)]
pub struct ApiError {
    code: Code,
    detail: Cow<'static, str>,
    errors: Vec<FieldError>,
    cause: Option<Arc<anyhow::Error>>,
    /// Whether the cause is a defect, whatever the code says.
    is_defect: bool,
    retry_after_seconds: Option<i64>,
    lost_race: bool,
    members: Map<String, Value>,
}

/// The body of every refusal, `application/problem+json`.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Problem {
    /// A URI for the code.
    r#type: String,
    /// What the code means.
    title: &'static str,
    /// The HTTP status.
    status: u16,
    /// What happened this time.
    detail: String,
    /// The stable code, see `GET /v1/errors`.
    code: &'static str,
    /// The request's id, as in `X-Request-Id` and the log.
    request_id: String,
    /// What is wrong where.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    errors: Vec<FieldError>,
    /// What single routes add (RFC 9457, section 3.2).
    #[serde(flatten)]
    #[schema(ignore)]
    members: Map<String, Value>,
}

impl ApiError {
    /// A refusal whose detail is the code's meaning.
    pub fn new(code: Code) -> Self {
        Self {
            code,
            detail: Cow::Borrowed(code.meaning()),
            errors: Vec::new(),
            cause: None,
            is_defect: code == Code::Internal,
            retry_after_seconds: (code == Code::Unavailable).then_some(RETRY_AFTER_SECONDS),
            lost_race: false,
            members: Map::new(),
        }
    }

    /// A refusal with a detail.
    pub fn because(code: Code, detail: impl Into<Cow<'static, str>>) -> Self {
        Self {
            detail: detail.into(),
            ..Self::new(code)
        }
    }

    /// A refusal with what is wrong where.
    pub fn fields(code: Code, errors: Vec<FieldError>) -> Self {
        Self {
            errors,
            ..Self::new(code)
        }
    }

    /// The same with another detail.
    #[must_use]
    pub fn with_detail(self, detail: impl Into<Cow<'static, str>>) -> Self {
        Self {
            detail: detail.into(),
            ..self
        }
    }

    /// The same for a request to a route: where nothing says what is unknown, the parameters of its path are named.
    #[must_use]
    pub(super) fn at(self, route: &str) -> Self {
        if self.code != Code::NotFound || self.detail != Code::NotFound.meaning() {
            return self;
        }
        let segments = route.split('/');
        let named: Vec<String> = segments
            .filter_map(|segment| segment.strip_prefix('{')?.strip_suffix('}'))
            .filter(|name| *name != "appId" && !name.starts_with('*'))
            .map(|name| format!("`{name}`"))
            .collect();
        if named.is_empty() {
            return self;
        }
        let named = named.join(" or ");
        self.with_detail(format!(
            "there is no such thing, or not for you: check {named} in {route}"
        ))
    }

    /// The same for the clients of a route: SDKs of others look for its sentence in `message`, and some take a body without
    /// one for no answer.
    #[must_use]
    pub(super) fn told_at(self, route: &str) -> Self {
        if !COLLECTION.contains(&route) {
            return self;
        }
        let message = Value::from(&*self.detail);
        self.with_member("message", message)
    }

    /// The same with one more member in its body (RFC 9457, section 3.2).
    #[must_use]
    pub fn with_member(mut self, name: &str, value: Value) -> Self {
        self.members.insert(name.to_owned(), value);
        self
    }

    /// A contract violation at one place.
    pub fn field(pointer: impl Into<String>, code: &str, detail: impl Into<String>) -> Self {
        Self::fields(
            Code::ValidationFailed,
            vec![FieldError::new(pointer, code, detail)],
        )
    }

    /// A defect. The client learns nothing but the request id.
    pub fn internal(cause: impl Into<anyhow::Error>) -> Self {
        Self {
            cause: Some(Arc::new(cause.into())),
            ..Self::new(Code::Internal)
        }
    }

    /// What can't be done now.
    pub fn unavailable(cause: impl Into<anyhow::Error>) -> Self {
        Self {
            cause: Some(Arc::new(cause.into())),
            ..Self::new(Code::Unavailable)
        }
    }

    /// A defect whose request may be made again is logged as a defect, and told as what can't be done now.
    #[must_use]
    pub fn may_be_repeated(self) -> Self {
        if self.code != Code::Internal {
            return self;
        }
        Self {
            cause: self.cause,
            is_defect: true,
            ..Self::new(Code::Unavailable)
        }
    }

    /// One request too many; the next may come after so many seconds.
    pub fn rate_limited(retry_after_seconds: i64) -> Self {
        Self {
            retry_after_seconds: Some(retry_after_seconds.max(1)),
            ..Self::new(Code::RateLimited)
        }
    }

    /// The code.
    pub fn code(&self) -> Code {
        self.code
    }

    /// Somebody changed the resource after it was read for this request. Where the request names no version, it is made
    /// again with what is there now.
    pub fn overtaken() -> Self {
        Self {
            lost_race: true,
            ..Self::new(Code::VersionMismatch)
        }
    }

    /// Whether the same request may succeed at once: its transaction lost against another one.
    pub(super) fn lost_race(&self) -> bool {
        self.lost_race
    }

    /// What is wrong where.
    pub fn errors(&self) -> &[FieldError] {
        &self.errors
    }

    /// What is wrong where, to be changed.
    pub(super) fn errors_mut(&mut self) -> &mut [FieldError] {
        &mut self.errors
    }

    /// Renders the refusal for a request, and logs it if it is the server's fault.
    pub fn render(self, request_id: &str) -> Response<Body> {
        if let Some(cause) = &self.cause {
            let chain = format!("{cause:#}");
            if self.is_defect {
                tracing::error!(request.id = request_id, error = chain, "request failed");
            } else {
                tracing::warn!(request.id = request_id, error = chain, "unavailable");
            }
        }
        let status = self.code.status();
        let problem = Problem {
            r#type: format!("/v1/errors#{}", self.code.name()),
            title: self.code.meaning(),
            status: status.as_u16(),
            detail: self.detail.into_owned(),
            code: self.code.name(),
            request_id: request_id.to_owned(),
            errors: self.errors,
            members: self.members,
        };
        let body = serde_json::to_vec(&problem).unwrap_or_default();
        let mut response = Response::new(Body::from(body));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/problem+json"),
        );
        if let Some(seconds) = self.retry_after_seconds {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.code.status() == axum::http::StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

impl IntoResponse for ApiError {
    /// Leaves the refusal in the response's extensions; [`super::request::layer`] renders it, since it
    /// knows the request's id.
    fn into_response(self) -> axum::response::Response {
        let mut response = self.code.status().into_response();
        response.extensions_mut().insert(self);
        response
    }
}

impl From<nudge_db::Error> for ApiError {
    fn from(error: nudge_db::Error) -> Self {
        match error.kind() {
            nudge_db::Kind::Unavailable => Self::unavailable(error),
            nudge_db::Kind::Serialization => Self {
                lost_race: true,
                ..Self::unavailable(error)
            },
            _ => Self::internal(error),
        }
    }
}
