//! Ingest against bare inserts.

use std::time::Duration;

use clap::Args;

use crate::bare;
use crate::child::Server;
use crate::database::{Databases, Kind};
use crate::disk;
use crate::drive::{self, Load};
use crate::report::{Table, median, micros, rate, say, verdict};
use crate::request::{COMMON, Delivery, Person};

/// Rows of a bare bulk insert's statement and transaction.
const BULK: usize = 500;
const CLIENTS: usize = 64;
const BATCH: usize = 20;

/// What is measured.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[arg(long, value_enum, default_value = "sqlite")]
    database: Kind,
    /// Turns; each measures everything once.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Events of a turn's bulk measurements.
    #[arg(long, default_value_t = 102_400)]
    events: usize,
    /// People whose events they are.
    #[arg(long, default_value_t = 1_024)]
    people: usize,
    /// Only many clients with many events each.
    #[arg(long)]
    only_bulk: bool,
}

/// What one turn measured.
#[derive(Debug, Default)]
struct Turn {
    bare_bulk: f64,
    bulk: f64,
    bulk_processed: f64,
    bulk_latency: (f64, f64),
    bare_single: f64,
    single: f64,
    single_processed: f64,
    disk: f64,
    alone: (f64, f64),
    cpu: Cpu,
}

/// Processor time of a request, in microseconds.
#[derive(Debug, Default)]
struct Cpu {
    /// Committed and processed.
    whole: f64,
    /// Refused after all checks, before the validation plugin and the commit.
    checked: f64,
    /// Refused once it is read: HTTP, credentials and JSON.
    read: f64,
}

pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let databases = Databases::new(arguments.database)?;
    let mut turns = Vec::with_capacity(arguments.rounds);
    for round in 0..arguments.rounds {
        let turn = turn(&databases, &arguments).await?;
        say(format_args!("turn {round}: {turn:.0?}"))?;
        turns.push(turn);
    }
    ratios(arguments.database, &turns).print()?;
    absolutes(&turns).print()?;
    Ok(())
}

async fn turn(databases: &Databases, arguments: &Arguments) -> anyhow::Result<Turn> {
    let mut turn = Turn::default();
    let connections = match databases.kind() {
        Kind::Sqlite => 1,
        Kind::Postgres => 2,
    };
    let plan = bare::Plan {
        rows: arguments.events,
        request: BATCH,
        transaction: BULK,
        people: arguments.people,
        connections,
    };
    turn.bare_bulk = rate(plan.rows, bare::insert(&databases.fresh()?, plan).await?);
    bulk(databases, arguments, &mut turn).await?;
    if arguments.only_bulk {
        return Ok(turn);
    }

    let plan = bare::Plan {
        rows: arguments.events / 20,
        request: 1,
        transaction: 1,
        ..plan
    };
    turn.bare_single = rate(plan.rows, bare::insert(&databases.fresh()?, plan).await?);
    singles(databases, arguments, &mut turn).await?;
    Ok(turn)
}

/// Many clients with many events each, and what of that is HTTP and JSON.
async fn bulk(databases: &Databases, arguments: &Arguments, turn: &mut Turn) -> anyhow::Result<()> {
    let server = Server::start(databases, 0).await?;
    drive::furnish(&server).await?;
    let people = drive::people(&server, arguments.people).await?;
    let load = Load {
        name: COMMON,
        clients: CLIENTS,
        requests: arguments.events / BATCH,
        events: BATCH,
        delivery: Delivery::None,
        seed: 1,
    };
    warm_up(&server, &people, load).await?;
    let outcome = drive::run(&server, &people, load).await?;
    turn.bulk = rate(arguments.events, outcome.time);
    turn.bulk_processed = rate(arguments.events, outcome.processed);
    turn.bulk_latency = (
        micros(&outcome.latencies, 0.5),
        micros(&outcome.latencies, 0.99),
    );
    turn.cpu.whole = each(outcome.cpu, load.requests);
    turn.cpu.checked = refused(&server, &people, load, Delivery::Refused).await?;
    turn.cpu.read = refused(&server, &people, load, Delivery::Malformed).await?;
    server.stop().await
}

/// Processor time of a request that is refused.
async fn refused(
    server: &Server,
    people: &[Person],
    load: Load,
    delivery: Delivery,
) -> anyhow::Result<f64> {
    let load = Load {
        delivery,
        requests: load.requests * 4,
        ..load
    };
    warm_up(server, people, load).await?;
    let outcome = drive::run(server, people, load).await?;
    Ok(each(outcome.cpu, load.requests))
}

/// One client with many events, many clients with one event each, and the disk alone.
async fn singles(
    databases: &Databases,
    arguments: &Arguments,
    turn: &mut Turn,
) -> anyhow::Result<()> {
    let server = Server::start(databases, 0).await?;
    drive::furnish(&server).await?;
    let people = drive::people(&server, arguments.people).await?;
    let alone = Load {
        name: COMMON,
        clients: 1,
        requests: 500,
        events: BATCH,
        delivery: Delivery::None,
        seed: 2,
    };
    warm_up(&server, &people, alone).await?;
    let latencies = drive::run(&server, &people, alone).await?.latencies;
    turn.alone = (micros(&latencies, 0.5), micros(&latencies, 0.99));
    turn.disk = micros(&disk::appends(databases.folder(), 500)?, 0.5);

    let single = Load {
        clients: CLIENTS,
        requests: arguments.events / 4,
        events: 1,
        seed: 3,
        ..alone
    };
    warm_up(&server, &people, single).await?;
    let outcome = drive::run(&server, &people, single).await?;
    turn.single = rate(single.requests, outcome.time);
    turn.single_processed = rate(single.requests, outcome.processed);
    server.stop().await
}

/// The first requests prepare statements and fill caches.
async fn warm_up(server: &Server, people: &[Person], load: Load) -> anyhow::Result<()> {
    let short = Load {
        requests: load.clients.max(50) * 4,
        seed: load.seed + 100,
        ..load
    };
    drive::run(server, people, short).await?;
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "counts of a benchmark")]
fn each(time: Duration, requests: usize) -> f64 {
    time.as_secs_f64() * 1e6 / requests as f64
}

fn of(turns: &[Turn], value: impl Fn(&Turn) -> f64) -> f64 {
    median(turns.iter().map(value))
}

#[expect(clippy::too_many_lines, reason = "a table")]
fn ratios(kind: Kind, turns: &[Turn]) -> Table {
    let mut table = Table::new(&["ratio", "median", "lowest to highest", "goal", ""]);
    let mut row =
        |name: &str, value: &dyn Fn(&Turn) -> f64, goal: &str, met: &dyn Fn(f64) -> bool| {
            let middle = of(turns, value);
            let spread =
                [0.0, 1.0].map(|part| crate::report::quantile(turns.iter().map(value), part));
            let [low, high] = spread;
            let verdict = if goal.is_empty() {
                ""
            } else {
                verdict(met(middle))
            };
            table.row(&[
                name.to_owned(),
                format!("{middle:.2}"),
                format!("{low:.2} to {high:.2}"),
                goal.to_owned(),
                verdict.to_owned(),
            ]);
        };
    row(
        "64 clients x 20 events, acknowledged / bare insert of 500 rows a transaction",
        &|turn| turn.bulk / turn.bare_bulk,
        ">= 0.70",
        &|ratio| ratio >= 0.7,
    );
    row(
        "the same, until all of it is processed",
        &|turn| turn.bulk_processed / turn.bare_bulk,
        "",
        &|_| true,
    );
    row(
        "64 clients x 1 event, acknowledged / bare insert of one row a transaction",
        &|turn| turn.single / turn.bare_single,
        ">= 4",
        &|ratio| ratio >= 4.0,
    );
    row(
        "the same, until all of it is processed",
        &|turn| turn.single_processed / turn.bare_single,
        "",
        &|_| true,
    );
    row(
        "1 client x 20 events, p50 / fdatasync of 4 KiB, p50",
        &|turn| turn.alone.0 / turn.disk,
        "<= 6",
        &|ratio| ratio <= 6.0,
    );
    let goal = if kind == Kind::Sqlite { "<= 0.10" } else { "" };
    row(
        "processor time of a request of 20 events, refused once it is read / committed and processed",
        &|turn| turn.cpu.read / turn.cpu.whole,
        goal,
        &|ratio| ratio <= 0.1,
    );
    row(
        "the same, refused after all checks / committed and processed",
        &|turn| turn.cpu.checked / turn.cpu.whole,
        "",
        &|_| true,
    );
    table
}

#[expect(clippy::too_many_lines, reason = "a table")]
fn absolutes(turns: &[Turn]) -> Table {
    let mut table = Table::new(&["measurement", "median"]);
    let mut row = |name: &str, value: &dyn Fn(&Turn) -> f64, unit: &str| {
        table.row(&[name.to_owned(), format!("{:.0} {unit}", of(turns, value))]);
    };
    row(
        "bare, 500 rows a transaction",
        &|turn| turn.bare_bulk,
        "rows/s",
    );
    row(
        "64 clients x 20 events, acknowledged",
        &|turn| turn.bulk,
        "events/s",
    );
    row(
        "64 clients x 20 events, processed",
        &|turn| turn.bulk_processed,
        "events/s",
    );
    row(
        "64 clients x 20 events, p50",
        &|turn| turn.bulk_latency.0,
        "us",
    );
    row(
        "64 clients x 20 events, p99",
        &|turn| turn.bulk_latency.1,
        "us",
    );
    row(
        "bare, one row a transaction",
        &|turn| turn.bare_single,
        "rows/s",
    );
    row(
        "64 clients x 1 event, acknowledged",
        &|turn| turn.single,
        "events/s",
    );
    row(
        "64 clients x 1 event, processed",
        &|turn| turn.single_processed,
        "events/s",
    );
    row("fdatasync of 4 KiB, p50", &|turn| turn.disk, "us");
    row("1 client x 20 events, p50", &|turn| turn.alone.0, "us");
    row("1 client x 20 events, p99", &|turn| turn.alone.1, "us");
    row(
        "server's processor time of a request of 20 events",
        &|turn| turn.cpu.whole,
        "us",
    );
    row(
        "of it: HTTP, credentials and JSON",
        &|turn| turn.cpu.read,
        "us",
    );
    row(
        "of it: all until it would go to the validation plugin",
        &|turn| turn.cpu.checked,
        "us",
    );
    table
}
