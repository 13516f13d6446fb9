//! `kill -9` at any moment, again and again, while clients send: what was acknowledged is there once, and
//! everything that follows from it happened once. What leaves the servers is told apart: a push message is handed over
//! once at the most, a webhook's message once at least.

mod clients;
mod ledger;
mod outside;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, RwLock};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use clap::Args;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::child::Process;
use crate::client::Connection;
use crate::database::{Databases, Fresh, Kind};
use crate::random::Random;
use crate::report::say;
use clients::Client;
use ledger::Sent;
use outside::Outside;

/// The event that fires a survey at once.
const ORDERED: &str = "order_completed";
/// The event that fires a survey a second later.
const CARTED: &str = "cart_updated";
/// The event that causes a push message.
const PUSHED: &str = "wishlist_updated";
/// The event that nothing waits for.
const VIEWED: &str = "product_viewed";
/// The event that always breaks its definition.
const BROKEN: &str = "broken_event";
/// How long servers may live between two kills, in milliseconds.
const LIFETIME: (u64, u64) = (20, 1_200);

/// Longer than a server takes to learn what another one changed.
const LEARNS: Duration = Duration::from_secs(2);

/// What is tried.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[arg(long, value_enum, default_value = "sqlite")]
    database: Kind,
    /// Servers that share the database (`PostgreSQL`); one is killed at a time.
    #[arg(long, default_value_t = 1)]
    processes: usize,
    #[arg(long, default_value_t = 50)]
    kills: usize,
    /// How often the database server (`PostgreSQL`) is restarted during the run, as if it had crashed.
    #[arg(long, default_value_t = 0)]
    restarts: usize,
    #[arg(long, default_value_t = 6)]
    clients: usize,
    /// Where random lifetimes and events begin; printed, so that a run can be made again.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// The servers that clients can reach at the moment, with a key that each accepts.
#[derive(Clone, Debug, Default)]
struct Reachable(Arc<RwLock<Vec<(SocketAddr, String)>>>);

impl Reachable {
    fn set(&self, processes: &[Option<Process>]) -> anyhow::Result<()> {
        let reachable = processes.iter().flatten();
        let reachable: anyhow::Result<Vec<_>> = reachable
            .map(|process| Ok((process.address(), process.access("writeKey")?.to_owned())))
            .collect();
        let mut all = self.0.write().map_err(|_| anyhow::anyhow!("a panic"))?;
        *all = reachable?;
        Ok(())
    }

    /// One of them, or none while there is none.
    fn pick(&self, random: &mut Random) -> Option<(SocketAddr, String)> {
        let all = self.0.read().ok()?;
        let place = usize::try_from(random.below(all.len().max(1) as u64)).ok()?;
        all.get(place).cloned()
    }
}

/// The servers under test.
struct Servers<'d> {
    databases: &'d Databases,
    database: &'d Fresh,
    outside: &'d Outside,
    running: Vec<Option<Process>>,
}

impl Servers<'_> {
    async fn start(&mut self, number: usize) -> anyhow::Result<()> {
        let folder: PathBuf = self.database.directory.path().join(number.to_string());
        std::fs::create_dir_all(&folder)?;
        let variables = self.outside.variables();
        let url = &self.database.url;
        let process = Process::start(self.databases, url, &folder, 0, &variables).await?;
        *self.running.get_mut(number).context("a server")? = Some(process);
        Ok(())
    }

    fn kill(&mut self, number: usize) -> anyhow::Result<()> {
        let process = self.running.get_mut(number).and_then(Option::take);
        process.context("a server")?.kill()
    }

    fn first(&self) -> anyhow::Result<&Process> {
        self.running.iter().flatten().next().context("a server")
    }
}

pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<()> {
    if arguments.processes > 1 && arguments.database == Kind::Sqlite {
        bail!("an SQLite database has one server; try --database postgres");
    }
    if arguments.restarts > 0 && arguments.database == Kind::Sqlite {
        bail!("an SQLite database is no server that could be restarted");
    }
    say(format_args!("seed {}", arguments.seed))?;
    let databases = Databases::new(arguments.database)?;
    let database = databases.fresh()?;
    let outside = Outside::start().await?;
    let mut servers = Servers {
        databases: &databases,
        database: &database,
        outside: &outside,
        running: (0..arguments.processes).map(|_| None).collect(),
    };
    for number in 0..arguments.processes {
        servers.start(number).await?;
    }
    furnish(servers.first()?).await?;
    outside.furnish(servers.first()?, arguments.clients).await?;
    // The other servers read what changed within a second.
    tokio::time::sleep(LEARNS).await;
    let reachable = Reachable::default();
    reachable.set(&servers.running)?;

    let stop = Arc::default();
    let mut clients = JoinSet::new();
    for number in 0..arguments.clients {
        let client = Client::new(number, arguments.seed, reachable.clone(), Arc::clone(&stop));
        clients.spawn(client.run());
    }
    let killed = kill(&arguments, &mut servers, &reachable).await;
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    killed?;
    let mut sent = Sent::default();
    while let Some(client) = clients.join_next().await {
        sent.extend(client??);
    }
    say(format_args!(
        "{} events acknowledged in {} requests, {} of which were sent more than once",
        sent.events.len(),
        sent.requests,
        sent.repeated
    ))?;
    let db = database.open(2).await?;
    let settled = Instant::now();
    ledger::settle(&db).await?;
    say(format_args!("settled after {:.1?}", settled.elapsed()))?;
    ledger::compare(&db, &sent).await?;
    outside.compare(&db).await?;
    db.close().await;
    for process in servers.running.into_iter().flatten() {
        process.stop()?;
    }
    Ok(say("everything is there once")?)
}

/// Kills servers, one at a time, at random moments.
async fn kill(
    arguments: &Arguments,
    servers: &mut Servers<'_>,
    reachable: &Reachable,
) -> anyhow::Result<()> {
    let mut random = Random::new(arguments.seed);
    let (least, most) = LIFETIME;
    for turn in 1..=arguments.kills {
        let lifetime = least + random.below(most - least);
        tokio::time::sleep(Duration::from_millis(lifetime)).await;
        let number = turn % arguments.processes;
        servers.kill(number)?;
        reachable.set(&servers.running)?;
        // Evenly over the run: with every so manieth kill, while other servers run.
        let restarts = |turns: usize| turns * arguments.restarts / arguments.kills;
        if restarts(turn) > restarts(turn - 1) {
            tokio::task::block_in_place(|| servers.databases.crash());
        }
        servers.start(number).await?;
        reachable.set(&servers.running)?;
        if turn.is_multiple_of(10) {
            say(format_args!("{turn} kills"))?;
        }
    }
    Ok(())
}

/// A survey for each of the two events, and a definition that every event of the third breaks.
async fn furnish(process: &Process) -> anyhow::Result<()> {
    for (name, delay) in [(ORDERED, 0), (CARTED, 1)] {
        let question =
            json!({"id": "q1", "type": "nps", "title": "How likely are you to come back?"});
        let survey = json!({
            "name": name, "status": "active", "mode": "triggered",
            "trigger": {"kind": "event", "eventName": name, "delaySeconds": delay, "occurrence": {"mode": "every"}},
            "flow": {"questions": [question]},
        });
        manage(process, "surveys", &survey).await?;
    }
    let missing = json!({"name": "missing", "type": "string", "required": true});
    let definition = json!({"name": BROKEN, "properties": [missing]});
    manage(process, "event-definitions", &definition).await
}

async fn manage(process: &Process, resource: &str, body: &Value) -> anyhow::Result<()> {
    let path = format!("/v1/apps/{}/{resource}", process.access("appId")?);
    let authorization = format!("Bearer {}", process.access("adminToken")?);
    let headers = [("Authorization", authorization.as_str())];
    let mut connection = Connection::open(process.address()).await?;
    connection.call("POST", &path, &headers, body).await?;
    Ok(())
}
