//! What it costs to find people among many, and to read their timelines.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::Args;
use serde_json::Value;

use crate::child::Server;
use crate::client::{self, Connection};
use crate::database::{Databases, Kind};
use crate::fill::{Filler, NAMES};
use crate::report::{Table, micros, say};

/// Events of the one person who has many.
const LONG_HISTORY: usize = 100_000;
const WARM_UP: usize = 20;

/// What is measured.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[arg(long, value_enum, default_value = "sqlite")]
    database: Kind,
    #[arg(long, default_value_t = 1_000_000)]
    users: usize,
    #[arg(long, default_value_t = 10_000_000)]
    events: usize,
    /// Requests of each kind.
    #[arg(long, default_value_t = 300)]
    requests: usize,
}

pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let databases = Databases::new(arguments.database)?;
    let server = Server::start(&databases, 0).await?;
    let mut filler = Filler::new(&server)?;
    let started = Instant::now();
    filler.people(arguments.users).await?;
    let aliases = filler.aliases().await?;
    say(format_args!(
        "{} people after {:.0?}",
        arguments.users,
        started.elapsed()
    ))?;
    filler.events(arguments.events, aliases).await?;
    filler.events(LONG_HISTORY, (aliases.0, aliases.0)).await?;
    filler.settle().await?;
    say(format_args!(
        "{} events after {:.0?}",
        arguments.events,
        started.elapsed()
    ))?;
    measure(&server, &arguments).await?;
    server.stop().await
}

/// What is asked for: a name for the table, and the path of a request by its number.
type Question<'a> = (&'static str, Box<dyn Fn(u64) -> String + Send + Sync + 'a>);

fn questions(users: &str, people: u64) -> Vec<Question<'_>> {
    let somebody = move |number: u64| number.wrapping_mul(0x9e37_79b9_7f4a_7c15) % people;
    vec![
        (
            "list, first page of 50",
            Box::new(move |_| users.to_owned()),
        ),
        (
            "list, first page of 200",
            Box::new(move |_| format!("{users}?limit=200")),
        ),
        (
            "search by a whole name",
            Box::new(move |number| format!("{users}?q=person-{}", somebody(number))),
        ),
        (
            "search by a common beginning",
            Box::new(move |_| format!("{users}?q=person-")),
        ),
        (
            "search by a rare part of a value",
            Box::new(move |number| format!("{users}?q=pany%20{}%20g", somebody(number) % 100_000)),
        ),
        (
            "search by a common part of a value",
            Box::new(move |_| format!("{users}?q=fession")),
        ),
        (
            "profile",
            Box::new(move |number| format!("{users}/person-{}", somebody(number))),
        ),
        (
            "timeline",
            Box::new(move |number| format!("{users}/person-{}/events", somebody(number))),
        ),
        (
            "timeline of 100,000 events",
            Box::new(move |_| format!("{users}/person-0/events?limit=500")),
        ),
        (
            "timeline of 100,000 events, by name",
            Box::new(move |number| {
                format!(
                    "{users}/person-0/events?name=event_name_{:02}",
                    number % NAMES
                )
            }),
        ),
    ]
}

async fn measure(server: &Server, arguments: &Arguments) -> anyhow::Result<()> {
    let users = format!("/v1/apps/{}/users", server.access("appId")?);
    let people = u64::try_from(arguments.users)?.max(1);
    let token = format!("Bearer {}", server.access("viewerToken")?);
    let mut connection = Connection::open(server.address()).await?;
    let mut table = Table::new(&["request", "p50", "p99"]);
    for (name, path) in &questions(&users, people) {
        let mut latencies = Vec::with_capacity(arguments.requests);
        for number in 0..WARM_UP + arguments.requests {
            let path = path(u64::try_from(number)?);
            let latency = ask(&mut connection, &path, &token).await?.0;
            if number >= WARM_UP {
                latencies.push(latency);
            }
        }
        row(&mut table, name, &latencies);
    }
    let latencies = walk(&mut connection, &users, &token, arguments.requests).await?;
    row(
        &mut table,
        "list, one page of 50 after the other",
        &latencies,
    );
    Ok(table.print()?)
}

pub(crate) fn row(table: &mut Table, name: &str, latencies: &[Duration]) {
    let millis = |part| format!("{:.2} ms", micros(latencies, part) / 1_000.0);
    table.row(&[name.to_owned(), millis(0.5), millis(0.99)]);
}

/// Follows the list from page to page.
async fn walk(
    connection: &mut Connection,
    users: &str,
    token: &str,
    pages: usize,
) -> anyhow::Result<Vec<Duration>> {
    let mut path = users.to_owned();
    let mut latencies = Vec::with_capacity(pages);
    while latencies.len() < pages {
        let (latency, page) = ask(connection, &path, token).await?;
        latencies.push(latency);
        let cursor = page.pointer("/data/nextCursor").and_then(Value::as_str);
        let Some(cursor) = cursor else { break };
        path = format!("{users}?cursor={cursor}");
    }
    Ok(latencies)
}

pub(crate) async fn ask(
    connection: &mut Connection,
    path: &str,
    token: &str,
) -> anyhow::Result<(Duration, Value)> {
    let request = client::request("GET", path, &[("Authorization", token)], "");
    let started = Instant::now();
    let answer = connection.send(&request).await?;
    let latency = started.elapsed();
    anyhow::ensure!(answer.status == 200, "{path}: {}", answer.status);
    let page = serde_json::from_slice(answer.body).with_context(|| path.to_owned())?;
    Ok((latency, page))
}
