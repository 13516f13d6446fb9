//! Looks after plugins while the server runs: writes down how they fare, takes back what fails, forgets what is old.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use nudge_campaigns::settings::Settings;
use nudge_campaigns::webhooks::{EventType, listening};
use nudge_db::Timestamp;
use nudge_platform::due::{self, Trouble};
use nudge_plugin_runtime::catalogue::SERVER;
use nudge_plugin_runtime::rollback::FailureRate;
use nudge_plugin_runtime::rollout::PROBATION;
use nudge_plugin_runtime::rollout_period::RolloutPeriod;
use nudge_plugin_runtime::{logs, shadow, statistics, store};
use tokio_util::sync::CancellationToken;

use super::announcement;
use super::changes::{self, Error};
use super::statistics::views::health;
use crate::services::{Services, Shared};

/// How long what was noted stays in memory only: what a crash loses.
const TURN: Duration = Duration::from_millis(500);
/// How many turns mere counts wait: on SQLite each commit makes requests wait.
const PATIENCE: u32 = 4;
/// How often what is old is removed.
const PRUNE: Duration = Duration::from_mins(10);
/// How often endpoints are told of a version that fails, in microseconds.
const HOUR: i64 = 3_600_000_000;
/// Fewer calls say nothing (contract 12).
const LEAST_CALLS: i64 = 20;

/// Versions of which endpoints were told, and in which hour.
type Told = HashMap<Arc<RolloutPeriod>, Timestamp>;

/// Runs until the server stops. What is noted after that is written by [`Recorder::flush`](nudge_plugin_runtime::Recorder::flush).
pub async fn run(services: Shared, halt: CancellationToken) {
    let mut pruned = services.clock.now();
    let mut waited = 0;
    let mut told = Told::new();
    let mut trouble = Trouble::new("writing down how plugins fare");
    let mut pruning = Trouble::new("removing old statistics of plugins");
    loop {
        tokio::select! {
            () = tokio::time::sleep(TURN) => {}
            () = halt.cancelled() => return,
        }
        waited += 1;
        if waited < PATIENCE && !services.plugins.recorder.is_urgent() {
            continue;
        }
        waited = 0;
        trouble.note(turn(&services, &mut told).await);
        let now = services.clock.now();
        if due::is_over(PRUNE, pruned, now) && pruning.note(prune(&services, now).await).is_some() {
            pruned = now;
        }
    }
}

async fn turn(services: &Services, told: &mut Told) -> nudge_db::Result<()> {
    services.plugins.recorder.flush(&services.db).await?;
    for period in services.plugins.recorder.to_look_at() {
        if let Err(error) = look_at(services, &period, told).await {
            tracing::warn!(
                plugin.name = period.name,
                plugin.version = period.version,
                error = ?error,
                "a failing version can't be rolled back and is looked at again"
            );
        }
    }
    Ok(())
}

/// Rolls a version back that fails too often.
///
/// A call counts once it is settled: one that is taken apart or tried again does not, so that an event that a
/// plugin can't stand, in a large batch, is one failure among many successes. What the machine starved twice does
/// not count either: on a machine under load every plugin would look broken.
async fn look_at(
    services: &Services,
    period: &Arc<RolloutPeriod>,
    told: &mut Told,
) -> Result<(), Error> {
    let mut tx = services.db.read().await?;
    let tally = statistics::store::of_period(&mut tx, period).await?;
    drop(tx);
    // The server's plugins decide in every app, and no app's setting takes one from the others.
    let most = if period.owner == SERVER {
        Settings::default().plugins.max_failure_rate
    } else {
        let app = services.apps.get(period.owner).await?;
        let Some(app) = app else { return Ok(()) };
        app.settings.plugins.max_failure_rate
    };
    let rate = statistics::rate(tally.calls, tally.failures);
    if tally.failures > 0 && tally.calls < LEAST_CALLS {
        // A candidate can be given up at any time, but one that is no longer new is looked at after failed calls alone.
        services.plugins.recorder.look_again(period);
    }
    if tally.calls < LEAST_CALLS || rate <= most {
        return tell(services, period, most, told).await;
    }
    let reason = FailureRate {
        calls: tally.calls,
        failures: tally.failures,
        failure_rate: rate,
        max_failure_rate: most,
    };
    if let Some(restored) = changes::withdraw(services, period, reason).await? {
        tracing::warn!(
            app.id = %period.owner,
            plugin.name = period.name,
            plugin.version = period.version,
            plugin.restored = restored,
            calls = tally.calls,
            failures = tally.failures,
            "a failing version was rolled back"
        );
        return Ok(());
    }
    tell(services, period, most, told).await
}

/// Tells endpoints of an active version that can't be rolled back by itself any longer and failed too often in the last
/// quarter of an hour.
async fn tell(
    services: &Services,
    period: &Arc<RolloutPeriod>,
    most: f64,
    told: &mut Told,
) -> Result<(), Error> {
    let now = services.clock.now();
    let hour = Timestamp(now.0 - now.0.rem_euclid(HOUR));
    told.retain(|_, when| *when == hour);
    if told.contains_key(period) {
        return Ok(());
    }
    let mut tx = services.db.read().await?;
    if listening(&mut tx, EventType::PluginDegraded)
        .await?
        .is_empty()
    {
        return Ok(());
    }
    let Some(entry) = store::find(&mut tx, period.owner, &period.name).await? else {
        return Ok(());
    };
    let active = entry.rollout.active.as_ref();
    let is_active = active.is_some_and(|active| active.version == period.version)
        && entry.rollout.activated_at == Some(period.since);
    if !is_active || now.since(period.since) < PROBATION {
        return Ok(());
    }
    let version = Some(&*period.version);
    let lately = health(
        &mut tx,
        period.owner,
        period.owner,
        &period.name,
        version,
        most,
        now,
    )
    .await?;
    drop(tx);
    let failing = lately.failure_rate(most);
    if failing.calls < LEAST_CALLS || failing.failure_rate <= most {
        return Ok(());
    }
    let mut tx = services.db.write().await?;
    announcement::degraded(&mut tx, &entry, period, hour, (failing, now)).await?;
    tx.commit().await?;
    told.insert(Arc::clone(period), hour);
    Ok(())
}

async fn prune(services: &Services, now: Timestamp) -> nudge_db::Result<()> {
    let mut tx = services.db.write().await?;
    statistics::store::prune(&mut tx, now.minus(statistics::KEPT)).await?;
    logs::store::prune(&mut tx, now.minus(logs::KEPT)).await?;
    shadow::store::prune(&mut tx, now.minus(statistics::KEPT)).await?;
    tx.commit().await
}
