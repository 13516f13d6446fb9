//! Traits as properties of a person.

use std::collections::BTreeMap;

use serde_json::value::RawValue;
use uuid::Uuid;

use super::message::MessageError;
use crate::properties::update::MOST_KEYS;
use crate::properties::{Invalid, Update};

/// Levels of traits that become properties of their own; what is deeper is refused as no value of a property.
const MOST_DEPTH: usize = 4;

/// The update that traits are, each a text of a JSON object, of which the later ones win. Members of objects are
/// properties by dots (`address.city`), lists are their JSON text. None: there are no traits.
pub(super) fn update(
    at: &str,
    mutation_id: Uuid,
    traits: &[&RawValue],
) -> Result<Option<Update>, Vec<MessageError>> {
    let mut set = BTreeMap::new();
    for one in traits {
        let members: BTreeMap<String, &RawValue> =
            serde_json::from_str(one.get()).map_err(|_| {
                let detail = "traits are an object";
                vec![MessageError::new(format!("{at}/traits"), "invalid", detail)]
            })?;
        for (key, value) in members {
            flatten(key, value, MOST_DEPTH, &mut set);
        }
    }
    if set.is_empty() {
        return Ok(None);
    }
    match Update::check(at, mutation_id, Some(set), None) {
        Ok(update) => Ok(Some(update)),
        Err(Invalid::Empty) => Ok(None),
        Err(Invalid::OverLimit(error) | Invalid::Unusable(error)) => Err(vec![error]),
        Err(Invalid::InBoth(errors)) => Err(errors),
    }
    .map_err(|errors| {
        let from = format!("{at}/set");
        let errors = errors.into_iter().map(|error| {
            let rest = error.pointer.strip_prefix(&from).unwrap_or_default();
            MessageError::new(format!("{at}/traits{rest}"), &error.code, error.detail)
        });
        errors.collect()
    })
}

/// Adds a trait, up to one more than a person can be given at once.
fn flatten(key: String, value: &RawValue, depth: usize, set: &mut BTreeMap<String, Box<RawValue>>) {
    if set.len() > MOST_KEYS {
        return;
    }
    let text = value.get();
    let members: Option<BTreeMap<String, &RawValue>> = (depth > 1 && text.starts_with('{'))
        .then(|| serde_json::from_str(text).ok())
        .flatten();
    if let Some(members) = members {
        for (member, value) in members {
            flatten(format!("{key}.{member}"), value, depth - 1, set);
        }
        return;
    }
    let value = if text.starts_with('[') {
        serde_json::value::to_raw_value(text).unwrap_or_else(|_| value.to_owned())
    } else {
        value.to_owned()
    };
    set.insert(key, value);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(texts: &[&str]) -> Result<Option<serde_json::Value>, Vec<(String, String)>> {
        let texts: Vec<Box<RawValue>> = texts
            .iter()
            .map(|text| RawValue::from_string((*text).to_owned()).unwrap())
            .collect();
        let texts: Vec<&RawValue> = texts.iter().map(|text| &**text).collect();
        let read = update("/batch/1", Uuid::nil(), &texts);
        let read = read.map(|update| update.map(|update| json!(update.set)));
        read.map_err(|errors| errors.into_iter().map(|it| (it.pointer, it.code)).collect())
    }

    #[test]
    fn traits_become_properties() {
        let found = read(&[
            r#"{"plan": "free", "a/b": 1}"#,
            r#"{"plan": "pro", "address": {"city": "Graz", "geo": {"lat": 47.1}}, "tags": ["x", 2], "gone": null}"#,
        ]);
        let expected = json!({"plan": "pro", "a/b": 1, "address.city": "Graz", "address.geo.lat": 47.1,
                              "tags": "[\"x\", 2]", "gone": null});
        assert_eq!(found, Ok(Some(expected)));
        assert_eq!(read(&[]), Ok(None));
        assert_eq!(read(&["{}"]), Ok(None));
    }

    #[test]
    fn limits_are_those_of_updates() {
        let long = format!(r#"{{"a/b": "{}"}}"#, "x".repeat(1_000_000));
        let refused = |pointer: &str, code: &str| Err(vec![(pointer.to_owned(), code.to_owned())]);
        assert_eq!(
            read(&[&long]),
            refused("/batch/1/traits/a~1b", "limit_exceeded")
        );
        let many: serde_json::Map<String, serde_json::Value> = (0..65)
            .map(|number| (number.to_string(), json!(1)))
            .collect();
        let many = json!(many).to_string();
        assert_eq!(read(&[&many]), refused("/batch/1/traits", "limit_exceeded"));
        assert_eq!(read(&["[]"]), refused("/batch/1/traits", "invalid"));
        let deep = r#"{"a": {"b": {"c": {"d": {"e": 1}}}}}"#;
        assert_eq!(read(&[deep]), refused("/batch/1/traits/a.b.c.d", "invalid"));
    }
}
