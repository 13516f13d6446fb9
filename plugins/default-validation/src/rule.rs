//! Whether a value is what a definition asks for.

use nudge_guest::Cell;
use nudge_guest::validation::Violation;

use crate::config::{Property, Rule, Scalar, TextRule};

/// How much of a text, or of what is expected, is shown to the person who reads a violation.
const SHOWN_CHARACTERS: usize = 200;

/// What is wrong with a property's value, if something is.
pub(crate) fn violation(property: &Property, cell: Cell<'_>) -> Option<Violation> {
    let (code, expected) = match cell {
        Cell::Missing | Cell::Null if property.required => (
            "missing_required_property",
            type_name(&property.rule).to_owned(),
        ),
        Cell::Missing | Cell::Null | Cell::Withheld => return None,
        _ => breach(&property.rule, cell)?,
    };
    Some(Violation {
        code: code.to_owned(),
        property: property.name.clone(),
        expected: cut(expected),
        actual: shown(cell),
    })
}

/// The violation of a property that the definition does not have.
pub(crate) fn additional(name: &str) -> Violation {
    Violation {
        code: "additional_property".to_owned(),
        // A name is as long as whoever sends the event likes.
        property: cut(name.to_owned()),
        expected: "no other properties".to_owned(),
        actual: "present".to_owned(),
    }
}

/// The code and the expectation.
fn breach(rule: &Rule, cell: Cell<'_>) -> Option<(&'static str, String)> {
    let mismatch = || Some(("type_mismatch", type_name(rule).to_owned()));
    match (rule, cell) {
        (Rule::OneOf(values), _) => not_one_of(values, cell),
        (Rule::Text(rule), Cell::Text(text)) => text_breach(rule, text),
        (Rule::Number { minimum, maximum }, Cell::Number(number)) => {
            let below = minimum
                .filter(|minimum| number < *minimum)
                .map(|minimum| format!("at least {minimum}"));
            let above = || {
                maximum
                    .filter(|maximum| number > *maximum)
                    .map(|maximum| format!("at most {maximum}"))
            };
            below
                .or_else(above)
                .map(|expected| ("out_of_range", expected))
        }
        (Rule::Boolean, Cell::Boolean(_)) => None,
        (Rule::Date, _) if cell.date().is_some() => None,
        _ => mismatch(),
    }
}

fn text_breach(rule: &TextRule, text: &str) -> Option<(&'static str, String)> {
    if rule.min_length.is_some() || rule.max_length.is_some() {
        let length = u32::try_from(text.chars().count()).unwrap_or(u32::MAX);
        if let Some(least) = rule.min_length.filter(|least| length < *least) {
            return Some(("out_of_range", format!("at least {least} characters")));
        }
        if let Some(most) = rule.max_length.filter(|most| length > *most) {
            return Some(("out_of_range", format!("at most {most} characters")));
        }
    }
    if let Some(pattern) = rule
        .pattern
        .as_ref()
        .filter(|pattern| !pattern.is_match(text))
    {
        return Some(("pattern_mismatch", format!("a match of {pattern}")));
    }
    if rule.values.is_empty() {
        None
    } else {
        not_one_of(&rule.values, Cell::Text(text))
    }
}

fn not_one_of(values: &[Scalar], cell: Cell<'_>) -> Option<(&'static str, String)> {
    if values.iter().any(|value| value.equals(cell)) {
        return None;
    }
    let values: Vec<String> = values.iter().map(Scalar::text).collect();
    Some(("enum_mismatch", format!("one of {}", values.join(", "))))
}

fn type_name(rule: &Rule) -> &'static str {
    match rule {
        Rule::Text(_) => "string",
        Rule::Number { .. } => "number",
        Rule::Boolean => "boolean",
        Rule::Date => "date",
        Rule::OneOf(_) => "enum",
    }
}

/// The beginning of a text that is too long.
fn cut(mut text: String) -> String {
    if let Some((end, _)) = text.char_indices().nth(SHOWN_CHARACTERS) {
        text.truncate(end);
        text.push('…');
    }
    text
}

fn shown(cell: Cell<'_>) -> String {
    match cell {
        Cell::Text(text) => format!(
            "string `{}`",
            text.chars().take(SHOWN_CHARACTERS).collect::<String>()
        ),
        Cell::Number(number) => format!("number {number}"),
        Cell::Boolean(boolean) => format!("boolean {boolean}"),
        _ => cell.type_name().to_owned(),
    }
}

impl Scalar {
    #[expect(clippy::float_cmp, reason = "it is about the number that was sent")]
    fn equals(&self, cell: Cell<'_>) -> bool {
        match self {
            Self::Boolean(boolean) => cell.boolean() == Some(*boolean),
            Self::Number(number) => cell.number().is_some_and(|cell| cell == *number),
            Self::Text(text) => cell.text() == Some(text.as_str()),
        }
    }

    fn text(&self) -> String {
        match self {
            Self::Boolean(boolean) => boolean.to_string(),
            Self::Number(number) => number.to_string(),
            Self::Text(text) => text.clone(),
        }
    }
}
