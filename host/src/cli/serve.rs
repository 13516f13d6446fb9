//! `nudge serve`, `nudge check`.

use anyhow::{Context as _, bail};
use nudge_apps::console::Site;
use nudge_db::{Db, Finding, Schema};
use nudge_http::oidc::AccessTokens;
use nudge_platform::clock::Clock;
use nudge_platform::config::Config;
use nudge_platform::outbound::Lookups;
use nudge_platform::secrets::Secrets;
use nudge_platform::{sealed, telemetry, traces};
use nudge_push::providers::check_certificates;

use super::{ServerArguments, migrate};
use crate::data_dir;
use crate::server::{open_plugins, open_secrets, public_url};
use crate::{listening, opening};

/// Runs a server until it is asked to stop.
pub(super) async fn run(mut config: Config, arguments: ServerArguments) -> anyhow::Result<()> {
    arguments.apply(&mut config);
    let stop = super::stop_signal()?;
    let server = super::start(config, false).await?;
    super::say(format_args!("listening on http://{}", server.address()));
    if let Some(address) = server.operations_address() {
        super::say(format_args!("operations on http://{address}"));
    }
    let node = server.services().pipeline.node();
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        %node,
        address = %server.address(),
        "the server has started"
    );
    stop.await;
    tracing::info!(%node, "asked to stop: requests in hand are finished");
    server.stop().await?;
    tracing::info!(%node, "the server has stopped");
    Ok(())
}

/// Says whether a server could start: the configuration, the key, the database and the plugins.
pub(super) async fn check(mut config: Config, arguments: ServerArguments) -> anyhow::Result<()> {
    arguments.apply(&mut config);
    data_dir::make(&config)?;
    let lookups = Lookups::system(config.server.lookup_threads);
    check_configuration(&config, &lookups).await?;
    let secrets = check_database(&config).await?;
    let clock = Clock::default();
    let access_tokens = AccessTokens::new(&config.auth, &lookups)?;
    access_tokens.reach(clock.now()).await?;
    let compiler = Some(super::compiler()?);
    open_plugins(&config, &secrets, compiler, clock).await?;
    super::say(
        "the configuration is complete, the key is the database's, the database answers, the plugins load",
    );
    Ok(())
}

/// Whether what is configured can be used, as far as neither the database nor the issuers are asked.
pub(super) async fn check_configuration(config: &Config, lookups: &Lookups) -> anyhow::Result<()> {
    telemetry::Logs::new(&config.telemetry)?;
    listening::check_differ(config)?;
    listening::check(listening::API, &config.server.listen).await?;
    if !config.server.ops_listen.is_empty() {
        listening::check(listening::OPERATIONS, &config.server.ops_listen).await?;
    }
    Site::new(&public_url(config, &config.server.listen), false)?;
    check_certificates(&config.push)?;
    traces::open(&config.telemetry, lookups)?;
    Ok(())
}

/// Whether the database takes writes, lets a server work as configured, and was made with the keys that are there.
async fn check_database(config: &Config) -> anyhow::Result<Secrets> {
    // Two connections show whether a pooler changes what is behind them.
    let db = open_with(config, 2).await?;
    let checked = examine(config, &db).await;
    db.close().await;
    checked
}

async fn examine(config: &Config, db: &Db) -> anyhow::Result<Secrets> {
    let findings = db
        .examine(config.database.connections)
        .await
        .context("can't examine the database")?;
    let (fatal, notes): (Vec<_>, Vec<_>) = findings.into_iter().partition(Finding::is_fatal);
    for note in notes {
        super::say(format_args!("note: {note}"));
    }
    if !fatal.is_empty() {
        let all: Vec<String> = fatal.iter().map(Finding::to_string).collect();
        bail!("{}", all.join("; "));
    }
    let (schema, secrets) = open_secrets(config, db).await?;
    match schema {
        Schema::Current => {
            sealed::check(db, &secrets).await?;
            if let Some(note) = migrate::look(db).await? {
                super::say(format_args!("note: {note}"));
            }
        }
        Schema::Older => super::say(
            "note: the server brings the schema up to date when it starts, as `nudge migrate` does",
        ),
        // A newer one was refused above.
        Schema::Empty | Schema::Newer => {}
    }
    Ok(secrets)
}

pub(super) async fn open(config: &Config) -> anyhow::Result<Db> {
    open_with(config, 1).await
}

pub(super) async fn open_with(config: &Config, connections: u32) -> anyhow::Result<Db> {
    opening::open(config, connections).await
}
