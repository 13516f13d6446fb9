//! Taking a failing version back, by the server itself.

use nudge_platform::audit;
use nudge_plugin_runtime::catalogue::Entry;
use nudge_plugin_runtime::rollout::Rollout;
use nudge_plugin_runtime::rollout_period::RolloutPeriod;
use nudge_plugin_runtime::store;
use serde_json::{Value, json};

use super::{Error, MOST_TRIES, Owner};
use crate::services::Services;

/// How a version failed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reason {
    /// Calls of its term.
    pub(crate) calls: i64,
    /// Those that failed.
    pub(crate) failures: i64,
    /// Their share.
    pub(crate) rate: f64,
    /// The share that is allowed.
    pub(crate) most: f64,
}

/// Rolls a version back; answers what is active now, unless the version had gone before. Whichever process comes
/// first does it.
pub(crate) async fn withdraw(
    services: &Services,
    term: &RolloutPeriod,
    reason: Reason,
) -> Result<Option<String>, Error> {
    for _ in 0..MOST_TRIES {
        let now = services.clock.now();
        let mut tx = services.db.read().await?;
        let entry = store::find(&mut tx, term.owner, &term.name).await?;
        drop(tx);
        let Some(before) = entry else { return Ok(None) };
        let rollout = before.rollout.clone();
        let Some(rollout) = rollout.withdraw(&term.version, term.since, now) else {
            return Ok(None);
        };
        let detail = detail(term, &before, &rollout, reason);
        let after = Entry {
            rollout,
            updated_at: now,
            ..before
        };
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
    Err(Error::Busy(anyhow::anyhow!(
        "the plugin is being changed by others"
    )))
}

fn detail(term: &RolloutPeriod, before: &Entry, after: &Rollout, reason: Reason) -> Value {
    let was_tried = before.rollout.active == after.active;
    json!({
        "version": term.version,
        "role": if was_tried { "candidate" } else { "active" },
        "activeVersion": after.active.as_ref().map(|active| &active.version),
        "calls": reason.calls,
        "failures": reason.failures,
        "failureRate": reason.rate,
        "maxFailureRate": reason.most,
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
    tx.commit().await?;
    owner.refresh(services).await?;
    Ok(true)
}
