//! What an SDK does: a session, events, polls.

use serde_json::{Value, json};
use uuid::Uuid;

use crate::client::{Answer, Credential};
use crate::{TestApp, client};

/// A subject's session.
#[derive(Clone, Debug)]
pub struct Session {
    /// The anonymous id that it was started with.
    pub anonymous_id: String,
    /// The subject token.
    pub token: String,
    /// The subject.
    pub subject_id: String,
    write_key: String,
}

impl Session {
    /// The write key with the subject token.
    pub fn credential(&self) -> Credential {
        Credential::bearer(&self.write_key).and("x-service-subject-token", &self.token)
    }

    /// A body for ingest.
    pub fn batch(&self, events: &[Value]) -> Value {
        json!({"context": {"anonymousId": self.anonymous_id}, "events": events})
    }
}

/// The `eventId` of an event.
pub fn event_id(event: &Value) -> String {
    text(event, "eventId")
}

/// A member that is a string; empty if there is none.
pub fn text(value: &Value, key: &str) -> String {
    let text = value.get(key).and_then(Value::as_str);
    text.unwrap_or_default().to_owned()
}

/// Bytes in hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a String can't fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The ids of instructions.
pub fn instruction_ids(items: &Value) -> Vec<String> {
    let items = items.as_array().map(Vec::as_slice).unwrap_or_default();
    items
        .iter()
        .map(|item| text(item, "instructionId"))
        .collect()
}

impl TestApp {
    /// Starts a session.
    pub async fn session(&self, anonymous_id: &str) -> Session {
        let body = json!({"anonymousId": anonymous_id});
        let data = self.post("/v1/sdk/session", &self.sdk(), &body).await.ok();
        self.opened(anonymous_id, &data)
    }

    /// The session that an answer grants.
    pub fn opened(&self, anonymous_id: &str, data: &Value) -> Session {
        Session {
            anonymous_id: anonymous_id.to_owned(),
            token: text(data, "subjectToken"),
            subject_id: text(data.get("subject").unwrap_or(&Value::Null), "subjectId"),
            write_key: self.access.write_key.clone(),
        }
    }

    /// An event of a session, with an id, now.
    pub fn event(&self, session: &Session, name: &str, properties: &Value) -> Value {
        json!({
            "eventId": self.id(),
            "name": name,
            "timestamp": self.time(0),
            "anonymousId": session.anonymous_id,
            "properties": properties,
        })
    }

    /// Sends events.
    pub async fn ingest(&self, session: &Session, events: &[Value]) -> Answer {
        self.post_batch(session, &session.batch(events)).await
    }

    /// Sends a body for ingest.
    pub async fn post_batch(&self, session: &Session, body: &Value) -> Answer {
        self.post("/v1/sdk/ingest", &session.credential(), body)
            .await
    }

    /// Sends events and asks what they fire.
    pub async fn ingest_and_ask(&self, session: &Session, events: &[Value]) -> Value {
        let mut body = session.batch(events);
        let ids: Vec<String> = events.iter().take(20).map(event_id).collect();
        if let Some(body) = body.as_object_mut() {
            body.insert("delivery".to_owned(), json!({"eventIds": ids}));
        }
        self.post_batch(session, &body).await.ok()
    }

    /// Sends one event of a name and answers how many instructions it fires at once.
    pub async fn fires(&self, session: &Session, name: &str, properties: &Value) -> usize {
        let event = self.event(session, name, properties);
        let data = self.ingest_and_ask(session, &[event]).await;
        let instructions = data.get("instructions").and_then(Value::as_array);
        instructions.map_or(0, Vec::len)
    }

    /// Polls; `query` is like `?limit=1`, or empty.
    pub async fn poll(&self, session: &Session, query: &str) -> Answer {
        let path = format!("/v1/sdk/instructions{query}");
        self.get(&path, &session.credential()).await
    }

    /// The instructions on offer.
    pub async fn offered(&self, session: &Session) -> Value {
        let mut data = self.poll(session, "").await.ok();
        data.get_mut("items").map(Value::take).unwrap_or_default()
    }

    /// Acknowledges an instruction.
    pub async fn acknowledge(&self, session: &Session, id: &str, status: &str) -> Value {
        let body = json!({
            "anonymousId": session.anonymous_id,
            "acks": [{"instructionId": id, "status": status}],
        });
        self.post("/v1/sdk/instructions/ack", &session.credential(), &body)
            .await
            .ok()
    }

    /// Makes a survey that runs, of one question, and answers its id.
    pub async fn survey(&self, trigger: &Value) -> Uuid {
        self.survey_with(&json!({"trigger": trigger})).await
    }

    /// Makes a survey that runs, with some parts of its own, and answers its id.
    pub async fn survey_with(&self, parts: &Value) -> Uuid {
        let mut body = survey_body();
        if let (Some(body), Some(parts)) = (body.as_object_mut(), parts.as_object()) {
            body.extend(parts.clone());
        }
        let path = self.path("/surveys");
        let made = self.post(&path, &self.editor(), &body).await.data(201);
        Uuid::parse_str(&text(&made, "id")).unwrap_or_default()
    }

    /// Declares an event and answers the definition.
    pub async fn define(&self, name: &str, parts: &Value) -> Value {
        let mut body = json!({"name": name});
        if let (Some(body), Some(parts)) = (body.as_object_mut(), parts.as_object()) {
            body.extend(parts.clone());
        }
        let path = self.path("/event-definitions");
        self.post(&path, &self.editor(), &body).await.data(201)
    }

    /// Ends a session.
    pub async fn end(&self, session: &Session, body: &Value) -> Answer {
        let request = self.request(
            reqwest::Method::DELETE,
            "/v1/sdk/session",
            &session.credential(),
        );
        client::send(request.json(body)).await
    }
}

/// An active survey of one question, which every `purchase` fires.
pub fn survey_body() -> Value {
    json!({
        "name": "How was it?",
        "mode": "triggered",
        "status": "active",
        "trigger": {"kind": "event", "eventName": "purchase"},
        "flow": {"questions": [{"id": "q1", "type": "nps", "title": "How?", "required": true}]},
    })
}
