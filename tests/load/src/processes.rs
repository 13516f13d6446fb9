//! What more servers on one PostgreSQL bring.

use clap::Args;

use crate::child::{Process, Server};
use crate::database::{Databases, Kind};
use crate::drive::{self, Load};
use crate::report::{Table, median, rate, say};
use crate::request::{AWAITED, COMMON, Delivery};

const CLIENTS: usize = 64;
const BATCH: usize = 20;

/// What is measured.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// How many servers, in ascending order; the first is what the others are compared with.
    #[arg(long, default_values_t = [1, 2, 4], value_delimiter = ',')]
    processes: Vec<usize>,
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Requests of 20 events of each number of servers in a round.
    #[arg(long, default_value_t = 2_500)]
    requests: usize,
}

/// Events a second: of a name that no campaign waits for, until acknowledged and until processed; and of one
/// that fires a survey each time, until processed.
#[derive(Clone, Copy, Debug)]
struct Speed {
    acknowledged: f64,
    processed: f64,
    fired: f64,
}

pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let databases = Databases::new(Kind::Postgres)?;
    let mut turns: Vec<Vec<Speed>> = vec![Vec::new(); arguments.processes.len()];
    for round in 0..arguments.rounds {
        for (count, speeds) in arguments.processes.iter().zip(&mut turns) {
            let speed = measure(&databases, *count, arguments.requests).await?;
            say(format_args!("round {round}, {count} servers: {speed:.0?}"))?;
            speeds.push(speed);
        }
    }
    let mut table = Table::new(&[
        "servers",
        "acknowledged, against the first line",
        "processed",
        "processed, each event fires",
        "acknowledged, events/s",
        "processed, events/s",
        "processed, each event fires, events/s",
    ]);
    let base = turns.first().cloned().unwrap_or_default();
    for (count, speeds) in arguments.processes.iter().zip(&turns) {
        let ratio = |value: fn(&Speed) -> f64| {
            median(
                speeds
                    .iter()
                    .zip(&base)
                    .map(|(speed, base)| value(speed) / value(base)),
            )
        };
        let middle = |value: fn(&Speed) -> f64| median(speeds.iter().map(value));
        let values: [fn(&Speed) -> f64; 3] = [
            |speed| speed.acknowledged,
            |speed| speed.processed,
            |speed| speed.fired,
        ];
        let mut cells = vec![count.to_string()];
        cells.extend(values.iter().map(|value| format!("{:.2}", ratio(*value))));
        cells.extend(values.iter().map(|value| format!("{:.0}", middle(*value))));
        table.row(&cells);
    }
    Ok(table.print()?)
}

/// What so many servers do on a fresh database.
async fn measure(databases: &Databases, count: usize, requests: usize) -> anyhow::Result<Speed> {
    let server = Server::start(databases, 0).await?;
    drive::furnish(&server).await?;
    let people = drive::people(&server, 1_024).await?;
    let mut others = Vec::with_capacity(count);
    for _ in 1..count {
        others.push(server.another(databases).await?);
    }
    let all: Vec<&Process> = std::iter::once(server.process()).chain(&others).collect();
    let load = Load {
        name: COMMON,
        clients: CLIENTS,
        requests,
        events: BATCH,
        delivery: Delivery::None,
        seed: 1,
    };
    let warm_up = Load {
        requests: requests / 5,
        seed: 2,
        ..load
    };
    drive::run_on(&server, &all, &people, warm_up).await?;
    let common = drive::run_on(&server, &all, &people, load).await?;
    let awaited = Load {
        name: AWAITED,
        seed: 3,
        requests: requests / 2,
        ..load
    };
    let fired = drive::run_on(&server, &all, &people, awaited).await?;
    let events = |load: Load| load.requests * load.events;
    for process in others {
        process.stop()?;
    }
    server.stop().await?;
    Ok(Speed {
        acknowledged: rate(events(load), common.time),
        processed: rate(events(load), common.processed),
        fired: rate(events(awaited), fired.processed),
    })
}
