//! Which messages this process is sending, and how it comes by them.
//!
//! A message is claimed by the process that sends it. One that is written here while there is room for it is written as claimed:
//! after the commit it goes to the sender as it is ([`MessagesInHand::reserve`]). All others the sender claims from the database.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use nudge_platform::handover::Handover;
use parking_lot::Mutex;
use tokio::sync::futures::Notified;
use tokio::sync::mpsc::UnboundedReceiver;
use uuid::Uuid;

use super::Message;

/// Messages of a process that are in hand when no further one is written as claimed.
const ALL: usize = 8_192;
/// Those of one endpoint among them: what is being sent, and as much that comes next.
const OF_ENDPOINT: usize = 1_024;

/// The messages that a process is sending. Cheap to clone.
#[derive(Clone, Debug)]
pub struct MessagesInHand {
    node: Uuid,
    held: Arc<Mutex<HeldMessages>>,
    handover: Handover<ReadyMessages>,
}

#[derive(Debug, Default)]
struct HeldMessages {
    /// Whether anybody sends.
    is_open: bool,
    /// The endpoint of each.
    messages: HashMap<Uuid, Uuid>,
    /// How many there are of each endpoint.
    endpoints: HashMap<Uuid, usize>,
    /// Endpoints with messages in the database that go first.
    behind: HashSet<Uuid>,
}

/// A message that this process has claimed.
#[derive(Clone, Debug, nudge_db::FromRow)]
#[expect(missing_docs, reason = "the columns of the table")]
pub struct ClaimedMessage {
    pub id: Uuid,
    pub delivery_id: Uuid,
    pub event_type: String,
    pub body: String,
    pub attempts: i64,
}

/// Messages of an endpoint that were written as claimed.
#[derive(Debug)]
pub struct ReadyMessages {
    /// The app.
    pub app_id: Uuid,
    /// The endpoint.
    pub webhook_id: Uuid,
    /// The messages, in their order.
    pub messages: Vec<ClaimedMessage>,
}

impl MessagesInHand {
    /// Nothing is in hand of a process. `node` is the process.
    pub fn new(node: Uuid) -> Self {
        Self {
            node,
            held: Arc::default(),
            handover: Handover::default(),
        }
    }

    /// What is written as claimed comes here from now on. None: it goes to somebody else already.
    pub fn open(&self) -> Option<UnboundedReceiver<ReadyMessages>> {
        let made = self.handover.open()?;
        self.held.lock().is_open = true;
        Some(made)
    }

    /// Nothing is written as claimed any longer.
    pub fn close(&self) {
        self.held.lock().is_open = false;
    }

    /// Has the sender look for messages now.
    pub fn wake(&self) {
        self.handover.wake();
    }

    /// Resolves once the sender is to look.
    pub fn notified(&self) -> Notified<'_> {
        self.handover.notified()
    }

    /// Whether, since this was asked last, messages may have been written as claimed of which nobody here knows.
    pub fn take_doubt(&self) -> bool {
        self.handover.take_doubt()
    }

    /// Whether a message is in hand.
    pub fn has(&self, message: &Uuid) -> bool {
        self.held.lock().messages.contains_key(message)
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.held.lock().messages.is_empty()
    }

    /// Messages of an endpoint are in hand from now on.
    pub fn add(&self, webhook_id: Uuid, messages: impl IntoIterator<Item = Uuid>) {
        let mut held = self.held.lock();
        for message in messages {
            held.add(webhook_id, message);
        }
    }

    /// Messages are in hand no longer.
    pub fn free(&self, messages: impl IntoIterator<Item = Uuid>) {
        let mut held = self.held.lock();
        for message in messages {
            held.remove(message);
        }
    }

    /// Tells which endpoints have messages in the database that are due: what is written for them comes after those.
    pub fn set_behind(&self, webhooks: HashSet<Uuid>) {
        self.held.lock().behind = webhooks;
    }

    /// Has messages of an app that are about to be written be written as claimed, as far as there is room. One that follows
    /// another one of its source is left to the database, where it waits for that.
    pub(super) fn reserve(&self, app_id: Uuid, messages: &mut [Message]) -> ReservedMessages {
        let mut begun = HashSet::new();
        let mut ready: BTreeMap<Uuid, Vec<ClaimedMessage>> = BTreeMap::new();
        let mut held = self.held.lock();
        for message in messages {
            let is_first = begun.insert((message.webhook_id, message.source_id));
            if is_first && held.has_room(message.webhook_id, message.id) {
                held.add(message.webhook_id, message.id);
                message.node = Some(self.node);
                let of_endpoint = ready.entry(message.webhook_id).or_default();
                of_endpoint.push(message.claimed());
            }
        }
        drop(held);
        let ready = ready
            .into_iter()
            .map(|(webhook_id, messages)| ReadyMessages {
                app_id,
                webhook_id,
                messages,
            });
        ReservedMessages {
            of: self.clone(),
            ready: ready.collect(),
        }
    }
}

impl HeldMessages {
    fn has_room(&self, webhook_id: Uuid, message: Uuid) -> bool {
        let of_endpoint = self.endpoints.get(&webhook_id).copied().unwrap_or(0);
        self.is_open
            && self.messages.len() < ALL
            && of_endpoint < OF_ENDPOINT
            && !self.behind.contains(&webhook_id)
            && !self.messages.contains_key(&message)
    }

    fn add(&mut self, webhook_id: Uuid, message: Uuid) {
        if self.messages.insert(message, webhook_id).is_none() {
            *self.endpoints.entry(webhook_id).or_default() += 1;
        }
    }

    fn remove(&mut self, message: Uuid) {
        let Some(webhook_id) = self.messages.remove(&message) else {
            return;
        };
        if let Some(count) = self.endpoints.get_mut(&webhook_id) {
            *count -= 1;
            if *count == 0 {
                self.endpoints.remove(&webhook_id);
            }
        }
    }
}

/// Messages that are written as claimed. Where it is dropped, as when a client goes away, they are in hand no longer; if they were
/// written nevertheless, the sender gives up their claims.
#[derive(Debug)]
pub(super) struct ReservedMessages {
    of: MessagesInHand,
    ready: Vec<ReadyMessages>,
}

impl ReservedMessages {
    /// Leaves those out that were not written as claimed.
    pub(super) fn keep(&mut self, written: &HashSet<Uuid>) {
        for ready in &mut self.ready {
            let left = ready
                .messages
                .extract_if(.., |message| !written.contains(&message.id));
            let left: Vec<Uuid> = left.map(|message| message.id).collect();
            self.of.free(left);
        }
        self.ready.retain(|ready| !ready.messages.is_empty());
    }

    /// Gives the sender the messages. Call it after the commit.
    pub(super) fn send(mut self) {
        for ready in std::mem::take(&mut self.ready) {
            self.of.handover.send(ready);
        }
    }
}

impl Drop for ReservedMessages {
    fn drop(&mut self) {
        let ready = std::mem::take(&mut self.ready);
        if ready.is_empty() {
            return;
        }
        let messages = ready.iter().flat_map(|ready| &ready.messages);
        self.of.free(messages.map(|message| message.id));
        self.of.handover.doubt();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nudge_campaigns::webhooks::EventType;

    const APP: Uuid = Uuid::from_u128(1);
    const NODE: Uuid = Uuid::from_u128(2);
    const WEBHOOK: Uuid = Uuid::from_u128(3);
    const OTHER: Uuid = Uuid::from_u128(4);

    /// A message of each number, about a source of its own.
    fn messages(webhook_id: Uuid, numbers: impl IntoIterator<Item = u128>) -> Vec<Message> {
        let message = |number| Message {
            id: Uuid::from_u128(number),
            webhook_id,
            subject_id: Uuid::nil(),
            source_id: Uuid::from_u128(number),
            position: Uuid::nil(),
            event: EventType::Sent,
            body: String::new(),
            node: None,
        };
        numbers.into_iter().map(message).collect()
    }

    fn claimed(messages: &[Message]) -> Vec<u128> {
        let claimed = messages.iter().filter(|it| it.node == Some(NODE));
        claimed.map(|it| it.id.as_u128()).collect()
    }

    #[test]
    fn nothing_is_claimed_for_nobody() {
        let in_hand = MessagesInHand::new(NODE);
        let mut written = messages(WEBHOOK, 1..3);
        drop(in_hand.reserve(APP, &mut written));
        assert_eq!(claimed(&written), []);
        let _made = in_hand.open().unwrap();
        assert!(in_hand.open().is_none(), "there is one sender");
        in_hand.close();
        drop(in_hand.reserve(APP, &mut written));
        assert_eq!(claimed(&written), []);
        assert!(!in_hand.take_doubt());
    }

    #[test]
    fn messages_written_as_claimed_go_to_the_sender_by_endpoint() {
        let in_hand = MessagesInHand::new(NODE);
        let mut made = in_hand.open().unwrap();
        let mut written = messages(WEBHOOK, 1..4);
        written.extend(messages(OTHER, 4..5));
        let mut reserved = in_hand.reserve(APP, &mut written);
        assert_eq!(claimed(&written), [1, 2, 3, 4]);
        assert!(in_hand.has(&Uuid::from_u128(2)));
        // The second one was there before.
        reserved.keep(&[1, 3, 4].map(Uuid::from_u128).into());
        assert!(!in_hand.has(&Uuid::from_u128(2)));
        reserved.send();
        for (webhook_id, expected) in [(WEBHOOK, vec![1, 3]), (OTHER, vec![4])] {
            let ready = made.try_recv().unwrap();
            let ids: Vec<u128> = ready.messages.iter().map(|it| it.id.as_u128()).collect();
            assert_eq!((ready.webhook_id, ids), (webhook_id, expected));
        }
        in_hand.free([1, 3, 4].map(Uuid::from_u128));
        assert!(in_hand.is_empty() && !in_hand.take_doubt());
        assert!(in_hand.held.lock().endpoints.is_empty());
    }

    #[test]
    fn a_message_that_follows_another_one_of_its_source_waits_in_the_database() {
        let in_hand = MessagesInHand::new(NODE);
        let _made = in_hand.open().unwrap();
        let mut written = messages(WEBHOOK, 1..3);
        written[1].source_id = written[0].source_id;
        let _reserved = in_hand.reserve(APP, &mut written);
        assert_eq!(claimed(&written), [1]);
    }

    #[test]
    fn what_is_not_sent_is_in_doubt() {
        let in_hand = MessagesInHand::new(NODE);
        let _made = in_hand.open().unwrap();
        drop(in_hand.reserve(APP, &mut messages(WEBHOOK, 1..3)));
        assert!(in_hand.is_empty());
        assert!(in_hand.take_doubt(), "they may have been written");
        assert!(!in_hand.take_doubt());
    }

    #[test]
    fn there_is_room_for_some_and_none_behind_older_ones() {
        let in_hand = MessagesInHand::new(NODE);
        let _made = in_hand.open().unwrap();
        let mut many = messages(WEBHOOK, 1..2_000);
        let _reserved = in_hand.reserve(APP, &mut many);
        assert_eq!(claimed(&many).len(), OF_ENDPOINT);
        let mut others = messages(OTHER, 2_000..2_002);
        in_hand.set_behind([OTHER].into());
        let _reserved_none = in_hand.reserve(APP, &mut others);
        assert_eq!(claimed(&others), []);
        in_hand.set_behind(HashSet::new());
        let _reserved_some = in_hand.reserve(APP, &mut others);
        assert_eq!(claimed(&others), [2_000, 2_001]);
    }
}
