//! Cases against versions of plugins, over HTTP (contract 12).

use serde_json::{Value, json};
use tests::session::text;
use tests::{Answer, TestApp, on_both_backends};

use crate::bulk_replays::ended;
use crate::guests::{
    SERVER, deploy, deploy_misbehaving, name, trigger, upload, version, versioned,
};

on_both_backends!(
    a_case_says_what_comes_out_and_what_differs,
    cases_of_every_kind_run,
    timers_follow_the_rules_of_a_server,
    a_plugin_is_told_of_a_case_what_a_server_tells_it,
    versions_are_tried_under_the_limits_of_their_app,
    a_call_that_fails_is_a_failure_of_its_case,
    a_test_touches_nothing,
    what_cannot_be_tested_is_refused,
    a_version_that_is_not_active_is_tested,
);

async fn test(app: &TestApp, plugin: &str, version: &str, cases: Value) -> Answer {
    let path = app.path(&format!("/plugins/{plugin}/versions/{version}/test"));
    app.post(&path, &app.admin(), &json!({"cases": cases}))
        .await
}

/// The version of a built-in plugin.
async fn built_in(app: &TestApp, plugin: &str) -> String {
    let path = app.path(&format!("/plugins/{plugin}"));
    let data = app.get(&path, &app.viewer()).await.ok();
    data["activeVersion"].as_str().unwrap().to_owned()
}

fn trigger_case() -> Value {
    json!({
        "config": {"trigger": {"kind": "event", "eventName": "purchase"}},
        "events": [{"name": "purchase"}, {"name": "other"}, {"name": "purchase", "at": "+1h"}],
    })
}

async fn a_case_says_what_comes_out_and_what_differs(app: &mut TestApp) {
    let number = built_in(app, "default-trigger").await;
    let cases = json!([
        {"name": "fires", "input": trigger_case(), "expect": {"fired": [{"event": 0}, {"event": 2, "at": "+1h"}]}},
        {"input": trigger_case(), "expect": {"fired": [{"event": 1}, {"event": 2}]}},
        {"input": trigger_case()},
        {"input": {"config": {"trigger": {"kind": "nothing"}}, "events": []}},
    ]);
    let data = test(app, "default-trigger", &number, cases).await.ok();
    let cases = data["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 4);

    assert_eq!(cases[0]["passed"], true, "{data}");
    assert_eq!(cases[0]["name"], "fires");
    assert_eq!(cases[0]["output"]["fired"].as_array().unwrap().len(), 2);
    assert!(cases[0]["micros"].as_u64().unwrap() > 0);
    assert!(cases[0]["memoryBytes"].as_u64().unwrap() > 0);
    assert_eq!(cases[1]["passed"], false);
    assert_eq!(cases[1]["differences"][0]["pointer"], "/fired/0/event");
    assert_eq!(cases[2].get("passed"), None);
    assert_eq!(cases[2].get("failure"), None);
    assert!(
        cases[3]["output"]["problems"][0]["code"].is_string(),
        "{data}"
    );
}

async fn cases_of_every_kind_run(app: &mut TestApp) {
    let validation = json!([{
        "input": {"config": {"properties": [{"name": "total", "type": "number", "required": true}]}, "properties": {}},
        "expect": {"valid": false},
    }]);
    let personalization = json!([{
        "input": {
            "config": {"version": 1, "missingData": "skip",
                "sources": [{"id": "user", "label": "", "kind": "user_property"}],
                "bindings": [{"id": "name", "label": "", "sourceId": "user", "key": "name", "type": "string"}]},
            "recipients": [{"name": "ana", "properties": {"name": "Ana"}}],
        },
        "expect": {"values": {"ana": {"name": {"text": "Ana"}}}},
    }]);
    for (plugin, cases) in [
        ("default-validation", validation),
        ("default-personalization", personalization),
    ] {
        let number = built_in(app, plugin).await;
        let data = test(app, plugin, &number, cases).await.ok();
        assert_eq!(data["cases"][0]["passed"], true, "{data}");
    }
}

async fn timers_follow_the_rules_of_a_server(app: &mut TestApp) {
    upload(app, test_guests::MISBEHAVING.to_vec())
        .await
        .data(201);
    let cases = json!([
        // Its timer sets itself again, at once.
        {"input": {"config": {"mode": "due"}, "events": [{"name": "tick"}, {"name": "stop", "at": "+10s"}], "until": "+12s"},
         "expect": {"timers": [{"key": "due", "at": "+13s"}]}},
        {"input": {"config": {"mode": "breed:40"}, "events": [{"name": "tick"}, {"name": "tick", "at": "+1m"}], "until": "+1m"}},
    ]);
    let data = test(app, "misbehaving", "1.0.0", cases).await.ok();
    assert_eq!(data["cases"][0]["passed"], true, "{data}");

    let timers = data["cases"][1]["output"]["timers"].as_array().unwrap();
    let due = |at: &str| timers.iter().filter(|timer| timer["at"] == at).count();
    assert_eq!(timers.len(), 64, "{data}");
    assert_eq!(due("2026-01-01T01:00:00.000Z"), 40, "{data}");
    assert_eq!(due("2026-01-01T01:01:00.000Z"), 24, "{data}");
}

/// Of events that arrive together a plugin knows those that it reads; a timer is of the session in which it falls due.
async fn a_plugin_is_told_of_a_case_what_a_server_tells_it(app: &mut TestApp) {
    deploy(app, 1, 1).await;
    let config = json!({"events": ["a"], "keeps": 1_000_001, "asks": "b"});
    let events = ["a", "b", "a"].map(|name| json!({"name": name}));
    let mut input = json!({"config": config, "events": events});
    let later = json!({"name": "b", "at": "+45m"});
    input["events"].as_array_mut().unwrap().push(later);
    let case = json!([{"input": input}]);
    let data = test(app, &name(1), &version(1), case).await.ok();
    let logs = data["cases"][0]["logs"].as_array().unwrap();
    let told: Vec<String> = logs.iter().map(|line| text(line, "message")).collect();

    app.survey(&trigger(1, config)).await;
    let ada = app.session("ada").await;
    let events = ["a", "b", "a"].map(|name| app.event(&ada, name, &json!({})));
    app.ingest(&ada, &events).await.ok();
    app.settle().await;
    app.advance(45 * 60);
    let event = app.event(&ada, "b", &json!({}));
    app.ingest(&ada, &[event]).await.ok();
    app.settle().await;
    app.advance(20 * 60);
    let path = app.path(&format!("/plugins/{}/logs", name(1)));
    let logged = async || {
        let page = app.get(&path, &app.viewer()).await.ok();
        let lines = page["items"].as_array().unwrap().iter().rev();
        lines.map(|line| text(line, "message")).collect::<Vec<_>>()
    };
    app.until("the timer does not fall due", async || {
        logged().await.len() == 3
    })
    .await;
    assert_eq!(logged().await, told);
    let [one, two] = ["session 1, 0 before", "session 2, 2 before"];
    assert_eq!(told, [one, one, two]);
}

/// Contract 15: what an app allows less of is allowed less of where a version is tried, too.
async fn versions_are_tried_under_the_limits_of_their_app(app: &mut TestApp) {
    deploy_misbehaving(app).await;
    let config = json!({"mode": "calls:200"});
    let campaign = json!({"kind": "plugin", "plugin": "misbehaving", "config": config});
    let survey = app.survey(&campaign).await;
    let ada = app.session("ada").await;
    let event = app.event(&ada, "order", &json!({"amount": 20}));
    app.ingest(&ada, &[event]).await.ok();
    app.settle().await;
    let case = json!([{"input": {"config": config, "events": [{"name": "order"}]}}]);
    let tried = async |app: &TestApp| {
        let data = test(app, "misbehaving", "1.0.0", case.clone()).await.ok();
        let path = app.path("/plugins/misbehaving/versions/1.0.0/backtest");
        let body = json!({"since": app.time(-3600), "campaignId": survey});
        let job = app.post(&path, &app.admin(), &body).await.data(202);
        let job = ended(app, &text(&job, "jobId")).await;
        let result = &job["result"];
        let failed = ["activeFailed", "failed"].map(|key| result[key].as_u64().unwrap());
        (data["cases"][0]["failure"].clone(), failed)
    };
    assert_eq!(tried(app).await, (Value::Null, [0, 0]));
    let less = json!({"plugins": {"hostCalls": 10}});
    app.patch(&app.path("/settings"), &app.admin(), &less)
        .await
        .ok();
    assert_eq!(tried(app).await, (json!("trap"), [1, 1]));
}

async fn a_call_that_fails_is_a_failure_of_its_case(app: &mut TestApp) {
    upload(app, test_guests::MISBEHAVING.to_vec())
        .await
        .data(201);
    let case = |mode: &str| json!({"input": {"config": {"mode": mode}, "events": [{"name": "order", "properties": {"amount": 1}}]}});
    let mut expects = case("trap");
    expects["expect"] = json!({"fired": []});
    let cases = json!([
        case("trap"),
        case("refuse"),
        case("memory"),
        case("huge_output"),
        expects,
        case("fine")
    ]);
    let data = test(app, "misbehaving", "1.0.0", cases).await.ok();
    let failures: Vec<&Value> = data["cases"]
        .as_array()
        .unwrap()
        .iter()
        .map(|case| &case["failure"])
        .collect();
    assert_eq!(
        failures,
        [
            &json!("trap"),
            &json!("refused"),
            &json!("memory"),
            &json!("output_too_large"),
            &json!("trap"),
            &Value::Null
        ]
    );
    assert_eq!(data["cases"][0].get("output"), None);
    assert!(data["cases"][0]["detail"].is_string());
    assert_eq!(data["cases"][4]["passed"], false);
    assert!(data["cases"][5]["output"].is_object(), "{data}");
}

async fn a_test_touches_nothing(app: &mut TestApp) {
    let number = built_in(app, "default-trigger").await;
    app.survey(&json!({"kind": "event", "eventName": "purchase"}))
        .await;
    let ada = app.session("ada").await;
    let cases = json!([{"input": trigger_case()}]);
    test(app, "default-trigger", &number, cases).await.ok();
    assert_eq!(app.offered(&ada).await, json!([]));
    for table in [
        "SELECT id FROM instructions",
        "SELECT id FROM timers",
        "SELECT id FROM jobs",
    ] {
        assert!(app.rows::<(uuid::Uuid,)>(table).await.is_empty(), "{table}");
    }
}

async fn what_cannot_be_tested_is_refused(app: &mut TestApp) {
    let number = built_in(app, "default-trigger").await;
    let case = json!({"input": trigger_case()});
    let many = |count: usize| Value::Array(vec![case.clone(); count]);
    for cases in [many(0), many(51)] {
        let answer = test(app, "default-trigger", &number, cases).await;
        answer.refused(422, "validation_failed");
        assert_eq!(answer.pointers(), ["/cases"]);
    }
    test(app, "default-trigger", &number, many(50)).await.ok();

    let bad = json!([case, {"input": {"events": [{"nam": "a"}]}}]);
    let answer = test(app, "default-trigger", &number, bad).await;
    answer.refused(422, "validation_failed");
    assert_eq!(answer.pointers(), ["/cases/1/input/events/0/nam"]);
    let typo = json!([{"input": {}, "expects": {}}]);
    let answer = test(app, "default-trigger", &number, typo).await;
    let problem = answer.refused(422, "validation_failed");
    assert_eq!(problem["errors"][0]["code"], "unknown_key", "{problem}");

    for (plugin, version) in [("nobody", "1.0.0"), ("default-trigger", "9.9.9")] {
        test(app, plugin, version, many(1))
            .await
            .refused(404, "not_found");
    }
    let large = json!([{"input": {"config": "x".repeat(1 << 20), "events": []}}]);
    test(app, "default-trigger", &number, large)
        .await
        .refused(413, "payload_too_large");
}

async fn a_version_that_is_not_active_is_tested(app: &mut TestApp) {
    let fires = json!([{
        "input": {"config": {"events": ["a"]}, "events": [{"name": "a"}, {"name": "b"}]},
        "expect": {"fired": [{"event": 0}]},
    }]);
    upload(app, versioned(1, 1)).await.data(201);
    let data = test(app, &name(1), &version(1), fires.clone()).await.ok();
    assert_eq!(data["cases"][0]["passed"], true, "{data}");

    let path = format!("{SERVER}/plugins");
    app.upload(&path, &app.operator(), versioned(2, 1))
        .await
        .data(201);
    let path = format!("{SERVER}/plugins/{}/versions/{}/test", name(2), version(1));
    let body = json!({"cases": fires});
    let data = app.post(&path, &app.operator(), &body).await.ok();
    assert_eq!(data["cases"][0]["passed"], true, "{data}");
    test(app, &name(2), &version(1), fires.clone()).await.ok();
    let path = format!("{SERVER}/plugins/{}/versions/{}/test", name(1), version(1));
    app.post(&path, &app.operator(), &body)
        .await
        .refused(404, "not_found");
}
