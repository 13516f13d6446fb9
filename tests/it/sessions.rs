//! Sessions and subject tokens (contract 2).

use serde_json::json;
use tests::session::text;
use tests::{Credential, TestApp, on_both_backends};

on_both_backends!(
    a_session_says_who_it_is_of_and_how_to_behave,
    an_anonymous_id_keeps_its_subject,
    an_anonymous_id_has_1_to_128_characters,
    ending_a_session_revokes_its_token_at_once,
    tokens_expire_after_a_day,
    a_token_of_another_app_or_a_changed_one_is_no_token,
    identity_tokens_without_keys_to_verify_them_are_refused,
);

async fn a_session_says_who_it_is_of_and_how_to_behave(app: &mut TestApp) {
    app.survey(&json!({"kind": "event", "eventName": "purchase"}))
        .await;

    let body =
        json!({"anonymousId": "ada", "platform": "ios", "sdkVersion": "1.0.0", "unknown": true});
    let data = app.post("/v1/sdk/session", &app.sdk(), &body).await.ok();

    assert!(!text(&data, "subjectToken").is_empty());
    assert_eq!(data["subject"]["anonymousId"], "ada");
    assert_eq!(data["subject"]["identified"], false);
    assert!(data["subject"].get("externalId").is_none());
    assert!(data["subject"]["subjectId"].is_string());
    for key in ["expiresAt", "serverTime"] {
        let instant = text(&data, key);
        assert!(instant.len() == 24 && instant.ends_with('Z'), "{instant}");
    }
    let config = &data["sdkConfig"];
    assert_eq!(config["flushAt"], 100);
    assert_eq!(config["flushIntervalSeconds"], 15);
    assert_eq!(config["sessionTimeoutSeconds"], 1800);
    assert_eq!(config["lifecycleEvents"], true);
    assert_eq!(config["immediateTriggers"], json!(["purchase"]));
    assert!(config["pollAfterSeconds"].is_u64());
}

async fn an_anonymous_id_keeps_its_subject(app: &mut TestApp) {
    let first = app.session("ada").await;
    let again = app.session("ada").await;
    let other = app.session("bob").await;

    assert_eq!(first.subject_id, again.subject_id);
    assert_ne!(first.subject_id, other.subject_id);
}

async fn an_anonymous_id_has_1_to_128_characters(app: &mut TestApp) {
    app.session(&"ä".repeat(128)).await;

    for bad in [
        json!("x".repeat(129)),
        json!(""),
        json!("a\u{0}b"),
        json!(7),
        json!(null),
    ] {
        let body = json!({"anonymousId": bad});
        let answer = app.post("/v1/sdk/session", &app.sdk(), &body).await;
        answer.refused(422, "validation_failed");
        assert_eq!(answer.pointers(), ["/anonymousId"]);
    }
    let answer = app.post("/v1/sdk/session", &app.sdk(), &json!({})).await;
    answer.refused(422, "validation_failed");
}

async fn ending_a_session_revokes_its_token_at_once(app: &mut TestApp) {
    let session = app.session("ada").await;
    app.end(&session, &json!({})).await.data(204);

    let event = app.event(&session, "opened", &json!({}));
    app.ingest(&session, &[event])
        .await
        .refused(401, "subject_token_expired");
    app.poll(&session, "")
        .await
        .refused(401, "subject_token_expired");
    app.end(&session, &json!({}))
        .await
        .refused(401, "subject_token_expired");
    assert_eq!(app.stored("opened").await, 0);

    let again = app.session("ada").await;
    assert_eq!(again.subject_id, session.subject_id);
    app.poll(&again, "").await.ok();
}

async fn tokens_expire_after_a_day(app: &mut TestApp) {
    let session = app.session("ada").await;
    app.advance(24 * 3600 - 60);
    app.poll(&session, "").await.ok();
    app.advance(61);
    app.poll(&session, "")
        .await
        .refused(401, "subject_token_expired");
}

async fn a_token_of_another_app_or_a_changed_one_is_no_token(app: &mut TestApp) {
    let session = app.session("ada").await;
    let workspace = app.access.workspace_id;
    let (_, foreign_key) = app
        .another_app(workspace, nudge_apps::key::Kind::Write, &[])
        .await;
    let changed = format!("{}x", session.token);

    for (key, token) in [
        (foreign_key.as_str(), session.token.as_str()),
        (app.access.write_key.as_str(), changed.as_str()),
        (app.access.write_key.as_str(), "st_"),
        (app.access.write_key.as_str(), "garbage"),
    ] {
        let credential = Credential::bearer(key).and("x-service-subject-token", token);
        let answer = app.get("/v1/sdk/instructions", &credential).await;
        answer.refused(401, "invalid_credentials");
    }
    let answer = app.get("/v1/sdk/instructions", &app.sdk()).await;
    answer.refused(401, "subject_token_required");
}

async fn identity_tokens_without_keys_to_verify_them_are_refused(app: &mut TestApp) {
    let body = json!({"anonymousId": "ada", "identityToken": "a.b.c"});
    let answer = app.post("/v1/sdk/session", &app.sdk(), &body).await;
    answer.refused(401, "invalid_credentials");
}
