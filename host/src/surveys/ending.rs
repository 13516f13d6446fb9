//! Surveys whose schedule is over become `completed` by themselves (contract 8, Schedule).

use std::time::Duration;

use nudge_db::Timestamp;
use tokio_util::sync::CancellationToken;

use super::{Error, Survey, store};
use crate::services::Shared;

/// Surveys that are completed in one go.
const STEP: i64 = 100;

/// Runs until the server stops. Nothing fires past the end before that is noticed: the pipeline reads the schedule.
pub async fn keep(services: Shared, halt: CancellationToken) {
    let pause = Duration::from_millis(services.config.pipeline.poll_ms.max(1));
    loop {
        if let Err(error) = complete_ended(&services).await {
            tracing::warn!(error = ?error, "surveys that are over could not be completed yet");
        }
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = halt.cancelled() => return,
        }
    }
}

async fn complete_ended(services: &Shared) -> Result<(), Error> {
    let now = services.clock.now();
    let mut tx = services.db.read().await?;
    let ended = store::ended(&mut tx, now, STEP).await?;
    drop(tx);
    for survey in ended {
        let app_id = survey.app_id;
        match end(services, survey, now).await {
            // Somebody else was there first.
            Err(Error::VersionMismatch) => continue,
            outcome => outcome?,
        }
        services.apps.refresh(app_id).await?;
    }
    Ok(())
}

async fn end(services: &Shared, survey: Survey, now: Timestamp) -> Result<(), Error> {
    let mut tx = services.db.write().await?;
    super::end(&mut tx, survey, "endAt", now).await?;
    Ok(tx.commit().await?)
}
