//! Tables of JSON values, row by row, as plugins get them.

use std::borrow::Cow;

use crate::bindings::types;
use crate::value::Value;

/// What a cell's tag says.
pub(crate) mod tag {
    pub(crate) const MISSING: u8 = 0;
    pub(crate) const NULL: u8 = 1;
    pub(crate) const FALSE: u8 = 2;
    pub(crate) const TRUE: u8 = 3;
    pub(crate) const NUMBER: u8 = 4;
    pub(crate) const TEXT: u8 = 5;
    pub(crate) const JSON: u8 = 6;
    pub(crate) const WITHHELD: u8 = 7;
}

/// One cell.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Cell<'a> {
    pub(crate) tag: u8,
    pub(crate) number: f64,
    pub(crate) text: Cow<'a, str>,
}

impl<'a> Cell<'a> {
    pub(crate) const MISSING: Self = Self::plain(tag::MISSING);

    const fn plain(tag: u8) -> Self {
        Self {
            tag,
            number: 0.0,
            text: Cow::Borrowed(""),
        }
    }

    fn text(tag: u8, text: impl Into<Cow<'a, str>>) -> Self {
        Self {
            tag,
            number: 0.0,
            text: text.into(),
        }
    }

    fn number(number: f64) -> Self {
        Self {
            number,
            ..Self::plain(tag::NUMBER)
        }
    }

    /// Reads a value from JSON text without surrounding blanks. Text that is no JSON is a missing value.
    pub(crate) fn read(json: &'a str) -> Self {
        match json.as_bytes() {
            [b'"', inner @ .., b'"'] if !inner.contains(&b'\\') => {
                Self::text(tag::TEXT, json.get(1..json.len() - 1).unwrap_or_default())
            }
            [b'"', ..] => serde_json::from_str::<String>(json)
                .map_or(Self::MISSING, |text| Self::text(tag::TEXT, text)),
            [b'{' | b'[', ..] => Self::text(tag::JSON, json),
            b"null" => Self::plain(tag::NULL),
            b"false" => Self::plain(tag::FALSE),
            b"true" => Self::plain(tag::TRUE),
            digits @ [b'-' | b'0'..=b'9', ..] => {
                read_number(digits, json).map_or(Self::MISSING, Self::number)
            }
            _ => Self::MISSING,
        }
    }

    fn from_value(value: Option<Value>) -> Self {
        match value {
            None => Self::MISSING,
            Some(Value::Null) => Self::plain(tag::NULL),
            Some(Value::Boolean(false)) => Self::plain(tag::FALSE),
            Some(Value::Boolean(true)) => Self::plain(tag::TRUE),
            Some(Value::Number(number)) => Self::number(number),
            Some(Value::Text(text)) => Self::text(tag::TEXT, text),
            Some(Value::Json(text)) => Self::text(tag::JSON, text),
            Some(Value::Withheld) => Self::plain(tag::WITHHELD),
        }
    }
}

/// Short integers are most numbers, and need none of a float parser's care.
fn read_number(digits: &[u8], json: &str) -> Option<f64> {
    if digits.len() <= 9 && digits.iter().all(u8::is_ascii_digit) {
        let number = digits.iter().fold(0, |number: u32, digit| {
            number * 10 + u32::from(digit - b'0')
        });
        return Some(f64::from(number));
    }
    json.parse().ok()
}

/// Fills a table.
pub(crate) struct CellsBuilder(types::Cells);

impl CellsBuilder {
    /// Makes room for this many cells.
    pub(crate) fn with_capacity(cells: usize) -> Self {
        Self(types::Cells {
            tags: Vec::with_capacity(cells),
            numbers: Vec::with_capacity(cells),
            ends: Vec::with_capacity(cells),
            text: String::with_capacity(cells * 8),
        })
    }

    pub(crate) fn push(&mut self, cell: &Cell<'_>) {
        self.push_parts(cell.tag, cell.number, &cell.text);
    }

    pub(crate) fn push_parts(&mut self, tag: u8, number: f64, text: &str) {
        let Self(cells) = self;
        cells.text.push_str(text);
        cells.tags.push(tag);
        cells.numbers.push(number);
        // More than 4 GiB of text fits into no guest; what is over has no end, and the guest fails.
        cells
            .ends
            .push(u32::try_from(cells.text.len()).unwrap_or(u32::MAX));
    }

    pub(crate) fn push_value(&mut self, value: Option<Value>) {
        self.push(&Cell::from_value(value));
    }

    pub(crate) fn finish(self) -> types::Cells {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_every_type_are_read() {
        let read = |json| {
            let cell = Cell::read(json);
            (cell.tag, cell.number, cell.text.into_owned())
        };
        assert_eq!(read("null"), (tag::NULL, 0.0, String::new()));
        assert_eq!(read("true"), (tag::TRUE, 0.0, String::new()));
        assert_eq!(read("false"), (tag::FALSE, 0.0, String::new()));
        assert_eq!(read("42"), (tag::NUMBER, 42.0, String::new()));
        assert_eq!(read("-1.5e3"), (tag::NUMBER, -1500.0, String::new()));
        assert_eq!(
            read("12345678901"),
            (tag::NUMBER, 12_345_678_901.0, String::new())
        );
        assert_eq!(read(r#""plain""#), (tag::TEXT, 0.0, "plain".to_owned()));
        assert_eq!(
            read(r#""a\"b\u00e9""#),
            (tag::TEXT, 0.0, "a\"bé".to_owned())
        );
        assert_eq!(read(r#""""#), (tag::TEXT, 0.0, String::new()));
        assert_eq!(read("[1,2]"), (tag::JSON, 0.0, "[1,2]".to_owned()));
        assert_eq!(
            read(r#"{"a":1}"#),
            (tag::JSON, 0.0, r#"{"a":1}"#.to_owned())
        );
    }

    #[test]
    fn what_is_no_json_is_missing() {
        for json in ["", "\"", "nul", "nan", "1x", "\"\\x\""] {
            assert_eq!(Cell::read(json), Cell::MISSING, "{json}");
        }
    }
}
