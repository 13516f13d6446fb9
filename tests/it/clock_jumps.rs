//! A clock that is set back: nobody is shut out, nothing stalls, fires twice or is lost (contract 3, 6).

use std::time::Duration;

use nudge_platform::config::{Bucket, Switch};
use serde_json::json;
use tests::session::{instruction_ids, text};
use tests::{Credential, TestApp, on_both_backends};
use uuid::Uuid;

use crate::deletion::{delete, deleted};
use crate::guests::{name, upload, version, versioned};

on_both_backends!(
    whoever_had_nothing_left_is_not_shut_out,
    events_go_on_firing_once_each,
    what_the_host_does_by_itself_goes_on,
);

const HOUR: Duration = Duration::from_hours(1);

async fn whoever_had_nothing_left_is_not_shut_out(app: &mut TestApp) {
    app.config.rate_limits.enabled = Switch::On;
    app.config.rate_limits.subject = Bucket {
        per_second: 0.01,
        burst: 3,
    };
    app.restart().await;
    let ada = app.session("ada").await;
    let buys = async || {
        let event = app.event(&ada, "bought", &json!({}));
        app.ingest(&ada, &[event]).await
    };
    for _ in 0..3 {
        buys().await.ok();
    }
    buys().await.refused(429, "rate_limited");

    app.clock.set_back(HOUR);
    buys().await.ok();
}

async fn events_go_on_firing_once_each(app: &mut TestApp) {
    let every = json!({"kind": "event", "eventName": "purchase", "occurrence": {"mode": "every"}});
    app.survey(&every).await;
    let ada = app.session("ada").await;
    for _ in 0..3 {
        assert_eq!(app.fires(&ada, "purchase", &json!({})).await, 1);
    }
    let seen = app.poll(&ada, "").await.ok();
    let cursor = text(&seen, "nextCursor");

    app.clock.set_back(HOUR);
    for _ in 0..3 {
        assert_eq!(app.fires(&ada, "purchase", &json!({})).await, 1);
    }
    // What is new is behind what was seen, whatever the clock says.
    let new = app.poll(&ada, &format!("?cursor={cursor}")).await.ok();
    let new = instruction_ids(&new["items"]);
    assert_eq!(new.len(), 3);
    let old = instruction_ids(&seen["items"]);
    assert!(new.iter().all(|id| !old.contains(id)));
    for id in &new {
        assert_eq!(app.acknowledge(&ada, id, "displayed").await["accepted"], 1);
    }
    assert_eq!(app.session("ada").await.subject_id, ada.subject_id);

    app.clock.advance(HOUR);
    assert_eq!(app.fires(&ada, "purchase", &json!({})).await, 1);
    app.settle().await;
    let fired: Vec<(Uuid,)> = app.rows("SELECT trigger_event_id FROM instructions").await;
    assert_eq!((fired.len(), app.stored("purchase").await), (7, 7));
}

async fn what_the_host_does_by_itself_goes_on(app: &mut TestApp) {
    upload(app, versioned(9, 1)).await.data(201);
    let survey = app
        .survey(&json!({"kind": "event", "eventName": "purchase"}))
        .await;
    app.session("ada").await;
    // A job that is due by the clock as it was, and a process that ended by it.
    let path = app.path(&format!(
        "/plugins/{}/versions/{}/backtest",
        name(9),
        version(1)
    ));
    let body = json!({"since": app.time(-60), "campaignId": survey});
    let job = app.post(&path, &app.admin(), &body).await.data(202);
    let job = app.path(&format!("/jobs/{}", text(&job, "jobId")));
    let completed = async || app.get(&job, &app.viewer()).await.ok()["status"] == "completed";
    app.until("the backtest ends", completed).await;
    for change in [
        "UPDATE jobs SET completed_at = NULL, state = 'queued', run_at = run_at + 3600000000",
        "INSERT INTO nodes (id, started_at, heartbeat_at) SELECT app_id, created_at, created_at + 3600000000 FROM jobs",
    ] {
        let mut tx = app.services().db.write().await.unwrap();
        assert_eq!(tx.sql(change).execute().await.unwrap(), 1);
        tx.commit().await.unwrap();
    }
    app.until("the job is taken", completed).await;

    app.clock.set_back(HOUR);
    let alive = async || {
        let beats: Vec<(i64,)> = app.rows("SELECT heartbeat_at FROM nodes").await;
        beats.len() == 1 && beats[0].0 <= app.clock.now().0
    };
    app.until("one process gives signs of life", alive).await;
    let job_id = delete(app, &json!({"anonymousId": "ada"})).await;
    deleted(app, &job_id).await;
    assert_eq!(app.get("/readyz", &Credential::none()).await.status, 200);
}
