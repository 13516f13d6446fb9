//! What a personalization plugin resolves, and what it resolved.

use std::sync::Arc;

use uuid::Uuid;

use crate::call::Call;
use crate::value::{FactsUnavailable, PastEvent, Value};

/// Recipients and the messages that they are to get.
#[derive(Debug, Clone)]
pub struct Batch {
    /// The batch's time, in microseconds since 1970.
    pub now: i64,
    /// Where random numbers come from; of the app and plugin, the same for every batch.
    pub seed: u64,
    /// The recipients.
    pub items: Vec<Item>,
    /// Each recipient is named by exactly one of them.
    pub messages: Vec<Message>,
}

/// A recipient.
#[derive(Debug, Clone)]
pub struct Item {
    /// What the recipient's random numbers depend on: an identifier of the subject.
    pub recipient: Uuid,
    /// The `data` of the request that asks for the send, as the text of a JSON object.
    pub data: Arc<str>,
    /// The event that caused the message.
    pub trigger: Option<PastEvent>,
}

/// A message.
#[derive(Debug, Clone)]
pub struct Message {
    /// Its configuration, as `check-config` accepted it.
    pub config: Arc<str>,
    /// The properties of the triggering event that its configuration reads, as dotted paths.
    pub properties: Arc<[String]>,
    /// The saved properties of the recipient that its configuration reads.
    pub subject_properties: Arc<[String]>,
    /// The recipients that get it, ascending.
    pub items: Vec<u32>,
}

/// What the host knows about a batch's recipients.
pub trait Facts: Send {
    /// A saved property.
    fn subject_property(&mut self, item: u32, key: &str) -> Option<Value>;

    /// A fact, as the contract names them.
    fn subject_fact(&mut self, item: u32, name: &str) -> Option<Value>;

    /// The events of this name that happened at or after `since`, newest first, at most `limit` of them.
    fn recent_events(
        &mut self,
        item: u32,
        name: &str,
        since: Option<i64>,
        limit: u32,
    ) -> Result<Vec<PastEvent>, FactsUnavailable>;
}

/// Recipients of whom nothing is known, for measurements and trials.
#[derive(Debug, Clone, Copy)]
pub struct Nobody;

impl Facts for Nobody {
    fn subject_property(&mut self, _: u32, _: &str) -> Option<Value> {
        None
    }

    fn subject_fact(&mut self, _: u32, _: &str) -> Option<Value> {
        None
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
}

/// What a plugin resolved.
#[derive(Debug, Clone)]
pub struct PersonalizationOutcome {
    /// What bindings resolved to, as they were named.
    pub resolutions: Vec<Resolution>,
    /// What the call cost.
    pub call: Call,
}

/// What one binding resolved to for one recipient.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolution {
    /// The recipient's number in the batch.
    pub item: u32,
    /// The binding's `id`.
    pub binding: String,
    /// None: the binding could not be resolved.
    pub value: Option<Value>,
    /// The value as it stands inside a text.
    pub text: String,
    /// Whether the value is the binding's fallback.
    pub used_fallback: bool,
    /// Empty, or why the source gave no usable value.
    pub issue: String,
    /// For a person: what was found instead.
    pub detail: String,
    /// `event_id` and `timestamp` where the value comes from an event.
    pub more: Vec<(String, String)>,
}
