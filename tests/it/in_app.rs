//! In-app messages: made when they fire and kept as they were made, acknowledged, capped, explained (contract 20).

mod management;
mod people;
mod processes;
mod results;
mod showing;
mod trying;

use serde_json::{Value, json};
use tests::campaigns::personalization;
use tests::session::text;
use tests::{Session, TestApp};

/// An active message of one variant, which every `purchase` fires.
fn message_with(parts: &Value) -> Value {
    let mut body = json!({
        "name": "Free shipping", "type": "in_app", "status": "active",
        "trigger": {"kind": "event", "eventName": "purchase"},
        "variants": [{"layout": "modal", "title": "Thanks", "body": "It is on its way"}],
    });
    let members = body.as_object_mut().unwrap();
    members.extend(parts.as_object().unwrap().clone());
    body
}

pub(crate) async fn message(app: &TestApp, parts: Value) -> String {
    let made = app.create_campaign(&message_with(&parts)).await;
    text(&made.data(201), "id")
}

async fn buys(app: &TestApp, session: &Session, properties: Value) -> Value {
    let event = app.event(session, "purchase", &properties);
    app.ingest_and_ask(session, &[event]).await["instructions"].take()
}

async fn acknowledge(app: &TestApp, session: &Session, ack: Value) -> Value {
    let body = json!({"anonymousId": session.anonymous_id, "acks": [ack]});
    let path = "/v1/sdk/instructions/ack";
    app.post(path, &session.credential(), &body).await.ok()
}

fn of_user(bindings: &[(&str, &str, &str)]) -> Value {
    personalization(&json!({"kind": "user_property", "label": "User"}), bindings)
}

fn of_event(bindings: &[(&str, &str, &str)]) -> Value {
    personalization(
        &json!({"kind": "trigger_event", "label": "Event"}),
        bindings,
    )
}
