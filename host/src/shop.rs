//! The shop at `/demo/`: a page that uses the web SDK as any page would, and shows what was sent, decided, and why.
//!
//! Embedded mode only. The server plays the shop's own backend too: it says who signs in. What the page needs is made
//! when it is opened and is not there, so that an app whose owner never opens it has nothing of it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::uri::Authority;
use axum::routing::{get, post};
use axum::{Extension, Router};
use nudge_apps::identity_keys::{self, IdentityKey};
use nudge_apps::key::{self, Kind};
use nudge_apps::keys::{self, Wanted};
use nudge_campaigns::lifecycle::{self, Content as _};
use nudge_campaigns::surveys::{Content, Survey};
use nudge_campaigns::{apps, store as campaigns};
use nudge_db::{Timestamp, Tx};
use nudge_http::issuer::Role;
use nudge_http::request_context::{Peer, client_named_in};
use nudge_http::{ApiError, Code, Data, Json};
use nudge_platform::audit::{self, Entry};
use nudge_platform::outbound;
use nudge_platform::public_key::PublicKey;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::Mutex;
use uuid::Uuid;

use crate::openapi::Page;
use crate::services::Shared;

/// What people see as the name of the shop's key, and who its tokens speak for.
const NAME: &str = "demo shop";
/// Keys of earlier starts that still work.
const KEYS_KEPT: i64 = 5;
/// How long a page may stay open.
const TOKEN_LIFETIME: Duration = Duration::from_hours(24);
/// How long somebody stays signed in.
const IDENTITY_LIFETIME: Duration = Duration::from_hours(12);
/// The longest name that somebody signs in with, in characters.
const MOST_NAME: usize = 64;

/// What the page needs to know. The token reads and changes nothing.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Opening {
    app_id: Uuid,
    write_key: String,
    viewer_token: String,
    survey_id: Uuid,
}

/// What this process has made for the page. Its owner may have removed it since.
#[derive(Debug, Default)]
struct Made {
    write_key: Option<String>,
    survey_id: Option<Uuid>,
}

#[derive(Deserialize)]
struct SignIn {
    name: String,
}

/// The routes of the shop.
pub fn routes() -> Router<Shared> {
    let page = |content_type, text| Page::text(content_type, text).route();
    let html = include_str!("shop/index.html");
    let (script, style) = (include_str!("shop/shop.js"), include_str!("shop/shop.css"));
    Router::new()
        .route("/demo/", page("text/html; charset=utf-8", html))
        .route(
            "/demo/shop.js",
            page("text/javascript; charset=utf-8", script),
        )
        .route("/demo/shop.css", page("text/css; charset=utf-8", style))
        .route("/demo/opening", get(opening))
        .route("/demo/sign-in", post(sign_in))
        .layer(Extension(Arc::new(Mutex::new(Made::default()))))
}

async fn opening(
    State(services): State<Shared>,
    Extension(made): Extension<Arc<Mutex<Made>>>,
    Extension(peer): Extension<Peer>,
    headers: HeaderMap,
) -> Result<Data<Opening>, ApiError> {
    require_own_page(peer, &headers)?;
    let data = opened(&services, &made).await?;
    Ok(Data { data })
}

/// Says who somebody is, as the shop's backend would after asking for a password.
async fn sign_in(
    State(services): State<Shared>,
    Extension(made): Extension<Arc<Mutex<Made>>>,
    Extension(peer): Extension<Peer>,
    headers: HeaderMap,
    Json(request): Json<SignIn>,
) -> Result<Data<Value>, ApiError> {
    require_own_page(peer, &headers)?;
    let name = request.name.trim();
    if name.is_empty() || name.chars().count() > MOST_NAME || name.chars().any(char::is_control) {
        let detail = format!("a name has 1 to {MOST_NAME} characters");
        return Err(ApiError::field("/name", "invalid", detail));
    }
    let app_id = opened(&services, &made).await?.app_id;
    let now = services.clock.now();
    let until = now.plus(IDENTITY_LIFETIME);
    let claims = json!({"iss": app_id, "sub": name, "iat": now.seconds(), "exp": until.seconds()});
    let token = services.issuer.sign("JWT", claims.to_string().as_bytes());
    let token = token.ok_or_else(|| ApiError::new(Code::Internal))?;
    Ok(Data {
        data: json!({"identityToken": token}),
    })
}

/// Whether the server's own page asks, from this machine and under a name of it: another site can make its name lead here, too.
/// A proxy on this machine asks for others.
fn require_own_page(peer: Peer, headers: &HeaderMap) -> Result<(), ApiError> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let is_proxied = client_named_in(headers).is_some() || headers.contains_key("via");
    if !peer.0.to_canonical().is_loopback() || is_proxied {
        let detail = "the shop signs people in without a password, and so is for browsers on the server's machine";
        return Err(ApiError::because(Code::NotFound, detail));
    }
    let host = text("host").and_then(|host| host.parse::<Authority>().ok());
    let is_local = host.is_some_and(|host| outbound::is_loopback(host.host()));
    let is_same = text("sec-fetch-site").is_none_or(|site| site == "same-origin");
    if is_local && is_same {
        return Ok(());
    }
    Err(ApiError::new(Code::NotFound))
}

/// What the page needs: a key, a token that reads, the key of the shop's backend, and a survey. What is not there, or not
/// any longer, is made. The app is the one of `nudge dev`, whose audit log has what was made.
async fn opened(services: &Shared, made: &Mutex<Made>) -> Result<Opening, ApiError> {
    // Pages that are opened at once share what is made.
    let mut made = made.lock().await;
    let now = services.clock.now();
    let not_found = || ApiError::new(Code::NotFound);
    let app_id = *services.demo_app.get().ok_or_else(not_found)?;
    let mut tx = services.db.write().await?;
    let app = apps::find(&mut tx, app_id).await?.ok_or_else(not_found)?;
    let workspace = app.workspace_id;
    let write_key = match &made.write_key {
        Some(text) if works(&mut tx, text).await? => text.clone(),
        _ => make_key(&mut tx, app_id, workspace, now).await?,
    };
    trust_backend(services, &mut tx, app_id, now).await?;
    let survey_id = make_survey(services, &mut tx, app_id, made.survey_id, now).await?;
    tx.commit().await?;
    made.write_key = Some(write_key.clone());
    made.survey_id = Some(survey_id);
    services.apps.refresh(app_id).await?;
    let roles = BTreeMap::from([(workspace, Role::Viewer)]);
    let token = services
        .issuer
        .issue(NAME, roles, false, now, TOKEN_LIFETIME);
    Ok(Opening {
        app_id,
        write_key,
        viewer_token: token.map_err(ApiError::internal)?,
        survey_id,
    })
}

/// Whether a key is there and not revoked.
async fn works(tx: &mut Tx, text: &str) -> nudge_db::Result<bool> {
    let hash = key::hash(text);
    let found = keys::store::find_by_hashes(tx, hash.iter()).await?;
    Ok(found.values().any(|owner| !owner.revoked))
}

/// Makes a key for the page, and revokes those of earlier starts.
async fn make_key(
    tx: &mut Tx,
    app_id: Uuid,
    workspace: Uuid,
    now: Timestamp,
) -> Result<String, ApiError> {
    keys::store::revoke_older(tx, app_id, NAME, KEYS_KEPT, now).await?;
    let wanted = Wanted {
        kind: Kind::Write,
        name: NAME.to_owned(),
        scopes: Vec::new(),
        expires_at: None,
    };
    let (key_id, made) = keys::create(tx, app_id, workspace, &wanted, now).await?;
    let resource = format!("key/{key_id}");
    let detail = json!({"kind": wanted.kind, "name": wanted.name, "scopes": wanted.scopes});
    record(tx, app_id, "key.created", resource, detail, now).await?;
    Ok(made.text)
}

/// Has the app trust the identity tokens of the shop's backend, which is this server.
async fn trust_backend(
    services: &Shared,
    tx: &mut Tx,
    app_id: Uuid,
    now: Timestamp,
) -> Result<(), ApiError> {
    let jwks = services.issuer.key_set();
    let jwk = jwks.pointer("/keys/0").and_then(Value::as_object);
    let jwk = jwk.ok_or_else(|| ApiError::new(Code::Internal))?;
    let kid = jwk.get("kid").and_then(Value::as_str).unwrap_or(NAME);
    let key = IdentityKey {
        kid: kid.to_owned(),
        key: PublicKey::from_jwk(jwk).map_err(ApiError::internal)?,
        created_at: now,
    };
    let known = identity_keys::store::list(tx, app_id).await?;
    if known.iter().any(|known| known.kid == key.kid) {
        return Ok(());
    }
    identity_keys::create(tx, app_id, &key).await?;
    let resource = format!("identity-key/{}", key.kid);
    let (algorithm, fingerprint) = (key.key.algorithm(), key.key.fingerprint());
    let detail = json!({"algorithm": algorithm, "fingerprint": fingerprint});
    record(tx, app_id, "identity_key.created", resource, detail, now).await?;
    Ok(())
}

/// The survey that the page shows; it is made unless one that was made earlier, under whatever name, or at an earlier start is
/// active.
async fn make_survey(
    services: &Shared,
    tx: &mut Tx,
    app_id: Uuid,
    earlier: Option<Uuid>,
    now: Timestamp,
) -> Result<Uuid, ApiError> {
    let content: Content =
        serde_json::from_str(include_str!("shop/survey.json")).map_err(ApiError::internal)?;
    let active: Vec<Survey> = campaigns::active(tx, app_id).await?;
    let known = active
        .iter()
        .find(|survey| Some(survey.id) == earlier || survey.content.name == content.name);
    if let Some(survey) = known {
        return Ok(survey.id);
    }
    let survey = Survey::new(nudge_platform::id::new(now), app_id, content, now);
    lifecycle::create(tx, &services.plugins, &survey).await?;
    let resource = format!("survey/{}", survey.id);
    let detail = json!({"version": survey.version, "status": survey.content.status()});
    record(tx, app_id, "survey.created", resource, detail, now).await?;
    Ok(survey.id)
}

/// Adds what the shop did in its app to the audit log.
async fn record(
    tx: &mut Tx,
    app_id: Uuid,
    action: &'static str,
    resource: String,
    detail: Value,
    now: Timestamp,
) -> nudge_db::Result<()> {
    let entry = Entry {
        app_id,
        actor: NAME,
        action,
        resource,
        detail,
    };
    audit::record(tx, &entry, now).await
}
