//! Calls that no event waits for: cases, decisions that are run again, backtests.

use std::sync::Arc;

use nudge_db::Db;
use nudge_wasm::Plugin;
use tokio::sync::Semaphore;
use uuid::Uuid;

use super::{Lost, Plugins, Unloadable, Workers};

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
        in_turn(&self.asides, &self.workers, app_id, work).await
    }
}

async fn in_turn<T: Send + 'static>(
    turns: &Arc<Semaphore>,
    workers: &Workers,
    app_id: Uuid,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Lost> {
    let turn = Arc::clone(turns).acquire_owned().await;
    let turn = turn.map_err(|_| Lost)?;
    // The work has the turn: it runs also when nobody waits for it any longer.
    let work = move || {
        let done = work();
        drop(turn);
        done
    };
    workers.run(app_id, work).await
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use tokio::task::JoinSet;

    use super::*;
    use crate::Share;

    #[tokio::test]
    async fn work_that_nobody_waits_for_any_longer_keeps_its_turn_until_it_is_over() {
        let workers = Workers::start("test", 4, Share::ALL).unwrap();
        let turns = turns(4);
        let (ready, running) = mpsc::channel();
        let (end, ended) = mpsc::channel::<()>();
        let mut asked = JoinSet::new();
        asked.spawn({
            let (turns, workers) = (Arc::clone(&turns), workers.clone());
            async move {
                let work = move || {
                    ready.send(()).unwrap();
                    ended.recv()
                };
                in_turn(&turns, &workers, Uuid::nil(), work).await
            }
        });
        tokio::task::yield_now().await;
        running.recv().unwrap();
        asked.shutdown().await;
        assert_eq!(turns.available_permits(), 0);
        end.send(()).unwrap();
        let next = in_turn(&turns, &workers, Uuid::nil(), || 7);
        let next = tokio::time::timeout(Duration::from_mins(1), next).await;
        assert_eq!(next.unwrap().unwrap(), 7);
    }
}
