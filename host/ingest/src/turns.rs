//! How many groups are committed at a time.

use std::collections::HashMap;
use std::sync::Arc;

use nudge_db::Db;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// A group of fewer events waits for the other writers' small groups, and grows meanwhile.
const SMALL_GROUP: usize = 128;

/// The turns of all writers.
#[derive(Debug)]
pub(super) struct Turns {
    db: Db,
    /// Held while a small group is committed.
    small: Arc<Semaphore>,
    /// Where the database is distributed: one for each worker, so that none waits for another one that does not answer.
    of_workers: Mutex<HashMap<i32, Arc<Semaphore>>>,
    /// How many groups of a worker are committed at a time.
    of_each: usize,
}

impl Turns {
    pub(super) fn new(db: &Db, of_each: usize) -> Self {
        Self {
            db: db.clone(),
            small: Arc::new(Semaphore::new(1)),
            of_workers: Mutex::default(),
            of_each,
        }
    }

    /// Waits until a group of so many events may be committed, all of one shard where there are shards. None: it need not wait.
    pub(super) async fn wait(
        &self,
        shard: Option<usize>,
        events: usize,
    ) -> Option<OwnedSemaphorePermit> {
        let turns = match shard {
            Some(shard) => self.of_worker(shard),
            None if events < SMALL_GROUP => Arc::clone(&self.small),
            None => return None,
        };
        turns.acquire_owned().await.ok()
    }

    /// Shards are moved from worker to worker.
    fn of_worker(&self, shard: usize) -> Arc<Semaphore> {
        let worker = self.db.shards().and_then(|shards| shards.worker(shard));
        let mut of_workers = self.of_workers.lock();
        let turns = of_workers.entry(worker.unwrap_or_default());
        Arc::clone(turns.or_insert_with(|| Arc::new(Semaphore::new(self.of_each))))
    }
}
