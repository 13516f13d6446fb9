//! Two tables on several machines: Citus cuts `pending` and `events` by the alias's number, so that the rows of an alias are
//! together in one shard on one worker. All other tables stay on the coordinator.
//!
//! Each step is a transaction, and can be taken again: whoever is interrupted goes on with the step that is missing.

use sqlx::postgres::PgArguments;
use sqlx::query::Query;
use sqlx::{Connection as _, Executor as _, PgConnection, Postgres, Row as _};

use crate::pool::{Lease, Pool};
use crate::{Db, Error, Result};

/// Copying a large table takes longer than any statement of the server may.
const NO_TIMEOUT: &str = "SET LOCAL statement_timeout = 0";
const HAS_CITUS: &str = "SELECT to_regclass('pg_dist_node') IS NOT NULL";
/// Whether this is the coordinator, how many workers take shards, and how many of all nodes answer.
const NODES: &str = "SELECT (SELECT groupid = 0 FROM pg_dist_local_group),
    (SELECT count(*) FROM pg_dist_node WHERE isactive AND noderole = 'primary' AND shouldhaveshards),
    (SELECT count(*) FILTER (WHERE NOT success) FROM run_command_on_workers('SELECT 1'))";
/// Of each table, in the order of [`Distributable::ALL`]: whether it is distributed, its rows by the last count, and the bytes of
/// its rows and indexes here.
const TABLES: &str = "SELECT EXISTS (SELECT 1 FROM pg_dist_partition WHERE logicalrelid = t.name::regclass),
    greatest((SELECT reltuples FROM pg_class WHERE oid = t.name::regclass), 0)::bigint, pg_total_relation_size(t.name::regclass)
    FROM unnest(ARRAY['pending', 'events']) WITH ORDINALITY t(name, position) ORDER BY t.position";
/// Copies all rows of a table to shards.
const DISTRIBUTE: &str = "SELECT create_distributed_table($1::text::regclass, 'alias_number', colocate_with => $2::text)";
/// Removes what was copied from this machine, which nobody sees any longer.
const CLEAR: &str = "SELECT truncate_local_data_after_distributing_table($1::text::regclass)";
/// The size of this database on all workers, in bytes. It grows while rows are copied that nobody sees yet.
const STORED: &str = "SELECT coalesce(sum(result::bigint) FILTER (WHERE success), 0)::bigint
    FROM run_command_on_workers('SELECT pg_database_size(current_database())')";

/// A table that can be on several machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distributable {
    /// Requests that are to be processed.
    Pending,
    /// Events.
    Events,
}

impl Distributable {
    /// All of them, in the order in which they are distributed.
    pub const ALL: [Self; 2] = [Self::Pending, Self::Events];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Events => "events",
        }
    }

    /// The table whose rows of an alias are to be on the same worker; `none` for the first one.
    fn beside(self) -> &'static str {
        match self {
            Self::Pending => "none",
            Self::Events => "pending",
        }
    }
}

/// How far a table is distributed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// The table.
    pub table: Distributable,
    /// Whether its rows are in shards.
    pub is_distributed: bool,
    /// How many rows it has by the database's last count.
    pub rows: i64,
    /// The bytes of its rows and indexes on the coordinator.
    pub bytes: i64,
}

/// How a database stands to being distributed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Distribution {
    /// It can't be: it is SQLite, or has no Citus.
    Impossible,
    /// It has Citus.
    Possible {
        /// Whether this is the machine that applications ask.
        is_coordinator: bool,
        /// Workers that take shards.
        workers: i64,
        /// Nodes that do not answer.
        silent: i64,
        /// The tables.
        tables: Vec<Share>,
    },
}

impl Db {
    /// How the database stands to being distributed.
    pub async fn distribution(&self) -> Result<Distribution> {
        let Some(pool) = self.pool() else {
            return Ok(Distribution::Impossible);
        };
        let mut lease = pool.acquire().await?;
        if !lease.row(HAS_CITUS).await?.try_get(0)? {
            return Ok(Distribution::Impossible);
        }
        let nodes = lease.row(NODES).await?;
        Ok(Distribution::Possible {
            is_coordinator: nodes.try_get(0)?,
            workers: nodes.try_get(1)?,
            silent: nodes.try_get(2)?,
            tables: shares(&mut lease).await?,
        })
    }

    /// Distributes a table, however long that takes; nobody can use it meanwhile. A table that is distributed is left as it is.
    pub async fn distribute(&self, table: Distributable) -> Result<()> {
        let mut lease = self.coordinator()?.acquire().await?;
        let tables = shares(&mut lease).await?;
        let is_distributed = tables
            .iter()
            .any(|share| share.table == table && share.is_distributed);
        let outcome = async {
            let connection = lease.raw()?;
            if !is_distributed {
                let copy = sqlx::query(DISTRIBUTE)
                    .bind(table.name())
                    .bind(table.beside());
                step(connection, copy).await?;
            }
            step(connection, sqlx::query(CLEAR).bind(table.name())).await
        };
        let outcome = outcome.await;
        lease.close().await;
        outcome?;
        self.look_up_shards().await
    }

    /// How many bytes the workers have of this database, also of what is not committed yet.
    pub async fn stored_by_workers(&self) -> Result<i64> {
        let mut lease = self.coordinator()?.acquire().await?;
        Ok(lease.row(STORED).await?.try_get(0)?)
    }

    fn coordinator(&self) -> Result<&Pool> {
        self.pool()
            .ok_or_else(|| Error::misconfigured("SQLite is one machine's"))
    }
}

async fn shares(lease: &mut Lease) -> Result<Vec<Share>> {
    let rows = lease.rows(TABLES).await?;
    let shares = Distributable::ALL
        .into_iter()
        .zip(rows)
        .map(|(table, row)| {
            Ok(Share {
                table,
                is_distributed: row.try_get(0)?,
                rows: row.try_get(1)?,
                bytes: row.try_get(2)?,
            })
        });
    shares.collect()
}

type Step = Query<'static, Postgres, PgArguments>;

async fn step(connection: &mut PgConnection, statement: Step) -> Result<()> {
    let mut transaction = connection.begin().await?;
    transaction.execute(NO_TIMEOUT).await?;
    transaction.execute(statement.persistent(false)).await?;
    transaction.commit().await?;
    Ok(())
}
