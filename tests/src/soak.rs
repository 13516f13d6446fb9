//! A mixed load: what SDKs, backends and operators do all day, side by side, to a server whose address and keys are all
//! that is known of it. Every answer is checked; at the end everything has to have arrived.
#![expect(
    clippy::expect_used,
    reason = "test support: a load that can't be prepared fails where it stands"
)]

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::Router;
use axum::http::StatusCode;
use nudge_platform::clock::{self, Clock};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::client;
use crate::providers::{Providers, apns};
use crate::session::{event_id, instruction_ids, text};

/// The event that a survey waits for.
const AWAITED: &str = "order_completed";
/// Errors that are kept in words.
const MOST_ERRORS: usize = 20;
/// How long everything may take to arrive after the last request.
const ARRIVES: Duration = Duration::from_mins(2);

/// How much.
#[derive(Clone, Copy, Debug)]
pub struct Mix {
    /// Clients side by side.
    pub clients: u32,
    /// Rounds that a client makes for one person before it goes on with a new one.
    pub rounds_a_person: u32,
    /// The pause between two rounds of a client.
    pub pause: Duration,
    /// The pause between two activations of the plugin.
    pub swap_every: Duration,
}

/// A plugin's name, and its versions with their components.
#[derive(Clone, Debug)]
pub struct Swapped {
    /// The name.
    pub name: String,
    /// The versions.
    pub versions: Vec<(String, Vec<u8>)>,
}

/// What was done.
#[derive(Clone, Debug, Default)]
pub struct Done {
    /// Requests, and what was wrong with their answers.
    pub requests: u64,
    /// Answers that were not what they have to be.
    pub failed: u64,
    /// The first of them.
    pub errors: Vec<String>,
    /// Events that were accepted.
    pub events: u64,
    /// Instructions that came with answers.
    pub fired: u64,
    /// Instructions that were acknowledged.
    pub acknowledged: u64,
    /// Messages that were asked for.
    pub sends: u64,
    /// Activations of the plugin.
    pub swaps: u64,
    /// When requests with events began, and how long they took.
    pub times: Vec<(Instant, Duration)>,
}

/// The load. It is over when it is dropped.
pub struct Soak {
    inner: Arc<Inner>,
    providers: Providers,
    running: JoinSet<()>,
    _receiver: JoinSet<()>,
}

struct Inner {
    http: reqwest::Client,
    access: Value,
    campaign: String,
    swapped: Swapped,
    done: Mutex<Done>,
    told: Arc<AtomicU64>,
    people: AtomicU32,
    stop: tokio_util::sync::CancellationToken,
}

/// Somebody with a session and a device.
struct Person {
    anonymous_id: String,
    token: String,
}

impl Soak {
    /// Makes what the load needs on a server that has the providers' configuration. `access` is what the program
    /// writes: its address, ids and keys.
    pub async fn prepare(access: Value, providers: Providers, swapped: Swapped) -> Self {
        let told = Arc::new(AtomicU64::new(0));
        let (url, receiver) = receive(&told).await;
        let mut inner = Inner {
            http: client::build(),
            access,
            campaign: String::new(),
            swapped,
            done: Mutex::default(),
            told,
            people: AtomicU32::new(0),
            stop: tokio_util::sync::CancellationToken::new(),
        };
        let credential = providers.apns.credential();
        let furnished = inner.furnish(&url, &credential).await;
        furnished.expect("the load is prepared");
        Self {
            inner: Arc::new(inner),
            providers,
            running: JoinSet::new(),
            _receiver: receiver,
        }
    }

    /// Begins.
    pub fn start(&mut self, mix: Mix) {
        for _ in 0..mix.clients {
            self.running.spawn(clients(Arc::clone(&self.inner), mix));
        }
        self.running.spawn(swaps(Arc::clone(&self.inner), mix));
    }

    /// What was done so far.
    pub fn done(&self) -> Done {
        self.inner.lock().clone()
    }

    /// Ends, and waits until every message has been delivered and told of. What does not arrive is an error.
    pub async fn finish(mut self) -> Done {
        self.inner.stop.cancel();
        while self.running.join_next().await.is_some() {}
        let started = Instant::now();
        loop {
            let sends = self.inner.lock().sends;
            let delivered = self.providers.apns.received().len() as u64;
            let told = self.inner.told.load(Ordering::SeqCst);
            if delivered == sends && told >= sends {
                break;
            }
            if started.elapsed() > ARRIVES {
                let what = format!("{sends} sends, {delivered} delivered, {told} told of");
                self.inner.failed(what);
                break;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        self.done()
    }
}

/// A receiver of webhooks that takes everything, and its URL.
async fn receive(told: &Arc<AtomicU64>) -> (String, JoinSet<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("http://{}/", listener.local_addr().expect("an address"));
    let told = Arc::clone(told);
    let router = Router::new().fallback(move || {
        told.fetch_add(1, Ordering::SeqCst);
        std::future::ready(StatusCode::OK)
    });
    let mut tasks = JoinSet::new();
    tasks.spawn(async move { axum::serve(listener, router).await.expect("it serves") });
    (url, tasks)
}

async fn clients(inner: Arc<Inner>, mix: Mix) {
    while !inner.stop.is_cancelled() {
        let Some(person) = inner.person().await else {
            tokio::time::sleep(mix.pause).await;
            continue;
        };
        for round in 0..mix.rounds_a_person {
            if inner.stop.is_cancelled() {
                return;
            }
            if let Err(error) = inner.round(&person, round).await {
                inner.failed(error);
            }
            tokio::time::sleep(mix.pause).await;
        }
    }
}

async fn swaps(inner: Arc<Inner>, mix: Mix) {
    for (version, _) in inner.swapped.versions.iter().cycle().skip(1) {
        let pause = tokio::time::sleep(mix.swap_every);
        if inner.stop.run_until_cancelled(pause).await.is_none() {
            return;
        }
        match inner.activate(version).await {
            Ok(()) => inner.lock().swaps += 1,
            Err(error) => inner.failed(error),
        }
    }
}

impl Inner {
    async fn furnish(&mut self, receiver: &str, credential: &Value) -> Result<(), String> {
        for (_, component) in &self.swapped.versions {
            let request = self
                .request(Method::POST, &self.app("/plugins"), "adminToken")
                .header("content-type", "application/wasm")
                .body(component.clone());
            self.answer(request, 201).await?;
        }
        if let Some((version, _)) = self.swapped.versions.first() {
            self.activate(version).await?;
        }
        let mut survey = crate::session::survey_body();
        let plugin =
            json!({"kind": "plugin", "plugin": self.swapped.name, "config": {"events": [AWAITED]}});
        let campaign = json!({
            "name": "Receipt", "mode": "transactional", "status": "active",
            "variants": [{"title": "Thanks", "body": "It is on its way", "weight": 1}],
        });
        let webhook = json!({"url": receiver, "eventTypes": ["sent"]});
        if let Some(survey) = survey.as_object_mut() {
            survey.insert("trigger".to_owned(), plugin);
        }
        self.post(&self.app("/surveys"), "editorToken", &survey, 201)
            .await?;
        self.post(
            &self.app("/push/credentials"),
            "adminToken",
            credential,
            201,
        )
        .await?;
        self.post(&self.app("/push/webhooks"), "adminToken", &webhook, 201)
            .await?;
        let campaign = self
            .post(&self.app("/campaigns"), "editorToken", &campaign, 201)
            .await?;
        self.campaign = text(&campaign, "id");
        Ok(())
    }

    async fn activate(&self, version: &str) -> Result<(), String> {
        let path = self.app(&format!("/plugins/{}/activate", self.swapped.name));
        let body = json!({"version": version});
        self.post(&path, "adminToken", &body, 200).await?;
        Ok(())
    }

    /// A new person with a session and a device. None: it failed, which is noted.
    async fn person(&self) -> Option<Person> {
        let number = self.people.fetch_add(1, Ordering::SeqCst);
        let made = async {
            let anonymous_id = format!("person-{number}");
            let body = json!({"anonymousId": anonymous_id});
            let session = self.post("/v1/sdk/session", "writeKey", &body, 200).await?;
            let person = Person {
                anonymous_id,
                token: text(&session, "subjectToken"),
            };
            let device = json!({
                "anonymousId": person.anonymous_id, "deviceId": format!("device-{number}"), "provider": "apns",
                "token": apns::device_token(number), "environment": "production",
            });
            self.sdk(&person, "/v1/sdk/push-tokens", &device).await?;
            Ok::<_, String>(person)
        };
        made.await.map_err(|error| self.failed(error)).ok()
    }

    /// What a person's app does in a round.
    async fn round(&self, person: &Person, round: u32) -> Result<(), String> {
        let viewed: Vec<Value> = (0..5).map(|_| event(person, "product_viewed")).collect();
        let body = json!({"context": {"anonymousId": person.anonymous_id}, "events": viewed});
        self.ingest(person, &body, 5).await?;

        let bought = event(person, AWAITED);
        let id = event_id(&bought);
        let body = json!({
            "context": {"anonymousId": person.anonymous_id}, "events": [bought], "delivery": {"eventIds": [id]},
        });
        let data = self.ingest(person, &body, 1).await?;
        let fired = instruction_ids(data.get("instructions").unwrap_or(&Value::Null));
        self.lock().fired += fired.len() as u64;

        let request = self
            .request(Method::GET, "/v1/sdk/instructions", "writeKey")
            .header("x-service-subject-token", &person.token);
        let page = self.answer(request, 200).await?;
        let offered = instruction_ids(page.get("items").unwrap_or(&Value::Null));
        if !offered.is_empty() {
            let acks: Vec<Value> = offered
                .iter()
                .map(|id| json!({"instructionId": id, "status": "completed"}))
                .collect();
            let body = json!({"anonymousId": person.anonymous_id, "acks": acks});
            let data = self.sdk(person, "/v1/sdk/instructions/ack", &body).await?;
            let accepted = data.get("accepted").and_then(Value::as_u64).unwrap_or(0);
            self.lock().acknowledged += accepted;
        }
        if round.is_multiple_of(4) {
            let body = json!({
                "anonymousId": person.anonymous_id, "mutationId": nudge_platform::id::new(Clock::default().now()),
                "set": {"rounds": round},
            });
            self.sdk(person, "/v1/sdk/user-properties", &body).await?;
        }
        if round.is_multiple_of(8) {
            let body = json!({"campaignId": self.campaign, "anonymousId": person.anonymous_id});
            let path = self.app("/push/transactional");
            self.post(&path, "serverKey", &body, 202).await?;
            self.lock().sends += 1;
        }
        Ok(())
    }

    /// Sends events, all of which have to be accepted.
    async fn ingest(&self, person: &Person, body: &Value, events: u64) -> Result<Value, String> {
        let started = Instant::now();
        let data = self.sdk(person, "/v1/sdk/ingest", body).await?;
        let accepted = data.get("accepted").and_then(Value::as_u64);
        if accepted != Some(events) {
            return Err(format!("not all of {events} events are accepted: {data}"));
        }
        let mut done = self.lock();
        done.events += events;
        done.times.push((started, started.elapsed()));
        drop(done);
        Ok(data)
    }

    async fn sdk(&self, person: &Person, path: &str, body: &Value) -> Result<Value, String> {
        let request = self
            .request(Method::POST, path, "writeKey")
            .header("x-service-subject-token", &person.token);
        self.answer(request.json(body), 200).await
    }

    async fn post(
        &self,
        path: &str,
        key: &str,
        body: &Value,
        status: u16,
    ) -> Result<Value, String> {
        let request = self.request(Method::POST, path, key);
        self.answer(request.json(body), status).await
    }

    fn app(&self, rest: &str) -> String {
        format!("/v1/apps/{}{rest}", text(&self.access, "appId"))
    }

    fn request(&self, method: Method, path: &str, key: &str) -> reqwest::RequestBuilder {
        let url = format!("{}{path}", text(&self.access, "baseUrl"));
        let request = self.http.request(method, url);
        request.bearer_auth(text(&self.access, key))
    }

    /// Sends a request, whose answer has to have a status; answers its data.
    async fn answer(&self, request: reqwest::RequestBuilder, status: u16) -> Result<Value, String> {
        self.lock().requests += 1;
        let response = request.send().await.map_err(|error| format!("{error:?}"))?;
        let got = response.status().as_u16();
        let body = response
            .text()
            .await
            .map_err(|error| format!("{error:?}"))?;
        if got != status {
            return Err(format!("{got} instead of {status}: {body}"));
        }
        let mut body: Value = serde_json::from_str(&body).map_err(|error| error.to_string())?;
        Ok(body.get_mut("data").map(Value::take).unwrap_or_default())
    }

    fn failed(&self, error: String) {
        let mut done = self.lock();
        done.failed += 1;
        if done.errors.len() < MOST_ERRORS {
            done.errors.push(error);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Done> {
        self.done.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn event(person: &Person, name: &str) -> Value {
    let now = Clock::default().now();
    json!({
        "eventId": nudge_platform::id::new(now), "name": name, "timestamp": clock::to_text(now),
        "anonymousId": person.anonymous_id,
        "properties": {"sku": "A-1029-XL", "price": 19.99, "currency": "EUR", "member": true},
    })
}
