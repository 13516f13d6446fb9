//! Migrations of PostgreSQL, each a transaction with everything that it needs: whoever has the connection next, by a pooler
//! perhaps, finds neither a setting nor a lock of them.

use std::cmp::Ordering;
use std::collections::HashSet;

use sqlx::migrate::{Migrate as _, MigrateError, Migrator};
use sqlx::{Connection as _, Executor as _, PgConnection, Row as _, SqliteConnection};

use crate::examine::ask;
use crate::pool::Pool;
use crate::{Error, Result};

/// The lock that one process at a time has: "nudge" in ASCII.
const LOCK: &str = "SELECT pg_advisory_xact_lock(474298540901)";
/// A large table's index takes longer than any statement of the server may.
const NO_TIMEOUT: &str = "SET LOCAL statement_timeout = 0";
/// The migrator's statements have names, which others behind the same pooler have too.
const NO_STATEMENTS: &str = "DEALLOCATE ALL";
/// Where the migrator notes what was applied.
const TABLE: &str = "_sqlx_migrations";
const NEWEST: &str = "SELECT max(version) FROM _sqlx_migrations";

/// Applies what is missing. The migrator must not lock by itself: its lock would outlive the transaction.
pub(crate) async fn postgres(pool: &Pool, migrator: &Migrator) -> Result<()> {
    let mut lease = pool.acquire().await?;
    let prepares = lease.prepares();
    let connection = lease.raw()?;
    let outcome = loop {
        match step(connection, migrator, prepares).await {
            Ok(true) => {}
            Ok(false) => break Ok(()),
            Err(error) => break Err(to_error(error)),
        }
    };
    lease.close().await;
    outcome
}

/// Applies the first migration that is missing; answers whether there may be more.
async fn step(
    connection: &mut PgConnection,
    migrator: &Migrator,
    prepares: bool,
) -> std::result::Result<bool, MigrateError> {
    let mut transaction = connection.begin().await?;
    transaction.execute(NO_TIMEOUT).await?;
    transaction.execute(LOCK).await?;
    if !prepares {
        transaction.execute(NO_STATEMENTS).await?;
    }
    transaction.ensure_migrations_table(TABLE).await?;
    let applied = transaction.list_applied_migrations(TABLE).await?;
    let applied: HashSet<i64> = applied.iter().map(|applied| applied.version).collect();
    let mut missing = migrator
        .iter()
        .map(|migration| migration.version)
        .filter(|version| !applied.contains(version));
    let (next, more) = (missing.next(), missing.next().is_some());
    // Without a missing one this checks that those which were applied are the same.
    let target = next.unwrap_or(i64::MAX);
    migrator.run_to(target, &mut *transaction).await?;
    if !prepares {
        transaction.execute(NO_STATEMENTS).await?;
    }
    transaction.commit().await?;
    Ok(more)
}

/// How a database's schema stands to that of this program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schema {
    /// There is none yet.
    Empty,
    /// Migrations are missing.
    Older,
    /// It is this program's.
    Current,
    /// A newer version of the program made it.
    Newer,
}

impl Schema {
    /// By the newest migration that was applied.
    pub(crate) fn compare(newest: Option<i64>, migrator: &Migrator) -> Self {
        let known = migrator.iter().map(|migration| migration.version).max();
        match newest {
            None => Self::Empty,
            Some(newest) => match newest.cmp(&known.unwrap_or_default()) {
                Ordering::Less => Self::Older,
                Ordering::Equal => Self::Current,
                Ordering::Greater => Self::Newer,
            },
        }
    }
}

/// The newest migration that was applied; none where there was no migration.
pub(crate) async fn newest_sqlite(connection: &mut SqliteConnection) -> Result<Option<i64>> {
    let tables: i64 = sqlx::query_scalar("SELECT count(*) FROM sqlite_master WHERE name = $1")
        .bind(TABLE)
        .fetch_one(&mut *connection)
        .await?;
    if tables == 0 {
        return Ok(None);
    }
    Ok(sqlx::query_scalar(NEWEST).fetch_one(connection).await?)
}

/// The newest migration that was applied; none where there was no migration.
pub(crate) async fn newest_postgres(pool: &Pool) -> Result<Option<i64>> {
    let mut lease = pool.acquire().await?;
    let there = ask(
        &mut lease,
        "SELECT to_regclass('_sqlx_migrations') IS NOT NULL",
    )
    .await?;
    let newest = if there.try_get(0)? {
        ask(&mut lease, NEWEST).await?.try_get(0)?
    } else {
        None
    };
    lease.close().await;
    Ok(newest)
}

pub(crate) fn to_error(error: MigrateError) -> Error {
    match error {
        MigrateError::Execute(source) => Error::from(source),
        other => Error::from(sqlx::Error::Migrate(Box::new(other))),
    }
}
