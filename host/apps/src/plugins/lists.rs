//! What an app or the server has of plugins, as the API shows it.

use nudge_campaigns::settings::Settings;
use nudge_db::Tx;
use nudge_http::ApiError;
use nudge_http::cursor::Cursors;
use nudge_http::page::{Page, PageQuery};
use nudge_plugin_runtime::active::Active;
use nudge_plugin_runtime::catalogue::{Catalogue, Entry, SERVER};
use nudge_plugin_runtime::store;
use nudge_wasm::Kind;
use uuid::Uuid;

use super::changes::Error;
use super::statistics::views::health;
use super::views::{PluginDetailView, PluginView, SlotView, VersionView};
use crate::services::Services;

/// The plugins that an app sees, by name; for [`SERVER`], the server's and the built-in ones. Of two with the
/// same name there is the app's own.
pub(super) async fn plugins(
    services: &Services,
    app_id: Uuid,
    query: &PageQuery,
) -> Result<Page<PluginView>, ApiError> {
    let limit = query.limit()?;
    let now = services.clock.now();
    let list = format!("plugins {app_id}");
    let cursors = Cursors::new(&services.secrets, list, now);
    let after: Option<String> = cursors.open(query.cursor.as_deref())?;
    let mut tx = services.db.read().await?;
    let catalogue = store::catalogue(&mut tx, app_id).await?;
    drop(tx);
    let shown = |entry: &&Entry| {
        let found = catalogue.find(&entry.name);
        found.is_some_and(|found| found.app_id == entry.app_id)
    };
    let stored = catalogue.entries.iter().filter(shown);
    let mut views: Vec<PluginView> = stored
        .map(|entry| PluginView::stored(entry, in_slot(&catalogue, entry)))
        .collect();
    let built_in = services.plugins.built_in();
    views.extend(
        built_in.map(|active| PluginView::built_in(active, built_in_decides(&catalogue, active))),
    );
    views.sort_by(|one, other| one.name.cmp(&other.name));
    views.retain(|view| after.as_ref().is_none_or(|after| view.name > *after));
    Ok(cursors.page(views, limit, |view| view.name.clone()))
}

fn in_slot(catalogue: &Catalogue, entry: &Entry) -> bool {
    let decides = catalogue.decides(entry.kind, nudge_plugin_runtime::PluginRef::Slot);
    decides.is_some_and(|decides| (decides.app_id, &decides.name) == (entry.app_id, &entry.name))
}

fn built_in_decides(catalogue: &Catalogue, active: &Active) -> bool {
    let kind = active.plugin.kind();
    catalogue
        .decides(kind, nudge_plugin_runtime::PluginRef::Slot)
        .is_none()
}

/// Whose a plugin is that an app sees under a name; [`SERVER`] for built-in ones.
pub(super) async fn owner_of(
    services: &Services,
    tx: &mut Tx,
    app_id: Uuid,
    name: &str,
) -> Result<Uuid, Error> {
    if built_in(services, name).is_some() {
        return Ok(SERVER);
    }
    let catalogue = store::catalogue(tx, app_id).await?;
    let entry = catalogue.find(name).ok_or_else(|| Error::no_plugin(name))?;
    Ok(entry.app_id)
}

/// A plugin with its versions.
pub(super) async fn plugin(
    services: &Services,
    app_id: Uuid,
    name: &str,
) -> Result<PluginDetailView, Error> {
    let now = services.clock.now();
    let settings = match services.apps.get(app_id).await? {
        Some(app) => app.settings.plugins.clone(),
        None => Settings::default().plugins,
    };
    let most = settings.max_failure_rate;
    let mut tx = services.db.read().await?;
    let catalogue = store::catalogue(&mut tx, app_id).await?;
    if let Some(active) = built_in(services, name) {
        let view = PluginView::built_in(active, built_in_decides(&catalogue, active));
        let version = Some(&*active.plugin.description().version);
        let health = health(&mut tx, app_id, SERVER, name, version, most, now).await?;
        return Ok(view.with(vec![VersionView::built_in(active)], health, None));
    }
    let entry = catalogue.find(name).ok_or_else(|| Error::no_plugin(name))?;
    let versions = store::versions(&mut tx, entry.app_id, name).await?;
    let active = entry.rollout.active.as_ref();
    let version = active.map(|release| &*release.version);
    let health = health(&mut tx, app_id, entry.app_id, name, version, most, now).await?;
    let versions = versions
        .into_iter()
        .map(|version| VersionView::stored(name, entry.kind, version));
    let last_rollback = entry.last_rollback.clone();
    let view = PluginView::stored(entry, in_slot(&catalogue, entry));
    Ok(view.with(versions.collect(), health, last_rollback))
}

/// A version of a plugin.
pub(super) async fn version(
    services: &Services,
    app_id: Uuid,
    name: &str,
    version: &str,
) -> Result<VersionView, Error> {
    if let Some(active) = built_in(services, name) {
        let same = active.plugin.description().version == version;
        return Some(VersionView::built_in(active))
            .filter(|_| same)
            .ok_or_else(|| Error::no_version(name, version));
    }
    let mut tx = services.db.read().await?;
    let catalogue = store::catalogue(&mut tx, app_id).await?;
    let entry = catalogue.find(name).ok_or_else(|| Error::no_plugin(name))?;
    let found = store::find_version(&mut tx, entry.app_id, name, version).await?;
    let found = found.ok_or_else(|| Error::no_version(name, version))?;
    Ok(VersionView::stored(name, entry.kind, found))
}

fn built_in<'s>(services: &'s Services, name: &str) -> Option<&'s Active> {
    let mut built_in = services.plugins.built_in();
    let found = built_in.find(|active| active.plugin.description().name == name);
    found.map(|active| &**active)
}

/// All slots and what is in them.
pub(super) async fn slots(services: &Services, app_id: Uuid) -> Result<Vec<SlotView>, Error> {
    let mut slots = Vec::new();
    for kind in Kind::ALL {
        slots.push(slot(services, app_id, kind).await?);
    }
    Ok(slots)
}

/// A slot and what is in it.
pub(super) async fn slot(services: &Services, app_id: Uuid, kind: Kind) -> Result<SlotView, Error> {
    let mut tx = services.db.read().await?;
    let catalogue = store::catalogue(&mut tx, app_id).await?;
    if let Some(entry) = catalogue.decides(kind, nudge_plugin_runtime::PluginRef::Slot) {
        return SlotView::stored(entry).ok_or_else(|| Error::no_plugin(&entry.name));
    }
    let mut built_in = services.plugins.built_in();
    let active = built_in.find(|active| active.plugin.kind() == kind);
    active
        .map(|active| SlotView::built_in(active))
        .ok_or_else(|| Error::no_plugin(kind.as_str()))
}
