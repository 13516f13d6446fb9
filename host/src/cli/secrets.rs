//! `nudge secrets`: changing the master key.

use anyhow::{Context as _, bail};
use clap::{Args, Subcommand};
use nudge_platform::config::Config;
use nudge_platform::schema::migrations;
use nudge_platform::sealed;
use nudge_platform::secrets::Secrets;

use super::ServerArguments;
use crate::server::lock;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
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
        Command::Rotate(arguments) => rotate(config, arguments).await,
        Command::Reseal(arguments) => reseal_only(config, arguments).await,
        Command::Forget(arguments) => forget(config, arguments).await,
    }
}

async fn rotate(mut config: Config, arguments: RotateArguments) -> anyhow::Result<()> {
    arguments.server.apply(&mut config);
    if !config.secrets.master_key.is_empty() {
        bail!(
            "`secrets.masterKey` is configured: put the new key there and the earlier one first in \
             `secrets.previousKeys`, restart the servers, and run `nudge secrets reseal`"
        );
    }
    let data_dir = &config.server.data_dir;
    // A server that runs would go on sealing with the earlier key.
    let _lock = lock(data_dir)?;
    Secrets::rotate_file(data_dir, arguments.new_key.as_deref())?;
    super::say(
        "the key file has a new key; what the earlier one signed is good as long as it is there",
    );
    reseal(&config).await
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
    let _lock = lock(&config.server.data_dir)?;
    // What was still sealed with an earlier key would be lost.
    reseal(&config).await?;
    Secrets::forget_previous(&config.server.data_dir)?;
    super::say("the key file has the newest key alone");
    Ok(())
}

async fn reseal(config: &Config) -> anyhow::Result<()> {
    let secrets = Secrets::load(&config.secrets, &config.server.data_dir)?;
    let db = super::serve::open(config).await?;
    db.migrate(&migrations())
        .await
        .context("can't bring the database's schema up to date")?;
    let sealed = sealed::reseal(&db, &secrets, |table, rows| {
        super::say(format_args!("{table}: {rows} sealed anew"));
    })
    .await;
    db.close().await;
    super::say(format_args!(
        "{} values are sealed with the newest key",
        sealed?
    ));
    Ok(())
}
