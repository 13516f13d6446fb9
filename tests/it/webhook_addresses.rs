//! Where requests to webhooks may go (contract 10): at save, and at every connection. The rule itself is tested
//! with the guard; here, that each way to it is guarded.

use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use nudge_campaigns::webhooks::EventType::Sent;
use nudge_platform::outbound::Lookup;
use serde_json::{Value, json};
use tempfile::TempDir;
use tests::{Child, TestApp, client, on_both_backends, site};
use uuid::Uuid;

use crate::receiver::Receiver;

on_both_backends!(
    a_url_that_is_not_public_is_refused,
    plain_http_and_private_networks_are_for_development,
    a_name_that_changes_its_address_is_not_connected_to,
    every_connection_is_checked_and_pinned,
);

/// A resolver that answers the same to every question, until it is told otherwise.
#[derive(Debug, Default)]
struct Names {
    addresses: Mutex<Vec<IpAddr>>,
    asked: Mutex<Vec<String>>,
}

impl Names {
    fn answer(&self, addresses: &[&str]) {
        let addresses = addresses.iter().map(|address| address.parse().unwrap());
        *self.addresses.lock().unwrap() = addresses.collect();
    }

    fn asked(&self) -> usize {
        self.asked.lock().unwrap().len()
    }
}

impl Lookup for Names {
    fn lookup(&self, name: &str) -> std::io::Result<Vec<IpAddr>> {
        self.asked.lock().unwrap().push(name.to_owned());
        Ok(self.addresses.lock().unwrap().clone())
    }
}

/// A server that asks a resolver of the test.
async fn with_names(app: &mut TestApp, private: bool) -> Arc<Names> {
    let names = Arc::new(Names::default());
    app.lookup = Some(Arc::<Names>::clone(&names));
    app.config.webhooks.allow_private_networks = private;
    app.restart().await;
    names
}

async fn save(app: &TestApp, url: &str) -> tests::Answer {
    let body = json!({"url": url, "eventTypes": ["sent"]});
    app.post(&app.path("/push/webhooks"), &app.admin(), &body)
        .await
}

async fn a_url_that_is_not_public_is_refused(app: &mut TestApp) {
    let names = with_names(app, false).await;
    app.config.webhooks.allow_http = false;
    app.restart().await;
    names.answer(&["93.184.215.14"]);
    let webhook = save(app, "https://example.com/hook").await.data(201);
    let path = app.path(&format!(
        "/push/webhooks/{}",
        webhook["id"].as_str().unwrap()
    ));
    for (url, code) in [
        ("http://example.com/hook", "scheme_not_allowed"),
        ("https://user:pass@example.com/", "user_info_not_allowed"),
        ("https://example.com:8444/", "port_not_allowed"),
        ("https://127.0.0.1/", "host_not_allowed"),
        ("https://0x7f.1/", "host_not_allowed"),
        ("https://[::ffff:10.0.0.1]/", "host_not_allowed"),
        ("https://169.254.169.254/latest/", "host_not_allowed"),
        ("https://localhost/", "host_not_allowed"),
        ("https://example..com/", "host_not_allowed"),
        ("https:example.com", "malformed"),
        ("", "malformed"),
    ] {
        let patched = app.patch(&path, &app.admin(), &json!({"url": url})).await;
        for answer in [save(app, url).await, patched] {
            let problem = answer.refused(422, "webhook_url_not_allowed");
            assert_eq!(answer.pointers(), ["/url"]);
            assert_eq!(problem["errors"][0]["code"], json!(code), "{url}");
        }
    }
    let long = format!("https://example.com/{}", "p".repeat(2_048));
    save(app, &long)
        .await
        .refused(422, "webhook_url_not_allowed");

    for addresses in [
        &["10.9.8.7"][..],
        &["93.184.215.14", "10.9.8.7"],
        &["fd00:ec2::254"],
        &["64:ff9b::a09:807"],
    ] {
        names.answer(addresses);
        let answer = save(app, "https://example.com/hook").await;
        answer.refused(422, "webhook_url_not_allowed");
        for address in addresses {
            assert!(!answer.text.contains(address), "no address is told");
        }
    }
    // What has no address now has one to be checked when it is connected to.
    names.answer(&[]);
    save(app, "https://example.com/hook").await.data(201);
}

async fn plain_http_and_private_networks_are_for_development(app: &mut TestApp) {
    save(app, "http://127.0.0.1:1/").await.data(201);
    for (http, private, allowed) in [
        (false, false, [false; 3]),
        (true, false, [false; 3]),
        (false, true, [false, true, false]),
        (true, true, [true; 3]),
    ] {
        app.config.webhooks.allow_http = http;
        app.config.webhooks.allow_private_networks = private;
        app.restart().await;
        let urls = [
            "http://127.0.0.1:1/",
            "https://127.0.0.1:1/",
            "http://localhost:1/",
        ];
        for (url, allowed) in urls.into_iter().zip(allowed) {
            let status = if allowed { 201 } else { 422 };
            assert_eq!(
                save(app, url).await.status,
                status,
                "{url} {http} {private}"
            );
        }
    }
    let config = nudge_platform::config::Config::defaults().unwrap();
    assert!(!config.webhooks.allow_http && !config.webhooks.allow_private_networks);
}

/// The attempts at a webhook, once there is one.
async fn attempt(app: &TestApp, webhook: &Value) -> Value {
    let path = app.path(&format!(
        "/push/webhooks/{}/attempts",
        webhook["id"].as_str().unwrap()
    ));
    let mut found = Value::Null;
    app.until("an attempt is noted", async || {
        let list = app.get(&path, &app.admin()).await.ok();
        found = list["items"][0].clone();
        !found.is_null()
    })
    .await;
    found
}

async fn a_name_that_changes_its_address_is_not_connected_to(app: &mut TestApp) {
    let receiver = Receiver::start().await;
    let port: u16 = receiver
        .url("")
        .rsplit(':')
        .next()
        .unwrap()
        .parse()
        .unwrap();
    let names = with_names(app, false).await;
    app.config.webhooks.ports.push(port);
    app.restart().await;
    names.answer(&["93.184.215.14"]);
    let url = format!("http://rebound.example:{port}/");
    let webhook = save(app, &url).await.data(201);
    let id = webhook["id"].as_str().unwrap();

    for addresses in [&["127.0.0.1"][..], &["127.0.0.1", "93.184.215.14"]] {
        names.answer(addresses);
        let asked = names.asked();
        let test = app.path(&format!("/push/webhooks/{id}/test"));
        let answer = app.post(&test, &app.admin(), &json!({})).await.ok();
        assert!(answer.get("statusCode").is_none());
        assert!(!answer["error"].as_str().unwrap().contains("127"));
        assert!(names.asked() > asked, "it was looked up for the connection");
    }
    app.transit(Uuid::from_u128(1), app.id(), &[Sent]).await;
    let attempt = attempt(app, &webhook).await;
    assert!(attempt.get("statusCode").is_none());
    assert!(attempt["nextAttemptAt"].is_string(), "names can be mended");
    assert!(receiver.received("/").is_empty());

    // Addresses in URLs are not looked up, and checked all the same.
    app.config.webhooks.allow_private_networks = true;
    app.restart().await;
    let literal = save(app, &receiver.url("/literal")).await.data(201);
    app.config.webhooks.allow_private_networks = false;
    app.restart().await;
    let id = literal["id"].as_str().unwrap();
    let test = app.path(&format!("/push/webhooks/{id}/test"));
    let answer = app.post(&test, &app.admin(), &json!({})).await.ok();
    assert!(answer.get("statusCode").is_none() && answer["error"].is_string());
    assert!(receiver.received("/literal").is_empty());
}

async fn every_connection_is_checked_and_pinned(app: &mut TestApp) {
    let receiver = Receiver::start().await;
    let port = receiver.url("").rsplit(':').next().unwrap().to_owned();
    let names = with_names(app, true).await;
    // The name leads here because the test's resolver says so; no other one knows it.
    names.answer(&["127.0.0.1"]);
    let webhook = save(app, &format!("http://pinned.example:{port}/"))
        .await
        .data(201);
    let asked = names.asked();
    let id = webhook["id"].as_str().unwrap();
    let test = app.path(&format!("/push/webhooks/{id}/test"));

    let answer = app.post(&test, &app.admin(), &json!({})).await.ok();

    assert_eq!(answer["statusCode"], json!(200));
    assert_eq!(names.asked(), asked + 1, "one look-up for the connection");
    let got = receiver.wait(app, "/", 1).await;
    assert_eq!(got[0].header("host"), format!("pinned.example:{port}"));
}

/// A proxy would resolve names by itself, and connect to what it is told.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_proxy_is_taken_from_the_environment() {
    let (receiver, proxy) = (Receiver::start().await, Receiver::start().await);
    let folder = TempDir::with_prefix("nudge-test-").unwrap();
    let url = proxy.url("");
    let server = Child::start_with(
        site!(),
        folder.path(),
        &[
            ("HTTP_PROXY", &url),
            ("http_proxy", &url),
            ("ALL_PROXY", &url),
            ("NUDGE_WEBHOOKS__ALLOW_HTTP", "true"),
            ("NUDGE_WEBHOOKS__ALLOW_PRIVATE_NETWORKS", "true"),
        ],
    );
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let post = async |rest: &str, body: Value| {
        let path = format!("/v1/apps/{}/push/webhooks{rest}", server.text("appId"));
        let request = http.post(format!("{}{path}", server.text("baseUrl")));
        let token = format!("Bearer {}", server.text("adminToken"));
        client::send(request.header("authorization", token).json(&body)).await
    };
    let body = json!({"url": receiver.url("/"), "eventTypes": ["sent"]});
    let webhook = post("", body).await.data(201);
    let test = format!("/{}/test", webhook["id"].as_str().unwrap());

    let answer = post(&test, json!({})).await.ok();

    assert_eq!(answer["statusCode"], json!(200));
    assert_eq!(receiver.received("/").len(), 1);
    assert!(proxy.received("/").is_empty());
    assert_eq!(server.terminate(), Some(0));
}
