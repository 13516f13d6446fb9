//! Push credentials: uploaded, listed, removed, sealed (specification 2.7, contract 9).

use serde_json::{Value, json};
use tests::providers::{apns, fcm};
use tests::{TestApp, on_both_backends};

on_both_backends!(
    credentials_are_stored_listed_and_removed,
    what_is_secret_is_never_shown_nor_stored_in_the_clear,
    keys_that_do_not_parse_are_refused,
    members_are_checked,
    an_app_has_a_hundred_at_the_most,
    other_apps_have_their_own,
);

/// A key of P-256 (RFC 8291, section 5), as VAPID has it.
const PUBLIC: &str =
    "BP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A8";
const PRIVATE: &str = "yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw";

fn vapid() -> Value {
    json!({"platform": "web", "vapid": {
        "publicKey": PUBLIC, "privateKey": PRIVATE, "subject": "mailto:push@shop.example",
    }})
}

fn generated() -> Value {
    json!({"platform": "web", "vapid": {"generate": true, "subject": "https://shop.example"}})
}

async fn credentials_are_stored_listed_and_removed(app: &mut TestApp) {
    let providers = app.with_providers().await;
    let path = app.path("/push/credentials");
    assert_eq!(app.get(&path, &app.admin()).await.ok(), json!([]));

    let apple = app.credential(&providers.sandbox.credential()).await;
    assert_eq!(
        (&apple["platform"], &apple["provider"]),
        (&json!("ios"), &json!("apns"))
    );
    let identity = json!({
        "keyId": apns::KEY_ID, "teamId": apns::TEAM_ID, "bundleId": apns::BUNDLE_ID, "environment": "sandbox",
    });
    assert_eq!(apple["identity"], identity);
    assert_eq!(apple["status"], "active");
    assert_eq!(apple["createdAt"].as_str().unwrap().len(), 24);
    assert_eq!(apple["fingerprint"].as_str().unwrap().len(), 64);
    let google = app.credential(&providers.fcm.credential()).await;
    assert_eq!(
        (&google["platform"], &google["provider"]),
        (&json!("android"), &json!("fcm"))
    );
    assert_eq!(google["identity"]["projectId"], fcm::PROJECT);
    assert_eq!(google["identity"]["clientEmail"], fcm::ACCOUNT);
    let web = app.credential(&vapid()).await;
    assert_eq!(
        (&web["platform"], &web["provider"]),
        (&json!("web"), &json!("webpush"))
    );
    let identity = json!({"publicKey": PUBLIC, "subject": "mailto:push@shop.example"});
    assert_eq!(web["identity"], identity);
    let made = app.credential(&generated()).await;
    assert_eq!(made["identity"]["publicKey"].as_str().unwrap().len(), 87);
    assert_ne!(made["fingerprint"], web["fingerprint"]);

    let listed = app.get(&path, &app.admin()).await.ok();
    assert_eq!(listed, json!([made, web, google, apple]));
    app.restart().await;
    assert_eq!(app.get(&path, &app.admin()).await.ok(), listed);

    let one = format!("{path}/{}", google["id"].as_str().unwrap());
    app.delete(&one, &app.admin()).await.data(204);
    app.delete(&one, &app.admin())
        .await
        .refused(404, "not_found");
    let listed = app.get(&path, &app.admin()).await.ok();
    assert_eq!(listed, json!([made, web, apple]));
    assert_eq!(app.audited("push_credential.created").await.len(), 4);
    assert_eq!(app.audited("push_credential.deleted").await.len(), 1);
}

async fn what_is_secret_is_never_shown_nor_stored_in_the_clear(app: &mut TestApp) {
    let providers = app.with_providers().await;
    let (apple, google) = (providers.apns.credential(), providers.fcm.credential());
    let base64 = |pem: &Value| {
        let lines = pem.as_str().unwrap().lines();
        let body: String = lines.filter(|line| !line.starts_with('-')).collect();
        // What comes first is the same in all keys of a kind.
        body[body.len() - 40..].to_owned()
    };
    let secrets = [
        base64(&apple["p8"]),
        base64(&google["serviceAccount"]["private_key"]),
        PRIVATE.to_owned(),
    ];
    let path = app.path("/push/credentials");
    let mut said = Vec::new();
    for body in [&apple, &google, &vapid()] {
        let answer = app.post(&path, &app.admin(), body).await;
        answer.data(201);
        said.push(answer.text);
    }
    said.push(app.get(&path, &app.admin()).await.text);
    said.push(app.get(&app.path("/audit-log"), &app.admin()).await.text);
    for (_, rows) in app.dump().await {
        said.extend(rows);
    }
    for secret in secrets {
        let lower = secret.to_lowercase();
        assert!(!said.iter().any(|text| text.to_lowercase().contains(&lower)));
    }
}

async fn keys_that_do_not_parse_are_refused(app: &mut TestApp) {
    let providers = app.with_providers().await;
    let (apple, google) = (providers.apns.credential(), providers.fcm.credential());
    let with = |body: &Value, pointer: &str, value: Value| {
        let mut body = body.clone();
        *body.pointer_mut(pointer).unwrap() = value;
        body
    };
    let rsa = google["serviceAccount"]["private_key"].clone();
    let p8 = apple["p8"].as_str().unwrap().to_owned();
    let key = "/serviceAccount/private_key";
    let mut off = PRIVATE.to_owned();
    off.replace_range(..1, "x");
    let cases = [
        (with(&apple, "/p8", json!("hello")), "/p8"),
        (with(&apple, "/p8", json!("")), "/p8"),
        (with(&apple, "/p8", rsa), "/p8"),
        (
            with(&apple, "/p8", json!(p8.replace("PRIVATE", "PUBLIC"))),
            "/p8",
        ),
        (with(&apple, "/p8", json!(&p8[..p8.len() - 40])), "/p8"),
        (with(&apple, "/p8", json!("x".repeat(100_000))), "/p8"),
        (with(&google, key, json!(p8)), key),
        (
            with(
                &google,
                key,
                json!("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----"),
            ),
            key,
        ),
        (with(&google, key, json!(7)), key),
        (
            with(&google, "/serviceAccount/project_id", json!("../x")),
            "/serviceAccount/project_id",
        ),
        (
            json!({"platform": "android", "serviceAccount": {}}),
            "/serviceAccount/project_id",
        ),
        (
            with(&vapid(), "/vapid/privateKey", json!(off)),
            "/vapid/privateKey",
        ),
        (
            with(&vapid(), "/vapid/privateKey", json!("AAAA")),
            "/vapid/privateKey",
        ),
        (
            with(&vapid(), "/vapid/publicKey", json!(PRIVATE)),
            "/vapid/publicKey",
        ),
    ];
    let path = app.path("/push/credentials");
    for (body, pointer) in cases {
        let answer = app.post(&path, &app.admin(), &body).await;
        answer.refused(422, "invalid_credential");
        assert_eq!(answer.pointers(), [pointer]);
        assert!(answer.text.len() < 1_500, "what was sent is not repeated");
    }
    assert_eq!(app.get(&path, &app.admin()).await.ok(), json!([]));
    // What tools write besides: the key's own format, and no line breaks.
    let flat = p8_in_one_line(&apple["p8"]);
    app.credential(&with(&apple, "/p8", flat)).await;
}

fn p8_in_one_line(p8: &Value) -> Value {
    let body: String = p8
        .as_str()
        .unwrap()
        .lines()
        .filter(|line| !line.starts_with('-'))
        .collect();
    json!(format!(
        "-----BEGIN PRIVATE KEY-----{body}-----END PRIVATE KEY-----"
    ))
}

async fn members_are_checked(app: &mut TestApp) {
    let providers = app.with_providers().await;
    let without = |member: &str| {
        let mut body = providers.apns.credential();
        body.as_object_mut().unwrap().remove(member);
        body
    };
    let with = |member: &str, value: Value| {
        let mut body = providers.apns.credential();
        body[member] = value;
        body
    };
    let secret = "-----BEGIN PRIVATE KEY----- needle";
    let cases = [
        (without("p8"), "/p8"),
        (without("keyId"), "/keyId"),
        (without("teamId"), "/teamId"),
        (without("bundleId"), "/bundleId"),
        (without("platform"), "/platform"),
        (with("keyId", json!("")), "/keyId"),
        (with("bundleId", json!("a\r\nb")), "/bundleId"),
        (with("teamId", json!("t".repeat(256))), "/teamId"),
        (with("environment", json!("staging")), "/environment"),
        (with("platform", json!("windows")), "/platform"),
        (with("typo", json!(1)), "/typo"),
        (with("vapid", json!({"generate": true})), "/vapid"),
        (json!({"platform": "android"}), "/serviceAccount"),
        (
            json!({"platform": "android", "serviceAccount": secret}),
            "/serviceAccount",
        ),
        (json!({"platform": "web"}), "/vapid"),
        (json!({"platform": "web", "vapid": secret}), "/vapid"),
        (json!({"platform": "web", "vapid": {}}), "/vapid/publicKey"),
        (
            json!({"platform": "web", "vapid": {"generate": true, "typo": 1}}),
            "/vapid",
        ),
        (
            json!({"platform": "web", "vapid": {"generate": true, "publicKey": PUBLIC}}),
            "/vapid/generate",
        ),
        (
            json!({"platform": "web", "vapid": {"generate": true, "subject": "push"}}),
            "/vapid/subject",
        ),
    ];
    let path = app.path("/push/credentials");
    for (body, pointer) in cases {
        let answer = app.post(&path, &app.admin(), &body).await;
        answer.refused(422, "validation_failed");
        assert_eq!(answer.pointers(), [pointer], "{body}");
        assert!(
            !answer.text.contains("needle"),
            "what was sent is not repeated"
        );
    }
    app.credential(&with("teamId", json!("t".repeat(255))))
        .await;
    let production = app.credential(&without("environment")).await;
    assert_eq!(production["identity"]["environment"], "production");
}

async fn an_app_has_a_hundred_at_the_most(app: &mut TestApp) {
    let path = app.path("/push/credentials");
    for _ in 0..99 {
        app.credential(&generated()).await;
    }
    let (admin, body) = (app.admin(), generated());
    let upload = || app.post(&path, &admin, &body);
    let (one, other) = tokio::join!(upload(), upload());
    let mut statuses = [one.status, other.status];
    statuses.sort_unstable();
    assert_eq!(statuses, [201, 422], "{} {}", one.text, other.text);
    upload().await.refused(422, "limit_exceeded");
    let listed = app.get(&path, &app.admin()).await.ok();
    assert_eq!(listed.as_array().unwrap().len(), 100);
}

async fn other_apps_have_their_own(app: &mut TestApp) {
    let record = app.credential(&generated()).await;
    let (other, _) = app
        .another_app(app.access.workspace_id, nudge_apps::key::Kind::Write, &[])
        .await;
    let path = format!("/v1/apps/{other}/push/credentials");
    assert_eq!(app.get(&path, &app.admin()).await.ok(), json!([]));
    let foreign = format!("{path}/{}", record["id"].as_str().unwrap());
    app.delete(&foreign, &app.admin())
        .await
        .refused(404, "not_found");
    app.delete(&format!("{path}/nonsense"), &app.admin())
        .await
        .refused(404, "not_found");
    let own = app
        .get(&app.path("/push/credentials"), &app.admin())
        .await
        .ok();
    assert_eq!(own, json!([record]));
}
