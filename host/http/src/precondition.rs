//! `If-Match` on resources with versions (contract 0).

use axum::extract::FromRequestParts;
use axum::http::header::IF_MATCH;
use axum::http::request::Parts;

use super::code::Code;
use super::error::ApiError;

/// The versions that the caller expects one of, if it sent any.
#[derive(Clone, Debug)]
pub struct IfMatch(Option<Vec<i64>>);

impl<S: Send + Sync> FromRequestParts<S> for IfMatch {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let headers = parts.headers.get_all(IF_MATCH);
        let tags: Vec<&str> = headers
            .iter()
            .flat_map(|value| value.to_str().unwrap_or_default().split(','))
            .map(str::trim)
            .collect();
        if tags.is_empty() || tags.contains(&"*") {
            return Ok(Self(None));
        }
        // A tag that is no version of ours matches none of ours, nor does a weak one (RFC 9110, section 13.1.1).
        let versions = tags
            .into_iter()
            .filter_map(|tag| tag.trim_matches('"').parse().ok());
        Ok(Self(Some(versions.collect())))
    }
}

impl IfMatch {
    /// Refuses when the resource has none of the versions that the caller expects.
    pub fn check(self, version: i64) -> Result<(), ApiError> {
        match self.0 {
            Some(expected) if !expected.contains(&version) => {
                Err(ApiError::new(Code::VersionMismatch))
            }
            _ => Ok(()),
        }
    }
}
