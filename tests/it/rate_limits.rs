//! Rate limits: who is limited by what, and what the answers say of it (contract 15).

use std::io::Read as _;
use std::process::Stdio;

use nudge_apps::key::{Kind, NewKey};
use nudge_platform::config::{Bucket, Config, Switch};
use serde_json::json;
use tempfile::TempDir;
use tests::child;
use tests::{Answer, Backend, Credential, TestApp, client, site};

/// A server with limits.
async fn limited(change: impl FnOnce(&mut Config)) -> TestApp {
    limited_on(Backend::Sqlite, change).await
}

async fn limited_on(backend: Backend, change: impl FnOnce(&mut Config)) -> TestApp {
    let on = |config: &mut Config| {
        config.rate_limits.enabled = Switch::On;
        change(config);
    };
    TestApp::start_with(site!(), backend, on).await
}

/// Begins a session with a key, from an address behind the trusted proxy.
async fn begin(app: &TestApp, key: &str, from: &str, body: serde_json::Value) -> Answer {
    let credential = Credential::bearer(key).and("x-forwarded-for", from);
    app.post("/v1/sdk/session", &credential, &body).await
}

/// What is left in a bucket, as an answer has it.
fn left(answer: &Answer, policy: &str) -> Option<u64> {
    let rest = answer.header("ratelimit").to_owned();
    let item = rest
        .split(", ")
        .find(|item| item.starts_with(&format!("\"{policy}\";")))?;
    let parts = item.split(';').find_map(|part| part.strip_prefix("r="))?;
    parts.parse().ok()
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
    assert_eq!(
        policies,
        "\"key_address\";q=2000;w=10, \"key\";q=10;w=1000, \"subject\";q=2;w=200"
    );
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
    let unknown = NewKey::generate(Kind::Write).text;
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_uses_a_public_key_too_much_uses_up_the_share_of_one_address() {
    let app = limited(|config| {
        config.server.trusted_proxies = 1;
        config.rate_limits.key = bucket(20);
        config.rate_limits.key_address = bucket(3);
    })
    .await;
    let key = app.access.write_key.clone();
    let ada = json!({"anonymousId": "ada"});
    let begin = async |from: &str| begin(&app, &key, from, ada.clone()).await;

    for left_over in [2, 1, 0] {
        let answer = begin("192.0.2.1").await;
        answer.ok();
        assert_eq!(left(&answer, "key_address"), Some(left_over));
    }
    for _ in 0..30 {
        too_many(&begin("192.0.2.1").await, "key_address");
    }
    // What was refused took nothing of what all have together.
    let other = begin("192.0.2.2").await;
    other.ok();
    assert_eq!(left(&other, "key"), Some(16));
    // A network has addresses enough to change among, and one share.
    for host in ["2001:db8::1", "2001:db8::2", "2001:db8::ffff:3"] {
        begin(host).await.ok();
    }
    too_many(&begin("2001:db8::4").await, "key_address");
    begin("2001:db8:0:1::4").await.ok();
    // Another key of the same app has shares of its own, and a server has the whole of its key.
    let second = app.key(Kind::Write, &[]).await;
    let credential = Credential::bearer(&second).and("x-forwarded-for", "192.0.2.1");
    app.post("/v1/sdk/session", &credential, &ada).await.ok();
    let event = json!({"userId": "ada", "events": [{"name": "x", "timestamp": app.time(0)}]});
    let server = app.backend().and("x-forwarded-for", "192.0.2.1");
    for _ in 0..5 {
        app.post("/v1/sdk/ingest", &server, &event).await.ok();
    }
    app.advance(100);
    begin("192.0.2.1").await.ok();
    app.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_address_begins_so_many_sessions() {
    let app = limited(|config| {
        config.server.trusted_proxies = 1;
        config.rate_limits.sessions = bucket(3);
    })
    .await;
    let (first, second) = (
        app.access.write_key.clone(),
        app.key(Kind::Write, &[]).await,
    );
    let name = |number: usize| json!({"anonymousId": format!("person-{number}")});
    let before = app.count("subjects").await;

    let begun = begin(&app, &first, "192.0.2.1", name(0)).await.ok();
    for number in 1..3 {
        begin(&app, &first, "192.0.2.1", name(number)).await.ok();
    }
    // Whichever key, and whoever it would be: nobody is stored.
    for number in 3..10 {
        let key = if number % 2 == 0 { &first } else { &second };
        too_many(
            &begin(&app, key, "192.0.2.1", name(number)).await,
            "sessions",
        );
    }
    assert_eq!(app.count("subjects").await, before + 3);
    // Who has a session goes on with it, and other addresses begin theirs.
    let token = begun["subjectToken"].as_str().unwrap();
    let session = app.sdk().and("x-forwarded-for", "192.0.2.1");
    let session = session.and("x-service-subject-token", token);
    app.get("/v1/sdk/instructions", &session).await.ok();
    begin(&app, &first, "192.0.2.2", name(10)).await.ok();

    // Nor does a tracking client's batch name more people.
    let track = async |number: usize| {
        let key = Credential::none().and("x-write-key", &first);
        let key = key.and("x-forwarded-for", "192.0.2.3");
        let body = json!({"anonymousId": format!("tracked-{number}"), "event": "opened"});
        app.post("/v1/compat/v1/track", &key, &body).await
    };
    for number in [0, 1, 2, 0] {
        assert_eq!(track(number).await.status, 200);
    }
    too_many(&track(3).await, "sessions");
    assert_eq!(track(1).await.status, 200);
    assert_eq!(app.count("subjects").await, before + 3 + 1 + 3);

    app.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_person_whom_a_batch_names_first_counts() {
    let app = limited(|config| {
        config.server.trusted_proxies = 1;
        config.rate_limits.sessions = bucket(3);
    })
    .await;
    let before = app.count("subjects").await;
    let batch = async |people: std::ops::Range<usize>, from: &str| {
        let key = Credential::none().and("x-write-key", &app.access.write_key);
        let key = key.and("x-forwarded-for", from);
        let messages = people.map(|number| json!({"type": "track", "anonymousId": format!("named-{number}"), "event": "opened"}));
        let body = json!({"batch": messages.collect::<Vec<_>>()});
        app.post("/v1/compat/v1/batch", &key, &body).await
    };
    too_many(&batch(0..5, "192.0.2.1").await, "sessions");
    assert!(app.count("subjects").await <= before + 3);
    // Those for whom there was room are nobody new to the next request.
    assert_eq!(batch(10..13, "192.0.2.2").await.status, 200);
    too_many(&batch(10..14, "192.0.2.2").await, "sessions");
    assert_eq!(batch(10..13, "192.0.2.2").await.status, 200);
    app.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_address_sends_so_many_bytes_with_a_public_key() {
    let app = limited(|config| {
        config.server.trusted_proxies = 1;
        config.rate_limits.key_address_bytes = bucket(4096);
        config.rate_limits.app_bytes = bucket(1 << 20);
    })
    .await;
    let key = app.access.write_key.clone();
    let body = json!({"anonymousId": "ada", "ignored": "x".repeat(3000)});
    let begin = async |from: &str| begin(&app, &key, from, body.clone()).await;

    let first = begin("192.0.2.1").await;
    first.ok();
    let of_app = left(&first, "app_bytes").unwrap();
    begin("192.0.2.1").await.refused(429, "rate_limited");
    let other = begin("192.0.2.2").await;
    other.ok();
    // What was refused counts for nobody else.
    assert_eq!(left(&other, "app_bytes"), Some(of_app - 3072));
    app.finish().await;
}

/// Keys that this process has not met are looked up whatever failed before at their address.
async fn a_good_key_is_let_in_amid_guesses(backend: Backend) {
    let app = limited_on(backend, |config| config.rate_limits.address = bucket(5)).await;
    let ada = json!({"anonymousId": "ada"});
    let begin = async |key: &str| {
        let credential = Credential::bearer(key);
        app.post("/v1/sdk/session", &credential, &ada).await
    };
    let guess = async || begin(&NewKey::generate(Kind::Write).text).await;
    for _ in 0..5 {
        guess().await.refused(401, "invalid_credentials");
    }
    too_many(&guess().await, "address");

    let mut good = Vec::new();
    for _ in 0..5 {
        let (_, key) = app.another_app(app.id(), Kind::Write, &[]).await;
        good.push(key);
    }
    let (bad, let_in) = tokio::join!(
        futures_util::future::join_all((0..400).map(|_| guess())),
        futures_util::future::join_all(good.iter().map(|key| begin(key))),
    );
    for answer in bad {
        too_many(&answer, "address");
    }
    for answer in let_in {
        answer.ok();
    }
    // A token that is none is no reason to keep somebody with a good key from beginning anew.
    let outdated = app.sdk().and("x-service-subject-token", "st_outdated");
    app.post("/v1/sdk/session", &outdated, &ada).await.ok();
    too_many(&app.get("/v1/sdk/instructions", &outdated).await, "address");
    app.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_good_key_is_let_in_amid_guesses_on_sqlite() {
    a_good_key_is_let_in_amid_guesses(Backend::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_good_key_is_let_in_amid_guesses_on_postgres() {
    a_good_key_is_let_in_amid_guesses(Backend::Postgres).await;
}

/// What a server logs while it is sent requests that came through a proxy.
async fn log_behind_a_proxy(header: &'static str, trusted: &str) -> String {
    let folder = TempDir::with_prefix("nudge-test-").unwrap();
    let file = folder.path().join("access.json");
    let mut process = child::program(site!())
        .env("NUDGE_SERVER__TRUSTED_PROXIES", trusted)
        .env("NUDGE_TELEMETRY__LOG_FILTER", "warn")
        .args(["dev", "--listen", "127.0.0.1:0", "--data-dir"])
        .arg(folder.path())
        .arg("--json")
        .arg(&file)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    while !file.exists() {
        assert!(process.try_wait().unwrap().is_none(), "it serves");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    let access: serde_json::Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    let text = |key: &str| access[key].as_str().unwrap();
    for _ in 0..3 {
        let request = client::build()
            .post(format!("{}/v1/sdk/session", text("baseUrl")))
            .bearer_auth(text("writeKey"))
            .header(header, "192.0.2.1")
            .json(&json!({"anonymousId": "ada"}));
        client::send(request).await.ok();
    }
    let id = process.id().to_string();
    let asked = std::process::Command::new("kill")
        .args(["-TERM", &id])
        .status();
    assert!(asked.unwrap().success());
    let mut log = String::new();
    process
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut log)
        .unwrap();
    process.wait().unwrap();
    log
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_proxy_that_is_not_trusted_is_told_of_once() {
    for header in ["x-forwarded-for", "forwarded"] {
        let log = log_behind_a_proxy(header, "0").await;
        assert_eq!(log.matches("came through a proxy").count(), 1, "{log}");
        assert!(log.contains("Set server.trustedProxies"), "{log}");
    }
    let log = log_behind_a_proxy("x-forwarded-for", "1").await;
    assert!(!log.contains("proxy"), "{log}");
}

/// A bucket of bytes that comes back slowly.
fn bytes(burst: u32) -> Bucket {
    Bucket {
        per_second: 1024.0,
        burst,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_subject_and_an_app_send_so_many_bytes() {
    let app = limited(|config| {
        config.rate_limits.subject_bytes = bytes(64 * 1024);
        config.rate_limits.app_bytes = bytes(160 * 1024);
    })
    .await;
    let ada = app.session("ada").await;
    let ben = app.session("ben").await;
    let long = json!({"text": "x".repeat(40 * 1024)});
    let sends = async |who| app.ingest(who, &[app.event(who, "bought", &long)]).await;

    let first = sends(&ada).await;
    assert_eq!(first.ok()["accepted"], 1);
    let policies = first.header("ratelimit-policy");
    let policy = "\"subject_bytes\";q=65536;qu=\"content-bytes\";w=64";
    assert!(policies.contains(policy), "{policies}");
    assert!(policies.contains("\"app_bytes\";q=163840;"), "{policies}");
    let rest = first.header("ratelimit");
    assert!(rest.contains("\"subject_bytes\";r=2"), "{rest}");

    too_many(&sends(&ada).await, "subject_bytes");
    // However it is compressed, and on every route.
    let request = app.request(
        reqwest::Method::POST,
        "/v1/sdk/user-properties",
        &ada.credential(),
    );
    let body =
        json!({"anonymousId": "ada", "mutationId": uuid::Uuid::nil(), "set": {}, "more": long});
    let body = zstd::bulk::compress(body.to_string().as_bytes(), 3).unwrap();
    let request = request
        .header("content-type", "application/json")
        .header("content-encoding", "zstd");
    too_many(
        &tests::client::send(request.body(body)).await,
        "subject_bytes",
    );
    // Nothing of what was refused is there, and others are not held up by it.
    sends(&ben).await.ok();
    assert_eq!(app.stored("bought").await, 2);
    // A server key's bytes are its app's.
    let server = |bytes: usize| {
        json!({"userId": "ada", "events": [
        {"name": "sold", "timestamp": app.time(0), "properties": {"text": "x".repeat(bytes)}}]})
    };
    let posts = async |bytes: usize| {
        app.post("/v1/sdk/ingest", &app.backend(), &server(bytes))
            .await
    };
    posts(60 * 1024).await.ok();
    too_many(&posts(60 * 1024).await, "app_bytes");
    too_many(
        &app.ingest(&app.session("cyd").await, &[app.event(&ada, "x", &long)])
            .await,
        "app_bytes",
    );

    app.advance(60);
    sends(&ada).await.ok();
    app.finish().await;
}

/// Proxies and clients take heads of some kilobytes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_of_many_people_has_each_policy_once() {
    let app = limited(|config| config.rate_limits.subject_bytes = bytes(64 * 1024)).await;
    app.set(|settings| settings.ingest.allow_unverified_server_events = true)
        .await;
    let message = |number: usize, bytes: usize| {
        json!({"type": "track", "event": "x", "userId": format!("person-{number}"), "timestamp": app.time(0),
            "properties": {"text": "x".repeat(bytes)}})
    };
    // Somebody in the middle sends the most.
    let messages: Vec<_> = (0..200)
        .map(|number| message(number, if number == 100 { 20 * 1024 } else { 10 }))
        .collect();
    let body = json!({"batch": messages});
    let answer = app.post("/v1/compat/v1/batch", &app.sdk(), &body).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    for header in ["ratelimit", "ratelimit-policy"] {
        let value = answer.header(header);
        assert_eq!(value.matches("\"subject_bytes\"").count(), 1, "{value}");
        assert!(value.len() < 500, "{value}");
    }
    let left = left(&answer, "subject_bytes").unwrap();
    assert!((40 * 1024..44 * 1024).contains(&left), "{left}");
    // One that is refused is told of itself.
    let messages: Vec<_> = [60 * 1024, 10].map(|bytes| message(100, bytes)).into();
    let body = json!({"batch": messages});
    let answer = app.post("/v1/compat/v1/batch", &app.sdk(), &body).await;
    too_many(&answer, "subject_bytes");
    app.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_in_an_unverified_request_has_a_bucket_too() {
    let app = limited(|config| config.rate_limits.subject_bytes = bytes(64 * 1024)).await;
    app.set(|settings| settings.ingest.allow_unverified_server_events = true)
        .await;
    let posts = async |user_id: &str| {
        let text = "x".repeat(40 * 1024);
        let events =
            json!([{"name": "sold", "timestamp": app.time(0), "properties": {"text": text}}]);
        let body = json!({"userId": user_id, "events": events});
        app.post("/v1/sdk/ingest", &app.sdk(), &body).await
    };
    posts("ada").await.ok();
    too_many(&posts("ada").await, "subject_bytes");
    posts("ben").await.ok();
    app.finish().await;
}
