//! Statements on their way to SQLite. Its connection is a thread: each text that is sent there wakes that thread, and its answer
//! wakes the one that waits, which takes longer than most statements. So statements go together where they can.

use std::borrow::Cow;

use futures_util::TryStreamExt as _;
use sqlx::sqlite::{SqliteArguments, SqliteRow};
use sqlx::{AssertSqlSafe, Either, Executor as _, SqliteConnection};

use crate::statement::Wanted;
use crate::{Error, Result};

/// A text of some statements.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Batch {
    pub text: &'static str,
    pub statements: usize,
}

/// What a text has brought.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub rows: Vec<SqliteRow>,
    /// How many rows each statement has changed. One that changes none by its kind has the number of the one before.
    pub changed: Vec<u64>,
}

impl Batch {
    pub(crate) const fn new(text: &'static str, statements: usize) -> Self {
        Self { text, statements }
    }

    /// Sends it.
    pub(crate) async fn run(self, connection: &mut SqliteConnection) -> Result<()> {
        let text = Cow::Borrowed(self.text);
        let arguments = SqliteArguments::default();
        run(connection, text, arguments, self.statements, Wanted::All).await?;
        Ok(())
    }

    /// Sends it and a statement.
    pub(crate) async fn then(
        self,
        connection: &mut SqliteConnection,
        text: Cow<'static, str>,
        arguments: SqliteArguments,
        wanted: Wanted,
    ) -> Result<Outcome> {
        let text = format!("{}; {text}", self.text).into();
        run(connection, text, arguments, self.statements + 1, wanted).await
    }
}

/// Sends a text of so many statements. Should this be dropped, the thread ends the one that it is at.
pub(crate) async fn run(
    connection: &mut SqliteConnection,
    text: Cow<'static, str>,
    arguments: SqliteArguments,
    statements: usize,
    wanted: Wanted,
) -> Result<Outcome> {
    let query = sqlx::query_with(AssertSqlSafe(text), arguments);
    let mut results = connection.fetch_many(query);
    let mut outcome = Outcome::default();
    // After the last statement the stream would have to be waited for once more, for its end.
    while outcome.changed.len() < statements {
        match results.try_next().await.map_err(Error::from)? {
            Some(Either::Left(done)) => outcome.changed.push(done.rows_affected()),
            Some(Either::Right(row)) => {
                outcome.rows.push(row);
                if matches!(wanted, Wanted::First) {
                    break;
                }
            }
            None => break,
        }
    }
    Ok(outcome)
}

/// Changes of a transaction that were not sent yet.
#[derive(Debug, Default)]
pub(crate) struct Unsent {
    pub text: String,
    pub arguments: SqliteArguments,
    /// How many rows each must change, or any number.
    expected: Vec<Option<u64>>,
}

impl Unsent {
    /// Begins a change. Its text goes up to [`end`](Self::end), and its parameters are numbered on.
    pub(crate) fn begin(&mut self) {
        if !self.expected.is_empty() {
            self.text.push_str("; ");
        }
    }

    /// Ends a change.
    pub(crate) fn end(&mut self, expected: Option<u64>) {
        self.expected.push(expected);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.expected.is_empty()
    }

    /// Whether any must change a number of rows.
    pub(crate) fn is_checked(&self) -> bool {
        self.expected.iter().any(Option::is_some)
    }

    /// Sends everything, with what begins the transaction and what comes last, before which nothing is checked. Fails as a lost race
    /// if a change finds another number of rows than expected.
    pub(crate) async fn send(
        self,
        connection: &mut SqliteConnection,
        begin: Option<Batch>,
        end: Option<Batch>,
    ) -> Result<()> {
        let first = begin.map_or(0, |begin| begin.statements);
        let statements = first + self.expected.len() + end.map_or(0, |end| end.statements);
        let parts = [
            begin.map(|begin| begin.text),
            (!self.is_empty()).then_some(self.text.as_str()),
            end.map(|end| end.text),
        ];
        let parts: Vec<&str> = parts.into_iter().flatten().collect();
        let text = parts.join("; ");
        let outcome = run(
            connection,
            text.into(),
            self.arguments,
            statements,
            Wanted::All,
        )
        .await?;
        let changed = outcome.changed.iter().skip(first);
        let mut pairs = self.expected.iter().zip(changed);
        if pairs.all(|(expected, changed)| expected.is_none_or(|expected| expected == *changed)) {
            Ok(())
        } else {
            Err(Error::lost_race())
        }
    }
}
