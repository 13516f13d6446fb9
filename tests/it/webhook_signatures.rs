//! Signatures of webhooks, verified by others: Python's `hmac` for `X-Service-Signature` (specification 6.3), and
//! the npm package `standardwebhooks` for the rest (`tests/standardwebhooks`).

use std::io::Write as _;
use std::process::{Command, Stdio};

use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use nudge_campaigns::webhooks::EventType;
use serde_json::{Value, json};
use tests::{Backend, TestApp, site};
use uuid::Uuid;

use crate::programs::{has, installed};
use crate::receiver::{Received, Receiver};

/// The bytes of a webhook's secret.
pub(crate) fn secret(webhook: &Value) -> Vec<u8> {
    let text = webhook["secret"].as_str().unwrap();
    STANDARD
        .decode(text.strip_prefix("whsec_").unwrap())
        .unwrap()
}

/// Checks that a request is signed by these secrets, in this order, and by no other.
pub(crate) fn verify(got: &Received, webhooks: &[&Value]) {
    let (service, standard) = (
        got.header("x-service-signature"),
        got.header("webhook-signature"),
    );
    let (seconds, signatures) = service.strip_prefix("t=").unwrap().split_once(',').unwrap();
    assert_eq!(seconds, got.header("webhook-timestamp"));
    let id = got.header("webhook-id");
    assert_eq!(id, got.header("x-service-delivery"));
    assert_eq!(got.json()["id"], json!(id));
    let mac = |webhook: &Value, text: String| {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &secret(webhook));
        hmac::sign(&key, text.as_bytes())
    };
    let expected: Vec<String> = webhooks
        .iter()
        .map(|webhook| {
            let tag = mac(webhook, format!("{seconds}.{}", got.body));
            format!("v1={}", URL_SAFE_NO_PAD.encode(tag))
        })
        .collect();
    assert_eq!(signatures, expected.join(","));
    let expected: Vec<String> = webhooks
        .iter()
        .map(|webhook| {
            let tag = mac(webhook, format!("{id}.{seconds}.{}", got.body));
            format!("v1,{}", STANDARD.encode(tag))
        })
        .collect();
    assert_eq!(standard, expected.join(" "));
}

/// Runs a program that reads a request and says whether it is genuine.
fn says(program: &mut Command, question: &Value) -> String {
    let mut process = program
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = process.stdin.take().unwrap();
    input.write_all(question.to_string().as_bytes()).unwrap();
    drop(input);
    let output = process.wait_with_output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// What the programs read: a request and the secret that it should be signed with.
fn question(got: &Received, secret: &str, body: &str) -> Value {
    let names = [
        "webhook-id",
        "webhook-timestamp",
        "webhook-signature",
        "x-service-signature",
    ];
    let headers: serde_json::Map<String, Value> = names
        .into_iter()
        .map(|name| (name.to_owned(), json!(got.header(name))))
        .collect();
    json!({"secret": secret, "headers": headers, "body": body})
}

const PYTHON: &str = r#"
import base64, hashlib, hmac, json, sys, time
asked = json.load(sys.stdin)
key = base64.b64decode(asked["secret"].removeprefix("whsec_"), validate=True)
assert len(key) == 32
parts = [part.split("=", 1) for part in asked["headers"]["x-service-signature"].split(",")]
(_, stamp), signatures = parts[0], [value for name, value in parts[1:] if name == "v1"]
text = stamp.encode() + b"." + asked["body"].encode()
mac = base64.urlsafe_b64encode(hmac.new(key, text, hashlib.sha256).digest()).rstrip(b"=").decode()
fresh = abs(time.time() - int(stamp)) <= 300
genuine = any(hmac.compare_digest(mac, signature) for signature in signatures)
print("genuine" if fresh and genuine else "forged")
"#;

/// A request that was signed by two secrets, with each of them, and with some that are wrong.
async fn check(mut say: impl FnMut(&Value) -> String) {
    let app = TestApp::start(site!(), Backend::Sqlite).await;
    let receiver = Receiver::start().await;
    let first = receiver.subscribe(&app, "/", &[EventType::Opened]).await;
    let id = first["id"].as_str().unwrap();
    let rotate = app.path(&format!("/push/webhooks/{id}/rotate-secret"));
    let second = app.post(&rotate, &app.admin(), &json!({})).await.ok();
    app.transit(app.id(), app.id(), &[EventType::Opened]).await;
    let got = receiver.wait(&app, "/", 1).await.remove(0);
    let body = got.body.clone();

    for webhook in [&first, &second] {
        let secret = webhook["secret"].as_str().unwrap();
        assert_eq!(say(&question(&got, secret, &body)), "genuine");
        let changed = body.replace("opened", "closed");
        assert_eq!(say(&question(&got, secret, &changed)), "forged");
    }
    let other = format!("whsec_{}", STANDARD.encode([7; 32]));
    assert_eq!(say(&question(&got, &other, &body)), "forged");
    let unknown = Uuid::from_u128(1);
    assert_ne!(got.header("webhook-id"), unknown.to_string());
    app.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn python_verifies_the_services_own_signature() {
    if !has(&["python3"]) {
        return;
    }
    check(|asked| says(Command::new("python3").args(["-c", PYTHON]), asked)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_library_of_standard_webhooks_verifies_requests() {
    if !has(&["node", "npm"]) {
        return;
    }
    let folder = installed("tests/standardwebhooks");
    check(|asked| {
        let mut program = Command::new("node");
        says(program.arg("verify.mjs").current_dir(&folder), asked)
    })
    .await;
}
