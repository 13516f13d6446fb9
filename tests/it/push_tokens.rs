//! Push tokens: registered, shown, moved, removed (contract 5, 6, 9).

use futures_util::future::join_all;
use nudge_db::Dialect;
use nudge_push::providers::{Address, Environment, Target};
use nudge_push::tokens::store;
use nudge_records::deliveries::provider::{Platform, Provider};
use serde_json::{Value, json};
use tests::client::Answer;
use tests::{Session, TestApp, on_both_backends};
use uuid::Uuid;

use crate::deletion::{delete, deleted};
use crate::identity::Backend;

on_both_backends!(
    a_token_is_registered_shown_and_removed,
    what_is_no_token_is_refused,
    endpoints_of_browsers_must_be_public,
    without_permission_nothing_is_sent,
    a_token_is_one_persons_and_a_device_name_proves_nothing,
    of_a_device_that_two_had_one_registration_is_left,
    registrations_from_before_are_carried_over,
    a_token_never_serves_two_at_once,
    a_person_has_a_hundred_at_the_most,
    merged_people_keep_their_devices,
    only_the_subject_registers,
    somebody_who_was_deleted_has_none,
);

const TOKEN: &str = "00fc13adff785122b4ad28809a3420982341241421348097878e577c991de8f0";

fn apns(token: &str) -> Value {
    json!({"provider": "apns", "token": token})
}

fn fcm(token: &str) -> Value {
    json!({"provider": "fcm", "token": token})
}

/// Where messages for a session's subject go.
pub(crate) async fn targets(app: &TestApp, session: &Session) -> Vec<Target> {
    let services = app.services();
    let mut tx = services.db.read().await.unwrap();
    let ids = [Uuid::parse_str(&session.subject_id).unwrap()];
    let active = store::active_of(&mut tx, &services.secrets, app.access.app_id, &ids).await;
    active.unwrap().targets
}

async fn count(app: &TestApp, sql: &'static str) -> i64 {
    let rows: Vec<(i64,)> = app.rows(sql).await;
    rows[0].0
}

async fn devices(app: &TestApp, anonymous_id: &str) -> Value {
    let path = app.path(&format!("/users/{anonymous_id}"));
    let mut user = app.get(&path, &app.viewer()).await.ok();
    user["devices"].take()
}

async fn register(app: &TestApp, session: &Session, body: &Value) -> Answer {
    app.post("/v1/sdk/push-tokens", &session.credential(), body)
        .await
}

async fn remove(app: &TestApp, session: &Session, device_id: &str) -> Answer {
    let path = format!("/v1/sdk/push-tokens/{device_id}");
    app.delete(&path, &session.credential()).await
}

async fn a_token_is_registered_shown_and_removed(app: &mut TestApp) {
    let ada = app.session("ada").await;
    let mut body = apns(&TOKEN.to_uppercase());
    body["environment"] = json!("sandbox");
    body["unknown"] = json!("from a newer SDK");
    let data = app.push_token(&ada, "phone", &body).await;
    assert_eq!(data, json!({"deviceId": "phone", "status": "active"}));
    app.push_token(&ada, "tablet", &fcm("dev:token_1234")).await;

    let shown = devices(app, "ada").await;
    let phone = shown
        .as_array()
        .unwrap()
        .iter()
        .find(|device| device["deviceId"] == "phone");
    let phone = phone.unwrap();
    assert_eq!(phone["platform"], "ios");
    assert_eq!(
        phone["push"],
        json!({"provider": "apns", "environment": "sandbox", "tokenSuffix": "1de8f0", "status": "active"})
    );
    // Of a short token less is shown.
    let tablet = shown
        .as_array()
        .unwrap()
        .iter()
        .find(|device| device["deviceId"] == "tablet");
    assert_eq!(tablet.unwrap()["push"]["tokenSuffix"], "234");
    let stored = app.dump().await;
    assert!(
        !stored
            .iter()
            .flat_map(|(_, rows)| rows)
            .any(|row| row.contains(TOKEN) || row.contains("token_1234"))
    );

    app.restart().await;
    let known = targets(app, &ada).await;
    assert_eq!(known.len(), 2);
    let phone = known
        .iter()
        .find(|target| target.device_id == "phone")
        .unwrap();
    assert_eq!(
        (phone.provider, phone.platform, phone.environment),
        (Provider::Apns, Platform::Ios, Environment::Sandbox)
    );
    assert_eq!(phone.address, Address::Token(TOKEN.to_owned()));
    assert!(!format!("{phone:?}").contains(TOKEN));

    remove(app, &ada, "phone").await.data(204);
    remove(app, &ada, "phone").await.refused(404, "not_found");
    assert_eq!(targets(app, &ada).await.len(), 1);
    let shown = devices(app, "ada").await;
    let phone = shown
        .as_array()
        .unwrap()
        .iter()
        .find(|device| device["deviceId"] == "phone");
    assert!(phone.unwrap().get("push").is_none());
}

async fn what_is_no_token_is_refused(app: &mut TestApp) {
    let ada = app.session("ada").await;
    let point =
        "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4";
    let web = |endpoint: &str, p256dh: &str, auth: &str| json!({"provider": "webpush", "subscription": {"endpoint": endpoint, "keys": {"p256dh": p256dh, "auth": auth}}});
    let endpoint = "https://push.example.com/x";
    let auth = "BTBZMqHH6r4Tts7J_aSIgg";
    let cases = [
        (apns(&TOKEN[1..]), "/token"),
        (apns("ab"), "/token"),
        (apns(&"a".repeat(402)), "/token"),
        (apns("../../3/device/0000000000000000"), "/token"),
        (fcm(""), "/token"),
        (fcm("with space"), "/token"),
        (fcm(&"x".repeat(4_097)), "/token"),
        (json!({"provider": "apns"}), "/token"),
        (
            json!({"provider": "fcm", "permission": "granted"}),
            "/token",
        ),
        (
            json!({"provider": "webpush", "token": TOKEN}),
            "/subscription",
        ),
        (json!({"provider": "sms", "token": TOKEN}), "/provider"),
        (
            json!({"provider": "apns", "token": TOKEN, "environment": "staging"}),
            "/environment",
        ),
        (
            json!({"provider": "apns", "token": TOKEN, "permission": "maybe"}),
            "/permission",
        ),
        (web(endpoint, "AAAA", auth), "/subscription/keys/p256dh"),
        (
            web(endpoint, &point.replace("BCVx", "BCVy"), auth),
            "/subscription/keys/p256dh",
        ),
        (web(endpoint, point, "AAAA"), "/subscription/keys/auth"),
        (
            web("push.example.com", point, auth),
            "/subscription/endpoint",
        ),
        (
            web(&format!("{endpoint}{}", "x".repeat(2_048)), point, auth),
            "/subscription/endpoint",
        ),
    ];
    for (parts, pointer) in cases {
        let mut body = json!({"anonymousId": "ada", "deviceId": "d"});
        body.as_object_mut()
            .unwrap()
            .extend(parts.as_object().unwrap().clone());
        let answer = register(app, &ada, &body).await;
        answer.refused(422, "validation_failed");
        assert_eq!(answer.pointers(), [pointer], "{body}");
    }
    for device_id in [String::new(), "d".repeat(257), "a\u{0}b".to_owned()] {
        let mut body = apns(TOKEN);
        body["anonymousId"] = json!("ada");
        body["deviceId"] = json!(device_id);
        let answer = register(app, &ada, &body).await;
        answer.refused(422, "validation_failed");
        assert_eq!(answer.pointers(), ["/deviceId"]);
    }
    assert!(targets(app, &ada).await.is_empty());
    for (device_id, parts) in [
        ("d".repeat(256), apns(&"a".repeat(400))),
        ("least".to_owned(), apns(&"a".repeat(16))),
        ("longest".to_owned(), fcm(&"x".repeat(4_096))),
    ] {
        app.push_token(&ada, &device_id, &parts).await;
    }
    assert_eq!(targets(app, &ada).await.len(), 3);
}

async fn endpoints_of_browsers_must_be_public(app: &mut TestApp) {
    // As servers have it; the tests' are made for receivers on this machine.
    app.config.webhooks = nudge_platform::config::Config::defaults().unwrap().webhooks;
    app.restart().await;
    let ada = app.session("ada").await;
    let keys = json!({
        "p256dh": "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
        "auth": "BTBZMqHH6r4Tts7J_aSIgg",
    });
    for endpoint in [
        "https://127.0.0.1/push",
        "https://10.1.2.3/push",
        "https://[::1]/push",
        "https://169.254.169.254/latest",
        "https://localhost/push",
        "http://push.example.com/x",
        "https://push.example.com:6379/x",
        "https://user:pass@push.example.com/x",
    ] {
        let body = json!({
            "anonymousId": "ada", "deviceId": "d", "provider": "webpush",
            "subscription": {"endpoint": endpoint, "keys": keys},
        });
        let answer = register(app, &ada, &body).await;
        answer.refused(422, "validation_failed");
        assert_eq!(answer.pointers(), ["/subscription/endpoint"], "{endpoint}");
    }
    assert_eq!(count(app, "SELECT count(*) FROM push_tokens").await, 0);
}

async fn without_permission_nothing_is_sent(app: &mut TestApp) {
    let ada = app.session("ada").await;
    let denied = json!({"provider": "apns", "permission": "denied"});
    let data = app.push_token(&ada, "phone", &denied).await;
    assert_eq!(data["status"], "opted_out");
    let shown = devices(app, "ada").await;
    assert_eq!(shown[0]["push"]["status"], "opted_out");
    assert_eq!(shown[0]["push"]["tokenSuffix"], "");

    let mut granted = apns(TOKEN);
    granted["permission"] = json!("granted");
    app.push_token(&ada, "phone", &granted).await;
    assert_eq!(targets(app, &ada).await.len(), 1);
    let mut denied = apns(TOKEN);
    denied["permission"] = json!("denied");
    let data = app.push_token(&ada, "phone", &denied).await;
    assert_eq!(data["status"], "opted_out");
    assert!(targets(app, &ada).await.is_empty());
    app.push_token(&ada, "phone", &apns(TOKEN)).await;
    assert_eq!(targets(app, &ada).await.len(), 1);
}

async fn a_token_is_one_persons_and_a_device_name_proves_nothing(app: &mut TestApp) {
    let (ada, bob) = (app.session("ada").await, app.session("bob").await);
    app.push_token(&ada, "phone", &fcm("token-1")).await;
    // Somebody who knows what the device is called registers one of that name, in each way that there is.
    let denied = json!({"provider": "apns", "permission": "denied"});
    for (parts, held) in [(fcm("token-2"), 1), (denied, 0), (fcm("token-3"), 1)] {
        app.push_token(&bob, "phone", &parts).await;
        assert_eq!(targets(app, &bob).await.len(), held);
        let kept = targets(app, &ada).await;
        assert_eq!(kept.len(), 1);
        assert_eq!(kept[0].address, Address::Token("token-1".to_owned()));
        assert_eq!(devices(app, "ada").await[0]["push"]["status"], "active");
    }
    // What one of them removes is the own one.
    remove(app, &bob, "phone").await.data(204);
    remove(app, &bob, "phone").await.refused(404, "not_found");
    assert_eq!(targets(app, &ada).await.len(), 1);

    // The device is somebody else's now: its SDK has the token, and shows it.
    app.push_token(&bob, "phone", &fcm("token-1")).await;
    assert!(targets(app, &ada).await.is_empty());
    assert!(devices(app, "ada").await[0].get("push").is_none());
    assert_eq!(
        targets(app, &bob).await[0].address,
        Address::Token("token-1".to_owned())
    );
    remove(app, &ada, "phone").await.refused(404, "not_found");

    // The app is installed anew: the same token under another device id.
    app.push_token(&ada, "phone-again", &fcm("token-1")).await;
    assert!(targets(app, &bob).await.is_empty());
    assert_eq!(targets(app, &ada).await.len(), 1);
    // The same text is another token for another provider.
    app.push_token(&bob, "phone", &apns(TOKEN)).await;
    app.push_token(&bob, "tablet", &fcm(TOKEN)).await;
    assert_eq!(targets(app, &bob).await.len(), 2);
}

async fn of_a_device_that_two_had_one_registration_is_left(app: &mut TestApp) {
    let backend = Backend::new(app).await;
    for (earlier, later) in [("person", "visitor"), ("visitor", "person")] {
        let external_id = format!("e-{earlier}");
        let person = backend
            .identify(app, &format!("p-{earlier}"), &external_id)
            .await;
        let visitor = app.session(&format!("v-{earlier}")).await;
        for who in [earlier, later] {
            let session = if who == "person" { &person } else { &visitor };
            let token = fcm(&format!("token-of-{who}-{earlier}"));
            app.push_token(session, "phone", &token).await;
            app.advance(1);
        }
        let merged = backend
            .identify(app, &visitor.anonymous_id, &external_id)
            .await;
        assert_eq!(merged.subject_id, person.subject_id);
        let left = targets(app, &merged).await;
        assert_eq!(left.len(), 1);
        let newest = Address::Token(format!("token-of-{later}-{earlier}"));
        assert_eq!(left[0].address, newest);
    }
}

async fn registrations_from_before_are_carried_over(app: &mut TestApp) {
    let (ada, bob) = (app.session("ada").await, app.session("bob").await);
    app.push_token(&ada, "phone", &fcm("token-1")).await;
    app.push_token(&bob, "tablet", &apns(TOKEN)).await;
    app.push_token(
        &bob,
        "watch",
        &json!({"provider": "fcm", "permission": "denied"}),
    )
    .await;
    let before = targets(app, &ada).await;
    // The table as it was when a device of an app had one row.
    let services = app.services();
    let mut tx = services.db.write().await.unwrap();
    let texts: &[&'static str] = match services.db.dialect() {
        Dialect::Sqlite => &[
            "CREATE TABLE earlier (
                app_id BLOB NOT NULL, device_id TEXT NOT NULL, subject_id BLOB NOT NULL,
                registration TEXT NOT NULL UNIQUE, provider TEXT NOT NULL, environment TEXT NOT NULL, token_hash TEXT,
                token_suffix TEXT NOT NULL, sealed TEXT, status TEXT NOT NULL, registered_at INTEGER NOT NULL,
                PRIMARY KEY (app_id, device_id)) STRICT",
            "INSERT INTO earlier SELECT app_id, device_id, subject_id, registration, provider, environment, token_hash,
                                        token_suffix, sealed, status, registered_at FROM push_tokens",
            "DROP TABLE push_tokens",
            "ALTER TABLE earlier RENAME TO push_tokens",
            "CREATE UNIQUE INDEX push_token_hashes ON push_tokens (app_id, token_hash)",
            "CREATE INDEX push_tokens_of_subject ON push_tokens (subject_id, registered_at)",
        ],
        Dialect::Postgres => &[
            "ALTER TABLE push_tokens DROP CONSTRAINT push_tokens_pkey, ADD PRIMARY KEY (app_id, device_id)",
        ],
    };
    for text in texts {
        tx.sql(text).execute().await.unwrap();
    }
    tx.sql("DROP INDEX subjects_hidden")
        .execute()
        .await
        .unwrap();
    tx.sql("DELETE FROM _sqlx_migrations WHERE version = 20")
        .execute()
        .await
        .unwrap();
    tx.commit().await.unwrap();
    app.restart().await;

    assert_eq!(count(app, "SELECT count(*) FROM push_tokens").await, 3);
    let after = targets(app, &ada).await;
    assert_eq!(after.len(), 1);
    assert_eq!(
        (&after[0].registration, &after[0].address),
        (&before[0].registration, &before[0].address)
    );
    assert_eq!(targets(app, &bob).await.len(), 1);
    // The new key is in force.
    app.push_token(&bob, "phone", &fcm("token-2")).await;
    assert_eq!(targets(app, &ada).await.len(), 1);
    assert_eq!(targets(app, &bob).await.len(), 2);
}

async fn a_token_never_serves_two_at_once(app: &mut TestApp) {
    let app = &*app;
    let mut sessions = Vec::new();
    for number in 0..8 {
        sessions.push(app.session(&format!("user-{number}")).await);
    }
    for round in 0..3 {
        let token = fcm(&format!("token-{round}"));
        let registrations = sessions.iter().enumerate().map(|(number, session)| {
            // The same device for half of them, and the same token for all.
            let device = format!("device-{round}-{}", number / 2);
            let token = &token;
            async move { app.push_token(session, &device, token).await }
        });
        for data in join_all(registrations).await {
            assert_eq!(data["status"], "active");
        }
        let mut holders = 0;
        for session in &sessions {
            let held = targets(app, session).await;
            let address = Address::Token(format!("token-{round}"));
            holders += held
                .iter()
                .filter(|target| target.address == address)
                .count();
        }
        assert_eq!(holders, 1);
    }
}

async fn a_person_has_a_hundred_at_the_most(app: &mut TestApp) {
    let ada = app.session("ada").await;
    for number in 0..101 {
        app.push_token(&ada, &format!("d{number}"), &fcm(&format!("t{number}")))
            .await;
        app.advance(1);
    }
    let known = targets(app, &ada).await;
    assert_eq!(known.len(), 100);
    assert!(known.iter().all(|target| target.device_id != "d0"));
    assert_eq!(count(app, "SELECT count(*) FROM devices").await, 100);
}

async fn merged_people_keep_their_devices(app: &mut TestApp) {
    let backend = Backend::new(app).await;
    let phone = backend.identify(app, "phone", "e-1").await;
    app.push_token(&phone, "d1", &fcm("token-1")).await;
    let web = app.session("web").await;
    app.push_token(&web, "d2", &fcm("token-2")).await;

    let merged = backend.identify(app, "web", "e-1").await;
    assert_eq!(merged.subject_id, phone.subject_id);
    let mut known: Vec<String> = targets(app, &merged)
        .await
        .into_iter()
        .map(|target| target.device_id)
        .collect();
    known.sort();
    assert_eq!(known, ["d1", "d2"]);
    assert!(
        targets(app, &web)
            .await
            .iter()
            .all(|target| target.subject_id.to_string() == merged.subject_id)
    );
    let shown = devices(app, "phone").await;
    assert!(
        shown
            .as_array()
            .unwrap()
            .iter()
            .all(|device| device["push"]["status"] == "active")
    );
    // The token that the merge revoked registers nothing.
    let mut body = fcm("token-3");
    body["anonymousId"] = json!("web");
    body["deviceId"] = json!("d3");
    register(app, &web, &body)
        .await
        .refused(401, "subject_token_expired");
}

async fn only_the_subject_registers(app: &mut TestApp) {
    let (ada, bob) = (app.session("ada").await, app.session("bob").await);
    let mut body = fcm("token-1");
    body["anonymousId"] = json!("bob");
    body["deviceId"] = json!("phone");
    register(app, &ada, &body)
        .await
        .refused(403, "subject_mismatch");
    app.push_token(&bob, "phone", &fcm("token-1")).await;
    remove(app, &ada, "phone").await.refused(404, "not_found");
    assert_eq!(targets(app, &bob).await.len(), 1);
    app.end(&bob, &json!({})).await.data(204);
    register(app, &bob, &body)
        .await
        .refused(401, "subject_token_expired");
    remove(app, &bob, "phone")
        .await
        .refused(401, "subject_token_expired");
}

async fn somebody_who_was_deleted_has_none(app: &mut TestApp) {
    let ada = app.session("ada").await;
    app.push_token(&ada, "phone", &fcm("token-1")).await;
    let job_id = delete(app, &json!({"anonymousId": "ada"})).await;
    assert!(targets(app, &ada).await.is_empty(), "at once");
    deleted(app, &job_id).await;
    assert_eq!(count(app, "SELECT count(*) FROM push_tokens").await, 0);

    // The SDK comes back, and is told what it needs to stop asking.
    let again = app.session("ada").await;
    let data = app.push_token(&again, "phone", &fcm("token-1")).await;
    assert_eq!(data, json!({"deviceId": "phone", "status": "active"}));
    remove(app, &again, "phone").await.refused(404, "not_found");
    assert_eq!(count(app, "SELECT count(*) FROM push_tokens").await, 0);
    assert_eq!(count(app, "SELECT count(*) FROM devices").await, 0);
}
