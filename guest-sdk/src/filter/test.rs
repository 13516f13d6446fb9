//! What a leaf asks of one value.

use std::time::Duration;

use regex_lite::Regex;

use crate::cell::Cell;
use crate::instant::Instant;

#[derive(Clone, Debug)]
pub(super) enum Test {
    Set(Type),
    NotSet,
    Text(TextTest),
    Number(NumberTest),
    Boolean(bool),
    Before(Instant),
    After(Instant),
    WithinLast(Duration),
}

/// What a leaf's `type` names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    Text,
    Number,
    Boolean,
    Date,
}

#[derive(Clone, Debug)]
pub(super) enum TextTest {
    Equals(String),
    NotEquals(String),
    In(Vec<String>),
    NotIn(Vec<String>),
    Contains(String),
    NotContains(String),
    StartsWith(String),
    EndsWith(String),
    Matches(Regex),
}

#[derive(Clone, Copy, Debug)]
pub(super) enum NumberTest {
    Equal(f64),
    NotEqual(f64),
    Greater(f64),
    GreaterOrEqual(f64),
    Less(f64),
    LessOrEqual(f64),
    Between(f64, f64),
}

impl Test {
    pub(super) fn passes(&self, cell: Cell<'_>, now: &dyn Fn() -> Instant) -> bool {
        match self {
            Self::Set(expected) => expected.is_of(cell),
            Self::NotSet => !cell.present(),
            Self::Text(test) => cell.text().is_some_and(|text| test.passes(text)),
            Self::Number(test) => cell.number().is_some_and(|number| test.passes(number)),
            Self::Boolean(expected) => cell.boolean() == Some(*expected),
            Self::Before(limit) => cell.date().is_some_and(|date| date < *limit),
            Self::After(limit) => cell.date().is_some_and(|date| date > *limit),
            Self::WithinLast(span) => cell.date().is_some_and(|date| {
                let now = now();
                date >= now - *span && date <= now
            }),
        }
    }
}

impl Type {
    /// Whether a value is one of the type.
    pub(super) fn is_of(self, cell: Cell<'_>) -> bool {
        match self {
            Self::Text => cell.text().is_some(),
            Self::Number => cell.number().is_some(),
            Self::Boolean => cell.boolean().is_some(),
            Self::Date => cell.date().is_some(),
        }
    }
}

impl TextTest {
    fn passes(&self, text: &str) -> bool {
        match self {
            Self::Equals(value) => text == value,
            Self::NotEquals(value) => text != value,
            Self::In(values) => values.iter().any(|value| value == text),
            Self::NotIn(values) => values.iter().all(|value| value != text),
            Self::Contains(value) => text.contains(value),
            Self::NotContains(value) => !text.contains(value),
            Self::StartsWith(value) => text.starts_with(value),
            Self::EndsWith(value) => text.ends_with(value),
            Self::Matches(regex) => regex.is_match(text),
        }
    }
}

impl NumberTest {
    #[expect(clippy::float_cmp, reason = "`eq` is about the number that was sent")]
    fn passes(self, number: f64) -> bool {
        match self {
            Self::Equal(value) => number == value,
            Self::NotEqual(value) => number != value,
            Self::Greater(value) => number > value,
            Self::GreaterOrEqual(value) => number >= value,
            Self::Less(value) => number < value,
            Self::LessOrEqual(value) => number <= value,
            Self::Between(least, most) => number >= least && number <= most,
        }
    }
}
