//! Waiting for a decision: one event and one survey that it fires each time.

use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use clap::Args;
use nudge_platform::clock::Clock;

use crate::child::Server;
use crate::client::Connection;
use crate::database::{Databases, Kind};
use crate::drive;
use crate::random::Random;
use crate::report::{Latency, Table, median, say, verdict};
use crate::request::{AWAITED, Delivery, Request};

/// So long after an answer the pipeline has nothing in hand that the next request would wait for.
const REST: Duration = Duration::from_millis(15);

/// What is measured.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[arg(long, value_enum, default_value = "sqlite")]
    database: Kind,
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Requests of each sort a round; the sorts take turns request by request.
    #[arg(long, default_value_t = 400)]
    requests: usize,
    #[arg(long, default_value_t = 200)]
    people: usize,
}

pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let databases = Databases::new(arguments.database)?;
    let mut rounds = Vec::with_capacity(arguments.rounds);
    for round in 0..arguments.rounds {
        let server = Server::start(&databases, 0).await?;
        let measured = measure(&server, &arguments).await?;
        server.stop().await?;
        say(format_args!("round {round}: {measured:.0?}"))?;
        rounds.push(measured);
    }
    let middle = |value: &dyn Fn(&[Latency; 2]) -> f64| median(rounds.iter().map(value));
    let tail = middle(&|[without, with]| with.p99 / without.p99);
    let mut table = Table::new(&["ratio", "median of rounds", "goal", ""]);
    table.row(&[
        "p99 with `delivery` / without",
        &format!("{tail:.2}"),
        "<= 2",
        verdict(tail <= 2.0),
    ]);
    let half = middle(&|[without, with]| with.p50 / without.p50);
    table.row(&[
        "p50 with `delivery` / without",
        &format!("{half:.2}"),
        "",
        "",
    ]);
    table.print()?;
    let mut table = Table::new(&["request of one event that fires a survey", "p50", "p99"]);
    for (place, name) in ["without `delivery`", "with `delivery`"].iter().enumerate() {
        let of = |value: &dyn Fn(Latency) -> f64| {
            middle(&|round| round.get(place).copied().map_or(f64::NAN, value))
        };
        table.row(&[
            (*name).to_owned(),
            format!("{:.0} us", of(&|latency| latency.p50)),
            format!("{:.0} us", of(&|latency| latency.p99)),
        ]);
    }
    Ok(table.print()?)
}

async fn measure(server: &Server, arguments: &Arguments) -> anyhow::Result<[Latency; 2]> {
    drive::furnish(server).await?;
    let people = drive::people(server, arguments.people).await?;
    let write_key = server.access("writeKey")?;
    let mut connection = Connection::open(server.address()).await?;
    let mut random = Random::new(7);
    let clock = Clock::default();
    let mut times = [Vec::new(), Vec::new()];
    let warm_up = 100;
    for number in 0..arguments.requests * 2 + warm_up {
        let asks = number % 2 == 1;
        let delivery = if asks {
            Delivery::First
        } else {
            Delivery::None
        };
        let person = people
            .get((number / 2) % people.len())
            .context("somebody")?;
        let mut request = Request::new(write_key, person, AWAITED, 1, delivery);
        let bytes = request.renew(&mut random, clock.now());
        let started = Instant::now();
        let answer = connection.send(bytes).await?;
        let time = started.elapsed();
        let body = std::str::from_utf8(answer.body)?;
        if answer.status != 200 || body.contains("\"instructionId\"") != asks {
            bail!("{} {body}", answer.status);
        }
        if let (Some(times), true) = (times.get_mut(usize::from(asks)), number >= warm_up) {
            times.push(time);
        }
        tokio::time::sleep(REST).await;
    }
    Ok(times.map(|times| Latency::of(&times)))
}
