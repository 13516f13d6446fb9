//! What event definitions cost: the same events without a definition, under one that they match, and under one that
//! all of them break.

use std::time::Instant;

use anyhow::{Context as _, bail};
use clap::Args;
use nudge_platform::clock::Clock;
use serde_json::{Map, Value, json};

use crate::child::Server;
use crate::client::Connection;
use crate::database::{Databases, Kind};
use crate::drive::{self, Load};
use crate::random::Random;
use crate::report::{Table, median, micros, rate, say, verdict};
use crate::request::{COMMON, Delivery, Request};

/// Properties of an event and of its definition.
const PROPERTIES: usize = 20;
/// Clients that send at the same time, and the events of each of their requests.
const MANY: (usize, usize) = (64, 20);
/// An event that has no definition.
const UNDECLARED: &str = "product_looked_at";

/// What is measured.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[arg(long, value_enum, default_value = "sqlite")]
    database: Kind,
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Requests of each sort a round; the sorts take turns request by request.
    #[arg(long, default_value_t = 100)]
    requests: usize,
    /// Events of a request.
    #[arg(long, default_value_t = 500)]
    events: usize,
    /// Requests of a round that many clients send.
    #[arg(long, default_value_t = 3_200)]
    many: usize,
    #[arg(long, default_value_t = 200)]
    people: usize,
}

/// A name, and how many events of a request under it are accepted.
struct Sort {
    name: &'static str,
    accepted: bool,
}

const SORTS: [Sort; 3] = [
    Sort {
        name: "plain",
        accepted: true,
    },
    Sort {
        name: "valid",
        accepted: true,
    },
    Sort {
        name: "wrong",
        accepted: false,
    },
];

/// Medians of one round.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    /// Microseconds of a request of each sort.
    latencies: [f64; 3],
    /// The server's processor time for them, in microseconds, until they are processed.
    cpu: [f64; 3],
    /// Events a second of many clients, without a definition and with one.
    rates: [f64; 2],
}

pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let databases = Databases::new(arguments.database)?;
    let mut rounds = Vec::with_capacity(arguments.rounds);
    for round in 0..arguments.rounds {
        let server = Server::start(&databases, 0).await?;
        let (latencies, cpu) = latencies(&server, &arguments).await?;
        let measured = Round {
            latencies,
            cpu,
            rates: many(&server, &arguments).await?,
        };
        server.stop().await?;
        say(format_args!("round {round}: {measured:.0?}"))?;
        rounds.push(measured);
    }
    compare(&rounds)?;
    list(&rounds, arguments.events)
}

/// The median of something that rounds have measured.
fn middle(rounds: &[Round], value: impl Fn(&Round) -> f64) -> f64 {
    median(rounds.iter().map(value))
}

/// Prints ratios.
fn compare(rounds: &[Round]) -> anyhow::Result<()> {
    let share = middle(rounds, |round| {
        let [plain, valid, _] = round.latencies;
        (valid - plain) / valid
    });
    let cpu_share = middle(rounds, |round| {
        let [plain, valid, _] = round.cpu;
        (valid - plain) / valid
    });
    let wrong_cpu = middle(rounds, |round| {
        let [_, valid, wrong] = round.cpu;
        wrong / valid
    });
    let wrong = middle(rounds, |round| {
        let [_, valid, wrong] = round.latencies;
        wrong / valid
    });
    let declared = middle(rounds, |round| {
        let [plain, valid] = round.rates;
        valid / plain
    });
    let mut table = Table::new(&["ratio", "median of rounds", "goal", ""]);
    table.row(&[
        "validation, of a request of 500 events with 20 properties",
        &format!("{share:.2}"),
        "<= 0.25",
        verdict(share <= 0.25),
    ]);
    table.row(&[
        "request whose events all break their definition / all match",
        &format!("{wrong:.2}"),
        "<= 2",
        verdict(wrong <= 2.0),
    ]);
    table.row(&[
        "validation, of the processor time of such a request until it is processed",
        &format!("{cpu_share:.2}"),
        "",
        "",
    ]);
    table.row(&[
        "processor time, all break their definition / all match",
        &format!("{wrong_cpu:.2}"),
        "",
        "",
    ]);
    table.row(&[
        "64 clients x 20 events a second, with a definition / without",
        &format!("{declared:.2}"),
        "",
        "",
    ]);
    Ok(table.print()?)
}

/// Prints what the ratios are of.
fn list(rounds: &[Round], events: usize) -> anyhow::Result<()> {
    let mut table = Table::new(&["measurement", "median"]);
    for (place, sort) in SORTS.iter().enumerate() {
        let of = |round: &Round| round.latencies.get(place).copied().unwrap_or(f64::NAN);
        table.row(&[
            format!("request of {events} events, {}, p50", sort.name),
            format!("{:.0} us", middle(rounds, of)),
        ]);
        let of = |round: &Round| round.cpu.get(place).copied().unwrap_or(f64::NAN);
        table.row(&[
            format!("the server's processor time, {}", sort.name),
            format!("{:.0} us", middle(rounds, of)),
        ]);
    }
    Ok(table.print()?)
}

/// Properties that all definitions are about.
fn properties() -> Value {
    let property = |number: usize| {
        let value = match number % 3 {
            0 => json!(format!("value {number}")),
            1 => json!(number),
            _ => json!(true),
        };
        (format!("property_{number:02}"), value)
    };
    Value::Object(
        (0..PROPERTIES)
            .map(property)
            .collect::<Map<String, Value>>(),
    )
}

/// A definition of [`properties`]; `wrong` ones ask for another type of one of them.
fn definition(name: &str, wrong: bool) -> Value {
    let property = |number: usize| {
        let kind = match number % 3 {
            0 => "string",
            1 if wrong && number == 10 => "boolean",
            1 => "number",
            _ => "boolean",
        };
        json!({"name": format!("property_{number:02}"), "type": kind, "required": true})
    };
    let properties: Vec<Value> = (0..PROPERTIES).map(property).collect();
    json!({"name": name, "properties": properties})
}

/// One client with large requests of each sort in turn.
async fn latencies(server: &Server, arguments: &Arguments) -> anyhow::Result<([f64; 3], [f64; 3])> {
    drive::manage(server, "event-definitions", &definition("valid", false)).await?;
    drive::manage(server, "event-definitions", &definition("wrong", true)).await?;
    let people = drive::people(server, arguments.people).await?;
    let write_key = server.access("writeKey")?;
    let mut connection = Connection::open(server.address()).await?;
    let mut random = Random::new(11);
    let clock = Clock::default();
    let properties = properties().to_string();
    let mut times = [Vec::new(), Vec::new(), Vec::new()];
    let mut cpu = [Vec::new(), Vec::new(), Vec::new()];
    let warm_up = 10;
    for number in 0..arguments.requests + warm_up {
        let person = people.get(number % people.len()).context("somebody")?;
        for ((sort, times), cpu) in SORTS.iter().zip(&mut times).zip(&mut cpu) {
            let (events, delivery) = (arguments.events, Delivery::None);
            let mut request = Request::with_properties(
                write_key,
                person,
                sort.name,
                events,
                delivery,
                &properties,
            );
            let bytes = request.renew(&mut random, clock.now());
            let used = server.threads_cpu()?;
            let started = Instant::now();
            let answer = connection.send(bytes).await?;
            let time = started.elapsed();
            let accepted = if sort.accepted { arguments.events } else { 0 };
            let expected = format!("\"accepted\":{accepted},");
            let body = std::str::from_utf8(answer.body)?;
            if answer.status != 200 || !body.contains(&expected) {
                bail!("{} {}", answer.status, body.get(..500).unwrap_or(body));
            }
            // What the pipeline has in hand would fall on the next sort.
            server.drained().await?;
            if number >= warm_up {
                times.push(time);
                cpu.push(server.threads_cpu()?.saturating_sub(used));
            }
        }
    }
    Ok((
        times.map(|times| micros(&times, 0.5)),
        cpu.map(|times| micros(&times, 0.5)),
    ))
}

/// Many clients with small requests, without a definition and with one.
async fn many(server: &Server, arguments: &Arguments) -> anyhow::Result<[f64; 2]> {
    drive::furnish(server).await?;
    let people = drive::people(server, arguments.people).await?;
    let (clients, events) = MANY;
    let mut rates = [0.0; 2];
    for (name, rate_of) in [UNDECLARED, COMMON].into_iter().zip(&mut rates) {
        let load = Load {
            name,
            clients,
            requests: arguments.many,
            events,
            delivery: Delivery::None,
            seed: 5,
        };
        let warm_up = Load {
            requests: clients * 4,
            seed: 105,
            ..load
        };
        drive::run(server, &people, warm_up).await?;
        let outcome = drive::run(server, &people, load).await?;
        *rate_of = rate(load.requests * events, outcome.time);
    }
    Ok(rates)
}
