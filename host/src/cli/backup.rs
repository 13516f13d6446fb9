//! `nudge backup`, `nudge restore`, `nudge repeat-deletions`.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use nudge_db::Schema;
use nudge_platform::config::Config;

use super::ServerArguments;
use crate::backup;
use crate::backup::age::{Identity, Recipient};

use crate::server::open_secrets;
use crate::{data_dir, opening};

#[derive(Debug, Args)]
pub(super) struct BackupArguments {
    /// The file to write.
    file: PathBuf,
    /// Who can open it: an age public key, `age1…`; once for each.
    #[arg(
        long = "recipient",
        value_name = "KEY",
        conflicts_with = "passphrase_file"
    )]
    recipients: Vec<String>,
    /// A file whose first line is the passphrase that opens it.
    #[arg(long, value_name = "FILE")]
    passphrase_file: Option<PathBuf>,
    #[command(flatten)]
    server: ServerArguments,
}

#[derive(Debug, Args)]
pub(super) struct RestoreArguments {
    /// The backup.
    file: PathBuf,
    /// A file with age secret keys, as `age-keygen` writes it.
    #[arg(long, value_name = "FILE", conflicts_with = "passphrase_file")]
    identity: Option<PathBuf>,
    /// A file whose first line is the passphrase.
    #[arg(long, value_name = "FILE")]
    passphrase_file: Option<PathBuf>,
    /// A later state of the database, `sqlite:PATH`: whom it knows to be deleted is deleted again.
    #[arg(long, value_name = "URL")]
    deletions_from: Option<String>,
    #[command(flatten)]
    server: ServerArguments,
}

#[derive(Debug, Args)]
pub(super) struct DeletionsArguments {
    /// The later state of the database, `sqlite:PATH` or `postgres://…`.
    #[arg(long, value_name = "URL")]
    from: String,
    #[command(flatten)]
    server: ServerArguments,
}

/// Writes a backup.
pub(super) async fn backup(mut config: Config, arguments: BackupArguments) -> anyhow::Result<()> {
    arguments.server.apply(&mut config);
    data_dir::require_owner(&config)?;
    let mut recipients = Vec::new();
    for text in &arguments.recipients {
        let recipient: Recipient = text.parse().map_err(|error| anyhow!("`{text}`: {error}"))?;
        recipients.push(recipient);
    }
    if let Some(file) = &arguments.passphrase_file {
        recipients.push(Recipient::Passphrase(passphrase(file)?));
    }
    if recipients.is_empty() {
        bail!(
            "a backup has the master key and is always encrypted: name who may open it with --recipient age1…, or with \
             --passphrase-file"
        );
    }
    let progress = progress()?;
    let written = backup::write(&config, &arguments.file, &recipients, &progress).await;
    progress.finish_and_clear();
    let size = written?;
    super::say(format_args!("{}: {size} bytes", arguments.file.display()));
    if !config.secrets.master_key.is_empty() {
        super::say(
            "`secrets.masterKey` is configured and not in it: without the key nothing that it seals can be used",
        );
    }
    Ok(())
}

/// Restores a backup.
pub(super) async fn restore(mut config: Config, arguments: RestoreArguments) -> anyhow::Result<()> {
    arguments.server.apply(&mut config);
    data_dir::require_owner(&config)?;
    let identities = match (&arguments.identity, &arguments.passphrase_file) {
        (Some(file), _) => {
            let text = fs::read_to_string(file);
            let text = text.with_context(|| file.display().to_string())?;
            Identity::parse_file(&text).with_context(|| file.display().to_string())?
        }
        (None, Some(file)) => vec![Identity::Passphrase(passphrase(file)?)],
        (None, None) => {
            bail!("say what opens the backup: --identity FILE or --passphrase-file FILE")
        }
    };
    let later = arguments.deletions_from.as_deref();
    let progress = progress()?;
    let restored = backup::restore(&config, &arguments.file, identities, later, &progress).await;
    progress.finish_and_clear();
    let restored = restored?;
    let with_key = if restored.has_key {
        " and its master key are"
    } else {
        " is"
    };
    super::say(format_args!(
        "{}{with_key} restored",
        restored.database.display()
    ));
    match restored.again {
        Some(again) => say_again(again),
        None => super::say(
            "people who were deleted after the backup are back: where you have a later state of the database, `nudge repeat-deletions --from \
             sqlite:PATH` deletes them again",
        ),
    }
    Ok(())
}

/// Does deletions again.
pub(super) async fn deletions(
    mut config: Config,
    arguments: DeletionsArguments,
) -> anyhow::Result<()> {
    arguments.server.apply(&mut config);
    let url = config.database_url();
    if !opening::is_there(&url)? {
        bail!("there is no database at {url}: name its server's folder with --data-dir");
    }
    // A server that runs has people in memory.
    let is_embedded = nudge_db::sqlite_path(&url).is_some();
    let _lock = is_embedded.then(|| data_dir::lock(&config)).transpose()?;
    let db = super::serve::open(&config).await?;
    let again = async {
        let (schema, secrets) = open_secrets(&config, &db).await?;
        if schema == Schema::Empty {
            bail!("the database is empty: restore a backup into it first");
        }
        backup::deletions(&db, &secrets, &arguments.from).await
    };
    let again = again.await;
    db.close().await;
    say_again(again?);
    Ok(())
}

/// What is being done, and how far it is; on a terminal only.
fn progress() -> anyhow::Result<ProgressBar> {
    let style = ProgressStyle::with_template("{spinner} {msg} {bytes}/{total_bytes} {eta}")?;
    let progress = ProgressBar::no_length().with_style(style);
    progress.enable_steady_tick(Duration::from_millis(200));
    Ok(progress)
}

fn say_again(again: nudge_people::privacy::again::Again) {
    super::say(format_args!(
        "{} people are hidden again and are erased once a server runs; {} names were put on the suppression list",
        again.people, again.names
    ));
}

fn passphrase(file: &Path) -> anyhow::Result<String> {
    let text = fs::read_to_string(file).with_context(|| file.display().to_string())?;
    let first = text.lines().next().unwrap_or_default();
    if first.chars().count() < 12 {
        bail!(
            "{}: the first line is the passphrase, of at least 12 characters",
            file.display()
        );
    }
    Ok(first.to_owned())
}
