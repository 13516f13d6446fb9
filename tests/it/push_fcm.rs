//! Google's service: what it is sent and granted, and what its answers mean (contract 9).

use std::time::Duration;

use futures_util::future::join_all;
use nudge_campaigns::push::message::Message;
use nudge_campaigns::push::options::Options;
use serde_json::{Value, json};
use tests::providers::{Hold, Reply, fcm};
use tests::{TestApp, on_both_backends};

use crate::push_providers::{
    accepted, device, everything, invalid, message, rejected, retry, send, statuses, unregistered,
};
use crate::push_tokens::targets;

on_both_backends!(
    fcm_gets_what_google_asks_for,
    fcm_grants_are_shared_and_renewed,
    who_waits_for_a_grant_that_is_refused_asks_for_no_other,
    fcm_answers_are_told_apart,
    a_wrong_clock_is_no_fault_of_the_account,
);

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
    app.advance(3_600 - 60 - 30);
    accepted(&send(app, &target, message).await);
    assert_eq!(providers.fcm.granted().len(), 1);
    app.advance(30);
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

async fn who_waits_for_a_grant_that_is_refused_asks_for_no_other(app: &mut TestApp) {
    let providers = app.with_providers().await;
    app.credential(&providers.fcm.credential()).await;
    let (_, target) = device(app, "ada", &providers.fcm.token(1)).await;
    let hold = Hold::default();
    providers.fcm.hold_grant(&hold);
    let messages: Vec<Message> = (0..20).map(|_| message(app, Options::default())).collect();
    let all = join_all(messages.iter().map(|message| send(app, &target, message)));
    let release = async {
        app.until("nobody asks", async || providers.fcm.granted().len() == 1)
            .await;
        // All have begun to wait.
        tokio::time::sleep(Duration::from_millis(300)).await;
        hold.release();
    };
    let (outcomes, ()) = tokio::join!(all, release);
    for outcome in outcomes {
        assert_eq!(outcome, retry(None, "status_503"));
    }
    assert_eq!(providers.fcm.granted().len(), 1);
    accepted(&send(app, &target, &messages[0]).await);
    assert_eq!(providers.fcm.granted().len(), 2);
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
        // A minute, where Google does not say for how long.
        (429, "QUOTA_EXCEEDED", retry(Some(60), "quota_exceeded")),
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
        .reply_next(Reply::json(429, &error).with("retry-after", "90"));
    assert_eq!(
        send(app, &target, &message).await,
        retry(Some(90), "quota_exceeded")
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
    // Without details.
    let (session, target) = device(app, "cyd", &providers.fcm.token(4)).await;
    let error = json!({"error": {"code": 404, "status": "UNREGISTERED"}});
    providers.fcm.reply_next(Reply::json(404, &error));
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

async fn a_wrong_clock_is_no_fault_of_the_account(app: &mut TestApp) {
    let providers = app.with_providers().await;
    app.credential(&providers.fcm.credential()).await;
    let (_, target) = device(app, "ada", &providers.fcm.token(1)).await;
    let message = message(app, Options::default());
    let said = "Invalid JWT: Token must be a short-lived token (60 minutes) and in a reasonable timeframe. Check your iat and exp \
                values in the JWT claim.";
    providers
        .fcm
        .refuse_grant_saying(400, "invalid_grant", said);
    assert_eq!(
        send(app, &target, &message).await,
        retry(None, "clock_differs")
    );
    assert_eq!(statuses(app).await[0].0, "active");
    accepted(&send(app, &target, &message).await);
}
