//! HTTP, and nothing but HTTP: bodies, credentials, errors, cursors.

pub mod auth;
pub mod body;
pub mod code;
pub mod cors;
pub mod cursor;
pub mod error;
pub mod merge;
pub mod notes;
pub mod page;
pub mod precondition;
pub mod query;
pub mod request;

pub use body::{Json, JsonText};
pub use code::Code;
pub use error::{ApiError, FieldError};
pub use query::Params;

use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

/// The envelope of every success: `{"data": …}`.
#[derive(Debug, Serialize, ToSchema)]
pub struct Data<T> {
    /// The answer.
    pub data: T,
}

impl<T: Serialize> IntoResponse for Data<T> {
    fn into_response(self) -> Response {
        axum::Json(self).into_response()
    }
}

/// A success with another status than 200.
pub fn created<T: Serialize>(data: T) -> (axum::http::StatusCode, Data<T>) {
    (axum::http::StatusCode::CREATED, Data { data })
}

/// The id at the end of a path below an app. What is no UUID is the id of nothing.
#[derive(Clone, Copy, Debug)]
pub struct ResourceId(pub uuid::Uuid);

impl<S: Send + Sync> FromRequestParts<S> for ResourceId {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let not_found = || ApiError::new(Code::NotFound);
        let params = RawPathParams::from_request_parts(parts, state)
            .await
            .map_err(|_| not_found())?;
        let (_, text) = params
            .iter()
            .find(|(name, _)| *name != "appId")
            .ok_or_else(not_found)?;
        uuid::Uuid::parse_str(text)
            .map(Self)
            .map_err(|_| not_found())
    }
}
