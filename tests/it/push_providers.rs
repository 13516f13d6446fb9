//! What all push services have in common: which credential they are asked with, what follows from their answers for
//! tokens and credentials, what is not sent (contract 9).

use std::time::Duration;

use nudge_campaigns::push::message::Message;
use nudge_campaigns::push::options::{Options, Priority};
use nudge_push::providers::{MOST_PAYLOAD_BYTES, PushOutcome, Target, payload_bytes};
use serde_json::{Value, json};
use tests::{Session, TestApp, on_both_backends};

use crate::push_tokens::targets;

on_both_backends!(
    a_retired_token_is_not_one_that_was_registered_anew,
    a_refused_credential_rests_until_another_comes,
    the_newest_credential_is_used,
    without_a_credential_nothing_is_asked,
    what_is_too_large_or_too_late_is_not_sent,
    a_service_that_is_away_is_asked_again,
);

pub(crate) fn message(app: &TestApp, options: Options) -> Message {
    Message {
        delivery_id: app.id(),
        created_at: app.clock.now(),
        test: false,
        title: "Your order".to_owned(),
        body: "is on its way, Ada".to_owned(),
        open_action: json!({"action": "deep_link", "url": "shop://orders/7"}),
        options,
    }
}

pub(crate) fn everything() -> Options {
    Options {
        collapse_key: Some("order-7".to_owned()),
        ttl_seconds: Some(600),
        priority: Some(Priority::Normal),
        sound: Some("ding".to_owned()),
        badge: Some(2),
        image_url: Some("https://shop.example/7.png".to_owned()),
    }
}

pub(crate) async fn send(app: &TestApp, target: &Target, message: &Message) -> PushOutcome {
    let sent = app
        .services()
        .push
        .providers
        .send(app.access.app_id, target, message);
    sent.await.unwrap()
}

/// A session with one device.
pub(crate) async fn device(app: &TestApp, name: &str, token: &Value) -> (Session, Target) {
    let session = app.session(name).await;
    app.push_token(&session, name, token).await;
    let target = targets(app, &session).await.remove(0);
    (session, target)
}

pub(crate) fn accepted(outcome: &PushOutcome) -> String {
    match outcome {
        PushOutcome::Accepted {
            provider_message_id,
        } => provider_message_id.clone().unwrap_or_default(),
        other => unreachable!("{other:?}"),
    }
}

pub(crate) fn unregistered(reason: &str) -> PushOutcome {
    let reason = reason.to_owned();
    PushOutcome::Unregistered { reason }
}

pub(crate) fn rejected(reason: &str) -> PushOutcome {
    let reason = reason.to_owned();
    PushOutcome::Rejected { reason }
}

pub(crate) fn invalid(reason: &str) -> PushOutcome {
    let reason = reason.to_owned();
    PushOutcome::CredentialInvalid { reason }
}

pub(crate) fn retry(after: Option<u64>, reason: &str) -> PushOutcome {
    PushOutcome::Retry {
        after: after.map(Duration::from_secs),
        reason: reason.to_owned(),
    }
}

/// Status and reason of each credential, the newest first.
pub(crate) async fn statuses(app: &TestApp) -> Vec<(String, Option<String>)> {
    let path = app.path("/push/credentials");
    let listed = app.get(&path, &app.admin()).await.ok();
    let text = |value: &Value| value.as_str().map(str::to_owned);
    listed
        .as_array()
        .unwrap()
        .iter()
        .map(|record| {
            (
                text(&record["status"]).unwrap(),
                text(&record["statusReason"]),
            )
        })
        .collect()
}

async fn a_retired_token_is_not_one_that_was_registered_anew(app: &mut TestApp) {
    let providers = app.with_providers().await;
    app.credential(&providers.fcm.credential()).await;
    let (session, before) = device(app, "ada", &providers.fcm.token(1)).await;
    let message = message(app, Options::default());
    // The message is on its way when the SDK registers again, with the same token or another.
    for number in [1, 2] {
        app.push_token(&session, "ada", &providers.fcm.token(number))
            .await;
        providers.fcm.answer_next(404, "UNREGISTERED");
        assert_eq!(
            send(app, &before, &message).await,
            unregistered("unregistered")
        );
        assert_eq!(targets(app, &session).await.len(), 1);
    }
    let now = targets(app, &session).await.remove(0);
    providers.fcm.answer_next(404, "UNREGISTERED");
    assert_eq!(
        send(app, &now, &message).await,
        unregistered("unregistered")
    );
    assert!(targets(app, &session).await.is_empty());
    app.push_token(&session, "ada", &providers.fcm.token(2))
        .await;
    assert_eq!(targets(app, &session).await.len(), 1);
}

async fn a_refused_credential_rests_until_another_comes(app: &mut TestApp) {
    let providers = app.with_providers().await;
    app.credential(&providers.apns.credential()).await;
    let (session, target) = device(app, "ada", &providers.apns.token(1)).await;
    let message = message(app, Options::default());
    providers.apns.answer_next(403, "InvalidProviderToken");
    assert_eq!(
        send(app, &target, &message).await,
        invalid("invalid_provider_token")
    );
    let expected = (
        "invalid".to_owned(),
        Some("invalid_provider_token".to_owned()),
    );
    assert_eq!(statuses(app).await, std::slice::from_ref(&expected));
    assert_eq!(
        send(app, &target, &message).await,
        invalid("invalid_provider_token")
    );
    app.restart().await;
    assert_eq!(
        send(app, &target, &message).await,
        invalid("invalid_provider_token")
    );
    assert_eq!(
        providers.apns.received().len(),
        1,
        "Apple is not asked again"
    );
    assert_eq!(targets(app, &session).await.len(), 1);

    app.credential(&providers.apns.credential()).await;
    accepted(&send(app, &target, &message).await);
    assert_eq!(statuses(app).await, [("active".to_owned(), None), expected]);
}

async fn the_newest_credential_is_used(app: &mut TestApp) {
    let providers = app.with_providers().await;
    app.credential(&providers.apns.credential()).await;
    let mut other = providers.apns.credential();
    other["bundleId"] = json!("com.example.other");
    let newest = app.credential(&other).await;
    let (_, target) = device(app, "ada", &providers.apns.token(1)).await;
    let message = message(app, Options::default());
    assert_eq!(
        send(app, &target, &message).await,
        rejected("device_token_not_for_topic")
    );
    let path = app.path(&format!(
        "/push/credentials/{}",
        newest["id"].as_str().unwrap()
    ));
    app.delete(&path, &app.admin()).await.data(204);
    accepted(&send(app, &target, &message).await);
}

async fn without_a_credential_nothing_is_asked(app: &mut TestApp) {
    let providers = app.with_providers().await;
    app.credential(&providers.fcm.credential()).await;
    let (_, apple) = device(app, "ada", &providers.apns.token(1)).await;
    let (_, google) = device(app, "bob", &providers.fcm.token(1)).await;
    let message = message(app, Options::default());
    assert_eq!(send(app, &apple, &message).await, PushOutcome::NoCredential);
    // Another app has none of this app's.
    let (other, _) = app
        .another_app(app.access.workspace_id, nudge_apps::key::Kind::Write, &[])
        .await;
    let sent = app
        .services()
        .push
        .providers
        .send(other, &google, &message)
        .await;
    assert_eq!(sent.unwrap(), PushOutcome::NoCredential);
    accepted(&send(app, &google, &message).await);
}

async fn what_is_too_large_or_too_late_is_not_sent(app: &mut TestApp) {
    let providers = app.with_providers().await;
    app.credential(&providers.apns.credential()).await;
    app.credential(&providers.fcm.credential()).await;
    app.credential(&json!({"platform": "web", "vapid": {"generate": true}}))
        .await;
    let browser = providers.webpush.browser(1);
    for (name, token) in [
        ("ada", providers.apns.token(1)),
        ("bob", providers.fcm.token(1)),
        ("eve", browser.token()),
    ] {
        let (_, target) = device(app, name, &token).await;
        let mut message = message(app, Options::default());
        let room = MOST_PAYLOAD_BYTES - payload_bytes(target.provider, &message);
        message.body.push_str(&"x".repeat(room));
        accepted(&send(app, &target, &message).await);
        message.body.push('x');
        assert_eq!(
            send(app, &target, &message).await,
            rejected("payload_too_large")
        );
    }
    assert_eq!(providers.apns.received()[0].body.len(), MOST_PAYLOAD_BYTES);
    assert_eq!(
        providers.webpush.received()[0].body.len(),
        MOST_PAYLOAD_BYTES
    );

    let (_, target) = device(app, "kim", &providers.apns.token(2)).await;
    let with_ttl = |seconds| Options {
        ttl_seconds: Some(seconds),
        ..Options::default()
    };
    let (short, now_or_never) = (message(app, with_ttl(60)), message(app, with_ttl(0)));
    app.advance(30);
    accepted(&send(app, &target, &short).await);
    app.advance(30);
    assert_eq!(send(app, &target, &short).await, rejected("expired"));
    accepted(&send(app, &target, &now_or_never).await);
    let received = providers.apns.received();
    assert_eq!(received.last().unwrap().header("apns-expiration"), "0");
}

async fn a_service_that_is_away_is_asked_again(app: &mut TestApp) {
    let providers = app.with_providers().await;
    app.credential(&providers.apns.credential()).await;
    app.credential(&providers.fcm.credential()).await;
    let (_, apple) = device(app, "ada", &providers.apns.token(1)).await;
    let (_, google) = device(app, "bob", &providers.fcm.token(1)).await;
    let message = message(app, Options::default());
    // The services go, and the certificates that their clients are made with stay.
    drop((providers.apns, providers.fcm));
    for target in [&apple, &google] {
        assert_eq!(
            send(app, target, &message).await,
            retry(None, "unreachable")
        );
    }
    assert!(
        statuses(app)
            .await
            .iter()
            .all(|(status, _)| status == "active")
    );
}
