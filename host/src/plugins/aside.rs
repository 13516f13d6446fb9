//! Calls that no event waits for: cases, decisions that are run again, backtests.

use std::sync::Arc;

use tokio::sync::Semaphore;
use uuid::Uuid;

use super::{Lost, Plugins};

/// Of so many threads one at a time may be away from the events.
const SHARE: usize = 4;

/// How many calls that no event waits for are made at a time, of so many threads.
pub(super) fn turns(threads: usize) -> Arc<Semaphore> {
    Arc::new(Semaphore::new((threads / SHARE).max(1)))
}

impl Plugins {
    /// Runs something on a plugin thread, in its turn: whatever is asked for beside the events, most threads
    /// are left to them. Long work asks for a turn now and then rather than once.
    pub async fn aside<T: Send + 'static>(
        &self,
        app_id: Uuid,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Lost> {
        tracing::trace!(app.id = %app_id, "a call beside the events");
        let _turn = self.asides.acquire().await.map_err(|_| Lost)?;
        self.workers.run(work).await
    }
}
