//! Which person an SDK speaks for.

use std::sync::Arc;

use axum::http::request::Parts;
use nudge_db::Timestamp;
use nudge_http::code::Code;
use nudge_http::error::ApiError;
use nudge_http::request_context::Notes;
use nudge_platform::rate_limits::Policy;

use super::keys::Sdk;
use super::{charge, failed, unauthorized};
use crate::App;
use crate::key::Key;
use crate::services::{Services, Shared};
use crate::subject_token::{self, SubjectToken};

/// The header of a subject token.
const SUBJECT_TOKEN: &str = "x-service-subject-token";

/// Why a subject token is refused.
const BAD_TOKEN: &str = "the key is good, but the subject token in `X-Service-Subject-Token` is not one of its app; \
    begin a session with POST /v1/sdk/session";

/// An SDK with a subject token. That the token is not revoked is checked where the subject is read.
#[derive(Clone, Debug)]
pub struct SdkSubject {
    /// The app.
    pub app: Arc<App>,
    /// The write key.
    pub key: Arc<Key>,
    /// Whose token it is.
    pub token: SubjectToken,
}

extractors!(SdkSubject);

impl SdkSubject {
    async fn of(parts: &mut Parts, services: &Shared) -> Result<Self, ApiError> {
        let Sdk { app, key } = Sdk::of(parts, services).await?;
        let token = subject_token(parts, services, &app)?
            .ok_or_else(|| ApiError::new(Code::SubjectTokenRequired))?;
        Ok(Self { app, key, token })
    }

    /// When the key or the token expires.
    pub fn ends_at(&self) -> Timestamp {
        let of_token = self.token.expires_at;
        let of_key = self.key.expires_at.unwrap_or(of_token);
        of_key.min(of_token)
    }

    /// Whether the key still works, by what the app has now.
    pub fn has_live_key(&self, app: &App, now: Timestamp) -> bool {
        let mut keys = app.keys.values();
        keys.any(|key| key.id == self.key.id && key.is_live(now))
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
    let text = value.to_str().map_err(|_| unauthorized(BAD_TOKEN))?;
    let token = subject_token::open(&services.secrets, text)
        .filter(|token| token.app_id == app.id)
        .ok_or_else(|| failed(parts, services, BAD_TOKEN))?;
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
