//! `kill -9` at any moment of a deletion: the next start goes on, and counts nothing twice (contract 6).

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;
use tests::client::{self, Answer};
use tests::session::text;
use tests::{Backend, Child, postgres, site};

/// Longer than anything takes to come back.
const COMES_BACK: Duration = Duration::from_mins(2);
const BATCHES: usize = 8;
const EVENTS: usize = 500;

async fn send(
    child: &Child,
    method: reqwest::Method,
    path: &str,
    key: &str,
    token: &str,
    body: &Value,
) -> Answer {
    let url = format!("{}{path}", child.text("baseUrl"));
    let request = client::build()
        .request(method, url)
        .bearer_auth(child.text(key))
        .header("x-service-subject-token", token);
    let reads = body.is_null();
    client::send(if reads { request } else { request.json(body) }).await
}

async fn post(child: &Child, path: &str, key: &str, token: &str, body: &Value) -> Answer {
    send(child, reqwest::Method::POST, path, key, token, body).await
}

/// Somebody with many events.
async fn fill(child: &Child) {
    let session = json!({"anonymousId": "ada"});
    let session = post(child, "/v1/sdk/session", "writeKey", "", &session)
        .await
        .ok();
    let token = text(&session, "subjectToken");
    let clock = nudge_platform::clock::Clock::default();
    for _ in 0..BATCHES {
        let events: Vec<Value> = (0..EVENTS)
            .map(|_| {
                let now = clock.now();
                json!({"eventId": nudge_platform::id::new(now), "name": "purchase", "timestamp": nudge_platform::clock::to_text(now), "anonymousId": "ada"})
            })
            .collect();
        let body = json!({"context": {"anonymousId": "ada"}, "events": events});
        let data = post(child, "/v1/sdk/ingest", "writeKey", &token, &body)
            .await
            .ok();
        assert_eq!(data["accepted"], EVENTS);
    }
}

async fn survives_kills(backend: Backend) {
    let folder = TempDir::with_prefix("nudge-test-").unwrap();
    let database = match backend {
        Backend::Sqlite => String::new(),
        Backend::Postgres => postgres::database().await,
    };
    let mut variables = vec![
        ("NUDGE_PRIVACY__GRACE_SECONDS", "1"),
        ("NUDGE_PIPELINE__NODE_TIMEOUT_SECONDS", "5"),
    ];
    if backend == Backend::Postgres {
        variables.push(("NUDGE_DATABASE__URL", &database));
    }
    let start = || Child::start_with(site!(), folder.path(), &variables);
    let mut child = start();
    fill(&child).await;
    let app_id = child.text("appId").to_owned();
    let path = format!("/v1/apps/{app_id}/gdpr/delete");
    let body = json!({"anonymousId": "ada"});
    let queued = post(&child, &path, "adminToken", "", &body).await.data(202);
    let job_id = text(&queued, "jobId");

    for lifetime in [5, 30, 90, 200, 500] {
        std::thread::sleep(Duration::from_millis(lifetime));
        child.kill();
        child = start();
    }

    let path = format!("/v1/apps/{app_id}/gdpr/deletions/{job_id}");
    let started = Instant::now();
    let done = loop {
        let view = send(
            &child,
            reqwest::Method::GET,
            &path,
            "adminToken",
            "",
            &Value::Null,
        )
        .await
        .ok();
        if view["status"] == "completed" {
            break view;
        }
        assert!(started.elapsed() < COMES_BACK, "{view}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    let counts: Vec<(String, i64)> = done["steps"]
        .as_array()
        .unwrap()
        .iter()
        .map(|step| (text(step, "store"), step["deletedCount"].as_i64().unwrap()))
        .filter(|(store, _)| ["events", "aliases", "profile"].contains(&store.as_str()))
        .collect();
    let events = i64::try_from(BATCHES * EVENTS).unwrap();
    let expected = [("events", events), ("aliases", 1), ("profile", 1)];
    assert_eq!(
        counts,
        expected.map(|(store, count)| (store.to_owned(), count))
    );
    assert!(done["receipt"]["digest"].is_string());
    assert_eq!(child.terminate(), Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deletion_survives_kills_on_sqlite() {
    survives_kills(Backend::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deletion_survives_kills_on_postgres() {
    survives_kills(Backend::Postgres).await;
}
