//! The checks that properties of any event must pass, in one pass that builds nothing.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use nudge_platform::json::Text;
use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};

/// Properties of an event at the most (contract 15).
pub const MOST_PROPERTIES: usize = 256;

/// Checks that a JSON text is an object of at most [`MOST_PROPERTIES`] members whose strings are Unicode, whose
/// numbers are finite and whose keys are unique, at every depth.
pub fn check(text: &str) -> Result<(), String> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    Members {
        most: MOST_PROPERTIES,
    }
    .deserialize(&mut deserializer)
    .map_err(|error| {
        error
            .to_string()
            .split(" at line ")
            .next()
            .unwrap_or_default()
            .to_owned()
    })
}

/// An object.
struct Members {
    most: usize,
}

/// Any value.
struct Any;

impl<'de> DeserializeSeed<'de> for Members {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Members {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("properties to be an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut few: [Cow<'de, str>; 16] = Default::default();
        let mut many = HashSet::new();
        let mut count = 0;
        while let Some(Text(key)) = map.next_key()? {
            if count == self.most {
                return Err(A::Error::custom(format!(
                    "properties have more than {} members",
                    self.most
                )));
            }
            let seen = few.iter().take(count).any(|other| *other == key) || many.contains(&key);
            if seen {
                return Err(A::Error::custom(format!("the key `{key}` stands twice")));
            }
            match few.get_mut(count) {
                Some(slot) => *slot = key,
                None => drop(many.insert(key)),
            }
            count += 1;
            map.next_value_seed(Any)?;
        }
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for Any {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Any {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while seq.next_element_seed(Any)?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<(), A::Error> {
        Members { most: usize::MAX }.visit_map(map)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_objects_pass() {
        assert_eq!(
            check(r#"{"a": 1, "b": {"a": [null, true, "x", -1.5e3]}}"#),
            Ok(())
        );
        for (text, part) in [
            ("[]", "to be an object"),
            (r#"{"a": 1e999}"#, "out of range"),
            (r#"{"a": "\ud800"}"#, "hex escape"),
            (r#"{"a": 1, "a": 2}"#, "stands twice"),
            (r#"{"b": {"\u0061": 1, "a": 2}}"#, "stands twice"),
        ] {
            let error = check(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn the_limit_is_256_members() {
        let object = |members: usize| {
            let members: Vec<String> = (0..members)
                .map(|number| format!("\"k{number}\": {number}"))
                .collect();
            format!("{{{}}}", members.join(","))
        };
        assert_eq!(check(&object(MOST_PROPERTIES)), Ok(()));
        assert!(check(&object(MOST_PROPERTIES + 1)).is_err());
    }
}
