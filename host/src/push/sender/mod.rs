//! Renders deliveries and hands them to the push services.
//!
//! A delivery is claimed as the pipeline's work is, by a process that lives. Before a message is handed over it is
//! noted in the database that it is (`sent`): a process that ends between that and the provider's answer may have
//! sent it, so that it is never sent again, and stays `sent`. What a provider does not take now is sent again, the
//! same bytes under the same ids.
//!
//! Apps take turns, and none has more than its part of what is sent at a time.

mod batch;
mod outcome;
mod plan;
pub mod replay;
mod share;
mod store;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nudge_db::Timestamp;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use super::campaigns;
use super::deliveries::Lane;
use crate::services::Shared;
use batch::Batch;
use store::Claimed;

/// Deliveries that are rendered and handed over together.
const BATCH: i64 = 64;
/// Apps that a turn looks at, at the most; the next turn goes on after them.
const APPS: usize = 100;

/// Wakes the sender: a delivery was queued. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Wake(Arc<Notify>);

impl Wake {
    /// Looks for deliveries now rather than at the next turn.
    pub fn wake(&self) {
        self.0.notify_one();
    }
}

/// What this process is sending.
#[derive(Debug, Default)]
struct InHand {
    deliveries: HashSet<Uuid>,
    batches: HashMap<Uuid, usize>,
}

/// Sends the deliveries of all apps: one a process. Cheap to clone.
#[derive(Clone)]
pub struct Sender {
    services: Shared,
    node: Uuid,
    tasks: TaskTracker,
    halt: CancellationToken,
    slots: Arc<Semaphore>,
    in_hand: Arc<Mutex<InHand>>,
}

/// A batch's place among what is being sent; it is free again when this is dropped.
struct Place {
    sender: Sender,
    app_id: Uuid,
    deliveries: Vec<Uuid>,
    _slot: OwnedSemaphorePermit,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut in_hand = self.sender.lock();
        for id in &self.deliveries {
            in_hand.deliveries.remove(id);
        }
        if let Some(batches) = in_hand.batches.get_mut(&self.app_id) {
            *batches = batches.saturating_sub(1);
            if *batches == 0 {
                in_hand.batches.remove(&self.app_id);
            }
        }
        drop(in_hand);
        self.sender.services.pipeline.deliveries().wake();
    }
}

impl Sender {
    /// A sender for a process.
    pub fn new(services: Shared, tasks: TaskTracker, halt: CancellationToken) -> Self {
        Self {
            node: services.pipeline.node(),
            services,
            tasks,
            halt,
            slots: Arc::new(Semaphore::new(share::BATCHES)),
            in_hand: Arc::default(),
        }
    }

    /// Runs until the server stops.
    pub async fn run(self) {
        let pause = Duration::from_millis(self.services.config.pipeline.poll_ms.max(1));
        let mut after = Uuid::nil();
        let mut in_doubt = false;
        loop {
            let turn = async {
                if in_doubt {
                    self.release_strays().await?;
                }
                campaigns::ending::complete_ended(&self.services).await?;
                while self.turn(&mut after).await? {}
                Ok::<_, nudge_db::Error>(())
            };
            let outcome = turn.await;
            in_doubt = outcome.is_err();
            if let Err(error) = outcome {
                tracing::warn!(error = ?error, "looking for deliveries failed and is tried again");
            }
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = self.services.pipeline.deliveries().0.notified() => {}
                () = self.halt.cancelled() => return,
            }
        }
    }

    /// Gives each app with something to send a batch; answers whether there may be more.
    async fn turn(&self, after: &mut Uuid) -> nudge_db::Result<bool> {
        let now = self.services.clock.now();
        let mut tx = self.services.db.read().await?;
        let (mut due, mut last) = (Vec::new(), *after);
        while due.len() < APPS {
            let Some(app_id) = store::next_app(&mut tx, last).await? else {
                last = Uuid::nil();
                break;
            };
            last = app_id;
            for lane in [Lane::Urgent, Lane::Rest] {
                if store::is_due(&mut tx, app_id, lane, now).await? {
                    due.push((app_id, lane));
                }
            }
        }
        drop(tx);
        *after = last;
        let mut claimed = false;
        for (app_id, lane) in due {
            let Ok(slot) = Arc::clone(&self.slots).try_acquire_owned() else {
                // The app is the first one of the next turn.
                *after = before(app_id);
                return Ok(false);
            };
            if self.halt.is_cancelled() {
                return Ok(false);
            }
            claimed |= self.take(app_id, lane, now, slot).await?;
        }
        Ok(claimed)
    }

    /// Claims deliveries of an app, if it has room for a batch; answers whether there were any.
    async fn take(
        &self,
        app_id: Uuid,
        lane: Lane,
        now: Timestamp,
        slot: OwnedSemaphorePermit,
    ) -> nudge_db::Result<bool> {
        let running = self
            .lock()
            .batches
            .get(&app_id)
            .copied()
            .unwrap_or_default();
        if !share::has_room(lane, running, self.slots.available_permits()) {
            return Ok(false);
        }
        let mut tx = self.services.db.write().await?;
        let claimed = store::claim(&mut tx, self.node, app_id, lane, now, BATCH).await?;
        tx.commit().await?;
        if claimed.is_empty() {
            return Ok(false);
        }
        let place = self.place(app_id, &claimed, slot);
        let batch = Batch::new(self, app_id, claimed);
        self.tasks.spawn(async move {
            batch.run().await;
            drop(place);
        });
        Ok(true)
    }

    fn place(&self, app_id: Uuid, claimed: &[Claimed], slot: OwnedSemaphorePermit) -> Place {
        let deliveries: Vec<Uuid> = claimed.iter().map(|delivery| delivery.id).collect();
        let mut in_hand = self.lock();
        in_hand.deliveries.extend(&deliveries);
        *in_hand.batches.entry(app_id).or_default() += 1;
        drop(in_hand);
        Place {
            sender: self.clone(),
            app_id,
            deliveries,
            _slot: slot,
        }
    }

    /// Gives up claims whose delivery is not in memory, as after a commit whose answer got lost.
    async fn release_strays(&self) -> nudge_db::Result<()> {
        let mut tx = self.services.db.write().await?;
        for id in store::claimed_by(&mut tx, self.node).await? {
            let in_hand = self.lock().deliveries.contains(&id);
            if !in_hand {
                store::release(&mut tx, self.node, id).await?;
            }
        }
        tx.commit().await
    }

    fn lock(&self) -> MutexGuard<'_, InHand> {
        self.in_hand.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The id before an id.
fn before(id: Uuid) -> Uuid {
    Uuid::from_u128(id.as_u128().saturating_sub(1))
}
