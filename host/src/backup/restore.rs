//! Making a data directory of a backup.

use std::fs::{self, DirBuilder, File};
use std::io::{BufReader, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use indicatif::ProgressBar;
use nudge_db::Db;
use nudge_people::privacy::again::Again;
use nudge_platform::config::Config;
use nudge_platform::secrets::Secrets;
use tempfile::NamedTempFile;

use super::age::{self, Identity};
use super::{BESIDE, archive, embedded, named, open_copy};
use crate::data_dir::{self, lock};

/// What the folder that a backup is unpacked to is called after the database, which it is beside.
const FOLDER: &str = ".restore";

/// What was restored.
#[derive(Debug)]
pub struct Restored {
    /// The database.
    pub database: PathBuf,
    /// Whether the backup had the master key; otherwise it is configured.
    pub has_key: bool,
    /// The deletions that were done again, if a later state was given.
    pub again: Option<Again>,
}

/// Puts the database and the keys of a backup into a data directory that has no database. `later`: the URL of a later state of
/// the database, whose deletions are done again.
pub async fn restore(
    config: &Config,
    file: &Path,
    identities: Vec<Identity>,
    later: Option<&str>,
    progress: &ProgressBar,
) -> anyhow::Result<Restored> {
    let url = config.database_url();
    let database = embedded(&url)?;
    // No folder is made for a file whose name is misspelt.
    fs::metadata(file).with_context(|| format!("can't restore {}", file.display()))?;
    data_dir::make(config)?;
    let data_dir = &config.server.data_dir;
    let _lock = lock(config)?;
    refuse_existing(database)?;
    let folder = named(database, FOLDER);
    // One that was interrupted.
    clear(&folder)?;
    DirBuilder::new()
        .mode(0o700)
        .create(&folder)
        .with_context(|| format!("can't make the folder {}", folder.display()))?;

    let unpacked = unpack(file, &folder, identities, progress).await;
    progress.set_message("checking");
    let prepared = match unpacked {
        Ok(()) => prepare(config, &folder, later).await,
        Err(error) => Err(error),
    };
    let placed = prepared.and_then(|again| place(data_dir, &folder, database, again));
    clear(&folder)?;
    placed
}

fn refuse_existing(database: &Path) -> anyhow::Result<()> {
    for ending in BESIDE {
        let file = named(database, ending);
        if file.exists() {
            bail!(
                "{} is there: stop the server and move the database away, with the files whose names begin with its name, or restore to another \
                 --data-dir",
                file.display()
            );
        }
    }
    Ok(())
}

fn clear(folder: &Path) -> anyhow::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("can't remove {}", folder.display()))
        }
        _ => Ok(()),
    }
}

async fn unpack(
    file: &Path,
    folder: &Path,
    identities: Vec<Identity>,
    progress: &ProgressBar,
) -> anyhow::Result<()> {
    let context = format!("can't restore {}", file.display());
    let (file, folder, progress) = (file.to_owned(), folder.to_owned(), progress.clone());
    progress.set_message("decrypting");
    let unpack = move || {
        let file = File::open(file)?;
        progress.set_length(file.metadata()?.len());
        let opened = age::decrypt(BufReader::new(progress.wrap_read(file)), &identities)?;
        archive::read(opened, &folder)
    };
    tokio::task::spawn_blocking(unpack).await?.context(context)
}

/// Checks what was unpacked, does deletions again, and ends the console's sessions.
async fn prepare(
    config: &Config,
    folder: &Path,
    later: Option<&str>,
) -> anyhow::Result<Option<Again>> {
    if !Secrets::are_there(&config.secrets, folder)? {
        bail!(
            "the backup has no master key, as `secrets.masterKey` was configured where it was made: name it with \
             NUDGE_SECRETS__MASTER_KEY"
        );
    }
    let secrets = Secrets::load(&config.secrets, folder)?;
    let db = open_copy(&folder.join(archive::DATABASE), &secrets).await?;
    let mut again = None;
    if let Some(later) = later {
        again = Some(super::deletions(&db, &secrets, later).await?);
    } else if has_sessions(&db).await? {
        super::sign_everybody_out(&db).await?;
    }
    db.close().await;
    Ok(again)
}

/// Whether the schema has sessions of the console: that of an older version, which a server brings up to date, may have none.
async fn has_sessions(db: &Db) -> anyhow::Result<bool> {
    let mut tx = db.read().await?;
    let tables: i64 = tx
        .sql(
            "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'console_sessions'",
        )
        .fetch_scalar()
        .await?;
    Ok(tables > 0)
}

/// Gives all its place: the key first, as a server makes one where it finds none.
fn place(
    data_dir: &Path,
    folder: &Path,
    database: &Path,
    again: Option<Again>,
) -> anyhow::Result<Restored> {
    let key = folder.join(archive::KEY);
    let has_key = key.exists();
    if has_key {
        place_key(data_dir, &fs::read(&key)?).context("can't write the master key")?;
    }
    fs::rename(folder.join(archive::DATABASE), database)
        .with_context(|| format!("can't write {}", database.display()))?;
    // The new name is on disk once the directory is.
    let parent = database
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    File::open(parent.unwrap_or(Path::new(".")))?.sync_all()?;
    Ok(Restored {
        database: database.to_owned(),
        has_key,
        again,
    })
}

fn place_key(data_dir: &Path, key: &[u8]) -> anyhow::Result<()> {
    let place = Secrets::file(data_dir);
    if place.exists() {
        if fs::read(&place)? == key {
            return Ok(());
        }
        bail!(
            "{} is another key than the backup's: move it away",
            place.display()
        );
    }
    let mut file = NamedTempFile::new_in(data_dir)?;
    file.write_all(key)?;
    file.as_file().sync_all()?;
    file.persist_noclobber(&place)?;
    File::open(data_dir)?.sync_all()?;
    Ok(())
}
