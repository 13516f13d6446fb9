//! What bodies of strangers take in memory: many at once, small as they are sent, large once they are decompressed, and
//! made to become far larger once they are parsed.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use flate2::Compression;
use flate2::write::GzEncoder;
use nudge_db::{Dialect, Tx};
use nudge_platform::clock::{self, Clock};
use reqwest::Client;
use serde_json::json;
use tokio::task::JoinSet;

use crate::child::Server;
use crate::database::{Databases, Kind};
use crate::drive;
use crate::report::{Table, say, verdict};

/// The bytes of a body, decompressed: as many as a body may have, but for what stands around.
const BYTES: usize = 1024 * 1024 - 512;
/// What the server may take in all, in bytes.
const MOST_MEMORY: u64 = 512 << 20;
/// How long the database takes nothing, so that everything that waits for it is in memory.
const HELD: Duration = Duration::from_secs(3);

/// What is measured.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[arg(long, value_enum, default_value = "sqlite")]
    database: Kind,
    /// Bodies at once.
    #[arg(long, default_value_t = 250)]
    bodies: usize,
}

/// A body and where it goes.
struct Case {
    name: &'static str,
    method: reqwest::Method,
    path: String,
    is_sdk: bool,
    text: String,
}

pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let databases = Databases::new(arguments.database)?;
    let server = Server::start(&databases, 0).await?;
    drive::furnish(&server).await?;
    let people = drive::people(&server, 1).await?;
    let person = people.first().context("somebody")?;
    let column = format!("{} at once, answers", arguments.bodies);
    let mut table = Table::new(&[
        "body",
        "as text",
        "as sent",
        &column,
        "peak memory",
        "goal",
        "",
    ]);
    let client = Client::builder().no_proxy().build()?;
    for case in cases(&server, &person.anonymous_id)? {
        let body = gzip(&case.text)?;
        server.reset_peak()?;
        let statuses = send(
            &server,
            &client,
            &case,
            &person.token,
            &body,
            arguments.bodies,
        )
        .await?;
        let peak = server.peak()?;
        let statuses: Vec<String> = statuses
            .iter()
            .map(|(status, count)| format!("{count} x {status}"))
            .collect();
        let row = [
            case.name.to_owned(),
            format!("{} KiB", case.text.len() >> 10),
            format!("{:.1} KiB", kib(body.len())),
            statuses.join(", "),
            format!("{} MiB", peak >> 20),
            format!("<= {} MiB", MOST_MEMORY >> 20),
            verdict(peak <= MOST_MEMORY).to_owned(),
        ];
        say(row.join(" | "))?;
        table.row(&row);
    }
    server.stop().await?;
    Ok(table.print()?)
}

/// Sends a body so many times while the database takes nothing; answers how often there was which status.
async fn send(
    server: &Server,
    client: &Client,
    case: &Case,
    token: &str,
    body: &[u8],
    times: usize,
) -> anyhow::Result<BTreeMap<u16, usize>> {
    let held = hold(server).await?;
    let mut requests = JoinSet::new();
    for _ in 0..times {
        let url = format!("http://{}{}", server.address(), case.path);
        let request = client
            .request(case.method.clone(), url)
            .header("content-type", "application/json")
            .header("content-encoding", "gzip")
            .body(body.to_vec());
        let request = if case.is_sdk {
            request
                .bearer_auth(server.access("writeKey")?)
                .header("x-service-subject-token", token)
        } else {
            request.bearer_auth(server.access("editorToken")?)
        };
        requests.spawn(async move { anyhow::Ok(request.send().await?.status().as_u16()) });
    }
    tokio::time::sleep(HELD).await;
    held.rollback().await?;
    let mut statuses: BTreeMap<u16, usize> = BTreeMap::new();
    while let Some(status) = requests.join_next().await {
        *statuses.entry(status??).or_default() += 1;
    }
    server.drained().await?;
    Ok(statuses)
}

#[expect(clippy::cast_precision_loss, reason = "shown with one decimal")]
fn kib(bytes: usize) -> f64 {
    bytes as f64 / 1024.0
}

/// Has the database take no events and no answers until it is given back.
async fn hold(server: &Server) -> anyhow::Result<Tx> {
    let mut held = server.db().write().await?;
    if held.dialect() == Dialect::Postgres {
        held.sql("LOCK TABLE events, survey_answers IN SHARE ROW EXCLUSIVE MODE")
            .execute()
            .await?;
    }
    Ok(held)
}

fn gzip(text: &str) -> anyhow::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text.as_bytes())?;
    Ok(encoder.finish()?)
}

/// As many copies of a piece of JSON as fit.
fn filled(piece: &str) -> String {
    piece.repeat(BYTES / piece.len())
}

fn cases(server: &Server, anonymous_id: &str) -> anyhow::Result<Vec<Case>> {
    let app = server.access("appId")?;
    let now = clock::to_text(Clock::default().now());
    let sdk = |name, path: &str, text| Case {
        name,
        method: reqwest::Method::POST,
        path: path.to_owned(),
        is_sdk: true,
        text,
    };
    let context = json!({"anonymousId": anonymous_id});
    let ingest = |name, events: &str| {
        sdk(
            name,
            "/v1/sdk/ingest",
            format!(r#"{{"context": {context}, "events": [{events}]}}"#),
        )
    };
    let answers = format!("/v1/sdk/attempts/{}/answers", uuid::Uuid::nil());
    let answer = |value: &str| {
        format!(
            r#"{{"anonymousId": "{anonymous_id}", "answers": [{{"questionId": "q1", "value": {value}}}]}}"#
        )
    };
    let objects = format!("[{}0]", filled(r#"{"":0},"#));
    let event = json!({"name": "bought", "timestamp": now, "anonymousId": anonymous_id,
        "properties": {"text": "x".repeat(60 * 1024)}});
    let events = vec![event.to_string(); 16].join(",");
    Ok(vec![
        sdk("an answer of small objects", &answers, answer(&objects)),
        sdk(
            "answers as long as they may be",
            &answers,
            answer(&format!("\"{}\"", "x".repeat(200 * 1024))),
        ),
        sdk(
            "properties of small objects",
            "/v1/sdk/user-properties",
            format!(r#"{{"anonymousId": "{anonymous_id}", "set": {{"a": {objects}}}}}"#),
        ),
        ingest(
            "events that are empty objects",
            &format!("{}0", filled("{},")),
        ),
        ingest("events that are numbers", &format!("{}0", filled("0,"))),
        ingest("16 events of 60 KiB", &events),
        Case {
            name: "a survey of small objects",
            method: reqwest::Method::POST,
            path: format!("/v1/apps/{app}/surveys"),
            is_sdk: false,
            text: format!(r#"{{"name": "x", "theme": {{"a": {objects}}}}}"#),
        },
    ])
}
