//! Apps in memory: one immutable snapshot each, replaced whole when something in it changes.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use nudge_db::{Db, Tx};
use uuid::Uuid;

use super::key::Key;
use super::{Settings, store};
use crate::definitions::{self, Enforced};
use crate::plugins::catalogue::Catalogue;
use crate::plugins::{self, Deciders, Plugins};
use crate::surveys::{self, Running};

/// How long to wait before plugins that could not be loaded are tried again.
const TRY_AGAIN: Duration = Duration::from_mins(1);

/// An app as of one version: everything that deciding about its events takes.
#[derive(Debug)]
pub struct App {
    /// Its id.
    pub id: Uuid,
    /// The workspace that it belongs to.
    pub workspace_id: Uuid,
    /// The version that this is a snapshot of.
    pub version: i64,
    /// Its settings.
    pub settings: Settings,
    /// Its keys, by hash.
    pub keys: HashMap<[u8; 32], Key>,
    /// The plugins that decide.
    pub deciders: Deciders,
    /// When this was read.
    read_at: Instant,
    /// Active definitions, by event name.
    pub definitions: HashMap<String, Arc<Enforced>>,
    /// Active campaigns.
    pub campaigns: Vec<Running>,
    /// For each event name the campaigns that read it, ascending.
    routes: HashMap<String, Vec<usize>>,
    /// The campaigns that read every event.
    everywhere: Vec<usize>,
}

impl App {
    /// The campaigns that an event of this name concerns, ascending. Costs the same whatever number of
    /// campaigns other names have.
    pub fn campaigns_for(&self, name: &str) -> impl Iterator<Item = usize> {
        let named = self.routes.get(name).map_or(&[][..], Vec::as_slice);
        named.iter().chain(&self.everywhere).copied()
    }

    /// An active campaign's index.
    pub fn campaign(&self, id: Uuid) -> Option<usize> {
        self.campaigns.iter().position(|campaign| campaign.id == id)
    }

    /// The names of the events that can trigger something.
    pub fn trigger_names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.routes.keys().map(String::as_str).collect();
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
    /// Apps that are being read anew because another process changed them.
    catching_up: Mutex<HashSet<Uuid>>,
}

/// An app that is being read anew; until it is dropped nobody else begins with it.
pub struct CatchingUp {
    registry: Arc<Registry>,
    app_id: Uuid,
}

impl CatchingUp {
    /// Reads the app. Takes as long as loading its plugins; what was in memory serves meanwhile.
    pub async fn finish(self) {
        if let Err(error) = self.registry.refresh(self.app_id).await {
            tracing::warn!(app.id = %self.app_id, error = ?error, "a changed app can't be read and is tried again");
        }
    }
}

impl Drop for CatchingUp {
    fn drop(&mut self) {
        let mut catching_up = self.registry.catching_up.lock();
        catching_up
            .as_mut()
            .unwrap_or_else(|poisoned| poisoned.get_mut())
            .remove(&self.app_id);
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

    /// The app and key that a key's hash stands for.
    pub async fn by_key(&self, hash: &[u8; 32]) -> nudge_db::Result<Option<(Arc<App>, Key)>> {
        let known = self
            .keys
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(hash)
            .copied();
        let app_id = if let Some(app_id) = known {
            app_id
        } else {
            let mut tx = self.db.read().await?;
            let Some(app_id) = store::app_of_key(&mut tx, hash).await? else {
                return Ok(None);
            };
            self.keys
                .write()
                .unwrap_or_else(PoisonError::into_inner)
                .insert(*hash, app_id);
            app_id
        };
        let Some(app) = self.get(app_id).await? else {
            return Ok(None);
        };
        let app = if app.keys.contains_key(hash) {
            app
        } else {
            match self.refresh(app_id).await? {
                Some(app) => app,
                None => return Ok(None),
            }
        };
        let key = app.keys.get(hash).cloned();
        Ok(key.map(|key| (app, key)))
    }

    /// Reads an app anew. Every route that changes what is in a snapshot calls this after its commit.
    pub async fn refresh(&self, id: Uuid) -> nudge_db::Result<Option<Arc<App>>> {
        let mut tx = self.db.read().await?;
        let Some(row) = store::find(&mut tx, id).await? else {
            self.apps
                .write()
                .unwrap_or_else(PoisonError::into_inner)
                .remove(&id);
            return Ok(None);
        };
        let loaded = load(&mut tx, row).await?;
        drop(tx);
        let before = self.known(id);
        let app = loaded.finish(&self.plugins, &self.db, before).await?;
        let app = Arc::new(app);
        let mut apps = self.apps.write().unwrap_or_else(PoisonError::into_inner);
        let newest = apps.entry(id).or_insert_with(|| Arc::clone(&app));
        let completes = newest.version == app.version && newest.deciders.incomplete;
        if newest.version < app.version || completes {
            *newest = app;
        }
        Ok(Some(Arc::clone(newest)))
    }

    fn known(&self, id: Uuid) -> Option<Arc<App>> {
        let apps = self.apps.read().unwrap_or_else(PoisonError::into_inner);
        apps.get(&id).cloned()
    }

    /// The apps in memory that another process has changed, or whose plugins could not be loaded a while ago,
    /// each to be read anew.
    pub async fn changed(self: &Arc<Self>) -> nudge_db::Result<Vec<CatchingUp>> {
        let known: HashMap<Uuid, Arc<App>> = {
            let apps = self.apps.read().unwrap_or_else(PoisonError::into_inner);
            apps.clone()
        };
        if known.is_empty() {
            return Ok(Vec::new());
        }
        let mut tx = self.db.read().await?;
        let versions = store::versions(&mut tx).await?;
        drop(tx);
        let mut catching_up = self
            .catching_up
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let mut changed = Vec::new();
        for (app_id, version) in versions {
            let stale = known.get(&app_id).is_some_and(|app| {
                app.version < version
                    || app.deciders.incomplete && app.read_at.elapsed() >= TRY_AGAIN
            });
            if stale && catching_up.insert(app_id) {
                let registry = Arc::clone(self);
                changed.push(CatchingUp { registry, app_id });
            }
        }
        Ok(changed)
    }

    /// Reads every app in memory anew that was changed, after a change that concerns them all.
    pub async fn refresh_all(self: &Arc<Self>) -> nudge_db::Result<()> {
        let known: Vec<Uuid> = {
            let apps = self.apps.read().unwrap_or_else(PoisonError::into_inner);
            apps.keys().copied().collect()
        };
        for app_id in known {
            self.refresh(app_id).await?;
        }
        Ok(())
    }
}

/// An app as the database has it, before the plugins were asked about it.
struct Loaded {
    row: store::AppRow,
    settings: Settings,
    keys: HashMap<[u8; 32], Key>,
    catalogue: Catalogue,
    definitions: Vec<definitions::Definition>,
    surveys: Vec<surveys::Survey>,
}

async fn load(tx: &mut Tx, row: store::AppRow) -> nudge_db::Result<Loaded> {
    let settings = serde_json::from_str(&row.settings)
        .map_err(|cause| nudge_db::Error::corrupt("apps", "settings", cause))?;
    let keys = store::keys(tx, row.id).await?.into_iter().collect();
    let catalogue = plugins::store::catalogue(tx, row.id).await?;
    let definitions = definitions::store::active(tx, row.id).await?;
    let surveys = surveys::store::active(tx, row.id).await?;
    Ok(Loaded {
        row,
        settings,
        keys,
        catalogue,
        definitions,
        surveys,
    })
}

impl Loaded {
    /// Loads the plugins and asks them what each configuration reads, but for what `before` knows already. What
    /// a plugin refuses does not run; that it was accepted when it was saved makes this a defect worth an error
    /// in the log, not a reason to stop.
    async fn finish(
        self,
        plugins: &Plugins,
        db: &Db,
        before: Option<Arc<App>>,
    ) -> nudge_db::Result<App> {
        let before = before.as_deref();
        let known = before.map(|before| &before.deciders);
        let deciders = plugins::active::resolve(plugins, db, &self.catalogue, known).await?;
        let mut definitions = HashMap::new();
        for definition in self.definitions {
            let before = before.and_then(|before| before.definitions.get(&definition.name));
            let before = before.map(|before| &**before);
            match definitions::enforce(plugins, &deciders, &definition, before).await {
                Ok(enforced) => {
                    drop(definitions.insert(definition.name.clone(), Arc::new(enforced)));
                }
                Err(error) => {
                    tracing::error!(definition.id = %definition.id, error = %error, "definition is not enforced");
                }
            }
        }
        let running: HashMap<Uuid, &Running> = before
            .iter()
            .flat_map(|before| &before.campaigns)
            .map(|campaign| (campaign.id, campaign))
            .collect();
        let mut campaigns = Vec::new();
        for survey in self.surveys {
            let before = running.get(&survey.id).copied();
            match surveys::run(plugins, &deciders, &survey, before).await {
                Ok(running) => campaigns.push(running),
                Err(error) => {
                    tracing::error!(survey.id = %survey.id, error = %error, "survey does not run");
                }
            }
        }
        let mut routes: HashMap<String, Vec<usize>> = HashMap::new();
        let mut everywhere = Vec::new();
        for (index, campaign) in campaigns.iter().enumerate() {
            for name in campaign.accepted.event_names() {
                if name == "*" {
                    everywhere.push(index);
                } else {
                    routes.entry(name.clone()).or_default().push(index);
                }
            }
        }
        for indexes in routes.values_mut().chain([&mut everywhere]) {
            indexes.dedup();
        }
        Ok(App {
            id: self.row.id,
            workspace_id: self.row.workspace_id,
            version: self.row.version,
            settings: self.settings,
            keys: self.keys,
            deciders,
            read_at: Instant::now(),
            definitions,
            campaigns,
            routes,
            everywhere,
        })
    }
}
