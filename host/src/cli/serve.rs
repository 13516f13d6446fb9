//! `nudge serve`, `nudge check`.

use std::path::{Path, PathBuf};

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
use tempfile::TempDir;

use super::{ServerArguments, migrate};
use crate::data_dir;
use crate::server::{open_plugins, public_url, usable_schema};
use crate::{listening, opening};

/// Runs a server until it is asked to stop.
pub(super) async fn run(mut config: Config, arguments: ServerArguments) -> anyhow::Result<()> {
    arguments.apply(&mut config);
    let stop = super::stop_signal()?;
    let hangups = super::heed_hangups()?;
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
    tokio::select! {
        () = stop => {}
        never = hangups => match never {},
    }
    tracing::info!(%node, "asked to stop: requests in hand are finished");
    server.stop().await;
    tracing::info!(%node, "the server has stopped");
    Ok(())
}

/// Says whether a server could start: the configuration, the key, the database and the plugins. What a server would make, its
/// data directory, its key and its database, is made in a folder that is removed afterwards.
pub(super) async fn check(mut config: Config, arguments: ServerArguments) -> anyhow::Result<()> {
    arguments.apply(&mut config);
    data_dir::require_owner(&config)?;
    let lookups = Lookups::system(config.server.lookup_threads);
    check_configuration(&config, &lookups).await?;
    if let Some(note) = plain_http(&public_url(&config, &config.server.listen))? {
        super::say(note);
    }
    let place = stand_in(&mut config)?;
    let secrets = check_database(&config, &place.keys).await?;
    let clock = Clock::default();
    let access_tokens = AccessTokens::new(&config.auth, &lookups)?;
    access_tokens.reach(clock.now()).await?;
    let compiler = Some(super::compiler()?);
    open_plugins(&config, &secrets, compiler, clock).await?;
    super::say(if place.is_whole {
        "the configuration is complete, the key is the database's, the database answers, the plugins load"
    } else {
        "the configuration is complete, the plugins load, and the server can make the key and the database that are not there yet"
    });
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

/// What to know of a public URL under which nobody stays signed in to the console.
pub(super) fn plain_http(public_url: &str) -> anyhow::Result<Option<String>> {
    let keeps_cookies = Site::new(public_url, false)?.keeps_cookies();
    Ok((!keeps_cookies).then(|| {
        format!(
            "note: browsers keep no cookie of {public_url}, since it is plain http, so that nobody stays signed in to the console: \
             put TLS in front, and say https in `server.publicUrl`"
        )
    }))
}

/// Where a command that only looks finds what is not there yet.
struct StandIn {
    /// Where the keys are, or are made.
    keys: PathBuf,
    /// Whether both the keys and the database are there.
    is_whole: bool,
    /// Removed with this value.
    _folder: Option<TempDir>,
}

/// Puts a folder beside what is missing into its place.
fn stand_in(config: &mut Config) -> anyhow::Result<StandIn> {
    let data_dir = config.server.data_dir.clone();
    let is_there = data_dir.exists();
    if is_there {
        data_dir::make(config)?;
    }
    let has_keys = Secrets::are_there(&config.secrets, &data_dir)?;
    let database = missing_database(config)?;
    let is_whole = has_keys && database.is_none();
    if is_whole && is_there {
        return Ok(StandIn {
            keys: data_dir,
            is_whole,
            _folder: None,
        });
    }
    let beside = nearest_folder(database.as_deref().unwrap_or(&data_dir));
    let folder = tempfile::Builder::new()
        .prefix(".nudge-check-")
        .tempdir_in(beside)
        .with_context(|| {
            let beside = beside.display();
            format!("can't write to {beside}: choose another folder with --data-dir")
        })?;
    if let Some(database) = database {
        super::say(format_args!(
            "note: the server makes the database {} when it starts",
            database.display()
        ));
        let stand_in = folder.path().join("nudge.db");
        config.database.url = format!("sqlite:{}", stand_in.display());
    }
    if !is_there {
        folder.path().clone_into(&mut config.server.data_dir);
        data_dir::make(config)?;
    }
    if !has_keys && config.plugins.cache_dir.as_os_str().is_empty() {
        // What is compiled is signed with the key.
        folder.path().clone_into(&mut config.plugins.cache_dir);
    }
    let keys = if has_keys { &*data_dir } else { folder.path() };
    Ok(StandIn {
        keys: keys.to_owned(),
        is_whole,
        _folder: Some(folder),
    })
}

/// The embedded database, where there is none and a server would make it. One in a folder that is missing can't be opened.
fn missing_database(config: &Config) -> anyhow::Result<Option<PathBuf>> {
    let url = config.database_url();
    if opening::is_there(&url)? {
        return Ok(None);
    }
    let path = nudge_db::sqlite_path(&url).filter(|path| {
        let folder = path.parent().unwrap_or(path);
        config.database.url.is_empty() || folder.as_os_str().is_empty() || folder.is_dir()
    });
    Ok(path.map(Path::to_path_buf))
}

/// The folder that something is in, or would be in once those between are made.
fn nearest_folder(path: &Path) -> &Path {
    let mut folders = path.ancestors().filter(|folder| folder.is_dir());
    folders.next().unwrap_or(Path::new("."))
}

/// Whether the database takes writes, lets a server work as configured, and was made with the keys that are there.
async fn check_database(config: &Config, keys: &Path) -> anyhow::Result<Secrets> {
    // Two connections show whether a pooler changes what is behind them.
    let db = open_with(config, 2).await?;
    let checked = examine(config, &db, keys).await;
    db.close().await;
    checked
}

async fn examine(config: &Config, db: &Db, keys: &Path) -> anyhow::Result<Secrets> {
    let findings = db
        .examine(config.database.connections)
        .await
        .context("can't examine the database")?;
    let (fatal, mut notes): (Vec<_>, Vec<_>) = findings.into_iter().partition(Finding::is_fatal);
    // Of matter only where the schema is still to be made.
    let may_create = !notes.contains(&Finding::MayNotCreate);
    notes.retain(|note| *note != Finding::MayNotCreate);
    for note in notes {
        super::say(format_args!("note: {note}"));
    }
    if !fatal.is_empty() {
        let all: Vec<String> = fatal.iter().map(Finding::to_string).collect();
        bail!("{}", all.join("; "));
    }
    let schema = usable_schema(config, db).await?;
    let secrets = Secrets::load(&config.secrets, keys)?;
    match schema {
        Schema::Current => {
            sealed::check(db, &secrets).await?;
            if let Some(note) = migrate::look(db).await? {
                super::say(format_args!("note: {note}"));
            }
        }
        Schema::Empty | Schema::Older if !may_create => bail!(Finding::MayNotCreate),
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
