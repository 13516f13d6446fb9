//! `nudge serve`, `nudge migrate`, `nudge check`.

use anyhow::{Context as _, bail};
use nudge_db::{Db, Finding};
use nudge_http::oidc::AccessTokens;
use nudge_platform::clock::Clock;
use nudge_platform::config::Config;
use nudge_platform::outbound::Lookups;
use nudge_platform::schema::migrations;
use nudge_platform::secrets::Secrets;
use nudge_platform::{telemetry, traces};
use nudge_push::providers::check_certificates;
use tokio::net::lookup_host;

use super::ServerArguments;
use crate::server::{make_data_dir, open_plugins};

/// Runs a server until it is asked to stop.
pub(super) async fn run(mut config: Config, arguments: ServerArguments) -> anyhow::Result<()> {
    arguments.apply(&mut config);
    let stop = super::stop_signal()?;
    let server = super::start(config, false).await?;
    super::say(format_args!("listening on http://{}", server.address()));
    if let Some(address) = server.operations_address() {
        super::say(format_args!("operations on http://{address}"));
    }
    stop.await;
    server.stop().await
}

/// Brings the schema up to date.
pub(super) async fn migrate(mut config: Config, arguments: ServerArguments) -> anyhow::Result<()> {
    arguments.apply(&mut config);
    make_data_dir(&config)?;
    let db = open(&config).await?;
    db.migrate(&migrations())
        .await
        .context("can't bring the database's schema up to date")?;
    db.close().await;
    super::say("the schema is up to date");
    Ok(())
}

/// Says whether a server could start: the configuration, the key, the database and the plugins.
pub(super) async fn check(mut config: Config, arguments: ServerArguments) -> anyhow::Result<()> {
    arguments.apply(&mut config);
    make_data_dir(&config)?;
    telemetry::Logs::new(&config.telemetry)?;
    check_address("server.listen", &config.server.listen).await?;
    if !config.server.ops_listen.is_empty() {
        check_address("server.opsListen", &config.server.ops_listen).await?;
    }
    let secrets = Secrets::load(&config.secrets, &config.server.data_dir)?;
    let lookups = Lookups::system(config.server.lookup_threads);
    AccessTokens::new(&config.auth, &lookups)?;
    check_certificates(&config.push)?;
    traces::open(&config.telemetry, &lookups)?;
    check_database(&config).await?;
    let compiler = Some(super::compiler()?);
    open_plugins(&config, &secrets, compiler, Clock::default()).await?;
    super::say(
        "the configuration is complete, the key is readable, the database answers, the plugins load",
    );
    Ok(())
}

/// Whether there is such an address; not whether it is free: a server may well be running.
async fn check_address(key: &str, address: &str) -> anyhow::Result<()> {
    let mut found = lookup_host(address)
        .await
        .with_context(|| format!("{key}: `{address}` is no address to listen on"))?;
    found
        .next()
        .map(drop)
        .with_context(|| format!("{key}: `{address}` has no address"))
}

/// Whether the database takes writes, and lets a server work as configured.
async fn check_database(config: &Config) -> anyhow::Result<()> {
    // Two connections show whether a pooler changes what is behind them.
    let db = open_with(config, 2).await?;
    let findings = db
        .examine(config.database.connections)
        .await
        .context("can't examine the database")?;
    db.close().await;
    let (fatal, notes): (Vec<_>, Vec<_>) = findings.into_iter().partition(Finding::is_fatal);
    for note in notes {
        super::say(format_args!("note: {note}"));
    }
    if fatal.is_empty() {
        return Ok(());
    }
    let all: Vec<String> = fatal.iter().map(Finding::to_string).collect();
    bail!("{}", all.join("; "))
}

pub(super) async fn open(config: &Config) -> anyhow::Result<Db> {
    open_with(config, 1).await
}

async fn open_with(config: &Config, connections: u32) -> anyhow::Result<Db> {
    Db::open(&config.database_options(connections))
        .await
        .context("can't open the database")
}
