//! One recipient of a message, and what its bindings resolve to.

use std::time::Duration;

use super::{Message, Resolved};
use crate::cell::Cell;
use crate::history::History;
use crate::instant::Instant;
use crate::value::Value;

/// A recipient of a message.
#[derive(Clone, Copy)]
pub struct Recipient<'m> {
    message: &'m Message<'m>,
    item: u32,
    row: usize,
}

impl<'m> Recipient<'m> {
    pub(super) fn new(message: &'m Message<'m>, item: u32, row: usize) -> Self {
        Self { message, item, row }
    }

    /// The recipient's number in the batch.
    pub fn item(&self) -> u32 {
        self.item
    }

    /// The time of the decision.
    pub fn now(&self) -> Instant {
        Instant::from_micros(self.message.host.now())
    }

    /// A saved property, which `check` must have named among `subject_properties`.
    ///
    /// # Panics
    ///
    /// Panics on a key that `check` did not name: the host did not send it.
    pub fn property(&self, key: &str) -> Cell<'m> {
        sent(
            self.message.subject_property(self.row, key),
            key,
            "`subject_properties` of `check`",
        )
    }

    /// A property of the event that caused the message, which `check` must have named among `properties`.
    /// Missing where no event caused it.
    ///
    /// # Panics
    ///
    /// Panics on a path that `check` did not name: the host did not send it.
    pub fn trigger_property(&self, path: &str) -> Cell<'m> {
        sent(
            self.message.trigger_property(self.row, path),
            path,
            "`properties` of `check`",
        )
    }

    /// A value of the request that asks for the send, whose key `data_keys` must have named.
    ///
    /// # Panics
    ///
    /// Panics on a key that `data_keys` did not name: the host did not send it.
    pub fn data(&self, key: &str) -> Cell<'m> {
        sent(self.message.data(self.row, key), key, "`data_keys`")
    }

    /// The identifier and time of the event that caused the message. None: no event did.
    pub fn trigger_event(&self) -> Option<(String, Instant)> {
        let (id, timestamp) = self.message.host.trigger_event(self.item)?;
        Some((id, Instant::from_micros(timestamp)))
    }

    /// The recipient's events of this name within a span before now (none: ever), newest first, at most
    /// `limit` (1,000 or less) of them, with the properties at these paths.
    pub fn recent_events(
        &self,
        name: &str,
        within: impl Into<Option<Duration>>,
        limit: u32,
        paths: &[impl AsRef<str>],
    ) -> History {
        let paths: Vec<String> = paths.iter().map(|path| path.as_ref().to_owned()).collect();
        let since = within.into().map(|span| (self.now() - span).micros());
        History::new(
            self.message
                .host
                .recent_events(self.item, name, since, limit, &paths),
            paths,
        )
    }

    /// A fact: `platform`, `country`, `locale`, `timezone`, `app_version`, `external_id`, `identified`,
    /// `first_seen_at`, `last_seen_at` or `event_count`.
    pub fn fact(&self, name: &str) -> Option<Value> {
        self.message.host.subject_fact(self.item, name)
    }

    /// Number `n` of the recipient's random numbers.
    pub fn random(&self, n: u32) -> u64 {
        self.message.host.random(self.item, n)
    }
}

#[expect(
    clippy::panic,
    reason = "a mistake in the plugin that its first test shows"
)]
fn sent<'c>(cell: Option<Cell<'c>>, name: &str, declaration: &str) -> Cell<'c> {
    cell.unwrap_or_else(|| panic!("`{name}` is not among the {declaration}"))
}

/// What one binding resolved to for one recipient.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Resolution {
    /// The binding's `id`.
    pub binding: String,
    /// The value. None: the binding could not be resolved, see `issue`.
    pub value: Option<Value>,
    /// The value as it stands inside a text.
    pub text: String,
    /// Whether the value is the binding's fallback.
    pub used_fallback: bool,
    /// Empty, or why the source gave no usable value: `missing`, `type_mismatch`, `filtered_by_privacy`,
    /// `event_not_found`, or a code of the plugin's own.
    pub issue: String,
    /// For a person: what was found instead.
    pub detail: String,
    /// The event that the value comes from, if it comes from one.
    pub event: Option<(String, Instant)>,
}

impl Resolution {
    pub(super) fn of_item(self, item: u32) -> Resolved {
        let more = self.event.map_or_else(Vec::new, |(id, timestamp)| {
            vec![
                ("event_id".to_owned(), id),
                ("timestamp".to_owned(), timestamp.to_string()),
            ]
        });
        Resolved {
            item,
            binding: self.binding,
            value: self.value,
            text: self.text,
            used_fallback: self.used_fallback,
            issue: self.issue,
            detail: self.detail,
            more,
        }
    }
}
