//! Whether a text is JSON that can be used, in one pass that keeps nothing of it.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

/// A JSON value that is gone through: its strings are Unicode, its numbers are within reach.
struct Sound;

/// Checks a text; an error says where it is no JSON, or what in it can't be used.
pub(super) fn check(text: &str) -> Result<(), serde_json::Error> {
    serde_json::from_str::<Sound>(text).map(|Sound| ())
}

impl<'de> Deserialize<'de> for Sound {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Self)
    }
}

impl<'de> Visitor<'de> for Sound {
    type Value = Self;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_str<E>(self, _: &str) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self, A::Error> {
        while items.next_element::<Self>()?.is_some() {}
        Ok(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self, A::Error> {
        while members.next_entry::<Self, Self>()?.is_some() {}
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn texts_are_judged_as_if_they_were_parsed() {
        for text in [
            r#"{"a": [1, -2, 3.5, 1e3, true, null, "x\n\u00e4"], "b": {}}"#,
            "[1, 2",
            "[1 2]",
            r#"{"a" 1}"#,
            "{1: 2}",
            r#""\ud800""#,
            r#"{"\ud800": 1}"#,
            "1e400",
            "[1] 2",
            "",
            "nul",
            "\"\u{1}\"",
        ] {
            let parsed = serde_json::from_str::<Value>(text);
            let place = |error: &serde_json::Error| (error.line(), error.column());
            let checked = check(text);
            assert_eq!(
                checked.as_ref().err().map(place),
                parsed.as_ref().err().map(place),
                "{text}"
            );
        }
    }
}
