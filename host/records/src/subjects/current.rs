//! Whether a subject token still works: the one place that says so (contract 2).
//!
//! A token names an alias, the alias's epoch and its subject as they were when the token was issued. All that revokes
//! it (the end of a session, an identification, a merge, a deletion) moves one of them in its own transaction. What
//! only reads asks [`read`] or [`read_of`]; what writes asks [`lock`] or [`lock_of`] in the transaction that writes;
//! ingest carries [`Claims`] to the group commit, which reads the aliases anyway.

use nudge_apps::auth::SdkSubject;
use nudge_apps::subject_token::{self, SubjectToken};
use nudge_db::Tx;
use nudge_http::{ApiError, Code};

use super::{AliasKind, AliasView, NOBODY, store};
use crate::services::Services;

/// An alias as a request saw it. What the request brings counts as long as the alias is so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The alias.
    pub alias: i64,
    /// Its subject.
    pub subject_id: uuid::Uuid,
    /// Its epoch.
    pub epoch: i64,
}

/// What a request with a subject token claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claims {
    /// The alias that the token was issued for.
    pub token: Claim,
    /// The alias that the request names: the same, or another one of the subject's.
    pub named: Claim,
}

/// Why nothing is kept for now of what somebody says.
#[derive(Debug, thiserror::Error)]
#[error("somebody of the same name is being erased")]
struct Erasing;

/// Why a request may not speak for a subject.
#[derive(Debug, thiserror::Error)]
pub enum TokenRefusal {
    /// The token is revoked.
    #[error("the subject token is revoked")]
    Revoked,
    /// The anonymous id is not one of the token's subject.
    #[error("the anonymous id is not the subject's")]
    Mismatch,
    /// The database.
    #[error("the database can't tell whether a subject token works")]
    Storage(#[from] nudge_db::Error),
}

impl Claim {
    /// What a token claims.
    pub fn of_token(token: &SubjectToken) -> Self {
        Self {
            alias: token.alias,
            subject_id: token.subject_id,
            epoch: token.epoch,
        }
    }

    /// What an alias is now.
    pub fn of(standing: &AliasView) -> Self {
        Self {
            alias: standing.alias,
            subject_id: standing.subject_id,
            epoch: standing.token_epoch,
        }
    }
}

/// The token's subject, if the token is not revoked.
pub async fn read(tx: &mut Tx, token: &SubjectToken) -> Result<AliasView, TokenRefusal> {
    if token.alias == NOBODY {
        return Ok(match token.events_after {
            Some(deleted_at) => AliasView::nobody_yet(token.subject_id, deleted_at),
            None => AliasView::nobody(token.subject_id),
        });
    }
    store::get(tx, token.app_id, token.alias)
        .await?
        .filter(|standing| Claim::of(standing) == Claim::of_token(token) && !standing.suppressed)
        .ok_or(TokenRefusal::Revoked)
}

/// The token's subject, if the token is not revoked and the anonymous id is one of the subject's.
pub async fn read_of(
    tx: &mut Tx,
    token: &SubjectToken,
    anonymous_id: &str,
) -> Result<AliasView, TokenRefusal> {
    let standing = read(tx, token).await?;
    if subject_token::fingerprint(anonymous_id) == token.fingerprint {
        return Ok(standing);
    }
    if owns(tx, &standing, token, anonymous_id).await? {
        return Ok(standing);
    }
    // Unless the subject was merged into another between the two looks.
    read(tx, token).await?;
    Err(TokenRefusal::Mismatch)
}

/// The token's subject as [`read`] finds it, locked until the transaction ends, so that nothing revokes the token
/// before what the transaction writes is there.
pub async fn lock(tx: &mut Tx, token: &SubjectToken) -> Result<AliasView, TokenRefusal> {
    if token.alias != NOBODY && !store::lock(tx, token.app_id, token.subject_id).await? {
        return Err(TokenRefusal::Revoked);
    }
    read(tx, token).await
}

/// The token's subject as [`read_of`] finds it, locked until the transaction ends.
pub async fn lock_of(
    tx: &mut Tx,
    token: &SubjectToken,
    anonymous_id: &str,
) -> Result<AliasView, TokenRefusal> {
    let standing = lock(tx, token).await?;
    let named = subject_token::fingerprint(anonymous_id) == token.fingerprint
        || owns(tx, &standing, token, anonymous_id).await?;
    named.then_some(standing).ok_or(TokenRefusal::Mismatch)
}

/// Whether an anonymous id is one of a subject's.
async fn owns(
    tx: &mut Tx,
    standing: &AliasView,
    token: &SubjectToken,
    anonymous_id: &str,
) -> Result<bool, TokenRefusal> {
    if standing.is_nobody() {
        return Ok(false);
    }
    let named = store::find(tx, token.app_id, AliasKind::Anonymous, anonymous_id).await?;
    Ok(named.is_some_and(|named| named.subject_id == standing.subject_id))
}

impl From<TokenRefusal> for ApiError {
    fn from(refusal: TokenRefusal) -> Self {
        match refusal {
            TokenRefusal::Revoked => Self::new(Code::SubjectTokenExpired),
            TokenRefusal::Mismatch => Self::new(Code::SubjectMismatch),
            TokenRefusal::Storage(cause) => cause.into(),
        }
    }
}

/// The token's subject, if the token is not revoked.
pub async fn current(services: &Services, subject: &SdkSubject) -> Result<AliasView, ApiError> {
    let mut tx = services.db.read().await?;
    Ok(read(&mut tx, &subject.token).await?)
}

/// The token's subject, if the token is not revoked and the anonymous id is one of the subject's.
pub async fn current_of(
    services: &Services,
    subject: &SdkSubject,
    anonymous_id: &str,
) -> Result<AliasView, ApiError> {
    check_anonymous_id("/anonymousId", anonymous_id)?;
    let mut tx = services.db.read().await?;
    Ok(read_of(&mut tx, &subject.token, anonymous_id).await?)
}

/// Refuses what somebody says who begins anew once a deletion is done, so that it is said again then.
pub fn check_not_erasing(standing: &AliasView) -> Result<(), ApiError> {
    if standing.is_nobody_yet() {
        return Err(ApiError::unavailable(Erasing));
    }
    Ok(())
}

/// An anonymous id has 1 to 128 characters, none of them control characters.
pub fn check_anonymous_id(pointer: &str, anonymous_id: &str) -> Result<(), ApiError> {
    let length = anonymous_id.chars().count();
    if (1..=128).contains(&length) && !anonymous_id.chars().any(char::is_control) {
        Ok(())
    } else {
        Err(ApiError::field(
            pointer,
            "invalid",
            "anonymousId has 1 to 128 characters and no control characters",
        ))
    }
}
