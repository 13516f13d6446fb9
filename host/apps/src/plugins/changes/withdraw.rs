//! Taking a failing version back, by the server itself.

use nudge_platform::audit;
use nudge_plugin_runtime::catalogue::Entry;
use nudge_plugin_runtime::rollback::{FailureRate, Rollback};
use nudge_plugin_runtime::rollout_period::RolloutPeriod;
use nudge_plugin_runtime::store;
use serde_json::{Value, json};

use super::{Error, MOST_TRIES, Owner};
use crate::plugins::announcement;
use crate::services::Services;

/// Rolls a version back; answers what is active now, unless the version had gone before. Whichever process comes
/// first does it.
pub(crate) async fn withdraw(
    services: &Services,
    period: &RolloutPeriod,
    reason: FailureRate,
) -> Result<Option<String>, Error> {
    for _ in 0..MOST_TRIES {
        let now = services.clock.now();
        let mut tx = services.db.read().await?;
        let entry = store::find(&mut tx, period.owner, &period.name).await?;
        drop(tx);
        let Some(before) = entry else { return Ok(None) };
        let rollout = before.rollout.clone();
        let Some(rollout) = rollout.withdraw(&period.version, period.since, now) else {
            return Ok(None);
        };
        let role = if before.rollout.active == rollout.active {
            "candidate"
        } else {
            "active"
        };
        let active = rollout.active.as_ref();
        let active = active.map(|active| active.version.clone());
        let rollback = Rollback::automatic(now, &period.version, role, active, reason);
        let detail = detail(&rollback);
        let after = before.rolled_back(rollout, rollback, now);
        // Held until the snapshots are made anew. What can't be loaded is dealt with there.
        let loaded = match &after.rollout.active {
            Some(release) => Some(
                services
                    .plugins
                    .loaders
                    .load(&services.db, &release.digest)
                    .await,
            ),
            None => None,
        };
        if write(services, &after, detail).await? {
            drop(loaded);
            let active = after.rollout.active;
            let version = active.map(|release| release.version);
            return Ok(Some(version.unwrap_or_else(|| "none".to_owned())));
        }
    }
    Err(Error::overtaken())
}

/// What the audit log says.
fn detail(rollback: &Rollback) -> Value {
    let failing = rollback.failing.as_ref();
    json!({
        "version": rollback.version,
        "role": rollback.role,
        "activeVersion": rollback.active_version,
        "calls": failing.map(|failing| failing.calls),
        "failures": failing.map(|failing| failing.failures),
        "failureRate": failing.map(|failing| failing.failure_rate),
        "maxFailureRate": failing.map(|failing| failing.max_failure_rate),
    })
}

/// Writes a roll-back and brings it into force; false: somebody else changed the plugin since it was read.
async fn write(services: &Services, entry: &Entry, detail: Value) -> Result<bool, Error> {
    let owner = Owner {
        app_id: entry.app_id,
        actor: audit::SERVER.to_owned(),
    };
    let now = entry.updated_at;
    let mut tx = services.db.write().await?;
    if !store::update(&mut tx, entry).await? {
        return Ok(false);
    }
    owner.bump_version(&mut tx, now).await?;
    let resource = format!("plugin/{}", entry.name);
    owner
        .record(&mut tx, "plugin.rolled_back", resource, detail, now)
        .await?;
    announcement::rolled_back(&mut tx, entry, now).await?;
    tx.commit().await?;
    metrics::counter!("nudge_plugin_rollbacks_total", "cause" => "failures").increment(1);
    owner.refresh(services).await?;
    Ok(true)
}
