//! The events of all of an app's people, those that were refused among them (contract 21).

use serde_json::{Value, json};
use tests::client::Answer;
use tests::session::text;
use tests::{TestApp, on_both_backends};

use crate::person::tables_with;

on_both_backends!(
    events_of_all_people_are_listed_newest_first_by_receipt,
    refused_events_are_there_for_an_hour,
    what_the_privacy_policy_denies_is_not_kept_of_refused_events,
    nothing_is_kept_of_refused_events_without_consent,
    the_feed_keeps_its_order_while_events_arrive,
    filters_of_the_feed_that_cannot_be_read_are_refused
);

async fn feed(app: &TestApp, query: &[(&str, &str)]) -> Answer {
    let query = reqwest::Url::parse_with_params("http://localhost", query).unwrap();
    let path = app.path(&format!("/events?{}", query.query().unwrap_or_default()));
    app.get(&path, &app.viewer()).await
}

async fn listed(app: &TestApp, query: &[(&str, &str)]) -> Vec<Value> {
    let data = feed(app, query).await.ok();
    data["items"].as_array().unwrap().clone()
}

fn of<'v>(items: &'v [Value], member: &str) -> Vec<&'v str> {
    let texts = items.iter().map(|item| item[member].as_str());
    texts.map(|text| text.unwrap_or("-")).collect()
}

async fn events_of_all_people_are_listed_newest_first_by_receipt(app: &mut TestApp) {
    let (ada, bob) = (app.session("ada").await, app.session("bob").await);
    // Receipt counts, not when they happened.
    let mut early = app.event(&ada, "opened", &json!({"n": 1}));
    early["timestamp"] = json!(app.time(-3_600));
    let mut batch = bob.batch(&[app.event(&bob, "searched", &json!({"n": 2}))]);
    batch["context"]["platform"] = json!("ios");
    app.ingest(&ada, &[app.event(&ada, "bought", &json!({"n": 0}))])
        .await
        .ok();
    let before = app.time(1);
    app.advance(2);
    app.ingest(&ada, &[early]).await.ok();
    app.post_batch(&bob, &batch).await.ok();
    let server = json!({"userId": "eve", "events": [{"name": "paid", "timestamp": app.time(0), "properties": {"n": 3}}]});
    app.post("/v1/sdk/ingest", &app.backend(), &server)
        .await
        .ok();
    // What the server notes by itself is nobody's event.
    app.survey(&json!({"kind": "property_changed", "key": "plan"}))
        .await;
    let update = json!({"anonymousId": "ada", "mutationId": app.id(), "set": {"plan": "pro"}});
    app.post("/v1/sdk/user-properties", &ada.credential(), &update)
        .await
        .ok();

    let all = listed(app, &[]).await;
    assert_eq!(of(&all, "name"), ["paid", "searched", "opened", "bought"]);
    assert_eq!(of(&all, "anonymousId"), ["-", "bob", "ada", "ada"]);
    assert_eq!(of(&all, "verdict"), ["accepted"; 4]);
    assert_eq!(of(&all, "source"), ["server", "sdk", "sdk", "sdk"]);
    assert_eq!(
        (&all[0]["externalId"], &all[1]["platform"]),
        (&json!("eve"), &json!("ios"))
    );
    assert_eq!(
        of(&all[1..], "subjectId"),
        [&*bob.subject_id, &ada.subject_id, &ada.subject_id]
    );
    assert_eq!(all[2]["properties"], json!({"n": 1}));
    assert!(all[0].get("errors").is_none());

    let names = |items: Vec<Value>| of(&items, "name").join(" ");
    assert_eq!(names(listed(app, &[("name", "opened")]).await), "opened");
    assert_eq!(
        names(listed(app, &[("name", "$property_changed")]).await),
        ""
    );
    assert_eq!(
        names(listed(app, &[("excludeName", "searched")]).await),
        "paid opened bought"
    );
    assert_eq!(
        names(listed(app, &[("from", &before)]).await),
        "paid searched opened"
    );
    assert_eq!(names(listed(app, &[("to", &before)]).await), "bought");
    assert_eq!(names(listed(app, &[("verdict", "rejected")]).await), "");
    for query in [&[][..], &[("excludeName", "bought")], &[("from", &before)]] {
        let all = listed(app, query).await;
        for limit in ["1", "2", "3"] {
            let (mut gathered, mut cursor) = (Vec::new(), None::<String>);
            loop {
                let mut query = query.to_vec();
                query.push(("limit", limit));
                if let Some(cursor) = &cursor {
                    query.push(("cursor", cursor.as_str()));
                }
                let data = feed(app, &query).await.ok();
                gathered.extend(data["items"].as_array().unwrap().clone());
                let next = data["nextCursor"].as_str().map(str::to_owned);
                if next.is_none() {
                    break;
                }
                cursor = next;
            }
            assert_eq!(gathered, all, "{query:?} {limit}");
        }
    }
}

async fn refused_events_are_there_for_an_hour(app: &mut TestApp) {
    app.define(
        "bought",
        &json!({"properties": [{"name": "price", "type": "number", "required": true}]}),
    )
    .await;
    let ada = app.session("ada").await;
    let good = app.event(&ada, "opened", &json!({}));
    let broken = app.event(&ada, "bought", &json!({"price": "much"}));
    let mut old = app.event(&ada, "opened", &json!({"n": 1}));
    old["timestamp"] = json!("2020-01-01T00:00:00Z");
    let mut unnamed = app.event(&ada, "x", &json!({"n": 2}));
    unnamed["name"] = json!(7);
    let bad_id = json!({"eventId": "no", "name": "y", "timestamp": "soon", "anonymousId": "ada", "properties": []});
    let events = [
        good.clone(),
        broken.clone(),
        old,
        unnamed,
        bad_id,
        good.clone(),
    ];
    let sent = app.ingest(&ada, &events).await.ok();
    assert_eq!(sent["rejected"], 5);

    let all = listed(app, &[]).await;
    assert_eq!(
        of(&all, "verdict"),
        [
            "accepted", "rejected", "rejected", "rejected", "rejected", "rejected"
        ]
    );
    let refused = listed(app, &[("verdict", "rejected")]).await;
    assert_eq!(refused, all[1..]);
    let codes: Vec<&str> = refused
        .iter()
        .map(|item| item["errors"][0]["code"].as_str().unwrap())
        .collect();
    let mut expected = [
        "schema_violation",
        "timestamp_out_of_window",
        "invalid_name",
        "invalid_event_id",
        "duplicate_event_id_in_batch",
    ];
    // The last of the request is the newest.
    expected.reverse();
    assert_eq!(codes, expected);
    assert_eq!(
        of(&refused, "name"),
        ["opened", "y", "-", "opened", "bought"]
    );
    assert_eq!(of(&refused, "subjectId"), [&*ada.subject_id; 5]);
    assert_eq!(refused[4]["properties"], json!({"price": "much"}));
    assert_eq!(refused[4]["eventId"], broken["eventId"]);
    assert_eq!(
        refused[4]["errors"][0]["deadLetterId"],
        sent["errors"][0]["deadLetterId"]
    );
    assert_eq!(refused[1]["timestamp"], Value::Null);
    assert_eq!(refused[1]["eventId"], Value::Null);
    assert_eq!(listed(app, &[("name", "bought")]).await, refused[4..]);
    assert_eq!(listed(app, &[("excludeName", "opened")]).await.len(), 3);
    assert_eq!(listed(app, &[("verdict", "accepted")]).await.len(), 1);

    // Of one that is too large its name is kept, and nothing of what is large.
    let large = app.event(&ada, "large", &json!({"text": "x".repeat(70_000)}));
    app.ingest(&ada, &[large]).await.ok();
    let shown = listed(app, &[("name", "large")]).await;
    assert_eq!(shown[0]["errors"][0]["code"], "event_too_large");
    assert!(shown[0]["timestamp"].is_string() && shown[0]["properties"] == json!({}));

    // Sent again as it must not be, what is there already is accepted, and was not refused.
    let mut again = good;
    again["timestamp"] = json!("2020-01-01T00:00:00Z");
    assert_eq!(app.ingest(&ada, &[again]).await.ok()["accepted"], 1);
    assert_eq!(listed(app, &[("verdict", "rejected")]).await.len(), 6);

    app.advance(3_601);
    let cursor_free = listed(app, &[]).await;
    assert_eq!(of(&cursor_free, "verdict"), ["accepted"]);
    // They go from the database, too.
    loop {
        let dump = app.dump().await;
        let rows = dump.iter().find(|(table, _)| table == "rejected_events");
        if rows.is_none_or(|(_, rows)| rows.is_empty()) {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}

async fn what_the_privacy_policy_denies_is_not_kept_of_refused_events(app: &mut TestApp) {
    let settings = json!({"privacy": {"denyKeys": ["email"]}});
    app.patch(&app.path("/settings"), &app.admin(), &settings)
        .await
        .ok();
    app.define(
        "bought",
        &json!({"properties": [{"name": "email", "type": "number"}]}),
    )
    .await;
    let ada = app.session("ada").await;
    let mut old = app.event(
        &ada,
        "opened",
        &json!({"email": "needle-a", "plan": "pro", "of": {"email": "needle-b"}}),
    );
    old["timestamp"] = json!("2020-01-01T00:00:00Z");
    let broken = app.event(&ada, "bought", &json!({"email": "needle-c"}));
    let sent = app.ingest(&ada, &[old, broken]).await.ok();
    assert_eq!(sent["rejected"], 2);

    let refused = feed(app, &[("verdict", "rejected")]).await;
    let items = &refused.ok()["items"];
    assert_eq!(items[1]["properties"], json!({"plan": "pro", "of": {}}));
    assert_eq!(items[0]["properties"], json!({}));
    assert!(!refused.text.contains("needle"), "{}", refused.text);
    assert_eq!(tables_with(app, "needle-a").await, [""; 0]);
}

async fn nothing_is_kept_of_refused_events_without_consent(app: &mut TestApp) {
    let ada = app.session("ada").await;
    let consent = json!({"anonymousId": "ada", "analytics": false});
    app.post("/v1/sdk/consent", &ada.credential(), &consent)
        .await
        .ok();
    let mut old = app.event(&ada, "opened", &json!({"note": "needle"}));
    old["timestamp"] = json!("2020-01-01T00:00:00Z");
    let events = [old, app.event(&ada, "opened", &json!({"note": "needle"}))];
    assert_eq!(app.ingest(&ada, &events).await.ok()["rejected"], 2);

    assert_eq!(listed(app, &[]).await.len(), 0);
    assert_eq!(tables_with(app, "needle").await, [""; 0]);
}

async fn the_feed_keeps_its_order_while_events_arrive(app: &mut TestApp) {
    let ada = app.session("ada").await;
    for number in 0..6 {
        let event = app.event(&ada, &format!("event-{number}"), &json!({}));
        app.ingest(&ada, &[event]).await.ok();
    }
    let first = feed(app, &[("limit", "3")]).await.ok();
    let event = app.event(&ada, "event-6", &json!({}));
    app.ingest(&ada, &[event]).await.ok();

    let cursor = text(&first, "nextCursor");
    let second = listed(app, &[("limit", "3"), ("cursor", &cursor)]).await;
    assert_eq!(of(&second, "name"), ["event-2", "event-1", "event-0"]);
    // A cursor is its list's.
    feed(app, &[("name", "event-1"), ("cursor", &cursor)])
        .await
        .refused(400, "invalid_cursor");
}

async fn filters_of_the_feed_that_cannot_be_read_are_refused(app: &mut TestApp) {
    for (name, value) in [
        ("verdict", "maybe"),
        ("limit", "501"),
        ("limit", "0"),
        ("from", "once"),
        ("to", ""),
    ] {
        let refused = feed(app, &[(name, value)]).await;
        refused.refused(422, "validation_failed");
        assert_eq!(refused.pointers(), [format!("/{name}")]);
    }
}
