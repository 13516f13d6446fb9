//! What a clock that was ahead has planned goes on once it is set back: sweeps of segments, runs and broadcasts, changes of
//! segments, claimed timers (contract 7, 9, 19).

use std::time::Duration;

use nudge_records::scheduled_work::{self, NewOccasion};
use serde_json::{Value, json};
use tests::session::text;
use tests::{TestApp, on_both_backends};
use uuid::Uuid;

use crate::runs::{broadcast, daily, delivered, issued, next_morning, over, scheduled};
use crate::segments::{plan, segment, set};
use crate::stalls::change;

on_both_backends!(
    a_segment_is_swept_in_time,
    a_sweep_that_is_put_off_for_too_long_is_due,
    a_broadcast_that_has_begun_goes_on,
    what_is_left_of_a_run_goes_on,
    a_run_by_a_rule_comes_round_again,
    a_change_of_a_segment_is_told_in_time,
    a_timer_that_was_claimed_has_the_rest_of_its_delay,
);

const HOUR: Duration = Duration::from_hours(1);
const DAY: Duration = Duration::from_hours(24);

async fn size(app: &TestApp, segment: &Value) -> Value {
    let path = app.path(&format!("/segments/{}", text(segment, "id")));
    app.get(&path, &app.viewer()).await.ok()["size"].clone()
}

/// A sweep is looked at again in a minute, or is due again in three quarters of an hour.
async fn is_swept_soon(app: &TestApp) -> bool {
    let latest = app.clock.now().plus(HOUR).0;
    let due: Vec<(i64,)> = app.rows("SELECT next_at FROM segment_sweeps").await;
    due.len() == 1 && due[0].0 <= latest
}

async fn a_segment_is_swept_in_time(app: &mut TestApp) {
    let pros = segment(app, "pros", plan("pro")).await;
    app.finish_jobs().await;
    app.clock.advance(10 * HOUR);
    app.until("a sweep has begun", async || {
        app.count("segment_sweeps WHERE job_id IS NOT NULL").await == 1
    })
    .await;
    app.finish_jobs().await;
    let ada = app.session("ada").await;
    set(app, &ada, json!({"plan": "pro"})).await;
    assert_eq!(size(app, &pros).await, 0, "only a sweep counts");

    app.clock.set_back(10 * HOUR);
    app.until("the size is known anew", async || {
        size(app, &pros).await == 1
    })
    .await;
    assert!(is_swept_soon(app).await);
}

async fn a_sweep_that_is_put_off_for_too_long_is_due(app: &mut TestApp) {
    segment(app, "pros", plan("pro")).await;
    app.finish_jobs().await;
    change(
        app,
        "UPDATE segment_sweeps SET next_at = next_at + 36000000000",
    )
    .await;
    app.until("it is due", async || is_swept_soon(app).await)
        .await;
}

async fn status(app: &TestApp, campaign: Uuid) -> String {
    let path = app.path(&format!("/campaigns/{campaign}"));
    text(&app.get(&path, &app.viewer()).await.ok(), "status")
}

async fn a_broadcast_that_has_begun_goes_on(app: &mut TestApp) {
    app.people(1_200).await;
    app.clock.advance(DAY);
    let campaign = broadcast(app, json!({})).await;
    app.until("it has begun", async || app.count("deliveries").await > 0)
        .await;

    app.clock.set_back(DAY);
    app.until("everybody has it", async || {
        delivered(app).await == (1_200, 1_200)
    })
    .await;
    app.until("it is completed by itself", async || {
        app.advance(1);
        status(app, campaign).await == "completed"
    })
    .await;
    assert_eq!(delivered(app).await, (1_200, 1_200));
}

/// Whether the next run of what comes round daily is the next one or the one after it.
async fn is_planned_soon(app: &TestApp) -> bool {
    let latest = app.clock.now().plus(2 * DAY).0;
    let next: Vec<(i64,)> = app.rows("SELECT next_at FROM campaign_runs").await;
    next.len() == 1 && next[0].0 <= latest
}

/// As the run of a clock leaves it that was a year ahead: somebody waits, and the next look is far.
async fn what_is_left_of_a_run_goes_on(app: &mut TestApp) {
    app.session("ada").await;
    let id = scheduled(app, daily("UTC")).await;
    let year = app.clock.now().plus(365 * DAY);
    let app_id = app.access.app_id;
    let mut tx = app.services().db.write().await.unwrap();
    for (statement, at) in [
        (
            "INSERT INTO occasions (id, app_id, campaign_id, subject_id, alias_number, key, due_at, event_seq)
             SELECT a.subject_id, $1, $2, a.subject_id, a.number, 'run 2', $3, -1 FROM aliases a",
            year,
        ),
        (
            "UPDATE campaign_runs SET last_at = $3, next_at = $3 + 1, next_occasion = $3 + 1, look_at = $3
             WHERE app_id = $1 AND campaign_id = $2",
            year,
        ),
    ] {
        let changed = tx.sql(statement).bind(app_id).bind(id).bind(at).execute().await;
        assert_eq!(changed.unwrap(), 1, "{statement}");
    }
    tx.commit().await.unwrap();
    app.clock.set_back(HOUR);
    app.until("it is on offer", async || issued(app).await == (1, 1))
        .await;
    app.until("it comes round again", async || is_planned_soon(app).await)
        .await;
}

async fn a_run_by_a_rule_comes_round_again(app: &mut TestApp) {
    app.people(3).await;
    scheduled(app, daily("UTC")).await;
    next_morning(app);
    over(app, 1).await;
    app.clock.advance(5 * DAY);
    over(app, 2).await;
    app.settle().await;

    app.clock.set_back(5 * DAY);
    app.until("it is planned anew", async || is_planned_soon(app).await)
        .await;
    // The morning that the clock had before is passed over, the one after it is not.
    app.advance(60);
    next_morning(app);
    over(app, 2).await;
    app.clock.advance(DAY);
    over(app, 3).await;
    app.until("everybody has it", async || issued(app).await == (9, 3))
        .await;
}

async fn a_change_of_a_segment_is_told_in_time(app: &mut TestApp) {
    let pros = segment(app, "pros", plan("pro")).await;
    let trigger = json!({"kind": "segment", "segmentId": pros["id"], "on": "enter"});
    let survey = app.survey(&trigger).await;
    let ada = app.session("ada").await;
    app.finish_jobs().await;
    app.settle().await;

    app.clock.advance(HOUR);
    let now = app.clock.now();
    let id = nudge_platform::id::new(now);
    let aliases: Vec<(i64,)> = app.rows("SELECT number FROM aliases").await;
    let occasion = NewOccasion {
        id,
        campaign_id: survey,
        subject_id: ada.subject_id.parse().unwrap(),
        alias: aliases[0].0,
        key: scheduled_work::change_key(id),
        // Nobody claims it before the clock is set back.
        due_at: now.plus(Duration::from_mins(10)),
        event_seq: scheduled_work::seq_of(now),
        firing_id: None,
        node: None,
    };
    let mut tx = app.services().db.write().await.unwrap();
    let app_id = app.access.app_id;
    let inserted = scheduled_work::insert(&mut tx, app_id, &[occasion]).await;
    assert_eq!(inserted.unwrap(), 1);
    tx.commit().await.unwrap();
    app.settle().await;
    assert_eq!(app.count("occasions").await, 1);

    app.clock.set_back(HOUR);
    app.until("it is told of", async || app.count("occasions").await == 0)
        .await;
}

async fn a_timer_that_was_claimed_has_the_rest_of_its_delay(app: &mut TestApp) {
    let trigger = json!({"kind": "event", "eventName": "cart_updated", "delaySeconds": 600});
    app.survey(&trigger).await;
    app.clock.advance(HOUR);
    let ada = app.session("ada").await;
    assert_eq!(app.fires(&ada, "cart_updated", &json!({})).await, 0);
    app.settle().await;
    // The process knows of no work for it, and gives the claim up after a while.
    change(app, "UPDATE timers SET node = (SELECT id FROM nodes)").await;

    app.clock.set_back(HOUR);
    app.until("the delay is what it was", async || {
        let latest = app.clock.now().plus(Duration::from_mins(10)).0;
        let due: Vec<(i64,)> = app.rows("SELECT due_at FROM timers").await;
        due.len() == 1 && due[0].0 <= latest
    })
    .await;
    assert_eq!(app.count("instructions").await, 0);
    app.advance(601);
    app.until("it fires", async || {
        app.advance(3);
        app.count("instructions").await == 1
    })
    .await;
}
