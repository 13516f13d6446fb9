//! One statement and its parameters.

use std::borrow::Cow;
use std::fmt::Write as _;

use futures_util::future::BoxFuture;
use sqlx::postgres::{PgArguments, PgRow};
use sqlx::sqlite::{SqliteArguments, SqliteRow};
use sqlx::{Arguments as _, AssertSqlSafe, Encode, FromRow, Postgres, Sqlite, Type};
use uuid::Uuid;

use crate::pool::within;
use crate::tx::Connection;
use crate::{Dialect, Error, Result, Rows, Tx};

/// Equals, in what is asked of rows besides their ids: by this PostgreSQL looks rows up by id alone. By `=` it takes the indexes
/// of `node` and `app_id`. There each claim and each end of one has left an entry of a row that is dead, until the table is
/// vacuumed; and until it is analyzed, all rows of an app are thought to be few.
pub const IS: &str = " IS NOT DISTINCT FROM ";

/// What can be a parameter on both databases.
pub trait Bind:
    for<'q> Encode<'q, Sqlite> + Type<Sqlite> + for<'q> Encode<'q, Postgres> + Type<Postgres>
{
}

impl<T> Bind for T where
    T: for<'q> Encode<'q, Sqlite> + Type<Sqlite> + for<'q> Encode<'q, Postgres> + Type<Postgres>
{
}

/// What a row of both databases can be read into; comes from `#[derive(nudge_db::FromRow)]`.
pub trait Record:
    for<'r> FromRow<'r, SqliteRow> + for<'r> FromRow<'r, PgRow> + Send + Unpin
{
}

impl<T> Record for T where
    T: for<'r> FromRow<'r, SqliteRow> + for<'r> FromRow<'r, PgRow> + Send + Unpin
{
}

/// Which rows of a statement are read.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wanted {
    First,
    All,
}

/// Rows as their database gives them. A statement is run by one function for all records, and only the reading is
/// compiled for each.
enum FetchedRows {
    Sqlite(Vec<SqliteRow>),
    Postgres(Vec<PgRow>),
}

impl FetchedRows {
    fn none(dialect: Dialect) -> Self {
        match dialect {
            Dialect::Sqlite => Self::Sqlite(Vec::new()),
            Dialect::Postgres => Self::Postgres(Vec::new()),
        }
    }

    fn read<T: Record>(self) -> Result<Vec<T>> {
        let read = match self {
            Self::Sqlite(rows) => rows.iter().map(T::from_row).collect::<sqlx::Result<_>>(),
            Self::Postgres(rows) => rows.iter().map(T::from_row).collect(),
        };
        Ok(read?)
    }
}

/// A statement in the making. Its text grows by literals only, so that no input can become SQL.
#[derive(Debug)]
pub struct Statement<'t> {
    tx: &'t mut Tx,
    text: Cow<'static, str>,
    arguments: Arguments,
    failure: Option<Error>,
    /// Whether it is a change that waits for the end of the transaction.
    waits: bool,
}

#[derive(Debug)]
pub(crate) enum Arguments {
    Sqlite(SqliteArguments),
    Postgres(PgArguments),
}

impl Arguments {
    pub(crate) fn new(dialect: Dialect) -> Self {
        match dialect {
            Dialect::Sqlite => Self::Sqlite(SqliteArguments::default()),
            Dialect::Postgres => Self::Postgres(PgArguments::default()),
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Sqlite(arguments) => arguments.len(),
            Self::Postgres(arguments) => arguments.len(),
        }
    }

    pub(crate) fn add(&mut self, value: impl Bind) -> Result<()> {
        match self {
            Self::Sqlite(arguments) => arguments.add(value),
            Self::Postgres(arguments) => arguments.add(value),
        }
        .map_err(|cause| Error::from(sqlx::Error::Encode(cause)))
    }
}

impl<'t> Statement<'t> {
    pub(crate) fn new(tx: &'t mut Tx, text: &'static str) -> Self {
        let arguments = Arguments::new(tx.dialect());
        Self {
            tx,
            text: Cow::Borrowed(text),
            arguments,
            failure: None,
            waits: false,
        }
    }

    /// What waits already is taken over, so that texts and parameters go on from there, until the change ends.
    pub(crate) fn change_rows(tx: &'t mut Tx, table: &'static str, rows: Rows) -> Self {
        let Some(waiting) = tx.deferred_changes(rows.len()) else {
            return Self::with_rows(tx, table, rows);
        };
        let (text, arguments) = waiting.take();
        let change = Self {
            tx,
            text: Cow::Owned(text),
            arguments,
            failure: None,
            waits: true,
        };
        change.push("WITH ").push_rows(table, rows)
    }

    pub(crate) fn with_rows(tx: &'t mut Tx, table: &'static str, rows: Rows) -> Self {
        Self::new(tx, "WITH ").push_rows(table, rows)
    }

    /// Appends a second table of rows, straight after the first: `, table(columns) AS (rows)`.
    #[must_use]
    pub fn and_rows(self, table: &'static str, rows: Rows) -> Self {
        self.push(", ").push_rows(table, rows)
    }

    fn push_rows(mut self, table: &'static str, rows: Rows) -> Self {
        self = self.push(table).push(" AS (");
        let is_numbered = self.waits;
        let rendered = rows.render(self.text.to_mut(), &mut self.arguments, is_numbered);
        if let Err(failure) = rendered {
            self.failure.get_or_insert(failure);
        }
        self.push(")")
    }

    /// Gives the next parameter its value.
    #[must_use]
    pub fn bind(mut self, value: impl Bind) -> Self {
        if let Err(failure) = self.arguments.add(value) {
            self.failure.get_or_insert(failure);
        }
        self
    }

    /// Appends to the text.
    #[must_use]
    pub fn push(mut self, text: &'static str) -> Self {
        self.text.to_mut().push_str(text);
        self
    }

    /// Appends a parameter with its value.
    #[must_use]
    pub fn push_bind(mut self, value: impl Bind) -> Self {
        self = self.bind(value);
        let number = self.arguments.len();
        // Writing to a String can't fail.
        let _ = write!(self.text.to_mut(), "${number}");
        self
    }

    /// Appends `(…, …)` with a parameter for each value; `(NULL)`, which nothing equals, for none.
    #[must_use]
    pub fn push_list<T: Bind>(mut self, values: impl IntoIterator<Item = T>) -> Self {
        let mut separator = "(";
        for value in values {
            self = self.push(separator).push_bind(value);
            separator = ", ";
        }
        self.push(if separator == "(" { "(NULL)" } else { ")" })
    }

    /// Appends `(…, …)` with two parameters: a place in a list in order of two columns.
    #[must_use]
    pub fn push_pair(self, first: impl Bind, second: impl Bind) -> Self {
        let begun = self.push("(").push_bind(first);
        begun.push(", ").push_bind(second).push(")")
    }

    /// Appends that a column with numbers of aliases has one of these, where the database is distributed: it asks their shards
    /// alone then. Elsewhere nothing is appended: an index of aliases would be taken for the one that is meant.
    #[must_use]
    pub fn in_shards_of(
        self,
        column: &'static str,
        aliases: impl IntoIterator<Item = i64>,
    ) -> Self {
        if self.tx.shards().is_none() {
            return self;
        }
        let mut aliases: Vec<i64> = aliases.into_iter().collect();
        aliases.sort_unstable();
        aliases.dedup();
        self.push(" AND ")
            .push(column)
            .push(" = ANY(")
            .push_array(aliases)
            .push(")")
    }

    /// Ends the statement with its newest rows, by a column of times and then one of numbers, newest first. The statement's rows are
    /// in an index in order of time.
    ///
    /// SQLite's index ends with the row's number, so that it is in this order. PostgreSQL's is not, and it would sort all rows: it
    /// takes the newest from the index, with all of the last instant, and sorts those.
    #[must_use]
    pub fn newest(mut self, (time, number): (&'static str, &'static str), most: i64) -> Self {
        if self.tx.dialect() == Dialect::Postgres {
            self.text.to_mut().insert_str(0, "SELECT * FROM (");
            self = self.push(" ORDER BY ").push(time);
            self = self.push(" DESC FETCH FIRST ").push_bind(most);
            self = self.push(" ROWS WITH TIES) AS newest");
        }
        self = self.push(" ORDER BY ").push(time);
        self = self.push(" DESC, ").push(number);
        self.push(" DESC LIMIT ").push_bind(most)
    }

    /// Ends a list that has the newest ids first: those below `before`, if it is given.
    #[must_use]
    pub fn newest_below(mut self, before: Option<Uuid>, limit: i64) -> Self {
        if let Some(before) = before {
            self = self.push(" AND id < ").push_bind(before);
        }
        self.push(" ORDER BY id DESC LIMIT ").push_bind(limit)
    }

    fn push_array(mut self, values: Vec<i64>) -> Self {
        let added = match &mut self.arguments {
            Arguments::Postgres(arguments) => {
                let added = arguments.add(values).map_err(sqlx::Error::Encode);
                added.map_err(Error::from)
            }
            Arguments::Sqlite(_) => Err(mixed()),
        };
        if let Err(failure) = added {
            self.failure.get_or_insert(failure);
        }
        let number = self.arguments.len();
        // Writing to a String can't fail.
        let _ = write!(self.text.to_mut(), "${number}");
        self
    }

    /// Makes a change that must change so many rows, or any number. False: it changed another number.
    ///
    /// A change that waits for the end of the transaction answers true; if it then finds another number of rows, the
    /// commit, or the statement that could not wait, fails as a [lost race](crate::Kind::Serialization).
    pub async fn change(self, expected: Option<u64>) -> Result<bool> {
        if !self.waits {
            let explains = self.tx.explains();
            let changed = self.execute().await?;
            return Ok(explains || expected.is_none_or(|expected| changed == expected));
        }
        let (tx, text, arguments) = self.parts()?;
        let waiting = tx.deferred_changes(0).ok_or_else(mixed)?;
        if !waiting.put(text.into_owned(), arguments, expected) {
            return Err(mixed());
        }
        Ok(true)
    }

    /// Runs the statement; answers how many rows it changed.
    pub fn execute(self) -> BoxFuture<'t, Result<u64>> {
        Box::pin(async move {
            if self.tx.explains() {
                self.explain().await?;
                return Ok(0);
            }
            let (tx, text, arguments) = self.parts()?;
            match (tx.connection().await?, arguments) {
                (Connection::Sqlite(sqlite), Arguments::Sqlite(arguments)) => {
                    let outcome = sqlite.run(text, arguments, Wanted::All).await?;
                    Ok(outcome.changed)
                }
                (Connection::Postgres(lease), Arguments::Postgres(arguments)) => {
                    let (deadline, prepares) = (lease.deadline(), lease.prepares());
                    let query =
                        sqlx::query_with(AssertSqlSafe(text), arguments).persistent(prepares);
                    let outcome = within(deadline, query.execute(lease.statement().await?)).await;
                    Ok(lease.settle(outcome).await?.rows_affected())
                }
                _ => Err(mixed()),
            }
        })
    }

    /// Runs the statement and reads its first row, if there is one.
    pub async fn fetch_optional<T: Record>(self) -> Result<Option<T>> {
        let found = self.find(Wanted::First).await?;
        Ok(found.read()?.into_iter().next())
    }

    /// Runs the statement and reads the only column of its first row, if there is one.
    pub async fn fetch_value<V>(self) -> Result<Option<V>>
    where
        (V,): Record,
    {
        let row: Option<(V,)> = self.fetch_optional().await?;
        Ok(row.map(|(value,)| value))
    }

    /// Runs the statement and reads the only column of its only row.
    pub async fn fetch_scalar<V>(self) -> Result<V>
    where
        (V,): Record,
    {
        let (value,) = self.fetch_one().await?;
        Ok(value)
    }

    /// Runs the statement and reads the only column of all its rows.
    pub async fn fetch_values<V>(self) -> Result<Vec<V>>
    where
        (V,): Record,
    {
        let rows: Vec<(V,)> = self.fetch_all().await?;
        Ok(rows.into_iter().map(|(value,)| value).collect())
    }

    /// Runs the statement and reads its only row.
    pub async fn fetch_one<T: Record>(self) -> Result<T> {
        self.fetch_optional()
            .await?
            .ok_or_else(|| Error::from(sqlx::Error::RowNotFound))
    }

    /// Runs the statement and reads all its rows.
    pub async fn fetch_all<T: Record>(self) -> Result<Vec<T>> {
        self.find(Wanted::All).await?.read()
    }

    /// Runs the statement, or keeps how the database would run it.
    fn find(self, wanted: Wanted) -> BoxFuture<'t, Result<FetchedRows>> {
        Box::pin(async move {
            if self.tx.explains() {
                let dialect = self.tx.dialect();
                self.explain().await?;
                return Ok(FetchedRows::none(dialect));
            }
            self.rows(wanted).await
        })
    }

    /// Keeps how the database would run the statement.
    async fn explain(self) -> Result<()> {
        let dialect = self.tx.dialect();
        let (tx, text, arguments) = self.parts()?;
        let prefix = match dialect {
            Dialect::Sqlite => "EXPLAIN QUERY PLAN ",
            Dialect::Postgres => "EXPLAIN ",
        };
        let explaining = Statement {
            tx: &mut *tx,
            text: Cow::Owned(format!("{prefix}{text}")),
            arguments,
            failure: None,
            waits: false,
        };
        let lines: Vec<String> = match dialect {
            Dialect::Sqlite => {
                let rows: Vec<(i64, i64, i64, String)> =
                    explaining.rows(Wanted::All).await?.read()?;
                rows.into_iter().map(|row| row.3).collect()
            }
            Dialect::Postgres => {
                let rows: Vec<(String,)> = explaining.rows(Wanted::All).await?.read()?;
                rows.into_iter().map(|row| row.0).collect()
            }
        };
        tx.keep_plan(lines.into_iter());
        Ok(())
    }

    async fn rows(self, wanted: Wanted) -> Result<FetchedRows> {
        let (tx, text, arguments) = self.parts()?;
        match (tx.connection().await?, arguments) {
            (Connection::Sqlite(sqlite), Arguments::Sqlite(arguments)) => Ok(FetchedRows::Sqlite(
                sqlite.run(text, arguments, wanted).await?.rows,
            )),
            (Connection::Postgres(lease), Arguments::Postgres(arguments)) => {
                let (deadline, prepares) = (lease.deadline(), lease.prepares());
                let query = sqlx::query_with(AssertSqlSafe(text), arguments).persistent(prepares);
                let connection = lease.statement().await?;
                let outcome = match wanted {
                    Wanted::First => {
                        let row = within(deadline, query.fetch_optional(connection)).await;
                        row.map(Vec::from_iter)
                    }
                    Wanted::All => within(deadline, query.fetch_all(connection)).await,
                };
                Ok(FetchedRows::Postgres(lease.settle(outcome).await?))
            }
            _ => Err(mixed()),
        }
    }

    fn parts(self) -> Result<(&'t mut Tx, Cow<'static, str>, Arguments)> {
        match self.failure {
            Some(failure) => Err(failure),
            None => Ok((self.tx, self.text, self.arguments)),
        }
    }
}

/// Arguments are made from the transaction's dialect, so that this can't be reached.
fn mixed() -> Error {
    Error::from(sqlx::Error::Protocol(
        "arguments of another database".to_owned(),
    ))
}
