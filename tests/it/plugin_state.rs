//! What plugins keep of a person, and how much of it there may be (contract 12).

use serde_json::{Value, json};
use tests::{Session, TestApp, on_both_backends};
use uuid::Uuid;

use crate::guests::{deploy, hoard, trigger};
use crate::identity::Backend;

on_both_backends!(
    states_and_timers_are_shown_by_campaign,
    a_state_that_is_json_is_shown_as_json,
    an_erased_person_is_new_to_campaigns,
    nobody_and_strangers_are_not_found,
    states_fill_their_room_and_no_more,
    a_share_is_left_to_whoever_comes_later,
    timers_fill_their_room_and_no_more,
    what_is_refused_can_be_replayed,
    what_is_refused_at_the_beginning_of_a_session_can_be_replayed,
    of_two_timers_of_one_key_the_one_that_was_set_last_stays,
    what_plugins_give_up_is_gone_and_nothing_else,
);

fn path(app: &TestApp, person: &str) -> String {
    app.path(&format!("/users/{person}/plugin-state"))
}

async fn kept(app: &TestApp, person: &str) -> Value {
    app.settle().await;
    app.get(&path(app, person), &app.viewer()).await.ok()
}

async fn states_and_timers_are_shown_by_campaign(app: &mut TestApp) {
    let ada = app.session("ada").await;
    assert_eq!(
        kept(app, "ada").await,
        json!({"matchedBy": "anonymousId", "campaigns": [], "stateBytes": 0, "timers": 0})
    );
    let counts = app
        .survey(&json!({"kind": "event", "eventName": "a", "occurrence": {"mode": "nth", "n": 9}}))
        .await;
    let waits = app
        .survey(&json!({"kind": "event", "eventName": "a", "delaySeconds": 3600}))
        .await;
    app.fires(&ada, "a", &json!({})).await;

    let data = kept(app, "ada").await;
    let campaigns = data["campaigns"].as_array().unwrap();
    assert_eq!(campaigns.len(), 2, "{data}");
    assert_eq!(campaigns[0]["campaignId"], json!(counts));
    assert!(campaigns[0]["state"].is_string() && campaigns[0]["updatedAt"].is_string());
    assert!(campaigns[0]["bytes"].as_u64().unwrap() > 0);
    assert_eq!(campaigns[0]["timers"], json!([]));
    assert_eq!(campaigns[1]["campaignId"], json!(waits));
    let timer = &campaigns[1]["timers"][0];
    assert!(timer["key"].is_string() && timer["bytes"].is_u64());
    let due = timer["dueAt"].as_str().unwrap();
    assert!(app.time(3500).as_str() < due && due <= app.time(3600).as_str());
    assert_eq!(data["timers"], 1);
}

async fn a_state_that_is_json_is_shown_as_json(app: &mut TestApp) {
    deploy(app, 1, 1).await;
    hoard(app).await;
    app.survey(&trigger(1, json!({"events": ["a"], "keeps": 1})))
        .await;
    hoarder(app, "b").await;
    let ada = app.session("ada").await;
    app.fires(&ada, "a", &json!({})).await;
    app.fires(&ada, "b", &json!({"state": 3})).await;
    let data = kept(app, "ada").await;
    let campaigns = data["campaigns"].as_array().unwrap();
    assert_eq!(campaigns[0]["stateJson"], json!(1_000_001));
    // Three bytes that are no JSON.
    assert_eq!(campaigns[1]["state"], "AQEB");
    assert!(campaigns[1].get("stateJson").is_none(), "{data}");
}

async fn an_erased_person_is_new_to_campaigns(app: &mut TestApp) {
    let (ada, bob) = (app.session("ada").await, app.session("bob").await);
    app.survey(&json!({"kind": "event", "eventName": "a", "occurrence": {"mode": "once"}}))
        .await;
    app.survey(&json!({"kind": "event", "eventName": "b", "delaySeconds": 60}))
        .await;
    for session in [&ada, &bob] {
        assert_eq!(app.fires(session, "a", &json!({})).await, 1);
        assert_eq!(app.fires(session, "b", &json!({})).await, 0);
    }
    assert_eq!(app.fires(&ada, "a", &json!({})).await, 0);
    let of_bob = kept(app, "bob").await;

    let erased = app.delete(&path(app, "ada"), &app.admin()).await;
    erased.data(204);
    assert_eq!(kept(app, "ada").await["campaigns"], json!([]));
    assert_eq!(kept(app, "bob").await, of_bob);
    assert_eq!(app.fires(&ada, "a", &json!({})).await, 1);
    app.advance(61);
    assert_eq!(app.fires(&ada, "other", &json!({})).await, 0);

    let entries: Vec<(String, String, String)> = app
        .rows("SELECT action, resource, detail FROM audit_log WHERE action LIKE 'plugin_state%'")
        .await;
    assert_eq!(entries.len(), 1);
    assert_eq!(entries[0].0, "plugin_state.erased");
    assert!(!entries[0].1.contains(&ada.subject_id) && !entries[0].1.contains("ada"));
    let detail: Value = serde_json::from_str(&entries[0].2).unwrap();
    assert_eq!(detail["timers"], 1);
}

async fn nobody_and_strangers_are_not_found(app: &mut TestApp) {
    app.session("ada").await;
    for person in ["nobody", "%00", "%F0%9F%A6%80"] {
        app.get(&path(app, person), &app.viewer())
            .await
            .refused(404, "not_found");
    }
    let workspace = app.access.workspace_id;
    let (other, _) = app
        .another_app(workspace, nudge_apps::key::Kind::Write, &[])
        .await;
    let path = format!("/v1/apps/{other}/users/ada/plugin-state");
    app.get(&path, &app.viewer())
        .await
        .refused(404, "not_found");
    app.delete(&path, &app.admin())
        .await
        .refused(404, "not_found");
}

/// A campaign whose plugin stores `state` bytes and sets `timers` timers for every event of this name.
async fn hoarder(app: &TestApp, event: &str) -> Uuid {
    app.survey(&json!({"kind": "plugin", "plugin": "hoarder", "config": {"event": event}}))
        .await
}

/// Asks for so much; answers whether it was granted, by what fires.
async fn asks(app: &TestApp, session: &Session, event: &str, what: Value) -> bool {
    app.fires(session, event, &what).await == 1
}

async fn letters(app: &TestApp) -> Vec<(String, String)> {
    app.settle().await;
    app.rows("SELECT stage, reason FROM dead_letters").await
}

async fn states_fill_their_room_and_no_more(app: &mut TestApp) {
    hoard(app).await;
    let (ada, bob) = (app.session("ada").await, app.session("bob").await);
    // Sixteen campaigns of 4 KiB are 64 KiB.
    for number in 0..17 {
        hoarder(app, &format!("event_{number}")).await;
    }
    for number in 0..15 {
        assert!(
            asks(
                app,
                &ada,
                &format!("event_{number}"),
                json!({"state": 4096})
            )
            .await
        );
    }
    assert!(asks(app, &ada, "event_15", json!({"state": 4096})).await);
    assert_eq!(kept(app, "ada").await["stateBytes"], 65536);
    // One more has a seventeenth as its share, and not a byte more.
    assert!(!asks(app, &ada, "event_16", json!({"state": 65536 / 17 + 1})).await);
    assert_eq!(
        letters(app).await,
        [("trigger".to_owned(), "refused".to_owned())]
    );
    let data = kept(app, "ada").await;
    assert_eq!(data["stateBytes"], 65536);
    assert_eq!(data["campaigns"].as_array().unwrap().len(), 16);
    assert!(asks(app, &ada, "event_16", json!({"state": 65536 / 17})).await);
    // Whoever has more than a share may keep it or give it up, not write more.
    assert!(asks(app, &ada, "event_0", json!({"state": 4096})).await);
    assert!(asks(app, &ada, "event_0", json!({"state": 100})).await);
    assert!(asks(app, &ada, "event_16", json!({"state": 3996})).await);
    assert!(!asks(app, &ada, "event_16", json!({"state": 3997})).await);
    // Another person's room is another room.
    assert!(asks(app, &bob, "event_0", json!({"state": 4096})).await);
    assert_eq!(letters(app).await.len(), 2);
}

async fn a_share_is_left_to_whoever_comes_later(app: &mut TestApp) {
    hoard(app).await;
    let ada = app.session("ada").await;
    for number in 0..16 {
        hoarder(app, &format!("event_{number}")).await;
        assert!(
            asks(
                app,
                &ada,
                &format!("event_{number}"),
                json!({"state": 4096})
            )
            .await
        );
    }
    let occurrence = json!({"mode": "every_nth", "n": 2});
    app.survey(&json!({"kind": "event", "eventName": "late", "occurrence": occurrence}))
        .await;
    assert_eq!(app.fires(&ada, "late", &json!({})).await, 0);
    assert_eq!(app.fires(&ada, "late", &json!({})).await, 1);
    assert!(letters(app).await.is_empty());
}

async fn timers_fill_their_room_and_no_more(app: &mut TestApp) {
    hoard(app).await;
    let ada = app.session("ada").await;
    for number in 0..5 {
        hoarder(app, &format!("event_{number}")).await;
    }
    // Four campaigns of 64 timers are 256.
    for number in 0..4 {
        assert!(asks(app, &ada, &format!("event_{number}"), json!({"timers": 64})).await);
    }
    assert_eq!(kept(app, "ada").await["timers"], 256);
    assert!(!asks(app, &ada, "event_4", json!({"timers": 256 / 5 + 1})).await);
    assert_eq!(kept(app, "ada").await["timers"], 256);
    assert!(asks(app, &ada, "event_4", json!({"timers": 256 / 5})).await);
    // Setting the same again takes no room.
    assert!(asks(app, &ada, "event_0", json!({"timers": 64})).await);
    assert_eq!(letters(app).await.len(), 1);
}

async fn what_is_refused_can_be_replayed(app: &mut TestApp) {
    hoard(app).await;
    let ada = app.session("ada").await;
    for number in 0..17 {
        hoarder(app, &format!("event_{number}")).await;
        let granted = asks(
            app,
            &ada,
            &format!("event_{number}"),
            json!({"state": 4096}),
        )
        .await;
        assert_eq!(granted, number < 16);
    }
    let found: Vec<(Uuid,)> = app.rows("SELECT id FROM dead_letters").await;
    let replay = app.path(&format!("/dead-letters/{}/replay", found[0].0));
    let data = app.post(&replay, &app.editor(), &json!({})).await.ok();
    assert_eq!(data["status"], "still_failing");
    app.delete(&path(app, "ada"), &app.admin()).await.data(204);
    let data = app.post(&replay, &app.editor(), &json!({})).await.ok();
    assert_eq!(data["status"], "replayed");
    assert_eq!(kept(app, "ada").await["stateBytes"], 4096);
}

async fn what_is_refused_at_the_beginning_of_a_session_can_be_replayed(app: &mut TestApp) {
    hoard(app).await;
    let ada = app.session("ada").await;
    for number in 0..16 {
        let event = format!("event_{number}");
        hoarder(app, &event).await;
        assert!(asks(app, &ada, &event, json!({"state": 4096})).await);
    }
    hoarder(app, "$session_began").await;
    app.advance(31 * 60);
    assert!(!asks(app, &ada, "visit", json!({"state": 4096})).await);
    assert_eq!(
        letters(app).await,
        [("trigger".to_owned(), "refused".to_owned())]
    );
    let found: Vec<(Uuid, String)> = app.rows("SELECT id, detail FROM dead_letters").await;
    assert!(found[0].1.contains("of this person"), "{}", found[0].1);
    app.delete(&path(app, "ada"), &app.admin()).await.data(204);
    let replay = app.path(&format!("/dead-letters/{}/replay", found[0].0));
    let data = app.post(&replay, &app.editor(), &json!({})).await.ok();
    assert_eq!(data["status"], "replayed");
    assert_eq!(kept(app, "ada").await["stateBytes"], 4096);
}

async fn of_two_timers_of_one_key_the_one_that_was_set_last_stays(app: &mut TestApp) {
    hoard(app).await;
    hoarder(app, "b").await;
    let backend = Backend::new(app).await;
    for (person, device, web_is_last) in [("e-1", "web-1", true), ("e-2", "web-2", false)] {
        let phone = backend.identify(app, person, person).await;
        let web = app.session(device).await;
        let (first, last) = if web_is_last {
            (&phone, &web)
        } else {
            (&web, &phone)
        };
        app.fires(first, "b", &json!({"timers": 2})).await;
        app.advance(60);
        app.fires(last, "b", &json!({"timers": 1})).await;
        app.settle().await;

        let merged = backend.identify(app, device, person).await;
        let data = kept(app, device).await;
        let timers = data["campaigns"][0]["timers"].as_array().unwrap();
        let mut timers: Vec<(&str, &str)> = timers
            .iter()
            .map(|timer| {
                (
                    timer["key"].as_str().unwrap(),
                    timer["dueAt"].as_str().unwrap(),
                )
            })
            .collect();
        timers.sort_unstable();
        let keys: Vec<&str> = timers.iter().map(|(key, _)| *key).collect();
        assert_eq!(keys, ["0", "1"], "{data}");
        assert!(timers[0].1 > timers[1].1, "{data}");
        let entries = app.audited("person.merged").await;
        assert_eq!(entries[0]["detail"]["dropped"]["pluginTimers"], 1);
        // The plugin sets it in place of the one that is there.
        app.fires(&merged, "b", &json!({"timers": 1})).await;
        assert_eq!(kept(app, device).await["timers"], 2);
    }
}

async fn what_plugins_give_up_is_gone_and_nothing_else(app: &mut TestApp) {
    hoard(app).await;
    for event in ["a", "b"] {
        hoarder(app, event).await;
    }
    let people = [
        app.session("ada").await,
        app.session("bob").await,
        app.session("eve").await,
    ];
    for session in &people {
        for event in ["a", "b"] {
            assert!(asks(app, session, event, json!({"state": 10, "timers": 3})).await);
        }
    }
    let of_eve = kept(app, "eve").await;
    let drops = json!({"drops": 2});
    let (ada, bob) = tokio::join!(
        asks(app, &people[0], "a", drops.clone()),
        asks(app, &people[1], "a", drops)
    );
    assert!(ada && bob);
    for person in ["ada", "bob"] {
        let data = kept(app, person).await;
        assert_eq!(
            (&data["stateBytes"], &data["timers"]),
            (&json!(10), &json!(4))
        );
        let campaigns = data["campaigns"].as_array().unwrap();
        let dropped = campaigns.iter().find(|it| it.get("state").is_none());
        let timers = dropped.unwrap()["timers"].as_array().unwrap();
        let keys: Vec<&Value> = timers.iter().map(|timer| &timer["key"]).collect();
        assert_eq!(keys, ["2"], "{data}");
    }
    assert_eq!(kept(app, "eve").await, of_eve);
}
