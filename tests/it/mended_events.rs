//! A bad caller, from its first rejected event until everything that should have happened has.

use serde_json::{Value, json};
use tests::session::text;
use tests::{Session, TestApp, on_both_backends};

use crate::bulk_replays::ended;

on_both_backends!(what_a_bad_caller_broke_is_mended,);

/// Purchases of a caller that writes numbers as texts, each half a minute after the one before.
async fn bad_purchases(app: &TestApp, session: &Session, count: i64) -> Vec<Value> {
    let mut sent = Vec::new();
    for number in 0..count {
        let mut event = app.event(
            session,
            "purchase",
            &json!({"total": "12", "number": number}),
        );
        event["timestamp"] = json!(app.time((number - count) * 30));
        let data = app.ingest(session, std::slice::from_ref(&event)).await.ok();
        let error = &data["errors"][0];
        assert_eq!(
            (&data["rejected"], &error["code"]),
            (&json!(1), &json!("schema_violation"))
        );
        assert!(text(error, "message").contains("total"), "{error}");
        sent.push(event);
    }
    sent
}

async fn what_a_bad_caller_broke_is_mended(app: &mut TestApp) {
    app.survey(
        &json!({"kind": "event", "eventName": "purchase", "occurrence": {"mode": "nth", "n": 3}}),
    )
    .await;
    let definition = app
        .define(
            "purchase",
            &json!({"properties": [
                {"name": "total", "type": "number", "required": true},
                {"name": "currency", "type": "enum", "required": true, "enumValues": ["EUR", "USD"]},
            ]}),
        )
        .await;
    let ada = app.session("ada").await;
    let sent = bad_purchases(app, &ada, 4).await;
    assert_eq!(app.stored("purchase").await, 0);
    assert_eq!(app.offered(&ada).await, json!([]));

    // What is wrong, and how often.
    let summary = app
        .get(&app.path("/dead-letters/summary"), &app.viewer())
        .await
        .ok();
    let groups = summary["items"].as_array().unwrap();
    assert_eq!(groups.len(), 1, "{summary}");
    assert_eq!(
        (
            &groups[0]["eventName"],
            &groups[0]["reason"],
            &groups[0]["count"]
        ),
        (&json!("purchase"), &json!("type_mismatch"), &json!(4))
    );
    let path = app.path(&format!("/dead-letters/{}", text(&groups[0], "sampleId")));
    let sample = app.get(&path, &app.viewer()).await.ok();
    let codes: Vec<&Value> = sample["violations"]
        .as_array()
        .unwrap()
        .iter()
        .map(|violation| &violation["code"])
        .collect();
    assert_eq!(codes, ["type_mismatch", "missing_required_property"]);

    // The currency turns out not to be required. It does not mend the total.
    let path = app.path(&format!("/event-definitions/{}", text(&definition, "id")));
    let properties = json!([
        {"name": "total", "type": "number", "required": true},
        {"name": "currency", "type": "enum", "required": false, "enumValues": ["EUR", "USD"]},
    ]);
    app.patch(&path, &app.editor(), &json!({"properties": properties}))
        .await
        .ok();
    let tried = app
        .post(
            &format!("{path}/dry-run"),
            &app.editor(),
            &json!({"sinceHours": 1}),
        )
        .await
        .ok();
    assert_eq!((&tried["passed"], &tried["failed"]), (&json!(0), &json!(4)));
    let replay = app.path("/dead-letters/replay");
    let filter = json!({"filter": {"eventName": "purchase", "reason": "type_mismatch"}});
    let queued = app.post(&replay, &app.editor(), &filter).await.data(202);
    let done = ended(app, &text(&queued, "jobId")).await;
    assert_eq!(
        done["result"],
        json!({"replayed": 0, "stillFailing": 4, "skipped": 0})
    );

    // With a patch they are what they should have been.
    let patched = json!({"filter": {"eventName": "purchase"}, "patch": {"total": 12}});
    let queued = app.post(&replay, &app.editor(), &patched).await.data(202);
    let done = ended(app, &text(&queued, "jobId")).await;
    assert_eq!(
        done["result"],
        json!({"replayed": 4, "stillFailing": 0, "skipped": 0})
    );
    assert_eq!(done["progress"], json!({"done": 4, "total": 4}));
    app.settle().await;

    let offered = app.offered(&ada).await;
    assert_eq!(offered.as_array().unwrap().len(), 1, "the third, once");
    assert_eq!(offered[0]["trigger"]["eventId"], sent[2]["eventId"]);
    let timeline = app
        .get(&app.path("/users/ada/events"), &app.viewer())
        .await
        .ok();
    let timeline = timeline["items"].as_array().unwrap();
    let seen: Vec<[&Value; 2]> = timeline
        .iter()
        .rev()
        .map(|event| [&event["eventId"], &event["timestamp"]])
        .collect();
    let expected: Vec<[&Value; 2]> = sent
        .iter()
        .map(|event| [&event["eventId"], &event["timestamp"]])
        .collect();
    assert_eq!(seen, expected, "at their own times");
    assert!(
        timeline
            .iter()
            .all(|event| event["properties"]["total"] == 12)
    );
    let letters = app
        .get(&app.path("/dead-letters"), &app.viewer())
        .await
        .ok();
    assert_eq!(letters["items"], json!([]));

    // The caller, mended, sends what it has in its queue once more.
    let again: Vec<Value> = sent
        .iter()
        .map(|event| {
            let mut event = event.clone();
            event["properties"]["total"] = json!(12);
            event
        })
        .collect();
    let data = app.ingest_and_ask(&ada, &again).await;
    assert_eq!(data["accepted"], 4);
    // And not mended.
    assert_eq!(app.ingest(&ada, &sent).await.ok()["accepted"], 4);
    app.settle().await;
    assert_eq!(app.stored("purchase").await, 4);
    assert_eq!(app.offered(&ada).await.as_array().unwrap().len(), 1);
}
