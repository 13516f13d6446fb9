//! What push services are sent, what their answers mean, and what follows for tokens and credentials (contract 9).

use std::time::Duration;

use futures_util::future::join_all;
use nudge::push::providers::{
    MOST_PAYLOAD_BYTES, Message, Options, Outcome, Priority, Provider, Target, payload_bytes,
};
use serde_json::{Value, json};
use tests::providers::{Reply, apns, fcm};
use tests::{Session, TestApp, on_both_backends};

use crate::push_tokens::targets;

on_both_backends!(
    apns_gets_what_apple_asks_for,
    apns_tokens_are_reused_and_refreshed,
    apns_answers_are_told_apart,
    environments_have_services_of_their_own,
    fcm_gets_what_google_asks_for,
    fcm_grants_are_shared_and_renewed,
    fcm_answers_are_told_apart,
    browsers_read_what_they_are_sent,
    web_push_answers_are_told_apart,
    endpoints_are_checked_at_each_connection,
    a_retired_token_is_not_one_that_was_registered_anew,
    a_refused_credential_rests_until_another_comes,
    the_newest_credential_is_used,
    without_a_credential_nothing_is_asked,
    what_is_too_large_or_too_late_is_not_sent,
    a_service_that_is_away_is_asked_again,
);

fn message(app: &TestApp, options: Options) -> Message {
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

fn everything() -> Options {
    Options {
        collapse_key: Some("order-7".to_owned()),
        ttl_seconds: Some(600),
        priority: Some(Priority::Normal),
        sound: Some("ding".to_owned()),
        badge: Some(2),
        image_url: Some("https://shop.example/7.png".to_owned()),
    }
}

async fn send(app: &TestApp, target: &Target, message: &Message) -> Outcome {
    let sent = app
        .services()
        .providers
        .send(app.access.app_id, target, message);
    sent.await.unwrap()
}

/// A session with one device.
async fn device(app: &TestApp, name: &str, token: &Value) -> (Session, Target) {
    let session = app.session(name).await;
    app.push_token(&session, name, token).await;
    let target = targets(app, &session).await.remove(0);
    (session, target)
}

fn accepted(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Accepted {
            provider_message_id,
        } => provider_message_id.clone().unwrap_or_default(),
        other => unreachable!("{other:?}"),
    }
}

fn unregistered(reason: &str) -> Outcome {
    let reason = reason.to_owned();
    Outcome::Unregistered { reason }
}

fn rejected(reason: &str) -> Outcome {
    let reason = reason.to_owned();
    Outcome::Rejected { reason }
}

fn invalid(reason: &str) -> Outcome {
    let reason = reason.to_owned();
    Outcome::CredentialInvalid { reason }
}

fn retry(after: Option<u64>, reason: &str) -> Outcome {
    Outcome::Retry {
        after: after.map(Duration::from_secs),
        reason: reason.to_owned(),
    }
}

/// Status and reason of each credential, the newest first.
async fn statuses(app: &TestApp) -> Vec<(String, Option<String>)> {
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

async fn apns_gets_what_apple_asks_for(app: &mut TestApp) {
    let providers = app.with_providers().await;
    app.credential(&providers.apns.credential()).await;
    let (_, target) = device(app, "ada", &providers.apns.token(1)).await;
    let full = message(app, everything());
    let id = accepted(&send(app, &target, &full).await);
    // A retry, much later, is the same message.
    app.advance(300);
    assert_eq!(accepted(&send(app, &target, &full).await), id);
    let plain = message(app, Options::default());
    assert_ne!(accepted(&send(app, &target, &plain).await), id);

    let received = providers.apns.received();
    assert_eq!(received.len(), 3);
    let first = &received[0];
    assert_eq!(first.version, reqwest::Version::HTTP_2);
    assert_eq!(first.path, format!("/3/device/{}", apns::device_token(1)));
    let until = (full.created_at.seconds() + 600).to_string();
    for (name, value) in [
        ("apns-topic", apns::BUNDLE_ID),
        ("apns-push-type", "alert"),
        ("apns-priority", "5"),
        ("apns-collapse-id", "order-7"),
        ("apns-expiration", &until),
        ("apns-id", &id),
    ] {
        assert_eq!(first.header(name), value, "{name}");
    }
    let body = first.json();
    assert_eq!(
        body,
        json!({
            "aps": {
                "alert": {"title": "Your order", "body": "is on its way, Ada"},
                "sound": "ding", "badge": 2, "mutable-content": 1,
            },
            "nudge": {
                "deliveryId": full.delivery_id, "imageUrl": "https://shop.example/7.png",
                "openAction": {"action": "deep_link", "url": "shop://orders/7"},
            },
        })
    );
    assert_eq!(received[1].body, first.body);
    assert_eq!(received[1].header("apns-expiration"), until);
    assert_eq!(received[2].header("apns-priority"), "10");
    assert_eq!(received[2].header("apns-expiration"), "");
    assert_eq!(
        received[2].header("apns-collapse-id"),
        plain.delivery_id.to_string()
    );
    assert_eq!(providers.apns.connections(), 1, "connections are kept");
}

async fn apns_tokens_are_reused_and_refreshed(app: &mut TestApp) {
    let providers = app.with_providers().await;
    app.credential(&providers.apns.credential()).await;
    let (_, target) = device(app, "ada", &providers.apns.token(1)).await;
    let message = message(app, Options::default());
    let bearer = |index: usize| {
        providers.apns.received()[index]
            .header("authorization")
            .to_owned()
    };

    accepted(&send(app, &target, &message).await);
    app.advance(50 * 60 - 1);
    accepted(&send(app, &target, &message).await);
    assert_eq!(bearer(0), bearer(1));
    app.advance(1);
    accepted(&send(app, &target, &message).await);
    assert_ne!(bearer(1), bearer(2));

    // Apple's clock is ahead: once, a new token is the remedy.
    providers.apns.answer_next(403, "ExpiredProviderToken");
    app.advance(60);
    accepted(&send(app, &target, &message).await);
    assert_eq!(
        (bearer(3) == bearer(2), bearer(4) == bearer(2)),
        (true, false)
    );
    for _ in 0..2 {
        providers.apns.answer_next(403, "ExpiredProviderToken");
    }
    assert_eq!(
        send(app, &target, &message).await,
        retry(None, "expired_provider_token")
    );
    assert_eq!(providers.apns.received().len(), 7);
    assert_eq!(statuses(app).await[0].0, "active");
}

async fn apns_answers_are_told_apart(app: &mut TestApp) {
    let providers = app.with_providers().await;
    app.credential(&providers.apns.credential()).await;
    let (session, target) = device(app, "ada", &providers.apns.token(1)).await;
    let message = message(app, Options::default());
    for (status, reason, outcome) in [
        (
            400,
            "DeviceTokenNotForTopic",
            rejected("device_token_not_for_topic"),
        ),
        (400, "BadTopic", rejected("bad_topic")),
        (413, "PayloadTooLarge", rejected("payload_too_large")),
        (404, "BadPath", rejected("bad_path")),
        (400, "<b>odd</b>", rejected("status_400")),
        (429, "TooManyRequests", retry(None, "too_many_requests")),
        (
            429,
            "TooManyProviderTokenUpdates",
            retry(None, "too_many_provider_token_updates"),
        ),
        (
            500,
            "InternalServerError",
            retry(None, "internal_server_error"),
        ),
        (503, "Shutdown", retry(None, "shutdown")),
    ] {
        providers.apns.answer_next(status, reason);
        assert_eq!(
            send(app, &target, &message).await,
            outcome,
            "{status} {reason}"
        );
    }
    let busy =
        Reply::json(503, &json!({"reason": "ServiceUnavailable"})).with("retry-after", "120");
    providers.apns.reply_next(busy);
    assert_eq!(
        send(app, &target, &message).await,
        retry(Some(120), "service_unavailable")
    );
    let huge = Reply {
        status: 400,
        body: "x".repeat(100_000),
        ..Reply::default()
    };
    providers.apns.reply_next(huge);
    assert_eq!(
        send(app, &target, &message).await,
        retry(None, "answer_too_large")
    );
    let elsewhere = Reply::default().with("location", "/elsewhere");
    providers.apns.reply_next(Reply {
        status: 307,
        ..elsewhere
    });
    assert_eq!(send(app, &target, &message).await, rejected("status_307"));
    assert_eq!(
        targets(app, &session).await.len(),
        1,
        "nothing of this retires a token"
    );

    providers
        .apns
        .refuse(&apns::device_token(1), 410, "Unregistered");
    assert_eq!(
        send(app, &target, &message).await,
        unregistered("unregistered")
    );
    assert!(targets(app, &session).await.is_empty());
    let user = app.get(&app.path("/users/ada"), &app.viewer()).await.ok();
    assert_eq!(user["devices"][0]["push"]["status"], "invalid");
    let (session, target) = device(app, "bob", &providers.apns.token(2)).await;
    providers
        .apns
        .refuse(&apns::device_token(2), 400, "BadDeviceToken");
    assert_eq!(
        send(app, &target, &message).await,
        unregistered("bad_device_token")
    );
    assert!(targets(app, &session).await.is_empty());
}

async fn environments_have_services_of_their_own(app: &mut TestApp) {
    let providers = app.with_providers().await;
    app.credential(&providers.apns.credential()).await;
    app.credential(&providers.sandbox.credential()).await;
    let (_, released) = device(app, "ada", &providers.apns.token(1)).await;
    let (_, developed) = device(app, "bob", &providers.sandbox.token(2)).await;
    let message = message(app, Options::default());
    accepted(&send(app, &released, &message).await);
    accepted(&send(app, &developed, &message).await);
    let paths = |apns: &tests::providers::Apns| {
        let received = apns.received().into_iter();
        received.map(|request| request.path).collect::<Vec<_>>()
    };
    assert_eq!(
        paths(&providers.apns),
        [format!("/3/device/{}", apns::device_token(1))]
    );
    assert_eq!(
        paths(&providers.sandbox),
        [format!("/3/device/{}", apns::device_token(2))]
    );

    // With one credential, its key is tried for the other environment too; what it is refused there is told apart.
    let path = app.path("/push/credentials");
    let listed = app.get(&path, &app.admin()).await.ok();
    let sandbox = listed[0]["id"].as_str().unwrap();
    app.delete(&format!("{path}/{sandbox}"), &app.admin())
        .await
        .data(204);
    for (status, reason) in [(400, "BadDeviceToken"), (403, "BadEnvironmentKeyInToken")] {
        providers.sandbox.answer_next(status, reason);
        assert_eq!(
            send(app, &developed, &message).await,
            rejected("environment_mismatch")
        );
    }
    assert_eq!(statuses(app).await, [("active".to_owned(), None)]);
    providers.apns.answer_next(403, "BadEnvironmentKeyInToken");
    assert_eq!(
        send(app, &released, &message).await,
        invalid("environment_mismatch")
    );
}

async fn fcm_gets_what_google_asks_for(app: &mut TestApp) {
    let providers = app.with_providers().await;
    app.credential(&providers.fcm.credential()).await;
    let (_, target) = device(app, "ada", &providers.fcm.token(1)).await;
    let full = message(app, everything());
    let name = accepted(&send(app, &target, &full).await);
    assert_eq!(name, format!("projects/{}/messages/1", fcm::PROJECT));
    app.advance(300);
    accepted(&send(app, &target, &full).await);

    let received = providers.fcm.received();
    assert_eq!(received[0].body, received[1].body);
    let body = received[0].json();
    let sent = &body["message"];
    assert_eq!(sent["token"], fcm::registration_token(1));
    assert_eq!(
        sent["notification"],
        json!({"title": "Your order", "body": "is on its way, Ada", "image": "https://shop.example/7.png"})
    );
    assert_eq!(
        sent["android"],
        json!({"priority": "NORMAL", "collapse_key": "order-7", "ttl": "600s",
            "notification": {"tag": "order-7", "sound": "ding", "notification_count": 2}})
    );
    let data: Value = serde_json::from_str(sent["data"]["nudge"].as_str().unwrap()).unwrap();
    assert_eq!(data["deliveryId"], json!(full.delivery_id));
    assert_eq!(data["openAction"], full.open_action);
}

async fn fcm_grants_are_shared_and_renewed(app: &mut TestApp) {
    let providers = app.with_providers().await;
    app.credential(&providers.fcm.credential()).await;
    let (_, target) = device(app, "ada", &providers.fcm.token(1)).await;
    let messages: Vec<Message> = (0..20).map(|_| message(app, Options::default())).collect();
    let outcomes = join_all(messages.iter().map(|message| send(app, &target, message))).await;
    for outcome in &outcomes {
        accepted(outcome);
    }
    assert_eq!(
        providers.fcm.granted().len(),
        1,
        "twenty at once ask for one"
    );

    let message = &messages[0];
    app.advance(3_600 - 60 - 1);
    accepted(&send(app, &target, message).await);
    assert_eq!(providers.fcm.granted().len(), 1);
    app.advance(1);
    accepted(&send(app, &target, message).await);
    assert_eq!(providers.fcm.granted().len(), 2, "a minute before its end");
    providers.fcm.revoke();
    accepted(&send(app, &target, message).await);
    assert_eq!(providers.fcm.granted().len(), 3);

    for (status, error, outcome) in [
        (429, "rate_limited", retry(None, "rate_limited")),
        (503, "", retry(None, "status_503")),
        (400, "invalid_grant", invalid("invalid_grant")),
    ] {
        providers.fcm.revoke();
        providers.fcm.refuse_grant(status, error);
        assert_eq!(send(app, &target, message).await, outcome);
    }
    let expected = ("invalid".to_owned(), Some("invalid_grant".to_owned()));
    assert_eq!(statuses(app).await, [expected]);
}

async fn fcm_answers_are_told_apart(app: &mut TestApp) {
    let providers = app.with_providers().await;
    app.credential(&providers.fcm.credential()).await;
    let (session, target) = device(app, "ada", &providers.fcm.token(1)).await;
    let message = message(app, Options::default());
    for (status, code, outcome) in [
        (400, "INVALID_ARGUMENT", rejected("invalid_argument")),
        (403, "SENDER_ID_MISMATCH", rejected("sender_id_mismatch")),
        (
            401,
            "THIRD_PARTY_AUTH_ERROR",
            rejected("third_party_auth_error"),
        ),
        (500, "INTERNAL", retry(None, "internal")),
        (503, "UNAVAILABLE", retry(None, "unavailable")),
        (404, "", rejected("not_found")),
    ] {
        providers.fcm.answer_next(status, code);
        if status == 401 {
            // A new access token is tried first.
            providers.fcm.answer_next(status, code);
        }
        assert_eq!(
            send(app, &target, &message).await,
            outcome,
            "{status} {code}"
        );
    }
    let error = json!({"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "details": [{"errorCode": "QUOTA_EXCEEDED"}]}});
    providers
        .fcm
        .reply_next(Reply::json(429, &error).with("retry-after", "60"));
    assert_eq!(
        send(app, &target, &message).await,
        retry(Some(60), "quota_exceeded")
    );
    assert_eq!(targets(app, &session).await.len(), 1);
    assert_eq!(statuses(app).await[0].0, "active");

    providers
        .fcm
        .refuse(&fcm::registration_token(1), 404, "UNREGISTERED");
    assert_eq!(
        send(app, &target, &message).await,
        unregistered("unregistered")
    );
    assert!(targets(app, &session).await.is_empty());
    // A token that Google can't even read.
    let (session, target) = device(app, "bob", &providers.fcm.token(2)).await;
    let error = json!({"error": {"code": 400, "status": "INVALID_ARGUMENT", "details": [
        {"@type": "type.googleapis.com/google.firebase.fcm.v1.FcmError", "errorCode": "INVALID_ARGUMENT"},
        {"@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": [{"field": "message.token"}]},
    ]}});
    providers.fcm.reply_next(Reply::json(400, &error));
    assert_eq!(
        send(app, &target, &message).await,
        unregistered("invalid_argument")
    );
    assert!(targets(app, &session).await.is_empty());

    let (_, target) = device(app, "eve", &providers.fcm.token(3)).await;
    providers.fcm.answer_next(403, "");
    assert_eq!(
        send(app, &target, &message).await,
        invalid("permission_denied")
    );
}

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
    for target in [&by_address, &by_name] {
        assert_eq!(
            send(app, target, &message).await,
            rejected("endpoint_not_allowed")
        );
    }
    assert_eq!(providers.webpush.received().len(), 2);
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
    assert_eq!(send(app, &apple, &message).await, Outcome::NoCredential);
    // Another app has none of this app's.
    let (other, _) = app
        .another_app(app.access.workspace_id, nudge::apps::key::Kind::Write, &[])
        .await;
    let sent = app
        .services()
        .providers
        .send(other, &google, &message)
        .await;
    assert_eq!(sent.unwrap(), Outcome::NoCredential);
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
    app.advance(59);
    accepted(&send(app, &target, &short).await);
    app.advance(1);
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
    drop(providers);
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
