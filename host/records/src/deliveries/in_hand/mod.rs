//! Which deliveries this process is sending, and how it comes by them.
//!
//! A delivery is claimed by the process that sends it. One that is made here while there is room for it is made as
//! claimed: after the commit it goes to the sender as it is ([`DeliveriesInHand::reserve`]). All others the sender claims from the database.

mod share;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use nudge_db::Timestamp;
use nudge_platform::handover::Handover;
use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tokio::sync::futures::Notified;
use tokio::sync::mpsc::UnboundedReceiver;
use uuid::Uuid;

use super::store::written;
use super::{NewDelivery, Status, Urgency};
pub use share::HANDED_TOGETHER;

/// The deliveries that a process is sending. Cheap to clone.
#[derive(Clone, Debug)]
pub struct DeliveriesInHand {
    node: Uuid,
    held: Arc<Mutex<HeldDeliveries>>,
    handover: Handover<ReadyDeliveries>,
}

#[derive(Debug, Default)]
struct HeldDeliveries {
    /// Whether anybody sends.
    is_open: bool,
    deliveries: HashSet<Uuid>,
    apps: HashMap<Uuid, App>,
}

/// What is being sent of an app.
#[derive(Debug)]
struct App {
    deliveries: usize,
    /// How many more may be with providers, of either urgency.
    urgent: Arc<Semaphore>,
    rest: Arc<Semaphore>,
}

impl Default for App {
    fn default() -> Self {
        let room = |urgency| Arc::new(Semaphore::new(share::with_providers(urgency)));
        Self {
            deliveries: 0,
            urgent: room(Urgency::Urgent),
            rest: room(Urgency::Rest),
        }
    }
}

/// The places of some deliveries of an app among those in hand: each is free once its delivery is over, all of them
/// when this is dropped.
#[derive(Debug)]
pub struct Places {
    of: DeliveriesInHand,
    app_id: Uuid,
    taken: Mutex<HashSet<Uuid>>,
    /// How many more of the app's deliveries of this urgency may be with providers.
    pub at_providers: Arc<Semaphore>,
}

/// Deliveries that were made as claimed.
#[derive(Debug)]
pub struct ReadyDeliveries {
    /// The app.
    pub app_id: Uuid,
    /// The deliveries, all of one urgency.
    pub deliveries: Vec<ClaimedDelivery>,
    /// Their places.
    pub places: Places,
}

/// A delivery that this process has claimed.
#[derive(Clone, Debug, nudge_db::FromRow)]
#[expect(missing_docs, reason = "the columns of the table")]
pub struct ClaimedDelivery {
    pub id: Uuid,
    pub campaign_id: Uuid,
    pub campaign_version: i64,
    pub variant_id: Uuid,
    pub subject_id: Uuid,
    pub alias_number: Option<i64>,
    pub event_seq: Option<i64>,
    pub data: Option<String>,
    pub test: bool,
    pub status: String,
    pub content: Option<String>,
    pub devices: Option<String>,
    pub platform: Option<String>,
    pub attempts: i64,
    pub urgency: i64,
    pub created_at: Timestamp,
    pub delivered_at: Option<Timestamp>,
}

impl DeliveriesInHand {
    /// Nothing is in hand of a process. `node` is the process.
    pub fn new(node: Uuid) -> Self {
        Self {
            node,
            held: Arc::default(),
            handover: Handover::default(),
        }
    }

    /// What is made as claimed comes here from now on. None: it goes to somebody else already.
    pub fn open(&self) -> Option<UnboundedReceiver<ReadyDeliveries>> {
        let made = self.handover.open()?;
        self.held.lock().is_open = true;
        Some(made)
    }

    /// Wakes the sender: a delivery is to be claimed.
    pub fn wake(&self) {
        self.handover.wake();
    }

    /// Resolves at the next wake.
    pub fn notified(&self) -> Notified<'_> {
        self.handover.notified()
    }

    /// Whether, since this was asked last, deliveries may have been made as claimed of which nobody here knows.
    pub fn take_doubt(&self) -> bool {
        self.handover.take_doubt()
    }

    /// Whether a delivery is in hand.
    pub fn has(&self, delivery: Uuid) -> bool {
        self.held.lock().deliveries.contains(&delivery)
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.held.lock().deliveries.is_empty()
    }

    /// Whether there is no room for anybody's.
    pub fn is_full(&self) -> bool {
        share::is_full(self.held.lock().deliveries.len())
    }

    /// How many deliveries of an urgency of an app there is room for.
    pub fn room(&self, app_id: Uuid, urgency: Urgency) -> usize {
        self.held.lock().room(app_id, urgency)
    }

    /// How many deliveries of an app are in hand.
    pub fn of_app(&self, app_id: Uuid) -> usize {
        self.held.lock().of_app(app_id)
    }

    /// Takes places for deliveries of an urgency of an app.
    pub fn take(&self, app_id: Uuid, urgency: Urgency, deliveries: &[ClaimedDelivery]) -> Places {
        let taken: HashSet<Uuid> = deliveries.iter().map(|delivery| delivery.id).collect();
        let at_providers = self.held.lock().add(app_id, urgency, &taken);
        Places {
            of: self.clone(),
            app_id,
            taken: Mutex::new(taken),
            at_providers,
        }
    }

    /// Has deliveries of an app that are about to be made be made as claimed, as far as there is room. `now` is when they are
    /// made.
    pub fn reserve(
        &self,
        app_id: Uuid,
        deliveries: &mut [NewDelivery],
        now: Timestamp,
    ) -> ReservedDeliveries {
        let mut reserved = ReservedDeliveries {
            of: self.clone(),
            ready: Vec::new(),
            are_some_left: false,
        };
        for urgency in [Urgency::Urgent, Urgency::Rest] {
            let waiting = deliveries.iter_mut();
            let waiting = waiting.filter(|it| it.urgency == urgency && it.status == Status::Queued);
            let mut waiting = waiting.peekable();
            if waiting.peek().is_none() {
                continue;
            }
            let held = self.held.lock();
            let room = if held.is_open {
                held.room(app_id, urgency)
            } else {
                0
            };
            drop(held);
            let mut claimed = Vec::new();
            for delivery in waiting {
                let row = (claimed.len() < room).then(|| ClaimedDelivery::of(delivery, now));
                // What can't be written is told of where it is written.
                if let Some(Ok(row)) = row {
                    delivery.node = Some(self.node);
                    claimed.push(row);
                } else {
                    reserved.are_some_left = true;
                }
            }
            if !claimed.is_empty() {
                let places = self.take(app_id, urgency, &claimed);
                reserved.ready.push(ReadyDeliveries {
                    app_id,
                    deliveries: claimed,
                    places,
                });
            }
        }
        reserved
    }

    fn free(&self, app_id: Uuid, deliveries: &[Uuid]) {
        let mut held = self.held.lock();
        for delivery in deliveries {
            held.remove(app_id, *delivery);
        }
        drop(held);
        if !deliveries.is_empty() {
            self.handover.wake();
        }
    }
}

impl HeldDeliveries {
    fn of_app(&self, app_id: Uuid) -> usize {
        self.apps.get(&app_id).map_or(0, |app| app.deliveries)
    }

    fn room(&self, app_id: Uuid, urgency: Urgency) -> usize {
        share::room(urgency, self.of_app(app_id), self.deliveries.len())
    }

    /// Answers how many more of the app's deliveries of this urgency may be with providers.
    fn add(
        &mut self,
        app_id: Uuid,
        urgency: Urgency,
        deliveries: &HashSet<Uuid>,
    ) -> Arc<Semaphore> {
        self.deliveries.extend(deliveries);
        let app = self.apps.entry(app_id).or_default();
        app.deliveries += deliveries.len();
        Arc::clone(match urgency {
            Urgency::Urgent => &app.urgent,
            Urgency::Rest => &app.rest,
        })
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

impl Places {
    /// Deliveries are over, as far as this process is concerned.
    pub fn free(&self, deliveries: impl IntoIterator<Item = Uuid>) {
        let mut taken = self.taken.lock();
        let over = deliveries.into_iter().filter(|id| taken.remove(id));
        let over: Vec<Uuid> = over.collect();
        drop(taken);
        self.of.free(self.app_id, &over);
    }
}

impl Drop for Places {
    fn drop(&mut self) {
        let left: Vec<Uuid> = self.taken.get_mut().drain().collect();
        self.of.free(self.app_id, &left);
    }
}

/// Deliveries that are made as claimed, and their places. Where it is dropped, as when a client goes away, the places are free;
/// if the deliveries were made nevertheless, the sender gives up their claims.
#[derive(Debug)]
pub struct ReservedDeliveries {
    of: DeliveriesInHand,
    ready: Vec<ReadyDeliveries>,
    /// Whether there was no room for some.
    are_some_left: bool,
}

impl ReservedDeliveries {
    /// Gives the sender those that are made now, and has it look for the others. Call it after the commit.
    pub fn send(mut self, made: &HashSet<Uuid>) {
        for mut ready in std::mem::take(&mut self.ready) {
            let known = ready.deliveries.extract_if(.., |it| !made.contains(&it.id));
            let known: Vec<Uuid> = known.map(|delivery| delivery.id).collect();
            ready.places.free(known);
            self.of.handover.send(ready);
        }
        if self.are_some_left {
            self.of.wake();
        }
    }
}

impl Drop for ReservedDeliveries {
    fn drop(&mut self) {
        if !self.ready.is_empty() {
            self.ready.clear();
            self.of.handover.doubt();
        }
    }
}

impl ClaimedDelivery {
    /// A delivery as it is once it is made.
    fn of(delivery: &NewDelivery, now: Timestamp) -> nudge_db::Result<Self> {
        let event = delivery.event;
        Ok(Self {
            id: delivery.id,
            campaign_id: delivery.campaign_id,
            campaign_version: delivery.campaign_version,
            variant_id: delivery.variant_id,
            subject_id: delivery.subject_id,
            alias_number: event.map(|event| event.alias),
            event_seq: event.map(|event| event.seq),
            data: delivery.data.clone(),
            test: delivery.test,
            status: delivery.status.name().to_owned(),
            content: delivery.content.as_ref().map(written).transpose()?,
            devices: None,
            platform: None,
            attempts: 0,
            urgency: delivery.urgency.number(),
            created_at: now,
            delivered_at: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::EventRef;

    const APP: Uuid = Uuid::from_u128(1);
    const NODE: Uuid = Uuid::from_u128(2);

    fn new(number: u128, urgency: Urgency, status: Status) -> NewDelivery {
        NewDelivery {
            id: Uuid::from_u128(number),
            campaign_id: Uuid::nil(),
            campaign_version: 3,
            variant_id: Uuid::nil(),
            subject_id: Uuid::nil(),
            event: Some(EventRef {
                alias: 4,
                seq: 5,
                id: Uuid::nil(),
            }),
            data: None,
            idempotency_key: None,
            test: false,
            recipients: 0,
            status,
            reason: None,
            content: None,
            urgency,
            node: None,
        }
    }

    fn queued(count: u128, urgency: Urgency) -> Vec<NewDelivery> {
        (1..=count)
            .map(|number| new(number, urgency, Status::Queued))
            .collect()
    }

    fn claimed(deliveries: &[NewDelivery]) -> usize {
        deliveries.iter().filter(|it| it.node.is_some()).count()
    }

    fn ids(deliveries: &[ClaimedDelivery]) -> Vec<u128> {
        deliveries.iter().map(|it| it.id.as_u128()).collect()
    }

    #[test]
    fn nothing_is_claimed_for_nobody() {
        let in_hand = DeliveriesInHand::new(NODE);
        let mut deliveries = queued(2, Urgency::Rest);
        in_hand.reserve(APP, &mut deliveries, Timestamp(0));
        assert_eq!(claimed(&deliveries), 0);
        assert!(in_hand.is_empty());
    }

    #[test]
    fn what_is_made_goes_to_the_sender_and_the_rest_is_free_again() {
        let in_hand = DeliveriesInHand::new(NODE);
        let mut made = in_hand.open().unwrap();
        assert!(in_hand.open().is_none(), "there is one sender");
        let mut deliveries = queued(3, Urgency::Rest);
        deliveries.push(new(4, Urgency::Urgent, Status::Queued));
        deliveries.push(new(5, Urgency::Rest, Status::Skipped));
        let reserved = in_hand.reserve(APP, &mut deliveries, Timestamp(6));
        let nodes: Vec<Option<Uuid>> = deliveries.iter().map(|it| it.node).collect();
        assert_eq!(
            nodes,
            [Some(NODE), Some(NODE), Some(NODE), Some(NODE), None]
        );
        assert!(in_hand.has(Uuid::from_u128(2)));

        // The second one was there before.
        let new = [1, 3, 4, 5].map(Uuid::from_u128);
        reserved.send(&HashSet::from(new));
        assert!(!in_hand.has(Uuid::from_u128(2)));
        let urgent = made.try_recv().unwrap();
        let rest = made.try_recv().unwrap();
        assert_eq!(
            (ids(&urgent.deliveries), ids(&rest.deliveries)),
            (vec![4], vec![1, 3])
        );
        let first = &rest.deliveries[0];
        assert_eq!((first.alias_number, first.event_seq), (Some(4), Some(5)));
        assert_eq!((first.created_at, first.attempts), (Timestamp(6), 0));
        drop((urgent, rest));
        assert!(in_hand.is_empty());
    }

    #[test]
    fn what_is_not_made_takes_no_place() {
        let in_hand = DeliveriesInHand::new(NODE);
        let _made = in_hand.open().unwrap();
        let mut deliveries = queued(2, Urgency::Urgent);
        let reserved = in_hand.reserve(APP, &mut deliveries, Timestamp(0));
        assert!(!in_hand.take_doubt());
        drop(reserved);
        assert!(in_hand.is_empty());
        assert!(in_hand.take_doubt(), "they may have been made");
        assert!(!in_hand.take_doubt());
    }

    #[test]
    fn there_is_room_for_some() {
        let in_hand = DeliveriesInHand::new(NODE);
        let mut made = in_hand.open().unwrap();
        let mut deliveries = queued(2_000, Urgency::Rest);
        let room = in_hand.room(APP, Urgency::Rest);
        let reserved = in_hand.reserve(APP, &mut deliveries, Timestamp(0));
        assert_eq!(claimed(&deliveries), room);
        reserved.send(&deliveries.iter().map(|it| it.id).collect());
        assert_eq!(made.try_recv().unwrap().deliveries.len(), room);
    }
}
