//! What a validation plugin decides about, and what it decided.

use std::sync::Arc;

use crate::call::Call;

/// Events and the definitions that they must match.
#[derive(Debug, Clone)]
pub struct Batch {
    /// The batch's time, in microseconds since 1970.
    pub now: i64,
    /// The events.
    pub items: Vec<Item>,
    /// Each event is named by exactly one of them.
    pub definitions: Vec<Definition>,
}

/// An event.
#[derive(Debug, Clone)]
pub struct Item {
    /// When it happened, in microseconds since 1970.
    pub timestamp: i64,
    /// Its properties, as the text of a JSON object.
    pub properties: Arc<str>,
}

/// An event definition.
#[derive(Debug, Clone)]
pub struct Definition {
    /// Its configuration, as `check-config` accepted it.
    pub config: Arc<str>,
    /// The properties that its configuration reads, as dotted paths.
    pub properties: Arc<[String]>,
    /// The events that it is for, ascending.
    pub items: Vec<u32>,
}

/// What a plugin found.
#[derive(Debug, Clone)]
pub struct ValidationOutcome {
    /// The violations, ordered by item, and of one item as they were reported. An event without one is
    /// valid.
    pub violations: Vec<Violation>,
    /// What the call cost.
    pub call: Call,
}

/// One way in which an event breaks its definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The event's number in the batch.
    pub item: u32,
    /// What is wrong, from an open set.
    pub code: String,
    /// The property, as a dotted path; empty when it is the event as a whole.
    pub property: String,
    /// What the definition asks for, for a person.
    pub expected: String,
    /// What the event has, for a person.
    pub actual: String,
}
