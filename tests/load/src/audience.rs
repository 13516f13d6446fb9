//! What an audience costs: events that campaigns wait for, which fire nothing, with five leaves and without.

use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use serde_json::{Value, json};

use crate::child::Server;
use crate::database::{Databases, Kind};
use crate::drive::{self, Load};
use crate::report::{Table, median, rate, say};
use crate::request::{COMMON, Delivery, Person};

const CLIENTS: usize = 16;
const BATCH: usize = 20;
const CAMPAIGNS: usize = 10;

/// What is measured.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[arg(long, value_enum, default_value = "sqlite")]
    database: Kind,
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Requests of 20 events of each side in a round.
    #[arg(long, default_value_t = 400)]
    requests: usize,
    /// Campaigns that wait for each event.
    #[arg(long, default_value_t = CAMPAIGNS)]
    campaigns: usize,
}

/// One side's cost of an event, in microseconds.
#[derive(Clone, Copy, Debug)]
struct Cost {
    wall: f64,
    cpu: f64,
}

pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let databases = Databases::new(arguments.database)?;
    let without = Side::new(
        &databases,
        arguments.campaigns,
        &json!({"samplePercent": 0}),
    )
    .await?;
    let with = Side::new(&databases, arguments.campaigns, &five_leaves()).await?;
    let mut rounds = Vec::with_capacity(arguments.rounds);
    for round in 0..arguments.rounds {
        let load = load(arguments.requests, 10 + round as u64);
        // Whoever goes first takes turns.
        let measured = if round % 2 == 0 {
            let plain = without.cost(load).await?;
            (plain, with.cost(load).await?)
        } else {
            let audience = with.cost(load).await?;
            (without.cost(load).await?, audience)
        };
        say(format_args!("round {round}: {measured:.1?}"))?;
        rounds.push(measured);
    }
    let middle = |value: &dyn Fn(&(Cost, Cost)) -> f64| median(rounds.iter().map(value));
    let campaigns = arguments.campaigns;
    let mut table = Table::new(&["an event that campaigns wait for", "processor time", "time"]);
    table.row(&[
        format!("{campaigns} audiences of five leaves / none"),
        format!(
            "{:.2}",
            middle(&|(plain, audience)| audience.cpu / plain.cpu)
        ),
        format!(
            "{:.2}",
            middle(&|(plain, audience)| audience.wall / plain.wall)
        ),
    ]);
    let of = |value: fn(&(Cost, Cost)) -> Cost| {
        let cpu = middle(&|pair| value(pair).cpu);
        let wall = middle(&|pair| value(pair).wall);
        [format!("{cpu:.1} us"), format!("{wall:.1} us")]
    };
    let [cpu, wall] = of(|pair| pair.0);
    table.row(&["none".to_owned(), cpu, wall]);
    let [cpu, wall] = of(|pair| pair.1);
    table.row(&["five leaves each".to_owned(), cpu, wall]);
    table.print()?;
    for side in [without, with] {
        side.server.stop().await?;
    }
    Ok(())
}

/// Compares campaigns that name a segment with those that have the same audience written out, and an app with a campaign that
/// waits for somebody to enter a segment with one whose segment nobody waits for.
pub(crate) async fn compare_segments(databases: &Databases, rounds: usize) -> anyhow::Result<()> {
    let mut table = Table::new(&["an event", "processor time", "time"]);
    let written = Side::new(databases, CAMPAIGNS, &five_leaves()).await?;
    let (server, id) = with_segment(databases, &five_leaves()).await?;
    let by_segment = json!({"include": {"kind": "segment", "segmentId": id, "in": true}});
    let named = Side::on(server, CAMPAIGNS, &by_segment).await?;
    let ratios = compare(written, named, rounds).await?;
    table.row(&[
        "the audience by a segment / written out",
        &ratios.0,
        &ratios.1,
    ]);

    let (server, _) = with_segment(databases, &soon_met()).await?;
    let unwatched = Side::on(server, 0, &json!({})).await?;
    let (server, id) = with_segment(databases, &soon_met()).await?;
    let mut campaign = drive::survey_body(COMMON, &json!({}));
    let trigger = json!({"kind": "segment", "segmentId": id, "on": "enter"});
    let body = campaign.as_object_mut().context("a survey is an object")?;
    body.insert("trigger".to_owned(), trigger);
    drive::manage(&server, "surveys", &campaign).await?;
    let watched = Side::on(server, 0, &json!({})).await?;
    let ratios = compare(unwatched, watched, rounds).await?;
    table.row(&[
        "a campaign waits for a segment / none does",
        &ratios.0,
        &ratios.1,
    ]);
    Ok(table.print()?)
}

/// A server with a segment, and the segment's id.
async fn with_segment(databases: &Databases, audience: &Value) -> anyhow::Result<(Server, Value)> {
    let server = Server::start(databases, 0).await?;
    let body = json!({"name": "a segment", "audience": audience});
    let segment = drive::manage(&server, "segments", &body).await?;
    let id = segment.pointer("/data/id").context("no id of a segment")?;
    let id = id.clone();
    Ok((server, id))
}

/// The second side's cost of an event by the first one's, of the processors and of time; ends both.
async fn compare(first: Side, second: Side, rounds: usize) -> anyhow::Result<(String, String)> {
    let mut ratios = Vec::with_capacity(rounds);
    for round in 0..rounds {
        let load = load(400, 10 + round as u64);
        let (one, other) = if round % 2 == 0 {
            let one = first.cost(load).await?;
            (one, second.cost(load).await?)
        } else {
            let other = second.cost(load).await?;
            (first.cost(load).await?, other)
        };
        ratios.push((other.cpu / one.cpu, other.wall / one.wall));
    }
    first.server.stop().await?;
    second.server.stop().await?;
    let middle = |of: fn(&(f64, f64)) -> f64| format!("{:.2}", median(ratios.iter().map(of)));
    Ok((middle(|ratio| ratio.0), middle(|ratio| ratio.1)))
}

/// A leaf that each event may change, and that everybody meets from their first event on.
fn soon_met() -> Value {
    json!({"include": {"kind": "event", "eventName": COMMON, "withinDays": 30}})
}

/// Five leaves, of which the last one leaves everybody out: all are asked, and nothing is written.
fn five_leaves() -> Value {
    let saved = json!({"property": "plan", "type": "string", "operator": "is_not_set"});
    json!({"include": {"all": [
        {"kind": "platform", "in": ["ios", "android"]},
        {"kind": "app_version", "operator": "gte", "value": "4.1"},
        {"kind": "user_property", "filter": saved},
        {"kind": "event", "eventName": COMMON, "withinDays": 30, "count": {"operator": "gte", "n": 0}},
        {"kind": "survey_interaction", "interaction": "completed", "withinDays": 30},
    ]}})
}

fn load(requests: usize, seed: u64) -> Load {
    Load {
        name: COMMON,
        clients: CLIENTS,
        requests,
        events: BATCH,
        delivery: Delivery::None,
        seed,
    }
}

/// A server and people in its app.
struct Side {
    server: Server,
    people: Vec<Person>,
}

impl Side {
    async fn new(
        databases: &Databases,
        campaigns: usize,
        audience: &Value,
    ) -> anyhow::Result<Self> {
        let server = Server::start(databases, 0).await?;
        Self::on(server, campaigns, audience).await
    }

    async fn on(server: Server, campaigns: usize, audience: &Value) -> anyhow::Result<Self> {
        for _ in 0..campaigns {
            drive::survey_for(&server, COMMON, audience).await?;
        }
        let people = drive::people(&server, 256).await?;
        let side = Self { server, people };
        side.cost(load(100, 1)).await?;
        Ok(side)
    }

    #[expect(clippy::cast_precision_loss, reason = "counts of a benchmark")]
    async fn cost(&self, load: Load) -> anyhow::Result<Cost> {
        let outcome = drive::run(&self.server, &self.people, load).await?;
        let events = load.requests * load.events;
        let each = |time: Duration| time.as_secs_f64() * 1e6 / events as f64;
        Ok(Cost {
            wall: 1e6 / rate(events, outcome.processed),
            cpu: each(outcome.cpu),
        })
    }
}
