//! Begins runs whose time has come, and sees to it that those that go on come to an end.

use std::time::Duration;

use nudge_campaigns::lifecycle;
use nudge_campaigns::runs::Plan;
use nudge_campaigns::runs::store::{self, Planned};
use nudge_campaigns::store::{self as campaigns, Hold};
use nudge_db::{Timestamp, Tx};
use nudge_platform::audit;
use nudge_platform::due::{FirstError, Next, Pacer, Setbacks};
use nudge_platform::jobs::{self, NewJob};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::job::{self, Input};
use super::run_state::{self, RunState};
use super::{setback, store as runs};
use crate::services::Shared;
use crate::setback::LEEWAY_AMONG_OTHERS;

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
    let mut pacer = Pacer::new(&services.db, &services.clock, poll_ms, what);
    let mut setbacks = Setbacks::default();
    loop {
        pacer.look();
        let looked = round(&services, &mut setbacks, &halt).await;
        let next = pacer.note(looked).unwrap_or(Next::Soon);
        if halt.run_until_cancelled(pacer.wait(next)).await.is_none() {
            return;
        }
    }
}

async fn round(
    services: &Shared,
    setbacks: &mut Setbacks,
    halt: &CancellationToken,
) -> nudge_db::Result<Next> {
    let now = services.clock.now();
    let mut failed = FirstError::default();
    if setbacks.look(&services.clock) {
        let replanned = setback::replan(services, now).await;
        if replanned.is_err() {
            setbacks.forget();
        }
        failed.note(replanned)?;
    }
    let mut tx = services.db.read().await?;
    let due = runs::due(&mut tx, now, MOST).await?;
    // Where a look is put off by more, the clock has been set back since.
    let latest = now.plus(LOOK_LATER + LEEWAY_AMONG_OTHERS);
    let open = runs::to_look_at(&mut tx, now, latest, MOST).await?;
    let next = runs::next(&mut tx).await?;
    drop(tx);
    for (app_id, campaign_id) in due {
        failed.note(begin(services, app_id, campaign_id, now).await)?;
    }
    for (planned, seen) in open {
        if halt.is_cancelled() {
            return Ok(Next::Soon);
        }
        failed.note(look(services, &planned, seen, now).await)?;
    }
    failed.end()?;
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
        && !runs::has_ended(&mut tx, app_id, job_id).await?
    {
        return Ok(());
    }
    let run = plan.due(next, now);
    let after = plan.after(run);
    let input = Input {
        campaign_id,
        kind: planned.kind,
        plan,
        run_at: run.occasion,
        last: runs::newest_subject(&mut tx, app_id).await?,
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
    if runs::begin(&mut tx, &planned, run, after, job_id, now).await? {
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
    let look = Look {
        services,
        planned,
        seen,
    };
    // Of one moment: what waits may become something else that waits.
    let mut tx = services.db.repeatable_read().await?;
    let state = run_state::read(&mut tx, app_id, id).await?;
    let ended = match planned.job_id {
        Some(job_id) => runs::has_ended(&mut tx, app_id, job_id).await?,
        None => true,
    };
    let waiting = runs::waiting(&mut tx, app_id, id).await?;
    let latest_reach = latest_reach(&mut tx, planned, now).await?;
    drop(tx);
    let next = match state {
        // Whoever saves the campaign has it looked at.
        RunState::Rests => Some(now.plus(LOOK_LATER)),
        RunState::Runs if ended && waiting.nobody() => {
            look.make(Change::Forget(EVERY_RUN)).await?;
            look.finish(now).await?
        }
        RunState::Runs => {
            // By everybody's own clock one run may follow another with no end.
            if let Some(last_at) = planned.last_at.filter(|_| !waiting.timers) {
                let before = job::key(last_at.minus(REACH));
                look.make(Change::Forget(&before)).await?;
            }
            if waiting.parked {
                look.make(Change::Resume(now)).await?;
            }
            if let Some(reaches_by) = latest_reach {
                look.make(Change::Hasten { now, reaches_by }).await?;
            }
            let pause = match waiting.first_due {
                Some(due_at) if ended => due_at.since(now).clamp(LOOK_AGAIN, LOOK_LATER),
                _ => LOOK_AGAIN,
            };
            Some(now.plus(pause))
        }
        RunState::Over => {
            if !waiting.nobody() {
                look.make(Change::DropLeft).await?;
            }
            if ended {
                look.make(Change::Forget(EVERY_RUN)).await?;
            }
            // What comes of the last that was dropped may have been written meanwhile.
            let is_done = ended && waiting.nobody();
            (!is_done).then(|| now.plus(LOOK_AGAIN))
        }
    };
    let mut tx = services.db.write().await?;
    runs::looked(&mut tx, planned, seen, next).await?;
    tx.commit().await
}

/// When a campaign's newest run, which has begun, reaches its last people at the latest; none: its occasion has come. Where that is
/// still to come, the run goes by everybody's own clock, or a clock has begun it that was ahead and was set back.
async fn latest_reach(
    tx: &mut Tx,
    planned: &Planned,
    now: Timestamp,
) -> nudge_db::Result<Option<Timestamp>> {
    let now = now.plus(LEEWAY_AMONG_OTHERS);
    if planned.last_at.is_none_or(|last_at| last_at <= now) {
        return Ok(None);
    }
    // The campaign may have been saved with another plan since the run began.
    let begun = match planned.job_id {
        Some(job_id) => job::plan(tx, planned.app_id, job_id).await?,
        None => None,
    };
    let plan = begun.as_ref().or(planned.plan.as_ref());
    Ok(plan.map(|plan| plan.reaches_by(now)))
}

/// A look at a run, which holds until the campaign is saved or another process has looked.
struct Look<'a> {
    services: &'a Shared,
    planned: &'a Planned,
    seen: Timestamp,
}

/// What comes of a look.
#[derive(Clone, Copy)]
enum Change<'a> {
    /// Lets those go on who were put off while the campaign did not run.
    Resume(Timestamp),
    /// Lets people have it now to whom it would come later than the run, which has begun, reaches anybody.
    Hasten {
        now: Timestamp,
        reaches_by: Timestamp,
    },
    /// Forgets whom the campaign's runs before one have given something: nobody is left whom they could give it twice.
    Forget(&'a str),
    /// Nobody gets what is left of a campaign that is over.
    DropLeft,
}

impl Look<'_> {
    /// Makes a change step by step, until nothing is left to change or the look holds no longer.
    async fn make(&self, change: Change<'_>) -> nudge_db::Result<()> {
        loop {
            let mut tx = self.services.db.write().await?;
            if !runs::holds(&mut tx, self.planned, self.seen).await? {
                return Ok(());
            }
            let changed = match change {
                Change::Resume(now) => runs::resume(&mut tx, self.planned, now).await?,
                Change::Hasten { now, reaches_by } => {
                    runs::hasten(&mut tx, self.planned, now, reaches_by).await?
                }
                Change::Forget(before) => {
                    runs::forget_firings(&mut tx, self.planned, before).await?
                }
                Change::DropLeft => runs::drop_left(&mut tx, self.planned).await?,
            };
            tx.commit().await?;
            if changed == 0 {
                return Ok(());
            }
        }
    }

    /// The run is over; with its only run a campaign is, once nothing of it is on offer or being looked at. Answers when to look again.
    async fn finish(&self, now: Timestamp) -> nudge_db::Result<Option<Timestamp>> {
        let Self {
            services,
            planned,
            seen,
        } = *self;
        let is_once = planned.plan.as_ref().is_some_and(Plan::is_once);
        if !is_once {
            return Ok(None);
        }
        let (app_id, id, kind) = (planned.app_id, planned.campaign_id, planned.kind);
        let mut tx = services.db.read().await?;
        let on_offer = run_state::is_on_offer(kind, &mut tx, app_id, id, now).await?;
        drop(tx);
        if on_offer {
            return Ok(Some(now.plus(LOOK_LATER)));
        }
        let mut tx = services.db.write().await?;
        // In the order in which whoever saves the campaign locks them.
        let status = campaigns::status(&mut tx, app_id, id, Hold::Alone).await?;
        if status.is_some() && runs::holds(&mut tx, planned, seen).await? {
            let completed = lifecycle::complete_after_run(&mut tx, app_id, id, now).await?;
            tx.commit().await?;
            if completed {
                services.apps.refresh(app_id).await?;
            }
        }
        Ok(None)
    }
}
