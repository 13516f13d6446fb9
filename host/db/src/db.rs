//! Opening a database.

use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use parking_lot::RwLock;
use sqlx::migrate::Migrator;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{Connection as _, SqlitePool};
use tokio::sync::watch;

use crate::examine::{self, Finding};
use crate::hosts::{Access, Hosts};
use crate::pool::{Manner, Pool};
use crate::room::Room;
use crate::shards::Shards;
use crate::writer::Writer;
use crate::{Dialect, Durability, Error, Kind, Reason, Result, Schema, Tx, migrate};

/// Every statement about many rows exists in ten sizes, see [`Rows`](crate::Rows).
const CACHED_STATEMENTS: usize = 1_000;
/// Rows that a statement of SQLite may find before they are taken: each time that there is no place for the next one, two
/// threads wait for each other.
const ROWS_AHEAD: usize = 1_024;
/// How long to wait for a connection, unless said otherwise.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(5);
/// How long to wait for an answer of PostgreSQL, unless said otherwise.
const DEADLINE: Duration = Duration::from_secs(15);
/// Pages of WAL before a checkpoint; fewer make it the slowest part of a commit.
const CHECKPOINT_PAGES: &str = "8000";

/// What SQLite's writer keeps of the database in memory, in KiB below zero. Not more: where a transaction has split a page, its
/// commit looks at all pages that are kept. The system has the others in memory.
const WRITER_CACHE: &str = "-16384";
/// What each reader does: little, as the system has the file in memory too, and there is a reader a connection.
const READER_CACHE: &str = "-8192";

/// Where the database is and how to use it.
#[derive(Clone, Debug)]
pub struct Options {
    /// `sqlite:PATH` or `postgres://…`.
    pub url: String,
    /// Connections that only read (SQLite), or all connections (PostgreSQL).
    pub connections: u32,
    /// How long to wait for a connection before the database counts as unavailable.
    pub acquire_timeout: Duration,
    /// How long to wait for PostgreSQL's answer to a statement, a begin or a commit before the connection is dropped.
    pub deadline: Duration,
    /// Statements that a connection to PostgreSQL keeps prepared. 0: each is prepared anew, in a transaction of its own
    /// at least.
    pub statement_cache: usize,
}

impl Options {
    /// Few connections to a database, with the defaults of the configuration.
    pub fn new(url: String, connections: u32) -> Self {
        Self {
            url,
            connections,
            acquire_timeout: ACQUIRE_TIMEOUT,
            deadline: DEADLINE,
            statement_cache: CACHED_STATEMENTS,
        }
    }
}

/// The schema's migrations: same numbers and names for both databases.
#[derive(Debug)]
pub struct Migrations {
    /// For SQLite.
    pub sqlite: Migrator,
    /// For PostgreSQL.
    pub postgres: Migrator,
}

/// How the connections of a process are used.
#[derive(Clone, Copy, Debug)]
pub struct Usage {
    /// The most that there may be.
    pub most: u32,
    /// Those that somebody works with.
    pub in_use: usize,
    /// Those that nobody works with.
    pub idle: usize,
    /// How often none became free in time.
    pub timeouts: u64,
}

/// An open database. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Db(Backend);

#[derive(Clone, Debug)]
enum Backend {
    Sqlite {
        readers: SqlitePool,
        writer: Writer,
        /// Whether commits may come after turns of others.
        can_wait: bool,
        commits: watch::Sender<()>,
        timeouts: Arc<AtomicU64>,
    },
    Postgres {
        pool: Pool,
        shards: Arc<RwLock<Option<Shards>>>,
        room: Arc<Room>,
    },
}

impl Db {
    /// Opens the database; SQLite's file is made when it is not there.
    pub async fn open(options: &Options) -> Result<Self> {
        Self::open_for(options, Access::Writes).await
    }

    /// Opens a database that is there, to read it: it may be one that takes no writes, as a standby, or a file that may not be
    /// changed. What writes fails.
    pub async fn open_to_read(options: &Options) -> Result<Self> {
        Self::open_for(options, Access::Reads).await
    }

    async fn open_for(options: &Options, access: Access) -> Result<Self> {
        match sqlite_path(&options.url) {
            Some(path) if access == Access::Reads => Self::open_file_to_read(path, options).await,
            Some(path) => Self::open_sqlite(path, options).await,
            None if is_known_url(&options.url) => Self::open_postgres(options, access).await,
            None => Err(Error::misconfigured(
                "its URL begins with `sqlite:` or `postgres://`",
            )),
        }
    }

    async fn open_sqlite(path: &Path, options: &Options) -> Result<Self> {
        make_private(path)?;
        let connect = connect_options(path)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full);
        let for_writing = connect
            .clone()
            .create_if_missing(true)
            .pragma("wal_autocheckpoint", CHECKPOINT_PAGES)
            .pragma("cache_size", WRITER_CACHE)
            // What is deleted is overwritten, not just forgotten.
            .pragma("secure_delete", "on");
        Self::connect_sqlite(for_writing, connect, options).await
    }

    async fn open_file_to_read(path: &Path, options: &Options) -> Result<Self> {
        let connect = connect_options(path).read_only(true);
        let connect = match try_to_read(&connect).await {
            // SQLite can't put its log beside the file. Without a log the file is all of the database.
            Err(error) if error.kind() == Kind::Unavailable && !has_log(path) => {
                connect.immutable(true)
            }
            tried => tried.map(|()| connect)?,
        };
        Self::connect_sqlite(connect.clone(), connect, options).await
    }

    async fn connect_sqlite(
        for_writing: SqliteConnectOptions,
        connect: SqliteConnectOptions,
        options: &Options,
    ) -> Result<Self> {
        let timeouts = Arc::default();
        let writer =
            Writer::open(for_writing, options.acquire_timeout, Arc::clone(&timeouts)).await?;
        let readers = sqlite_pool()
            .max_connections(options.connections)
            .acquire_timeout(options.acquire_timeout)
            .idle_timeout(None)
            .max_lifetime(None)
            .connect_with(connect.read_only(true).pragma("cache_size", READER_CACHE))
            .await?;
        Ok(Self(Backend::Sqlite {
            readers,
            writer,
            can_wait: false,
            commits: watch::Sender::new(()),
            timeouts,
        }))
    }

    async fn open_postgres(options: &Options, access: Access) -> Result<Self> {
        let deadline = options.deadline.max(Duration::from_millis(100));
        let patience = options.acquire_timeout.min(deadline);
        let settings = settings(deadline);
        // A host that lets nobody in must leave time for asking once more.
        let hosts = Hosts::new(
            &options.url,
            options.statement_cache,
            &settings,
            patience / 2,
            access,
        )?;
        let manner = Manner {
            most: options.connections.max(1),
            patience,
            deadline,
            prepares: options.statement_cache > 0,
        };
        let pool = Pool::new(hosts, manner);
        let shards = Shards::read(&pool).await?;
        Ok(Self(Backend::Postgres {
            pool,
            shards: Arc::new(RwLock::new(shards)),
            room: Arc::default(),
        }))
    }

    /// Where the rows of distributed tables are, as it was when it was last looked up; none: the database is one machine's.
    pub fn shards(&self) -> Option<Shards> {
        match &self.0 {
            Backend::Sqlite { .. } => None,
            Backend::Postgres { shards, .. } => shards.read().clone(),
        }
    }

    /// Looks up where the rows of distributed tables are: an administrator moves shards from worker to worker.
    pub async fn look_up_shards(&self) -> Result<()> {
        if let Backend::Postgres { pool, shards, .. } = &self.0 {
            let found = Shards::read(pool).await?;
            *shards.write() = found;
        }
        Ok(())
    }

    /// The connections, where it is PostgreSQL.
    pub(crate) fn pool(&self) -> Option<&Pool> {
        match &self.0 {
            Backend::Sqlite { .. } => None,
            Backend::Postgres { pool, .. } => Some(pool),
        }
    }

    /// Which database it is.
    pub fn dialect(&self) -> Dialect {
        match &self.0 {
            Backend::Sqlite { .. } => Dialect::Sqlite,
            Backend::Postgres { .. } => Dialect::Postgres,
        }
    }

    /// Tells of commits. None: other processes write as well, and only looking tells.
    pub fn commits(&self) -> Option<watch::Receiver<()>> {
        match &self.0 {
            Backend::Sqlite { commits, .. } => Some(commits.subscribe()),
            Backend::Postgres { .. } => None,
        }
    }

    /// Begins a transaction that only reads. SQLite refuses to write in it, and shows one state of the
    /// database throughout; on PostgreSQL each statement is a transaction of its own, as `READ COMMITTED`
    /// shows each another state anyway, which saves the round trips of beginning and ending one.
    pub fn read(&self) -> BoxFuture<'_, Result<Tx>> {
        Box::pin(async move {
            Ok(match &self.0 {
                Backend::Sqlite {
                    readers, timeouts, ..
                } => {
                    let begun = readers.begin().await;
                    Tx::sqlite(begun.map_err(|error| refusal(error, readers, timeouts))?)
                }
                Backend::Postgres { pool, .. } => {
                    Tx::postgres_each(pool.acquire().await?).on(self.shards())
                }
            })
        })
    }

    /// Begins a transaction that only reads, whose statements all see the database as it is at one moment: for what is
    /// made of several statements' rows together. On PostgreSQL it costs two round trips more than [`read`](Self::read).
    pub fn repeatable_read(&self) -> BoxFuture<'_, Result<Tx>> {
        Box::pin(async move {
            Ok(match &self.0 {
                Backend::Sqlite { .. } => self.read().await?,
                Backend::Postgres { pool, .. } => {
                    Tx::postgres(pool.repeatable_read().await?).on(self.shards())
                }
            })
        })
    }

    /// Begins a series of statements that need not take effect together. On PostgreSQL each commits by
    /// itself, without the round trips of a transaction; on SQLite they are one transaction, which is
    /// what saves time there.
    pub fn write_each(&self) -> BoxFuture<'_, Result<Tx>> {
        Box::pin(async move {
            Ok(match &self.0 {
                Backend::Sqlite { .. } => self.write().await?,
                Backend::Postgres { pool, .. } => {
                    Tx::postgres_each(pool.acquire().await?).on(self.shards())
                }
            })
        })
    }

    /// Begins what [`write_each`](Self::write_each) does, with commits that are delayed where `durability` says so. On PostgreSQL
    /// each statement has to ask for that ([`Tx::delayed_commit`]).
    pub async fn write_each_with(&self, durability: Durability) -> Result<Tx> {
        let tx = match (&self.0, durability) {
            (
                Backend::Sqlite {
                    writer, commits, ..
                },
                Durability::Delayed,
            ) => Tx::sqlite_turn(writer.begin_delayed().await?).telling(commits.clone()),
            _ => self.write_each().await?,
        };
        Ok(tx.with_durability(durability))
    }

    /// The same database for work that nobody waits for: on SQLite, the commit of a transaction that writes may come after
    /// those that wait to write by then, and be one with theirs.
    #[must_use]
    pub fn unhurried(&self) -> Self {
        let mut db = self.clone();
        if let Backend::Sqlite { can_wait, .. } = &mut db.0 {
            *can_wait = true;
        }
        db
    }

    /// Begins a transaction that writes. SQLite has one at a time; waiting ones queue fairly.
    pub fn write(&self) -> BoxFuture<'_, Result<Tx>> {
        Box::pin(async move {
            Ok(match &self.0 {
                Backend::Sqlite {
                    writer,
                    can_wait,
                    commits,
                    ..
                } => Tx::sqlite_turn(writer.begin(*can_wait).await?).telling(commits.clone()),
                Backend::Postgres { pool, .. } => {
                    Tx::postgres(pool.begin().await?).on(self.shards())
                }
            })
        })
    }

    /// Begins a transaction that writes and reads nothing but what it has to. On PostgreSQL the changes that
    /// [`Tx::change_rows`] begins wait for its end and are one statement then, so that a transaction that
    /// consists of them is one round trip; on a distributed one each is a statement, as shards take no part in others'.
    pub fn write_together(&self) -> BoxFuture<'_, Result<Tx>> {
        Box::pin(async move {
            Ok(match &self.0 {
                Backend::Postgres { pool, .. } if self.shards().is_none() => {
                    Tx::postgres_together(pool.clone())
                }
                Backend::Sqlite { .. } | Backend::Postgres { .. } => self.write().await?,
            })
        })
    }

    /// Brings the schema up to date. A migration takes as long as it takes.
    pub async fn migrate(&self, migrations: &Migrations) -> Result<()> {
        match &self.0 {
            Backend::Sqlite { writer, .. } => migrations
                .sqlite
                .run(writer.idle().await?.connection()?)
                .await
                .map_err(migrate::to_error),
            Backend::Postgres { pool, .. } => migrate::postgres(pool, &migrations.postgres).await,
        }
    }

    /// How the database's schema stands to that of this program.
    pub async fn schema(&self, migrations: &Migrations) -> Result<Schema> {
        let (newest, migrator) = match &self.0 {
            Backend::Sqlite { writer, .. } => {
                let newest = migrate::newest_sqlite(writer.idle().await?.connection()?).await?;
                (newest, &migrations.sqlite)
            }
            Backend::Postgres { pool, .. } => {
                (migrate::newest_postgres(pool).await?, &migrations.postgres)
            }
        };
        Ok(Schema::compare(newest, migrator))
    }

    /// Looks for what would keep a server with so many connections from working on this database. SQLite's file is read to its end.
    pub async fn examine(&self, connections: u32) -> Result<Vec<Finding>> {
        match &self.0 {
            Backend::Sqlite { writer, .. } => {
                examine::sqlite(writer.idle().await?.connection()?).await
            }
            Backend::Postgres { pool, .. } => examine::examine(pool, connections).await,
        }
    }

    /// Takes note of a commit of new rows, which needed room, or of why one failed.
    pub fn note_commit(&self, failure: Option<&Error>) {
        let is_full = failure.map(|error| error.reason() == Some(Reason::Full));
        if let Backend::Postgres { room, .. } = &self.0
            && is_full != Some(false)
        {
            room.note(is_full.is_none(), Instant::now());
        }
    }

    /// For how long commits have failed as the disk of PostgreSQL is full. How full that of SQLite is, the system tells.
    pub fn lacks_room_for(&self) -> Duration {
        match &self.0 {
            Backend::Sqlite { .. } => Duration::ZERO,
            Backend::Postgres { room, .. } => room.lacking(Instant::now()),
        }
    }

    /// Removes what was deleted from the database's files, where SQL alone does not: SQLite's log, which has
    /// pages as they were, is folded into its file and cut off. False: a reader is in the way; try again.
    /// PostgreSQL does the like by itself, by vacuuming and by recycling its log.
    pub async fn scrub(&self) -> Result<bool> {
        let Backend::Sqlite { writer, .. } = &self.0 else {
            return Ok(true);
        };
        let (busy, _, _): (i64, i64, i64) = sqlx::query_as("PRAGMA wal_checkpoint(TRUNCATE)")
            .fetch_one(writer.idle().await?.connection()?)
            .await?;
        Ok(busy == 0)
    }

    /// Writes all of a SQLite database, as it is at one moment, to a file that is not there yet; it may be written to meanwhile.
    /// An error of a copy that has a fault names the first one. PostgreSQL has programs of its own for that.
    pub async fn copy_to(&self, path: &Path) -> Result<()> {
        let Backend::Sqlite { readers, .. } = &self.0 else {
            let detail = "only SQLite is copied";
            return Err(sqlx::Error::Configuration(detail.into()).into());
        };
        make_private(path)?;
        let mut connection = readers.acquire().await?;
        sqlx::query("VACUUM INTO $1")
            .bind(path.to_string_lossy())
            .execute(&mut *connection)
            .await?;
        drop(connection);
        let options = SqliteConnectOptions::new().filename(path).read_only(true);
        let mut copy = sqlx::SqliteConnection::connect_with(&options).await?;
        let finding: String = sqlx::query_scalar("PRAGMA quick_check(1)")
            .fetch_one(&mut copy)
            .await?;
        copy.close().await?;
        if finding == "ok" {
            return Ok(());
        }
        Err(Error::unavailable(std::io::Error::other(finding)))
    }

    /// How many connections there are, and what for. SQLite's readers are counted with its writer.
    pub fn usage(&self) -> Usage {
        match &self.0 {
            Backend::Sqlite {
                readers,
                writer,
                timeouts,
                ..
            } => {
                let open = readers.size().saturating_add(1) as usize;
                let idle = readers.num_idle() + usize::from(writer.is_idle());
                Usage {
                    most: readers.options().get_max_connections() + 1,
                    in_use: open.saturating_sub(idle),
                    idle,
                    timeouts: timeouts.load(Ordering::Relaxed),
                }
            }
            Backend::Postgres { pool, .. } => pool.usage(),
        }
    }

    /// Closes all connections; SQLite's log is folded into its file.
    pub async fn close(&self) {
        match &self.0 {
            Backend::Sqlite {
                readers, writer, ..
            } => {
                readers.close().await;
                writer.close().await;
            }
            Backend::Postgres { pool, .. } => pool.close().await,
        }
    }
}

/// What is said where a transaction that reads could not begin.
fn refusal(error: sqlx::Error, pool: &SqlitePool, timeouts: &AtomicU64) -> Error {
    if !matches!(error, sqlx::Error::PoolTimedOut) {
        return error.into();
    }
    timeouts.fetch_add(1, Ordering::Relaxed);
    let options = pool.options();
    let most = options.get_max_connections();
    Error::exhausted(most, options.get_acquire_timeout(), "that read")
}

/// What each session is told when it begins.
fn settings(deadline: Duration) -> [(&'static str, String); 3] {
    let milliseconds = |duration: Duration| duration.as_millis().to_string();
    [
        // Tables fit into memory or are on flash. With the default, made for turning disks, the planner reads a whole
        // young table rather than look a few rows up.
        ("random_page_cost", "1.1".to_owned()),
        // No statement may land long after it was asked for, see `privacy.graceSeconds`. A slow one ends before its
        // connection is given up.
        ("statement_timeout", milliseconds(deadline * 9 / 10)),
        // What a process that is gone without a word has locked is free again.
        (
            "idle_in_transaction_session_timeout",
            milliseconds(deadline * 4),
        ),
    ]
}

/// Whether a URL is of a database that can be opened.
pub fn is_known_url(url: &str) -> bool {
    let known = ["sqlite:", "postgres://", "postgresql://"];
    known.iter().any(|scheme| url.starts_with(scheme))
}

/// The file of a SQLite database, if the URL is of one.
pub fn sqlite_path(url: &str) -> Option<&Path> {
    let path = url.strip_prefix("sqlite:")?;
    Some(Path::new(path.trim_start_matches("//")))
}

/// How each connection to SQLite is opened.
fn connect_options(path: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(path)
        .busy_timeout(Duration::from_secs(5))
        .statement_cache_capacity(CACHED_STATEMENTS)
        .row_buffer_size(ROWS_AHEAD)
        // Every statement has an index, or a list that is to be looked up: for an index that is made for one statement,
        // the planner walks through all of an app's rows and looks for each of them in the list.
        .pragma("automatic_index", "off")
        .pragma("temp_store", "memory")
}

/// Reads something of a file.
async fn try_to_read(options: &SqliteConnectOptions) -> Result<()> {
    let mut connection = sqlx::SqliteConnection::connect_with(options).await?;
    let read = sqlx::query("SELECT count(*) FROM sqlite_master").execute(&mut connection);
    read.await?;
    connection.close().await?;
    Ok(())
}

/// Whether part of a database is beside its file.
fn has_log(path: &Path) -> bool {
    ["-wal", "-journal"].into_iter().any(|ending| {
        let mut name = path.as_os_str().to_owned();
        name.push(ending);
        std::fs::metadata(name).map_or_else(
            |error| error.kind() != ErrorKind::NotFound,
            |file| file.len() > 0,
        )
    })
}

/// Makes the database's file where there is none, for its owner alone: SQLite's own would be everybody's to read. What
/// SQLite puts beside it has the same mode.
fn make_private(path: &Path) -> Result<()> {
    let mut options = File::options();
    match options.write(true).create_new(true).mode(0o600).open(path) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(Error::unavailable(error)),
    }
}

/// A pool that replaces connections which count a transaction that is over. SQLite rolls back by itself
/// where a disk is full or fails; sqlx's own rollback then finds nothing, and the connection could never
/// begin again.
fn sqlite_pool() -> SqlitePoolOptions {
    // A file needs no sign of life before each use.
    let options = SqlitePoolOptions::new().test_before_acquire(false);
    options.before_acquire(|connection, _| {
        let idle = !connection.is_in_transaction();
        Box::pin(std::future::ready(Ok(idle)))
    })
}
