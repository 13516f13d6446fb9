//! Trigger plugins that break down: each stops only itself (contract 12).

use std::collections::HashSet;

use serde_json::{Value, json};
use tests::session::{survey_body, text};
use tests::{TestApp, on_both_backends};

use crate::guests::{activate_at, deploy, deploy_misbehaving, name, set_slot, upload, versioned};

on_both_backends!(
    a_poison_event_spoils_no_other,
    a_batch_that_is_taken_apart_has_each_event_once_in_its_past,
    a_broken_campaign_spoils_no_other,
    every_way_to_fail_has_its_reason,
    a_configuration_over_which_a_plugin_breaks_down_is_refused_with_its_words,
    a_refusal_without_a_reason_is_a_refusal,
);

/// Restarts the server with a plugin that fails on request in the trigger slot.
async fn misbehave(app: &mut TestApp) -> tempfile::TempPath {
    install(app, test_guests::MISBEHAVING).await
}

/// Restarts the server with a plugin in the place of the built-in trigger plugin.
async fn install(app: &mut TestApp, component: &[u8]) -> tempfile::TempPath {
    let file = tempfile::NamedTempFile::new().unwrap().into_temp_path();
    std::fs::write(&file, component).unwrap();
    app.config.plugins.files = vec![file.to_path_buf()];
    app.config.plugins.deadline_ms = 300;
    app.restart().await;
    file
}

/// How many events fired something, and the reasons of what was kept instead. The plugin sets a timer for
/// each firing, which fires the same event again a second later.
async fn outcome(app: &TestApp, session: &tests::session::Session) -> (usize, Vec<String>) {
    app.settle().await;
    let page = app
        .get(&app.path("/dead-letters"), &app.viewer())
        .await
        .ok();
    let reason = |letter: &Value| letter["reason"].as_str().unwrap().to_owned();
    let reasons = page["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(reason)
        .collect();
    let offered = app.offered(session).await;
    let event = |instruction: &Value| instruction["trigger"]["eventId"].to_string();
    let fired: HashSet<String> = offered.as_array().unwrap().iter().map(event).collect();
    (fired.len(), reasons)
}

async fn a_poison_event_spoils_no_other(app: &mut TestApp) {
    let _file = misbehave(app).await;
    let survey = app.survey(&json!({"mode": "poison"})).await;
    let ada = app.session("ada").await;
    let events: Vec<Value> = (10..20)
        .map(|amount| app.event(&ada, "paid", &json!({"amount": amount})))
        .collect();

    app.ingest(&ada, &events).await.ok();

    assert_eq!(outcome(app, &ada).await, (9, vec!["trap".to_owned()]));
    let page = app
        .get(&app.path("/dead-letters"), &app.viewer())
        .await
        .ok();
    assert_eq!(page["items"][0]["eventId"], events[3]["eventId"]);
    assert_eq!(page["items"][0]["stage"], "trigger");
    assert_eq!(page["items"][0]["plugin"]["name"], "misbehaving");
    assert_eq!(app.stored("paid").await, 10);

    // The one that it failed on is explained by that.
    let letter = &page["items"][0];
    let (subject, event) = (&ada.subject_id, text(letter, "eventId"));
    let query = format!("/explain?campaignId={survey}&subjectId={subject}&eventId={event}");
    let explained = app.get(&app.path(&query), &app.viewer()).await.ok();
    assert_eq!(explained["outcome"], "not_fired");
    let said = explained["steps"].as_array().unwrap().last().unwrap();
    assert_eq!(
        (&said["check"], &said["passed"]),
        (&json!("trigger"), &json!(false))
    );
    let detail = text(said, "detail");
    let mut parts = ["misbehaving", "trap", letter["id"].as_str().unwrap()].into_iter();
    assert!(parts.all(|part| detail.contains(part)), "{detail}");
}

async fn a_batch_that_is_taken_apart_has_each_event_once_in_its_past(app: &mut TestApp) {
    deploy_misbehaving(app).await;
    app.survey(&json!({"kind": "plugin", "plugin": "misbehaving", "config": {"mode": "poison"}}))
        .await;
    let ada = app.session("ada").await;
    // The third is the one that it fails on.
    let events: Vec<Value> = (11..27)
        .map(|amount| app.event(&ada, "paid", &json!({"amount": amount})))
        .collect();
    app.ingest(&ada, &events).await.ok();
    app.settle().await;

    // For each event it logs how many were before, and the amounts of ten of them.
    let path = app.path("/plugins/misbehaving/logs");
    let mut lines = Value::Null;
    app.until("all is logged", async || {
        lines = app.get(&path, &app.viewer()).await.ok()["items"].take();
        lines.as_array().unwrap().len() == 15
    })
    .await;
    let mut counts = Vec::new();
    for line in lines.as_array().unwrap() {
        let line = text(line, "message");
        let (count, amounts) = line
            .strip_prefix("paid ")
            .and_then(|line| line.split_once(' '))
            .unwrap();
        let count: usize = count.parse().unwrap();
        let amounts: Vec<f64> = serde_json::from_str(amounts).unwrap();
        let different: HashSet<u64> = amounts.iter().map(|amount| amount.to_bits()).collect();
        assert_eq!(
            (amounts.len(), different.len()),
            (count.min(10), count.min(10)),
            "{line}"
        );
        counts.push(count);
    }
    counts.sort_unstable();
    let expected: Vec<usize> = (0..16).filter(|number| *number != 2).collect();
    assert_eq!(counts, expected);
}

async fn a_broken_campaign_spoils_no_other(app: &mut TestApp) {
    let _file = misbehave(app).await;
    app.survey(&json!({"mode": "trap"})).await;
    app.survey(&json!({"mode": "fine"})).await;
    let ada = app.session("ada").await;
    let events: Vec<Value> = (0..3)
        .map(|_| app.event(&ada, "paid", &json!({"amount": 20})))
        .collect();

    app.ingest(&ada, &events).await.ok();

    let (fired, reasons) = outcome(app, &ada).await;
    assert_eq!((fired, reasons.len()), (3, 3));
}

async fn every_way_to_fail_has_its_reason(app: &mut TestApp) {
    let _file = misbehave(app).await;
    for (mode, reason) in [
        ("loop", "deadline"),
        ("memory", "memory"),
        ("huge_output", "output_too_large"),
        ("refuse", "refused"),
        ("recursion", "trap"),
        ("host_call_flood", "trap"),
        ("state_flood", "trap"),
    ] {
        let survey = app.survey(&json!({"mode": mode})).await;
        let who = app.session(mode).await;
        let event = app.event(&who, mode, &json!({"amount": 20}));
        app.ingest(&who, &[event]).await.ok();

        app.settle().await;
        let path = app.path(&format!("/dead-letters?eventName={mode}"));
        let page = app.get(&path, &app.viewer()).await.ok();
        assert_eq!(page["items"][0]["reason"], reason, "{mode}");
        let path = app.path(&format!("/surveys/{survey}"));
        app.patch(&path, &app.editor(), &json!({"status": "paused"}))
            .await
            .ok();
    }
}

async fn a_configuration_over_which_a_plugin_breaks_down_is_refused_with_its_words(
    app: &mut TestApp,
) {
    let _file = install(app, &versioned(1, 999_999)).await;
    let segment = json!({"name": "buyers", "audience": {}});
    let conditions = json!({"audience": {}});
    for (path, body) in [
        ("/surveys", survey_body()),
        ("/segments", segment),
        ("/segments/preview", conditions),
    ] {
        let answer = app.post(&app.path(path), &app.editor(), &body).await;
        let problem = answer.refused(422, "validation_failed");
        let error = &problem["errors"][0];
        assert_eq!(error["code"], "check_config_failed", "{path}");
        let detail = text(error, "detail");
        assert!(detail.contains("the version that breaks down"), "{detail}");
    }
}

async fn a_refusal_without_a_reason_is_a_refusal(app: &mut TestApp) {
    deploy(app, 1, 1).await;
    set_slot(app, &name(1)).await.ok();
    let trigger = json!({"eventName": "a", "mode": "many_problems:0"});
    let survey = app.survey(&trigger).await;
    upload(app, test_guests::MISBEHAVING.to_vec())
        .await
        .data(201);
    let activated = async |slot: bool| {
        let parts = json!({"version": "1.0.0", "slot": slot});
        activate_at(app, &app.path(""), &app.admin(), "misbehaving", parts).await
    };
    let refused = activated(true).await;
    let problem = refused.refused(422, "plugin_rejected");
    let error = &problem["errors"][0];
    assert_eq!(error["code"], "refused", "{problem}");
    assert_eq!(error["pointer"], format!("/surveys/{survey}"));

    activated(false).await.ok();
    let mut body = survey_body();
    let config = json!({"mode": "many_problems:0"});
    body["trigger"] = json!({"kind": "plugin", "plugin": "misbehaving", "config": config});
    let answer = app.post(&app.path("/surveys"), &app.editor(), &body).await;
    answer.refused(422, "validation_failed");
    assert_eq!(answer.pointers(), ["/trigger/config"]);
}
