//! From JSON to a compiled definition.

use nudge_guest::Problem;
use nudge_guest::config::{self, Node, Place, Problems};
use regex_lite::Regex;

use crate::config::{Config, Property, Rule, Scalar, TextRule};

const MAX_PROPERTIES: usize = 256;
const MAX_NAME: usize = 200;
const MAX_VALUES: usize = 1_000;
const MAX_PATTERN: usize = 1_000;
const MAX_LENGTH: u32 = 65_536;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Type {
    Text,
    Number,
    Boolean,
    Date,
    Enum,
}

const TYPES: [(&str, Type); 5] = [
    ("string", Type::Text),
    ("number", Type::Number),
    ("boolean", Type::Boolean),
    ("date", Type::Date),
    ("enum", Type::Enum),
];

const ADDITIONAL: [(&str, bool); 2] = [("allow", true), ("reject", false)];

/// The keys of a property, and the types that those which are not for all are for.
const CONSTRAINTS: [(&str, &[Type]); 6] = [
    ("enumValues", &[Type::Enum, Type::Text]),
    ("minimum", &[Type::Number]),
    ("maximum", &[Type::Number]),
    ("minLength", &[Type::Text]),
    ("maxLength", &[Type::Text]),
    ("pattern", &[Type::Text]),
];

const KEYS: [&str; 10] = [
    "name",
    "type",
    "required",
    "description",
    "enumValues",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "pattern",
];

impl config::Config for Config {
    fn parse(text: &str) -> Result<Self, Vec<Problem>> {
        let document = Node::parse(text)?;
        let mut problems = Problems::new();
        let config = config(&Place::root(&document), &mut problems);
        problems.unless_any(config)
    }
}

/// What could be read; it counts only if there are no problems.
fn config(root: &Place<'_>, problems: &mut Problems) -> Config {
    let mut config = Config {
        properties: Vec::new(),
        additional_properties: true,
    };
    if !root.object(problems) {
        return config;
    }
    root.only(&["properties", "additionalProperties"], problems);
    if let Some(place) = root.find("additionalProperties") {
        config.additional_properties = place
            .choice("unknown_value", &ADDITIONAL, problems)
            .unwrap_or(true);
    }
    let Some(list) = root.find("properties") else {
        return config;
    };
    for place in list.list(0..=MAX_PROPERTIES, problems).unwrap_or_default() {
        let Some(property) = property(&place, problems) else {
            continue;
        };
        if config
            .properties
            .iter()
            .any(|known| known.name == property.name)
        {
            problems.add(
                &place,
                "duplicate_name",
                format_args!("`{}` is there twice", property.name),
            );
        }
        config.properties.push(property);
    }
    config
}

fn property(place: &Place<'_>, problems: &mut Problems) -> Option<Property> {
    if !place.object(problems) {
        return None;
    }
    place.only(&KEYS, problems);
    let name = place
        .require("name", problems)
        .and_then(|name| name.text_of(1..=MAX_NAME, problems));
    let required = place
        .find("required")
        .and_then(|required| required.boolean(problems))
        .unwrap_or(false);
    if let Some(description) = place.find("description") {
        description.text(problems);
    }
    let kind = place
        .require("type", problems)?
        .choice("unknown_type", &TYPES, problems)?;
    for (key, _) in CONSTRAINTS
        .iter()
        .filter(|(_, types)| !types.contains(&kind))
    {
        if let Some(constraint) = place.find(key) {
            problems.add(
                &constraint,
                "not_applicable",
                format_args!("`{key}` does not apply to this type"),
            );
        }
    }
    let rule = rule(place, kind, problems)?;
    Some(Property {
        name: name?.to_owned(),
        required,
        rule,
    })
}

fn rule(place: &Place<'_>, kind: Type, problems: &mut Problems) -> Option<Rule> {
    Some(match kind {
        Type::Boolean => Rule::Boolean,
        Type::Date => Rule::Date,
        Type::Enum => Rule::OneOf(values(&place.require("enumValues", problems)?, problems)?),
        Type::Number => {
            let minimum = place
                .find("minimum")
                .and_then(|place| place.number(problems));
            let maximum = place
                .find("maximum")
                .and_then(|place| place.number(problems));
            in_order(place, "minimum", minimum, maximum, problems);
            Rule::Number { minimum, maximum }
        }
        Type::Text => Rule::Text(text_rule(place, problems)),
    })
}

fn text_rule(place: &Place<'_>, problems: &mut Problems) -> TextRule {
    let min_length = place
        .find("minLength")
        .and_then(|place| place.integer(0..=MAX_LENGTH, problems));
    let max_length = place
        .find("maxLength")
        .and_then(|place| place.integer(0..=MAX_LENGTH, problems));
    in_order(place, "minLength", min_length, max_length, problems);
    let pattern = place
        .find("pattern")
        .and_then(|place| pattern(&place, problems));
    let values = place
        .find("enumValues")
        .and_then(|place| values(&place, problems))
        .unwrap_or_default();
    TextRule {
        min_length,
        max_length,
        pattern,
        values,
    }
}

fn in_order<T: PartialOrd>(
    place: &Place<'_>,
    key: &str,
    least: Option<T>,
    most: Option<T>,
    problems: &mut Problems,
) {
    if least.zip(most).is_some_and(|(least, most)| least > most)
        && let Some(place) = place.find(key)
    {
        problems.add(
            &place,
            "out_of_range",
            "the least must not be above the most",
        );
    }
}

fn pattern(place: &Place<'_>, problems: &mut Problems) -> Option<Regex> {
    let pattern = place.text_of(1..=MAX_PATTERN, problems)?;
    Regex::new(pattern)
        .inspect_err(|error| problems.add(place, "invalid_pattern", error))
        .ok()
}

fn values(place: &Place<'_>, problems: &mut Problems) -> Option<Vec<Scalar>> {
    place
        .list(1..=MAX_VALUES, problems)?
        .iter()
        .map(|value| scalar(value, problems))
        .collect()
}

fn scalar(place: &Place<'_>, problems: &mut Problems) -> Option<Scalar> {
    Some(match place.node() {
        Node::Boolean(boolean) => Scalar::Boolean(*boolean),
        Node::Number(number) => Scalar::Number(*number),
        Node::Text(text) => Scalar::Text(text.clone().into_owned()),
        Node::Null | Node::Array(_) | Node::Object(_) => {
            problems.add(
                place,
                "wrong_type",
                "must be a string, a number or a boolean",
            );
            return None;
        }
    })
}
