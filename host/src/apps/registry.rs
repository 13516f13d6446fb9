//! Apps in memory: one immutable snapshot each, replaced whole when something in it changes.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use nudge_db::{Db, Tx};
use uuid::Uuid;

use super::key::Key;
use super::{Settings, store};
use crate::definitions::{self, Enforced};
use crate::plugins::Plugins;
use crate::surveys::{self, Running};

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
}

impl Registry {
    /// An empty registry.
    pub fn new(db: Db, plugins: Plugins) -> Self {
        Self {
            db,
            plugins,
            apps: RwLock::default(),
            keys: RwLock::default(),
        }
    }

    /// An app, from memory or the database.
    pub async fn get(&self, id: Uuid) -> nudge_db::Result<Option<Arc<App>>> {
        let known = self
            .apps
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&id)
            .cloned();
        match known {
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
        let app = Arc::new(loaded.finish(&self.plugins).await);
        let mut apps = self.apps.write().unwrap_or_else(PoisonError::into_inner);
        let newest = apps.entry(id).or_insert_with(|| Arc::clone(&app));
        if newest.version < app.version {
            *newest = app;
        }
        Ok(Some(Arc::clone(newest)))
    }

    /// Reads those apps anew that another process has changed.
    pub async fn refresh_changed(&self) -> nudge_db::Result<()> {
        let known: HashMap<Uuid, i64> = {
            let apps = self.apps.read().unwrap_or_else(PoisonError::into_inner);
            apps.iter().map(|(id, app)| (*id, app.version)).collect()
        };
        if known.is_empty() {
            return Ok(());
        }
        let mut tx = self.db.read().await?;
        let versions = store::versions(&mut tx).await?;
        drop(tx);
        for (id, version) in versions {
            if known.get(&id).is_some_and(|seen| *seen < version) {
                self.refresh(id).await?;
            }
        }
        Ok(())
    }
}

/// An app as the database has it, before the plugins were asked about it.
struct Loaded {
    row: store::AppRow,
    settings: Settings,
    keys: HashMap<[u8; 32], Key>,
    definitions: Vec<definitions::Definition>,
    surveys: Vec<surveys::Survey>,
}

async fn load(tx: &mut Tx, row: store::AppRow) -> nudge_db::Result<Loaded> {
    let settings = serde_json::from_str(&row.settings)
        .map_err(|cause| nudge_db::Error::corrupt("apps", "settings", cause))?;
    let keys = store::keys(tx, row.id).await?.into_iter().collect();
    let definitions = definitions::store::active(tx, row.id).await?;
    let surveys = surveys::store::active(tx, row.id).await?;
    Ok(Loaded {
        row,
        settings,
        keys,
        definitions,
        surveys,
    })
}

impl Loaded {
    /// Asks the plugins what each configuration reads. What a plugin refuses does not run; that it was
    /// accepted when it was saved makes this a defect worth an error in the log, not a reason to stop.
    async fn finish(self, plugins: &Plugins) -> App {
        let mut definitions = HashMap::new();
        for definition in self.definitions {
            match definitions::enforce(plugins, &definition).await {
                Ok(enforced) => {
                    drop(definitions.insert(definition.name.clone(), Arc::new(enforced)));
                }
                Err(error) => {
                    tracing::error!(definition.id = %definition.id, error = %error, "definition is not enforced");
                }
            }
        }
        let mut campaigns = Vec::new();
        for survey in self.surveys {
            match surveys::run(plugins, &survey).await {
                Ok(running) => campaigns.push(running),
                Err(error) => {
                    tracing::error!(survey.id = %survey.id, error = %error, "survey does not run");
                }
            }
        }
        let mut routes: HashMap<String, Vec<usize>> = HashMap::new();
        let mut everywhere = Vec::new();
        for (index, campaign) in campaigns.iter().enumerate() {
            for name in &campaign.event_names {
                if name == "*" {
                    everywhere.push(index);
                } else {
                    routes.entry(name.clone()).or_default().push(index);
                }
            }
        }
        for indexes in routes.values_mut() {
            indexes.dedup();
        }
        App {
            id: self.row.id,
            workspace_id: self.row.workspace_id,
            version: self.row.version,
            settings: self.settings,
            keys: self.keys,
            definitions,
            campaigns,
            routes,
            everywhere,
        }
    }
}
