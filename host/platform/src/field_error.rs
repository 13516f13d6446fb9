//! What is wrong with one part of a request body.

use serde::Serialize;
use utoipa::ToSchema;

/// What is wrong with one part of a request body.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct FieldError {
    /// A JSON pointer (RFC 6901) into the request body.
    pub pointer: String,
    /// A stable reason in snake case.
    pub code: String,
    /// A sentence that says what to change.
    pub detail: String,
}

impl FieldError {
    /// An error at a place.
    pub fn new(pointer: impl Into<String>, code: &str, detail: impl Into<String>) -> Self {
        Self {
            pointer: pointer.into(),
            code: code.to_owned(),
            detail: detail.into(),
        }
    }
}
