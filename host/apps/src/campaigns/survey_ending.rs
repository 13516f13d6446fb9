//! Surveys whose schedule is over become `completed` by themselves (contract 8, Schedule).

use std::time::Duration;

use nudge_campaigns::surveys::Content;
use tokio_util::sync::CancellationToken;

use crate::campaigns::ending::complete_ended;
use crate::services::Shared;

/// Runs until the server stops.
pub async fn run(services: Shared, halt: CancellationToken) {
    let pause = Duration::from_millis(services.config.pipeline.poll_ms.max(1));
    loop {
        if let Err(error) = complete_ended::<Content>(&services).await {
            tracing::warn!(error = ?error, "surveys that are over could not be completed yet");
        }
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = halt.cancelled() => return,
        }
    }
}
