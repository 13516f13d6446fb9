//! Plugins that mean harm, in a server: whose events suffer, and whose do not (contract 12).

use std::time::{Duration, Instant};

use nudge_apps::key::Kind;
use serde_json::{Value, json};
use tests::session::{Session, text};
use tests::{TestApp, on_both_backends};

on_both_backends!(
    an_event_that_takes_all_the_time_there_is_spoils_no_other,
    what_no_database_can_keep_does_not_stop_the_pipeline,
    an_app_lowers_the_limits_of_its_plugins,
    output_that_is_all_invalid_has_no_effect,
    a_validation_plugin_that_floods_refuses_only_its_events,
    events_that_a_validation_plugin_fails_on_spoil_no_other,
    violations_that_no_text_column_takes_are_kept,
    timers_that_set_themselves_again_take_turns,
    a_timer_that_sets_itself_again_fires_again,
    a_subject_has_no_more_timers_than_it_may,
);

/// Restarts the server with a plugin in the place of the built-in one of its kind.
async fn install(app: &mut TestApp, component: &[u8]) -> tempfile::TempPath {
    let file = tempfile::NamedTempFile::new().unwrap().into_temp_path();
    std::fs::write(&file, component).unwrap();
    app.config.plugins.files = vec![file.to_path_buf()];
    app.config.plugins.deadline_ms = 300;
    app.config.plugins.validation_deadline_ms = 300;
    app.restart().await;
    file
}

async fn letters(app: &TestApp) -> Vec<Value> {
    let path = app.path("/dead-letters");
    let page = app.get(&path, &app.viewer()).await.ok();
    page["items"].as_array().unwrap().clone()
}

/// The events that fired something for whoever this is.
async fn fired(app: &TestApp, session: &Session) -> Vec<Value> {
    let offered = app.offered(session).await;
    let event = |instruction: &Value| instruction["trigger"]["eventId"].clone();
    offered.as_array().unwrap().iter().map(event).collect()
}

async fn an_event_that_takes_all_the_time_there_is_spoils_no_other(app: &mut TestApp) {
    let _file = install(app, test_guests::MISBEHAVING).await;
    app.survey(&json!({"mode": "slow_poison"})).await;
    let (_, other) = app
        .another_app(app.access.workspace_id, Kind::Write, &[])
        .await;
    let (ada, bob) = (app.session("ada").await, app.session("bob").await);
    let poison = app.event(&ada, "paid", &json!({"amount": 13}));
    let before = app.event(&ada, "paid", &json!({"amount": 12}));
    let after = app.event(&ada, "paid", &json!({"amount": 14}));
    app.ingest(&ada, &[before.clone(), poison.clone(), after.clone()])
        .await
        .ok();

    // Others wait for nothing that belongs to somebody else.
    let paid = app.event(&bob, "paid", &json!({"amount": 15}));
    let decided = app.ingest_and_ask(&bob, std::slice::from_ref(&paid)).await;
    let stranger = json!({"anonymousId": "eve"});
    let write_key = tests::Credential::bearer(&other);
    app.post("/v1/sdk/session", &write_key, &stranger)
        .await
        .ok();

    assert_eq!(decided["instructions"].as_array().unwrap().len(), 1);
    app.settle().await;
    let kept = letters(app).await;
    assert_eq!(kept.len(), 1);
    assert_eq!(kept[0]["eventId"], poison["eventId"]);
    assert_eq!(kept[0]["reason"], "deadline");
    let mut both = fired(app, &ada).await;
    both.dedup();
    assert_eq!(both, [before["eventId"].clone(), after["eventId"].clone()]);
}

/// PostgreSQL knows no text with a NUL. A plugin that uses one must not look like a database that is gone,
/// after which the same would be tried forever.
async fn what_no_database_can_keep_does_not_stop_the_pipeline(app: &mut TestApp) {
    let _file = install(app, test_guests::MISBEHAVING).await;
    for (mode, reasons) in [
        ("nul_name", vec![]),
        ("nul_key", vec!["trap"]),
        ("control_characters", vec![]),
        ("refuse_at_length:2000", vec!["refused"]),
    ] {
        let survey = app.survey(&json!({"mode": mode})).await;
        let who = app.session("ada").await;
        let event = app.event(&who, "paid", &json!({"amount": 20}));
        app.ingest(&who, std::slice::from_ref(&event)).await.ok();
        app.settle().await;
        let kept = letters(app).await;
        let kept = kept.iter().filter(|it| it["eventId"] == event["eventId"]);
        let found: Vec<String> = kept.map(|letter| text(letter, "reason")).collect();
        assert_eq!(found, reasons, "{mode}");
        pause(app, survey).await;
    }
}

async fn pause(app: &TestApp, survey: uuid::Uuid) {
    let path = app.path(&format!("/surveys/{survey}"));
    app.patch(&path, &app.editor(), &json!({"status": "paused"}))
        .await
        .ok();
}

async fn an_app_lowers_the_limits_of_its_plugins(app: &mut TestApp) {
    let _file = install(app, test_guests::MISBEHAVING).await;
    let settings = app.path("/settings");
    let server = &app.config.plugins;
    let most = [
        ("memoryBytes", server.memory_bytes as u64, 1 << 20),
        ("deadlineMs", 300, 1),
        ("validationDeadlineMs", 300, 1),
        ("outputBytes", server.output_bytes as u64, 1 << 10),
        ("logBytes", server.log_bytes as u64, 0),
        ("hostCalls", server.host_calls.into(), 0),
    ];
    for (name, most, least) in most {
        for wrong in [json!(most + 1), json!(i64::from(least) - 1), json!("1")] {
            let body = json!({"plugins": {name: wrong}});
            let answer = app.patch(&settings, &app.admin(), &body).await;
            answer.refused(422, "validation_failed");
            assert_eq!(answer.pointers(), [format!("/plugins/{name}")], "{wrong}");
        }
        for good in [json!(least), json!(most), Value::Null] {
            let body = json!({"plugins": {name: good}});
            let data = app.patch(&settings, &app.admin(), &body).await.ok();
            assert_eq!(data["plugins"][name], good);
        }
    }

    for (mode, limit, reason) in [
        (
            "state:3000",
            json!({"outputBytes": 2048}),
            "output_too_large",
        ),
        ("calls:200", json!({"hostCalls": 10}), "trap"),
        ("explain:1200000", json!({"memoryBytes": 1 << 20}), "memory"),
        ("loop", json!({"deadlineMs": 20}), "deadline"),
    ] {
        let survey = app.survey(&json!({"mode": mode})).await;
        let fails = async || {
            let who = app.session("ada").await;
            let event = app.event(&who, "paid", &json!({"amount": 20}));
            app.ingest(&who, std::slice::from_ref(&event)).await.ok();
            app.settle().await;
            let kept = letters(app).await;
            let kept = kept.iter().filter(|it| it["eventId"] == event["eventId"]);
            kept.map(|letter| text(letter, "reason"))
                .collect::<Vec<_>>()
        };
        if mode != "loop" {
            assert_eq!(fails().await, Vec::<String>::new(), "{mode}");
        }
        let body = json!({"plugins": limit});
        app.patch(&settings, &app.admin(), &body).await.ok();
        assert_eq!(fails().await, [reason], "{mode}");
        let mut back = limit.as_object().unwrap().clone();
        back.values_mut().for_each(|value| *value = Value::Null);
        app.patch(&settings, &app.admin(), &json!({"plugins": back}))
            .await
            .ok();
        if mode != "loop" {
            assert_eq!(fails().await, Vec::<String>::new(), "{mode}");
        }
        pause(app, survey).await;
    }
}

async fn output_that_is_all_invalid_has_no_effect(app: &mut TestApp) {
    let _file = install(app, test_guests::MISBEHAVING).await;
    let modes = [
        "far:fire",
        "outside:set_state",
        "outside:fire_campaign",
        "state:4097",
        "timers:65",
        "payload:1025",
        "due:9223372036854775807",
    ];
    let ada = app.session("ada").await;
    for mode in modes {
        let survey = app.survey(&json!({"mode": mode})).await;
        let event = app.event(&ada, "paid", &json!({"amount": 20}));
        let decided = app.ingest_and_ask(&ada, &[event]).await;
        assert_eq!(decided["instructions"], json!([]), "{mode}");
        pause(app, survey).await;
    }
    let kept = letters(app).await;
    assert_eq!(kept.len(), modes.len());
    assert!(
        kept.iter().all(|letter| letter["reason"] == "trap"),
        "{kept:?}"
    );
    for table in [
        "SELECT campaign_id FROM timers",
        "SELECT campaign_id FROM plugin_states",
        "SELECT campaign_id FROM instructions",
    ] {
        let rows: Vec<(uuid::Uuid,)> = app.rows(table).await;
        assert_eq!(rows, [], "{table}");
    }
}

async fn a_validation_plugin_that_floods_refuses_only_its_events(app: &mut TestApp) {
    let _file = install(app, test_guests::MISBEHAVING_VALIDATION).await;
    app.define("paid", &json!({})).await;
    let ada = app.session("ada").await;
    for mode in [
        "flood",
        "report:100000",
        "long:1000000",
        "far_item",
        "outside_item",
        "outside_definition",
    ] {
        let events = [
            app.event(&ada, "paid", &json!({"mode": "none"})),
            app.event(&ada, "paid", &json!({"mode": mode})),
            app.event(&ada, "paid", &json!({})),
            app.event(&ada, "other", &json!({"mode": mode})),
        ];
        let data = app.ingest(&ada, &events).await.ok();
        assert_eq!(data["accepted"], 3, "{mode}: {data}");
        assert_eq!(data["errors"].as_array().unwrap().len(), 1, "{mode}");
        let error = &data["errors"][0];
        assert_eq!(error["code"], "plugin_unavailable", "{mode}");
        assert_eq!(error["eventId"], events[1]["eventId"], "{mode}");
    }
    assert_eq!(letters(app).await, Vec::<Value>::new());
}

async fn events_that_a_validation_plugin_fails_on_spoil_no_other(app: &mut TestApp) {
    let _file = install(app, test_guests::MISBEHAVING_VALIDATION).await;
    app.define("paid", &json!({})).await;
    let ada = app.session("ada").await;
    let event = |number: usize| {
        let mode = if number < 10 { "far_item" } else { "none" };
        app.event(&ada, "paid", &json!({"mode": mode}))
    };
    let events: Vec<Value> = (0..100).map(event).collect();
    let data = app.ingest(&ada, &events).await.ok();
    assert_eq!(
        (&data["accepted"], &data["rejected"]),
        (&json!(90), &json!(10))
    );
    let errors = data["errors"].as_array().unwrap();
    for (error, event) in errors.iter().zip(&events) {
        assert_eq!(error["code"], "plugin_unavailable");
        assert_eq!(error["eventId"], event["eventId"]);
    }
}

async fn violations_that_no_text_column_takes_are_kept(app: &mut TestApp) {
    let _file = install(app, test_guests::MISBEHAVING_VALIDATION).await;
    app.define("paid", &json!({})).await;
    let ada = app.session("ada").await;
    let events = [
        app.event(&ada, "paid", &json!({"mode": "nul"})),
        app.event(&ada, "paid", &json!({"mode": "report:10000"})),
        app.event(&ada, "paid", &json!({"mode": "nul_code"})),
    ];
    let data = app.ingest(&ada, &events).await.ok();
    assert_eq!(data["accepted"], 0, "{data}");
    let kept = letters(app).await;
    let violations = |event: &Value| {
        let kept = kept.iter().find(|it| it["eventId"] == event["eventId"]);
        kept.unwrap()["violations"].as_array().unwrap().clone()
    };
    assert_eq!(violations(&events[0]).len(), 1);
    assert_eq!(violations(&events[0])[0]["actual"], "\0");
    assert_eq!(violations(&events[1]).len(), 10_000);
    let code = "one\u{fffd}two";
    assert_eq!(violations(&events[2])[0]["code"], code);
    let mut of_code = kept.iter().filter(|it| it["reason"] == code);
    let letter = of_code.next().map(|it| &it["eventId"]);
    assert_eq!(letter, Some(&events[2]["eventId"]));
}

/// When timers are due, in microseconds since 1970.
async fn due(app: &TestApp) -> Vec<i64> {
    let rows: Vec<(i64,)> = app.rows("SELECT due_at FROM timers").await;
    rows.into_iter().map(|(at,)| at).collect()
}

/// Waits until the one timer is due at another time than `before`.
async fn next_due(app: &TestApp, before: i64) -> i64 {
    let started = Instant::now();
    loop {
        if let [at] = due(app).await[..]
            && at != before
        {
            return at;
        }
        assert!(
            started.elapsed() < Duration::from_secs(30),
            "the timer was never set again"
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// A timer that is due before it is set would be processed again and again, and the pipeline's keeper would
/// do nothing else any more.
async fn timers_that_set_themselves_again_take_turns(app: &mut TestApp) {
    let _file = install(app, test_guests::MISBEHAVING).await;
    app.survey(&json!({"mode": "due:0"})).await;
    let ada = app.session("ada").await;
    let event = app.event(&ada, "paid", &json!({"amount": 20}));
    app.ingest(&ada, &[event]).await.ok();
    app.settle().await;

    let mut before = next_due(app, 0).await;
    for _ in 0..3 {
        app.advance(2);
        let after = next_due(app, before).await;
        assert!(after - before >= 1_000_000, "{before} {after}");
        before = after;
    }
}

async fn a_timer_that_sets_itself_again_fires_again(app: &mut TestApp) {
    let _file = install(app, test_guests::MISBEHAVING).await;
    app.survey(&json!({"mode": "fine"})).await;
    let ada = app.session("ada").await;
    assert_eq!(app.fires(&ada, "paid", &json!({"amount": 20})).await, 1);
    let mut before = next_due(app, 0).await;
    for issued in 2..=4 {
        app.advance(2);
        before = next_due(app, before).await;
        assert_eq!(app.count("instructions").await, issued);
    }
    let stats = app.get(&app.path("/stats"), &app.viewer()).await.ok();
    assert_eq!(stats["totals"]["instructions"], 4);
}

async fn a_subject_has_no_more_timers_than_it_may(app: &mut TestApp) {
    let _file = install(app, test_guests::MISBEHAVING).await;
    app.survey(&json!({"mode": "breed:40"})).await;
    let (ada, bob) = (app.session("ada").await, app.session("bob").await);
    for (who, timers) in [(&ada, 40), (&ada, 64), (&ada, 64), (&bob, 104)] {
        let event = app.event(who, "paid", &json!({"amount": 20}));
        app.ingest(who, &[event]).await.ok();
        app.settle().await;
        assert_eq!(due(app).await.len(), timers);
    }
}
