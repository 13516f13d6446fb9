//! Shadow candidates: compared with what decides, and never used (contract 12).

use std::time::Instant;

use serde_json::{Value, json};
use tests::session::event_id;
use tests::{TestApp, on_both_backends};

use crate::deletion;
use crate::guests::{
    activate, activate_at, decided, deploy, lenient, name, trigger, upload, version, versioned,
};
use crate::plugin_candidates::{LOOK_AGAIN, PATIENCE, fares, from, get, rolled_back, send, until};

on_both_backends!(
    a_shadow_is_compared_and_decides_nothing,
    a_shadow_leaves_no_state_and_no_timer,
    a_timer_that_only_a_shadow_sets_counts_as_added,
    a_failing_shadow_is_given_up_without_a_dead_letter,
    a_shadow_of_long_is_given_up_at_the_twentieth_call,
    a_shadow_of_a_validation_plugin_rejects_nothing,
);

/// Waits until a shadow candidate was shown, or not for want of time, so many batches.
pub(crate) async fn shown_to(app: &TestApp, number: u32, batches: u64) -> Value {
    let started = Instant::now();
    loop {
        let shadow = fares(app, number).await["shadow"].clone();
        let count = |key: &str| shadow[key].as_u64().unwrap_or(0);
        if count("calls") + count("skipped") >= batches {
            assert_eq!(count("skipped"), 0, "{shadow}");
            return shadow;
        }
        assert!(started.elapsed() < PATIENCE, "{shadow}");
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

pub(crate) async fn shadow(app: &TestApp, number: u32) {
    upload(app, versioned(1, number)).await;
    let parts = json!({"version": version(number), "strategy": "shadow"});
    activate(app, 1, parts).await.ok();
}

async fn a_shadow_is_compared_and_decides_nothing(app: &mut TestApp) {
    deploy(app, 1, 1).await;
    let survey = app
        .survey(&trigger(1, json!({"events": ["a"], "passes": from(2)})))
        .await;
    shadow(app, 2).await;
    let ada = app.session("ada").await;
    send(app, &ada, 4, "a", false).await;
    let bad = send(app, &ada, 3, "a", true).await;
    let batch = [
        app.event(&ada, "a", &json!({})),
        app.event(&ada, "a", &json!({"bad": 1})),
        app.event(&ada, "b", &json!({})),
    ];
    app.ingest_and_ask(&ada, &batch).await;

    let compared = shown_to(app, 2, 8).await;
    let counts =
        ["calls", "same", "added", "removed", "changed", "failed"].map(|key| &compared[key]);
    assert_eq!(
        counts.map(|count| count.as_u64().unwrap()),
        [8, 5, 0, 4, 0, 0]
    );
    let samples = compared["samples"].as_array().unwrap();
    let events: Vec<&Value> = samples.iter().map(|sample| &sample["eventId"]).collect();
    let ids: Vec<Value> = bad
        .iter()
        .chain([&batch[1]])
        .map(|event| json!(event_id(event)))
        .collect();
    assert_eq!(events, ids.iter().collect::<Vec<_>>());
    assert!(
        samples.iter().all(
            |sample| sample["difference"] == "removed" && sample["campaignId"] == json!(survey)
        )
    );
    assert_eq!(fares(app, 2).await["items"], 9);
    let by = decided(app).await;
    assert_eq!(by, vec![(name(1), version(1)); 9]);
    let offered = app.offered(&ada).await;
    assert_eq!(offered.as_array().unwrap().len(), 9);

    // The other way about, in a trial of its own.
    let instant = json!({"version": version(2)});
    activate(app, 1, instant).await.ok();
    shadow(app, 1).await;
    send(app, &ada, 2, "a", true).await;
    let compared = shown_to(app, 1, 2).await;
    assert_eq!(
        (&compared["added"], &compared["removed"]),
        (&json!(2), &json!(0))
    );
    assert_eq!(decided(app).await.len(), 9);
    // And once more, from the beginning, the person's differences forgotten.
    let job = deletion::delete(app, &json!({"anonymousId": "ada"})).await;
    deletion::deleted(app, &job).await;
    let rows: Vec<(uuid::Uuid,)> = app.rows("SELECT subject_id FROM plugin_differences").await;
    assert_eq!(rows, []);
    let before = compared["since"].clone();
    shadow(app, 1).await;
    let eve = app.session("eve").await;
    send(app, &eve, 1, "a", false).await;
    let started = Instant::now();
    let compared = loop {
        let compared = shown_to(app, 1, 1).await;
        if compared["since"] != before {
            break compared;
        }
        assert!(started.elapsed() < PATIENCE, "{compared}");
    };
    assert_eq!(
        (&compared["added"], &compared["same"]),
        (&json!(0), &json!(1))
    );
}

async fn a_shadow_leaves_no_state_and_no_timer(app: &mut TestApp) {
    deploy(app, 1, 1).await;
    app.survey(&trigger(1, json!({"events": ["a"], "keeps": from(1)})))
        .await;
    shadow(app, 2).await;
    let ada = app.session("ada").await;
    send(app, &ada, 1, "a", false).await;
    let compared = shown_to(app, 2, 1).await;
    // One decision, however much of it differs.
    assert_eq!(
        (&compared["same"], &compared["changed"]),
        (&json!(0), &json!(1))
    );
    let kinds: Vec<&str> = compared["samples"]
        .as_array()
        .unwrap()
        .iter()
        .map(|sample| sample["difference"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["state", "timer"]);
    let state = &compared["samples"][0];
    assert_eq!(state["subjectId"], json!(ada.subject_id));
    assert_eq!(
        (&state["old"], &state["new"]),
        (&json!(1_000_001), &json!(1_000_002))
    );
    let timer = &compared["samples"][1]["new"];
    assert_eq!(timer["key"], "later");
    assert!(
        timer["at"].is_string() && timer["payload"]["base64"].is_string(),
        "{timer}"
    );
    let states: Vec<(Vec<u8>,)> = app.rows("SELECT state FROM plugin_states").await;
    assert_eq!(states, [(b"1000001".to_vec(),)]);
    let timers: Vec<(Vec<u8>,)> = app.rows("SELECT payload FROM timers").await;
    assert_eq!(timers, [(1_000_001_u64.to_le_bytes().to_vec(),)]);
}

async fn a_timer_that_only_a_shadow_sets_counts_as_added(app: &mut TestApp) {
    deploy(app, 1, 1).await;
    app.survey(&trigger(1, json!({"events": ["a"], "keeps": from(2)})))
        .await;
    shadow(app, 2).await;
    let ada = app.session("ada").await;
    send(app, &ada, 1, "a", false).await;
    let compared = shown_to(app, 2, 1).await;
    let counts = ["same", "added", "removed", "changed", "failed"].map(|key| compared[key].clone());
    assert_eq!(counts, [0, 1, 0, 0, 0].map(|count| json!(count)));
    let kinds: Vec<&Value> = compared["samples"]
        .as_array()
        .unwrap()
        .iter()
        .map(|sample| &sample["difference"])
        .collect();
    assert_eq!(kinds, ["state", "timer_added"]);
    assert!(compared["samples"][1].get("old").is_none(), "{compared}");
}

/// Waits until candidates were asked about everything that was decided.
async fn candidates_are_asked(app: &TestApp) {
    let apps: Vec<(uuid::Uuid,)> = app.rows("SELECT id FROM apps").await;
    for (id,) in apps {
        let shadows = &app.services().plugins.shadows;
        shadows.run(id, || ()).await.unwrap();
    }
}

async fn a_failing_shadow_is_given_up_without_a_dead_letter(app: &mut TestApp) {
    deploy(app, 1, 1).await;
    app.survey(&trigger(1, json!({"events": ["a"], "traps": from(2)})))
        .await;
    shadow(app, 2).await;
    let ada = app.session("ada").await;
    // One by one: of those that would wait for the candidate's thread some would be skipped.
    for _ in 0..20 {
        send(app, &ada, 1, "a", true).await;
        candidates_are_asked(app).await;
    }
    until(app, 1, |plugin| plugin["rollout"]["strategy"] == "instant").await;
    assert_eq!(
        rolled_back(app).await,
        [(version(2), 20, "candidate".to_owned())]
    );
    let two = fares(app, 2).await;
    assert_eq!(
        (&two["failures"]["trap"], &two["shadow"]["failed"]),
        (&json!(20), &json!(20))
    );
    let letters: Vec<(String,)> = app.rows("SELECT reason FROM dead_letters").await;
    assert_eq!(letters, []);
    assert_eq!(decided(app).await, vec![(name(1), version(1)); 20]);
}

async fn a_shadow_of_long_is_given_up_at_the_twentieth_call(app: &mut TestApp) {
    for plugin in [1, 2] {
        deploy(app, plugin, 1).await;
        let config = json!({"events": [format!("event {plugin}")], "traps": from(2)});
        app.survey(&trigger(plugin, config)).await;
    }
    shadow(app, 2).await;
    let ada = app.session("ada").await;
    for _ in 0..19 {
        send(app, &ada, 1, "event 1", true).await;
        candidates_are_asked(app).await;
    }
    // Once the other plugin was looked at, this one was. For these failures it is not looked at any more.
    deploy(app, 2, 2).await;
    send(app, &ada, 20, "event 2", true).await;
    until(app, 2, |plugin| plugin["activeVersion"] == version(1)).await;
    let recorder = &app.services().plugins.recorder;
    while !recorder.to_look_at().is_empty() {}
    app.advance(600);

    // Whatever the twentieth call comes to.
    send(app, &ada, 1, "event 1", false).await;
    let given_up = |plugin: &Value| plugin["rollout"]["strategy"] == "instant";
    until(app, 1, given_up).await;
    let of = |role: &str| (version(2), 20, role.to_owned());
    assert_eq!(rolled_back(app).await, [of("active"), of("candidate")]);
}

async fn a_shadow_of_a_validation_plugin_rejects_nothing(app: &mut TestApp) {
    let strict = "/plugins/strict";
    let root = app.path("");
    let activate = async |parts: Value| {
        activate_at(app, &root, &app.admin(), "strict", parts)
            .await
            .ok()
    };
    upload(app, test_guests::STRICT.to_vec()).await.data(201);
    activate(json!({"version": "0.1.0"})).await;
    let validator = json!({"plugin": "strict", "config": {"forbidden": "card"}});
    app.define("paid", &json!({"validator": validator})).await;
    upload(app, lenient()).await.data(201);
    activate(json!({"version": "0.2.0", "strategy": "shadow"})).await;
    let ada = app.session("ada").await;
    let cards = [json!({"card": "4111"}), json!({"card": "test"}), json!({})];
    let events = cards.map(|properties| app.event(&ada, "paid", &properties));
    let data = app.ingest(&ada, &events).await.ok();
    assert_eq!(
        (&data["accepted"], &data["rejected"]),
        (&json!(1), &json!(2))
    );

    let started = Instant::now();
    let shadow = loop {
        let metrics = get(app, &format!("{strict}/metrics")).await;
        let shadow = metrics["versions"][1]["shadow"].clone();
        if shadow.is_object() {
            assert_eq!(metrics["versions"][1]["version"], "0.2.0");
            break shadow;
        }
        assert!(started.elapsed() < PATIENCE, "{metrics}");
        tokio::time::sleep(LOOK_AGAIN).await;
    };
    let counts = ["calls", "same", "added", "removed", "changed"].map(|key| &shadow[key]);
    assert_eq!(counts.map(|count| count.as_u64().unwrap()), [1, 2, 0, 1, 0]);
    let sample = &shadow["samples"][0];
    assert_eq!(sample["eventId"], events[1]["eventId"]);
    assert!(sample.get("campaignId").is_none());
    activate(json!({"version": "0.2.0"})).await;
    let event = app.event(&ada, "paid", &json!({"card": "test"}));
    assert_eq!(app.ingest(&ada, &[event]).await.ok()["accepted"], 1);
}
