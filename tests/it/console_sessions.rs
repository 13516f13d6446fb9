//! Signing in to the console by a link, and what a session opens (contract 22).

use std::io::Read as _;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use nudge_http::issuer::Role;
use nudge_platform::config::{Bucket, Switch};
use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;
use tests::console::{cookie, own_page, with_cookie};
use tests::{Answer, Backend, Credential, TestApp, child, client, on_both_backends, site};

use crate::concurrency::join;

on_both_backends!(
    a_link_signs_in_once_and_within_ten_minutes,
    of_two_who_use_a_link_one_is_signed_in,
    a_cookie_that_is_no_text_shuts_nobody_out,
    other_sites_pages_change_nothing,
    other_hosts_names_open_nothing,
    a_token_wins_and_sdk_routes_look_at_no_cookie,
    a_session_ends_when_it_is_ended_and_when_its_time_is_over,
    who_changes_something_is_in_the_audit_log,
    a_stream_ends_with_its_session,
    a_stream_sends_nothing_after_its_session,
    what_has_ended_is_removed,
    a_command_makes_links,
);

/// Reads who is signed in.
async fn session(app: &TestApp, who: &Credential) -> Answer {
    app.get("/console/session", who).await
}

async fn rename(app: &TestApp, who: &Credential) -> Answer {
    app.patch(&app.path(""), who, &json!({"name": "Shop"}))
        .await
}

async fn a_link_signs_in_once_and_within_ten_minutes(app: &mut TestApp) {
    let code = app.console_code().to_owned();
    assert_eq!(code.len(), 43);
    // A look at the page uses nothing up, and nor does a request that is not the page's.
    let page = app.get("/console/", &Credential::none()).await;
    assert_eq!(page.status, 200);
    app.post(
        "/console/session",
        &own_page(),
        &json!({"code": code, "x": 1}),
    )
    .await
    .refused(422, "validation_failed");

    let answer = app.sign_in(&code).await;
    let view = answer.data(201);
    let (secret, attributes) = cookie(&answer, "nudge");
    assert_eq!(attributes, "Path=/; HttpOnly; SameSite=Strict");
    assert_eq!(view["subject"], "nudge dev");
    assert_eq!(view["operator"], true);
    let workspace = json!({"id": app.access.workspace_id, "role": "admin"});
    assert_eq!(view["workspaces"], json!([workspace]));
    let demo =
        json!({"id": app.access.app_id, "name": "Demo", "workspaceId": app.access.workspace_id});
    assert_eq!(view["apps"], json!([demo]));
    let who = with_cookie(&secret);
    assert_eq!(session(app, &who).await.ok(), view);
    app.get("/v1/apps", &who).await.ok();
    rename(app, &who).await.ok();

    for used in [&code, &secret, "x", &code[1..], &code.to_lowercase()] {
        app.sign_in(used).await.refused(401, "invalid_credentials");
    }
    let roles = [(app.access.workspace_id, Role::Viewer)];
    let late = app.console_link(&roles, false).await;
    app.advance(570);
    let timely = app.console_link(&roles, false).await;
    app.advance(30);
    app.sign_in(&late).await.refused(401, "invalid_credentials");
    app.advance(540);
    app.signed_in_by(&timely).await;

    // Who signs in anew leaves the session before.
    let code = app.console_link(&roles, false).await;
    let answer = app
        .post("/console/session", &who, &json!({"code": code}))
        .await;
    answer.data(201);
    session(app, &who).await.refused(401, "invalid_credentials");
    session(app, &with_cookie(&cookie(&answer, "nudge").0))
        .await
        .ok();
}

async fn of_two_who_use_a_link_one_is_signed_in(app: &mut TestApp) {
    for _ in 0..4 {
        let code = app
            .console_link(&[(app.access.workspace_id, Role::Viewer)], false)
            .await;
        let answers = join((0..6).map(|_| app.sign_in(&code))).await;
        let signed_in = answers.iter().filter(|answer| answer.status == 201).count();
        assert_eq!(signed_in, 1);
        for answer in answers.iter().filter(|answer| answer.status != 201) {
            answer.refused(401, "invalid_credentials");
        }
    }
}

async fn a_cookie_that_is_no_text_shuts_nobody_out(app: &mut TestApp) {
    let answer = app.sign_in(app.console_code()).await;
    let (secret, _) = cookie(&answer, "nudge");
    // Another site of the domain has set it.
    let cookies = [b"theme=\xe9; nudge=".as_slice(), secret.as_bytes()].concat();
    let request = app
        .request(Method::GET, "/console/session", &own_page())
        .header("cookie", cookies);
    client::send(request).await.ok();
}

async fn other_sites_pages_change_nothing(app: &mut TestApp) {
    let signed_in = app.signed_in(Role::Admin).await;
    rename(app, &signed_in).await.ok();
    let secret = app.sign_in(app.console_code()).await;
    let secret = format!("nudge={}", cookie(&secret, "nudge").0);
    let with = |headers: &[(&'static str, &str)]| {
        let cookie = Credential::none().and("cookie", &secret);
        headers
            .iter()
            .fold(cookie, |all, (name, value)| all.and(name, value))
    };
    let own = app.access.base_url.clone();
    let other_port = "http://127.0.0.1:1";
    for foreign in [
        with(&[]),
        with(&[("sec-fetch-site", "cross-site")]),
        with(&[("sec-fetch-site", "same-site"), ("origin", &own)]),
        with(&[("sec-fetch-site", "none"), ("origin", &own)]),
        with(&[("origin", "null")]),
        with(&[("origin", "https://evil.example")]),
        with(&[("origin", other_port)]),
    ] {
        rename(app, &foreign).await.refused(403, "cross_site");
        let body = json!({"code": "x"});
        app.post("/console/session", &foreign, &body)
            .await
            .refused(403, "cross_site");
        app.delete("/console/session", &foreign)
            .await
            .refused(403, "cross_site");
        // Reading is for who has the cookie, which browsers send for no other site.
        app.get("/v1/apps", &foreign).await.ok();
        session(app, &foreign).await.ok();
    }
    rename(app, &with(&[("origin", &own)])).await.ok();
    // Nor does another site sign anybody in.
    let foreign = Credential::none().and("origin", "https://evil.example");
    let code = app.console_link(&[], false).await;
    app.post("/console/session", &foreign, &json!({"code": code}))
        .await
        .refused(403, "cross_site");
    app.post(
        "/console/session",
        &Credential::none(),
        &json!({"code": code}),
    )
    .await
    .data(201);
}

async fn other_hosts_names_open_nothing(app: &mut TestApp) {
    let who = app.signed_in(Role::Admin).await;
    let (_, port) = app.access.base_url.rsplit_once(':').unwrap();
    for own in [
        format!("localhost:{port}"),
        "127.0.0.1:1".to_owned(),
        format!("[::1]:{port}"),
    ] {
        let who = who.clone().and("host", &own);
        session(app, &who).await.ok();
        app.get("/v1/apps", &who).await.ok();
        rename(app, &who).await.ok();
    }
    for other in [
        "evil.example",
        "127.0.0.1.evil.example",
        "10.0.0.1",
        "localhost@evil.example",
    ] {
        let who = who.clone().and("host", other);
        for path in [
            "/v1/apps",
            "/console/session",
            "/console/",
            "/console/login",
            "/console/callback",
        ] {
            app.get(path, &who).await.refused(421, "misdirected");
        }
        rename(app, &who).await.refused(421, "misdirected");
        app.get("/console/", &Credential::none().and("host", other))
            .await
            .refused(421, "misdirected");
        // Nor are documents.
        let docs = app
            .get("/docs", &Credential::none().and("host", other))
            .await;
        assert_eq!(docs.status, 200);
        // A token is no matter of names.
        app.get("/v1/apps", &app.viewer().and("host", other))
            .await
            .ok();
    }
    // Where the public URL is said, it counts too, and its cookie is another one.
    "https://nudge.example".clone_into(&mut app.config.server.public_url);
    app.restart().await;
    let there = own_page().and("host", "nudge.example");
    let code = app
        .console_link(&[(app.access.workspace_id, Role::Admin)], false)
        .await;
    let answer = app
        .post("/console/session", &there, &json!({"code": code}))
        .await;
    answer.data(201);
    let (secret, attributes) = cookie(&answer, "__Host-nudge");
    assert_eq!(attributes, "Path=/; HttpOnly; SameSite=Strict; Secure");
    let there = Credential::none()
        .and("host", "nudge.example")
        .and("cookie", &format!("__Host-nudge={secret}"));
    let own = there.clone().and("origin", "https://nudge.example");
    rename(app, &own).await.ok();
    let plain = there.clone().and("origin", "http://nudge.example");
    rename(app, &plain).await.refused(403, "cross_site");
    // Under the name that anybody may set, the cookie is nobody's.
    let renamed = Credential::none()
        .and("host", "nudge.example")
        .and("cookie", &format!("nudge={secret}"));
    session(app, &renamed)
        .await
        .refused(401, "invalid_credentials");
}

async fn a_token_wins_and_sdk_routes_look_at_no_cookie(app: &mut TestApp) {
    let admin = app.signed_in(Role::Admin).await;
    let viewer = admin.clone().and(
        "authorization",
        &format!("Bearer {}", app.access.viewer_token),
    );
    rename(app, &viewer).await.refused(403, "insufficient_role");
    let garbage = admin.clone().and("authorization", "Bearer garbage");
    app.get("/v1/apps", &garbage)
        .await
        .refused(401, "invalid_credentials");
    // With a token it is no matter whose page it was, nor which host it asked.
    let foreign = Credential::bearer(&app.access.admin_token)
        .and("cookie", "nudge=x")
        .and("sec-fetch-site", "cross-site")
        .and("host", "evil.example");
    rename(app, &foreign).await.ok();

    let body = json!({"anonymousId": "ada"});
    app.post("/v1/sdk/session", &admin, &body)
        .await
        .refused(401, "invalid_credentials");
    let sdk = app
        .sdk()
        .and("cookie", "nudge=x")
        .and("sec-fetch-site", "cross-site")
        .and("host", "evil.example");
    app.post("/v1/sdk/session", &sdk, &body).await.ok();
}

async fn a_session_ends_when_it_is_ended_and_when_its_time_is_over(app: &mut TestApp) {
    const HOUR: u64 = 3_600;
    let who = app.signed_in(Role::Admin).await;
    let answer = app.delete("/console/session", &who).await;
    answer.data(204);
    let (value, attributes) = cookie(&answer, "nudge");
    assert_eq!(value, "");
    assert!(attributes.contains("Max-Age=0"), "{attributes}");
    let refused = session(app, &who).await;
    let problem = refused.refused(401, "invalid_credentials");
    assert_eq!(problem["signIn"], json!({"link": true, "issuers": []}));
    app.get("/v1/apps", &who)
        .await
        .refused(401, "invalid_credentials");
    app.delete("/console/session", &who).await.data(204);
    app.delete("/console/session", &own_page())
        .await
        .refused(401, "invalid_credentials");

    // Eight hours without use.
    let (one, other) = (
        app.signed_in(Role::Viewer).await,
        app.signed_in(Role::Viewer).await,
    );
    app.advance(8 * HOUR - 10);
    session(app, &one).await.ok();
    app.advance(20);
    session(app, &one).await.ok();
    session(app, &other)
        .await
        .refused(401, "invalid_credentials");
    // A day, however much it is used.
    let mut age = 8 * HOUR + 10;
    while age < 24 * HOUR - 2 * HOUR {
        app.advance(HOUR);
        age += HOUR;
        session(app, &one).await.ok();
    }
    app.advance(24 * HOUR - age - 5);
    session(app, &one).await.ok();
    app.advance(6);
    session(app, &one).await.refused(401, "invalid_credentials");
}

async fn who_changes_something_is_in_the_audit_log(app: &mut TestApp) {
    let code = app.console_code().to_owned();
    let who = app.signed_in_by(&code).await;
    rename(app, &who).await.ok();
    let log = app.get(&app.path("/audit-log"), &who).await.ok();
    assert_eq!(log["items"][0]["actor"], "nudge dev");
    assert_eq!(log["items"][0]["action"], "app.updated");
}

async fn a_stream_ends_with_its_session(app: &mut TestApp) {
    let who = app.signed_in(Role::Viewer).await;
    let path = app.path("/events/stream");
    let mut stream = app.request(Method::GET, &path, &who).send().await.unwrap();
    assert_eq!(stream.status(), 200);
    app.delete("/console/session", &who).await.data(204);
    let ended = Instant::now();
    while stream.chunk().await.unwrap().is_some() {}
    assert!(ended.elapsed() < Duration::from_secs(30));
    app.get(&path, &who)
        .await
        .refused(401, "invalid_credentials");
}

async fn a_stream_sends_nothing_after_its_session(app: &mut TestApp) {
    let who = app.signed_in(Role::Viewer).await;
    let ada = app.session("ada").await;
    let path = app.path("/events/stream");
    let mut stream = app.request(Method::GET, &path, &who).send().await.unwrap();
    assert_eq!(stream.status(), 200);
    let mut text = String::new();
    while !text.contains("retry: 1000") {
        let chunk = stream.chunk().await.unwrap().unwrap();
        text.push_str(std::str::from_utf8(&chunk).unwrap());
    }
    // Longer than what a look at the session is good for.
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    app.delete("/console/session", &who).await.data(204);
    let event = app.event(&ada, "purchase", &json!({}));
    app.ingest(&ada, &[event]).await.ok();
    while let Some(chunk) = stream.chunk().await.unwrap() {
        text.push_str(std::str::from_utf8(&chunk).unwrap());
    }
    assert!(!text.contains("event:"), "{text}");
}

async fn count(app: &TestApp, table: &'static str) -> i64 {
    let mut tx = app.services().db.read().await.unwrap();
    let count = tx.sql("SELECT count(*) AS count FROM ").push(table);
    count.fetch_scalar().await.unwrap()
}

async fn what_has_ended_is_removed(app: &mut TestApp) {
    app.signed_in(Role::Viewer).await;
    assert_eq!(count(app, "console_sessions").await, 1);
    assert_eq!(count(app, "console_links").await, 1);
    app.advance(8 * 3_600 + 1);
    let began = Instant::now();
    while count(app, "console_sessions").await + count(app, "console_links").await > 0 {
        assert!(
            began.elapsed() < Duration::from_secs(30),
            "they are still there"
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn a_command_makes_links(app: &mut TestApp) {
    let workspace = app.access.workspace_id.to_string();
    let url = app.config.database_url();
    let make = |more: &[&str]| {
        child::program(site!())
            .env("NUDGE_SERVER__PUBLIC_URL", "https://nudge.example/")
            .args([
                "console-link",
                "--workspace",
                &workspace,
                "--database-url",
                &url,
            ])
            .args(more)
            .output()
            .unwrap()
    };
    let output = make(&["--role", "editor"]);
    let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{complaint}");
    let link = String::from_utf8(output.stdout).unwrap();
    let code = link
        .trim()
        .strip_prefix("https://nudge.example/console/#login=")
        .unwrap();
    let answer = app.sign_in(code).await;
    let view = answer.data(201);
    assert_eq!(view["subject"], "nudge console-link");
    assert_eq!(view["workspaces"][0]["role"], "editor");
    assert_eq!(view["operator"], false);
    let output = make(&["--role", "viewer", "--operator"]);
    let link = String::from_utf8(output.stdout).unwrap();
    let code = link.trim().rsplit_once('=').unwrap().1;
    assert_eq!(app.sign_in(code).await.data(201)["operator"], true);
}

#[test]
fn a_link_is_refused_in_one_line_where_there_are_none() {
    let nil = uuid::Uuid::nil().to_string();
    let arguments = ["console-link", "--workspace", &nil, "--role", "viewer"];
    let refused = |variables: &[(&str, &str)], words: &str| {
        let output = child::program(site!())
            .args(arguments)
            .args(["--data-dir", "/nowhere"])
            .envs(variables.iter().copied())
            .output()
            .unwrap();
        assert!(!output.status.success());
        let complaint = String::from_utf8(output.stderr).unwrap();
        assert!(complaint.contains(words), "{complaint}");
        assert_eq!(complaint.trim().lines().count(), 1, "{complaint}");
    };
    refused(&[], "/nowhere");
    let issuers = r#"[{"issuer": "https://id.example", "audience": "nudge"}]"#;
    refused(&[("NUDGE_AUTH__ISSUERS", issuers)], "auth.issuers");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn guesses_are_limited() {
    let app = TestApp::start_with(site!(), Backend::Sqlite, |config| {
        config.rate_limits.enabled = Switch::On;
        config.rate_limits.address = Bucket {
            per_second: 0.01,
            burst: 3,
        };
    })
    .await;
    for _ in 0..3 {
        app.sign_in("x").await.refused(401, "invalid_credentials");
    }
    app.sign_in("x").await.refused(429, "rate_limited");
    // A cookie that opens nothing is a guess as well.
    session(&app, &with_cookie("x"))
        .await
        .refused(429, "rate_limited");
    // Who knows one hears nothing of it.
    let code = app.console_code().to_owned();
    let who = app.signed_in_by(&code).await;
    session(&app, &who).await.ok();
    app.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn neither_codes_nor_cookies_are_in_the_log() {
    let folder = TempDir::with_prefix("nudge-test-").unwrap();
    let file = folder.path().join("access.json");
    let mut process = child::program(site!())
        .env("NUDGE_TELEMETRY__LOG_FILTER", "trace")
        .args(["dev", "--listen", "127.0.0.1:0", "--data-dir"])
        .arg(folder.path())
        .arg("--json")
        .arg(&file)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut log = process.stderr.take().unwrap();
    let reading = std::thread::spawn(move || {
        let mut text = String::new();
        log.read_to_string(&mut text).unwrap();
        text
    });
    let access = written(&file).await;
    let base = access["baseUrl"].as_str().unwrap();
    let (page, code) = access["consoleUrl"]
        .as_str()
        .unwrap()
        .split_once("#login=")
        .unwrap();
    assert_eq!(page, format!("{base}/console/"));
    let http = client::build();
    let sign_in = http
        .post(format!("{base}/console/session"))
        .json(&json!({"code": code}));
    let answer = client::send(sign_in).await;
    answer.data(201);
    let (secret, _) = cookie(&answer, "nudge");
    let read = http
        .get(format!("{base}/console/session"))
        .header("cookie", format!("nudge={secret}"));
    client::send(read).await.ok();
    process.kill().unwrap();
    process.wait().unwrap();
    let log = reading.join().unwrap();
    assert!(log.contains("/console/session"), "the log has requests");
    assert!(!log.contains(code) && !log.contains(&secret));
}

async fn written(file: &Path) -> Value {
    let began = Instant::now();
    while !file.exists() {
        assert!(
            began.elapsed() < Duration::from_mins(2),
            "the server does not start"
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_are_served_under_their_version_and_policy() {
    let app = TestApp::start(site!(), Backend::Sqlite).await;
    let nobody = Credential::none();
    let http = reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .unwrap();
    for path in ["/", "/console"] {
        let answer = client::send(http.get(format!("{}{path}", app.access.base_url))).await;
        assert_eq!(answer.status, 307, "{path}");
        assert_eq!(answer.header("location"), "/console/");
    }
    let policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: https:; \
                  connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; \
                  require-trusted-types-for 'script'; trusted-types 'none'";
    let page = app.get("/console/", &nobody).await;
    for answer in [&page, &app.get("/docs", &nobody).await] {
        assert_eq!(answer.status, 200);
        assert_eq!(answer.header("content-type"), "text/html; charset=utf-8");
        assert_eq!(answer.header("content-security-policy"), policy);
        assert_eq!(answer.header("x-content-type-options"), "nosniff");
        assert_eq!(answer.header("referrer-policy"), "no-referrer");
        assert_eq!(answer.header("cross-origin-opener-policy"), "same-origin");
    }
    assert_eq!(page.header("cache-control"), "no-cache");
    let tag = page.header("etag").to_owned();
    let again = Credential::none().and("if-none-match", &tag);
    let again = app.get("/console/", &again).await;
    assert_eq!((again.status, again.text.as_str()), (304, ""));
    // What it says would take the place of what the browser has stored.
    assert!(!again.headers.contains_key("content-security-policy"));

    let version = tag.trim_matches('"');
    let start = page.text.find(&format!("/console/{version}/")).unwrap();
    let address = page.text[start..].split('"').next().unwrap();
    let plain = app.get(address, &nobody).await;
    assert_eq!(plain.status, 200);
    assert_eq!(
        plain.header("cache-control"),
        "public, max-age=31536000, immutable"
    );
    assert_eq!(plain.header("content-security-policy"), policy);
    assert_eq!(plain.header("vary"), "accept-encoding");
    assert_eq!(plain.header("content-encoding"), "");
    let request = app.request(
        Method::GET,
        address,
        &nobody.clone().and("accept-encoding", "gzip, br"),
    );
    let compressed = request.send().await.unwrap();
    assert_eq!(compressed.headers()["content-encoding"], "br");
    let compressed = compressed.bytes().await.unwrap();
    let mut text = String::new();
    brotli::Decompressor::new(&*compressed, 4_096)
        .read_to_string(&mut text)
        .unwrap();
    assert_eq!(text, plain.text);

    let head = client::send(app.request(Method::HEAD, "/console/", &nobody)).await;
    assert_eq!((head.status, head.text.as_str()), (200, ""));
    let (folder, _) = address.rsplit_once('/').unwrap();
    for nothing in [
        "/console/x",
        "/console/0123456789abcdef/app.js",
        &format!("{folder}/../index.html"),
        &format!("{folder}/nothing.js"),
        &format!("{folder}/index.html"),
    ] {
        app.get(nothing, &nobody).await.refused(404, "not_found");
    }
    app.post("/console/", &nobody, &json!({}))
        .await
        .refused(405, "method_not_allowed");
    app.finish().await;
}
