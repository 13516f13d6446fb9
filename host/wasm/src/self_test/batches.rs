//! Made-up batches of one item.

use std::sync::Arc;

use serde_json::{Map, Value as Json};
use uuid::Uuid;

use crate::plugin::Reads;
use crate::value::PastEvent;
use crate::{personalization, trigger, validation};

/// The time of made-up batches: 2026-01-01T00:00:00Z, in microseconds since 1970.
const NOW: i64 = 1_767_225_600_000_000;
/// The event of a configuration that names none.
const EVENT_NAME: &str = "self_test";
/// The event's id, and the subject's.
const ID: Uuid = Uuid::from_u128(1);

/// The properties of a made-up event.
#[derive(Clone, Copy, Debug)]
pub(super) enum Filling {
    /// None.
    Bare,
    /// Those that the configuration reads, each a number.
    Numbers,
    /// Those that the configuration reads, each a text.
    Texts,
}

impl Filling {
    /// All of them, in the order in which they are tried.
    pub(super) const ALL: [Self; 3] = [Self::Bare, Self::Numbers, Self::Texts];

    fn value(self) -> Option<Json> {
        match self {
            Self::Bare => None,
            Self::Numbers => Some(1.into()),
            Self::Texts => Some("text".into()),
        }
    }

    /// The text of an object with a value at each of these dotted paths.
    fn properties(self, paths: &[String]) -> Arc<str> {
        let mut object = Map::new();
        if let Some(value) = self.value() {
            for path in paths {
                insert(&mut object, path, &value);
            }
        }
        serde_json::to_string(&object).unwrap_or_default().into()
    }
}

/// Sets the value at a dotted path, unless something else is in the way.
fn insert(object: &mut Map<String, Json>, path: &str, value: &Json) {
    let mut object = object;
    let mut keys = path.split('.').take(crate::limits::PATH_KEYS).peekable();
    while let Some(key) = keys.next() {
        if keys.peek().is_none() {
            object.entry(key).or_insert_with(|| value.clone());
            return;
        }
        let inner = object
            .entry(key)
            .or_insert_with(|| Json::Object(Map::new()));
        let Json::Object(inner) = inner else { return };
        object = inner;
    }
}

pub(super) fn empty_trigger() -> trigger::Batch {
    trigger::Batch {
        now: NOW,
        items: Vec::new(),
        campaigns: Vec::new(),
        explaining: false,
        seed: 0,
    }
}

pub(super) fn trigger(config: Arc<str>, reads: &Reads, filling: Filling) -> trigger::Batch {
    let named = reads.event_names.iter().find(|name| *name != "*");
    let item = trigger::Item {
        subject: 0,
        event_id: ID,
        name: named.map_or(EVENT_NAME, String::as_str).into(),
        timestamp: NOW,
        received: NOW,
        session: 1,
        properties: filling.properties(&reads.properties),
        timer: None,
    };
    let campaign = trigger::Campaign {
        id: ID,
        config,
        properties: reads.properties.as_slice().into(),
        items: vec![0],
    };
    trigger::Batch {
        items: vec![item],
        campaigns: vec![campaign],
        ..empty_trigger()
    }
}

pub(super) fn empty_validation() -> validation::Batch {
    validation::Batch {
        now: NOW,
        items: Vec::new(),
        definitions: Vec::new(),
    }
}

pub(super) fn validation(config: Arc<str>, reads: &Reads, filling: Filling) -> validation::Batch {
    let item = validation::Item {
        timestamp: NOW,
        properties: filling.properties(&reads.properties),
    };
    let definition = validation::Definition {
        config,
        properties: reads.properties.as_slice().into(),
        items: vec![0],
    };
    validation::Batch {
        items: vec![item],
        definitions: vec![definition],
        ..empty_validation()
    }
}

pub(super) fn empty_personalization() -> personalization::Batch {
    personalization::Batch {
        now: NOW,
        seed: 0,
        items: Vec::new(),
        messages: Vec::new(),
    }
}

pub(super) fn personalization(
    config: Arc<str>,
    reads: &Reads,
    filling: Filling,
) -> personalization::Batch {
    let properties = filling.properties(&reads.properties);
    let item = personalization::Item {
        recipient: ID,
        data: Arc::clone(&properties),
        trigger: filling.value().map(|_| PastEvent {
            id: ID,
            timestamp: NOW,
            properties,
        }),
    };
    let message = personalization::Message {
        config,
        properties: reads.properties.as_slice().into(),
        subject_properties: reads.subject_properties.as_slice().into(),
        items: vec![0],
    };
    personalization::Batch {
        items: vec![item],
        messages: vec![message],
        ..empty_personalization()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn properties_stand_where_configurations_read_them() {
        let paths = ["a", "b.c", "b.d", "a.e"].map(str::to_owned);
        assert_eq!(&*Filling::Bare.properties(&paths), "{}");
        assert_eq!(
            &*Filling::Numbers.properties(&paths),
            r#"{"a":1,"b":{"c":1,"d":1}}"#
        );
        let deep = [".".repeat(100_000)];
        assert!(Filling::Texts.properties(&deep).len() < 1_000);
    }
}
