//! From JSON to a format.

use nudge_guest::config::{Place, Problems};

use crate::config::Type;
use crate::format::{Given, Locale, Style, Zone};

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
pub(crate) fn format(place: &Place<'_>, kind: Type, problems: &mut Problems) -> Option<Given> {
    if !place.object(problems) {
        return None;
    }
    place.only(&["style", "currency", "locale", "timezone"], problems);
    let style_place = place.require("style", problems)?;
    let name = style_place.choice("unknown_style", &STYLES, problems)?;
    let locale = place
        .find("locale")
        .and_then(|place| locale(&place, problems));
    let zone = place
        .find("timezone")
        .and_then(|timezone| zone(&timezone, problems));
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
    Some(Given {
        style,
        locale,
        zone,
    })
}

fn locale(place: &Place<'_>, problems: &mut Problems) -> Option<Locale> {
    let tag = place.text_of(2..=35, problems)?;
    if !Locale::is_tag(tag) {
        let message = "must be a language, perhaps with a script and a region, such as de or pt-BR";
        problems.add(place, "invalid_locale", message);
        return None;
    }
    Some(Locale::named(tag))
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

fn zone(place: &Place<'_>, problems: &mut Problems) -> Option<Zone> {
    let zone = Zone::named(place.text(problems)?);
    if zone.is_none() {
        problems.add(
            place,
            "unsupported_timezone",
            "must be UTC, an offset such as +02:00, or a name of the IANA database such as Europe/Berlin",
        );
    }
    zone
}
