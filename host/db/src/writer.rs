//! SQLite's one writer: transactions take turns at it, and some of those that wait for one another are committed together.
//!
//! A commit waits for the disk, and nobody writes meanwhile. So a transaction that can wait leaves its commit to those whose turn
//! comes next: it sets a savepoint, and the next one goes on behind it, in the same transaction of SQLite. One that fails goes back
//! to the savepoint and takes nothing of the others with it. The commit comes at the end of the first transaction that can't
//! wait, and at the latest when all have had their turn that waited when the first one was over. Then each is told its outcome.
//! A transaction for which nobody waits is committed by itself.
//!
//! Turns may be dropped at any await, as clients go away. What they leave, the next turn or [`Writer::end`] undoes. A commit is
//! not: it goes on in a task of its own ([`Tx::commit`](crate::Tx::commit)).

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{Connection as _, Executor as _, SqliteConnection};
use tokio::runtime::Handle;
use tokio::sync::{Mutex, MutexGuard, OwnedMutexGuard, oneshot};
use tokio::time::timeout;

use crate::{Error, Result};

/// Makes the savepoint, behind which the next turn begins. It fails where the transaction is over without a commit: SQLite
/// rolls back by itself where a disk is full or fails.
const LEAVE: &str = "RELEASE turn; SAVEPOINT turn";
/// Rolls back, whether there is a transaction or none: a commit whose future was dropped may have happened.
const ROLL_BACK: &str = "SAVEPOINT turn; ROLLBACK";

/// The writer of a process. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Writer {
    link: Arc<Mutex<Link>>,
    /// How many wait for their turn.
    waiting: Arc<AtomicUsize>,
    /// How long to wait for a turn.
    patience: Duration,
    /// How often none came in time.
    timeouts: Arc<AtomicU64>,
}

/// The connection, and where its transaction is. Locked while somebody has a turn.
#[derive(Debug)]
struct Link {
    options: SqliteConnectOptions,
    /// There until it fails; another one is made then.
    connection: Option<SqliteConnection>,
    /// Whether a turn began that neither was committed nor left its commit to others.
    is_amid_turn: bool,
    /// Those that left their commit to others: each is told how it went.
    left: Vec<oneshot::Sender<Result<()>>>,
    is_closed: bool,
}

/// A transaction under way. Dropping it without [`commit`](Self::commit) undoes it.
#[derive(Debug)]
pub(crate) struct Turn {
    writer: Writer,
    /// There until the turn is over.
    link: Option<OwnedMutexGuard<Link>>,
    /// Whether its commit can wait for others.
    can_wait: bool,
}

/// The writer's connection, outside of any transaction.
#[derive(Debug)]
pub(crate) struct Idle<'w>(MutexGuard<'w, Link>);

/// One that waits for its turn, counted.
struct Waiting<'w>(&'w AtomicUsize);

impl<'w> Waiting<'w> {
    fn new(count: &'w AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(count)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Writer {
    /// Connects. `patience`: how long to wait for a turn.
    pub(crate) async fn open(
        options: SqliteConnectOptions,
        patience: Duration,
        timeouts: Arc<AtomicU64>,
    ) -> Result<Self> {
        let mut link = Link {
            options,
            connection: None,
            is_amid_turn: false,
            left: Vec::new(),
            is_closed: false,
        };
        link.connect().await?;
        Ok(Self {
            link: Arc::new(Mutex::new(link)),
            waiting: Arc::default(),
            patience,
            timeouts,
        })
    }

    /// Begins a transaction when its turn comes. `can_wait`: whether its commit may come after turns of others.
    pub(crate) async fn begin(&self, can_wait: bool) -> Result<Turn> {
        let waiting = Waiting::new(&self.waiting);
        let link = timeout(self.patience, Arc::clone(&self.link).lock_owned()).await;
        drop(waiting);
        let mut turn = Turn {
            writer: self.clone(),
            link: Some(link.map_err(|_| self.refusal())?),
            can_wait,
        };
        turn.link()?.begin(can_wait).await?;
        Ok(turn)
    }

    /// The connection, once nobody uses it.
    pub(crate) async fn idle(&self) -> Result<Idle<'_>> {
        let link = timeout(self.patience, self.link.lock()).await;
        let mut link = link.map_err(|_| self.refusal())?;
        link.end().await;
        link.connect().await?;
        Ok(Idle(link))
    }

    /// Whether nobody has a turn.
    pub(crate) fn is_idle(&self) -> bool {
        self.link.try_lock().is_ok()
    }

    /// Closes the connection, once nobody uses it.
    pub(crate) async fn close(&self) {
        let mut link = self.link.lock().await;
        link.end().await;
        link.is_closed = true;
        link.disconnect().await;
    }

    /// Commits those that left their commit to others, and undoes a turn that was dropped, after all whose turn comes before.
    /// [`close`](Self::close) comes after it.
    fn end(&self) {
        let writer = self.clone();
        // Without a runtime nobody waits any longer, and the connection's end undoes everything.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move { writer.link.lock().await.end().await });
        }
    }

    /// What is said where no turn came in time.
    fn refusal(&self) -> Error {
        self.timeouts.fetch_add(1, Ordering::Relaxed);
        Error::exhausted(1, self.patience, "that write")
    }
}

impl Idle<'_> {
    /// The connection.
    pub(crate) fn connection(&mut self) -> Result<&mut SqliteConnection> {
        self.0.connection()
    }
}

impl Turn {
    /// The connection.
    pub(crate) fn connection(&mut self) -> Result<&mut SqliteConnection> {
        self.link()?.connection()
    }

    fn link(&mut self) -> Result<&mut Link> {
        Ok(self.link.as_mut().ok_or(sqlx::Error::PoolClosed)?)
    }

    /// Makes the transaction durable, by itself or with others. Not to be dropped: the others' outcome would go with it.
    pub(crate) async fn commit(mut self) -> Result<()> {
        let is_awaited = self.writer.waiting.load(Ordering::SeqCst) > 0;
        let leaves = self.can_wait && is_awaited;
        let link = self.link()?;
        if leaves {
            link.execute(LEAVE).await?;
        } else if link.left.is_empty() {
            link.execute("COMMIT").await?;
            link.is_amid_turn = false;
            return Ok(());
        }
        let (sender, outcome) = oneshot::channel();
        link.is_amid_turn = false;
        link.left.push(sender);
        let is_first = link.left.len() == 1;
        let link = self.link.take();
        if leaves {
            drop(link);
            if is_first {
                self.writer.end();
            }
        } else if let Some(mut link) = link {
            link.end().await;
        }
        outcome.await.unwrap_or_else(|_| Err(lost()))
    }

    /// Undoes the transaction.
    pub(crate) async fn rollback(mut self) -> Result<()> {
        self.link()?.undo().await;
        Ok(())
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if self.link.take().is_some_and(|link| link.is_amid_turn) {
            self.writer.end();
        }
    }
}

impl Link {
    fn connection(&mut self) -> Result<&mut SqliteConnection> {
        Ok(self.connection.as_mut().ok_or(sqlx::Error::PoolClosed)?)
    }

    async fn connect(&mut self) -> Result<()> {
        if self.is_closed {
            return Err(sqlx::Error::PoolClosed.into());
        }
        if self.connection.is_none() {
            self.connection = Some(SqliteConnection::connect_with(&self.options).await?);
        }
        Ok(())
    }

    async fn execute(&mut self, statement: &'static str) -> Result<()> {
        self.connection()?.execute(statement).await?;
        Ok(())
    }

    /// Begins a turn: behind those that left their commit to others, or a transaction of its own.
    async fn begin(&mut self, can_wait: bool) -> Result<()> {
        if self.is_amid_turn {
            self.undo().await;
        }
        if !self.left.is_empty() {
            self.is_amid_turn = true;
            return Ok(());
        }
        self.connect().await?;
        self.is_amid_turn = true;
        // A deferred transaction that upgrades fails at once, whatever the busy time-out.
        let begun = if can_wait {
            self.execute("BEGIN IMMEDIATE; SAVEPOINT turn").await
        } else {
            self.execute("BEGIN IMMEDIATE").await
        };
        if begun.is_err() {
            self.disconnect().await;
        }
        begun
    }

    /// Undoes the turn that is under way or was dropped.
    async fn undo(&mut self) {
        let undone = if self.left.is_empty() {
            self.execute(ROLL_BACK).await
        } else {
            self.execute("ROLLBACK TO turn").await
        };
        self.is_amid_turn = false;
        if let Err(error) = undone {
            self.fail(&error).await;
        }
    }

    /// Ends the transaction, if there is one: undoes a turn that was dropped, and commits for those that left that to others.
    async fn end(&mut self) {
        if self.is_amid_turn {
            self.undo().await;
        }
        if self.left.is_empty() {
            return;
        }
        // Should this be dropped here, it is as if a turn was, and the others hear of nothing.
        let left = std::mem::take(&mut self.left);
        self.is_amid_turn = true;
        let committed = self.execute("COMMIT").await;
        self.is_amid_turn = false;
        self.left = left;
        match committed {
            Ok(()) => self.tell(&Ok(())),
            Err(error) => self.fail(&error).await,
        }
    }

    /// Gives up the transaction, and the connection, of which nothing is known any longer.
    async fn fail(&mut self, error: &Error) {
        tracing::warn!(error = ?error, "a transaction of SQLite failed as a whole");
        self.tell(&Err(lost()));
        self.disconnect().await;
    }

    /// Lets go of the connection, and of its transaction with it.
    async fn disconnect(&mut self) {
        self.is_amid_turn = false;
        if let Some(connection) = self.connection.take()
            && let Err(error) = connection.close().await
        {
            tracing::warn!(error = ?Error::from(error), "a connection to SQLite can't be closed");
        }
    }

    fn tell(&mut self, outcome: &Result<()>) {
        for left in self.left.drain(..) {
            // One that went away needs no answer.
            let _ = left.send(outcome.clone());
        }
    }
}

/// What those are told whose transaction failed through no fault of their own.
fn lost() -> Error {
    Error::unavailable(io::Error::other("the commit was shared, and failed"))
}
