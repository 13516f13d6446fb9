//! Clients that send events, each as soon as its last request is answered.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use tokio::task::JoinSet;

use super::client::Connection;
use super::random::Random;
use super::request::{Person, Request};

/// What clients send.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    pub(super) clients: usize,
    pub(super) requests: usize,
    /// Of a request.
    pub(super) events: usize,
}

/// How that went.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// From the first request to the last answer.
    pub(super) time: Duration,
    /// Until the server had done everything that follows from them.
    pub(super) processed: Duration,
    pub(super) latencies: Vec<Duration>,
    /// The server's processor time.
    pub(super) cpu: Duration,
}

/// A server that is sent a load.
pub(super) trait Server: Sync {
    fn address(&self) -> SocketAddr;
    fn write_key(&self) -> &str;
    fn cpu(&self) -> anyhow::Result<Duration>;
    /// Waits until nothing is left to do.
    fn drained(&self) -> impl Future<Output = anyhow::Result<()>> + Send;
    /// How many events are stored.
    fn stored(&self) -> impl Future<Output = anyhow::Result<usize>> + Send;
}

impl Load {
    /// The first requests prepare statements and fill caches.
    fn warm_up(self) -> Self {
        Self {
            requests: self.clients * 8,
            ..self
        }
    }
}

/// Warms a server up, and measures.
pub(super) async fn run(
    server: &impl Server,
    people: &[Person],
    load: Load,
) -> anyhow::Result<Outcome> {
    send(server, people, load.warm_up(), 100).await?;
    let outcome = send(server, people, load, 1).await?;
    let expected = (load.warm_up().requests + load.requests) * load.events;
    let stored = server.stored().await?;
    if stored != expected {
        bail!("{stored} events are stored, {expected} were acknowledged");
    }
    Ok(outcome)
}

async fn send(
    server: &impl Server,
    people: &[Person],
    load: Load,
    seed: u64,
) -> anyhow::Result<Outcome> {
    let mut clients = Vec::with_capacity(load.clients);
    for number in 0..load.clients {
        let own = people.iter().skip(number).step_by(load.clients);
        clients.push(Client {
            connection: Connection::open(server.address()).await?,
            requests: own
                .map(|person| Request::new(server.write_key(), person, load.events))
                .collect(),
            random: Random::new((seed << 16) | number as u64),
            expected: format!("\"accepted\":{},", load.events),
        });
    }
    let before = server.cpu()?;
    let mut running = JoinSet::new();
    let started = Instant::now();
    for client in clients {
        running.spawn(client.run(load.requests / load.clients));
    }
    let mut latencies = Vec::with_capacity(load.requests);
    while let Some(done) = running.join_next().await {
        latencies.extend(done??);
    }
    let time = started.elapsed();
    server.drained().await?;
    let processed = started.elapsed();
    let cpu = server.cpu()?.saturating_sub(before);
    Ok(Outcome {
        time,
        processed,
        latencies,
        cpu,
    })
}

struct Client {
    connection: Connection,
    requests: Vec<Request>,
    random: Random,
    expected: String,
}

impl Client {
    async fn run(mut self, count: usize) -> anyhow::Result<Vec<Duration>> {
        let people = self.requests.len();
        let mut latencies = Vec::with_capacity(count);
        for number in 0..count {
            let request = self.requests.get_mut(number % people);
            let bytes = request
                .context("nobody to send for")?
                .renew(&mut self.random);
            let started = Instant::now();
            let answer = self.connection.send(bytes).await?;
            latencies.push(started.elapsed());
            let mut parts = answer.body.windows(self.expected.len());
            if answer.status != 200 || !parts.any(|part| part == self.expected.as_bytes()) {
                let body = String::from_utf8_lossy(answer.body);
                bail!("{} {body}", answer.status);
            }
        }
        Ok(latencies)
    }
}
