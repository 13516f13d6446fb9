//! What becomes of events that break their definition, and how that is counted (contract 11).

use serde_json::{Value, json};
use tests::session::text;
use tests::{TestApp, on_both_backends};

use crate::definitions::{accepted, total};

on_both_backends!(
    observed_violations_are_accepted,
    every_violation_has_a_code,
    what_violations_say_is_bounded,
    a_definition_counts_what_it_saw_in_24_hours,
    observed_violations_and_repetitions_are_counted_once,
    an_event_that_breaks_again_under_another_name_has_a_letter_of_that_name,
);

/// The definition's counts of 24 hours.
pub(crate) async fn counts(app: &TestApp, definition: &Value) -> [u64; 2] {
    let path = app.path(&format!("/event-definitions/{}", text(definition, "id")));
    let stats = app.get(&path, &app.viewer()).await.ok()["stats"].clone();
    ["seen24h", "violations24h"].map(|key| stats[key].as_u64().unwrap())
}

async fn observed_violations_are_accepted(app: &mut TestApp) {
    app.define(
        "purchase",
        &json!({"enforcement": "observe", "properties": total()}),
    )
    .await;
    assert!(accepted(app, json!({})).await);
    let letters = app
        .get(&app.path("/dead-letters"), &app.viewer())
        .await
        .ok();
    assert_eq!(letters["items"], json!([]));
}

async fn every_violation_has_a_code(app: &mut TestApp) {
    let properties = json!([
        {"name": "n", "type": "number", "required": false, "minimum": 0},
        {"name": "e", "type": "enum", "required": false, "enumValues": ["a", "b"]},
        {"name": "s", "type": "string", "required": false, "pattern": "^x", "maxLength": 3},
        {"name": "d", "type": "date", "required": false},
        {"name": "r", "type": "boolean", "required": true},
    ]);
    app.define(
        "purchase",
        &json!({"additionalProperties": "reject", "properties": properties}),
    )
    .await;
    let ada = app.session("ada").await;
    for (properties, code, property) in [
        (json!({}), "missing_required_property", "r"),
        (json!({"r": null}), "missing_required_property", "r"),
        (json!({"r": "yes"}), "type_mismatch", "r"),
        (json!({"r": true, "n": "5"}), "type_mismatch", "n"),
        (json!({"r": true, "n": -1}), "out_of_range", "n"),
        (json!({"r": true, "e": "c"}), "enum_mismatch", "e"),
        (json!({"r": true, "s": "y"}), "pattern_mismatch", "s"),
        (json!({"r": true, "s": "xxxx"}), "out_of_range", "s"),
        (json!({"r": true, "d": "soon"}), "type_mismatch", "d"),
        (json!({"r": true, "more": 1}), "additional_property", "more"),
    ] {
        let event = app.event(&ada, "purchase", &properties);
        let data = app.ingest(&ada, &[event]).await.ok();
        assert_eq!(
            data["errors"][0]["code"], "schema_violation",
            "{properties}"
        );
        let id = text(&data["errors"][0], "deadLetterId");
        let letter = app
            .get(&app.path(&format!("/dead-letters/{id}")), &app.viewer())
            .await
            .ok();
        let violation = &letter["violations"][0];
        assert_eq!(
            (&violation["code"], &violation["property"]),
            (&json!(code), &json!(property)),
            "{properties}"
        );
        assert!(violation["expected"].is_string() && violation["actual"].is_string());
        assert_eq!(letter["reason"], code);
    }
    assert!(
        accepted(
            app,
            json!({"r": true, "n": 0, "e": "a", "s": "x", "d": "2026-01-31"})
        )
        .await
    );
}

async fn what_violations_say_is_bounded(app: &mut TestApp) {
    let values: Vec<String> = (0..1000).map(|number| format!("value-{number}")).collect();
    let properties = json!([
        {"name": "e", "type": "enum", "enumValues": values},
        {"name": "s", "type": "string", "pattern": format!("^{}$", "a".repeat(900))},
    ]);
    app.define(
        "purchase",
        &json!({"additionalProperties": "reject", "properties": properties}),
    )
    .await;
    let ada = app.session("ada").await;
    let mut sent: serde_json::Map<String, Value> = (0..200)
        .map(|number| (format!("{number}-{}", "k".repeat(250)), json!(number)))
        .collect();
    sent.insert("e".to_owned(), json!("x".repeat(5_000)));
    sent.insert("s".to_owned(), json!("y".repeat(5_000)));
    let event = app.event(&ada, "purchase", &Value::Object(sent));
    let data = app.ingest(&ada, &[event]).await.ok();
    assert_eq!(data["errors"][0]["code"], "schema_violation");
    let letters = app
        .get(&app.path("/dead-letters"), &app.viewer())
        .await
        .ok();
    let violations = letters["items"][0]["violations"].as_array().unwrap();
    assert_eq!(violations.len(), 20);
    for violation in violations {
        for key in ["property", "expected", "actual"] {
            let length = text(violation, key).chars().count();
            assert!((1..=220).contains(&length), "{key}: {violation}");
        }
    }
}

async fn a_definition_counts_what_it_saw_in_24_hours(app: &mut TestApp) {
    let made = app
        .define("purchase", &json!({"properties": total()}))
        .await;
    assert_eq!(made["stats"], json!({"seen24h": 0, "violations24h": 0}));
    let ada = app.session("ada").await;
    let good = json!({"total": 1});
    let events: Vec<Value> = [&good, &json!({}), &good, &json!({"total": "x"}), &good]
        .map(|properties| app.event(&ada, "purchase", properties))
        .into();
    app.ingest(&ada, &events).await.ok();
    app.ingest(&ada, &[app.event(&ada, "other", &json!({}))])
        .await
        .ok();
    assert_eq!(counts(app, &made).await, [5, 2]);
    let list = app
        .get(&app.path("/event-definitions"), &app.viewer())
        .await
        .ok();
    assert_eq!(
        list["items"][0]["stats"],
        json!({"seen24h": 5, "violations24h": 2})
    );

    // Counts are in the database.
    app.restart().await;
    app.advance(12 * 3600);
    assert!(accepted(app, json!({"total": 1})).await);
    assert_eq!(counts(app, &made).await, [6, 2]);
    app.advance(11 * 3600);
    assert_eq!(counts(app, &made).await, [6, 2]);
    app.advance(3600 + 600);
    assert_eq!(
        counts(app, &made).await,
        [1, 0],
        "those of yesterday are gone"
    );
    app.until("old counts are removed", async || {
        app.advance(26 * 3600);
        let rows: Vec<(i64,)> = app.rows("SELECT begins_at FROM definition_counts").await;
        rows.is_empty()
    })
    .await;
}

async fn observed_violations_and_repetitions_are_counted_once(app: &mut TestApp) {
    let made = app
        .define(
            "purchase",
            &json!({"enforcement": "observe", "properties": total()}),
        )
        .await;
    let ada = app.session("ada").await;
    let event = app.event(&ada, "purchase", &json!({}));
    for _ in 0..3 {
        let data = app.ingest(&ada, std::slice::from_ref(&event)).await.ok();
        assert_eq!(data["accepted"], 1);
    }
    assert_eq!(
        counts(app, &made).await,
        [1, 1],
        "sent again is not seen again"
    );

    let made = app.define("visit", &json!({"properties": total()})).await;
    let event = app.event(&ada, "visit", &json!({}));
    for _ in 0..3 {
        let data = app.ingest(&ada, std::slice::from_ref(&event)).await.ok();
        assert_eq!(data["errors"][0]["code"], "schema_violation");
    }
    assert_eq!(
        counts(app, &made).await,
        [1, 1],
        "the dead letter of an event counts once"
    );
}

async fn an_event_that_breaks_again_under_another_name_has_a_letter_of_that_name(
    app: &mut TestApp,
) {
    for name in ["order_completed", "order_placed"] {
        app.define(name, &json!({"properties": total()})).await;
    }
    let ada = app.session("ada").await;
    let mut event = app.event(&ada, "order_completed", &json!({"n": 1}));
    let data = app.ingest(&ada, std::slice::from_ref(&event)).await.ok();
    let id = text(&data["errors"][0], "deadLetterId");
    event["name"] = json!("order_placed");
    event["properties"] = json!({"n": 2});
    let data = app.ingest(&ada, &[event]).await.ok();
    assert_eq!(data["errors"][0]["deadLetterId"], json!(id));

    let get = async |rest: &str| {
        let path = app.path(&format!("/dead-letters{rest}"));
        app.get(&path, &app.viewer()).await.ok()
    };
    let letter = get(&format!("/{id}")).await;
    assert_eq!(letter["eventName"], "order_placed");
    assert_eq!(letter["event"]["properties"], json!({"n": 2}));
    let found = get("?eventName=order_placed").await;
    assert_eq!(found["items"][0]["id"], json!(id));
    let found = get("?eventName=order_completed").await;
    assert_eq!(found["items"], json!([]));

    let path = app.path(&format!("/dead-letters/{id}/replay"));
    let body = json!({"patch": {"total": 1}});
    let replayed = app.post(&path, &app.editor(), &body).await.ok();
    assert_eq!(replayed["status"], "replayed");
    let stored: Vec<(String, String)> = app.rows("SELECT name, properties FROM events").await;
    assert_eq!(
        stored,
        [("order_placed".to_owned(), r#"{"n":2,"total":1}"#.to_owned())]
    );
}
