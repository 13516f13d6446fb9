//! What a campaign waits for, as the plugin that decides gets it.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use nudge_platform::field_error::FieldError;
use nudge_platform::json::escaped;
use nudge_plugin_runtime::{Configuration, PluginRef};
use nudge_wasm::Kind;
use serde::{Deserialize as _, Deserializer};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::event_names;
use crate::segments::{Audiences, Change, Watch, expand};

/// The trigger of a campaign that runs by the calendar and has none of its own.
pub static BY_THE_CALENDAR: LazyLock<Value> = LazyLock::new(|| json!({"kind": "schedule"}));

/// The kind of a trigger that names a plugin (contract 8).
const PLUGIN: &str = "plugin";
/// The kind of a trigger that a segment's changes fire (contract 19).
const SEGMENT: &str = "segment";
/// The kinds of triggers that no event fires (contract 8).
const SCHEDULE: &str = "schedule";
const MANUAL: &str = "manual";
/// The kind of a trigger that a changed property fires (contract 8).
const PROPERTY_CHANGED: &str = "property_changed";
/// What a merge patch says in place of a null, which would remove the member: with true the other is null.
const MISSING: [(&str, &str); 2] = [("fromMissing", "from"), ("toMissing", "to")];

/// Reads a trigger as people write it. What it says of a missing value is afterwards said by a null alone.
pub(crate) fn read<'de, D: Deserializer<'de>>(source: D) -> Result<Option<Value>, D::Error> {
    let mut trigger = Option::<Value>::deserialize(source)?;
    if let Some(Value::Object(members)) = &mut trigger
        && members.get("kind").and_then(Value::as_str) == Some(PROPERTY_CHANGED)
    {
        for (missing, key) in MISSING {
            match members.get(missing) {
                Some(Value::Bool(true)) => {
                    members.insert(key.to_owned(), Value::Null);
                }
                Some(Value::Bool(false) | Value::Null) => {}
                // What else it may be is the plugin's to check.
                _ => continue,
            }
            members.remove(missing);
        }
    }
    Ok(trigger)
}

/// The parts of a campaign that a trigger plugin decides by.
#[derive(Clone, Copy, Debug)]
pub struct Terms<'a> {
    /// What it waits for.
    pub trigger: Option<&'a Value>,
    /// Whom it is for.
    pub audience: Option<&'a Value>,
}

impl<'a> Terms<'a> {
    /// The plugin that the trigger names, if it names one.
    pub fn named_plugin(&self) -> Option<&'a str> {
        let trigger = self.trigger?;
        let names_one = trigger.get("kind").and_then(Value::as_str) == Some(PLUGIN);
        names_one.then(|| trigger.get("plugin")?.as_str())?
    }

    /// The segment whose changes fire the campaign, if that is what it waits for.
    pub fn watch(&self) -> Option<Watch> {
        let trigger = self.trigger?;
        if !is_segment(trigger) {
            return None;
        }
        Some(Watch {
            segment_id: Uuid::parse_str(trigger.get("segmentId")?.as_str()?).ok()?,
            on: Change::deserialize(trigger.get("on")?).ok()?,
        })
    }

    /// Whether no event fires the campaign: its trigger is a schedule, or somebody begins it.
    pub fn is_by_calendar(&self) -> bool {
        let kind = self
            .trigger
            .and_then(|trigger| trigger.get("kind")?.as_str());
        matches!(kind, Some(SCHEDULE | MANUAL))
    }

    /// The segments that the campaign names.
    pub fn segments(&self) -> BTreeSet<Uuid> {
        let mut named = self.audience.map(expand::named).unwrap_or_default();
        named.extend(self.watch().map(|watch| watch.segment_id));
        named
    }

    /// What is wrong with the names of events in it. What a plugin that is named gets is that plugin's to check.
    pub(crate) fn check_event_names(&self) -> Vec<FieldError> {
        let mut errors = Vec::new();
        if let Some(trigger) = self.trigger
            && self.named_plugin().is_none()
        {
            event_names::check(trigger, "/trigger", &mut errors);
        }
        if let Some(audience) = self.audience {
            event_names::check(audience, "/audience", &mut errors);
        }
        errors
    }

    /// The configuration that the trigger plugin gets: of the slot's plugin the trigger and the audience, with the conditions
    /// of the segments that it names; of one that is named what stands beside its name.
    pub fn configuration(
        &self,
        segments: &Audiences,
    ) -> Result<Configuration<'a>, Vec<FieldError>> {
        if let Some(trigger) = self.trigger
            && trigger.get("kind").and_then(Value::as_str) == Some(PLUGIN)
        {
            return self.own_plugin(trigger);
        }
        let mut config = serde_json::Map::new();
        if let Some(trigger) = self.trigger {
            config.insert("trigger".to_owned(), trigger.clone());
        }
        if let Some(audience) = self.audience {
            let audience = segments.expand(None, audience)?;
            config.insert("audience".to_owned(), audience);
        }
        let named = self.trigger.filter(|trigger| is_segment(trigger));
        let named = named.and_then(|trigger| trigger.get("segmentId")?.as_str());
        if let Some(named) = named
            && !Uuid::parse_str(named).is_ok_and(|id| segments.has(id))
        {
            let detail = "the app has no segment of this id";
            let error = FieldError::new("/trigger/segmentId", expand::UNKNOWN, detail);
            return Err(vec![error]);
        }
        Ok(Configuration {
            kind: Kind::Trigger,
            asked: PluginRef::Slot,
            text: json!(config).to_string(),
            place: "",
            name_place: "",
        })
    }

    fn own_plugin(&self, trigger: &'a Value) -> Result<Configuration<'a>, Vec<FieldError>> {
        let mut errors = Vec::new();
        let keys = trigger
            .as_object()
            .into_iter()
            .flatten()
            .map(|(key, _)| key);
        for key in keys.filter(|key| !["kind", "plugin", "config"].contains(&key.as_str())) {
            let detail = "a trigger of the kind `plugin` has `plugin` and `config`; the rest is the plugin's, put it \
                          into `config`";
            errors.push(FieldError::new(
                format!("/trigger/{}", escaped(key)),
                "unknown_key",
                detail,
            ));
        }
        if self.audience.is_some() {
            let detail = "the plugin that a trigger names decides alone; put what it needs into `trigger.config`";
            errors.push(FieldError::new("/audience", "not_allowed", detail));
        }
        let name = trigger.get("plugin").and_then(Value::as_str);
        if name.is_none() {
            let detail = "a trigger of the kind `plugin` names the plugin that decides";
            errors.push(FieldError::new("/trigger/plugin", "required", detail));
        }
        let config = trigger.get("config");
        match name {
            Some(name) if errors.is_empty() => Ok(Configuration {
                kind: Kind::Trigger,
                asked: PluginRef::Named(name),
                text: config.map_or_else(|| "{}".to_owned(), Value::to_string),
                place: "/trigger/config",
                name_place: "/trigger/plugin",
            }),
            _ => Err(errors),
        }
    }
}

/// Whether a trigger is a change of a segment.
fn is_segment(trigger: &Value) -> bool {
    trigger.get("kind").and_then(Value::as_str) == Some(SEGMENT)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(parts: &Value) -> Terms<'_> {
        Terms {
            trigger: parts.get("trigger"),
            audience: parts.get("audience"),
        }
    }

    #[test]
    fn a_missing_value_is_a_null_however_it_was_written() {
        let changed = |mut members: Value| {
            members["kind"] = json!("property_changed");
            members
        };
        let cases = [
            (json!({"fromMissing": true}), json!({"from": null})),
            (
                json!({"from": "free", "fromMissing": true, "to": "pro"}),
                json!({"from": null, "to": "pro"}),
            ),
            (
                json!({"from": "free", "fromMissing": false, "toMissing": true}),
                json!({"from": "free", "to": null}),
            ),
            (json!({"to": null, "toMissing": null}), json!({"to": null})),
            // Not for the host to say.
            (json!({"toMissing": 1}), json!({"toMissing": 1})),
        ];
        for (written, stored) in cases {
            assert_eq!(read(changed(written)).unwrap(), Some(changed(stored)));
        }
        let other = json!({"kind": "event", "fromMissing": true});
        assert_eq!(read(other.clone()).unwrap(), Some(other));
        assert_eq!(read(Value::Null).unwrap(), None);
    }

    #[test]
    fn the_slots_plugin_gets_trigger_and_audience() {
        let parts = json!({"trigger": {"kind": "event"}, "audience": {"include": 1}});
        let terms = terms(&parts);
        let configuration = terms.configuration(&Audiences::default()).unwrap();
        assert_eq!(configuration.asked, PluginRef::Slot);
        let config: Value = serde_json::from_str(&configuration.text).unwrap();
        assert_eq!(config, parts);
        assert_eq!(terms.named_plugin(), None);
    }

    #[test]
    fn a_named_plugin_gets_its_config() {
        let parts = json!({"trigger": {"kind": "plugin", "plugin": "cart", "config": {"a": 1}}});
        let terms = terms(&parts);
        let configuration = terms.configuration(&Audiences::default()).unwrap();
        assert_eq!(configuration.asked, PluginRef::Named("cart"));
        assert_eq!(configuration.text, r#"{"a":1}"#);
        assert_eq!(terms.named_plugin(), Some("cart"));
    }

    #[test]
    fn what_a_named_plugin_would_not_see_is_refused() {
        let pointers = |parts: &Value| -> Vec<String> {
            let errors = terms(parts)
                .configuration(&Audiences::default())
                .unwrap_err();
            errors.into_iter().map(|error| error.pointer).collect()
        };
        let trigger = json!({"kind": "plugin", "plugin": "cart", "delaySeconds": 5, "a/b": 1});
        assert_eq!(
            pointers(&json!({"trigger": trigger})),
            ["/trigger/a~1b", "/trigger/delaySeconds"]
        );
        let trigger = json!({"kind": "plugin"});
        assert_eq!(
            pointers(&json!({"trigger": trigger, "audience": {}})),
            ["/audience", "/trigger/plugin"]
        );
    }
}
