//! Two people who become one amid a run get it once.

use serde_json::json;
use tests::{Session, TestApp, on_both_backends};

use crate::identity::Backend;
use crate::runs::{daily, in_zone, issued, next_morning, over, scheduled, set, waiting};

on_both_backends!(
    two_who_become_one_get_it_once,
    who_got_it_gets_it_no_more_when_the_other_waits,
    who_waits_gets_nothing_when_the_other_got_it,
    of_two_delays_one_is_left,
    of_two_delays_that_a_pause_puts_off_one_is_left,
    who_was_not_meant_gets_it_as_the_other,
    a_run_that_is_over_is_forgotten,
);

async fn two_who_become_one_get_it_once(app: &mut TestApp) {
    next_morning(app);
    app.advance(3 * 3_600);
    let backend = crate::identity::Backend::new(app).await;
    backend.identify(app, "phone", "e-1").await;
    app.session("web").await;
    scheduled(app, daily("subject")).await;
    app.advance(8 * 3_600);
    app.until("both wait", async || {
        let waiting: Vec<(i64,)> = app.rows("SELECT due_at FROM occasions").await;
        waiting.len() == 2
    })
    .await;
    backend.identify(app, "web", "e-1").await;
    let waiting: Vec<(i64,)> = app.rows("SELECT due_at FROM occasions").await;
    assert_eq!(waiting.len(), 1);
    app.advance(14 * 3_600);
    app.until("the person gets it", async || issued(app).await == (1, 1))
        .await;
}

/// At 12:00 UTC, where it is 09:00 seven hours later.
const EARLY: &str = "Pacific/Kiritimati";
/// And 21 hours later.
const LATE: &str = "Etc/UTC";

/// Two people with clocks far apart; `phone` is identified.
async fn apart(app: &mut TestApp, phone: &str, web: &str) -> (Backend, Session) {
    next_morning(app);
    app.advance(3 * 3_600);
    let backend = Backend::new(app).await;
    let web = in_zone(app, "web", web).await;
    in_zone(app, "phone", phone).await;
    backend.identify(app, "phone", "e-1").await;
    (backend, web)
}

/// Lets the first morning come, and waits until whoever has it got it.
async fn early_morning(app: &TestApp) {
    app.advance(8 * 3_600);
    app.until("one gets it", async || issued(app).await == (1, 1))
        .await;
}

/// Lets the other morning come, until nobody waits.
async fn late_morning(app: &TestApp) {
    app.advance(14 * 3_600);
    app.until("nobody waits", async || {
        app.count("occasions").await + app.count("timers").await == 0
    })
    .await;
    app.settle().await;
}

async fn who_got_it_gets_it_no_more_when_the_other_waits(app: &mut TestApp) {
    let (backend, _) = apart(app, EARLY, LATE).await;
    scheduled(app, daily("subject")).await;
    early_morning(app).await;
    backend.identify(app, "web", "e-1").await;
    assert_eq!(app.count("occasions").await, 1, "it waits, for nothing");
    late_morning(app).await;
    assert_eq!(issued(app).await, (1, 1));
}

async fn who_waits_gets_nothing_when_the_other_got_it(app: &mut TestApp) {
    let (backend, _) = apart(app, LATE, EARLY).await;
    scheduled(app, daily("subject")).await;
    early_morning(app).await;
    backend.identify(app, "web", "e-1").await;
    app.restart().await;
    late_morning(app).await;
    assert_eq!(issued(app).await, (1, 1));
}

async fn of_two_delays_one_is_left(app: &mut TestApp) {
    let backend = Backend::new(app).await;
    backend.identify(app, "phone", "e-1").await;
    app.session("web").await;
    let trigger = json!({"kind": "schedule", "delaySeconds": 600});
    scheduled(app, json!({"trigger": trigger})).await;
    over(app, 1).await;
    assert_eq!(app.count("timers").await, 2);
    backend.identify(app, "web", "e-1").await;
    assert_eq!(app.count("timers").await, 1);
    app.advance(601);
    app.until("one gets it", async || issued(app).await == (1, 1))
        .await;
    assert_eq!(app.count("timers").await, 0);
}

async fn of_two_delays_that_a_pause_puts_off_one_is_left(app: &mut TestApp) {
    let backend = Backend::new(app).await;
    backend.identify(app, "phone", "e-1").await;
    app.session("web").await;
    let trigger = json!({"kind": "schedule", "delaySeconds": 600});
    let survey = scheduled(app, json!({"trigger": trigger})).await;
    over(app, 1).await;
    set(app, survey, json!({"status": "paused"})).await;
    app.advance(601);
    app.until("they are put off", async || waiting(app).await == 0)
        .await;
    assert_eq!(app.count("timers").await, 2);
    backend.identify(app, "web", "e-1").await;
    let kept = app.path("/users/phone/plugin-state");
    let kept = app.get(&kept, &app.viewer()).await.ok();
    let timers = kept["campaigns"][0]["timers"].as_array().unwrap();
    assert_eq!((timers.len(), &timers[0]["dueAt"]), (1, &json!(null)));

    set(app, survey, json!({"status": "active"})).await;
    set(app, survey, json!({"status": "paused"})).await;
    app.until("it is put off again, or fired", async || {
        app.advance(1);
        app.count("timers").await == 0 || waiting(app).await == 0
    })
    .await;
    set(app, survey, json!({"status": "active"})).await;
    app.until("one gets it", async || {
        app.advance(1);
        issued(app).await == (1, 1)
    })
    .await;
    assert_eq!(app.count("timers").await, 0);
}

async fn who_was_not_meant_gets_it_as_the_other(app: &mut TestApp) {
    let (backend, web) = apart(app, EARLY, LATE).await;
    let update = json!({"anonymousId": "web", "mutationId": app.id(), "set": {"vip": true}});
    app.post("/v1/sdk/user-properties", &web.credential(), &update)
        .await
        .ok();
    let is_vip = json!({"property": "vip", "type": "boolean", "operator": "is", "value": true});
    let mut parts = daily("subject");
    parts["audience"] = json!({"include": {"kind": "user_property", "filter": is_vip}});
    scheduled(app, parts).await;
    app.advance(8 * 3_600);
    app.until("the phone's morning is over", async || {
        app.count("occasions").await == 1
    })
    .await;
    assert_eq!(issued(app).await, (0, 0));
    backend.identify(app, "web", "e-1").await;
    late_morning(app).await;
    assert_eq!(issued(app).await, (1, 1));
}

async fn a_run_that_is_over_is_forgotten(app: &mut TestApp) {
    app.people(3).await;
    scheduled(app, json!({})).await;
    over(app, 1).await;
    assert_eq!(issued(app).await, (3, 3));
    app.advance(3);
    app.until("nothing is left of it", async || {
        app.count("run_firings").await == 0
    })
    .await;
}
