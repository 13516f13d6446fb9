//! More clients than find a place: what is shed, how long the rest waits, and whether anything is lost.

use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use clap::Args;
use nudge::clock::Clock;
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
/// How long a request waits for a place among them, in milliseconds.
const QUEUE_WAIT_MS: &str = "20";

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
}

pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let databases = Databases::new(arguments.database)?;
    let queue = QUEUE.to_string();
    let variables = [
        ("NUDGE_INGEST__QUEUE_SIZE", queue.as_str()),
        ("NUDGE_INGEST__QUEUE_WAIT_MS", QUEUE_WAIT_MS),
        ("NUDGE_INGEST__POSTGRES_WRITERS", "1"),
    ];
    let server = Server::start_with(&databases, 0, &variables).await?;
    drive::furnish(&server).await?;

    let alone = send(&server, 1, 300, "before").await?;
    let clients = arguments.times * 2 * QUEUE;
    let started = Instant::now();
    let overload = send(&server, clients, arguments.requests, "amid").await?;
    let time = started.elapsed();
    let after = send(&server, 1, 300, "after").await?;
    server.drained().await?;
    let taken = alone.taken.len() + overload.taken.len() + after.taken.len();
    let stored = stored(&server).await?;
    server.stop().await?;

    let tail = |answers: &Answers| micros(&answers.taken, 0.99);
    let mut table = Table::new(&["overload", "", "goal", ""]);
    let mut row = |name: &str, value: String, goal: &str, met: Option<bool>| {
        table.row(&[name, &value, goal, met.map_or("", verdict)]);
    };
    row("clients", clients.to_string(), "", None);
    row(
        "taken",
        overload.taken.len().to_string(),
        "> 0",
        Some(!overload.taken.is_empty()),
    );
    row(
        "shed, each with Retry-After",
        overload.shed.len().to_string(),
        "> 0",
        Some(!overload.shed.is_empty()),
    );
    row(
        "taken a second",
        format!("{:.0}", rate(overload.taken.len(), time)),
        "",
        None,
    );
    row(
        "p99 of what is taken, one client alone",
        format!("{:.1} ms", tail(&alone) / 1e3),
        "",
        None,
    );
    row(
        "the same amid the overload",
        format!("{:.1} ms", tail(&overload) / 1e3),
        "",
        None,
    );
    row(
        "ratio of the two",
        format!("{:.1}", tail(&overload) / tail(&alone)),
        "",
        None,
    );
    row(
        "the same alone, right after",
        format!("{:.1} ms", tail(&after) / 1e3),
        "",
        None,
    );
    row(
        "shed afterwards",
        after.shed.len().to_string(),
        "0",
        Some(after.shed.is_empty()),
    );
    row(
        "events accepted and stored",
        format!("{taken} and {stored}"),
        "equal",
        Some(taken == stored),
    );
    Ok(table.print()?)
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
    Ok(all)
}

#[derive(sqlx::FromRow)]
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
