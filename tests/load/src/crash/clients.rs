//! Clients that send until they are told to stop, and repeat what was not acknowledged.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context as _, bail};
use nudge_platform::clock::{self, Clock};
use serde_json::{Value, json};

use super::ledger::Sent;
use super::{BROKEN, CARTED, ORDERED, PUSHED, Reachable, VIEWED};
use crate::client::{Connection, request};
use crate::random::Random;

/// People of one client.
pub(super) const PEOPLE: u64 = 20;
/// Events of a request, at the most.
const EVENTS: u64 = 20;
/// How long an answer may take before the client gives up and asks again.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long a client waits before it asks again.
const PAUSE: Duration = Duration::from_millis(25);

/// A client with people of its own.
pub(super) struct Client {
    number: usize,
    random: Random,
    reachable: Reachable,
    stop: Arc<AtomicBool>,
    connection: Option<(Connection, SocketAddr, String)>,
    tokens: Vec<Option<String>>,
    sent: Sent,
}

/// What a client calls one of its people.
pub(super) fn anonymous_id(client: usize, person: usize) -> String {
    format!("client-{client}-person-{person}")
}

/// Why a request has no answer that counts.
enum Failed {
    /// No server, or it went away; the same request is to be sent again.
    Again,
    /// The subject token is none any longer.
    Token,
}

impl Client {
    pub(super) fn new(
        number: usize,
        seed: u64,
        reachable: Reachable,
        stop: Arc<AtomicBool>,
    ) -> Self {
        Self {
            number,
            random: Random::new(seed ^ ((number as u64 + 1) << 32)),
            reachable,
            stop,
            connection: None,
            tokens: (0..PEOPLE).map(|_| None).collect(),
            sent: Sent::default(),
        }
    }

    /// Sends until it is told to stop, and then until its last request is acknowledged.
    pub(super) async fn run(mut self) -> anyhow::Result<Sent> {
        let clock = Clock::default();
        while !self.stop.load(Ordering::Relaxed) {
            let person = usize::try_from(self.random.below(PEOPLE))?;
            let (body, events) = self.batch(person, &clock);
            let mut tries = 0_u64;
            let answer = loop {
                tries += 1;
                match self.ingest(person, &body).await? {
                    Ok(answer) if !is_to_be_repeated(&answer) => break answer,
                    Ok(_) | Err(Failed::Again) => tokio::time::sleep(PAUSE).await,
                    Err(Failed::Token) => self.forget(person),
                }
            };
            self.sent.acknowledge(events, &answer, tries > 1)?;
        }
        Ok(self.sent)
    }

    fn batch(&mut self, person: usize, clock: &Clock) -> (Value, Vec<(uuid::Uuid, &'static str)>) {
        let anonymous_id = anonymous_id(self.number, person);
        let mut carted = false;
        let mut events = Vec::new();
        for _ in 0..=self.random.below(EVENTS) {
            let name = match self.random.below(40) {
                0 | 1 => BROKEN,
                // A subject's timers are bounded, see the contract: one a request.
                2 | 3 if !carted => {
                    carted = true;
                    CARTED
                }
                4..=11 => ORDERED,
                12 => PUSHED,
                _ => VIEWED,
            };
            events.push((self.random.uuid(), name));
        }
        let now = clock::to_text(clock.now());
        let list: Vec<Value> = events
            .iter()
            .map(|(id, name)| {
                json!({"eventId": id, "name": name, "timestamp": now, "anonymousId": anonymous_id})
            })
            .collect();
        let body = json!({"context": {"anonymousId": anonymous_id}, "events": list});
        (body, events)
    }

    fn forget(&mut self, person: usize) {
        if let Some(token) = self.tokens.get_mut(person) {
            *token = None;
        }
    }

    async fn ingest(
        &mut self,
        person: usize,
        body: &Value,
    ) -> anyhow::Result<Result<Value, Failed>> {
        let token = match self.tokens.get(person).cloned().flatten() {
            Some(token) => token,
            None => match self.session(person).await? {
                Ok(token) => token,
                Err(failed) => return Ok(Err(failed)),
            },
        };
        self.send("/v1/sdk/ingest", Some(&token), body).await
    }

    async fn session(&mut self, person: usize) -> anyhow::Result<Result<String, Failed>> {
        let body = json!({"anonymousId": anonymous_id(self.number, person)});
        let answer = match self.send("/v1/sdk/session", None, &body).await? {
            Ok(answer) => answer,
            Err(failed) => return Ok(Err(failed)),
        };
        let token = answer.pointer("/data/subjectToken").and_then(Value::as_str);
        let token = token.context("a session has a token")?.to_owned();
        *self.tokens.get_mut(person).context("a person")? = Some(token.clone());
        Ok(Ok(token))
    }

    /// Sends a request once. What a client may see while servers die is asked again; anything else is an error.
    async fn send(
        &mut self,
        path: &str,
        token: Option<&str>,
        body: &Value,
    ) -> anyhow::Result<Result<Value, Failed>> {
        let Some((connection, _, key)) = self.connect().await else {
            return Ok(Err(Failed::Again));
        };
        let authorization = format!("Bearer {key}");
        let mut headers = vec![("Authorization", authorization.as_str())];
        headers.extend(token.map(|token| ("X-Service-Subject-Token", token)));
        let bytes = request("POST", path, &headers, &body.to_string());
        let answered = tokio::time::timeout(PATIENCE, connection.send(&bytes)).await;
        let answered = match answered {
            Ok(Ok(answer)) => Some((answer.status, answer.body.to_vec())),
            Ok(Err(_)) | Err(_) => None,
        };
        let Some((status, body)) = answered else {
            self.connection = None;
            return Ok(Err(Failed::Again));
        };
        match status {
            200 => Ok(Ok(serde_json::from_slice(&body)?)),
            401 if token.is_some() => Ok(Err(Failed::Token)),
            429 | 503 => Ok(Err(Failed::Again)),
            _ => bail!("{path}: {status} {}", String::from_utf8_lossy(&body)),
        }
    }

    /// The connection, to a server that lives as far as is known.
    async fn connect(&mut self) -> Option<&mut (Connection, SocketAddr, String)> {
        if self.connection.is_none() {
            let (address, key) = self.reachable.pick(&mut self.random)?;
            let connection = Connection::open(address).await.ok()?;
            self.connection = Some((connection, address, key));
        }
        self.connection.as_mut()
    }
}

/// Whether an event is neither accepted nor a dead letter: the plugin that checks it failed, as on a machine that is so
/// busy that its time was over before it ran.
fn is_to_be_repeated(answer: &Value) -> bool {
    let rejections = answer.pointer("/data/errors").and_then(Value::as_array);
    let mut rejections = rejections.into_iter().flatten();
    rejections.any(|rejection| rejection.get("retryable") == Some(&Value::Bool(true)))
}
