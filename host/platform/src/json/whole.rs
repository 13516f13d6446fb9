//! Whole numbers, however they are written.
//!
//! JSON has one kind of number: `1.0` and `1` are the same (RFC 8259, section 6), and many languages write the former.

use std::fmt;

use serde::de::{Error, Visitor};
use serde_json::Value;

/// The largest number that is taken with a fraction: what the parser makes of larger ones may be another whole number. No
/// limit or count of ours is as large.
const MOST_EXACT: f64 = 1e12;

/// A visitor of whole numbers that takes those written with a fraction of nothing too.
pub(super) struct Whole<V>(pub(super) V);

impl<'de, V: Visitor<'de>> Visitor<'de> for Whole<V> {
    type Value = V::Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.expecting(formatter)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<V::Value, E> {
        self.0.visit_i64(number)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<V::Value, E> {
        self.0.visit_u64(number)
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<V::Value, E> {
        match exactly(number) {
            Some(number) => self.0.visit_i64(number),
            None => self.0.visit_f64(number),
        }
    }
}

/// A JSON number that is whole.
pub fn whole(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| exactly(value.as_f64()?))
}

/// A number that is whole, and known to the last digit.
fn exactly(number: f64) -> Option<i64> {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "whole and within the bounds of an i64"
    )]
    (number.fract() == 0.0 && number.abs() <= MOST_EXACT).then_some(number as i64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_fraction_of_nothing_is_none() {
        for (number, expected) in [
            ("7", Some(7)),
            ("7.0", Some(7)),
            ("-7.000", Some(-7)),
            ("7e2", Some(700)),
            ("-0.0", Some(0)),
            ("1000000000000.0", Some(1_000_000_000_000)),
            ("1000000000001.0", None),
            ("9223372036854775807", Some(i64::MAX)),
            ("7.5", None),
            ("1e300", None),
            ("\"7\"", None),
            ("null", None),
            ("true", None),
        ] {
            let value: Value = serde_json::from_str(number).unwrap();
            assert_eq!(whole(&value), expected, "{number}");
        }
    }

    proptest! {
        #[test]
        fn both_ways_of_writing_say_the_same(number in -1_000_000_000_000_i64..=1_000_000_000_000) {
            prop_assert_eq!(whole(&json!(number)), Some(number));
            let written: Value = serde_json::from_str(&format!("{number}.0")).unwrap();
            prop_assert_eq!(whole(&written), Some(number));
        }
    }
}
