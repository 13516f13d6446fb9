//! Whole numbers whose digits plugins are not given.
//!
//! Numbers of plugins are floating-point, which have gaps from 2^53 on. Where a binding stands for a whole number beyond
//! that, the digits of its source are put in place of those that the plugin made of it.

use std::collections::BTreeMap;

use crate::history;
use nudge_campaigns::push::personalization::{Binding, Kind, Spec};
use nudge_db::{Db, Tx};
use nudge_wasm::Value as Cell;
use nudge_wasm::personalization::Resolution;
use serde_json::value::RawValue;
use uuid::Uuid;

use super::resolve::Recipient;

/// From here on not all whole numbers are floating-point numbers.
const GAPS: f64 = 9_007_199_254_740_992.0;

/// Restores the digits of a recipient's values.
pub(super) async fn restore(
    db: &Db,
    app_id: Uuid,
    spec: &Spec,
    recipient: &Recipient,
    resolutions: &mut [Resolution],
) -> nudge_db::Result<()> {
    let beyond = resolutions.iter_mut().filter_map(|resolution| {
        let number = rounded(resolution)?;
        let binding = spec.binding(&resolution.binding)?;
        Some((number, binding, resolution))
    });
    // Hardly any message has one.
    for (number, binding, resolution) in beyond {
        let mut tx = db.read().await?;
        let Some(digits) = written(&mut tx, app_id, binding, recipient, resolution).await? else {
            continue;
        };
        if digits.parse() == Ok(number) {
            resolution.text = with_digits(&resolution.text, number, &digits);
            resolution.value = Some(Cell::Json(digits));
        }
    }
    Ok(())
}

/// The number, if it is a whole one that may have been rounded.
fn rounded(resolution: &Resolution) -> Option<f64> {
    match resolution.value {
        Some(Cell::Number(number)) if !resolution.used_fallback => {
            (number.fract() == 0.0 && number.abs() >= GAPS).then_some(number)
        }
        _ => None,
    }
}

/// The whole number that stands in a binding's source.
async fn written(
    tx: &mut Tx,
    app_id: Uuid,
    binding: &Binding,
    recipient: &Recipient,
    resolution: &Resolution,
) -> nudge_db::Result<Option<String>> {
    let key = &binding.key;
    let found = match &binding.source {
        // No property has such a key, and PostgreSQL refuses to look for it.
        Kind::UserProperty if key.contains('\0') => None,
        Kind::UserProperty => {
            let keys = std::iter::once(key.as_str());
            let mut values =
                nudge_records::properties::values(tx, app_id, recipient.subject_id, keys).await?;
            values.remove(key).map(|value| value.to_string())
        }
        Kind::SendData => {
            let data = recipient.data.as_ref();
            data.and_then(|data| data.get(key)).map(ToString::to_string)
        }
        Kind::TriggerEvent => {
            let event = recipient.trigger.as_ref();
            event.and_then(|event| at(&event.properties, key))
        }
        Kind::LatestEvent { .. } => event_of(tx, app_id, recipient.subject_id, resolution)
            .await?
            .and_then(|properties| at(&properties, key)),
        Kind::Other(_) => None,
    };
    Ok(found.filter(|text| is_whole(text)))
}

/// The properties of the event that a value is said to come from.
async fn event_of(
    tx: &mut Tx,
    app_id: Uuid,
    subject_id: Uuid,
    resolution: &Resolution,
) -> nudge_db::Result<Option<String>> {
    let mut more = resolution.more.iter();
    let named = more.find(|(name, _)| name == "event_id");
    let Some(event_id) = named.and_then(|(_, text)| text.parse().ok()) else {
        return Ok(None);
    };
    let found = history::event_of(tx, app_id, subject_id, event_id).await?;
    Ok(found.map(|(_, stored)| stored.event.properties.as_ref().to_owned()))
}

/// The text of the property at a path: that of a key that is written exactly so, or of nested keys.
fn at(properties: &str, path: &str) -> Option<String> {
    let members = |text| serde_json::from_str::<BTreeMap<String, &RawValue>>(text).ok();
    if let Some(value) = members(properties)?.get(path) {
        return Some(value.get().to_owned());
    }
    let mut text = properties;
    for key in path.split('.') {
        text = members(text)?.get(key)?.get();
    }
    Some(text.to_owned())
}

fn is_whole(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// A text that begins with the digits of a rounded number, in groups or not, with the digits that it had.
fn with_digits(text: &str, number: f64, digits: &str) -> String {
    let number = number.abs();
    let exact = digits.trim_start_matches('-');
    let begins_with = |shown: &String| {
        let first = text.chars().filter(char::is_ascii_digit);
        shown.len() == exact.len() && first.take(shown.len()).eq(shown.chars())
    };
    // Plugins write all digits of a rounded number, or the fewest that name it and noughts after them.
    let forms = [format!("{number:.0}"), number.to_string()];
    if !forms.iter().any(begins_with) {
        return text.to_owned();
    }
    let mut exact = exact.chars();
    text.chars()
        .map(|letter| match letter {
            '0'..='9' => exact.next().unwrap_or(letter),
            _ => letter,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_take_the_place_of_rounded_ones() {
        let number = 9_007_199_254_740_992.0;
        for (text, expected) in [
            ("9007199254740992", "9007199254740993"),
            ("9,007,199,254,740,992", "9,007,199,254,740,993"),
            ("-9.007.199.254.740.992,00 €", "-9.007.199.254.740.993,00 €"),
            ("about 9 quadrillions", "about 9 quadrillions"),
            ("", ""),
        ] {
            assert_eq!(with_digits(text, number, "9007199254740993"), expected);
        }
        let number = 1_234_567_890_123_456_800.0;
        for (text, expected) in [
            ("1234567890123456800", "1234567890123456789"),
            ("1234567890123456768", "1234567890123456789"),
            ("-1,234,567,890,123,456,800", "-1,234,567,890,123,456,789"),
        ] {
            assert_eq!(with_digits(text, number, "1234567890123456789"), expected);
        }
        let longer = with_digits("10000000000000000", 1e16, "9999999999999999");
        assert_eq!(longer, "10000000000000000");
    }

    #[test]
    fn a_property_is_found_as_plugins_find_it() {
        let text =
            r#"{"a": {"b": 12345678901234567890123}, "a.b": 1, "c": {"d": 9007199254740993}}"#;
        assert_eq!(at(text, "a.b").as_deref(), Some("1"));
        assert_eq!(at(text, "c.d").as_deref(), Some("9007199254740993"));
        assert_eq!(at(text, "c.e"), None);
        assert_eq!(at("[]", "c"), None);
    }

    #[test]
    fn only_whole_numbers_have_digits_to_keep() {
        assert!(is_whole("-12") && is_whole("0"));
        for none in ["", "-", "1.0", "1e3", "\"1\"", "null"] {
            assert!(!is_whole(none), "{none}");
        }
    }
}
