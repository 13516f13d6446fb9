//! Which plugin decides in an app, loaded and ready: what a snapshot holds of plugins.

use std::collections::HashMap;
use std::sync::Arc;
use strum::IntoStaticStr;

use nudge_db::{Db, Timestamp};
use nudge_wasm::{Kind, Lowered, Plugin};
use uuid::Uuid;

use super::Plugins;
use super::catalogue::{Catalogue, Entry, PluginRef, SERVER};
use super::loaders::Unloadable;
use super::rollout::{self, Release, Strategy};
use super::store;
use crate::rollout_period::RolloutPeriod;

/// Where a plugin comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Origin {
    /// The app's own.
    App,
    /// The server's: operators look after it.
    Server,
    /// A part of the server.
    #[strum(serialize = "builtin")]
    BuiltIn,
}

impl Origin {
    /// The origin of a plugin with this `app_id`.
    pub fn of(app_id: Uuid) -> Self {
        if app_id == SERVER {
            Self::Server
        } else {
            Self::App
        }
    }

    /// The API's `scope`.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// A plugin whose active version is loaded, and the version that is tried, if there is one.
#[derive(Debug)]
pub struct Active {
    /// Where it comes from.
    pub origin: Origin,
    /// The active version; it knows its name and number.
    pub plugin: Arc<Plugin>,
    /// What its calls are counted under.
    pub period: Arc<RolloutPeriod>,
    /// The version that is tried.
    pub candidate: Option<ShadowCandidate>,
    /// The version in whose place a roll-back put the active one: it knows what is read under configurations that only it takes.
    pub rolled_back: Option<Arc<Plugin>>,
}

/// A loaded candidate.
#[derive(Clone, Debug)]
pub struct ShadowCandidate {
    /// How it is tried.
    pub strategy: Strategy,
    /// The version.
    pub plugin: Arc<Plugin>,
    /// What its calls are counted under.
    pub period: Arc<RolloutPeriod>,
}

impl Active {
    /// The same, whose versions may use no more than this either.
    fn within(&self, lowered: &Lowered) -> Self {
        let within = |plugin: &Plugin| Arc::new(plugin.within(lowered));
        let candidate = self.candidate.as_ref().map(|trial| ShadowCandidate {
            strategy: trial.strategy,
            plugin: within(&trial.plugin),
            period: Arc::clone(&trial.period),
        });
        Self {
            origin: self.origin,
            plugin: within(&self.plugin),
            period: Arc::clone(&self.period),
            candidate,
            rolled_back: self.rolled_back.clone(),
        }
    }

    /// The same, in whose active version's place is one that decides nothing.
    fn replaced(&self, plugin: Plugin, period: RolloutPeriod) -> Self {
        Self {
            origin: self.origin,
            plugin: Arc::new(plugin),
            period: Arc::new(period),
            candidate: self.candidate.clone(),
            rolled_back: self.rolled_back.clone(),
        }
    }

    /// The same under a configuration that the active version refuses: it fails on all that it is asked, which is held against
    /// no role of it. `what` is wrong with the configuration.
    pub(crate) fn refusing(&self, what: &str) -> Self {
        self.replaced(self.plugin.refusing(what), self.period.without_role())
    }

    /// The same in the place of a version that a roll-back took out of a slot.
    fn in_place_of(&self, rolled_back: &Arc<Plugin>) -> Self {
        Self {
            rolled_back: Some(Arc::clone(rolled_back)),
            ..self.replaced((*self.plugin).clone(), (*self.period).clone())
        }
    }

    /// The candidate, where it is the one that decides about a subject.
    pub fn canary_for(&self, subject: Uuid) -> Option<&Arc<Plugin>> {
        let trial = self.candidate.as_ref()?;
        match trial.strategy {
            Strategy::Shadow => None,
            Strategy::Canary(percent) => {
                let name = &trial.plugin.description().name;
                rollout::in_canary(name, subject, percent).then_some(&trial.plugin)
            }
        }
    }

    /// What the calls of a version are counted under: the candidate or the active one.
    pub fn period_of(&self, plugin: &Plugin) -> &Arc<RolloutPeriod> {
        match &self.candidate {
            Some(trial) if trial.plugin.digest() == plugin.digest() => &trial.period,
            _ => &self.period,
        }
    }

    /// Whether both run the same bytes in the same way.
    pub fn decides_like(&self, other: &Self) -> bool {
        let trial = |active: &Self| {
            let trial = active.candidate.as_ref()?;
            Some((trial.strategy, trial.plugin.digest().to_owned()))
        };
        self.plugin.digest() == other.plugin.digest()
            && self.plugin.is_withdrawn() == other.plugin.is_withdrawn()
            && trial(self) == trial(other)
    }
}

/// The plugins that decide in an app.
#[derive(Clone, Debug)]
pub struct Deciders {
    /// The app.
    pub app_id: Uuid,
    named: HashMap<String, Arc<Active>>,
    slots: HashMap<Kind, Arc<Active>>,
    built_in: Arc<HashMap<Kind, Arc<Active>>>,
    /// Whether something could not be loaded, so that another version runs in its place or none.
    pub incomplete: bool,
}

impl Deciders {
    /// The plugin that is asked for, if it is of this kind and has an active version.
    pub fn find(&self, kind: Kind, asked: PluginRef<'_>) -> Option<&Arc<Active>> {
        let found = match asked {
            PluginRef::Slot => self.slots.get(&kind).or_else(|| self.built_in.get(&kind)),
            PluginRef::Named(name) => self.named.get(name),
        };
        found.filter(|active| active.plugin.kind() == kind)
    }

    /// The plugin of a kind that is a part of the server.
    pub fn built_in(&self, kind: Kind) -> Option<&Arc<Active>> {
        self.built_in.get(&kind)
    }

    /// The plugin of a name, whatever its kind.
    pub fn named(&self, name: &str) -> Option<&Arc<Active>> {
        self.named.get(name)
    }
}

/// Loads what an app's plugins are, with what the app lets them use. What can't be loaded leaves the version of `before` in force, or the one
/// that was active before it; only the database makes it fail.
pub async fn resolve(
    plugins: &Plugins,
    db: &Db,
    (app_id, catalogue): (Uuid, &Catalogue),
    before: Option<&Deciders>,
    lowered: &Lowered,
) -> nudge_db::Result<Deciders> {
    let limited = |active: &Arc<Active>| {
        if *lowered == Lowered::default() {
            Arc::clone(active)
        } else {
            Arc::new(active.within(lowered))
        }
    };
    let built_in = plugins.built_in.iter();
    let built_in = built_in.map(|(kind, active)| (*kind, limited(active)));
    let built_in = Arc::new(built_in.collect::<HashMap<_, _>>());
    let mut deciders = Deciders {
        app_id,
        named: HashMap::new(),
        slots: HashMap::new(),
        built_in: Arc::clone(&built_in),
        incomplete: false,
    };
    for active in built_in.values() {
        let name = active.plugin.description().name.clone();
        deciders.named.insert(name, Arc::clone(active));
    }
    for entry in &catalogue.entries {
        let stands_for = catalogue.active(&entry.name);
        if stands_for.is_none_or(|found| found.app_id != entry.app_id) {
            continue;
        }
        let older = before.and_then(|before| before.named(&entry.name));
        let (active, complete) = load(plugins, db, entry, older).await?;
        deciders.incomplete |= !complete;
        if let Some(active) = active {
            // What is left in force from before has the limits of before.
            let active = Arc::new(active.within(lowered));
            deciders.named.insert(entry.name.clone(), active);
        }
    }
    for entry in &catalogue.entries {
        if catalogue.active(&entry.name).is_some() || deciders.named.contains_key(&entry.name) {
            continue;
        }
        if let Some(active) = withdrawn(plugins, db, entry).await? {
            deciders.named.insert(entry.name.clone(), Arc::new(active));
        }
    }
    fill_slots(&mut deciders, catalogue);
    Ok(deciders)
}

/// Puts plugins into the slots that people chose them for. Where a roll-back left nothing active of one, the built-in plugin
/// decides in its place.
fn fill_slots(deciders: &mut Deciders, catalogue: &Catalogue) {
    for kind in Kind::ALL {
        let Some(slot) = catalogue.slot(kind) else {
            continue;
        };
        let found = deciders.find(kind, PluginRef::Named(&slot.plugin)).cloned();
        if let Some(active) = found.as_ref().filter(|it| !it.plugin.is_withdrawn()) {
            deciders.slots.insert(kind, Arc::clone(active));
        } else {
            if let (Some(withdrawn), Some(built_in)) = (found, deciders.built_in.get(&kind)) {
                let in_its_place = built_in.in_place_of(&withdrawn.plugin);
                deciders.slots.insert(kind, Arc::new(in_its_place));
            }
            tracing::error!(
                app.id = %deciders.app_id,
                plugin.name = slot.plugin,
                plugin.kind = %kind,
                "the plugin of a slot can't run; the built-in one does"
            );
        }
    }
}

/// Loads a plugin; answers too whether everything of it could be loaded.
async fn load(
    plugins: &Plugins,
    db: &Db,
    entry: &Entry,
    older: Option<&Arc<Active>>,
) -> nudge_db::Result<(Option<Arc<Active>>, bool)> {
    let Some(release) = &entry.rollout.active else {
        return Ok((None, true));
    };
    let Some(plugin) = load_release(plugins, db, entry, release).await? else {
        let same_kind = |older: &&Arc<Active>| older.plugin.kind() == entry.kind;
        if let Some(older) = older.filter(same_kind) {
            return Ok((Some(Arc::clone(older)), false));
        }
        let Some(previous) = &entry.rollout.previous else {
            return Ok((None, false));
        };
        let previous = load_release(plugins, db, entry, previous).await?;
        let active = previous.map(|plugin| {
            Arc::new(Active {
                origin: Origin::of(entry.app_id),
                period: active_period(entry, &plugin),
                plugin,
                candidate: None,
                rolled_back: None,
            })
        });
        return Ok((active, false));
    };
    let mut complete = true;
    let mut candidate = None;
    if let Some(tried) = &entry.rollout.candidate {
        let loaded = load_release(plugins, db, entry, &tried.release).await?;
        complete = loaded.is_some();
        candidate = loaded.map(|plugin| ShadowCandidate {
            strategy: tried.strategy,
            period: period(entry, &plugin, tried.since),
            plugin,
        });
    }
    let active = Active {
        origin: Origin::of(entry.app_id),
        period: active_period(entry, &plugin),
        plugin,
        candidate,
        rolled_back: rolled_back(plugins, db, entry).await?,
    };
    Ok((Some(Arc::new(active)), complete))
}

/// The version of a plugin that was rolled back by the server with none before it. What names the plugin has nothing else to
/// decide, and must not be passed over in silence: it fails, event by event, and each can be replayed.
async fn withdrawn(plugins: &Plugins, db: &Db, entry: &Entry) -> nudge_db::Result<Option<Active>> {
    let last = entry.last_rollback.as_ref();
    let last = last.filter(|last| last.automatic && last.active_version.is_none());
    let Some(last) = last else { return Ok(None) };
    let plugin = load_version(plugins, db, entry, &last.version).await?;
    Ok(plugin.map(|plugin| Active {
        origin: Origin::of(entry.app_id),
        period: period(entry, &plugin, entry.updated_at),
        plugin: Arc::new(plugin.withdrawn()),
        candidate: None,
        rolled_back: None,
    }))
}

/// The version that was active until a roll-back brought the one that is.
async fn rolled_back(
    plugins: &Plugins,
    db: &Db,
    entry: &Entry,
) -> nudge_db::Result<Option<Arc<Plugin>>> {
    match entry.rolled_back_from() {
        Some(version) => load_version(plugins, db, entry, version).await,
        None => Ok(None),
    }
}

/// Loads a version, if it is there still.
async fn load_version(
    plugins: &Plugins,
    db: &Db,
    entry: &Entry,
    version: &str,
) -> nudge_db::Result<Option<Arc<Plugin>>> {
    let mut tx = db.read().await?;
    let version = store::find_version(&mut tx, entry.app_id, &entry.name, version).await?;
    drop(tx);
    match version {
        Some(version) => load_release(plugins, db, entry, &version.release).await,
        None => Ok(None),
    }
}

fn active_period(entry: &Entry, plugin: &Plugin) -> Arc<RolloutPeriod> {
    let since = entry.rollout.activated_at.unwrap_or(entry.updated_at);
    period(entry, plugin, since)
}

fn period(entry: &Entry, plugin: &Plugin, since: Timestamp) -> Arc<RolloutPeriod> {
    Arc::new(RolloutPeriod {
        owner: entry.app_id,
        name: entry.name.clone(),
        version: plugin.description().version.clone(),
        since,
    })
}

async fn load_release(
    plugins: &Plugins,
    db: &Db,
    entry: &Entry,
    release: &Release,
) -> nudge_db::Result<Option<Arc<Plugin>>> {
    match plugins.loaders.load(db, &release.digest).await {
        Ok(plugin) => Ok(Some(plugin)),
        Err(Unloadable::Storage(error)) => Err(error),
        Err(error) => {
            let error: &dyn std::error::Error = &error;
            let cause = error.source().map(ToString::to_string);
            tracing::error!(
                plugin.name = entry.name,
                plugin.version = release.version,
                app.id = %entry.app_id,
                error = %error,
                cause,
                "a version can't be loaded; another stays in force"
            );
            Ok(None)
        }
    }
}
