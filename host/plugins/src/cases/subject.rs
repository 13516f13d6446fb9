//! What a case says of a subject, and what the plugin learns of it.

use std::sync::Arc;

use nudge_db::Timestamp;
use nudge_platform::clock;
use nudge_platform::event_names::{PROPERTY_CHANGED, SCHEDULED, SESSION_ENDED};
use nudge_wasm::{PastEvent, Value};
use serde::Deserialize;
use serde_json::{Map, Value as Json};
use uuid::Uuid;

use super::{BadCase, object, time};

/// Silence that ends a session (specification 6.1).
const SESSION_SECONDS: u64 = 1800;

/// A subject, as a case describes it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Described {
    /// Saved properties.
    #[serde(default)]
    pub properties: Map<String, Json>,
    /// Saved properties that the app's privacy policy keeps from plugins.
    #[serde(default)]
    pub withheld: Vec<String>,
    /// Facts by the contract's names. `event_count`, `first_seen_at`, `last_seen_at` and `identified`
    /// follow from the events unless they are given.
    #[serde(default)]
    pub facts: Map<String, Json>,
    /// Events of before the case.
    #[serde(default)]
    pub history: Vec<Earlier>,
}

/// An event of before the case.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Earlier {
    /// Its name.
    pub name: String,
    /// When it happened: RFC 3339, or `-30m` before the case's start.
    pub at: String,
    /// Its properties.
    #[serde(default)]
    pub properties: Map<String, Json>,
}

/// A subject, as the case goes on.
#[derive(Clone, Debug)]
pub(super) struct Subject {
    described: Described,
    history: Vec<(Arc<str>, PastEvent)>,
    /// When the first event arrived. A server makes the subject then, and takes the event in once plugins were asked.
    met_at: Option<i64>,
    session: u32,
    active_at: Option<i64>,
    pub state: Option<Vec<u8>>,
}

impl Subject {
    /// `pointer`: where the case describes it.
    pub(super) fn new(
        described: &Described,
        start: Timestamp,
        pointer: &str,
    ) -> Result<Self, BadCase> {
        let mut subject = Self {
            described: described.clone(),
            history: Vec::new(),
            met_at: None,
            session: 0,
            active_at: None,
            state: None,
        };
        let mut earlier = Vec::new();
        for (index, event) in described.history.iter().enumerate() {
            let at = before(&event.at, start).ok_or_else(|| {
                BadCase::new(
                    format!("{pointer}/history/{index}/at"),
                    "is like -30m, or an instant like 2026-01-31T09:30:00Z, before the case's start",
                )
            })?;
            earlier.push((at, index, event));
        }
        earlier.sort_by_key(|(at, index, _)| (*at, *index));
        for (at, index, event) in earlier {
            // Identifiers of earlier events are in a range of their own.
            let number = u128::MAX - u128::try_from(index).unwrap_or_default();
            let past = PastEvent {
                id: Uuid::from_u128(number),
                timestamp: at.0,
                properties: object(&event.properties),
            };
            subject.take(&event.name.as_str().into(), past);
        }
        Ok(subject)
    }

    /// Notes that something of the subject arrived. Whom nothing was known of is known from then on.
    pub(super) fn meet(&mut self, at: Timestamp) {
        self.met_at.get_or_insert(at.0);
    }

    /// Takes an event in; answers the number of its session, and whether that begins with it. A campaign's own time is nothing that
    /// the person did: beyond that the person is known from then on, it leaves no trace.
    pub(super) fn take(&mut self, name: &Arc<str>, event: PastEvent) -> (u32, bool) {
        self.meet(Timestamp(event.timestamp));
        if **name == *SCHEDULED {
            return (self.session, false);
        }
        let active = ![SESSION_ENDED, PROPERTY_CHANGED].contains(&&**name);
        let over = |active: i64| event.timestamp > active.saturating_add(micros(SESSION_SECONDS));
        let begins = active && self.active_at.is_none_or(over);
        if begins {
            self.session += 1;
        }
        if active {
            self.active_at = self.active_at.max(Some(event.timestamp));
        }
        self.history.push((Arc::clone(name), event));
        (self.session, begins)
    }

    /// The number of the session that goes on, or went on last.
    pub(super) fn session(&self) -> u32 {
        self.session
    }

    pub(super) fn property(&self, key: &str) -> Option<Value> {
        let value = self.described.properties.get(key)?;
        if self.described.withheld.iter().any(|held| held == key) {
            Some(Value::Withheld)
        } else {
            Some(from_json(value))
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "a case has far fewer events")]
    pub(super) fn fact(&self, name: &str) -> Option<Value> {
        if let Some(given) = self.described.facts.get(name) {
            return Some(from_json(given));
        }
        // The server's own notes are nothing that the person did.
        let events = self.history.iter();
        let events = events.filter(|(name, _)| **name != *PROPERTY_CHANGED);
        let event_count = events.clone().count();
        let times = self.met_at.into_iter();
        let times = times.chain(events.map(|(_, event)| event.timestamp));
        let text = |at: Option<i64>| at.map(|at| Value::Text(clock::to_text(Timestamp(at))));
        match name {
            "identified" => Some(Value::Boolean(
                self.described.facts.contains_key("external_id"),
            )),
            "event_count" => Some(Value::Number(event_count as f64)),
            "first_seen_at" => text(times.min()),
            "last_seen_at" => text(times.max()),
            _ => None,
        }
    }

    fn named<'s>(&'s self, name: &str, since: Option<i64>) -> impl Iterator<Item = &'s PastEvent> {
        self.history
            .iter()
            .filter(move |(known, event)| {
                **known == *name && since.is_none_or(|since| event.timestamp >= since)
            })
            .map(|(_, event)| event)
    }

    pub(super) fn count(&self, name: &str, since: Option<i64>, at_most: u32) -> u32 {
        let count = self.named(name, since).take(at_most as usize).count();
        u32::try_from(count).unwrap_or(u32::MAX)
    }

    /// Newest first.
    pub(super) fn recent(&self, name: &str, since: Option<i64>, limit: u32) -> Vec<PastEvent> {
        let mut events: Vec<PastEvent> = self.named(name, since).cloned().collect();
        events.reverse();
        events.sort_by_key(|event| std::cmp::Reverse(event.timestamp));
        events.truncate(limit as usize);
        events
    }
}

fn micros(seconds: u64) -> i64 {
    i64::try_from(seconds)
        .unwrap_or(i64::MAX)
        .saturating_mul(1_000_000)
}

/// Reads an instant that is not after the start.
fn before(text: &str, start: Timestamp) -> Option<Timestamp> {
    let at = match text.strip_prefix('-') {
        Some(span) => {
            let later = time::read(&format!("+{span}"), start)?;
            start.minus(later.since(start))
        }
        None => time::read(text, start)?,
    };
    (at <= start).then_some(at)
}

/// A JSON value, as plugins get it.
pub(super) fn from_json(value: &Json) -> Value {
    match value {
        Json::Null => Value::Null,
        Json::Bool(value) => Value::Boolean(*value),
        Json::Number(value) => Value::Number(value.as_f64().unwrap_or_default()),
        Json::String(value) => Value::Text(value.clone()),
        value => Value::Json(value.to_string()),
    }
}

/// A value of a plugin, as JSON.
pub(super) fn to_json(value: Value) -> Json {
    match value {
        Value::Null | Value::Withheld => Json::Null,
        Value::Boolean(value) => Json::Bool(value),
        Value::Number(value) => value.into(),
        Value::Text(value) => Json::String(value),
        Value::Json(text) => serde_json::from_str(&text).unwrap_or(Json::String(text)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn subject(described: Json) -> Subject {
        let described: Described = serde_json::from_value(described).unwrap();
        Subject::new(&described, time::START, "").unwrap()
    }

    #[test]
    fn facts_follow_from_events_unless_they_are_given() {
        let ana = subject(json!({
            "facts": {"country": "AT", "event_count": 7},
            "history": [{"name": "visited", "at": "-1h"}, {"name": "visited", "at": "-2h"}],
        }));
        assert_eq!(ana.fact("country"), Some(Value::Text("AT".to_owned())));
        assert_eq!(ana.fact("event_count"), Some(Value::Number(7.0)));
        assert_eq!(ana.fact("identified"), Some(Value::Boolean(false)));
        assert_eq!(
            ana.fact("first_seen_at"),
            Some(Value::Text("2025-12-31T22:00:00.000Z".to_owned()))
        );
        assert_eq!(ana.fact("platform"), None);
    }

    #[test]
    fn the_facts_of_somebody_new_are_those_of_a_server() {
        let mut ana = subject(json!({}));
        let taken = |ana: &mut Subject, name: &str, seconds: i64| {
            let event = PastEvent {
                id: Uuid::nil(),
                timestamp: time::START.0 + seconds * 1_000_000,
                properties: "{}".into(),
            };
            ana.take(&name.into(), event);
        };
        let known = |ana: &Subject| {
            ["first_seen_at", "last_seen_at", "event_count"].map(|name| ana.fact(name).unwrap())
        };
        let at = |seconds: &str| Value::Text(format!("2026-01-01T00:00:{seconds}.000Z"));
        ana.meet(time::START);
        assert_eq!(known(&ana), [at("00"), at("00"), Value::Number(0.0)]);
        taken(&mut ana, "bought", 0);
        assert_eq!(known(&ana), [at("00"), at("00"), Value::Number(1.0)]);
        taken(&mut ana, PROPERTY_CHANGED, 5);
        assert_eq!(known(&ana), [at("00"), at("00"), Value::Number(1.0)]);
        assert_eq!(ana.count(PROPERTY_CHANGED, None, 9), 1);
        taken(&mut ana, "bought", 7);
        assert_eq!(known(&ana), [at("00"), at("07"), Value::Number(2.0)]);
    }

    #[test]
    fn history_is_counted_and_newest_first() {
        let mut ana = subject(json!({"history": [
            {"name": "bought", "at": "-1h", "properties": {"n": 2}},
            {"name": "bought", "at": "-3h", "properties": {"n": 1}},
        ]}));
        let since = time::START.0 - 2 * 3_600_000_000;
        assert_eq!(ana.count("bought", None, 1000), 2);
        assert_eq!(ana.count("bought", None, 1), 1);
        assert_eq!(ana.count("bought", Some(since), 1000), 1);
        assert_eq!(&*ana.recent("bought", None, 9)[0].properties, r#"{"n":2}"#);
        assert_eq!(ana.session, 2);
        let event = PastEvent {
            id: Uuid::nil(),
            timestamp: time::START.0,
            properties: "{}".into(),
        };
        assert_eq!(ana.take(&"bought".into(), event), (3, true));
        assert_eq!(ana.recent("bought", None, 1)[0].timestamp, time::START.0);
    }

    #[test]
    fn history_lies_before_the_start() {
        for at in ["+1s", "2027-01-01T00:00:00Z", "yesterday"] {
            let described: Described =
                serde_json::from_value(json!({"history": [{"name": "x", "at": at}]})).unwrap();
            let bad = Subject::new(&described, time::START, "/input/subject").unwrap_err();
            assert_eq!(bad.pointer, "/input/subject/history/0/at");
        }
    }
}
