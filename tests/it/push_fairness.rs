//! One app's messages do not wait for another's, nor what is urgent for what is not.

use nudge_apps::key::Kind;
use nudge_records::deliveries::{self, NewDelivery, Status, Urgency};
use serde_json::json;
use tests::providers::{Hold, Reply};
use tests::session::text;
use tests::{Session, TestApp, on_both_backends};
use uuid::Uuid;

on_both_backends!(an_app_with_much_to_send_and_a_slow_service_holds_up_nobody);

/// What waits, and more than the sender ever has with a service at a time.
const MANY: usize = 10_000;
const HELD: usize = 1_000;

/// Queues so many messages for one person, as a run over many people would.
pub(crate) async fn queue(app: &TestApp, campaign: &str, whom: &Session, count: usize) {
    let campaign = app.campaign_of(campaign).await;
    let id = |text: String| Uuid::parse_str(&text).unwrap();
    let now = app.clock.now();
    let new = |_| NewDelivery {
        id: app.id(),
        campaign_id: id(text(&campaign, "id")),
        campaign_version: campaign["version"].as_i64().unwrap(),
        variant_id: id(text(&campaign["variants"][0], "id")),
        subject_id: id(whom.subject_id.clone()),
        event: None,
        data: None,
        idempotency_key: None,
        test: false,
        recipients: 1,
        status: Status::Queued,
        reason: None,
        content: None,
        urgency: Urgency::Rest,
        node: None,
    };
    let all: Vec<NewDelivery> = (0..count).map(new).collect();
    let services = app.services();
    let mut tx = services.db.write().await.unwrap();
    let queued = deliveries::queue(&mut tx, app.access.app_id, &all, now).await;
    assert_eq!(queued.unwrap().len(), count);
    tx.commit().await.unwrap();
    services.pipeline.deliveries().wake();
}

async fn an_app_with_much_to_send_and_a_slow_service_holds_up_nobody(app: &mut TestApp) {
    let providers = app.with_providers().await;
    for credential in [providers.apns.credential(), providers.fcm.credential()] {
        app.credential(&credential).await;
    }
    let ada = app.session("ada").await;
    app.push_token(&ada, "phone", &providers.apns.token(1))
        .await;
    let bob = app.session("bob").await;
    app.push_token(&bob, "tablet", &providers.fcm.token(1))
        .await;
    let campaign = app.transactional_campaign().await;
    let hold = Hold::default();
    for _ in 0..HELD {
        let slow = Reply {
            status: 200,
            ..Reply::default()
        };
        providers.apns.reply_next(slow.held(&hold));
    }
    queue(app, &campaign, &ada, MANY).await;
    // As many as the sender hands over at a time are with the service, and stay there.
    app.until("the service is busy", async || {
        providers.apns.received().len() >= 64
    })
    .await;

    // What somebody waits for finds its way in the same app.
    let body = json!({"campaignId": campaign, "anonymousId": "bob"});
    let urgent = text(&app.transactional(&body).await.data(202), "deliveryId");
    app.delivery_in(&urgent, "delivered").await;

    // And another app has nothing to do with it.
    let (other, key) = app
        .another_app(app.access.workspace_id, Kind::Write, &[])
        .await;
    app.services().apps.refresh(other).await.unwrap();
    let first = (app.access.app_id, app.access.write_key.clone());
    (app.access.app_id, app.access.write_key) = (other, key);
    app.credential(&providers.fcm.credential()).await;
    let eve = app.session("eve").await;
    app.push_token(&eve, "phone", &providers.fcm.token(2)).await;
    app.campaign(&json!({})).await;
    let event = app.event(&eve, "purchase", &json!({}));
    app.ingest(&eve, &[event]).await.ok();
    app.delivered_to(&eve, "delivered", 1).await;

    (app.access.app_id, app.access.write_key) = first;
    let waiting: Vec<(i64,)> = app
        .rows("SELECT count(*) FROM deliveries WHERE due_at IS NOT NULL AND node IS NULL")
        .await;
    assert!(
        waiting[0].0 > i64::try_from(MANY).unwrap() - 1_000,
        "{waiting:?}"
    );
    let busy = providers.apns.received().len();
    assert!(busy < HELD, "{busy}");
    let path = app.path(&format!("/campaigns/{campaign}"));
    app.delete(&path, &app.editor()).await.data(204);
    hold.release();
    app.until("nothing waits", async || {
        let waiting: Vec<(i64,)> = app
            .rows("SELECT count(*) FROM deliveries WHERE due_at IS NOT NULL")
            .await;
        waiting == [(0,)]
    })
    .await;
}
