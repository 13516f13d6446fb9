//! What receivers of webhooks notice of one among them that never answers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::post;
use clap::Args;
use nudge::server::{Server, Start};
use nudge_apps::registry::App;
use nudge_apps::webhooks::Transition;
use nudge_campaigns::webhooks::EventType;
use nudge_db::Timestamp;
use nudge_platform::config::Config;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use uuid::Uuid;

use crate::child::MASTER_KEY;
use crate::client::Connection;
use crate::database::{Databases, Fresh, Kind};
use crate::report::{Latency, Table, median, say, verdict};

/// How long everything may take to arrive after the last transition.
const ARRIVES: Duration = Duration::from_mins(1);

/// What is measured.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[arg(long, value_enum, default_value = "sqlite")]
    database: Kind,
    /// Rounds; each measures a run in which all answer and one in which one hangs.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Endpoints, each of which is told of everything.
    #[arg(long, default_value_t = 100)]
    endpoints: usize,
    /// Transitions a second; each is a message to every endpoint.
    #[arg(long, default_value_t = 4)]
    rate: u32,
    /// Seconds of each run.
    #[arg(long, default_value_t = 10)]
    seconds: u32,
}

/// What receivers have seen.
#[derive(Debug, Default)]
struct Seen {
    /// Whether the first endpoint answers.
    hangs: bool,
    /// When each delivery was told of, and how long it took to arrive where.
    told: HashMap<Uuid, Instant>,
    latencies: Vec<Duration>,
}

type Shared = Arc<Mutex<Seen>>;

fn lock(seen: &Shared) -> std::sync::MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let databases = Databases::new(arguments.database)?;
    let mut rounds = Vec::with_capacity(arguments.rounds);
    for round in 0..arguments.rounds {
        let quiet = measure(&databases, &arguments, false).await?;
        let beside = measure(&databases, &arguments, true).await?;
        say(format_args!("round {round}: {quiet:.0?} {beside:.0?}"))?;
        rounds.push((quiet, beside));
    }
    let ratio = median(rounds.iter().map(|(quiet, beside)| beside.p99 / quiet.p99));
    let mut table = Table::new(&["ratio", "median of rounds", "goal", ""]);
    table.row(&[
        "p99 beside one that hangs / without",
        &format!("{ratio:.2}"),
        "<= 1.2",
        verdict(ratio <= 1.2),
    ]);
    table.print()?;
    let mut table = Table::new(&["from the transition to the receiver", "p50", "p99"]);
    for (name, values) in [
        (
            "all answer",
            rounds.iter().map(|pair| pair.0).collect::<Vec<_>>(),
        ),
        (
            "one hangs, the others",
            rounds.iter().map(|pair| pair.1).collect(),
        ),
    ] {
        let p50 = median(values.iter().map(|latency| latency.p50));
        let p99 = median(values.iter().map(|latency| latency.p99));
        table.row(&[name, &format!("{p50:.0} us"), &format!("{p99:.0} us")]);
    }
    Ok(table.print()?)
}

/// One run on a server of its own.
async fn measure(
    databases: &Databases,
    arguments: &Arguments,
    hangs: bool,
) -> anyhow::Result<Latency> {
    let seen = Shared::default();
    lock(&seen).hangs = hangs;
    let (receiver, mut tasks) = receiver(&seen).await?;
    let (server, _database) = start(databases).await?;
    subscribe(&server, &receiver, arguments.endpoints).await?;
    let app = app(&server).await?;
    let told = (arguments.rate * arguments.seconds) as usize;
    let mut turn = tokio::time::interval(Duration::from_secs(1) / arguments.rate);
    for _ in 0..told {
        turn.tick().await;
        let now = server.services().clock.now();
        let transition = sent(now);
        lock(&seen)
            .told
            .insert(transition.source_id, Instant::now());
        tell(&server, &app, &[transition]).await?;
    }
    let expected = told * (arguments.endpoints - 1);
    let last = Instant::now();
    while lock(&seen).latencies.len() < expected && last.elapsed() < ARRIVES {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let latencies = std::mem::take(&mut lock(&seen).latencies);
    anyhow::ensure!(
        latencies.len() == expected,
        "{} of {expected} arrived",
        latencies.len()
    );
    tasks.abort_all();
    server.stop().await;
    Ok(Latency::of(&latencies))
}

/// A server that may send to this machine, in this process, on a database of its own.
pub(crate) async fn start(databases: &Databases) -> anyhow::Result<(Server, Fresh)> {
    let database = databases.fresh()?;
    let mut config = Config::load(None)?;
    "127.0.0.1:0".clone_into(&mut config.server.listen);
    config.server.ops_listen = String::new();
    database
        .directory
        .path()
        .clone_into(&mut config.server.data_dir);
    config.database.url.clone_from(&database.url);
    MASTER_KEY.clone_into(&mut config.secrets.master_key);
    config.plugins.cache_dir = databases.folder().join("plugin-cache");
    config.webhooks.allow_http = true;
    config.webhooks.allow_private_networks = true;
    // What hangs would hold the end of the run up.
    config.server.shutdown_seconds = 1;
    let start = Start {
        embedded: true,
        ..Start::default()
    };
    Ok((Server::start(config, start).await?, database))
}

/// The app that the server begins with.
pub(crate) async fn app(server: &Server) -> anyhow::Result<Arc<App>> {
    let app_id = nudge::cli::dev::access(server).await?.app_id;
    let app = server.services().apps.get(app_id).await?;
    app.context("the demo app")
}

/// A delivery is sent.
pub(crate) fn sent(now: Timestamp) -> Transition {
    let delivery_id = nudge_platform::id::new(now);
    Transition {
        subject_id: Uuid::from_u128(1),
        source_id: delivery_id,
        event: EventType::Sent,
        data: json!({"deliveryId": delivery_id}),
        at: now,
    }
}

/// Tells all endpoints of transitions, in one transaction.
pub(crate) async fn tell(
    server: &Server,
    app: &App,
    transitions: &[Transition],
) -> anyhow::Result<()> {
    let services = server.services();
    let now = services.clock.now();
    let mut tx = services.db.write().await?;
    let webhooks = &services.push.webhooks;
    let in_hand = Some(&webhooks.in_hand);
    let queued =
        nudge_apps::webhooks::enqueue(&mut tx, app.id, &app.webhooks, transitions, in_hand, now)
            .await?;
    tx.commit().await?;
    webhooks.wake(queued);
    Ok(())
}

/// Has so many endpoints told of what is sent.
pub(crate) async fn subscribe(
    server: &Server,
    receiver: &str,
    endpoints: usize,
) -> anyhow::Result<()> {
    let access = nudge::cli::dev::access(server).await?;
    let mut connection = Connection::open(server.address()).await?;
    let path = format!("/v1/apps/{}/push/webhooks", access.app_id);
    let authorization = format!("Bearer {}", access.admin_token);
    let headers = [("Authorization", authorization.as_str())];
    for number in 0..endpoints {
        let body = json!({"url": format!("{receiver}/{number}"), "eventTypes": ["sent"]});
        connection.call("POST", &path, &headers, &body).await?;
    }
    Ok(())
}

/// A receiver with a path for each endpoint.
async fn receiver(seen: &Shared) -> anyhow::Result<(String, JoinSet<std::io::Result<()>>)> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let base = format!("http://{}", listener.local_addr()?);
    let router = Router::new()
        .route("/{number}", post(receive))
        .with_state(Arc::clone(seen));
    let mut tasks = JoinSet::new();
    tasks.spawn(async move { axum::serve(listener, router).await });
    Ok((base, tasks))
}

async fn receive(
    State(seen): State<Shared>,
    Path(number): Path<usize>,
    axum::Json(body): axum::Json<Value>,
) -> StatusCode {
    let arrived = Instant::now();
    if number == 0 {
        let hangs = lock(&seen).hangs;
        if hangs {
            std::future::pending::<()>().await;
        }
        return StatusCode::OK;
    }
    let delivery = body
        .pointer("/data/deliveryId")
        .and_then(Value::as_str)
        .and_then(|text| Uuid::parse_str(text).ok());
    let mut seen = lock(&seen);
    if let Some(told) = delivery.and_then(|delivery| seen.told.get(&delivery).copied()) {
        seen.latencies.push(arrived.duration_since(told));
    }
    StatusCode::OK
}
