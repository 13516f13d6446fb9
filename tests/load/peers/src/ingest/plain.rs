//! The plain way: a route that reads JSON into a struct and makes one INSERT of a request, which commits by itself.
//!
//! The table has the columns and indexes of Nudge's, with the person's name where Nudge has a number, and a key of the
//! database's own. An event whose id is stored already is no second one. Nothing is checked of an event, nobody has a
//! profile, and nothing is decided.

mod store;

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::Context as _;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::routing::post;
use axum::{Json, Router};
use clap::Args;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::net::TcpListener;
use uuid::Uuid;

use super::clients::{self, Load, Outcome};
use super::database::{Databases, Kind, Pool};
use super::process::Process;
use super::request::{Person, anonymous_id};
use crate::report::say;

const WRITE_KEY: &str = "the-only-key";

/// How the server is started.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[arg(long)]
    database_url: String,
    #[arg(long)]
    connections: u32,
}

/// A request.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Submission {
    context: Context,
    events: Vec<Event>,
}

/// Where a request comes from.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Context {
    anonymous_id: String,
    platform: Option<String>,
    app_version: Option<String>,
    locale: Option<String>,
    timezone: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Event {
    #[serde(rename = "eventId")]
    id: Uuid,
    name: String,
    timestamp: Timestamp,
    properties: Box<RawValue>,
}

/// How many events were taken: as many as the request has, those that are stored already among them.
#[derive(Debug, Serialize)]
struct Taken {
    accepted: usize,
    rejected: usize,
}

/// Runs the server until it is killed. The first line that it prints is its address.
pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let pool = Pool::open(&arguments.database_url, arguments.connections).await?;
    store::create(&pool).await?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    say(listener.local_addr()?)?;
    let router = Router::new()
        .route("/v1/sdk/ingest", post(ingest))
        .with_state(pool);
    axum::serve(listener, router).await?;
    Ok(())
}

async fn ingest(
    State(pool): State<Pool>,
    headers: HeaderMap,
    Json(submission): Json<Submission>,
) -> Result<Json<Taken>, StatusCode> {
    let key = headers.get(header::AUTHORIZATION);
    let key = key.and_then(|key| key.as_bytes().strip_prefix(b"Bearer "));
    if key != Some(WRITE_KEY.as_bytes()) {
        return Err(StatusCode::UNAUTHORIZED);
    }
    let stored = store::insert(&pool, &submission).await;
    stored.map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)?;
    Ok(Json(Taken {
        accepted: submission.events.len(),
        rejected: 0,
    }))
}

/// The server as its clients see it.
struct Server {
    process: Process,
    address: SocketAddr,
    pool: Pool,
}

/// Starts a server on a fresh database, and sends it a load.
pub(super) async fn measure(
    databases: &Databases,
    load: Load,
    arguments: &super::Arguments,
) -> anyhow::Result<Outcome> {
    let database = databases.fresh("plain").await?;
    let connections = arguments.connections.unwrap_or(match arguments.database {
        Kind::Sqlite => 1,
        Kind::Postgres => 64,
    });
    let mut command = Command::new(std::env::current_exe()?);
    command
        .args(["plain", "--database-url", &database.url])
        .args(["--connections", &connections.to_string()])
        .stdout(Stdio::piped());
    let mut process = Process::spawn(&mut command)?;
    let output = process.child().stdout.take().context("a pipe")?;
    let mut line = String::new();
    BufReader::new(output).read_line(&mut line)?;
    process.lives()?;
    let server = Server {
        process,
        address: line.trim().parse()?,
        pool: Pool::open(&database.url, 1).await?,
    };
    let person = |number| Person {
        anonymous_id: anonymous_id(number),
        token: String::new(),
    };
    let people: Vec<Person> = (0..arguments.people).map(person).collect();
    let outcome = clients::run(&server, &people, load).await?;
    server.pool.close().await;
    server.process.stop()?;
    Ok(outcome)
}

impl clients::Server for Server {
    fn address(&self) -> SocketAddr {
        self.address
    }

    fn write_key(&self) -> &str {
        WRITE_KEY
    }

    fn cpu(&self) -> anyhow::Result<Duration> {
        self.process.cpu()
    }

    async fn drained(&self) -> anyhow::Result<()> {
        Ok(())
    }

    async fn stored(&self) -> anyhow::Result<usize> {
        let stored = self.pool.number("SELECT count(*) FROM events").await?;
        Ok(stored.try_into()?)
    }
}
