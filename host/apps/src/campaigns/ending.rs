//! Campaigns whose schedule is over become `completed` by themselves (contract 8, Schedule).

use nudge_campaigns::lifecycle::{self, Campaign, Content, Error};
use nudge_campaigns::{push, surveys};
use nudge_platform::due::{Next, Pacer};
use tokio_util::sync::CancellationToken;

use crate::services::{Services, Shared};

/// Campaigns that are completed in one go.
const STEP: i64 = 100;

/// Runs until the server stops.
pub async fn run(services: Shared, halt: CancellationToken) {
    let poll_ms = services.config.pipeline.poll_ms;
    let mut pacer = Pacer::new(&services.db, &services.clock, poll_ms);
    loop {
        pacer.look();
        let next = round(&services).await.unwrap_or_else(|error| {
            tracing::warn!(error = ?error, "campaigns that are over could not be completed yet");
            Next::Soon
        });
        tokio::select! {
            () = pacer.wait(next) => {}
            () = halt.cancelled() => return,
        }
    }
}

async fn round(services: &Services) -> nudge_db::Result<Next> {
    let survey = complete_ended::<surveys::Content>(services).await?;
    let push = complete_ended::<push::Content>(services).await?;
    Ok(survey.or(push))
}

/// Completes what is over; answers when the next campaign is. Nothing fires past the end before that is noticed: the pipeline reads the schedule.
async fn complete_ended<C: Content>(services: &Services) -> nudge_db::Result<Next> {
    let now = services.clock.now();
    let mut tx = services.db.read().await?;
    let ended = C::ended(&mut tx, now, STEP).await?;
    let next = C::next_end(&mut tx).await?;
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
    Ok(Next::At(next))
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
