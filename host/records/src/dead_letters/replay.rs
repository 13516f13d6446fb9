//! Makes the event of a dead letter again, with a merge patch laid over its properties.

use std::collections::BTreeMap;

use nudge_db::Error;
use nudge_http::{ApiError, Code};
use nudge_platform::field_error::FieldError;
use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};

use crate::dead_letters::Letter;
use crate::events::Event;

/// What of a kept event is read.
#[derive(Deserialize)]
struct LetterProperties<'a> {
    #[serde(borrow)]
    properties: Option<&'a RawValue>,
}

/// Why no event can be made of a letter.
#[derive(Debug, thiserror::Error)]
pub enum Unusable {
    /// Patched, it is no event any longer.
    #[error("the patch makes no event")]
    Patch(FieldError),
    /// What the letter keeps can't be read.
    #[error("the letter can't be read")]
    Storage(#[from] Error),
}

impl From<Unusable> for ApiError {
    fn from(unusable: Unusable) -> Self {
        match unusable {
            Unusable::Patch(error) => Self::fields(Code::ValidationFailed, vec![error]),
            Unusable::Storage(error) => error.into(),
        }
    }
}

/// The event that a letter keeps, for whoever goes through many: of one that can't be read the log tells.
pub fn readable(letter: &Letter, patch: Option<&Map<String, Value>>) -> Option<Event> {
    event(letter, patch)
        .inspect_err(|unusable| {
            if let Unusable::Storage(error) = unusable {
                tracing::error!(error = ?error, letter.id = %letter.id, "a dead letter can't be read");
            }
        })
        .ok()
}

/// The event that a letter keeps, patched.
pub fn event(letter: &Letter, patch: Option<&Map<String, Value>>) -> Result<Event, Unusable> {
    let kept: LetterProperties<'_> = serde_json::from_str(&letter.event)
        .map_err(|cause| Error::corrupt("dead_letters", "event", cause))?;
    let kept = kept.properties.map_or("{}", RawValue::get);
    let properties = match patch {
        None => kept.into(),
        Some(patch) => {
            let invalid =
                |detail: String| Unusable::Patch(FieldError::new("/patch", "invalid", detail));
            let patched = patched(kept, patch).map_err(|error| invalid(error.to_string()))?;
            crate::events::check_properties(patched.get()).map_err(invalid)?;
            patched.get().into()
        }
    };
    Ok(Event {
        id: letter.event_id,
        name: letter.event_name.as_str().into(),
        timestamp: letter.timestamp,
        client_timestamp: letter.client_timestamp,
        properties,
    })
}

/// Lays a merge patch (RFC 7396) over the text of an object. What the patch does not name stays as it was written: a number
/// that is parsed may lose digits.
fn patched(text: &str, patch: &Map<String, Value>) -> serde_json::Result<Box<RawValue>> {
    let mut members: BTreeMap<String, Box<RawValue>> = if text.starts_with('{') {
        serde_json::from_str(text)?
    } else {
        BTreeMap::new()
    };
    for (key, value) in patch {
        let member = match value {
            Value::Null => {
                members.remove(key);
                continue;
            }
            Value::Object(patch) => {
                let before = members.get(key).map_or("{}", |member| member.get());
                patched(before, patch)?
            }
            other => to_raw_value(other)?,
        };
        members.insert(key.clone(), member);
    }
    to_raw_value(&members)
}

#[cfg(test)]
mod tests {
    use nudge_platform::json::merge;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn lay(text: &str, patch: &Value) -> String {
        let patch = patch.as_object().unwrap();
        patched(text, patch).unwrap().get().to_owned()
    }

    #[test]
    fn what_a_patch_does_not_name_stays_as_it_was_written() {
        let text = r#"{"id":12345678901234567890123,"in":{"b":1.50,"a":1},"gone":1,"text":"x"}"#;
        let patch =
            json!({"gone": null, "in": {"a": "2"}, "new": {"c": null, "d": [1]}, "text": {"e": 1}});
        assert_eq!(
            lay(text, &patch),
            r#"{"id":12345678901234567890123,"in":{"a":"2","b":1.50},"new":{"d":[1]},"text":{"e":1}}"#
        );
        assert_eq!(lay("null", &json!({"a": 1})), r#"{"a":1}"#);
    }

    fn any_object() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<i32>().prop_map(Value::from),
            "[a-c]{0,2}".prop_map(Value::from),
            Just(json!([null, {}])),
        ];
        let object = |inner: BoxedStrategy<Value>| {
            let members = prop::collection::btree_map("[a-c]", inner, 0..4);
            members.prop_map(|members| json!(members))
        };
        let inner = leaf.prop_recursive(3, 16, 4, move |inner| object(inner.boxed()));
        object(inner.boxed())
    }

    proptest! {
        #[test]
        fn a_patched_text_says_what_a_patched_value_does(text in any_object(), patch in any_object()) {
            let laid: Value = serde_json::from_str(&lay(&text.to_string(), &patch)).unwrap();
            let mut expected = text;
            merge::apply(&mut expected, patch);
            prop_assert_eq!(laid, expected);
        }
    }
}
