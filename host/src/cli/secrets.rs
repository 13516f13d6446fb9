//! `nudge secrets`: changing the master key.

use anyhow::{Context as _, bail};
use clap::{Args, Subcommand};
use nudge_db::Db;
use nudge_platform::config::Config;
use nudge_platform::schema::migrations;
use nudge_platform::sealed::{self, SealedBy};
use nudge_platform::secrets::Secrets;

use super::ServerArguments;
use crate::server::{open_secrets, require_keys};
use crate::{data_dir, opening};

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Say which key seals how many values, and what the next step of a change is.
    Status(ServerArguments),
    /// Put a new key into the key file, where the earlier one stays, and seal everything anew with it.
    Rotate(RotateArguments),
    /// Seal everything anew that an earlier key has sealed, as after `secrets.masterKey` was changed.
    Reseal(ServerArguments),
    /// Remove earlier keys from the key file: a day after a rotation no token of theirs is left.
    Forget(ServerArguments),
}

#[derive(Debug, Args)]
pub(super) struct RotateArguments {
    /// The new key, Base64 of 32 bytes; a random one unless given.
    #[arg(
        long,
        value_name = "KEY",
        env = "NUDGE_NEW_KEY",
        hide_env_values = true
    )]
    new_key: Option<String>,
    #[command(flatten)]
    server: ServerArguments,
}

/// Runs one of the commands.
pub(super) async fn run(config: Config, command: Command) -> anyhow::Result<()> {
    match command {
        Command::Status(arguments) => status(config, arguments).await,
        Command::Rotate(arguments) => rotate(config, arguments).await,
        Command::Reseal(arguments) => reseal_only(config, arguments).await,
        Command::Forget(arguments) => forget(config, arguments).await,
    }
}

async fn rotate(mut config: Config, arguments: RotateArguments) -> anyhow::Result<()> {
    arguments.server.apply(&mut config);
    if !config.secrets.master_key.is_empty() {
        bail!(
            "`secrets.masterKey` is configured, so that the key is changed there: `nudge secrets status` says the next step"
        );
    }
    let data_dir = &config.server.data_dir;
    data_dir::require_owner(&config)?;
    // A server that runs would go on sealing with the earlier key.
    let _lock = data_dir::lock(&config)?;
    require_database_keys(&config).await?;
    Secrets::rotate_file(data_dir, arguments.new_key.as_deref())?;
    super::say(
        "the key file has a new key; what the earlier one signed is good as long as it is there",
    );
    reseal(&config).await
}

/// Fails where no key is there and the database was used with one. Nothing is made.
async fn require_database_keys(config: &Config) -> anyhow::Result<()> {
    if !opening::is_there(&config.database_url())? {
        return Ok(());
    }
    let db = super::serve::open(config).await?;
    let required = async {
        let schema = opening::schema(config, &db).await?;
        require_keys(config, &db, schema).await
    };
    let required = required.await;
    db.close().await;
    required
}

/// What the person who changes the key does next. Servers that share a database are restarted one after the other, so
/// that each has to accept the new key's tokens before any server makes one.
fn next_step(is_configured: bool, counts: &SealedBy) -> &'static str {
    let earlier = counts.known.get(1..).unwrap_or_default();
    let sealed_earlier = earlier.iter().any(|count| *count > 0);
    if counts.unknown > 0 {
        return "Next: put the key that sealed them into `secrets.previousKeys` of every server. Nothing is lost until then, \
                but nothing that they seal can be used";
    }
    match (is_configured, earlier.is_empty(), sealed_earlier) {
        (true, true, _) => {
            "To change the key, step 1 of 4: make one (`openssl rand -base64 32`), put it into `secrets.previousKeys` of \
             every server, and restart the servers one after the other. Then all of them accept what it signs"
        }
        (true, false, false) => {
            "If the key in `secrets.previousKeys` is new, step 2 of 4: on every server make it `secrets.masterKey`, with \
             the present one in `secrets.previousKeys`, and restart the servers one after the other.\n\
             If it is the earlier one, step 4 of 4: a day after `nudge secrets reseal` no token of its is left. Remove it \
             from every server"
        }
        (true, false, true) => {
            "Step 3 of 4, once every server has the new key as `secrets.masterKey`: `nudge secrets reseal`"
        }
        (false, true, _) => {
            "To change the key: stop the server, `nudge secrets rotate`, start it again"
        }
        (false, false, true) => "Next: `nudge secrets reseal`",
        (false, false, false) => {
            "Next, a day after the rotation, when no token of the earlier key is left: stop the server, \
             `nudge secrets forget`, start it again"
        }
    }
}

async fn status(mut config: Config, arguments: ServerArguments) -> anyhow::Result<()> {
    arguments.apply(&mut config);
    if !Secrets::are_there(&config.secrets, &config.server.data_dir)? {
        bail!(
            "there is no master key: `secrets.masterKey` is empty, and {} has none",
            config.server.data_dir.display()
        );
    }
    let is_configured = !config.secrets.master_key.is_empty();
    let secrets = Secrets::load(&config.secrets, &config.server.data_dir)?;
    let db = super::serve::open(&config).await?;
    let counts = sealed::count_by_key(&db, &secrets).await;
    db.close().await;
    let counts = counts.context("can't read the sealed values; `nudge migrate` first?")?;
    for (index, count) in counts.known.iter().enumerate() {
        let name = match (is_configured, index) {
            (true, 0) => "secrets.masterKey".to_owned(),
            (true, _) => format!("secrets.previousKeys[{}]", index - 1),
            (false, 0) => "master.key, the newest".to_owned(),
            (false, _) => format!("master.key, {index} before"),
        };
        super::say(format_args!("{name:24} seals {count} values"));
    }
    if counts.unknown > 0 {
        super::say(format_args!(
            "{:24} seals {} values",
            "a key not known here", counts.unknown
        ));
    }
    super::say(next_step(is_configured, &counts));
    Ok(())
}

async fn reseal_only(mut config: Config, arguments: ServerArguments) -> anyhow::Result<()> {
    arguments.apply(&mut config);
    reseal(&config).await
}

async fn forget(mut config: Config, arguments: ServerArguments) -> anyhow::Result<()> {
    arguments.apply(&mut config);
    if !config.secrets.master_key.is_empty() {
        bail!(
            "`secrets.masterKey` is configured: remove the earlier keys from `secrets.previousKeys`"
        );
    }
    data_dir::require_owner(&config)?;
    let _lock = data_dir::lock(&config)?;
    // What was still sealed with an earlier key would be lost.
    reseal(&config).await?;
    Secrets::forget_previous(&config.server.data_dir)?;
    super::say("the key file has the newest key alone");
    Ok(())
}

async fn reseal(config: &Config) -> anyhow::Result<()> {
    let db = super::serve::open(config).await?;
    let sealed = reseal_all(config, &db).await;
    db.close().await;
    super::say(format_args!(
        "{} values are sealed with the newest key",
        sealed?
    ));
    Ok(())
}

/// Seals everything anew with the newest of the database's keys; answers how many values.
async fn reseal_all(config: &Config, db: &Db) -> anyhow::Result<u64> {
    let (_, secrets) = open_secrets(config, db).await?;
    db.migrate(&migrations())
        .await
        .context("can't bring the database's schema up to date")?;
    let tell = |table: &str, rows| super::say(format_args!("{table}: {rows} sealed anew"));
    sealed::reseal(db, &secrets, tell).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_state_has_its_step() {
        let step = |is_configured, known: &[u64], unknown| {
            let counts = SealedBy {
                known: known.to_vec(),
                unknown,
            };
            next_step(is_configured, &counts)
        };
        assert!(step(true, &[3], 0).contains("step 1 of 4"));
        assert!(step(true, &[3, 0], 0).contains("step 2 of 4"));
        assert!(step(true, &[0, 3], 0).contains("Step 3 of 4"));
        assert!(step(true, &[3, 0], 0).contains("step 4 of 4"));
        assert!(step(true, &[3, 0], 1).contains("that sealed them"));
        assert!(step(false, &[3], 0).contains("rotate"));
        assert!(step(false, &[1, 3], 0).contains("reseal"));
        assert!(step(false, &[4, 0], 0).contains("forget"));
    }
}
