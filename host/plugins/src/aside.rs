//! Calls that no event waits for: cases, decisions that are run again, backtests.

use std::sync::Arc;

use nudge_db::Db;
use nudge_wasm::Plugin;
use tokio::sync::Semaphore;
use uuid::Uuid;

use super::{Lost, Plugins, Unloadable};

/// Of so many threads one at a time may be away from the events.
const SHARE: usize = 4;

/// How many calls that no event waits for are made at a time, of so many threads.
pub(super) fn turns(threads: usize) -> Arc<Semaphore> {
    Arc::new(Semaphore::new((threads / SHARE).max(1)))
}

impl Plugins {
    /// The version with this digest: a built-in one, or a component that is stored.
    pub async fn by_digest(&self, db: &Db, digest: &str) -> Result<Arc<Plugin>, Unloadable> {
        let mut built_in = self.built_in();
        if let Some(active) = built_in.find(|active| active.plugin.digest() == digest) {
            return Ok(Arc::clone(&active.plugin));
        }
        self.loaders.load(db, digest).await
    }

    /// Runs something on a plugin thread, in its turn: whatever is asked for beside the events, most threads
    /// are left to them. Long work asks for a turn now and then rather than once.
    pub async fn aside<T: Send + 'static>(
        &self,
        app_id: Uuid,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Lost> {
        let _turn = self.asides.acquire().await.map_err(|_| Lost)?;
        self.workers.run(app_id, work).await
    }
}
