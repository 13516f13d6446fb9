//! Takes jobs and runs them.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use nudge_db::Db;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use super::fairness::{self, JobInHand};
use super::kinds::Kinds;
use super::{Error, RunningJob, store};
use crate::claims::release_strays;
use crate::clock::Clock;
use crate::due::{Next, Pacer, StrayCheck};

/// The pause before a job that failed for the database is tried again; it grows with each failure.
const PAUSE: Duration = Duration::from_secs(1);
/// The longest pause of a job, whatever it waits for: one that is due later is due, as the clock was set back.
const LONGEST_PAUSE: Duration = Duration::from_mins(5);

/// Wakes the runner: a job was queued. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Wake(Arc<Notify>);

impl Wake {
    /// Looks for jobs now rather than at the next turn.
    pub fn wake(&self) {
        self.0.notify_one();
    }
}

/// What running jobs takes.
pub struct Parts {
    /// The database.
    pub db: Db,
    /// Where instants come from.
    pub clock: Clock,
    /// This process, among those that share the database.
    pub node: Uuid,
    /// Wakes the runner.
    pub wake: Wake,
    /// How often jobs that other processes queued are looked for, in milliseconds.
    pub poll_ms: u64,
    /// Every kind of job.
    pub kinds: Kinds,
}

/// Runs the jobs of all apps: one a process. Kinds that it does not know are a newer server's, and wait for that. Cheap to clone.
#[derive(Clone)]
pub struct Runner {
    parts: Arc<Parts>,
    tasks: TaskTracker,
    halt: CancellationToken,
    in_hand: Arc<Mutex<HashMap<Uuid, JobInHand>>>,
}

impl Runner {
    /// A runner for a process.
    pub fn new(parts: Parts, tasks: TaskTracker, halt: CancellationToken) -> Self {
        Self {
            parts: Arc::new(parts),
            tasks,
            halt,
            in_hand: Arc::default(),
        }
    }

    /// Runs until the server stops.
    pub async fn run(self) {
        let mut strays = StrayCheck::new(&self.parts.clock);
        let mut pacer = Pacer::new(
            &self.parts.db,
            &self.parts.clock,
            self.parts.poll_ms,
            "looking for jobs",
        );
        loop {
            let changed = pacer.look();
            let turn = async {
                if strays.is_due() {
                    let in_hand = |id: &Uuid| self.in_hand.lock().contains_key(id);
                    let (db, node) = (&self.parts.db, self.parts.node);
                    release_strays(db, store::CLAIMS, node, in_hand).await?;
                    strays.checked();
                }
                self.take().await
            };
            let outcome = turn.await;
            if outcome.is_err() {
                strays.doubt();
            }
            let next = pacer.note(outcome).unwrap_or(Next::Soon);
            tokio::select! {
                () = pacer.wait(strays.next(next, changed)) => {}
                () = self.parts.wake.0.notified() => {}
                () = self.halt.cancelled() => return,
            }
        }
    }

    /// Claims jobs as long as there is room for them; answers when to look again.
    async fn take(&self) -> nudge_db::Result<Next> {
        while !self.halt.is_cancelled() {
            let wanted = {
                let in_hand = self.in_hand.lock();
                let now = self.parts.clock.now();
                let full = fairness::full(in_hand.values());
                let mut kinds = self.parts.kinds.names();
                kinds.retain(|kind| !full.iter().any(|full| full == kind));
                store::Wanted {
                    now,
                    latest: now.plus(LONGEST_PAUSE),
                    kinds,
                    after: fairness::served(in_hand.values()),
                    // A job in hand may be free in the database: this process stood still, and another one released its claims.
                    // A second run here would have the same claim as the first, so that neither would find its claim lost.
                    in_hand: in_hand.keys().copied().collect(),
                }
            };
            let mut tx = self.parts.db.read().await?;
            if !store::anything_waits(&mut tx, &wanted).await? {
                // A kind that is full makes room when one of its jobs ends.
                let is_idle = self.in_hand.lock().is_empty();
                return Ok(if is_idle {
                    Next::At(store::next(&mut tx, self.parts.kinds.names()).await?)
                } else {
                    Next::Soon
                });
            }
            drop(tx);
            let mut tx = self.parts.db.write().await?;
            let claimed = store::claim(&mut tx, self.parts.node, &wanted).await?;
            tx.commit().await?;
            let Some(row) = claimed else { break };
            let job = row.running(self.parts.node, self.halt.clone())?;
            let in_hand = JobInHand {
                kind: job.kind.clone(),
                app_id: job.app_id,
            };
            self.in_hand.lock().insert(job.id, in_hand);
            self.tasks.spawn(self.clone().finish(job));
        }
        Ok(Next::Soon)
    }

    /// Runs a job and notes how it ended, however long the database takes to hear of it.
    async fn finish(self, mut job: RunningJob) {
        let outcome = AssertUnwindSafe(self.parts.kinds.run(&mut job))
            .catch_unwind()
            .await
            .unwrap_or_else(|_| Err(Error::Failed("a defect in the server".to_owned())));
        let mut pause = PAUSE;
        while let Err(error) = self.note(&job, &outcome).await {
            tracing::warn!(job.id = %job.id, error = ?error, "a job's end could not be noted yet");
            tokio::select! {
                () = tokio::time::sleep(pause) => pause = (pause * 2).min(LONGEST_PAUSE),
                () = self.halt.cancelled() => break,
            }
        }
        self.in_hand.lock().remove(&job.id);
        self.parts.wake.wake();
    }

    async fn note(
        &self,
        job: &RunningJob,
        outcome: &Result<serde_json::Value, Error>,
    ) -> nudge_db::Result<()> {
        let now = self.parts.clock.now();
        let end = match outcome {
            Ok(result) => store::End::Completed(result),
            Err(Error::Failed(reason)) => store::End::Failed(reason),
            Err(Error::Storage(error)) => {
                tracing::warn!(job.id = %job.id, job.kind = job.kind, error = ?error, "a job is tried again later");
                let doublings = u32::try_from(job.failures).unwrap_or(u32::MAX).min(16);
                let pause = PAUSE.saturating_mul(1 << doublings).min(LONGEST_PAUSE);
                store::End::Later(now.plus(pause))
            }
            Err(Error::Stopping) => store::End::Waits(now),
            Err(Error::Wait(pause)) => store::End::Waits(now.plus((*pause).min(LONGEST_PAUSE))),
            Err(Error::Lost) => return Ok(()),
        };
        let mut tx = self.parts.db.write().await?;
        store::end(&mut tx, job, &end, now).await?;
        tx.commit().await
    }
}
