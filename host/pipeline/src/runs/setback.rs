//! Runs that were planned by a clock that was ahead and has been set back.

use nudge_campaigns::runs::calendar::Run;
use nudge_campaigns::runs::store::{self, Planned};
use nudge_db::{Result, Timestamp};
use nudge_platform::due::FirstError;
use uuid::Uuid;

use crate::services::Services;
use crate::setback::LEEWAY_AMONG_OTHERS;

/// Campaigns that are read at once.
const MOST: i64 = 500;

/// Plans the runs of campaigns anew where the next one is later than it is to be. Doing it again changes nothing.
pub(super) async fn replan(services: &Services, now: Timestamp) -> Result<()> {
    let latest = now.plus(LEEWAY_AMONG_OTHERS);
    let mut after = Uuid::nil();
    let mut failed = FirstError::default();
    loop {
        let mut tx = services.db.read().await?;
        let campaigns = store::later_than(&mut tx, latest, after, MOST).await?;
        drop(tx);
        let Some((last, _)) = campaigns.last() else {
            break;
        };
        after = *last;
        for (_, planned) in campaigns {
            let replanned = match planned {
                Ok(planned) => replan_one(services, &planned, now).await,
                Err(error) => Err(error),
            };
            failed.note(replanned)?;
        }
    }
    failed.end()
}

async fn replan_one(services: &Services, planned: &Planned, now: Timestamp) -> Result<()> {
    if replanned(planned, now).is_none() {
        return Ok(());
    }
    let mut tx = services.db.write().await?;
    // Somebody may have saved the campaign meanwhile.
    let Some(planned) = store::lock(&mut tx, planned.app_id, planned.campaign_id).await? else {
        return Ok(());
    };
    let Some((last, next)) = replanned(&planned, now) else {
        return Ok(());
    };
    store::replan(&mut tx, &planned, last, next).await?;
    tx.commit().await?;
    tracing::warn!(campaign.id = %planned.campaign_id, "the clock was set back: its runs are planned anew");
    Ok(())
}

/// The newest run and the next one as they are to be; none: they stay.
fn replanned(planned: &Planned, now: Timestamp) -> Option<(Option<Timestamp>, Option<Run>)> {
    let plan = planned.plan.as_ref()?;
    plan.replanned(planned.last_at, planned.next, now)
}
