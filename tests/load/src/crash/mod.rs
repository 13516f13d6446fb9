//! `kill -9` at any moment, again and again, while clients send, and servers that stand still for a while: what was
//! acknowledged is there once, and everything that follows from it happened once. What leaves the servers is told apart: a push message is handed over
//! once at the most, a webhook's message once at least.

mod caller;
mod clients;
mod identity;
mod ledger;
mod outside;
mod walks;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, RwLock};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use clap::Args;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::child::Process;
use crate::client::Connection;
use crate::database::{Databases, Fresh, Kind};
use crate::failover::Pair;
use crate::random::Random;
use crate::report::say;
use clients::Client;
use identity::Backend;
use ledger::Sent;
use outside::Outside;
use walks::{Walk, Walker};

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
/// The event that fires a survey after [`DELAY`], unless [`BOUGHT`] comes first.
const LEFT: &str = "cart_left";
/// The event that cancels what waits.
const BOUGHT: &str = "cart_bought";
/// The event that fires a survey at once, for people who merge.
const LIKED: &str = "page_liked";
/// How long a firing waits that can be cancelled.
const DELAY: Duration = Duration::from_secs(3);
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
    /// How often a server stands still (SIGSTOP) and goes on, besides.
    #[arg(long, default_value_t = 5)]
    pauses: usize,
    /// For how many seconds at the most.
    #[arg(long, default_value_t = 20)]
    longest_pause: u64,
    /// How often the database server (`PostgreSQL`) is restarted during the run, as if it had crashed.
    #[arg(long, default_value_t = 0)]
    restarts: usize,
    /// How often the primary (`PostgreSQL`) goes away during the run, and its standby takes its place.
    #[arg(long, default_value_t = 0)]
    failover: usize,
    #[arg(long, default_value_t = 6)]
    clients: usize,
    /// People who merge at a time, while something waits that may be cancelled.
    #[arg(long, default_value_t = 12)]
    walkers: usize,
    /// Where random lifetimes and events begin; printed, so that a run can be made again.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

impl Arguments {
    /// Whether what is asked for goes together.
    fn check(&self) -> anyhow::Result<()> {
        if self.processes > 1 && self.database == Kind::Sqlite {
            bail!("an SQLite database has one server; try --database postgres");
        }
        if self.restarts + self.failover > 0 && self.database == Kind::Sqlite {
            bail!("an SQLite database is no server that could be restarted or replaced");
        }
        if self.restarts > 0 && self.failover > 0 {
            bail!("a run has restarts of the database or failovers, not both");
        }
        Ok(())
    }
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
    pair: Option<Pair>,
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

    async fn stand_still(&self, number: usize, pause: Duration) -> anyhow::Result<()> {
        let process = self.running.get(number).and_then(Option::as_ref);
        let process = process.context("a server")?;
        process.signal("-STOP")?;
        tokio::time::sleep(pause).await;
        process.signal("-CONT")
    }

    fn first(&self) -> anyhow::Result<&Process> {
        self.running.iter().flatten().next().context("a server")
    }
}

pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<()> {
    arguments.check()?;
    say(format_args!("seed {}", arguments.seed))?;
    let databases = Databases::new(arguments.database)?;
    let mut database = databases.fresh()?;
    let pair = match arguments.failover {
        0 => None,
        _ => Some(Pair::start().await?),
    };
    if let Some(pair) = &pair {
        database.url.clone_from(&pair.url);
    }
    let outside = Outside::start().await?;
    let mut servers = Servers {
        databases: &databases,
        database: &database,
        outside: &outside,
        pair,
        running: (0..arguments.processes).map(|_| None).collect(),
    };
    for number in 0..arguments.processes {
        servers.start(number).await?;
    }
    furnish(servers.first()?).await?;
    outside.furnish(servers.first()?, arguments.clients).await?;
    let backend = Arc::new(Backend::new(servers.first()?).await?);
    // The other servers read what changed within a second.
    tokio::time::sleep(LEARNS).await;
    let reachable = Reachable::default();
    reachable.set(&servers.running)?;

    let crowd = Crowd::start(&arguments, &reachable, &backend);
    let killed = kill(&arguments, &mut servers, &reachable).await;
    let (sent, walks) = crowd.stop().await?;
    killed?;
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
    let last = Walker::new(arguments.walkers, arguments.seed, reachable, backend);
    walks::compare(&db, last, walks).await?;
    outside.compare(&db).await?;
    db.close().await;
    for process in servers.running.into_iter().flatten() {
        process.stop()?;
    }
    Ok(say("everything is there once")?)
}

/// Everybody who sends until they are told to stop.
struct Crowd {
    clients: JoinSet<anyhow::Result<Sent>>,
    walkers: JoinSet<anyhow::Result<Vec<Walk>>>,
    stop: Arc<AtomicBool>,
}

impl Crowd {
    fn start(arguments: &Arguments, reachable: &Reachable, backend: &Arc<Backend>) -> Self {
        let stop = Arc::<AtomicBool>::default();
        let mut clients = JoinSet::new();
        for number in 0..arguments.clients {
            let client = Client::new(number, arguments.seed, reachable.clone(), Arc::clone(&stop));
            clients.spawn(client.run());
        }
        let mut walkers = JoinSet::new();
        for number in 0..arguments.walkers {
            let (reachable, backend) = (reachable.clone(), Arc::clone(backend));
            let walker = Walker::new(number, arguments.seed, reachable, backend);
            walkers.spawn(walker.run(Arc::clone(&stop)));
        }
        Self {
            clients,
            walkers,
            stop,
        }
    }

    /// Tells all to stop; answers what was acknowledged, and who became one.
    async fn stop(mut self) -> anyhow::Result<(Sent, Vec<Walk>)> {
        self.stop.store(true, Ordering::Relaxed);
        let mut sent = Sent::default();
        while let Some(client) = self.clients.join_next().await {
            sent.extend(client??);
        }
        let mut walks = Vec::new();
        while let Some(walked) = self.walkers.join_next().await {
            walks.extend(walked??);
        }
        for walk in &walks {
            walk.add_to(&mut sent);
        }
        Ok((sent, walks))
    }
}

/// Kills servers and has them stand still, one at a time, at random moments.
async fn kill(
    arguments: &Arguments,
    servers: &mut Servers<'_>,
    reachable: &Reachable,
) -> anyhow::Result<()> {
    let mut random = Random::new(arguments.seed);
    let (least, most) = LIFETIME;
    let mut pauses = arguments.pauses;
    let mut turn = 0;
    while turn < arguments.kills || pauses > 0 {
        let lifetime = least + random.below(most - least);
        tokio::time::sleep(Duration::from_millis(lifetime)).await;
        let left = (arguments.kills - turn + pauses) as u64;
        if random.below(left) < pauses as u64 {
            pauses -= 1;
            let number = usize::try_from(random.below(arguments.processes as u64))?;
            let pause = Duration::from_millis(random.below(arguments.longest_pause * 1_000 + 1));
            servers.stand_still(number, pause).await?;
            continue;
        }
        turn += 1;
        let number = turn % arguments.processes;
        servers.kill(number)?;
        reachable.set(&servers.running)?;
        // Evenly over the run: with every so manieth kill, while other servers run.
        let restarts = |turns: usize| turns * arguments.restarts / arguments.kills;
        if restarts(turn) > restarts(turn - 1) {
            tokio::task::block_in_place(|| servers.databases.crash());
        }
        let failovers = |turns: usize| turns * arguments.failover / arguments.kills;
        if let Some(pair) = &mut servers.pair
            && failovers(turn) > failovers(turn - 1)
        {
            tokio::task::block_in_place(|| pair.fail_over());
            say(format_args!("a failover after {turn} kills"))?;
        }
        servers.start(number).await?;
        reachable.set(&servers.running)?;
        if turn.is_multiple_of(10) {
            say(format_args!("{turn} kills"))?;
        }
    }
    Ok(())
}

/// A survey for each event that fires one, and a definition that every broken event breaks.
async fn furnish(process: &Process) -> anyhow::Result<()> {
    for (name, delay) in [
        (ORDERED, 0),
        (CARTED, 1),
        (LIKED, 0),
        (LEFT, DELAY.as_secs()),
    ] {
        let cancels = if name == LEFT {
            json!([{"eventName": BOUGHT}])
        } else {
            json!([])
        };
        let question =
            json!({"id": "q1", "type": "nps", "title": "How likely are you to come back?"});
        let survey = json!({
            "name": name, "status": "active", "mode": "triggered",
            "trigger": {
                "kind": "event", "eventName": name, "delaySeconds": delay, "cancelOn": cancels,
                "occurrence": {"mode": "every"},
            },
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
