//! `kill -9`: what was answered is there, and is processed once (contract 3).

use std::collections::HashMap;
use std::time::{Duration, Instant};

use nudge_platform::clock::Clock;
use nudge_platform::config::Config;
use serde_json::{Value, json};
use tempfile::TempDir;
use tests::campaigns::campaign_body;
use tests::client::{self, Answer};
use tests::providers::Providers;
use tests::session::text;
use tests::{Child, site};

/// Longer than anything takes to come back.
const COMES_BACK: Duration = Duration::from_mins(1);

/// The parts of a child's API that the kill test needs.
pub(crate) struct Remote {
    http: reqwest::Client,
    pub(crate) access: Value,
    session: Value,
}

impl Remote {
    pub(crate) async fn open(child: &Child) -> Self {
        let mut remote = Self {
            http: client::build(),
            access: child.access.clone(),
            session: Value::Null,
        };
        let body = json!({"anonymousId": "ada"});
        remote.session = remote.post("/v1/sdk/session", "writeKey", &body).await.ok();
        remote
    }

    pub(crate) async fn post(&self, path: &str, key: &str, body: &Value) -> Answer {
        client::send(self.signed(self.http.post(self.url(path)).json(body), key)).await
    }

    async fn get(&self, path: &str, key: &str) -> Answer {
        client::send(self.signed(self.http.get(self.url(path)), key)).await
    }

    /// The events that fired, polled page by page until there are so many, and whatever comes after.
    pub(crate) async fn fired(&self, count: usize) -> Vec<String> {
        let started = Instant::now();
        let mut fired = Vec::new();
        let mut query = String::new();
        loop {
            let path = format!("/v1/sdk/instructions?wait=1{query}");
            let page = self.get(&path, "writeKey").await.ok();
            let items = page["items"].as_array().unwrap();
            if items.is_empty() && (fired.len() >= count || started.elapsed() > COMES_BACK) {
                return fired;
            }
            fired.extend(items.iter().map(|item| text(&item["trigger"], "eventId")));
            query = format!("&cursor={}", text(&page, "nextCursor"));
        }
    }

    fn url(&self, path: &str) -> String {
        format!("{}{path}", text(&self.access, "baseUrl"))
    }

    fn signed(&self, request: reqwest::RequestBuilder, key: &str) -> reqwest::RequestBuilder {
        request.bearer_auth(text(&self.access, key)).header(
            "x-service-subject-token",
            text(&self.session, "subjectToken"),
        )
    }
}

/// New purchases of a person.
pub(crate) fn events(count: usize) -> Vec<Value> {
    let clock = nudge_platform::clock::Clock::default();
    (0..count)
        .map(|_| {
            let now = clock.now();
            json!({"eventId": nudge_platform::id::new(now), "name": "purchase", "timestamp": nudge_platform::clock::to_text(now), "anonymousId": "ada"})
        })
        .collect()
}

/// What `kill -9` right after the answer leaves is processed by the next start: each event once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_answered_survives_a_kill_and_is_processed_once() {
    let folder = TempDir::with_prefix("nudge-test-").unwrap();
    let child = Child::start(site!(), folder.path());
    let remote = Remote::open(&child).await;
    let surveys = format!("/v1/apps/{}/surveys", text(&remote.access, "appId"));
    let survey = tests::session::survey_body();
    remote
        .post(&surveys, "editorToken", &survey)
        .await
        .data(201);

    let mut sent = Vec::new();
    let mut child = Some(child);
    for round in 0..3 {
        let running = child.take().unwrap();
        let remote = Remote::open(&running).await;
        let events = events(50);
        let body = json!({"context": {"anonymousId": "ada"}, "events": events});
        let data = remote.post("/v1/sdk/ingest", "writeKey", &body).await.ok();
        assert_eq!(data["accepted"], 50, "round {round}");
        running.kill();
        sent.extend(events.iter().map(|event| text(event, "eventId")));
        child = Some(Child::start(site!(), folder.path()));
    }

    let running = child.unwrap();
    let remote = Remote::open(&running).await;
    let fired = remote.fired(sent.len()).await;
    assert_eq!(fired, sent, "each event fires once, in order");
    assert_eq!(running.terminate(), Some(0));
}

/// Killed at any moment while requests come in; what was not answered is sent again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kills_at_any_moment_lose_nothing_and_double_nothing() {
    let folder = TempDir::with_prefix("nudge-test-").unwrap();
    let mut child = Child::start(site!(), folder.path());
    let remote = Remote::open(&child).await;
    let surveys = format!("/v1/apps/{}/surveys", text(&remote.access, "appId"));
    let survey = tests::session::survey_body();
    remote
        .post(&surveys, "editorToken", &survey)
        .await
        .data(201);

    let mut sent = Vec::new();
    let mut unanswered = None;
    for lifetime in [3, 40, 90, 17, 150] {
        let remote = Remote::open(&child).await;
        let killer = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(lifetime));
            child.kill();
        });
        loop {
            let events = unanswered.take().unwrap_or_else(|| events(20));
            let body = json!({"context": {"anonymousId": "ada"}, "events": events});
            let request = remote.http.post(remote.url("/v1/sdk/ingest")).json(&body);
            let answered = remote.signed(request, "writeKey").send().await;
            if answered.is_ok_and(|answer| answer.status() == 200) {
                sent.extend(events.iter().map(|event| text(event, "eventId")));
            } else {
                unanswered = Some(events);
                break;
            }
        }
        killer.join().unwrap();
        child = Child::start(site!(), folder.path());
    }

    let remote = Remote::open(&child).await;
    let events = unanswered.unwrap();
    let body = json!({"context": {"anonymousId": "ada"}, "events": events});
    assert_eq!(
        remote.post("/v1/sdk/ingest", "writeKey", &body).await.ok()["accepted"],
        20
    );
    sent.extend(events.iter().map(|event| text(event, "eventId")));
    assert_eq!(
        remote.fired(sent.len()).await,
        sent,
        "each event fires once, in order"
    );
    assert_eq!(child.terminate(), Some(0));
}

/// Killed while messages are handed over: none is handed over twice, and each that counts as delivered was.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kill_hands_no_push_message_over_twice() {
    let providers = Providers::start(&Clock::default()).await;
    let mut config = Config::defaults().unwrap();
    providers.configure(&mut config);
    let roots = config.push.extra_root_certificates.display().to_string();
    let variables = [
        ("NUDGE_PUSH__FCM__URL", config.push.fcm.url.as_str()),
        ("NUDGE_PUSH__EXTRA_ROOT_CERTIFICATES", roots.as_str()),
        ("NUDGE_WEBHOOKS__ALLOW_PRIVATE_NETWORKS", "true"),
    ];
    let folder = TempDir::with_prefix("nudge-test-").unwrap();
    let mut child = Child::start_with(site!(), folder.path(), &variables);
    let remote = Remote::open(&child).await;
    let app = format!("/v1/apps/{}", text(&remote.access, "appId"));
    let credential = providers.fcm.credential();
    let path = format!("{app}/push/credentials");
    remote
        .post(&path, "adminToken", &credential)
        .await
        .data(201);
    let path = format!("{app}/campaigns");
    let campaign = campaign_body();
    remote.post(&path, "editorToken", &campaign).await.data(201);
    let mut device = providers.fcm.token(1);
    device["anonymousId"] = json!("ada");
    device["deviceId"] = json!("phone");
    let path = "/v1/sdk/push-tokens";
    remote.post(path, "writeKey", &device).await.ok();

    let mut sent = 0;
    for lifetime in [0, 40, 120, 300] {
        let remote = Remote::open(&child).await;
        let body = json!({"context": {"anonymousId": "ada"}, "events": events(30)});
        let data = remote.post("/v1/sdk/ingest", "writeKey", &body).await.ok();
        assert_eq!(data["accepted"], 30);
        sent += 30;
        std::thread::sleep(Duration::from_millis(lifetime));
        child.kill();
        child = Child::start_with(site!(), folder.path(), &variables);
    }

    let remote = Remote::open(&child).await;
    let path = format!("{app}/push/deliveries?limit=200");
    let started = Instant::now();
    let deliveries = loop {
        let page = remote.get(&path, "viewerToken").await.ok();
        let items = page["items"].as_array().unwrap().clone();
        let open = |item: &Value| match text(item, "status").as_str() {
            "queued" => true,
            "sent" => item["reason"].is_null(),
            _ => false,
        };
        if items.len() == sent && !items.iter().any(open) {
            break items;
        }
        assert!(started.elapsed() < COMES_BACK, "{items:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    let mut handed: HashMap<String, usize> = HashMap::new();
    for message in providers.fcm.received() {
        // Unless a campaign says otherwise, a message takes the place of what has its delivery's id.
        let shown = &message.json()["message"]["android"]["notification"];
        let id = text(shown, "tag");
        *handed.entry(id).or_default() += 1;
    }
    for delivery in &deliveries {
        let times = handed.get(&text(delivery, "deliveryId")).copied();
        match text(delivery, "status").as_str() {
            "delivered" => assert_eq!(times, Some(1), "{delivery}"),
            "sent" => {
                assert_eq!(delivery["reason"], "outcome_unknown");
                assert!(times.unwrap_or_default() <= 1, "{delivery}");
            }
            _ => panic!("{delivery}"),
        }
    }
    assert_eq!(child.terminate(), Some(0));
}
