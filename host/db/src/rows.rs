//! Tables of parameters.

use std::fmt::Write as _;
use std::sync::Arc;

use uuid::Uuid;

use crate::statement::{Arguments, Bind};
use crate::{Error, Result, Timestamp};

/// Rows that a statement inserts or joins, column by column.
///
/// PostgreSQL gets an array a column (`UNNEST`), SQLite a list of `VALUES`. SQLite's list is padded with
/// rows of nulls to the next power of two, so that ten prepared statements serve all sizes; therefore
/// **the first column must have no nulls**, and at most [`Rows::MOST`] rows fit.
#[derive(Debug, Default)]
pub struct Rows {
    columns: Vec<Column>,
}

#[derive(Debug)]
enum Column {
    Integers(Vec<Option<i64>>),
    Booleans(Vec<Option<bool>>),
    Texts(Vec<Option<String>>),
    SharedTexts(Vec<Option<Arc<str>>>),
    Bytes(Vec<Option<Vec<u8>>>),
    Uuids(Vec<Option<Uuid>>),
}

impl Rows {
    /// How many rows one statement takes.
    pub const MOST: usize = 512;

    /// A table without columns yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a column of integers.
    #[must_use]
    pub fn integers<T: Into<Option<i64>>>(self, values: impl IntoIterator<Item = T>) -> Self {
        self.column(Column::Integers(
            values.into_iter().map(Into::into).collect(),
        ))
    }

    /// Adds a column of instants.
    #[must_use]
    pub fn timestamps<T: Into<Option<Timestamp>>>(
        self,
        values: impl IntoIterator<Item = T>,
    ) -> Self {
        self.integers(
            values
                .into_iter()
                .map(|value| value.into().map(|instant: Timestamp| instant.0)),
        )
    }

    /// Adds a column of truth values.
    #[must_use]
    pub fn booleans<T: Into<Option<bool>>>(self, values: impl IntoIterator<Item = T>) -> Self {
        self.column(Column::Booleans(
            values.into_iter().map(Into::into).collect(),
        ))
    }

    /// Adds a column of texts.
    #[must_use]
    pub fn texts<T: Into<Option<String>>>(self, values: impl IntoIterator<Item = T>) -> Self {
        self.column(Column::Texts(values.into_iter().map(Into::into).collect()))
    }

    /// Adds a column of texts that others hold too; none is copied for SQLite.
    #[must_use]
    pub fn shared_texts<T: Into<Option<Arc<str>>>>(
        self,
        values: impl IntoIterator<Item = T>,
    ) -> Self {
        self.column(Column::SharedTexts(
            values.into_iter().map(Into::into).collect(),
        ))
    }

    /// Adds a column of byte strings.
    #[must_use]
    pub fn bytes<T: Into<Option<Vec<u8>>>>(self, values: impl IntoIterator<Item = T>) -> Self {
        self.column(Column::Bytes(values.into_iter().map(Into::into).collect()))
    }

    /// Adds a column of UUIDs.
    #[must_use]
    pub fn uuids<T: Into<Option<Uuid>>>(self, values: impl IntoIterator<Item = T>) -> Self {
        self.column(Column::Uuids(values.into_iter().map(Into::into).collect()))
    }

    fn column(mut self, column: Column) -> Self {
        self.columns.push(column);
        self
    }

    /// How many rows there are.
    pub(crate) fn len(&self) -> usize {
        self.columns.first().map_or(0, Column::len)
    }

    /// Writes the table. `is_numbered`: whether SQLite's parameters go by their numbers, as those must that stand behind another
    /// statement. It looks each name up among all of them.
    pub(crate) fn render(
        self,
        text: &mut String,
        arguments: &mut Arguments,
        is_numbered: bool,
    ) -> Result<()> {
        let rows = self.len();
        if self.columns.iter().any(|column| column.len() != rows) {
            return Err(misuse("the columns have different lengths"));
        }
        if rows == 0 {
            return Err(misuse("there are no rows"));
        }
        match arguments {
            Arguments::Postgres(_) => self.render_arrays(text, arguments),
            Arguments::Sqlite(_) if rows > Self::MOST => Err(misuse("there are too many rows")),
            Arguments::Sqlite(_) => self.render_values(rows, text, arguments, is_numbered),
        }
    }

    fn render_arrays(self, text: &mut String, arguments: &mut Arguments) -> Result<()> {
        let Arguments::Postgres(postgres) = arguments else {
            return Err(misuse("arrays are PostgreSQL's"));
        };
        text.push_str("SELECT * FROM UNNEST(");
        let first = sqlx::Arguments::len(postgres) + 1;
        for (index, column) in self.columns.into_iter().enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            // Writing to a String can't fail.
            let _ = write!(
                text,
                "{separator}${}::{}[]",
                first + index,
                column.postgres_type()
            );
            column
                .bind_array(postgres)
                .map_err(|cause| Error::from(sqlx::Error::Encode(cause)))?;
        }
        text.push(')');
        Ok(())
    }

    fn render_values(
        mut self,
        rows: usize,
        text: &mut String,
        arguments: &mut Arguments,
        is_numbered: bool,
    ) -> Result<()> {
        text.push_str("SELECT * FROM (VALUES ");
        for row in 0..rows.next_power_of_two() {
            text.push_str(if row == 0 { "(" } else { ",(" });
            for (index, column) in self.columns.iter_mut().enumerate() {
                column.bind_cell(row, arguments)?;
                text.push_str(if index == 0 { "" } else { "," });
                if is_numbered {
                    // Writing to a String can't fail.
                    let _ = write!(text, "${}", arguments.len());
                } else {
                    text.push('?');
                }
            }
            text.push(')');
        }
        // The planner has no statistics: it believes that an app has ten rows in any table, and would walk
        // through those rather than look this list's rows up by their keys. Told that hardly any row of the
        // list is left, it begins with the list.
        text.push_str(") WHERE likelihood(column1 IS NOT NULL, 0.001)");
        Ok(())
    }
}

impl Column {
    fn len(&self) -> usize {
        match self {
            Self::Integers(values) => values.len(),
            Self::Booleans(values) => values.len(),
            Self::Texts(values) => values.len(),
            Self::SharedTexts(values) => values.len(),
            Self::Bytes(values) => values.len(),
            Self::Uuids(values) => values.len(),
        }
    }

    fn postgres_type(&self) -> &'static str {
        match self {
            Self::Integers(_) => "bigint",
            Self::Booleans(_) => "boolean",
            Self::Texts(_) | Self::SharedTexts(_) => "text",
            Self::Bytes(_) => "bytea",
            Self::Uuids(_) => "uuid",
        }
    }

    fn bind_array(
        self,
        arguments: &mut sqlx::postgres::PgArguments,
    ) -> std::result::Result<(), sqlx::error::BoxDynError> {
        use sqlx::Arguments as _;
        match self {
            Self::Integers(values) => arguments.add(values),
            Self::Booleans(values) => arguments.add(values),
            Self::Texts(values) => arguments.add(values),
            Self::SharedTexts(values) => {
                arguments.add(values.iter().map(Option::as_deref).collect::<Vec<_>>())
            }
            Self::Bytes(values) => arguments.add(values),
            Self::Uuids(values) => arguments.add(values),
        }
    }

    /// Binds the cell of a row, or a null past the last row.
    fn bind_cell(&mut self, row: usize, arguments: &mut Arguments) -> Result<()> {
        fn take<T: Default>(values: &mut [Option<T>], row: usize) -> Option<T> {
            values.get_mut(row).and_then(Option::take)
        }
        fn add(arguments: &mut Arguments, value: impl Bind) -> Result<()> {
            arguments.add(value)
        }
        match self {
            Self::Integers(values) => add(arguments, take(values, row)),
            Self::Booleans(values) => add(arguments, take(values, row)),
            Self::Texts(values) => add(arguments, take(values, row)),
            Self::SharedTexts(values) => add(arguments, take(values, row)),
            Self::Bytes(values) => add(arguments, take(values, row)),
            Self::Uuids(values) => add(arguments, take(values, row)),
        }
    }
}

fn misuse(what: &str) -> Error {
    Error::from(sqlx::Error::Protocol(format!("rows: {what}")))
}
