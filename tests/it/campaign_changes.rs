//! What campaigns keep of people while somebody changes or pauses them (contract 8).

use serde_json::{Value, json};
use tests::{Session, TestApp, on_both_backends};

on_both_backends!(
    another_mode_begins_anew,
    other_events_are_counted_anew,
    who_has_had_the_one_firing_has_had_it,
    what_came_while_a_survey_was_paused_cancels_what_waits,
    what_came_while_a_push_campaign_was_paused_cancels_what_waits,
);

async fn change(app: &TestApp, path: &str, change: Value) {
    app.patch(path, &app.editor(), &change).await.ok();
}

/// Makes a survey of this mode that purchases fire; answers its path.
async fn survey(app: &TestApp, occurrence: Value) -> String {
    let trigger = json!({"kind": "event", "eventName": "purchase", "occurrence": occurrence});
    app.path(&format!("/surveys/{}", app.survey(&trigger).await))
}

/// How often each of so many events fires.
async fn firings(app: &TestApp, session: &Session, name: &str, count: usize) -> Vec<usize> {
    let mut fired = Vec::new();
    for _ in 0..count {
        fired.push(app.fires(session, name, &json!({})).await);
    }
    fired
}

async fn another_mode_begins_anew(app: &mut TestApp) {
    let ada = app.session("ada").await;
    for (before, after, expected) in [
        (
            json!({"mode": "once"}),
            json!({"mode": "at_least", "n": 2, "withinDays": 30}),
            [0, 1, 1],
        ),
        (
            json!({"mode": "at_least", "n": 3, "withinDays": 30}),
            json!({"mode": "nth", "n": 3, "withinDays": null}),
            [0, 0, 1],
        ),
        (
            json!({"mode": "nth", "n": 9}),
            json!({"mode": "once_per_session", "n": null}),
            [1, 0, 0],
        ),
    ] {
        let what = format!("{before} to {after}");
        let path = survey(app, before).await;
        firings(app, &ada, "purchase", 1).await;
        change(app, &path, json!({"trigger": {"occurrence": after}})).await;
        let fired = firings(app, &ada, "purchase", 3).await;
        assert_eq!(fired, expected, "{what}");
        change(app, &path, json!({"status": "paused"})).await;
    }
}

async fn other_events_are_counted_anew(app: &mut TestApp) {
    let ada = app.session("ada").await;
    let path = survey(app, json!({"mode": "nth", "n": 2})).await;
    assert_eq!(firings(app, &ada, "purchase", 1).await, [0]);
    change(app, &path, json!({"trigger": {"eventName": "rent"}})).await;
    assert_eq!(firings(app, &ada, "rent", 3).await, [0, 1, 0]);
}

async fn who_has_had_the_one_firing_has_had_it(app: &mut TestApp) {
    let (ada, bob) = (app.session("ada").await, app.session("bob").await);
    let path = survey(app, json!({"mode": "once"})).await;
    assert_eq!(firings(app, &ada, "purchase", 1).await, [1]);
    for (event, trigger) in [
        ("rent", json!({"eventName": "rent"})),
        ("rent", json!({"occurrence": {"mode": "nth", "n": 9}})),
        ("rent", json!({"occurrence": {"mode": "once", "n": null}})),
    ] {
        change(app, &path, json!({"trigger": trigger})).await;
        assert_eq!(firings(app, &ada, event, 1).await, [0], "{trigger}");
    }
    assert_eq!(firings(app, &bob, "rent", 2).await, [1, 0]);
}

/// Fires after an hour, unless what was bought is given back.
fn waits() -> Value {
    json!({
        "kind": "event", "eventName": "purchase", "delaySeconds": 3600,
        "cancelOn": [{"eventName": "refund"}],
    })
}

/// Ada and Bob buy; while the campaign is paused, Ada gives back what she bought. Then the hour is over.
async fn gives_back(app: &TestApp, path: &str, [ada, bob]: [&Session; 2]) {
    app.fires(ada, "refund", &json!({})).await;
    app.advance(1);
    for session in [ada, bob] {
        assert_eq!(app.fires(session, "purchase", &json!({})).await, 0);
    }
    app.settle().await;
    assert_eq!(app.count("timers").await, 2);
    change(app, path, json!({"status": "paused"})).await;
    app.advance(1);
    assert_eq!(app.fires(ada, "refund", &json!({})).await, 0);
    app.settle().await;
    change(app, path, json!({"status": "active"})).await;
    assert_eq!(app.count("timers").await, 2);
    app.advance(3600);
    app.until("nothing waits", async || app.count("timers").await == 0)
        .await;
    app.settle().await;
}

async fn what_came_while_a_survey_was_paused_cancels_what_waits(app: &mut TestApp) {
    let (ada, bob) = (app.session("ada").await, app.session("bob").await);
    let path = app.path(&format!("/surveys/{}", app.survey(&waits()).await));
    gives_back(app, &path, [&ada, &bob]).await;
    assert_eq!(app.offered(&ada).await.as_array().map(Vec::len), Some(0));
    assert_eq!(app.offered(&bob).await.as_array().map(Vec::len), Some(1));
}

async fn what_came_while_a_push_campaign_was_paused_cancels_what_waits(app: &mut TestApp) {
    let providers = app.with_providers().await;
    app.credential(&providers.fcm.credential()).await;
    let (ada, bob) = (app.session("ada").await, app.session("bob").await);
    app.push_token(&ada, "ada's", &providers.fcm.token(1)).await;
    app.push_token(&bob, "bob's", &providers.fcm.token(2)).await;
    let campaign = app.campaign(&json!({"trigger": waits()})).await;
    let path = app.path(&format!("/campaigns/{campaign}"));
    gives_back(app, &path, [&ada, &bob]).await;
    app.delivered_to(&bob, "delivered", 1).await;
    assert_eq!(app.deliveries("").await.len(), 1);
}
