//! Property values, as the host sends them: many in one table.

use crate::bindings::trigger::nudge::plugin::types::{Cells, Value};
use crate::instant::Instant;

/// One property value, borrowed from a [`Table`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cell<'a> {
    /// There is no such property.
    Missing,
    /// It is `null`.
    Null,
    /// `true` or `false`.
    Boolean(bool),
    /// A number.
    Number(f64),
    /// A text.
    Text(&'a str),
    /// An array or object, as JSON text.
    Json(&'a str),
    /// The app's privacy policy keeps it from plugins.
    Withheld,
}

impl<'a> Cell<'a> {
    /// The text, if it is one.
    pub fn text(self) -> Option<&'a str> {
        if let Self::Text(text) = self {
            Some(text)
        } else {
            None
        }
    }

    /// The number, if it is one.
    pub fn number(self) -> Option<f64> {
        if let Self::Number(number) = self {
            Some(number)
        } else {
            None
        }
    }

    /// The boolean, if it is one.
    pub fn boolean(self) -> Option<bool> {
        if let Self::Boolean(boolean) = self {
            Some(boolean)
        } else {
            None
        }
    }

    /// The instant that a text names in ISO 8601.
    pub fn date(self) -> Option<Instant> {
        self.text().and_then(Instant::parse)
    }

    /// Whether there is a value: neither missing, nor null, nor withheld.
    pub fn present(self) -> bool {
        !matches!(self, Self::Missing | Self::Null | Self::Withheld)
    }

    /// The value, if there is one that may be seen.
    pub fn value(self) -> Option<Value> {
        Some(match self {
            Self::Missing | Self::Withheld => return None,
            Self::Null => Value::Null,
            Self::Boolean(boolean) => Value::Boolean(boolean),
            Self::Number(number) => Value::Number(number),
            Self::Text(text) => Value::Text(text.to_owned()),
            Self::Json(json) => Value::Json(json.to_owned()),
        })
    }

    /// What the value is, in a word: `missing`, `null`, `boolean`, `number`, `string`, `array or object`.
    pub fn type_name(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Null => "null",
            Self::Boolean(_) => "boolean",
            Self::Number(_) => "number",
            Self::Text(_) => "string",
            Self::Json(_) => "array or object",
            Self::Withheld => "withheld",
        }
    }
}

impl<'a> From<&'a Value> for Cell<'a> {
    fn from(value: &'a Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Boolean(boolean) => Self::Boolean(*boolean),
            Value::Number(number) => Self::Number(*number),
            Value::Text(text) => Self::Text(text),
            Value::Json(json) => Self::Json(json),
        }
    }
}

/// Rows of cells.
#[derive(Clone, Debug)]
pub struct Table {
    cells: Cells,
    columns: usize,
}

impl Table {
    /// A table of the host's cells, so many in each row.
    pub fn new(cells: Cells, columns: usize) -> Self {
        Self { cells, columns }
    }

    /// A cell. Outside the table, and for types that this SDK does not know: missing.
    pub fn cell(&self, row: usize, column: usize) -> Cell<'_> {
        if column >= self.columns {
            return Cell::Missing;
        }
        let number = row * self.columns + column;
        let tag = self.cells.tags.get(number).copied().unwrap_or_default();
        let double = self.cells.numbers.get(number).copied().unwrap_or_default();
        cell(tag, double, || self.text(number))
    }

    /// The cells of a row, column by column; none outside the table.
    pub fn row(&self, row: usize) -> impl Iterator<Item = Cell<'_>> {
        let Cells {
            tags,
            numbers,
            ends,
            text,
        } = &self.cells;
        let first = row * self.columns;
        let cells = first..first + self.columns;
        let tags = tags.get(cells.clone()).unwrap_or_default();
        let numbers = numbers.get(cells.clone()).unwrap_or_default();
        let ends = ends.get(cells).unwrap_or_default();
        let mut start = self.end_before(first);
        tags.iter()
            .zip(numbers)
            .zip(ends)
            .map(move |((tag, double), end)| {
                let range = start..*end as usize;
                start = range.end;
                cell(*tag, *double, || text.get(range).unwrap_or_default())
            })
    }

    fn text(&self, number: usize) -> &str {
        let range = self.end_before(number)..self.end_before(number + 1);
        self.cells.text.get(range).unwrap_or_default()
    }

    /// Where the text of the cell before this one ends.
    fn end_before(&self, number: usize) -> usize {
        let before = number.checked_sub(1);
        let end = before.and_then(|before| self.cells.ends.get(before));
        end.map_or(0, |end| *end as usize)
    }
}

/// The cell that a tag and what goes with it make.
#[inline]
fn cell<'a>(tag: u8, number: f64, text: impl FnOnce() -> &'a str) -> Cell<'a> {
    match tag {
        1 => Cell::Null,
        2 => Cell::Boolean(false),
        3 => Cell::Boolean(true),
        4 => Cell::Number(number),
        5 => Cell::Text(text()),
        6 => Cell::Json(text()),
        7 => Cell::Withheld,
        _ => Cell::Missing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let cells = Cells {
            tags: vec![5, 4, 6, 0, 7, 5, 9, 3],
            numbers: vec![0.0, 1.5, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
            ends: vec![3, 3, 5, 5, 5, 7, 7, 7],
            text: "one[]né".to_owned(),
        };
        Table::new(cells, 4)
    }

    #[test]
    fn cells_are_found_by_row_and_column() {
        let table = table();
        assert_eq!(table.cell(0, 0), Cell::Text("one"));
        assert_eq!(table.cell(0, 1), Cell::Number(1.5));
        assert_eq!(table.cell(0, 2), Cell::Json("[]"));
        assert_eq!(table.cell(0, 3), Cell::Missing);
        assert_eq!(table.cell(1, 0), Cell::Withheld);
        assert_eq!(table.cell(1, 3), Cell::Boolean(true));
    }

    #[test]
    fn a_row_has_the_cells_of_its_columns() {
        let table = table();
        for row in 0..2 {
            let cells: Vec<Cell<'_>> = table.row(row).collect();
            let each: Vec<Cell<'_>> = (0..4).map(|column| table.cell(row, column)).collect();
            assert_eq!(cells, each);
        }
        assert_eq!(table.row(2).count(), 0);
    }

    #[test]
    fn what_is_not_known_is_missing() {
        let table = table();
        assert_eq!(table.cell(1, 2), Cell::Missing, "a tag of a later contract");
        assert_eq!(table.cell(2, 0), Cell::Missing, "no such row");
        assert_eq!(table.cell(0, 4), Cell::Missing, "no such column");
        assert_eq!(
            table.cell(1, 1),
            Cell::Text(""),
            "an end inside a character"
        );
    }
}
