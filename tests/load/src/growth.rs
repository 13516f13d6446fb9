//! What an event costs as the number of stored events grows.

use std::time::Instant;

use clap::Args;

use crate::child::Server;
use crate::database::{Databases, Kind};
use crate::drive::{self, Load, Outcome};
use crate::fill::Filler;
use crate::report::{Table, median, rate, say, verdict};
use crate::request::{COMMON, Delivery, Person};

const CLIENTS: usize = 64;
const BATCH: usize = 20;
/// At ten million stored events, against the empty database.
const GOAL: f64 = 0.5;

/// What is measured.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[arg(long, value_enum, default_value = "sqlite")]
    database: Kind,
    /// Numbers of stored events to measure at, in ascending order.
    #[arg(long, default_values_t = [1_000_000, 10_000_000], value_delimiter = ',')]
    events: Vec<usize>,
    /// Whose stored events they are, each as likely as any other: the least that a cache helps.
    #[arg(long, default_value_t = 500_000)]
    people: usize,
    /// How many of them send events while it is measured.
    #[arg(long, default_value_t = 10_000)]
    senders: usize,
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Requests of 20 events of each database in a round.
    #[arg(long, default_value_t = 2_500)]
    requests: usize,
}

/// A rate of events a second until they were acknowledged, until they were processed, and the server's
/// processor time for one of them in microseconds.
#[derive(Clone, Copy, Debug)]
struct Speed {
    acknowledged: f64,
    processed: f64,
    cpu: f64,
}

/// A server and those who send.
struct Side {
    server: Server,
    people: Vec<Person>,
    seed: u64,
}

impl Side {
    async fn new(databases: &Databases, senders: usize) -> anyhow::Result<Self> {
        let server = Server::start(databases, 0).await?;
        drive::furnish(&server).await?;
        let people = drive::people(&server, senders).await?;
        Ok(Self {
            server,
            people,
            seed: 0,
        })
    }

    async fn speed(&mut self, requests: usize) -> anyhow::Result<Speed> {
        self.seed += 1;
        let load = Load {
            name: COMMON,
            clients: CLIENTS,
            requests,
            events: BATCH,
            delivery: Delivery::None,
            seed: self.seed,
        };
        // Others send in each round, whose pages no earlier round has warmed.
        let count = self.people.len().max(1);
        self.people.rotate_left(requests % count);
        Ok(speed(
            &drive::run(&self.server, &self.people, load).await?,
            load,
        ))
    }
}

pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let databases = Databases::new(arguments.database)?;
    let mut empty = Side::new(&databases, arguments.senders).await?;
    let mut large = Side::new(&databases, arguments.senders).await?;
    let mut filler = Filler::new(&large.server)?;
    let others = arguments.people.saturating_sub(arguments.senders);
    filler.people(others).await?;
    let aliases = filler.aliases().await?;
    empty.speed(arguments.requests).await?;
    large.speed(arguments.requests).await?;

    let mut table = Table::new(&[
        "stored events",
        "acknowledged, against the empty database",
        "processed",
        "processor time of the server for an event",
        "acknowledged, events/s",
        "empty database, events/s",
        "",
    ]);
    let mut stored = 0;
    let started = Instant::now();
    for &station in &arguments.events {
        filler
            .events(station.saturating_sub(stored), aliases)
            .await?;
        filler.settle().await?;
        stored = station;
        say(format_args!(
            "{stored} events after {:.0?}",
            started.elapsed()
        ))?;
        let turns = take_turns(&mut empty, &mut large, &arguments).await?;
        let middle = |value: &dyn Fn(&(Speed, Speed)) -> f64| median(turns.iter().map(value));
        let acknowledged = middle(&|(few, many)| many.acknowledged / few.acknowledged);
        table.row(&[
            stored.to_string(),
            format!("{acknowledged:.2}"),
            format!(
                "{:.2}",
                middle(&|(few, many)| many.processed / few.processed)
            ),
            format!("{:.2}", middle(&|(few, many)| many.cpu / few.cpu)),
            format!("{:.0}", middle(&|(_, many)| many.acknowledged)),
            format!("{:.0}", middle(&|(few, _)| few.acknowledged)),
            verdict(acknowledged >= GOAL).to_owned(),
        ]);
    }
    table.print()?;
    empty.server.stop().await?;
    large.server.stop().await
}

/// Measures the empty database and the large one in turn.
async fn take_turns(
    empty: &mut Side,
    large: &mut Side,
    arguments: &Arguments,
) -> anyhow::Result<Vec<(Speed, Speed)>> {
    let mut turns = Vec::with_capacity(arguments.rounds);
    for round in 0..arguments.rounds {
        let turn = if round % 2 == 0 {
            let few = empty.speed(arguments.requests).await?;
            (few, large.speed(arguments.requests).await?)
        } else {
            let many = large.speed(arguments.requests).await?;
            (empty.speed(arguments.requests).await?, many)
        };
        say(format_args!("round {round}: {turn:.1?}"))?;
        turns.push(turn);
    }
    Ok(turns)
}

#[expect(clippy::cast_precision_loss, reason = "counts of a benchmark")]
fn speed(outcome: &Outcome, load: Load) -> Speed {
    let events = load.requests * load.events;
    Speed {
        acknowledged: rate(events, outcome.time),
        processed: rate(events, outcome.processed),
        cpu: outcome.cpu.as_secs_f64() * 1e6 / events as f64,
    }
}
