//! Renders deliveries and hands them to the push services.
//!
//! A delivery is claimed as the pipeline's work is, by a process that lives; one that was made here may come as claimed
//! ([`DeliveriesInHand`]). Before a message is handed over it is noted in the database that it is (`sent`): a process that ends between that
//! and the provider's answer may have sent it, so that it is never sent again, and stays `sent`. What a provider does not take now
//! is sent again, the same bytes under the same ids.
//!
//! Apps take turns, and none has more than its part of what is sent at a time.

mod batch;
mod campaign;
mod caps;
mod devices;
mod outcome;
mod plan;
pub mod replay;
mod store;
mod write;

use batch::Batch;
use nudge_db::{Db, Timestamp};
use nudge_platform::claims::release_strays;
use nudge_platform::due::{Next, Pacer, Setbacks, StrayCheck};
use nudge_records::deliveries::Urgency;
use nudge_records::deliveries::in_hand::{DeliveriesInHand, ReadyDeliveries};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use crate::services::Shared;

/// Apps that a turn looks at, at the most; the next turn goes on after them.
const APPS: usize = 100;

/// Sends the deliveries of all apps: one a process. Cheap to clone.
#[derive(Clone)]
pub struct Sender {
    services: Shared,
    /// Nobody waits for what is written here.
    db: Db,
    node: Uuid,
    tasks: TaskTracker,
    halt: CancellationToken,
    in_hand: DeliveriesInHand,
}

impl Sender {
    /// A sender for a process.
    pub fn new(services: Shared, tasks: TaskTracker, halt: CancellationToken) -> Self {
        Self {
            node: services.pipeline.node(),
            db: services.db.unhurried(),
            in_hand: services.pipeline.deliveries().clone(),
            services,
            tasks,
            halt,
        }
    }

    /// Runs until the server stops.
    pub async fn run(self) {
        let made = self.in_hand.open();
        let sent = async {
            if let Some(made) = made {
                self.send_made(made).await;
            }
        };
        tokio::join!(self.claim_all(), sent);
    }

    /// Looks for deliveries that are due, again and again.
    async fn claim_all(&self) {
        let poll_ms = self.services.config.pipeline.poll_ms;
        let what = "looking for push deliveries";
        let mut pacer = Pacer::new(&self.services.db, &self.services.clock, poll_ms, what);
        let mut after = Uuid::nil();
        let mut setbacks = Setbacks::default();
        let mut strays = StrayCheck::new(&self.services.clock);
        loop {
            let changed = pacer.look();
            let was_set_back = setbacks.look(&self.services.clock);
            if self.in_hand.take_doubt() {
                strays.doubt();
            }
            let turn = async {
                if strays.is_due() {
                    let in_hand = |id: &Uuid| self.in_hand.has(*id);
                    let db = &self.services.db;
                    release_strays(db, store::CLAIMS, self.node, in_hand).await?;
                    strays.checked();
                }
                if was_set_back {
                    self.advance(self.services.clock.now()).await?;
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
                () = self.in_hand.notified() => {}
                () = self.halt.cancelled() => return,
            }
        }
    }

    /// Sends what is made as claimed.
    async fn send_made(&self, mut made: UnboundedReceiver<ReadyDeliveries>) {
        loop {
            tokio::select! {
                Some(ready) = made.recv() => self.send(ready),
                () = self.halt.cancelled() => return,
            }
        }
    }

    /// Has deliveries looked at now that are due later than any pause of the sender's own: the clock was set back. A provider that asked
    /// for a longer one is asked once more.
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
        if !self.in_hand.is_empty() {
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
            for urgency in [Urgency::Urgent, Urgency::Rest] {
                let has_room = self.in_hand.room(app_id, urgency) > 0;
                if has_room && store::is_due(&mut tx, app_id, urgency, now).await? {
                    due.push((app_id, urgency));
                }
            }
        }
        drop(tx);
        let had_all = after.is_nil() && last.is_nil();
        *after = last;
        let mut more = false;
        for (app_id, urgency) in due {
            if self.in_hand.is_full() {
                // The app is the first one of the next turn.
                *after = before(app_id);
                return Ok(false);
            }
            if self.halt.is_cancelled() {
                return Ok(false);
            }
            let taken = self.take(app_id, urgency, now).await?;
            more |= taken.is_some_and(|left| left || !had_all);
        }
        Ok(more)
    }

    /// Claims deliveries of an app, as far as it has room; answers whether there may be more, and room for them. None: there
    /// was nothing.
    async fn take(
        &self,
        app_id: Uuid,
        urgency: Urgency,
        now: Timestamp,
    ) -> nudge_db::Result<Option<bool>> {
        let room = self.in_hand.room(app_id, urgency);
        if room == 0 {
            return Ok(None);
        }
        let mut tx = self.db.write_each().await?;
        let limit = i64::try_from(room).unwrap_or(i64::MAX);
        let claimed = store::claim(&mut tx, self.node, app_id, urgency, now, limit).await?;
        tx.commit().await?;
        if claimed.is_empty() {
            return Ok(None);
        }
        let was_full = claimed.len() >= room;
        let places = self.in_hand.take(app_id, urgency, &claimed);
        self.send(ReadyDeliveries {
            app_id,
            deliveries: claimed,
            places,
        });
        Ok(Some(was_full && self.in_hand.room(app_id, urgency) > 0))
    }

    fn send(&self, ready: ReadyDeliveries) {
        let batch = Batch::new(self, ready);
        self.tasks.spawn(async move { batch.run().await });
    }
}

/// The id before an id.
fn before(id: Uuid) -> Uuid {
    Uuid::from_u128(id.as_u128().saturating_sub(1))
}
