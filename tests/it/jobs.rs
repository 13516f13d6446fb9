//! Long work: what takes long keeps nothing else waiting.

use std::time::{Duration, Instant};

use nudge::dead_letters::bulk;
use nudge_platform::jobs::{self, NewJob};
use serde_json::{Value, json};
use tests::session::text;
use tests::{TestApp, on_both_backends};

use crate::deletion::{delete, deleted};
use crate::guests::upload;

on_both_backends!(
    long_backtests_keep_no_deletion_waiting,
    a_job_of_a_newer_server_waits_for_it,
);

/// Longer than anything takes to begin.
const BEGINS: Duration = Duration::from_mins(1);

/// The plugin that never ends, under the next version.
fn newer() -> Vec<u8> {
    let (old, new) = (b"1.0.0Breaks", b"1.0.1Breaks");
    let mut bytes = test_guests::MISBEHAVING.to_vec();
    let place = bytes.windows(old.len()).position(|part| part == old);
    // The guest has its version beside its summary.
    let place = place.unwrap();
    bytes[place..place + new.len()].copy_from_slice(new);
    bytes
}

async fn states(app: &TestApp, jobs: &[String]) -> Vec<String> {
    let mut states = Vec::new();
    for id in jobs {
        let path = app.path(&format!("/jobs/{id}"));
        let job: Value = app.get(&path, &app.viewer()).await.ok();
        states.push(text(&job, "status"));
    }
    states
}

async fn long_backtests_keep_no_deletion_waiting(app: &mut TestApp) {
    app.config.plugins.deadline_ms = 1_000;
    app.restart().await;
    let ada = app.session("ada").await;
    app.session("bob").await;
    // All are recorded before there is a campaign that they would take time for.
    let events: Vec<Value> = (0..100)
        .map(|_| app.event(&ada, "purchase", &json!({})))
        .collect();
    app.ingest(&ada, &events).await.ok();
    app.settle().await;
    upload(app, test_guests::MISBEHAVING.to_vec())
        .await
        .data(201);
    let path = app.path("/plugins/misbehaving/activate");
    app.post(&path, &app.admin(), &json!({"version": "1.0.0"}))
        .await
        .ok();
    upload(app, newer()).await.data(201);
    let survey = app
        .survey(&json!({"kind": "plugin", "plugin": "misbehaving", "config": {"mode": "loop"}}))
        .await;

    let path = app.path("/plugins/misbehaving/versions/1.0.1/backtest");
    let body = json!({"since": app.time(-3600), "campaignId": survey});
    let mut backtests = Vec::new();
    for _ in 0..4 {
        let job = app.post(&path, &app.admin(), &body).await.data(202);
        backtests.push(text(&job, "jobId"));
    }
    let started = Instant::now();
    while !states(app, &backtests)
        .await
        .contains(&"running".to_owned())
    {
        assert!(started.elapsed() < BEGINS, "no backtest begins");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }

    let job_id = delete(app, &json!({"anonymousId": "bob"})).await;
    deleted(app, &job_id).await;
    let left = states(app, &backtests).await;
    assert!(left.iter().all(|state| state != "completed"), "{left:?}");
}

/// In a rolling upgrade, the servers of the version before leave what they do not know.
async fn a_job_of_a_newer_server_waits_for_it(app: &mut TestApp) {
    let mut ids = Vec::new();
    for kind in ["future.kind", bulk::ACKNOWLEDGE] {
        let job = NewJob {
            app_id: app.access.app_id,
            kind,
            input: json!({"filter": {}}),
            requested_by: "a newer server",
        };
        let mut tx = app.services().db.write().await.unwrap();
        let id = jobs::queue(&mut tx, &job, app.clock.now()).await.unwrap();
        tx.commit().await.unwrap();
        ids.push(id.to_string());
    }
    app.services().jobs.wake();

    app.until("the job that is known ends", async || {
        states(app, &ids).await[1] == "completed"
    })
    .await;
    assert_eq!(states(app, &ids).await[0], "queued");
}
