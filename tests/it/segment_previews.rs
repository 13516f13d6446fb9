//! How many previews of segments are made at a time, and of whom (contract 19).

use std::time::Duration;

use nudge_apps::key::Kind;
use serde_json::json;
use tests::{Answer, TestApp, client, on_both_backends};
use tokio::task::JoinSet;
use uuid::Uuid;

on_both_backends!(
    previews_of_an_app_leave_turns_to_others,
    an_app_makes_one_preview_at_a_time,
    a_preview_keeps_its_turn_until_its_work_has_ended,
);

/// Begins a preview of everybody of an app.
fn begin(app: &TestApp, app_id: Uuid) -> impl Future<Output = Answer> + Send + 'static {
    let visited = json!({"kind": "event", "eventName": "visit", "withinDays": 7});
    let path = format!("/v1/apps/{app_id}/segments/preview");
    let request = app.request(reqwest::Method::POST, &path, &app.viewer());
    client::send(request.json(&json!({"audience": {"exclude": visited}})))
}

#[track_caller]
fn comes_back(answer: &Answer) {
    answer.refused(503, "unavailable");
    let seconds: u64 = answer.header("retry-after").parse().unwrap();
    assert!(seconds >= 1);
}

async fn another(app: &TestApp) -> Uuid {
    let workspace_id = app.access.workspace_id;
    app.another_app(workspace_id, Kind::Write, &[]).await.0
}

async fn previews_of_an_app_leave_turns_to_others(app: &mut TestApp) {
    app.people(1_000).await;
    let other = another(app).await;
    let mut many = JoinSet::new();
    for _ in 0..20 {
        many.spawn(begin(app, app.access.app_id));
    }
    begin(app, other).await.ok();
    while let Some(answer) = many.join_next().await {
        let answer = answer.unwrap();
        if answer.status == 200 {
            assert_eq!(answer.ok()["count"], 1_000);
        } else {
            comes_back(&answer);
        }
    }
}

async fn an_app_makes_one_preview_at_a_time(app: &mut TestApp) {
    let (own, other, third) = (app.access.app_id, another(app).await, another(app).await);
    let previews = app.services().previews.clone();
    let turn = previews.take(own, Duration::ZERO).await.unwrap();
    comes_back(&begin(app, own).await);
    begin(app, other).await.ok();
    let last = previews.take(other, Duration::ZERO).await.unwrap();
    comes_back(&begin(app, third).await);
    // What waits for its turn gets it.
    let (answer, ()) = tokio::join!(begin(app, own), async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        drop(turn);
    });
    answer.ok();
    drop(last);
    begin(app, third).await.ok();
}

/// A client that hangs up and begins anew has no more work done than one that waits.
async fn a_preview_keeps_its_turn_until_its_work_has_ended(app: &mut TestApp) {
    app.config.plugins.workers = 1;
    app.restart().await;
    app.people(10).await;
    let own = app.access.app_id;
    let previews = app.services().previews.clone();
    let is_free = async || previews.take(own, Duration::ZERO).await.is_some();
    let workers = app.services().plugins.workers.clone();
    let waiting = || workers.waiting();
    // The only thread is busy.
    let (done, busy) = std::sync::mpsc::channel::<()>();
    assert!(workers.offer(own, (1, 1), move || busy.recv().unwrap_or_default()));
    let mut clients = JoinSet::new();
    clients.spawn(begin(app, own));
    app.until("the preview asks the plugin", async || {
        waiting() == 1 && !is_free().await
    })
    .await;
    clients.shutdown().await;
    app.until("nobody is in", async || {
        app.services().admission.body_bytes() == 0
    })
    .await;
    assert!(!is_free().await);
    drop(done);
    app.until("the turn is free", is_free).await;
}
