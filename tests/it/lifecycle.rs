//! Lifecycle events, the app's toggle, and where sessions begin (specification 6.1, contract 8).

use serde_json::{Value, json};
use tests::session::{event_id, text};
use tests::{Session, TestApp, on_both_backends};

on_both_backends!(
    while_the_toggle_is_off_they_are_taken_and_ignored,
    without_consent_they_are_refused_like_others,
    a_session_fires_once_whoever_says_that_it_began,
    the_window_begins_a_session_without_the_sdk,
    an_sdk_that_says_so_in_the_same_request_fires_once,
    what_comes_late_fires_no_session,
    the_end_of_a_session_begins_none,
    a_session_fires_once_across_a_restart,
    what_sdks_call_their_sessions_tells_them_apart,
    a_beginning_that_the_plugin_failed_on_can_be_replayed,
    nobody_can_send_the_servers_own_name,
);

const NAMES: [&str; 4] = [
    "app_installed",
    "app_opened",
    "session_started",
    "session_ended",
];

async fn while_the_toggle_is_off_they_are_taken_and_ignored(app: &mut TestApp) {
    app.survey(&json!({"kind": "event", "eventName": "app_opened"}))
        .await;
    app.survey(&json!({"kind": "session_start"})).await;
    app.define(
        "app_opened",
        &json!({"properties": [{"name": "x", "type": "string", "required": true}]}),
    )
    .await;
    app.patch(
        &app.path("/settings"),
        &app.admin(),
        &json!({"lifecycleEvents": false}),
    )
    .await
    .ok();
    let ada = app.session("ada").await;
    let events: Vec<Value> = NAMES.map(|name| app.event(&ada, name, &json!({}))).into();
    let data = app.ingest_and_ask(&ada, &events).await;
    assert_eq!(
        (&data["accepted"], &data["rejected"], &data["instructions"]),
        (&json!(4), &json!(0), &json!([]))
    );
    app.settle().await;
    for name in NAMES {
        assert_eq!(app.stored(name).await, 0, "{name}");
    }
    assert_eq!(app.offered(&ada).await, json!([]));
    let letters = app
        .get(&app.path("/dead-letters"), &app.viewer())
        .await
        .ok();
    assert_eq!(letters["items"], json!([]));
    let stats = app.get(&app.path("/stats"), &app.viewer()).await.ok();
    assert_eq!(stats["totals"]["ignored"], 4);
    assert_eq!(stats["totals"]["accepted"], 0);

    // Beside others, and what is no event at all is still rejected.
    let mut mixed = vec![
        app.event(&ada, "app_opened", &json!({})),
        app.event(&ada, "purchase", &json!({})),
        app.event(&ada, "session_ended", &json!({})),
    ];
    mixed[2]["timestamp"] = json!("never");
    let data = app.ingest_and_ask(&ada, &mixed).await;
    assert_eq!(
        (&data["accepted"], &data["rejected"]),
        (&json!(2), &json!(1))
    );
    assert_eq!(
        data["instructions"].as_array().unwrap().len(),
        1,
        "the purchase begins a session"
    );

    app.set(|settings| settings.lifecycle_events = true).await;
    let data = app
        .ingest(&ada, &[app.event(&ada, "app_installed", &json!({}))])
        .await
        .ok();
    assert_eq!(data["accepted"], 1);
    assert_eq!(app.stored("app_installed").await, 1);
}

async fn without_consent_they_are_refused_like_others(app: &mut TestApp) {
    app.set(|settings| {
        settings.lifecycle_events = false;
        settings.consent.required = true;
    })
    .await;
    let ada = app.session("ada").await;
    let data = app
        .ingest(&ada, &[app.event(&ada, "app_opened", &json!({}))])
        .await
        .ok();
    assert_eq!(data["errors"][0]["code"], "consent_missing");
    assert_eq!(data["accepted"], 0);
}

async fn sessions(app: &TestApp) -> Session {
    app.survey(&json!({"kind": "session_start"})).await;
    app.session("ada").await
}

async fn a_session_fires_once_whoever_says_that_it_began(app: &mut TestApp) {
    let ada = sessions(app).await;
    let names = [
        ("session_started", 1),
        ("session_started", 0),
        ("app_opened", 0),
    ];
    for _ in 0..2 {
        for (name, expected) in names {
            assert_eq!(app.fires(&ada, name, &json!({})).await, expected, "{name}");
        }
        app.advance(31 * 60);
    }
}

async fn the_window_begins_a_session_without_the_sdk(app: &mut TestApp) {
    let ada = sessions(app).await;
    let event = app.event(&ada, "purchase", &json!({}));
    let data = app.ingest_and_ask(&ada, std::slice::from_ref(&event)).await;
    let trigger = &data["instructions"][0]["trigger"];
    assert_eq!(
        (&trigger["eventId"], &trigger["name"]),
        (&event["eventId"], &json!("purchase"))
    );
    assert_eq!(app.fires(&ada, "purchase", &json!({})).await, 0);
    assert_eq!(app.fires(&ada, "session_started", &json!({})).await, 0);
    app.advance(29 * 60);
    assert_eq!(app.fires(&ada, "purchase", &json!({})).await, 0);
    app.advance(30 * 60 + 1);
    assert_eq!(app.fires(&ada, "purchase", &json!({})).await, 1);
}

async fn an_sdk_that_says_so_in_the_same_request_fires_once(app: &mut TestApp) {
    let ada = sessions(app).await;
    let events: Vec<Value> = ["app_installed", "app_opened", "session_started", "purchase"]
        .map(|name| app.event(&ada, name, &json!({})))
        .into();
    let data = app.ingest_and_ask(&ada, &events).await;
    assert_eq!(data["instructions"].as_array().unwrap().len(), 1);
    assert_eq!(
        text(&data["instructions"][0]["trigger"], "eventId"),
        event_id(&events[0])
    );
}

async fn what_comes_late_fires_no_session(app: &mut TestApp) {
    let ada = sessions(app).await;
    assert_eq!(app.fires(&ada, "session_started", &json!({})).await, 1);
    app.advance(10 * 60);
    for name in ["session_started", "purchase"] {
        let mut late = app.event(&ada, name, &json!({}));
        late["timestamp"] = json!(app.time(-24 * 3600));
        let data = app.ingest_and_ask(&ada, &[late]).await;
        assert_eq!(data["accepted"], 1);
        assert_eq!(data["instructions"], json!([]), "{name}");
    }
}

async fn the_end_of_a_session_begins_none(app: &mut TestApp) {
    let ada = sessions(app).await;
    assert_eq!(app.fires(&ada, "session_started", &json!({})).await, 1);
    app.advance(31 * 60);
    assert_eq!(app.fires(&ada, "session_ended", &json!({})).await, 0);
    app.advance(60);
    assert_eq!(
        app.fires(&ada, "session_started", &json!({})).await,
        1,
        "nobody was active in between"
    );
}

async fn a_session_fires_once_across_a_restart(app: &mut TestApp) {
    let ada = sessions(app).await;
    assert_eq!(app.fires(&ada, "purchase", &json!({})).await, 1);
    app.restart().await;
    assert_eq!(app.fires(&ada, "session_started", &json!({})).await, 0);
    assert_eq!(app.offered(&ada).await.as_array().unwrap().len(), 1);
    let decisions = app.get(&app.path("/decisions"), &app.viewer()).await.ok();
    for decision in decisions["items"].as_array().unwrap() {
        let path = app.path(&format!(
            "/decisions/{}/rerun",
            text(decision, "decisionId")
        ));
        let rerun = app.post(&path, &app.editor(), &json!({})).await.ok();
        assert_eq!(rerun["same"], true, "{rerun}");
    }
}

async fn what_sdks_call_their_sessions_tells_them_apart(app: &mut TestApp) {
    let ada = sessions(app).await;
    let once = json!({"mode": "once_per_session"});
    app.survey(&json!({"kind": "event", "eventName": "bought", "occurrence": once}))
        .await;
    let fires = async |app: &TestApp, name: Option<&str>| {
        let event = app.event(&ada, "bought", &json!({}));
        let mut body = ada.batch(std::slice::from_ref(&event));
        body["delivery"] = json!({"eventIds": [event["eventId"]]});
        if let Some(name) = name {
            body["context"]["sessionId"] = json!(name);
        }
        app.advance(1);
        let data = app.post_batch(&ada, &body).await.ok();
        data["instructions"].as_array().unwrap().len()
    };
    // Each of two devices has a session of its own; what says nothing belongs to the latest.
    for (name, expected) in [
        (Some("phone"), 2),
        (Some("phone"), 0),
        (Some("browser"), 2),
        (Some("phone"), 0),
        (None, 0),
        (Some("browser"), 0),
    ] {
        assert_eq!(fires(app, name).await, expected, "{name:?}");
    }
    app.restart().await;
    for name in ["phone", "browser"] {
        assert_eq!(fires(app, Some(name)).await, 0, "{name}");
    }
    // The window ends every session, whatever it is called.
    app.advance(31 * 60);
    assert_eq!(fires(app, Some("phone")).await, 2);
    assert_eq!(fires(app, Some("phone")).await, 0);
}

async fn a_beginning_that_the_plugin_failed_on_can_be_replayed(app: &mut TestApp) {
    let filters = json!({"all": [{"property": "text", "type": "string", "operator": "matches", "value": "x{0,300}y"}]});
    app.survey(&json!({"kind": "session_start", "filters": filters}))
        .await;
    let ada = app.session("ada").await;
    let patience = std::mem::replace(&mut app.config.plugins.deadline_ms, 1);
    app.restart().await;
    let slow = json!({"text": format!("{}y", "x".repeat(4_000))});
    let event = app.event(&ada, "purchase", &slow);
    app.ingest(&ada, std::slice::from_ref(&event)).await.ok();
    app.settle().await;
    let letters = app
        .get(&app.path("/dead-letters"), &app.viewer())
        .await
        .ok();
    let letter = &letters["items"][0];
    assert_eq!(
        (&letter["stage"], &letter["eventId"]),
        (&json!("trigger"), &event["eventId"])
    );
    let path = app.path(&format!("/dead-letters/{}/replay", text(letter, "id")));
    let replayed = app.post(&path, &app.editor(), &json!({})).await.ok();
    assert_eq!(
        (&replayed["status"], &replayed["reason"]),
        (&json!("still_failing"), &json!("deadline"))
    );

    app.config.plugins.deadline_ms = patience;
    app.restart().await;
    let replayed = app.post(&path, &app.editor(), &json!({})).await.ok();
    assert_eq!(replayed["status"], "replayed");
    let offered = app.offered(&ada).await;
    assert_eq!(offered.as_array().unwrap().len(), 1);
    assert_eq!(offered[0]["trigger"]["eventId"], event["eventId"]);
    assert_eq!(app.fires(&ada, "session_started", &slow).await, 0);
}

async fn nobody_can_send_the_servers_own_name(app: &mut TestApp) {
    let ada = sessions(app).await;
    let data = app
        .ingest(&ada, &[app.event(&ada, "$session_began", &json!({}))])
        .await
        .ok();
    assert_eq!(data["errors"][0]["code"], "invalid_name");
    let body = json!({"anonymousId": "ada"});
    let session = app.post("/v1/sdk/session", &app.sdk(), &body).await.ok();
    assert_eq!(
        session["sdkConfig"]["immediateTriggers"],
        json!(["session_started"])
    );
}
