//! `nudge token`: an access token from the embedded issuer.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use nudge_http::issuer::{Issuer, Role};
use nudge_platform::clock::Clock;
use nudge_platform::config::Config;
use nudge_platform::secrets::Secrets;
use uuid::Uuid;

/// Arguments of the command.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// The workspace that the token opens.
    #[arg(long, value_name = "ID")]
    workspace: Uuid,
    /// What it may do there.
    #[arg(long, value_enum)]
    role: Role,
    /// Whether it also opens the operator routes.
    #[arg(long)]
    operator: bool,
    /// How long it is good for: `90s`, `30m`, `1h` or `7d`.
    #[arg(long, default_value = "1h", value_parser = duration)]
    ttl: Duration,
    /// Where the server's key file is.
    #[arg(long, value_name = "DIRECTORY")]
    data_dir: Option<PathBuf>,
}

pub(super) fn run(config: Config, arguments: Arguments) -> anyhow::Result<()> {
    if !config.auth.issuers.is_empty() {
        anyhow::bail!(
            "the server takes access tokens from the issuers of `auth.issuers` only; get one there"
        );
    }
    let data_dir = arguments.data_dir.unwrap_or(config.server.data_dir);
    if config.secrets.master_key.is_empty() && !data_dir.join("master.key").exists() {
        anyhow::bail!(
            "{} has no master.key; start the server once, or name its directory with --data-dir",
            data_dir.display()
        );
    }
    let secrets = Secrets::load(&config.secrets, &data_dir)?;
    let issuer = Issuer::new(&secrets, &config.auth.embedded_issuer)?;
    let roles = BTreeMap::from([(arguments.workspace, arguments.role)]);
    let now = Clock::default().now();
    super::say(issuer.issue("nudge token", roles, arguments.operator, now, arguments.ttl)?);
    Ok(())
}

fn duration(text: &str) -> anyhow::Result<Duration> {
    let (number, unit) = text
        .split_at_checked(text.len().saturating_sub(1))
        .context("a duration is like 1h")?;
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 24 * 3600,
        _ => anyhow::bail!("a duration ends in s, m, h or d"),
    };
    let number: u64 = number.parse().context("a duration begins with a number")?;
    Ok(Duration::from_secs(number.saturating_mul(seconds)))
}
