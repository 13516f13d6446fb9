//! A server at rest: how soon it starts and answers, and what memory it has, alone and with many apps.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::Args;
use serde_json::json;
use uuid::Uuid;

use crate::child::Server;
use crate::client::Connection;
use crate::database::{Databases, Kind};
use crate::drive;
use crate::report::{Table, median, verdict};

/// When what a start needed is given back.
const QUIET: Duration = Duration::from_secs(10);
/// Goals: a start with compiled plugins, the first request after it, and memory alone and with many apps.
const START: Duration = Duration::from_millis(300);
const FIRST: Duration = Duration::from_millis(50);
const ALONE: u64 = 50_000_000;
const WITH_APPS: u64 = 150_000_000;

/// What is measured.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[arg(long, value_enum, default_value = "sqlite")]
    database: Kind,
    /// Apps, each with a survey.
    #[arg(long, default_value_t = 1_000)]
    apps: u32,
    /// Starts after the first one, which compiles the plugins.
    #[arg(long, default_value_t = 5)]
    starts: usize,
}

pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let databases = Databases::new(arguments.database)?;
    let mut table = Table::new(&["", "measured", "goal", ""]);
    let (mut starts, mut firsts) = (Vec::new(), Vec::new());
    // Compiles the plugins and makes the tables.
    let mut server = Server::start(&databases, 0).await?;
    for _ in 0..arguments.starts {
        let began = Instant::now();
        server = server.restart(&databases, 0).await?;
        starts.push(began.elapsed().as_secs_f64());
        let began = Instant::now();
        drive::people(&server, 1).await?;
        firsts.push(began.elapsed().as_secs_f64());
    }
    for (name, times, goal) in [
        ("stop and start", starts, START),
        ("first request, a session", firsts, FIRST),
    ] {
        let measured = median(times);
        table.row(&[
            name.to_owned(),
            format!("{:.0} ms", measured * 1e3),
            format!("<= {} ms", goal.as_millis()),
            verdict(measured <= goal.as_secs_f64()).to_owned(),
        ]);
    }

    tokio::time::sleep(QUIET).await;
    memory(&mut table, "alone", &server, ALONE)?;
    server = server.restart(&databases, arguments.apps).await?;
    use_apps(&server).await?;
    tokio::time::sleep(QUIET).await;
    let name = format!("{} apps in use", arguments.apps);
    memory(&mut table, &name, &server, WITH_APPS)?;
    server.stop().await?;
    Ok(table.print()?)
}

/// All of a process's memory, and that of it which is not its program.
fn memory(table: &mut Table, name: &str, server: &Server, goal: u64) -> anyhow::Result<()> {
    let megabytes = |bytes: u64| bytes.div_ceil(1_000_000);
    let all = server.resident()?;
    table.row(&[
        format!("memory, {name}; of it the server's own"),
        format!("{} MB; {}", megabytes(all), megabytes(server.memory()?)),
        format!("<= {} MB", goal / 1_000_000),
        verdict(all <= goal).to_owned(),
    ]);
    Ok(())
}

/// Makes a survey in each app: an app that is asked for is in memory from then on.
async fn use_apps(server: &Server) -> anyhow::Result<()> {
    let mut tx = server.db().read().await?;
    let apps: Vec<Uuid> = tx.sql("SELECT id FROM apps").fetch_values().await?;
    drop(tx);
    let authorization = format!("Bearer {}", server.access("editorToken")?);
    let headers = [("Authorization", authorization.as_str())];
    let mut connection = Connection::open(server.address()).await?;
    for app in apps {
        let path = format!("/v1/apps/{app}/surveys");
        let survey = drive::survey_body("order_completed", &json!({}));
        let made = connection.call("POST", &path, &headers, &survey).await;
        made.with_context(|| format!("a survey of the app {app}"))?;
    }
    Ok(())
}
