//! Requests at an even rate, whatever else the server does.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use nudge_platform::clock::Clock;
use tokio::task::JoinSet;

use crate::child::Server;
use crate::client::Connection;
use crate::random::Random;
use crate::report::Latency;
use crate::request::{Delivery, Person, Request};

const CLIENTS: u32 = 8;

/// What is sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paced {
    pub(crate) name: &'static str,
    /// Events of a request.
    pub(crate) events: usize,
    pub(crate) delivery: Delivery,
    /// Requests a second, of all clients together.
    pub(crate) rate: u32,
    pub(crate) seed: u64,
}

/// Sends requests until something has come to its end; answers their latencies, from when each was to be sent, and what came of that.
///
/// # Errors
/// A request fails, or what else is done.
pub(crate) async fn beside<T>(
    server: &Server,
    people: &[Person],
    loads: &[Paced],
    work: impl Future<Output = anyhow::Result<T>>,
) -> anyhow::Result<(Vec<Latency>, T)> {
    let stop = Arc::new(AtomicBool::new(false));
    let sending = loads.iter().map(|load| send(server, people, *load, &stop));
    let sending = futures_util::future::try_join_all(sending);
    let working = async {
        let came = work.await;
        stop.store(true, Ordering::Relaxed);
        came
    };
    tokio::try_join!(sending, working)
}

async fn send(
    server: &Server,
    people: &[Person],
    load: Paced,
    stop: &Arc<AtomicBool>,
) -> anyhow::Result<Latency> {
    let write_key = server.access("writeKey")?;
    let mut running = JoinSet::new();
    let period = Duration::from_secs(1) * CLIENTS / load.rate;
    let start = Instant::now() + Duration::from_millis(50);
    for number in 0..CLIENTS {
        let own = people.iter().skip(number as usize);
        let own = own.step_by(CLIENTS as usize);
        let client = Client {
            connection: Connection::open(server.address()).await?,
            requests: own
                .map(|person| {
                    Request::new(write_key, person, load.name, load.events, load.delivery)
                })
                .collect(),
            random: Random::new((load.seed << 16) | u64::from(number)),
            decides: load.delivery == Delivery::First,
            due: start + period * number / CLIENTS,
            period,
            stop: Arc::clone(stop),
        };
        running.spawn(client.run());
    }
    let mut latencies = Vec::new();
    while let Some(done) = running.join_next().await {
        latencies.extend(done??);
    }
    Ok(Latency::of(&latencies))
}

struct Client {
    connection: Connection,
    requests: Vec<Request>,
    random: Random,
    /// Whether each request fires something.
    decides: bool,
    due: Instant,
    period: Duration,
    stop: Arc<AtomicBool>,
}

impl Client {
    async fn run(mut self) -> anyhow::Result<Vec<Duration>> {
        let clock = Clock::default();
        let mut latencies = Vec::new();
        for number in (0..self.requests.len()).cycle() {
            let request = self.requests.get_mut(number);
            let request = request.context("nobody to send for")?;
            tokio::time::sleep_until(self.due.into()).await;
            if self.stop.load(Ordering::Relaxed) {
                break;
            }
            let bytes = request.renew(&mut self.random, clock.now());
            let answer = self.connection.send(bytes).await?;
            latencies.push(self.due.elapsed());
            let body = std::str::from_utf8(answer.body)?;
            let fired = body.matches("\"instructionId\"").count();
            ensure!(
                answer.status == 200 && fired == usize::from(self.decides),
                "{} {body}",
                answer.status
            );
            self.due += self.period;
        }
        Ok(latencies)
    }
}
