//! Events that customers' servers send (contract 3, server-side shape).

use nudge_apps::key::Kind;
use serde_json::{Value, json};
use tests::{Credential, TestApp, on_both_backends};

on_both_backends!(
    a_server_key_sends_events_of_a_user,
    a_write_key_alone_proves_nothing,
    a_key_needs_the_scope,
    two_different_keys_contradict_each_other,
    the_shape_has_no_delivery,
    a_user_id_has_1_to_256_characters,
    a_server_key_has_no_sdk_session,
    a_server_key_is_told_of_the_user_id,
);

fn batch(app: &TestApp, user_id: &Value) -> Value {
    json!({"userId": user_id, "events": [{"name": "paid", "timestamp": app.time(0), "properties": {"total": 1}}]})
}

async fn a_server_key_sends_events_of_a_user(app: &mut TestApp) {
    let body = batch(app, &json!("u-1"));
    for credential in [
        app.backend(),
        Credential::none().and("x-write-key", &app.access.server_key),
    ] {
        let data = app.post("/v1/sdk/ingest", &credential, &body).await.ok();
        assert_eq!(
            (&data["accepted"], &data["rejected"]),
            (&json!(1), &json!(0))
        );
        assert!(data.get("instructions").is_none());
    }
    let sources: Vec<(String,)> = app.rows("SELECT source FROM events").await;
    assert_eq!(sources, [("server".to_owned(),)]);

    let mut body = batch(app, &json!("u-1"));
    body["events"][0]["externalId"] = json!("u-2");
    let data = app.post("/v1/sdk/ingest", &app.backend(), &body).await.ok();
    assert_eq!(data["errors"][0]["code"], "external_id_mismatch");
}

async fn a_write_key_alone_proves_nothing(app: &mut TestApp) {
    let body = batch(app, &json!("u-1"));
    let header = Credential::none().and("x-write-key", &app.access.write_key);
    for credential in [app.sdk(), header] {
        let answer = app.post("/v1/sdk/ingest", &credential, &body).await;
        answer.refused(401, "subject_token_required");
    }
    let context = json!({"context": {"anonymousId": "ada"}, "events": body["events"]});
    let answer = app.post("/v1/sdk/ingest", &app.sdk(), &context).await;
    answer.refused(401, "subject_token_required");

    app.set(|settings| settings.ingest.allow_unverified_server_events = true)
        .await;
    let data = app.post("/v1/sdk/ingest", &app.sdk(), &body).await.ok();
    assert_eq!(data["accepted"], 1);
}

async fn a_key_needs_the_scope(app: &mut TestApp) {
    let body = batch(app, &json!("u-1"));
    let narrow = app.key(Kind::Server, &["push.transactional"]).await;
    for key in [&narrow, &app.access.api_token] {
        let answer = app
            .post("/v1/sdk/ingest", &Credential::bearer(key), &body)
            .await;
        answer.refused(403, "insufficient_scope");
    }
}

async fn two_different_keys_contradict_each_other(app: &mut TestApp) {
    let body = batch(app, &json!("u-1"));
    let both = app.backend().and("x-write-key", &app.access.write_key);
    app.post("/v1/sdk/ingest", &both, &body)
        .await
        .refused(400, "credential_conflict");
    let same = app.backend().and("x-write-key", &app.access.server_key);
    app.post("/v1/sdk/ingest", &same, &body).await.ok();
}

async fn the_shape_has_no_delivery(app: &mut TestApp) {
    let mut body = batch(app, &json!("u-1"));
    body["events"][0]["eventId"] = json!(app.id());
    body["delivery"] = json!({"eventIds": [body["events"][0]["eventId"]]});
    let answer = app.post("/v1/sdk/ingest", &app.backend(), &body).await;
    assert_eq!(answer.status, 422);
    assert_eq!(answer.pointers(), ["/delivery"]);
    assert_eq!(app.stored("paid").await, 0);
}

async fn a_user_id_has_1_to_256_characters(app: &mut TestApp) {
    let longest = batch(app, &json!("ä".repeat(256)));
    app.post("/v1/sdk/ingest", &app.backend(), &longest)
        .await
        .ok();
    for bad in [json!(""), json!("x".repeat(257)), json!("a\u{0}"), json!(7)] {
        let answer = app
            .post("/v1/sdk/ingest", &app.backend(), &batch(app, &bad))
            .await;
        answer.refused(422, "validation_failed");
    }
}

async fn a_server_key_has_no_sdk_session(app: &mut TestApp) {
    let body = json!({"anonymousId": "ada"});
    let answer = app.post("/v1/sdk/session", &app.backend(), &body).await;
    answer.refused(403, "insufficient_scope");
    let ada = app.session("ada").await;
    let event = app.event(&ada, "opened", &json!({}));
    let credential = app.backend().and("x-service-subject-token", &ada.token);
    let answer = app
        .post("/v1/sdk/ingest", &credential, &ada.batch(&[event]))
        .await;
    answer.refused(403, "insufficient_scope");
}

async fn a_server_key_is_told_of_the_user_id(app: &mut TestApp) {
    let mut body = batch(app, &json!("u-1"));
    body.as_object_mut().unwrap().remove("userId");
    let answer = app.post("/v1/sdk/ingest", &app.backend(), &body).await;
    answer.refused(422, "validation_failed");
    assert_eq!(answer.pointers(), ["/userId"]);

    body["context"] = json!({"anonymousId": "ada"});
    let answer = app.post("/v1/sdk/ingest", &app.backend(), &body).await;
    let problem = answer.refused(403, "insufficient_scope");
    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.contains("send `userId`"), "{detail}");
}
