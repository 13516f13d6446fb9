//! An update of properties: what it may say, what it amounts to.

use std::collections::{BTreeMap, BTreeSet};

use nudge_platform::field_error::FieldError;
use nudge_platform::json::escaped;
use nudge_platform::secrets;
use serde_json::value::RawValue;
use serde_json::{Number, Value};
use uuid::Uuid;

use super::Whom;

/// Properties that one update sets, and keys that it removes (specification 8).
pub const MOST_KEYS: usize = 64;
/// The longest key, in characters (specification 8).
const MOST_KEY: usize = 120;
/// The longest text, in characters (specification 8).
const MOST_TEXT: usize = 8_192;
/// The largest whole number up to which floating-point numbers have no gaps.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// An update, checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Update {
    /// Tells it from others, and makes it a retry if it comes again.
    pub mutation_id: Uuid,
    /// Properties to be stored: texts, numbers, booleans and nulls.
    pub set: BTreeMap<String, Value>,
    /// Properties to be removed.
    pub unset: BTreeSet<String>,
}

/// A property whose value changed.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// Its key.
    pub key: String,
    /// What it was, if it was there.
    pub from: Option<Value>,
    /// What it is, if it is there.
    pub to: Option<Value>,
}

/// Why something is no update.
#[derive(Debug, PartialEq, Eq)]
pub enum Invalid {
    /// It changes nothing.
    Empty,
    /// It sets and removes the same keys.
    InBoth(Vec<FieldError>),
    /// It is over a limit.
    OverLimit(FieldError),
    /// A key or value is none that can be stored.
    Unusable(FieldError),
}

impl Update {
    /// Checks an update; `at` is the pointer to it.
    pub fn check(
        at: &str,
        mutation_id: Uuid,
        set: Option<BTreeMap<String, Box<RawValue>>>,
        unset: Option<Vec<String>>,
    ) -> Result<Self, Invalid> {
        let (set, unset) = (set.unwrap_or_default(), unset.unwrap_or_default());
        for (name, count) in [("set", set.len()), ("unset", unset.len())] {
            if count > MOST_KEYS {
                let detail = format!("{name} has at most {MOST_KEYS} keys");
                return Err(over_limit(format!("{at}/{name}"), detail));
            }
        }
        let mut values = BTreeMap::new();
        for (key, raw) in set {
            let pointer = format!("{at}/set/{}", escaped(&key));
            check_key(&pointer, &key)?;
            values.insert(key, value(pointer, &raw)?);
        }
        for (index, key) in unset.iter().enumerate() {
            check_key(&format!("{at}/unset/{index}"), key)?;
        }
        let both: Vec<FieldError> = unset
            .iter()
            .enumerate()
            .filter(|(_, key)| values.contains_key(*key))
            .map(|(index, _)| {
                let pointer = format!("{at}/unset/{index}");
                FieldError::new(pointer, "key_in_set_and_unset", "set has this key too")
            })
            .collect();
        if !both.is_empty() {
            return Err(Invalid::InBoth(both));
        }
        if values.is_empty() && unset.is_empty() {
            return Err(Invalid::Empty);
        }
        Ok(Self {
            mutation_id,
            set: values,
            unset: unset.into_iter().collect(),
        })
    }

    /// The keys that it names.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.set.keys().chain(&self.unset).map(String::as_str)
    }

    /// Whether it changes nothing.
    pub fn is_empty(&self) -> bool {
        self.set.is_empty() && self.unset.is_empty()
    }

    /// What is left without some keys.
    #[must_use]
    pub fn without(&self, keys: &[String]) -> Self {
        let mut rest = self.clone();
        rest.set.retain(|key, _| !keys.contains(key));
        rest.unset.retain(|key| !keys.contains(key));
        rest
    }

    /// Stands for whom and what the update names, by value: neither the order of keys nor the way in which a
    /// number is written makes a difference.
    pub fn digest(&self, whom: &Whom) -> [u8; 32] {
        let set: BTreeMap<&str, Value> = self
            .set
            .iter()
            .map(|(key, value)| (key.as_str(), plain(value)))
            .collect();
        let (kind, name) = match whom {
            Whom::Token(_, id) | Whom::Anonymous(id) => ("anonymousId", id.clone()),
            Whom::External(id) => ("externalId", id.clone()),
            Whom::Subject(id) => ("subjectId", id.to_string()),
        };
        let content = serde_json::json!({"set": set, "unset": self.unset}).to_string();
        secrets::hash(&[kind.as_bytes(), name.as_bytes(), content.as_bytes()])
    }

    /// What it changes of the values that were there before.
    pub fn changes(&self, before: &BTreeMap<String, Value>) -> Vec<Change> {
        let set = self.set.iter().map(|(key, to)| (key, Some(to)));
        let unset = self.unset.iter().map(|key| (key, None));
        set.chain(unset)
            .filter_map(|(key, to)| {
                let from = before.get(key);
                (from.map(plain) != to.map(plain)).then(|| Change {
                    key: key.clone(),
                    from: from.cloned(),
                    to: to.cloned(),
                })
            })
            .collect()
    }
}

fn check_key(pointer: &str, key: &str) -> Result<(), Invalid> {
    if key.chars().count() > MOST_KEY {
        let detail = format!("a key has at most {MOST_KEY} characters");
        return Err(over_limit(pointer, detail));
    }
    if key.is_empty() || key.chars().any(char::is_control) {
        let detail = "a key has at least one character and no control characters";
        return Err(unusable(pointer, detail));
    }
    Ok(())
}

fn value(pointer: String, raw: &RawValue) -> Result<Value, Invalid> {
    match serde_json::from_str(raw.get()) {
        Ok(Value::String(text)) if text.chars().count() > MOST_TEXT => {
            let detail = format!("a text has at most {MOST_TEXT} characters");
            Err(over_limit(pointer, detail))
        }
        Ok(value @ (Value::String(_) | Value::Number(_) | Value::Bool(_) | Value::Null)) => {
            Ok(value)
        }
        Ok(Value::Array(_) | Value::Object(_)) | Err(_) => {
            let detail = "a value is a text, a finite number, a boolean or null";
            Err(unusable(pointer, detail))
        }
    }
}

fn over_limit(pointer: impl Into<String>, detail: impl Into<String>) -> Invalid {
    Invalid::OverLimit(FieldError::new(pointer, "limit_exceeded", detail))
}

fn unusable(pointer: impl Into<String>, detail: &str) -> Invalid {
    Invalid::Unusable(FieldError::new(pointer, "invalid", detail))
}

/// A value in the one form that equal values have: 1.0 is 1.
fn plain(value: &Value) -> Value {
    let Value::Number(number) = value else {
        return value.clone();
    };
    match number.as_f64() {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "whole and within the range"
        )]
        Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() <= EXACT => {
            Value::Number(Number::from(float as i64))
        }
        _ => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn update(set: &Value, unset: &[&str]) -> Result<Update, Invalid> {
        let set = serde_json::from_str(&set.to_string()).unwrap();
        let unset = unset.iter().map(|key| (*key).to_owned()).collect();
        Update::check("/update", Uuid::nil(), Some(set), Some(unset))
    }

    fn raw(set: &str) -> Result<Update, Invalid> {
        let set = serde_json::from_str(set).unwrap();
        Update::check("", Uuid::nil(), Some(set), None)
    }

    fn many(count: usize) -> Value {
        let keys = (0..count).map(|number| (format!("k{number}"), json!(number)));
        Value::Object(keys.collect())
    }

    fn pointer(invalid: Invalid) -> String {
        match invalid {
            Invalid::OverLimit(error) => format!("limit {}", error.pointer),
            Invalid::Unusable(error) => format!("unusable {}", error.pointer),
            Invalid::InBoth(errors) => format!("both {}", errors[0].pointer),
            Invalid::Empty => "empty".to_owned(),
        }
    }

    #[test]
    fn limits_are_inclusive() {
        assert!(update(&many(64), &[]).is_ok());
        assert_eq!(
            pointer(update(&many(65), &[]).unwrap_err()),
            "limit /update/set"
        );
        let keys: Vec<String> = (0..65).map(|number| number.to_string()).collect();
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        assert!(update(&json!({}), &keys[..64]).is_ok());
        assert_eq!(
            pointer(update(&json!({}), &keys).unwrap_err()),
            "limit /update/unset"
        );
        assert!(update(&json!({"é".repeat(120): "é".repeat(8_192)}), &[]).is_ok());
        let long = "é".repeat(121);
        assert_eq!(
            pointer(update(&json!({}), &[&long]).unwrap_err()),
            "limit /update/unset/0"
        );
        assert_eq!(
            pointer(update(&json!({"a/b": "x".repeat(8_193)}), &[]).unwrap_err()),
            "limit /update/set/a~1b"
        );
    }

    #[test]
    fn only_flat_finite_values_are_stored() {
        assert!(raw(r#"{"a": 1.5, "b": "", "c": null, "d": false, "e": -0}"#).is_ok());
        for set in [r#"{"a": []}"#, r#"{"a": {}}"#, r#"{"a": 1e400}"#] {
            assert_eq!(pointer(raw(set).unwrap_err()), "unusable /set/a", "{set}");
        }
        assert_eq!(pointer(raw(r#"{"": 1}"#).unwrap_err()), "unusable /set/");
    }

    #[test]
    fn a_key_is_set_or_removed_and_something_is_done() {
        assert_eq!(
            pointer(update(&json!({"b": 1}), &["a", "b"]).unwrap_err()),
            "both /update/unset/1"
        );
        assert_eq!(update(&json!({}), &[]), Err(Invalid::Empty));
        assert_eq!(
            Update::check("", Uuid::nil(), None, None),
            Err(Invalid::Empty)
        );
    }

    #[test]
    fn what_stays_as_it_is_is_no_change() {
        let update = update(&json!({"a": 1.0, "b": null, "c": "x"}), &["d", "e"]).unwrap();
        let before = [("a", json!(1)), ("c", json!("y")), ("d", json!(true))];
        let before = before.map(|(key, value)| (key.to_owned(), value)).into();
        let change = |key: &str, from: Option<Value>, to: Option<Value>| Change {
            key: key.to_owned(),
            from,
            to,
        };
        assert_eq!(
            update.changes(&before),
            [
                change("b", None, Some(Value::Null)),
                change("c", Some(json!("y")), Some(json!("x"))),
                change("d", Some(json!(true)), None),
            ]
        );
    }

    proptest! {
        #[test]
        fn the_digest_is_that_of_the_values(
            set in prop::collection::btree_map("[a-c]{1,3}", -1_000_i64..1_000, 1..5),
            other in prop::collection::btree_map("[a-c]{1,3}", -1_000_i64..1_000, 1..5),
        ) {
            let whom = Whom::Anonymous("a".to_owned());
            let text = |set: &BTreeMap<String, i64>, float: bool, reverse: bool| {
                let mut members: Vec<String> = set
                    .iter()
                    .map(|(key, value)| format!("\"{key}\": {value}{}", if float { ".0" } else { "" }))
                    .collect();
                if reverse {
                    members.reverse();
                }
                format!("{{{}}}", members.join(", "))
            };
            let digest = |text: String, whom: &Whom| raw(&text).unwrap().digest(whom);
            let one = digest(text(&set, false, false), &whom);
            prop_assert_eq!(one, digest(text(&set, true, true), &whom));
            prop_assert_eq!(set == other, one == digest(text(&other, false, false), &whom));
            let external = Whom::External("a".to_owned());
            prop_assert_ne!(one, digest(text(&set, false, false), &external));
        }
    }
}
