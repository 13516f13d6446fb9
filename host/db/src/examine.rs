//! What would keep a server from working on a database, or on the pooler in front of one.

use std::fmt;

use sqlx::postgres::PgRow;
use sqlx::{Executor as _, PgConnection, Row as _, SqliteConnection};

use crate::pool::{Lease, Pool, within};
use crate::{Error, Result};

/// The oldest version that is known to do, as `server_version_num` has it.
const OLDEST: i64 = 140_000;
/// Who may connect how often, and for how long a statement may run.
const FACTS: &str = "SELECT current_setting('server_version_num')::bigint,
    current_setting('max_connections')::bigint - current_setting('superuser_reserved_connections')::bigint,
    coalesce((SELECT rolconnlimit FROM pg_roles WHERE rolname = current_user), -1)::bigint,
    coalesce((SELECT datconnlimit FROM pg_database WHERE datname = current_database()), -1)::bigint,
    current_setting('statement_timeout') <> '0',
    coalesce(has_schema_privilege(current_schema(), 'CREATE'), false)";
const PROCESS: &str = "SELECT pg_backend_pid()::bigint";
/// Two connections in turns show whether a pooler changes their processes; the first turns may meet others' traffic.
const TURNS: usize = 3;

/// Something about a database that the administrator should know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// The database is of a version that the server was not made for.
    TooOld(i64),
    /// It takes fewer connections than the server is to have.
    TooFewConnections {
        /// Those that it takes.
        taken: i64,
        /// Those of the configuration.
        wanted: u32,
    },
    /// A pooler lets no transaction be of more than one statement.
    NoTransactions,
    /// A pooler changes the process behind a session, where what was prepared is not known.
    ForgetsStatements,
    /// Nothing ends a statement whose client is gone.
    NoStatementTimeout,
    /// The role may make no tables.
    MayNotCreate,
    /// Pages of SQLite's file are damaged; this is the first that it says of them.
    Damaged(String),
}

impl Finding {
    /// Whether the server can't work as long as it is so, whatever the database has in it.
    pub fn is_fatal(&self) -> bool {
        !matches!(self, Self::NoStatementTimeout | Self::MayNotCreate)
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooOld(version) => write!(
                formatter,
                "PostgreSQL {} is too old: the server needs {} or newer",
                version / 10_000,
                OLDEST / 10_000
            ),
            Self::TooFewConnections { taken, wanted } => write!(
                formatter,
                "the database takes {taken} connections and `database.connections` is {wanted}: raise its \
                 `max_connections`, or the limit of its role or database, or lower the setting"
            ),
            Self::NoTransactions => formatter.write_str(
                "the pooler in front of the database allows no transactions: set its `pool_mode` to `transaction` or \
                 `session`",
            ),
            Self::ForgetsStatements => formatter.write_str(
                "the pooler in front of the database forgets prepared statements: set its `max_prepared_statements` \
                 (pgbouncer 1.21 and newer), or `database.statementCache = 0`",
            ),
            Self::NoStatementTimeout => formatter.write_str(
                "statements have no time-out, as a pooler takes no start-up options: `ALTER ROLE … SET \
                 statement_timeout = '13500ms'`",
            ),
            Self::MayNotCreate => formatter.write_str(
                "the role of `database.url` may make no tables in the database: make it the owner, `ALTER DATABASE … \
                 OWNER TO …`",
            ),
            Self::Damaged(what) => {
                write!(formatter, "the database is damaged, restore a backup: {what}")
            }
        }
    }
}

/// What a database says of itself.
struct Facts {
    version: i64,
    /// Connections for everybody, the role, the database; below zero: any number.
    limits: [i64; 3],
    has_timeout: bool,
    may_create: bool,
}

/// Looks for what would keep a server with so many connections from working.
pub(crate) async fn examine(pool: &Pool, connections: u32) -> Result<Vec<Finding>> {
    let mut lease = pool.acquire().await?;
    let row = ask(&mut lease, FACTS).await?;
    let limit = |column: usize| row.try_get::<i64, _>(column);
    let facts = Facts {
        version: row.try_get(0)?,
        limits: [limit(1)?, limit(2)?, limit(3)?],
        has_timeout: row.try_get(4)?,
        may_create: row.try_get(5)?,
    };
    let mut findings = facts.findings(connections);
    findings.extend(pooling(pool, lease).await?);
    Ok(findings)
}

/// Looks whether SQLite's file is sound, and has room for what is written to it.
pub(crate) async fn sqlite(connection: &mut SqliteConnection) -> Result<Vec<Finding>> {
    let said: String = sqlx::query_scalar("PRAGMA quick_check(1)")
        .fetch_one(&mut *connection)
        .await?;
    if said != "ok" {
        // An error is one line.
        return Ok(vec![Finding::Damaged(said.replace('\n', " "))]);
    }
    connection.execute("BEGIN IMMEDIATE").await?;
    let wrote = write_more_than_fits(connection).await;
    // After some errors SQLite has done so by itself.
    let _ = connection.execute("ROLLBACK").await;
    wrote?;
    Ok(Vec::new())
}

/// Writes more than SQLite keeps in memory until the commit, so that the disk has to take it.
async fn write_more_than_fits(connection: &mut SqliteConnection) -> Result<()> {
    for statement in [
        "PRAGMA cache_size = 10",
        "CREATE TABLE nudge_room (filler BLOB)",
        "INSERT INTO nudge_room VALUES (zeroblob(1048576))",
    ] {
        connection.execute(statement).await?;
    }
    Ok(())
}

impl Facts {
    fn findings(&self, wanted: u32) -> Vec<Finding> {
        let mut findings = Vec::new();
        if self.version < OLDEST {
            findings.push(Finding::TooOld(self.version));
        }
        let limits = self.limits.iter().filter(|limit| **limit >= 0);
        let taken = limits.min().copied().unwrap_or(i64::MAX);
        if taken < i64::from(wanted) {
            findings.push(Finding::TooFewConnections { taken, wanted });
        }
        if !self.has_timeout {
            findings.push(Finding::NoStatementTimeout);
        }
        if !self.may_create {
            findings.push(Finding::MayNotCreate);
        }
        findings
    }
}

/// Whether a pooler changes processes in a way that the server can't work with.
async fn pooling(pool: &Pool, mut one: Lease) -> Result<Option<Finding>> {
    let prepares = one.prepares();
    for _ in 0..TURNS {
        let mut other = pool.acquire().await?;
        if prepares {
            prepared(&mut one).await?;
        }
        let process: i64 = ask(&mut one, PROCESS).await?.try_get(0)?;
        let deadline = other.deadline();
        match within(deadline, other.raw()?.execute("BEGIN")).await {
            Ok(_) => {}
            Err(sqlx::Error::Database(error))
                if error.code().is_some_and(|code| code == "08P01") =>
            {
                return Ok(Some(Finding::NoTransactions));
            }
            Err(error) => return Err(error.into()),
        }
        let same = process == ask(&mut other, PROCESS).await?.try_get::<i64, _>(0)?;
        // The other one has the process in which the statement was prepared.
        let kept = if same && prepares {
            prepared(&mut one).await
        } else {
            Ok(())
        };
        other.close().await;
        match kept {
            Ok(()) if same => return Ok(None),
            Ok(()) => {}
            Err(_) => return Ok(Some(Finding::ForgetsStatements)),
        }
    }
    Ok(None)
}

/// Asks a question without parameters that has one row for an answer; nothing is prepared.
pub(crate) async fn ask(lease: &mut Lease, question: &'static str) -> Result<PgRow> {
    let deadline = lease.deadline();
    let answer = sqlx::raw_sql(question).fetch_one(lease.raw()?);
    within(deadline, answer).await.map_err(Error::from)
}

/// Runs a statement that is prepared the first time.
async fn prepared(lease: &mut Lease) -> Result<()> {
    let deadline = lease.deadline();
    let connection: &mut PgConnection = lease.raw()?;
    let statement = sqlx::query("SELECT CAST($1 AS BIGINT)").bind(1_i64);
    within(deadline, statement.execute(connection)).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_of_all_limits_counts() {
        let facts = |version, limits| Facts {
            version,
            limits,
            has_timeout: true,
            may_create: true,
        };
        let few = |taken, wanted| vec![Finding::TooFewConnections { taken, wanted }];
        assert_eq!(facts(150_018, [97, -1, -1]).findings(8), []);
        assert_eq!(facts(150_018, [97, -1, -1]).findings(98), few(97, 98));
        assert_eq!(facts(150_018, [97, 5, 20]).findings(8), few(5, 8));
        assert_eq!(
            facts(130_022, [97, -1, -1]).findings(8),
            [Finding::TooOld(130_022)]
        );
        assert!(
            Finding::TooOld(130_022)
                .to_string()
                .contains("PostgreSQL 13 ")
        );
    }
}
