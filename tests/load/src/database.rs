//! Fresh databases.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use clap::ValueEnum;
use nudge_db::{Db, Options};
use tempfile::TempDir;
use tests::postgres::{Cluster, Durability};

/// Which database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// Embedded, `synchronous = FULL`.
    Sqlite,
    /// A cluster of its own with its default configuration, over TCP on 127.0.0.1.
    Postgres,
}

/// Makes databases of one kind, and removes what it made.
#[derive(Debug)]
pub(crate) struct Databases {
    kind: Kind,
    cluster: Option<Cluster>,
    folder: TempDir,
}

/// An empty database, and a directory beside it.
#[derive(Debug)]
pub(crate) struct Fresh {
    pub(crate) url: String,
    pub(crate) directory: TempDir,
}

impl Databases {
    pub(crate) fn new(kind: Kind) -> anyhow::Result<Self> {
        let cluster = (kind == Kind::Postgres).then(|| Cluster::start_new(Durability::Durable));
        let folder = TempDir::with_prefix("nudge-load-")?;
        Ok(Self {
            kind,
            cluster,
            folder,
        })
    }

    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }

    /// Where things that outlive one database can be.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Where the database server keeps everything, if there is one.
    pub(crate) fn cluster_data(&self) -> Option<PathBuf> {
        self.cluster.as_ref().map(Cluster::data)
    }

    /// Has the database server crash, if there is one, and starts it again.
    pub(crate) fn crash(&self) {
        if let Some(cluster) = &self.cluster {
            cluster.crash();
            cluster.start();
        }
    }

    pub(crate) fn fresh(&self) -> anyhow::Result<Fresh> {
        let directory = TempDir::with_prefix_in("database-", self.folder.path())?;
        let url = match &self.cluster {
            Some(cluster) => cluster.create_database(),
            None => format!("sqlite:{}", directory.path().join("nudge.db").display()),
        };
        Ok(Fresh { url, directory })
    }
}

impl Fresh {
    pub(crate) async fn open(&self, connections: u32) -> anyhow::Result<Db> {
        let options = Options {
            acquire_timeout: Duration::from_secs(30),
            deadline: Duration::from_mins(5),
            ..Options::new(self.url.clone(), connections)
        };
        Db::open(&options).await.context("can't open the database")
    }

    /// The file of an SQLite database.
    pub(crate) fn file(&self) -> Option<PathBuf> {
        self.url.strip_prefix("sqlite:").map(PathBuf::from)
    }
}
