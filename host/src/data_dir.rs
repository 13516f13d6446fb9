//! The data directory of a server: its owner's alone, and one server's at a time.

use std::fs::{File, TryLockError};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use nudge_platform::config::Config;

use crate::private;

/// The file that the server locks. While it is locked, it has the URL under which clients reach the server.
const LOCK: &str = "lock";
/// What the file is called after the embedded database that is locked with it: servers with data directories of their own may
/// be given one database.
const OF_DATABASE: &str = ".lock";
/// The longest URL that is read from it, in bytes.
const MOST_URL: u64 = 4096;

/// Makes the data directory, and locks it with the database, where that is embedded.
pub(crate) fn claim(config: &Config) -> anyhow::Result<Option<Lock>> {
    make(config)?;
    let embedded_database = config.database_url().starts_with("sqlite:");
    embedded_database.then(|| lock(config)).transpose()
}

/// Makes the data directory its owner's alone, with what earlier versions left in it for others to read.
pub(crate) fn make(config: &Config) -> anyhow::Result<()> {
    let data_dir = &config.server.data_dir;
    if data_dir.exists() && !data_dir.is_dir() {
        bail!(
            "the data directory {} is a file: move it away, or choose another folder with --data-dir",
            data_dir.display()
        );
    }
    private::folder(data_dir).with_context(|| {
        format!(
            "can't create the data directory {}: choose another folder with --data-dir",
            data_dir.display()
        )
    })?;
    private::close_file(&data_dir.join(LOCK));
    // A folder that the configuration names is whose it says.
    if config.plugins.cache_dir.as_os_str().is_empty() {
        let cache = config.plugin_cache();
        private::cache(&cache).with_context(|| {
            format!(
                "can't create {}, the folder of compiled plugins: name another in `plugins.cacheDir`",
                cache.display()
            )
        })?;
    }
    if let Some(path) = nudge_db::sqlite_path(&config.database_url()) {
        private::database(path);
    }
    Ok(())
}

/// Refuses the superuser what is another user's: what root writes, that user's server can't open.
pub(crate) fn require_owner(config: &Config) -> anyhow::Result<()> {
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    let data_dir = &config.server.data_dir;
    // Where servers run as root in a folder of somebody else's, as containers may, its files are root's.
    let Ok(found) = data_dir
        .join(LOCK)
        .metadata()
        .or_else(|_| data_dir.metadata())
    else {
        return Ok(());
    };
    let owner = found.uid();
    if owner != 0 {
        bail!(
            "the data directory {} is another user's, whose server can't open what root writes: run this as that user, \
             `sudo -u '#{owner}' nudge …`",
            data_dir.display()
        );
    }
    Ok(())
}

/// The locks on a data directory and on an embedded database. They end with the process, or earlier.
#[derive(Debug)]
pub(crate) struct Lock {
    data_dir: File,
    database: Option<File>,
}

impl Drop for Lock {
    fn drop(&mut self) {
        for file in self.database.iter().chain([&self.data_dir]) {
            // Closing the file would do, but for a child process that is just being made and has the file open until it begins.
            if let Err(error) = file.unlock() {
                tracing::warn!(%error, "the data directory can't be unlocked");
            }
        }
    }
}

impl Lock {
    /// Tells other programs where the server is, once.
    pub(crate) fn tell(&mut self, public_url: &str) -> io::Result<()> {
        self.data_dir.write_all(public_url.as_bytes())
    }
}

/// The URL of the server that has the data directory; none: no server has it, or it has not begun to listen.
pub(crate) fn server_url(data_dir: &Path) -> Option<String> {
    let file = File::open(data_dir.join(LOCK)).ok()?;
    // One that was killed left its URL behind.
    if !matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)) {
        return None;
    }
    let mut url = String::new();
    file.take(MOST_URL).read_to_string(&mut url).ok()?;
    (!url.is_empty()).then_some(url)
}

/// Makes sure that no other server uses the data directory, nor the embedded database.
pub(crate) fn lock(config: &Config) -> anyhow::Result<Lock> {
    let folder = &config.server.data_dir;
    let path = folder.join(LOCK);
    let opened = open(&path)
        .with_context(|| format!("can't write to the data directory {}", folder.display()));
    let Some(data_dir) = take(opened?, &path)? else {
        bail!(
            "another server uses the data directory {}; stop it, or give this one another with --data-dir",
            folder.display()
        );
    };
    data_dir
        .set_len(0)
        .with_context(|| path.display().to_string())?;
    let database = nudge_db::sqlite_path(&config.database_url())
        .map(lock_database)
        .transpose()?
        .flatten();
    Ok(Lock { data_dir, database })
}

/// Makes sure that no other server uses an embedded database. None: its folder is not there, as opening it will say.
fn lock_database(database: &Path) -> anyhow::Result<Option<File>> {
    // However it is called: SQLite follows links, too.
    let real = database.canonicalize().ok();
    let mut name = real.as_deref().unwrap_or(database).as_os_str().to_owned();
    name.push(OF_DATABASE);
    let path = PathBuf::from(name);
    let file = match open(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        opened => opened.with_context(|| format!("can't write {}", path.display()))?,
    };
    match take(file, &path)? {
        Some(file) => Ok(Some(file)),
        None => bail!(
            "another server uses the database {}; stop it, or give this one another with --database-url",
            database.display()
        ),
    }
}

fn open(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.create(true).truncate(false).write(true).mode(0o600);
    options.open(path)
}

/// Locks a file. None: somebody else has it.
fn take(file: File, path: &Path) -> anyhow::Result<Option<File>> {
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error).with_context(|| path.display().to_string()),
    }
}
