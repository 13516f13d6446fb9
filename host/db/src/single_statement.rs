//! Changes that go to PostgreSQL together, as one statement: one round trip, whatever their number.

use std::fmt::Write as _;

use sqlx::postgres::PgArguments;
use sqlx::{Arguments as _, AssertSqlSafe};

use crate::Result;
use crate::error::LOST_RACE;
use crate::pool::{Lease, Pool, within};

/// A transaction that is begun when something in it can't wait.
#[derive(Debug)]
pub(crate) struct SingleStatement {
    pool: Pool,
    transaction: Option<Lease>,
    pub(crate) waiting: UnsentChanges,
}

/// Changes that were not sent yet.
#[derive(Debug, Default)]
pub(crate) struct UnsentChanges {
    /// What stands between `WITH` and the last `SELECT`.
    pub(crate) text: String,
    pub(crate) arguments: PgArguments,
    changes: usize,
    /// Changes by their numbers, and how many rows each must change.
    expected: Vec<(usize, u64)>,
}

impl SingleStatement {
    pub(crate) fn new(pool: Pool) -> Self {
        Self {
            pool,
            transaction: None,
            waiting: UnsentChanges::default(),
        }
    }

    /// The transaction's connection, for a statement that can't wait: begins the transaction, and sends what waits.
    pub(crate) async fn lease(&mut self) -> Result<&mut Lease> {
        let transaction = match &mut self.transaction {
            Some(transaction) => transaction,
            none => none.insert(self.pool.begin().await?),
        };
        std::mem::take(&mut self.waiting).send(transaction).await?;
        Ok(transaction)
    }

    /// Sends what waits. If that is all there was, it needs no transaction around it.
    pub(crate) async fn commit(self) -> Result<()> {
        match self.transaction {
            Some(mut transaction) => {
                self.waiting.send(&mut transaction).await?;
                transaction.commit().await?;
            }
            None if self.waiting.changes > 0 => {
                let mut lease = self.pool.acquire().await?;
                self.waiting.send(&mut lease).await?;
            }
            None => {}
        }
        Ok(())
    }

    pub(crate) async fn rollback(self) -> Result<()> {
        if let Some(transaction) = self.transaction {
            transaction.rollback().await?;
        }
        Ok(())
    }
}

impl UnsentChanges {
    /// Begins a change. Its text goes up to [`end`](Self::end), and its parameters are numbered on.
    pub(crate) fn begin(&mut self) {
        let separator = if self.changes == 0 { "" } else { ", " };
        // Writing to a String can't fail.
        let _ = write!(self.text, "{separator}change{} AS (", self.changes);
    }

    /// Ends a change that must change so many rows, or any number.
    pub(crate) fn end(&mut self, expected: Option<u64>) {
        if let Some(expected) = expected {
            self.text.push_str(" RETURNING 1");
            self.expected.push((self.changes, expected));
        }
        self.text.push(')');
        self.changes += 1;
    }

    /// Sends everything as one statement, which fails if a change finds another number of rows than expected.
    async fn send(mut self, lease: &mut Lease) -> Result<()> {
        if self.changes == 0 {
            return Ok(());
        }
        let mut text = format!("WITH {} SELECT", self.text);
        if self.expected.is_empty() {
            text.push_str(" 1");
        } else {
            // The text is no number: turning it into one fails, and says why in PostgreSQL's log.
            text.push_str(" CAST(CASE WHEN ");
            for (place, (change, expected)) in self.expected.into_iter().enumerate() {
                let and = if place == 0 { "" } else { " AND " };
                self.arguments
                    .add(i64::try_from(expected).unwrap_or(i64::MAX))
                    .map_err(sqlx::Error::Encode)?;
                let number = self.arguments.len();
                // Writing to a String can't fail.
                let _ = write!(
                    text,
                    "{and}(SELECT count(*) FROM change{change}) = ${number}"
                );
            }
            // Writing to a String can't fail.
            let _ = write!(text, " THEN '1' ELSE '{LOST_RACE}' END AS bigint)");
        }
        let (deadline, prepares) = (lease.deadline(), lease.prepares());
        let query = sqlx::query_with(AssertSqlSafe(text), self.arguments).persistent(prepares);
        let outcome = within(deadline, query.execute(lease.statement().await?)).await;
        lease.settle(outcome).await?;
        Ok(())
    }
}
