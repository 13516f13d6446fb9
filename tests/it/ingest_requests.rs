//! What becomes of whole ingest requests (contract 3).

use futures_util::future::join_all;
use serde_json::{Value, json};
use tests::session::{event_id, text};
use tests::{TestApp, on_both_backends};

use crate::person::execute;

on_both_backends!(
    a_request_that_breaks_the_contract_commits_nothing,
    a_request_has_1_to_500_events,
    what_cannot_be_committed_is_503_whatever_the_reason,
    an_event_sent_again_is_accepted_and_changes_nothing,
    an_event_that_is_there_is_accepted_whatever_it_says,
    among_new_requests_those_sent_again_change_nothing,
    an_event_without_an_id_is_stored_once,
    unknown_keys_are_ignored,
    a_skewed_clock_is_corrected,
    delivery_names_1_to_20_events_of_the_request,
    delivery_may_name_an_event_that_is_rejected,
    a_screen_name_has_at_most_120_characters,
    instructions_are_present_exactly_when_delivery_was_sent,
);

async fn a_request_that_breaks_the_contract_commits_nothing(app: &mut TestApp) {
    let ada = app.session("ada").await;
    let event = || app.event(&ada, "opened", &json!({}));
    let context = json!({"anonymousId": "ada"});
    for (body, pointer) in [
        (json!({"context": context}), "/events"),
        (json!({"context": context, "events": []}), "/events"),
        (json!({"context": context, "events": null}), "/events"),
        (
            json!({"context": context, "events": [event(), 7]}),
            "/events/1",
        ),
        (
            json!({"context": context, "events": [event(), null]}),
            "/events/1",
        ),
        (
            json!({"context": {}, "events": [event()]}),
            "/context/anonymousId",
        ),
        (json!({"events": [event()]}), "/context"),
        (
            json!({"context": {"anonymousId": ""}, "events": [event()]}),
            "/context/anonymousId",
        ),
        (
            json!({"context": {"anonymousId": "ada", "locale": "x".repeat(257)}, "events": [event()]}),
            "/context/locale",
        ),
    ] {
        let answer = app.post_batch(&ada, &body).await;
        answer.refused(422, "validation_failed");
        assert_eq!(answer.pointers(), [pointer], "{body}");
    }
    for body in [
        json!([]),
        json!({"context": 7, "events": [event()]}),
        json!({"context": context, "events": {}}),
    ] {
        app.post_batch(&ada, &body)
            .await
            .refused(422, "validation_failed");
    }
    assert_eq!(app.stored("opened").await, 0);
}

async fn a_request_has_1_to_500_events(app: &mut TestApp) {
    let ada = app.session("ada").await;
    let events: Vec<Value> = (0..501)
        .map(|_| app.event(&ada, "opened", &json!({})))
        .collect();

    let data = app.ingest(&ada, &events[..500]).await.ok();
    assert_eq!(
        (&data["accepted"], &data["rejected"]),
        (&json!(500), &json!(0))
    );
    let answer = app.ingest(&ada, &events).await;
    answer.refused(422, "validation_failed");
    assert_eq!(answer.pointers(), ["/events"]);
    assert_eq!(app.stored("opened").await, 500);
}

async fn an_event_sent_again_is_accepted_and_changes_nothing(app: &mut TestApp) {
    let ada = app.session("ada").await;
    let mut event = app.event(&ada, "opened", &json!({"total": 1}));
    app.ingest(&ada, std::slice::from_ref(&event)).await.ok();

    event["properties"] = json!({"total": 2});
    let events = [event, app.event(&ada, "opened", &json!({"total": 3}))];
    let data = app.ingest(&ada, &events).await.ok();

    assert_eq!(
        (&data["accepted"], &data["errors"]),
        (&json!(2), &json!([]))
    );
    let mut stored: Vec<(String,)> = app.rows("SELECT properties FROM events").await;
    stored.sort();
    assert_eq!(
        stored,
        [
            (r#"{"total":1}"#.to_owned(),),
            (r#"{"total":3}"#.to_owned(),)
        ]
    );
    app.settle().await;
    let counts: Vec<(i64,)> = app.rows("SELECT event_count FROM subjects").await;
    assert_eq!(counts, [(2,)]);
}

/// What many send at once is stored together.
async fn among_new_requests_those_sent_again_change_nothing(app: &mut TestApp) {
    let mut sent = Vec::new();
    for number in 0..30 {
        let person = app.session(&format!("person-{number}")).await;
        let events = [(); 2].map(|()| app.event(&person, "opened", &json!({})));
        let known = &events[..number % 3];
        if !known.is_empty() {
            app.ingest(&person, known).await.ok();
        }
        sent.push((person, events));
    }
    let again = sent
        .iter()
        .map(|(person, events)| app.ingest(person, events));
    for answer in join_all(again).await {
        assert_eq!(answer.ok()["accepted"], 2);
    }
    app.settle().await;
    let counts: Vec<(i64,)> = app.rows("SELECT event_count FROM subjects").await;
    assert_eq!(counts, [(2,); 30]);
    assert_eq!(app.stored("opened").await, 60);
}

async fn an_event_that_is_there_is_accepted_whatever_it_says(app: &mut TestApp) {
    app.survey(&json!({"kind": "event", "eventName": "opened"}))
        .await;
    let ada = app.session("ada").await;
    let event = app.event(&ada, "opened", &json!({}));
    let told = app.ingest_and_ask(&ada, std::slice::from_ref(&event)).await;
    app.set(|settings| settings.ingest.past_window_seconds = 60)
        .await;
    app.advance(3_600);

    for (key, value) in [
        ("timestamp", event["timestamp"].clone()),
        ("name", json!("")),
        ("properties", json!(7)),
    ] {
        let mut again = event.clone();
        again[key] = value;
        let data = app.ingest_and_ask(&ada, &[again.clone()]).await;
        assert_eq!(
            (&data["accepted"], &data["errors"]),
            (&json!(1), &json!([]))
        );
        assert_eq!(data["instructions"], told["instructions"], "{key}");
        // Of nobody else, and not twice: of two with one id the first alone counts, and is not there by then.
        again["eventId"] = json!(app.id());
        let mut right = app.event(&ada, "opened", &json!({}));
        right["eventId"] = again["eventId"].clone();
        for (events, accepted) in [([&again, &right], 0), ([&right, &again], 1)] {
            let data = app.ingest(&ada, &events.map(Value::clone)).await.ok();
            assert_eq!(
                (&data["accepted"], &data["rejected"]),
                (&json!(accepted), &json!(2 - accepted))
            );
        }
    }
    let bob = app.session("bob").await;
    let mut stolen = app.event(&bob, "", &json!({}));
    stolen["eventId"] = event["eventId"].clone();
    let data = app.ingest(&bob, &[stolen]).await.ok();
    assert_eq!(data["errors"][0]["code"], "invalid_name");
}

async fn an_event_without_an_id_is_stored_once(app: &mut TestApp) {
    let ada = app.session("ada").await;
    let body = |properties: &str, timestamp: &str| {
        format!(
            r#"{{"context": {{"anonymousId": "ada"}}, "events": [{{"name": "opened", "timestamp": "{timestamp}", "anonymousId": "ada", "properties": {properties}}}]}}"#
        )
    };
    let (now, later) = (app.time(0), app.time(1));
    for (properties, timestamp) in [
        (r#"{"a": 1, "b": 2}"#, &now),
        (r#"{"a": 1, "b": 2}"#, &now),
        (r#"{"b": 2, "a": 1}"#, &now),
    ] {
        let answer = app
            .post_raw(
                "/v1/sdk/ingest",
                &ada.credential(),
                body(properties, timestamp),
            )
            .await;
        assert_eq!(answer.ok()["accepted"], 1);
    }
    assert_eq!(app.stored("opened").await, 1);

    for (properties, timestamp) in [(r#"{"a": 2}"#, &now), (r#"{"a": 2}"#, &later)] {
        let answer = app
            .post_raw(
                "/v1/sdk/ingest",
                &ada.credential(),
                body(properties, timestamp),
            )
            .await;
        assert_eq!(answer.ok()["accepted"], 1);
    }
    assert_eq!(app.stored("opened").await, 3);

    // Sent again after its time, it is the same event.
    app.set(|settings| settings.ingest.past_window_seconds = 60)
        .await;
    app.advance(3_600);
    for (properties, accepted) in [(r#"{"a": 2}"#, 1), (r#"{"a": 3}"#, 0)] {
        let answer = app
            .post_raw("/v1/sdk/ingest", &ada.credential(), body(properties, &now))
            .await;
        assert_eq!(answer.ok()["accepted"], accepted);
    }
    assert_eq!(app.stored("opened").await, 3);
}

async fn unknown_keys_are_ignored(app: &mut TestApp) {
    let ada = app.session("ada").await;
    let mut event = app.event(&ada, "opened", &json!({}));
    event["newInSdk9"] = json!({"deep": [1]});
    let body = json!({
        "context": {"anonymousId": "ada", "sdkVersion": "9", "deviceId": "d", "sessionId": "s", "newInSdk9": 1},
        "events": [event],
        "newInSdk9": true,
    });
    assert_eq!(app.post_batch(&ada, &body).await.ok()["accepted"], 1);

    for (session_id, is_good) in [
        (json!("x".repeat(256)), true),
        (json!(null), true),
        (json!("x".repeat(257)), false),
        (json!("a\n"), false),
        (json!(7), false),
        (json!(["s"]), false),
    ] {
        let mut body = body.clone();
        body["context"]["sessionId"] = session_id;
        let answer = app.post_batch(&ada, &body).await;
        if is_good {
            assert_eq!(answer.ok()["accepted"], 1);
        } else {
            answer.refused(422, "validation_failed");
            assert_eq!(answer.pointers(), ["/context/sessionId"]);
        }
    }
}

async fn a_skewed_clock_is_corrected(app: &mut TestApp) {
    let ada = app.session("ada").await;
    let hour = 3600;
    let mut events = [
        app.event(&ada, "late", &json!({})),
        app.event(&ada, "in_time", &json!({})),
    ];
    events[0]["timestamp"] = json!(app.time(-hour - 10));
    let mut body = ada.batch(&events[..1]);
    body["context"]["sentAt"] = json!(app.time(-hour));
    app.post_batch(&ada, &body).await.ok();
    let mut body = ada.batch(&events[1..]);
    body["context"]["sentAt"] = json!(app.time(-30));
    app.post_batch(&ada, &body).await.ok();

    let rows: Vec<(String, i64, Option<i64>, i64)> = app
        .rows("SELECT name, timestamp, client_timestamp, received_at FROM events ORDER BY seq")
        .await;
    let (late, in_time) = (&rows[0], &rows[1]);
    let sent = nudge_platform::clock::from_text(&text(&events[0], "timestamp")).unwrap();
    assert_eq!(late.2, Some(sent.0));
    let shown = app
        .get(&app.path("/users/ada/events"), &app.viewer())
        .await
        .ok();
    let of = |name: &str| {
        let mut items = shown["items"].as_array().unwrap().iter();
        items.find(|item| item["name"] == name).unwrap().clone()
    };
    assert_eq!(of("late")["clientTimestamp"], events[0]["timestamp"]);
    assert_ne!(of("late")["timestamp"], events[0]["timestamp"]);
    assert!(of("in_time").get("clientTimestamp").is_none());
    let age = late.3 - late.1;
    assert!(
        (9_000_000..=11_000_000).contains(&age),
        "{age} µs before its receipt"
    );
    assert_eq!(in_time.2, None);
}

async fn delivery_names_1_to_20_events_of_the_request(app: &mut TestApp) {
    let ada = app.session("ada").await;
    let events: Vec<Value> = (0..21)
        .map(|_| app.event(&ada, "opened", &json!({})))
        .collect();
    let ids: Vec<String> = events.iter().map(event_id).collect();
    let with = |delivery: Value| {
        let mut body = ada.batch(&events);
        body["delivery"] = delivery;
        body
    };
    for delivery in [
        json!({"eventIds": ids}),
        json!({"eventIds": []}),
        json!({}),
        json!({"eventIds": [ids[0], app.id()]}),
        json!({"eventIds": ["x"]}),
        json!({"eventIds": ids[0]}),
        json!(7),
        json!([]),
    ] {
        let answer = app.post_batch(&ada, &with(delivery.clone())).await;
        let problem = answer.refused(422, "invalid_delivery");
        assert!(
            problem["errors"][0]["pointer"]
                .as_str()
                .unwrap()
                .starts_with("/delivery"),
            "{delivery}"
        );
    }
    assert_eq!(app.stored("opened").await, 0);
    let data = app
        .post_batch(&ada, &with(json!({"eventIds": ids[..20]})))
        .await
        .ok();
    assert_eq!(
        (&data["accepted"], &data["instructions"]),
        (&json!(21), &json!([]))
    );
}

async fn delivery_may_name_an_event_that_is_rejected(app: &mut TestApp) {
    let ada = app.session("ada").await;
    let good = app.event(&ada, "opened", &json!({}));
    let large = app.event(&ada, "opened", &json!({"p": "x".repeat(64 * 1024)}));
    let nameless = app.event(&ada, "", &json!({}));
    let ids = [&good, &large, &nameless].map(event_id);
    let body = json!({"context": {"anonymousId": "ada"}, "events": [good, large, nameless],
        "delivery": {"eventIds": ids}});

    let data = app.post_batch(&ada, &body).await.ok();

    assert_eq!(
        (&data["accepted"], &data["instructions"]),
        (&json!(1), &json!([]))
    );
    let rejected: Vec<(&str, &str)> = data["errors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|error| {
            let text = |key: &str| error[key].as_str().unwrap();
            (text("eventId"), text("code"))
        })
        .collect();
    assert_eq!(
        rejected,
        [
            (ids[1].as_str(), "event_too_large"),
            (ids[2].as_str(), "invalid_name")
        ]
    );
}

async fn a_screen_name_has_at_most_120_characters(app: &mut TestApp) {
    let ada = app.session("ada").await;
    let event = app.event(&ada, "opened", &json!({}));
    let mut body = ada.batch(std::slice::from_ref(&event));

    body["delivery"] = json!({"eventIds": [event["eventId"]], "screenName": "ä".repeat(121)});
    app.post_batch(&ada, &body)
        .await
        .refused(422, "invalid_delivery");
    body["delivery"]["screenName"] = json!("ä".repeat(120));
    app.post_batch(&ada, &body).await.ok();
}

async fn instructions_are_present_exactly_when_delivery_was_sent(app: &mut TestApp) {
    app.survey(&json!({"kind": "event", "eventName": "purchase"}))
        .await;
    let ada = app.session("ada").await;

    let event = app.event(&ada, "purchase", &json!({}));
    let data = app.ingest(&ada, &[event]).await.ok();
    assert!(data.get("instructions").is_none());
    assert_eq!(app.fires(&ada, "purchase", &json!({})).await, 1);
    let event = app.event(&ada, "other", &json!({}));
    let data = app.ingest_and_ask(&ada, &[event]).await;
    assert_eq!(data["instructions"], json!([]));
}

/// A table that is gone is no outage of the database, and yet a reason to send the events again.
async fn what_cannot_be_committed_is_503_whatever_the_reason(app: &mut TestApp) {
    let ada = app.session("ada").await;
    let event = app.event(&ada, "opened", &json!({}));
    execute(app, "ALTER TABLE pending RENAME TO away", &[]).await;
    let refused = app.ingest(&ada, std::slice::from_ref(&event)).await;
    refused.refused(503, "unavailable");
    assert!(!refused.header("retry-after").is_empty());
    execute(app, "ALTER TABLE away RENAME TO pending", &[]).await;
    app.until("the event is taken", async || {
        let answer = app.ingest(&ada, std::slice::from_ref(&event)).await;
        answer.status == 200
    })
    .await;
    app.settle().await;
    assert_eq!(app.stored("opened").await, 1);
}
