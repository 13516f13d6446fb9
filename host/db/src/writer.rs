//! SQLite's one writer: transactions take turns at it, and some of those that wait for one another are committed together.
//!
//! A commit waits for the disk, and nobody writes meanwhile. So a transaction that can wait leaves its commit to those whose turn
//! comes next: it sets a savepoint, and the next one goes on behind it, in the same transaction of SQLite. One that fails goes back
//! to the savepoint and takes nothing of the others with it. The commit comes at the end of the first transaction that can't
//! wait, and at the latest when all have had their turn that waited when the first one was over. Then each is told its outcome.
//! A transaction for which nobody waits is committed by itself.
//!
//! A commit that is [delayed](Durability::Delayed) does not wait for the disk at all: SQLite's log is in order, so that the next
//! commit that does takes it along.
//!
//! A transaction begins with its first statement, and ends with the changes that wait for that.
//!
//! Turns may be dropped at any await, as clients go away. What they leave, the next turn or [`Writer::end`] undoes. A commit is
//! not: it goes on in a task of its own ([`Tx::commit`](crate::Tx::commit)).

use std::borrow::Cow;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use sqlx::sqlite::{SqliteArguments, SqliteConnectOptions};
use sqlx::{Connection as _, Executor as _, SqliteConnection};
use tokio::runtime::Handle;
use tokio::sync::{Mutex, MutexGuard, OwnedMutexGuard, oneshot};
use tokio::time::timeout;

use crate::sqlite::{Batch, Outcome, Unsent};
use crate::statement::Wanted;
use crate::{Durability, Error, Result, sqlite};

/// Makes the savepoint, behind which the next turn begins. It fails where the transaction is over without a commit: SQLite
/// rolls back by itself where a disk is full or fails.
const LEAVE: Batch = Batch::new("RELEASE turn; SAVEPOINT turn", 2);
const COMMIT: Batch = Batch::new("COMMIT", 1);
/// Has commits wait for the disk again.
const FULL: &str = "PRAGMA synchronous = FULL";
/// Rolls back, whether there is a transaction or none: a commit whose future was dropped may have happened.
const ROLL_BACK: Batch = Batch::new("SAVEPOINT turn; ROLLBACK", 2);
/// Goes back to the savepoint.
const BACK: Batch = Batch::new("ROLLBACK TO turn", 1);

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
    /// Whether commits of the connection do not wait for the disk, as far as is known.
    delays: bool,
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
    progress: Progress,
    /// Changes that wait for its end.
    unsent: Unsent,
}

/// How far a transaction is.
#[derive(Clone, Copy, Debug)]
enum Progress {
    /// This begins it, with its first statement.
    New(Batch),
    /// That was sent, and nothing was heard of it, or that it failed.
    Lost,
    Begun,
}

/// The writer's connection, outside of any transaction.
#[derive(Debug)]
pub(crate) struct Idle<'w>(MutexGuard<'w, Link>);

/// One that waits for its turn, counted.
struct QueuedTurn<'w>(&'w AtomicUsize);

impl<'w> QueuedTurn<'w> {
    fn new(count: &'w AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(count)
    }
}

impl Drop for QueuedTurn<'_> {
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
            delays: false,
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
        self.begin_with(can_wait, Durability::Full).await
    }

    /// Begins a transaction whose commit is delayed, when its turn comes.
    pub(crate) async fn begin_delayed(&self) -> Result<Turn> {
        self.begin_with(false, Durability::Delayed).await
    }

    async fn begin_with(&self, can_wait: bool, durability: Durability) -> Result<Turn> {
        let waiting = QueuedTurn::new(&self.waiting);
        let link = timeout(self.patience, Arc::clone(&self.link).lock_owned()).await;
        drop(waiting);
        let mut turn = Turn {
            writer: self.clone(),
            link: Some(link.map_err(|_| self.refusal())?),
            can_wait,
            progress: Progress::Begun,
            unsent: Unsent::default(),
        };
        if let Some(begin) = turn.link()?.begin(can_wait, durability).await? {
            turn.progress = Progress::New(begin);
        }
        Ok(turn)
    }

    /// The connection, once nobody uses it.
    pub(crate) async fn idle(&self) -> Result<Idle<'_>> {
        let link = timeout(self.patience, self.link.lock()).await;
        let mut link = link.map_err(|_| self.refusal())?;
        link.end().await;
        link.connect().await?;
        if link.delays {
            link.set(FULL).await?;
            link.delays = false;
        }
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
    /// Runs a statement, after the changes that wait.
    pub(crate) async fn run(
        &mut self,
        text: Cow<'static, str>,
        arguments: SqliteArguments,
        wanted: Wanted,
    ) -> Result<Outcome> {
        if !self.unsent.is_empty() {
            self.send(None).await?;
        }
        let begin = self.begin()?;
        let connection = self.link()?.connection()?;
        let outcome = match begin {
            Some(begin) => begin.then(connection, text, arguments, wanted).await?,
            None => sqlite::run(connection, text, arguments, 1, wanted).await?,
        };
        self.progress = Progress::Begun;
        Ok(outcome)
    }

    /// Where changes wait.
    pub(crate) fn waiting(&mut self) -> &mut Unsent {
        &mut self.unsent
    }

    fn link(&mut self) -> Result<&mut Link> {
        Ok(self.link.as_mut().ok_or(sqlx::Error::PoolClosed)?)
    }

    /// What begins the transaction, if that is still to be sent: it is sent now.
    fn begin(&mut self) -> Result<Option<Batch>> {
        match std::mem::replace(&mut self.progress, Progress::Lost) {
            Progress::New(begin) => {
                self.link()?.is_amid_turn = true;
                Ok(Some(begin))
            }
            Progress::Begun => {
                self.progress = Progress::Begun;
                Ok(None)
            }
            // Nothing may happen outside of a transaction.
            Progress::Lost => Err(lost()),
        }
    }

    /// Sends the changes that wait, and what comes last.
    async fn send(&mut self, last: Option<Batch>) -> Result<()> {
        let unsent = std::mem::take(&mut self.unsent);
        let begin = self.begin()?;
        let connection = self.link()?.connection()?;
        unsent.send(connection, begin, last).await?;
        self.progress = Progress::Begun;
        Ok(())
    }

    /// Makes the transaction durable, by itself or with others. Not to be dropped: the others' outcome would go with it.
    pub(crate) async fn commit(mut self) -> Result<()> {
        if matches!(self.progress, Progress::New(_)) && self.unsent.is_empty() {
            return Ok(());
        }
        let is_awaited = self.writer.waiting.load(Ordering::SeqCst) > 0;
        let leaves = self.can_wait && is_awaited;
        let is_alone = self.link()?.left.is_empty();
        if leaves {
            self.send(Some(LEAVE)).await?;
        } else if is_alone {
            self.send(Some(COMMIT)).await?;
            self.link()?.is_amid_turn = false;
            return Ok(());
        } else if !self.unsent.is_empty() {
            self.send(None).await?;
        }
        let link = self.link()?;
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
        let link = self.link()?;
        if link.is_amid_turn {
            link.undo().await;
        }
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
            self.delays = false;
        }
        Ok(())
    }

    async fn execute(&mut self, batch: Batch) -> Result<()> {
        batch.run(self.connection()?).await
    }

    /// Runs a text that says how commits reach the disk. It is prepared each time: SQLite sets that when it prepares the text, not
    /// when it runs it.
    async fn set(&mut self, text: &'static str) -> Result<()> {
        self.connection()?.execute(text).await?;
        Ok(())
    }

    /// Begins a turn: behind those that left their commit to others, or a transaction of its own, which what is answered begins.
    async fn begin(&mut self, can_wait: bool, durability: Durability) -> Result<Option<Batch>> {
        if self.is_amid_turn {
            self.undo().await;
        }
        if !self.left.is_empty() {
            self.is_amid_turn = true;
            return Ok(None);
        }
        self.connect().await?;
        // A deferred transaction that upgrades fails at once, whatever the busy time-out.
        let delays = durability == Durability::Delayed;
        if delays == self.delays {
            return Ok(Some(if can_wait {
                Batch::new("BEGIN IMMEDIATE; SAVEPOINT turn", 2)
            } else {
                Batch::new("BEGIN IMMEDIATE", 1)
            }));
        }
        // Should this be dropped amid it, or fail, the next turn says it again.
        self.is_amid_turn = true;
        self.delays = true;
        let text = match (delays, can_wait) {
            (true, _) => "PRAGMA synchronous = NORMAL; BEGIN IMMEDIATE",
            (false, false) => "PRAGMA synchronous = FULL; BEGIN IMMEDIATE",
            (false, true) => "PRAGMA synchronous = FULL; BEGIN IMMEDIATE; SAVEPOINT turn",
        };
        self.set(text).await?;
        self.delays = delays;
        Ok(None)
    }

    /// Undoes the turn that is under way or was dropped.
    async fn undo(&mut self) {
        let undone = if self.left.is_empty() {
            self.execute(ROLL_BACK).await
        } else {
            self.execute(BACK).await
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
        let committed = self.execute(COMMIT).await;
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
