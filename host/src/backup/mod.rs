//! Backups of the embedded database: one file with the database as it was at one moment and the master key, encrypted.
//!
//! The file is an age file of a gzipped tar, so that `age --decrypt FILE | tar --extract --gzip` opens it without Nudge.
//!
//! # Invariants
//!
//! - **A backup has its name once all of it is on disk**, and every sealed value in it opens with the key in it.
//! - **A restored database has its name once all is done**: the key is beside it, deletions that are to be done again are queued, and nobody is
//!   signed in to the console. A crash before leaves nothing that a server would start on.

pub mod age;
mod archive;
mod restore;

pub use restore::{Restored, restore};

use std::fs::{self, File};
use std::io::BufWriter;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use age::Recipient;
use anyhow::{Context as _, bail};
use indicatif::ProgressBar;
use nudge_apps::console;
use nudge_db::{Db, Options, Schema};
use nudge_people::privacy::again::{Again, delete_again};
use nudge_platform::clock::Clock;
use nudge_platform::config::Config;
use nudge_platform::schema::migrations;
use nudge_platform::sealed;
use nudge_platform::secrets::{Secrets, is_there};
use nudge_records::pseudonyms::Pseudonyms;
use tempfile::NamedTempFile;

use crate::opening;

/// The copy that a backup is made of, in the data directory.
const COPY: &str = "backup.db";
/// What the files of a SQLite database are called after it.
const BESIDE: [&str; 4] = ["", "-wal", "-shm", "-journal"];
/// The file that the one backup at a time locks.
const LOCK: &str = "backup.lock";
/// What is said of a database of a newer version.
const NEWER: &str =
    "a newer version of Nudge made the database's schema: use that version, or a later one";

/// Writes a backup of the embedded database, which a server may be working with, to a file that is not there yet. Answers its size
/// in bytes.
pub async fn write(
    config: &Config,
    file: &Path,
    recipients: &[Recipient],
    progress: &ProgressBar,
) -> anyhow::Result<u64> {
    let database_url = config.database_url();
    let database = embedded(&database_url)?;
    if !is_there(database)? {
        bail!(
            "there is no database at {}: name its server's folder with --data-dir",
            database.display()
        );
    }
    if file.exists() {
        bail!("{} is there: a backup replaces no file", file.display());
    }
    let folder = folder_of(file);
    if !folder.is_dir() {
        bail!("there is no folder {}: make it first", folder.display());
    }
    let data_dir = &config.server.data_dir;
    let lock = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .open(data_dir.join(LOCK))
        .context("can't write to the data directory")?;
    if lock.try_lock().is_err() {
        bail!("another backup is being made of {}", data_dir.display());
    }
    let copy = data_dir.join(COPY);
    // One that was interrupted.
    remove(&copy)?;
    let made = make(config, &copy, file, recipients, progress).await;
    remove(&copy)?;
    made
}

async fn make(
    config: &Config,
    copy: &Path,
    file: &Path,
    recipients: &[Recipient],
    progress: &ProgressBar,
) -> anyhow::Result<u64> {
    progress.set_message("copying the database");
    let db = Db::open(&config.database_options(1))
        .await
        .context("can't open the database")?;
    let copied = db.copy_to(copy).await;
    db.close().await;
    copied.context("can't copy the database")?;

    let is_configured = !config.secrets.master_key.is_empty();
    let key = (!is_configured).then(|| Secrets::file(&config.server.data_dir));
    let key = key.map(fs::read).transpose();
    let key = key.context("can't read the master key, which the first start of a server makes")?;
    // A change of the key just now would leave a copy that no key in the backup opens.
    let secrets = Secrets::load(&config.secrets, &config.server.data_dir)?;
    open_copy(copy, &secrets).await?.close().await;

    progress.set_message("encrypting");
    let (copy, file, recipients) = (copy.to_owned(), file.to_owned(), recipients.to_vec());
    let progress = progress.clone();
    let pack = move || pack(&copy, key.as_deref(), &file, &recipients, &progress);
    tokio::task::spawn_blocking(pack).await?
}

/// Writes the archive beside the file, and gives it the file's name at the end.
fn pack(
    copy: &Path,
    key: Option<&[u8]>,
    file: &Path,
    recipients: &[Recipient],
    progress: &ProgressBar,
) -> anyhow::Result<u64> {
    let folder = folder_of(file);
    let write = || {
        let mut temporary = NamedTempFile::new_in(folder)?;
        let sealed = age::encrypt(BufWriter::new(temporary.as_file_mut()), recipients)?;
        let sealed = archive::write(sealed, copy, key, progress)?;
        drop(sealed.finish()?);
        temporary.as_file().sync_all()?;
        let written = temporary.persist_noclobber(file)?;
        File::open(folder)?.sync_all()?;
        Ok::<u64, std::io::Error>(written.metadata()?.len())
    };
    write().with_context(|| format!("can't write {}", file.display()))
}

/// The folder that a file is in, or will be.
fn folder_of(file: &Path) -> &Path {
    let folder = file
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}

/// Opens a database that no server uses, and makes sure that some keys are its own.
async fn open_copy(path: &Path, secrets: &Secrets) -> anyhow::Result<Db> {
    let db = Db::open(&Options::new(format!("sqlite:{}", path.display()), 1)).await?;
    match db.schema(&migrations()).await? {
        Schema::Newer => bail!(NEWER),
        Schema::Current => sealed::check(&db, secrets).await?,
        // Its tables are others.
        Schema::Older | Schema::Empty => {}
    }
    Ok(db)
}

/// Does the deletions of a later state of a database again on an earlier one, on which no server runs, and ends the console's sessions
/// there. The later state is only read.
pub async fn deletions(db: &Db, secrets: &Secrets, url: &str) -> anyhow::Result<Again> {
    if !opening::is_there(url)? {
        bail!("there is no database at {url}");
    }
    // The URL of PostgreSQL may have a password.
    let shown = nudge_db::sqlite_path(url).map_or("the later state's URL", |_| url);
    let later = Db::open_to_read(&Options::new(url.to_owned(), 1))
        .await
        .with_context(|| format!("can't open {shown}"))?;
    let done = async {
        let schema = later.schema(&migrations()).await;
        match schema.with_context(|| format!("can't read {shown}"))? {
            Schema::Empty => bail!("there is no database of Nudge at {shown}"),
            Schema::Newer => bail!("{shown}: {NEWER}"),
            Schema::Current | Schema::Older => {}
        }
        db.migrate(&migrations())
            .await
            .context("can't bring the database's schema up to date")?;
        let pseudonyms = Pseudonyms::open(db, secrets).await?;
        let theirs = Pseudonyms::read(&later, secrets).await.map_err(of_later)?;
        if theirs.as_ref() != Some(&pseudonyms) {
            bail!("the two are not states of one database");
        }
        let again = delete_again(db, &later, &pseudonyms, Clock::default().now()).await;
        let again = again.context("can't do the deletions again")?;
        sign_everybody_out(db).await?;
        Ok::<_, anyhow::Error>(again)
    };
    let done = done.await;
    later.close().await;
    done
}

/// Ends the console's sessions in a database that was restored: some of them were ended since the backup.
async fn sign_everybody_out(db: &Db) -> anyhow::Result<()> {
    let signed_out = async {
        let mut tx = db.write().await?;
        console::sign_everybody_out(&mut tx).await?;
        tx.commit().await
    };
    signed_out.await.context("can't end the console's sessions")
}

/// What is said of a later state whose pseudonyms can't be had: its key is another, unless something else is wrong with it.
fn of_later(error: anyhow::Error) -> anyhow::Error {
    if error.is::<sealed::Closed>() {
        return error.context(
            "the later state has another master key: put the key that it was changed to into `secrets.previousKeys` meanwhile",
        );
    }
    error.context("can't read the later state")
}

/// The file of the embedded database.
fn embedded(url: &str) -> anyhow::Result<&Path> {
    nudge_db::sqlite_path(url).context(
        "the database is PostgreSQL, which has programs of its own for backups: host/docs/backup.md says how they are used",
    )
}

/// A file that is called after a database.
fn named(database: &Path, ending: &str) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// Removes a database that nobody uses, with what SQLite puts beside it.
fn remove(database: &Path) -> anyhow::Result<()> {
    for ending in BESIDE {
        match fs::remove_file(named(database, ending)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(error).with_context(|| format!("can't remove {}", database.display()));
            }
            _ => {}
        }
    }
    Ok(())
}
