//! Browsers' services: what they are sent, what their answers mean, and where they may be (contract 9).

use nudge_campaigns::push::options::Options;
use nudge_push::providers::payload_bytes;
use nudge_records::deliveries::provider::Provider;
use serde_json::json;
use tests::providers::Reply;
use tests::{TestApp, on_both_backends};

use crate::push_providers::{
    accepted, device, everything, message, rejected, retry, send, statuses, unregistered,
};
use crate::push_tokens::targets;

on_both_backends!(
    browsers_read_what_they_are_sent,
    web_push_answers_are_told_apart,
    endpoints_are_checked_at_each_connection,
);

async fn browsers_read_what_they_are_sent(app: &mut TestApp) {
    let providers = app.with_providers().await;
    let credential = json!({"platform": "web", "vapid": {"generate": true, "subject": "mailto:push@shop.example"}});
    app.credential(&credential).await;
    let (one, other) = (providers.webpush.browser(1), providers.webpush.browser(2));
    let (_, ada) = device(app, "ada", &one.token()).await;
    let (_, bob) = device(app, "bob", &other.token()).await;
    let full = message(app, everything());
    assert!(accepted(&send(app, &ada, &full).await).starts_with(&providers.webpush.url));
    accepted(&send(app, &ada, &full).await);
    let plain = message(app, Options::default());
    accepted(&send(app, &bob, &plain).await);

    let read = providers.webpush.read(&one);
    assert_eq!(read.len(), 2);
    assert_eq!(read[0], read[1]);
    assert_eq!(
        read[0],
        json!({
            "title": "Your order", "body": "is on its way, Ada", "tag": "order-7",
            "image": "https://shop.example/7.png", "badge": 2, "sound": "ding",
            "nudge": {
                "deliveryId": full.delivery_id, "imageUrl": "https://shop.example/7.png",
                "openAction": {"action": "deep_link", "url": "shop://orders/7"},
            },
        })
    );
    assert_eq!(
        providers.webpush.read(&other)[0]["tag"],
        plain.delivery_id.to_string()
    );
    let received = providers.webpush.received();
    assert_eq!(
        (received[0].header("ttl"), received[0].header("urgency")),
        ("600", "normal")
    );
    assert_eq!(
        (received[2].header("ttl"), received[2].header("urgency")),
        ("2419200", "high")
    );
    assert_eq!(received[0].header("topic"), received[1].header("topic"));
    assert_ne!(received[0].body, received[1].body, "no key is used twice");
    assert_eq!(
        received[0].body.len(),
        payload_bytes(Provider::Webpush, &full)
    );
}

async fn web_push_answers_are_told_apart(app: &mut TestApp) {
    let providers = app.with_providers().await;
    app.credential(&json!({"platform": "web", "vapid": {"generate": true}}))
        .await;
    let browser = providers.webpush.browser(1);
    let (session, target) = device(app, "ada", &browser.token()).await;
    let message = message(app, Options::default());
    for (status, outcome) in [
        (413, rejected("payload_too_large")),
        (400, rejected("status_400")),
        (301, rejected("status_301")),
        (401, rejected("vapid_refused")),
        (403, rejected("vapid_refused")),
        (500, retry(None, "status_500")),
    ] {
        providers.webpush.reply_next(Reply {
            status,
            ..Reply::default()
        });
        assert_eq!(send(app, &target, &message).await, outcome, "{status}");
    }
    let busy = Reply {
        status: 429,
        ..Reply::default()
    };
    providers.webpush.reply_next(busy.with("retry-after", "7"));
    assert_eq!(
        send(app, &target, &message).await,
        retry(Some(7), "too_many_requests")
    );
    assert_eq!(
        statuses(app).await[0].0,
        "active",
        "an endpoint can't harm others"
    );
    assert_eq!(targets(app, &session).await.len(), 1);
    accepted(&send(app, &target, &message).await);

    providers.webpush.refuse(&browser, 410);
    assert_eq!(
        send(app, &target, &message).await,
        unregistered("unregistered")
    );
    assert!(targets(app, &session).await.is_empty());
}

async fn endpoints_are_checked_at_each_connection(app: &mut TestApp) {
    let providers = app.with_providers().await;
    app.credential(&json!({"platform": "web", "vapid": {"generate": true}}))
        .await;
    let (_, by_address) = device(app, "ada", &providers.webpush.browser(1).token()).await;
    let mut named = providers.webpush.browser(2).token();
    let endpoint = named["subscription"]["endpoint"].as_str().unwrap();
    let endpoint = endpoint.replace("127.0.0.1", "localhost");
    named["subscription"]["endpoint"] = json!(endpoint);
    let (_, by_name) = device(app, "bob", &named).await;
    let message = message(app, Options::default());
    accepted(&send(app, &by_address, &message).await);
    accepted(&send(app, &by_name, &message).await);

    app.config.webhooks.allow_private_networks = false;
    app.restart().await;
    // Without a look-up: an address, and a name of this machine.
    for target in [&by_address, &by_name] {
        assert_eq!(
            send(app, target, &message).await,
            rejected("endpoint_not_allowed")
        );
    }
    assert_eq!(providers.webpush.received().len(), 2);
}
