//! Who calls, as extractor types: a handler's signature says what it takes to call it.

use std::sync::Arc;

use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use uuid::Uuid;

use super::code::Code;
use super::error::ApiError;
use crate::apps::App;
use crate::apps::key::{self, Key, Kind};
use crate::issuer::{Claims, Role};
use crate::services::Shared;
use crate::subjects::token::{self, SubjectToken};

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

/// A key, whatever its kind.
#[derive(Clone, Debug)]
pub struct AppKey {
    /// The app that it belongs to.
    pub app: Arc<App>,
    /// The key.
    pub key: Key,
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

impl FromRequestParts<Shared> for Viewer {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, services: &Shared) -> Result<Self, ApiError> {
        scope(parts, services, Role::Viewer).await.map(Self)
    }
}

impl FromRequestParts<Shared> for Editor {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, services: &Shared) -> Result<Self, ApiError> {
        scope(parts, services, Role::Editor).await.map(Self)
    }
}

impl FromRequestParts<Shared> for Admin {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, services: &Shared) -> Result<Self, ApiError> {
        scope(parts, services, Role::Admin).await.map(Self)
    }
}

impl FromRequestParts<Shared> for Operator {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, services: &Shared) -> Result<Self, ApiError> {
        let claims = claims(parts, services).await?;
        if !claims.operator {
            let detail = "only tokens with the operator claim open this route";
            return Err(ApiError::because(Code::InsufficientRole, detail));
        }
        Ok(Self { actor: claims.sub })
    }
}

impl FromRequestParts<Shared> for AppKey {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, services: &Shared) -> Result<Self, ApiError> {
        let text = key_text(parts)?;
        app_key(services, &text).await?.ok_or_else(|| {
            // Good for something, but not for this.
            let genuine = services
                .issuer
                .verify(&text, services.clock.now())
                .is_some();
            ApiError::new(if genuine {
                Code::InsufficientScope
            } else {
                Code::InvalidCredentials
            })
        })
    }
}

impl FromRequestParts<Shared> for Sdk {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, services: &Shared) -> Result<Self, ApiError> {
        let AppKey { app, key } = AppKey::from_request_parts(parts, services).await?;
        match key.kind {
            Kind::Write => Ok(Self { app }),
            Kind::Server | Kind::Api => Err(ApiError::new(Code::InsufficientScope)),
        }
    }
}

impl FromRequestParts<Shared> for SdkSubject {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, services: &Shared) -> Result<Self, ApiError> {
        let Sdk { app } = Sdk::from_request_parts(parts, services).await?;
        let token = subject_token(parts, services, &app)?
            .ok_or_else(|| ApiError::new(Code::SubjectTokenRequired))?;
        Ok(Self { app, token })
    }
}

/// The request's subject token, if it has one; it must be genuine, in force and of this app.
pub fn subject_token(
    parts: &Parts,
    services: &Shared,
    app: &App,
) -> Result<Option<SubjectToken>, ApiError> {
    let Some(value) = parts.headers.get(SUBJECT_TOKEN) else {
        return Ok(None);
    };
    let text = value
        .to_str()
        .map_err(|_| ApiError::new(Code::InvalidCredentials))?;
    let token = token::open(&services.secrets, text)
        .filter(|token| token.app_id == app.id)
        .ok_or_else(|| ApiError::new(Code::InvalidCredentials))?;
    if token.expires_at <= services.clock.now() {
        return Err(ApiError::new(Code::SubjectTokenExpired));
    }
    Ok(Some(token))
}

/// The app and key of a key's text.
async fn app_key(services: &Shared, text: &str) -> Result<Option<AppKey>, ApiError> {
    let Some(hash) = key::hash(text) else {
        return Ok(None);
    };
    let found = services.apps.by_key(&hash).await?;
    Ok(found
        .filter(|(_, key)| key.is_live(services.clock.now()))
        .map(|(app, key)| AppKey { app, key }))
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
    Ok(Scope {
        app,
        actor: claims.sub,
    })
}

async fn claims(parts: &Parts, services: &Shared) -> Result<Claims, ApiError> {
    let token = bearer(parts)?.ok_or_else(|| ApiError::new(Code::InvalidCredentials))?;
    if let Some(claims) = services.issuer.verify(&token, services.clock.now()) {
        return Ok(claims);
    }
    let code = match app_key(services, &token).await? {
        Some(_) => Code::InsufficientScope,
        None => Code::InvalidCredentials,
    };
    Err(ApiError::new(code))
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
