//! Where the database is, and how it is used.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;

use super::Config;

/// Which database. Its URL may have a password; it is never printed.
#[derive(Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Database {
    /// Where it is.
    pub url: String,
    /// Connections.
    pub connections: u32,
    /// How long to wait for one.
    pub acquire_timeout_seconds: u64,
    /// How long to wait for an answer of PostgreSQL.
    pub deadline_seconds: u64,
    /// Statements that a connection to PostgreSQL keeps prepared.
    pub statement_cache: usize,
    /// Free space below which a server with the embedded database is not ready, in bytes.
    pub min_free_bytes: u64,
}

impl fmt::Debug for Database {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Database")
            .field("connections", &self.connections)
            .finish_non_exhaustive()
    }
}

impl Config {
    /// How to open the database, with so many connections.
    pub fn database_options(&self, connections: u32) -> nudge_db::Options {
        let seconds = |seconds: u64| Duration::from_secs(seconds.max(1));
        nudge_db::Options {
            url: self.database_url(),
            connections,
            acquire_timeout: seconds(self.database.acquire_timeout_seconds),
            deadline: seconds(self.database.deadline_seconds),
            statement_cache: self.database.statement_cache,
        }
    }

    /// The folder of the embedded database. None: the database is PostgreSQL.
    pub fn database_folder(&self) -> Option<PathBuf> {
        let url = self.database_url();
        let folder = nudge_db::sqlite_path(&url)?.parent()?;
        Some(if folder.as_os_str().is_empty() {
            PathBuf::from(".")
        } else {
            folder.to_owned()
        })
    }
}
