//! What a batch has for every campaign, fetched from the host at most once.

use std::cell::OnceCell;

use super::Host;
use super::known::Known;
use crate::instant::Instant;

/// A batch of items: events, and timers that are due. Columns are fetched when they are first asked for.
pub struct Batch<'h> {
    host: Host<'h>,
    names: OnceCell<Vec<String>>,
    name_indexes: OnceCell<Vec<u32>>,
    subjects: OnceCell<Vec<u32>>,
    timestamps: OnceCell<Vec<i64>>,
    received: OnceCell<Vec<i64>>,
    sessions: OnceCell<Vec<u32>>,
    timers: OnceCell<Vec<u32>>,
    explaining: OnceCell<bool>,
    /// What the host has answered already.
    pub(super) known: Known,
}

impl<'h> Batch<'h> {
    /// A batch of which nothing has been fetched.
    pub fn new(host: Host<'h>) -> Self {
        Self {
            host,
            names: OnceCell::new(),
            name_indexes: OnceCell::new(),
            subjects: OnceCell::new(),
            timestamps: OnceCell::new(),
            received: OnceCell::new(),
            sessions: OnceCell::new(),
            timers: OnceCell::new(),
            explaining: OnceCell::new(),
            known: Known::default(),
        }
    }

    /// The host's own functions.
    pub fn host(&self) -> Host<'h> {
        self.host
    }

    /// The batch's time.
    pub fn now(&self) -> Instant {
        Instant::from_micros(self.host.now())
    }

    /// The distinct event names of the batch.
    pub fn names(&self) -> &[String] {
        self.names.get_or_init(|| self.host.names())
    }

    /// For each item the number of its event's name in [`Self::names`].
    pub fn name_indexes(&self) -> &[u32] {
        self.name_indexes.get_or_init(|| self.host.name_indexes())
    }

    /// For each item a number of its subject.
    pub fn subjects(&self) -> &[u32] {
        self.subjects.get_or_init(|| self.host.subjects())
    }

    /// For each item a number of the subject's session.
    pub fn sessions(&self) -> &[u32] {
        self.sessions.get_or_init(|| self.host.sessions())
    }

    /// The name of an item's event.
    pub fn name(&self, item: u32) -> &str {
        let name = self
            .name_indexes()
            .get(item as usize)
            .and_then(|index| self.names().get(*index as usize));
        name.map_or("", String::as_str)
    }

    /// When an item's event happened.
    pub fn timestamp(&self, item: u32) -> Instant {
        instant(self.timestamps.get_or_init(|| self.host.timestamps()), item)
    }

    /// When an item reached the server or, as a timer, fell due.
    pub fn received(&self, item: u32) -> Instant {
        instant(self.received.get_or_init(|| self.host.received()), item)
    }

    /// Whether an item is a timer.
    pub fn is_timer(&self, item: u32) -> bool {
        self.timers
            .get_or_init(|| self.host.timer_items())
            .binary_search(&item)
            .is_ok()
    }

    /// Whether somebody wants to know why items fire or not.
    pub fn explaining(&self) -> bool {
        *self.explaining.get_or_init(|| self.host.explaining())
    }
}

fn instant(column: &[i64], item: u32) -> Instant {
    Instant::from_micros(column.get(item as usize).copied().unwrap_or_default())
}
