//! From the version before to this one: two servers on one database, upgraded one after the other while clients send.

mod previous;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair as _};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use nudge_db::{Db, Options};
use nudge_platform::clock::{self, Clock};
use serde_json::{Value, json};
use tempfile::TempDir;
use tests::client::{self, Answer};
use tests::postgres::free_port;
use tests::providers::Providers;
use tests::session::{survey_body, text};
use tests::{Child, Site, child, postgres, site};
use tokio::task::JoinSet;

use crate::guests;
use crate::receiver::Receiver;

/// Clients that send side by side, each for a person of its own.
const CLIENTS: usize = 3;
/// Where each server listens.
const HOSTS: [&str; 2] = ["127.0.0.1", "127.0.0.2"];
/// Longer than anything takes.
const PATIENCE: Duration = Duration::from_mins(2);
/// How long a client waits before it sends what was not answered once more, and before it sends the next.
const PAUSE: Duration = Duration::from_millis(50);
/// A request is sent so often at the most: a server that ends may refuse it once, and close the next connection.
const TRIES: usize = 20;
/// How long a firing waits: as a rule from one version to the next.
const DELAY_SECONDS: u32 = 30;

/// The servers' API.
#[derive(Clone)]
struct Api {
    http: reqwest::Client,
    access: Value,
    bases: [String; 2],
}

impl Api {
    fn url(&self, path: &str) -> String {
        let path = path.replace(
            "{app}",
            &format!("/v1/apps/{}", text(&self.access, "appId")),
        );
        format!("{}{path}", self.bases[0])
    }

    async fn post(&self, path: &str, key: &str, body: &Value) -> Answer {
        let request = self.http.post(self.url(path)).json(body);
        client::send(request.bearer_auth(text(&self.access, key))).await
    }

    async fn get(&self, path: &str) -> Value {
        let request = self.http.get(self.url(path));
        client::send(request.bearer_auth(text(&self.access, "adminToken")))
            .await
            .ok()
    }

    /// Makes something as an admin; answers its id.
    async fn make(&self, path: &str, body: &Value) -> String {
        text(&self.post(path, "adminToken", body).await.data(201), "id")
    }

    async fn session(&self, anonymous_id: &str, proof: Option<&str>) -> Person {
        let mut body = json!({"anonymousId": anonymous_id});
        if let Some(proof) = proof {
            body["identityToken"] = json!(proof);
        }
        let data = self.post("/v1/sdk/session", "writeKey", &body).await.ok();
        Person {
            anonymous_id: anonymous_id.to_owned(),
            token: text(&data, "subjectToken"),
        }
    }

    fn as_person(
        &self,
        person: &Person,
        request: reqwest::RequestBuilder,
    ) -> reqwest::RequestBuilder {
        request
            .bearer_auth(text(&self.access, "writeKey"))
            .header("x-service-subject-token", &person.token)
    }

    /// Sends a body to one server or the other until it is answered; answers how often it was not.
    async fn settle(&self, person: &Person, body: &Value, first: usize) -> (Value, usize) {
        let mut attempt = 0;
        loop {
            assert!(attempt < TRIES, "no server answers");
            let base = &self.bases[(first + attempt) % self.bases.len()];
            let request = self.http.post(format!("{base}/v1/sdk/ingest")).json(body);
            if let Ok(response) = self.as_person(person, request).send().await {
                let status = response.status().as_u16();
                let answer: Value = response.json().await.unwrap();
                // A server that ends takes nothing more.
                assert!([200, 503].contains(&status), "{status}: {answer}");
                if status == 200 {
                    return (answer["data"].clone(), attempt);
                }
            }
            tokio::time::sleep(PAUSE).await;
            attempt += 1;
        }
    }

    /// Sends one event; answers its id.
    async fn event(&self, person: &Person, name: &str, properties: &Value) -> (String, Value) {
        let event = event(person, name, properties);
        let body = json!({"context": {"anonymousId": person.anonymous_id}, "events": [event]});
        (
            text(&event, "eventId"),
            self.settle(person, &body, 0).await.0,
        )
    }

    /// The events of which a person was offered something, polled page by page until there are so many, and whatever comes
    /// after.
    async fn fired(&self, person: &Person, count: usize) -> Vec<String> {
        let started = Instant::now();
        let mut fired = Vec::new();
        let mut query = String::new();
        loop {
            let request = self
                .http
                .get(self.url(&format!("/v1/sdk/instructions?wait=1{query}")));
            let page = client::send(self.as_person(person, request)).await.ok();
            let items = page["items"].as_array().unwrap();
            if items.is_empty() && (fired.len() >= count || started.elapsed() > PATIENCE) {
                return fired;
            }
            fired.extend(items.iter().map(|item| text(&item["trigger"], "eventId")));
            query = format!("&cursor={}", text(&page, "nextCursor"));
        }
    }

    /// Waits until something that is read has a member of a value.
    async fn reaches(&self, path: &str, member: &str, value: &str) -> Value {
        let started = Instant::now();
        loop {
            let found = self.get(path).await;
            if found[member] == value {
                return found;
            }
            assert!(started.elapsed() < PATIENCE, "{path}: {found}");
            tokio::time::sleep(PAUSE).await;
        }
    }
}

struct Person {
    anonymous_id: String,
    token: String,
}

fn event(person: &Person, name: &str, properties: &Value) -> Value {
    let now = Clock::default().now();
    json!({"eventId": nudge_platform::id::new(now), "name": name, "timestamp": clock::to_text(now),
           "anonymousId": person.anonymous_id, "properties": properties})
}

/// What the version before made, to be found by this one.
struct Filled {
    ids: BTreeMap<&'static str, String>,
    buyers: Vec<Person>,
    /// For whom a firing waits, and the event that it waits since.
    waits: (Person, String),
    campaign: String,
    sent: String,
    letter: String,
    export: String,
}

/// An identity key of the app, and a token by it.
async fn identity(api: &Api, external_id: &str) -> String {
    let pair = Ed25519KeyPair::generate().unwrap();
    let encode = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
    let key = json!({"kty": "OKP", "crv": "Ed25519", "x": encode(pair.public_key().as_ref())});
    let body = json!({"kid": "k", "publicKey": key});
    api.post("{app}/identity-keys", "adminToken", &body)
        .await
        .data(201);
    let now = Clock::default().now().0 / 1_000_000;
    let claims =
        json!({"iss": api.access["appId"], "sub": external_id, "iat": now, "exp": now + 3600});
    let parts = [json!({"alg": "EdDSA", "kid": "k"}), claims];
    let [head, claims] = parts.map(|part| encode(part.to_string().as_bytes()));
    let signed = format!("{head}.{claims}");
    let signature = encode(pair.sign(signed.as_bytes()).as_ref());
    format!("{signed}.{signature}")
}

async fn fill(api: &Api, providers: &Providers, receiver: &Receiver) -> Filled {
    let mut ids = BTreeMap::new();
    ids.insert("surveys", api.make("{app}/surveys", &survey_body()).await);
    let mut delayed = survey_body();
    delayed["trigger"] =
        json!({"kind": "event", "eventName": "cart_left", "delaySeconds": DELAY_SECONDS});
    api.make("{app}/surveys", &delayed).await;
    let audience = json!({"include": {"kind": "event", "eventName": "purchase", "count": {"operator": "gte", "n": 1}, "withinDays": 30}});
    let segment = json!({"name": "Buyers", "audience": audience});
    ids.insert("segments", api.make("{app}/segments", &segment).await);
    let in_app = json!({"name": "Hello", "type": "in_app", "mode": "triggered", "status": "active",
        "trigger": {"kind": "event", "eventName": "shop_entered"},
        "variants": [{"weight": 1, "layout": "banner", "title": "Hello"}]});
    api.make("{app}/campaigns", &in_app).await;
    let definition = json!({"name": "paid", "properties": [{"name": "price", "type": "number", "required": true}]});
    ids.insert(
        "event-definitions",
        api.make("{app}/event-definitions", &definition).await,
    );
    let webhook = json!({"url": receiver.url("/hook"), "eventTypes": ["sent"], "active": true});
    ids.insert(
        "push/webhooks",
        api.make("{app}/push/webhooks", &webhook).await,
    );

    let upload = api
        .http
        .post(api.url("{app}/plugins"))
        .body(guests::versioned(1, 1));
    let upload = upload.header("content-type", "application/wasm");
    client::send(upload.bearer_auth(text(&api.access, "adminToken")))
        .await
        .data(201);
    let name = guests::name(1);
    let version = json!({"version": guests::version(1)});
    api.post(
        &format!("{{app}}/plugins/{name}/activate"),
        "adminToken",
        &version,
    )
    .await
    .ok();
    let mut decided = survey_body();
    decided["trigger"] = json!({"kind": "plugin", "plugin": name, "config": {}});
    decided["status"] = json!("paused");
    ids.insert("plugins", name);
    api.make("{app}/surveys", &decided).await;

    // A person of two devices.
    let proof = identity(api, "customer-1").await;
    for device in ["eve-phone", "eve-laptop"] {
        let anonymous = api.session(device, None).await;
        api.event(&anonymous, "opened", &json!({})).await;
        api.session(device, Some(&proof)).await;
    }
    let cleo = api.session("cleo", None).await;
    let (left, _) = api.event(&cleo, "cart_left", &json!({})).await;
    let (_, refused) = api.event(&cleo, "paid", &json!({"price": "none"})).await;
    let letter = text(&refused["errors"][0], "deadLetterId");

    api.make("{app}/push/credentials", &providers.fcm.credential())
        .await;
    let mut token = providers.fcm.token(1);
    token["anonymousId"] = json!("cleo");
    token["deviceId"] = json!("phone");
    let request = api.http.post(api.url("/v1/sdk/push-tokens")).json(&token);
    client::send(api.as_person(&cleo, request)).await.ok();
    let campaign = json!({"name": "Thanks", "mode": "transactional", "status": "active",
        "variants": [{"title": "Thanks", "body": "It is on its way", "weight": 1}]});
    let campaign = api.make("{app}/campaigns", &campaign).await;
    let sent = order(api, &campaign, "before").await;
    let export = json!({"anonymousId": "cleo"});
    let export = api
        .post("{app}/gdpr/export", "adminToken", &export)
        .await
        .data(202);

    let mut buyers = Vec::new();
    for number in 0..CLIENTS {
        buyers.push(api.session(&format!("buyer-{number}"), None).await);
    }
    Filled {
        ids,
        buyers,
        waits: (cleo, left),
        campaign,
        sent,
        letter,
        export: text(&export, "exportId"),
    }
}

/// Asks for a message; answers the delivery.
async fn order(api: &Api, campaign: &str, key: &str) -> String {
    let body = json!({"campaignId": campaign, "anonymousId": "cleo", "idempotencyKey": key});
    let answer = api
        .post("{app}/push/transactional", "serverKey", &body)
        .await;
    assert!([200, 202].contains(&answer.status), "{}", answer.text);
    text(&answer.json()["data"], "deliveryId")
}

/// Everything is there, and works on.
async fn check(api: &Api, filled: &Filled, receiver: &Receiver) {
    for (list, id) in &filled.ids {
        let found = api.get(&format!("{{app}}/{list}/{id}")).await;
        assert!(
            found["id"] == **id || found["name"] == **id,
            "{list}: {found}"
        );
    }
    let (person, left) = &filled.waits;
    assert_eq!(
        api.fired(person, 1).await,
        std::slice::from_ref(left),
        "what waited fires once"
    );
    let (_, entered) = api.event(person, "shop_entered", &json!({})).await;
    assert_eq!(entered["accepted"], 1);
    let user = api.get("{app}/users/eve-phone").await;
    let mut names: Vec<&str> = user["profile"]["anonymousIds"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(Value::as_str)
        .collect();
    names.sort_unstable();
    assert_eq!(names, ["eve-laptop", "eve-phone"], "{user}");

    let replay = format!("{{app}}/dead-letters/{}/replay", filled.letter);
    let replayed = api
        .post(&replay, "adminToken", &json!({"patch": {"price": 3}}))
        .await
        .ok();
    assert_eq!(replayed["status"], "replayed");
    assert_eq!(
        order(api, &filled.campaign, "before").await,
        filled.sent,
        "the same message"
    );
    let next = order(api, &filled.campaign, "after").await;
    for delivery in [&filled.sent, &next] {
        api.reaches(
            &format!("{{app}}/push/deliveries/{delivery}"),
            "status",
            "delivered",
        )
        .await;
    }
    let started = Instant::now();
    let mut told = Vec::new();
    while told.len() < 2 {
        assert!(started.elapsed() < PATIENCE, "{told:?}");
        tokio::time::sleep(PAUSE).await;
        told = receiver
            .received("/hook")
            .iter()
            .map(|request| text(&request.json()["data"], "deliveryId"))
            .collect();
    }
    told.sort();
    let mut expected = [filled.sent.clone(), next];
    expected.sort();
    assert_eq!(told, expected, "each message is told of once");
    let export = format!("{{app}}/gdpr/exports/{}", filled.export);
    let export = api.reaches(&export, "status", "completed").await;
    let archive = client::send(api.http.get(text(&export, "downloadUrl"))).await;
    assert_eq!(archive.status, 200);
}

/// Buys until told to stop; answers the events, and how many requests had to be sent again.
async fn buys(
    api: Api,
    person: Person,
    number: usize,
    over: Arc<AtomicBool>,
) -> (Person, Vec<String>, usize) {
    let (mut sent, mut again) = (Vec::new(), 0);
    while !over.load(Ordering::SeqCst) {
        let event = event(&person, "purchase", &json!({}));
        let body = json!({"context": {"anonymousId": person.anonymous_id}, "events": [event]});
        let (data, tries) = api.settle(&person, &body, number + sent.len()).await;
        assert_eq!(data["accepted"], 1, "{data}");
        again += tries;
        sent.push(text(&event, "eventId"));
        tokio::time::sleep(PAUSE).await;
    }
    (person, sent, again)
}

fn start(site: Site, address: &str, folder: &Path, variables: &[(&'static str, String)]) -> Child {
    let (host, _) = address.split_once(':').unwrap();
    let data = folder.join(host);
    std::fs::create_dir_all(&data).unwrap();
    let variables: Vec<(&str, &str)> = variables
        .iter()
        .map(|(name, value)| (*name, &**value))
        .collect();
    Child::start_at(site, address, &data, &variables)
}

/// The version before refuses a schema that is newer than its own, in one line.
async fn refuses_to_go_back(before: Site, url: &str, folder: &Path) {
    let db = Db::open(&Options::new(url.to_owned(), 1)).await.unwrap();
    let mut tx = db.write().await.unwrap();
    tx.sql("UPDATE _sqlx_migrations SET version = 9999 WHERE version = (SELECT max(version) FROM _sqlx_migrations)")
        .execute()
        .await
        .unwrap();
    tx.commit().await.unwrap();
    db.close().await;
    let arguments = [
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--database-url",
        url,
        "--data-dir",
    ];
    let refused = child::program(before)
        .args(arguments)
        .arg(folder)
        .output()
        .unwrap();
    let complaint = child::complaint(&refused);
    assert!(complaint.contains("newer version of Nudge"), "{complaint}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_servers_are_upgraded_one_after_the_other_under_load() {
    let built = Instant::now();
    let Some(program) = tokio::task::spawn_blocking(previous::program)
        .await
        .unwrap()
    else {
        return;
    };
    let built = built.elapsed();
    let before = Site {
        program: program.to_str().unwrap().to_owned().leak(),
        scratch: site!().scratch,
    };
    let url = postgres::database().await;
    let folder = TempDir::with_prefix("nudge-test-").unwrap();
    let providers = Providers::start(&Clock::default()).await;
    let receiver = Receiver::start().await;
    let mut variables = providers.variables();
    for (name, value) in [
        ("NUDGE_DATABASE__URL", &*url),
        ("NUDGE_DATABASE__CONNECTIONS", "5"),
        ("NUDGE_WEBHOOKS__ALLOW_HTTP", "true"),
        ("NUDGE_WEBHOOKS__ALLOW_PRIVATE_NETWORKS", "true"),
    ] {
        variables.push((name, value.to_owned()));
    }
    let addresses = HOSTS.map(|host| format!("{host}:{}", free_port()));
    let start = |site: Site, address: &str| start(site, address, folder.path(), &variables);
    let one = start(before, &addresses[0]);
    let mut servers = [Some(one), Some(start(before, &addresses[1]))];
    let access = servers[0].as_ref().unwrap().access.clone();
    let bases = addresses
        .each_ref()
        .map(|address| format!("http://{address}"));
    let api = Api {
        http: client::build(),
        access,
        bases,
    };
    let mut filled = fill(&api, &providers, &receiver).await;

    let over = Arc::<AtomicBool>::default();
    let mut clients = JoinSet::new();
    for (number, person) in filled.buyers.drain(..).enumerate() {
        clients.spawn(buys(api.clone(), person, number, Arc::clone(&over)));
    }
    for (place, address) in addresses.iter().enumerate() {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let old = servers[place].take().unwrap();
        assert_eq!(tokio::task::block_in_place(|| old.terminate()), Some(0));
        // The other one, of the version before, goes on beside this one on the schema of this one.
        servers[place] = Some(tokio::task::block_in_place(|| start(site!(), address)));
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    over.store(true, Ordering::SeqCst);
    let mut requests = (0, 0);
    for (person, sent, again) in clients.join_all().await {
        requests = (requests.0 + sent.len(), requests.1 + again);
        let mut fired = api.fired(&person, sent.len()).await;
        fired.sort();
        let mut sent = sent;
        sent.sort();
        assert_eq!(fired, sent, "each event fires once");
    }
    check(&api, &filled, &receiver).await;
    report(built, requests);
    for server in servers.into_iter().flatten() {
        assert_eq!(server.terminate(), Some(0));
    }
    refuses_to_go_back(before, &url, folder.path()).await;
}

#[expect(clippy::print_stderr, reason = "says what the test cost and saw")]
fn report(built: Duration, (requests, again): (usize, usize)) {
    eprintln!(
        "the version before took {built:?} to build; {requests} requests were answered, {again} had to be sent again"
    );
}
