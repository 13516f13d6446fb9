//! A broadcast to many people through a push service of the driver's own, and, if asked for, `kill -9` amid it:
//! nobody gets it twice, nobody is left out.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::ensure;
use clap::Args;
use nudge_db::Db;
use nudge_platform::clock::Clock;
use nudge_platform::id;
use nudge_records::deliveries::store::insert;
use nudge_records::deliveries::{NewDelivery, Status, Urgency};
use serde_json::{Value, json};
use tests::providers::{Providers, Received};
use uuid::Uuid;

use crate::alone::Request;
use crate::child::{Process, borrowed};
use crate::client::Connection;
use crate::database::{Databases, Fresh, Kind};
use crate::random::Random;
use crate::recipients::{Device, Service, people};
use crate::report::{Table, rate, say};

/// Rows of a statement and transaction.
const ROWS: usize = 500;
/// How often it is looked how far the broadcast is.
const LOOK: Duration = Duration::from_millis(200);
/// Requests of which the service is measured alone, at the most.
const ALONE: usize = 20_000;
/// How long servers live between two kills, in milliseconds.
const LIFETIME: (u64, u64) = (500, 3_000);
/// Without a step forward for so long, the broadcast is stuck.
const PATIENCE: Duration = Duration::from_mins(2);

/// What is tried.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[arg(long, value_enum, default_value = "sqlite")]
    database: Kind,
    /// The service that the devices are reached by.
    #[arg(long, value_enum, default_value = "fcm")]
    service: Service,
    #[arg(long, default_value_t = 100_000)]
    people: usize,
    /// How often the server is killed amid it and started again.
    #[arg(long, default_value_t = 0)]
    kills: usize,
    /// Where random lifetimes begin; printed, so that a run can be made again.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// How long it took from the request until what was done.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Times {
    /// Everybody was found by the run.
    listed: Duration,
    /// Everybody had a delivery.
    queued: Duration,
    /// Nothing was left to be done.
    pub(crate) done: Duration,
}

pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<()> {
    say(format_args!("seed {}", arguments.seed))?;
    let providers = Providers::start(&Clock::default()).await;
    let device = Device::of(arguments.service, &providers);
    let databases = Databases::new(arguments.database)?;
    let database = databases.fresh()?;
    let servers = Servers {
        databases: &databases,
        database: &database,
        variables: variables(&providers),
    };
    let process = servers.start().await?;
    let db = database.open(2).await?;
    let people = people(&db, &process, &device, arguments.people).await?;
    say(format_args!("{} people have a device each", people.len()))?;
    manage(&process, "push/credentials", &device.credential()).await?;
    let started = Instant::now();
    manage(&process, "campaigns", &campaign()).await?;
    let (times, process) =
        tokio::try_join!(watch(&db, started), kill(&arguments, &servers, process))?;
    let received = device.received();
    compare(&db, &device, &people, &received).await?;
    db.close().await;
    process.stop()?;

    let bare = bare(&databases, arguments.people).await?;
    let some = received
        .get(..ALONE.min(received.len()))
        .unwrap_or_default();
    let alone = alone(&providers, some).await?;
    print(&arguments, times, bare, rate(some.len(), alone))
}

/// Starts the server that is killed, again and again.
struct Servers<'d> {
    databases: &'d Databases,
    database: &'d Fresh,
    variables: Vec<(&'static str, String)>,
}

impl Servers<'_> {
    async fn start(&self) -> anyhow::Result<Process> {
        let folder: &Path = self.database.directory.path();
        let variables = borrowed(&self.variables);
        Process::start(self.databases, &self.database.url, folder, 0, &variables).await
    }
}

fn variables(providers: &Providers) -> Vec<(&'static str, String)> {
    let mut variables = providers.variables();
    variables.push(("NUDGE_PIPELINE__NODE_TIMEOUT_SECONDS", "5".to_owned()));
    variables
}

/// Everybody is greeted by name.
pub(crate) fn campaign() -> Value {
    let personalization = json!({
        "version": 1, "missingData": "skip",
        "sources": [{"id": "profile", "kind": "user_property"}],
        "bindings": [{"id": "name", "sourceId": "profile", "key": "first_name", "type": "string"}],
    });
    json!({
        "name": "To everybody", "mode": "broadcast", "status": "active",
        "variants": [{"title": "Hello {{p.name}}", "body": "It is a sale", "weight": 1, "personalization": personalization}],
    })
}

async fn manage(process: &Process, resource: &str, body: &Value) -> anyhow::Result<Value> {
    let path = format!("/v1/apps/{}/{resource}", process.access("appId")?);
    let authorization = format!("Bearer {}", process.access("adminToken")?);
    let headers = [("Authorization", authorization.as_str())];
    let mut connection = Connection::open(process.address()).await?;
    connection.call("POST", &path, &headers, body).await
}

/// Kills the server at random moments and starts it again; answers the one that is left.
async fn kill(
    arguments: &Arguments,
    servers: &Servers<'_>,
    mut process: Process,
) -> anyhow::Result<Process> {
    let mut random = Random::new(arguments.seed);
    let (least, most) = LIFETIME;
    for _ in 0..arguments.kills {
        let lifetime = least + random.below(most - least);
        tokio::time::sleep(Duration::from_millis(lifetime)).await;
        process.kill()?;
        process = servers.start().await?;
    }
    Ok(process)
}

/// What is left to be done; none of it and a run that has begun: the broadcast is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, nudge_db::FromRow)]
struct Left {
    begun: i64,
    running: i64,
    /// Whether an occasion is left, whether a delivery waits, and whether one is in a server's hands.
    occasions: i64,
    waiting: i64,
    in_hand: i64,
    /// How many states deliveries came into.
    transitions: i64,
}

/// Waits until the broadcast is over.
pub(crate) async fn watch(db: &Db, started: Instant) -> anyhow::Result<Times> {
    let mut times = Times::default();
    let (mut before, mut moved) = (None, Instant::now());
    loop {
        let mut tx = db.read().await?;
        let left: Left = tx
            .sql(
                "SELECT (SELECT count(*) FROM jobs WHERE kind = 'campaign.run') AS begun,
                        (SELECT count(*) FROM jobs WHERE kind = 'campaign.run' AND completed_at IS NULL) AS running,
                        (SELECT count(*) FROM (SELECT 1 AS one FROM occasions LIMIT 1) AS first) AS occasions,
                        (SELECT count(*) FROM (SELECT 1 AS one FROM deliveries
                         WHERE due_at IS NOT NULL AND node IS NULL LIMIT 1) AS first) AS waiting,
                        (SELECT count(*) FROM (SELECT 1 AS one FROM deliveries
                         WHERE node IS NOT NULL LIMIT 1) AS first) AS in_hand,
                        (SELECT CAST(COALESCE(sum(count), 0) AS BIGINT) FROM delivery_counts) AS transitions",
            )
            .fetch_one()
            .await?;
        drop(tx);
        let now = started.elapsed();
        let until = |time: &mut Duration, over: bool| {
            if over && *time == Duration::ZERO {
                *time = now;
            }
        };
        let listed = left.begun > 0 && left.running == 0;
        until(&mut times.listed, listed);
        until(&mut times.queued, listed && left.occasions == 0);
        let over = listed && left.occasions + left.waiting + left.in_hand == 0;
        until(&mut times.done, over);
        if times.done > Duration::ZERO {
            return Ok(times);
        }
        if before != Some(left) {
            (before, moved) = (Some(left), Instant::now());
        }
        ensure!(moved.elapsed() < PATIENCE, "stuck: {left:?}");
        tokio::time::sleep(LOOK).await;
    }
}

#[derive(nudge_db::FromRow)]
struct Delivery {
    subject_id: Uuid,
    status: String,
    reason: Option<String>,
}

/// Compares deliveries with what the service got: each person has one delivery, no device was sent to twice, and
/// only messages whose outcome a kill left in doubt may have not arrived.
async fn compare(
    db: &Db,
    device: &Device<'_>,
    people: &[Uuid],
    received: &[Received],
) -> anyhow::Result<()> {
    let mut tx = db.read().await?;
    let deliveries: Vec<Delivery> = tx
        .sql("SELECT subject_id, status, reason FROM deliveries")
        .fetch_all()
        .await?;
    drop(tx);
    let whose: HashSet<Uuid> = deliveries.iter().map(|it| it.subject_id).collect();
    ensure!(
        deliveries.len() == people.len() && people.iter().all(|id| whose.contains(id)),
        "{} deliveries to {} of {} people",
        deliveries.len(),
        whose.len(),
        people.len()
    );
    let mut sent: HashMap<String, usize> = HashMap::new();
    for request in received {
        *sent.entry(device.of_request(request)?).or_default() += 1;
    }
    let twice = sent.values().filter(|count| **count > 1).count();
    let in_doubt: HashSet<Uuid> = deliveries
        .iter()
        .filter(|it| it.status == "sent" && it.reason.as_deref() == Some("outcome_unknown"))
        .map(|it| it.subject_id)
        .collect();
    let delivered = deliveries.iter().filter(|it| it.status == "delivered");
    let delivered = delivered.count();
    let mut left_out = 0;
    for (number, subject_id) in people.iter().enumerate() {
        let name = device.name(u32::try_from(number)?);
        if !sent.contains_key(&name) && !in_doubt.contains(subject_id) {
            left_out += 1;
        }
    }
    say(format_args!(
        "{delivered} delivered, {} in doubt, {} requests; {twice} devices were sent to twice, {left_out} people left out",
        in_doubt.len(),
        received.len()
    ))?;
    ensure!(twice == 0, "somebody got it twice");
    ensure!(left_out == 0, "somebody was left out");
    ensure!(
        delivered + in_doubt.len() == people.len(),
        "a delivery is neither delivered nor in doubt"
    );
    Ok(())
}

/// How long it takes to insert as many rows of deliveries into a fresh database.
async fn bare(databases: &Databases, count: usize) -> anyhow::Result<Duration> {
    let database = databases.fresh()?;
    let db = database.open(2).await?;
    db.migrate(&nudge_platform::schema::migrations()).await?;
    let now = Clock::default().now();
    let campaign_id = id::new(now);
    let rows: Vec<NewDelivery> = (0..count)
        .map(|_| NewDelivery {
            id: id::new(now),
            campaign_id,
            campaign_version: 1,
            variant_id: campaign_id,
            subject_id: id::new(now),
            event: None,
            data: None,
            idempotency_key: None,
            test: false,
            recipients: 0,
            status: Status::Queued,
            reason: None,
            content: None,
            urgency: Urgency::Rest,
            node: None,
        })
        .collect();
    let started = Instant::now();
    for chunk in rows.chunks(ROWS) {
        let mut tx = db.write().await?;
        insert(&mut tx, Uuid::from_u128(7), chunk, now).await?;
        tx.commit().await?;
    }
    let time = started.elapsed();
    db.close().await;
    Ok(time)
}

/// How long the service takes for the same requests if that is all that is done.
async fn alone(providers: &Providers, requests: &[Received]) -> anyhow::Result<Duration> {
    let pem = std::fs::read(providers.roots())?;
    let client = reqwest::Client::builder()
        .tls_certs_only(reqwest::Certificate::from_pem_bundle(&pem)?)
        .build()?;
    let requests = requests.iter().map(|request| Request {
        url: format!("{}{}", request.origin, request.path),
        headers: request.headers.clone(),
        body: request.body.clone().into(),
    });
    crate::alone::alone(&client, requests.collect()).await
}

fn print(arguments: &Arguments, times: Times, bare: Duration, alone: f64) -> anyhow::Result<()> {
    let people = arguments.people;
    let whole = rate(people, times.done);
    if arguments.kills == 0 {
        let mut table = Table::new(&["ratio", ""]);
        let of_service = format!("{:.2}", whole / alone);
        table.row(&[
            "messages a second / what the service takes alone",
            &of_service,
        ]);
        let of_rows = bare.as_secs_f64() / times.done.as_secs_f64();
        table.row(&[
            "bare inserts of the same rows, time / the broadcast's",
            &format!("{of_rows:.3}"),
        ]);
        table.print()?;
    }
    let mut table = Table::new(&[&format!("{people} people"), "after", "a second"]);
    for (name, time) in [
        ("found by the run", times.listed),
        ("queued", times.queued),
        ("handed over, outcome noted", times.done),
    ] {
        let rate = format!("{:.0}", rate(people, time));
        table.row(&[name, &format!("{:.1} s", time.as_secs_f64()), &rate]);
    }
    table.row(&["the service alone", "", &format!("{alone:.0}")]);
    let rate = format!("{:.0}", rate(people, bare));
    table.row(&[
        "bare inserts",
        &format!("{:.1} s", bare.as_secs_f64()),
        &rate,
    ]);
    Ok(table.print()?)
}
