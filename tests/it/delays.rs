//! Delayed firings: timers, their cancellation, and their survival (contract 8).

use std::time::Duration;

use serde_json::{Value, json};
use tests::{Session, TestApp, on_both_backends};

on_both_backends!(
    a_delayed_firing_appears_when_it_is_due,
    a_delayed_firing_survives_a_restart,
    a_firing_that_fell_due_while_the_server_was_down_is_made_up_for,
    a_cancelling_event_cancels_what_waits,
    a_cancelling_event_must_match_its_filters,
    a_paused_survey_does_not_fire_what_falls_due,
);

async fn offered(app: &TestApp, session: &Session) -> usize {
    app.offered(session).await.as_array().unwrap().len()
}

/// Polls until something is offered.
async fn appears(app: &TestApp, session: &Session) -> Value {
    let mut polled = app.poll(session, "?wait=20").await.ok();
    polled["items"].take()
}

/// As long as the pipeline takes to find that something is due, several times over.
async fn a_while() {
    tokio::time::sleep(Duration::from_millis(600)).await;
}

async fn delayed(app: &TestApp, more: Value) -> (uuid::Uuid, Session) {
    let mut trigger = json!({"kind": "event", "eventName": "cart_updated", "delaySeconds": 3600});
    trigger
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    let survey = app.survey(&trigger).await;
    let session = app.session("ada").await;
    assert_eq!(app.fires(&session, "cart_updated", &json!({})).await, 0);
    (survey, session)
}

async fn a_delayed_firing_appears_when_it_is_due(app: &mut TestApp) {
    let (_, ada) = delayed(app, json!({})).await;
    app.advance(3500);
    a_while().await;
    assert_eq!(offered(app, &ada).await, 0);

    app.advance(101);
    let items = appears(app, &ada).await;
    assert_eq!(items.as_array().unwrap().len(), 1);
    assert_eq!(items[0]["trigger"]["name"], "cart_updated");
    a_while().await;
    assert_eq!(offered(app, &ada).await, 1);
}

async fn a_delayed_firing_survives_a_restart(app: &mut TestApp) {
    let (_, ada) = delayed(app, json!({})).await;
    app.restart().await;
    app.advance(3500);
    app.restart().await;
    assert_eq!(offered(app, &ada).await, 0);

    app.advance(101);
    assert_eq!(appears(app, &ada).await.as_array().unwrap().len(), 1);
    app.restart().await;
    a_while().await;
    assert_eq!(offered(app, &ada).await, 1);
}

async fn a_firing_that_fell_due_while_the_server_was_down_is_made_up_for(app: &mut TestApp) {
    let (_, ada) = delayed(app, json!({})).await;
    app.stop().await;
    app.advance(2 * 3600);
    app.resume().await;
    assert_eq!(appears(app, &ada).await.as_array().unwrap().len(), 1);
}

async fn a_cancelling_event_cancels_what_waits(app: &mut TestApp) {
    let (_, ada) = delayed(app, json!({"cancelOn": [{"eventName": "purchase"}]})).await;
    app.fires(&ada, "purchase", &json!({})).await;
    app.advance(3601);
    a_while().await;
    assert_eq!(offered(app, &ada).await, 0);

    app.fires(&ada, "cart_updated", &json!({})).await;
    app.advance(3601);
    assert_eq!(appears(app, &ada).await.as_array().unwrap().len(), 1);
}

async fn a_cancelling_event_must_match_its_filters(app: &mut TestApp) {
    let leaf = json!({"property": "total", "type": "number", "operator": "gt", "value": 10});
    let cancel = json!([{"eventName": "purchase", "filters": {"all": [leaf]}}]);
    let (_, ada) = delayed(app, json!({"cancelOn": cancel})).await;
    app.fires(&ada, "purchase", &json!({"total": 5})).await;
    let bob = app.session("bob").await;
    app.fires(&bob, "purchase", &json!({"total": 50})).await;

    app.advance(3601);
    assert_eq!(appears(app, &ada).await.as_array().unwrap().len(), 1);
}

async fn a_paused_survey_does_not_fire_what_falls_due(app: &mut TestApp) {
    let (survey, ada) = delayed(app, json!({})).await;
    let path = app.path(&format!("/surveys/{survey}"));
    app.patch(&path, &app.editor(), &json!({"status": "paused"}))
        .await
        .ok();
    app.advance(3601);
    a_while().await;
    assert_eq!(offered(app, &ada).await, 0);
}
