//! One event, or one timer that is due.

use super::{Campaign, Subject};
use crate::cell::Cell;
use crate::declaration::Refusal;
use crate::instant::Instant;
use crate::value::Value;

/// An event, as one campaign sees it.
#[derive(Clone, Copy)]
pub struct Event<'c> {
    campaign: &'c Campaign<'c>,
    item: u32,
    row: usize,
}

impl<'c> Event<'c> {
    pub(super) fn new(campaign: &'c Campaign<'c>, item: u32, row: usize) -> Self {
        Self {
            campaign,
            item,
            row,
        }
    }

    /// The event's number in the batch.
    pub fn item(&self) -> u32 {
        self.item
    }

    /// The campaign that sees it.
    pub fn campaign(&self) -> &'c Campaign<'c> {
        self.campaign
    }

    /// The event's name.
    pub fn name(&self) -> &'c str {
        self.campaign.batch().name(self.item)
    }

    /// The event's identifier, a UUID.
    pub fn id(&self) -> String {
        self.campaign.batch().host().event_id(self.item)
    }

    /// When it happened, by the client's corrected clock.
    pub fn timestamp(&self) -> Instant {
        self.campaign.batch().timestamp(self.item)
    }

    /// When it reached the server or, as a timer, fell due: the time at which the decision is made.
    pub fn received(&self) -> Instant {
        self.campaign.batch().received(self.item)
    }

    /// A number of the subject's session, which grows by one with each session.
    pub fn session(&self) -> u32 {
        self.campaign
            .batch()
            .sessions()
            .get(self.item as usize)
            .copied()
            .unwrap_or_default()
    }

    /// The property in a column of `Reads::properties`.
    pub fn cell(&self, column: usize) -> Cell<'c> {
        self.campaign.table().cell(self.row, column)
    }

    /// The property at a dotted path, which `check` must have named among those that it reads.
    ///
    /// # Panics
    ///
    /// Panics on a path that `check` did not name: the host did not send it.
    #[expect(
        clippy::panic,
        reason = "a mistake in the plugin that its first test shows"
    )]
    pub fn property(&self, path: &str) -> Cell<'c> {
        match self.campaign.column(path) {
            Some(column) => self.cell(column),
            None => panic!("`{path}` is not among the properties that `check` says are read"),
        }
    }

    /// The text at a path. None: missing, or not a text. Panics as [`Self::property`] does.
    pub fn text(&self, path: &str) -> Option<&'c str> {
        self.property(path).text()
    }

    /// The number at a path. None: missing, or not a number. Panics as [`Self::property`] does.
    pub fn number(&self, path: &str) -> Option<f64> {
        self.property(path).number()
    }

    /// The boolean at a path. None: missing, or not a boolean. Panics as [`Self::property`] does.
    pub fn boolean(&self, path: &str) -> Option<bool> {
        self.property(path).boolean()
    }

    /// The value at a path. None: missing. Panics as [`Self::property`] does.
    pub fn value(&self, path: &str) -> Option<Value> {
        self.property(path).value()
    }

    /// All properties. Slower than those that `check` names.
    pub fn json(&self) -> Result<serde_json::Value, Refusal> {
        Ok(serde_json::from_str(
            &self.campaign.batch().host().event_json(self.item),
        )?)
    }

    /// The subject that the event is of.
    pub fn subject(&self) -> Subject<'c> {
        Subject::new(*self)
    }

    /// The timer that this is, if it is one.
    pub fn timer(&self) -> Option<Timer<'c>> {
        self.campaign
            .batch()
            .is_timer(self.item)
            .then_some(Timer { event: *self })
    }
}

/// A timer that is due.
#[derive(Clone, Copy)]
pub struct Timer<'c> {
    event: Event<'c>,
}

impl<'c> Timer<'c> {
    /// The event that set it, as it was then; [`Event::received`] is when the timer fell due.
    pub fn event(&self) -> &Event<'c> {
        &self.event
    }

    /// The key that it was set with.
    pub fn key(&self) -> String {
        self.event
            .campaign
            .batch()
            .host()
            .timer_key(self.event.item)
            .unwrap_or_default()
    }

    /// The payload that it was set with.
    pub fn payload(&self) -> Vec<u8> {
        self.event
            .campaign
            .batch()
            .host()
            .timer_payload(self.event.item)
            .unwrap_or_default()
    }

    /// When it fell due.
    pub fn due(&self) -> Instant {
        self.event.received()
    }
}
