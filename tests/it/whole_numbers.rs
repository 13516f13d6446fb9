//! Whole numbers beyond 2^53, where floating-point numbers have gaps, keep their digits (specification 2.2, 2.5), and so do
//! fractions of 17 digits.

use reqwest::Method;
use serde_json::{Value, json};
use tests::campaigns::personalization;
use tests::{Session, TestApp, on_both_backends};

use crate::exports::{download, export, file, reaches};

on_both_backends!(
    messages_have_the_digits_of_their_sources,
    messages_have_all_digits_of_64_bits,
    profiles_timelines_and_exports_have_them,
);

/// 2^53 + 1, which is no floating-point number.
const ODD: i64 = 9_007_199_254_740_993;
/// One of more digits than name a floating-point number.
const LARGE: i64 = 1_234_567_890_123_456_789;
/// A number of more than 64 bits.
const LONG: &str = "12345678901234567890123";
/// Of the floating-point numbers, 31.24527019143944 is the next one.
const SHARE: &str = "31.245270191439438";

async fn set(app: &TestApp, session: &Session, properties: Value) {
    let body =
        json!({"anonymousId": session.anonymous_id, "mutationId": app.id(), "set": properties});
    app.post("/v1/sdk/user-properties", &session.credential(), &body)
        .await
        .ok();
}

async fn send(app: &TestApp, session: &Session, path: &str, body: String) {
    let sent = app
        .request(Method::POST, path, &session.credential())
        .header("content-type", "application/json")
        .body(body)
        .send()
        .await
        .unwrap();
    assert_eq!(sent.status(), 200);
}

/// A preview of a variant with one binding to a source, in a text, alone and in groups of digits.
async fn preview(app: &TestApp, source: Value, key: &str, event: &Value) -> Value {
    let mut spec = personalization(
        &source,
        &[("plain", key, "number"), ("grouped", key, "number")],
    );
    spec["bindings"][1]["format"] = json!({"style": "integer", "locale": "en"});
    let action = json!({"action": "json", "actionJson": {"id": "{{p.plain}}"}});
    let content = json!({"title": "{{p.plain}}", "body": "no. {{p.grouped}}", "openAction": action,
        "personalization": spec});
    let body = json!({"surface": "push", "anonymousId": "ada", "content": content,
        "data": {"id": ODD, "small": 7}, "triggerEventId": event["eventId"]});
    let path = app.path("/personalization/preview");
    app.post(&path, &app.viewer(), &body).await.ok()
}

async fn messages_have_the_digits_of_their_sources(app: &mut TestApp) {
    let ada = app.session("ada").await;
    set(app, &ada, json!({"id": ODD, "negative": -ODD, "small": 7})).await;
    let event = app.event(&ada, "bought", &json!({"order": {"id": ODD}}));
    app.ingest(&ada, std::slice::from_ref(&event)).await.ok();
    app.settle().await;
    let latest = json!({"kind": "latest_event", "eventName": "bought", "lookbackDays": 1});
    for (source, key, id, grouped) in [
        (
            json!({"kind": "user_property"}),
            "id",
            ODD,
            "9,007,199,254,740,993",
        ),
        (
            json!({"kind": "user_property"}),
            "negative",
            -ODD,
            "-9,007,199,254,740,993",
        ),
        (json!({"kind": "user_property"}), "small", 7, "7"),
        (
            json!({"kind": "send_data"}),
            "id",
            ODD,
            "9,007,199,254,740,993",
        ),
        (
            json!({"kind": "trigger_event"}),
            "order.id",
            ODD,
            "9,007,199,254,740,993",
        ),
        (latest, "order.id", ODD, "9,007,199,254,740,993"),
    ] {
        let found = preview(app, source, key, &event).await;

        let content = &found["content"];
        assert_eq!(content["title"], id.to_string(), "{found}");
        assert_eq!(content["body"], format!("no. {grouped}"), "{found}");
        assert_eq!(
            content["openAction"]["actionJson"],
            json!({"id": id}),
            "{found}"
        );
        assert_eq!(found["bindings"][0]["value"], json!(id), "{found}");
    }
}

/// Plugins write such a number with noughts at its end.
async fn messages_have_all_digits_of_64_bits(app: &mut TestApp) {
    let ada = app.session("ada").await;
    let numbers = [json!(LARGE), json!(i64::MAX), json!(u64::MAX)];
    let [large, signed, unsigned] = &numbers;
    let properties = json!({"large": large, "signed": signed, "unsigned": unsigned});
    set(app, &ada, properties.clone()).await;
    let event = app.event(&ada, "bought", &properties);
    app.ingest(&ada, std::slice::from_ref(&event)).await.ok();
    app.settle().await;
    for kind in ["user_property", "trigger_event"] {
        for (key, grouped) in [
            ("large", "1,234,567,890,123,456,789"),
            ("signed", "9,223,372,036,854,775,807"),
            ("unsigned", "18,446,744,073,709,551,615"),
        ] {
            let found = preview(app, json!({"kind": kind}), key, &event).await;

            let (content, number) = (&found["content"], &properties[key]);
            assert_eq!(content["title"], number.to_string(), "{found}");
            assert_eq!(content["body"], format!("no. {grouped}"), "{found}");
            let filled = &content["openAction"]["actionJson"];
            assert_eq!(*filled, json!({"id": number}), "{found}");
        }
    }
}

async fn profiles_timelines_and_exports_have_them(app: &mut TestApp) {
    let ada = app.session("ada").await;
    let properties = json!({"id": ODD, "most": u64::MAX, "share": "SHARE"});
    let body = json!({"anonymousId": "ada", "mutationId": app.id(), "set": properties});
    let body = body.to_string().replace("\"SHARE\"", SHARE);
    send(app, &ada, "/v1/sdk/user-properties", body).await;
    let event = app.event(&ada, "bought", &json!({"id": ODD, "long": "LONG"}));
    let body = ada.batch(&[event]).to_string().replace("\"LONG\"", LONG);
    send(app, &ada, "/v1/sdk/ingest", body).await;
    app.settle().await;
    let own = vec![format!("{ODD}"), format!("{}", u64::MAX), SHARE.to_owned()];
    let of_event = vec![format!("{ODD}"), LONG.to_owned()];

    for (path, digits) in [
        ("/users", &own),
        ("/users/ada", &own),
        ("/users/ada/events", &of_event),
    ] {
        let shown = app.get(&app.path(path), &app.viewer()).await;
        assert_eq!(shown.status, 200);
        for digits in digits {
            assert!(shown.text.contains(digits), "{path}: {}", shown.text);
        }
    }
    let id = export(app, &json!({"anonymousId": "ada"})).await;
    let done = reaches(app, &id, "completed").await;
    let archive = download(app, &done).await;
    for (name, digits) in [("profile.json", &own), ("events.ndjson", &of_event)] {
        let text = file(&archive, name);
        for digits in digits {
            assert!(text.contains(digits), "{name}: {text}");
        }
    }
}
