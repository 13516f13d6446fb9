//! A variant's `personalization`, compiled.

use std::time::Duration;

use nudge_guest::filter::Filter;
use nudge_guest::{Reads, Value};

use crate::format::Given;

/// Sources, each with its bindings.
#[derive(Clone, Debug)]
pub struct Config {
    pub(crate) sources: Vec<Source>,
}

/// Where values come from.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub(crate) id: String,
    pub(crate) kind: Kind,
    pub(crate) bindings: Vec<Binding>,
}

#[derive(Clone, Debug)]
pub(crate) enum Kind {
    UserProperty,
    SendData,
    TriggerEvent,
    LatestEvent {
        event_name: String,
        lookback: Duration,
        filter: Option<Filter>,
        /// The paths of the filter, which asks for them by number.
        paths: Vec<String>,
    },
}

/// What a token of the message stands for.
#[derive(Clone, Debug)]
pub(crate) struct Binding {
    pub(crate) id: String,
    pub(crate) key: String,
    pub(crate) kind: Type,
    pub(crate) fallback: Option<Value>,
    pub(crate) format: Option<Given>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    Text,
    Number,
    Boolean,
    Date,
}

impl Config {
    /// What decisions read besides the data of the send.
    pub(crate) fn reads(&self) -> Reads {
        Reads::new()
            .subject_properties(self.keys(|kind| matches!(kind, Kind::UserProperty)))
            .properties(self.keys(|kind| matches!(kind, Kind::TriggerEvent)))
    }

    /// Whether a format leaves something open for a recipient.
    pub(crate) fn has_open_formats(&self) -> bool {
        let mut bindings = self.sources.iter().flat_map(|source| &source.bindings);
        bindings.any(|binding| binding.format.as_ref().is_some_and(Given::is_open))
    }

    /// What they read of the data of the send.
    pub(crate) fn data_keys(&self) -> Vec<String> {
        let mut keys = Vec::new();
        for key in self.keys(|kind| matches!(kind, Kind::SendData)) {
            if !keys.iter().any(|known| known == key) {
                keys.push(key.to_owned());
            }
        }
        keys
    }

    fn keys(&self, of: impl Fn(&Kind) -> bool) -> impl Iterator<Item = &str> {
        let sources = self.sources.iter().filter(move |source| of(&source.kind));
        sources
            .flat_map(|source| &source.bindings)
            .map(|binding| binding.key.as_str())
    }
}

impl Type {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Text => "string",
            Self::Number => "number",
            Self::Boolean => "boolean",
            Self::Date => "date",
        }
    }
}
