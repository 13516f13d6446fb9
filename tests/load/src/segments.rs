//! What segments cost: going through all people for many of them, a preview, an event whose campaigns name one, and one of an app
//! in which a campaign waits for people to enter one.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::Args;
use serde_json::{Value, json};

use crate::audience;
use crate::child::Server;
use crate::client::{self, Connection};
use crate::database::{Databases, Kind};
use crate::fill::{Filler, NAMES};
use crate::people::row;
use crate::report::{Table, say};

/// How often it is asked whether a sweep is over.
const LOOK: Duration = Duration::from_millis(250);

/// What is measured.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[arg(long, value_enum, default_value = "sqlite")]
    database: Kind,
    #[arg(long, default_value_t = 1_000_000)]
    users: usize,
    #[arg(long, default_value_t = 3_000_000)]
    events: usize,
    /// Segments of five leaves.
    #[arg(long, default_value_t = 20)]
    segments: u64,
    /// Previews.
    #[arg(long, default_value_t = 100)]
    requests: usize,
    /// Rounds of the comparison of events.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// The comparison of events alone.
    #[arg(long)]
    only_events: bool,
}

pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let databases = Databases::new(arguments.database)?;
    audience::compare_segments(&databases, arguments.rounds).await?;
    if arguments.only_events {
        return Ok(());
    }
    let server = Server::start(&databases, 0).await?;
    let mut filler = Filler::new(&server)?;
    filler.people(arguments.users).await?;
    let aliases = filler.aliases().await?;
    filler.events(arguments.events, aliases).await?;
    filler.settle().await?;
    say(format_args!(
        "{} people, {} events",
        arguments.users, arguments.events
    ))?;
    let caller = Caller::new(&server)?;
    previews(&caller, &arguments).await?;
    for number in 0..arguments.segments {
        let body = json!({"name": format!("segment {number}"), "audience": five_leaves(number)});
        caller.call("POST", "", &body).await?;
    }
    caller.sized(arguments.segments, "").await?;
    say("all segments are known; now all of them together")?;
    sweep(&caller, &arguments).await?;
    server.stop().await
}

/// Five leaves; about half of all people meet them.
fn five_leaves(number: u64) -> Value {
    let age = json!({"property": "age", "type": "number", "operator": "lt", "value": 30 + number});
    let plan = json!({"property": "plan", "type": "string", "operator": "equals", "value": "professional"});
    let event = format!("event_name_{:02}", number % NAMES);
    json!({"include": {"all": [
        {"kind": "platform", "in": ["ios", "android"]},
        {"kind": "country", "in": ["AT", "DE"]},
        {"kind": "user_property", "filter": plan},
        {"any": [
            {"kind": "user_property", "filter": age},
            {"kind": "event", "eventName": event, "withinDays": 30},
        ]},
    ]}})
}

/// Calls the routes of segments.
struct Caller<'s> {
    server: &'s Server,
    path: String,
    token: String,
}

impl<'s> Caller<'s> {
    fn new(server: &'s Server) -> anyhow::Result<Self> {
        Ok(Self {
            server,
            path: format!("/v1/apps/{}/segments", server.access("appId")?),
            token: format!("Bearer {}", server.access("editorToken")?),
        })
    }

    async fn call(&self, method: &str, rest: &str, body: &Value) -> anyhow::Result<Value> {
        let mut connection = Connection::open(self.server.address()).await?;
        let path = format!("{}{rest}", self.path);
        let headers = [("Authorization", self.token.as_str())];
        connection.call(method, &path, &headers, body).await
    }

    /// Waits until the sizes of so many segments are known, as of after an instant.
    async fn sized(&self, segments: u64, after: &str) -> anyhow::Result<()> {
        loop {
            let list = self.call("GET", "?limit=200", &Value::Null).await?;
            let items = list.pointer("/data/items").and_then(Value::as_array);
            let items = items.context("no list of segments")?;
            let known = items.iter().filter(|segment| {
                let at = segment.get("sizeAt").and_then(Value::as_str);
                at.is_some_and(|at| at > after)
            });
            if known.count() as u64 >= segments {
                return Ok(());
            }
            tokio::time::sleep(LOOK).await;
        }
    }
}

async fn previews(caller: &Caller<'_>, arguments: &Arguments) -> anyhow::Result<()> {
    let mut connection = Connection::open(caller.server.address()).await?;
    let mut latencies = Vec::with_capacity(arguments.requests);
    for number in 0..arguments.requests as u64 {
        let body = json!({"audience": five_leaves(number)}).to_string();
        let path = format!("{}/preview", caller.path);
        let request = client::request("POST", &path, &[("Authorization", &caller.token)], &body);
        let started = Instant::now();
        let answer = connection.send(&request).await?;
        latencies.push(started.elapsed());
        anyhow::ensure!(answer.status == 200, "a preview: {}", answer.status);
    }
    let mut table = Table::new(&["request", "p50", "p99"]);
    row(&mut table, "preview of five leaves", &latencies);
    Ok(table.print()?)
}

/// Has everybody looked at for all segments at once.
#[expect(clippy::cast_precision_loss, reason = "counts of a benchmark")]
async fn sweep(caller: &Caller<'_>, arguments: &Arguments) -> anyhow::Result<()> {
    let newest = caller.call("GET", "?limit=1", &Value::Null).await?;
    let text = |name: &str| {
        let text = newest.pointer(&format!("/data/items/0/{name}"));
        let text = text.and_then(Value::as_str).map(str::to_owned);
        text.with_context(|| format!("no {name}"))
    };
    let (id, newest) = (text("id")?, text("sizeAt")?);
    let (started, cpu) = (Instant::now(), caller.server.process().cpu()?);
    let mut tx = caller.server.db().write().await?;
    // Without its job the last sweep counts as none that was lately.
    tx.sql("UPDATE segment_sweeps SET next_at = 0, job_id = NULL")
        .execute()
        .await?;
    tx.commit().await?;
    // A server on SQLite looks at what it has committed itself.
    let described = json!({"description": "looked at again"});
    caller.call("PATCH", &format!("/{id}"), &described).await?;
    caller.sized(arguments.segments, &newest).await?;
    let (took, cpu) = (
        started.elapsed(),
        caller.server.process().cpu()?.saturating_sub(cpu),
    );
    let pairs = arguments.users as f64 * arguments.segments as f64;
    let each = |time: Duration| format!("{:.2} us", time.as_secs_f64() * 1e6 / pairs);
    let mut table = Table::new(&["a sweep", "time", "processor time"]);
    table.row(&[
        "all people, all segments".to_owned(),
        format!("{took:.1?}"),
        format!("{cpu:.1?}"),
    ]);
    table.row(&["one person, one segment".to_owned(), each(took), each(cpu)]);
    Ok(table.print()?)
}
