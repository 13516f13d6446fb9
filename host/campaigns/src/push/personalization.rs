//! A variant's `personalization`, as far as the host reads it: what all resolvers have in common. The rest is
//! the plugin's to check.

use nudge_platform::field_error::FieldError;
use nudge_platform::json::escaped;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::event_names;
use crate::push::template::is_id;

/// The one version there is.
const VERSION: f64 = 1.0;
/// The kind of a source that is the newest event of a name.
const LATEST_EVENT: &str = "latest_event";
/// Bindings and sources of a variant (contract 9).
const MOST_BINDINGS: usize = 32;
const MOST_SOURCES: usize = 16;
/// Days that a `latest_event` source may look back (specification 8).
const LOOKBACK: std::ops::RangeInclusive<f64> = 1.0..=90.0;
/// The longest name of an event (contract 15) and key of a binding, in characters.
const MOST_EVENT_NAME: usize = 200;
const MOST_KEY: usize = 400;
/// The longest text for people, in characters.
const MOST_LABEL: usize = 200;

/// What becomes of a message without a value for a binding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Missing {
    /// It is not sent.
    #[default]
    Skip,
    /// It fails.
    Fail,
}

/// Where a source's values come from.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// Saved properties of the recipient.
    UserProperty,
    /// The data of the request that asks for the send.
    SendData,
    /// The event that caused the message.
    TriggerEvent,
    /// The newest event of a name.
    LatestEvent {
        /// The name.
        event_name: String,
        /// How far back, in days.
        lookback_days: i64,
        /// Whether only some of those events count.
        filtered: bool,
    },
    /// One that only the named plugin knows.
    Other(String),
}

/// The type of a binding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = BindingType)]
#[serde(rename_all = "snake_case")]
pub enum Type {
    /// A text.
    String,
    /// A number.
    Number,
    /// `true` or `false`.
    Boolean,
    /// An ISO 8601 date or date-time, as text.
    Date,
}

/// What a token can stand for.
#[derive(Clone, Debug, PartialEq)]
pub struct Binding {
    /// What tokens call it.
    pub id: String,
    /// Where its value comes from.
    pub source: Kind,
    /// The property or field.
    pub key: String,
    /// The type of the value.
    pub kind: Type,
    /// Whether something stands in for a missing value.
    pub has_fallback: bool,
}

/// A variant's `personalization`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spec {
    /// What becomes of a message without a value.
    pub missing: Missing,
    /// What tokens can stand for.
    pub bindings: Vec<Binding>,
}

impl Kind {
    /// The name, as the API has it.
    pub fn name(&self) -> &str {
        match self {
            Self::UserProperty => "user_property",
            Self::SendData => "send_data",
            Self::TriggerEvent => "trigger_event",
            Self::LatestEvent { .. } => LATEST_EVENT,
            Self::Other(name) => name,
        }
    }
}

impl Type {
    fn of_name(name: &str) -> Option<Self> {
        Some(match name {
            "string" => Self::String,
            "number" => Self::Number,
            "boolean" => Self::Boolean,
            "date" => Self::Date,
            _ => return None,
        })
    }

    /// Whether a value is of the type.
    pub fn fits(self, value: &Value) -> bool {
        match self {
            // What is a date is the plugin's to say.
            Self::String | Self::Date => value.is_string(),
            Self::Number => value.is_number(),
            Self::Boolean => value.is_boolean(),
        }
    }
}

/// The plugin that a `personalization` names in place of the app's.
pub fn named_plugin(personalization: &Value) -> Option<&str> {
    personalization.get("plugin")?.as_str()
}

/// What is wrong with the names of events in a `personalization`. Pointers begin where those of the plugin do. Of sources
/// that only a named plugin knows, the names are that plugin's to check.
pub(crate) fn check_event_names(personalization: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let sources = personalization.get("sources").and_then(Value::as_array);
    for (index, source) in sources.into_iter().flatten().enumerate() {
        if source.get("kind").is_some_and(|kind| kind == LATEST_EVENT) {
            let place = format!("/personalization/sources/{index}");
            event_names::check(source, &place, &mut errors);
        }
    }
    errors
}

impl Spec {
    /// Reads a `personalization`. Pointers of what is wrong begin at it.
    pub fn read(personalization: &Value) -> Result<Self, Vec<FieldError>> {
        let mut reader = Reader {
            errors: Vec::new(),
            lenient: named_plugin(personalization).is_some(),
        };
        let spec = reader.spec(personalization);
        if reader.errors.is_empty() {
            Ok(spec)
        } else {
            Err(reader.errors)
        }
    }

    /// The binding of an id.
    pub fn binding(&self, id: &str) -> Option<&Binding> {
        self.bindings.iter().find(|binding| binding.id == id)
    }

    /// What a request that asks for a send must have in its `data`.
    pub fn required_data(&self) -> impl Iterator<Item = &Binding> {
        let required =
            |binding: &&Binding| binding.source == Kind::SendData && !binding.has_fallback;
        self.bindings.iter().filter(required)
    }

    /// The events that are read, once each: name, days back, and whether only some count.
    pub fn latest_events(&self) -> Vec<(&str, i64, bool)> {
        let mut found = Vec::new();
        for binding in &self.bindings {
            if let Kind::LatestEvent {
                event_name,
                lookback_days,
                filtered,
            } = &binding.source
            {
                let read = (event_name.as_str(), *lookback_days, *filtered);
                if !found.contains(&read) {
                    found.push(read);
                }
            }
        }
        found
    }
}

/// Gathers what is wrong.
struct Reader {
    errors: Vec<FieldError>,
    /// Whether a plugin of the app's own decides what sources there are.
    lenient: bool,
}

impl Reader {
    fn wrong(&mut self, place: impl Into<String>, code: &str, detail: impl Into<String>) {
        self.errors.push(FieldError::new(place, code, detail));
    }

    fn spec(&mut self, personalization: &Value) -> Spec {
        let Some(root) = personalization.as_object() else {
            self.wrong("", "wrong_type", "must be an object");
            return Spec::default();
        };
        match root.get("version") {
            None => self.wrong("/version", "required", "say which version it is: 1"),
            Some(version) if version.as_f64() == Some(VERSION) => {}
            Some(_) => self.wrong("/version", "unknown_version", "only version 1 is known"),
        }
        if let Some(plugin) = root.get("plugin")
            && !plugin.is_string()
        {
            self.wrong("/plugin", "wrong_type", "must be the name of a plugin");
        }
        let missing = match root.get("missingData") {
            None => Missing::default(),
            Some(Value::String(name)) if name == "skip" => Missing::Skip,
            Some(Value::String(name)) if name == "fail" => Missing::Fail,
            Some(_) => {
                self.wrong("/missingData", "unknown_value", "must be `skip` or `fail`");
                Missing::default()
            }
        };
        let sources = self.sources(root);
        Spec {
            missing,
            bindings: self.bindings(root, &sources),
        }
    }

    fn list<'v>(&mut self, root: &'v Map<String, Value>, name: &str, most: usize) -> &'v [Value] {
        let place = format!("/{name}");
        match root.get(name) {
            None => &[],
            Some(Value::Array(items)) if items.len() <= most => items,
            Some(Value::Array(_)) => {
                self.wrong(place, "out_of_range", format!("at most {most} {name}"));
                &[]
            }
            Some(_) => {
                self.wrong(place, "wrong_type", "must be a list");
                &[]
            }
        }
    }

    /// The sources with their ids. A source that can't be read has a place nevertheless, so that bindings of it
    /// are not wrong too.
    fn sources(&mut self, root: &Map<String, Value>) -> Vec<(String, Kind)> {
        let mut sources: Vec<(String, Kind)> = Vec::new();
        for (index, source) in self.list(root, "sources", MOST_SOURCES).iter().enumerate() {
            let place = format!("/sources/{index}");
            let id = self.id(source, &place);
            if let Some(id) = &id
                && sources.iter().any(|(known, _)| known == id)
            {
                self.wrong(
                    format!("{place}/id"),
                    "duplicate_id",
                    format!("`{id}` is there twice"),
                );
            }
            let kind = self.kind(source, &place);
            if let Some(id) = id {
                sources.push((id, kind));
            }
        }
        sources
    }

    fn kind(&mut self, source: &Value, place: &str) -> Kind {
        let name = self
            .text(source, place, "kind", MOST_LABEL)
            .unwrap_or_default();
        match name.as_str() {
            "user_property" => Kind::UserProperty,
            "send_data" => Kind::SendData,
            "trigger_event" => Kind::TriggerEvent,
            LATEST_EVENT => self.latest_event(source, place),
            _ => {
                if !self.lenient && !name.is_empty() {
                    let detail = "must be user_property, send_data, trigger_event or latest_event";
                    self.wrong(format!("{place}/kind"), "unknown_kind", detail);
                }
                Kind::Other(name)
            }
        }
    }

    fn latest_event(&mut self, source: &Value, place: &str) -> Kind {
        let event_name = self.text(source, place, "eventName", MOST_EVENT_NAME);
        let days_place = format!("{place}/lookbackDays");
        let days = match source.get("lookbackDays") {
            None => {
                self.wrong(days_place, "required", "say how many days to look back");
                None
            }
            Some(days) => {
                let days = days
                    .as_f64()
                    .filter(|days| days.fract() == 0.0 && LOOKBACK.contains(days));
                if days.is_none() {
                    self.wrong(
                        days_place,
                        "out_of_range",
                        "must be a whole number from 1 to 90",
                    );
                }
                days
            }
        };
        #[expect(clippy::cast_possible_truncation, reason = "a whole number up to 90")]
        let lookback_days = days.unwrap_or_default() as i64;
        Kind::LatestEvent {
            event_name: event_name.unwrap_or_default(),
            lookback_days,
            filtered: source
                .get("filters")
                .is_some_and(|filters| !filters.is_null()),
        }
    }

    fn bindings(&mut self, root: &Map<String, Value>, sources: &[(String, Kind)]) -> Vec<Binding> {
        let mut bindings: Vec<Binding> = Vec::new();
        for (index, binding) in self
            .list(root, "bindings", MOST_BINDINGS)
            .iter()
            .enumerate()
        {
            let place = format!("/bindings/{index}");
            let id = self.id(binding, &place);
            if let Some(id) = &id
                && bindings.iter().any(|known| known.id == *id)
            {
                self.wrong(
                    format!("{place}/id"),
                    "duplicate_id",
                    format!("`{id}` is there twice"),
                );
            }
            let source = self.source_of(binding, &place, sources);
            let key = self.text(binding, &place, "key", MOST_KEY);
            let kind = self.type_of(binding, &place);
            // A null is no fallback: it would be missing itself.
            let fallback = binding.get("fallback");
            if let (Some(kind), Some(fallback)) = (kind, fallback)
                && !kind.fits(fallback)
            {
                self.wrong(
                    format!("{place}/fallback"),
                    "wrong_type",
                    "must have the binding's type",
                );
            }
            if let (Some(id), Some(source), Some(key), Some(kind)) = (id, source, key, kind) {
                bindings.push(Binding {
                    id,
                    source,
                    key,
                    kind,
                    has_fallback: fallback.is_some(),
                });
            }
        }
        bindings
    }

    fn source_of(
        &mut self,
        binding: &Value,
        place: &str,
        sources: &[(String, Kind)],
    ) -> Option<Kind> {
        let id = self.text(binding, place, "sourceId", MOST_LABEL)?;
        let found = sources.iter().find(|(known, _)| *known == id);
        if found.is_none() {
            let detail = format!("there is no source `{id}`");
            self.wrong(format!("{place}/sourceId"), "unknown_source", detail);
        }
        found.map(|(_, kind)| kind.clone())
    }

    fn type_of(&mut self, binding: &Value, place: &str) -> Option<Type> {
        let name = self.text(binding, place, "type", MOST_LABEL)?;
        let kind = Type::of_name(&name);
        if kind.is_none() {
            let detail = "must be string, number, boolean or date";
            self.wrong(format!("{place}/type"), "unknown_type", detail);
        }
        kind
    }

    fn id(&mut self, item: &Value, place: &str) -> Option<String> {
        if !item.is_object() {
            self.wrong(place, "wrong_type", "must be an object");
            return None;
        }
        let id = self.text(item, place, "id", MOST_LABEL)?;
        if is_id(&id) {
            return Some(id);
        }
        let detail = "1 to 64 letters, digits, `_` and `-`";
        self.wrong(format!("{place}/id"), "invalid_id", detail);
        None
    }

    /// A text that must be there, not empty.
    fn text(&mut self, item: &Value, place: &str, key: &str, most: usize) -> Option<String> {
        let place = format!("{place}/{}", escaped(key));
        match item.get(key) {
            // It was said already that the item is no object.
            None if !item.is_object() => None,
            None => {
                self.wrong(place, "required", format!("`{key}` is missing"));
                None
            }
            Some(Value::String(text)) if (1..=most).contains(&text.chars().count()) => {
                Some(text.clone())
            }
            Some(Value::String(_)) => {
                self.wrong(
                    place,
                    "out_of_range",
                    format!("must have 1 to {most} characters"),
                );
                None
            }
            Some(_) => {
                self.wrong(place, "wrong_type", "must be a text");
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn wrong(personalization: &Value) -> Vec<(String, String)> {
        let errors = Spec::read(personalization).err().unwrap_or_default();
        errors
            .into_iter()
            .map(|error| (error.pointer, error.code))
            .collect()
    }

    fn good() -> Value {
        json!({"version": 1, "missingData": "fail",
            "sources": [{"id": "user", "kind": "user_property"},
                {"id": "order", "kind": "latest_event", "eventName": "bought", "lookbackDays": 90}],
            "bindings": [{"id": "name", "sourceId": "user", "key": "first_name", "type": "string", "fallback": "you"},
                {"id": "total", "sourceId": "order", "key": "total", "type": "number"}]})
    }

    #[test]
    fn what_is_written_is_read() {
        let spec = Spec::read(&good()).unwrap();
        assert_eq!(spec.missing, Missing::Fail);
        assert_eq!(spec.latest_events(), [("bought", 90, false)]);
        assert!(spec.binding("name").unwrap().has_fallback);
        assert_eq!(spec.required_data().count(), 0);
        assert_eq!(Spec::read(&json!({"version": 1})).unwrap(), Spec::default());
    }

    #[test]
    fn mistakes_are_named_by_their_place() {
        let with = |pointer: &str, value: Value| {
            let mut changed = good();
            *changed.pointer_mut(pointer).unwrap() = value;
            changed
        };
        for (pointer, value, code) in [
            ("/version", json!(2), "unknown_version"),
            ("/missingData", json!("wait"), "unknown_value"),
            ("/sources/0/kind", json!("weather"), "unknown_kind"),
            ("/sources/1/lookbackDays", json!(0), "out_of_range"),
            ("/sources/1/lookbackDays", json!(91), "out_of_range"),
            ("/sources/1/lookbackDays", json!(1.5), "out_of_range"),
            ("/sources/1/eventName", json!(""), "out_of_range"),
            ("/bindings/0/sourceId", json!("nobody"), "unknown_source"),
            ("/bindings/0/type", json!("money"), "unknown_type"),
            ("/bindings/0/fallback", json!(7), "wrong_type"),
            ("/bindings/0/fallback", json!(null), "wrong_type"),
            ("/bindings/1/id", json!("name"), "duplicate_id"),
            ("/bindings/1/id", json!("a b"), "invalid_id"),
            ("/bindings/1/key", json!(7), "wrong_type"),
        ] {
            assert_eq!(
                wrong(&with(pointer, value)),
                [(pointer.to_owned(), code.to_owned())]
            );
        }
        assert_eq!(
            wrong(&json!({})),
            [("/version".to_owned(), "required".to_owned())]
        );
        assert_eq!(
            wrong(&json!([])),
            [(String::new(), "wrong_type".to_owned())]
        );
    }

    #[test]
    fn numbers_of_sources_and_bindings_are_limited() {
        let source = |number: usize| json!({"id": format!("s{number}"), "kind": "send_data"});
        let binding = |number: usize| json!({"id": format!("b{number}"), "sourceId": "s0", "key": "k", "type": "date"});
        let many = |sources, bindings| {
            json!({"version": 1, "sources": (0..sources).map(source).collect::<Vec<_>>(),
                "bindings": (0..bindings).map(binding).collect::<Vec<_>>()})
        };
        assert!(Spec::read(&many(16, 32)).is_ok());
        assert_eq!(
            wrong(&many(1, 33))[0],
            ("/bindings".to_owned(), "out_of_range".to_owned())
        );
        assert_eq!(
            wrong(&many(17, 0))[0],
            ("/sources".to_owned(), "out_of_range".to_owned())
        );
    }

    #[test]
    fn a_named_plugin_has_sources_of_its_own() {
        let personalization = json!({"version": 1, "plugin": "weather", "sources": [{"id": "w", "kind": "weather"}],
            "bindings": [{"id": "sky", "sourceId": "w", "key": "sky", "type": "string"}]});
        let spec = Spec::read(&personalization).unwrap();
        assert_eq!(spec.binding("sky").unwrap().source.name(), "weather");
    }
}
