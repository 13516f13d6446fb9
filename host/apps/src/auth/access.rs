//! Who manages apps: people with an access token (contract 1), or signed in to the console (contract 22).

use std::sync::Arc;

use axum::http::request::Parts;
use futures_util::future::BoxFuture;
use nudge_db::{Timestamp, Tx};
use nudge_http::code::Code;
use nudge_http::error::ApiError;
use nudge_http::issuer::{Claims, Role};
use nudge_http::oidc::AccessTokenRefusal;
use nudge_http::request_context::notice_proxy;
use nudge_platform::audit::{self, Entry};
use nudge_platform::rate_limits::Policy;
use nudge_platform::secrets;
use serde_json::Value;

use super::keys::{app_key, no_credential};
use super::{bearer, charge, failed, no_app, path_id};
use crate::App;
use crate::console::{self, SessionKey};
use crate::key;
use crate::services::{Services, Shared};

/// An app and who manages it.
#[derive(Clone, Debug)]
pub struct Scope {
    /// The app of the path.
    pub app: Arc<App>,
    /// Who calls.
    pub actor: String,
    /// Until when the token is good.
    pub until: Timestamp,
    /// The session of the console that the request came with, which may end before.
    pub session: Option<SessionKey>,
    role: Role,
}

impl Scope {
    /// Refuses who may not manage the app.
    pub fn require_admin(&self) -> Result<(), ApiError> {
        if self.role < Role::Admin {
            return Err(lacks(Role::Admin, self.role));
        }
        Ok(())
    }

    /// Adds what the caller did in the app to the audit log.
    pub async fn record(
        &self,
        tx: &mut Tx,
        action: &'static str,
        resource: String,
        detail: Value,
        now: Timestamp,
    ) -> nudge_db::Result<()> {
        let entry = Entry {
            app_id: self.app.id,
            actor: &self.actor,
            action,
            resource,
            detail,
        };
        audit::record(tx, &entry, now).await
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

/// Somebody with an access token or a session, whatever its roles.
#[derive(Clone, Debug)]
pub struct Member(pub Claims);

/// Somebody who manages at least one workspace.
#[derive(Clone, Debug)]
pub struct Administrator(pub Claims);

extractors!(Viewer, Editor, Admin, Operator, Member, Administrator);

impl Viewer {
    async fn of(parts: &mut Parts, services: &Shared) -> Result<Self, ApiError> {
        scope(parts, services, Role::Viewer).await.map(Self)
    }
}

impl Editor {
    async fn of(parts: &mut Parts, services: &Shared) -> Result<Self, ApiError> {
        scope(parts, services, Role::Editor).await.map(Self)
    }
}

impl Admin {
    async fn of(parts: &mut Parts, services: &Shared) -> Result<Self, ApiError> {
        scope(parts, services, Role::Admin).await.map(Self)
    }
}

impl Operator {
    async fn of(parts: &mut Parts, services: &Shared) -> Result<Self, ApiError> {
        let Caller { claims, .. } = caller(parts, services).await?;
        if !claims.operator {
            let detail = "this takes a token with the operator claim";
            return Err(ApiError::because(Code::InsufficientRole, detail));
        }
        Ok(Self { actor: claims.sub })
    }
}

impl Member {
    async fn of(parts: &mut Parts, services: &Shared) -> Result<Self, ApiError> {
        caller(parts, services)
            .await
            .map(|caller| Self(caller.claims))
    }
}

impl Administrator {
    async fn of(parts: &mut Parts, services: &Shared) -> Result<Self, ApiError> {
        let Caller { claims, .. } = caller(parts, services).await?;
        if !claims.roles.values().any(|role| *role == Role::Admin) {
            let detail =
                "this takes the role admin in a workspace, which the token does not have in any";
            return Err(ApiError::because(Code::InsufficientRole, detail));
        }
        Ok(Self(claims))
    }
}

/// The access token's claims and, from the path, the app: 401 before 404 before 403.
async fn scope(parts: &mut Parts, services: &Shared, needed: Role) -> Result<Scope, ApiError> {
    let Caller { claims, session } = caller(parts, services).await?;
    let app_id = path_id(parts, services, "appId").await?;
    let app = services.apps.get(app_id).await?.ok_or_else(no_app)?;
    let role = claims.roles.get(&app.workspace_id).ok_or_else(no_app)?;
    if *role < needed {
        return Err(lacks(needed, *role));
    }
    let role = *role;
    Ok(Scope {
        app,
        until: Timestamp::from_seconds(claims.exp),
        session,
        actor: claims.sub,
        role,
    })
}

/// Says which role is needed, and which is there.
fn lacks(needed: Role, role: Role) -> ApiError {
    let name = |role| match role {
        Role::Viewer => "viewer",
        Role::Editor => "editor",
        Role::Admin => "admin",
    };
    let detail = format!(
        "this takes the role {} in the app's workspace, and the token has the role {}",
        name(needed),
        name(role)
    );
    ApiError::because(Code::InsufficientRole, detail)
}

/// Who calls, and by which session.
struct Caller {
    claims: Claims,
    session: Option<SessionKey>,
}

/// Who calls: by the request's access token, or by its session where it has none.
fn caller<'a>(parts: &'a Parts, services: &'a Shared) -> BoxFuture<'a, Result<Caller, ApiError>> {
    Box::pin(async move {
        notice_proxy(&parts.headers, services.config.server.trusted_proxies);
        let Some(token) = bearer(parts)? else {
            let Some(signed_in) = console::sessions::of_request(parts, services).await? else {
                return Err(no_credential(parts, services).await);
            };
            charge_principal(parts, services, &signed_in.claims)?;
            return Ok(Caller {
                claims: signed_in.claims,
                session: Some(signed_in.session),
            });
        };
        let claims = claims(parts, services, &token).await?;
        Ok(Caller {
            claims,
            session: None,
        })
    })
}

/// The claims of a request's access token.
async fn claims(parts: &Parts, services: &Services, token: &str) -> Result<Claims, ApiError> {
    if let Some(hash) = key::hash(token) {
        let key = app_key(parts, services, &hash).await?;
        return Err(key.refuse_kind(services, "an access token"));
    }
    let now = services.clock.now();
    match services
        .access_tokens
        .verify(&services.issuer, token, now)
        .await
    {
        Ok(claims) => {
            charge_principal(parts, services, &claims)?;
            Ok(claims)
        }
        Err(AccessTokenRefusal::Invalid) => {
            let detail = "the access token in `Authorization` has expired, or no issuer of this server signed it";
            Err(failed(parts, services, detail))
        }
        Err(AccessTokenRefusal::Unavailable(cause)) => Err(ApiError::unavailable(cause)),
    }
}

/// Counts a request of a person, by token or session.
fn charge_principal(parts: &Parts, services: &Services, claims: &Claims) -> Result<(), ApiError> {
    let principal = secrets::hash(&[claims.iss.as_bytes(), claims.sub.as_bytes()]);
    let owner = principal.first_chunk().copied().unwrap_or_default();
    charge(parts, services, Policy::Principal, owner)
}
