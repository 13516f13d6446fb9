//! What a trigger plugin decides about, and what it decided.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::call::Call;
use crate::value::{FactsUnavailable, PastEvent, Value};

/// Items (events, and timers that are due) and the campaigns that wait for them.
#[derive(Debug, Clone)]
pub struct Batch {
    /// The batch's time, in microseconds since 1970.
    pub now: i64,
    /// In the order in which they count.
    pub items: Vec<Item>,
    /// The campaigns that wait for any of the items.
    pub campaigns: Vec<Campaign>,
    /// Whether explanations are kept.
    pub explaining: bool,
    /// Where random numbers come from; of the app and plugin, the same for every batch.
    pub seed: u64,
}

impl Batch {
    /// The time of a batch of these items: when the latest of them reached the server or fell due.
    pub fn time(items: &[Item]) -> i64 {
        let received = items.iter().map(|item| item.received);
        received.max().unwrap_or_default()
    }
}

/// An event, or a timer that is due.
#[derive(Debug, Clone)]
pub struct Item {
    /// A number of the subject; equal numbers are one subject.
    pub subject: u32,
    /// The event; for a timer, the event that set it.
    pub event_id: Uuid,
    /// The event's name.
    pub name: Arc<str>,
    /// When it happened, in microseconds since 1970.
    pub timestamp: i64,
    /// When it reached the server; for a timer, when it fell due.
    pub received: i64,
    /// A number of the subject's session.
    pub session: u32,
    /// The event's properties, as the text of a JSON object.
    pub properties: Arc<str>,
    /// What the timer was set with, where the item is one.
    pub timer: Option<Timer>,
}

/// What a timer was set with.
#[derive(Debug, Clone)]
pub struct Timer {
    /// Its key.
    pub key: String,
    /// Its payload.
    pub payload: Vec<u8>,
}

/// A campaign that waits for items.
#[derive(Debug, Clone)]
pub struct Campaign {
    /// Its identifier.
    pub id: Uuid,
    /// Its configuration, as `check-config` accepted it.
    pub config: Arc<str>,
    /// The properties that its configuration reads, as dotted paths.
    pub properties: Arc<[String]>,
    /// The items that concern it, ascending.
    pub items: Vec<u32>,
}

/// What the host knows about a batch's subjects. Answers are as of before the batch: its earlier items are
/// added here.
pub trait Facts: Send {
    /// A saved property.
    fn subject_property(
        &mut self,
        subject: u32,
        key: &str,
    ) -> Result<Option<Value>, FactsUnavailable>;

    /// A fact, as the contract names them.
    fn subject_fact(&mut self, subject: u32, name: &str)
    -> Result<Option<Value>, FactsUnavailable>;

    /// How many events of this name happened at or after `since`, counted up to `at_most`.
    fn count_events(
        &mut self,
        subject: u32,
        name: &str,
        since: Option<i64>,
        at_most: u32,
    ) -> Result<u32, FactsUnavailable>;

    /// The events of this name that happened at or after `since`, newest first, at most `limit` of them.
    fn recent_events(
        &mut self,
        subject: u32,
        name: &str,
        since: Option<i64>,
        limit: u32,
    ) -> Result<Vec<PastEvent>, FactsUnavailable>;

    /// What was stored last for this campaign and subject.
    fn state(&mut self, campaign: u32, subject: u32) -> Option<Vec<u8>>;
}

/// Subjects of whom nothing is known, for measurements and trials.
#[derive(Debug, Clone, Copy)]
pub struct Nobody;

impl Facts for Nobody {
    fn subject_property(&mut self, _: u32, _: &str) -> Result<Option<Value>, FactsUnavailable> {
        Ok(None)
    }

    fn subject_fact(&mut self, _: u32, _: &str) -> Result<Option<Value>, FactsUnavailable> {
        Ok(None)
    }

    fn count_events(
        &mut self,
        _: u32,
        _: &str,
        _: Option<i64>,
        _: u32,
    ) -> Result<u32, FactsUnavailable> {
        Ok(0)
    }

    fn recent_events(
        &mut self,
        _: u32,
        _: &str,
        _: Option<i64>,
        _: u32,
    ) -> Result<Vec<PastEvent>, FactsUnavailable> {
        Ok(Vec::new())
    }

    fn state(&mut self, _: u32, _: u32) -> Option<Vec<u8>> {
        None
    }
}

/// What a plugin asks for: everything takes effect, or nothing.
#[derive(Debug, Clone)]
pub struct TriggerOutcome {
    /// Which campaigns fire, each once for an item, ordered by item and then campaign.
    pub fired: Vec<Firing>,
    /// What to store, ordered by campaign and then subject.
    pub states: Vec<StateWrite>,
    /// Changes of timers, in the order in which they were asked for.
    pub timers: Vec<TimerChange>,
    /// The items at which timers were cancelled: one for each cancellation in `timers`, in their order. A decision is
    /// stored without them.
    pub cancelled_at: Vec<u32>,
    /// Why; empty unless the batch was `explaining`.
    pub explanations: Vec<Explanation>,
    /// What the call cost.
    pub call: Call,
}

/// A campaign fires for the subject of an item. Its shape is stored with decisions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Firing {
    /// The campaign's number in the batch.
    pub campaign: u32,
    /// The item's number in the batch.
    pub item: u32,
}

/// What to store for a campaign and subject. Its shape is stored with decisions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateWrite {
    /// The campaign's number in the batch.
    pub campaign: u32,
    /// The subject.
    pub subject: u32,
    /// None: remove what is stored.
    pub state: Option<Vec<u8>>,
}

/// A change of a timer. Its shape is stored with decisions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum TimerChange {
    /// Set a timer, in place of one with the same key.
    Set {
        /// The campaign's number in the batch.
        campaign: u32,
        /// The item that it was set at: it says whose timer it is, and the timer inherits its event.
        item: u32,
        /// Its key.
        key: String,
        /// When it is due, in microseconds since 1970.
        at: i64,
        /// What the plugin gets back then.
        payload: Vec<u8>,
    },
    /// Cancel the timer with this key, if there is one.
    Cancel {
        /// The campaign's number in the batch.
        campaign: u32,
        /// The subject.
        subject: u32,
        /// Its key.
        key: String,
    },
    /// Cancel all timers.
    CancelAll {
        /// The campaign's number in the batch.
        campaign: u32,
        /// The subject.
        subject: u32,
    },
}

/// Why an item did or did not fire a campaign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// The campaign's number in the batch.
    pub campaign: u32,
    /// The item's number in the batch.
    pub item: u32,
    /// What was checked.
    pub check: String,
    /// Whether it passed.
    pub passed: bool,
    /// For a person.
    pub detail: String,
}
