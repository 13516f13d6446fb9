//! Fresh databases.

use std::path::Path;
use std::time::Duration;

use clap::ValueEnum;
use sqlx::postgres::{PgConnection, PgPool, PgPoolOptions};
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous,
};
use sqlx::{Connection as _, Executor as _};
use tempfile::TempDir;

use super::cluster::Cluster;

const PATIENCE: Duration = Duration::from_mins(1);

/// Which database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// In a file, `synchronous = FULL`.
    Sqlite,
    /// A cluster of its own with its default configuration, over TCP on 127.0.0.1.
    Postgres,
}

/// Makes databases of one kind, and removes what it made.
#[derive(Debug)]
pub(super) struct Databases {
    cluster: Option<Cluster>,
    folder: TempDir,
}

/// An empty database, and a folder beside it.
#[derive(Debug)]
pub(super) struct Fresh {
    pub(super) url: String,
    pub(super) folder: TempDir,
}

/// Connections to a database.
#[derive(Clone, Debug)]
pub(super) enum Pool {
    Sqlite(SqlitePool),
    Postgres(PgPool),
}

impl Databases {
    pub(super) async fn new(kind: Kind) -> anyhow::Result<Self> {
        let cluster = match kind {
            Kind::Sqlite => None,
            Kind::Postgres => Some(Cluster::start().await?),
        };
        let folder = TempDir::with_prefix("nudge-peers-")?;
        Ok(Self { cluster, folder })
    }

    /// Where things that outlive one database can be.
    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(super) async fn fresh(&self, name: &str) -> anyhow::Result<Fresh> {
        let folder = TempDir::with_prefix_in("database-", self.folder.path())?;
        let Some(cluster) = &self.cluster else {
            let url = format!("sqlite:{}", folder.path().join("events.db").display());
            return Ok(Fresh { url, folder });
        };
        let mut connection = PgConnection::connect(&cluster.url("postgres")).await?;
        for statement in ["DROP DATABASE IF EXISTS", "CREATE DATABASE"] {
            let statement = format!("{statement} {name}");
            connection.execute(sqlx::AssertSqlSafe(statement)).await?;
        }
        connection.close().await?;
        let url = cluster.url(name);
        Ok(Fresh { url, folder })
    }
}

impl Pool {
    pub(super) async fn open(url: &str, connections: u32) -> anyhow::Result<Self> {
        let Some(file) = url.strip_prefix("sqlite:") else {
            let options = PgPoolOptions::new()
                .max_connections(connections)
                .acquire_timeout(PATIENCE);
            return Ok(Self::Postgres(options.connect(url).await?));
        };
        let options = SqliteConnectOptions::new()
            .filename(file)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            .busy_timeout(PATIENCE);
        let pool = SqlitePoolOptions::new()
            .max_connections(connections)
            .acquire_timeout(PATIENCE)
            .connect_with(options)
            .await?;
        Ok(Self::Sqlite(pool))
    }

    /// The number that a query gives.
    pub(super) async fn number(&self, query: &'static str) -> anyhow::Result<i64> {
        Ok(match self {
            Self::Sqlite(pool) => sqlx::query_scalar(query).fetch_one(pool).await?,
            Self::Postgres(pool) => sqlx::query_scalar(query).fetch_one(pool).await?,
        })
    }

    pub(super) async fn close(&self) {
        match self {
            Self::Sqlite(pool) => pool.close().await,
            Self::Postgres(pool) => pool.close().await,
        }
    }
}
