//! How many messages a second one endpoint of a webhook gets, from the transitions on until all outcomes are noted.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::ensure;
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use clap::Args;
use nudge_db::Db;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::alone::{Request, alone};
use crate::database::{Databases, Kind};
use crate::report::{Table, median, rate, say, verdict};
use crate::webhooks::{app, sent, start, subscribe, tell};

/// Transitions of a transaction, as of a broadcast.
const TOGETHER: usize = 128;
/// How long everything may take.
const PATIENCE: Duration = Duration::from_mins(2);

/// What is measured.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[arg(long, value_enum, default_value = "sqlite")]
    database: Kind,
    /// Rounds; each measures the server and then the receiver alone.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Messages of a round.
    #[arg(long, default_value_t = 10_000)]
    messages: usize,
}

/// A receiver, and the requests that it got.
#[derive(Clone, Debug, Default)]
struct Receiver(Arc<Mutex<Vec<(HeaderMap, Bytes)>>>);

impl Receiver {
    fn requests(&self) -> MutexGuard<'_, Vec<(HeaderMap, Bytes)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) -> Vec<(HeaderMap, Bytes)> {
        std::mem::take(&mut self.requests())
    }
}

pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let databases = Databases::new(arguments.database)?;
    let receiver = Receiver::default();
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    let router = Router::new()
        .route("/0", post(receive))
        .with_state(receiver.clone());
    let mut tasks = JoinSet::new();
    tasks.spawn(async move { axum::serve(listener, router).await });
    let mut rounds = Vec::with_capacity(arguments.rounds);
    for round in 0..arguments.rounds {
        let told = measure(&databases, arguments.messages, &url).await?;
        let requests = receiver.take();
        let ids = requests
            .iter()
            .filter_map(|(headers, _)| headers.get("webhook-id"));
        let ids: HashSet<_> = ids.collect();
        ensure!(
            (ids.len(), requests.len()) == (arguments.messages, arguments.messages),
            "{} requests of {} messages",
            requests.len(),
            ids.len()
        );
        let again = requests.into_iter().map(|(headers, body)| Request {
            url: format!("{url}/0"),
            headers,
            body,
        });
        let client = reqwest::Client::builder().build()?;
        let time = alone(&client, again.collect()).await?;
        let takes = rate(receiver.take().len(), time);
        say(format_args!(
            "round {round}: {told:.0} a second, the receiver alone {takes:.0}"
        ))?;
        rounds.push((told, takes));
    }
    let mut table = Table::new(&["ratio", "median of rounds", "goal", ""]);
    let ratio = median(rounds.iter().map(|(told, alone)| told / alone));
    table.row(&[
        "messages a second to one endpoint / what its receiver takes alone",
        &format!("{ratio:.2}"),
        ">= 0.3",
        verdict(ratio >= 0.3),
    ]);
    table.print()?;
    let mut table = Table::new(&["", "a second"]);
    let told = median(rounds.iter().map(|round| round.0));
    table.row(&["told, outcomes noted", &format!("{told:.0}")]);
    let alone = median(rounds.iter().map(|round| round.1));
    table.row(&["the receiver alone", &format!("{alone:.0}")]);
    Ok(table.print()?)
}

/// Messages a second of one run on a server of its own.
async fn measure(databases: &Databases, messages: usize, url: &str) -> anyhow::Result<f64> {
    let (server, _database) = start(databases).await?;
    subscribe(&server, url, 1).await?;
    let app = app(&server).await?;
    let started = Instant::now();
    for first in (0..messages).step_by(TOGETHER) {
        let now = server.services().clock.now();
        let transitions: Vec<_> = (first..messages)
            .take(TOGETHER)
            .map(|_| sent(now))
            .collect();
        tell(&server, &app, &transitions).await?;
    }
    while left(&server.services().db).await? > 0 {
        ensure!(started.elapsed() < PATIENCE, "messages are left");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let told = rate(messages, started.elapsed());
    server.stop().await;
    Ok(told)
}

/// How many messages wait, or are on their way.
async fn left(db: &Db) -> anyhow::Result<i64> {
    let mut tx = db.read().await?;
    let left = tx.sql("SELECT count(*) AS count FROM webhook_messages WHERE due_at IS NOT NULL");
    Ok(left.fetch_scalar().await?)
}

async fn receive(State(receiver): State<Receiver>, headers: HeaderMap, body: Bytes) -> StatusCode {
    receiver.requests().push((headers, body));
    StatusCode::OK
}
