//! Rate limits: who is limited by what, and what the answers say of it (contract 15).

use nudge::config::{Bucket, Config, Switch};
use serde_json::json;
use tests::{Answer, Backend, Credential, TestApp, site};

/// A server with limits.
async fn limited(change: impl FnOnce(&mut Config)) -> TestApp {
    let on = |config: &mut Config| {
        config.rate_limits.enabled = Switch::On;
        change(config);
    };
    TestApp::start_with(site!(), Backend::Sqlite, on).await
}

/// A bucket that comes back so slowly that no test sees it.
fn bucket(burst: u32) -> Bucket {
    Bucket {
        per_second: 0.01,
        burst,
    }
}

#[track_caller]
fn too_many(answer: &Answer, policy: &str) {
    answer.refused(429, "rate_limited");
    let seconds: u64 = answer.header("retry-after").parse().unwrap();
    assert!((1..=100).contains(&seconds), "{seconds}");
    let rest = answer.header("ratelimit");
    assert!(
        rest.contains(&format!("\"{policy}\";r=0;t={seconds}")),
        "{rest}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_person_has_a_bucket_that_fills_with_time() {
    let app = limited(|config| config.rate_limits.principal = bucket(3)).await;
    let list = async || app.get("/v1/apps", &app.viewer()).await;

    for left in [2, 1, 0] {
        let answer = list().await;
        answer.ok();
        assert_eq!(answer.header("ratelimit-policy"), "\"principal\";q=3;w=300");
        let rest = answer.header("ratelimit");
        assert!(
            rest.starts_with(&format!("\"principal\";r={left};t=")),
            "{rest}"
        );
    }
    too_many(&list().await, "principal");
    app.advance(100);
    list().await.ok();
    too_many(&list().await, "principal");
    // Whoever speaks for somebody else has a bucket of their own.
    app.session("ada").await;
    app.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_and_a_subject_have_buckets_of_their_own() {
    let app = limited(|config| {
        config.rate_limits.key = bucket(10);
        config.rate_limits.subject = bucket(2);
    })
    .await;
    let ada = app.session("ada").await;
    let ben = app.session("ben").await;

    let first = app.poll(&ada, "").await;
    first.ok();
    let policies = first.header("ratelimit-policy");
    assert_eq!(policies, "\"key\";q=10;w=1000, \"subject\";q=2;w=200");
    app.poll(&ada, "").await.ok();
    too_many(&app.poll(&ada, "").await, "subject");
    app.poll(&ben, "").await.ok();
    // Two sessions and four polls so far, each counted once.
    for _ in 6..10 {
        let body = json!({"anonymousId": "cyd"});
        app.post("/v1/sdk/session", &app.sdk(), &body).await.ok();
    }
    let body = json!({"anonymousId": "cyd"});
    too_many(&app.post("/v1/sdk/session", &app.sdk(), &body).await, "key");
    let server = json!({"userId": "ada", "events": [{"name": "x", "timestamp": app.time(0)}]});
    app.post("/v1/sdk/ingest", &app.backend(), &server)
        .await
        .ok();
    app.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_guesses_is_limited_and_who_knows_is_not() {
    let app = limited(|config| config.rate_limits.address = bucket(5)).await;
    let guess = async |text: &str| app.get("/v1/apps", &Credential::bearer(text)).await;
    let unknown = nudge::apps::key::NewKey::generate(nudge::apps::key::Kind::Write).text;
    app.session("ada").await;

    for text in ["garbage", "a.b.c", "wk_", &unknown, "sk_"] {
        guess(text).await.refused(401, "invalid_credentials");
    }
    too_many(&guess("garbage").await, "address");
    too_many(&guess(&unknown).await, "address");
    // Nothing to check is no guess, and good credentials from the same address are let in.
    app.get("/v1/apps", &Credential::none())
        .await
        .refused(401, "invalid_credentials");
    app.get("/v1/apps", &app.viewer()).await.ok();
    app.session("ben").await;
    app.advance(100);
    guess("garbage").await.refused(401, "invalid_credentials");
    app.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn addresses_behind_a_trusted_proxy_are_told_apart() {
    let app = limited(|config| {
        config.rate_limits.address = bucket(1);
        config.server.trusted_proxies = 1;
    })
    .await;
    let guess = async |from: &str| {
        let credential = Credential::bearer("garbage").and("x-forwarded-for", from);
        app.get("/v1/apps", &credential).await
    };
    guess("192.0.2.1").await.refused(401, "invalid_credentials");
    too_many(&guess("192.0.2.1").await, "address");
    too_many(&guess("6.6.6.6, 192.0.2.1").await, "address");
    guess("192.0.2.2").await.refused(401, "invalid_credentials");
    app.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn development_has_no_limits_unless_they_are_asked_for() {
    let app = TestApp::start_with(site!(), Backend::Sqlite, |config| {
        config.rate_limits.principal = bucket(1);
    })
    .await;
    for _ in 0..5 {
        let answer = app.get("/v1/apps", &app.viewer()).await;
        answer.ok();
        assert_eq!(answer.header("ratelimit"), "");
    }
    app.finish().await;
}
