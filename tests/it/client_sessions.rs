//! Browser sessions: `clientId` (contract 2 and 3).

use serde_json::{Value, json};
use tests::{Answer, Session, TestApp, on_both_backends};

on_both_backends!(
    a_client_is_bound_to_the_subject_that_brought_it,
    a_client_of_another_subject_is_refused,
    an_ended_client_is_refused,
    a_token_ends_whatever_has_become_of_the_client,
    a_client_id_is_a_uuid,
);

async fn bind(app: &TestApp, anonymous_id: &str, client: &str) -> Answer {
    let body = json!({"anonymousId": anonymous_id, "clientId": client});
    app.post("/v1/sdk/session", &app.sdk(), &body).await
}

async fn deliver(app: &TestApp, session: &Session, client: &Value) -> Answer {
    let event = app.event(session, "opened", &json!({}));
    let mut body = session.batch(std::slice::from_ref(&event));
    body["delivery"] = json!({"eventIds": [event["eventId"]], "clientId": client});
    app.post_batch(session, &body).await
}

async fn a_client_is_bound_to_the_subject_that_brought_it(app: &mut TestApp) {
    let client = app.id().to_string();
    let data = bind(app, "ada", &client).await.ok();
    assert_eq!(data["clientId"], json!(client));
    bind(app, "ada", &client).await.ok();

    let ada = app.session("ada").await;
    assert_eq!(deliver(app, &ada, &json!(client)).await.ok()["accepted"], 1);
}

async fn a_client_of_another_subject_is_refused(app: &mut TestApp) {
    let client = app.id().to_string();
    bind(app, "ada", &client).await.ok();

    bind(app, "bob", &client)
        .await
        .refused(403, "client_session_invalid");
    let bob = app.session("bob").await;
    for other in [json!(client), json!(app.id())] {
        deliver(app, &bob, &other)
            .await
            .refused(403, "client_session_invalid");
    }
    app.end(&bob, &json!({"clientId": client}))
        .await
        .refused(403, "client_session_invalid");
    assert_eq!(app.stored("opened").await, 0);
}

async fn an_ended_client_is_refused(app: &mut TestApp) {
    let client = app.id().to_string();
    bind(app, "ada", &client).await.ok();
    let ada = app.session("ada").await;
    app.end(&ada, &json!({"clientId": client})).await.data(204);

    let again = app.session("ada").await;
    deliver(app, &again, &json!(client))
        .await
        .refused(403, "client_session_invalid");
}

async fn a_token_ends_whatever_has_become_of_the_client(app: &mut TestApp) {
    let client = app.id();
    bind(app, "ada", &client.to_string()).await.ok();
    for client in [client, client, app.id()] {
        let ada = app.session("ada").await;
        app.end(&ada, &json!({"clientId": client})).await.data(204);
        let event = app.event(&ada, "opened", &json!({}));
        app.ingest(&ada, &[event])
            .await
            .refused(401, "subject_token_expired");
    }
}

async fn a_client_id_is_a_uuid(app: &mut TestApp) {
    bind(app, "ada", "seven")
        .await
        .refused(422, "validation_failed");
    let ada = app.session("ada").await;
    deliver(app, &ada, &json!("seven"))
        .await
        .refused(422, "invalid_delivery");
}
