//! Routes of sessions and consent (contract 2).

use std::time::{Duration, Instant};

use axum::extract::{FromRequestParts, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use nudge_apps::App;
use nudge_apps::auth::{self, Sdk, SdkSubject};
use nudge_apps::subject_token::{self, SubjectToken};
use nudge_db::Timestamp;
use nudge_http::body::OptionalJson;
use nudge_http::{ApiError, Code, Data, Json};
use nudge_pipeline::segments::checks;
use nudge_pipeline::services::Shared;
use nudge_platform::clock;
use nudge_push::credentials::{Identity, store as credentials};
use nudge_push::providers::Environment;
use nudge_records::deliveries::provider::Platform;
use nudge_records::instructions::POLL_AFTER_SECONDS;
use nudge_records::subjects::current::{self, check_anonymous_id};
use nudge_records::subjects::link::{self, Link};
use nudge_records::subjects::{AliasKind, AliasView, identity, store};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

/// Sessions and consent, for SDKs.
pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(start_session, end_session))
        .routes(routes!(update_consent))
}

/// How long a subject token is good for (contract 2).
const TOKEN_LIFETIME: Duration = Duration::from_hours(24);
/// How long nobody's token is good for that somebody got who begins anew once a deletion is done.
const WHILE_ERASING: Duration = Duration::from_mins(1);
/// The longest platform and version of an SDK, in characters, as in ingest.
const MOST_TEXT: usize = 256;
/// Silence that ends a session, in seconds (specification 6.1).
pub const SESSION_TIMEOUT_SECONDS: u32 = 30 * 60;

/// A request for a session.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionRequest {
    anonymous_id: String,
    platform: Option<String>,
    /// The SDK's version, at most 256 characters.
    sdk_version: Option<String>,
    identity_token: Option<String>,
    client_id: Option<Uuid>,
}

/// A session.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionView {
    subject_token: String,
    expires_at: String,
    subject: SubjectView,
    #[serde(skip_serializing_if = "Option::is_none")]
    client_id: Option<Uuid>,
    server_time: String,
    sdk_config: SdkConfig,
}

/// Who a session is of.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SubjectView {
    subject_id: Uuid,
    anonymous_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    external_id: Option<String>,
    identified: bool,
}

/// How an SDK should behave.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SdkConfig {
    flush_at: u32,
    flush_interval_seconds: u32,
    session_timeout_seconds: u32,
    lifecycle_events: bool,
    immediate_triggers: Vec<String>,
    poll_after_seconds: u32,
    /// How browsers subscribe to push messages; null without a credential of the platform `web`.
    push: Option<PushConfig>,
}

/// What browsers need for Web Push.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PushConfig {
    /// The `applicationServerKey` of a subscription.
    vapid_public_key: String,
}

/// Which browser session to end.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct EndSessionRequest {
    client_id: Option<Uuid>,
}

/// Consent given or refused.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConsentRequest {
    anonymous_id: String,
    analytics: Option<bool>,
    messaging: Option<bool>,
}

/// Consent as it stands.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConsentView {
    analytics: bool,
    messaging: bool,
    updated_at: String,
}

/// The request's subject token, where it has a good one, of a request that begins a session, which is counted.
pub struct CurrentToken(Option<SubjectToken>);

impl FromRequestParts<Shared> for CurrentToken {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, services: &Shared) -> Result<Self, ApiError> {
        let Sdk { app, .. } = Sdk::from_request_parts(parts, services).await?;
        auth::charge_session(parts, services, &app)?;
        auth::good_subject_token(parts, services, &app).map(Self)
    }
}

/// Starts a session: an SDK's first call.
#[utoipa::path(post, path = "/v1/sdk/session", tag = "sdk", request_body = SessionRequest,
    responses((status = 200, body = Data<SessionView>)))]
pub async fn start_session(
    Sdk { app, .. }: Sdk,
    CurrentToken(current): CurrentToken,
    State(services): State<Shared>,
    Json(mut request): Json<SessionRequest>,
) -> Result<Data<SessionView>, ApiError> {
    // An empty text says nothing.
    request.platform = request.platform.filter(|name| !name.is_empty());
    check_anonymous_id("/anonymousId", &request.anonymous_id)?;
    for (name, text) in [
        ("platform", &request.platform),
        ("sdkVersion", &request.sdk_version),
    ] {
        if let Some(text) = text {
            check_text(name, text)?;
        }
    }
    let (standing, proven_until) = match &request.identity_token {
        Some(token) => {
            let (standing, until) = identified(&services, &app, token, &request).await?;
            (standing, Some(until))
        }
        None => unproven(&services, &app, current, &request).await?,
    };
    let push = push_config(&services, &app).await?;
    let data = session(&services, &app, standing, request, proven_until, push);
    Ok(Data { data })
}

/// The public key that the app's messages to browsers are signed by, whose private key sends them.
async fn push_config(services: &Shared, app: &App) -> Result<Option<PushConfig>, ApiError> {
    let mut tx = services.db.read().await?;
    let used = credentials::used(&mut tx, app.id, Platform::Web, Environment::Production).await?;
    Ok(match used.map(|stored| stored.record.identity) {
        Some(Identity::Web(web)) => Some(PushConfig {
            vapid_public_key: web.public_key,
        }),
        _ => None,
    })
}

/// Whose session it is, by an identity token, and how long it may be good for.
async fn identified(
    services: &Shared,
    app: &App,
    token: &str,
    request: &SessionRequest,
) -> Result<(AliasView, Timestamp), ApiError> {
    let now = services.clock.now();
    let identity = identity::verify(app, token, &request.anonymous_id, now)
        .map_err(|refusal| ApiError::because(Code::InvalidCredentials, refusal.to_string()))?;
    let link = Link {
        app_id: app.id,
        anonymous_id: &request.anonymous_id,
        external_id: &identity.external_id,
        issued_at: identity.issued_at,
        platform: request.platform.as_deref(),
        client_id: request.client_id,
        is_watched: !app.segments.watched.is_empty(),
    };
    checks::look_before_link(services, app, &link, Instant::now()).await?;
    let linked = match link::link(&services.db, &services.pseudonyms, link, now).await {
        Err(refusal @ (link::Error::Suppressed | link::Error::Erasing(_))) => {
            let (kind, name) = (AliasKind::Anonymous, &request.anonymous_id);
            let nobody = services.pseudonyms.nobody(app.id, kind, name);
            return Ok(match refusal {
                link::Error::Erasing(deleted_at) => (
                    AliasView::nobody_yet(nobody, deleted_at),
                    identity.expires_at.min(now.plus(WHILE_ERASING)),
                ),
                _ => (AliasView::nobody(nobody), identity.expires_at),
            });
        }
        linked => linked?,
    };
    for subject_id in linked.concerned() {
        services.polls.wake(subject_id);
    }
    if link.is_watched {
        services.pipeline.segment_checks().wake();
    }
    Ok((linked.standing, identity.expires_at))
}

/// Whose session it is, by the anonymous id alone or the current subject token, and how long that token proves it: nobody
/// prolongs what an identity token has granted.
async fn unproven(
    services: &Shared,
    app: &App,
    current: Option<SubjectToken>,
    request: &SessionRequest,
) -> Result<(AliasView, Option<Timestamp>), ApiError> {
    let now = services.clock.now();
    let (kind, name) = (AliasKind::Anonymous, &request.anonymous_id);
    let platform = request.platform.as_deref();
    let is_watched = !app.segments.watched.is_empty();
    let standing = nudge_records::subjects::ensure(
        &services.db,
        &services.pseudonyms,
        (app.id, is_watched),
        kind,
        name,
        platform,
        now,
    )
    .await?;
    if is_watched {
        services.pipeline.segment_checks().wake();
    }
    let mut proven_until = None;
    if standing.external_id.is_some() {
        let required = || ApiError::new(Code::IdentityRequired);
        let token = current.ok_or_else(required)?;
        let mut tx = services.db.read().await?;
        match current::read(&mut tx, &token).await {
            Ok(named) if named.subject_id == standing.subject_id => {}
            Err(current::TokenRefusal::Storage(cause)) => return Err(cause.into()),
            _ => return Err(required()),
        }
        proven_until = Some(token.expires_at);
    }
    if let Some(client_id) = request.client_id
        && !standing.is_nobody()
    {
        let mut tx = services.db.write().await?;
        store::lock_found(&mut tx, app.id, standing.subject_id).await?;
        if !store::bind_client(&mut tx, app.id, client_id, standing.subject_id, now).await? {
            return Err(ApiError::new(Code::ClientSessionInvalid));
        }
        tx.commit().await?;
    }
    Ok((standing, proven_until))
}

fn session(
    services: &Shared,
    app: &App,
    standing: AliasView,
    request: SessionRequest,
    proven_until: Option<Timestamp>,
    push: Option<PushConfig>,
) -> SessionView {
    let SessionRequest {
        anonymous_id,
        client_id,
        ..
    } = request;
    let now = services.clock.now();
    let latest = now.plus(TOKEN_LIFETIME);
    let token = SubjectToken {
        app_id: app.id,
        subject_id: standing.subject_id,
        alias: standing.alias,
        epoch: standing.token_epoch,
        expires_at: proven_until.map_or(latest, |until| until.min(latest)),
        fingerprint: subject_token::fingerprint(&anonymous_id),
        events_after: standing.events_after,
    };
    SessionView {
        subject_token: subject_token::seal(&services.secrets, &token),
        expires_at: clock::to_text(token.expires_at),
        subject: SubjectView {
            subject_id: standing.subject_id,
            anonymous_id,
            identified: standing.external_id.is_some(),
            external_id: standing.external_id,
        },
        client_id,
        server_time: clock::to_text(now),
        sdk_config: SdkConfig {
            flush_at: 100,
            flush_interval_seconds: 15,
            session_timeout_seconds: SESSION_TIMEOUT_SECONDS,
            lifecycle_events: app.settings.lifecycle_events,
            immediate_triggers: app.trigger_names().into_iter().map(str::to_owned).collect(),
            poll_after_seconds: POLL_AFTER_SECONDS,
            push,
        },
    }
}

/// Ends a session: the tokens of its anonymous id stop working at once.
#[utoipa::path(delete, path = "/v1/sdk/session", tag = "sdk", request_body = Option<EndSessionRequest>,
    responses((status = 204)))]
pub async fn end_session(
    subject: SdkSubject,
    State(services): State<Shared>,
    OptionalJson(request): OptionalJson<EndSessionRequest>,
) -> Result<StatusCode, ApiError> {
    let now = services.clock.now();
    let mut tx = services.db.write().await?;
    let standing = current::lock(&mut tx, &subject.token).await?;
    if standing.is_nobody() {
        return Ok(StatusCode::NO_CONTENT);
    }
    let app_id = subject.app.id;
    if let Some(client_id) = request.client_id {
        let client = store::find_client(&mut tx, app_id, client_id).await?;
        if client.is_some_and(|client| client.subject_id != standing.subject_id) {
            return Err(ApiError::new(Code::ClientSessionInvalid));
        }
        // One that has ended, or that is forgotten, keeps no token alive.
        store::end_client(&mut tx, app_id, client_id, standing.subject_id, now).await?;
    }
    store::revoke_tokens(&mut tx, app_id, standing.alias).await?;
    tx.commit().await?;
    services.polls.wake(standing.subject_id);
    Ok(StatusCode::NO_CONTENT)
}

/// Gives or refuses consent.
#[utoipa::path(post, path = "/v1/sdk/consent", tag = "sdk", request_body = ConsentRequest,
    responses((status = 200, body = Data<ConsentView>)))]
pub async fn update_consent(
    subject: SdkSubject,
    State(services): State<Shared>,
    Json(request): Json<ConsentRequest>,
) -> Result<Data<ConsentView>, ApiError> {
    check_anonymous_id("/anonymousId", &request.anonymous_id)?;
    let now = services.clock.now();
    let mut tx = services.db.write().await?;
    let before = current::lock_of(&mut tx, &subject.token, &request.anonymous_id).await?;
    current::check_not_erasing(&before)?;
    if before.is_nobody() {
        let view = ConsentView {
            analytics: false,
            messaging: false,
            updated_at: clock::to_text(now),
        };
        return Ok(Data { data: view });
    }
    let (analytics, messaging) = (request.analytics, request.messaging);
    let mut updated_at = before.consent_at.unwrap_or(now);
    if analytics.is_some() || messaging.is_some() {
        let (app_id, subject_id) = (subject.app.id, before.subject_id);
        if !store::update_consent(&mut tx, app_id, subject_id, analytics, messaging, now).await? {
            return Err(nudge_db::Error::lost_race().into());
        }
        tx.commit().await?;
        services.polls.wake(subject_id);
        updated_at = now;
    }
    let standing = AliasView {
        analytics_consent: analytics.or(before.analytics_consent),
        messaging_consent: messaging.or(before.messaging_consent),
        ..before
    };
    let view = ConsentView {
        analytics: standing.may_analyze(&subject.app),
        messaging: standing.may_message(&subject.app),
        updated_at: clock::to_text(updated_at),
    };
    Ok(Data { data: view })
}

fn check_text(name: &str, text: &str) -> Result<(), ApiError> {
    if text.chars().count() <= MOST_TEXT && !text.chars().any(char::is_control) {
        return Ok(());
    }
    let detail = format!("{name} has at most {MOST_TEXT} characters and no control characters");
    Err(ApiError::field(format!("/{name}"), "invalid", detail))
}
