//! Open polls: what they cost the server while nothing happens, and how soon an instruction wakes its own.

use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use clap::Args;
use nudge_platform::clock::Clock;
use tokio::task::JoinSet;

use crate::child::Server;
use crate::client::{self, Connection};
use crate::database::{Databases, Kind};
use crate::drive;
use crate::random::Random;
use crate::report::{Table, micros, say, verdict};
use crate::request::{AWAITED, Delivery, Person, Request};

/// The memory that all open polls may take together.
const MOST_BYTES: u64 = 200 << 20;
/// How long the server is watched while nothing happens.
const QUIET: Duration = Duration::from_secs(5);

/// What is measured.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[arg(long, value_enum, default_value = "sqlite")]
    database: Kind,
    /// Polls that are open at once, each of a person and a connection of its own.
    #[arg(long, default_value_t = 2_000)]
    polls: usize,
    /// So many of them are woken, one after another.
    #[arg(long, default_value_t = 300)]
    woken: usize,
}

/// What a poll was answered with.
struct Answered {
    number: usize,
    at: Instant,
    instructions: usize,
}

pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let databases = Databases::new(arguments.database)?;
    let server = Server::start(&databases, 0).await?;
    drive::furnish(&server).await?;
    let people = drive::people(&server, arguments.polls).await?;
    let before = server.memory()?;
    let mut open = JoinSet::new();
    for (number, person) in people.iter().enumerate() {
        let connection = Connection::open(server.address()).await?;
        open.spawn(poll(connection, request(&server, person)?, number));
    }
    tokio::time::sleep(QUIET).await;
    let during = server.memory()?;
    let cpu = server.process().cpu()?;
    tokio::time::sleep(QUIET).await;
    let quiet = server.process().cpu()?.saturating_sub(cpu);
    say(format_args!(
        "{} polls are open: {} KiB before, {} KiB now",
        open.len(),
        before >> 10,
        during >> 10
    ))?;

    let (mut latencies, mut others) = (Vec::new(), 0);
    let write_key = server.access("writeKey")?;
    let mut connection = Connection::open(server.address()).await?;
    let mut random = Random::new(7);
    let clock = Clock::default();
    for number in 0..arguments.woken.min(arguments.polls) {
        let person = people.get(number).context("somebody")?;
        let mut event = Request::new(write_key, person, AWAITED, 1, Delivery::None);
        let sent = Instant::now();
        let answer = connection
            .send(event.renew(&mut random, clock.now()))
            .await?;
        if answer.status != 200 {
            bail!("{}", String::from_utf8_lossy(answer.body));
        }
        let answered = open.join_next().await.context("a poll")???;
        if answered.number == number && answered.instructions == 1 {
            latencies.push(answered.at.saturating_duration_since(sent));
        } else {
            others += 1;
        }
    }
    open.shutdown().await;
    server.stop().await?;
    report(
        &arguments,
        during.saturating_sub(before),
        quiet,
        &latencies,
        others,
    )
}

#[expect(clippy::cast_precision_loss, reason = "counts of a benchmark")]
fn report(
    arguments: &Arguments,
    bytes: u64,
    quiet: Duration,
    latencies: &[Duration],
    others: usize,
) -> anyhow::Result<()> {
    let mut table = Table::new(&["", "measured", "goal", ""]);
    table.row(&[
        format!("memory of {} open polls", arguments.polls),
        format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20)),
        "<= 200 MiB".to_owned(),
        verdict(bytes <= MOST_BYTES).to_owned(),
    ]);
    table.row(&[
        "memory of one".to_owned(),
        format!("{:.1} KiB", bytes as f64 / 1024.0 / arguments.polls as f64),
        String::new(),
        String::new(),
    ]);
    table.row(&[
        "processor time while nothing happens".to_owned(),
        format!("{:.1} %", quiet.as_secs_f64() / QUIET.as_secs_f64() * 100.0),
        String::new(),
        String::new(),
    ]);
    table.row(&[
        "woken by an instruction of somebody else, or by none".to_owned(),
        others.to_string(),
        "0".to_owned(),
        verdict(others == 0).to_owned(),
    ]);
    for (name, part) in [("p50", 0.5), ("p99", 0.99)] {
        table.row(&[
            format!("from the event to the answer of its poll, {name}"),
            format!("{:.1} ms", micros(latencies, part) / 1e3),
            String::new(),
            String::new(),
        ]);
    }
    Ok(table.print()?)
}

fn request(server: &Server, person: &Person) -> anyhow::Result<Vec<u8>> {
    let authorization = format!("Bearer {}", server.access("writeKey")?);
    let headers = [
        ("Authorization", authorization.as_str()),
        ("X-Service-Subject-Token", person.token.as_str()),
    ];
    Ok(client::request(
        "GET",
        "/v1/sdk/instructions?wait=25",
        &headers,
        "",
    ))
}

/// Polls until there is something.
async fn poll(
    mut connection: Connection,
    request: Vec<u8>,
    number: usize,
) -> anyhow::Result<Answered> {
    loop {
        let answer = connection.send(&request).await?;
        let body = std::str::from_utf8(answer.body)?;
        if answer.status != 200 {
            bail!("{} {body}", answer.status);
        }
        let instructions = body.matches("\"instructionId\"").count();
        if instructions > 0 {
            return Ok(Answered {
                number,
                at: Instant::now(),
                instructions,
            });
        }
    }
}
