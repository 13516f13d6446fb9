//! Candidates of personalization plugins: compared with what makes the messages, or making some of them (contract 12).

use std::collections::BTreeMap;
use std::time::Instant;

use serde_json::{Value, json};
use tests::campaigns::personalization;
use tests::providers::Providers;
use tests::session::text;
use tests::{Session, TestApp, on_both_backends};

use crate::guests::{activate_at, moody, save_property, upload};
use crate::plugin_candidates::{LOOK_AGAIN, PATIENCE, get, is_in_force};

on_both_backends!(
    a_shadow_is_compared_and_changes_no_message,
    a_canary_makes_its_messages_and_what_it_fails_on_is_not_lost,
    recipients_that_a_plugin_fails_on_spoil_no_other,
);

async fn activate(app: &TestApp, parts: Value) {
    let root = app.path("");
    activate_at(app, &root, &app.admin(), "greeter", parts)
        .await
        .ok();
}

/// A campaign that greets, by version 0.1.0 of the plugin, and one that backends send.
async fn greeter(app: &mut TestApp) -> (Providers, String) {
    let providers = app.with_providers().await;
    app.credential(&providers.fcm.credential()).await;
    upload(app, test_guests::GREETER.to_vec()).await.data(201);
    activate(app, json!({"version": "0.1.0"})).await;
    let slot = app.path("/plugin-slots/personalization");
    app.put(&slot, &app.admin(), &json!({"plugin": "greeter"}))
        .await
        .ok();
    let variants = variants();
    app.campaign(&json!({"variants": variants})).await;
    let parts = json!({"mode": "transactional", "trigger": null, "variants": variants});
    let transactional = app.campaign(&parts).await;
    upload(app, moody()).await.data(201);
    (providers, transactional)
}

/// What greets.
fn variants() -> Value {
    let source = json!({"kind": "user_property"});
    let spec = personalization(&source, &[("greeting", "greeting", "string")]);
    json!([{"title": "{{p.greeting}}", "personalization": spec}])
}

/// Somebody in a mood, with a device.
async fn person(app: &TestApp, providers: &Providers, mood: &str, number: u32) -> Session {
    let session = app.session(&format!("person-{number}")).await;
    let device = format!("device-{number}");
    app.push_token(&session, &device, &providers.fcm.token(number))
        .await;
    save_property(app, &session, "mood", json!(mood)).await;
    session
}

/// How version 0.2.0 fared as a shadow, once so many messages were compared.
async fn compared(app: &TestApp, messages: u64) -> Value {
    let started = Instant::now();
    loop {
        let metrics = get(app, "/plugins/greeter/metrics").await;
        let versions = metrics["versions"].as_array().unwrap().iter();
        let mut candidate = versions.filter(|entry| entry["version"] == "0.2.0");
        let shadow = candidate.next().map(|entry| entry["shadow"].clone());
        let shadow = shadow.unwrap_or_default();
        assert_eq!(shadow["skipped"].as_u64().unwrap_or(0), 0, "{shadow}");
        let counts = ["same", "added", "removed", "changed", "failed"];
        let all = counts.map(|count| shadow[count].as_u64().unwrap_or(0));
        if all.iter().sum::<u64>() == messages {
            return shadow;
        }
        assert!(started.elapsed() < PATIENCE, "{metrics}");
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

async fn a_shadow_is_compared_and_changes_no_message(app: &mut TestApp) {
    let (providers, transactional) = greeter(app).await;
    activate(app, json!({"version": "0.2.0", "strategy": "shadow"})).await;
    let mut events = BTreeMap::new();
    for (number, (mood, status)) in [
        ("", "delivered"),
        ("curious", "delivered"),
        ("quiet", "delivered"),
        ("sleepy", "skipped"),
        ("bad", "delivered"),
    ]
    .into_iter()
    .enumerate()
    {
        let number = u32::try_from(number).unwrap();
        let session = person(app, &providers, mood, number).await;
        let event = app.event(&session, "purchase", &json!({}));
        app.ingest(&session, std::slice::from_ref(&event))
            .await
            .ok();
        let delivery = app.delivered_to(&session, status, 1).await.remove(0);
        if status == "delivered" {
            assert_eq!(delivery["content"]["title"], "hello", "{mood}");
        }
        events.insert(mood, event["eventId"].clone());
    }
    let shadow = compared(app, 5).await;
    let counts = ["same", "added", "removed", "changed", "failed"].map(|key| &shadow[key]);
    assert_eq!(counts, [&json!(1); 5]);
    let samples = shadow["samples"].as_array().unwrap();
    let differences: BTreeMap<String, Value> = samples
        .iter()
        .map(|sample| (text(sample, "difference"), sample["eventId"].clone()))
        .collect();
    let expected = [
        ("content", "curious"),
        ("removed", "quiet"),
        ("added", "sleepy"),
        ("failed", "bad"),
    ];
    let expected = expected.map(|(difference, mood)| (difference.to_owned(), events[mood].clone()));
    assert_eq!(differences, expected.into());
    assert!(
        samples
            .iter()
            .all(|sample| sample["campaignId"].is_string())
    );

    // A message that no event caused is compared too; there is no event to be shown.
    let body = json!({"campaignId": transactional, "anonymousId": "person-1"});
    let id = text(&app.transactional(&body).await.data(202), "deliveryId");
    let delivery = app.delivery_in(&id, "delivered").await;
    assert_eq!(delivery["content"]["title"], "hello");
    let shadow = compared(app, 6).await;
    assert_eq!(shadow["changed"], 2);
    assert_eq!(shadow["samples"].as_array().unwrap().len(), 4);
    let letters: Vec<(String,)> = app.rows("SELECT reason FROM dead_letters").await;
    assert_eq!(letters, []);
    assert_eq!(providers.fcm.received().len(), 5);
}

async fn a_canary_makes_its_messages_and_what_it_fails_on_is_not_lost(app: &mut TestApp) {
    let (providers, _) = greeter(app).await;
    let canary = json!({"version": "0.2.0", "strategy": "canary", "percent": 50});
    activate(app, canary).await;
    let (mut old, mut new) = (Vec::new(), Vec::new());
    for number in 0..16 {
        let session = person(app, &providers, "curious", number).await;
        let event = app.event(&session, "purchase", &json!({}));
        app.ingest(&session, &[event]).await.ok();
        let delivery = app.delivered_to(&session, "delivered", 1).await.remove(0);
        match text(&delivery["content"], "title").as_str() {
            "hello" => old.push(session),
            "hi" => new.push(session),
            other => unreachable!("{other}"),
        }
    }
    // All of sixteen on one side happens once in 32,768 sets of ids.
    let (stays, fails) = (old.remove(0), new.remove(0));
    for session in [&stays, &fails] {
        save_property(app, session, "mood", json!("bad")).await;
    }
    let event = app.event(&stays, "purchase", &json!({}));
    app.ingest(&stays, &[event]).await.ok();
    app.delivered_to(&stays, "delivered", 2).await;

    // Calls of the part that it decides about fail, until it is taken back.
    let mut sent = 0;
    let started = Instant::now();
    loop {
        let plugin = get(app, "/plugins/greeter").await;
        if plugin["rollout"]["strategy"] == "instant" && is_in_force(app).await {
            break;
        }
        assert!(started.elapsed() < PATIENCE, "{plugin}");
        let event = app.event(&fails, "purchase", &json!({}));
        app.ingest(&fails, &[event]).await.ok();
        app.settle().await;
        sent += 1;
        let query = format!("?subjectId={}&limit=200", fails.subject_id);
        app.until("the message is made or failed", async || {
            let made = app.deliveries(&query).await;
            let over = |delivery: &&Value| {
                ["failed", "delivered"].contains(&delivery["status"].as_str().unwrap())
            };
            made.iter().filter(over).count() == sent + 1
        })
        .await;
    }
    let query = format!("?subjectId={}&status=failed&limit=200", fails.subject_id);
    let failed = app.deliveries(&query).await;
    assert!(!failed.is_empty());
    assert!(failed.iter().all(|it| it["reason"] == "plugin_error"));
    let path = app.path("/dead-letters?stage=personalization&limit=200");
    let list = app.get(&path, &app.viewer()).await.ok();
    let letters = list["items"].as_array().unwrap();
    assert_eq!(letters.len(), failed.len());
    for letter in letters {
        let replay = app.path(&format!("/dead-letters/{}/replay", text(letter, "id")));
        let answer = app.post(&replay, &app.editor(), &json!({})).await.ok();
        assert_eq!(answer["status"], "replayed");
    }
    for delivery in &failed {
        let id = text(delivery, "deliveryId");
        let sent = app.delivery_in(&id, "delivered").await;
        assert_eq!(sent["content"]["title"], "hello");
    }
}

async fn recipients_that_a_plugin_fails_on_spoil_no_other(app: &mut TestApp) {
    let settings = json!({"plugins": {"maxFailureRate": 1}});
    app.patch(&app.path("/settings"), &app.admin(), &settings)
        .await
        .ok();
    let (providers, _) = greeter(app).await;
    activate(app, json!({"version": "0.2.0"})).await;
    for number in 0..16 {
        let mood = if number % 2 == 0 { "bad" } else { "" };
        person(app, &providers, mood, number).await;
    }
    let parts = json!({"mode": "broadcast", "trigger": null, "variants": variants()});
    app.campaign(&parts).await;
    for (status, count) in [("failed", 8), ("delivered", 8)] {
        app.until("half of them get it", async || {
            let made = app.deliveries("?limit=200").await;
            assert!(made.iter().filter(|it| it["status"] == "failed").count() <= 8);
            made.iter().filter(|it| it["status"] == status).count() == count
        })
        .await;
    }
    let letters: Vec<(String,)> = app.rows("SELECT reason FROM dead_letters").await;
    assert_eq!(letters, vec![("trap".to_owned(),); 8]);
}
