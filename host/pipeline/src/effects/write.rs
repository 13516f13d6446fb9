//! Writing the effects of a batch.

use nudge_db::Tx;
use nudge_records::dead_letters::store::Failure;
use nudge_records::dead_letters::{self, Letter};
use nudge_records::instructions::{self, Instruction};
use nudge_records::scheduled_work::{self, NewOccasion};
use nudge_records::{decisions, deliveries, segment_checks};
use uuid::Uuid;

use super::Effects;
use crate::batch::Trouble;
use crate::store::{self, plugin_states};
use crate::{Inner, devices, run_firings};

/// Puts instructions on offer, and notes what would have been some.
async fn offer(tx: &mut Tx, effects: &Effects) -> nudge_db::Result<()> {
    let made = effects.instructions.iter();
    let made: Vec<Instruction> = made.map(|(_, instruction)| instruction.clone()).collect();
    instructions::store::insert(tx, &made).await?;
    instructions::store::insert_suppressed(tx, &effects.suppressed).await
}

async fn begin(inner: &Inner, effects: &Effects) -> nudge_db::Result<Tx> {
    if effects.are_awaited {
        inner.db.write_together().await
    } else {
        inner.db.unhurried().write_together().await
    }
}

/// Puts off what runs have led to, and drops what else waited, where campaigns do not run. False: something is not this
/// process's any longer.
async fn rest(tx: &mut Tx, effects: &Effects, node: Uuid) -> nudge_db::Result<bool> {
    let (firings, timers) = (&effects.resting_firings, &effects.resting_timers);
    let parked_firings = scheduled_work::park_of_runs(tx, "occasions", firings, node).await?;
    let parked_timers = scheduled_work::park_of_runs(tx, "timers", timers, node).await?;
    let is_parked = |id: &Uuid| parked_firings.contains(id) || parked_timers.contains(id);
    let dropped = |ids: &[Uuid]| -> Vec<Uuid> {
        let dropped = ids.iter().filter(|id| !is_parked(id));
        dropped.copied().collect()
    };
    let held_back = effects.dropped.iter().filter(|(id, _)| !is_parked(id));
    let held_back: Vec<(Uuid, Uuid)> = held_back.copied().collect();
    plugin_states::hold_back_dropped(tx, effects.app_id, &held_back).await?;
    Ok(
        scheduled_work::delete_due(tx, &dropped(firings), node).await?
            && store::timers::delete_due(tx, &dropped(timers), node).await?,
    )
}

/// Cancels timers, and firings that the host lets wait: those were held back in the end.
async fn cancel(tx: &mut Tx, effects: &mut Effects) -> nudge_db::Result<()> {
    let (app_id, all) = (effects.app_id, &effects.cancelled_all);
    store::timers::cancel(tx, app_id, all, &effects.cancelled).await?;
    for (pair, event_id) in scheduled_work::cancel_deferred(tx, app_id, all).await? {
        // A firing of the batch itself is the later one.
        effects.held_back.entry(pair).or_insert(event_id);
    }
    Ok(())
}

/// Keeps what the host does later.
async fn keep_occasions(tx: &mut Tx, effects: &Effects) -> nudge_db::Result<()> {
    let occasions = effects.occasions.iter();
    let occasions: Vec<NewOccasion> = occasions.map(|(_, occasion)| occasion.clone()).collect();
    scheduled_work::insert(tx, effects.app_id, &occasions).await?;
    Ok(())
}

/// Removes the letters that are replayed. False: one is gone.
async fn take_replayed(tx: &mut Tx, effects: &Effects) -> nudge_db::Result<bool> {
    let letters = effects.replayed_letters.iter();
    let letters: Vec<(Uuid, Uuid)> = letters.map(|id| (effects.app_id, *id)).collect();
    let taken = dead_letters::store::take(tx, &letters).await?;
    Ok(taken.len() == letters.len())
}

/// Writes the effects, if what they follow from still holds.
pub(crate) async fn write(inner: &Inner, effects: &mut Effects) -> Result<(), Trouble> {
    let mut tx = begin(inner, effects).await?;
    let node = inner.node();
    let done = rest(&mut tx, effects, node).await?
        && store::delete_requests(&mut tx, &effects.requests, node).await?
        && store::timers::delete_due(&mut tx, &effects.due_timers, node).await?
        && scheduled_work::delete_due(&mut tx, &effects.due_occasions, node).await?
        && scheduled_work::park(&mut tx, &effects.parked, node).await?
        && store::update_subjects(&mut tx, effects.app_id, &effects.subjects).await?
        && take_replayed(&mut tx, effects).await?;
    if !done {
        tx.rollback().await?;
        return Err(Trouble::Conflict);
    }
    let failures: Vec<Failure> = effects.failed_letters.iter().map(Failure::of).collect();
    dead_letters::store::update_failed(&mut tx, effects.app_id, &failures).await?;
    offer(&mut tx, effects).await?;
    plugin_states::write(&mut tx, effects.app_id, &effects.states, effects.now).await?;
    run_firings::insert(&mut tx, effects.app_id, &effects.run_firings).await?;
    cancel(&mut tx, effects).await?;
    plugin_states::hold_back(&mut tx, effects.app_id, &effects.held_back).await?;
    store::timers::set(&mut tx, effects.app_id, &effects.timers, effects.now).await?;
    keep_occasions(&mut tx, effects).await?;
    devices::write(&mut tx, effects.app_id, &effects.devices).await?;
    segment_checks::note(&mut tx, effects.app_id, &effects.segment_checks).await?;
    let letters: Vec<&Letter> = effects.letters.iter().collect();
    let (app_id, now) = (effects.app_id, effects.now);
    dead_letters::store::insert(&mut tx, &letters, now).await?;
    // The sender finds them by polling.
    let _polled = dead_letters::announce(&mut tx, app_id, &effects.webhooks, &letters, now).await?;
    let reserved = inner
        .deliveries
        .reserve(app_id, &mut effects.deliveries, now);
    let made = deliveries::queue(&mut tx, app_id, &effects.deliveries, now).await?;
    let noted = decisions::write(
        &mut tx,
        app_id,
        &effects.decisions,
        &inner.noted_configs,
        now,
    )
    .await?;
    tx.commit().await?;
    inner.noted_configs.remember(app_id, &noted, now);
    reserved.send(&made);
    if !effects.segment_checks.is_empty() {
        inner.segment_checks.wake();
    }
    Ok(())
}
