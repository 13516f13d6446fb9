//! Surveys whose schedule is over become `completed` by themselves (contract 8, Schedule).

use std::time::Duration;

use nudge_db::Timestamp;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::{Error, Status, Survey, store};
use crate::audit::{self, Entry};
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
        match complete(services, survey, now).await {
            // Somebody else was there first.
            Err(Error::VersionMismatch) => continue,
            outcome => outcome?,
        }
        services.apps.refresh(app_id).await?;
    }
    Ok(())
}

/// Completes a survey that is as it was read, as the server's own change.
async fn complete(services: &Shared, survey: Survey, now: Timestamp) -> Result<(), Error> {
    let mut completed = survey;
    completed.version += 1;
    completed.updated_at = now;
    completed.content.status = Status::Completed;
    let mut tx = services.db.write().await?;
    super::update(&mut tx, &completed).await?;
    let detail =
        json!({"version": completed.version, "status": Status::Completed, "because": "endAt"});
    let entry = Entry {
        app_id: completed.app_id,
        actor: audit::SERVER,
        action: "survey.completed",
        resource: format!("survey/{}", completed.id),
        detail,
    };
    audit::record(&mut tx, &entry, now).await?;
    tx.commit().await?;
    Ok(())
}
