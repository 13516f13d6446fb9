//! Apps in memory: one immutable snapshot each, replaced whole when something in it changes.

mod loading;

use std::collections::{HashMap, HashSet};
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use axum::http::HeaderValue;
use futures_util::future::BoxFuture;
use nudge_campaigns::apps as store;
use nudge_campaigns::campaign::{ActiveCampaign, CampaignAction};
use nudge_campaigns::definitions::Enforced;
use nudge_campaigns::push::Sending;
use nudge_campaigns::settings::Settings;
use nudge_campaigns::variants::Variants;
use nudge_campaigns::webhooks::Subscription;
use nudge_db::{Db, Timestamp, Tx};
use nudge_platform::event_names::{SESSION_BEGAN, is_reserved};
use nudge_plugin_runtime::{Deciders, Plugins};
use parking_lot::{Mutex, RwLock};
use tokio::time::timeout;
use uuid::Uuid;

use super::key::Key;
use super::lookups::Lookups;
use crate::cors::Rule;
use crate::identity_keys::IdentityKey;
use crate::segments::Segments;

/// How long to wait before plugins that could not be loaded are tried again.
const TRY_AGAIN: Duration = Duration::from_mins(1);
/// How long to wait before plugins that could not be asked are asked again: what they were asked about may not run meanwhile.
const ASK_AGAIN: Duration = Duration::from_secs(5);
/// For so long what no plugin is asked about waits for the plugins.
const PROMPT: Duration = Duration::from_millis(50);
/// How often an app is read again because some app was forgotten meanwhile.
const MOST_TRIES: u32 = 3;

/// What a snapshot has of an app that no plugin is asked about: who may ask for what. It is replaced at once, also while
/// plugins are loaded.
#[derive(Debug)]
pub struct Basics {
    /// The version that this is of.
    version: i64,
    /// The app's settings.
    pub settings: Settings,
    /// The origins whose pages may read its answers.
    pub origins: Arc<[String]>,
    /// Its keys, by hash.
    pub keys: HashMap<[u8; 32], Arc<Key>>,
    /// Keys that verify identity tokens.
    pub identity_keys: Vec<IdentityKey>,
    /// Active endpoints that are told of push deliveries.
    pub webhooks: Vec<Subscription>,
}

/// An app as of one version: everything that deciding about its events takes.
#[derive(Clone, Debug)]
pub struct App {
    /// Its id.
    pub id: Uuid,
    /// The workspace that it belongs to.
    pub workspace_id: Uuid,
    /// The version that this is a snapshot of.
    pub version: i64,
    /// What no plugin is asked about; of a later version while the plugins of that one are loaded.
    basics: Arc<Basics>,
    /// The plugins that decide.
    pub deciders: Deciders,
    /// When this was read.
    read_at: Instant,
    /// Active definitions, by event name.
    pub definitions: HashMap<String, Arc<Enforced>>,
    /// Names of events whose active definition no plugin checks: it is not there, or refuses what the definition says.
    pub unchecked: HashSet<String>,
    /// Whether a plugin could not be asked about something of the app, which is left out until it is read anew.
    unasked: bool,
    /// Active campaigns.
    pub campaigns: Vec<ActiveCampaign>,
    /// Those of them that a button opens.
    pub feedback: Vec<usize>,
    /// When the last of its active surveys and in-app messages was activated.
    pub last_activation: Option<Timestamp>,
    /// Active push campaigns, as messages are made of them.
    pub push: HashMap<Uuid, Arc<Sending>>,
    /// For each event name the campaigns that read it, ascending.
    routes: HashMap<String, Vec<usize>>,
    /// The campaigns that read every event.
    everywhere: Vec<usize>,
    /// Names of events whose past a campaign asks for.
    history: HashSet<String>,
    /// Its segments.
    pub segments: Segments,
}

impl Deref for App {
    type Target = Basics;

    fn deref(&self) -> &Basics {
        &self.basics
    }
}

impl Basics {
    fn new(
        version: i64,
        settings: Settings,
        keys: HashMap<[u8; 32], Arc<Key>>,
        identity_keys: Vec<IdentityKey>,
        webhooks: Vec<Subscription>,
    ) -> Self {
        Self {
            version,
            origins: settings.allowed_origins.as_slice().into(),
            settings,
            keys,
            identity_keys,
            webhooks,
        }
    }
}

impl App {
    /// When it is read anew because it may be complete then; none: it is complete.
    fn try_again(&self) -> Option<Duration> {
        let definitions = self.definitions.values();
        let campaigns = self.campaigns.iter();
        let shown = campaigns
            .clone()
            .filter_map(|campaign| match &campaign.action {
                CampaignAction::Show(showing) => Some(&showing.variants),
                CampaignAction::Present(_) | CampaignAction::Send(_) => None,
            });
        let sent = self.push.values().map(|sending| &sending.variants);
        let segments = self.segments.all.iter().map(|segment| &segment.accepted);
        let mut accepted = campaigns
            .map(|campaign| &campaign.accepted)
            .chain(definitions.map(|enforced| &enforced.accepted))
            .chain(segments)
            .chain(shown.flat_map(Variants::accepted))
            .chain(sent.flat_map(Variants::accepted));
        if self.unasked || accepted.any(|accepted| accepted.ask_again) {
            return Some(ASK_AGAIN);
        }
        (self.deciders.incomplete || !self.unchecked.is_empty()).then_some(TRY_AGAIN)
    }

    /// The campaigns that an event of this name concerns, ascending. Costs the same whatever number of
    /// campaigns other names have.
    pub fn campaigns_for(&self, name: &str) -> impl Iterator<Item = usize> {
        let named = self.routes.get(name).map_or(&[][..], Vec::as_slice);
        named.iter().chain(&self.everywhere).copied()
    }

    /// Whether a campaign asks for the past of events of this name.
    pub fn looks_back_at(&self, name: &str) -> bool {
        self.history.contains(name)
    }

    /// Whether an event of this name concerns a campaign.
    pub fn reads(&self, campaign: usize, name: &str) -> bool {
        self.campaigns_for(name).any(|other| other == campaign)
    }

    /// The campaigns that hear of the beginning of sessions, ascending. Those that read every event have it from
    /// the event that a session begins with.
    pub fn session_campaigns(&self) -> &[usize] {
        self.routes.get(SESSION_BEGAN).map_or(&[], Vec::as_slice)
    }

    /// An active campaign's index.
    pub fn campaign(&self, id: Uuid) -> Option<usize> {
        self.campaigns.iter().position(|campaign| campaign.id == id)
    }

    /// The names of the events that can trigger something and that clients send.
    pub fn trigger_names(&self) -> Vec<&str> {
        // What the server says itself no client sends.
        let sent = |name: &&str| !is_reserved(name);
        let names = self.routes.keys().map(String::as_str);
        let mut names: Vec<&str> = names.filter(sent).collect();
        names.sort_unstable();
        names
    }
}

/// All apps that this process has met.
pub struct Registry {
    db: Db,
    plugins: Plugins,
    apps: RwLock<HashMap<Uuid, Arc<App>>>,
    keys: RwLock<HashMap<[u8; 32], Uuid>>,
    /// Keys that are not in there.
    lookups: Lookups,
    /// The origins that each app of the database allows, with the version that they are of.
    origins: RwLock<HashMap<Uuid, (i64, Vec<String>)>>,
    /// How often an app turned out to be gone; changes under the lock of `apps`.
    forgotten: AtomicU64,
    /// What is being read anew of apps because another process changed them.
    catching_up: Mutex<HashSet<(Uuid, Extent)>>,
}

/// Whose a key's hash is.
#[derive(Debug)]
pub enum Holder {
    /// An app's; it may have expired.
    Live(Arc<App>, Arc<Key>),
    /// It was revoked.
    Revoked {
        /// The app that it belonged to.
        app_id: Uuid,
        /// The key.
        key_id: Uuid,
    },
    /// Nobody's.
    Nobody,
}

/// How much of an app is read anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Extent {
    /// All of it, which takes as long as loading its plugins.
    Whole,
    /// What no plugin is asked about, while all of an earlier version is being read.
    Basics,
}

/// An app that is being read anew; until it is dropped nobody else begins with the same of it.
pub struct CatchingUp {
    registry: Arc<Registry>,
    app_id: Uuid,
    extent: Extent,
}

impl CatchingUp {
    /// Reads the app. Takes as long as loading its plugins; what was in memory decides meanwhile.
    pub async fn finish(self) {
        let read = match self.extent {
            Extent::Whole => self.registry.refresh(self.app_id).await,
            Extent::Basics => self.registry.refresh_basics(self.app_id).await,
        };
        if let Err(error) = read {
            tracing::warn!(app.id = %self.app_id, error = ?error, "a changed app can't be read and is tried again");
        }
    }
}

impl Drop for CatchingUp {
    fn drop(&mut self) {
        let held = (self.app_id, self.extent);
        self.registry.catching_up.lock().remove(&held);
    }
}

impl Registry {
    /// An empty registry.
    pub fn new(db: Db, plugins: Plugins) -> Self {
        Self {
            db,
            plugins,
            apps: RwLock::default(),
            keys: RwLock::default(),
            lookups: Lookups::default(),
            origins: RwLock::default(),
            forgotten: AtomicU64::new(0),
            catching_up: Mutex::default(),
        }
    }

    /// An app, from memory or the database.
    pub async fn get(&self, id: Uuid) -> nudge_db::Result<Option<Arc<App>>> {
        match self.known(id) {
            Some(app) => Ok(Some(app)),
            None => self.refresh(id).await,
        }
    }

    /// An app as of a version or a later one. What another process has changed is read at once.
    pub async fn as_of(&self, id: Uuid, version: i64) -> nudge_db::Result<Option<Arc<App>>> {
        match self.known(id) {
            Some(app) if app.version >= version => Ok(Some(app)),
            _ => self.refresh(id).await,
        }
    }

    /// The app and key that a key's hash stands for, as far as memory knows.
    pub fn known_key(&self, hash: &[u8; 32]) -> Option<(Arc<App>, Arc<Key>)> {
        let app_id = self.keys.read().get(hash).copied()?;
        let app = self.apps.read().get(&app_id).cloned();
        let key = app.as_ref().and_then(|app| app.keys.get(hash).cloned());
        if key.is_none() {
            // It was revoked, or its app is gone.
            self.keys.write().remove(hash);
        }
        Some((app?, key?))
    }

    /// How many keys' hashes are in memory.
    pub fn key_count(&self) -> usize {
        self.keys.read().len()
    }

    /// Whose a key's hash is, as the database knows.
    pub async fn by_key(&self, hash: &[u8; 32]) -> nudge_db::Result<Holder> {
        let Some(found) = self.lookups.find(&self.db, *hash).await? else {
            return Ok(Holder::Nobody);
        };
        let (app_id, key_id) = (found.app_id, found.id);
        if found.revoked {
            return Ok(Holder::Revoked { app_id, key_id });
        }
        let known = self.get(app_id).await?;
        let app = match known {
            // Made a moment ago. It works before the plugins of its version are loaded.
            Some(app) if !app.keys.contains_key(hash) => self.refresh_basics(app_id).await?,
            known => known,
        };
        // The rows of a deleted app are there for a while.
        let Some(app) = app else {
            return Ok(Holder::Nobody);
        };
        let Some(key) = app.keys.get(hash).cloned() else {
            return Ok(Holder::Revoked { app_id, key_id });
        };
        self.keys.write().insert(*hash, app_id);
        Ok(Holder::Live(app, key))
    }

    /// Whether any app of the server lets pages of an origin read its answers.
    pub fn allows_origin(&self, origin: &HeaderValue) -> Rule {
        let mut rule = Rule::No;
        for (_, origins) in self.origins.read().values() {
            match Rule::of(origins, origin) {
                Rule::Any => return Rule::Any,
                Rule::This => rule = Rule::This,
                Rule::No => {}
            }
        }
        rule
    }

    /// An app as the database has it now. What another process has changed, such as the version of a plugin that decides, is read
    /// at once: for what is checked or done once and can't wait until this process hears of it.
    pub async fn newest(&self, id: Uuid) -> nudge_db::Result<Option<Arc<App>>> {
        let mut tx = self.db.read().await?;
        let version = store::version(&mut tx, id).await?;
        drop(tx);
        let Some(version) = version else {
            self.forget(id);
            return Ok(None);
        };
        self.as_of(id, version).await
    }

    /// The newest form of an app that a request has met.
    pub async fn renewed(&self, app: Arc<App>) -> nudge_db::Result<Arc<App>> {
        let newest = self.newest(app.id).await?;
        Ok(newest.unwrap_or(app))
    }

    /// Reads an app anew. Every route that changes what is in a snapshot calls this after its commit.
    pub fn refresh(&self, id: Uuid) -> BoxFuture<'_, nudge_db::Result<Option<Arc<App>>>> {
        Box::pin(async move {
            let mut tries = 0;
            loop {
                let forgotten = self.forgotten.load(Ordering::Acquire);
                let mut tx = self.db.read().await?;
                let Some(row) = store::find(&mut tx, id).await? else {
                    self.forget(id);
                    return Ok(None);
                };
                let loaded = loading::load(&mut tx, &row).await?;
                drop(tx);
                let basics = Arc::clone(&loaded.basics);
                let mut finish =
                    std::pin::pin!(loaded.finish(&self.plugins, &self.db, self.known(id)));
                let mut app = if let Ok(finished) = timeout(PROMPT, &mut finish).await {
                    finished?
                } else {
                    // Plugins may take long to load: a key that was revoked does not wait for them.
                    self.heed(id, &basics);
                    finish.await?
                };
                tries += 1;
                let mut apps = self.apps.write();
                if self.forgotten.load(Ordering::Acquire) != forgotten && tries < MOST_TRIES {
                    // It may be this app that was deleted meanwhile, which must not come back.
                    continue;
                }
                if let Some(known) = apps.get(&id)
                    && known.basics.version > app.basics.version
                {
                    // Read while the plugins were loaded.
                    app.basics = Arc::clone(&known.basics);
                }
                let app = Arc::new(app);
                let newest = apps.entry(id).or_insert_with(|| Arc::clone(&app));
                let completes = newest.version == app.version && newest.try_again().is_some();
                if newest.version < app.version || completes {
                    *newest = app;
                }
                self.note_origins(
                    id,
                    newest.basics.version,
                    newest.settings.allowed_origins.clone(),
                );
                return Ok(Some(Arc::clone(newest)));
            }
        })
    }

    /// Reads of an app in memory what no plugin is asked about.
    async fn refresh_basics(&self, id: Uuid) -> nudge_db::Result<Option<Arc<App>>> {
        let mut tx = self.db.read().await?;
        let Some(row) = store::find(&mut tx, id).await? else {
            self.forget(id);
            return Ok(None);
        };
        let basics = loading::load_basics(&mut tx, &row).await?;
        drop(tx);
        Ok(self.heed(id, &Arc::new(basics)))
    }

    /// Puts what no plugin is asked about into the snapshot of an app in memory, unless what is there is newer. The snapshot's
    /// version stays: who needs a later one waits for all of it.
    fn heed(&self, id: Uuid, basics: &Arc<Basics>) -> Option<Arc<App>> {
        let mut apps = self.apps.write();
        let known = apps.get_mut(&id)?;
        if known.basics.version < basics.version {
            *known = Arc::new(App {
                basics: Arc::clone(basics),
                ..App::clone(known)
            });
            self.note_origins(id, basics.version, basics.settings.allowed_origins.clone());
        }
        Some(Arc::clone(known))
    }

    /// Notes the origins that an app allows, unless newer ones are known.
    fn note_origins(&self, id: Uuid, version: i64, allowed: Vec<String>) {
        let mut origins = self.origins.write();
        if origins.get(&id).is_none_or(|seen| seen.0 < version) {
            origins.insert(id, (version, allowed));
        }
    }

    fn known(&self, id: Uuid) -> Option<Arc<App>> {
        self.apps.read().get(&id).cloned()
    }

    /// The apps in memory that another process has changed, or whose plugins could not be loaded a while ago,
    /// each to be read anew. Those that are gone are forgotten.
    pub async fn changed(self: &Arc<Self>) -> nudge_db::Result<Vec<CatchingUp>> {
        let mut tx = self.db.read().await?;
        let versions: HashMap<Uuid, i64> = store::versions(&mut tx).await?.into_iter().collect();
        self.read_origins(&mut tx, &versions).await?;
        drop(tx);
        let known: Vec<(Uuid, Arc<App>)> = {
            let apps = self.apps.read();
            apps.iter()
                .map(|(id, app)| (*id, Arc::clone(app)))
                .collect()
        };
        let mut changed = Vec::new();
        for (app_id, app) in known {
            let Some(version) = versions.get(&app_id) else {
                self.forget(app_id);
                continue;
            };
            let is_due = |after| app.read_at.elapsed() >= after;
            let stale = app.version < *version || app.try_again().is_some_and(is_due);
            let mut catching_up = self.catching_up.lock();
            let extent = if stale && catching_up.insert((app_id, Extent::Whole)) {
                Extent::Whole
            } else if app.basics.version < *version && catching_up.insert((app_id, Extent::Basics))
            {
                Extent::Basics
            } else {
                continue;
            };
            let registry = Arc::clone(self);
            changed.push(CatchingUp {
                registry,
                app_id,
                extent,
            });
        }
        Ok(changed)
    }

    /// Reads the allowed origins of apps that changed, whether they are in memory or not.
    async fn read_origins(
        &self,
        tx: &mut Tx,
        versions: &HashMap<Uuid, i64>,
    ) -> nudge_db::Result<()> {
        let changed: Vec<Uuid> = {
            let seen = self.origins.read();
            let is_new = |id: &Uuid, version: i64| seen.get(id).is_none_or(|seen| seen.0 < version);
            let changed = versions
                .iter()
                .filter(|(id, version)| is_new(id, **version));
            changed.map(|(id, _)| *id).collect()
        };
        let settings = store::settings(tx, &changed).await?;
        for (id, version, settings) in settings {
            let allowed = settings.map(|settings| settings.allowed_origins);
            self.note_origins(id, version, allowed.unwrap_or_default());
        }
        let mut origins = self.origins.write();
        origins.retain(|id, _| versions.contains_key(id));
        Ok(())
    }

    fn forget(&self, id: Uuid) {
        let mut apps = self.apps.write();
        self.forgotten.fetch_add(1, Ordering::AcqRel);
        if apps.remove(&id).is_some() {
            self.keys.write().retain(|_, app_id| *app_id != id);
        }
        self.origins.write().remove(&id);
    }

    /// Reads every app in memory anew that was changed, after a change that concerns them all.
    pub async fn refresh_all(self: &Arc<Self>) -> nudge_db::Result<()> {
        let known: Vec<Uuid> = {
            let apps = self.apps.read();
            apps.keys().copied().collect()
        };
        for app_id in known {
            self.refresh(app_id).await?;
        }
        Ok(())
    }
}
