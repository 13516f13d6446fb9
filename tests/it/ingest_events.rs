//! What becomes of single events (contract 3).

use serde_json::{Value, json};
use tests::{Session, TestApp, on_both_backends};

on_both_backends!(
    every_bad_event_has_its_own_code_and_spoils_no_other,
    a_timestamp_has_any_form_of_iso_8601_with_an_offset,
    windows_are_counted_from_the_servers_clock,
    an_event_is_at_most_64_kib,
    properties_are_an_object_of_at_most_256_members,
    names_have_at_most_200_characters,
    ids_of_other_subjects_reject_the_event,
    an_event_that_breaks_its_definition_is_kept_as_a_dead_letter,
);

/// The code that one event is rejected with; `accepted` if it is not.
async fn code(app: &TestApp, session: &Session, event: &Value) -> String {
    let data = app.ingest(session, std::slice::from_ref(event)).await.ok();
    let code = data["errors"][0]["code"].as_str();
    assert_eq!(data["accepted"] == 1, code.is_none(), "{data}");
    code.unwrap_or("accepted").to_owned()
}

fn with(event: &Value, key: &str, value: Value) -> Value {
    let mut event = event.clone();
    event[key] = value;
    event
}

async fn every_bad_event_has_its_own_code_and_spoils_no_other(app: &mut TestApp) {
    let ada = app.session("ada").await;
    let new = || app.event(&ada, "opened", &json!({"a": 1}));
    let first = new();
    let without = |key: &str| {
        let mut event = new();
        event.as_object_mut().unwrap().remove(key);
        event
    };
    let bad = [
        (
            with(&new(), "eventId", json!("no uuid")),
            "invalid_event_id",
        ),
        (with(&new(), "eventId", json!(7)), "invalid_event_id"),
        (first.clone(), "duplicate_event_id_in_batch"),
        (with(&new(), "name", json!("")), "invalid_name"),
        (with(&new(), "name", json!("a\u{0}b")), "invalid_name"),
        (with(&new(), "name", json!(["opened"])), "invalid_name"),
        (without("name"), "invalid_name"),
        (
            with(&new(), "timestamp", json!("yesterday")),
            "invalid_timestamp",
        ),
        (
            with(&new(), "timestamp", json!(1_800_000_000)),
            "invalid_timestamp",
        ),
        (without("timestamp"), "invalid_timestamp"),
        (
            with(&new(), "timestamp", json!("1999-01-01T00:00:00Z")),
            "timestamp_out_of_window",
        ),
        (
            with(&new(), "anonymousId", json!("bob")),
            "subject_mismatch",
        ),
        (without("anonymousId"), "subject_mismatch"),
        (
            with(&new(), "externalId", json!("e-1")),
            "external_id_mismatch",
        ),
        (with(&new(), "properties", json!([1])), "invalid_properties"),
        (
            with(&new(), "properties", json!("text")),
            "invalid_properties",
        ),
    ];
    let mut events = vec![first];
    events.extend(bad.iter().map(|(event, _)| event.clone()));
    events.push(new());

    let data = app.ingest(&ada, &events).await.ok();

    assert_eq!(
        (&data["accepted"], &data["rejected"]),
        (&json!(2), &json!(bad.len()))
    );
    assert!(data.get("instructions").is_none());
    let errors = data["errors"].as_array().unwrap();
    for (index, ((event, expected), error)) in bad.iter().zip(errors).enumerate() {
        assert_eq!(error["code"], *expected, "{event}");
        assert_eq!(error["index"], index + 1);
        assert_eq!(error["retryable"], false);
        assert!(
            error["message"]
                .as_str()
                .is_some_and(|message| !message.is_empty())
        );
        if *expected != "invalid_event_id" {
            assert_eq!(error["eventId"], event["eventId"]);
        }
    }
    assert_eq!(app.stored("opened").await, 2);
}

async fn a_timestamp_has_any_form_of_iso_8601_with_an_offset(app: &mut TestApp) {
    let ada = app.session("ada").await;
    let now = app.time(0);
    let minute = &now[.."2026-01-31T09:30".len()];
    for (form, expected) in [
        (format!("{minute}:00.123456Z"), "accepted"),
        (format!("{minute}:00+00:00"), "accepted"),
        (format!("{minute}:00+0000"), "accepted"),
        (format!("{minute}Z"), "accepted"),
        (format!("{minute}:00"), "invalid_timestamp"),
        (minute[..10].to_owned(), "invalid_timestamp"),
    ] {
        let event = app.event(&ada, "opened", &json!({}));
        let event = with(&event, "timestamp", json!(form));
        assert_eq!(code(app, &ada, &event).await, expected, "{form}");
    }
}

async fn windows_are_counted_from_the_servers_clock(app: &mut TestApp) {
    let ada = app.session("ada").await;
    let at = |seconds: i64| {
        with(
            &app.event(&ada, "opened", &json!({})),
            "timestamp",
            json!(app.time(seconds)),
        )
    };
    let day = 24 * 3600;

    assert_eq!(code(app, &ada, &at(-30 * day + 60)).await, "accepted");
    assert_eq!(
        code(app, &ada, &at(-30 * day - 1)).await,
        "timestamp_out_of_window"
    );
    assert_eq!(code(app, &ada, &at(day - 1)).await, "accepted");
    assert_eq!(
        code(app, &ada, &at(day + 60)).await,
        "timestamp_out_of_window"
    );

    app.set(|settings| settings.ingest.past_window_seconds = 60)
        .await;
    assert_eq!(code(app, &ada, &at(-61)).await, "timestamp_out_of_window");
    assert_eq!(code(app, &ada, &at(-30)).await, "accepted");
}

async fn an_event_is_at_most_64_kib(app: &mut TestApp) {
    let ada = app.session("ada").await;
    let padded = |padding: usize| app.event(&ada, "opened", &json!({"p": "x".repeat(padding)}));
    let room = 64 * 1024 - padded(0).to_string().len();

    assert_eq!(code(app, &ada, &padded(room)).await, "accepted");
    assert_eq!(code(app, &ada, &padded(room + 1)).await, "event_too_large");
}

async fn properties_are_an_object_of_at_most_256_members(app: &mut TestApp) {
    let ada = app.session("ada").await;
    let of = |members: usize| {
        let members: serde_json::Map<String, Value> =
            (0..members).map(|n| (format!("k{n}"), json!(n))).collect();
        app.event(&ada, "opened", &Value::Object(members))
    };

    assert_eq!(code(app, &ada, &of(256)).await, "accepted");
    assert_eq!(code(app, &ada, &of(257)).await, "invalid_properties");
    let mut none = of(0);
    none.as_object_mut().unwrap().remove("properties");
    assert_eq!(code(app, &ada, &none).await, "accepted");
}

async fn names_have_at_most_200_characters(app: &mut TestApp) {
    let ada = app.session("ada").await;
    let named = |name: String| app.event(&ada, &name, &json!({}));

    assert_eq!(code(app, &ada, &named("ä".repeat(200))).await, "accepted");
    assert_eq!(
        code(app, &ada, &named("ä".repeat(201))).await,
        "invalid_name"
    );
}

async fn ids_of_other_subjects_reject_the_event(app: &mut TestApp) {
    let ada = app.session("ada").await;
    app.session("bob").await;
    for (context, code) in [
        (json!({"anonymousId": "bob"}), "subject_mismatch"),
        (json!({"anonymousId": "nobody"}), "subject_mismatch"),
        (
            json!({"anonymousId": "ada", "externalId": "e-1"}),
            "external_id_mismatch",
        ),
    ] {
        let mut event = app.event(&ada, "opened", &json!({}));
        event["anonymousId"] = context["anonymousId"].clone();
        let body = json!({"context": context, "events": [event]});
        let data = app.post_batch(&ada, &body).await.ok();
        assert_eq!(data["errors"][0]["code"], code, "{context}");
    }
    assert_eq!(app.stored("opened").await, 0);
}

async fn an_event_that_breaks_its_definition_is_kept_as_a_dead_letter(app: &mut TestApp) {
    app.define(
        "purchase",
        &json!({"properties": [{"name": "total", "type": "number", "required": true}]}),
    )
    .await;
    let ada = app.session("ada").await;
    let events = [
        app.event(&ada, "purchase", &json!({"total": 1})),
        app.event(&ada, "purchase", &json!({})),
        app.event(&ada, "undeclared", &json!({})),
    ];

    let data = app.ingest(&ada, &events).await.ok();

    assert_eq!(
        (&data["accepted"], &data["rejected"]),
        (&json!(2), &json!(1))
    );
    let error = &data["errors"][0];
    assert_eq!(
        (&error["code"], &error["index"]),
        (&json!("schema_violation"), &json!(1))
    );
    assert_eq!(error["eventId"], events[1]["eventId"]);
    let path = app.path(&format!(
        "/dead-letters/{}",
        error["deadLetterId"].as_str().unwrap()
    ));
    let letter = app.get(&path, &app.viewer()).await.ok();
    assert_eq!(letter["eventId"], events[1]["eventId"]);
    assert_eq!(app.stored("purchase").await, 1);
}
