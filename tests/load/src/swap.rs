//! Requests that wait for a decision while the plugin that decides is replaced again and again.

use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use clap::Args;
use nudge_platform::clock::Clock;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::child::Server;
use crate::client::Connection;
use crate::database::{Databases, Kind};
use crate::drive;
use crate::random::Random;
use crate::report::{Table, median, micros, say, verdict};
use crate::request::{AWAITED, Delivery, Person, Request};

const CLIENTS: usize = 8;
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
    requests(&server, &people, &arguments, 0).await?;
    let mut rounds = Vec::with_capacity(arguments.rounds);
    for round in 0..arguments.rounds {
        let seed = u64::try_from(round)? * 2 + 1;
        let quiet = requests(&server, &people, &arguments, seed).await?;
        let swaps = swaps(&server, &arguments);
        let (swapped, done) = tokio::join!(requests(&server, &people, &arguments, seed + 1), swaps);
        done?;
        let pair = (quiet, swapped?);
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

/// Latencies of a run, in microseconds.
#[derive(Clone, Copy, Debug)]
struct Latency {
    p50: f64,
    p99: f64,
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

/// Sends requests at an even rate; latencies count from when a request was to be sent.
async fn requests(
    server: &Server,
    people: &[Person],
    arguments: &Arguments,
    seed: u64,
) -> anyhow::Result<Latency> {
    let write_key = server.access("writeKey")?;
    let mut running = JoinSet::new();
    let period = Duration::from_secs(1) * u32::try_from(CLIENTS)? / arguments.rate;
    let count = (arguments.rate * arguments.seconds) as usize / CLIENTS;
    let start = Instant::now() + Duration::from_millis(50);
    for number in 0..CLIENTS {
        let own = people.iter().skip(number).step_by(CLIENTS);
        let client = Client {
            connection: Connection::open(server.address()).await?,
            requests: own
                .map(|person| Request::new(write_key, person, AWAITED, 1, Delivery::First))
                .collect(),
            random: Random::new((seed << 16) | number as u64),
            first: start + period * u32::try_from(number)? / u32::try_from(CLIENTS)?,
            period,
        };
        running.spawn(client.run(count));
    }
    let mut latencies = Vec::new();
    while let Some(done) = running.join_next().await {
        latencies.extend(done??);
    }
    Ok(Latency {
        p50: micros(&latencies, 0.5),
        p99: micros(&latencies, 0.99),
    })
}

struct Client {
    connection: Connection,
    requests: Vec<Request>,
    random: Random,
    first: Instant,
    period: Duration,
}

impl Client {
    async fn run(mut self, count: usize) -> anyhow::Result<Vec<Duration>> {
        let clock = Clock::default();
        let people = self.requests.len();
        let mut latencies = Vec::with_capacity(count);
        let mut due = self.first;
        for number in 0..count {
            let request = self.requests.get_mut(number % people);
            let request = request.context("nobody to send for")?;
            tokio::time::sleep_until(due.into()).await;
            let bytes = request.renew(&mut self.random, clock.now());
            let answer = self.connection.send(bytes).await?;
            latencies.push(due.elapsed());
            let body = std::str::from_utf8(answer.body)?;
            if answer.status != 200 || body.matches("\"instructionId\"").count() != 1 {
                bail!("{} {body}", answer.status);
            }
            due += self.period;
        }
        Ok(latencies)
    }
}
