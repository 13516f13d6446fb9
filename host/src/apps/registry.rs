//! Apps in memory: one immutable snapshot each, replaced whole when something in it changes.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use axum::http::HeaderValue;
use nudge_db::{Db, Tx};
use uuid::Uuid;

use super::key::Key;
use super::{Settings, store};
use crate::definitions::{self, Enforced};
use crate::http::cors::Rule;
use crate::identity_keys::{self, IdentityKey};
use crate::keys;
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
    pub keys: HashMap<[u8; 32], Arc<Key>>,
    /// Keys that verify identity tokens.
    pub identity_keys: Vec<IdentityKey>,
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
    /// The origins that each app of the database allows, with the version that they are of.
    origins: RwLock<HashMap<Uuid, (i64, Vec<String>)>>,
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

impl Registry {
    /// An empty registry.
    pub fn new(db: Db, plugins: Plugins) -> Self {
        Self {
            db,
            plugins,
            apps: RwLock::default(),
            keys: RwLock::default(),
            origins: RwLock::default(),
        }
    }

    /// An app, from memory or the database.
    pub async fn get(&self, id: Uuid) -> nudge_db::Result<Option<Arc<App>>> {
        let known = read(&self.apps).get(&id).cloned();
        match known {
            Some(app) => Ok(Some(app)),
            None => self.refresh(id).await,
        }
    }

    /// The app and key that a key's hash stands for, as far as memory knows.
    pub fn known_key(&self, hash: &[u8; 32]) -> Option<(Arc<App>, Arc<Key>)> {
        let app_id = read(&self.keys).get(hash).copied()?;
        let app = read(&self.apps).get(&app_id).cloned()?;
        let key = app.keys.get(hash).cloned();
        if key.is_none() {
            // It was revoked.
            write(&self.keys).remove(hash);
        }
        Some((app, key?))
    }

    /// Whose a key's hash is, as the database knows.
    pub async fn by_key(&self, hash: &[u8; 32]) -> nudge_db::Result<Holder> {
        let mut tx = self.db.read().await?;
        let Some(found) = keys::store::find_by_hash(&mut tx, hash).await? else {
            return Ok(Holder::Nobody);
        };
        drop(tx);
        let (app_id, key_id) = (found.app_id, found.id);
        if found.revoked {
            return Ok(Holder::Revoked { app_id, key_id });
        }
        let known = self.get(app_id).await?;
        let app = match known {
            Some(app) if !app.keys.contains_key(hash) => self.refresh(app_id).await?,
            known => known,
        };
        // The rows of a deleted app are there for a while.
        let Some(app) = app else {
            return Ok(Holder::Nobody);
        };
        let Some(key) = app.keys.get(hash).cloned() else {
            return Ok(Holder::Revoked { app_id, key_id });
        };
        write(&self.keys).insert(*hash, app_id);
        Ok(Holder::Live(app, key))
    }

    /// Whether any app of the server lets pages of an origin read its answers.
    pub fn allows_origin(&self, origin: &HeaderValue) -> Rule {
        let mut rule = Rule::No;
        for (_, origins) in read(&self.origins).values() {
            match Rule::of(origins, origin) {
                Rule::Any => return Rule::Any,
                Rule::This => rule = Rule::This,
                Rule::No => {}
            }
        }
        rule
    }

    /// Reads an app anew. Every route that changes what is in a snapshot calls this after its commit.
    pub async fn refresh(&self, id: Uuid) -> nudge_db::Result<Option<Arc<App>>> {
        let mut tx = self.db.read().await?;
        let Some(row) = store::find(&mut tx, id).await? else {
            self.forget(id);
            return Ok(None);
        };
        let loaded = load(&mut tx, row).await?;
        drop(tx);
        let app = Arc::new(loaded.finish(&self.plugins).await);
        let origins = (app.version, app.settings.allowed_origins.clone());
        write(&self.origins).insert(id, origins);
        let mut apps = write(&self.apps);
        let newest = apps.entry(id).or_insert_with(|| Arc::clone(&app));
        if newest.version < app.version {
            *newest = app;
        }
        Ok(Some(Arc::clone(newest)))
    }

    /// Reads those apps anew that another process has changed, and forgets those that are gone.
    pub async fn refresh_changed(&self) -> nudge_db::Result<()> {
        let mut tx = self.db.read().await?;
        let versions: HashMap<Uuid, i64> = store::versions(&mut tx).await?.into_iter().collect();
        let changed: Vec<Uuid> = {
            let seen = read(&self.origins);
            let is_new = |id: &Uuid, version: i64| seen.get(id).is_none_or(|seen| seen.0 < version);
            let changed = versions
                .iter()
                .filter(|(id, version)| is_new(id, **version));
            changed.map(|(id, _)| *id).collect()
        };
        let settings = store::settings(&mut tx, &changed).await?;
        drop(tx);
        for (id, version, settings) in settings {
            write(&self.origins).insert(id, (version, settings.allowed_origins));
        }
        let known: Vec<(Uuid, i64)> = {
            let apps = read(&self.apps);
            apps.iter().map(|(id, app)| (*id, app.version)).collect()
        };
        for (id, seen) in known {
            match versions.get(&id) {
                Some(version) if *version <= seen => {}
                Some(_) => drop(self.refresh(id).await?),
                None => self.forget(id),
            }
        }
        let gone: HashSet<Uuid> = {
            let seen = read(&self.origins);
            let gone = seen.keys().filter(|id| !versions.contains_key(id));
            gone.copied().collect()
        };
        if !gone.is_empty() {
            write(&self.origins).retain(|id, _| !gone.contains(id));
        }
        Ok(())
    }

    fn forget(&self, id: Uuid) {
        write(&self.apps).remove(&id);
        write(&self.origins).remove(&id);
    }
}

fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

fn write<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}

/// An app as the database has it, before the plugins were asked about it.
struct Loaded {
    row: store::AppRow,
    settings: Settings,
    keys: HashMap<[u8; 32], Arc<Key>>,
    identity_keys: Vec<IdentityKey>,
    definitions: Vec<definitions::Definition>,
    surveys: Vec<surveys::Survey>,
}

async fn load(tx: &mut Tx, row: store::AppRow) -> nudge_db::Result<Loaded> {
    let settings = serde_json::from_str(&row.settings)
        .map_err(|cause| nudge_db::Error::corrupt("apps", "settings", cause))?;
    let keys = keys::store::unrevoked(tx, row.id).await?;
    let keys = keys
        .into_iter()
        .map(|(hash, key)| (hash, Arc::new(key)))
        .collect();
    let identity_keys = identity_keys::store::list(tx, row.id).await?;
    let definitions = definitions::store::active(tx, row.id).await?;
    let surveys = surveys::store::active(tx, row.id).await?;
    Ok(Loaded {
        row,
        settings,
        keys,
        identity_keys,
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
            identity_keys: self.identity_keys,
            definitions,
            campaigns,
            routes,
            everywhere,
        }
    }
}
