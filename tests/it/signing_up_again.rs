//! Somebody who was deleted signs up again (contract 6): a new person with nothing of the old.

use std::sync::Arc;

use serde_json::{Value, json};
use tests::client::Answer;
use tests::session::text;
use tests::{TestApp, on_both_backends};

use crate::collection::person;
use crate::deletion::{Slow, delete, deleted, reaches};
use crate::identity::Backend;
use crate::person::tables_with;

on_both_backends!(
    a_deleted_person_who_signs_up_again_begins_anew,
    who_signs_up_again_waits_until_the_old_is_erased,
    what_a_device_says_meanwhile_is_said_again,
    messages_begin_somebody_anew_as_events_do,
    events_that_repeat_the_external_id_are_of_the_deleted_person,
    a_device_of_a_deleted_person_becomes_somebody_elses,
);

/// A session with an identity token.
async fn identified(app: &TestApp, anonymous_id: &str, token: &str) -> Value {
    let body = json!({"anonymousId": anonymous_id, "identityToken": token});
    app.post("/v1/sdk/session", &app.sdk(), &body).await.ok()
}

/// What a backend hears of events of `e-ada`, of some seconds from now.
async fn shipped(app: &TestApp, seconds: &[i64]) -> Value {
    let event = |seconds: &i64| json!({"name": "shipped", "timestamp": app.time(*seconds)});
    let events: Vec<Value> = seconds.iter().map(event).collect();
    let body = json!({"userId": "e-ada", "events": events});
    let answer = app.post("/v1/sdk/ingest", &app.backend(), &body).await;
    answer.ok()
}

async fn a_deleted_person_who_signs_up_again_begins_anew(app: &mut TestApp) {
    let backend = Backend::new(app).await;
    let first = backend.identify(app, "ada", "e-ada").await;
    let event = app.event(&first, "purchase", &json!({}));
    assert_eq!(app.ingest(&first, &[event]).await.ok()["accepted"], 1);
    app.advance(60);
    let first_job = delete(app, &json!({"externalId": "e-ada"})).await;
    deleted(app, &first_job).await;
    app.advance(60);

    // What is of before the deletion, or of no known time, is refused.
    let old = backend.token_of(app, "e-ada", -90);
    assert_eq!(
        identified(app, "ada", &old).await["subject"]["identified"],
        false
    );
    app.session("ada").await;
    let data = shipped(app, &[-90]).await;
    assert_eq!(
        (&data["errors"][0]["code"], &data["errors"][0]["retryable"]),
        (&json!("suppressed_subject"), &json!(false))
    );
    let people: Vec<(i64,)> = app.rows("SELECT count(*) FROM subjects").await;
    assert_eq!(people, [(0,)]);

    // So is what is of after it, but is not accepted: the time is no time, or the name no name.
    let nothing = json!({"userId": "e-ada", "events": [
        {"name": "shipped", "timestamp": app.time(-90)},
        {"name": "shipped", "timestamp": "2100-01-01T00:00:00Z"},
        {"name": "", "timestamp": app.time(0)},
    ]});
    let data = app
        .post("/v1/sdk/ingest", &app.backend(), &nothing)
        .await
        .ok();
    assert_eq!(
        (&data["accepted"], &data["rejected"]),
        (&json!(0), &json!(3))
    );
    for path in ["identify", "track"] {
        let untimed = json!({"userId": "e-ada", "event": "shipped", "traits": {"plan": "gold"}});
        app.post(&format!("/v1/compat/v1/{path}"), &app.backend(), &untimed)
            .await;
    }
    let people: Vec<(i64,)> = app.rows("SELECT count(*) FROM subjects").await;
    assert_eq!(people, [(0,)]);

    // What is of after it begins a new person.
    let data = shipped(app, &[-90, -30, -75]).await;
    assert_eq!(
        (&data["accepted"], &data["rejected"]),
        (&json!(1), &json!(2))
    );
    for (error, index) in data["errors"].as_array().unwrap().iter().zip([0, 2]) {
        assert_eq!(
            (&error["code"], &error["index"]),
            (&json!("suppressed_subject"), &json!(index))
        );
    }
    assert_eq!(
        shipped(app, &[-90]).await["rejected"],
        1,
        "also once there is somebody"
    );
    assert_eq!(
        identified(app, "ada", &old).await["subject"]["identified"],
        false
    );
    let second = backend.identify(app, "ada", "e-ada").await;
    assert_ne!(second.subject_id, first.subject_id);
    let found = app
        .get(&app.path("/users?q=e-ada"), &app.viewer())
        .await
        .ok();
    assert_eq!(found["items"][0]["subjectId"], second.subject_id);
    assert_eq!(found["items"].as_array().unwrap().len(), 1);
    app.settle().await;
    let timeline = app
        .get(&app.path("/users/ada/events"), &app.viewer())
        .await
        .ok();
    assert_eq!(
        timeline["items"].as_array().unwrap().len(),
        1,
        "nothing of the old"
    );

    // So do its devices: what they still had is refused.
    let mut events = [
        app.event(&second, "opened", &json!({})),
        app.event(&second, "opened", &json!({})),
    ];
    events[1]["timestamp"] = json!(app.time(-90));
    let data = app.ingest(&second, &events).await.ok();
    assert_eq!(
        (&data["accepted"], &data["errors"][0]["code"]),
        (&json!(1), &json!("suppressed_subject"))
    );
    assert_eq!(
        identified(app, "ada", &old).await["subject"]["identified"],
        false
    );
    let unproven = json!({"anonymousId": "ada"});
    app.post("/v1/sdk/session", &app.sdk(), &unproven)
        .await
        .refused(401, "identity_required");
    app.restart().await;
    assert_eq!(shipped(app, &[-90]).await["rejected"], 1);
    let reference = json!({"externalId": "e-ada"});
    app.post(&app.path("/gdpr/export"), &app.admin(), &reference)
        .await
        .data(202);

    // And can be deleted again, from which on the same is true.
    app.advance(60);
    let second_job = delete(app, &reference).await;
    assert_ne!(second_job, first_job);
    deleted(app, &second_job).await;
    assert_eq!(tables_with(app, "e-ada").await, Vec::<String>::new());
    assert_eq!(
        tables_with(app, &second.subject_id).await,
        Vec::<String>::new()
    );
    app.advance(60);
    assert_eq!(
        shipped(app, &[-90]).await["accepted"],
        0,
        "of between the deletions"
    );
    let between = backend.token_of(app, "e-ada", -90);
    assert_eq!(
        identified(app, "ada", &between).await["subject"]["identified"],
        false
    );
    let third = backend.identify(app, "ada", "e-ada").await;
    assert_ne!(third.subject_id, second.subject_id);
}

async fn who_signs_up_again_waits_until_the_old_is_erased(app: &mut TestApp) {
    app.analytics = Some(Arc::new(Slow::confirming_after(1)));
    app.restart().await;
    let backend = Backend::new(app).await;
    backend.identify(app, "ada", "e-ada").await;
    app.advance(60);
    let job_id = delete(app, &json!({"externalId": "e-ada"})).await;
    reaches(app, &job_id, "analytics_pending").await;
    app.advance(5);

    let data = shipped(app, &[-1]).await;
    assert_eq!(
        (&data["errors"][0]["code"], &data["errors"][0]["retryable"]),
        (&json!("suppressed_subject"), &json!(true))
    );
    // So are messages, of the person and of somebody else at the person's device.
    let now = app.time(-1);
    let traits = json!({"plan": "gold"});
    let again = json!({"userId": "e-ada", "timestamp": now, "traits": traits});
    let other =
        json!({"userId": "e-bob", "anonymousId": "ada", "timestamp": now, "traits": traits});
    for message in [&again, &other] {
        let answer = message_of(app, "identify", message).await;
        answer.refused(503, "unavailable");
    }
    let data = identified(app, "ada", &backend.token(app, "e-ada")).await;
    assert_eq!(data["subject"]["identified"], false);
    assert!(text(&data, "expiresAt") <= app.time(60), "comes back soon");
    app.advance(11);
    deleted(app, &job_id).await;
    assert_eq!(shipped(app, &[-1]).await["accepted"], 1);
    assert_eq!(message_of(app, "identify", &again).await.status, 200);
    backend.identify(app, "ada", "e-ada").await;
}

async fn what_a_device_says_meanwhile_is_said_again(app: &mut TestApp) {
    app.analytics = Some(Arc::new(Slow::confirming_after(1)));
    app.restart().await;
    let backend = Backend::new(app).await;
    backend.identify(app, "ada", "e-ada").await;
    app.advance(60);
    let job_id = delete(app, &json!({"externalId": "e-ada"})).await;
    reaches(app, &job_id, "analytics_pending").await;
    app.advance(5);

    // The person, and somebody else at the person's device.
    for external_id in ["e-ada", "e-bob"] {
        let data = identified(app, "ada", &backend.token(app, external_id)).await;
        let session = app.opened("ada", &data);
        let mut events = [(); 2].map(|()| app.event(&session, "opened", &json!({})));
        events[1]["timestamp"] = json!(app.time(-90));
        let data = app.ingest(&session, &events).await.ok();
        assert_eq!(data["accepted"], 0);
        let errors = data["errors"].as_array().unwrap();
        for (error, retryable) in errors.iter().zip([true, false]) {
            assert_eq!(error["code"], "suppressed_subject");
            assert_eq!(error["retryable"], retryable, "{error}");
        }
        let update = json!({"anonymousId": "ada", "mutationId": app.id(), "set": {"plan": "new"}});
        let consent = json!({"anonymousId": "ada", "analytics": false});
        let device = json!({"anonymousId": "ada", "deviceId": "phone", "provider": "fcm",
                            "token": "t".repeat(64)});
        for (path, body) in [
            ("user-properties", &update),
            ("consent", &consent),
            ("push-tokens", &device),
        ] {
            let path = format!("/v1/sdk/{path}");
            let answer = app.post(&path, &session.credential(), body).await;
            answer.refused(503, "unavailable");
        }
        app.end(&session, &json!({})).await.data(204);
    }
    app.advance(11);
    deleted(app, &job_id).await;
    let bob = backend.identify(app, "ada", "e-bob").await;
    let event = app.event(&bob, "opened", &json!({}));
    assert_eq!(app.ingest(&bob, &[event]).await.ok()["accepted"], 1);
}

/// Sends a message of the tracking protocol from a server.
async fn message_of(app: &TestApp, kind: &str, message: &Value) -> Answer {
    let path = format!("/v1/compat/v1/{kind}");
    app.post(&path, &app.backend(), message).await
}

/// Makes the person `e-ada`, who was deleted a minute ago.
async fn has_been_deleted(app: &TestApp) {
    let backend = Backend::new(app).await;
    backend.identify(app, "ada", "e-ada").await;
    app.advance(60);
    let job_id = delete(app, &json!({"externalId": "e-ada"})).await;
    deleted(app, &job_id).await;
    app.advance(60);
}

async fn messages_begin_somebody_anew_as_events_do(app: &mut TestApp) {
    has_been_deleted(app).await;

    let suppressed = |answer: &Answer| {
        let problem = answer.refused(400, "messages_rejected");
        assert_eq!(problem["errors"][0]["code"], "suppressed_subject");
    };
    // What is refused anyway begins nobody, and what is of before the deletion, by a clock that is ahead.
    let nameless = json!({"userId": "e-ada", "timestamp": app.time(0)});
    let problem = message_of(app, "track", &nameless).await;
    let problem = problem.refused(400, "messages_rejected");
    assert_eq!(problem["errors"][0]["code"], "invalid_name");
    let hours = 7_200;
    for kind in ["track", "identify"] {
        let ahead = json!({"userId": "e-ada", "event": "shipped", "traits": {"plan": "old"},
                           "timestamp": app.time(hours - 90), "sentAt": app.time(hours)});
        suppressed(&message_of(app, kind, &ahead).await);
    }
    let people: Vec<(i64,)> = app.rows("SELECT count(*) FROM subjects").await;
    assert_eq!(people, [(0,)]);

    let behind = json!({"userId": "e-ada", "event": "shipped",
                        "timestamp": app.time(-hours), "sentAt": app.time(-hours)});
    assert_eq!(message_of(app, "track", &behind).await.status, 200);
    // Once there is somebody, what was said of the old one is still not theirs.
    let late = json!({"userId": "e-ada", "timestamp": app.time(-90), "traits": {"plan": "old"}});
    suppressed(&message_of(app, "identify", &late).await);
    let (_, properties) = person(app, "e-ada").await;
    assert_eq!(properties, json!({}));
    let new = json!({"userId": "e-ada", "timestamp": app.time(-1), "traits": {"plan": "new"}});
    assert_eq!(message_of(app, "identify", &new).await.status, 200);
    let (_, properties) = person(app, "e-ada").await;
    assert_eq!(properties, json!({"plan": "new"}));
}

async fn events_that_repeat_the_external_id_are_of_the_deleted_person(app: &mut TestApp) {
    has_been_deleted(app).await;

    let body = |external_id: &str| {
        let event =
            json!({"name": "shipped", "timestamp": app.time(-90), "externalId": external_id});
        json!({"userId": "e-ada", "events": [event]})
    };
    for (external_id, code) in [
        ("e-ada", "suppressed_subject"),
        ("e-bob", "external_id_mismatch"),
    ] {
        let data = app
            .post("/v1/sdk/ingest", &app.backend(), &body(external_id))
            .await
            .ok();
        assert_eq!(data["errors"][0]["code"], code);
    }
    let nobody = app.session("ada").await;
    let mut event = app.event(&nobody, "opened", &json!({}));
    event["externalId"] = json!("e-ada");
    let mut body = nobody.batch(&[event]);
    body["context"]["externalId"] = json!("e-ada");
    let data = app
        .post("/v1/sdk/ingest", &nobody.credential(), &body)
        .await
        .ok();
    assert_eq!(data["errors"][0]["code"], "suppressed_subject");
}

async fn a_device_of_a_deleted_person_becomes_somebody_elses(app: &mut TestApp) {
    let backend = Backend::new(app).await;
    backend.identify(app, "phone", "e-ada").await;
    backend.identify(app, "laptop", "e-bob").await;
    app.advance(60);
    let job_id = delete(app, &json!({"externalId": "e-ada"})).await;
    deleted(app, &job_id).await;
    app.advance(60);

    let bob = backend.identify(app, "phone", "e-bob").await;
    let mut events = [
        app.event(&bob, "opened", &json!({})),
        app.event(&bob, "opened", &json!({})),
    ];
    events[0]["timestamp"] = json!(app.time(-90));
    let data = app.ingest(&bob, &events).await.ok();
    assert_eq!(
        (&data["accepted"], &data["errors"][0]["index"]),
        (&json!(1), &json!(0))
    );
    let laptop = backend.identify(app, "laptop", "e-bob").await;
    let mut event = app.event(&laptop, "opened", &json!({}));
    event["timestamp"] = json!(app.time(-90));
    assert_eq!(
        app.ingest(&laptop, &[event]).await.ok()["accepted"],
        1,
        "bob's own"
    );
}
