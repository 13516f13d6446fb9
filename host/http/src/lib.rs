//! HTTP and nothing else: connections, admission, bodies, errors, cursors, issuers of access tokens.
//!
//! It knows no app and no table. Features above bring their routes.
//!
//! # Invariants
//!
//! - **Errors become responses in one place**, [`error`]; codes and statuses stand in one table, [`code`].
//! - **A request beyond the limits is refused at once** ([`admission`], [`listener`]). A request has one of `server.maxRequests` places while the
//!   server works on it, from before its credentials are looked at. It gives the place back while the client sends the body, and while it
//!   waits for a decision or for instructions. A request that comes back with its body goes before new ones. An app has at most
//!   `server.appShare` of the requests and of the open polls. Bodies that have arrived take room until they are answered.
//! - **A parsed body is bounded before it is parsed** (`body/budget.rs`). The text tells an upper bound of the memory that its tree takes. The bound takes
//!   room among the bodies, and a body out of proportion is refused.
//! - **A connection that the server waits for can be ended; a connection that waits for the server is not** ([`listener`]). A client earns time by bytes. Where
//!   a listener is full, the connection that has kept the server waiting longest gives way. Bytes of answers count until HTTP has let go of them.
//! - **A refusal leaves the connection as it was** (`unread.rs`). The rest of a body is read before the answer is sent, or the answer says that the
//!   connection ends.
//! - **A lost race is no client's business** (`retry.rs`). Where the database ends a transaction for another one's sake, the request is answered once more.

pub mod admission;
pub mod body;
pub mod code;
pub mod csv;
pub mod cursor;
pub mod error;
pub mod issuer;
pub mod listener;
pub mod merge;
pub mod meters;
pub mod oidc;
pub mod page;
pub mod precondition;
pub mod query;
pub mod request;
pub mod request_context;
mod retry;
mod unread;

pub use body::{Component, Json, JsonText};
pub use code::Code;
pub use error::ApiError;
pub use query::Params;
pub use retry::Mark;

use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

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

/// The name at the end of a path below an app, such as an anonymous id.
#[derive(Clone, Debug)]
pub struct ResourceName(pub String);

/// The id at the end of a path below an app. What is no UUID is the id of nothing.
#[derive(Clone, Copy, Debug)]
pub struct ResourceId(pub Uuid);

/// Two ids of a path below an app, one within the other. What is no UUID is the id of nothing.
#[derive(Clone, Copy, Debug)]
pub struct NestedId {
    /// The outer one.
    pub outer: Uuid,
    /// The inner one.
    pub inner: Uuid,
}

impl<S: Send + Sync> FromRequestParts<S> for ResourceName {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        // No name of ours has a NUL in it, and PostgreSQL takes none.
        let name = |text: &str| (!text.contains('\0')).then(|| text.to_owned());
        let [name] = below_app(parts, state, name).await?;
        Ok(Self(name))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for ResourceId {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let id = |text: &str| Uuid::parse_str(text).ok();
        let [id] = below_app(parts, state, id).await?;
        Ok(Self(id))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for NestedId {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let id = |text: &str| Uuid::parse_str(text).ok();
        let [outer, inner] = below_app(parts, state, id).await?;
        Ok(Self { outer, inner })
    }
}

/// The first parameters of a path behind the app's id. One that can't be read names nothing.
async fn below_app<S: Send + Sync, T, const N: usize>(
    parts: &mut Parts,
    state: &S,
    read: impl Fn(&str) -> Option<T> + Send,
) -> Result<[T; N], ApiError> {
    let params = RawPathParams::from_request_parts(parts, state).await.ok();
    let named = params.as_ref().and_then(|params| {
        let texts = params.iter().filter(|(name, _)| *name != "appId");
        let found: Option<Vec<T>> = texts.take(N).map(|(_, text)| read(text)).collect();
        found?.try_into().ok()
    });
    named.ok_or_else(|| ApiError::new(Code::NotFound))
}
