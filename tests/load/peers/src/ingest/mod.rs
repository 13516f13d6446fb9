//! The same ingest by the plain way: a server on axum that reads a request with serde and makes one INSERT of it, on a
//! fresh database, in turns with Nudge's program on one of its own.
//!
//! The clients are those of `load ingest`, and what they send is the same.

#[path = "../../../src/client.rs"]
#[expect(dead_code, reason = "the driver of `tests/load` uses more of it")]
mod client;
mod clients;
mod cluster;
mod database;
mod nudge;
pub(crate) mod plain;
mod process;
#[path = "../../../src/random.rs"]
#[expect(dead_code, reason = "the driver of `tests/load` uses more of it")]
mod random;
mod request;

use std::path::PathBuf;

use clap::Args;

use self::clients::{Load, Outcome};
use self::database::{Databases, Kind};
use crate::report::{Table, median, micros, quantile, rate, say};

const CLIENTS: usize = 64;
/// Events of a request.
const SIZES: [usize; 2] = [1, 20];

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[arg(long, value_enum)]
    database: Kind,
    /// Nudge's program, of a release build.
    #[arg(long, value_name = "PATH")]
    nudge: PathBuf,
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// Requests of one event.
    #[arg(long, default_value_t = 12_800)]
    singles: usize,
    /// Requests of 20 events.
    #[arg(long, default_value_t = 6_400)]
    bulks: usize,
    /// People whose events they are.
    #[arg(long, default_value_t = 1_024)]
    people: usize,
    /// Connections of the plain server's pool; if not given, as many as serve it best: 1 on SQLite, 64 on PostgreSQL.
    #[arg(long)]
    connections: Option<u32>,
}

/// What one round measured of one size of request.
#[derive(Debug)]
struct Pair {
    plain: Outcome,
    nudge: Outcome,
}

pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let databases = Databases::new(arguments.database).await?;
    let mut sizes = Vec::with_capacity(SIZES.len());
    for events in SIZES {
        let requests = if events == 1 {
            arguments.singles
        } else {
            arguments.bulks
        };
        let load = Load {
            clients: CLIENTS,
            requests,
            events,
        };
        let mut pairs = Vec::with_capacity(arguments.rounds);
        for round in 0..arguments.rounds {
            let plain = plain::measure(&databases, load, &arguments).await?;
            let nudge = nudge::measure(&databases, load, &arguments).await?;
            say(format_args!(
                "{CLIENTS} x {events}, round {round}: plain {:.0}, Nudge {:.0} events/s",
                rate(requests * events, plain.time),
                rate(requests * events, nudge.time),
            ))?;
            pairs.push(Pair { plain, nudge });
        }
        sizes.push((load, pairs));
    }
    table(&sizes).print()?;
    Ok(())
}

fn table(sizes: &[(Load, Vec<Pair>)]) -> Table {
    let mut table = Table::new(&["", "plain", "Nudge", "Nudge / plain"]);
    for (load, pairs) in sizes {
        let name = |what: &str| format!("{} clients x {}, {what}", load.clients, load.events);
        let mut row = |name: String, unit: &str, value: &dyn Fn(&Outcome) -> f64| {
            let ratios: Vec<f64> = pairs
                .iter()
                .map(|pair| value(&pair.nudge) / value(&pair.plain))
                .collect();
            let [low, middle, high] = [0.0, 0.5, 1.0].map(|part| quantile(ratios.clone(), part));
            table.row(&[
                name,
                format!(
                    "{:.0} {unit}",
                    median(pairs.iter().map(|pair| value(&pair.plain)))
                ),
                format!(
                    "{:.0} {unit}",
                    median(pairs.iter().map(|pair| value(&pair.nudge)))
                ),
                format!("{middle:.2} ({low:.2} to {high:.2})"),
            ]);
        };
        let events = load.requests * load.events;
        row(name("acknowledged"), "events/s", &|outcome| {
            rate(events, outcome.time)
        });
        row(
            name("until nothing is left to do"),
            "events/s",
            &|outcome| rate(events, outcome.processed),
        );
        row(name("p50 of a request"), "us", &|outcome| {
            micros(&outcome.latencies, 0.5)
        });
        row(name("p99 of a request"), "us", &|outcome| {
            micros(&outcome.latencies, 0.99)
        });
        row(
            name("the server's processor time of a request"),
            "us",
            &|outcome| {
                micros(&[outcome.cpu], 0.5) / rate(load.requests, std::time::Duration::from_secs(1))
            },
        );
    }
    table
}
