//! Campaigns whose schedule is over become `completed` by themselves (contract 8, Schedule).

use nudge_campaigns::store::Stored;
use nudge_campaigns::{lifecycle, store};
use nudge_db::Timestamp;
use nudge_platform::due::{FirstError, Next, Pacer};
use tokio_util::sync::CancellationToken;

use crate::services::{Services, Shared};

/// Campaigns that are completed in one go.
const STEP: i64 = 100;

/// Runs until the server stops.
pub async fn run(services: Shared, halt: CancellationToken) {
    let poll_ms = services.config.pipeline.poll_ms;
    let what = "completing campaigns that are over";
    let pacer = Pacer::new(&services.db, &services.clock, poll_ms, what);
    pacer.run(halt, || round(&services)).await;
}

/// Completes campaigns that are over; answers when the next one is. Nothing fires past the end before that is noticed: the
/// pipeline reads the schedule.
async fn round(services: &Services) -> nudge_db::Result<Next> {
    let now = services.clock.now();
    let mut tx = services.db.read().await?;
    let ended = store::ended(&mut tx, now, STEP).await?;
    let next = store::next_end(&mut tx).await?;
    drop(tx);
    let mut failed = FirstError::default();
    for campaign in ended {
        failed.note(end(services, campaign, now).await)?;
    }
    failed.end()?;
    Ok(Next::At(next))
}

async fn end(services: &Services, campaign: Stored, now: Timestamp) -> nudge_db::Result<()> {
    let app_id = campaign.app_id;
    let mut tx = services.db.write().await?;
    // False: somebody else was there first.
    if lifecycle::end(&mut tx, campaign, "endAt", now).await? {
        tx.commit().await?;
        services.apps.refresh(app_id).await?;
    }
    Ok(())
}
