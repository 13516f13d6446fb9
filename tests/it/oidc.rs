//! Access tokens from OpenID providers (contract 1): a fake one that can do anything wrong, and a real one.

pub(crate) mod fake;
pub(crate) mod provider;

use std::path::Path;

use fake::{FakeIssuer, Signer, token};
use nudge_platform::config::{Config, OidcIssuer};
use serde_json::{Value, json};
use tempfile::TempDir;
use tests::{Answer, Credential, TestApp, child, site};

/// A configured issuer with the default claims.
pub(crate) fn configured(issuer: &str) -> OidcIssuer {
    OidcIssuer::new(issuer, "nudge")
}

/// A server whose access tokens come from issuers.
async fn server(folder: &Path, issuers: &[&FakeIssuer]) -> TestApp {
    let issuers = issuers.iter().map(|issuer| configured(&issuer.url));
    let issuers = issuers.collect();
    open(folder, |config| config.auth.issuers = issuers)
        .await
        .unwrap()
}

async fn open(folder: &Path, change: impl FnOnce(&mut Config)) -> anyhow::Result<TestApp> {
    let mut config = TestApp::config(site!(), folder);
    change(&mut config);
    TestApp::open(site!(), config).await
}

/// The claims of an admin of the demo workspace, changed.
fn claims(app: &TestApp, issuer: &FakeIssuer, change: Value) -> Value {
    let now = app.clock.now().seconds();
    let workspace = app.access.workspace_id.to_string();
    let mut claims = json!({
        "iss": issuer.url, "aud": "nudge", "sub": "ada", "iat": now, "exp": now + 3600,
        "roles": {workspace: "admin"},
    });
    nudge_platform::json::merge::apply(&mut claims, change);
    claims
}

async fn list(app: &TestApp, token: &str) -> Answer {
    app.get(&app.path("/surveys"), &Credential::bearer(token))
        .await
}

fn folder() -> TempDir {
    TempDir::with_prefix("nudge-test-").unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokens_of_all_three_algorithms_open_what_their_roles_say() {
    let (folder, issuer) = (folder(), FakeIssuer::start().await);
    let app = server(folder.path(), &[&issuer]).await;
    let signers = [Signer::rsa("r"), Signer::ec("e"), Signer::ed("d")];
    issuer.publish(&signers);

    for signer in &signers {
        let admin = signer.sign(&claims(&app, &issuer, json!({})));
        list(&app, &admin).await.ok();
        let workspace = app.access.workspace_id.to_string();
        let viewer = signer.sign(&claims(
            &app,
            &issuer,
            json!({"roles": {workspace: "viewer"}}),
        ));
        list(&app, &viewer).await.ok();
        app.post(
            &app.path("/surveys"),
            &Credential::bearer(&viewer),
            &json!({}),
        )
        .await
        .refused(403, "insufficient_role");
    }
    let nobody = signers[0].sign(&claims(&app, &issuer, json!({"roles": null})));
    list(&app, &nobody).await.refused(404, "not_found");
    // Whoever does something is in the audit log by the token's subject.
    let admin =
        Credential::bearer(&signers[1].sign(&claims(&app, &issuer, json!({"sub": "grace"}))));
    app.patch(&app.path(""), &admin, &json!({"name": "Shop"}))
        .await
        .ok();
    let log = app.get(&app.path("/audit-log"), &admin).await.ok();
    assert_eq!(log["items"][0]["actor"], "grace");
    app.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_issuers_configured_the_embedded_one_is_off() {
    let (folder, issuer) = (folder(), FakeIssuer::start().await);
    let app = server(folder.path(), &[&issuer]).await;
    let services = app.services();
    let roles = [(app.access.workspace_id, nudge_http::issuer::Role::Admin)].into();
    let hour = std::time::Duration::from_hours(1);
    let own = services
        .issuer
        .issue("ada", roles, true, app.clock.now(), hour)
        .unwrap();

    list(&app, &own).await.refused(401, "invalid_credentials");
    app.get("/.well-known/openid-configuration", &Credential::none())
        .await
        .refused(404, "not_found");
    // Receipts of deletions are signed with its key all the same.
    let keys = app.get("/.well-known/jwks.json", &Credential::none()).await;
    assert_eq!(keys.json()["keys"][0]["crv"], "Ed25519");
    assert_eq!(app.access.admin_token, "");
    // Keys are no matter of issuers.
    app.session("ada").await;
    app.finish().await;

    let environment = format!(
        "[{{\"issuer\": \"{}\", \"audience\": \"nudge\"}}]",
        issuer.url
    );
    let output = child::program(site!())
        .env("NUDGE_AUTH__ISSUERS", environment)
        .args([
            "token",
            "--workspace",
            &uuid::Uuid::nil().to_string(),
            "--role",
            "viewer",
            "--data-dir",
        ])
        .arg(folder.path())
        .output()
        .unwrap();
    assert!(!output.status.success());
    assert!(
        String::from_utf8(output.stderr)
            .unwrap()
            .contains("auth.issuers")
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_right_in_every_way_is_refused() {
    let (folder, issuer) = (folder(), FakeIssuer::start().await);
    let app = server(folder.path(), &[&issuer]).await;
    let (rsa, ec, ed) = (Signer::rsa("r"), Signer::ec("e"), Signer::ed("d"));
    let stranger = Signer::ed("d");
    issuer.publish(&[rsa, ec, ed.clone()]);
    let good = claims(&app, &issuer, json!({}));
    list(&app, &ed.sign(&good)).await.ok();

    let public = ed.jwk["x"].as_str().unwrap().to_owned();
    let mut bad = vec![
        ("signed by another", stranger.sign(&good)),
        (
            "no signature",
            token(&json!({"alg": "none", "kid": "d"}), &good, b""),
        ),
        ("no algorithm", token(&json!({"kid": "d"}), &good, &[0; 64])),
        (
            "a secret that is public",
            fake::hmac(
                &json!({"alg": "HS256", "kid": "d"}),
                &good,
                public.as_bytes(),
            ),
        ),
        (
            "the key of another algorithm",
            ed.sign_as(&json!({"alg": "RS256", "kid": "r"}), &good),
        ),
        (
            "another algorithm's name",
            ed.sign_as(&json!({"alg": "ES256", "kid": "d"}), &good),
        ),
        (
            "an extension",
            ed.sign_as(&json!({"alg": "EdDSA", "kid": "d", "crit": ["exp"]}), &good),
        ),
        (
            "unknown kid",
            ed.sign_as(&json!({"alg": "EdDSA", "kid": "x"}), &good),
        ),
        (
            "two parts",
            ed.sign(&good).rsplit_once('.').unwrap().0.to_owned(),
        ),
        (
            "far too long",
            ed.sign(&claims(&app, &issuer, json!({"pad": "x".repeat(20_000)}))),
        ),
    ];
    for (what, change) in [
        ("other audience", json!({"aud": "other"})),
        ("other audiences", json!({"aud": ["a", "b"]})),
        ("no audience", json!({"aud": null})),
        ("other issuer", json!({"iss": "https://id.example"})),
        ("no issuer", json!({"iss": null})),
        ("no end", json!({"exp": null})),
        ("no subject", json!({"sub": null})),
    ] {
        bad.push((what, ed.sign(&claims(&app, &issuer, change))));
    }
    for (what, token) in bad {
        let answer = list(&app, &token).await;
        assert_eq!(answer.status, 401, "{what}: {}", answer.text);
        answer.refused(401, "invalid_credentials");
    }
    let several = ed.sign(&claims(&app, &issuer, json!({"aud": ["other", "nudge"]})));
    list(&app, &several).await.ok();
    // Without a kid, any of the issuer's keys may have signed.
    list(&app, &ed.sign_as(&json!({"alg": "EdDSA"}), &good))
        .await
        .ok();
    app.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn times_have_a_minute_of_leeway() {
    let (folder, issuer) = (folder(), FakeIssuer::start().await);
    let app = server(folder.path(), &[&issuer]).await;
    let signer = Signer::ed("d");
    issuer.publish(std::slice::from_ref(&signer));
    let now = app.clock.now().seconds();
    let future = signer.sign(&claims(&app, &issuer, json!({"nbf": now + 600})));
    let short = signer.sign(&claims(&app, &issuer, json!({"exp": now + 100})));
    list(&app, &short).await.ok();
    list(&app, &future)
        .await
        .refused(401, "invalid_credentials");

    app.advance(150);
    list(&app, &short).await.ok();
    app.advance(15);
    list(&app, &short).await.refused(401, "invalid_credentials");
    list(&app, &future)
        .await
        .refused(401, "invalid_credentials");
    app.advance(600 - 165 - 55);
    list(&app, &future).await.ok();
    app.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rotated_keys_are_found_without_asking_too_often() {
    let (folder, issuer) = (folder(), FakeIssuer::start().await);
    let app = server(folder.path(), &[&issuer]).await;
    let (old, new) = (Signer::ed("old"), Signer::ec("new"));
    issuer.publish(std::slice::from_ref(&old));
    let claims = claims(&app, &issuer, json!({}));
    let (old, new_token) = (old.sign(&claims), new.sign(&claims));
    list(&app, &old).await.ok();
    assert_eq!(issuer.asked(), 1);

    issuer.publish(std::slice::from_ref(&new));
    list(&app, &new_token).await.ok();
    assert_eq!(issuer.asked(), 2, "nobody asked for an unknown kid before");
    for _ in 0..5 {
        list(&app, &old).await.refused(401, "invalid_credentials");
    }
    assert_eq!(issuer.asked(), 2, "somebody did less than 30 s ago");
    app.advance(30);
    list(&app, &old).await.refused(401, "invalid_credentials");
    assert_eq!(issuer.asked(), 3);

    app.advance(570);
    list(&app, &new_token).await.ok();
    assert_eq!(issuer.asked(), 3, "keys are good for ten minutes");
    app.advance(31);
    list(&app, &new_token).await.ok();
    assert_eq!(issuer.asked(), 4);
    app.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_issuer_that_is_down_is_no_reason_to_refuse() {
    let (folder, issuer) = (folder(), FakeIssuer::start().await);
    let app = server(folder.path(), &[&issuer]).await;
    let signer = Signer::ed("d");
    issuer.publish(std::slice::from_ref(&signer));
    let month = 30 * 24 * 3600;
    let now = app.clock.now().seconds();
    let token = signer.sign(&claims(&app, &issuer, json!({"exp": now + month})));
    let unknown = Signer::ed("x").sign(&claims(&app, &issuer, json!({})));

    issuer.fail(Some(503));
    let answer = list(&app, &token).await;
    answer.refused(503, "unavailable");
    assert!(!answer.header("retry-after").is_empty());
    assert!(
        !answer.text.contains(&issuer.url),
        "the client need not know"
    );
    issuer.fail(None);
    list(&app, &token).await.refused(503, "unavailable");
    app.advance(30);
    list(&app, &token).await.ok();

    issuer.fail(Some(500));
    app.advance(601);
    list(&app, &token).await.ok();
    // It may be a key that the issuer has made since.
    list(&app, &unknown).await.refused(503, "unavailable");
    app.advance(24 * 3600);
    list(&app, &token).await.refused(503, "unavailable");
    issuer.fail(None);
    app.advance(30);
    list(&app, &token).await.ok();
    list(&app, &unknown)
        .await
        .refused(401, "invalid_credentials");
    app.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_issuers_do_not_speak_for_each_other() {
    let folder = folder();
    let (one, two) = (FakeIssuer::start().await, FakeIssuer::start().await);
    let app = server(folder.path(), &[&one, &two]).await;
    let (ada, ben) = (Signer::ed("k"), Signer::rsa("k"));
    one.publish(std::slice::from_ref(&ada));
    two.publish(std::slice::from_ref(&ben));

    list(&app, &ada.sign(&claims(&app, &one, json!({}))))
        .await
        .ok();
    list(&app, &ben.sign(&claims(&app, &two, json!({}))))
        .await
        .ok();
    let crossed = [
        ada.sign(&claims(&app, &two, json!({}))),
        ben.sign(&claims(&app, &one, json!({}))),
    ];
    for token in crossed {
        list(&app, &token).await.refused(401, "invalid_credentials");
    }
    two.fail(Some(500));
    app.advance(601);
    list(&app, &ada.sign(&claims(&app, &one, json!({}))))
        .await
        .ok();
    app.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn roles_and_the_operator_claim_can_be_anywhere() {
    let (folder, issuer) = (folder(), FakeIssuer::start().await);
    let own = OidcIssuer {
        roles_claim: "resource_access.nudge.roles".to_owned(),
        audience: "engagement".to_owned(),
        ..configured(&issuer.url)
    };
    let app = open(folder.path(), |config| config.auth.issuers = vec![own])
        .await
        .unwrap();
    let signer = Signer::ed("d");
    issuer.publish(std::slice::from_ref(&signer));
    let roles = json!({app.access.workspace_id.to_string(): "editor"});
    let nested =
        json!({"aud": "engagement", "roles": null, "resource_access": {"nudge": {"roles": roles}}});
    let token = signer.sign(&claims(&app, &issuer, nested));
    let editor = Credential::bearer(&token);
    app.post(&app.path("/surveys"), &editor, &json!({}))
        .await
        .refused(422, "validation_failed");
    app.get(&app.path("/keys"), &editor)
        .await
        .refused(403, "insufficient_role");
    app.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn documents_that_are_not_what_they_should_be_bring_no_keys() {
    let (folder, issuer) = (folder(), FakeIssuer::start().await);
    let app = server(folder.path(), &[&issuer]).await;
    let signer = Signer::ed("d");
    let token = signer.sign(&claims(&app, &issuer, json!({})));
    let changed = |name: &str, value: Value| {
        let mut jwk = signer.jwk.clone();
        jwk[name] = value;
        json!({"keys": [jwk]})
    };
    let good = json!({"keys": [signer.jwk]});
    for (what, discovery, keys) in [
        (
            "of another issuer",
            json!({"issuer": "https://id.example"}),
            good.clone(),
        ),
        (
            "keys elsewhere",
            json!({"jwks_uri": "http://192.0.2.1/jwks.json"}),
            good.clone(),
        ),
        (
            "a file",
            json!({"jwks_uri": "file:///etc/passwd"}),
            good.clone(),
        ),
        ("no list", json!({}), json!({"keys": 7})),
        (
            "too large",
            json!({}),
            json!({"keys": [], "pad": "x".repeat(300 * 1024)}),
        ),
    ] {
        issuer.publish_documents(&discovery, &keys);
        let answer = list(&app, &token).await;
        assert_eq!(answer.status, 503, "{what}: {}", answer.text);
        app.advance(30);
    }
    for (what, keys) in [
        ("no use", changed("use", Value::Null)),
        ("for encryption", changed("use", json!("enc"))),
        ("another algorithm", changed("alg", json!("RS256"))),
        ("another curve", changed("crv", json!("X25519"))),
        ("private", changed("d", json!("AAAA"))),
        (
            "nonsense among keys",
            json!({"keys": [7, null, {"kty": "RSA"}]}),
        ),
    ] {
        issuer.publish_documents(&json!({}), &keys);
        let answer = list(&app, &token).await;
        assert_eq!(answer.status, 401, "{what}: {}", answer.text);
        app.advance(30);
    }
    issuer.publish_documents(&json!({}), &good);
    list(&app, &token).await.ok();
    app.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn plain_http_is_for_this_machine_unless_it_is_allowed() {
    let folder = folder();
    let mut issuer = configured("http://id.example");
    let refused = open(folder.path(), |config| {
        config.auth.issuers = vec![issuer.clone()];
    })
    .await;
    let complaint = format!("{:#}", refused.err().unwrap());
    assert!(
        complaint.contains("https://") && complaint.contains("auth.allowHttp"),
        "{complaint}"
    );
    issuer.audience = String::new();
    issuer.issuer = "https://id.example".to_owned();
    let refused = open(folder.path(), |config| config.auth.issuers = vec![issuer]).await;
    assert!(format!("{:#}", refused.err().unwrap()).contains("audience"));

    let allowed = open(folder.path(), |config| {
        config.auth.issuers = vec![configured("http://id.example")];
        config.auth.allow_http = true;
    });
    allowed.await.unwrap().finish().await;
}
