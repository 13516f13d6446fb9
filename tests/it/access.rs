//! Credentials that stop working, and what takes none (contract 1).

use std::collections::{BTreeMap, BTreeSet};

use nudge_http::issuer::Role;
use serde_json::json;
use tests::{Credential, TestApp, on_both_backends};
use uuid::Uuid;

on_both_backends!(
    tokens_expire,
    revoked_and_mistyped_keys_are_refused,
    a_refusal_says_which_of_two_credentials_is_bad,
    everything_that_needs_no_credential_is_known,
);

fn token(app: &TestApp, roles: &[(Uuid, Role)], lifetime: u64) -> String {
    let roles: BTreeMap<Uuid, Role> = roles.iter().copied().collect();
    let lifetime = std::time::Duration::from_secs(lifetime);
    let services = app.services();
    services
        .issuer
        .issue("test", roles, false, app.clock.now(), lifetime)
        .unwrap()
}

async fn tokens_expire(app: &mut TestApp) {
    let short = Credential::bearer(&token(app, &[(app.access.workspace_id, Role::Viewer)], 600));
    let path = app.path("/surveys");
    app.get(&path, &short).await.ok();
    app.advance(600 + 30);
    app.get(&path, &short).await.ok();
    app.advance(35);
    app.get(&path, &short)
        .await
        .refused(401, "invalid_credentials");
}

async fn revoked_and_mistyped_keys_are_refused(app: &mut TestApp) {
    let key = app.key(nudge_apps::key::Kind::Write, &[]).await;
    let start = async |key: &str| {
        let body = json!({"anonymousId": "ada"});
        app.post("/v1/sdk/session", &Credential::bearer(key), &body)
            .await
    };
    start(&key).await.ok();

    for position in [3, key.len() / 2, key.len() - 1] {
        let mut mistyped = key.clone().into_bytes();
        mistyped[position] = if mistyped[position] == b'7' {
            b'8'
        } else {
            b'7'
        };
        let mistyped = String::from_utf8(mistyped).unwrap();
        let refused = start(&mistyped).await.refused(401, "invalid_credentials");
        assert!(
            refused["detail"]
                .as_str()
                .unwrap()
                .starts_with("the key in"),
            "{refused}"
        );
    }
    let now = app.clock.now();
    let mut tx = app.services().db.write().await.unwrap();
    tx.sql("UPDATE keys SET revoked_at = $1 WHERE name = 'test'")
        .bind(now)
        .execute()
        .await
        .unwrap();
    nudge_campaigns::apps::bump_version(&mut tx, app.access.app_id, now)
        .await
        .unwrap();
    tx.commit().await.unwrap();
    app.services()
        .apps
        .refresh(app.access.app_id)
        .await
        .unwrap();
    start(&key).await.refused(401, "invalid_credentials");
    start(&app.access.write_key).await.ok();
}

async fn a_refusal_says_which_of_two_credentials_is_bad(app: &mut TestApp) {
    let ada = app.session("ada").await;
    let event = app.event(&ada, "a", &json!({}));
    let body = json!({"context": {"anonymousId": "ada"}, "events": [event]});
    let key = &app.access.write_key;
    for (key, token, words) in [
        (
            key.as_str(),
            "nonsense",
            "the key is good, but the subject token",
        ),
        (
            "wk_nonsense",
            ada.token.as_str(),
            "the key in `Authorization`",
        ),
    ] {
        let credential = Credential::bearer(key);
        let request = app.request(reqwest::Method::POST, "/v1/sdk/ingest", &credential);
        let request = request.header("x-service-subject-token", token).json(&body);
        let answer = tests::client::send(request).await;
        let refused = answer.refused(401, "invalid_credentials");
        assert!(
            refused["detail"].as_str().unwrap().contains(words),
            "{refused}"
        );
    }
}

async fn everything_that_needs_no_credential_is_known(app: &mut TestApp) {
    for path in [
        "/openapi.json",
        "/docs",
        "/.well-known/openid-configuration",
        "/.well-known/jwks.json",
        "/livez",
        "/readyz",
        "/metrics",
        "/v1/errors",
    ] {
        let answer = app.get(path, &Credential::none()).await;
        assert_eq!(answer.status, 200, "{path}");
        assert!(!answer.header("x-request-id").is_empty(), "{path}");
        assert_eq!(answer.header("x-content-type-options"), "nosniff", "{path}");
    }
    let codes = app.get("/v1/errors", &Credential::none()).await.ok();
    for code in codes.as_array().unwrap() {
        assert!(code["code"].is_string() && code["status"].is_u64() && code["meaning"].is_string());
    }
    let names: Vec<&str> = codes
        .as_array()
        .unwrap()
        .iter()
        .map(|code| code["code"].as_str().unwrap())
        .collect();
    let distinct: BTreeSet<&str> = names.iter().copied().collect();
    assert_eq!(distinct.len(), names.len(), "{names:?}");
    // Those of single events, too (contract 3).
    for code in [
        "invalid_event_id",
        "duplicate_event_id_in_batch",
        "invalid_name",
        "invalid_timestamp",
        "timestamp_out_of_window",
        "subject_mismatch",
        "external_id_mismatch",
        "invalid_properties",
        "event_too_large",
        "schema_violation",
        "consent_missing",
        "plugin_unavailable",
        "suppressed_subject",
    ] {
        assert!(distinct.contains(code), "{code}");
    }
    let console = app.get("/console", &Credential::none()).await;
    assert_eq!(console.status, 200);
}
