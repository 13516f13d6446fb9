//! Whether a server can take requests.

use std::time::Duration;

use nudge_platform::due::Failure;

use super::disk::Disk;
use crate::services::Shared;

/// How long the database may take to answer whoever asks whether the server is ready.
const PATIENCE: Duration = Duration::from_secs(5);

/// Why a server takes no requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum NotReady {
    #[error("stopping")]
    Stopping,
    #[error(
        "the disk is full: fewer than {0} bytes are free where the database is (database.minFreeBytes)"
    )]
    DiskFull(u64),
    #[error("the database takes no writes")]
    NoWrites,
    #[error("the database takes no writes: its disk is full")]
    NoRoom,
    #[error("the database does not answer")]
    NoAnswer,
}

impl Failure for NotReady {
    fn is_outage(&self) -> bool {
        matches!(self, Self::NoWrites | Self::NoRoom | Self::NoAnswer)
    }
}

/// The server can take requests: it is not stopping, an embedded database has room, the database answers, and the server
/// could write there lately, that it lives and what others sent.
pub(super) async fn look(services: &Shared) -> Result<(), NotReady> {
    let ready = find_out(services).await;
    let gauge = metrics::gauge!("nudge_ready");
    gauge.set(if ready.is_ok() { 1.0 } else { 0.0 });
    if ready != Err(NotReady::Stopping) {
        services.readiness.lock().note(ready);
    }
    ready
}

async fn find_out(services: &Shared) -> Result<(), NotReady> {
    if services.draining.is_cancelled() {
        return Err(NotReady::Stopping);
    }
    let least = services.config.database.min_free_bytes;
    if free_bytes(services).is_some_and(|free| free < least) {
        return Err(NotReady::DiskFull(least));
    }
    let answer = async {
        let mut tx = services.db.read().await?;
        nudge_campaigns::apps::first(&mut tx).await
    };
    let silent = Duration::from_secs(services.config.pipeline.node_timeout_seconds);
    match tokio::time::timeout(PATIENCE, answer).await {
        Ok(Ok(_)) if services.pipeline().pipeline.silence() >= silent => Err(NotReady::NoWrites),
        Ok(Ok(_)) if services.db.lacks_room_for() >= silent => Err(NotReady::NoRoom),
        Ok(Ok(_)) => Ok(()),
        Ok(Err(error)) if error.is_standby() => Err(NotReady::NoWrites),
        Ok(Err(error)) => {
            tracing::debug!(?error, "the database does not answer");
            Err(NotReady::NoAnswer)
        }
        Err(_) => Err(NotReady::NoAnswer),
    }
}

/// What is free where the embedded database is. None: the database is elsewhere, or the system does not tell.
fn free_bytes(services: &Shared) -> Option<u64> {
    let folder = services.config.database_folder()?;
    Disk::of(&folder).ok().map(|disk| disk.free_bytes)
}
