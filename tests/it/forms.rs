//! Forms in which the same may be said: whole numbers written with a fraction of nothing, days where instants belong; and
//! parameters of queries that can't be read (contract 0, 7, 14).

use serde_json::{Value, json};
use tests::campaigns::campaign_body;
use tests::session::survey_body;
use tests::{Answer, TestApp, on_both_backends};

use crate::segments::{plan, segment};

on_both_backends!(
    a_whole_number_may_have_a_fraction_of_nothing,
    what_is_no_whole_number_is_refused_where_it_stands,
    every_range_takes_days,
    no_range_ends_before_it_begins,
    parameters_that_cannot_be_read_are_named,
);

/// Sends a body as it is written: making it of values would write numbers in another way.
async fn raw(app: &TestApp, path: &str, body: &str) -> Answer {
    app.post_raw(&app.path(path), &app.admin(), body.to_owned())
        .await
}

async fn a_whole_number_may_have_a_fraction_of_nothing(app: &mut TestApp) {
    let made = raw(app, "/surveys", r#"{"name": "x", "priority": 7.0}"#).await;
    let made = made.data(201);
    assert_eq!(made["priority"].to_string(), "7");
    let survey = app.path(&format!("/surveys/{}", made["id"].as_str().unwrap()));
    let patch = json!({"priority": -3.0});
    let patched = app.patch(&survey, &app.editor(), &patch).await.ok();
    assert_eq!(patched["priority"].to_string(), "-3");

    for (path, body) in [
        (
            "/surveys",
            r#"{"name": "x", "schedule": {"daysOfWeek": [1.0, 7.0], "maxResponses": 5e2}}"#,
        ),
        (
            "/surveys",
            r#"{"name": "x", "trigger": {"kind": "event", "eventName": "a", "occurrence":
                {"mode": "at_least", "n": 2.0, "withinDays": 7.0}}, "frequencyCap": {"perSubject": {"max": 1.0, "windowDays": 7.0}}}"#,
        ),
        (
            "/surveys",
            r#"{"name": "x", "mode": "scheduled", "trigger":
                {"kind": "schedule", "every": "month", "at": "09:00", "dayOfMonth": 31.0}}"#,
        ),
        (
            "/surveys",
            r#"{"name": "x", "flow": {"startQuestionId": "q", "questions": [
                {"id": "q", "type": "rating", "title": "t", "required": true, "scale": 5.0},
                {"id": "r", "type": "short_text", "title": "t", "validation": {"maxLength": 50.0}}]}}"#,
        ),
        (
            "/campaigns",
            r#"{"name": "x", "priority": 1.0, "options": {"ttlSeconds": 60.0, "badge": 0.0}, "variants": [
                {"title": "{{p.a}}", "personalization": {"version": 1.0, "missingData": "skip",
                    "sources": [{"id": "s", "kind": "latest_event", "eventName": "e", "lookbackDays": 30.0}],
                    "bindings": [{"id": "a", "sourceId": "s", "key": "k", "type": "string"}]}}]}"#,
        ),
        (
            "/event-definitions",
            r#"{"name": "bought", "properties": [{"name": "sku", "type": "string", "minLength": 1.0, "maxLength": 8.0}]}"#,
        ),
    ] {
        raw(app, path, body).await.data(201);
    }
    let settings = json!({"ingest": {"pastWindowSeconds": 86_400.0}, "frequency": {"push": {"max": 2.0, "windowDays": 1.0}}});
    let settings = app
        .patch(&app.path("/settings"), &app.admin(), &settings)
        .await
        .ok();
    assert_eq!(settings["ingest"]["pastWindowSeconds"].to_string(), "86400");
}

async fn what_is_no_whole_number_is_refused_where_it_stands(app: &mut TestApp) {
    for (path, body, pointer) in [
        ("/surveys", r#"{"name": "x", "priority": 1.5}"#, "/priority"),
        ("/surveys", r#"{"name": "x", "priority": "1"}"#, "/priority"),
        (
            "/surveys",
            r#"{"name": "x", "priority": 2147483648.0}"#,
            "/priority",
        ),
        (
            "/surveys",
            r#"{"name": "x", "schedule": {"maxResponses": 1.5}}"#,
            "/schedule/maxResponses",
        ),
        (
            "/surveys",
            r#"{"name": "x", "schedule": {"maxResponses": 0.0}}"#,
            "/schedule/maxResponses",
        ),
        (
            "/campaigns",
            r#"{"name": "x", "options": {"ttlSeconds": 59.9}}"#,
            "/options/ttlSeconds",
        ),
    ] {
        let answer = raw(app, path, body).await;
        answer.refused(422, "validation_failed");
        assert_eq!(answer.pointers(), [pointer], "{body}");
    }
}

async fn every_range_takes_days(app: &mut TestApp) {
    let ada = app.session("ada").await;
    let event = app.event(&ada, "opened", &json!({}));
    app.ingest(&ada, &[event]).await.ok();
    app.settle().await;
    let body = survey_body();
    app.post(&app.path("/surveys"), &app.editor(), &body)
        .await
        .data(201);
    let [yesterday, today, tomorrow] =
        [-86_400, 0, 86_400].map(|seconds| app.time(seconds)[..10].to_owned());
    let list = async |path: &str, query: String| {
        let path = app.path(&format!("{path}?{query}"));
        let found: Value = app.get(&path, &app.admin()).await.ok();
        found["items"].as_array().map_or(0, Vec::len)
    };

    for path in ["/users/ada/events", "/audit-log"] {
        assert_eq!(
            list(path, format!("from={today}&to={today}")).await,
            1,
            "{path}"
        );
        assert_eq!(list(path, format!("from={tomorrow}")).await, 0, "{path}");
        assert_eq!(list(path, format!("to={yesterday}")).await, 0, "{path}");
    }
    let range = format!("from={yesterday}&to={today}");
    assert_eq!(list("/stats", format!("{range}&interval=day")).await, 2);
    for path in [
        "/dead-letters",
        "/dead-letters/summary",
        "/push/deliveries",
        "/plugins/default-trigger/metrics",
    ] {
        assert_eq!(list(path, range.clone()).await, 0, "{path}");
        let wrong = app.path(&format!("{path}?to=2026-02-30"));
        let refused = app.get(&wrong, &app.admin()).await;
        refused.refused(422, "validation_failed");
        assert_eq!(refused.pointers(), ["/to"], "{path}");
    }
    let filter = json!({"filter": {"from": yesterday, "to": today}});
    let replay = app.path("/dead-letters/replay");
    app.post(&replay, &app.editor(), &filter).await.data(202);
}

async fn no_range_ends_before_it_begins(app: &mut TestApp) {
    app.session("ada").await;
    let survey = app
        .survey(&json!({"kind": "event", "eventName": "purchase"}))
        .await;
    let segment = segment(app, "Pros", plan("pro")).await;
    let push = app.create_campaign(&campaign_body()).await.data(201);
    let range = "?from=2026-02-01&to=2026-01-30";
    for list in [
        "/users/ada/events".to_owned(),
        "/events".to_owned(),
        "/stats".to_owned(),
        "/audit-log".to_owned(),
        "/dead-letters".to_owned(),
        "/dead-letters/summary".to_owned(),
        "/push/deliveries".to_owned(),
        "/plugins/default-trigger/metrics".to_owned(),
        format!("/surveys/{survey}/analytics"),
        format!("/surveys/{survey}/responses"),
        format!("/segments/{}/history", segment["id"].as_str().unwrap()),
        format!("/campaigns/{}/analytics", push["id"].as_str().unwrap()),
    ] {
        let path = app.path(&format!("{list}{range}"));
        let refused = app.get(&path, &app.admin()).await;
        refused.refused(422, "validation_failed");
        assert_eq!(refused.pointers(), ["/from"], "{list}");
    }
    let filter = json!({"filter": {"from": "2026-02-01", "to": "2026-01-30"}});
    for jobs in ["/dead-letters/replay", "/dead-letters/acknowledge"] {
        let refused = app.post(&app.path(jobs), &app.editor(), &filter).await;
        refused.refused(422, "validation_failed");
        assert_eq!(refused.pointers(), ["/filter/from"], "{jobs}");
    }
}

async fn parameters_that_cannot_be_read_are_named(app: &mut TestApp) {
    for (query, pointers) in [
        ("/users?limit=many", "/limit"),
        ("/users?limit=1.5", "/limit"),
        ("/users?limit=1&limit=2", "/limit"),
        ("/users?q=a%00", "/q"),
        ("/push/deliveries?campaignId=nobody", "/campaignId"),
        ("/push/deliveries?status=lost", "/status"),
        ("/stats?interval=week", "/interval"),
        ("/explain?campaignId=nobody", "/campaignId /eventId"),
        ("/explain", "/campaignId /eventId"),
    ] {
        let answer = app.get(&app.path(query), &app.admin()).await;
        answer.refused(422, "validation_failed");
        assert_eq!(answer.pointers().join(" "), pointers, "{query}");
    }
}
