//! Statements on their way to SQLite. Its connection is a thread: each text that is sent there wakes that thread, and its answer
//! wakes the one that waits, which takes longer than most statements. So statements go together where they can.

use std::borrow::Cow;
use std::fmt::Write as _;

use futures_util::TryStreamExt as _;
use sqlx::sqlite::{SqliteArguments, SqliteRow};
use sqlx::{AssertSqlSafe, Either, Executor as _, SqliteConnection};

use crate::error::LOST_RACE;
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
    /// How many rows the last statement has changed. If it changes none by its kind, it has the number of the one before.
    pub changed: u64,
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
    let mut left = statements;
    // After the last statement the stream would have to be waited for once more, for its end.
    while left > 0 {
        match results.try_next().await.map_err(Error::from)? {
            Some(Either::Left(done)) => {
                outcome.changed = done.rows_affected();
                left -= 1;
            }
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
    statements: usize,
}

impl Unsent {
    /// Begins a change. Its text goes up to [`end`](Self::end), and its parameters are numbered on.
    pub(crate) fn begin(&mut self) {
        if !self.is_empty() {
            self.text.push_str("; ");
        }
    }

    /// Ends a change that must change so many rows, or any number.
    pub(crate) fn end(&mut self, expected: Option<u64>) {
        self.statements += 1;
        if let Some(expected) = expected {
            self.statements += 1;
            // The text is no path: to look there fails, with the text, and nothing after it is run. Writing to a String can't fail.
            let _ = write!(
                self.text,
                "; SELECT json_extract('{{}}', CASE changes() WHEN {expected} THEN '$' ELSE '{LOST_RACE}' END)"
            );
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.statements == 0
    }

    /// Sends everything, with what begins the transaction and what comes last. Fails as a lost race, before what comes last, if a
    /// change finds another number of rows than expected.
    pub(crate) async fn send(
        self,
        connection: &mut SqliteConnection,
        begin: Option<Batch>,
        end: Option<Batch>,
    ) -> Result<()> {
        let batches = begin.iter().chain(&end);
        let statements = self.statements + batches.map(|batch| batch.statements).sum::<usize>();
        let parts = [
            begin.map(|begin| begin.text),
            (!self.is_empty()).then_some(self.text.as_str()),
            end.map(|end| end.text),
        ];
        let parts: Vec<&str> = parts.into_iter().flatten().collect();
        let text = parts.join("; ").into();
        run(connection, text, self.arguments, statements, Wanted::All).await?;
        Ok(())
    }
}
