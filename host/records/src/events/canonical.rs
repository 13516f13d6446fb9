//! A JSON text as one text for all that say the same, without a tree of it.

use std::borrow::Cow;
use std::collections::BTreeMap;

use nudge_platform::json::Text;
use serde_json::Value;
use serde_json::value::RawValue;

/// The text of a value with its objects' keys sorted and its numbers and strings as the server writes them. None: it is
/// no JSON.
pub fn canonical(text: &str) -> Option<String> {
    let mut written = String::with_capacity(text.len());
    write(text, &mut written)?;
    Some(written)
}

/// What was written before must be found still: what this writes is what a parsed value becomes as a text.
fn write(text: &str, written: &mut String) -> Option<()> {
    let text = text.trim_ascii();
    match text.as_bytes().first()? {
        b'{' => {
            let members: BTreeMap<Key<'_>, &RawValue> = serde_json::from_str(text).ok()?;
            written.push('{');
            for (index, (Key(key), value)) in members.into_iter().enumerate() {
                if index > 0 {
                    written.push(',');
                }
                written.push_str(&serde_json::to_string(&key).ok()?);
                written.push(':');
                write(value.get(), written)?;
            }
            written.push('}');
        }
        b'[' => {
            let items: Vec<&RawValue> = serde_json::from_str(text).ok()?;
            written.push('[');
            for (index, item) in items.into_iter().enumerate() {
                if index > 0 {
                    written.push(',');
                }
                write(item.get(), written)?;
            }
            written.push(']');
        }
        _ => {
            let value: Value = serde_json::from_str(text).ok()?;
            written.push_str(&value.to_string());
        }
    }
    Some(())
}

/// A key, borrowed where it has no escapes.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Key<'a>(Cow<'a, str>);

impl<'de: 'a, 'a> serde::Deserialize<'de> for Key<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Text(key) = Text::deserialize(deserializer)?;
        Ok(Self(key))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn any_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            (-1e9..1e9).prop_map(|number: f64| json!(number)),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 64, 8, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
                prop::collection::btree_map(any::<String>(), inner, 0..8)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn it_is_what_a_parsed_value_becomes(value in any_value(), pretty in any::<bool>()) {
            let text = if pretty { format!(" {value:#} ") } else { value.to_string() };
            let parsed: Value = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(canonical(&text), Some(parsed.to_string()));
        }
    }

    #[test]
    fn ways_of_writing_make_no_difference() {
        for (text, expected) in [
            (
                r#"{"b": 1e2, "a": [1.50, -0]}"#,
                r#"{"a":[1.5,-0.0],"b":100.0}"#,
            ),
            (r#"{"\u0061": "\u00e4\/"}"#, r#"{"a":"ä/"}"#),
        ] {
            assert_eq!(canonical(text).as_deref(), Some(expected));
            let parsed: Value = serde_json::from_str(text).unwrap();
            assert_eq!(parsed.to_string(), expected);
        }
        for broken in ["", "{", "[1,]", "{\"a\"}"] {
            assert_eq!(canonical(broken), None, "{broken}");
        }
    }
}
