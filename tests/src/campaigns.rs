//! Push campaigns and their deliveries.
#![expect(
    clippy::expect_used,
    reason = "test support: what fails here fails the test where it stands"
)]

use serde_json::{Value, json};

use crate::client::Answer;
use crate::providers::Providers;
use crate::session::text;
use crate::{Session, TestApp};

/// An active campaign of one variant, which every `purchase` fires.
pub fn campaign_body() -> Value {
    json!({
        "name": "Thank you",
        "mode": "triggered",
        "status": "active",
        "trigger": {"kind": "event", "eventName": "purchase"},
        "variants": [{"title": "Thanks", "body": "It is on its way", "weight": 1}],
    })
}

/// The campaign of [`campaign_body`] with some parts of its own.
pub fn campaign_with(parts: &Value) -> Value {
    let mut body = campaign_body();
    if let (Some(body), Some(parts)) = (body.as_object_mut(), parts.as_object()) {
        body.extend(parts.clone());
    }
    body
}

/// A `personalization` with one source and its bindings: id, key, type.
pub fn personalization(source: &Value, bindings: &[(&str, &str, &str)]) -> Value {
    let bindings: Vec<Value> = bindings
        .iter()
        .map(|(id, key, kind)| json!({"id": id, "sourceId": "s", "key": key, "type": kind}))
        .collect();
    let mut source = source.clone();
    if let Some(source) = source.as_object_mut() {
        source.insert("id".to_owned(), json!("s"));
    }
    json!({"version": 1, "missingData": "skip", "sources": [source], "bindings": bindings})
}

impl TestApp {
    /// Makes a campaign that runs, with some parts of its own, and answers its id.
    pub async fn campaign(&self, parts: &Value) -> String {
        let made = self.create_campaign(&campaign_with(parts)).await.data(201);
        text(&made, "id")
    }

    /// Makes a campaign whose messages backends ask for, and answers its id.
    pub async fn transactional_campaign(&self) -> String {
        let parts = json!({"mode": "transactional", "trigger": null});
        self.campaign(&parts).await
    }

    /// Starts push services and makes all that a message takes: Apple's credential, Ada with a phone, and a campaign whose messages
    /// backends ask for.
    pub async fn with_phone_and_campaign(&mut self) -> (Providers, Session, String) {
        let providers = self.with_providers().await;
        self.credential(&providers.apns.credential()).await;
        let ada = self.session("ada").await;
        self.push_token(&ada, "phone", &providers.apns.token(1))
            .await;
        let campaign = self.transactional_campaign().await;
        (providers, ada, campaign)
    }

    /// Makes a campaign.
    pub async fn create_campaign(&self, body: &Value) -> Answer {
        let path = self.path("/campaigns");
        self.post(&path, &self.editor(), body).await
    }

    /// A campaign.
    pub async fn campaign_of(&self, id: &str) -> Value {
        let path = self.path(&format!("/campaigns/{id}"));
        self.get(&path, &self.viewer()).await.ok()
    }

    /// Asks for a message.
    pub async fn transactional(&self, body: &Value) -> Answer {
        let path = self.path("/push/transactional");
        self.post(&path, &self.backend(), body).await
    }

    /// A delivery.
    pub async fn delivery(&self, id: &str) -> Value {
        let path = self.path(&format!("/push/deliveries/{id}"));
        self.get(&path, &self.viewer()).await.ok()
    }

    /// The deliveries of a list, newest first; `query` is like `?status=sent`, or empty.
    pub async fn deliveries(&self, query: &str) -> Vec<Value> {
        let path = self.path(&format!("/push/deliveries{query}"));
        let data = self.get(&path, &self.viewer()).await.ok();
        let items = data.get("items").and_then(Value::as_array);
        items.cloned().expect("items")
    }

    /// Waits until a delivery is in a status, and answers it.
    pub async fn delivery_in(&self, id: &str, status: &str) -> Value {
        let what = format!("the delivery does not get {status}");
        self.until(&what, async || {
            text(&self.delivery(id).await, "status") == status
        })
        .await;
        self.delivery(id).await
    }

    /// Waits until a person has so many deliveries in a status, and answers them.
    pub async fn delivered_to(&self, session: &Session, status: &str, count: usize) -> Vec<Value> {
        let query = format!("?subjectId={}&status={status}", session.subject_id);
        let what = format!("there are not {count} deliveries {status}");
        self.until(&what, async || self.deliveries(&query).await.len() == count)
            .await;
        self.deliveries(&query).await
    }

    /// Sends a receipt.
    pub async fn receipt(&self, session: &Session, delivery_id: &str, kind: &str) -> Value {
        let body = json!({"receipts": [{"deliveryId": delivery_id, "type": kind}]});
        self.post("/v1/sdk/push/receipts", &session.credential(), &body)
            .await
            .ok()
    }
}

/// The states that a delivery came into, in order.
pub fn states(delivery: &Value) -> Vec<String> {
    let transitions = delivery.get("transitions").and_then(Value::as_array);
    transitions
        .into_iter()
        .flatten()
        .map(|transition| text(transition, "status"))
        .collect()
}
