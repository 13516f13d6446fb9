//! Dead letters that are gone when a replay comes to them, and replays that have ended (contract 11).

use std::time::Duration;

use nudge_pipeline::Size;
use serde_json::json;
use tests::session::{instruction_ids, text};
use tests::{Session, TestApp, on_both_backends};

use crate::bulk_replays::{ended, letters, queue, three_slow_letters};
use crate::person::execute;

on_both_backends!(
    letters_that_are_gone_do_not_count_as_replayed,
    a_replay_that_is_through_is_not_begun_again,
);

/// Sends an event that breaks its definition.
async fn breaks(app: &TestApp, session: &Session) {
    let event = app.event(session, "purchase", &json!({}));
    assert_eq!(app.ingest(session, &[event]).await.ok()["rejected"], 1);
}

async fn letters_that_are_gone_do_not_count_as_replayed(app: &mut TestApp) {
    let (ada, patience) = three_slow_letters(app).await;

    app.config.plugins.deadline_ms = patience;
    app.restart().await;
    let all = app.config.pipeline.memory_events;
    let room = app.services().pipeline.room(Size::new(all, 0)).unwrap();
    let queued = queue(app, "replay", &json!({"filter": {}})).await.data(202);
    app.until("the job is not claimed", async || {
        app.count("jobs WHERE node IS NOT NULL").await == 1
    })
    .await;
    // It has the letters by then, and waits for room.
    tokio::time::sleep(Duration::from_millis(300)).await;
    execute(app, "DELETE FROM dead_letters", &[]).await;
    drop(room);
    let job = ended(app, &text(&queued, "jobId")).await;
    assert_eq!(
        job["result"],
        json!({"replayed": 0, "stillFailing": 0, "skipped": 0})
    );
    assert_eq!(job["progress"], json!({"done": 0, "total": 0}));
    assert!(instruction_ids(&app.offered(&ada).await).is_empty());
}

async fn a_replay_that_is_through_is_not_begun_again(app: &mut TestApp) {
    let total = json!({"name": "total", "type": "number", "required": true});
    app.define("purchase", &json!({"properties": [total]}))
        .await;
    let ada = app.session("ada").await;
    breaks(app, &ada).await;
    let body = json!({"filter": {}, "patch": {"total": 1}});
    let queued = queue(app, "replay", &body).await.data(202);
    let job_id = text(&queued, "jobId");
    let done = ended(app, &job_id).await;
    assert_eq!(done["result"]["replayed"], 1);

    // A letter that the filter has, and a crash before the job's end was noted, when its patch was forgotten already.
    app.advance(60);
    breaks(app, &ada).await;
    for statement in [
        "UPDATE dead_letters SET received_at = received_at - 120000000",
        "UPDATE jobs SET state = 'running', result = NULL, completed_at = NULL",
    ] {
        execute(app, statement, &[]).await;
    }
    app.services().jobs.wake();
    assert_eq!(ended(app, &job_id).await["result"], done["result"]);
    let left = letters(app).await;
    assert_eq!(left.len(), 1);
    assert_eq!(left[0]["attempts"], 0);
}
