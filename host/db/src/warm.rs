//! Connections to PostgreSQL, of which the one that was used last is used next.
//!
//! Behind each is a process with plans and caches of its own. The pool hands out the one that was idle for longest, so
//! that all take turns and none is warm, and asks each for a sign of life when it comes back. So a connection is kept
//! aside after its use, for as long as it would count as alive without being asked.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use sqlx::pool::PoolConnection;
use sqlx::{PgConnection, PgPool, Postgres, Transaction};

use crate::Result;

/// A connection that was idle for less time counts as alive.
pub(crate) const TRUSTED_IDLE: Duration = Duration::from_secs(1);
/// After so long a connection goes back to the pool, which looks how old it is.
const LONGEST_ASIDE: Duration = Duration::from_mins(1);

/// The connections of a pool. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Warm {
    pool: PgPool,
    aside: Arc<Mutex<Aside>>,
}

/// What is kept from the pool.
#[derive(Debug, Default)]
struct Aside {
    /// The one that was used last is the last.
    idle: Vec<Idle>,
    /// How many wait for the pool: nothing is kept from them.
    waiting: usize,
    closed: bool,
}

#[derive(Debug)]
struct Idle {
    connection: PoolConnection<Postgres>,
    /// When it came from the pool.
    taken: Instant,
    since: Instant,
}

/// A connection in use. One that is dropped amid a statement goes back to the pool, which sees to it.
#[derive(Debug)]
pub(crate) struct Lease {
    /// There until it is dropped.
    connection: Option<PoolConnection<Postgres>>,
    taken: Instant,
    home: Warm,
    /// Whether the last statement is over.
    settled: bool,
}

/// Somebody waits for the pool.
struct Waiter<'w>(&'w Warm);

impl Warm {
    pub(crate) fn new(pool: PgPool) -> Self {
        Self {
            pool,
            aside: Arc::default(),
        }
    }

    /// The pool, for what is done once.
    pub(crate) fn pool(&self) -> &PgPool {
        &self.pool
    }

    /// A connection for statements that commit by themselves.
    pub(crate) async fn acquire(&self) -> Result<Lease> {
        if let Some(idle) = self.take() {
            return Ok(self.lease(idle.connection, idle.taken));
        }
        let waiting = Waiter::new(self);
        // Before somebody waits, another may have been kept aside.
        if let Some(idle) = self.take() {
            return Ok(self.lease(idle.connection, idle.taken));
        }
        let connection = self.pool.acquire().await?;
        drop(waiting);
        Ok(self.lease(connection, Instant::now()))
    }

    /// A connection with a transaction.
    pub(crate) async fn begin(&self) -> Result<Transaction<'static, Postgres>> {
        let _waiting = Waiter::new(self);
        // The pool may have none but those that are kept from it.
        drop(self.take());
        Ok(self.pool.begin().await?)
    }

    /// Closes all connections.
    pub(crate) async fn close(&self) {
        let idle = {
            let mut aside = self.aside.lock();
            aside.closed = true;
            std::mem::take(&mut aside.idle)
        };
        drop(idle);
        self.pool.close().await;
    }

    /// The connection that was used last, if that is not long ago. Those that were idle for long go to the pool.
    fn take(&self) -> Option<Idle> {
        let mut aside = self.aside.lock();
        let stale = aside
            .idle
            .partition_point(|idle| idle.since.elapsed() >= TRUSTED_IDLE);
        let stale: Vec<Idle> = aside.idle.drain(..stale).collect();
        let warm = aside.idle.pop();
        drop(aside);
        drop(stale);
        warm
    }

    fn lease(&self, connection: PoolConnection<Postgres>, taken: Instant) -> Lease {
        Lease {
            connection: Some(connection),
            taken,
            home: self.clone(),
            settled: true,
        }
    }

    /// Keeps a connection aside; answers it if it must go back to the pool.
    fn keep(&self, idle: Idle) -> Option<Idle> {
        let mut aside = self.aside.lock();
        if aside.waiting > 0 || aside.closed || idle.taken.elapsed() >= LONGEST_ASIDE {
            return Some(idle);
        }
        aside.idle.push(idle);
        None
    }
}

impl Lease {
    /// The connection, for a statement.
    pub(crate) fn connection(&mut self) -> Result<&mut PgConnection> {
        self.settled = false;
        let connection = self.connection.as_deref_mut();
        Ok(connection.ok_or(sqlx::Error::PoolClosed)?)
    }

    /// The statement has succeeded.
    pub(crate) fn settle(&mut self) {
        self.settled = true;
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let (true, Some(connection)) = (self.settled, self.connection.take()) {
            let (taken, since) = (self.taken, Instant::now());
            drop(self.home.keep(Idle {
                connection,
                taken,
                since,
            }));
        }
    }
}

impl<'w> Waiter<'w> {
    fn new(warm: &'w Warm) -> Self {
        warm.aside.lock().waiting += 1;
        Self(warm)
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        self.0.aside.lock().waiting -= 1;
    }
}
