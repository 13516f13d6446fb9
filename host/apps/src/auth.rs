//! Who calls, as extractor types: a handler's signature says what it takes to call it.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{FromRef, FromRequestParts, MatchedPath, RawPathParams};
use axum::http::Method;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use nudge_http::code::Code;
use nudge_http::error::ApiError;
use nudge_http::issuer::{Claims, Role};
use nudge_http::oidc::AccessTokenRefusal;
use nudge_http::request_context::{self, Notes, client_address, notice_proxy};
use nudge_platform::rate_limits::{Policy, owner_of, share_of};
use nudge_platform::secrets;
use uuid::Uuid;

use crate::key::{self, Key, Kind};
use crate::keys::Reason;
use crate::services::{Services, Shared};
use crate::subject_token::{self, SubjectToken};
use crate::{App, Holder};

/// The header of a second way to send a write key.
const WRITE_KEY: &str = "x-write-key";
/// The header of a subject token.
const SUBJECT_TOKEN: &str = "x-service-subject-token";

/// An app and who manages it.
#[derive(Clone, Debug)]
pub struct Scope {
    /// The app of the path.
    pub app: Arc<App>,
    /// Who calls.
    pub actor: String,
    role: Role,
}

impl Scope {
    /// Refuses who may not manage the app.
    pub fn require_admin(&self) -> Result<(), ApiError> {
        if self.role < Role::Admin {
            return Err(ApiError::new(Code::InsufficientRole));
        }
        Ok(())
    }
}

/// Somebody who may read the app of the path.
#[derive(Clone, Debug)]
pub struct Viewer(pub Scope);

/// Somebody who may change surveys, campaigns and definitions of the app of the path.
#[derive(Clone, Debug)]
pub struct Editor(pub Scope);

/// Somebody who may manage the app of the path.
#[derive(Clone, Debug)]
pub struct Admin(pub Scope);

/// Somebody who looks after the server, whatever their role in workspaces.
#[derive(Clone, Debug)]
pub struct Operator {
    /// Who calls.
    pub actor: String,
}

/// Somebody with an access token, whatever its roles.
#[derive(Clone, Debug)]
pub struct Member(pub Claims);

/// Somebody who manages at least one workspace.
#[derive(Clone, Debug)]
pub struct Administrator(pub Claims);

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
}

/// An SDK with a subject token. That the token is not revoked is checked where the subject is read.
#[derive(Clone, Debug)]
pub struct SdkSubject {
    /// The app.
    pub app: Arc<App>,
    /// Whose token it is.
    pub token: SubjectToken,
}

impl<S> FromRequestParts<S> for Viewer
where
    Shared: FromRef<S>,
    S: Send + Sync,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let services = &Shared::from_ref(state);
        scope(parts, services, Role::Viewer).await.map(Self)
    }
}

impl<S> FromRequestParts<S> for Editor
where
    Shared: FromRef<S>,
    S: Send + Sync,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let services = &Shared::from_ref(state);
        scope(parts, services, Role::Editor).await.map(Self)
    }
}

impl<S> FromRequestParts<S> for Admin
where
    Shared: FromRef<S>,
    S: Send + Sync,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let services = &Shared::from_ref(state);
        scope(parts, services, Role::Admin).await.map(Self)
    }
}

impl<S> FromRequestParts<S> for Operator
where
    Shared: FromRef<S>,
    S: Send + Sync,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let services = &Shared::from_ref(state);
        let claims = claims(parts, services).await?;
        if !claims.operator {
            let detail = "only tokens with the operator claim open this route";
            return Err(ApiError::because(Code::InsufficientRole, detail));
        }
        Ok(Self { actor: claims.sub })
    }
}

impl<S> FromRequestParts<S> for Member
where
    Shared: FromRef<S>,
    S: Send + Sync,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let services = &Shared::from_ref(state);
        claims(parts, services).await.map(Self)
    }
}

impl<S> FromRequestParts<S> for Administrator
where
    Shared: FromRef<S>,
    S: Send + Sync,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let services = &Shared::from_ref(state);
        let claims = claims(parts, services).await?;
        if !claims.roles.values().any(|role| *role == Role::Admin) {
            return Err(ApiError::new(Code::InsufficientRole));
        }
        Ok(Self(claims))
    }
}

impl<S> FromRequestParts<S> for AppKey
where
    Shared: FromRef<S>,
    S: Send + Sync,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let services = &Shared::from_ref(state);
        let text = key_text(parts)?;
        if let Some(hash) = key::hash(&text) {
            return app_key(parts, services, &hash).await;
        }
        let now = services.clock.now();
        match services
            .access_tokens
            .verify(&services.issuer, &text, now)
            .await
        {
            // Good for something, but not for this.
            Ok(_) => Err(ApiError::new(Code::InsufficientScope)),
            Err(AccessTokenRefusal::Invalid) => Err(failed(parts, services)),
            Err(AccessTokenRefusal::Unavailable(cause)) => Err(ApiError::unavailable(cause)),
        }
    }
}

impl AppKey {
    /// The key of a request of other routes than the SDK's, which is in `Authorization` alone (contract 1).
    async fn of_management(parts: &mut Parts, services: &Shared) -> Result<Self, ApiError> {
        if bearer(parts)?.is_none() {
            return Err(no_bearer(parts, services).await);
        }
        Self::from_request_parts(parts, services).await
    }

    /// Refuses a key for an app that it does not open, which need not exist; the audit log of its own hears of it.
    fn misplaced(&self, services: &Services) -> ApiError {
        self.refuse(services, Reason::OtherApp);
        ApiError::new(Code::NotFound)
    }

    /// Refuses a key that is not of a kind; the audit log hears of it.
    pub fn require_kind(&self, services: &Services, kind: Kind) -> Result<(), ApiError> {
        if self.key.kind == kind {
            return Ok(());
        }
        Err(self.refuse(services, Reason::WrongKind))
    }

    /// Refuses a key without a scope; the audit log hears of it.
    pub fn require_scope(&self, services: &Services, scope: &str) -> Result<(), ApiError> {
        if self.key.has_scope(scope) {
            return Ok(());
        }
        Err(self.refuse(services, Reason::MissingScope))
    }

    fn refuse(&self, services: &Services, reason: Reason) -> ApiError {
        let now = services.clock.now();
        let route = self.route.to_string();
        services
            .key_uses
            .refused(self.app.id, self.key.id, reason, route, now);
        ApiError::new(Code::InsufficientScope)
    }
}

impl<S> FromRequestParts<S> for PropertyWriter
where
    Shared: FromRef<S>,
    S: Send + Sync,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let services = &Shared::from_ref(state);
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

impl<S> FromRequestParts<S> for PushSender
where
    Shared: FromRef<S>,
    S: Send + Sync,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let services = &Shared::from_ref(state);
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

impl<S> FromRequestParts<S> for Sdk
where
    Shared: FromRef<S>,
    S: Send + Sync,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let services = &Shared::from_ref(state);
        let key = AppKey::from_request_parts(parts, state).await?;
        key.require_kind(services, Kind::Write)?;
        Ok(Self { app: key.app })
    }
}

impl<S> FromRequestParts<S> for SdkSubject
where
    Shared: FromRef<S>,
    S: Send + Sync,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let services = &Shared::from_ref(state);
        let Sdk { app } = Sdk::from_request_parts(parts, state).await?;
        let token = subject_token(parts, services, &app)?
            .ok_or_else(|| ApiError::new(Code::SubjectTokenRequired))?;
        Ok(Self { app, token })
    }
}

/// The request's subject token, if it has a good one. A bad one counts as failed authentication; the request goes on without.
pub fn good_subject_token(
    parts: &Parts,
    services: &Services,
    app: &App,
) -> Result<Option<SubjectToken>, ApiError> {
    match subject_token(parts, services, app) {
        // Of its own subject; what failed before at this address is no concern of a request with a good key.
        Err(refusal) if Notes::of(&parts.extensions).is_over(Policy::Subject) => Err(refusal),
        token => Ok(token.unwrap_or_default()),
    }
}

/// The request's subject token, if it has one; it must be genuine, in force and of this app.
pub fn subject_token(
    parts: &Parts,
    services: &Services,
    app: &App,
) -> Result<Option<SubjectToken>, ApiError> {
    let Some(value) = parts.headers.get(SUBJECT_TOKEN) else {
        return Ok(None);
    };
    let text = value
        .to_str()
        .map_err(|_| ApiError::new(Code::InvalidCredentials))?;
    let token = subject_token::open(&services.secrets, text)
        .filter(|token| token.app_id == app.id)
        .ok_or_else(|| failed(parts, services))?;
    if token.expires_at <= services.clock.now() {
        return Err(ApiError::new(Code::SubjectTokenExpired));
    }
    charge(
        parts,
        services,
        Policy::Subject,
        token.subject_id.into_bytes(),
    )?;
    Notes::of(&parts.extensions).count_for(
        &services.rate_limits,
        &services.clock,
        Policy::SubjectBytes,
        token.subject_id.into_bytes(),
    );
    Ok(Some(token))
}

/// The app and key of a key's hash, if it works now. What does not is counted, and what once was a key of a
/// known app is in the app's audit log.
async fn app_key(parts: &Parts, services: &Services, hash: &[u8; 32]) -> Result<AppKey, ApiError> {
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
            notes.set_app(app.id, &app.origins)?;
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
        Holder::Nobody => return Err(failed(parts, services)),
    };
    let route = Route::of(parts).to_string();
    services
        .key_uses
        .refused(app_id, key_id, reason, route, now);
    Err(failed(parts, services))
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

/// Refuses a request without `Authorization`. If it has a key in the SDKs' header, the audit log hears of it.
async fn no_bearer(parts: &Parts, services: &Services) -> ApiError {
    let refusal = ApiError::new(Code::InvalidCredentials);
    let hash = key_text(parts).ok().and_then(|text| key::hash(&text));
    let Some(hash) = hash else { return refusal };
    match app_key(parts, services, &hash).await {
        Ok(key) => {
            key.refuse(services, Reason::WrongHeader);
            refusal
        }
        Err(refusal) => refusal,
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

/// The access token's claims and, from the path, the app: 401 before 404 before 403.
async fn scope(parts: &mut Parts, services: &Shared, needed: Role) -> Result<Scope, ApiError> {
    let claims = claims(parts, services).await?;
    let app_id = path_id(parts, services, "appId").await?;
    let app = services
        .apps
        .get(app_id)
        .await?
        .ok_or_else(|| ApiError::new(Code::NotFound))?;
    let role = claims
        .roles
        .get(&app.workspace_id)
        .ok_or_else(|| ApiError::new(Code::NotFound))?;
    if *role < needed {
        return Err(ApiError::new(Code::InsufficientRole));
    }
    let role = *role;
    Ok(Scope {
        app,
        actor: claims.sub,
        role,
    })
}

/// The claims of the request's access token.
async fn claims(parts: &Parts, services: &Services) -> Result<Claims, ApiError> {
    notice_proxy(&parts.headers, services.config.server.trusted_proxies);
    let Some(token) = bearer(parts)? else {
        return Err(no_bearer(parts, services).await);
    };
    if let Some(hash) = key::hash(&token) {
        let key = app_key(parts, services, &hash).await?;
        return Err(key.refuse(services, Reason::WrongKind));
    }
    let now = services.clock.now();
    match services
        .access_tokens
        .verify(&services.issuer, &token, now)
        .await
    {
        Ok(claims) => {
            let principal = secrets::hash(&[claims.iss.as_bytes(), claims.sub.as_bytes()]);
            let owner = principal.first_chunk().copied().unwrap_or_default();
            charge(parts, services, Policy::Principal, owner)?;
            Ok(claims)
        }
        Err(AccessTokenRefusal::Invalid) => Err(failed(parts, services)),
        Err(AccessTokenRefusal::Unavailable(cause)) => Err(ApiError::unavailable(cause)),
    }
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

/// The key of either header; two different ones contradict each other.
fn key_text(parts: &Parts) -> Result<String, ApiError> {
    let bearer = bearer(parts)?;
    let header = match parts.headers.get(WRITE_KEY) {
        Some(value) => Some(
            value
                .to_str()
                .map_err(|_| ApiError::new(Code::InvalidCredentials))?
                .trim()
                .to_owned(),
        ),
        None => None,
    };
    match (bearer, header) {
        (Some(bearer), Some(header)) if bearer != header => {
            Err(ApiError::new(Code::CredentialConflict))
        }
        (Some(text), _) | (None, Some(text)) => Ok(text),
        (None, None) => Err(ApiError::new(Code::InvalidCredentials)),
    }
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
