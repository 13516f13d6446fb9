//! Clients that send until they are told to stop, and repeat what was not acknowledged.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context as _;
use nudge_platform::clock::{self, Clock};
use serde_json::{Value, json};

use super::caller::{Caller, Failed, PAUSE};
use super::ledger::Sent;
use super::{BROKEN, CARTED, ORDERED, PUSHED, Reachable, VIEWED};
use crate::random::Random;

/// People of one client.
pub(super) const PEOPLE: u64 = 20;
/// Events of a request, at the most.
const EVENTS: u64 = 20;

/// A client with people of its own.
pub(super) struct Client {
    number: usize,
    caller: Caller,
    stop: Arc<AtomicBool>,
    tokens: Vec<Option<String>>,
    sent: Sent,
}

/// What a client calls one of its people.
pub(super) fn anonymous_id(client: usize, person: usize) -> String {
    format!("client-{client}-person-{person}")
}

impl Client {
    pub(super) fn new(
        number: usize,
        seed: u64,
        reachable: Reachable,
        stop: Arc<AtomicBool>,
    ) -> Self {
        let random = Random::new(seed ^ ((number as u64 + 1) << 32));
        Self {
            number,
            caller: Caller::new(random, reachable),
            stop,
            tokens: (0..PEOPLE).map(|_| None).collect(),
            sent: Sent::default(),
        }
    }

    /// Sends until it is told to stop, and then until its last request is acknowledged.
    pub(super) async fn run(mut self) -> anyhow::Result<Sent> {
        let clock = Clock::default();
        while !self.stop.load(Ordering::Relaxed) {
            let person = usize::try_from(self.caller.random.below(PEOPLE))?;
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
        for _ in 0..=self.caller.random.below(EVENTS) {
            let name = match self.caller.random.below(40) {
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
            events.push((self.caller.random.uuid(), name));
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
        self.caller
            .send("POST", "/v1/sdk/ingest", Some(&token), body)
            .await
    }

    async fn session(&mut self, person: usize) -> anyhow::Result<Result<String, Failed>> {
        let body = json!({"anonymousId": anonymous_id(self.number, person)});
        let answer = match self
            .caller
            .send("POST", "/v1/sdk/session", None, &body)
            .await?
        {
            Ok(answer) => answer,
            Err(failed) => return Ok(Err(failed)),
        };
        let token = answer.pointer("/data/subjectToken").and_then(Value::as_str);
        let token = token.context("a session has a token")?.to_owned();
        *self.tokens.get_mut(person).context("a person")? = Some(token.clone());
        Ok(Ok(token))
    }
}

/// Whether an event is neither accepted nor a dead letter: the plugin that checks it failed, as on a machine that is so
/// busy that its time was over before it ran.
fn is_to_be_repeated(answer: &Value) -> bool {
    let rejections = answer.pointer("/data/errors").and_then(Value::as_array);
    let mut rejections = rejections.into_iter().flatten();
    rejections.any(|rejection| rejection.get("retryable") == Some(&Value::Bool(true)))
}
