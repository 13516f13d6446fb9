//! `nudge token`: an access token from the embedded issuer.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use nudge_http::issuer::Issuer;
use nudge_platform::clock::Clock;
use nudge_platform::config::Config;
use nudge_platform::secrets::Secrets;

use super::GrantArguments;

/// Arguments of the command.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    grant: GrantArguments,
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
    if !Secrets::are_there(&config.secrets, &data_dir)? {
        anyhow::bail!(
            "{} has no master.key; start the server once, or name its directory with --data-dir",
            data_dir.display()
        );
    }
    let secrets = Secrets::load(&config.secrets, &data_dir)?;
    let issuer = Issuer::new(&secrets, &config.auth.embedded_issuer)?;
    let GrantArguments { operator, .. } = arguments.grant;
    let roles = arguments.grant.roles();
    let now = Clock::default().now();
    super::say(issuer.issue("nudge token", roles, operator, now, arguments.ttl)?);
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
