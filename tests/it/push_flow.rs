//! From an event to a device, and what a customer is told of it.

use nudge_campaigns::webhooks::EventType;
use serde_json::json;
use tests::session::text;
use tests::{TestApp, on_both_backends};

use crate::receiver::{Receiver, events};

on_both_backends!(
    an_event_becomes_a_message_and_webhooks_hear_of_it,
    one_firing_is_one_delivery_across_a_restart,
    caps_count_messages,
);

async fn an_event_becomes_a_message_and_webhooks_hear_of_it(app: &mut TestApp) {
    app.config.webhooks.allow_http = true;
    app.config.webhooks.allow_private_networks = true;
    let providers = app.with_providers().await;
    app.credential(&providers.fcm.credential()).await;
    let ada = app.session("ada").await;
    app.push_token(&ada, "phone", &providers.fcm.token(1)).await;
    let campaign = app.campaign(&json!({})).await;
    let receiver = Receiver::start().await;
    receiver.subscribe(app, "/hook", EventType::ALL).await;
    let event = app.event(&ada, "purchase", &json!({"total": 5}));
    app.ingest(&ada, &[event]).await.ok();

    let delivery = app.delivered_to(&ada, "delivered", 1).await.remove(0);
    assert_eq!(delivery["campaignId"], json!(campaign));
    assert_eq!(providers.fcm.received().len(), 1);
    let id = text(&delivery, "deliveryId");
    assert_eq!(app.receipt(&ada, &id, "opened").await["accepted"], 1);
    assert_eq!(app.delivery(&id).await["status"], "opened");

    let told = receiver.wait(app, "/hook", 3).await;
    assert_eq!(events(&told), ["sent", "delivered", "opened"]);
    for (one, at) in told.iter().zip(["sentAt", "deliveredAt", "openedAt"]) {
        let data = &one.json()["data"];
        for (key, value) in [
            ("campaignId", json!(campaign)),
            ("deliveryId", json!(id)),
            ("variantId", delivery["variantId"].clone()),
            ("subjectId", json!(ada.subject_id)),
            ("anonymousId", json!("ada")),
            ("platform", json!("android")),
            ("test", json!(false)),
        ] {
            assert_eq!(data[key], value, "{key} of {at}");
        }
        assert!(data[at].is_string(), "{data}");
    }
    assert!(told[1].json()["data"]["providerMessageId"].is_string());
}

async fn one_firing_is_one_delivery_across_a_restart(app: &mut TestApp) {
    let providers = app.with_providers().await;
    app.credential(&providers.apns.credential()).await;
    let ada = app.session("ada").await;
    app.push_token(&ada, "phone", &providers.apns.token(1))
        .await;
    app.campaign(&json!({})).await;
    let event = app.event(&ada, "purchase", &json!({}));
    app.ingest(&ada, std::slice::from_ref(&event)).await.ok();
    app.restart().await;
    app.ingest(&ada, &[event]).await.ok();
    app.settle().await;
    app.delivered_to(&ada, "delivered", 1).await;
    assert_eq!(app.deliveries("").await.len(), 1);
    assert_eq!(providers.apns.received().len(), 1);
}

async fn caps_count_messages(app: &mut TestApp) {
    let providers = app.with_providers().await;
    app.credential(&providers.apns.credential()).await;
    let ada = app.session("ada").await;
    app.push_token(&ada, "phone", &providers.apns.token(1))
        .await;
    app.campaign(&json!({"frequencyCap": {"perSubject": {"max": 2, "windowDays": 1}}}))
        .await;
    for _ in 0..4 {
        let event = app.event(&ada, "purchase", &json!({}));
        app.ingest(&ada, &[event]).await.ok();
    }
    app.settle().await;
    app.delivered_to(&ada, "delivered", 2).await;
    app.advance(24 * 3600 + 1);
    let ada = app.session("ada").await;
    let event = app.event(&ada, "purchase", &json!({}));
    app.ingest(&ada, &[event]).await.ok();
    app.settle().await;
    app.delivered_to(&ada, "delivered", 3).await;
}
