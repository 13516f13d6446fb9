//! Dead letters of timers: replayed as the timers that they are about (contract 11, 12).

use serde_json::{Value, json};
use tests::session::{Session, text};
use tests::{TestApp, on_both_backends};
use uuid::Uuid;

use crate::guests::deploy_misbehaving;
use crate::retention::round;

on_both_backends!(
    a_timer_is_replayed_as_what_it_was,
    a_timer_that_still_fails_keeps_its_letter,
    the_letter_of_an_old_event_is_kept_for_its_days,
);

/// A survey whose plugin fires on payments of 10 or more, and again by a timer that it sets for a second later.
async fn watch(app: &TestApp) -> Uuid {
    deploy_misbehaving(app).await;
    app.survey(&trigger("fine")).await
}

fn trigger(mode: &str) -> Value {
    json!({"kind": "plugin", "plugin": "misbehaving", "config": {"mode": mode}})
}

/// Changes how the survey's plugin behaves.
async fn behave(app: &TestApp, survey: Uuid, mode: &str) {
    let path = app.path(&format!("/surveys/{survey}"));
    let change = json!({"trigger": trigger(mode)});
    app.patch(&path, &app.editor(), &change).await.ok();
}

async fn letters(app: &TestApp) -> Vec<Value> {
    let mut page = app
        .get(&app.path("/dead-letters"), &app.viewer())
        .await
        .ok();
    serde_json::from_value(page["items"].take()).unwrap()
}

async fn replay(app: &TestApp, letter: &Value) -> Value {
    let id = text(letter, "id");
    let path = app.path(&format!("/dead-letters/{id}/replay"));
    app.post(&path, &app.editor(), &json!({})).await.ok()
}

/// Has the plugin fail on the timer that a payment sets; answers its letter.
async fn fail(app: &TestApp, survey: Uuid, ada: &Session) -> Value {
    assert_eq!(app.fires(ada, "paid", &json!({"amount": 20})).await, 1);
    behave(app, survey, "trap").await;
    app.advance(2);
    app.until("the timer has failed", async || {
        letters(app).await.len() == 1
    })
    .await;
    letters(app).await.remove(0)
}

/// It fires beside what its event has fired, as of when it fell due, and sets the next timer.
async fn a_timer_is_replayed_as_what_it_was(app: &mut TestApp) {
    let survey = watch(app).await;
    let ada = app.session("ada").await;
    let letter = fail(app, survey, &ada).await;
    assert_eq!(letter["stage"], "trigger");
    assert_eq!(letter["timer"]["key"], "again");
    assert!(text(&letter["timer"], "dueAt") > text(&letter, "timestamp"));
    let (subject, event) = (&ada.subject_id, text(&letter, "eventId"));
    let query = format!("/explain?campaignId={survey}&subjectId={subject}&eventId={event}");
    let explained = app.get(&app.path(&query), &app.viewer()).await.ok();
    let said = text(
        explained["steps"].as_array().unwrap().last().unwrap(),
        "detail",
    );
    assert!(said.contains("failed on its timer \"again\""), "{said}");

    behave(app, survey, "fine").await;
    assert_eq!(app.fires(&ada, "paid", &json!({"amount": 5})).await, 0);
    assert_eq!(app.count("timers").await, 0);
    for _ in 0..2 {
        assert_eq!(replay(app, &letter).await["status"], "replayed");
        assert_eq!(app.count("instructions").await, 2);
        assert_eq!(app.count("timers").await, 1);
    }
    let path = app.path("/plugins/misbehaving/logs");
    app.until("the payment before it is counted", async || {
        let lines = app.get(&path, &app.viewer()).await.ok();
        lines["items"][0]["message"] == "paid 1 [20.0]"
    })
    .await;

    app.advance(2);
    app.until("the next timer fires", async || {
        app.count("instructions").await == 3
    })
    .await;
    assert_eq!(letters(app).await.len(), 0);
}

async fn a_timer_that_still_fails_keeps_its_letter(app: &mut TestApp) {
    let survey = watch(app).await;
    let ada = app.session("ada").await;
    let letter = fail(app, survey, &ada).await;
    assert_eq!(replay(app, &letter).await["status"], "still_failing");
    let kept = letters(app).await;
    assert_eq!(kept.len(), 1);
    assert_eq!(
        (&kept[0]["id"], &kept[0]["attempts"]),
        (&letter["id"], &json!(1))
    );

    // The event's own letter is another one.
    let later = app.event(&ada, "paid", &json!({"amount": 30}));
    app.ingest(&ada, &[later]).await.ok();
    app.settle().await;
    let kept = letters(app).await;
    let timers: Vec<&Value> = kept.iter().map(|letter| &letter["timer"]["key"]).collect();
    assert_eq!(timers, [&Value::Null, &json!("again")]);
}

/// From its timer's failure on, and its event as long.
async fn the_letter_of_an_old_event_is_kept_for_its_days(app: &mut TestApp) {
    let survey = watch(app).await;
    app.set(|settings| {
        settings.retention.events_days = Some(1);
        settings.retention.dead_letters_days = 2;
    })
    .await;
    let ada = app.session("ada").await;
    assert_eq!(app.fires(&ada, "paid", &json!({"amount": 20})).await, 1);
    behave(app, survey, "trap").await;
    app.advance(3 * 24 * 3_600);
    app.until("the timer has failed", async || {
        letters(app).await.len() == 1
    })
    .await;
    round(app).await;
    round(app).await;
    let letter = letters(app).await.remove(0);
    assert_eq!(app.stored("paid").await, 1);

    behave(app, survey, "fine").await;
    for _ in 0..2 {
        assert_eq!(replay(app, &letter).await["status"], "replayed");
        round(app).await;
    }
    assert!(app.count("instructions").await >= 2);

    let path = app.path(&format!("/surveys/{survey}"));
    app.patch(&path, &app.editor(), &json!({"status": "archived"}))
        .await
        .ok();
    app.advance(2 * 24 * 3_600);
    app.until("its event goes, and nobody knows it", async || {
        app.advance(3_600);
        app.stored("paid").await + app.count("replayed_letters").await == 0
    })
    .await;
}
