//! Requests that wait for a decision while the plugin that decides is replaced again and again.

use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::Args;
use serde_json::{Value, json};

use crate::child::Server;
use crate::client::Connection;
use crate::database::{Databases, Kind};
use crate::drive;
use crate::paced::{Paced, beside};
use crate::report::{Latency, Table, median, say, verdict};
use crate::request::{AWAITED, Delivery};

/// The guest's name and version, as they stand in its bytes.
pub(crate) const NAME: &str = "versioned-plugin-0000";
const VERSION: &str = "1.0.1000000";

/// What is measured.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[arg(long, value_enum, default_value = "sqlite")]
    database: Kind,
    /// Rounds; each measures a quiet run and one with activations.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Requests a second, of all clients together.
    #[arg(long, default_value_t = 200)]
    rate: u32,
    /// Seconds of each run.
    #[arg(long, default_value_t = 10)]
    seconds: u32,
    /// Versions that are activated one after another during a run.
    #[arg(long, default_value_t = 50)]
    versions: u32,
    #[arg(long, default_value_t = 200)]
    people: usize,
}

pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let databases = Databases::new(arguments.database)?;
    let server = Server::start(&databases, 0).await?;
    prepare(&server, arguments.versions).await?;
    let people = drive::people(&server, arguments.people).await?;
    let run = |seed| Paced {
        name: AWAITED,
        events: 1,
        delivery: Delivery::First,
        rate: arguments.rate,
        seed,
    };
    let wait = || async {
        tokio::time::sleep(Duration::from_secs(u64::from(arguments.seconds))).await;
        Ok(())
    };
    beside(&server, &people, &[run(0)], wait()).await?;
    let mut rounds = Vec::with_capacity(arguments.rounds);
    for round in 0..arguments.rounds {
        let seed = u64::try_from(round)? * 2 + 1;
        let (quiet, ()) = beside(&server, &people, &[run(seed)], wait()).await?;
        let swaps = swaps(&server, &arguments);
        let (swapped, ()) = beside(&server, &people, &[run(seed + 1)], swaps).await?;
        let first = |latencies: Vec<Latency>| latencies.first().copied();
        let pair = first(quiet).zip(first(swapped));
        let pair = pair.context("a latency of each")?;
        say(format_args!("round {round}: {pair:.0?}"))?;
        rounds.push(pair);
    }
    server.stop().await?;
    let middle = |value: &dyn Fn(&(Latency, Latency)) -> f64| median(rounds.iter().map(value));
    let tail = middle(&|(quiet, swapped)| swapped.p99 / quiet.p99);
    let mut table = Table::new(&["ratio", "median of rounds", "goal", ""]);
    table.row(&[
        "p99 with activations / without",
        &format!("{tail:.2}"),
        "<= 1.5",
        verdict(tail <= 1.5),
    ]);
    table.print()?;
    let mut table = Table::new(&["requests with `delivery`, every one fires", "p50", "p99"]);
    let row = |name: &str, value: &dyn Fn(&(Latency, Latency)) -> Latency| {
        let p50 = middle(&|round| value(round).p50);
        let p99 = middle(&|round| value(round).p99);
        [
            name.to_owned(),
            format!("{p50:.0} us"),
            format!("{p99:.0} us"),
        ]
    };
    table.row(&row("quiet", &|round| round.0));
    table.row(&row("with activations", &|round| round.1));
    Ok(table.print()?)
}

pub(crate) fn version(number: u32) -> String {
    format!("1.0.1{number:06}")
}

/// Uploads the versions and makes the survey that the plugin decides about.
async fn prepare(server: &Server, versions: u32) -> anyhow::Result<()> {
    let mut connection = Connection::open(server.address()).await?;
    let app = format!("/v1/apps/{}", server.access("appId")?);
    let authorization = format!("Bearer {}", server.access("adminToken")?);
    for number in 0..versions {
        let component = renamed(&version(number))?;
        let mut upload = format!(
            "POST {app}/plugins HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/wasm\r\n\
             Authorization: {authorization}\r\nContent-Length: {}\r\n\r\n",
            component.len()
        )
        .into_bytes();
        upload.extend(component);
        let answer = connection.send(&upload).await?;
        if answer.status != 201 {
            bail!("{} {}", answer.status, String::from_utf8_lossy(answer.body));
        }
    }
    activate(server, &mut connection, 0).await?;
    let question = json!({"id": "q1", "type": "nps", "title": "How was it?", "required": true});
    let survey = json!({
        "name": "Decided by a plugin", "status": "active", "mode": "triggered",
        "trigger": {"kind": "plugin", "plugin": NAME, "config": {"events": [AWAITED]}},
        "flow": {"questions": [question], "branches": [], "progressStyle": "bar", "backNavigation": false},
    });
    let headers = [("Authorization", authorization.as_str())];
    connection
        .call("POST", &format!("{app}/surveys"), &headers, &survey)
        .await?;
    Ok(())
}

/// The guest under another version.
pub(crate) fn renamed(version: &str) -> anyhow::Result<Vec<u8>> {
    let mut bytes = test_guests::VERSIONED.to_vec();
    let place = bytes
        .windows(VERSION.len())
        .position(|window| window == VERSION.as_bytes());
    let place = place.context("the guest has no version")?;
    if let Some(text) = bytes.get_mut(place..place + VERSION.len()) {
        text.copy_from_slice(version.as_bytes());
    }
    Ok(bytes)
}

async fn activate(
    server: &Server,
    connection: &mut Connection,
    number: u32,
) -> anyhow::Result<Value> {
    let path = format!(
        "/v1/apps/{}/plugins/{NAME}/activate",
        server.access("appId")?
    );
    let authorization = format!("Bearer {}", server.access("adminToken")?);
    let headers = [("Authorization", authorization.as_str())];
    let body = json!({"version": version(number)});
    connection.call("POST", &path, &headers, &body).await
}

/// Activates the versions one after another, evenly over a run.
async fn swaps(server: &Server, arguments: &Arguments) -> anyhow::Result<()> {
    let mut connection = Connection::open(server.address()).await?;
    let pause = Duration::from_secs(u64::from(arguments.seconds)) / (arguments.versions + 1);
    for number in (0..arguments.versions).rev() {
        tokio::time::sleep(pause).await;
        activate(server, &mut connection, number).await?;
    }
    Ok(())
}
