//! Which plugin decides where none is named.

use std::sync::Arc;
use std::time::Instant;

use nudge_platform::field_error::FieldError;
use nudge_plugin_runtime::catalogue::{Catalogue, PluginRef, SERVER, Slot};
use nudge_plugin_runtime::rollout::Release;
use nudge_plugin_runtime::store;
use nudge_wasm::{Kind, Plugin};
use serde_json::json;

use super::{AppVersions, Error, MOST_TRIES, Owner};
use crate::plugins::in_force_check;
use crate::services::Services;

/// Puts a plugin into a slot.
pub(crate) async fn set(
    services: &Services,
    owner: &Owner,
    kind: Kind,
    name: &str,
) -> Result<(), Error> {
    let slot = Slot {
        app_id: owner.app_id,
        kind,
        plugin: name.to_owned(),
    };
    let (mut loaded, mut seen) = (Vec::new(), AppVersions::new());
    for _ in 0..MOST_TRIES {
        let now = services.clock.now();
        let mut tx = services.db.read().await?;
        let catalogue = store::catalogue(&mut tx, owner.app_id).await?;
        drop(tx);
        let of = candidate(services, &catalogue, kind, name)?;
        let checked = in_force_of(&catalogue, name);
        let after = |catalogue: Catalogue| catalogue.with_slot(slot.clone());
        check(services, owner, kind, after, (&mut loaded, &mut seen)).await?;

        let mut tx = services.db.write().await?;
        // So that it is not removed meanwhile.
        if let Some(app_id) = of
            && !store::lock(&mut tx, app_id, name).await?
        {
            continue;
        }
        // Another version may have come into force, which nothing in the slot was checked against.
        let catalogue = store::catalogue(&mut tx, owner.app_id).await?;
        if in_force_of(&catalogue, name) != checked {
            seen.clear();
            continue;
        }
        store::set_slot(&mut tx, &slot, now).await?;
        // What was saved meanwhile is checked too.
        if !owner.bump_seen(&mut tx, &seen, now).await? {
            continue;
        }
        let resource = format!("plugin-slot/{kind}");
        let detail = json!({"plugin": name});
        owner
            .record(&mut tx, "plugin_slot.set", resource, detail, now)
            .await?;
        tx.commit().await?;
        owner.refresh(services).await?;
        drop(loaded);
        return Ok(());
    }
    Err(Error::overtaken())
}

/// Empties a slot: the server's plugin decides, or the built-in one.
pub(crate) async fn clear(services: &Services, owner: &Owner, kind: Kind) -> Result<(), Error> {
    let after = |catalogue: Catalogue| catalogue.without_slot(owner.app_id, kind);
    let (mut loaded, mut seen) = (Vec::new(), AppVersions::new());
    for _ in 0..MOST_TRIES {
        let now = services.clock.now();
        check(services, owner, kind, after, (&mut loaded, &mut seen)).await?;
        let mut tx = services.db.write().await?;
        store::clear_slot(&mut tx, owner.app_id, kind).await?;
        if !owner.bump_seen(&mut tx, &seen, now).await? {
            continue;
        }
        let resource = format!("plugin-slot/{kind}");
        owner
            .record(&mut tx, "plugin_slot.cleared", resource, json!({}), now)
            .await?;
        tx.commit().await?;
        owner.refresh(services).await?;
        drop(loaded);
        return Ok(());
    }
    Err(Error::overtaken())
}

/// The version that a name stands for.
fn in_force_of(catalogue: &Catalogue, name: &str) -> Option<Release> {
    let entry = catalogue.active(name)?;
    entry.rollout.active.clone()
}

/// Checks that a plugin can be in a slot; answers whose it is, unless it is built in.
fn candidate(
    services: &Services,
    catalogue: &Catalogue,
    kind: Kind,
    name: &str,
) -> Result<Option<uuid::Uuid>, Error> {
    let refused = |code: &str, detail: String| {
        Err(Error::Invalid(vec![FieldError::new(
            "/plugin", code, detail,
        )]))
    };
    let wrong_kind = |is: Kind| {
        let detail = format!("the plugin `{name}` is a {is} plugin; name a {kind} plugin");
        refused("wrong_kind", detail)
    };
    let mut built_in = services.plugins.built_in();
    if let Some(active) = built_in.find(|active| active.plugin.description().name == name) {
        return match active.plugin.kind() {
            is if is == kind => Ok(None),
            is => wrong_kind(is),
        };
    }
    match catalogue.active(name) {
        Some(entry) if entry.kind == kind => Ok(Some(entry.app_id)),
        Some(entry) => wrong_kind(entry.kind),
        None => refused(
            "unknown_plugin",
            format!("no plugin `{name}` is active here; upload it and activate a version first"),
        ),
    }
}

/// Asks whatever would come into the slot about everything that the slot's plugin decides, in apps that were not seen as they are.
/// Adds what it loaded.
async fn check(
    services: &Services,
    owner: &Owner,
    kind: Kind,
    after: impl Fn(Catalogue) -> Catalogue,
    (loaded, seen): (&mut Vec<Arc<Plugin>>, &mut AppVersions),
) -> Result<(), Error> {
    let started = Instant::now();
    let mut tx = services.db.read().await?;
    let apps = owner.unseen(&mut tx, seen).await?;
    drop(tx);
    for app_id in apps.keys().copied() {
        let mut tx = services.db.read().await?;
        let before = store::catalogue(&mut tx, app_id).await?;
        let in_force = in_force_check::in_force(&mut tx, app_id).await?;
        drop(tx);
        let after = after(before.clone());
        let digest = |catalogue: &Catalogue| {
            let entry = catalogue.decides(kind, PluginRef::Slot)?;
            entry
                .rollout
                .active
                .as_ref()
                .map(|active| active.digest.clone())
        };
        let comes = digest(&after);
        if comes == digest(&before) {
            continue;
        }
        let plugin = match comes {
            Some(digest) => services.plugins.loaders.load(&services.db, &digest).await?,
            None => match services.plugins.built_in.get(&kind) {
                Some(active) => Arc::clone(&active.plugin),
                None => continue,
            },
        };
        let in_slot = |asked: PluginRef<'_>| asked == PluginRef::Slot;
        let entry = after.decides(kind, PluginRef::Slot);
        let asked = (entry.map_or(SERVER, |entry| entry.app_id), &plugin);
        let in_force = (app_id, &in_force);
        let errors =
            in_force_check::refusals(&services.plugins, asked, in_force, in_slot, started).await?;
        if !errors.is_empty() {
            return Err(Error::Rejected(owner.place(app_id, errors)));
        }
        loaded.push(plugin);
    }
    seen.extend(apps);
    Ok(())
}
