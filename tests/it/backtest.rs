//! Backtests: recorded events through two versions (contract 12).

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tests::{Answer, Session, TestApp, on_both_backends};
use uuid::Uuid;

use crate::guests::{
    SERVER, deploy, hoard, name, save_property, set_slot, trigger, upload, version, versioned,
};
use crate::segments::plan;

on_both_backends!(
    versions_that_do_the_same_are_the_same,
    what_differs_is_counted_and_shown,
    timers_fall_due_in_recorded_time,
    timers_that_set_themselves_again_take_turns,
    a_subject_has_no_more_timers_than_it_may,
    each_event_sees_what_was_before_it,
    sessions_are_those_of_the_events,
    what_the_candidate_fails_on_is_counted,
    an_event_that_is_poison_spoils_no_other,
    the_window_and_the_limit_are_kept,
    replayed_events_are_where_they_arrived,
    a_backtest_touches_nothing_and_survives_a_restart,
    definitions_are_compared_by_what_they_reject,
    operators_name_the_app,
    what_cannot_be_compared_is_refused,
    only_so_many_are_under_way,
    samples_go_with_their_subject,
    properties_are_those_of_then_where_that_is_known,
    an_event_says_itself_where_it_comes_from,
    what_a_timer_is_told_that_may_have_been_otherwise_is_counted,
);

/// Longer than any backtest of these tests takes.
const ENDS: Duration = Duration::from_mins(1);
const LOOK_AGAIN: Duration = Duration::from_millis(25);

pub(crate) async fn ask(app: &TestApp, plugin: &str, version: &str, body: &Value) -> Answer {
    let path = app.path(&format!("/plugins/{plugin}/versions/{version}/backtest"));
    app.post(&path, &app.admin(), body).await
}

/// Waits for a job; answers its result.
pub(crate) async fn result(app: &TestApp, job: &Value) -> Value {
    let id = job["jobId"].as_str().unwrap();
    let path = app.path(&format!("/jobs/{id}"));
    let started = Instant::now();
    loop {
        let job = app.get(&path, &app.viewer()).await.ok();
        let status = job["status"].as_str().unwrap();
        if status == "completed" {
            return job["result"].clone();
        }
        assert_ne!(status, "failed", "{job}");
        assert!(started.elapsed() < ENDS, "the backtest never ends");
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

async fn backtest(app: &TestApp, plugin: &str, version: &str, body: Value) -> Value {
    app.settle().await;
    let job = ask(app, plugin, version, &body).await.data(202);
    result(app, &job).await
}

/// A version that fires on everything, against the campaign's own; since a while ago.
async fn against_everything(app: &TestApp, survey: Uuid, since: i64) -> Value {
    let body = json!({"since": app.time(since), "campaignId": survey});
    backtest(app, &name(9), &version(1), body).await
}

async fn purchases(app: &TestApp, session: &Session, count: usize) {
    for _ in 0..count {
        let event = app.event(session, "purchase", &json!({}));
        app.ingest(session, &[event]).await.ok();
    }
    app.settle().await;
}

fn counts(result: &Value) -> [u64; 5] {
    ["events", "same", "onlyActive", "onlyCandidate", "failed"]
        .map(|key| result[key].as_u64().unwrap())
}

async fn versions_that_do_the_same_are_the_same(app: &mut TestApp) {
    deploy(app, 1, 1).await;
    upload(app, versioned(1, 2)).await.data(201);
    app.survey(&trigger(1, json!({"events": ["purchase"]})))
        .await;
    let (ada, bob) = (app.session("ada").await, app.session("bob").await);
    purchases(app, &ada, 3).await;
    purchases(app, &bob, 2).await;
    app.ingest(&ada, &[app.event(&ada, "other", &json!({}))])
        .await
        .ok();

    let body = json!({"since": app.time(-3600)});
    let result = backtest(app, &name(1), &version(2), body).await;
    assert_eq!(counts(&result), [5, 5, 0, 0, 0], "{result}");
    assert_eq!(result["samples"], json!([]));
    assert_eq!(result["active"]["version"], version(1));
    assert_eq!(result["candidate"]["version"], version(2));
    assert_eq!(result["approximate"], 0);
    assert_eq!(result.get("stopped"), None);
}

async fn what_differs_is_counted_and_shown(app: &mut TestApp) {
    upload(app, versioned(9, 1)).await.data(201);
    let occurrence = json!({"mode": "nth", "n": 3});
    let survey = app
        .survey(&json!({"kind": "event", "eventName": "purchase", "occurrence": occurrence}))
        .await;
    let (ada, bob) = (app.session("ada").await, app.session("bob").await);
    purchases(app, &ada, 4).await;
    purchases(app, &bob, 2).await;

    let result = against_everything(app, survey, -3600).await;
    assert_eq!(counts(&result), [6, 1, 0, 5, 0], "{result}");
    let samples = result["samples"].as_array().unwrap();
    assert_eq!(samples.len(), 5);
    assert_eq!(samples[0]["only"], "candidate");
    assert_eq!(samples[0]["name"], "purchase");
    assert_eq!(samples[0]["campaignId"], json!(survey));
    assert_eq!(samples[0]["subjectId"], json!(ada.subject_id));
    assert!(samples[0]["eventId"].is_string() && samples[0]["timestamp"].is_string());
    assert_eq!(samples[4]["subjectId"], json!(bob.subject_id));

    purchases(app, &bob, 60).await;
    let result = against_everything(app, survey, -3600).await;
    assert_eq!(counts(&result), [66, 2, 0, 64, 0], "{result}");
    assert_eq!(result["samples"].as_array().unwrap().len(), 50);
}

async fn timers_fall_due_in_recorded_time(app: &mut TestApp) {
    upload(app, versioned(9, 1)).await.data(201);
    let survey = app
        .survey(
            &json!({"kind": "event", "eventName": "purchase", "delaySeconds": 60,
            "cancelOn": [{"eventName": "refund"}]}),
        )
        .await;
    let ada = app.session("ada").await;
    purchases(app, &ada, 1).await;
    app.advance(30);
    app.ingest(&ada, &[app.event(&ada, "refund", &json!({}))])
        .await
        .ok();
    app.advance(90);
    purchases(app, &ada, 1).await;
    app.advance(90);
    let ada = app.session("ada").await;
    purchases(app, &ada, 1).await;

    // The first was cancelled, the second fell due, the third is not due before the end.
    let result = against_everything(app, survey, -3600).await;
    assert_eq!(counts(&result)[2..4], [1, 3], "{result}");
    assert_eq!(result["timers"], 1);
    let timer = result["samples"]
        .as_array()
        .unwrap()
        .iter()
        .find(|sample| sample["only"] == "active")
        .unwrap();
    assert!(timer["timer"].is_string(), "{timer}");
}

async fn each_event_sees_what_was_before_it(app: &mut TestApp) {
    upload(app, versioned(9, 1)).await.data(201);
    let survey = app
        .survey(&json!({"kind": "event", "eventName": "purchase", "occurrence": {"mode": "first"}}))
        .await;
    let (ada, bob) = (app.session("ada").await, app.session("bob").await);
    purchases(app, &ada, 1).await;
    app.advance(3600);
    purchases(app, &ada, 2).await;
    purchases(app, &bob, 2).await;

    // Bob's first only: ada's was before the window, and bob's second is not seen by his first.
    let result = against_everything(app, survey, -600).await;
    assert_eq!(counts(&result), [4, 1, 0, 3, 0], "{result}");
    let result = against_everything(app, survey, -7200).await;
    assert_eq!(counts(&result), [5, 2, 0, 3, 0], "{result}");
}

async fn sessions_are_those_of_the_events(app: &mut TestApp) {
    upload(app, versioned(9, 1)).await.data(201);
    let occurrence = json!({"mode": "once_per_session"});
    let survey = app
        .survey(&json!({"kind": "event", "eventName": "purchase", "occurrence": occurrence}))
        .await;
    let ada = app.session("ada").await;
    purchases(app, &ada, 2).await;
    app.advance(20 * 60);
    purchases(app, &ada, 1).await;
    app.advance(31 * 60);
    purchases(app, &ada, 2).await;
    let result = against_everything(app, survey, -7200).await;
    assert_eq!(counts(&result), [5, 2, 0, 3, 0], "{result}");
}

/// Puts a plugin into the slot that takes every configuration; answers a campaign that breaks the other one.
async fn campaign_that_breaks(app: &TestApp, mode: &str) -> Uuid {
    deploy(app, 1, 1).await;
    set_slot(app, &name(1)).await.ok();
    upload(app, test_guests::MISBEHAVING.to_vec())
        .await
        .data(201);
    app.survey(&json!({"kind": "event", "eventName": "order", "mode": mode}))
        .await
}

async fn what_the_candidate_fails_on_is_counted(app: &mut TestApp) {
    let survey = campaign_that_breaks(app, "trap").await;
    let ada = app.session("ada").await;
    for _ in 0..2 {
        let events = [(); 3].map(|()| app.event(&ada, "order", &json!({})));
        app.ingest(&ada, &events).await.ok();
    }
    let body = json!({"since": app.time(-3600), "campaignId": survey});
    let result = backtest(app, "misbehaving", "1.0.0", body).await;
    assert_eq!(counts(&result), [6, 0, 0, 0, 6], "{result}");
    assert_eq!(result["activeFailed"], 0);
}

async fn an_event_that_is_poison_spoils_no_other(app: &mut TestApp) {
    let survey = campaign_that_breaks(app, "poison").await;
    let ada = app.session("ada").await;
    let events = [20, 13, 30].map(|amount| app.event(&ada, "order", &json!({"amount": amount})));
    app.ingest(&ada, &events).await.ok();
    let body = json!({"since": app.time(-3600), "campaignId": survey});
    let result = backtest(app, "misbehaving", "1.0.0", body).await;
    let [events, same, _, _, failed] = counts(&result);
    assert_eq!((events, same, failed), (3, 2, 1), "{result}");
}

async fn timers_that_set_themselves_again_take_turns(app: &mut TestApp) {
    let survey = campaign_that_breaks(app, "due").await;
    let ada = app.session("ada").await;
    for _ in 0..2 {
        let event = app.event(&ada, "order", &json!({}));
        app.ingest(&ada, &[event]).await.ok();
        app.advance(10);
    }
    let body = json!({"since": app.time(-3600), "campaignId": survey});
    let result = backtest(app, "misbehaving", "1.0.0", body).await;
    assert_eq!(counts(&result)[0], 2, "{result}");
    assert_eq!(result.get("stopped"), None, "{result}");
    // One a second.
    let timers = result["timers"].as_u64().unwrap();
    assert!((20..60).contains(&timers), "{result}");
}

async fn a_subject_has_no_more_timers_than_it_may(app: &mut TestApp) {
    let survey = campaign_that_breaks(app, "breed:40").await;
    let ada = app.session("ada").await;
    for _ in 0..2 {
        let event = app.event(&ada, "order", &json!({}));
        app.ingest(&ada, &[event]).await.ok();
    }
    // All are due; what they set themselves is not.
    app.advance(3700);
    let body = json!({"since": app.time(-7200), "campaignId": survey});
    let result = backtest(app, "misbehaving", "1.0.0", body).await;
    assert_eq!(counts(&result)[0], 2, "{result}");
    assert_eq!(result["timers"], 64, "{result}");
}

async fn the_window_and_the_limit_are_kept(app: &mut TestApp) {
    upload(app, versioned(9, 1)).await.data(201);
    let survey = app
        .survey(&json!({"kind": "event", "eventName": "purchase"}))
        .await;
    let ada = app.session("ada").await;
    for _ in 0..4 {
        purchases(app, &ada, 1).await;
        app.advance(600);
    }
    let run = async |extra: Value| {
        let mut body = json!({"since": app.time(-86400), "campaignId": survey});
        let extra = extra.as_object().unwrap().clone();
        body.as_object_mut().unwrap().extend(extra);
        backtest(app, &name(9), &version(1), body).await
    };
    assert_eq!(counts(&run(json!({})).await)[0], 4);
    let limited = run(json!({"limit": 3})).await;
    assert_eq!(counts(&limited)[0], 3);
    assert_eq!(limited["stopped"], "limit");
    let until = run(json!({"until": app.time(-1500)})).await;
    assert_eq!(counts(&until)[0], 2, "{until}");
    let since = run(json!({"since": app.time(-1500)})).await;
    assert_eq!(counts(&since)[0], 2, "{since}");
}

async fn replayed_events_are_where_they_arrived(app: &mut TestApp) {
    upload(app, versioned(9, 1)).await.data(201);
    let survey = app
        .survey(&json!({"kind": "event", "eventName": "purchase"}))
        .await;
    let ada = app.session("ada").await;
    purchases(app, &ada, 3).await;
    for _ in 0..3 {
        let events: Vec<Value> = (0..500)
            .map(|_| app.event(&ada, "replayed", &json!({})))
            .collect();
        app.ingest(&ada, &events).await.ok();
    }
    app.settle().await;
    // As a replay stores them: they have new numbers, and arrived long ago.
    let mut tx = app.services().db.write().await.unwrap();
    tx.sql("UPDATE events SET received_at = received_at - $1 WHERE name = 'replayed'")
        .bind(86_400_000_000_i64)
        .execute()
        .await
        .unwrap();
    tx.commit().await.unwrap();
    assert_eq!(
        counts(&against_everything(app, survey, -3600).await)[0],
        3,
        "those before them"
    );
}

async fn a_backtest_touches_nothing_and_survives_a_restart(app: &mut TestApp) {
    upload(app, versioned(9, 1)).await.data(201);
    let occurrence = json!({"mode": "every_nth", "n": 2});
    let survey = app
        .survey(&json!({"kind": "event", "eventName": "purchase", "occurrence": occurrence}))
        .await;
    let ada = app.session("ada").await;
    for _ in 0..4 {
        let events: Vec<Value> = (0..100)
            .map(|_| app.event(&ada, "purchase", &json!({})))
            .collect();
        app.ingest(&ada, &events).await.ok();
    }
    app.settle().await;
    let everything = async |app: &TestApp| {
        let instructions: Vec<(Uuid,)> = app.rows("SELECT id FROM instructions ORDER BY id").await;
        let states: Vec<(Vec<u8>,)> = app.rows("SELECT state FROM plugin_states").await;
        let decisions: Vec<(Uuid,)> = app.rows("SELECT id FROM decisions ORDER BY id").await;
        (instructions, states, decisions)
    };
    let before = everything(app).await;

    let body = json!({"since": app.time(-3600), "campaignId": survey});
    let job = ask(app, &name(9), &version(1), &body).await.data(202);
    app.restart().await;
    let result = result(app, &job).await;
    assert_eq!(counts(&result), [400, 200, 0, 200, 0], "{result}");
    assert_eq!(everything(app).await, before);
}

async fn definitions_are_compared_by_what_they_reject(app: &mut TestApp) {
    let definition = json!({"properties": [{"name": "total", "type": "number", "required": true}]});
    app.define("paid", &definition).await;
    let ada = app.session("ada").await;
    let good = app.event(&ada, "paid", &json!({"total": 1}));
    let bad = app.event(&ada, "paid", &json!({}));
    app.ingest(&ada, &[good, bad]).await.ok();
    let path = app.path("/plugins/default-validation");
    let plugin = app.get(&path, &app.viewer()).await.ok();
    let number = plugin["activeVersion"].as_str().unwrap();

    let body = json!({"since": app.time(-3600)});
    let result = backtest(app, "default-validation", number, body).await;
    // What is refused is a dead letter.
    assert_eq!(counts(&result), [2, 2, 0, 0, 0], "{result}");
}

async fn operators_name_the_app(app: &mut TestApp) {
    let root = format!("{SERVER}/plugins");
    app.upload(&root, &app.operator(), versioned(9, 1))
        .await
        .data(201);
    let survey = app
        .survey(&json!({"kind": "event", "eventName": "purchase"}))
        .await;
    let ada = app.session("ada").await;
    purchases(app, &ada, 2).await;
    let path = format!("{root}/{}/versions/{}/backtest", name(9), version(1));
    let mut body = json!({"since": app.time(-3600), "campaignId": survey});
    app.post(&path, &app.operator(), &body)
        .await
        .refused(422, "validation_failed");
    body["appId"] = json!(app.access.app_id);
    let job = app.post(&path, &app.operator(), &body).await.data(202);
    assert_eq!(counts(&result(app, &job).await), [2, 2, 0, 0, 0]);
}

async fn what_cannot_be_compared_is_refused(app: &mut TestApp) {
    upload(app, versioned(9, 1)).await.data(201);
    let survey = app
        .survey(&json!({"kind": "event", "eventName": "purchase"}))
        .await;
    let since = app.time(-3600);
    for (body, pointer) in [
        (
            json!({"since": "yesterday", "campaignId": survey}),
            "/since",
        ),
        (
            json!({"since": app.time(60), "campaignId": survey}),
            "/since",
        ),
        (
            json!({"since": since, "until": app.time(-7200), "campaignId": survey}),
            "/since",
        ),
        (
            json!({"since": since, "campaignId": survey, "limit": 0}),
            "/limit",
        ),
        (
            json!({"since": since, "campaignId": survey, "limit": 1_000_001}),
            "/limit",
        ),
        (json!({"since": since}), "/campaignId"),
        (
            json!({"since": since, "campaignId": app.id()}),
            "/campaignId",
        ),
        (json!({"since": since, "campaign": survey}), "/campaign"),
    ] {
        let answer = ask(app, &name(9), &version(1), &body).await;
        answer.refused(422, "validation_failed");
        assert_eq!(answer.pointers(), [pointer], "{body}");
    }
    let body = json!({"since": since, "campaignId": survey});
    ask(app, &name(9), &version(2), &body)
        .await
        .refused(404, "not_found");

    let path = app.path("/plugins/default-personalization");
    let plugin = app.get(&path, &app.viewer()).await.ok();
    let number = plugin["activeVersion"].as_str().unwrap();
    ask(
        app,
        "default-personalization",
        number,
        &json!({"since": since}),
    )
    .await
    .refused(422, "validation_failed");

    upload(app, test_guests::STRICT.to_vec()).await.data(201);
    let answer = ask(app, "strict", "0.1.0", &json!({"since": since})).await;
    let refused = answer.refused(422, "validation_failed");
    assert_eq!(answer.pointers(), [""], "no campaign would help: {refused}");

    // A configuration that the version refuses.
    upload(app, test_guests::MISBEHAVING.to_vec())
        .await
        .data(201);
    let answer = ask(app, "misbehaving", "1.0.0", &body).await;
    answer.refused(422, "plugin_rejected");
    assert_eq!(answer.pointers(), [format!("/surveys/{survey}")]);
}

async fn only_so_many_are_under_way(app: &mut TestApp) {
    upload(app, versioned(9, 1)).await.data(201);
    let survey = app
        .survey(&json!({"kind": "event", "eventName": "purchase"}))
        .await;
    let body = json!({"since": app.time(-3600), "campaignId": survey});
    for _ in 0..4 {
        backtest(app, &name(9), &version(1), body.clone()).await;
    }
    let change = async |text: &'static str| {
        let mut tx = app.services().db.write().await.unwrap();
        tx.sql(text).execute().await.unwrap();
        tx.commit().await.unwrap();
    };
    // As if they were not over yet, and would not begin.
    change("UPDATE jobs SET run_at = completed_at + 250000000, completed_at = NULL").await;
    ask(app, &name(9), &version(1), &body)
        .await
        .refused(422, "limit_exceeded");
    change("UPDATE jobs SET completed_at = run_at").await;
    backtest(app, &name(9), &version(1), body).await;
}

async fn samples_go_with_their_subject(app: &mut TestApp) {
    upload(app, versioned(9, 1)).await.data(201);
    let occurrence = json!({"mode": "nth", "n": 9});
    let survey = app
        .survey(&json!({"kind": "event", "eventName": "purchase", "occurrence": occurrence}))
        .await;
    let (ada, bob) = (app.session("ada").await, app.session("bob").await);
    purchases(app, &ada, 1).await;
    purchases(app, &bob, 1).await;
    let body = json!({"since": app.time(-3600), "campaignId": survey});
    let job = ask(app, &name(9), &version(1), &body).await.data(202);
    assert_eq!(
        result(app, &job).await["samples"].as_array().unwrap().len(),
        2
    );

    let subject: Uuid = ada.subject_id.parse().unwrap();
    let app_id = app.access.app_id;
    let mut tx = app.services().db.write().await.unwrap();
    let erased = nudge_pipeline::backtest::erase_subject(&mut tx, app_id, subject).await;
    assert_eq!(erased.unwrap(), 1);
    tx.commit().await.unwrap();
    let left = result(app, &job).await;
    let samples = left["samples"].as_array().unwrap();
    assert_eq!(samples.len(), 1);
    assert_eq!(samples[0]["subjectId"], json!(bob.subject_id));
}

async fn properties_are_those_of_then_where_that_is_known(app: &mut TestApp) {
    hoard(app).await;
    let config = json!({"event": "purchase", "plan": "pro"});
    let survey = app
        .survey(&json!({"kind": "plugin", "plugin": "hoarder", "config": config}))
        .await;
    // Another plugin decides about the same events; it is told nothing of the person.
    let never =
        json!({"any": [{"property": "total", "type": "number", "operator": "gt", "value": 0}]});
    app.survey(&json!({"kind": "event", "eventName": "purchase", "filters": never}))
        .await;
    let (ada, bob) = (app.session("ada").await, app.session("bob").await);
    save_property(app, &ada, "plan", json!("pro")).await;
    save_property(app, &bob, "plan", json!("pro")).await;
    purchases(app, &ada, 2).await;
    purchases(app, &bob, 1).await;
    let fired: Vec<(Uuid,)> = app.rows("SELECT id FROM instructions").await;
    assert_eq!(fired.len(), 3);

    let body = json!({"since": app.time(-3600), "campaignId": survey});
    let same = backtest(app, "hoarder", "1.0.0", body.clone()).await;
    assert_eq!(counts(&same), [3, 3, 0, 0, 0]);
    assert_eq!(same["approximate"], 0);

    // Changed since; what the plugin was told then is in the decisions.
    app.advance(60);
    save_property(app, &ada, "plan", json!("free")).await;
    let result = backtest(app, "hoarder", "1.0.0", body.clone()).await;
    assert_eq!(result["approximate"], 0, "{result}");

    let mut tx = app.services().db.write().await.unwrap();
    tx.sql("DELETE FROM decision_subjects")
        .execute()
        .await
        .unwrap();
    tx.sql("DELETE FROM decisions").execute().await.unwrap();
    tx.commit().await.unwrap();
    let result = backtest(app, "hoarder", "1.0.0", body.clone()).await;
    assert_eq!(counts(&result), [3, 3, 0, 0, 0]);
    assert_eq!(result["approximate"], 2, "{result}");
}

async fn an_event_says_itself_where_it_comes_from(app: &mut TestApp) {
    upload(app, versioned(9, 1)).await.data(201);
    let ios = json!({"include": {"kind": "platform", "in": ["ios"]}});
    let trigger = json!({"kind": "event", "eventName": "purchase"});
    let parts = json!({"trigger": trigger, "audience": ios});
    let survey = app.survey_with(&parts).await;
    let ada = app.session("ada").await;
    let mut sent = Vec::new();
    for platform in ["ios", "android"] {
        let event = app.event(&ada, "purchase", &json!({}));
        let mut body = ada.batch(std::slice::from_ref(&event));
        body["context"]["platform"] = json!(platform);
        app.post_batch(&ada, &body).await.ok();
        app.settle().await;
        sent.push(event["eventId"].clone());
    }
    let result = against_everything(app, survey, -3600).await;
    assert_eq!(counts(&result), [2, 1, 0, 1, 0], "{result}");
    assert_eq!(result["samples"][0]["eventId"], sent[1], "{result}");
    assert_eq!(result["approximate"], 0, "{result}");
}

async fn what_a_timer_is_told_that_may_have_been_otherwise_is_counted(app: &mut TestApp) {
    upload(app, versioned(9, 1)).await.data(201);
    let trigger = json!({"kind": "event", "eventName": "purchase", "delaySeconds": 60});
    let parts = json!({"trigger": trigger, "audience": plan("pro")});
    let survey = app.survey_with(&parts).await;
    let ada = app.session("ada").await;
    save_property(app, &ada, "plan", json!("pro")).await;
    purchases(app, &ada, 1).await;
    app.advance(120);
    let result = against_everything(app, survey, -3600).await;
    assert_eq!(
        (&result["timers"], &result["approximate"]),
        (&json!(1), &json!(0)),
        "{result}"
    );
    save_property(app, &ada, "plan", json!("free")).await;
    let result = against_everything(app, survey, -3600).await;
    assert_eq!(
        (&result["timers"], &result["approximate"]),
        (&json!(1), &json!(1)),
        "{result}"
    );
}
