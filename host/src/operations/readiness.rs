//! Whether a server can take requests.

use std::time::Duration;

use crate::services::Shared;

/// How long the database may take to answer whoever asks whether the server is ready.
const PATIENCE: Duration = Duration::from_secs(5);

/// Why a server takes no requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum NotReady {
    #[error("stopping")]
    Stopping,
    #[error("the database takes no writes")]
    NoWrites,
    #[error("the database does not answer")]
    NoAnswer,
}

/// The server can take requests: it is not stopping, its database answers, and it could write there lately that it lives.
pub(super) async fn look(services: &Shared) -> Result<(), NotReady> {
    let ready = find_out(services).await;
    let gauge = metrics::gauge!("nudge_ready");
    gauge.set(if ready.is_ok() { 1.0 } else { 0.0 });
    ready
}

async fn find_out(services: &Shared) -> Result<(), NotReady> {
    if services.draining.is_cancelled() {
        return Err(NotReady::Stopping);
    }
    let answer = async {
        let mut tx = services.db.read().await?;
        nudge_campaigns::apps::first(&mut tx).await
    };
    let silent = Duration::from_secs(services.config.pipeline.node_timeout_seconds);
    match tokio::time::timeout(PATIENCE, answer).await {
        Ok(Ok(_)) if services.pipeline().pipeline.silence() < silent => Ok(()),
        Ok(Ok(_)) => {
            tracing::warn!("not ready: no sign of life could be written");
            Err(NotReady::NoWrites)
        }
        Ok(Err(error)) => {
            tracing::warn!(error = ?error, "not ready");
            Err(NotReady::NoAnswer)
        }
        Err(_) => {
            tracing::warn!("not ready: the database does not answer");
            Err(NotReady::NoAnswer)
        }
    }
}
