//! What it costs to replay many dead letters, and what events notice of it.

use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use clap::Args;
use nudge_platform::clock::Clock;
use serde_json::{Value, json};

use crate::child::Server;
use crate::client::Connection;
use crate::database::{Databases, Kind};
use crate::drive;
use crate::random::Random;
use crate::report::{Table, median, micros, rate, say, verdict};
use crate::request::{COMMON, Delivery, Person, Request};

/// Events of a request.
const EVENTS: usize = 500;
/// Between two looks at the job; a request with one event is sent each time.
const PAUSE: Duration = Duration::from_millis(20);
/// How long a job may take.
const PATIENCE: Duration = Duration::from_mins(10);
/// What the server may take more while it replays, in bytes.
const MOST_MEMORY: u64 = 32 << 20;

/// What is measured.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[arg(long, value_enum, default_value = "sqlite")]
    database: Kind,
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Letters that a job replays.
    #[arg(long, default_value_t = 10_000)]
    letters: usize,
    #[arg(long, default_value_t = 200)]
    people: usize,
}

/// What a round has measured.
#[derive(Clone, Copy, Debug)]
struct Round {
    /// From the request until the job has ended.
    time: Duration,
    /// Until the pipeline has processed the events, too.
    processed: Duration,
    /// What the server took more than before, at the most, in bytes.
    memory: u64,
    /// Half of the requests that were sent meanwhile took less, in microseconds.
    beside: f64,
}

pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let databases = Databases::new(arguments.database)?;
    let mut rounds = Vec::with_capacity(arguments.rounds);
    for number in 0..arguments.rounds {
        let server = Server::start(&databases, 0).await?;
        let round = measure(&server, &arguments).await?;
        server.stop().await?;
        say(format_args!("round {number}: {round:?}"))?;
        rounds.push(round);
    }
    let middle = |value: &dyn Fn(&Round) -> f64| median(rounds.iter().map(value));
    #[expect(
        clippy::cast_precision_loss,
        reason = "megabytes are shown without decimals"
    )]
    let memory = middle(&|round| round.memory as f64);
    let mut table = Table::new(&["measurement", "median of rounds", "goal", ""]);
    table.row(&[
        format!("replaying {} letters", arguments.letters),
        format!("{:.1} s", middle(&|round| round.time.as_secs_f64())),
        String::new(),
        String::new(),
    ]);
    table.row(&[
        "letters a second".to_owned(),
        format!(
            "{:.0}",
            middle(&|round| rate(arguments.letters, round.time))
        ),
        String::new(),
        String::new(),
    ]);
    table.row(&[
        "the same, until the pipeline has processed them".to_owned(),
        format!("{:.1} s", middle(&|round| round.processed.as_secs_f64())),
        String::new(),
        String::new(),
    ]);
    table.row(&[
        "memory that the server took meanwhile".to_owned(),
        format!("{:.0} MiB", memory / f64::from(1 << 20)),
        format!("<= {} MiB", MOST_MEMORY >> 20),
        verdict(rounds.iter().all(|round| round.memory <= MOST_MEMORY)).to_owned(),
    ]);
    table.row(&[
        "a request of one event meanwhile, p50".to_owned(),
        format!("{:.0} us", middle(&|round| round.beside)),
        String::new(),
        String::new(),
    ]);
    Ok(table.print()?)
}

/// Sends so many events, every one of which lacks what the definition asks for.
async fn break_events(
    server: &Server,
    connection: &mut Connection,
    people: &[Person],
    letters: usize,
) -> anyhow::Result<()> {
    let wrong = r#"{"sku":"A-1029-XL","note":"without a price"}"#;
    let (mut random, clock) = (Random::new(13), Clock::default());
    for number in 0..letters.div_ceil(EVENTS) {
        let person = people.get(number % people.len()).context("somebody")?;
        let events = EVENTS.min(letters - number * EVENTS);
        let key = server.access("writeKey")?;
        let mut request =
            Request::with_properties(key, person, COMMON, events, Delivery::None, wrong);
        let bytes = request.renew(&mut random, clock.now());
        let answer = connection.send(bytes).await?;
        ensure!(answer.status == 200, "{}", answer.status);
    }
    server.drained().await
}

async fn measure(server: &Server, arguments: &Arguments) -> anyhow::Result<Round> {
    drive::furnish(server).await?;
    let people = drive::people(server, arguments.people).await?;
    let write_key = server.access("writeKey")?;
    let mut connection = Connection::open(server.address()).await?;
    break_events(server, &mut connection, &people, arguments.letters).await?;
    let (mut random, clock) = (Random::new(17), Clock::default());

    let before = server.memory()?;
    let api = Api::new(server)?;
    let patch = json!({"price": 1, "currency": "EUR", "count": 1, "member": true, "category": "shoes",
        "color": "black", "rank": 1, "source": "search", "page": 1});
    let started = Instant::now();
    let body = json!({"filter": {}, "patch": patch});
    let queued = api
        .call(&mut connection, "POST", "dead-letters/replay", &body)
        .await?;
    let job = queued.pointer("/data/jobId").and_then(Value::as_str);
    let job = format!("jobs/{}", job.context("a job")?);
    let mut most = before;
    let mut beside = Vec::new();
    let job = loop {
        let person = people
            .get(beside.len() % people.len())
            .context("somebody")?;
        let mut request = Request::new(write_key, person, COMMON, 1, Delivery::None);
        let bytes = request.renew(&mut random, clock.now());
        let sent = Instant::now();
        let answer = connection.send(bytes).await?;
        beside.push(sent.elapsed());
        ensure!(answer.status == 200, "{}", answer.status);
        most = most.max(server.memory()?);
        let job = api.call(&mut connection, "GET", &job, &Value::Null).await?;
        match job.pointer("/data/status").and_then(Value::as_str) {
            Some("completed") => break job,
            Some("failed") => bail!("{job}"),
            _ if started.elapsed() > PATIENCE => bail!("the job does not end: {job}"),
            _ => tokio::time::sleep(PAUSE).await,
        }
    };
    let time = started.elapsed();
    let replayed = job.pointer("/data/result/replayed").and_then(Value::as_u64);
    ensure!(replayed == u64::try_from(arguments.letters).ok(), "{job}");
    server.drained().await?;
    Ok(Round {
        time,
        processed: started.elapsed(),
        memory: most.max(server.memory()?) - before,
        beside: micros(&beside, 0.5),
    })
}

/// Requests of an editor.
struct Api {
    app: String,
    authorization: String,
}

impl Api {
    fn new(server: &Server) -> anyhow::Result<Self> {
        Ok(Self {
            app: format!("/v1/apps/{}", server.access("appId")?),
            authorization: format!("Bearer {}", server.access("editorToken")?),
        })
    }

    async fn call(
        &self,
        connection: &mut Connection,
        method: &str,
        path: &str,
        body: &Value,
    ) -> anyhow::Result<Value> {
        let path = format!("{}/{path}", self.app);
        let headers = [("Authorization", self.authorization.as_str())];
        connection.call(method, &path, &headers, body).await
    }
}
