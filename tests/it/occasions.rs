//! Campaigns that no event fires: runs, changes of segments, and buttons. Their plugin is asked whatever events it names, and has to
//! accept them like any other (contract 8 and 12).

use nudge_records::dead_letters::{self, Letter, Stage};
use nudge_records::scheduled_work;
use serde_json::json;
use tests::{TestApp, on_both_backends};
use uuid::Uuid;

use crate::feedback::button;
use crate::guests::{decided, deploy, deploy_misbehaving, name, set_slot, trigger, version};
use crate::runs::{
    broadcast, daily, delivered, issued, next_morning, over, scheduled, set, waiting,
};
use crate::segments::{self, plan, segment};

on_both_backends!(
    a_plugin_that_names_no_event_is_asked_about_a_broadcast,
    a_plugin_that_is_named_need_not_name_the_occasion,
    a_plugin_that_names_no_event_is_asked_about_a_change_of_a_segment,
    a_plugin_that_names_no_event_is_asked_about_a_button,
    what_is_left_of_a_run_is_nothing_to_a_campaign_that_events_fire_now,
    a_letter_of_a_run_is_nothing_to_a_campaign_that_events_fire_now,
    a_slot_that_refuses_what_no_event_fires_is_refused,
);

/// Puts a plugin into the slot that reads the events that a trigger names, and fires on whatever it is asked about.
async fn fill_slot(app: &TestApp) {
    deploy(app, 1, 1).await;
    set_slot(app, &name(1)).await.ok();
}

async fn a_plugin_that_names_no_event_is_asked_about_a_broadcast(app: &mut TestApp) {
    fill_slot(app).await;
    app.people(20).await;
    broadcast(app, json!({})).await;
    over(app, 1).await;
    assert_eq!(delivered(app).await, (20, 20));
}

async fn a_plugin_that_is_named_need_not_name_the_occasion(app: &mut TestApp) {
    deploy(app, 1, 1).await;
    app.people(20).await;
    let trigger = trigger(1, json!({"events": ["purchase"]}));
    scheduled(app, json!({"trigger": trigger})).await;
    over(app, 1).await;
    assert_eq!(issued(app).await, (20, 20));
    assert_eq!(decided(app).await, vec![(name(1), version(1)); 20]);
}

async fn a_plugin_that_names_no_event_is_asked_about_a_change_of_a_segment(app: &mut TestApp) {
    fill_slot(app).await;
    let pros = segment(app, "pros", plan("pro")).await;
    app.survey(&json!({"kind": "segment", "segmentId": pros["id"], "on": "enter"}))
        .await;
    let ada = app.session("ada").await;
    segments::set(app, &ada, json!({"plan": "pro"})).await;
    app.until("ada gets it", async || issued(app).await == (1, 1))
        .await;
    assert_eq!(decided(app).await, [(name(1), version(1))]);
}

async fn a_plugin_that_names_no_event_is_asked_about_a_button(app: &mut TestApp) {
    fill_slot(app).await;
    let survey = button(app, json!({})).await;
    let ada = app.session("ada").await;
    let offered = app.offered(&ada).await;
    assert_eq!(offered[0]["campaignId"], json!(survey), "{offered}");
}

async fn what_is_left_of_a_run_is_nothing_to_a_campaign_that_events_fire_now(app: &mut TestApp) {
    fill_slot(app).await;
    next_morning(app);
    app.advance(3 * 3_600);
    app.people(20).await;
    let survey = scheduled(app, daily("subject")).await;
    // The run has begun where it is 09:00 first; these have no zone, and wait for UTC's.
    app.advance(8 * 3_600);
    app.until("they wait", async || app.count("occasions").await == 20)
        .await;
    let event = json!({"kind": "event", "eventName": "purchase", "every": null, "at": null});
    set(app, survey, json!({"mode": "triggered", "trigger": event})).await;
    app.advance(14 * 3_600);
    app.until("nobody waits", async || waiting(app).await == 0)
        .await;
    app.settle().await;
    assert_eq!(issued(app).await, (0, 0));
    let ada = app.session("ada").await;
    assert_eq!(app.fires(&ada, "purchase", &json!({})).await, 1);
}

/// Replays a letter of somebody's occasion, as if the plugin had failed on it.
async fn replay(app: &TestApp, survey: Uuid) {
    let now = app.clock.now();
    let aliases: Vec<(i64,)> = app.rows("SELECT number FROM aliases").await;
    let occasion = scheduled_work::event(survey, now);
    let letter = Letter::new(
        app.access.app_id,
        aliases[0].0,
        now,
        &occasion.event,
        Stage::Trigger,
        Some(survey),
        "trap".to_owned(),
        None,
    )
    .unwrap();
    let mut tx = app.services().db.write().await.unwrap();
    dead_letters::store::insert(&mut tx, &[&letter], now)
        .await
        .unwrap();
    tx.commit().await.unwrap();
    let path = app.path(&format!("/dead-letters/{}/replay", letter.id));
    let replayed = app.post(&path, &app.editor(), &json!({})).await.ok();
    assert_eq!(replayed["status"], "replayed");
    assert_eq!(app.count("dead_letters").await, 0);
}

async fn a_letter_of_a_run_is_nothing_to_a_campaign_that_events_fire_now(app: &mut TestApp) {
    fill_slot(app).await;
    // No run begins meanwhile.
    next_morning(app);
    app.advance(3 * 3_600);
    app.people(1).await;
    let survey = scheduled(app, daily("UTC")).await;
    replay(app, survey).await;
    assert_eq!(issued(app).await, (1, 1));

    let event = json!({"kind": "event", "eventName": "purchase", "every": null, "at": null});
    set(app, survey, json!({"mode": "triggered", "trigger": event})).await;
    app.advance(1);
    replay(app, survey).await;
    assert_eq!(issued(app).await, (1, 1));
    let ada = app.session("ada").await;
    assert_eq!(app.fires(&ada, "purchase", &json!({})).await, 1);
}

async fn a_slot_that_refuses_what_no_event_fires_is_refused(app: &mut TestApp) {
    deploy_misbehaving(app).await;
    let later = json!({"startAt": app.time(3_600)});
    let surveys = [
        button(app, json!({})).await,
        scheduled(app, json!({"schedule": later})).await,
    ];
    let push = broadcast(app, json!({"schedule": later})).await;
    let paths = surveys.map(|survey| format!("/surveys/{survey}"));
    let paths: Vec<String> = paths
        .into_iter()
        .chain([format!("/campaigns/{push}")])
        .collect();

    let refused = set_slot(app, "misbehaving").await;
    refused.refused(422, "plugin_rejected");
    let mut pointers = refused.pointers();
    pointers.sort_unstable();
    let mut expected: Vec<String> = paths.iter().map(|path| format!("{path}/mode")).collect();
    expected.sort_unstable();
    assert_eq!(pointers, expected);

    // What is in the slot is asked as they are saved.
    for path in &paths {
        let paused = json!({"status": "paused"});
        app.patch(&app.path(path), &app.editor(), &paused)
            .await
            .ok();
    }
    set_slot(app, "misbehaving").await.ok();
    for path in &paths {
        let active = json!({"status": "active"});
        let answer = app.patch(&app.path(path), &app.editor(), &active).await;
        answer.refused(422, "validation_failed");
        assert_eq!(answer.pointers(), ["/mode"], "{path}");
    }
    let body = json!({
        "name": "News", "type": "push", "mode": "broadcast", "status": "active", "schedule": later,
        "variants": [{"title": "Hello", "body": "There is news"}],
    });
    let answer = app
        .post(&app.path("/campaigns"), &app.editor(), &body)
        .await;
    answer.refused(422, "validation_failed");
}
