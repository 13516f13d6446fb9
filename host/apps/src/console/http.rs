//! `/console/session`: signing in by a link, who is signed in, and signing out (contract 22).

use axum::extract::{FromRequestParts, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use nudge_campaigns::apps as store_of_apps;
use nudge_http::issuer::{Claims, Role};
use nudge_http::{ApiError, Code, Data, Json, created};
use serde::{Deserialize, Serialize};
use serde_json::json;
use uuid::Uuid;

use super::site::{Cookie, Reached, Site, has_session_cookie};
use super::{links, secret_hash, sessions, store};
use crate::MOST;
use crate::auth::{self, Member};
use crate::services::{AppsState, Services, Shared};

/// A request to the console under its own name.
#[derive(Clone, Debug)]
pub struct OwnHost(pub(super) Reached);

/// A request under the console's own name which, if it changes anything, no other site's page sent.
#[derive(Clone, Debug)]
pub struct OwnPage(Reached);

/// A code to sign in with.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SignInRequest {
    code: String,
}

/// Who is signed in, and what they see.
#[derive(Debug, Serialize)]
pub struct SessionView {
    subject: String,
    workspaces: Vec<WorkspaceView>,
    operator: bool,
    apps: Vec<SeenApp>,
}

#[derive(Debug, Serialize)]
struct WorkspaceView {
    id: Uuid,
    role: Role,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct SeenApp {
    id: Uuid,
    name: String,
    workspace_id: Uuid,
}

impl<S> FromRequestParts<S> for OwnHost
where
    S: AppsState + Send + Sync,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        state.apps().console.site.reached(parts).map(Self)
    }
}

impl<S> FromRequestParts<S> for OwnPage
where
    S: AppsState + Send + Sync,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let OwnHost(reached) = OwnHost::from_request_parts(parts, state).await?;
        Site::require_own_page(&reached, parts, has_session_cookie(&parts.headers))?;
        Ok(Self(reached))
    }
}

/// Signs in by a link's code.
pub async fn sign_in(
    OwnPage(reached): OwnPage,
    State(services): State<Shared>,
    client: auth::Stranger,
    headers: HeaderMap,
    Json(request): Json<SignInRequest>,
) -> Result<Response, ApiError> {
    let now = services.clock.now();
    let mut tx = services.db.write().await?;
    let link = links::take(&mut tx, &request.code, now).await?;
    // A link that was made before issuers were configured opens nothing, as the embedded issuer's tokens do not.
    let Some(link) = link.filter(|_| services.access_tokens.are_embedded()) else {
        drop(tx);
        let detail = "the link was used, is more than ten minutes old, or is none; make another";
        return Err(client.failed(&services).with_detail(detail));
    };
    // Who signs in anew leaves the session before.
    let before = reached.read(&headers, Cookie::Session);
    if let Some(hash) = before.and_then(secret_hash) {
        store::delete_session(&mut tx, &hash).await?;
    }
    let secret = sessions::begin_by_link(&mut tx, link, now).await?;
    tx.commit().await?;
    let cookie = reached.write(Cookie::Session, Some(&secret.text));
    let signed_in = sessions::open(&services, &secret.hash).await?;
    let signed_in = signed_in.ok_or_else(|| ApiError::new(Code::InvalidCredentials))?;
    let data = view(&services, signed_in.claims).await?;
    Ok(([(header::SET_COOKIE, cookie)], created(data)).into_response())
}

/// Says who is signed in. The refusal says how one may sign in.
pub async fn get_session(
    OwnHost(_): OwnHost,
    State(services): State<Shared>,
    member: Result<Member, ApiError>,
) -> Result<Data<SessionView>, ApiError> {
    let Member(claims) = member.map_err(|error| with_ways_in(&services, error))?;
    let data = view(&services, claims).await?;
    Ok(Data { data })
}

async fn view(services: &Services, claims: Claims) -> Result<SessionView, ApiError> {
    let workspaces: Vec<Uuid> = claims.roles.keys().copied().collect();
    let most = MOST.saturating_mul(i64::try_from(workspaces.len()).unwrap_or(i64::MAX));
    let mut tx = services.db.read().await?;
    let apps = store_of_apps::list(&mut tx, workspaces, None, most).await?;
    let apps = apps.into_iter().map(|row| SeenApp {
        id: row.id,
        name: row.name,
        workspace_id: row.workspace_id,
    });
    let apps = apps.collect();
    let workspaces = claims.roles.iter();
    let workspaces = workspaces.map(|(id, role)| WorkspaceView {
        id: *id,
        role: *role,
    });
    Ok(SessionView {
        subject: claims.sub,
        workspaces: workspaces.collect(),
        operator: claims.operator,
        apps,
    })
}

/// Adds how one may sign in to the refusal of who is not: `signIn`.
fn with_ways_in(services: &Services, error: ApiError) -> ApiError {
    if error.code() != Code::InvalidCredentials {
        return error;
    }
    let issuers: Vec<&str> = services.access_tokens.login_issuers().collect();
    let link = services.access_tokens.are_embedded();
    error.with_member("signIn", json!({"link": link, "issuers": issuers}))
}

/// Signs out. A session that has ended already is as good as signed out.
pub async fn sign_out(
    OwnPage(reached): OwnPage,
    State(services): State<Shared>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let secret = reached.read(&headers, Cookie::Session);
    let Some(secret) = secret else {
        return Err(ApiError::new(Code::InvalidCredentials));
    };
    if let Some(hash) = secret_hash(secret) {
        let mut tx = services.db.write().await?;
        store::delete_session(&mut tx, &hash).await?;
        tx.commit().await?;
    }
    let cookie = reached.write(Cookie::Session, None);
    Ok((StatusCode::NO_CONTENT, [(header::SET_COOKIE, cookie)]).into_response())
}
