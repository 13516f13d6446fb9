//! `nudge demo`: replays two weeks of a made-up shop against a server of its own, and tells what the
//! server made of them. Every number is measured in that run.

mod checks;
mod client;
mod database;
mod firings;
mod message;
mod metrics;
mod recording;
mod replay;
mod report;
mod segment;
mod text;

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use clap::Args;
use client::Client;
use indicatif::{ProgressBar, ProgressStyle};
use nudge_platform::config::Config;
use report::{Report, Seconds};

use crate::server::Server;

/// How often the pipeline is asked whether it is done.
const LOOK_AGAIN: Duration = Duration::from_millis(10);
/// A pipeline that gets nothing done for so long is stuck.
const STUCK: Duration = Duration::from_mins(1);

/// Arguments of the command.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Keep the server's directory, to look around in it with `nudge dev --data-dir`.
    #[arg(long)]
    keep: bool,
    /// Also write the numbers to a file, as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Runs the demo. It fails if what the server says does not add up.
pub(super) async fn run(config: Config, arguments: Arguments) -> anyhow::Result<()> {
    let json = arguments
        .json
        .as_deref()
        .map(|path| File::create(path).with_context(|| format!("can't write {}", path.display())))
        .transpose()?;
    let mut directory = tempfile::Builder::new()
        .prefix("nudge-demo-")
        .tempdir()
        .context("can't make a temporary directory")?;
    directory.disable_cleanup(arguments.keep);
    let began = Instant::now();
    let server = Box::pin(super::start(own(config, directory.path())?, true)).await?;
    let started = began.elapsed();
    let played = tokio::select! {
        played = Box::pin(play(&server, started)) => played,
        asked = super::asked_to_stop() => asked.and_then(|()| bail!("stopped before the end")),
    };
    server.stop().await;
    let mut report = played?;
    if arguments.keep {
        report.kept = Some(directory.path().to_path_buf());
    }
    super::say(&report);
    if let Some(mut file) = json {
        let written = file.write_all(&serde_json::to_vec_pretty(&report)?);
        written.context("can't write the numbers")?;
    }
    match report.checks.iter().find(|check| !check.passed) {
        Some(check) => bail!(
            "the demo's totals don't add up: {}: {}",
            check.name,
            check.detail
        ),
        None => Ok(()),
    }
}

/// A configuration that reaches nothing but the demo's own directory, whatever server is configured.
/// Limits and sizes stay as they are.
fn own(config: Config, directory: &Path) -> anyhow::Result<Config> {
    let mut own = Config::defaults()?;
    own.ingest = config.ingest;
    own.pipeline = config.pipeline;
    own.plugins = config.plugins;
    own.plugins.cache_dir = PathBuf::new();
    own.server.listen = String::from("127.0.0.1:0");
    own.server.ops_listen = String::new();
    own.server.data_dir = directory.to_path_buf();
    own.telemetry.log_filter = String::from("warn");
    Ok(own)
}

async fn play(server: &Server, started: Duration) -> anyhow::Result<Report> {
    let services = server.services();
    let client = Arc::new(Client::new(super::dev::access(server).await?)?);
    let batches = Arc::new(recording::read()?);
    client
        .create("event-definitions", recording::DEFINITIONS)
        .await?;
    let surveys = client.create("surveys", recording::SURVEYS).await?;
    let before = metrics::read(&client.metrics().await?);

    let now = services.clock.now();
    let began = Instant::now();
    let replayed = replay::run(&client, &batches, now, &progress(&batches)).await?;
    let sending = began.elapsed();
    settle(server).await?;
    let settling = began.elapsed().saturating_sub(sending);
    let after = metrics::read(&client.metrics().await?);

    let began = Instant::now();
    let fired = firings::fetch(&client, &replayed.people).await?;
    let polling = began.elapsed();
    let letters = client.dead_letters().await?;
    let mut tx = services.db.read().await?;
    let decided = database::decided(&mut tx, client.app_id()).await?;
    drop(tx);

    let message = message::show(&client, services.clock.now()).await?;
    let segment = segment::enter(&client, services.clock.now()).await?;

    let seconds = Seconds {
        start: started.as_secs_f64(),
        send: sending.as_secs_f64(),
        settle: settling.as_secs_f64(),
        poll: polling.as_secs_f64(),
    };
    let surveys_fired = firings::count(&surveys, &fired, &replayed.at_once);
    Ok(Report {
        build: if cfg!(debug_assertions) {
            "debug"
        } else {
            "release"
        },
        processors: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
        checks: checks::all(
            &replayed,
            &surveys_fired,
            &fired,
            &letters,
            &decided,
            &message,
            &segment,
        ),
        message,
        segment,
        surveys: surveys_fired,
        examples: firings::explain(&surveys, &fired, &decided, &batches, now),
        dead_letters: report::group(letters),
        plugins: metrics::difference(&before, &after),
        traffic: replayed.into(),
        seconds,
        kept: None,
    })
}

/// A bar on a terminal, nothing elsewhere.
fn progress(batches: &[recording::Batch]) -> ProgressBar {
    let events: usize = batches.iter().map(|batch| batch.events.len()).sum();
    let bar = ProgressBar::new(u64::try_from(events).unwrap_or(u64::MAX));
    let template = "{bar:50} {pos} of {len} events";
    bar.with_style(
        ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()),
    )
}

/// Waits until every committed event is evaluated.
async fn settle(server: &Server) -> anyhow::Result<()> {
    let (mut fewest, mut since) = (i64::MAX, Instant::now());
    loop {
        let mut tx = server.services().db.read().await?;
        let waiting = database::waiting(&mut tx).await?;
        drop(tx);
        if waiting == 0 {
            return Ok(());
        }
        if waiting < fewest {
            (fewest, since) = (waiting, Instant::now());
        }
        if since.elapsed() > STUCK {
            bail!("the pipeline is stuck: {waiting} committed requests are not evaluated");
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}
