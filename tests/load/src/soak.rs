//! A mixed load for a long time: whether anything fails, and whether memory, latency or disk grow that should not.

use std::path::Path;
use std::time::{Duration, Instant};

use clap::Args;
use nudge_platform::clock::Clock;
use tests::providers::Providers;
use tests::soak::{Done, Mix, Soak, Swapped};

use crate::child::{Server, borrowed};
use crate::database::{Databases, Kind};
use crate::report::{Table, micros, say, verdict};
use crate::swap;

/// How often memory and disk are looked at.
const LOOK_AGAIN: Duration = Duration::from_secs(5);
/// Caches and pools are full after this part of the run; memory is compared with what it is then.
const WARM: f64 = 0.2;
/// The size that SQLite's log has without a reader that holds it up: 8,000 pages and what one transaction adds.
const MOST_LOG_BYTES: u64 = 128 << 20;

/// What is measured.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[arg(long, value_enum, default_value = "sqlite")]
    database: Kind,
    #[arg(long, default_value_t = 10.0)]
    minutes: f64,
    #[arg(long, default_value_t = 8)]
    clients: u32,
    /// Rounds that a client makes for one person before it goes on with a new one.
    #[arg(long, default_value_t = 40)]
    rounds_a_person: u32,
    /// The pause between two rounds of a client, in milliseconds.
    #[arg(long, default_value_t = 50)]
    pause_ms: u64,
    /// The pause between two activations of the plugin, in seconds.
    #[arg(long, default_value_t = 60.0)]
    swap_seconds: f64,
}

/// The server at a moment.
#[derive(Clone, Copy, Debug)]
struct Look {
    at: f64,
    memory: u64,
    /// The database without its log.
    disk: u64,
    /// The database's log.
    log: u64,
    /// Everything else in the data directory, but compiled plugins.
    other: u64,
    events: u64,
}

pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let databases = Databases::new(arguments.database)?;
    let providers = Providers::start(&Clock::default()).await;
    let variables = providers.variables();
    let server = Server::start_with(&databases, 0, &borrowed(&variables)).await?;
    let swapped = Swapped {
        name: swap::NAME.to_owned(),
        versions: (0..3)
            .map(|number| {
                Ok((
                    swap::version(number),
                    swap::renamed(&swap::version(number))?,
                ))
            })
            .collect::<anyhow::Result<_>>()?,
    };
    let mut soak = Soak::prepare(server.access_data().clone(), providers, swapped).await;
    let began = Instant::now();
    soak.start(Mix {
        clients: arguments.clients,
        rounds_a_person: arguments.rounds_a_person,
        pause: Duration::from_millis(arguments.pause_ms),
        swap_every: Duration::from_secs_f64(arguments.swap_seconds),
    });
    let lasts = Duration::from_secs_f64(arguments.minutes * 60.0);
    let mut looks = Vec::new();
    while began.elapsed() < lasts {
        tokio::time::sleep(LOOK_AGAIN.min(lasts)).await;
        let look = look(&databases, &server, &soak, began)?;
        say(format_args!("{look:.0?}"))?;
        looks.push(look);
    }
    let done = soak.finish().await;
    server.drained().await?;
    server.stop().await?;
    for error in &done.errors {
        say(error)?;
    }
    report(&arguments, &looks, &done, began, lasts)
}

fn look(
    databases: &Databases,
    server: &Server,
    soak: &Soak,
    began: Instant,
) -> anyhow::Result<Look> {
    let events = soak.done().events;
    let data = server.folder();
    let mut look = Look {
        at: began.elapsed().as_secs_f64(),
        memory: server.memory()?,
        disk: 0,
        log: 0,
        other: 0,
        events,
    };
    let mut files = Vec::new();
    list(data, &mut files)?;
    for (path, size) in files {
        match path.as_str() {
            name if name.ends_with("nudge.db-wal") => look.log += size,
            name if name.ends_with("nudge.db") => look.disk += size,
            _ => look.other += size,
        }
    }
    if let Some(cluster) = databases.cluster_data() {
        let mut files = Vec::new();
        list(&cluster, &mut files)?;
        for (path, size) in files {
            if path.contains("/pg_wal/") {
                look.log += size;
            } else {
                look.disk += size;
            }
        }
    }
    Ok(look)
}

/// All files below a folder with their sizes. Some go while they are listed.
fn list(folder: &Path, files: &mut Vec<(String, u64)>) -> anyhow::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let Ok(kind) = entry.metadata() else { continue };
        if kind.is_dir() {
            list(&entry.path(), files)?;
        } else {
            files.push((entry.path().display().to_string(), kind.len()));
        }
    }
    Ok(())
}

/// A table of what was found, and whether that is what it should be.
struct Report(Table);

impl Report {
    fn row(&mut self, name: &str, value: impl AsRef<str>, goal: &str, met: Option<bool>) {
        let verdict = met.map_or("", verdict);
        self.0.row(&[name, value.as_ref(), goal, verdict]);
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts of a benchmark")]
fn report(
    arguments: &Arguments,
    looks: &[Look],
    done: &Done,
    began: Instant,
    lasts: Duration,
) -> anyhow::Result<()> {
    let mut report = Report(Table::new(&["soak", "", "goal", ""]));
    report.row("minutes", arguments.minutes.to_string(), "", None);
    let rate = done.requests as f64 / lasts.as_secs_f64();
    let requests = format!("{}, {rate:.0} a second", done.requests);
    report.row("requests", requests, "", None);
    let parts = format!("{}, {}, {}", done.events, done.sends, done.swaps);
    report.row("events, messages, activations", parts, "", None);
    let failed = done.failed.to_string();
    report.row("errors", failed, "0", Some(done.failed == 0));
    report.row(
        "instructions: fired, acknowledged",
        format!("{}, {}", done.fired, done.acknowledged),
        "equal",
        Some(done.fired == done.acknowledged),
    );
    latencies(&mut report, done, began, lasts);
    memory_and_disk(&mut report, arguments, looks, lasts);
    Ok(report.0.print()?)
}

fn latencies(report: &mut Report, done: &Done, began: Instant, lasts: Duration) {
    let quarter = |number: u32| -> Vec<Duration> {
        let (from, to) = (lasts * number / 4, lasts * (number + 1) / 4);
        let within = |at: Duration| at >= from && at < to;
        let times = done
            .times
            .iter()
            .filter(|(at, _)| within(at.duration_since(began)));
        times.map(|(_, time)| *time).collect()
    };
    let (first, last) = (quarter(0), quarter(3));
    for (name, part) in [("p50", 0.5), ("p99", 0.99)] {
        let (first, last) = (micros(&first, part) / 1e3, micros(&last, part) / 1e3);
        let ratio = last / first;
        report.row(
            &format!("{name} of ingest, last quarter / first"),
            format!("{ratio:.2} ({last:.1} and {first:.1} ms)"),
            "<= 1.5",
            Some(ratio <= 1.5),
        );
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts of a benchmark")]
fn memory_and_disk(report: &mut Report, arguments: &Arguments, looks: &[Look], lasts: Duration) {
    let mib = |bytes: f64| bytes / f64::from(1 << 20);
    let after = |part: f64| {
        let from = lasts.as_secs_f64() * part;
        looks.iter().filter(move |look| look.at >= from)
    };
    let (Some(warm), Some(end)) = (after(WARM).next(), looks.last()) else {
        return;
    };
    let (before, memory) = (warm.memory as f64, end.memory as f64);
    report.row(
        "memory, end / after a fifth of the time",
        format!(
            "{:.2} ({:.0} and {:.0} MiB)",
            memory / before,
            mib(memory),
            mib(before)
        ),
        "<= 1.15",
        Some(memory <= before * 1.15),
    );
    let later: Vec<&Look> = after(0.5).collect();
    let slope = format!("{:.2} MiB a minute", mib(slope(&later)) * 60.0);
    report.row("its slope over the second half", slope, "", None);
    let events = (end.events - warm.events).max(1) as f64;
    let grown = end.disk.saturating_sub(warm.disk) as f64 / events;
    let grown = format!("{grown:.0} bytes");
    report.row(
        "disk an event, with all that follows from it",
        grown,
        "",
        None,
    );
    let log = looks.iter().map(|look| look.log).max().unwrap_or(0);
    let bounded = arguments.database == Kind::Postgres || log <= MOST_LOG_BYTES;
    report.row(
        "the database's log at the most",
        format!("{:.0} MiB", mib(log as f64)),
        "<= 128 MiB (SQLite)",
        Some(bounded),
    );
    let other = looks.iter().map(|look| look.other).max().unwrap_or(0);
    let other = format!("{:.1} MiB", mib(other as f64));
    report.row(
        "other files in the data directory at the most",
        other,
        "",
        None,
    );
}

/// How much memory grows a second: the line nearest to all looks.
#[expect(clippy::cast_precision_loss, reason = "counts of a benchmark")]
fn slope(looks: &[&Look]) -> f64 {
    let count = looks.len().max(1) as f64;
    let mean_at = looks.iter().map(|look| look.at).sum::<f64>() / count;
    let mean = looks.iter().map(|look| look.memory as f64).sum::<f64>() / count;
    let over = looks
        .iter()
        .map(|look| (look.at - mean_at) * (look.memory as f64 - mean));
    let under = looks.iter().map(|look| (look.at - mean_at).powi(2));
    over.sum::<f64>() / under.sum::<f64>().max(f64::EPSILON)
}
