//! `If-Match` on resources with versions (contract 0).

use axum::extract::FromRequestParts;
use axum::http::header::IF_MATCH;
use axum::http::request::Parts;

use super::code::Code;
use super::error::ApiError;

/// The version that the caller expects, if it sent one.
#[derive(Clone, Copy, Debug)]
pub struct IfMatch(Option<i64>);

impl<S: Send + Sync> FromRequestParts<S> for IfMatch {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let Some(value) = parts.headers.get(IF_MATCH) else {
            return Ok(Self(None));
        };
        match value.to_str().unwrap_or_default().trim() {
            "*" => Ok(Self(None)),
            // What is no version of ours matches none of ours.
            text => Ok(Self(Some(text.trim_matches('"').parse().unwrap_or(-1)))),
        }
    }
}

impl IfMatch {
    /// Refuses when the resource has another version than the caller expects.
    pub fn check(self, version: i64) -> Result<(), ApiError> {
        match self.0 {
            Some(expected) if expected != version => Err(ApiError::new(Code::VersionMismatch)),
            _ => Ok(()),
        }
    }
}
