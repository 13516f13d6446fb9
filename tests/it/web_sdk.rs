//! What the server does for the web SDK (contract 23): its bundles, the key of Web Push, beacons of events.

use reqwest::Method;
use serde_json::{Value, json};
use tests::client::{self, Answer};
use tests::session::text;
use tests::{Credential, Session, TestApp, on_both_backends};

on_both_backends!(
    bundles_are_scripts_for_every_page,
    bundles_under_their_digest_never_change,
    browsers_learn_the_key_of_web_push,
    a_beacon_is_a_request_without_a_preflight,
    beacons_that_prove_nothing_are_refused,
    beacons_follow_the_rules_of_other_requests,
);

const BUNDLES: [&str; 4] = ["nudge.js", "nudge.mjs", "surveys.mjs", "worker.js"];

async fn bundles_are_scripts_for_every_page(app: &mut TestApp) {
    let page = Credential::none().and("origin", "https://shop.example");
    for name in BUNDLES {
        let answer = app.get(&format!("/sdk/v1/{name}"), &page).await;
        assert_eq!(answer.status, 200, "{name}");
        for (header, value) in [
            ("content-type", "text/javascript; charset=utf-8"),
            ("cache-control", "public, max-age=300"),
            ("access-control-allow-origin", "*"),
            ("cross-origin-resource-policy", "cross-origin"),
            ("x-content-type-options", "nosniff"),
        ] {
            assert_eq!(answer.header(header), value, "{name} {header}");
        }
        assert!(!answer.text.is_empty(), "{name}");
    }
    let worker = app.get("/sdk/v1/worker.js", &page).await;
    assert_eq!(worker.header("service-worker-allowed"), "/nudge/");
    let missing = app.get("/sdk/v1/other.js", &page).await;
    missing.refused(404, "not_found");
}

async fn bundles_under_their_digest_never_change(app: &mut TestApp) {
    for name in BUNDLES {
        let path = format!("/sdk/v1/{name}");
        let first = app.get(&path, &Credential::none()).await;
        let tag = first.header("etag").to_owned();
        let digest = tag.trim_matches('"');
        let named = app
            .get(&format!("{path}?v={digest}"), &Credential::none())
            .await;
        let forever = "public, max-age=31536000, immutable";
        assert_eq!(named.header("cache-control"), forever, "{name}");
        assert_eq!(named.text, first.text, "{name}");
        // Another server's, or an older one's: what there is, and not for ever.
        let other = app
            .get(&format!("{path}?v=0123456789abcdef"), &Credential::none())
            .await;
        assert_eq!(other.header("cache-control"), "public, max-age=300");
        for known in [tag.clone(), format!("W/{tag}"), format!("\"x\", {tag}")] {
            let known = Credential::none().and("if-none-match", &known);
            let again = app.get(&path, &known).await;
            assert_eq!((again.status, again.text.as_str()), (304, ""), "{name}");
            // What it says would take the place of what the browser has stored.
            assert!(!again.headers.contains_key("content-security-policy"));
            assert_eq!(again.header("etag"), tag, "{name}");
        }
    }
}

async fn browsers_learn_the_key_of_web_push(app: &mut TestApp) {
    let body = json!({"anonymousId": "ada", "platform": "web"});
    let none = app.post("/v1/sdk/session", &app.sdk(), &body).await.ok();
    assert_eq!(none["sdkConfig"]["push"], Value::Null);
    let credential = json!({"platform": "web", "vapid": {"generate": true}});
    let made = app.credential(&credential).await;
    let session = app.post("/v1/sdk/session", &app.sdk(), &body).await.ok();
    let push = &session["sdkConfig"]["push"];
    assert_eq!(
        *push,
        json!({"vapidPublicKey": made["identity"]["publicKey"]})
    );
    assert!(text(push, "vapidPublicKey").len() > 80);
}

/// A request with an event, as the first line and the rest of a beacon.
fn beacon(app: &TestApp, session: &Session, name: &str) -> String {
    let credentials = json!({"writeKey": app.access.write_key, "subjectToken": session.token});
    let event = json!({"eventId": app.id(), "name": name, "anonymousId": session.anonymous_id, "timestamp": app.time(0)});
    let body = json!({"context": {"anonymousId": session.anonymous_id}, "events": [event]});
    format!("{credentials}\n{body}")
}

async fn send(app: &TestApp, content_type: &str, body: &str) -> Answer {
    let page = Credential::none().and("origin", "https://shop.example");
    let request = app
        .request(Method::POST, "/v1/sdk/beacon", &page)
        .header("content-type", content_type)
        .body(body.to_owned());
    client::send(request).await
}

async fn a_beacon_is_a_request_without_a_preflight(app: &mut TestApp) {
    let ada = app.session("ada").await;
    let body = beacon(app, &ada, "tab_closed");
    // As browsers write the type of a text; what arrives twice counts once.
    for content_type in ["text/plain;charset=UTF-8", "text/plain"] {
        let answer = send(app, content_type, &body).await;
        assert_eq!(answer.header("access-control-allow-origin"), "*");
        let taken = answer.ok();
        assert_eq!(taken["accepted"], 1, "{taken}");
    }
    let events = app.get(&app.path("/users/ada/events"), &app.viewer()).await;
    assert_eq!(events.ok()["items"].as_array().unwrap().len(), 1);
}

async fn beacons_that_prove_nothing_are_refused(app: &mut TestApp) {
    let ada = app.session("ada").await;
    let body = beacon(app, &ada, "tab_closed");
    let (first, rest) = body.split_once('\n').unwrap();
    let token = &ada.token;
    let key = &app.access.write_key;
    for (line, code) in [
        (
            json!({"writeKey": key, "subjectToken": "x"}),
            "invalid_credentials",
        ),
        (
            json!({"writeKey": "wk_x", "subjectToken": token}),
            "invalid_credentials",
        ),
        (
            json!({"writeKey": "a\nb", "subjectToken": token}),
            "invalid_credentials",
        ),
        (json!({"writeKey": key}), "invalid_credentials"),
        (json!([key, token]), "invalid_credentials"),
    ] {
        let answer = send(app, "text/plain", &format!("{line}\n{rest}")).await;
        answer.refused(401, code);
    }
    send(app, "text/plain", rest)
        .await
        .refused(401, "invalid_credentials");
    send(app, "text/plain", "")
        .await
        .refused(401, "invalid_credentials");
    let answer = send(app, "application/json", &body).await;
    let detail = answer.refused(415, "unsupported_media_type")["detail"].clone();
    assert_eq!(
        detail,
        "send the body as text/plain, as navigator.sendBeacon does with a string"
    );
    app.delete("/v1/sdk/session", &ada.credential())
        .await
        .data(204);
    send(app, "text/plain", &body)
        .await
        .refused(401, "subject_token_expired");
    assert!(!first.is_empty());
}

async fn beacons_follow_the_rules_of_other_requests(app: &mut TestApp) {
    let ada = app.session("ada").await;
    let body = beacon(app, &ada, "tab_closed");
    let (first, _) = body.split_once('\n').unwrap();
    let with = |rest: &str| format!("{first}\n{rest}");
    send(app, "text/plain", &with("{"))
        .await
        .refused(400, "malformed_json");
    send(
        app,
        "text/plain",
        &with("{\"context\": {\"anonymousId\": \"ada\"}, \"events\": []}"),
    )
    .await
    .refused(422, "validation_failed");
    let large = "x".repeat(1024 * 1024);
    send(app, "text/plain", &with(&large))
        .await
        .refused(413, "payload_too_large");
    let bens = json!({"context": {"anonymousId": "ben"}, "events": [{"name": "a", "anonymousId": "ben", "timestamp": app.time(0)}]});
    let answer = send(app, "text/plain", &with(&bens.to_string())).await;
    // As `POST /v1/sdk/ingest` has it.
    let same = app.post("/v1/sdk/ingest", &ada.credential(), &bens).await;
    assert_eq!(answer.status, same.status, "{}", answer.text);
}
