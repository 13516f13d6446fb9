//! Campaigns whose schedule is over become `completed` by themselves (contract 8, Schedule).

use nudge_campaigns::lifecycle::{self, Campaign, Content, Error};

use crate::services::Services;

/// Campaigns that are completed in one go.
const STEP: i64 = 100;

/// Completes what is over. Nothing fires past the end before that is noticed: the pipeline reads the schedule.
pub async fn complete_ended<C: Content>(services: &Services) -> nudge_db::Result<()> {
    let now = services.clock.now();
    let mut tx = services.db.read().await?;
    let ended = C::ended(&mut tx, now, STEP).await?;
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

async fn complete<C: Content>(
    services: &Services,
    campaign: Campaign<C>,
    now: nudge_db::Timestamp,
) -> Result<(), Error> {
    let mut tx = services.db.write().await?;
    lifecycle::end(&mut tx, campaign, "endAt", now).await?;
    Ok(tx.commit().await?)
}
