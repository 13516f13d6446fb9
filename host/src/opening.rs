//! Opening the database, with words for what keeps it from being opened.

use std::io;
use std::path::Path;

use anyhow::{anyhow, bail};
use nudge_db::{Db, Kind, Schema, sqlite_path};
use nudge_platform::config::Config;
use nudge_platform::schema::migrations;
use nudge_platform::secrets;

/// Whether there is a database: of SQLite, its file. Whether PostgreSQL has one, opening it says.
pub(crate) fn is_there(url: &str) -> io::Result<bool> {
    sqlite_path(url).map_or(Ok(true), secrets::is_there)
}

/// Opens the database with so many connections.
pub(crate) async fn open(config: &Config, connections: u32) -> anyhow::Result<Db> {
    let url = config.database_url();
    if !nudge_db::is_known_url(&url) {
        bail!(
            "`database.url` begins neither with `sqlite:` nor with `postgres://`: mend it in nudge.toml, in NUDGE_DATABASE__URL or \
             with --database-url"
        );
    }
    Db::open(&config.database_options(connections))
        .await
        .map_err(|error| explain(&url, error, "can't open the database"))
}

/// How far the schema of a database is.
pub(crate) async fn schema(config: &Config, db: &Db) -> anyhow::Result<Schema> {
    let schema = db.schema(&migrations()).await;
    schema.map_err(|error| {
        explain(
            &config.database_url(),
            error,
            "can't read the database's schema",
        )
    })
}

/// An error of a file that is none of SQLite's is one of the file.
fn explain(url: &str, error: nudge_db::Error, what: &'static str) -> anyhow::Error {
    match sqlite_path(url) {
        Some(path) if error.kind() == Kind::Corrupt => no_database(path),
        Some(path) => anyhow::Error::new(error).context(format!("{}: {what}", path.display())),
        None => anyhow::Error::new(error).context(what),
    }
}

fn no_database(path: &Path) -> anyhow::Error {
    anyhow!(
        "{} is no database of Nudge, or is damaged: restore a backup, move it away, or choose another folder with --data-dir",
        path.display()
    )
}
