//! Connections to PostgreSQL, of which the one that was used last is used next.
//!
//! Behind each is a process with plans and caches of its own: so some stay warm, and what a burst took goes away again.
//! A connection that may lead to a database which is no longer the one that takes writes is dropped without a word, as
//! nobody may be there to answer, and with it all that were made before the doubt arose.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use sqlx::postgres::PgRow;
use sqlx::{Connection as _, Executor as _, PgConnection};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout, timeout_at};

use crate::error::{breaks_connection, told};
use crate::hosts::{Hosts, silence};
use crate::{Error, Result, Usage};

/// A connection that was idle for less time counts as alive.
const TRUSTED_IDLE: Duration = Duration::from_secs(1);
/// How long one that was idle for longer may take to give a sign of life.
const SIGN_OF_LIFE: Duration = Duration::from_secs(2);
/// One that was not used for so long is closed.
const LONGEST_IDLE: Duration = Duration::from_mins(10);
/// One that is so old is closed after its use, so that what its process keeps does not grow for ever.
const LONGEST_LIFE: Duration = Duration::from_mins(30);
/// How long a farewell may take.
const FAREWELL: Duration = Duration::from_secs(2);

/// The connections of a process. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Pool(Arc<Inner>);

/// How long things may take, and how statements are sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Manner {
    /// Connections at the most.
    pub(crate) most: u32,
    /// How long to wait for a connection.
    pub(crate) patience: Duration,
    /// How long the answer to a statement may take.
    pub(crate) deadline: Duration,
    /// Whether statements are prepared once and kept. Where they are not, a pooler may hand each transaction to another
    /// process.
    pub(crate) prepares: bool,
}

#[derive(Debug)]
struct Inner {
    hosts: Arc<Hosts>,
    manner: Manner,
    places: Arc<Semaphore>,
    idle: Mutex<Vec<Idle>>,
    /// Moves when a connection was lost.
    losses: AtomicU64,
    /// How often no connection became free in time.
    timeouts: AtomicU64,
}

#[derive(Debug)]
struct Idle {
    link: Link,
    since: Instant,
}

/// A connection and where it comes from.
#[derive(Debug)]
struct Link {
    connection: PgConnection,
    opened: Instant,
    /// How many were lost before it was made.
    losses: u64,
}

/// A connection in use. However it is left, the next one finds it as if new, or does not find it.
#[derive(Debug)]
pub(crate) struct Lease {
    /// There until it is lost, or dropped.
    link: Option<Link>,
    pool: Pool,
    place: Option<OwnedSemaphorePermit>,
    /// Whether a transaction was begun for more than one statement.
    transaction: bool,
    state: State,
    /// Whether it is being brought into order: it is dropped if that is left.
    tidying: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Nothing is left to do.
    Clean,
    /// A statement is under way, or has failed.
    Busy,
    /// A transaction is open.
    Open,
}

impl Pool {
    pub(crate) fn new(hosts: Hosts, manner: Manner) -> Self {
        Self(Arc::new(Inner {
            hosts: Arc::new(hosts),
            manner,
            places: Arc::new(Semaphore::new(manner.most as usize)),
            idle: Mutex::default(),
            losses: AtomicU64::new(0),
            timeouts: AtomicU64::new(0),
        }))
    }

    /// A connection for statements that commit by themselves.
    pub(crate) async fn acquire(&self) -> Result<Lease> {
        let until = Instant::now() + self.0.manner.patience;
        // Boxed, as is all that is seldom needed: every statement's future has room for it.
        let place = match Arc::clone(&self.0.places).try_acquire_owned() {
            Ok(place) => place,
            Err(_) => Box::pin(self.place(until)).await?,
        };
        let link = match self.take() {
            Some(idle) if idle.since.elapsed() < TRUSTED_IDLE => idle.link,
            idle => Box::pin(self.find(idle, until)).await?,
        };
        Ok(Lease {
            link: Some(link),
            pool: self.clone(),
            place: Some(place),
            transaction: false,
            state: State::Clean,
            tidying: false,
        })
    }

    /// A connection with a transaction.
    pub(crate) async fn begin(&self) -> Result<Lease> {
        self.begin_as("BEGIN").await
    }

    /// A connection with a transaction that only reads, all of one moment.
    pub(crate) async fn repeatable_read(&self) -> Result<Lease> {
        self.begin_as("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            .await
    }

    async fn begin_as(&self, statement: &'static str) -> Result<Lease> {
        let mut lease = self.acquire().await?;
        lease.begin(statement).await?;
        lease.transaction = true;
        Ok(lease)
    }

    /// Closes all connections, once nobody uses them.
    pub(crate) async fn close(&self) {
        let all = Arc::clone(&self.0.places).acquire_many_owned(self.0.manner.most);
        drop(all.await);
        self.0.places.close();
        let idle = std::mem::take(&mut *self.0.idle.lock());
        for idle in idle {
            idle.link.farewell().await;
        }
    }

    /// The right to one connection, once somebody gives it back.
    async fn place(&self, until: Instant) -> Result<OwnedSemaphorePermit> {
        match timeout_at(until, Arc::clone(&self.0.places).acquire_owned()).await {
            Ok(Ok(place)) => Ok(place),
            Ok(Err(_)) => Err(sqlx::Error::PoolClosed.into()),
            Err(_) => {
                self.0.timeouts.fetch_add(1, Ordering::Relaxed);
                let Manner { most, patience, .. } = self.0.manner;
                Err(Error::exhausted(most, patience, "to the database"))
            }
        }
    }

    /// How many connections there are, and what for.
    pub(crate) fn usage(&self) -> Usage {
        let free = self.0.places.available_permits();
        Usage {
            most: self.0.manner.most,
            in_use: (self.0.manner.most as usize).saturating_sub(free),
            idle: self.0.idle.lock().len(),
            timeouts: self.0.timeouts.load(Ordering::Relaxed),
        }
    }

    async fn open(&self, until: Instant) -> Result<Link> {
        let losses = self.losses();
        let connection = self.0.hosts.connect(until).await?;
        Ok(Link {
            connection,
            opened: Instant::now(),
            losses,
        })
    }

    /// The first idle connection that lives, beginning with this one, or a new one.
    async fn find(&self, mut idle: Option<Idle>, until: Instant) -> Result<Link> {
        while let Some(Idle { mut link, since }) = idle {
            if since.elapsed() < TRUSTED_IDLE {
                return Ok(link);
            }
            let sign = match timeout(SIGN_OF_LIFE, link.connection.ping()).await {
                Ok(sign) => sign,
                Err(_) => Err(silence()),
            };
            match sign {
                Ok(()) => return Ok(link),
                Err(error) => self.lost(&error),
            }
            idle = self.take();
        }
        self.open(until).await
    }

    /// Takes what was used last, and lets go of what was not used for long.
    fn take(&self) -> Option<Idle> {
        let mut idle = self.0.idle.lock();
        let taken = idle.pop();
        let forgotten = idle.partition_point(|idle| idle.since.elapsed() >= LONGEST_IDLE);
        let forgotten: Vec<Idle> = idle.drain(..forgotten).collect();
        drop(idle);
        for idle in forgotten {
            idle.link.leave(None);
        }
        taken
    }

    fn losses(&self) -> u64 {
        self.0.losses.load(Ordering::SeqCst)
    }

    /// A connection was lost: the others may lead to the same place.
    fn lost(&self, error: &sqlx::Error) {
        let mut idle = self.0.idle.lock();
        self.0.losses.fetch_add(1, Ordering::SeqCst);
        let dropped = std::mem::take(&mut *idle);
        drop(idle);
        let error = told(error);
        tracing::info!(%error, idle = dropped.len(), "a connection to the database was lost, idle ones are dropped");
    }

    /// Takes a connection back, unless it is of before a loss, old, or the pool is closed.
    fn put(&self, link: Link) -> Option<Link> {
        let since = Instant::now();
        let mut idle = self.0.idle.lock();
        let current = link.losses == self.losses() && !self.0.places.is_closed();
        if !current || link.opened.elapsed() >= LONGEST_LIFE {
            return Some(link);
        }
        idle.push(Idle { link, since });
        None
    }
}

impl Link {
    /// Closes the connection as the protocol has it; nobody waits for that, but its place may.
    fn leave(self, place: Option<OwnedSemaphorePermit>) {
        // Without a runtime the process is about to end.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                self.farewell().await;
                drop(place);
            });
        }
    }

    async fn farewell(self) {
        // One that does not take leave is gone all the same.
        drop(timeout(FAREWELL, self.connection.close()).await);
    }
}

impl Lease {
    /// How long the answer to a statement may take.
    pub(crate) fn deadline(&self) -> Duration {
        self.pool.0.manner.deadline
    }

    /// Whether statements are prepared once and kept.
    pub(crate) fn prepares(&self) -> bool {
        self.pool.0.manner.prepares
    }

    /// The connection, for a statement that [`settle`](Self::settle) is told the outcome of.
    pub(crate) async fn statement(&mut self) -> Result<&mut PgConnection> {
        if self.state == State::Clean {
            if self.prepares() {
                self.state = State::Busy;
            } else {
                // Preparing and running it must meet the same process.
                Box::pin(self.begin("BEGIN")).await?;
            }
        }
        self.connection()
    }

    /// The rows that answer a question without parameters. Nothing is prepared, and no transaction begun.
    pub(crate) async fn rows(&mut self, question: &'static str) -> Result<Vec<PgRow>> {
        self.state = State::Busy;
        let (deadline, question) = (self.deadline(), sqlx::raw_sql(question));
        let rows = within(deadline, question.fetch_all(self.connection()?)).await;
        self.settle(rows).await
    }

    /// The one row that answers such a question.
    pub(crate) async fn row(&mut self, question: &'static str) -> Result<PgRow> {
        let rows = self.rows(question).await?;
        Ok(rows.into_iter().next().ok_or(sqlx::Error::RowNotFound)?)
    }

    /// The connection, for what has no deadline. Afterwards it is closed or dropped.
    pub(crate) fn raw(&mut self) -> Result<&mut PgConnection> {
        self.state = State::Open;
        self.connection()
    }

    fn connection(&mut self) -> Result<&mut PgConnection> {
        let link = self.link.as_mut();
        Ok(&mut link.ok_or(sqlx::Error::PoolClosed)?.connection)
    }

    /// A statement is over.
    pub(crate) async fn settle<T>(&mut self, outcome: sqlx::Result<T>) -> Result<T> {
        match outcome {
            Ok(value) => {
                match self.state {
                    State::Open if !self.transaction => Box::pin(self.end("COMMIT")).await?,
                    State::Open => {}
                    State::Clean | State::Busy => self.state = State::Clean,
                }
                Ok(value)
            }
            Err(error) => {
                self.heed(&error);
                if self.state == State::Open && !self.transaction {
                    // The statement's own failure says more than this one's.
                    drop(Box::pin(self.end("ROLLBACK")).await);
                }
                Err(error.into())
            }
        }
    }

    /// Makes what was done durable.
    pub(crate) async fn commit(mut self) -> Result<()> {
        self.end("COMMIT").await
    }

    /// Gives up what was done.
    pub(crate) async fn rollback(mut self) -> Result<()> {
        self.end("ROLLBACK").await
    }

    /// Closes the connection.
    pub(crate) async fn close(mut self) {
        if let Some(link) = self.link.take() {
            link.farewell().await;
        }
    }

    async fn begin(&mut self, statement: &'static str) -> Result<()> {
        self.state = State::Open;
        self.simple(statement).await
    }

    async fn end(&mut self, how: &'static str) -> Result<()> {
        self.simple(how).await?;
        self.state = State::Clean;
        self.transaction = false;
        Ok(())
    }

    async fn simple(&mut self, statement: &'static str) -> Result<()> {
        let deadline = self.deadline();
        let outcome = within(deadline, self.connection()?.execute(statement)).await;
        if let Err(error) = &outcome {
            self.heed(error);
        }
        outcome?;
        Ok(())
    }

    /// Drops the connection if an error means that it is no longer of use.
    fn heed(&mut self, error: &sqlx::Error) {
        if breaks_connection(error) && self.link.take().is_some() {
            self.pool.lost(error);
        }
    }

    /// Brings the connection into order and back.
    async fn tidy(mut self) {
        let deadline = self.deadline();
        let tidied = match self.state {
            State::Open => self.end("ROLLBACK").await,
            State::Busy => {
                let Ok(connection) = self.connection() else {
                    return;
                };
                let sign = within(deadline, connection.ping()).await;
                if let Err(error) = &sign {
                    self.heed(error);
                }
                sign.map_err(Error::from)
            }
            State::Clean => Ok(()),
        };
        if tidied.is_ok() {
            self.state = State::Clean;
        } else {
            self.link = None;
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let Some(link) = self.link.take() else {
            return;
        };
        if self.state == State::Clean {
            if let Some(link) = self.pool.put(link) {
                link.leave(self.place.take());
            }
        } else if !self.tidying
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            let lease = Self {
                link: Some(link),
                pool: self.pool.clone(),
                place: self.place.take(),
                transaction: self.transaction,
                state: self.state,
                tidying: true,
            };
            runtime.spawn(lease.tidy());
        }
    }
}

/// Waits for an answer, but not for ever.
pub(crate) async fn within<T>(
    deadline: Duration,
    answer: impl Future<Output = sqlx::Result<T>>,
) -> sqlx::Result<T> {
    match timeout(deadline, Box::pin(answer)).await {
        Ok(answer) => answer,
        Err(_) => Err(silence()),
    }
}
