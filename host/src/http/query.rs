//! Query strings.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use nudge_db::Timestamp;
use serde::de::DeserializeOwned;

use super::error::ApiError;
use crate::clock;

/// The parsed query string; one that can't be parsed is a contract violation.
#[derive(Debug)]
pub struct Params<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Params<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        // No text of ours has a NUL in it, and PostgreSQL takes none.
        if parts.uri.query().is_some_and(|query| query.contains("%00")) {
            return Err(ApiError::field("", "invalid_query", "a NUL character"));
        }
        axum::extract::Query::try_from_uri(&parts.uri)
            .map(|axum::extract::Query(parsed)| Self(parsed))
            .map_err(|error| ApiError::field("", "invalid_query", error.body_text()))
    }
}

/// The instant of a query parameter, if it was given.
pub fn instant(name: &str, text: Option<&str>) -> Result<Option<Timestamp>, ApiError> {
    let parse = |text| {
        clock::from_text(text).ok_or_else(|| {
            let detail = "an ISO 8601 instant with an offset";
            ApiError::field(format!("/{name}"), "invalid", detail)
        })
    };
    text.map(parse).transpose()
}
