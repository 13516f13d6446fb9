//! Migrations of PostgreSQL, each a transaction with everything that it needs: whoever has the connection next, by a pooler
//! perhaps, finds neither a setting nor a lock of them.

use std::collections::HashSet;

use sqlx::migrate::{Migrate as _, MigrateError, Migrator};
use sqlx::{Connection as _, Executor as _, PgConnection};

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

pub(crate) fn to_error(error: MigrateError) -> Error {
    match error {
        MigrateError::Execute(source) => Error::from(source),
        other => Error::from(sqlx::Error::Migrate(Box::new(other))),
    }
}
