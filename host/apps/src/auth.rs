//! Who calls, as extractor types: a handler's signature says what it takes to call it.

/// Makes extractors of credentials: types with `of`, which reads one from a request.
macro_rules! extractors {
    ($($credential:ident),+) => {$(
        impl<S> axum::extract::FromRequestParts<S> for $credential
        where
            $crate::services::Shared: axum::extract::FromRef<S>,
            S: Send + Sync,
        {
            type Rejection = nudge_http::ApiError;

            async fn from_request_parts(
                parts: &mut axum::http::request::Parts,
                state: &S,
            ) -> Result<Self, nudge_http::ApiError> {
                let services = axum::extract::FromRef::from_ref(state);
                Self::of(parts, &services).await
            }
        }
    )+};
}

mod access;
mod keys;
mod subject;

use std::net::IpAddr;

use axum::extract::{FromRequestParts as _, RawPathParams};
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use nudge_http::code::Code;
use nudge_http::error::ApiError;
use nudge_http::request_context::{self, client_address, notice_proxy};
use nudge_platform::rate_limits::{Policy, owner_of, share_of};
use uuid::Uuid;

pub use access::{Admin, Administrator, Editor, Member, Operator, Scope, Viewer};
pub use keys::{AppKey, PropertyWriter, PushSender, Sdk, collection_key};
pub use subject::{SdkSubject, good_subject_token, subject_token};

use crate::App;
use crate::services::{Services, Shared};

/// Counts a session that begins for the address that it comes from.
pub fn charge_session(parts: &Parts, services: &Services, app: &App) -> Result<(), ApiError> {
    match address(parts, services) {
        Some(address) => {
            let share = share_of(app.id, address);
            charge(parts, services, Policy::Sessions, share)
        }
        None => Ok(()),
    }
}

/// Counts a failed authentication for the address that it comes from; one too many is told so. Who has good credentials
/// hears nothing of it, from whichever address.
fn failed(parts: &Parts, services: &Services) -> ApiError {
    let refusal = ApiError::new(Code::InvalidCredentials);
    match address(parts, services) {
        Some(address) => charge(parts, services, Policy::Address, owner_of(address))
            .err()
            .unwrap_or(refusal),
        None => refusal,
    }
}

fn address(parts: &Parts, services: &Services) -> Option<IpAddr> {
    let trusted_proxies = services.config.server.trusted_proxies;
    notice_proxy(&parts.headers, trusted_proxies);
    client_address(parts, trusted_proxies)
}

async fn path_id(parts: &mut Parts, services: &Shared, name: &str) -> Result<Uuid, ApiError> {
    let not_found = || ApiError::new(Code::NotFound);
    let params = RawPathParams::from_request_parts(parts, services)
        .await
        .map_err(|_| not_found())?;
    let text = params
        .iter()
        .find(|(key, _)| *key == name)
        .map(|(_, value)| value)
        .ok_or_else(not_found)?;
    Uuid::parse_str(text).map_err(|_| not_found())
}

/// The token of `Authorization: Bearer …` (RFC 6750).
fn bearer(parts: &Parts) -> Result<Option<String>, ApiError> {
    let Some(value) = parts.headers.get(AUTHORIZATION) else {
        return Ok(None);
    };
    let invalid = || ApiError::new(Code::InvalidCredentials);
    let (scheme, token) = value
        .to_str()
        .map_err(|_| invalid())?
        .split_once(' ')
        .ok_or_else(invalid)?;
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(invalid());
    }
    Ok(Some(token.trim().to_owned()))
}

/// Counts a request under a policy.
fn charge(
    parts: &Parts,
    services: &Services,
    policy: Policy,
    owner: [u8; 16],
) -> Result<(), ApiError> {
    let now = services.clock.now();
    request_context::charge(parts, &services.rate_limits, now, policy, owner)
}
