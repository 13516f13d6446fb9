//! `nudge console-link`: a link that signs somebody in to the console of a server with the embedded issuer.

use anyhow::{Context as _, bail};
use clap::Args;
use nudge_apps::console::{Grants, links};
use nudge_platform::clock::Clock;
use nudge_platform::config::Config;

use super::{GrantArguments, ServerArguments};
use crate::server::public_url;
use crate::{data_dir, opening};

/// Who links of the command speak for.
const SUBJECT: &str = "nudge console-link";

/// Arguments of the command.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    grant: GrantArguments,
    #[command(flatten)]
    server: ServerArguments,
}

pub(super) async fn run(mut config: Config, arguments: Arguments) -> anyhow::Result<()> {
    let chosen = arguments.server.listen.is_some() || !config.server.public_url.is_empty();
    arguments.server.apply(&mut config);
    if !config.auth.issuers.is_empty() {
        bail!(
            "people sign in to the console with the issuers of `auth.issuers`; there are no links beside them"
        );
    }
    let url = config.database_url();
    if !opening::is_there(&url)? {
        bail!(
            "{url} is not there; start the server once, or name its data directory with --data-dir"
        );
    }
    let grants = Grants {
        roles: arguments.grant.roles(),
        operator: arguments.grant.operator,
    };
    let now = Clock::default().now();
    // A server that runs may listen elsewhere than its configuration says: at a port that was free.
    let running = data_dir::server_url(&config.server.data_dir).filter(|_| !chosen);
    let public_url = running.unwrap_or_else(|| public_url(&config, &config.server.listen));
    // Standard output has the link alone.
    if let Some(note) = super::serve::plain_http(&public_url)? {
        super::remark(&note);
    }
    let db = super::serve::open(&config).await?;
    let mut tx = db.write().await?;
    let link = links::create(&mut tx, &public_url, SUBJECT, &grants, now)
        .await
        .context(
            "can't store the link; has a server of this version been started with the database?",
        )?;
    tx.commit().await?;
    db.close().await;
    super::say(link);
    Ok(())
}
