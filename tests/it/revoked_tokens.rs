//! Subject tokens that were revoked, on every route that takes one (contract 2): whatever alias of the person a request
//! names, it is refused, writes nothing and is told nothing.

use reqwest::Method;
use serde_json::json;
use tests::client::{Answer, send};
use tests::session::text;
use tests::{Session, TestApp, on_both_backends};
use tokio::task::JoinSet;
use uuid::Uuid;

use crate::attempts::{link_survey, question, start};
use crate::deletion::{delete, deleted};
use crate::identity::Backend;

on_both_backends!(
    a_token_from_before_the_login_is_refused_everywhere,
    a_token_of_an_ended_session_is_refused_everywhere,
    a_token_from_before_a_merge_is_refused_everywhere,
    a_token_of_somebody_who_was_deleted_is_refused_everywhere,
    a_token_that_ends_while_it_waits_gets_nothing,
    a_revoked_token_is_told_so_before_its_browser_session_is,
    a_token_speaks_under_every_alias_of_its_subject,
);

/// What the routes are tried on.
struct Scene {
    backend: Backend,
    /// A survey that takes attempts without an instruction.
    survey: Uuid,
    /// An attempt of the person at it.
    attempt: String,
}

/// A person on two devices: `phone`, and `web` where the test says so.
async fn scene(app: &TestApp) -> (Scene, Session) {
    app.survey(&json!({"kind": "event", "eventName": "purchase"}))
        .await;
    app.define(
        "checked",
        &json!({"properties": [{"name": "a", "type": "string", "required": true}]}),
    )
    .await;
    let survey = link_survey(app, json!({"questions": [question("q1", true)]})).await;
    let backend = Backend::new(app).await;
    let phone = backend.identify(app, "phone", "e-1").await;
    let attempt = start(app, &phone, survey).await;
    app.push_token(
        &phone,
        "device",
        &json!({"provider": "fcm", "token": "token-1"}),
    )
    .await;
    assert_eq!(app.fires(&phone, "purchase", &json!({})).await, 1);
    let scene = Scene {
        backend,
        survey,
        attempt,
    };
    (scene, phone)
}

/// A session that names another anonymous id of its subject.
fn under(session: &Session, anonymous_id: &str) -> Session {
    let mut named = session.clone();
    anonymous_id.clone_into(&mut named.anonymous_id);
    named
}

/// Everything that a subject token may be shown to, under an anonymous id.
async fn routes(app: &TestApp, scene: &Scene, session: &Session, named: &str) -> Vec<Answer> {
    let credential = session.credential();
    let event = |name: &str| {
        json!({"eventId": app.id(), "name": name, "timestamp": app.time(0), "anonymousId": named,
            "properties": {}})
    };
    let context = json!({"anonymousId": named, "deviceId": "forged"});
    let purchase = event("purchase");
    let mut wrong = event("purchase");
    wrong["anonymousId"] = json!("nobody");
    let attempt = format!("/v1/sdk/attempts/{}", scene.attempt);
    let push =
        json!({"anonymousId": named, "deviceId": "device", "provider": "fcm", "token": "forged"});
    let posts = [
        (
            "/v1/sdk/ingest".to_owned(),
            json!({"context": context, "events": [purchase], "delivery": {"eventIds": [purchase["eventId"]]}}),
        ),
        (
            "/v1/sdk/ingest".to_owned(),
            json!({"context": context, "events": [event("checked")]}),
        ),
        (
            "/v1/sdk/ingest".to_owned(),
            json!({"context": context, "events": [wrong]}),
        ),
        (
            "/v1/sdk/ingest".to_owned(),
            json!({"context": {"anonymousId": named, "externalId": "e-1"}, "events": [event("opened")]}),
        ),
        (
            "/v1/sdk/user-properties".to_owned(),
            json!({"anonymousId": named, "mutationId": app.id(), "set": {"forged": 1}}),
        ),
        (
            "/v1/sdk/instructions/ack".to_owned(),
            json!({"anonymousId": named, "acks": [{"instructionId": app.id(), "status": "displayed"}]}),
        ),
        (
            format!("/v1/sdk/surveys/{}/attempts", scene.survey),
            json!({"anonymousId": named}),
        ),
        (
            format!("{attempt}/answers"),
            json!({"anonymousId": named, "answers": [{"questionId": "q1", "value": 3}]}),
        ),
        (format!("{attempt}/complete"), json!({"anonymousId": named})),
        (format!("{attempt}/complete"), json!({})),
        (format!("{attempt}/dismiss"), json!({"anonymousId": named})),
        ("/v1/sdk/push-tokens".to_owned(), push),
        (
            "/v1/sdk/push/receipts".to_owned(),
            json!({"receipts": [{"deliveryId": app.id(), "type": "opened"}]}),
        ),
        (
            "/v1/sdk/consent".to_owned(),
            json!({"anonymousId": named, "analytics": false, "messaging": false}),
        ),
    ];
    let mut answers = Vec::new();
    for (path, body) in posts {
        answers.push(app.post(&path, &credential, &body).await);
    }
    answers.push(app.poll(session, "").await);
    answers.push(app.poll(session, "?wait=25").await);
    let device = "/v1/sdk/push-tokens/device";
    answers.push(app.delete(device, &credential).await);
    answers.push(app.end(session, &json!({})).await);
    answers.push(app.end(session, &json!({"clientId": app.id()})).await);
    answers
}

/// What is stored of people, but for what jobs have in hand.
async fn stored(app: &TestApp) -> Vec<(String, Vec<String>)> {
    app.settle().await;
    let people: Vec<&str> = nudge_platform::tables::personal()
        .map(|it| it.table.name)
        .collect();
    let mut dump = app.dump().await;
    dump.retain(|(table, _)| people.contains(&table.as_str()));
    for (_, rows) in &mut dump {
        rows.sort();
    }
    dump.sort();
    dump
}

/// A token is refused on every route, under each of these names.
async fn refused(app: &TestApp, scene: &Scene, session: &Session, names: &[&str]) {
    let before = stored(app).await;
    for named in names {
        for answer in routes(app, scene, session, named).await {
            answer.refused(401, "subject_token_expired");
        }
        // A session of a person is granted for a proof, and such a token is none.
        let body = json!({"anonymousId": named});
        let answer = app
            .post("/v1/sdk/session", &session.credential(), &body)
            .await;
        answer.refused(401, "identity_required");
    }
    assert_eq!(stored(app).await, before);
}

async fn a_token_from_before_the_login_is_refused_everywhere(app: &mut TestApp) {
    let before = app.session("phone").await;
    let (scene, phone) = scene(app).await;
    assert_eq!(before.subject_id, phone.subject_id);
    scene.backend.identify(app, "web", "e-1").await;
    refused(app, &scene, &before, &["phone", "web"]).await;
}

async fn a_token_of_an_ended_session_is_refused_everywhere(app: &mut TestApp) {
    let (scene, phone) = scene(app).await;
    let web = scene.backend.identify(app, "web", "e-1").await;
    app.end(&web, &json!({})).await.data(204);
    refused(app, &scene, &web, &["phone", "web"]).await;

    // The other device goes on, under both names, and so does a new session of this one.
    let again = scene.backend.identify(app, "web", "e-1").await;
    for session in [&phone, &again] {
        assert_eq!(app.fires(session, "purchase", &json!({})).await, 1);
    }
    refused(app, &scene, &web, &["phone", "web"]).await;
}

async fn a_token_from_before_a_merge_is_refused_everywhere(app: &mut TestApp) {
    let (scene, phone) = scene(app).await;
    let web = app.session("web").await;
    assert_eq!(app.fires(&web, "purchase", &json!({})).await, 1);
    let merged = scene.backend.identify(app, "web", "e-1").await;
    assert_eq!(merged.subject_id, phone.subject_id);
    refused(app, &scene, &web, &["phone", "web"]).await;
}

async fn a_token_of_somebody_who_was_deleted_is_refused_everywhere(app: &mut TestApp) {
    let (scene, phone) = scene(app).await;
    let web = scene.backend.identify(app, "web", "e-1").await;
    let job_id = delete(app, &json!({"externalId": "e-1"})).await;
    deleted(app, &job_id).await;
    let before = stored(app).await;
    for session in [&phone, &web] {
        for named in ["phone", "web"] {
            for answer in routes(app, &scene, session, named).await {
                answer.refused(401, "subject_token_expired");
            }
        }
    }
    assert_eq!(stored(app).await, before);
}

async fn a_token_that_ends_while_it_waits_gets_nothing(app: &mut TestApp) {
    let (scene, phone) = scene(app).await;
    let cursor = text(&app.poll(&phone, "").await.ok(), "nextCursor");
    let path = format!("/v1/sdk/instructions?wait=25&cursor={cursor}");
    let request = app.request(Method::GET, &path, &phone.credential());
    let mut waiting = JoinSet::new();
    waiting.spawn(send(request));
    // What the poll is woken by comes after the token's time.
    app.until("the poll waits", async || app.services().polls.looks() >= 2)
        .await;
    app.advance(3_601);
    let web = scene.backend.identify(app, "web", "e-1").await;
    assert_eq!(app.fires(&web, "purchase", &json!({})).await, 1);
    let answer = waiting.join_next().await.unwrap().unwrap();
    answer.refused(401, "subject_token_expired");
}

async fn a_revoked_token_is_told_so_before_its_browser_session_is(app: &mut TestApp) {
    let client_id = app.id();
    let body = json!({"anonymousId": "web", "clientId": client_id});
    let data = app.post("/v1/sdk/session", &app.sdk(), &body).await.ok();
    let web = app.opened("web", &data);
    app.end(&web, &json!({"clientId": client_id}))
        .await
        .data(204);
    let event = app.event(&web, "opened", &json!({}));
    let mut batch = web.batch(std::slice::from_ref(&event));
    batch["delivery"] = json!({"eventIds": [event["eventId"]], "clientId": client_id});
    // An SDK gives up what is forbidden, and keeps what takes a new session.
    app.post_batch(&web, &batch)
        .await
        .refused(401, "subject_token_expired");
    assert_eq!(app.stored("opened").await, 0);
}

async fn a_token_speaks_under_every_alias_of_its_subject(app: &mut TestApp) {
    let (scene, phone) = scene(app).await;
    let web = scene.backend.identify(app, "web", "e-1").await;
    for session in [&phone, &web] {
        for named in ["phone", "web"] {
            let named = under(session, named);
            assert_eq!(app.fires(&named, "purchase", &json!({})).await, 1);
            let body =
                json!({"anonymousId": named.anonymous_id, "mutationId": app.id(), "set": {"a": 1}});
            let answer = app
                .post("/v1/sdk/user-properties", &named.credential(), &body)
                .await;
            answer.ok();
        }
    }
    // Whose token another alias had does not matter to it.
    app.end(&web, &json!({})).await.data(204);
    let named = under(&phone, "web");
    assert_eq!(app.fires(&named, "purchase", &json!({})).await, 1);
}
