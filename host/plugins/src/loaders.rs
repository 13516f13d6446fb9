//! Loads plugins on threads of their own, each once in a process, and holds back what compiles.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Once, Weak};
use std::time::Duration;

use nudge_db::{Db, Timestamp};
use nudge_platform::clock::Clock;
use nudge_platform::due::Trouble;
use nudge_platform::turns::{Turn, Turns};
use nudge_wasm::{Engine, LoadError, Plugin};
use parking_lot::Mutex;
use tokio::sync::Semaphore;
use uuid::Uuid;

use super::catalogue::SERVER;
use super::store;
use super::workers::{Lost, Workers};
use crate::fair_queue::Share;

/// Uploads that are inspected at a time.
const INSPECTIONS: usize = 2;
/// How many of them may be one owner's: what compiles for as long as it may keeps nobody else waiting.
const INSPECTIONS_OF_ONE: usize = 1;
/// Components that are compiled at a time to be run here.
const COMPILATIONS: usize = 2;
/// Threads: for the two above, and for what is compiled already.
const THREADS: usize = INSPECTIONS + COMPILATIONS + 2;
/// Uploads whose bytes are in memory at a time.
const UPLOADS: usize = 4;
/// How many of them may be one owner's, so that its slow ones leave room for others'.
const UPLOADS_OF_ONE: usize = UPLOADS / 2;
/// How long an upload waits for its turn.
const TURN: Duration = Duration::from_secs(30);
/// How often uploads to other processes are looked for.
const LOOK: Duration = Duration::from_secs(2);
/// How much earlier than the last look an upload may say that it was: its transaction ended later, or clocks differ.
const LOOK_BACK: Duration = Duration::from_mins(1);

/// A plugin in use somewhere in the process; locked while it is loaded.
type SharedPlugin = Arc<tokio::sync::Mutex<Weak<Plugin>>>;

/// Loads plugins. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Loaders {
    engine: Engine,
    threads: Workers,
    plugins: Arc<Mutex<HashMap<String, SharedPlugin>>>,
    compilations: Arc<Semaphore>,
    inspections: Turns,
    uploads: Turns,
}

/// Why a stored version can't be run here.
#[derive(Debug, thiserror::Error)]
pub enum Unloadable {
    /// Its component is not in the database.
    #[error("the component is not there")]
    Missing,
    /// Its component is not the one that was uploaded.
    #[error("the component was changed")]
    Changed,
    /// Its component does not load.
    #[error("the component does not load")]
    Refused(#[from] LoadError),
    /// The thread that loaded it is gone.
    #[error(transparent)]
    Lost(#[from] Lost),
    /// The database.
    #[error("storage failed")]
    Storage(#[from] nudge_db::Error),
}

impl Loaders {
    /// How many calls the loaders' threads can make at a time, besides those of the workers.
    pub const SLOTS: usize = THREADS + 2;

    /// Starts the threads.
    pub fn start(engine: Engine) -> std::io::Result<Self> {
        Ok(Self {
            engine,
            threads: Workers::start("plugin-loader", THREADS, Share::ALL)?,
            plugins: Arc::default(),
            compilations: Arc::new(Semaphore::new(COMPILATIONS)),
            inspections: Turns::new(INSPECTIONS, INSPECTIONS_OF_ONE),
            uploads: Turns::new(UPLOADS, UPLOADS_OF_ONE),
        })
    }

    /// Runs something about a plugin that nobody's event waits for.
    pub async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Engine) -> T + Send + 'static,
    ) -> Result<T, Lost> {
        let engine = self.engine.clone();
        self.threads.run(SERVER, move || work(&engine)).await
    }

    /// The plugin with this digest: the one that others use already, or the component from the database.
    pub async fn load(&self, db: &Db, digest: &str) -> Result<Arc<Plugin>, Unloadable> {
        let shared = self.shared(digest);
        let mut shared = shared.lock().await;
        if let Some(plugin) = shared.upgrade() {
            return Ok(plugin);
        }
        let permit = if self.engine.is_compiled(digest) {
            None
        } else {
            Arc::clone(&self.compilations).acquire_owned().await.ok()
        };
        let mut tx = db.read().await?;
        let component = store::component(&mut tx, digest).await?;
        drop(tx);
        let component = component.ok_or(Unloadable::Missing)?;
        let load = move |engine: &Engine| {
            let loaded = engine.load(&component);
            drop(permit);
            loaded
        };
        let plugin = self.run(load).await??;
        if plugin.digest() != digest {
            return Err(Unloadable::Changed);
        }
        let plugin = Arc::new(plugin);
        *shared = Arc::downgrade(&plugin);
        Ok(plugin)
    }

    /// Logs, once in a process, what isolates the one that compiles: that depends on the kernel.
    pub async fn tell_isolation(&self) -> Result<(), Lost> {
        static TOLD: Once = Once::new();
        self.run(|engine| TOLD.call_once(|| tell(engine))).await
    }

    /// Compiles what is in force and not compiled here yet, as after an upgrade, so that the first request of an
    /// app need not wait for it; then what a roll-back would bring back.
    pub async fn warm_up(&self, db: &Db) -> nudge_db::Result<()> {
        let mut tx = db.read().await?;
        let digests = store::in_force_or_before(&mut tx).await?;
        drop(tx);
        for digest in digests {
            self.compile(db, &digest).await?;
        }
        Ok(())
    }

    /// Compiles what other processes take in, from `began` on, one after the other: it may be activated at any moment, for
    /// which no request is to wait. Where no other process writes to the database there is nothing to look for.
    pub async fn follow(&self, db: &Db, clock: &Clock, began: Timestamp) {
        if db.commits().is_some() {
            return;
        }
        let mut trouble = Trouble::new("compiling plugins that other processes took in");
        let mut looked = began;
        let mut tried = HashSet::new();
        loop {
            tokio::time::sleep(LOOK).await;
            let now = clock.now();
            let since = looked.minus(LOOK_BACK);
            let followed = self.compile_uploaded(db, since, &mut tried).await;
            if trouble.note(followed).is_some() {
                looked = now;
            }
        }
    }

    /// `tried` are components that need no further try.
    async fn compile_uploaded(
        &self,
        db: &Db,
        since: Timestamp,
        tried: &mut HashSet<String>,
    ) -> nudge_db::Result<()> {
        let mut tx = db.read().await?;
        let digests = store::uploaded_since(&mut tx, since).await?;
        drop(tx);
        tried.retain(|digest| digests.contains(digest));
        for digest in digests {
            if tried.contains(&digest) {
                continue;
            }
            self.compile(db, &digest).await?;
            tried.insert(digest);
        }
        Ok(())
    }

    /// Compiles a component for later, unless it is compiled; only the database makes it fail.
    async fn compile(&self, db: &Db, digest: &str) -> nudge_db::Result<()> {
        if self.engine.is_compiled(digest) {
            return Ok(());
        }
        match self.load(db, digest).await {
            Ok(_) => Ok(()),
            Err(Unloadable::Storage(error)) => Err(error),
            Err(error) => {
                // The app that has it says so when it is read.
                tracing::debug!(component = digest, error = %error, "not compiled");
                Ok(())
            }
        }
    }

    fn shared(&self, digest: &str) -> SharedPlugin {
        let mut plugins = self.plugins.lock();
        plugins.retain(|_, shared| {
            let in_use = |shared: &SharedPlugin| {
                shared
                    .try_lock()
                    .map_or(true, |held| held.strong_count() > 0)
            };
            Arc::strong_count(shared) > 1 || in_use(shared)
        });
        Arc::clone(plugins.entry(digest.to_owned()).or_default())
    }

    /// How large a component may be, in bytes.
    pub fn component_bytes(&self) -> usize {
        self.engine.limits().component_bytes
    }

    /// A place in memory for an upload of an owner, which is a workspace, or [`SERVER`] for the operators; none: too many
    /// are under way.
    pub async fn upload_turn(&self, owner: Uuid) -> Option<Turn> {
        self.uploads.take(owner, TURN).await
    }

    /// Leave to inspect an upload of an owner, to be held by the inspection; none: too many are under way.
    pub async fn inspection_turn(&self, owner: Uuid) -> Option<Turn> {
        self.inspections.take(owner, TURN).await
    }
}

fn tell(engine: &Engine) {
    match engine.isolation() {
        Ok(Some(isolation)) => tracing::info!(isolation, "plugins are compiled in a process apart"),
        Ok(None) => {}
        Err(error) => tracing::warn!(%error, "the plugins' compiler does not say what isolates it"),
    }
}
