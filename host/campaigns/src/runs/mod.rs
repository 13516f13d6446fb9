//! Runs: what campaigns do by the calendar, for everybody at once (contract 7 and 9, modes `scheduled` and
//! `broadcast`; contract 8, trigger kind `schedule`).
//!
//! A campaign that runs by the calendar has a row in `campaign_runs` with the time of its next run, from the
//! moment when it is activated ([`plan`]). When that has come (`watch` of the pipeline), whichever process notices moves the row
//! on and queues a job in one transaction, so that a run begins once. The job goes through the subjects and
//! keeps an occasion of each (`scheduled_work` of records); the trigger plugin decides whom the campaign is for, and
//! what it fires takes effect as any firing does. Nobody is read into memory but a page of subjects, and the job
//! waits while many occasions do.

pub mod calendar;
pub mod store;

use nudge_db::{Result, Timestamp, Tx};
use uuid::Uuid;

use crate::campaign::Kind;

pub use calendar::{Manner, Plan};

/// A campaign as it was just saved.
#[derive(Clone, Debug)]
pub struct Campaign {
    /// The app.
    pub app_id: Uuid,
    /// The campaign.
    pub id: Uuid,
    /// What it is.
    pub kind: Kind,
    /// Whether it is active.
    pub active: bool,
    /// When it runs; none: not by the calendar.
    pub plan: Option<Plan>,
}

/// Notes when a campaign runs next, in the transaction that saves it. A run that has begun goes on; one that was
/// missed while the campaign did not run is not made up for. One whose only run has been is looked at, which completes it.
pub async fn plan(tx: &mut Tx, campaign: &Campaign, now: Timestamp) -> Result<()> {
    let known = store::lock(tx, campaign.app_id, campaign.id).await?;
    let last = known.as_ref().and_then(|known| known.last_at);
    let planned = campaign.plan.as_ref().filter(|_| campaign.active);
    // A run whose time has come is not passed over because the campaign is saved before anybody noticed.
    let same = known
        .as_ref()
        .filter(|known| known.plan == campaign.plan)
        .and_then(|known| known.next);
    let next = planned.and_then(|plan| same.or_else(|| plan.next(last, now)));
    match (known, &campaign.plan) {
        (None, None) => Ok(()),
        (None, Some(plan)) => store::insert(tx, campaign, plan, next).await,
        (Some(_), None) => store::update(tx, campaign, None, None, now).await,
        (Some(_), Some(plan)) => {
            store::update(tx, campaign, Some(plan), next, now).await?;
            if planned.is_some_and(Plan::is_once) && next.is_none() && last.is_some() {
                store::look(tx, campaign, now).await?;
            }
            Ok(())
        }
    }
}

/// Notes that a campaign runs no more, in the transaction that completes it. A run that has begun goes on.
pub async fn stop(tx: &mut Tx, app_id: Uuid, id: Uuid, now: Timestamp) -> Result<()> {
    store::stop(tx, app_id, id, now).await
}

/// When an occasion of a campaign that does not run is due: when it runs again.
pub const PARKED: Timestamp = Timestamp(i64::MAX);

/// When something is due; none: it is put off until its campaign runs again.
pub fn due(at: Timestamp) -> Option<Timestamp> {
    (at != PARKED).then_some(at)
}
