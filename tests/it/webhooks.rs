//! Management of webhooks (specification 2.8, 4.5; contract 10): the endpoints, their secrets, tests.

use nudge_campaigns::webhooks::EventType;
use serde_json::{Value, json};
use tempfile::TempDir;
use tests::app::MASTER_KEY;
use tests::{TestApp, client, on_both_backends};
use uuid::Uuid;

use crate::receiver::{Receiver, Reply};

on_both_backends!(
    a_webhook_is_made_read_changed_and_removed,
    what_a_webhook_can_not_be_is_refused,
    an_app_has_a_hundred_webhooks_and_no_more,
    a_secret_is_shown_once_and_sealed_at_rest,
    a_rotated_secret_signs_beside_the_new_one_for_a_while,
    a_test_is_sent_at_once_and_tells_what_was_answered,
    secrets_are_sealed_anew_under_a_new_master_key,
    a_removed_webhook_leaves_nothing,
    a_removed_app_leaves_no_webhooks,
    attempts_and_webhooks_are_paged,
);

const NEW_KEY: &str = "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=";
const URL: &str = "http://127.0.0.1:9/hook";

async fn make(app: &TestApp, body: &Value) -> Value {
    app.post(&app.path("/push/webhooks"), &app.admin(), body)
        .await
        .data(201)
}

fn path(app: &TestApp, webhook: &Value, rest: &str) -> String {
    let id = webhook["id"].as_str().unwrap();
    app.path(&format!("/push/webhooks/{id}{rest}"))
}

async fn a_webhook_is_made_read_changed_and_removed(app: &mut TestApp) {
    let body = json!({"url": URL, "eventTypes": ["sent", "opened", "sent"], "active": false, "description": "d"});
    let mut made = make(app, &body).await;
    let secret = made.as_object_mut().unwrap().remove("secret").unwrap();
    assert!(secret.as_str().unwrap().starts_with("whsec_"));
    let mut expected = json!({
        "id": made["id"], "url": URL, "eventTypes": ["sent", "opened"], "active": false, "description": "d",
        "version": 1, "createdAt": made["createdAt"], "updatedAt": made["createdAt"],
        "health": {"state": "healthy", "consecutiveFailures": 0},
    });
    assert_eq!(made, expected);
    let one = path(app, &made, "");
    assert_eq!(app.get(&one, &app.admin()).await.ok(), expected);

    app.advance(1);
    let patch = json!({"active": true, "description": null, "eventTypes": ["clicked"]});
    let if_match = |version: &str| {
        app.request(reqwest::Method::PATCH, &one, &app.admin())
            .header("if-match", version)
            .json(&patch)
    };
    client::send(if_match("\"2\""))
        .await
        .refused(412, "version_mismatch");
    let changed = client::send(if_match("\"1\"")).await.ok();
    expected["active"] = json!(true);
    expected["description"] = json!("");
    expected["eventTypes"] = json!(["clicked"]);
    expected["version"] = json!(2);
    expected["updatedAt"] = changed["updatedAt"].clone();
    assert_eq!(changed, expected);
    assert_ne!(changed["updatedAt"], changed["createdAt"]);

    let defaults = make(app, &json!({"url": URL, "eventTypes": ["failed"]})).await;
    assert_eq!(
        (&defaults["active"], &defaults["description"]),
        (&json!(true), &json!(""))
    );
    let list = app
        .get(&app.path("/push/webhooks"), &app.admin())
        .await
        .ok();
    let ids: Vec<&Value> = list["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| &item["id"])
        .collect();
    assert_eq!(ids, [&defaults["id"], &made["id"]]);
    assert!(list["items"][0].get("secret").is_none());

    app.delete(&one, &app.admin()).await.data(204);
    app.delete(&one, &app.admin())
        .await
        .refused(404, "not_found");
    for rest in ["", "/attempts"] {
        app.get(&path(app, &made, rest), &app.admin())
            .await
            .refused(404, "not_found");
    }
    for rest in ["/rotate-secret", "/test", "/enable", "/recover"] {
        let body = json!({"since": app.time(0)});
        let body = if rest == "/recover" { body } else { json!({}) };
        app.post(&path(app, &made, rest), &app.admin(), &body)
            .await
            .refused(404, "not_found");
    }
    app.patch(&one, &app.admin(), &json!({}))
        .await
        .refused(404, "not_found");
    app.get(&app.path("/push/webhooks"), &app.editor())
        .await
        .refused(403, "insufficient_role");
}

async fn what_a_webhook_can_not_be_is_refused(app: &mut TestApp) {
    let good = json!({"url": URL, "eventTypes": ["sent"]});
    let webhook = make(app, &good).await;
    let with = |key: &str, value: Value| {
        let mut body = good.clone();
        body[key] = value;
        body
    };
    for (body, pointer) in [
        (with("eventTypes", json!([])), "/eventTypes"),
        (with("eventTypes", json!(["sent", "read"])), "/eventTypes/1"),
        (with("eventTypes", json!(["ping"])), "/eventTypes/0"),
        (with("eventTypes", json!("sent")), "/eventTypes"),
        (with("active", json!("yes")), "/active"),
        (with("description", json!("d".repeat(501))), "/description"),
        (with("description", json!("\u{0}")), "/description"),
        (with("typo", json!(1)), "/typo"),
        (with("secret", json!("whsec_mine")), "/secret"),
        (with("health", json!({})), "/health"),
    ] {
        let made = app
            .post(&app.path("/push/webhooks"), &app.admin(), &body)
            .await;
        made.refused(422, "validation_failed");
        assert_eq!(made.pointers(), [pointer], "{body}");
        let one = path(app, &webhook, "");
        let patched = app.patch(&one, &app.admin(), &body).await;
        patched.refused(422, "validation_failed");
        assert_eq!(patched.pointers(), [pointer], "{body}");
    }
    for missing in [json!({"url": URL}), json!({"eventTypes": ["sent"]})] {
        app.post(&app.path("/push/webhooks"), &app.admin(), &missing)
            .await
            .refused(422, "validation_failed");
    }
    make(app, &with("description", json!("ü".repeat(500)))).await;
    let rotate = path(app, &webhook, "/rotate-secret");
    for (seconds, status) in [
        (json!(604_801), 422),
        (json!(-1), 422),
        (json!(604_800), 200),
    ] {
        let answer = app
            .post(
                &rotate,
                &app.admin(),
                &json!({"gracePeriodSeconds": seconds}),
            )
            .await;
        assert_eq!(answer.status, status, "{seconds}");
    }
    let recover = path(app, &webhook, "/recover");
    for (since, status) in [
        (app.time(-15 * 86_400), 422),
        (app.time(-14 * 86_400), 202),
        ("yesterday".to_owned(), 422),
    ] {
        let answer = app
            .post(&recover, &app.admin(), &json!({"since": since}))
            .await;
        assert_eq!(answer.status, status, "{since}");
        if status == 422 {
            assert_eq!(answer.pointers(), ["/since"]);
        }
    }
}

async fn an_app_has_a_hundred_webhooks_and_no_more(app: &mut TestApp) {
    let body = json!({"url": URL, "eventTypes": ["sent"]});
    let mut last = Value::Null;
    for _ in 0..100 {
        last = make(app, &body).await;
    }
    let all = app.path("/push/webhooks");
    app.post(&all, &app.admin(), &body)
        .await
        .refused(422, "limit_exceeded");
    app.delete(&path(app, &last, ""), &app.admin())
        .await
        .data(204);
    make(app, &body).await;
}

async fn a_secret_is_shown_once_and_sealed_at_rest(app: &mut TestApp) {
    let made = make(app, &json!({"url": URL, "eventTypes": ["sent"]})).await;
    let secret = made["secret"].as_str().unwrap().to_owned();
    let bytes = crate::webhook_signatures::secret(&made);
    assert_eq!(bytes.len(), 32);
    let rotated = app
        .post(
            &path(app, &made, "/rotate-secret"),
            &app.admin(),
            &json!({}),
        )
        .await
        .ok();
    let new = rotated["secret"].as_str().unwrap();
    assert_ne!(new, secret);

    let hexadecimal = tests::session::hex(&bytes);
    let base64 = secret.trim_start_matches("whsec_").to_lowercase();
    for (table, rows) in app.dump().await {
        for row in rows {
            assert!(!row.contains(&hexadecimal), "{table}");
            assert!(!row.contains(&base64), "{table}");
        }
    }
    let shown = app.get(&path(app, &made, ""), &app.admin()).await;
    assert!(!shown.text.contains("whsec_"));
}

async fn a_rotated_secret_signs_beside_the_new_one_for_a_while(app: &mut TestApp) {
    let receiver = Receiver::start().await;
    let first = receiver.subscribe(app, "/", &[EventType::Sent]).await;
    let rotate = path(app, &first, "/rotate-secret");
    let ping = path(app, &first, "/test");
    let mut count = 0;
    let mut signed_by = async |secrets: &[&Value]| {
        let answer = app.post(&ping, &app.admin(), &json!({})).await.ok();
        assert_eq!(answer["statusCode"], json!(200));
        count += 1;
        let got = receiver.wait(app, "/", count).await;
        crate::webhook_signatures::verify(got.last().unwrap(), secrets);
    };

    signed_by(&[&first]).await;
    let second = app.post(&rotate, &app.admin(), &json!({})).await.ok();
    signed_by(&[&second, &first]).await;
    app.advance(86_370);
    signed_by(&[&second, &first]).await;
    app.advance(31);
    signed_by(&[&second]).await;

    let body = json!({"gracePeriodSeconds": 3600});
    let third = app.post(&rotate, &app.admin(), &body).await.ok();
    signed_by(&[&third, &second]).await;
    app.advance(1_800);
    // Each signs as long as it was to, whatever comes after it.
    let fourth = app.post(&rotate, &app.admin(), &body).await.ok();
    signed_by(&[&fourth, &third, &second]).await;
    app.advance(1_801);
    signed_by(&[&fourth, &third]).await;
    let at_once = json!({"gracePeriodSeconds": 0});
    let fifth = app.post(&rotate, &app.admin(), &at_once).await.ok();
    signed_by(&[&fifth]).await;
}

async fn a_test_is_sent_at_once_and_tells_what_was_answered(app: &mut TestApp) {
    let receiver = Receiver::start().await;
    let webhook = receiver.subscribe(app, "/a", &[EventType::Sent]).await;
    app.patch(
        &path(app, &webhook, ""),
        &app.admin(),
        &json!({"active": false}),
    )
    .await
    .ok();
    let ping = path(app, &webhook, "/test");

    let answer = app.post(&ping, &app.admin(), &json!({})).await.ok();

    assert_eq!(answer["statusCode"], json!(200));
    assert!(answer["latencyMs"].is_u64() && answer.get("error").is_none());
    let got = &receiver.received("/a")[0];
    let body = got.json();
    assert_eq!(
        (got.header("x-service-event"), &body["event"]),
        ("ping", &json!("ping"))
    );
    assert_eq!(body["app_id"], json!(app.access.app_id));
    assert_eq!(got.header("x-service-attempt"), "1");
    for (reply, status, error) in [
        (Reply::Status(204), 204, false),
        (Reply::Status(404), 404, true),
        (Reply::With(302, "location", receiver.url("/b")), 302, true),
        (Reply::Status(500), 500, true),
    ] {
        receiver.reply("/a", &[reply]);
        let answer = app.post(&ping, &app.admin(), &json!({})).await.ok();
        assert_eq!(answer["statusCode"], json!(status));
        assert_eq!(answer.get("error").is_some(), error);
    }
    assert!(
        receiver.received("/b").is_empty(),
        "redirects are not followed"
    );
    let nobody = make(app, &json!({"url": URL, "eventTypes": ["sent"]})).await;
    let answer = app
        .post(&path(app, &nobody, "/test"), &app.admin(), &json!({}))
        .await
        .ok();
    assert!(answer.get("statusCode").is_none() && answer["error"].is_string());
    assert!(!answer["error"].as_str().unwrap().contains("127.0.0.1"));
    let shown = app.get(&path(app, &webhook, ""), &app.admin()).await.ok();
    assert_eq!(shown["health"]["state"], json!("healthy"));
}

async fn secrets_are_sealed_anew_under_a_new_master_key(app: &mut TestApp) {
    let cache = TempDir::with_prefix("nudge-test-").unwrap();
    let receiver = Receiver::start().await;
    let webhook = receiver.subscribe(app, "/", &[EventType::Sent]).await;
    // Compiled plugins are authenticated with the key too; other tests share theirs.
    cache.path().clone_into(&mut app.config.plugins.cache_dir);
    *app.config.secrets.previous_keys = vec![MASTER_KEY.to_owned()];
    NEW_KEY.clone_into(&mut app.config.secrets.master_key);
    for (count, previous) in [(1, true), (2, false)] {
        if !previous {
            let services = app.services();
            nudge_platform::sealed::reseal(&services.db, &services.secrets, |_, _| {})
                .await
                .unwrap();
            app.config.secrets.previous_keys.clear();
        }
        app.restart().await;
        app.transit(Uuid::from_u128(5), app.id(), &[EventType::Sent])
            .await;
        let got = receiver.wait(app, "/", count).await;
        crate::webhook_signatures::verify(&got[count - 1], &[&webhook]);
    }
}

async fn count(app: &TestApp) -> [i64; 4] {
    let rows: Vec<(i64, i64, i64, i64)> = app
        .rows(
            "SELECT (SELECT count(*) FROM webhooks), (SELECT count(*) FROM webhook_secrets),
                    (SELECT count(*) FROM webhook_messages), (SELECT count(*) FROM webhook_attempts)",
        )
        .await;
    let (webhooks, secrets, messages, attempts) = rows[0];
    [webhooks, secrets, messages, attempts]
}

/// A webhook with messages that arrived and that did not.
async fn used(app: &TestApp, receiver: &Receiver) -> Value {
    receiver.reply("/", &[Reply::Status(200), Reply::Status(500)]);
    let webhook = receiver
        .subscribe(app, "/", &[EventType::Sent, EventType::Failed])
        .await;
    for number in 0..3 {
        app.transit(
            Uuid::from_u128(5),
            Uuid::from_u128(number),
            &[EventType::Sent],
        )
        .await;
        receiver
            .wait(app, "/", usize::try_from(number).unwrap() + 1)
            .await;
    }
    app.until("attempts are noted", async || count(app).await[3] == 3)
        .await;
    webhook
}

async fn a_removed_webhook_leaves_nothing(app: &mut TestApp) {
    let receiver = Receiver::start().await;
    let other = make(app, &json!({"url": URL, "eventTypes": ["opened"]})).await;
    let webhook = used(app, &receiver).await;
    assert_eq!(count(app).await, [2, 2, 3, 3]);

    app.delete(&path(app, &webhook, ""), &app.admin())
        .await
        .data(204);

    app.until("everything is removed", async || {
        count(app).await == [1, 1, 0, 0]
    })
    .await;
    app.transit(Uuid::from_u128(5), Uuid::from_u128(9), &[EventType::Sent])
        .await;
    assert_eq!(count(app).await, [1, 1, 0, 0]);
    app.get(&path(app, &other, ""), &app.admin()).await.ok();
}

async fn a_removed_app_leaves_no_webhooks(app: &mut TestApp) {
    let receiver = Receiver::start().await;
    used(app, &receiver).await;

    app.delete(&app.path(""), &app.admin()).await.data(204);

    app.until("everything is removed", async || count(app).await == [0; 4])
        .await;
}

async fn attempts_and_webhooks_are_paged(app: &mut TestApp) {
    let receiver = Receiver::start().await;
    let webhook = used(app, &receiver).await;
    for rest in ["", &path(app, &webhook, "/attempts")] {
        let list = if rest.is_empty() {
            make(app, &json!({"url": URL, "eventTypes": ["opened"]})).await;
            app.path("/push/webhooks")
        } else {
            rest.to_owned()
        };
        let all = app.get(&list, &app.admin()).await.ok();
        let all = all["items"].as_array().unwrap().clone();
        let mut paged = Vec::new();
        let mut query = "?limit=1".to_owned();
        loop {
            let page = app.get(&format!("{list}{query}"), &app.admin()).await.ok();
            paged.extend(page["items"].as_array().unwrap().clone());
            let Some(cursor) = page["nextCursor"].as_str() else {
                break;
            };
            query = format!("?limit=1&cursor={cursor}");
        }
        assert_eq!(paged, all);
        assert!(all.len() > 1);
        app.get(&format!("{list}?limit=201"), &app.admin())
            .await
            .refused(422, "validation_failed");
    }
}
