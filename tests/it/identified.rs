//! Identified, suppressed and expired: states that no route of this version makes, but every route minds
//! (contract 1, 2, 3).

use nudge_apps::key::Kind;
use serde_json::{Value, json};
use tests::session::text;
use tests::{Credential, Session, TestApp, on_both_backends};

on_both_backends!(
    an_identified_subject_needs_its_token_for_another_session,
    the_external_id_of_the_token_is_accepted_and_no_other,
    nothing_of_a_suppressed_subject_is_stored_or_shown,
    an_expired_key_is_refused,
);

async fn identify(app: &TestApp) {
    let mut tx = app.services().db.write().await.unwrap();
    tx.sql("UPDATE subjects SET external_id = 'e-1'")
        .execute()
        .await
        .unwrap();
    tx.commit().await.unwrap();
}

async fn an_identified_subject_needs_its_token_for_another_session(app: &mut TestApp) {
    let ada = app.session("ada").await;
    let stranger = app.session("bob").await;
    let mut tx = app.services().db.write().await.unwrap();
    tx.sql("UPDATE subjects SET external_id = 'e-1' WHERE id = (SELECT subject_id FROM aliases WHERE value = 'ada')")
        .execute()
        .await
        .unwrap();
    tx.commit().await.unwrap();
    let body = json!({"anonymousId": "ada"});

    app.post("/v1/sdk/session", &app.sdk(), &body)
        .await
        .refused(401, "identity_required");
    let answer = app
        .post("/v1/sdk/session", &stranger.credential(), &body)
        .await;
    answer.refused(401, "identity_required");
    let garbage = app.sdk().and("x-service-subject-token", "st_garbage");
    app.post("/v1/sdk/session", &garbage, &body)
        .await
        .refused(401, "identity_required");

    let data = app
        .post("/v1/sdk/session", &ada.credential(), &body)
        .await
        .ok();
    assert_eq!(data["subject"]["identified"], true);
    assert_eq!(data["subject"]["externalId"], "e-1");
    assert_eq!(text(&data["subject"], "subjectId"), ada.subject_id);

    app.end(&ada, &json!({})).await.data(204);
    let answer = app.post("/v1/sdk/session", &ada.credential(), &body).await;
    answer.refused(401, "identity_required");
}

async fn send(app: &TestApp, session: &Session, context: Value, event: Option<&str>) -> Value {
    let mut body = session.batch(&[app.event(session, "opened", &json!({}))]);
    if let Some(external_id) = context.as_str() {
        body["context"]["externalId"] = json!(external_id);
    }
    if let Some(external_id) = event {
        body["events"][0]["externalId"] = json!(external_id);
    }
    app.post_batch(session, &body).await.ok()
}

async fn the_external_id_of_the_token_is_accepted_and_no_other(app: &mut TestApp) {
    let ada = app.session("ada").await;
    identify(app).await;

    for (context, event, accepted) in [
        (Value::Null, None, true),
        (json!("e-1"), None, true),
        (json!("e-1"), Some("e-1"), true),
        (Value::Null, Some("e-1"), true),
        (json!("e-2"), None, false),
        (json!("e-1"), Some("e-2"), false),
        (Value::Null, Some("e-2"), false),
        (json!("e-2"), Some("e-2"), false),
    ] {
        let data = send(app, &ada, context.clone(), event).await;
        assert_eq!(
            data["accepted"] == 1,
            accepted,
            "{context} {event:?}: {data}"
        );
        if !accepted {
            assert_eq!(data["errors"][0]["code"], "external_id_mismatch");
        }
    }
}

async fn nothing_of_a_suppressed_subject_is_stored_or_shown(app: &mut TestApp) {
    app.survey(&json!({"kind": "event", "eventName": "purchase"}))
        .await;
    app.define(
        "broken",
        &json!({"properties": [{"name": "a", "type": "string", "required": true}]}),
    )
    .await;
    let ada = app.session("ada").await;
    assert_eq!(app.fires(&ada, "purchase", &json!({})).await, 1);
    let mut tx = app.services().db.write().await.unwrap();
    tx.sql("UPDATE subjects SET suppressed = $1")
        .bind(true)
        .execute()
        .await
        .unwrap();
    tx.commit().await.unwrap();

    let events = [
        app.event(&ada, "purchase", &json!({})),
        app.event(&ada, "broken", &json!({})),
    ];
    let data = app.ingest_and_ask(&ada, &events).await;
    assert_eq!(
        (&data["accepted"], &data["rejected"]),
        (&json!(0), &json!(2))
    );
    for error in data["errors"].as_array().unwrap() {
        assert_eq!(error["code"], "suppressed_subject");
        assert!(error.get("deadLetterId").is_none());
    }
    assert_eq!(data["instructions"], json!([]));
    app.poll(&ada, "")
        .await
        .refused(401, "subject_token_expired");
    assert_eq!(app.stored("purchase").await, 1);
    let letters = app
        .get(&app.path("/dead-letters"), &app.viewer())
        .await
        .ok();
    assert_eq!(letters["items"], json!([]));
}

async fn an_expired_key_is_refused(app: &mut TestApp) {
    let key = Credential::bearer(&app.key(Kind::Write, &[]).await);
    let expires = nudge_db::Timestamp(app.clock.now().0 + 600 * 1_000_000);
    let mut tx = app.services().db.write().await.unwrap();
    tx.sql("UPDATE keys SET expires_at = $1 WHERE name = 'test'")
        .bind(expires)
        .execute()
        .await
        .unwrap();
    nudge_campaigns::apps::bump_version(&mut tx, app.access.app_id, app.clock.now())
        .await
        .unwrap();
    tx.commit().await.unwrap();
    app.services()
        .apps
        .refresh(app.access.app_id)
        .await
        .unwrap();

    let body = json!({"anonymousId": "ada"});
    app.post("/v1/sdk/session", &key, &body).await.ok();
    app.advance(601);
    app.post("/v1/sdk/session", &key, &body)
        .await
        .refused(401, "invalid_credentials");
}
