//! Settings: read, changed, checked, and in force at once (contract 13).

use serde_json::{Value, json};
use tests::{Answer, TestApp, on_both_backends};

on_both_backends!(
    the_defaults_are_those_of_the_contract,
    a_patch_changes_what_it_names,
    what_is_no_setting_is_refused_where_it_is_wrong,
    a_change_expects_the_version_that_it_names,
    ingest_windows_hold_from_the_answer_on,
    consent_and_lifecycle_events_reach_sdks,
);

async fn patch(app: &TestApp, body: Value) -> Answer {
    app.patch(&app.path("/settings"), &app.admin(), &body).await
}

async fn the_defaults_are_those_of_the_contract(app: &mut TestApp) {
    let settings = app.get(&app.path("/settings"), &app.admin()).await.ok();
    let expected = json!({
        "version": 1,
        "ingest": {
            "pastWindowSeconds": 30 * 24 * 3600, "futureWindowSeconds": 24 * 3600,
            "allowUnverifiedServerEvents": false,
        },
        "lifecycleEvents": true,
        "consent": {"required": false},
        "privacy": {"denyKeys": []},
        "frequency": {"minSecondsBetweenPresentations": 0},
        "plugins": {"maxFailureRate": 0.5, "validationFailure": "closed"},
        "allowedOrigins": ["*"],
        "retention": {"deadLettersDays": 30},
    });
    assert_eq!(settings, expected);
}

async fn a_patch_changes_what_it_names(app: &mut TestApp) {
    let everything = json!({
        "ingest": {"pastWindowSeconds": 60, "futureWindowSeconds": 0, "allowUnverifiedServerEvents": true},
        "lifecycleEvents": false,
        "consent": {"required": true},
        "privacy": {"allowKeys": ["plan"], "denyKeys": ["password"]},
        "frequency": {
            "surveys": {"max": 1, "windowDays": 7}, "push": {"max": 3, "windowDays": 1},
            "minSecondsBetweenPresentations": 60,
        },
        "quietHours": {"from": "22:00", "to": "07:00", "onQuiet": "defer"},
        "plugins": {"maxFailureRate": 0.25, "validationFailure": "open"},
        "allowedOrigins": ["https://shop.example"],
        "retention": {"eventsDays": 90, "deadLettersDays": 7},
    });
    let mut changed = patch(app, everything.clone()).await.ok();
    assert_eq!(changed["version"], 2);
    changed.as_object_mut().unwrap().remove("version");
    assert_eq!(changed, everything);

    let fewer = json!({"quietHours": null, "privacy": {"allowKeys": null}, "allowedOrigins": null});
    let changed = patch(app, fewer).await.ok();
    assert_eq!(changed["privacy"], json!({"denyKeys": ["password"]}));
    assert_eq!(changed["allowedOrigins"], json!(["*"]));
    assert!(changed.get("quietHours").is_none());
    assert_eq!(changed["ingest"], everything["ingest"]);
    app.restart().await;
    assert_eq!(
        app.get(&app.path("/settings"), &app.admin()).await.ok(),
        changed
    );
    let entries = app.audited("settings.updated").await;
    assert_eq!(entries.len(), 2);
    assert_eq!(entries[0]["detail"]["patch"]["quietHours"], Value::Null);
}

async fn what_is_no_setting_is_refused_where_it_is_wrong(app: &mut TestApp) {
    for (body, pointer, code) in [
        (json!({"retain": {}}), "/retain", "unknown_key"),
        (json!({"retain": null}), "/retain", "unknown_key"),
        (json!({"version": 1}), "/version", "unknown_key"),
        (
            json!({"ingest": {"window": 1}}),
            "/ingest/window",
            "unknown_key",
        ),
        (
            json!({"ingest": {"pastWindowSeconds": 0}}),
            "/ingest/pastWindowSeconds",
            "out_of_range",
        ),
        (
            json!({"ingest": {"pastWindowSeconds": "1"}}),
            "/ingest/pastWindowSeconds",
            "invalid",
        ),
        (
            json!({"plugins": {"maxFailureRate": 1.5}}),
            "/plugins/maxFailureRate",
            "out_of_range",
        ),
        (
            json!({"plugins": {"validationFailure": "ajar"}}),
            "/plugins/validationFailure",
            "invalid",
        ),
        (
            json!({"allowedOrigins": ["https://shop.example/"]}),
            "/allowedOrigins/0",
            "invalid",
        ),
        (
            json!({"allowedOrigins": ["https://shop.example", "https://shop.example:443"]}),
            "/allowedOrigins/1",
            "invalid",
        ),
        (
            json!({"allowedOrigins": vec!["*"; 101]}),
            "/allowedOrigins",
            "out_of_range",
        ),
        (
            json!({"privacy": {"denyKeys": [""]}}),
            "/privacy/denyKeys/0",
            "invalid",
        ),
        (
            json!({"retention": {"eventsDays": 0}}),
            "/retention/eventsDays",
            "out_of_range",
        ),
        (
            json!({"quietHours": {"from": "25:00", "to": "07:00", "onQuiet": "drop"}}),
            "/quietHours/from",
            "invalid",
        ),
        (
            json!({"frequency": {"push": {"max": 1001, "windowDays": 1}}}),
            "/frequency/push/max",
            "out_of_range",
        ),
    ] {
        let answer = patch(app, body.clone()).await;
        let problem = answer.refused(422, "validation_failed");
        assert_eq!(problem["errors"][0]["pointer"], pointer, "{body}");
        assert_eq!(problem["errors"][0]["code"], code, "{body}");
    }
    assert_eq!(
        app.get(&app.path("/settings"), &app.admin()).await.ok()["version"],
        1
    );
    assert_eq!(app.audited("settings.updated").await.len(), 0);
}

async fn a_change_expects_the_version_that_it_names(app: &mut TestApp) {
    let change = async |version: &str| {
        let credential = app.admin().and("if-match", version);
        app.patch(
            &app.path("/settings"),
            &credential,
            &json!({"lifecycleEvents": false}),
        )
        .await
    };
    assert_eq!(change("\"1\"").await.ok()["version"], 2);
    change("\"1\"").await.refused(412, "version_mismatch");
    // Other changes of the app are not the settings'.
    app.define("purchase", &json!({})).await;
    assert_eq!(change("\"2\"").await.ok()["version"], 3);
}

async fn ingest_windows_hold_from_the_answer_on(app: &mut TestApp) {
    let ada = app.session("ada").await;
    let mut old = app.event(&ada, "opened", &json!({}));
    old["timestamp"] = json!(app.time(-3600));
    patch(app, json!({"ingest": {"pastWindowSeconds": 60}}))
        .await
        .ok();
    let refused = app.ingest(&ada, &[old.clone()]).await.ok();
    assert_eq!(refused["errors"][0]["code"], "timestamp_out_of_window");
    patch(app, json!({"ingest": {"pastWindowSeconds": null}}))
        .await
        .ok();
    assert_eq!(app.ingest(&ada, &[old]).await.ok()["accepted"], 1);

    let server_side = json!({"userId": "ada", "events": [{"name": "x", "timestamp": app.time(0)}]});
    let send = async || app.post("/v1/sdk/ingest", &app.sdk(), &server_side).await;
    send().await.refused(401, "subject_token_required");
    patch(
        app,
        json!({"ingest": {"allowUnverifiedServerEvents": true}}),
    )
    .await
    .ok();
    assert_eq!(send().await.ok()["accepted"], 1);
}

async fn consent_and_lifecycle_events_reach_sdks(app: &mut TestApp) {
    patch(
        app,
        json!({"consent": {"required": true}, "lifecycleEvents": false}),
    )
    .await
    .ok();
    let body = json!({"anonymousId": "ada"});
    let session = app.post("/v1/sdk/session", &app.sdk(), &body).await.ok();
    assert_eq!(session["sdkConfig"]["lifecycleEvents"], false);
    let ada = app.session("ada").await;
    let event = app.event(&ada, "opened", &json!({}));
    let refused = app.ingest(&ada, &[event]).await.ok();
    assert_eq!(refused["errors"][0]["code"], "consent_missing");
}
