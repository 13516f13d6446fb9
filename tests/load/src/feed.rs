//! What it costs to see events: the index of the feed, its pages among many events, clients that listen, and a list as
//! CSV.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::Args;
use nudge_platform::clock::{Clock, to_text};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::child::Server;
use crate::client::{self, Connection};
use crate::database::{Databases, Kind};
use crate::drive::{self, Load};
use crate::fill::Filler;
use crate::people::{ask, row};
use crate::report::{Table, median, say};
use crate::request::{COMMON, Delivery, Person};

const WARM_UP: usize = 20;
const LISTENERS: usize = 19;

/// What is measured.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[arg(long, value_enum, default_value = "sqlite")]
    database: Kind,
    #[arg(long, default_value_t = 10_000_000)]
    events: usize,
    /// People, who are rows of the CSV.
    #[arg(long, default_value_t = 1_000_000)]
    users: usize,
    /// Requests of each kind of page.
    #[arg(long, default_value_t = 300)]
    requests: usize,
    /// Rounds of what is compared.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
}

pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let databases = Databases::new(arguments.database)?;
    index(&databases, arguments.rounds).await?;
    listeners(&databases, arguments.rounds).await?;
    let server = Server::start(&databases, 0).await?;
    let mut filler = Filler::new(&server)?;
    filler.people(arguments.users).await?;
    csv(&server, arguments.users).await?;
    let aliases = filler.aliases().await?;
    filler.events(arguments.events, aliases).await?;
    filler.settle().await?;
    say(format_args!("{} events", arguments.events))?;
    pages(&server, arguments.requests).await?;
    server.stop().await
}

fn load(round: usize) -> Load {
    Load {
        name: COMMON,
        clients: 16,
        requests: 800,
        events: 20,
        delivery: Delivery::None,
        seed: 10 + round as u64,
    }
}

/// Processor time of the server and time, for a load.
#[derive(Clone, Copy, Debug)]
struct Cost {
    cpu: f64,
    wall: f64,
}

async fn cost(server: &Server, people: &[Person], load: Load) -> anyhow::Result<Cost> {
    let outcome = drive::run(server, people, load).await?;
    Ok(Cost {
        cpu: outcome.cpu.as_secs_f64(),
        wall: outcome.processed.as_secs_f64(),
    })
}

fn ratios(table: &mut Table, name: &str, rounds: &[(Cost, Cost)]) {
    let middle = |ratio: fn(&(Cost, Cost)) -> f64| median(rounds.iter().map(ratio));
    table.row(&[
        name.to_owned(),
        format!("{:.2}", middle(|(one, other)| one.cpu / other.cpu)),
        format!("{:.2}", middle(|(one, other)| one.wall / other.wall)),
    ]);
}

/// Compares events of a server with those of one whose database lacks the feed's index.
async fn index(databases: &Databases, rounds: usize) -> anyhow::Result<()> {
    let mut sides = Vec::new();
    for is_kept in [true, false] {
        let server = Server::start(databases, 0).await?;
        drive::furnish(&server).await?;
        if !is_kept {
            let mut tx = server.db().write().await?;
            tx.sql("DROP INDEX events_of_app").execute().await?;
            tx.commit().await?;
        }
        let people = drive::people(&server, 256).await?;
        cost(&server, &people, load(0)).await?;
        sides.push((server, people));
    }
    let [(with, with_people), (without, without_people)] = &sides[..] else {
        anyhow::bail!("two servers");
    };
    let mut found = Vec::with_capacity(rounds);
    for round in 1..=rounds {
        // Whoever goes first takes turns.
        let pair = if round % 2 == 0 {
            let plain = cost(without, without_people, load(round)).await?;
            (cost(with, with_people, load(round)).await?, plain)
        } else {
            let indexed = cost(with, with_people, load(round)).await?;
            (indexed, cost(without, without_people, load(round)).await?)
        };
        found.push(pair);
    }
    let mut table = Table::new(&["requests of 20 events", "processor time", "time"]);
    ratios(&mut table, "with the feed's index / without", &found);
    table.print()?;
    for (server, _) in sides {
        server.stop().await?;
    }
    Ok(())
}

/// A client of the stream that reads all that it gets, and counts it.
struct Listener {
    heard: Arc<AtomicUsize>,
    reading: JoinSet<std::io::Result<()>>,
}

async fn subscribe(server: &Server) -> anyhow::Result<TcpStream> {
    let path = format!("/v1/apps/{}/events/stream", server.access("appId")?);
    let token = format!("Bearer {}", server.access("viewerToken")?);
    let mut stream = TcpStream::connect(server.address()).await?;
    let request = client::request("GET", &path, &[("Authorization", &token)], "");
    stream.write_all(&request).await?;
    let mut begin = [0; 12];
    stream.read_exact(&mut begin).await?;
    anyhow::ensure!(begin.ends_with(b" 200"), "a stream that is refused");
    Ok(stream)
}

impl Listener {
    async fn new(server: &Server) -> anyhow::Result<Self> {
        let mut stream = subscribe(server).await?;
        let heard = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&heard);
        let mut reading = JoinSet::new();
        reading.spawn(async move {
            let mut text = Vec::new();
            while stream.read_buf(&mut text).await? > 0 {
                let end = text.iter().rposition(|byte| *byte == b'\n').unwrap_or(0);
                let lines: Vec<u8> = text.drain(..end).collect();
                let lines = lines.split(|byte| *byte == b'\n');
                let events = lines.filter(|line| *line == b"event: event").count();
                counted.fetch_add(events, Ordering::Relaxed);
            }
            Ok(())
        });
        Ok(Self { heard, reading })
    }

    /// Stops listening, and says how many events came.
    fn end(mut self) -> usize {
        self.reading.abort_all();
        self.heard.load(Ordering::Relaxed)
    }
}

/// Compares events that nobody listens to with those that clients listen to, one of which reads nothing.
async fn listeners(databases: &Databases, rounds: usize) -> anyhow::Result<()> {
    let server = Server::start(databases, 0).await?;
    drive::furnish(&server).await?;
    let people = drive::people(&server, 256).await?;
    cost(&server, &people, load(0)).await?;
    let (mut with_one, mut with_all, mut beside) = (Vec::new(), Vec::new(), Vec::new());
    for round in 1..=rounds {
        let none = cost(&server, &people, load(3 * round)).await?;
        let one = Listener::new(&server).await?;
        with_one.push((cost(&server, &people, load(3 * round + 1)).await?, none));
        let stalled = subscribe(&server).await?;
        let mut others = vec![one];
        while others.len() < LISTENERS {
            others.push(Listener::new(&server).await?);
        }
        with_all.push((cost(&server, &people, load(3 * round + 2)).await?, none));
        for listener in others {
            beside.push(listener.end());
        }
        drop(stalled);
    }
    let mut table = Table::new(&["requests of 20 events", "processor time", "time"]);
    ratios(&mut table, "one listens / nobody does", &with_one);
    let name = format!("{LISTENERS} listen and one does not read / nobody does");
    ratios(&mut table, &name, &with_all);
    table.print()?;
    let least = beside.iter().min().copied().unwrap_or_default();
    say(format_args!("who reads got {least} events at the least"))?;
    server.stop().await
}

async fn pages(server: &Server, requests: usize) -> anyhow::Result<()> {
    let events = format!("/v1/apps/{}/events", server.access("appId")?);
    let token = format!("Bearer {}", server.access("viewerToken")?);
    let now = Clock::default().now();
    let days = |days: u64| to_text(now.minus(Duration::from_hours(24 * days)));
    let questions = [
        ("first page of 50", events.clone()),
        ("first page of 500", format!("{events}?limit=500")),
        ("one name", format!("{events}?name=event_name_07")),
        (
            "all names but one",
            format!("{events}?excludeName=event_name_07"),
        ),
        (
            "a day a month ago",
            format!("{events}?from={}&to={}", days(31), days(30)),
        ),
        (
            "one name, a day a month ago",
            format!(
                "{events}?name=event_name_07&from={}&to={}",
                days(31),
                days(30)
            ),
        ),
        ("a name that no event has", format!("{events}?name=nothing")),
        ("rejected ones", format!("{events}?verdict=rejected")),
    ];
    let mut connection = Connection::open(server.address()).await?;
    let mut table = Table::new(&["page of the feed", "p50", "p99"]);
    for (name, path) in &questions {
        let mut latencies = Vec::with_capacity(requests);
        for number in 0..WARM_UP + requests {
            let latency = ask(&mut connection, path, &token).await?.0;
            if number >= WARM_UP {
                latencies.push(latency);
            }
        }
        row(&mut table, name, &latencies);
    }
    let (mut path, mut latencies) = (events.clone(), Vec::new());
    while latencies.len() < requests {
        let (latency, page) = ask(&mut connection, &path, &token).await?;
        latencies.push(latency);
        let cursor = page.pointer("/data/nextCursor").and_then(Value::as_str);
        let Some(cursor) = cursor else { break };
        path = format!("{events}?cursor={cursor}");
    }
    row(&mut table, "one page of 50 after the other", &latencies);
    Ok(table.print()?)
}

/// Reads everybody as CSV, and looks at the server's memory meanwhile.
#[expect(clippy::cast_precision_loss, reason = "bytes for a table")]
async fn csv(server: &Server, users: usize) -> anyhow::Result<()> {
    let mut table = Table::new(&[
        "everybody as CSV",
        "rows",
        "bytes",
        "time",
        "most memory, before and meanwhile",
    ]);
    for (name, query) in [("a tenth", "?q=person-1"), ("all", "")] {
        let url = format!(
            "http://{}/v1/apps/{}/users{query}",
            server.address(),
            server.access("appId")?
        );
        let http = reqwest::Client::builder().build()?;
        server.reset_peak()?;
        let (before, started) = (server.peak()?, Instant::now());
        let mut answer = http
            .get(url)
            .bearer_auth(server.access("viewerToken")?)
            .header("Accept", "text/csv")
            .send()
            .await?
            .error_for_status()?;
        let (mut bytes, mut lines) = (0, 0_usize);
        while let Some(chunk) = answer.chunk().await? {
            bytes += chunk.len();
            lines += chunk.split(|byte| *byte == b'\n').count() - 1;
        }
        let rows = lines.checked_sub(1).context("no header line")?;
        anyhow::ensure!(!query.is_empty() || rows >= users, "{rows} rows");
        let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        table.row(&[
            name.to_owned(),
            rows.to_string(),
            bytes.to_string(),
            format!("{:.1?}", started.elapsed()),
            format!("{:.1} and {:.1} MiB", mib(before), mib(server.peak()?)),
        ]);
    }
    Ok(table.print()?)
}
