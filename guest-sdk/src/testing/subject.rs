//! What a fake host remembers of one subject.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value as Json;

use super::cells;
use super::trigger_host::SCHEDULED;
use crate::bindings::trigger::nudge::plugin::types::{History, Value};
use crate::instant::Instant;

/// Silence that ends a session.
const SESSION: Duration = Duration::from_mins(30);

/// What happens without anybody being active: it neither begins a session nor keeps one going.
const NO_ACTIVITY: [&str; 3] = ["session_ended", PROPERTY_CHANGED, SCHEDULED];

/// The host's own note of a property that changed.
const PROPERTY_CHANGED: &str = "$property_changed";

/// An event of a subject.
#[derive(Clone, Debug)]
pub(super) struct Event {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) timestamp: Instant,
    pub(super) session: u32,
    pub(super) properties: Json,
}

/// A timer that is not due yet.
#[derive(Clone, Debug)]
pub(super) struct Timer {
    pub(super) at: Instant,
    pub(super) payload: Vec<u8>,
    pub(super) event: Event,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Subject {
    pub(super) session: u32,
    active_at: Option<Instant>,
    /// When the host first heard of the subject.
    met_at: Option<Instant>,
    /// How many events came before the batch.
    settled: usize,
    /// The id of the newest event, be it the campaign's own time.
    pub(super) newest: Option<String>,
    pub(super) events: Vec<Event>,
    pub(super) properties: BTreeMap<String, Json>,
    pub(super) facts: BTreeMap<String, Json>,
    pub(super) state: Option<Vec<u8>>,
    pub(super) timers: BTreeMap<String, Timer>,
}

impl Subject {
    /// Takes in an event that happens now. Says whether a session begins with it. The campaign's own time is no event of the
    /// subject's, and the past does not have it.
    pub(super) fn take(
        &mut self,
        id: String,
        name: &str,
        now: Instant,
        properties: Json,
    ) -> (Event, bool) {
        self.met_at.get_or_insert(now);
        let active = !NO_ACTIVITY.contains(&name);
        let begins = active && self.active_at.is_none_or(|last| now > last + SESSION);
        if begins {
            self.session += 1;
        }
        if active {
            self.active_at = self.active_at.max(Some(now));
        }
        let event = Event {
            id,
            name: name.to_owned(),
            timestamp: now,
            session: self.session,
            properties,
        };
        self.newest = Some(event.id.clone());
        if name != SCHEDULED {
            self.events.push(event.clone());
        }
        (event, begins)
    }

    /// Takes in an event of the past, which is in no batch.
    pub(super) fn take_earlier(&mut self, id: String, name: &str, at: Instant, properties: Json) {
        let newest = self.newest.take();
        self.take(id, name, at, properties);
        self.newest = newest.or(self.newest.take());
        self.events.sort_by_key(|event| event.timestamp);
        self.settle();
    }

    /// The batch is over: facts have its events in them.
    pub(super) fn settle(&mut self) {
        self.settled = self.events.len();
    }

    /// Ends the session, as silence does.
    pub(super) fn end_session(&mut self) {
        self.active_at = None;
    }

    /// Events of a name among the first so many, newest first.
    fn earlier<'s>(
        &'s self,
        before: usize,
        name: &str,
        since: Option<i64>,
    ) -> impl Iterator<Item = &'s Event> {
        let since = since.unwrap_or(i64::MIN);
        let earlier = self.events.get(..before).unwrap_or(&self.events);
        earlier
            .iter()
            .rev()
            .filter(move |event| event.name == name && event.timestamp.micros() >= since)
    }

    pub(super) fn count(&self, before: usize, name: &str, since: Option<i64>, at_most: u32) -> u32 {
        let count = self
            .earlier(before, name, since)
            .take(at_most as usize)
            .count();
        u32::try_from(count).unwrap_or(u32::MAX)
    }

    pub(super) fn recent(
        &self,
        before: usize,
        name: &str,
        since: Option<i64>,
        limit: u32,
        paths: &[String],
    ) -> History {
        let events: Vec<&Event> = self
            .earlier(before, name, since)
            .take(limit as usize)
            .collect();
        History {
            ids: events.iter().map(|event| event.id.clone()).collect(),
            timestamps: events
                .iter()
                .map(|event| event.timestamp.micros())
                .collect(),
            properties: cells::table(events.iter().map(|event| &event.properties), paths),
        }
    }

    pub(super) fn fact(&self, name: &str) -> Option<Value> {
        self.facts.get(name).map(cells::value)
    }

    /// A fact that a server makes of events, as of before the batch.
    pub(super) fn fact_of_events(&self, name: &str) -> Option<Value> {
        let events = self.events.get(..self.settled).unwrap_or_default();
        let events = events.iter().filter(|event| event.name != PROPERTY_CHANGED);
        let text = |at: Option<Instant>| at.map(|at| Value::Text(at.to_string()));
        let count = u32::try_from(events.clone().count()).unwrap_or(u32::MAX);
        let times = events.map(|event| event.timestamp).chain(self.met_at);
        match name {
            "identified" => Some(Value::Boolean(self.facts.contains_key("external_id"))),
            "event_count" => Some(Value::Number(f64::from(count))),
            "first_seen_at" => text(times.min()),
            "last_seen_at" => text(times.max()),
            _ => None,
        }
    }
}

/// Number `n` of the random numbers that a text stands for (FNV-1a).
pub(super) fn random(seed: &str, n: u32) -> u64 {
    let bytes = seed.bytes().chain(n.to_le_bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
