//! A transaction on either database.

use std::borrow::Cow;
use std::io;

use futures_util::future::BoxFuture;
use sqlx::sqlite::SqliteArguments;
use sqlx::{Sqlite, SqliteConnection, Transaction};
use tokio::runtime::Handle;
use tokio::sync::watch;

use crate::pool::{Lease, Pool};
use crate::shards::Shards;
use crate::single_statement::{SingleStatement, UnsentChanges};
use crate::sqlite::{self, Outcome, Unsent};
use crate::statement::{Arguments, Wanted};
use crate::writer::Turn;
use crate::{Dialect, Durability, Error, Result, Rows, Statement};

/// A transaction. Dropping it without [`commit`](Self::commit) rolls it back.
///
/// Those of [`Db::read`](crate::Db::read) and [`Db::write_each`](crate::Db::write_each) are on PostgreSQL a
/// transaction for each statement.
#[derive(Debug)]
pub struct Tx {
    inner: Inner,
    /// What the statements would do, instead of doing it.
    plans: Option<Vec<String>>,
    /// Who is told of the commit.
    commits: Option<watch::Sender<()>>,
    /// Where the rows of distributed tables are.
    shards: Option<Shards>,
    durability: Durability,
}

/// Does something in a task of its own, so that it goes to its end also if this is dropped, as when a client goes away.
pub async fn to_its_end<T: Send + 'static>(
    work: impl Future<Output = Result<T>> + Send + 'static,
) -> Result<T> {
    let ended = Handle::current().spawn(work).await;
    ended.unwrap_or_else(|error| Err(Error::unavailable(io::Error::other(error))))
}

#[derive(Debug)]
pub(crate) enum Inner {
    /// It only reads.
    Sqlite(Transaction<'static, Sqlite>),
    SqliteTurn(Turn),
    Postgres(Lease),
    /// Each statement commits by itself.
    PostgresEach(Lease),
    /// Changes wait for the commit, or for a statement that can't.
    PostgresTogether(SingleStatement),
}

/// Changes of so many rows at the most wait for others on SQLite.
const FEW: usize = 4;

/// Where changes wait for the end of their transaction.
pub(crate) enum DeferredChanges<'t> {
    Sqlite(&'t mut Unsent),
    Postgres(&'t mut UnsentChanges),
}

impl DeferredChanges<'_> {
    /// Begins a change: answers the text and the parameters that wait already, for it to go on from there until they are
    /// [put back](Self::put).
    pub(crate) fn take(self) -> (String, Arguments) {
        match self {
            Self::Sqlite(unsent) => {
                unsent.begin();
                let arguments = std::mem::take(&mut unsent.arguments);
                let arguments = Arguments::Sqlite(arguments);
                (std::mem::take(&mut unsent.text), arguments)
            }
            Self::Postgres(unsent) => {
                unsent.begin();
                let arguments = std::mem::take(&mut unsent.arguments);
                let arguments = Arguments::Postgres(arguments);
                (std::mem::take(&mut unsent.text), arguments)
            }
        }
    }

    /// Ends a change that must change so many rows, or any number. False: the parameters are another database's.
    pub(crate) fn put(self, text: String, arguments: Arguments, expected: Option<u64>) -> bool {
        match (self, arguments) {
            (Self::Sqlite(unsent), Arguments::Sqlite(arguments)) => {
                (unsent.text, unsent.arguments) = (text, arguments);
                unsent.end(expected);
            }
            (Self::Postgres(unsent), Arguments::Postgres(arguments)) => {
                (unsent.text, unsent.arguments) = (text, arguments);
                unsent.end(expected);
            }
            _ => return false,
        }
        true
    }
}

/// The connection of a transaction.
pub(crate) enum Connection<'t> {
    Sqlite(SqliteLink<'t>),
    Postgres(&'t mut Lease),
}

/// SQLite's connection of a transaction.
pub(crate) enum SqliteLink<'t> {
    /// It only reads.
    Reader(&'t mut SqliteConnection),
    Turn(&'t mut Turn),
}

impl SqliteLink<'_> {
    /// Runs a statement.
    pub(crate) async fn run(
        self,
        text: Cow<'static, str>,
        arguments: SqliteArguments,
        wanted: Wanted,
    ) -> Result<Outcome> {
        match self {
            Self::Reader(connection) => sqlite::run(connection, text, arguments, 1, wanted).await,
            Self::Turn(turn) => turn.run(text, arguments, wanted).await,
        }
    }
}

impl Tx {
    fn new(inner: Inner) -> Self {
        Self {
            inner,
            plans: None,
            commits: None,
            shards: None,
            durability: Durability::Full,
        }
    }

    pub(crate) fn with_durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    pub(crate) fn telling(mut self, commits: watch::Sender<()>) -> Self {
        self.commits = Some(commits);
        self
    }

    pub(crate) fn on(mut self, shards: Option<Shards>) -> Self {
        self.shards = shards;
        self
    }

    /// Where rows are that are on several machines, by the number of their alias; none: on one. A statement that names one alias
    /// is one machine's then ([`Statement::in_shards_of`]), and only the program can compare rows of several.
    pub fn shards(&self) -> Option<&Shards> {
        self.shards.as_ref()
    }

    /// The last item of a `FROM` list, by which a statement that commits by itself on PostgreSQL has its commit delayed; nothing
    /// where it is not to be, or where the transaction itself says so.
    pub fn delayed_commit(&self) -> &'static str {
        match (&self.inner, self.durability) {
            // For this transaction alone: connections are others' next.
            (Inner::PostgresEach(_), Durability::Delayed) => {
                " CROSS JOIN (SELECT set_config('synchronous_commit', 'off', true)) AS delayed"
            }
            _ => "",
        }
    }

    /// Nobody needs to look for work because of this transaction: its commit is not told.
    pub fn silently(&mut self) {
        self.commits = None;
    }

    /// From now on statements are not run: they find and change nothing, and how the database would run them
    /// is kept for [`plans`](Self::plans).
    pub fn explain(&mut self) {
        self.plans = Some(Vec::new());
    }

    /// The lines of the plans of all statements since [`explain`](Self::explain).
    pub fn plans(&mut self) -> Vec<String> {
        self.plans.replace(Vec::new()).unwrap_or_default()
    }

    pub(crate) fn keep_plan(&mut self, lines: impl Iterator<Item = String>) {
        self.plans.get_or_insert_default().extend(lines);
    }

    pub(crate) fn explains(&self) -> bool {
        self.plans.is_some()
    }

    pub(crate) fn sqlite(transaction: Transaction<'static, Sqlite>) -> Self {
        Self::new(Inner::Sqlite(transaction))
    }

    pub(crate) fn sqlite_turn(turn: Turn) -> Self {
        Self::new(Inner::SqliteTurn(turn))
    }

    pub(crate) fn postgres(lease: Lease) -> Self {
        Self::new(Inner::Postgres(lease))
    }

    pub(crate) fn postgres_each(lease: Lease) -> Self {
        Self::new(Inner::PostgresEach(lease))
    }

    pub(crate) fn postgres_together(pool: Pool) -> Self {
        Self::new(Inner::PostgresTogether(SingleStatement::new(pool)))
    }

    /// The connection for a statement, before which everything that waits is sent.
    pub(crate) async fn connection(&mut self) -> Result<Connection<'_>> {
        Ok(match &mut self.inner {
            Inner::Sqlite(transaction) => Connection::Sqlite(SqliteLink::Reader(transaction)),
            Inner::SqliteTurn(turn) => Connection::Sqlite(SqliteLink::Turn(turn)),
            Inner::Postgres(lease) | Inner::PostgresEach(lease) => Connection::Postgres(lease),
            // Boxed, as every statement's future has room for it.
            Inner::PostgresTogether(together) => {
                Connection::Postgres(Box::pin(together.lease()).await?)
            }
        })
    }

    /// Where a change of so many rows waits, if it may and is not only explained.
    pub(crate) fn deferred_changes(&mut self, rows: usize) -> Option<DeferredChanges<'_>> {
        match &mut self.inner {
            _ if self.plans.is_some() => None,
            Inner::PostgresTogether(together) => {
                Some(DeferredChanges::Postgres(&mut together.waiting))
            }
            // A large one is worth its way, and is kept prepared by itself.
            Inner::SqliteTurn(turn) if rows <= FEW => Some(DeferredChanges::Sqlite(turn.waiting())),
            _ => None,
        }
    }

    /// Which database it is.
    pub fn dialect(&self) -> Dialect {
        match &self.inner {
            Inner::Sqlite(_) | Inner::SqliteTurn(_) => Dialect::Sqlite,
            Inner::Postgres(_) | Inner::PostgresEach(_) | Inner::PostgresTogether(_) => {
                Dialect::Postgres
            }
        }
    }

    /// Begins a statement. Parameters are `$1`, `$2`, … in the order in which they are bound.
    pub fn sql(&mut self, text: &'static str) -> Statement<'_> {
        Statement::new(self, text)
    }

    /// Begins a statement about many rows: `WITH table(columns) AS (rows) …`.
    ///
    /// `table` names the table and its columns, as in `"v(id, name)"`.
    pub fn with_rows(&mut self, table: &'static str, rows: Rows) -> Statement<'_> {
        Statement::with_rows(self, table, rows)
    }

    /// Begins a change that may wait for the commit: it is a statement about many rows that changes any, ends with
    /// [`Statement::change`], and neither sees what other such changes of the transaction do nor touches their rows. On SQLite it
    /// waits in every transaction that writes, on PostgreSQL in those of [`Db::write_together`](crate::Db::write_together).
    pub fn change_rows(&mut self, table: &'static str, rows: Rows) -> Statement<'_> {
        Statement::change_rows(self, table, rows)
    }

    /// Makes everything in the transaction durable. On SQLite it goes to its end also if this is
    /// dropped: others are told of it, and may have a part in it.
    pub fn commit(self) -> BoxFuture<'static, Result<()>> {
        let is_shared = matches!(self.inner, Inner::SqliteTurn(_));
        let commits = self.commits;
        let committed = async move {
            let outcome = match self.inner {
                Inner::Sqlite(transaction) => transaction.commit().await.map_err(Error::from),
                Inner::SqliteTurn(turn) => turn.commit().await,
                Inner::Postgres(lease) => lease.commit().await,
                Inner::PostgresEach(_) => Ok(()),
                Inner::PostgresTogether(together) => Box::pin(together.commit()).await,
            };
            // A commit that failed may have happened.
            if let Some(commits) = commits {
                commits.send_replace(());
            }
            outcome
        };
        if is_shared {
            Box::pin(to_its_end(committed))
        } else {
            Box::pin(committed)
        }
    }

    /// Gives everything in the transaction up.
    pub fn rollback(self) -> BoxFuture<'static, Result<()>> {
        Box::pin(async move {
            match self.inner {
                Inner::Sqlite(transaction) => transaction.rollback().await?,
                Inner::SqliteTurn(turn) => turn.rollback().await?,
                Inner::Postgres(lease) => lease.rollback().await?,
                Inner::PostgresEach(_) => {}
                Inner::PostgresTogether(together) => together.rollback().await?,
            }
            Ok(())
        })
    }
}
