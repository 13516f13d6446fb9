//! Pushes that events trigger: how long it takes from the event to the push service, with so many events a second.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use clap::Args;
use nudge_db::Rows;
use nudge_platform::clock::Clock;
use serde_json::{Value, json};
use tests::providers::Providers;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;
use uuid::Uuid;

use crate::child::{Server, borrowed};
use crate::client::Connection;
use crate::database::{Databases, Kind};
use crate::drive;
use crate::random::Random;
use crate::recipients::{Device, Service, register};
use crate::report::{Latency, Table, median, say, verdict};
use crate::request::{AWAITED, Delivery, Person, Request};

/// Connections of clients.
const CLIENTS: usize = 16;
/// Events that nothing is measured of, at first.
const WARM_UP: usize = 200;
/// How long all messages may take to arrive after the last event.
const ARRIVES: Duration = Duration::from_mins(1);

/// What is measured.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[arg(long, value_enum, default_value = "sqlite")]
    database: Kind,
    /// The service that the devices are reached by.
    #[arg(long, value_enum, default_value = "fcm")]
    service: Service,
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Events a second; each is of another person.
    #[arg(long, default_value_t = 100)]
    rate: u32,
    /// Seconds of each round.
    #[arg(long, default_value_t = 10)]
    seconds: u32,
}

/// Latencies of a round, from before the request was sent.
#[derive(Clone, Copy, Debug)]
struct Measured {
    /// To the answer of the request with the event.
    answer: Latency,
    /// To the arrival at the push service.
    arrival: Latency,
}

/// An event's person, by number, with the instant of the request and of its answer.
type Asked = Arc<Mutex<HashMap<u32, (Instant, Instant)>>>;

pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let databases = Databases::new(arguments.database)?;
    let mut rounds = Vec::with_capacity(arguments.rounds);
    for round in 0..arguments.rounds {
        let measured = measure(&databases, &arguments).await?;
        say(format_args!("round {round}: {measured:.0?}"))?;
        rounds.push(measured);
    }
    let middle = |value: &dyn Fn(&Measured) -> f64| median(rounds.iter().map(value));
    let p50 = middle(&|round| round.arrival.p50);
    let p99 = middle(&|round| round.arrival.p99);
    let title = format!("{} events a second", arguments.rate);
    let mut table = Table::new(&[&title, "median of rounds", "goal", ""]);
    for (name, value, goal) in [
        ("event to push service, p50", p50, 20_000.0),
        ("event to push service, p99", p99, 100_000.0),
    ] {
        table.row(&[
            name,
            &format!("{:.1} ms", value / 1e3),
            &format!("<= {:.0} ms", goal / 1e3),
            verdict(value <= goal),
        ]);
    }
    for (name, value) in [
        ("event to answer, p50", middle(&|round| round.answer.p50)),
        ("event to answer, p99", middle(&|round| round.answer.p99)),
    ] {
        table.row(&[name, &format!("{:.1} ms", value / 1e3), "", ""]);
    }
    Ok(table.print()?)
}

/// One round on a server of its own.
async fn measure(databases: &Databases, arguments: &Arguments) -> anyhow::Result<Measured> {
    let providers = Providers::start(&Clock::default()).await;
    let device = Device::of(arguments.service, &providers);
    let variables = providers.variables();
    let server = Server::start_with(databases, 0, &borrowed(&variables)).await?;
    let count = WARM_UP + usize::try_from(arguments.rate * arguments.seconds)?;
    let people = drive::people(&server, count).await?;
    devices(&server, &device, &people).await?;
    drive::manage_as(
        &server,
        "adminToken",
        "push/credentials",
        &device.credential(),
    )
    .await?;
    drive::manage(&server, "campaigns", &campaign()).await?;
    let asked = send(&server, people, arguments.rate).await?;
    let last = Instant::now();
    while device.received().len() < count && last.elapsed() < ARRIVES {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let received = device.received();
    ensure!(
        received.len() == count,
        "{} of {count} messages arrived",
        received.len()
    );
    let mut arrived = HashMap::with_capacity(count);
    for request in received {
        arrived.insert(device.of_request(&request)?, request.at);
    }
    server.stop().await?;
    let asked = asked.lock().unwrap_or_else(PoisonError::into_inner);
    let (mut answers, mut arrivals) = (Vec::new(), Vec::new());
    for number in u32::try_from(WARM_UP)?..u32::try_from(count)? {
        let (sent, answered) = asked.get(&number).context("an event of each")?;
        let at = arrived
            .get(&device.name(number))
            .context("a message to each")?;
        answers.push(*answered - *sent);
        arrivals.push(at.saturating_duration_since(*sent));
    }
    Ok(Measured {
        answer: Latency::of(&answers),
        arrival: Latency::of(&arrivals),
    })
}

/// Everybody is greeted with a value of the event.
fn campaign() -> Value {
    let personalization = json!({
        "version": 1, "missingData": "skip",
        "sources": [{"id": "order", "kind": "trigger_event"}],
        "bindings": [{"id": "sku", "sourceId": "order", "key": "sku", "type": "string"}],
    });
    json!({
        "name": "Thanks", "mode": "triggered", "status": "active",
        "trigger": {"kind": "event", "eventName": AWAITED},
        "variants": [{"title": "Thank you", "body": "for {{p.sku}}", "weight": 1, "personalization": personalization}],
    })
}

/// Registers a device of each, past the server.
async fn devices(server: &Server, device: &Device<'_>, people: &[Person]) -> anyhow::Result<()> {
    let app_id: Uuid = server.access("appId")?.parse()?;
    let mut first = 0;
    for some in people.chunks(Rows::MOST) {
        let names = some.iter().map(|person| person.anonymous_id.clone());
        let mut tx = server.db().write().await?;
        let found: Vec<(String, Uuid)> = tx
            .with_rows("v(name)", Rows::new().texts(names))
            .push(" SELECT a.value, a.subject_id FROM v JOIN aliases a ON a.value = v.name WHERE a.app_id = ")
            .push_bind(app_id)
            .fetch_all()
            .await?;
        let found: HashMap<String, Uuid> = found.into_iter().collect();
        let ids = some
            .iter()
            .filter_map(|person| found.get(&person.anonymous_id).copied());
        let ids: Vec<Uuid> = ids.collect();
        ensure!(ids.len() == some.len(), "somebody is not there");
        register(&mut tx, app_id, &ids, (device, first)).await?;
        tx.commit().await?;
        first += ids.len();
    }
    Ok(())
}

/// Sends an event of each, so many a second; the first ones as fast as it goes.
async fn send(server: &Server, people: Vec<Person>, rate: u32) -> anyhow::Result<Asked> {
    let (write_key, asked) = (server.access("writeKey")?.to_owned(), Asked::default());
    let (due, next) = mpsc::unbounded_channel::<(u32, Person)>();
    let next = Arc::new(tokio::sync::Mutex::new(next));
    let mut clients = JoinSet::new();
    for client in 0..CLIENTS {
        let mut connection = Connection::open(server.address()).await?;
        let (next, asked, write_key) = (Arc::clone(&next), Arc::clone(&asked), write_key.clone());
        let mut random = Random::new(client as u64 + 1);
        let clock = Clock::default();
        clients.spawn(async move {
            loop {
                let Some((number, person)) = next.lock().await.recv().await else {
                    return anyhow::Ok(());
                };
                let mut request = Request::new(&write_key, &person, AWAITED, 1, Delivery::None);
                let bytes = request.renew(&mut random, clock.now());
                let sent = Instant::now();
                let answer = connection.send(bytes).await?;
                let answered = Instant::now();
                ensure!(
                    answer.status == 200,
                    "{}",
                    String::from_utf8_lossy(answer.body)
                );
                let mut asked = asked.lock().unwrap_or_else(PoisonError::into_inner);
                asked.insert(number, (sent, answered));
            }
        });
    }
    let mut turn = tokio::time::interval(Duration::from_secs(1) / rate);
    turn.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for (number, person) in (0..).zip(people) {
        if number as usize >= WARM_UP {
            turn.tick().await;
        }
        due.send((number, person)).context("clients wait")?;
    }
    drop(due);
    while let Some(done) = clients.join_next().await {
        done??;
    }
    Ok(asked)
}
