//! Campaigns that changes of properties trigger (contract 8, `property_changed`).

use serde_json::{Value, json};
use tests::session::text;
use tests::{Credential, Session, TestApp, on_both_backends};

on_both_backends!(
    a_change_fires_once,
    from_and_to_narrow_a_change,
    a_missing_value_narrows_a_change_in_patches_too,
    changes_are_in_no_timeline_and_no_count,
    changes_hold_no_events_up,
    a_change_that_was_not_processed_is_after_a_restart,
    nobody_can_send_the_servers_own_event,
);

async fn change(app: &TestApp, session: &Session, update: Value) -> Value {
    let mut body = json!({"anonymousId": session.anonymous_id, "mutationId": app.id()});
    body.as_object_mut()
        .unwrap()
        .extend(update.as_object().unwrap().clone());
    let path = "/v1/sdk/user-properties";
    app.post(path, &session.credential(), &body).await.ok()
}

/// What somebody has changed is processed together with their events, whichever alias it goes by.
async fn changes_hold_no_events_up(app: &mut TestApp) {
    app.survey(&json!({"kind": "property_changed", "key": "plan", "to": "gold"}))
        .await;
    app.survey(&json!({"kind": "event", "eventName": "bought", "occurrence": {"mode": "every"}}))
        .await;
    let ada = app.session("ada").await;
    for round in 0..8 {
        for number in 0..10 {
            change(
                app,
                &ada,
                json!({"set": {"plan": format!("{round}-{number}")}}),
            )
            .await;
            app.ingest(&ada, &[app.event(&ada, "seen", &json!({}))])
                .await
                .ok();
        }
        let event = app.event(&ada, "bought", &json!({}));
        let body = json!({"context": {"anonymousId": "ada"}, "events": [event],
                          "delivery": {"eventIds": [event["eventId"]]}});
        let path = "/v1/sdk/ingest";
        let data = app.post(path, &ada.credential(), &body).await.ok();
        let fired = data["instructions"].as_array().map(Vec::len);
        assert_eq!(fired, Some(1), "{data}");
    }
}

async fn fired(app: &TestApp) -> i64 {
    app.settle().await;
    let rows: Vec<(i64,)> = app.rows("SELECT count(*) FROM instructions").await;
    rows[0].0
}

async fn a_change_fires_once(app: &mut TestApp) {
    app.survey(&json!({"kind": "property_changed", "key": "plan"}))
        .await;
    let ada = app.session("ada").await;
    let mutation = json!({"mutationId": app.id(), "set": {"plan": "pro", "other": 1}});

    assert_eq!(change(app, &ada, mutation.clone()).await["applied"], true);
    assert_eq!(fired(app).await, 1);
    assert_eq!(change(app, &ada, mutation).await["applied"], false);
    // What is set to the value that it has does not change.
    change(app, &ada, json!({"set": {"plan": "pro", "other": 2}})).await;
    assert_eq!(fired(app).await, 1);
    change(app, &ada, json!({"unset": ["plan"]})).await;
    assert_eq!(fired(app).await, 2);
    change(app, &ada, json!({"unset": ["plan"]})).await;
    assert_eq!(fired(app).await, 2);

    let token = Credential::bearer(&app.access.api_token);
    let update = json!({"mutationId": app.id(), "set": {"plan": null}});
    let body = json!({"subject": {"anonymousId": "ada"}, "update": update});
    app.patch(&app.path("/users/properties"), &token, &body)
        .await
        .ok();
    assert_eq!(fired(app).await, 3);
    let offered = app.offered(&ada).await;
    assert_eq!(offered[0]["trigger"]["name"], "$property_changed");
    app.restart().await;
    assert_eq!(fired(app).await, 3);
}

async fn from_and_to_narrow_a_change(app: &mut TestApp) {
    app.survey(&json!({"kind": "property_changed", "key": "plan", "from": "free", "to": "pro"}))
        .await;
    let ada = app.session("ada").await;
    for (plan, expected) in [("pro", 0), ("free", 0), ("pro", 1), ("team", 1), ("pro", 1)] {
        change(app, &ada, json!({"set": {"plan": plan}})).await;
        assert_eq!(fired(app).await, expected, "{plan}");
    }
}

async fn a_missing_value_narrows_a_change_in_patches_too(app: &mut TestApp) {
    let spelled = json!({"kind": "property_changed", "key": "plan", "from": "free", "fromMissing": true, "toMissing": false});
    let survey = app.survey(&spelled).await;
    let path = app.path(&format!("/surveys/{survey}"));
    let made = app.get(&path, &app.editor()).await.ok();
    let stored = json!({"kind": "property_changed", "key": "plan", "from": null});
    assert_eq!(made["trigger"], stored);
    let ada = app.session("ada").await;
    for (plan, expected) in [("free", 1), ("pro", 1)] {
        change(app, &ada, json!({"set": {"plan": plan}})).await;
        assert_eq!(fired(app).await, expected, "{plan}");
    }

    let cases = [
        (
            json!({"from": "pro", "to": "free"}),
            json!({"from": "pro", "to": "free"}),
        ),
        (
            json!({"toMissing": true}),
            json!({"from": "pro", "to": null}),
        ),
        (
            json!({"fromMissing": false, "toMissing": null}),
            json!({"from": "pro", "to": null}),
        ),
        (json!({"from": null}), json!({"to": null})),
    ];
    for (patch, mut stored) in cases {
        stored["kind"] = json!("property_changed");
        stored["key"] = json!("plan");
        let patched = app
            .patch(&path, &app.editor(), &json!({"trigger": patch}))
            .await
            .ok();
        assert_eq!(patched["trigger"], stored, "{patch}");
        let kept = app.get(&path, &app.editor()).await.ok();
        assert_eq!(kept["trigger"], stored, "{patch}");
    }
    change(app, &ada, json!({"set": {"plan": "free"}})).await;
    assert_eq!(fired(app).await, 1);
    change(app, &ada, json!({"unset": ["plan"]})).await;
    assert_eq!(fired(app).await, 2);

    let campaign = json!({"name": "n", "trigger": {"kind": "property_changed", "key": "plan", "toMissing": true}});
    for kind in ["push", "in_app"] {
        let mut campaign = campaign.clone();
        campaign["type"] = json!(kind);
        let made = app
            .post(&app.path("/campaigns"), &app.editor(), &campaign)
            .await
            .data(201);
        let stored = json!({"kind": "property_changed", "key": "plan", "to": null});
        assert_eq!(made["trigger"], stored, "{kind}");
    }
}

async fn changes_are_in_no_timeline_and_no_count(app: &mut TestApp) {
    app.survey(&json!({"kind": "property_changed", "key": "plan"}))
        .await;
    let ada = app.session("ada").await;
    app.ingest(&ada, &[app.event(&ada, "opened", &json!({}))])
        .await
        .ok();
    app.settle().await;
    let before = app.get(&app.path("/users/ada"), &app.viewer()).await.ok();
    app.advance(3600);
    change(app, &ada, json!({"set": {"plan": "pro"}})).await;
    assert_eq!(fired(app).await, 1);

    let user = app.get(&app.path("/users/ada"), &app.viewer()).await.ok();
    assert_eq!(user["profile"]["eventCount"], 1);
    assert_eq!(
        user["profile"]["lastSeenAt"],
        before["profile"]["lastSeenAt"]
    );
    assert_eq!(user["profile"]["anonymousIds"], json!(["ada"]));
    let events = app
        .get(&app.path("/users/ada/events"), &app.viewer())
        .await
        .ok();
    let names: Vec<String> = events["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|event| text(event, "name"))
        .collect();
    assert_eq!(names, ["opened"]);
    let found = app
        .get(
            &app.path(&format!("/users?q={}", ada.subject_id)),
            &app.viewer(),
        )
        .await
        .ok();
    assert_eq!(found["total"], 1);
    let body = json!({"anonymousId": "ada"});
    let config = app.post("/v1/sdk/session", &app.sdk(), &body).await.ok();
    assert_eq!(config["sdkConfig"]["immediateTriggers"], json!([]));
}

async fn a_change_that_was_not_processed_is_after_a_restart(app: &mut TestApp) {
    app.survey(&json!({"kind": "property_changed", "key": "plan"}))
        .await;
    let ada = app.session("ada").await;
    change(app, &ada, json!({"set": {"plan": "pro"}})).await;
    assert_eq!(fired(app).await, 1);
    app.stop().await;
    app.resume().await;
    // As a process leaves it that dies between the update and the pipeline: events, a claim, no effects.
    let mut tx = app.services().db.write().await.unwrap();
    for text in [
        "DELETE FROM instructions",
        "UPDATE subjects SET instruction_count = 0",
        "INSERT INTO pending (id, app_id, alias_number, ordinal, node)
         SELECT seq / 512, app_id, alias_number, 0, NULL FROM events",
    ] {
        tx.sql(text).execute().await.unwrap();
    }
    tx.commit().await.unwrap();
    assert_eq!(fired(app).await, 1);
}

async fn nobody_can_send_the_servers_own_event(app: &mut TestApp) {
    app.survey(&json!({"kind": "property_changed", "key": "plan"}))
        .await;
    let ada = app.session("ada").await;
    let event = app.event(
        &ada,
        "$property_changed",
        &json!({"key": "plan", "to": "pro"}),
    );
    let data = app.ingest(&ada, &[event]).await.ok();
    assert_eq!(data["errors"][0]["code"], "invalid_name");
    let said = data["errors"][0]["message"].as_str().unwrap();
    assert!(
        said.contains("the server names its own events so"),
        "{said}"
    );
    let event = json!({"name": "$property_changed", "timestamp": app.time(0), "properties": {"key": "plan"}});
    let body = json!({"userId": "ada", "events": [event]});
    let data = app.post("/v1/sdk/ingest", &app.backend(), &body).await.ok();
    assert_eq!(
        (&data["accepted"], &data["rejected"]),
        (&json!(0), &json!(1))
    );
    assert_eq!(fired(app).await, 0);
}
