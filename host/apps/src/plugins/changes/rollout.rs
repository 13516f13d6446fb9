//! Bringing versions into force and out of it.

use std::sync::Arc;
use std::time::Instant;

use nudge_db::Timestamp;
use nudge_platform::field_error::FieldError;
use nudge_plugin_runtime::catalogue::{Entry, Slot};
use nudge_plugin_runtime::loaders::Unloadable;
use nudge_plugin_runtime::rollback::Rollback;
use nudge_plugin_runtime::rollout::{Impossible, Release, Rollout, Strategy};
use nudge_plugin_runtime::store;
use nudge_wasm::Plugin;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{AppVersions, Error, MOST_TRIES, Owner};
use crate::plugins::{announcement, in_force_check};
use crate::services::Services;

/// What the audit log calls a roll-back.
const ROLLED_BACK: &str = "plugin.rolled_back";

/// What is to become of a plugin's versions.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    /// A version comes into force.
    Activate {
        /// The version.
        version: String,
        /// How it is tried first; none: it is active at once.
        strategy: Option<Strategy>,
        /// Whether the plugin is put into its kind's slot too.
        slot: bool,
    },
    /// The candidate becomes the active version.
    Promote,
    /// The candidate goes, or the version before comes back.
    RollBack,
}

/// A change as it would be, nothing of it done yet.
struct Plan {
    entry: Entry,
    slot: Option<Slot>,
    /// Whose slots the plugin is in, for what it decides there is checked too.
    slots: Vec<Uuid>,
    /// What comes into force by it.
    comes: Option<Release>,
    /// What must accept the configurations that it would decide under.
    checked: Vec<Release>,
    action: &'static str,
    detail: Value,
}

/// What became of a plan.
enum Written {
    /// It is done.
    Done,
    /// Somebody else changed the plugin, or a slot that it is in, since it was read.
    Overtaken,
    /// Something was saved in an app since it was checked what the plugin would decide there.
    AppsChanged,
}

/// Changes which versions of a plugin are in force.
pub(crate) async fn change(
    services: &Services,
    owner: &Owner,
    name: &str,
    change: &Change,
) -> Result<Entry, Error> {
    for tries in 1..=MOST_TRIES {
        let plan = plan(services, owner, name, change).await?;
        // Held until the snapshots are made anew, so that what was loaded stays loaded.
        let mut loaded = Vec::new();
        if let Some(release) = &plan.comes {
            let loaders = &services.plugins.loaders;
            match loaders.load(&services.db, &release.digest).await {
                // Deleted meanwhile, with its version: the next look tells.
                Err(Unloadable::Missing) if tries < MOST_TRIES => continue,
                release => loaded.push(release?),
            }
        }
        let mut seen = AppVersions::new();
        for _ in 1..=MOST_TRIES {
            check(services, owner, &plan, &mut loaded, &mut seen).await?;
            match write(services, owner, &plan, &seen).await? {
                Written::Done => {
                    owner.refresh(services).await?;
                    drop(loaded);
                    return Ok(plan.entry);
                }
                Written::Overtaken => break,
                // Only what was saved meanwhile is checked.
                Written::AppsChanged => {}
            }
        }
    }
    Err(Error::overtaken())
}

async fn plan(
    services: &Services,
    owner: &Owner,
    name: &str,
    change: &Change,
) -> Result<Plan, Error> {
    let now = services.clock.now();
    let mut tx = services.db.read().await?;
    let entry = owner.entry(services, &mut tx, name).await?;
    let release = match change {
        Change::Activate { version, .. } => {
            let found = store::find_version(&mut tx, owner.app_id, name, version).await?;
            Some(
                found
                    .ok_or_else(|| Error::no_version(name, version))?
                    .release,
            )
        }
        Change::Promote | Change::RollBack => None,
    };
    let slots = store::slots_with(&mut tx, owner.app_id, name).await?;
    Ok(Plan {
        slots,
        ..planned(entry, change, release, now)?
    })
}

/// What a change makes of a plugin. `release` is the version that is to be activated.
fn planned(
    entry: Entry,
    change: &Change,
    release: Option<Release>,
    now: Timestamp,
) -> Result<Plan, Impossible> {
    let from = entry.rollout.active.as_ref();
    let from = from.map(|release| release.version.clone());
    let gives_up_candidate = entry.rollout.candidate.is_some();
    let rollout = entry.rollout.clone();
    let mut rollback = None;
    let (rollout, comes, action) = match (change, release) {
        (Change::Activate { strategy, .. }, Some(release)) => {
            let comes = Some(release.clone());
            let rollout = match strategy {
                None => rollout.activate(release, now),
                Some(strategy) => rollout.try_out(release, *strategy, now)?,
            };
            (rollout, comes, "plugin.activated")
        }
        (Change::Activate { .. } | Change::Promote, _) => {
            let rollout = rollout.promote(now)?;
            let comes = rollout.active.clone();
            (rollout, comes, "plugin.promoted")
        }
        (Change::RollBack, _) => {
            let rollout = rollout.roll_back(now)?;
            let comes = rollout.active.clone().filter(|_| !gives_up_candidate);
            rollback = rolled_back(&entry, &rollout, now);
            (rollout, comes, ROLLED_BACK)
        }
    };
    let slot = matches!(change, Change::Activate { slot: true, .. }).then(|| Slot {
        app_id: entry.app_id,
        kind: entry.kind,
        plugin: entry.name.clone(),
    });
    // A roll-back happens at once, whatever the version thinks of configurations that were made since.
    let checks = !matches!(change, Change::RollBack);
    let mut checked: Vec<Release> = comes.clone().into_iter().filter(|_| checks).collect();
    if slot.is_some() {
        let active = rollout.active.clone().into_iter();
        checked.extend(active.filter(|active| Some(active) != comes.as_ref()));
    }
    let candidate = rollout.candidate.as_ref();
    let strategy = candidate.map(|candidate| candidate.strategy);
    let given_up = entry.rollout.candidate.as_ref();
    let given_up = given_up.filter(|_| matches!(change, Change::RollBack));
    let mut detail = json!({
        "from": from,
        "version": comes.as_ref().map(|release| &release.version),
        "strategy": strategy.map_or("instant", Strategy::name),
        "percent": strategy.and_then(Strategy::percent),
        "slot": slot.is_some(),
    });
    if let (Some(candidate), Some(detail)) = (given_up, detail.as_object_mut()) {
        detail.insert("candidate".into(), json!(candidate.release.version));
    }
    Ok(Plan {
        entry: after(entry, rollout, rollback, now),
        slot,
        slots: Vec::new(),
        comes,
        checked,
        action,
        detail,
    })
}

/// A plugin with another roll-out, to which a roll-back may have led.
fn after(before: Entry, rollout: Rollout, rollback: Option<Rollback>, now: Timestamp) -> Entry {
    match rollback {
        Some(rollback) => before.rolled_back(rollout, rollback, now),
        None => Entry {
            rollout,
            updated_at: now,
            ..before
        },
    }
}

/// What is noted of a roll-back that somebody asked for.
fn rolled_back(before: &Entry, after: &Rollout, now: Timestamp) -> Option<Rollback> {
    let active = after.active.as_ref().map(|active| active.version.clone());
    let candidate = before.rollout.candidate.as_ref();
    let (version, role) = match candidate {
        Some(candidate) => (&candidate.release.version, "candidate"),
        None => (&before.rollout.active.as_ref()?.version, "active"),
    };
    Some(Rollback::requested(now, version, role, active))
}

/// Asks the versions about everything that they would decide in apps that were not seen as they are.
async fn check(
    services: &Services,
    owner: &Owner,
    plan: &Plan,
    loaded: &mut Vec<Arc<Plugin>>,
    seen: &mut AppVersions,
) -> Result<(), Error> {
    if plan.checked.is_empty() {
        return Ok(());
    }
    let started = Instant::now();
    let mut tx = services.db.read().await?;
    let apps = owner.unseen(&mut tx, seen).await?;
    drop(tx);
    for release in &plan.checked {
        let loaders = &services.plugins.loaders;
        let plugin = loaders.load(&services.db, &release.digest).await?;
        let as_it_will_be = (&plan.entry, plan.slot.as_ref());
        let errors = refusals(services, owner, &apps, as_it_will_be, &plugin, started).await?;
        if !errors.is_empty() {
            return Err(Error::Rejected(errors));
        }
        loaded.push(plugin);
    }
    seen.extend(apps);
    Ok(())
}

/// What a version refuses of what it decides or would decide, in the first of some apps where it refuses anything.
pub(super) async fn refusals(
    services: &Services,
    owner: &Owner,
    apps: &AppVersions,
    (entry, slot): (&Entry, Option<&Slot>),
    plugin: &Arc<Plugin>,
    started: Instant,
) -> Result<Vec<FieldError>, Error> {
    for app_id in apps.keys().copied() {
        let mut tx = services.db.read().await?;
        let mut catalogue = store::catalogue(&mut tx, app_id).await?;
        let in_force = in_force_check::in_force(&mut tx, app_id).await?;
        drop(tx);
        catalogue = catalogue.with_entry(entry.clone());
        if let Some(slot) = slot {
            catalogue = catalogue.with_slot(slot.clone());
        }
        let decides = |asked: nudge_plugin_runtime::PluginRef<'_>| {
            in_force_check::decides(&catalogue, entry.app_id, &entry.name, entry.kind, asked)
        };
        let asked = (entry.app_id, plugin);
        let in_force = (app_id, &in_force);
        let errors =
            in_force_check::refusals(&services.plugins, asked, in_force, decides, started).await?;
        if !errors.is_empty() {
            return Ok(owner.place(app_id, errors));
        }
    }
    Ok(Vec::new())
}

/// Writes a plan, if it is still what was checked.
async fn write(
    services: &Services,
    owner: &Owner,
    plan: &Plan,
    seen: &AppVersions,
) -> Result<Written, Error> {
    let entry = &plan.entry;
    let now = entry.updated_at;
    let mut tx = services.db.write().await?;
    if !store::update(&mut tx, entry).await? {
        return Ok(Written::Overtaken);
    }
    // What puts it into a slot locks it before, so that none is missed.
    if store::slots_with(&mut tx, owner.app_id, &entry.name).await? != plan.slots {
        return Ok(Written::Overtaken);
    }
    if let Some(release) = &plan.comes {
        let version =
            store::find_version(&mut tx, owner.app_id, &entry.name, &release.version).await?;
        if version.is_none_or(|version| version.release != *release) {
            return Ok(Written::Overtaken);
        }
    }
    if let Some(slot) = &plan.slot {
        store::set_slot(&mut tx, slot, now).await?;
    }
    let is_seen = owner.bump_seen(&mut tx, seen, now).await?;
    if !is_seen && !plan.checked.is_empty() {
        return Ok(Written::AppsChanged);
    }
    let (resource, detail) = (format!("plugin/{}", entry.name), plan.detail.clone());
    owner
        .record(&mut tx, plan.action, resource, detail, now)
        .await?;
    if plan.action == ROLLED_BACK {
        announcement::rolled_back(&mut tx, entry, now).await?;
    }
    tx.commit().await?;
    if plan.action == ROLLED_BACK {
        metrics::counter!("nudge_plugin_rollbacks_total", "cause" => "request").increment(1);
    }
    Ok(Written::Done)
}
