//! Consent and what it takes (contract 2).

use serde_json::{Value, json};
use tests::{Session, TestApp, on_both_backends};

on_both_backends!(
    consent_is_granted_until_it_is_refused,
    consent_is_absent_until_given_where_the_app_requires_it,
    a_refusal_is_not_undone_by_a_merge_with_who_says_nothing,
    each_purpose_has_a_last_word_of_its_own,
    events_without_consent_are_refused_one_by_one,
    nothing_is_presented_without_consent_to_messages,
    a_delivery_that_is_sent_again_presents_nothing_without_consent,
    who_says_nothing_leaves_when_consent_was_given,
    consent_is_of_the_tokens_subject_only,
);

async fn say(app: &TestApp, session: &Session, mut consent: Value) -> Value {
    consent["anonymousId"] = json!(session.anonymous_id);
    app.post("/v1/sdk/consent", &session.credential(), &consent)
        .await
        .ok()
}

async fn consent_is_granted_until_it_is_refused(app: &mut TestApp) {
    let session = app.session("ada").await;

    let data = say(app, &session, json!({})).await;
    assert_eq!(
        (&data["analytics"], &data["messaging"]),
        (&json!(true), &json!(true))
    );
    assert!(data["updatedAt"].is_string());

    let data = say(app, &session, json!({"analytics": false})).await;
    assert_eq!(
        (&data["analytics"], &data["messaging"]),
        (&json!(false), &json!(true))
    );
    let data = say(app, &session, json!({"messaging": false})).await;
    assert_eq!(
        (&data["analytics"], &data["messaging"]),
        (&json!(false), &json!(false))
    );
    let data = say(app, &session, json!({"analytics": true, "messaging": true})).await;
    assert_eq!(
        (&data["analytics"], &data["messaging"]),
        (&json!(true), &json!(true))
    );
}

/// Who says nothing new has not had the last word.
async fn a_refusal_is_not_undone_by_a_merge_with_who_says_nothing(app: &mut TestApp) {
    let backend = crate::identity::Backend::new(app).await;
    let known = backend.identify(app, "phone", "e-1").await;
    say(app, &known, json!({"analytics": true})).await;
    app.advance(1);
    let ada = app.session("ada").await;
    say(app, &ada, json!({"analytics": false})).await;
    app.advance(1);
    say(app, &known, json!({})).await;
    let both = backend.identify(app, "ada", "e-1").await;
    assert_eq!(say(app, &both, json!({})).await["analytics"], false);
}

/// A page that repeats one consent has said nothing new of the other.
async fn each_purpose_has_a_last_word_of_its_own(app: &mut TestApp) {
    let backend = crate::identity::Backend::new(app).await;
    let web = backend.identify(app, "web", "e-1").await;
    say(app, &web, json!({"analytics": true, "messaging": true})).await;
    app.advance(1);
    let phone = app.session("phone").await;
    say(app, &phone, json!({"analytics": false, "messaging": false})).await;
    app.advance(1);
    say(app, &web, json!({"analytics": true})).await;
    let both = backend.identify(app, "phone", "e-1").await;
    let data = say(app, &both, json!({})).await;
    assert_eq!(
        (&data["analytics"], &data["messaging"]),
        (&json!(true), &json!(false))
    );
}

async fn consent_is_absent_until_given_where_the_app_requires_it(app: &mut TestApp) {
    app.set(|settings| settings.consent.required = true).await;
    app.survey(&json!({"kind": "event", "eventName": "purchase"}))
        .await;
    let session = app.session("ada").await;

    let event = app.event(&session, "purchase", &json!({}));
    let data = app.ingest(&session, &[event]).await.ok();
    assert_eq!(data["errors"][0]["code"], "consent_missing");

    let data = say(app, &session, json!({"analytics": true})).await;
    assert_eq!(
        (&data["analytics"], &data["messaging"]),
        (&json!(true), &json!(false))
    );
    assert_eq!(app.fires(&session, "purchase", &json!({})).await, 0);
    say(app, &session, json!({"messaging": true})).await;
    assert_eq!(app.fires(&session, "purchase", &json!({})).await, 1);
}

async fn events_without_consent_are_refused_one_by_one(app: &mut TestApp) {
    app.define(
        "broken",
        &json!({"properties": [{"name": "a", "type": "string", "required": true}]}),
    )
    .await;
    let session = app.session("ada").await;
    say(app, &session, json!({"analytics": false})).await;

    let events = [
        app.event(&session, "opened", &json!({})),
        app.event(&session, "", &json!({})),
        app.event(&session, "broken", &json!({})),
        app.event(&session, "closed", &json!({})),
    ];
    let data = app.ingest_and_ask(&session, &events[..1]).await;
    assert_eq!(data["instructions"], json!([]));
    let data = app.ingest(&session, &events).await.ok();

    assert_eq!(
        (&data["accepted"], &data["rejected"]),
        (&json!(0), &json!(4))
    );
    let codes: Vec<&Value> = data["errors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|error| &error["code"])
        .collect();
    assert_eq!(
        codes,
        [
            "consent_missing",
            "invalid_name",
            "consent_missing",
            "consent_missing"
        ]
    );
    assert_eq!(data["errors"][0]["index"], 0);
    assert_eq!(data["errors"][0]["eventId"], events[0]["eventId"]);
    assert!(data["errors"][2].get("deadLetterId").is_none());
    assert_eq!(app.stored("opened").await, 0);
    let letters = app
        .get(&app.path("/dead-letters"), &app.viewer())
        .await
        .ok();
    assert_eq!(letters["items"], json!([]));
}

async fn nothing_is_presented_without_consent_to_messages(app: &mut TestApp) {
    app.survey(&json!({"kind": "event", "eventName": "purchase"}))
        .await;
    let session = app.session("ada").await;
    assert_eq!(app.fires(&session, "purchase", &json!({})).await, 1);
    assert_eq!(app.offered(&session).await.as_array().unwrap().len(), 1);

    say(app, &session, json!({"messaging": false})).await;

    assert_eq!(app.offered(&session).await, json!([]));
    assert_eq!(app.fires(&session, "purchase", &json!({})).await, 0);
    assert_eq!(app.offered(&session).await, json!([]));
}

async fn consent_is_of_the_tokens_subject_only(app: &mut TestApp) {
    let ada = app.session("ada").await;
    app.session("bob").await;

    for other in ["bob", "nobody"] {
        let body = json!({"anonymousId": other, "messaging": false});
        let answer = app.post("/v1/sdk/consent", &ada.credential(), &body).await;
        answer.refused(403, "subject_mismatch");
    }
}

async fn a_delivery_that_is_sent_again_presents_nothing_without_consent(app: &mut TestApp) {
    app.survey(&json!({"kind": "event", "eventName": "purchase"}))
        .await;
    let session = app.session("ada").await;
    let events = [app.event(&session, "purchase", &json!({}))];
    let first = app.ingest_and_ask(&session, &events).await["instructions"].clone();
    assert_eq!(first.as_array().unwrap().len(), 1);
    for (consent, presented) in [(false, json!([])), (true, first)] {
        say(app, &session, json!({"messaging": consent})).await;
        let again = app.ingest_and_ask(&session, &events).await;
        assert_eq!(again["accepted"], 1);
        assert_eq!(again["instructions"], presented, "{consent}");
    }
}

async fn who_says_nothing_leaves_when_consent_was_given(app: &mut TestApp) {
    let session = app.session("ada").await;
    say(app, &session, json!({})).await;
    let profile = app.get(&app.path("/users/ada"), &app.viewer()).await.ok();
    assert_eq!(profile["profile"]["consent"]["updatedAt"], Value::Null);
    let said = say(app, &session, json!({"messaging": false})).await;
    app.advance(60);
    assert_eq!(say(app, &session, json!({})).await, said);
    let anew = say(app, &session, json!({"messaging": false})).await;
    assert_ne!(anew["updatedAt"], said["updatedAt"]);
}
