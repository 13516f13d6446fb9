//! Begins runs whose time has come, and sees to it that those that go on come to an end.

use std::time::Duration;

use nudge_campaigns::lifecycle;
use nudge_campaigns::runs::store::{self, Planned};
use nudge_db::Timestamp;
use nudge_platform::audit;
use nudge_platform::due::{Next, Pacer};
use nudge_platform::jobs::{self, NewJob};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::job::{self, Input};
use super::standing;
use crate::runs::standing::RunState;
use crate::services::Shared;

/// Campaigns that are looked at in one go.
const MOST: i64 = 100;
/// How soon a run that goes on is looked at again.
const LOOK_AGAIN: Duration = Duration::from_secs(2);
/// The same of one of which little is to be expected.
const LOOK_LATER: Duration = Duration::from_mins(1);
/// How long a run reaches people after its occasion, at the most, but for delays: all clocks, and quiet hours.
const REACH: Duration = Duration::from_hours(72);
/// Comes after the key of any run, in whatever order the database has texts.
const EVERY_RUN: &str = "run 9999";

/// Runs until the server stops.
pub async fn run(services: Shared, halt: CancellationToken) {
    let poll_ms = services.config.pipeline.poll_ms;
    let what = "looking for runs";
    let pacer = Pacer::new(&services.db, &services.clock, poll_ms, what);
    pacer.run(halt.clone(), || round(&services, &halt)).await;
}

async fn round(services: &Shared, halt: &CancellationToken) -> nudge_db::Result<Next> {
    let now = services.clock.now();
    let mut tx = services.db.read().await?;
    let due = crate::runs::store::due(&mut tx, now, MOST).await?;
    let open = crate::runs::store::to_look_at(&mut tx, now, MOST).await?;
    let next = crate::runs::store::next(&mut tx).await?;
    drop(tx);
    for (app_id, campaign_id) in due {
        begin(services, app_id, campaign_id, now).await?;
    }
    for (planned, seen) in open {
        if halt.is_cancelled() {
            return Ok(Next::Soon);
        }
        look(services, &planned, seen, now).await?;
    }
    Ok(Next::At(next))
}

/// Begins a campaign's run, unless somebody else has.
async fn begin(
    services: &Shared,
    app_id: Uuid,
    campaign_id: Uuid,
    now: Timestamp,
) -> nudge_db::Result<()> {
    let mut tx = services.db.write().await?;
    let Some(planned) = store::lock(&mut tx, app_id, campaign_id).await? else {
        return Ok(());
    };
    let (Some(plan), Some(next)) = (planned.plan.clone(), planned.next) else {
        return Ok(());
    };
    if next.begins_at > now {
        return Ok(());
    }
    // By everybody's own clock a run reaches its last people after the next one has begun; the job has ended by then.
    if let Some(job_id) = planned.job_id
        && !crate::runs::store::has_ended(&mut tx, app_id, job_id).await?
    {
        return Ok(());
    }
    let run = plan.due(next, now);
    let after = plan.after(run);
    let input = Input {
        campaign_id,
        kind: planned.kind,
        plan,
        occasion: run.occasion,
        last: crate::runs::store::newest_subject(&mut tx, app_id).await?,
        begins_at: Some(run.begins_at),
        overtaken: after
            .filter(|after| after.begins_at <= now)
            .map(|after| (after.occasion, now)),
    };
    let input = serde_json::to_value(&input)
        .map_err(|cause| nudge_db::Error::corrupt("campaign_runs", "plan", cause))?;
    let job = NewJob {
        app_id,
        kind: job::KIND,
        input,
        requested_by: audit::SERVER,
    };
    let job_id = jobs::queue(&mut tx, &job, now).await?;
    if crate::runs::store::begin(&mut tx, &planned, run, after, job_id, now).await? {
        tx.commit().await?;
        tracing::info!(campaign.id = %campaign_id, job.id = %job_id, "a run begins");
        services.jobs.wake();
    }
    Ok(())
}

/// Sees how far a run is.
async fn look(
    services: &Shared,
    planned: &Planned,
    seen: Timestamp,
    now: Timestamp,
) -> nudge_db::Result<()> {
    let (app_id, id) = (planned.app_id, planned.campaign_id);
    let mut tx = services.db.read().await?;
    let standing = standing::standing(&mut tx, app_id, id).await?;
    let ended = match planned.job_id {
        Some(job_id) => crate::runs::store::has_ended(&mut tx, app_id, job_id).await?,
        None => true,
    };
    let waiting = crate::runs::store::waiting(&mut tx, app_id, id).await?;
    drop(tx);
    let next = match standing {
        // Whoever saves the campaign has it looked at.
        RunState::Rests => Some(now.plus(LOOK_LATER)),
        RunState::Runs if ended && waiting.nobody() => {
            forget(services, planned, EVERY_RUN).await?;
            finish(services, planned, now).await?
        }
        RunState::Runs => {
            // By everybody's own clock one run may follow another with no end.
            if let Some(last_at) = planned.last_at.filter(|_| !waiting.timers) {
                forget(services, planned, &job::key(last_at.minus(REACH))).await?;
            }
            if waiting.parked {
                resume(services, planned, now).await?;
            }
            let pause = match waiting.first_due {
                Some(due_at) if ended => due_at.since(now).clamp(LOOK_AGAIN, LOOK_LATER),
                _ => LOOK_AGAIN,
            };
            Some(now.plus(pause))
        }
        RunState::Over => {
            if !waiting.nobody() {
                drop_left(services, planned).await?;
            }
            if ended {
                forget(services, planned, EVERY_RUN).await?;
            }
            (!ended).then(|| now.plus(LOOK_AGAIN))
        }
    };
    let mut tx = services.db.write().await?;
    crate::runs::store::looked(&mut tx, planned, seen, next).await?;
    tx.commit().await
}

/// Lets those go on who were put off while the campaign did not run.
async fn resume(services: &Shared, planned: &Planned, now: Timestamp) -> nudge_db::Result<()> {
    loop {
        let mut tx = services.db.write().await?;
        let resumed = crate::runs::store::resume(&mut tx, planned, now).await?;
        tx.commit().await?;
        if resumed == 0 {
            return Ok(());
        }
    }
}

/// Forgets whom a campaign's runs before one have given something: nobody is left whom they could give it twice.
async fn forget(services: &Shared, planned: &Planned, before: &str) -> nudge_db::Result<()> {
    loop {
        let mut tx = services.db.write().await?;
        let forgotten = crate::runs::store::forget_firings(&mut tx, planned, before).await?;
        tx.commit().await?;
        if forgotten == 0 {
            return Ok(());
        }
    }
}

/// Nobody gets what is left of a campaign that is over.
async fn drop_left(services: &Shared, planned: &Planned) -> nudge_db::Result<()> {
    loop {
        let mut tx = services.db.write().await?;
        let dropped = crate::runs::store::drop_left(&mut tx, planned).await?;
        tx.commit().await?;
        if dropped == 0 {
            return Ok(());
        }
    }
}

/// The run is over; with its only run a campaign is, once nothing of it is on offer. Answers when to look again.
async fn finish(
    services: &Shared,
    planned: &Planned,
    now: Timestamp,
) -> nudge_db::Result<Option<Timestamp>> {
    let is_once = planned
        .plan
        .as_ref()
        .is_some_and(nudge_campaigns::runs::Plan::is_once);
    if !is_once {
        return Ok(None);
    }
    let (app_id, id, kind) = (planned.app_id, planned.campaign_id, planned.kind);
    let mut tx = services.db.read().await?;
    let on_offer = standing::is_on_offer(kind, &mut tx, app_id, id, now).await?;
    drop(tx);
    if on_offer {
        return Ok(Some(now.plus(LOOK_LATER)));
    }
    let mut tx = services.db.write().await?;
    let completed = lifecycle::complete_after_run(&mut tx, app_id, id, now).await?;
    tx.commit().await?;
    if completed {
        services.apps.refresh(app_id).await?;
    }
    Ok(None)
}
