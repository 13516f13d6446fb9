//! Apple's service: what it is sent, and what its answers mean (contract 9).

use nudge_apps::key::Kind;
use nudge_campaigns::push::options::Options;
use serde_json::json;
use tests::providers::{Reply, apns};
use tests::{TestApp, on_both_backends};

use crate::push_providers::{
    accepted, device, everything, invalid, message, rejected, retry, send, statuses, unregistered,
};
use crate::push_tokens::targets;

on_both_backends!(
    apns_gets_what_apple_asks_for,
    apns_tokens_are_reused_and_refreshed,
    apns_answers_are_told_apart,
    teams_and_keys_have_connections_of_their_own,
    no_certificate_is_read_for_a_key,
    environments_have_services_of_their_own,
);

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
    app.advance(50 * 60 - 30);
    accepted(&send(app, &target, &message).await);
    assert_eq!(bearer(0), bearer(1));
    app.advance(30);
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
            403,
            "UnrelatedKeyIdInToken",
            retry(None, "unrelated_key_id_in_token"),
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

async fn teams_and_keys_have_connections_of_their_own(app: &mut TestApp) {
    let providers = app.with_providers().await;
    app.credential(&providers.apns.credential()).await;
    let (_, ada) = device(app, "ada", &providers.apns.token(1)).await;
    let message = message(app, Options::default());
    accepted(&send(app, &ada, &message).await);

    // Another key of the same team.
    let newest = providers
        .apns
        .credential_of(apns::OTHER_KEY_ID, apns::TEAM_ID);
    app.credential(&newest).await;
    accepted(&send(app, &ada, &message).await);

    // Another app, of another team.
    let (other, key) = app
        .another_app(app.access.workspace_id, Kind::Write, &[])
        .await;
    app.services().apps.refresh(other).await.unwrap();
    let first = (app.access.app_id, app.access.write_key.clone());
    (app.access.app_id, app.access.write_key) = (other, key);
    let theirs = providers
        .apns
        .credential_of(apns::KEY_ID, apns::OTHER_TEAM_ID);
    app.credential(&theirs).await;
    let (_, eve) = device(app, "eve", &providers.apns.token(2)).await;
    accepted(&send(app, &eve, &message).await);
    let active = ("active".to_owned(), None);
    assert_eq!(statuses(app).await, std::slice::from_ref(&active));

    (app.access.app_id, app.access.write_key) = first;
    accepted(&send(app, &ada, &message).await);
    assert_eq!(statuses(app).await, [active.clone(), active]);
    assert_eq!(providers.apns.received().len(), 4, "none was refused");
    assert_eq!(providers.apns.connections(), 3, "one for each key");
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

/// They are read at the start, and are gone when the first message of a key is sent.
async fn no_certificate_is_read_for_a_key(app: &mut TestApp) {
    let providers = app.with_providers().await;
    std::fs::remove_file(providers.roots()).unwrap();
    app.credential(&providers.apns.credential()).await;
    let (_, target) = device(app, "ada", &providers.apns.token(1)).await;
    accepted(&send(app, &target, &message(app, Options::default())).await);
    assert_eq!(
        providers.apns.received()[0].version,
        reqwest::Version::HTTP_2
    );
}
