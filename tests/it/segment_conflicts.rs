//! Segments that are changed while others name them: at once, by two servers, and past what a user of one can bear
//! (contract 19).

use serde_json::{Value, json};
use tempfile::TempDir;
use tests::client::Answer;
use tests::{TestApp, on_both_backends};

use crate::segments::{member, plan, segment, set};
use crate::two_servers::{node, node_with, pair};

on_both_backends!(
    a_segment_does_not_grow_past_what_a_survey_can_bear,
    two_changes_at_once_make_no_cycle,
    who_entered_before_a_campaign_waits_for_the_segment_fires_nothing,
    a_campaign_that_nothing_fires_waits_for_no_segment,
    a_trigger_that_is_not_waited_for_ties_no_segment,
    what_was_put_away_takes_any_status_without_its_segment,
    what_segments_add_to_an_audience_is_bounded,
    a_change_has_everybody_looked_at_once,
);

/// Conditions that nobody meets.
fn leaves(count: usize) -> Vec<Value> {
    let leaf =
        |number| json!({"kind": "event", "eventName": format!("never-{number}"), "withinDays": 7});
    (0..count).map(leaf).collect()
}

async fn change(app: &TestApp, segment: &Value, audience: &Value) -> Answer {
    let path = app.path(&format!("/segments/{}", segment["id"].as_str().unwrap()));
    let body = json!({"audience": audience});
    app.patch(&path, &app.editor(), &body).await
}

async fn a_segment_does_not_grow_past_what_a_survey_can_bear(app: &mut TestApp) {
    let grows = segment(app, "grows", json!({"include": {"any": leaves(20)}})).await;
    let mut any = leaves(30);
    any.push(member(&grows, true)["include"].clone());
    let survey = app
        .survey_with(&json!({"mode": "on_demand", "audience": {"include": {"any": any}}}))
        .await;
    let refused = change(app, &grows, &json!({"include": {"any": leaves(25)}})).await;
    let problem = refused.refused(422, "validation_failed");
    let error = &problem["errors"][0];
    assert_eq!(
        (&error["pointer"], &error["code"]),
        (&json!("/audience"), &json!("breaks_user"))
    );
    change(app, &grows, &json!({"include": {"any": leaves(19)}}))
        .await
        .ok();
    // A survey that is put away bears everything.
    let path = app.path(&format!("/surveys/{survey}"));
    let away = json!({"status": "archived"});
    app.patch(&path, &app.editor(), &away).await.ok();
    change(app, &grows, &json!({"include": {"any": leaves(25)}}))
        .await
        .ok();
}

async fn two_changes_at_once_make_no_cycle(app: &mut TestApp) {
    let (one, other) = (
        segment(app, "one", json!({})).await,
        segment(app, "other", json!({})).await,
    );
    for round in 0..10 {
        let (in_other, in_one) = (member(&other, true), member(&one, true));
        let answers = tokio::join!(change(app, &one, &in_other), change(app, &other, &in_one));
        let statuses = [answers.0.status, answers.1.status];
        assert!(statuses.contains(&200), "{round}: {statuses:?}");
        assert!(statuses.contains(&422), "{round}: {statuses:?}");
        for either in [&one, &other] {
            change(app, either, &json!({})).await.ok();
        }
    }
}

async fn who_entered_before_a_campaign_waits_for_the_segment_fires_nothing(app: &mut TestApp) {
    let pros = segment(app, "pros", plan("pro")).await;
    let trigger = json!({"kind": "event", "eventName": "purchase"});
    let body = json!({"trigger": trigger, "audience": member(&pros, true)});
    let survey = app.survey_with(&body).await;
    let (ada, bob) = (app.session("ada").await, app.session("bob").await);
    set(app, &ada, json!({"plan": "pro"})).await;
    app.settle().await;
    let waits = json!({"trigger": {"kind": "segment", "eventName": null, "segmentId": pros["id"], "on": "enter"}});
    let path = app.path(&format!("/surveys/{survey}"));
    app.patch(&path, &app.editor(), &waits).await.ok();
    let event = app.event(&ada, "visit", &json!({}));
    app.ingest(&ada, &[event]).await.ok();
    set(app, &bob, json!({"plan": "pro"})).await;
    app.until("bob has entered", async || {
        app.offered(&bob).await.as_array().unwrap().len() == 1
    })
    .await;
    app.settle().await;
    assert_eq!(app.offered(&ada).await, json!([]));
}

/// A trigger that waits for somebody to enter a segment.
fn entering(segment: &Value) -> Value {
    json!({"kind": "segment", "segmentId": segment["id"], "on": "enter"})
}

async fn a_campaign_that_nothing_fires_waits_for_no_segment(app: &mut TestApp) {
    let pros = segment(app, "pros", plan("pro")).await;
    app.campaign(&json!({"mode": "transactional", "trigger": entering(&pros)}))
        .await;
    app.settle().await;
    let ada = app.session("ada").await;
    set(app, &ada, json!({"plan": "pro"})).await;
    app.settle().await;
    app.survey(&entering(&pros)).await;
    let event = app.event(&ada, "visit", &json!({}));
    app.ingest(&ada, &[event]).await.ok();
    app.settle().await;
    assert_eq!(app.offered(&ada).await, json!([]));
}

async fn a_trigger_that_is_not_waited_for_ties_no_segment(app: &mut TestApp) {
    let (waited, asked) = (
        segment(app, "waited", json!({})).await,
        segment(app, "asked", json!({})).await,
    );
    let body = json!({"mode": "broadcast", "status": "draft", "trigger": entering(&waited),
        "audience": member(&asked, true)});
    app.campaign(&body).await;
    let path = app.path(&format!("/segments/{}", waited["id"].as_str().unwrap()));
    app.delete(&path, &app.editor()).await.data(204);
    change(app, &asked, &plan("pro")).await.ok();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_segment_of_one_server_is_named_at_once_by_another() {
    let (_folder, one, two) = pair().await;
    for number in 0..5 {
        let made = segment(&one, &format!("segment {number}"), plan("pro")).await;
        let body = json!({"mode": "on_demand", "audience": member(&made, true)});
        two.survey_with(&body).await;
    }
    one.finish().await;
    two.finish().await;
}

/// Two servers, of which the other does not hear by itself what the one changes.
async fn one_and_unaware(folder: &TempDir) -> (TestApp, TestApp) {
    let url = tests::postgres::database().await;
    let one = node(&url, folder.path(), "one").await;
    let unaware = node_with(&url, folder.path(), "unaware", |config| {
        config.pipeline.poll_ms = 3_600_000;
    });
    (one, unaware.await)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_by_another_server_reaches_segments_that_were_just_made() {
    let folder = TempDir::with_prefix("nudge-test-").unwrap();
    let (one, two) = one_and_unaware(&folder).await;
    let inner = segment(&one, "inner", plan("pro")).await;
    // It knows the app from now on.
    change(&two, &inner, &plan("free")).await.ok();
    segment(&one, "outer", member(&inner, true)).await;
    let version = async || -> Vec<(i64,)> {
        one.rows("SELECT audience_version FROM segments WHERE name = 'outer'")
            .await
    };
    let before = version().await[0].0;
    change(&two, &inner, &plan("pro")).await.ok();
    // Whoever is in it or out of it by that has neither entered nor left.
    assert_eq!(version().await, [(before + 1,)]);
    two.finish().await;
    one.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_property_that_another_server_sets_fires_what_was_just_activated() {
    let folder = TempDir::with_prefix("nudge-test-").unwrap();
    let (one, two) = one_and_unaware(&folder).await;
    let pros = segment(&one, "pros", plan("pro")).await;
    let ada = two.session("ada").await;
    set(&two, &ada, json!({"plan": "free"})).await;
    one.survey(&entering(&pros)).await;
    one.survey(&json!({"kind": "property_changed", "key": "plan"}))
        .await;
    set(&two, &ada, json!({"plan": "pro"})).await;
    one.until("both have fired", async || {
        one.count("instructions").await == 2
    })
    .await;
    two.finish().await;
    one.finish().await;
}

/// Every status may be set from every status (contract 7). Only who runs needs the segments that it names.
async fn what_was_put_away_takes_any_status_without_its_segment(app: &mut TestApp) {
    let gone = segment(app, "gone", plan("pro")).await;
    let stays = segment(app, "stays", json!({"include": {"any": leaves(1)}})).await;
    let any = [&gone, &stays].map(|named| member(named, true)["include"].clone());
    let audience = json!({"include": {"any": any}});
    let survey = app
        .survey_with(&json!({"mode": "on_demand", "audience": audience}))
        .await;
    let path = app.path(&format!("/surveys/{survey}"));
    let set = async |body: Value| app.patch(&path, &app.editor(), &body).await;
    set(json!({"status": "archived"})).await.ok();
    let of_gone = app.path(&format!("/segments/{}", gone["id"].as_str().unwrap()));
    app.delete(&of_gone, &app.editor()).await.data(204);
    for status in ["paused", "completed", "draft", "archived", "paused"] {
        assert_eq!(set(json!({"status": status})).await.ok()["status"], status);
    }
    set(json!({"name": "Asks nobody"})).await.ok();
    // It holds up no change of a segment that it names besides.
    change(app, &stays, &json!({"include": {"any": leaves(2)}}))
        .await
        .ok();
    assert_eq!(app.count("segment_uses").await, 0);

    let refused = set(json!({"status": "active"})).await;
    refused.refused(422, "validation_failed");
    assert_eq!(refused.pointers(), ["/audience/include/any/0/segmentId"]);
    let only = |named: Value| json!({"include": {"any": [named["include"].clone()]}});
    let named_anew = set(json!({"audience": only(member(&gone, false))})).await;
    named_anew.refused(422, "validation_failed");
    assert_eq!(named_anew.pointers(), refused.pointers());
    let mended = json!({"status": "active", "audience": only(member(&stays, true))});
    assert_eq!(set(mended).await.ok()["status"], "active");
    assert_eq!(app.count("segment_uses").await, 1);
}

/// Conditions of about 55 KB.
fn long() -> Value {
    let names = (0..1_000).map(|number| format!("{number:052}"));
    json!({"include": {"kind": "platform", "in": names.collect::<Vec<_>>()}})
}

fn short() -> Value {
    json!({"include": {"kind": "platform", "in": ["ios"]}})
}

/// A segment is kept with the conditions of those that it names, and so is each survey that names it.
async fn what_segments_add_to_an_audience_is_bounded(app: &mut TestApp) {
    let (large, small) = (
        segment(app, "large", long()).await,
        segment(app, "small", short()).await,
    );
    let times = |named: &Value, count: usize| {
        let one = member(named, true)["include"].clone();
        json!({"include": {"any": vec![one; count]}})
    };
    let post =
        async |path: &str, body: Value| app.post(&app.path(path), &app.editor(), &body).await;
    let too_large = |answer: Answer| {
        let problem = answer.refused(422, "validation_failed");
        let error = &problem["errors"][0];
        assert_eq!(
            (&error["pointer"], &error["code"]),
            (&json!("/audience"), &json!("too_large"))
        );
    };
    let survey = |audience: Value| {
        let mut body = tests::session::survey_body();
        body["mode"] = json!("on_demand");
        body["audience"] = audience;
        body
    };
    for path in ["/segments", "/surveys"] {
        let body = |count| match path {
            "/segments" => json!({"name": format!("{count}"), "audience": times(&large, count)}),
            _ => survey(times(&large, count)),
        };
        post(path, body(4)).await.data(201);
        too_large(post(path, body(5)).await);
    }
    too_large(post("/segments/preview", json!({"audience": times(&large, 5)})).await);

    // Nor does it become so by what becomes of a segment that it names.
    post("/surveys", survey(times(&small, 5))).await.data(201);
    let refused = change(app, &small, &long()).await;
    let problem = refused.refused(422, "validation_failed");
    assert_eq!(problem["errors"][0]["code"], "breaks_user");
    change(app, &small, &short()).await.ok();
}

async fn a_change_has_everybody_looked_at_once(app: &mut TestApp) {
    let ada = app.session("ada").await;
    set(app, &ada, json!({"plan": "free"})).await;
    let base = segment(app, "base", plan("pro")).await;
    for number in 0..4 {
        segment(app, &number.to_string(), member(&base, true)).await;
    }
    let jobs = async || -> Vec<(i64,)> {
        app.rows("SELECT count(*) FROM jobs WHERE kind = 'segment.members'")
            .await
    };
    let before = jobs().await[0].0;
    change(app, &base, &plan("free")).await.ok();
    app.until("ada is in all of them", async || {
        let all = app.get(&app.path("/segments"), &app.viewer()).await.ok();
        let mut all = all["items"].as_array().unwrap().iter();
        all.all(|segment| segment["size"] == 1)
    })
    .await;
    assert_eq!(jobs().await, [(before + 1,)]);
}
