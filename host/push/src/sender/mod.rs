//! Renders deliveries and hands them to the push services.
//!
//! A delivery is claimed as the pipeline's work is, by a process that lives. Before a message is handed over it is
//! noted in the database that it is (`sent`): a process that ends between that and the provider's answer may have
//! sent it, so that it is never sent again, and stays `sent`. What a provider does not take now is sent again, the
//! same bytes under the same ids.
//!
//! Apps take turns, and none has more than its part of what is sent at a time.

mod batch;
mod campaign;
mod devices;
mod outcome;
mod plan;
pub mod replay;
mod share;
mod store;
mod write;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use batch::Batch;
use nudge_db::{Db, Timestamp};
use nudge_platform::claims::release_strays;
use nudge_platform::due::{Next, Pacer, Setbacks, StrayCheck};
use nudge_records::deliveries::Urgency;
use parking_lot::Mutex;
use store::Claimed;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use crate::services::Shared;

/// Apps that a turn looks at, at the most; the next turn goes on after them.
const APPS: usize = 100;

/// What this process is sending.
#[derive(Debug, Default)]
struct DeliveriesInHand {
    deliveries: HashSet<Uuid>,
    apps: HashMap<Uuid, AppInHand>,
}

/// What this process is sending of an app.
#[derive(Debug)]
struct AppInHand {
    deliveries: usize,
    /// How many more may be with providers, of either lane.
    urgent: Arc<Semaphore>,
    rest: Arc<Semaphore>,
}

impl Default for AppInHand {
    fn default() -> Self {
        let room = |lane| Arc::new(Semaphore::new(share::with_providers(lane)));
        Self {
            deliveries: 0,
            urgent: room(Urgency::Urgent),
            rest: room(Urgency::Rest),
        }
    }
}

/// Sends the deliveries of all apps: one a process. Cheap to clone.
#[derive(Clone)]
pub struct Sender {
    services: Shared,
    /// Nobody waits for what is written here.
    db: Db,
    node: Uuid,
    tasks: TaskTracker,
    halt: CancellationToken,
    in_hand: Arc<Mutex<DeliveriesInHand>>,
}

/// The places of a batch's deliveries among what is being sent: each is free once its delivery is over, all of them
/// when this is dropped.
struct Places {
    sender: Sender,
    app_id: Uuid,
    taken: Mutex<HashSet<Uuid>>,
    /// How many more of the app's lane may be with providers.
    at_providers: Arc<Semaphore>,
}

impl Places {
    /// Deliveries are over, as far as this process is concerned.
    fn free(&self, deliveries: impl IntoIterator<Item = Uuid>) {
        let mut taken = self.taken.lock();
        let count = taken.len();
        let mut in_hand = self.sender.in_hand.lock();
        for id in deliveries {
            if taken.remove(&id) {
                in_hand.remove(self.app_id, id);
            }
        }
        drop(in_hand);
        if taken.len() < count {
            self.sender.services.pipeline.deliveries().wake();
        }
    }
}

impl Drop for Places {
    fn drop(&mut self) {
        let left: Vec<Uuid> = self.taken.get_mut().iter().copied().collect();
        self.free(left);
    }
}

impl DeliveriesInHand {
    fn of_app(&self, app_id: Uuid) -> usize {
        self.apps.get(&app_id).map_or(0, |app| app.deliveries)
    }

    fn remove(&mut self, app_id: Uuid, delivery: Uuid) {
        self.deliveries.remove(&delivery);
        if let Some(app) = self.apps.get_mut(&app_id) {
            app.deliveries = app.deliveries.saturating_sub(1);
            if app.deliveries == 0 {
                self.apps.remove(&app_id);
            }
        }
    }
}

impl Sender {
    /// A sender for a process.
    pub fn new(services: Shared, tasks: TaskTracker, halt: CancellationToken) -> Self {
        Self {
            node: services.pipeline.node(),
            db: services.db.unhurried(),
            services,
            tasks,
            halt,
            in_hand: Arc::default(),
        }
    }

    /// Runs until the server stops.
    pub async fn run(self) {
        let poll_ms = self.services.config.pipeline.poll_ms;
        let what = "looking for push deliveries";
        let mut pacer = Pacer::new(&self.services.db, &self.services.clock, poll_ms, what);
        let mut after = Uuid::nil();
        let mut setbacks = Setbacks::default();
        let mut strays = StrayCheck::new(&self.services.clock);
        loop {
            let changed = pacer.look();
            let now = self.services.clock.now();
            let was_set_back = setbacks.look(now);
            let turn = async {
                if strays.is_due() {
                    let in_hand = |id: &Uuid| self.in_hand.lock().deliveries.contains(id);
                    let db = &self.services.db;
                    release_strays(db, store::CLAIMS, self.node, in_hand).await?;
                    strays.checked();
                }
                if was_set_back {
                    self.advance(now).await?;
                }
                while self.turn(&mut after).await? {}
                self.next().await
            };
            let outcome = turn.await;
            if outcome.is_err() {
                strays.doubt();
                setbacks.forget();
            }
            let next = pacer.note(outcome).unwrap_or(Next::Soon);
            tokio::select! {
                () = pacer.wait(strays.next(next, changed)) => {}
                () = self.services.pipeline.deliveries().notified() => {}
                () = self.halt.cancelled() => return,
            }
        }
    }

    /// Has deliveries sent now that are due later than any pause allows: the clock was set back.
    async fn advance(&self, now: Timestamp) -> nudge_db::Result<()> {
        let latest = now.plus(outcome::LONGEST);
        let mut app_id = Uuid::nil();
        loop {
            let mut tx = self.services.db.read().await?;
            let next = store::next_app(&mut tx, app_id).await?;
            drop(tx);
            let Some(next) = next else { return Ok(()) };
            app_id = next;
            let mut more = true;
            while more {
                let mut tx = self.db.write().await?;
                more = store::advance(&mut tx, app_id, now, latest).await? > 0;
                tx.commit().await?;
            }
        }
    }

    /// When to look again: a queue without any delivery is left alone.
    async fn next(&self) -> nudge_db::Result<Next> {
        if !self.in_hand.lock().deliveries.is_empty() {
            return Ok(Next::Soon);
        }
        let mut tx = self.services.db.read().await?;
        let waits = store::next_app(&mut tx, Uuid::nil()).await?.is_some();
        Ok(if waits { Next::Soon } else { Next::At(None) })
    }

    /// Gives each app with something to send a batch; answers whether there may be more for which there is room.
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
            for lane in [Urgency::Urgent, Urgency::Rest] {
                let has_room = self.room(app_id, lane) > 0;
                if has_room && store::is_due(&mut tx, app_id, lane, now).await? {
                    due.push((app_id, lane));
                }
            }
        }
        drop(tx);
        let had_all = after.is_nil() && last.is_nil();
        *after = last;
        let mut more = false;
        for (app_id, lane) in due {
            if share::is_full(self.in_hand.lock().deliveries.len()) {
                // The app is the first one of the next turn.
                *after = before(app_id);
                return Ok(false);
            }
            if self.halt.is_cancelled() {
                return Ok(false);
            }
            let taken = self.take(app_id, lane, now).await?;
            more |= taken.is_some_and(|left| left || !had_all);
        }
        Ok(more)
    }

    /// Claims deliveries of an app, as far as it has room; answers whether there may be more, and room for them. None: there
    /// was nothing.
    async fn take(
        &self,
        app_id: Uuid,
        lane: Urgency,
        now: Timestamp,
    ) -> nudge_db::Result<Option<bool>> {
        let room = self.room(app_id, lane);
        if room == 0 {
            return Ok(None);
        }
        let mut tx = self.db.write_each().await?;
        let limit = i64::try_from(room).unwrap_or(i64::MAX);
        let claimed = store::claim(&mut tx, self.node, app_id, lane, now, limit).await?;
        tx.commit().await?;
        if claimed.is_empty() {
            return Ok(None);
        }
        let was_full = claimed.len() >= room;
        let places = self.places(app_id, lane, &claimed);
        let batch = Batch::new(self, app_id, claimed, places);
        self.tasks.spawn(async move { batch.run().await });
        Ok(Some(was_full && self.room(app_id, lane) > 0))
    }

    /// How many deliveries of a lane of an app may be claimed now.
    fn room(&self, app_id: Uuid, lane: Urgency) -> usize {
        let in_hand = self.in_hand.lock();
        share::room(lane, in_hand.of_app(app_id), in_hand.deliveries.len())
    }

    fn places(&self, app_id: Uuid, lane: Urgency, claimed: &[Claimed]) -> Places {
        let taken: HashSet<Uuid> = claimed.iter().map(|delivery| delivery.id).collect();
        let mut in_hand = self.in_hand.lock();
        in_hand.deliveries.extend(&taken);
        let app = in_hand.apps.entry(app_id).or_default();
        app.deliveries += taken.len();
        let at_providers = Arc::clone(match lane {
            Urgency::Urgent => &app.urgent,
            Urgency::Rest => &app.rest,
        });
        drop(in_hand);
        Places {
            sender: self.clone(),
            app_id,
            taken: Mutex::new(taken),
            at_providers,
        }
    }
}

/// The id before an id.
fn before(id: Uuid) -> Uuid {
    Uuid::from_u128(id.as_u128().saturating_sub(1))
}
