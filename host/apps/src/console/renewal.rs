//! Renewing the tokens of a session before the access token ends.
//!
//! A provider may replace the refresh token with each use and take a second use of it for a theft. So one process
//! renews at a time: it takes the session's renewal in the database, asks the provider outside of a transaction, and
//! puts the next tokens in their place. A crash in between loses them: the renewal is another's after [`HELD`], and if the
//! provider takes the earlier refresh token no more, the session ends and its person signs in again.

use std::sync::Arc;
use std::time::{Duration, Instant};

use nudge_http::ApiError;
use nudge_http::oidc::login::LoginRefusal;

use super::sessions::{KeptTokens, end_of, seal};
use super::store::{self, SessionRow};
use crate::services::{Services, Shared};

/// How long before its end an access token is renewed.
const EARLY: Duration = Duration::from_mins(1);
/// How long a renewal is one process's. Longer than requests to providers take.
const HELD: Duration = Duration::from_secs(30);
/// The pause after a renewal, and after a provider did not answer.
const PAUSE: Duration = Duration::from_secs(5);
/// How long a request waits for tokens that another one renews.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often it looks.
const LOOK: Duration = Duration::from_millis(100);

/// The tokens of a session that are in force, renewed if they are about to end. None: the session has ended.
pub(super) async fn current(
    services: &Shared,
    row: &SessionRow,
) -> Result<Option<KeptTokens>, ApiError> {
    let before = row.renewal;
    let mut row = row.clone();
    let patience = Instant::now();
    loop {
        let now = services.clock.now();
        if row.has_ended(now) {
            return Ok(None);
        }
        let Some(tokens) = row.tokens(services)? else {
            return Ok(None);
        };
        let has_ended = now >= row.token_ends_at;
        // Tokens that were just renewed serve, however short the time is that they are good for.
        if now.plus(EARLY) < row.token_ends_at || row.renewal != before {
            return Ok(Some(tokens));
        }
        let Some(refresh) = tokens.refresh.clone() else {
            return Ok((!has_ended).then_some(tokens));
        };
        if take(services, &row).await? {
            finish(services, &row, refresh).await?;
        } else if !has_ended {
            // Somebody else renews it, or did just not succeed. This token still serves.
            return Ok(Some(tokens));
        } else {
            tokio::time::sleep(LOOK).await;
        }
        let mut tx = services.db.read().await?;
        let Some(found) = store::session(&mut tx, &row.hash).await? else {
            return Ok(None);
        };
        drop(tx);
        row = found;
        if row.renewal == before && patience.elapsed() >= PATIENCE {
            let reason = "the issuer does not renew the session's access token now";
            return Err(ApiError::unavailable(anyhow::anyhow!(reason)));
        }
    }
}

/// Takes the renewal for this process.
async fn take(services: &Services, row: &SessionRow) -> Result<bool, ApiError> {
    let now = services.clock.now();
    if row.renewing_until > now {
        return Ok(false);
    }
    let mut tx = services.db.write().await?;
    let taken = store::begin_renewal(&mut tx, row, now, now.plus(HELD)).await?;
    tx.commit().await?;
    Ok(taken)
}

/// Renews, whether or not the client stays to see it.
async fn finish(services: &Shared, row: &SessionRow, refresh: String) -> Result<(), ApiError> {
    let (services_there, row) = (Arc::clone(services), row.clone());
    let task = async move { renew(&services_there, &row, &refresh).await };
    let renewed = services.console.tasks.spawn(task).await;
    renewed.map_err(ApiError::internal)?
}

async fn renew(services: &Services, row: &SessionRow, refresh: &str) -> Result<(), ApiError> {
    let issuer = row.issuer.as_deref().unwrap_or_default();
    let Some(client) = services.access_tokens.login_client(issuer) else {
        return end(services, row).await;
    };
    let outcome = client.renew(refresh, services.clock.now()).await;
    let now = services.clock.now();
    match outcome {
        Ok(tokens) if tokens.claims.sub == row.subject => {
            let sealed = seal(services, &row.hash, &tokens)?;
            let token_ends_at = nudge_db::Timestamp::from_seconds(tokens.claims.exp);
            let ends_at = end_of(&tokens, row.created_at);
            let mut tx = services.db.write().await?;
            // Of tokens that are good for less than a minute not every request gets others.
            let next = now.plus(PAUSE);
            store::renew(&mut tx, row, sealed, token_ends_at, ends_at, next).await?;
            Ok(tx.commit().await?)
        }
        Ok(_) => {
            tracing::warn!(issuer, "an issuer renewed a session for somebody else");
            end(services, row).await
        }
        Err(LoginRefusal::Refused(cause)) => {
            let cause = format!("{cause:#}");
            tracing::info!(issuer, cause, "a console session can't be renewed and ends");
            end(services, row).await
        }
        Err(LoginRefusal::Unavailable(cause)) => {
            let mut tx = services.db.write().await?;
            store::put_renewal_off(&mut tx, row, now.plus(PAUSE)).await?;
            tx.commit().await?;
            if now < row.token_ends_at {
                let cause = format!("{cause:#}");
                tracing::warn!(issuer, cause, "a console session is renewed later");
                return Ok(());
            }
            Err(ApiError::unavailable(cause))
        }
    }
}

async fn end(services: &Services, row: &SessionRow) -> Result<(), ApiError> {
    let mut tx = services.db.write().await?;
    store::delete_session(&mut tx, &row.hash).await?;
    Ok(tx.commit().await?)
}
