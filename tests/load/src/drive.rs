//! An app with people in it, and clients that send their events.

use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use nudge_platform::clock::Clock;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::child::{Process, Server};
use crate::client::Connection;
use crate::random::Random;
use crate::request::{AWAITED, COMMON, Delivery, Person, Request};

/// What clients send.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    pub(crate) name: &'static str,
    pub(crate) clients: usize,
    pub(crate) requests: usize,
    pub(crate) events: usize,
    pub(crate) delivery: Delivery,
    pub(crate) seed: u64,
}

/// How that went.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// From the first request to the last answer.
    pub(crate) time: Duration,
    /// Until the pipeline had processed everything, too.
    pub(crate) processed: Duration,
    pub(crate) latencies: Vec<Duration>,
    /// The server's processor time, with that of the pipeline.
    pub(crate) cpu: Duration,
}

/// Makes the definition of the common event and an active survey that waits for another one.
pub(crate) async fn furnish(server: &Server) -> anyhow::Result<()> {
    let types = [
        ("sku", "string"),
        ("price", "number"),
        ("currency", "string"),
        ("count", "number"),
        ("member", "boolean"),
        ("category", "string"),
        ("color", "string"),
        ("rank", "number"),
        ("source", "string"),
        ("page", "number"),
    ];
    let properties: Vec<Value> = types
        .iter()
        .map(|(name, kind)| json!({"name": name, "type": kind, "required": true}))
        .collect();
    let definition = json!({"name": COMMON, "properties": properties});
    manage(server, "event-definitions", &definition).await?;
    survey(server, AWAITED).await
}

/// Makes an active survey that an event of a name fires each time.
pub(crate) async fn survey(server: &Server, event_name: &str) -> anyhow::Result<()> {
    survey_for(server, event_name, &json!({})).await
}

/// The same for an audience.
pub(crate) async fn survey_for(
    server: &Server,
    event_name: &str,
    audience: &Value,
) -> anyhow::Result<()> {
    manage(server, "surveys", &survey_body(event_name, audience)).await?;
    Ok(())
}

/// An active survey that an event of a name fires each time, for an audience.
pub(crate) fn survey_body(event_name: &str, audience: &Value) -> Value {
    let question = json!({"id": "q1", "type": "nps", "title": "How likely are you to come back?", "required": true});
    json!({
        "name": event_name,
        "status": "active",
        "mode": "triggered",
        "trigger": {
            "kind": "event",
            "eventName": event_name,
            "occurrence": {"mode": "every"},
            "filters": {"all": [{"property": "price", "type": "number", "operator": "gte", "value": 10}]},
        },
        "audience": audience,
        "flow": {"questions": [question], "branches": [], "progressStyle": "bar", "backNavigation": false},
    })
}

pub(crate) async fn manage(server: &Server, resource: &str, body: &Value) -> anyhow::Result<Value> {
    manage_as(server, "editorToken", resource, body).await
}

/// The same with another token of the access data.
pub(crate) async fn manage_as(
    server: &Server,
    token: &str,
    resource: &str,
    body: &Value,
) -> anyhow::Result<Value> {
    let path = format!("/v1/apps/{}/{resource}", server.access("appId")?);
    let authorization = format!("Bearer {}", server.access(token)?);
    let mut connection = Connection::open(server.address()).await?;
    connection
        .call("POST", &path, &[("Authorization", &authorization)], body)
        .await
}

/// Starts a session for each of so many people.
pub(crate) async fn people(server: &Server, count: usize) -> anyhow::Result<Vec<Person>> {
    let authorization = format!("Bearer {}", server.access("writeKey")?);
    let mut connection = Connection::open(server.address()).await?;
    let mut people = Vec::with_capacity(count);
    for number in 0..count {
        let anonymous_id = format!("person-{number:08}");
        let body = json!({"anonymousId": anonymous_id, "platform": "ios"});
        let answer = connection
            .call(
                "POST",
                "/v1/sdk/session",
                &[("Authorization", &authorization)],
                &body,
            )
            .await?;
        let token = answer
            .pointer("/data/subjectToken")
            .and_then(Value::as_str)
            .context("a session has a token")?;
        people.push(Person {
            anonymous_id,
            token: token.to_owned(),
        });
    }
    Ok(people)
}

/// Sends a load and waits until everything is processed.
pub(crate) async fn run(server: &Server, people: &[Person], load: Load) -> anyhow::Result<Outcome> {
    run_on(server, &[server.process()], people, load).await
}

/// The same with servers that share the first one's database: a client keeps to one of them.
pub(crate) async fn run_on(
    server: &Server,
    servers: &[&Process],
    people: &[Person],
    load: Load,
) -> anyhow::Result<Outcome> {
    let cpu = || {
        servers
            .iter()
            .map(|process| process.cpu())
            .sum::<anyhow::Result<Duration>>()
    };
    let mut clients = Vec::with_capacity(load.clients);
    for (number, process) in servers.iter().cycle().take(load.clients).enumerate() {
        let write_key = process.access("writeKey")?;
        let own = people.iter().skip(number).step_by(load.clients);
        let requests: Vec<Request> = own
            .map(|person| Request::new(write_key, person, load.name, load.events, load.delivery))
            .collect();
        clients.push(Client {
            connection: Connection::open(process.address()).await?,
            requests,
            random: Random::new((load.seed << 16) | number as u64),
            expected: expected(load),
        });
    }
    let before = cpu()?;
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
    let cpu = cpu()?.saturating_sub(before);
    Ok(Outcome {
        time,
        processed,
        latencies,
        cpu,
    })
}

/// What an answer's status is, and what must be in it.
fn expected(load: Load) -> (u16, String) {
    match load.delivery {
        Delivery::Refused | Delivery::Malformed => (422, "invalid_delivery".to_owned()),
        Delivery::None | Delivery::First => (200, format!("\"accepted\":{},", load.events)),
    }
}

struct Client {
    connection: Connection,
    requests: Vec<Request>,
    random: Random,
    expected: (u16, String),
}

impl Client {
    async fn run(mut self, count: usize) -> anyhow::Result<Vec<Duration>> {
        let clock = Clock::default();
        let people = self.requests.len();
        let mut latencies = Vec::with_capacity(count);
        for number in 0..count {
            let Some(request) = self.requests.get_mut(number % people) else {
                bail!("nobody to send for");
            };
            let bytes = request.renew(&mut self.random, clock.now());
            let started = Instant::now();
            let answer = self.connection.send(bytes).await?;
            latencies.push(started.elapsed());
            let (status, text) = &self.expected;
            let found = answer
                .body
                .windows(text.len())
                .any(|window| window == text.as_bytes());
            if answer.status != *status || !found {
                let body = String::from_utf8_lossy(answer.body);
                bail!("{} {body}", answer.status);
            }
        }
        Ok(latencies)
    }
}
