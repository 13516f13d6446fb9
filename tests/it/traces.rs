//! Traces of requests (contract 17).

use nudge_campaigns::webhooks::EventType;
use serde_json::{Value, json};
use tempfile::TempDir;
use tests::child::Child;
use tests::session::text;
use tests::{TestApp, child, on_both_backends, site};

use crate::receiver::{Receiver, Reply};

on_both_backends!(
    a_request_is_a_span_of_its_callers_trace,
    what_the_collector_does_not_take_is_lost_and_nothing_else,
    what_follows_from_an_event_is_traced_and_webhooks_hand_it_on,
);

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

/// The spans that a collector got so far.
fn spans(collector: &Receiver) -> Vec<Value> {
    let messages = collector.received("/v1/traces");
    let spans = messages.iter().flat_map(|message| {
        assert_eq!(message.header("content-type"), "application/json");
        let message = message.json();
        let spans = &message["resourceSpans"][0]["scopeSpans"][0]["spans"];
        spans.as_array().unwrap().clone()
    });
    spans.collect()
}

async fn lists_surveys(app: &TestApp, flags: &str) {
    let caller = format!("00-{TRACE}-00f067aa0ba902b7-{flags}");
    let credential = app.viewer().and("traceparent", &caller);
    app.get(&app.path("/surveys"), &credential).await.ok();
}

async fn a_request_is_a_span_of_its_callers_trace(app: &mut TestApp) {
    let collector = Receiver::start().await;
    app.config.telemetry.otlp_endpoint = collector.url("/");
    app.restart().await;

    lists_surveys(app, "00").await;
    lists_surveys(app, "01").await;
    let session = json!({"anonymousId": "ada"});
    let refused = app.post("/v1/sdk/session", &app.viewer(), &session).await;
    refused.refused(403, "insufficient_scope");
    app.until("both spans are there", async || {
        spans(&collector).len() >= 2
    })
    .await;

    let found = spans(&collector);
    assert_eq!(found.len(), 2, "one was not to be recorded: {found:?}");
    let (listed, refusal) = (&found[0], &found[1]);
    assert_eq!(listed["traceId"], TRACE);
    assert_eq!(listed["parentSpanId"], "00f067aa0ba902b7");
    assert_eq!(listed["name"], "GET /v1/apps/{appId}/surveys");
    assert_ne!(refusal["traceId"], TRACE);
    assert_eq!(refusal["parentSpanId"], "");
    let attributes = json!([
        {"key": "http.request.method", "value": {"stringValue": "POST"}},
        {"key": "http.route", "value": {"stringValue": "/v1/sdk/session"}},
        {"key": "http.response.status_code", "value": {"intValue": "403"}},
        {"key": "nudge.request.id", "value": {"stringValue": refused.header("x-request-id")}},
    ]);
    assert_eq!(refusal["attributes"], attributes);
}

async fn what_the_collector_does_not_take_is_lost_and_nothing_else(app: &mut TestApp) {
    let collector = Receiver::start().await;
    collector.reply("/v1/traces", &[Reply::Status(500), Reply::Status(200)]);
    // The whole address comes before the one that is completed.
    app.config.telemetry.otlp_endpoint = String::from("http://127.0.0.1:1");
    app.config.telemetry.otlp_traces_endpoint = collector.url("/v1/traces");
    app.restart().await;

    lists_surveys(app, "01").await;
    collector.wait(app, "/v1/traces", 1).await;
    lists_surveys(app, "01").await;

    collector.wait(app, "/v1/traces", 2).await;
    assert_eq!(spans(&collector).len(), 2);
}

async fn what_follows_from_an_event_is_traced_and_webhooks_hand_it_on(app: &mut TestApp) {
    let collector = Receiver::start().await;
    app.config.telemetry.otlp_endpoint = collector.url("/");
    app.restart().await;
    app.define(
        "purchase",
        &json!({"properties": [{"name": "price", "type": "number"}]}),
    )
    .await;
    app.survey(&json!({"kind": "event", "eventName": "purchase"}))
        .await;
    let ada = app.session("ada").await;
    assert_eq!(app.fires(&ada, "purchase", &json!({"price": 1})).await, 1);
    let webhook = collector.subscribe(app, "/hook", EventType::ALL).await;
    let path = format!("/push/webhooks/{}/test", text(&webhook, "id"));
    app.post(&app.path(&path), &app.admin(), &json!({})).await;

    let request = &collector.wait(app, "/hook", 1).await[0];
    let names = [
        "POST /v1/sdk/ingest",
        "plugin validation",
        "commit events",
        "pipeline batch",
        "plugin trigger",
        "commit effects",
    ];
    app.until("all spans are there", async || {
        let found = spans(&collector);
        names
            .iter()
            .all(|name| found.iter().any(|span| span["name"] == *name))
    })
    .await;
    let found = spans(&collector);
    let of = |name: &str| found.iter().find(|span| span["name"] == name).unwrap();
    for (part, whole) in [
        ("plugin validation", "POST /v1/sdk/ingest"),
        ("commit events", "POST /v1/sdk/ingest"),
        ("plugin trigger", "pipeline batch"),
        ("commit effects", "pipeline batch"),
    ] {
        assert_eq!(of(part)["parentSpanId"], of(whole)["spanId"], "{part}");
        assert_eq!(of(part)["traceId"], of(whole)["traceId"], "{part}");
    }
    let handed_on = request.header("traceparent");
    assert!(handed_on.starts_with("00-"), "{handed_on}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_environment_says_which_protocol_it_is() {
    for (protocol, content_type, path) in [
        ("http/protobuf", "application/x-protobuf", "/v1/traces"),
        (
            "grpc",
            "application/grpc",
            "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
        ),
    ] {
        let collector = Receiver::start().await;
        let folder = TempDir::with_prefix("nudge-test-").unwrap();
        let server = Child::start_with(
            site!(),
            folder.path(),
            &[
                ("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.url("")),
                ("OTEL_EXPORTER_OTLP_PROTOCOL", protocol),
                ("OTEL_BSP_SCHEDULE_DELAY", "100"),
            ],
        );
        let answer = reqwest::get(format!("{}/livez", server.text("baseUrl"))).await;
        assert_eq!(answer.unwrap().status(), 200);
        // What is left is sent before the server ends.
        assert_eq!(server.terminate(), Some(0));
        let messages = collector.received(path);
        assert!(!messages.is_empty(), "{protocol}");
        let content = messages[0].header("content-type");
        assert_eq!(content, content_type, "{protocol}");
    }
}

#[test]
fn the_collector_is_where_the_environment_says() {
    for (variable, key) in [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "otlpEndpoint"),
        ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "otlpTracesEndpoint"),
    ] {
        let complaint = complaint_with(variable);
        let expected = format!("telemetry.{key}: nonsense");
        assert!(complaint.contains(&expected), "{complaint}");
    }
}

/// What a server says that does not start as a variable of its environment is nonsense.
fn complaint_with(variable: &str) -> String {
    let folder = TempDir::with_prefix("nudge-test-").unwrap();
    let output = child::program(site!())
        .env(variable, "nonsense")
        .args([
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--ops-listen",
            "",
            "--data-dir",
        ])
        .arg(folder.path())
        .output()
        .unwrap();
    assert!(!output.status.success());
    String::from_utf8(output.stderr).unwrap()
}
