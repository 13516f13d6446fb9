//! What a plugin keeps of a person is no other plugin's: where another one decides later, it begins anew (contract 12).

use serde_json::{Value, json};
use tests::{TestApp, on_both_backends};
use uuid::Uuid;

use crate::guests::{
    activate, deploy, deploy_misbehaving, hoard, name, set_slot, trigger, upload, version,
    versioned,
};
use crate::identity::Backend;
use crate::plugin_candidates::{from, send, until};

on_both_backends!(
    what_a_slots_plugin_keeps_is_nothing_to_the_built_in_one,
    what_the_built_in_plugin_keeps_waits_until_it_decides_again,
    a_delay_that_waits_while_a_slot_is_taken_is_over_without_a_firing,
    a_plugin_that_is_named_later_finds_nothing_of_the_one_before,
    versions_of_a_plugin_share_what_they_keep,
    a_plugin_that_is_rolled_back_leaves_nothing_to_the_built_in_one,
    what_an_earlier_version_of_the_server_kept_is_passed_on,
    of_states_of_two_plugins_a_merge_keeps_the_later_one,
    a_letter_of_another_plugins_timer_is_decided_by_nobody,
);

/// A version of [`versioned`] that keeps its number as a state, and sets a timer for an hour later.
const KEEPS: u32 = 800_001;
/// One that breaks down over bad events besides.
const FAILS: u32 = 950_001;
/// Just longer than what it sets.
const HOUR: u64 = 3601;

async fn empty_slot(app: &TestApp) {
    let slot = app.path("/plugin-slots/trigger");
    app.delete(&slot, &app.admin()).await.data(204);
}

async fn patch(app: &TestApp, survey: Uuid, trigger: Value) {
    let path = app.path(&format!("/surveys/{survey}"));
    let change = json!({"trigger": trigger});
    app.patch(&path, &app.editor(), &change).await.ok();
}

/// How many events and timers plugins have decided about.
async fn decided_about(app: &TestApp) -> u64 {
    app.settle().await;
    let path = app.path("/decisions?limit=200");
    let page = app.get(&path, &app.viewer()).await.ok();
    assert_eq!(page["nextCursor"], Value::Null);
    let decisions = page["items"].as_array().unwrap().iter();
    decisions
        .map(|decision| decision["items"].as_u64().unwrap())
        .sum()
}

/// Lets all timers fall due; answers about how many of them a plugin has decided, and how many have fired.
async fn fall_due(app: &TestApp) -> (u64, usize) {
    let before = (decided_about(app).await, app.count("instructions").await);
    app.advance(HOUR);
    app.until("the timers are over", async || {
        app.count("timers").await == 0
    })
    .await;
    let after = (decided_about(app).await, app.count("instructions").await);
    (after.0 - before.0, after.1 - before.1)
}

/// The plugins that keep a state, and the states.
async fn states(app: &TestApp) -> Vec<(Option<String>, Vec<u8>)> {
    app.settle().await;
    app.rows("SELECT plugin, state FROM plugin_states").await
}

/// The plugins that have set timers, and the timers' keys.
async fn timers(app: &TestApp) -> Vec<(Option<String>, String)> {
    app.settle().await;
    app.rows("SELECT plugin, key FROM timers ORDER BY key")
        .await
}

fn counts(n: u32) -> Value {
    json!({"kind": "event", "eventName": "a", "occurrence": {"mode": "nth", "n": n}})
}

async fn what_a_slots_plugin_keeps_is_nothing_to_the_built_in_one(app: &mut TestApp) {
    deploy(app, 1, KEEPS).await;
    set_slot(app, &name(1)).await.ok();
    app.survey(&counts(2)).await;
    let ada = app.session("ada").await;
    let fires = async || app.fires(&ada, "a", &json!({})).await;
    assert_eq!(fires().await, 1);
    let kept = (Some(name(1)), from(KEEPS).to_string().into_bytes());
    assert_eq!(states(app).await, [kept]);
    assert_eq!(timers(app).await, [(Some(name(1)), "later".to_owned())]);

    empty_slot(app).await;
    let three = [fires().await, fires().await, fires().await];
    assert_eq!(three, [0, 1, 0]);
    let owners: Vec<_> = states(app).await.into_iter().map(|it| it.0).collect();
    assert_eq!(owners, [Some("default-trigger".to_owned())]);
    assert_eq!(fall_due(app).await, (0, 0));
}

async fn what_the_built_in_plugin_keeps_waits_until_it_decides_again(app: &mut TestApp) {
    deploy(app, 1, 1).await;
    app.survey(&counts(3)).await;
    let ada = app.session("ada").await;
    let fires = async || app.fires(&ada, "a", &json!({})).await;
    assert_eq!((fires().await, fires().await), (0, 0));
    let kept = states(app).await;
    set_slot(app, &name(1)).await.ok();
    assert_eq!((fires().await, fires().await), (1, 1));
    assert_eq!(states(app).await, kept);
    empty_slot(app).await;
    assert_eq!((fires().await, fires().await), (1, 0));
}

async fn a_delay_that_waits_while_a_slot_is_taken_is_over_without_a_firing(app: &mut TestApp) {
    deploy(app, 1, 1).await;
    let waits = json!({"kind": "event", "eventName": "a", "delaySeconds": 3600});
    app.survey(&waits).await;
    let ada = app.session("ada").await;
    assert_eq!(app.fires(&ada, "a", &json!({})).await, 0);
    set_slot(app, &name(1)).await.ok();
    assert_eq!(fall_due(app).await, (0, 0));

    // Given back before a delay is over, nothing is lost.
    empty_slot(app).await;
    assert_eq!(app.fires(&ada, "a", &json!({})).await, 0);
    set_slot(app, &name(1)).await.ok();
    empty_slot(app).await;
    assert_eq!(fall_due(app).await, (1, 1));
}

async fn a_plugin_that_is_named_later_finds_nothing_of_the_one_before(app: &mut TestApp) {
    deploy(app, 1, 1).await;
    deploy_misbehaving(app).await;
    let keeps = trigger(1, json!({"events": ["a"], "keeps": from(1)}));
    let survey = app.survey(&keeps).await;
    let ada = app.session("ada").await;
    app.fires(&ada, "a", &json!({})).await;

    // It sets as many timers as it is told, with keys from the length of its state on.
    let breeds = json!({"plugin": "misbehaving", "config": {"mode": "breed:2"}});
    patch(app, survey, breeds).await;
    app.fires(&ada, "a", &json!({})).await;
    let other = Some("misbehaving".to_owned());
    assert_eq!(states(app).await, [(other.clone(), vec![0; 2])]);
    let set = [
        (other.clone(), "0".to_owned()),
        (other, "1".to_owned()),
        (Some(name(1)), "later".to_owned()),
    ];
    assert_eq!(timers(app).await, set);

    patch(app, survey, json!({"plugin": name(1)})).await;
    assert_eq!(fall_due(app).await, (1, 0));
}

async fn versions_of_a_plugin_share_what_they_keep(app: &mut TestApp) {
    deploy(app, 1, 1).await;
    let keeps = trigger(1, json!({"events": ["a"], "keeps": from(2)}));
    app.survey(&keeps).await;
    deploy(app, 1, 2).await;
    let ada = app.session("ada").await;
    app.fires(&ada, "a", &json!({})).await;
    let path = app.path(&format!("/plugins/{}/rollback", name(1)));
    app.post(&path, &app.admin(), &json!({})).await.ok();
    assert_eq!(timers(app).await, [(Some(name(1)), "later".to_owned())]);
    assert_eq!(fall_due(app).await, (1, 0));
}

async fn a_plugin_that_is_rolled_back_leaves_nothing_to_the_built_in_one(app: &mut TestApp) {
    upload(app, versioned(1, FAILS)).await.data(201);
    let parts = json!({"version": version(FAILS), "slot": true});
    activate(app, 1, parts).await.ok();
    app.survey(&counts(2)).await;
    let (ada, bob) = (app.session("ada").await, app.session("bob").await);
    send(app, &ada, 1, "a", false).await;
    assert_eq!(timers(app).await.len(), 1);
    send(app, &bob, 20, "a", true).await;
    until(app, 1, |plugin| plugin["activeVersion"].is_null()).await;

    let fires = async || app.fires(&ada, "a", &json!({})).await;
    assert_eq!((fires().await, fires().await), (0, 1));
    assert_eq!(fall_due(app).await, (0, 0));
}

/// The plugin of a row that a server of an earlier version wrote is not known.
async fn what_an_earlier_version_of_the_server_kept_is_passed_on(app: &mut TestApp) {
    deploy(app, 1, 1).await;
    app.survey(&counts(3)).await;
    let ada = app.session("ada").await;
    let fires = async || app.fires(&ada, "a", &json!({})).await;
    assert_eq!((fires().await, fires().await), (0, 0));
    app.survey(&json!({"kind": "event", "eventName": "b", "delaySeconds": 3600}))
        .await;
    app.fires(&ada, "b", &json!({})).await;
    app.settle().await;
    let mut tx = app.services().db.write().await.unwrap();
    for text in [
        "UPDATE plugin_states SET plugin = NULL",
        "UPDATE timers SET plugin = NULL",
    ] {
        tx.sql(text).execute().await.unwrap();
    }
    tx.commit().await.unwrap();
    app.restart().await;
    let ada = app.session("ada").await;
    assert_eq!(app.fires(&ada, "a", &json!({})).await, 1);
    set_slot(app, &name(1)).await.ok();
    assert_eq!(fall_due(app).await.0, 1);
}

async fn of_states_of_two_plugins_a_merge_keeps_the_later_one(app: &mut TestApp) {
    deploy(app, 1, 1).await;
    hoard(app).await;
    let hoards = json!({"kind": "plugin", "plugin": "hoarder", "config": {"event": "b"}});
    let keeps = trigger(1, json!({"event": "b", "events": ["b"], "keeps": from(1)}));
    let survey = app.survey(&hoards).await;
    let backend = Backend::new(app).await;
    let phone = backend.identify(app, "phone", "e-1").await;
    app.fires(&phone, "b", &json!({"state": 3})).await;
    app.advance(60);
    patch(app, survey, keeps).await;
    let web = app.session("web").await;
    app.fires(&web, "b", &json!({})).await;
    assert_eq!(states(app).await.len(), 2);

    backend.identify(app, "web", "e-1").await;
    let kept = (Some(name(1)), from(1).to_string().into_bytes());
    assert_eq!(states(app).await, [kept]);
    assert_eq!(app.count("plugin_states WHERE merged IS NOT NULL").await, 0);
    let entries = app.audited("person.merged").await;
    assert_eq!(entries[0]["detail"]["dropped"]["pluginStates"], 1);
    assert_eq!(fall_due(app).await, (1, 0));
}

async fn a_letter_of_another_plugins_timer_is_decided_by_nobody(app: &mut TestApp) {
    deploy_misbehaving(app).await;
    deploy(app, 1, 1).await;
    let behaves = |mode: &str| {
        let config = json!({"mode": mode, "events": ["none"]});
        json!({"kind": "plugin", "plugin": "misbehaving", "config": config})
    };
    let survey = app.survey(&behaves("fine")).await;
    let ada = app.session("ada").await;
    assert_eq!(app.fires(&ada, "paid", &json!({"amount": 20})).await, 1);
    patch(app, survey, behaves("trap")).await;
    app.advance(2);
    app.until("the timer has failed", async || {
        app.count("dead_letters").await == 1
    })
    .await;

    patch(app, survey, json!({"plugin": name(1)})).await;
    let before = decided_about(app).await;
    let letters: Vec<(Uuid,)> = app.rows("SELECT id FROM dead_letters").await;
    let replay = app.path(&format!("/dead-letters/{}/replay", letters[0].0));
    let data = app.post(&replay, &app.editor(), &json!({})).await.ok();
    assert_eq!(data["status"], "replayed");
    assert_eq!(decided_about(app).await, before);
    assert_eq!(app.count("dead_letters").await, 0);
}
