//! Triggers: which events fire, and which of them (contract 8).

use serde_json::{Value, json};
use tests::{Session, TestApp, on_both_backends};

on_both_backends!(
    every_matching_event_fires,
    only_the_first_ever_fires,
    one_firing_a_campaign,
    one_firing_a_session,
    the_nth_fires,
    every_nth_fires,
    from_the_nth_within_days_on_each_fires,
    a_screen_view_fires,
    the_start_of_a_session_fires,
    filters_decide,
    a_value_of_another_type_is_no_match,
    a_bad_trigger_is_named_by_a_pointer,
    events_of_one_request_fire_in_their_order,
);

async fn with_occurrence(app: &TestApp, occurrence: Value) {
    app.survey(&json!({"kind": "event", "eventName": "purchase", "occurrence": occurrence}))
        .await;
}

/// Whether each of so many purchases fires.
async fn firings(app: &TestApp, session: &Session, count: usize) -> Vec<usize> {
    let mut fired = Vec::new();
    for _ in 0..count {
        fired.push(app.fires(session, "purchase", &json!({})).await);
    }
    fired
}

async fn every_matching_event_fires(app: &mut TestApp) {
    with_occurrence(app, json!({"mode": "every"})).await;
    let ada = app.session("ada").await;
    assert_eq!(firings(app, &ada, 3).await, [1, 1, 1]);
    assert_eq!(app.fires(&ada, "other", &json!({})).await, 0);
}

async fn only_the_first_ever_fires(app: &mut TestApp) {
    let (ada, bob) = (app.session("ada").await, app.session("bob").await);
    assert_eq!(firings(app, &ada, 1).await, [0]);
    with_occurrence(app, json!({"mode": "first"})).await;

    assert_eq!(firings(app, &ada, 2).await, [0, 0]);
    assert_eq!(firings(app, &bob, 2).await, [1, 0]);
}

async fn one_firing_a_campaign(app: &mut TestApp) {
    let (ada, bob) = (app.session("ada").await, app.session("bob").await);
    assert_eq!(firings(app, &ada, 1).await, [0]);
    with_occurrence(app, json!({"mode": "once"})).await;

    assert_eq!(firings(app, &ada, 3).await, [1, 0, 0]);
    assert_eq!(firings(app, &bob, 2).await, [1, 0]);
}

async fn one_firing_a_session(app: &mut TestApp) {
    with_occurrence(app, json!({"mode": "once_per_session"})).await;
    let ada = app.session("ada").await;

    assert_eq!(firings(app, &ada, 2).await, [1, 0]);
    app.advance(31 * 60);
    assert_eq!(firings(app, &ada, 2).await, [1, 0]);
}

async fn the_nth_fires(app: &mut TestApp) {
    with_occurrence(app, json!({"mode": "nth", "n": 3})).await;
    let ada = app.session("ada").await;
    assert_eq!(firings(app, &ada, 7).await, [0, 0, 1, 0, 0, 0, 0]);
}

async fn every_nth_fires(app: &mut TestApp) {
    with_occurrence(app, json!({"mode": "every_nth", "n": 3})).await;
    let ada = app.session("ada").await;
    assert_eq!(firings(app, &ada, 3).await, [0, 0, 1]);
    app.restart().await;
    assert_eq!(firings(app, &ada, 4).await, [0, 0, 1, 0]);
}

async fn from_the_nth_within_days_on_each_fires(app: &mut TestApp) {
    with_occurrence(app, json!({"mode": "at_least", "n": 2, "withinDays": 1})).await;
    let ada = app.session("ada").await;
    assert_eq!(firings(app, &ada, 3).await, [0, 1, 1]);

    app.advance(25 * 3600);
    let ada = app.session("ada").await;
    assert_eq!(firings(app, &ada, 2).await, [0, 1]);
}

async fn a_screen_view_fires(app: &mut TestApp) {
    app.survey(&json!({"kind": "screen_view", "screenName": "cart"}))
        .await;
    let ada = app.session("ada").await;
    let fires = async |properties: Value| app.fires(&ada, "screen_viewed", &properties).await;

    let mut seen = Vec::new();
    for key in ["screenName", "screen_name", "name"] {
        seen.push(fires(json!({key: "cart"})).await);
    }
    assert!(
        seen.contains(&1),
        "no spelling of the screen's name fires: {seen:?}"
    );
    assert_eq!(
        fires(json!({"screenName": "home", "screen_name": "home"})).await,
        0
    );
}

async fn the_start_of_a_session_fires(app: &mut TestApp) {
    app.survey(&json!({"kind": "session_start"})).await;
    let ada = app.session("ada").await;
    assert_eq!(app.fires(&ada, "session_started", &json!({})).await, 1);
    assert_eq!(app.fires(&ada, "opened", &json!({})).await, 0);
}

async fn filters_decide(app: &mut TestApp) {
    let ada = app.session("ada").await;
    let today = app.time(-3600);
    for (leaf, matching, other) in [
        (
            json!({"type": "string", "operator": "equals", "value": "a"}),
            json!("a"),
            json!("b"),
        ),
        (
            json!({"type": "string", "operator": "not_equals", "value": "a"}),
            json!("b"),
            json!("a"),
        ),
        (
            json!({"type": "string", "operator": "in", "value": ["a", "b"]}),
            json!("b"),
            json!("c"),
        ),
        (
            json!({"type": "string", "operator": "not_in", "value": ["a", "b"]}),
            json!("c"),
            json!("b"),
        ),
        (
            json!({"type": "string", "operator": "contains", "value": "rt"}),
            json!("cart"),
            json!("car"),
        ),
        (
            json!({"type": "string", "operator": "starts_with", "value": "ca"}),
            json!("cart"),
            json!("art"),
        ),
        (
            json!({"type": "string", "operator": "ends_with", "value": "rt"}),
            json!("cart"),
            json!("car"),
        ),
        (
            json!({"type": "string", "operator": "matches", "value": "^c[ao]rt$"}),
            json!("cort"),
            json!("cirt"),
        ),
        (
            json!({"type": "number", "operator": "eq", "value": 5}),
            json!(5.0),
            json!(6),
        ),
        (
            json!({"type": "number", "operator": "gte", "value": 5}),
            json!(5),
            json!(4.99),
        ),
        (
            json!({"type": "number", "operator": "lt", "value": 5}),
            json!(4),
            json!(5),
        ),
        (
            json!({"type": "number", "operator": "between", "value": [1, 2]}),
            json!(2),
            json!(3),
        ),
        (
            json!({"type": "boolean", "operator": "is", "value": true}),
            json!(true),
            json!(false),
        ),
        (
            json!({"type": "date", "operator": "before", "value": "2026-01-01"}),
            json!("2025-12-31"),
            json!("2026-01-02"),
        ),
        (
            json!({"type": "date", "operator": "within_last", "value": {"amount": 1, "unit": "days"}}),
            json!(today),
            json!("2001-01-01"),
        ),
        (
            json!({"type": "string", "operator": "is_set"}),
            json!("a"),
            json!(null),
        ),
        (
            json!({"type": "string", "operator": "is_not_set"}),
            json!(null),
            json!("a"),
        ),
    ] {
        let mut leaf = leaf;
        leaf["property"] = json!("cart.value");
        let trigger = json!({"kind": "event", "eventName": "purchase", "filters": {"all": [leaf]}});
        let survey = app.survey(&trigger).await;
        let fires = async |value: &Value| {
            app.fires(&ada, "purchase", &json!({"cart": {"value": value}}))
                .await
        };
        assert_eq!(fires(&matching).await, 1, "{leaf} and {matching}");
        assert_eq!(fires(&other).await, 0, "{leaf} and {other}");
        app.delete(&app.path(&format!("/surveys/{survey}")), &app.editor())
            .await
            .data(204);
    }
}

async fn a_value_of_another_type_is_no_match(app: &mut TestApp) {
    let ada = app.session("ada").await;
    let leaf = json!({"property": "total", "type": "number", "operator": "neq", "value": 5});
    app.survey(&json!({"kind": "event", "eventName": "purchase", "filters": {"any": [leaf]}}))
        .await;
    for (value, fired) in [
        (json!(6), 1),
        (json!("6"), 0),
        (json!(true), 0),
        (json!([6]), 0),
        (json!(null), 0),
    ] {
        assert_eq!(
            app.fires(&ada, "purchase", &json!({"total": value})).await,
            fired,
            "{value}"
        );
    }
    assert_eq!(app.fires(&ada, "purchase", &json!({})).await, 0);
}

async fn a_bad_trigger_is_named_by_a_pointer(app: &mut TestApp) {
    let leaf = |operator: &str| json!({"property": "p", "type": "string", "operator": operator, "value": "("});
    let mut deep = leaf("equals");
    for _ in 0..5 {
        deep = json!({"all": [deep]});
    }
    let many: Value = (0..51).map(|_| leaf("equals")).collect();
    for (part, pointer) in [
        (json!({"kind": "comet"}), "/trigger/kind"),
        (json!({}), "/trigger/eventName"),
        (json!({"eventName": 7}), "/trigger/eventName"),
        (
            json!({"eventName": "a", "delaySeconds": -1}),
            "/trigger/delaySeconds",
        ),
        (
            json!({"eventName": "a", "delaySeconds": 7_776_001}),
            "/trigger/delaySeconds",
        ),
        (
            json!({"eventName": "a", "occurrence": {"mode": "nth"}}),
            "/trigger/occurrence",
        ),
        (
            json!({"eventName": "a", "occurrence": {"mode": "nth", "n": 0}}),
            "/trigger/occurrence/n",
        ),
        (
            json!({"eventName": "a", "occurrence": {"mode": "often"}}),
            "/trigger/occurrence/mode",
        ),
        (
            json!({"eventName": "a", "filters": {"all": [leaf("matches")]}}),
            "/trigger/filters/all/0/value",
        ),
        (
            json!({"eventName": "a", "filters": {"all": [leaf("is")]}}),
            "/trigger/filters/all/0/operator",
        ),
        (
            json!({"eventName": "a", "filters": deep}),
            "/trigger/filters/all/0/all/0",
        ),
        (
            json!({"eventName": "a", "filters": {"any": many}}),
            "/trigger/filters/any",
        ),
        (json!({"eventName": "a", "color": "red"}), "/trigger/color"),
        (
            json!({"eventName": "a", "cancelOn": [{}]}),
            "/trigger/cancelOn/0",
        ),
    ] {
        let mut trigger = part;
        if trigger.get("kind").is_none() {
            trigger["kind"] = json!("event");
        }
        let mut body = tests::session::survey_body();
        body["trigger"] = trigger;
        let answer = app.post(&app.path("/surveys"), &app.editor(), &body).await;
        answer.refused(422, "validation_failed");
        let pointers = answer.pointers();
        assert!(
            pointers[0].starts_with(pointer),
            "{} instead of {pointer}",
            pointers[0]
        );
    }
    let edge = json!({"kind": "event", "eventName": "a", "delaySeconds": 7_776_000,
        "filters": {"all": (0..50).map(|_| leaf("equals")).collect::<Value>()}});
    app.survey(&edge).await;
}

async fn events_of_one_request_fire_in_their_order(app: &mut TestApp) {
    with_occurrence(app, json!({"mode": "nth", "n": 7})).await;
    let ada = app.session("ada").await;
    let events: Vec<Value> = (0..20)
        .map(|_| app.event(&ada, "purchase", &json!({})))
        .collect();

    let data = app.ingest_and_ask(&ada, &events).await;

    assert_eq!(data["instructions"].as_array().unwrap().len(), 1);
    assert_eq!(
        data["instructions"][0]["trigger"]["eventId"],
        events[6]["eventId"]
    );
}
