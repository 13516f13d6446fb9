//! Sessions: who a cookie speaks for, for how long, and until when.

use std::time::Duration;

use axum::http::request::Parts;
use nudge_db::{Timestamp, Tx};
use nudge_http::ApiError;
use nudge_http::issuer::{Claims, EMBEDDED_AUDIENCE};
use nudge_http::oidc::AccessTokenRefusal;
use nudge_http::oidc::login::Tokens;
use nudge_platform::sealed::{Sealed, SealedColumn};
use serde::{Deserialize, Serialize};

use super::site::{Cookie, Site, has_session_cookie};
use super::store::{self, LinkRow, SessionRow};
use super::{Grants, Secret, renewal, secret_hash};
use crate::services::{Services, Shared};

/// A session that nobody uses ends after this time.
pub(super) const IDLE: Duration = Duration::from_hours(8);
/// A session ends after this time.
const LIFETIME: Duration = Duration::from_hours(24);
/// How often it is noted that a session is in use.
const NOTED: Duration = Duration::from_mins(1);

/// Names a session, without opening it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionKey(pub(super) String);

/// Somebody whose request has a session's cookie.
#[derive(Clone, Debug)]
pub struct SignedIn {
    /// What an access token of theirs would say. It expires with the session at the latest.
    pub claims: Claims,
    /// Their session.
    pub session: SessionKey,
}

/// What is sealed of an issuer's session.
#[derive(Serialize, Deserialize)]
pub(super) struct KeptTokens {
    pub(super) access: String,
    pub(super) refresh: Option<String>,
}

impl SessionRow {
    /// Whether it has ended.
    pub(super) fn has_ended(&self, now: Timestamp) -> bool {
        now >= self.ends_at || now >= self.used_at.plus(IDLE)
    }

    fn place(&self) -> SealedColumn<'_> {
        place(&self.hash)
    }

    /// Opens the tokens. None: a link opened the session.
    pub(super) fn tokens(&self, services: &Services) -> Result<Option<KeptTokens>, ApiError> {
        let Some(sealed) = &self.sealed else {
            return Ok(None);
        };
        let bytes = sealed.open(&services.secrets, self.place());
        let bytes = bytes.map_err(ApiError::internal)?;
        let tokens = serde_json::from_slice(&bytes).map_err(ApiError::internal)?;
        Ok(Some(tokens))
    }
}

fn place(hash: &str) -> SealedColumn<'_> {
    SealedColumn {
        table: "console_sessions",
        row: hash,
    }
}

/// Seals the tokens of a session.
pub(super) fn seal(services: &Services, hash: &str, tokens: &Tokens) -> Result<Sealed, ApiError> {
    let kept = KeptTokens {
        access: tokens.access.clone(),
        refresh: tokens.refresh.clone(),
    };
    let kept = serde_json::to_vec(&kept).map_err(ApiError::internal)?;
    Sealed::seal(&services.secrets, place(hash), &kept).map_err(ApiError::internal)
}

/// When a session with these tokens ends: with the access token where nothing renews it.
pub(super) fn end_of(tokens: &Tokens, created_at: Timestamp) -> Timestamp {
    let latest = created_at.plus(LIFETIME);
    if tokens.refresh.is_some() {
        return latest;
    }
    latest.min(Timestamp::from_seconds(tokens.claims.exp))
}

/// Begins a session of a link; answers what opens it.
pub(super) async fn begin_by_link(
    tx: &mut Tx,
    link: LinkRow,
    now: Timestamp,
) -> nudge_db::Result<Secret> {
    let secret = Secret::generate();
    let ends_at = now.plus(LIFETIME);
    let row = SessionRow {
        hash: secret.hash.clone(),
        subject: link.subject,
        grants: Some(link.grants),
        issuer: None,
        sealed: None,
        token_ends_at: ends_at,
        renewal: 0,
        renewing_until: Timestamp::default(),
        created_at: now,
        used_at: now,
        ends_at,
    };
    store::insert_session(tx, row).await?;
    Ok(secret)
}

/// Begins a session of somebody who signed in at an issuer; answers the cookie's value.
pub(super) async fn begin_by_login(
    services: &Services,
    tx: &mut Tx,
    issuer: &str,
    tokens: &Tokens,
    now: Timestamp,
) -> Result<String, ApiError> {
    let secret = Secret::generate();
    let sealed = seal(services, &secret.hash, tokens)?;
    let row = SessionRow {
        hash: secret.hash,
        subject: tokens.claims.sub.clone(),
        grants: None,
        issuer: Some(issuer.to_owned()),
        sealed: Some(sealed),
        token_ends_at: Timestamp::from_seconds(tokens.claims.exp),
        renewal: 0,
        renewing_until: Timestamp::default(),
        created_at: now,
        used_at: now,
        ends_at: end_of(tokens, now),
    };
    store::insert_session(tx, row).await?;
    Ok(secret.text)
}

/// Who a request's cookie speaks for. None: it has no cookie, or one that opens nothing.
pub(crate) async fn of_request(
    parts: &Parts,
    services: &Shared,
) -> Result<Option<SignedIn>, ApiError> {
    if !has_session_cookie(&parts.headers) {
        return Ok(None);
    }
    let reached = services.console.site.reached(parts)?;
    Site::require_own_page(&reached, parts, true)?;
    let secret = reached.read(&parts.headers, Cookie::Session);
    let Some(hash) = secret.and_then(secret_hash) else {
        return Ok(None);
    };
    open(services, &hash).await
}

/// Opens a session, and notes that it is in use.
pub(super) async fn open(services: &Shared, hash: &str) -> Result<Option<SignedIn>, ApiError> {
    let now = services.clock.now();
    let mut tx = services.db.read().await?;
    let row = store::session(&mut tx, hash).await?;
    drop(tx);
    let Some(row) = row.filter(|row| !row.has_ended(now)) else {
        return Ok(None);
    };
    let claims = match &row.grants {
        Some(grants) => granted(services, &row, grants)?,
        None => by_token(services, &row).await?,
    };
    let Some(mut claims) = claims else {
        return Ok(None);
    };
    claims.exp = claims.exp.min(row.ends_at.seconds());
    if now.since(row.used_at) >= NOTED
        && let Err(error) = note_use(services, hash, now).await
    {
        tracing::warn!(error = ?error, "a console session may end early, as its use could not be noted");
    }
    Ok(Some(SignedIn {
        claims,
        session: SessionKey(row.hash),
    }))
}

async fn note_use(services: &Services, hash: &str, now: Timestamp) -> nudge_db::Result<()> {
    let mut tx = services.db.write().await?;
    store::touch(&mut tx, hash, now).await?;
    tx.commit().await
}

/// The claims of a link's session. Like tokens of the embedded issuer, it opens nothing where others are configured.
fn granted(
    services: &Services,
    row: &SessionRow,
    grants: &str,
) -> Result<Option<Claims>, ApiError> {
    if !services.access_tokens.are_embedded() {
        return Ok(None);
    }
    let grants: Grants = serde_json::from_str(grants).map_err(ApiError::internal)?;
    Ok(Some(Claims {
        iss: services.config.auth.embedded_issuer.clone(),
        aud: EMBEDDED_AUDIENCE.to_owned(),
        sub: row.subject.clone(),
        iat: row.created_at.seconds(),
        exp: row.ends_at.seconds(),
        roles: grants.roles,
        operator: grants.operator,
    }))
}

/// The claims of an issuer's session: those of its access token, renewed where it is about to end.
async fn by_token(services: &Shared, row: &SessionRow) -> Result<Option<Claims>, ApiError> {
    let Some(tokens) = renewal::current(services, row).await? else {
        return Ok(None);
    };
    let now = services.clock.now();
    match services
        .access_tokens
        .verify(&services.issuer, &tokens.access, now)
        .await
    {
        Ok(claims) => Ok(Some(claims)),
        Err(AccessTokenRefusal::Invalid) => Ok(None),
        Err(AccessTokenRefusal::Unavailable(cause)) => Err(ApiError::unavailable(cause)),
    }
}

/// Whether a session goes on. Asking is no use of it.
pub async fn is_open(services: &Services, session: &SessionKey) -> nudge_db::Result<bool> {
    let now = services.clock.now();
    let mut tx = services.db.read().await?;
    let row = store::session(&mut tx, &session.0).await?;
    Ok(row.is_some_and(|row| !row.has_ended(now)))
}
