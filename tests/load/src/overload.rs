//! More clients than find a place: what is shed, how long the rest waits, and whether anything is lost.

use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use clap::Args;
use nudge_platform::clock::Clock;
use tokio::task::JoinSet;

use crate::child::Server;
use crate::client::Connection;
use crate::database::{Databases, Kind};
use crate::drive;
use crate::random::Random;
use crate::report::{Table, micros, rate, verdict};
use crate::request::{COMMON, Delivery, Request};

/// Requests that wait for a commit at the most; as many are in the writer's hand.
const QUEUE: usize = 64;
/// Requests that are worked on at the most.
const REQUESTS: usize = 64;
/// How long a request waits for a place in the queue, in milliseconds.
const QUEUE_WAIT_MS: &str = "20";

/// Requests of one client that has the server to itself.
const ALONE: usize = 300;

/// What is measured.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[arg(long, value_enum, default_value = "sqlite")]
    database: Kind,
    /// Requests of each client under overload. Whoever is refused sends the next one at once.
    #[arg(long, default_value_t = 60)]
    requests: usize,
    /// How many times as many clients send as find a place.
    #[arg(long, default_value_t = 4)]
    times: usize,
}

/// What clients were answered.
#[derive(Debug, Default)]
struct Answers {
    taken: Vec<Duration>,
    shed: Vec<Duration>,
    /// From the first request to the last answer.
    time: Duration,
}

/// What was measured.
#[derive(Debug)]
struct Measured {
    clients: usize,
    /// One client alone, before.
    alone: Answers,
    amid: Answers,
    /// One client alone, right after.
    after: Answers,
    /// Events in the database in the end.
    stored: usize,
}

pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let databases = Databases::new(arguments.database)?;
    let (queue, requests) = (QUEUE.to_string(), REQUESTS.to_string());
    let variables = [
        ("NUDGE_SERVER__MAX_REQUESTS", requests.as_str()),
        ("NUDGE_SERVER__APP_SHARE", "1.0"),
        ("NUDGE_INGEST__QUEUE_SIZE", queue.as_str()),
        ("NUDGE_INGEST__QUEUE_WAIT_MS", QUEUE_WAIT_MS),
        ("NUDGE_INGEST__POSTGRES_WRITERS", "1"),
    ];
    let server = Server::start_with(&databases, 0, &variables).await?;
    drive::furnish(&server).await?;
    let alone = send(&server, 1, ALONE, "before").await?;
    let clients = arguments.times * 2 * QUEUE;
    let amid = send(&server, clients, arguments.requests, "amid").await?;
    let after = send(&server, 1, ALONE, "after").await?;
    server.drained().await?;
    let stored = stored(&server).await?;
    server.stop().await?;
    let measured = Measured {
        clients,
        alone,
        amid,
        after,
        stored,
    };
    Ok(table(&measured).print()?)
}

fn table(measured: &Measured) -> Table {
    let Measured {
        clients,
        alone,
        amid,
        after,
        stored,
    } = measured;
    let accepted = alone.taken.len() + amid.taken.len() + after.taken.len();
    let tail = |answers: &Answers| micros(&answers.taken, 0.99) / 1e3;
    let mut table = Table::new(&["overload", "", "goal", ""]);
    let mut row = |name: &str, value: String| table.row(&[name, &value, "", ""]);
    row("clients", clients.to_string());
    row(
        "taken a second",
        format!("{:.0}", rate(amid.taken.len(), amid.time)),
    );
    row(
        "p99 of what is taken, one client alone",
        format!("{:.1} ms", tail(alone)),
    );
    row(
        "the same amid the overload",
        format!("{:.1} ms", tail(amid)),
    );
    row(
        "ratio of the two",
        format!("{:.1}", tail(amid) / tail(alone)),
    );
    row(
        "p99 of what is shed",
        format!("{:.1} ms", micros(&amid.shed, 0.99) / 1e3),
    );
    row(
        "the same alone, right after",
        format!("{:.1} ms", tail(after)),
    );
    let mut row = |name: &str, value: String, goal: &str, met: bool| {
        table.row(&[name, &value, goal, verdict(met)]);
    };
    let (taken, shed) = (amid.taken.len(), amid.shed.len());
    row("taken", taken.to_string(), "> 0", taken > 0);
    row(
        "shed, each with Retry-After",
        shed.to_string(),
        "> 0",
        shed > 0,
    );
    let late = after.shed.len();
    row("shed afterwards", late.to_string(), "0", late == 0);
    row(
        "events accepted and stored",
        format!("{accepted} and {stored}"),
        "equal",
        accepted == *stored,
    );
    table
}

/// Sends requests of one event each from so many clients, each for a person of its own.
async fn send(
    server: &Server,
    clients: usize,
    requests: usize,
    phase: &'static str,
) -> anyhow::Result<Answers> {
    let people = drive::people(server, clients).await?;
    let write_key = server.access("writeKey")?;
    let mut running = JoinSet::new();
    let began = Instant::now();
    for (number, person) in people.iter().enumerate() {
        let mut connection = Connection::open(server.address()).await?;
        let mut request = Request::new(write_key, person, COMMON, 1, Delivery::None);
        let seed = phase
            .bytes()
            .fold(number as u64, |seed, byte| (seed << 8) ^ u64::from(byte));
        running.spawn(async move {
            let (clock, mut random) = (Clock::default(), Random::new(seed));
            let mut answers = Answers::default();
            for _ in 0..requests {
                let bytes = request.renew(&mut random, clock.now());
                let started = Instant::now();
                let answer = connection.send(bytes).await?;
                let time = started.elapsed();
                match answer.status {
                    200 => answers.taken.push(time),
                    429 | 503 => {
                        let head = answer.head.to_ascii_lowercase();
                        let told = head.windows(14).any(|part| part == b"\r\nretry-after:");
                        ensure!(told, "a refusal without Retry-After");
                        answers.shed.push(time);
                    }
                    status => bail!("{status} {}", String::from_utf8_lossy(answer.body)),
                }
            }
            Ok(answers)
        });
    }
    let mut all = Answers::default();
    while let Some(done) = running.join_next().await {
        let answers = done??;
        all.taken.extend(answers.taken);
        all.shed.extend(answers.shed);
    }
    all.time = began.elapsed();
    Ok(all)
}

#[derive(nudge_db::FromRow)]
struct Stored {
    number: i64,
}

/// How many events the database has.
async fn stored(server: &Server) -> anyhow::Result<usize> {
    let mut tx = server.db().read().await?;
    let stored: Stored = tx
        .sql("SELECT count(*) AS number FROM events")
        .fetch_one()
        .await?;
    tx.rollback().await?;
    usize::try_from(stored.number).context("a count")
}
