//! Which app calls, and by which of its keys.

use std::fmt;
use std::sync::Arc;

use axum::extract::MatchedPath;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::future::BoxFuture;
use nudge_http::code::Code;
use nudge_http::error::ApiError;
use nudge_http::oidc::AccessTokenRefusal;
use nudge_http::request_context::Notes;
use nudge_platform::rate_limits::{Policy, share_of};

use super::{address, bearer, charge, failed, no_app, path_id, unauthorized};
use crate::console;
use crate::key::{self, Key, Kind};
use crate::keys::Reason;
use crate::services::{Services, Shared};
use crate::{App, Holder};

/// The header of a second way to send a write key.
pub const WRITE_KEY: &str = "x-write-key";

/// Why a key is refused that nothing has, or that is good no longer.
const BAD_KEY: &str = "the key in `Authorization` or `x-write-key` is unknown, revoked or expired; nothing is said of other credentials";

/// Why an access token does not open a route for keys.
const NO_KEY: &str = "this takes a key or API token, and the credential is an access token or a session; `/docs` says which key each operation takes";

/// A key, whatever its kind.
#[derive(Clone, Debug)]
pub struct AppKey {
    /// The app that it belongs to.
    pub app: Arc<App>,
    /// The key.
    pub key: Arc<Key>,
    route: Route,
}

/// The route that a request takes.
#[derive(Clone, Debug)]
struct Route {
    method: Method,
    path: Option<MatchedPath>,
}

/// A backend whose API token may write the properties of people of the app of the path.
#[derive(Clone, Debug)]
pub struct PropertyWriter {
    /// The app of the path; the token's own, or another of its workspace (contract 1).
    pub app: Arc<App>,
    /// Who writes them: the API token.
    pub actor: String,
}

/// A backend whose server key may ask for push messages of the app of the path.
#[derive(Clone, Debug)]
pub struct PushSender {
    /// The app of the path, which is the key's.
    pub app: Arc<App>,
}

/// An SDK, by its write key.
#[derive(Clone, Debug)]
pub struct Sdk {
    /// The app.
    pub app: Arc<App>,
    /// The write key.
    pub key: Arc<Key>,
}

extractors!(AppKey, PropertyWriter, PushSender, Sdk);

impl AppKey {
    /// The key of a request of any kind.
    pub async fn of(parts: &mut Parts, services: &Shared) -> Result<Self, ApiError> {
        let text = key_text(parts)?;
        Self::of_text(parts, services, &text).await
    }

    /// The key that a request says somewhere.
    pub fn of_text<'a>(
        parts: &'a Parts,
        services: &'a Services,
        text: &'a str,
    ) -> BoxFuture<'a, Result<Self, ApiError>> {
        Box::pin(async move {
            if let Some(hash) = key::hash(text) {
                return app_key(parts, services, &hash).await;
            }
            let now = services.clock.now();
            match services
                .access_tokens
                .verify(&services.issuer, text, now)
                .await
            {
                // Good for something, but not for this.
                Ok(_) => Err(ApiError::because(Code::InsufficientScope, NO_KEY)),
                Err(AccessTokenRefusal::Invalid) => Err(failed(parts, services, BAD_KEY)),
                Err(AccessTokenRefusal::Unavailable(cause)) => Err(ApiError::unavailable(cause)),
            }
        })
    }

    /// The key of a request of other routes than the SDK's, which is in `Authorization` alone (contract 1).
    async fn of_management(parts: &mut Parts, services: &Shared) -> Result<Self, ApiError> {
        if bearer(parts)?.is_none() {
            if console::sessions::of_request(parts, services)
                .await?
                .is_some()
            {
                // Good for something, as an access token is, but not for this.
                return Err(ApiError::because(Code::InsufficientScope, NO_KEY));
            }
            return Err(no_credential(parts, services).await);
        }
        Self::of(parts, services).await
    }

    /// Refuses a key for an app that it does not open, which need not exist; the audit log of its own hears of it.
    fn misplaced(&self, services: &Services) -> ApiError {
        self.note_refusal(services, Reason::OtherApp);
        no_app()
    }

    /// Refuses a key that is not of a kind; the audit log hears of it.
    pub fn require_kind(&self, services: &Services, kind: Kind) -> Result<(), ApiError> {
        if self.key.kind == kind {
            return Ok(());
        }
        Err(self.refuse_kind(services, kind.title()))
    }

    /// Refuses a key without a scope; the audit log hears of it.
    pub fn require_scope(&self, services: &Services, scope: &str) -> Result<(), ApiError> {
        if self.key.has_scope(scope) {
            return Ok(());
        }
        self.note_refusal(services, Reason::MissingScope);
        let kind = self.key.kind.title();
        let detail = format!(
            "this takes a key with the scope `{scope}`, which this one, {kind}, does not have"
        );
        Err(ApiError::because(Code::InsufficientScope, detail))
    }

    /// Refuses a public key for what a backend alone may say of people; the audit log hears of it.
    pub fn refuse_without_subject_token(&self, services: &Services) -> ApiError {
        self.note_refusal(services, Reason::WrongKind);
        ApiError::new(Code::SubjectTokenRequired)
    }

    /// Refuses a key of another kind than the credential that a route takes; the audit log hears of it.
    pub(super) fn refuse_kind(&self, services: &Services, wanted: &str) -> ApiError {
        self.note_refusal(services, Reason::WrongKind);
        let kind = self.key.kind.title();
        let detail = format!("this takes {wanted}, and the credential is {kind}");
        ApiError::because(Code::InsufficientScope, detail)
    }

    fn note_refusal(&self, services: &Services, reason: Reason) {
        let now = services.clock.now();
        let route = self.route.to_string();
        services
            .key_uses
            .refused(self.app.id, self.key.id, reason, route, now);
    }
}

impl PropertyWriter {
    async fn of(parts: &mut Parts, services: &Shared) -> Result<Self, ApiError> {
        let key = AppKey::of_management(parts, services).await?;
        key.require_kind(services, Kind::Api)?;
        key.require_scope(services, key::USERS_PROPERTIES_WRITE)?;
        let app_id = path_id(parts, services, "appId").await?;
        let app = services.apps.get(app_id).await?;
        app.filter(|app| app.workspace_id == key.app.workspace_id)
            .map(|app| Self {
                app,
                actor: format!("key/{}", key.key.id),
            })
            .ok_or_else(|| key.misplaced(services))
    }
}

impl PushSender {
    async fn of(parts: &mut Parts, services: &Shared) -> Result<Self, ApiError> {
        let key = AppKey::of_management(parts, services).await?;
        key.require_kind(services, Kind::Server)?;
        key.require_scope(services, key::PUSH_TRANSACTIONAL)?;
        let app_id = path_id(parts, services, "appId").await?;
        if app_id != key.app.id {
            return Err(key.misplaced(services));
        }
        Ok(Self { app: key.app })
    }
}

impl Sdk {
    pub(super) async fn of(parts: &mut Parts, services: &Shared) -> Result<Self, ApiError> {
        let key = AppKey::of(parts, services).await?;
        key.require_kind(services, Kind::Write)?;
        let AppKey { app, key, .. } = key;
        Ok(Self { app, key })
    }
}

/// The app and key of a key's hash, if it works now. What does not is counted, and what once was a key of a
/// known app is in the app's audit log.
pub(super) fn app_key<'a>(
    parts: &'a Parts,
    services: &'a Services,
    hash: &'a [u8; 32],
) -> BoxFuture<'a, Result<AppKey, ApiError>> {
    Box::pin(async move {
        let now = services.clock.now();
        let holder = match services.apps.known_key(hash) {
            Some((app, key)) => Holder::Live(app, key),
            None => services.apps.by_key(hash).await?,
        };
        let (app_id, key_id, reason) = match holder {
            Holder::Live(app, key) if key.is_live(now) => {
                let notes = Notes::of(&parts.extensions);
                // A write key is public: an address's share of it comes before what all have together.
                let shared = address(parts, services).filter(|_| key.kind == Kind::Write);
                let share = shared.map(|address| share_of(key.id, address));
                if let Some(share) = share {
                    charge(parts, services, Policy::KeyAddress, share)?;
                }
                charge(parts, services, Policy::Key, key.id.into_bytes())?;
                notes.set_app(app.id, key.id, &app.origins)?;
                notes.count_for(
                    &services.rate_limits,
                    &services.clock,
                    Policy::AppBytes,
                    app.id.into_bytes(),
                );
                // Counted from the last to the first.
                if let Some(share) = share {
                    notes.count_for(
                        &services.rate_limits,
                        &services.clock,
                        Policy::KeyAddressBytes,
                        share,
                    );
                }
                services.key_uses.used(app.id, &key, now);
                return Ok(AppKey {
                    app,
                    key,
                    route: Route::of(parts),
                });
            }
            Holder::Live(app, key) => (app.id, key.id, Reason::Expired),
            Holder::Revoked { app_id, key_id } => (app_id, key_id, Reason::Revoked),
            Holder::Nobody => return Err(failed(parts, services, BAD_KEY)),
        };
        let route = Route::of(parts).to_string();
        services
            .key_uses
            .refused(app_id, key_id, reason, route, now);
        Err(failed(parts, services, BAD_KEY))
    })
}

impl Route {
    fn of(parts: &Parts) -> Self {
        Self {
            method: parts.method.clone(),
            path: parts.extensions.get::<MatchedPath>().cloned(),
        }
    }
}

impl fmt::Display for Route {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.as_ref().map_or("", MatchedPath::as_str);
        write!(formatter, "{} {path}", self.method)
    }
}

/// Refuses a request with neither `Authorization` nor a session. If it has a key in the SDKs' header, the audit log hears of
/// it; a cookie that opens nothing is a failed authentication.
pub(super) async fn no_credential(parts: &Parts, services: &Services) -> ApiError {
    let refusal = unauthorized(
        "the request has no credential: send one as `Authorization: Bearer …`; `x-write-key` is for SDK routes only",
    );
    if console::site::has_session_cookie(&parts.headers) {
        return failed(
            parts,
            services,
            "the session of the cookie has ended or is unknown; sign in again",
        );
    }
    let hash = key_text(parts).ok().and_then(|text| key::hash(&text));
    let Some(hash) = hash else { return refusal };
    match app_key(parts, services, &hash).await {
        Ok(key) => {
            key.note_refusal(services, Reason::WrongHeader);
            refusal
        }
        Err(refusal) => refusal,
    }
}

/// The key of the headers, where there is one: also as the user name of basic authentication (RFC 7617), as SDKs of
/// others send it. Two different ones contradict each other, however they are sent.
pub fn collection_key(parts: &Parts) -> Result<Option<String>, ApiError> {
    let invalid = || {
        unauthorized(
            "`Authorization` must be `Basic` with the key as user name, or `Bearer` with the key",
        )
    };
    let Some(header) = parts.headers.get(AUTHORIZATION) else {
        let has_key = parts.headers.contains_key(WRITE_KEY);
        return has_key.then(|| key_text(parts)).transpose();
    };
    let (scheme, rest) = header
        .to_str()
        .map_err(|_| invalid())?
        .split_once(' ')
        .ok_or_else(invalid)?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return key_text(parts).map(Some);
    }
    let bytes = STANDARD.decode(rest.trim()).map_err(|_| invalid())?;
    let text = String::from_utf8(bytes).map_err(|_| invalid())?;
    let user = text.split_once(':').map_or(&*text, |(user, _)| user);
    one_key(Some(user.to_owned()), write_key(parts)?)
}

/// The key of either header; two different ones contradict each other.
fn key_text(parts: &Parts) -> Result<String, ApiError> {
    one_key(bearer(parts)?, write_key(parts)?)?.ok_or_else(|| {
        unauthorized(
            "the request has no key: send one as `Authorization: Bearer …` or `x-write-key`",
        )
    })
}

/// The key in the SDKs' header.
fn write_key(parts: &Parts) -> Result<Option<String>, ApiError> {
    let text = |value: &HeaderValue| {
        let text = value.to_str().map_err(|_| unauthorized(BAD_KEY))?;
        Ok(text.trim().to_owned())
    };
    parts.headers.get(WRITE_KEY).map(text).transpose()
}

/// The one key of both headers.
fn one_key(
    authorization: Option<String>,
    header: Option<String>,
) -> Result<Option<String>, ApiError> {
    match (authorization, header) {
        (Some(one), Some(other)) if one != other => Err(ApiError::new(Code::CredentialConflict)),
        (one, other) => Ok(one.or(other)),
    }
}
