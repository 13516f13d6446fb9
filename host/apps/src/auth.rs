//! Who calls, as extractor types: a handler's signature says what it takes to call it.

/// Makes extractors of credentials: types with `of`, which reads one from a request.
macro_rules! extractors {
    ($($credential:ident),+) => {$(
        impl<S> axum::extract::FromRequestParts<S> for $credential
        where
            S: $crate::services::AppsState + Send + Sync,
        {
            type Rejection = nudge_http::ApiError;

            async fn from_request_parts(
                parts: &mut axum::http::request::Parts,
                state: &S,
            ) -> Result<Self, nudge_http::ApiError> {
                Self::of(parts, state.apps()).await
            }
        }
    )+};
}

mod access;
mod keys;
mod subject;

use std::net::IpAddr;
use std::time::{Duration, Instant};

use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use nudge_http::code::Code;
use nudge_http::error::ApiError;
use nudge_http::request_context::{self, client_address, notice_proxy};
use nudge_platform::rate_limits::{Policy, owner_of, share_of};
use parking_lot::Mutex;
use uuid::Uuid;

pub use access::{Admin, Administrator, Editor, Member, Operator, Scope, Viewer};
pub use keys::{AppKey, PropertyWriter, PushSender, Sdk, WRITE_KEY, collection_key};
pub use subject::{SdkSubject, good_subject_token, subject_token};

use crate::App;
use crate::services::{Services, Shared};

/// Somebody without credentials, who may be about to show some.
#[derive(Clone, Debug)]
pub struct Stranger(Parts);

impl<S: Send + Sync> FromRequestParts<S> for Stranger {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        Ok(Self(parts.clone()))
    }
}

impl Stranger {
    /// Counts what they showed in vain, as a failed authentication; the refusal that they get.
    pub fn failed(&self, services: &Services) -> ApiError {
        failed(&self.0, services, Code::InvalidCredentials.meaning())
    }

    /// Counts what leaves something behind like a failed authentication.
    pub fn charge(&self, services: &Services) -> Result<(), ApiError> {
        match address(&self.0, services) {
            Some(address) => charge(&self.0, services, Policy::Address, owner_of(address)),
            None => Ok(()),
        }
    }

    /// Counts somebody new whom they name, like a session that begins. A request may name several.
    pub fn charge_person(&self, services: &Services, app: &App) -> Result<(), ApiError> {
        let Some(address) = address(&self.0, services) else {
            return Ok(());
        };
        let (now, share) = (services.clock.now(), share_of(app.id, address));
        request_context::charge_each(&self.0, &services.rate_limits, now, Policy::Sessions, share)
    }
}

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

/// Refuses a credential, and says which.
fn unauthorized(detail: &'static str) -> ApiError {
    ApiError::because(Code::InvalidCredentials, detail)
}

/// Counts a failed authentication for the address that it comes from; `detail` says which credential is bad. One too
/// many is told so. Who has good credentials hears nothing of it, from whichever address.
fn failed(parts: &Parts, services: &Services, detail: &'static str) -> ApiError {
    metrics::counter!("nudge_authentication_failures_total").increment(1);
    let refusal = unauthorized(detail);
    match address(parts, services) {
        Some(address) => charge(parts, services, Policy::Address, owner_of(address))
            .inspect_err(|_| warn_of_guesses(address))
            .err()
            .unwrap_or(refusal),
        None => refusal,
    }
}

/// Warns, once a minute at the most, of an address whose authentication has failed too often to be let in again at once.
fn warn_of_guesses(address: IpAddr) {
    static TOLD: Mutex<Option<Instant>> = Mutex::new(None);
    let mut told = TOLD.lock();
    if told.is_none_or(|told| told.elapsed() >= Duration::from_mins(1)) {
        *told = Some(Instant::now());
        tracing::warn!(
            client.address = %address,
            "authentication has failed too often from this address, which has to wait; others are told of once a minute"
        );
    }
}

fn address(parts: &Parts, services: &Services) -> Option<IpAddr> {
    let trusted_proxies = services.config.server.trusted_proxies;
    notice_proxy(&parts.headers, trusted_proxies);
    client_address(&parts.extensions, &parts.headers, trusted_proxies)
}

/// The answer about an app that is unknown, or in a workspace of others.
fn no_app() -> ApiError {
    let detail = "there is no such app in the workspaces that the access token opens; check `appId` in the path";
    ApiError::because(Code::NotFound, detail)
}

async fn path_id(parts: &mut Parts, services: &Shared, name: &str) -> Result<Uuid, ApiError> {
    let not_found = || match name {
        "appId" => no_app(),
        _ => ApiError::new(Code::NotFound),
    };
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
    let invalid = || unauthorized("`Authorization` must be `Bearer`, a space and the credential");
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
