//! What endpoints hear of plugins: roll-backs, versions that fail, dead letters (contract 10, 12).

use nudge_campaigns::webhooks::EventType;
use serde_json::{Value, json};
use tests::{TestApp, on_both_backends};

use crate::guests::{activate, deploy, name, trigger, upload, version, versioned};
use crate::plugin_candidates::{from, get, send, until};
use crate::receiver::Receiver;

on_both_backends!(
    a_roll_back_is_told_and_shown,
    a_version_that_fails_for_long_is_told_once,
    a_dead_letter_is_told_with_the_plugins_words,
    endpoints_hear_of_plugins_only_where_they_ask,
);

async fn a_roll_back_is_told_and_shown(app: &mut TestApp) {
    let receiver = Receiver::start().await;
    receiver
        .subscribe(app, "/", &[EventType::PluginRolledBack])
        .await;
    deploy(app, 1, 1).await;
    app.survey(&trigger(1, json!({"events": ["a"], "traps": from(2)})))
        .await;
    deploy(app, 1, 2).await;
    let ada = app.session("ada").await;
    send(app, &ada, 20, "a", true).await;
    let shown = until(app, 1, |plugin| plugin["activeVersion"] == version(1)).await;

    let detail = get(app, &format!("/plugins/{}", name(1))).await;
    assert!(shown["activeVersion"].is_string());
    let last = &detail["lastRollback"];
    assert_eq!(last["version"], json!(version(2)));
    assert_eq!(
        (&last["role"], &last["automatic"]),
        (&json!("active"), &json!(true))
    );
    assert_eq!(
        (&last["calls"], &last["failures"]),
        (&json!(20), &json!(20))
    );
    assert!(
        last["reason"]
            .as_str()
            .unwrap()
            .contains("20 of 20 calls failed"),
        "{last}"
    );

    let told = receiver.wait(app, "/", 1).await.remove(0);
    assert_eq!(told.header("x-service-event"), "plugin.rolled_back");
    let body = told.json();
    assert_eq!(body["event"], "plugin.rolled_back");
    let data = &body["data"];
    assert_eq!(
        (&data["plugin"], &data["kind"]),
        (&json!(name(1)), &json!("trigger"))
    );
    for key in [
        "version",
        "role",
        "activeVersion",
        "automatic",
        "reason",
        "failures",
    ] {
        assert_eq!(data[key], last[key], "{key}");
    }
    assert_eq!(data["rolledBackAt"], last["at"]);

    // One that somebody asks for is told too.
    activate(app, 1, json!({"version": version(2)})).await.ok();
    let path = app.path(&format!("/plugins/{}/rollback", name(1)));
    app.post(&path, &app.admin(), &json!({})).await.ok();
    let told = receiver.wait(app, "/", 2).await.remove(1).json();
    assert_eq!(told["data"]["automatic"], false);
    assert_eq!(told["data"]["activeVersion"], json!(version(1)));
}

async fn a_version_that_fails_for_long_is_told_once(app: &mut TestApp) {
    let receiver = Receiver::start().await;
    deploy(app, 1, 1).await;
    app.survey(&trigger(1, json!({"events": ["a"], "traps": from(1)})))
        .await;
    app.advance(600);
    receiver
        .subscribe(app, "/", &[EventType::PluginDegraded])
        .await;
    let ada = app.session("ada").await;
    send(app, &ada, 25, "a", true).await;
    let told = receiver.wait(app, "/", 1).await.remove(0).json();
    assert_eq!(told["event"], "plugin.degraded");
    let data = &told["data"];
    assert_eq!(
        (&data["plugin"], &data["version"]),
        (&json!(name(1)), &json!(version(1)))
    );
    assert!(data["failures"].as_u64().unwrap() >= 20, "{data}");
    let shown = get(app, &format!("/plugins/{}", name(1))).await;
    assert!(shown.get("lastRollback").is_none(), "{shown}");

    send(app, &ada, 5, "a", true).await;
    // At most one in each hour, of which one may end here.
    let rows: Vec<(i64,)> = app.rows("SELECT count(*) FROM webhook_messages").await;
    assert!((1..=2).contains(&rows[0].0), "{rows:?}");
}

async fn a_dead_letter_is_told_with_the_plugins_words(app: &mut TestApp) {
    let receiver = Receiver::start().await;
    receiver
        .subscribe(app, "/", &[EventType::DeadLetterCreated])
        .await;
    deploy(app, 1, 1).await;
    let survey = app
        .survey(&trigger(1, json!({"events": ["a"], "traps": from(1)})))
        .await;
    let ada = app.session("ada").await;
    let sent = send(app, &ada, 1, "a", true).await;
    app.settle().await;

    let page = get(app, "/dead-letters").await;
    let letter = &page["items"][0];
    let detail = letter["detail"].as_str().unwrap();
    assert!(
        detail.contains("this version can't stand the event"),
        "{detail}"
    );
    assert!(
        detail.contains("lib.rs"),
        "the place of the panic: {detail}"
    );

    let told = receiver.wait(app, "/", 1).await.remove(0).json();
    let data = &told["data"];
    assert_eq!(told["event"], "dead_letter.created");
    assert_eq!(data["deadLetterId"], letter["id"]);
    assert_eq!(data["eventId"], sent[0]["eventId"]);
    assert_eq!(data["subjectId"], json!(ada.subject_id));
    assert_eq!(data["campaignId"], json!(survey));
    assert_eq!(
        (&data["stage"], &data["reason"]),
        (&json!("trigger"), &json!("trap"))
    );
    assert_eq!(data["detail"], letter["detail"]);
    assert_eq!(
        data["plugin"],
        json!({"name": name(1), "version": version(1)})
    );

    // A replay that fails is no new letter; an event that breaks its definition is.
    let path = format!("/dead-letters/{}/replay", letter["id"].as_str().unwrap());
    let replayed = app
        .post(&app.path(&path), &app.editor(), &json!({}))
        .await
        .ok();
    assert_eq!(replayed["status"], "still_failing");
    let properties = json!([{"name": "sum", "type": "number", "required": true}]);
    app.define("paid", &json!({"properties": properties})).await;
    let event = app.event(&ada, "paid", &json!({}));
    app.ingest(&ada, &[event]).await.ok();
    let told = receiver.wait(app, "/", 2).await.remove(1).json();
    let data = &told["data"];
    assert_eq!(
        (&data["stage"], &data["eventName"]),
        (&json!("validation"), &json!("paid"))
    );
    assert_eq!(data["reason"], "missing_required_property");
}

async fn endpoints_hear_of_plugins_only_where_they_ask(app: &mut TestApp) {
    let receiver = Receiver::start().await;
    let made = receiver.subscribe(app, "/", &[EventType::Sent]).await;
    assert_eq!(made["eventTypes"], json!(["sent"]));
    deploy(app, 1, 1).await;
    upload(app, versioned(1, 2)).await.data(201);
    activate(app, 1, json!({"version": version(2)})).await.ok();
    let path = app.path(&format!("/plugins/{}/rollback", name(1)));
    app.post(&path, &app.admin(), &json!({})).await.ok();
    let rows: Vec<(i64,)> = app.rows("SELECT count(*) FROM webhook_messages").await;
    assert_eq!(rows, [(0,)]);
    let path = app.path("/push/webhooks");
    let body =
        json!({"url": receiver.url("/"), "eventTypes": ["plugin.rolled_back", "plugin.lost"]});
    let answer = app.post(&path, &app.admin(), &body).await;
    let problem: Value = answer.refused(422, "validation_failed");
    assert_eq!(answer.pointers(), ["/eventTypes/1"]);
    let detail = problem["errors"][0]["detail"].as_str().unwrap();
    assert!(detail.contains("dead_letter.created"), "{detail}");
}
