//! A clock that is set back: nobody is shut out, nothing stalls, fires twice or is lost (contract 3, 6).

use std::time::Duration;

use nudge_campaigns::webhooks::EventType::{Delivered, Sent};
use nudge_platform::config::{Bucket, Switch};
use serde_json::json;
use tempfile::TempDir;
use tests::providers;
use tests::session::{instruction_ids, text};
use tests::{Credential, TestApp, on_both_backends};
use uuid::Uuid;

use crate::deletion::{delete, deleted};
use crate::guests::{name, upload, version, versioned};
use crate::receiver::{Receiver, Reply, events};
use crate::two_servers::node;
use crate::webhook_delivery::noted;

on_both_backends!(
    whoever_had_nothing_left_is_not_shut_out,
    events_go_on_firing_once_each,
    a_cursor_goes_on_after_what_came_while_the_clock_was_ahead,
    a_pause_between_presentations_is_no_longer,
    a_firing_that_was_put_off_comes_in_time,
    what_the_host_does_by_itself_goes_on,
    what_a_webhook_waits_for_comes_in_time,
    a_push_message_waits_no_longer_than_any_pause,
    a_deletion_that_waits_is_done_in_time,
);

const HOUR: Duration = Duration::from_hours(1);
const MINUTE: Duration = Duration::from_mins(1);

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

async fn a_cursor_goes_on_after_what_came_while_the_clock_was_ahead(app: &mut TestApp) {
    let every = json!({"kind": "event", "eventName": "purchase", "occurrence": {"mode": "every"}});
    app.survey(&every).await;
    let ada = app.session("ada").await;
    let buys = async || {
        for _ in 0..3 {
            assert_eq!(app.fires(&ada, "purchase", &json!({})).await, 1);
        }
    };
    buys().await;
    let seen = app.poll(&ada, "").await.ok();
    let mut cursor = text(&seen, "nextCursor");
    app.clock.advance(HOUR / 2);
    buys().await;
    app.clock.set_back(HOUR / 2);
    buys().await;
    app.until("all are on offer", async || {
        instruction_ids(&app.offered(&ada).await).len() == 9
    })
    .await;

    let mut found = instruction_ids(&seen["items"]);
    assert_eq!(found.len(), 3);
    for left in [4, 2, 0, 0] {
        let page = app
            .poll(&ada, &format!("?limit=2&cursor={cursor}"))
            .await
            .ok();
        found.extend(instruction_ids(&page["items"]));
        assert_eq!(found.len(), 9 - left);
        cursor = text(&page, "nextCursor");
    }
    found.sort_unstable();
    found.dedup();
    assert_eq!(found.len(), 9);
}

async fn a_pause_between_presentations_is_no_longer(app: &mut TestApp) {
    app.set(|settings| settings.frequency.min_seconds_between_presentations = 60)
        .await;
    let every = json!({"kind": "event", "eventName": "purchase", "occurrence": {"mode": "every"}});
    app.survey(&every).await;
    let ada = app.session("ada").await;
    let buys = async || app.fires(&ada, "purchase", &json!({})).await;
    let shown = async || {
        for id in instruction_ids(&app.offered(&ada).await) {
            app.acknowledge(&ada, &id, "displayed").await;
        }
    };
    // Issued by the right clock and seen by the wrong one: nobody knows when.
    assert_eq!(buys().await, 1);
    app.clock.advance(HOUR / 2);
    shown().await;
    app.clock.set_back(HOUR / 2);
    assert_eq!(buys().await, 0, "the pause after it was issued");
    app.clock.advance(MINUTE + MINUTE);
    assert_eq!(buys().await, 1);
    shown().await;

    // Issued and seen by the wrong one: that counts from then on.
    app.clock.advance(HOUR / 2);
    assert_eq!(buys().await, 1);
    shown().await;
    app.clock.set_back(HOUR / 2);
    app.until("all are on offer", async || {
        let latest = app.clock.now().plus(MINUTE).0;
        let all: Vec<(i64,)> = app.rows("SELECT available_at FROM instructions").await;
        all.iter().all(|(at,)| *at <= latest)
    })
    .await;
    assert_eq!(buys().await, 0, "the pause after it was put right");
    app.clock.advance(MINUTE + MINUTE);
    assert_eq!(buys().await, 1);
}

async fn a_firing_that_was_put_off_comes_in_time(app: &mut TestApp) {
    app.set(|settings| settings.frequency.min_seconds_between_presentations = 60)
        .await;
    for name in ["purchase", "visit"] {
        let every = json!({"kind": "event", "eventName": name, "occurrence": {"mode": "every"}});
        app.survey(&every).await;
    }
    let ada = app.session("ada").await;
    app.clock.advance(HOUR);
    assert_eq!(app.fires(&ada, "purchase", &json!({})).await, 1);
    for id in instruction_ids(&app.offered(&ada).await) {
        app.acknowledge(&ada, &id, "displayed").await;
    }
    assert_eq!(app.fires(&ada, "visit", &json!({})).await, 0);
    let waiting = async || -> Vec<(i64,)> { app.rows("SELECT due_at FROM occasions").await };
    assert_eq!(waiting().await.len(), 1);

    app.clock.set_back(HOUR);
    app.until("the pause is a minute again", async || {
        let latest = app.clock.now().plus(MINUTE).0;
        waiting().await.iter().all(|(due_at,)| *due_at <= latest)
    })
    .await;
    app.clock.advance(MINUTE + MINUTE);
    app.until("it is on offer", async || {
        instruction_ids(&app.offered(&ada).await).len() == 1
    })
    .await;
}

/// A backtest that is done; answers the path of its job.
pub(crate) async fn backtested(app: &TestApp) -> String {
    upload(app, versioned(9, 1)).await.data(201);
    let survey = app
        .survey(&json!({"kind": "event", "eventName": "purchase"}))
        .await;
    let path = app.path(&format!(
        "/plugins/{}/versions/{}/backtest",
        name(9),
        version(1)
    ));
    let body = json!({"since": app.time(-60), "campaignId": survey});
    let job = app.post(&path, &app.admin(), &body).await.data(202);
    let job = app.path(&format!("/jobs/{}", text(&job, "jobId")));
    app.until("the backtest ends", async || {
        app.get(&job, &app.viewer()).await.ok()["status"] == "completed"
    })
    .await;
    job
}

async fn what_the_host_does_by_itself_goes_on(app: &mut TestApp) {
    app.session("ada").await;
    // A job that is due by the clock as it was, and a process that ended by it.
    let job = backtested(app).await;
    let completed = async || app.get(&job, &app.viewer()).await.ok()["status"] == "completed";
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

async fn what_a_webhook_waits_for_comes_in_time(app: &mut TestApp) {
    let receiver = Receiver::start().await;
    let types = [Reply::Status(500), Reply::Status(200)];
    receiver.reply("/running", &types);
    let webhook = receiver
        .subscribe(app, "/running", &[Sent, Delivered])
        .await;
    // The second message waits for the first one, which is to be sent again in half a minute.
    app.transit(Uuid::nil(), app.id(), &[Sent, Delivered]).await;
    noted(app, &webhook, 1).await;
    app.clock.set_back(HOUR);
    let got = receiver.wait(app, "/running", 3).await;
    assert_eq!(events(&got), ["sent", "sent", "delivered"]);
    noted(app, &webhook, 3).await;

    receiver.reply("/stopped", &types);
    let webhook = receiver.subscribe(app, "/stopped", &[Sent]).await;
    app.transit(Uuid::nil(), app.id(), &[Sent]).await;
    noted(app, &webhook, 1).await;
    app.stop().await;
    app.clock.set_back(HOUR);
    app.resume().await;
    receiver.wait(app, "/stopped", 2).await;

    // A pause that no clock has made longer is kept.
    receiver.reply("/kept", &types);
    let webhook = receiver.subscribe(app, "/kept", &[Sent]).await;
    app.transit(Uuid::nil(), app.id(), &[Sent]).await;
    noted(app, &webhook, 1).await;
    app.clock.set_back(Duration::from_secs(1));
    app.settle().await;
    assert_eq!(receiver.received("/kept").len(), 1);
    app.advance(60);
    receiver.wait(app, "/kept", 2).await;
}

async fn a_push_message_waits_no_longer_than_any_pause(app: &mut TestApp) {
    let providers = app.with_providers().await;
    app.credential(&providers.fcm.credential()).await;
    let campaign = app.transactional_campaign().await;
    let ada = app.session("ada").await;
    app.push_token(&ada, "phone", &providers.fcm.token(1)).await;
    let busy = providers::Reply {
        status: 503,
        ..providers::Reply::default()
    };
    providers.fcm.reply_next(busy.with("retry-after", "1800"));
    let body = json!({"campaignId": campaign, "anonymousId": "ada"});
    let sent = app.transactional(&body).await.data(202);
    app.until("it waits to be sent again", async || {
        let waiting: Vec<(i64,)> = app
            .rows("SELECT attempts FROM deliveries WHERE due_at IS NOT NULL AND node IS NULL AND attempts = 1")
            .await;
        waiting == [(1,)]
    })
    .await;

    app.clock.set_back(HOUR);
    app.delivery_in(&text(&sent, "deliveryId"), "delivered")
        .await;
    assert_eq!(providers.fcm.received().len(), 2);
}

async fn a_deletion_that_waits_is_done_in_time(app: &mut TestApp) {
    app.config.privacy.grace_seconds = 10;
    app.restart().await;
    app.session("ada").await;
    let job_id = delete(app, &json!({"anonymousId": "ada"})).await;
    app.until("it waits", async || {
        let jobs: Vec<(String,)> = app.rows("SELECT progress FROM jobs").await;
        jobs[0].0.contains("Settle")
    })
    .await;
    app.clock.set_back(HOUR);
    app.until("it waits anew", async || {
        let due: Vec<(i64,)> = app.rows("SELECT run_at FROM jobs WHERE node IS NULL").await;
        due.iter()
            .any(|(at,)| *at <= app.clock.now().plus(MINUTE).0)
    })
    .await;
    app.advance(11);
    deleted(app, &job_id).await;
}

/// Neither takes the other one for dead, nor what it has set for the work of a wrong clock.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_whose_clocks_differ_leave_each_other_alone() {
    let url = tests::postgres::database().await;
    let folder = TempDir::with_prefix("nudge-test-").unwrap();
    let one = node(&url, folder.path(), "one").await;
    one.advance(60);
    let later = json!({"kind": "event", "eventName": "cart_updated", "delaySeconds": 3600});
    one.survey(&later).await;
    let ada = one.session("ada").await;
    assert_eq!(one.fires(&ada, "cart_updated", &json!({})).await, 0);
    let timers = || one.rows::<(Uuid, i64, i64)>("SELECT id, set_at, due_at FROM timers");
    let set = timers().await;
    assert_eq!(set.len(), 1);

    let two = node(&url, folder.path(), "two").await;
    let nodes = || one.rows::<(Uuid, i64)>("SELECT id, started_at FROM nodes ORDER BY id");
    let signed_in = nodes().await;
    assert_eq!(signed_in.len(), 2);
    // Several signs of life of each. One that was taken for dead signs in anew.
    tokio::time::sleep(Duration::from_secs(9)).await;
    assert_eq!(nodes().await, signed_in);
    assert_eq!(timers().await, set);
    one.finish().await;
    two.finish().await;
}
