//! Versions that change while events come in (contract 12): no request fails, no event is lost or doubled, and
//! no batch is decided by a version that was retired before it began.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;
use tests::session::text;
use tests::{Child, Session, TestApp, client, on_both_backends, site};

use crate::bulk_replays::ended;
use crate::guests::{
    activate, decides, deploy, lenient, name, trigger, upload, version, versioned,
};
use crate::two_servers::node_with;

on_both_backends!(
    fifty_activations_under_load_fail_no_request_and_lose_no_event,
    changes_that_meet_leave_one_of_them,
    a_version_that_cannot_be_loaded_leaves_the_one_before_in_force,
    a_start_compiles_what_a_roll_back_would_bring_back,
);

/// Longer than anything takes.
const PATIENCE: Duration = Duration::from_mins(1);
const VERSIONS: u32 = 50;
const CLIENTS: usize = 4;

/// A request for the instructions of one event.
fn request(app: &TestApp, session: &Session) -> (String, reqwest::RequestBuilder) {
    let event = app.event(session, "a", &json!({}));
    let id = text(&event, "eventId");
    let mut body = session.batch(&[event]);
    body["delivery"] = json!({"eventIds": [id]});
    let request = app.request(
        reqwest::Method::POST,
        "/v1/sdk/ingest",
        &session.credential(),
    );
    (id, request.json(&body))
}

async fn fifty_activations_under_load_fail_no_request_and_lose_no_event(app: &mut TestApp) {
    deploy(app, 1, 0).await;
    app.survey(&trigger(1, json!({"events": ["a"]}))).await;
    for number in 1..=VERSIONS {
        upload(app, versioned(1, number)).await.data(201);
    }
    let mut sessions = Vec::new();
    for number in 0..CLIENTS {
        sessions.push(app.session(&format!("client {number}")).await);
    }
    let app = &*app;
    let over = AtomicBool::new(false);
    // The newest version whose activation was answered.
    let active = AtomicU32::new(0);
    let clients = sessions.iter().map(|session| {
        let (over, active) = (&over, &active);
        async move {
            let mut sent = Vec::new();
            while !over.load(Ordering::SeqCst) {
                let oldest = active.load(Ordering::SeqCst);
                let (id, request) = request(app, session);
                let data = client::send(request).await.ok();
                assert_eq!(data["accepted"], 1);
                assert_eq!(data["instructions"].as_array().unwrap().len(), 1);
                sent.push((id, oldest));
            }
            sent
        }
    });
    let swaps = async {
        for number in 1..=VERSIONS {
            activate(app, 1, json!({"version": version(number)}))
                .await
                .ok();
            active.store(number, Ordering::SeqCst);
        }
        over.store(true, Ordering::SeqCst);
    };
    let (sent, ()) = tokio::join!(futures_util::future::join_all(clients), swaps);

    app.settle().await;
    let rows: Vec<(uuid::Uuid, String)> = app
        .rows("SELECT trigger_event_id, plugin_version FROM instructions")
        .await;
    let sent: HashMap<String, u32> = sent.into_iter().flatten().collect();
    assert_eq!(rows.len(), sent.len(), "each event fires once");
    assert!(sent.len() >= CLIENTS);
    let numbers: HashMap<String, u32> = (0..=VERSIONS)
        .map(|number| (version(number), number))
        .collect();
    for (event, decided_by) in rows {
        let oldest = sent[&event.to_string()];
        let number = numbers[&decided_by];
        assert!(
            number >= oldest,
            "{decided_by} decided after version {oldest} was active"
        );
    }
}

async fn changes_that_meet_leave_one_of_them(app: &mut TestApp) {
    deploy(app, 1, 0).await;
    app.survey(&trigger(1, json!({"events": ["a"]}))).await;
    for number in 1..=4 {
        upload(app, versioned(1, number)).await.data(201);
    }
    let app = &*app;
    let changes = (1..=4).map(|number| activate(app, 1, json!({"version": version(number)})));
    for answer in futures_util::future::join_all(changes).await {
        answer.ok();
    }
    let path = app.path(&format!("/plugins/{}", name(1)));
    let plugin = app.get(&path, &app.viewer()).await.ok();
    let active = plugin["activeVersion"].as_str().unwrap();
    let previous = plugin["rollout"]["previousVersion"].as_str().unwrap();
    assert_ne!(active, previous);
    let ada = app.session("ada").await;
    let decided = decides(app, &ada, "a").await.unwrap();
    assert_eq!(decided.1, active);

    let uploads = (0..3).map(|_| upload(app, versioned(2, 1)));
    let mut statuses: Vec<u16> = futures_util::future::join_all(uploads)
        .await
        .iter()
        .map(|answer| answer.status)
        .collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 200, 201]);
}

async fn a_version_that_cannot_be_loaded_leaves_the_one_before_in_force(app: &mut TestApp) {
    deploy(app, 1, 1).await;
    app.survey(&trigger(1, json!({"events": ["a"]}))).await;
    deploy(app, 2, 1).await;
    app.survey(&trigger(2, json!({"events": ["b"]}))).await;
    upload(app, versioned(1, 2)).await.data(201);
    let component = {
        let mut tx = app.services().db.write().await.unwrap();
        let digest = nudge_wasm::digest(&versioned(1, 2));
        tx.sql("UPDATE plugin_components SET bytes = $2 WHERE digest = $1")
            .bind(digest.clone())
            .bind(b"damaged".to_vec())
            .execute()
            .await
            .unwrap();
        // As another process would activate it, which could load it.
        tx.sql("UPDATE plugins SET previous_version = active_version, active_version = $1 WHERE name = $2")
            .bind(version(2))
            .bind(name(1))
            .execute()
            .await
            .unwrap();
        let now = app.clock.now();
        nudge_campaigns::apps::bump_version(&mut tx, app.access.app_id, now)
            .await
            .unwrap();
        tx.commit().await.unwrap();
        digest
    };
    let ada = app.session("ada").await;
    app.services()
        .apps
        .refresh(app.access.app_id)
        .await
        .unwrap();
    assert_eq!(decides(app, &ada, "a").await, Some((name(1), version(1))));
    assert_eq!(decides(app, &ada, "b").await, Some((name(2), version(1))));

    app.restart().await;
    assert_eq!(decides(app, &ada, "a").await, Some((name(1), version(1))));
    let mut tx = app.services().db.write().await.unwrap();
    tx.sql("UPDATE plugin_components SET bytes = $2 WHERE digest = $1")
        .bind(component)
        .bind(versioned(1, 2))
        .execute()
        .await
        .unwrap();
    tx.commit().await.unwrap();
    app.services()
        .apps
        .refresh(app.access.app_id)
        .await
        .unwrap();
    assert_eq!(decides(app, &ada, "a").await, Some((name(1), version(2))));
}

/// Whether a server has compiled a version of plugin 1.
async fn has_compiled(app: &TestApp, number: u32) -> bool {
    let digest = nudge_wasm::digest(&versioned(1, number));
    let loaders = &app.services().plugins.loaders;
    let asked = loaders.run(move |engine| engine.is_compiled(&digest));
    asked.await.unwrap()
}

async fn a_start_compiles_what_a_roll_back_would_bring_back(app: &mut TestApp) {
    for number in 0..3 {
        deploy(app, 1, number).await;
    }
    let empty = TempDir::with_prefix("nudge-test-").unwrap();
    app.stop().await;
    app.config.plugins.cache_dir = empty.path().into();
    // What was uploaded a moment ago is compiled in any case.
    app.advance(600);
    app.resume().await;

    app.until("they are not compiled", async || {
        has_compiled(app, 2).await && has_compiled(app, 1).await
    })
    .await;
    assert!(!has_compiled(app, 0).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_server_on_the_database_follows() {
    let url = tests::postgres::database().await;
    let folder = TempDir::with_prefix("nudge-test-").unwrap();
    let node = async |name: &str| {
        node_with(&url, folder.path(), name, |config| {
            // A cache of its own: what the other one compiled is compiled here.
            config.plugins.cache_dir = folder.path().join(format!("{name} compiled"));
        })
        .await
    };
    let (one, two) = (node("one").await, node("two").await);
    deploy(&one, 1, 0).await;
    one.survey(&trigger(1, json!({"events": ["a"]}))).await;
    let ada = one.session("ada").await;

    for number in 1..4 {
        deploy(&one, 1, number).await;
        let expected = Some((name(1), version(number)));
        assert_eq!(decides(&one, &ada, "a").await, expected);
        let changed = Instant::now();
        while decides(&two, &ada, "a").await != expected {
            assert!(
                changed.elapsed() < PATIENCE,
                "the other server does not follow"
            );
        }
    }
    one.finish().await;
    two.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_server_compiles_a_version_before_it_is_activated() {
    let url = tests::postgres::database().await;
    let folder = TempDir::with_prefix("nudge-test-").unwrap();
    let node = async |name: &str| {
        let compiled = folder.path().join(format!("{name} compiled"));
        node_with(&url, folder.path(), name, |config| {
            config.plugins.cache_dir = compiled;
        })
        .await
    };
    let (one, two) = (node("one").await, node("two").await);
    upload(&one, versioned(1, 0)).await.data(201);

    two.until("the version is not compiled", async || {
        has_compiled(&two, 0).await
    })
    .await;
    one.finish().await;
    two.finish().await;
}

/// The second server never asks by itself for changes of the first one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_server_knows_a_plugin_once_its_activation_is_answered() {
    let url = tests::postgres::database().await;
    let folder = TempDir::with_prefix("nudge-test-").unwrap();
    let one = node_with(&url, folder.path(), "one", |_| {}).await;
    let two = unaware(&url, folder.path(), "two").await;
    two.session("ada").await;
    let mut survey = tests::session::survey_body();
    survey["trigger"] = trigger(1, json!({"events": ["a"]}));
    let path = two.path("/surveys");
    let refused = two.post(&path, &two.editor(), &survey).await;
    assert_eq!(refused.pointers(), ["/trigger/plugin"]);

    deploy(&one, 1, 0).await;
    two.post(&path, &two.editor(), &survey).await.data(201);

    let strict = upload(&one, test_guests::STRICT.to_vec()).await.data(201);
    let strict_is_active = json!({"version": text(&strict, "version")});
    let activate = one.path("/plugins/strict/activate");
    one.post(&activate, &one.admin(), &strict_is_active)
        .await
        .ok();
    let validator = json!({"plugin": "strict", "config": {"forbidden": "card"}});
    two.define("purchase", &json!({"validator": validator}))
        .await;
    one.finish().await;
    two.finish().await;
}

/// A server that asks by itself for no changes or jobs of others.
async fn unaware(url: &str, folder: &Path, name: &str) -> TestApp {
    node_with(url, folder, name, |config| {
        config.pipeline.poll_ms = 3_600_000;
    })
    .await
}

/// What is saved at a server is checked by the version that another one has just activated.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_server_checks_by_the_version_that_is_active() {
    let url = tests::postgres::database().await;
    let folder = TempDir::with_prefix("nudge-test-").unwrap();
    let one = unaware(&url, folder.path(), "one").await;
    deploy(&one, 1, 2).await;
    let two = unaware(&url, folder.path(), "two").await;
    two.session("ada").await;
    deploy(&one, 1, 1).await;
    let mut survey = tests::session::survey_body();
    survey["trigger"] = trigger(1, json!({"events": ["a"], "since": 1_000_002}));
    let path = two.path("/surveys");
    let refused = two.post(&path, &two.editor(), &survey).await;
    assert_eq!(refused.pointers(), ["/trigger/config/since"]);
    one.finish().await;
    two.finish().await;
}

/// Letters are replayed by the version that another server has just activated.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_server_replays_by_the_version_that_is_active() {
    let url = tests::postgres::database().await;
    let folder = TempDir::with_prefix("nudge-test-").unwrap();
    let one = unaware(&url, folder.path(), "one").await;
    let activate = async |component: Vec<u8>| {
        let uploaded = upload(&one, component).await.data(201);
        let version = json!({"version": uploaded["version"]});
        let path = one.path("/plugins/strict/activate");
        one.post(&path, &one.admin(), &version).await.ok();
    };
    activate(test_guests::STRICT.to_vec()).await;
    let validator = json!({"plugin": "strict", "config": {"forbidden": "card"}});
    one.define("purchase", &json!({"validator": validator}))
        .await;
    let mut two = unaware(&url, folder.path(), "two").await;
    let ada = two.session("ada").await;
    let event = two.event(&ada, "purchase", &json!({"card": "test"}));
    let answer = two.ingest(&ada, &[event]).await.ok();
    assert_eq!(answer["rejected"], 1, "{answer}");

    activate(lenient()).await;
    let path = two.path("/dead-letters/replay");
    let queued = two.post(&path, &two.editor(), &json!({"filter": {}})).await;
    let job = ended(&two, &text(&queued.data(202), "jobId")).await;
    assert_eq!(job["result"]["replayed"], 1, "{job}");
    // What follows from the event is found by asking.
    two.config.pipeline.poll_ms = 50;
    two.restart().await;
    two.finish().await;
    one.finish().await;
}

/// What a killed server leaves is one activation or the other, whole; the next start runs it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kill_in_the_middle_of_activations_leaves_one_of_them() {
    let folder = TempDir::with_prefix("nudge-test-").unwrap();
    let http = client::build();
    let mut child = Child::start(site!(), folder.path());
    let root = format!("/v1/apps/{}", child.text("appId"));
    let post = |child: &Child, path: &str| {
        let url = format!("{}{root}{path}", child.text("baseUrl"));
        http.post(url).bearer_auth(child.text("adminToken"))
    };
    for number in 0..8 {
        let request = post(&child, "/plugins").header("content-type", "application/wasm");
        client::send(request.body(versioned(1, number)))
            .await
            .data(201);
    }
    let activate = format!("/plugins/{}/activate", name(1));
    let first = json!({"version": version(0), "slot": true});
    client::send(post(&child, &activate).json(&first))
        .await
        .ok();
    let survey = tests::session::survey_body();
    client::send(post(&child, "/surveys").json(&survey))
        .await
        .data(201);

    for lifetime in [5, 23, 60, 110] {
        let dead = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&dead);
        let requests: Vec<reqwest::RequestBuilder> = (0..8)
            .map(|number| post(&child, &activate).json(&json!({"version": version(number)})))
            .collect();
        let killer = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(lifetime));
            child.kill();
            flag.store(true, Ordering::SeqCst);
        });
        while !dead.load(Ordering::SeqCst) {
            for request in &requests {
                // What the kill interrupts has no answer.
                drop(request.try_clone().unwrap().send().await);
            }
        }
        killer.join().unwrap();
        child = Child::start(site!(), folder.path());

        let url = format!("{}{root}/plugins/{}", child.text("baseUrl"), name(1));
        let shown = client::send(http.get(url).bearer_auth(child.text("adminToken")));
        let plugin = shown.await.ok();
        let known: HashSet<String> = (0..8).map(version).collect();
        let active = text(&plugin, "activeVersion");
        assert!(known.contains(&active), "{plugin}");
        assert_ne!(plugin["rollout"]["previousVersion"], json!(active));
        assert_eq!(fires(&http, &child).await, 1, "the version decides");
    }
    assert_eq!(child.terminate(), Some(0));
}

/// How many instructions a purchase fires.
async fn fires(http: &reqwest::Client, child: &Child) -> usize {
    let url = |path: &str| format!("{}{path}", child.text("baseUrl"));
    let key = child.text("writeKey");
    let body = json!({"anonymousId": "ada"});
    let session = http.post(url("/v1/sdk/session")).bearer_auth(key);
    let session = client::send(session.json(&body)).await.ok();
    let now = nudge_platform::clock::Clock::default().now();
    let id = nudge_platform::id::new(now);
    let event: Value = json!({"eventId": id, "name": "purchase",
        "timestamp": nudge_platform::clock::to_text(now), "anonymousId": "ada"});
    let body = json!({"context": {"anonymousId": "ada"}, "events": [event], "delivery": {"eventIds": [id]}});
    let request = http
        .post(url("/v1/sdk/ingest"))
        .bearer_auth(key)
        .header("x-service-subject-token", text(&session, "subjectToken"));
    let data = client::send(request.json(&body)).await.ok();
    data["instructions"].as_array().unwrap().len()
}
