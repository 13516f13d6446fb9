//! Campaigns whose schedule is over become `completed` by themselves (contract 8, Schedule).

use nudge_db::{Result, Timestamp};
use serde_json::json;

use super::{Campaign, Error, Status, store};
use crate::audit::{self, Entry};
use crate::services::Shared;

/// Campaigns that are completed in one go.
const STEP: i64 = 100;

/// Completes what is over. Nothing fires past the end before that is noticed: the pipeline reads the schedule.
pub async fn complete_ended(services: &Shared) -> Result<()> {
    let now = services.clock.now();
    let mut tx = services.db.read().await?;
    let ended = store::ended(&mut tx, now, STEP).await?;
    drop(tx);
    for campaign in ended {
        let app_id = campaign.app_id;
        match complete(services, campaign, now).await {
            // Somebody else was there first.
            Err(Error::VersionMismatch) => continue,
            Err(Error::Storage(error)) => return Err(error),
            Err(error) => {
                tracing::error!(error = ?error, "a campaign that is over can't be completed");
            }
            Ok(()) => {}
        }
        services.apps.refresh(app_id).await?;
    }
    Ok(())
}

/// Completes a campaign that is as it was read, as the server's own change.
async fn complete(
    services: &Shared,
    campaign: Campaign,
    now: Timestamp,
) -> std::result::Result<(), Error> {
    let mut completed = campaign;
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
        action: "campaign.completed",
        resource: format!("campaign/{}", completed.id),
        detail,
    };
    audit::record(&mut tx, &entry, now).await?;
    tx.commit().await?;
    Ok(())
}
