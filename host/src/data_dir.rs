//! The data directory of a server: its owner's alone, and one server's at a time.

use std::fs::{File, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use anyhow::{Context as _, bail};
use nudge_platform::config::Config;

use crate::private;

/// The file that the server locks. While it is locked, it has the URL under which clients reach the server.
const LOCK: &str = "lock";
/// The longest URL that is read from it, in bytes.
const MOST_URL: u64 = 4096;

/// Makes the data directory, and locks it where the database is in it.
pub(crate) fn claim(config: &Config) -> anyhow::Result<Option<Lock>> {
    let data_dir = &config.server.data_dir;
    make(config)?;
    let embedded_database = config.database_url().starts_with("sqlite:");
    embedded_database.then(|| lock(data_dir)).transpose()
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

/// The lock on a data directory. It ends with the process, or earlier.
#[derive(Debug)]
pub(crate) struct Lock(File);

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing the file would do, but for a child process that is just being made and has the file open until it begins.
        if let Err(error) = self.0.unlock() {
            tracing::warn!(%error, "the data directory can't be unlocked");
        }
    }
}

impl Lock {
    /// Tells other programs where the server is, once.
    pub(crate) fn tell(&mut self, public_url: &str) -> io::Result<()> {
        self.0.write_all(public_url.as_bytes())
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

/// Makes sure that no other server uses the data directory.
pub(crate) fn lock(data_dir: &Path) -> anyhow::Result<Lock> {
    let path = data_dir.join(LOCK);
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .open(&path)
        .with_context(|| format!("can't write to the data directory {}", data_dir.display()))?;
    match file.try_lock() {
        Ok(()) => {
            file.set_len(0)
                .with_context(|| path.display().to_string())?;
            Ok(Lock(file))
        }
        Err(TryLockError::WouldBlock) => {
            bail!(
                "another server uses the data directory {}; stop it, or give this one another with --data-dir",
                data_dir.display()
            )
        }
        Err(TryLockError::Error(error)) => Err(error).with_context(|| path.display().to_string()),
    }
}
