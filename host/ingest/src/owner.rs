//! Whose events a request has: by the shape of the request, the credentials, and what the request names.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use nudge_apps::App;
use nudge_apps::auth::{self, AppKey};
use nudge_apps::key::{self, Kind};
use nudge_apps::subject_token::{self, SubjectToken};
use nudge_db::Timestamp;
use nudge_http::request_context::Notes;
use nudge_http::{ApiError, Code};
use nudge_platform::rate_limits::Policy;
use nudge_platform::secrets;
use nudge_records::subjects::current::{Claim, Claims};
use nudge_records::subjects::identity::is_external_id;
use nudge_records::subjects::{self, AliasKind, AliasView, Anew, NOBODY};
use uuid::Uuid;

use super::body::{Body, Context, Events};
use super::event::{self, Mismatch, Rules};
use crate::services::Shared;

/// What is told to a backend that sends what SDKs send.
const SERVER_SHAPE: &str = "this takes a write key (`wk_…`) and a subject token, as it has `context`; with a server key (`sk_…`) \
     send `userId` in its place";

/// A key and, where it was sent, a subject token of the key's app.
pub struct Caller {
    pub(super) app: Arc<App>,
    pub(super) key: AppKey,
    pub(super) token: Option<SubjectToken>,
}

impl FromRequestParts<Shared> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, services: &Shared) -> Result<Self, ApiError> {
        let key = AppKey::from_request_parts(parts, services).await?;
        let token = auth::subject_token(parts, services, &key.app)?;
        Ok(Self {
            app: Arc::clone(&key.app),
            key,
            token,
        })
    }
}

impl Caller {
    /// Counts the bytes of a request for the one whom it names, where nothing but the request says whose events a public key's are.
    pub(super) fn count_bytes(
        &self,
        notes: &Notes,
        body: &Body<'_>,
        bytes: usize,
    ) -> Result<(), ApiError> {
        let (Kind::Write, None, Some(user_id)) = (self.key.key.kind, &self.token, &body.user_id)
        else {
            return Ok(());
        };
        count_bytes_of(notes, self.app.id, user_id, bytes)
    }
}

/// Counts bytes for somebody of whom only the name is known.
pub(super) fn count_bytes_of(
    notes: &Notes,
    app_id: Uuid,
    name: &str,
    bytes: usize,
) -> Result<(), ApiError> {
    let hash = secrets::hash(&[app_id.as_bytes(), name.as_bytes()]);
    let owner = hash.first_chunk().copied().unwrap_or_default();
    notes.count_bytes_for(Policy::SubjectBytes, owner, bytes)
}

/// Whose events a request has.
pub(super) struct Owner {
    pub(super) alias: i64,
    pub(super) subject_id: Uuid,
    pub(super) claims: Option<Claims>,
    pub(super) mismatch: Option<Mismatch>,
    pub(super) anonymous_id: Option<String>,
    pub(super) external_id: Option<String>,
    /// Events of then or before are of somebody who was deleted.
    pub(super) events_after: Option<Timestamp>,
    /// Whether it is nobody for now only: somebody begins anew once a deletion is done.
    pub(super) erasing: bool,
}

/// Tells who the events are of, by the shape of the request and the credentials.
pub(super) async fn of(
    services: &Shared,
    caller: &Caller,
    body: &Body<'_>,
    events: &Events<'_>,
    received_at: Timestamp,
) -> Result<Owner, ApiError> {
    match (&body.context, &body.user_id) {
        (Some(context), _) => {
            let named = context.external_id.is_some() || events.may_name_external();
            owner_by_token(services, caller, context, named).await
        }
        (None, Some(user_id)) => {
            let latest = || {
                let rules = Rules {
                    app_id: caller.app.id,
                    alias: NOBODY,
                    mismatch: None,
                    anonymous_id: None,
                    external_id: Some(user_id),
                    events_after: None,
                    settings: &caller.app.settings.ingest,
                    received_at,
                    skew: event::skew(body.sent_at(), received_at),
                };
                event::latest(events, &rules)
            };
            owner_by_user_id(services, caller, user_id, body.delivery.is_some(), latest).await
        }
        (None, None) => Err(nobody_named(caller.key.key.kind)),
    }
}

/// Refuses a request that names nobody, by what its credential would take.
fn nobody_named(kind: Kind) -> ApiError {
    if kind == Kind::Server {
        let detail = "with a server key, `userId` says whose events they are: an external id";
        return ApiError::field("/userId", "required", detail);
    }
    let detail = "context with anonymousId is required";
    ApiError::field("/context", "required", detail)
}

/// Refuses a request with `context` whose key is no write key: it is shaped as an SDK's.
fn require_write_key(services: &Shared, caller: &Caller) -> Result<(), ApiError> {
    let required = caller.key.require_kind(services, Kind::Write);
    required.map_err(|refusal| match caller.key.key.kind {
        Kind::Server => refusal.with_detail(SERVER_SHAPE),
        _ => refusal,
    })
}

/// The subject of the token. Looks nothing up unless the request names another id than the token does, or may name
/// an external one; that the token is not revoked is checked where the events are committed.
async fn owner_by_token(
    services: &Shared,
    caller: &Caller,
    context: &Context<'_>,
    names_external: bool,
) -> Result<Owner, ApiError> {
    let anonymous_id = context.anonymous_id.as_deref().ok_or_else(|| {
        ApiError::field(
            "/context/anonymousId",
            "required",
            "context.anonymousId is required",
        )
    })?;
    require_write_key(services, caller)?;
    let token = caller
        .token
        .as_ref()
        .ok_or_else(|| ApiError::new(Code::SubjectTokenRequired))?;
    let claim = Claim::of_token(token);
    let mut claims = Claims {
        token: claim,
        named: claim,
    };
    let mut owner = Owner {
        alias: token.alias,
        subject_id: token.subject_id,
        claims: None,
        mismatch: None,
        anonymous_id: Some(anonymous_id.to_owned()),
        external_id: None,
        events_after: token.events_after,
        erasing: token.alias == NOBODY && token.events_after.is_some(),
    };
    let mut tx = None;
    if subject_token::fingerprint(anonymous_id) != token.fingerprint {
        let tx = tx.insert(services.db.read().await?);
        let named =
            subjects::store::find(tx, caller.app.id, AliasKind::Anonymous, anonymous_id).await?;
        match named.filter(|named| named.subject_id == token.subject_id) {
            Some(named) => {
                owner.alias = named.alias;
                owner.events_after = named.events_after;
                claims.named = Claim::of(&named);
            }
            None => owner.mismatch = Some(Mismatch::Anonymous),
        }
    }
    if token.alias == NOBODY {
        // Nothing of somebody who was deleted is stored, whoever the events say that it was.
        let named = context.external_id.as_deref();
        owner.external_id = named.map(str::to_owned);
    } else if names_external {
        let tx = match &mut tx {
            Some(tx) => tx,
            None => tx.insert(services.db.read().await?),
        };
        let standing = subjects::store::get(tx, caller.app.id, token.alias).await?;
        owner.external_id = standing.and_then(|standing| standing.external_id);
        let contradicts = |given: &str| Some(given) != owner.external_id.as_deref();
        if context.external_id.as_deref().is_some_and(contradicts) && owner.mismatch.is_none() {
            owner.mismatch = Some(Mismatch::External);
        }
    }
    owner.claims = Some(claims);
    Ok(owner)
}

/// The subject with this external id, for servers.
async fn owner_by_user_id(
    services: &Shared,
    caller: &Caller,
    user_id: &str,
    delivery: bool,
    latest: impl FnOnce() -> Option<Timestamp>,
) -> Result<Owner, ApiError> {
    if caller.key.key.kind != Kind::Write {
        caller.key.require_scope(services, key::EVENTS_WRITE)?;
    } else if !caller.app.settings.ingest.allow_unverified_server_events {
        return Err(caller.key.refuse_without_subject_token(services));
    }
    if delivery {
        return Err(ApiError::field(
            "/delivery",
            "not_allowed",
            "server-side events have no delivery",
        ));
    }
    if !is_external_id(user_id) {
        let detail = "userId has 1 to 256 characters and no control characters";
        return Err(ApiError::field("/userId", "invalid", detail));
    }
    let (standing, erasing) = named(services, caller.app.id, user_id, latest).await?;
    Ok(Owner {
        // Of somebody who was deleted there is none, and events that repeat it are nevertheless theirs.
        external_id: Some(user_id.to_owned()),
        ..Owner::unproven(standing, erasing)
    })
}

impl Owner {
    /// Whoever a server says that it is.
    pub(super) fn unproven(standing: AliasView, erasing: bool) -> Self {
        Self {
            alias: standing.alias,
            subject_id: standing.subject_id,
            claims: None,
            mismatch: None,
            anonymous_id: None,
            external_id: standing.external_id,
            events_after: standing.events_after,
            erasing,
        }
    }
}

/// The subject with an external id, made if there is none, and whether it is nobody for now only. Somebody who was
/// deleted begins anew with an event of after the deletion.
pub(super) async fn named(
    services: &Shared,
    app_id: Uuid,
    user_id: &str,
    latest: impl FnOnce() -> Option<Timestamp>,
) -> Result<(AliasView, bool), ApiError> {
    let (db, pseudonyms) = (&services.db, &services.pseudonyms);
    let now = services.clock.now();
    let kind = AliasKind::External;
    // The event or the traits that come with the name have the person looked at.
    let of = (app_id, false);
    let standing = subjects::ensure(db, pseudonyms, of, kind, user_id, None, now).await?;
    if !standing.is_nobody() {
        return Ok((standing, false));
    }
    let Some(latest) = latest() else {
        return Ok((standing, false));
    };
    Ok(
        match subjects::begin_anew(db, pseudonyms, app_id, user_id, latest, now).await? {
            Anew::Begun(begun) => (begun, false),
            Anew::Later => (standing, true),
            Anew::Never => (standing, false),
        },
    )
}
