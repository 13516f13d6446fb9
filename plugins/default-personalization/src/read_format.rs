//! From JSON to a format.

use nudge_guest::config::{Place, Problems};

use crate::config::Type;
use crate::format::{Format, Locale, Style};

#[derive(Clone, Copy)]
enum StyleName {
    Decimal,
    Integer,
    Percent,
    Currency,
    Date,
    DateTime,
}

const STYLES: [(&str, StyleName); 6] = [
    ("decimal", StyleName::Decimal),
    ("integer", StyleName::Integer),
    ("percent", StyleName::Percent),
    ("currency", StyleName::Currency),
    ("date", StyleName::Date),
    ("datetime", StyleName::DateTime),
];

/// Reads the format of a binding of this type.
pub(crate) fn format(place: &Place<'_>, kind: Type, problems: &mut Problems) -> Option<Format> {
    if !place.object(problems) {
        return None;
    }
    place.only(&["style", "currency", "locale", "timezone"], problems);
    let style_place = place.require("style", problems)?;
    let name = style_place.choice("unknown_style", &STYLES, problems)?;
    let locale = place
        .find("locale")
        .and_then(|locale| locale.text_of(2..=35, problems));
    let offset_seconds = place
        .find("timezone")
        .and_then(|timezone| offset(&timezone, problems))
        .unwrap_or_default();
    let (style, wanted) = match name {
        StyleName::Decimal => (Style::Decimal, Type::Number),
        StyleName::Integer => (Style::Integer, Type::Number),
        StyleName::Percent => (Style::Percent, Type::Number),
        StyleName::Currency => (Style::Currency(currency(place, problems)?), Type::Number),
        StyleName::Date => (Style::Date, Type::Date),
        StyleName::DateTime => (Style::DateTime, Type::Date),
    };
    if kind != wanted {
        let message = format_args!("this style is for bindings of type {}", wanted.name());
        problems.add(&style_place, "not_applicable", message);
        return None;
    }
    Some(Format {
        style,
        locale: locale.map_or_else(Locale::default, Locale::named),
        offset_seconds,
    })
}

fn currency(place: &Place<'_>, problems: &mut Problems) -> Option<String> {
    let place = place.require("currency", problems)?;
    let code = place.text(problems)?;
    if code.len() != 3 || !code.bytes().all(|byte| byte.is_ascii_uppercase()) {
        problems.add(
            &place,
            "invalid_currency",
            "must be a code of three capital letters, such as EUR",
        );
        return None;
    }
    Some(code.to_owned())
}

/// Seconds east of UTC.
fn offset(place: &Place<'_>, problems: &mut Problems) -> Option<i64> {
    let text = place.text(problems)?;
    let seconds = if matches!(text, "UTC" | "Z") {
        Some(0)
    } else {
        offset_seconds(text)
    };
    if seconds.is_none() {
        problems.add(
            place,
            "unsupported_timezone",
            "must be UTC or an offset such as +02:00",
        );
    }
    seconds
}

fn offset_seconds(text: &str) -> Option<i64> {
    let (sign, rest) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+')?),
    };
    let (hours, minutes) = rest.split_once(':')?;
    Some(sign * (two_digits(hours, 15)? * 3_600 + two_digits(minutes, 60)? * 60))
}

fn two_digits(text: &str, below: i64) -> Option<i64> {
    let digits = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
    let number: i64 = text.parse().ok()?;
    (digits && number < below).then_some(number)
}
