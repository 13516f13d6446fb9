//! What a leaf asks and what it met, for the person who wants to know why.

use std::time::Duration;

use super::Leaf;
use super::test::{NumberTest, Test, TextTest, Type};
use crate::cell::Cell;

/// The longest value that is shown whole, in characters.
const LONGEST: usize = 100;
/// So many values of a list are shown.
const MOST_LISTED: usize = 10;

const SPANS: [(u64, &str); 4] = [
    (604_800, "weeks"),
    (86_400, "days"),
    (3_600, "hours"),
    (60, "minutes"),
];

impl Leaf {
    /// The value of a property and what is asked of it, such as `total = 49; gte 50` or
    /// `total = "80", a string; gte 50 wants a number`. Long values are cut.
    pub fn describe(&self, path: &str, cell: Cell<'_>) -> String {
        let expected = self.test.expected();
        let asked = if expected.is_empty() {
            self.operator.to_owned()
        } else {
            format!("{} {expected}", self.operator)
        };
        if !cell.present() {
            return format!("{path} is {}; {asked}", cell.type_name());
        }
        let value = value(cell);
        match self.test.kind() {
            Some(kind) if !kind.is_of(cell) => {
                let (is, wants) = (with_article(cell.type_name()), with_article(kind.name()));
                format!("{path} = {value}, {is}; {asked} wants {wants}")
            }
            _ => format!("{path} = {value}; {asked}"),
        }
    }
}

impl Type {
    fn name(self) -> &'static str {
        match self {
            Self::Text => "string",
            Self::Number => "number",
            Self::Boolean => "boolean",
            Self::Date => "date",
        }
    }
}

impl Test {
    /// The type of value that can pass; none: whether there is a value is all that is asked.
    fn kind(&self) -> Option<Type> {
        match self {
            Self::NotSet => None,
            Self::Set(kind) => Some(*kind),
            Self::Text(_) => Some(Type::Text),
            Self::Number(_) => Some(Type::Number),
            Self::Boolean(_) => Some(Type::Boolean),
            Self::Before(_) | Self::After(_) | Self::WithinLast(_) => Some(Type::Date),
        }
    }

    /// The `value` of the leaf; empty: it has none.
    fn expected(&self) -> String {
        match self {
            Self::Set(_) | Self::NotSet => String::new(),
            Self::Text(test) => test.expected(),
            Self::Number(test) => test.expected(),
            Self::Boolean(expected) => expected.to_string(),
            Self::Before(limit) | Self::After(limit) => limit.to_string(),
            Self::WithinLast(span) => span_text(*span),
        }
    }
}

impl TextTest {
    fn expected(&self) -> String {
        match self {
            Self::Equals(text)
            | Self::NotEquals(text)
            | Self::Contains(text)
            | Self::NotContains(text)
            | Self::StartsWith(text)
            | Self::EndsWith(text) => quoted(text),
            Self::In(texts) | Self::NotIn(texts) => listed(texts),
            Self::Matches(pattern) => quoted(pattern.as_str()),
        }
    }
}

impl NumberTest {
    fn expected(self) -> String {
        match self {
            Self::Equal(number)
            | Self::NotEqual(number)
            | Self::Greater(number)
            | Self::GreaterOrEqual(number)
            | Self::Less(number)
            | Self::LessOrEqual(number) => number.to_string(),
            Self::Between(least, most) => format!("{least} and {most}"),
        }
    }
}

fn value(cell: Cell<'_>) -> String {
    match cell {
        Cell::Boolean(boolean) => boolean.to_string(),
        Cell::Number(number) => number.to_string(),
        Cell::Text(text) => quoted(text),
        Cell::Json(json) => cut(json),
        Cell::Missing | Cell::Null | Cell::Withheld => cell.type_name().to_owned(),
    }
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(cut(text)).to_string()
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

fn listed(texts: &[String]) -> String {
    let shown: Vec<String> = texts
        .iter()
        .take(MOST_LISTED)
        .map(|text| quoted(text))
        .collect();
    let more = if texts.len() > MOST_LISTED {
        ", …"
    } else {
        ""
    };
    format!("{}{more}", shown.join(", "))
}

fn span_text(span: Duration) -> String {
    let seconds = span.as_secs();
    let whole = SPANS.iter().find(|(unit, _)| seconds.is_multiple_of(*unit));
    whole.map_or_else(
        || format!("{seconds} seconds"),
        |(unit, name)| format!("{} {name}", seconds / unit),
    )
}

fn with_article(noun: &str) -> String {
    let article = if noun.starts_with(['a', 'e', 'i', 'o', 'u']) {
        "an"
    } else {
        "a"
    };
    format!("{article} {noun}")
}
