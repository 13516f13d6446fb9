//! What a plugin says of itself and of a configuration.

use std::fmt;

/// What a plugin says of itself.
///
/// [`export!`](crate::export!) makes one of the package's name, version and description;
/// a plugin's `describe` may change it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Description {
    /// Lower-case letters, digits and hyphens, at most 64 characters. Versions of one plugin share it.
    pub name: String,
    /// A semantic version. A version never changes its bytes.
    pub version: String,
    /// One or two sentences for the people who choose plugins.
    pub summary: String,
    /// A JSON Schema of the configuration, or an empty string.
    pub config_schema: String,
}

impl Description {
    /// The same with a JSON Schema of the configuration, from which consoles make a form.
    #[must_use]
    pub fn with_config_schema(mut self, schema: impl Into<String>) -> Self {
        self.config_schema = schema.into();
        self
    }
}

/// What decisions under one configuration read. The host calls the plugin for these events only, and
/// sends these properties only.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reads {
    /// Names of the events to be called for; `*` alone is every event.
    pub event_names: Vec<String>,
    /// Event properties, as dotted paths (`cart.total`).
    pub properties: Vec<String>,
    /// Properties of the subject.
    pub subject_properties: Vec<String>,
    /// Names of events that a trigger plugin asks the past of without being called for them. Without them here,
    /// those that arrive together with the event that is decided about may be missing.
    pub history: Vec<String>,
}

impl Reads {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// And events of these names.
    #[must_use]
    pub fn events<T: Into<String>>(mut self, names: impl IntoIterator<Item = T>) -> Self {
        add_new(&mut self.event_names, names);
        self
    }

    /// And these event properties, as dotted paths.
    #[must_use]
    pub fn properties<T: Into<String>>(mut self, paths: impl IntoIterator<Item = T>) -> Self {
        add_new(&mut self.properties, paths);
        self
    }

    /// And these properties of the subject.
    #[must_use]
    pub fn subject_properties<T: Into<String>>(
        mut self,
        keys: impl IntoIterator<Item = T>,
    ) -> Self {
        add_new(&mut self.subject_properties, keys);
        self
    }
}

impl Reads {
    /// And the past of events of these names.
    #[must_use]
    pub fn history<T: Into<String>>(mut self, names: impl IntoIterator<Item = T>) -> Self {
        add_new(&mut self.history, names);
        self
    }
}

fn add_new<T: Into<String>>(list: &mut Vec<String>, items: impl IntoIterator<Item = T>) {
    for item in items.into_iter().map(Into::into) {
        if !list.contains(&item) {
            list.push(item);
        }
    }
}

/// One thing that is wrong with a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// A stable code in snake case, such as `required` or `out_of_range`.
    pub code: String,
    /// A JSON pointer (RFC 6901) into the configuration.
    pub pointer: String,
    /// A sentence for a person, saying what to change.
    pub message: String,
}

impl Problem {
    /// A problem.
    pub fn new(
        code: impl Into<String>,
        pointer: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self {
            code: code.into(),
            pointer: pointer.into(),
            message: message.into(),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} at `{}`: {}", self.code, self.pointer, self.message)
    }
}

/// Why a plugin refuses a whole batch. Nothing of the batch takes effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// A stable code in snake case.
    pub code: String,
    /// A sentence for a person.
    pub message: String,
}

impl Refusal {
    /// A refusal.
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            code: code.into(),
            message: message.into(),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.code, self.message)
    }
}

impl std::error::Error for Refusal {}

/// Payloads that can't be read, and what can't be written, refuse the batch.
impl From<serde_json::Error> for Refusal {
    fn from(error: serde_json::Error) -> Self {
        Self::new("invalid_json", error.to_string())
    }
}
