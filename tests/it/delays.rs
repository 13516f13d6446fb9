//! Delayed firings: timers, their cancellation, and their survival (contract 8).

use std::time::Duration;

use nudge_pipeline::{Room, Size};
use serde_json::{Value, json};
use tests::{Session, TestApp, on_both_backends};
use uuid::Uuid;

use crate::identity::Backend;
use crate::runs::{issued, over, scheduled};

on_both_backends!(
    a_delayed_firing_appears_when_it_is_due,
    a_delayed_firing_survives_a_restart,
    a_firing_that_fell_due_while_the_server_was_down_is_made_up_for,
    a_cancelling_event_cancels_what_waits,
    a_cancelling_event_must_match_its_filters,
    a_paused_survey_does_not_fire_what_falls_due,
    a_survey_that_no_longer_waits_does_not_fire_what_falls_due,
    what_waited_of_events_does_not_fire_once_the_calendar_does,
    what_waited_is_removed_if_its_event_is_gone,
    what_arrived_in_time_cancels_though_it_is_processed_late,
    what_arrived_in_time_cancels_under_another_alias,
    what_arrived_in_time_cancels_what_another_alias_began,
    what_arrived_in_time_cancels_after_a_merge,
    what_arrived_in_time_cancels_though_its_process_is_gone,
    what_arrived_in_time_comes_before_a_run,
    what_arrived_late_cancels_nothing_that_was_due,
    what_arrived_late_cancels_nothing_though_a_merge_lies_between,
    what_arrived_late_cancels_nothing_of_its_own_batch,
    as_many_firings_wait_as_there_are,
    firings_of_two_who_merge_wait_on,
    a_delay_of_a_run_is_cancelled_by_an_event,
);

/// A trigger that waits for a few seconds, and what cancels it.
fn short() -> Value {
    json!({"kind": "event", "eventName": "cart_updated", "delaySeconds": 3, "cancelOn": [{"eventName": "purchase"}]})
}

/// All of the pipeline's memory: what arrives meanwhile is committed, and processed by nobody.
async fn hold(app: &TestApp) -> Room {
    app.settle().await;
    let everything = Size::new(usize::MAX, usize::MAX);
    let pipeline = &app.services().pipeline;
    pipeline.wait_for_room(everything).await.unwrap()
}

/// Sends an event that is only committed.
async fn leave(app: &TestApp, session: &Session, name: &str) {
    let event = app.event(session, name, &json!({}));
    assert_eq!(app.ingest(session, &[event]).await.ok()["accepted"], 1);
}

/// A process that is taken for alive for a while yet.
async fn another_process(app: &TestApp) -> Uuid {
    let node = app.id();
    let mut tx = app.services().db.write().await.unwrap();
    tx.sql("INSERT INTO nodes (id, started_at, heartbeat_at) VALUES ($1, $2, $2)")
        .bind(node)
        .bind(app.clock.now())
        .execute()
        .await
        .unwrap();
    tx.commit().await.unwrap();
    node
}

/// Gives all rows of a table to another process.
async fn give(app: &TestApp, change: &'static str, rows: u64) {
    let node = another_process(app).await;
    let mut tx = app.services().db.write().await.unwrap();
    let given = tx.sql(change).bind(node).execute().await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(given, rows);
}

async fn offered(app: &TestApp, session: &Session) -> usize {
    app.offered(session).await.as_array().unwrap().len()
}

/// Polls until something is offered.
async fn appears(app: &TestApp, session: &Session) -> Value {
    let mut polled = app.poll(session, "?wait=20").await.ok();
    polled["items"].take()
}

/// As long as the pipeline takes to find that something is due, several times over.
async fn a_while() {
    tokio::time::sleep(Duration::from_millis(600)).await;
}

async fn delayed(app: &TestApp, more: Value) -> (uuid::Uuid, Session) {
    let mut trigger = json!({"kind": "event", "eventName": "cart_updated", "delaySeconds": 3600});
    trigger
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    let survey = app.survey(&trigger).await;
    let session = app.session("ada").await;
    assert_eq!(app.fires(&session, "cart_updated", &json!({})).await, 0);
    (survey, session)
}

async fn a_delayed_firing_appears_when_it_is_due(app: &mut TestApp) {
    let (_, ada) = delayed(app, json!({})).await;
    app.advance(3500);
    a_while().await;
    assert_eq!(offered(app, &ada).await, 0);

    app.advance(101);
    let items = appears(app, &ada).await;
    assert_eq!(items.as_array().unwrap().len(), 1);
    assert_eq!(items[0]["trigger"]["name"], "cart_updated");
    a_while().await;
    assert_eq!(offered(app, &ada).await, 1);
}

async fn a_delayed_firing_survives_a_restart(app: &mut TestApp) {
    let (_, ada) = delayed(app, json!({})).await;
    app.restart().await;
    app.advance(3500);
    app.restart().await;
    assert_eq!(offered(app, &ada).await, 0);

    app.advance(101);
    assert_eq!(appears(app, &ada).await.as_array().unwrap().len(), 1);
    app.restart().await;
    a_while().await;
    assert_eq!(offered(app, &ada).await, 1);
}

async fn a_firing_that_fell_due_while_the_server_was_down_is_made_up_for(app: &mut TestApp) {
    let (_, ada) = delayed(app, json!({})).await;
    app.stop().await;
    app.advance(2 * 3600);
    app.resume().await;
    assert_eq!(appears(app, &ada).await.as_array().unwrap().len(), 1);
}

async fn a_cancelling_event_cancels_what_waits(app: &mut TestApp) {
    let (_, ada) = delayed(app, json!({"cancelOn": [{"eventName": "purchase"}]})).await;
    app.fires(&ada, "purchase", &json!({})).await;
    app.advance(3601);
    a_while().await;
    assert_eq!(offered(app, &ada).await, 0);

    app.fires(&ada, "cart_updated", &json!({})).await;
    app.advance(3601);
    assert_eq!(appears(app, &ada).await.as_array().unwrap().len(), 1);
}

async fn a_cancelling_event_must_match_its_filters(app: &mut TestApp) {
    let leaf = json!({"property": "total", "type": "number", "operator": "gt", "value": 10});
    let cancel = json!([{"eventName": "purchase", "filters": {"all": [leaf]}}]);
    let (_, ada) = delayed(app, json!({"cancelOn": cancel})).await;
    app.fires(&ada, "purchase", &json!({"total": 5})).await;
    let bob = app.session("bob").await;
    app.fires(&bob, "purchase", &json!({"total": 50})).await;

    app.advance(3601);
    assert_eq!(appears(app, &ada).await.as_array().unwrap().len(), 1);
}

async fn a_paused_survey_does_not_fire_what_falls_due(app: &mut TestApp) {
    let (survey, ada) = delayed(app, json!({})).await;
    let path = app.path(&format!("/surveys/{survey}"));
    app.patch(&path, &app.editor(), &json!({"status": "paused"}))
        .await
        .ok();
    app.advance(3601);
    app.until("no timer waits", async || app.count("timers").await == 0)
        .await;
    assert_eq!(app.count("instructions").await, 0);

    app.patch(&path, &app.editor(), &json!({"status": "active"}))
        .await
        .ok();
    app.settle().await;
    assert_eq!(offered(app, &ada).await, 0);
}

async fn a_survey_that_no_longer_waits_does_not_fire_what_falls_due(app: &mut TestApp) {
    let (linked, ada) = delayed(app, json!({})).await;
    let (button, _) = delayed(app, json!({})).await;
    for (survey, change) in [
        (linked, json!({"mode": "link_only"})),
        (
            button,
            json!({"settings": {"presentation": "feedback_button"}}),
        ),
    ] {
        let path = app.path(&format!("/surveys/{survey}"));
        app.patch(&path, &app.editor(), &change).await.ok();
    }
    app.advance(3601);
    let done = async || app.count("timers").await == 0;
    app.until("both are due", done).await;
    let offered = app.offered(&ada).await;
    let kinds: Vec<&Value> = offered
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["kind"])
        .collect();
    assert_eq!(kinds, ["feedback"]);
}

/// A campaign that its calendar fires goes to its audience once a run, also to whom an event had it wait for.
async fn what_waited_of_events_does_not_fire_once_the_calendar_does(app: &mut TestApp) {
    let quiet = app.an_hour_of_quiet("defer");
    let at_once = json!({"kind": "event", "eventName": "cart_updated"});
    let later = json!({"kind": "event", "eventName": "cart_updated", "delaySeconds": 3_600});
    let asleep = json!({"timezone": "UTC", "quietHours": quiet});
    let mut campaigns = Vec::new();
    for parts in [
        json!({"trigger": later}),
        json!({"trigger": at_once, "schedule": asleep}),
    ] {
        campaigns.push(app.campaign(&parts).await);
    }
    let survey = app.survey(&later).await;
    let ada = app.session("ada").await;
    app.fires(&ada, "cart_updated", &json!({})).await;
    app.settle().await;
    let waiting = (app.count("timers").await, app.count("occasions").await);
    assert_eq!(waiting, (2, 1));

    let plan = json!({"startAt": app.time(3 * 3_600), "quietHours": null});
    for campaign in campaigns {
        let path = app.path(&format!("/campaigns/{campaign}"));
        let change = json!({"mode": "broadcast", "schedule": plan});
        app.patch(&path, &app.editor(), &change).await.ok();
    }
    let path = app.path(&format!("/surveys/{survey}"));
    let trigger = json!({"kind": "schedule", "eventName": null, "delaySeconds": null});
    let change = json!({"mode": "scheduled", "trigger": trigger, "schedule": plan});
    app.patch(&path, &app.editor(), &change).await.ok();
    app.advance(2 * 3_600);
    let over = async || app.count("timers").await + app.count("occasions").await == 0;
    app.until("what waited is due", over).await;
    assert_eq!(app.count("deliveries").await, 0);
    assert_eq!(offered(app, &ada).await, 0);

    app.advance(3_600);
    app.until("the runs begin", async || {
        app.count("deliveries").await == 2
    })
    .await;
    assert_eq!(appears(app, &ada).await.as_array().unwrap().len(), 1);
}

/// There is nothing left of which it could be decided what it says, and whose.
async fn what_waited_is_removed_if_its_event_is_gone(app: &mut TestApp) {
    let quiet = app.an_hour_of_quiet("defer");
    app.campaign(&json!({
        "trigger": {"kind": "event", "eventName": "cart_updated"},
        "schedule": {"timezone": "UTC", "quietHours": quiet},
    }))
    .await;
    let (_, ada) = delayed(app, json!({})).await;
    app.settle().await;
    let waiting = (app.count("timers").await, app.count("occasions").await);
    assert_eq!(waiting, (1, 1));

    let mut tx = app.services().db.write().await.unwrap();
    tx.sql("DELETE FROM events").execute().await.unwrap();
    tx.commit().await.unwrap();
    app.advance(2 * 3_600);
    let over = async || app.count("timers").await + app.count("occasions").await == 0;
    app.until("what waited is removed", over).await;
    assert_eq!(app.count("deliveries").await, 0);
    assert_eq!(offered(app, &ada).await, 0);
}

/// What was acknowledged before the firing was due is processed first, also where both are found after a stop.
async fn what_arrived_in_time_cancels_though_it_is_processed_late(app: &mut TestApp) {
    app.survey(&short()).await;
    let ada = app.session("ada").await;
    app.fires(&ada, "cart_updated", &json!({})).await;
    let bob = app.session("bob").await;
    app.fires(&bob, "cart_updated", &json!({})).await;
    let room = hold(app).await;
    app.advance(2);
    leave(app, &ada, "purchase").await;
    leave(app, &bob, "view").await;
    app.advance(8);
    app.stop().await;
    drop(room);
    app.resume().await;
    app.settle().await;

    assert_eq!(appears(app, &bob).await.as_array().unwrap().len(), 1);
    a_while().await;
    assert_eq!(offered(app, &ada).await, 0);
    assert_eq!(app.count("timers").await, 0);
}

async fn what_arrived_in_time_cancels_under_another_alias(app: &mut TestApp) {
    app.survey(&short()).await;
    let backend = Backend::new(app).await;
    let phone = backend.identify(app, "phone", "e-1").await;
    let web = backend.identify(app, "web", "e-1").await;
    app.fires(&phone, "cart_updated", &json!({})).await;
    app.advance(2);
    let room = hold(app).await;
    leave(app, &web, "purchase").await;
    app.advance(8);
    app.stop().await;
    drop(room);
    app.resume().await;
    app.settle().await;
    a_while().await;
    assert_eq!(offered(app, &phone).await, 0);
}

/// A person's requests are processed in their order, also where those of one alias are in the hands of a process that is gone.
async fn what_arrived_in_time_cancels_what_another_alias_began(app: &mut TestApp) {
    app.survey(&short()).await;
    let backend = Backend::new(app).await;
    let phone = backend.identify(app, "phone", "e-1").await;
    let web = backend.identify(app, "web", "e-1").await;
    app.fires(&phone, "view", &json!({})).await;
    let room = hold(app).await;
    leave(app, &phone, "cart_updated").await;
    give(app, "UPDATE pending SET node = $1", 1).await;
    drop(room);
    app.advance(2);
    leave(app, &web, "purchase").await;
    a_while().await;
    assert_eq!(app.count("pending").await, 2);

    app.advance(60);
    app.settle().await;
    a_while().await;
    assert_eq!(offered(app, &phone).await, 0);
    assert_eq!(app.count("timers").await, 0);
}

async fn what_arrived_in_time_cancels_after_a_merge(app: &mut TestApp) {
    app.survey(&short()).await;
    let backend = Backend::new(app).await;
    let phone = backend.identify(app, "phone", "e-1").await;
    let web = app.session("web").await;
    app.fires(&phone, "cart_updated", &json!({})).await;
    app.advance(1);
    let room = hold(app).await;
    leave(app, &web, "purchase").await;
    app.advance(1);
    let merged = backend.identify(app, "web", "e-1").await;
    assert_eq!(merged.subject_id, phone.subject_id);
    app.advance(8);
    app.stop().await;
    drop(room);
    app.resume().await;
    app.settle().await;
    a_while().await;
    assert_eq!(offered(app, &merged).await, 0);
}

/// Until somebody notices that a process is gone, what is due waits for what that has in hand.
async fn what_arrived_in_time_cancels_though_its_process_is_gone(app: &mut TestApp) {
    app.survey(&short()).await;
    let ada = app.session("ada").await;
    app.fires(&ada, "cart_updated", &json!({})).await;
    let room = hold(app).await;
    app.advance(2);
    leave(app, &ada, "purchase").await;
    give(app, "UPDATE pending SET node = $1", 1).await;
    drop(room);
    app.advance(2);
    a_while().await;
    assert_eq!(offered(app, &ada).await, 0);

    app.advance(60);
    app.settle().await;
    a_while().await;
    assert_eq!(offered(app, &ada).await, 0);
    assert_eq!(app.count("timers").await, 0);
}

/// What the host does of its own accord waits for what arrived before as well.
async fn what_arrived_in_time_comes_before_a_run(app: &mut TestApp) {
    let audience = json!({"include": {"kind": "platform", "in": ["ios"]}});
    let plan = json!({"startAt": app.time(60)});
    scheduled(app, json!({"audience": audience, "schedule": plan})).await;
    let ada = app.session("ada").await;
    app.fires(&ada, "view", &json!({})).await;
    let room = hold(app).await;
    app.advance(55);
    let mut batch = ada.batch(&[app.event(&ada, "view", &json!({}))]);
    batch["context"]["platform"] = json!("ios");
    app.post_batch(&ada, &batch).await.ok();
    give(app, "UPDATE pending SET node = $1", 1).await;
    drop(room);
    app.advance(6);
    a_while().await;
    assert_eq!(offered(app, &ada).await, 0);
    app.advance(60);
    assert_eq!(appears(app, &ada).await.as_array().unwrap().len(), 1);
}

/// What was due, and is only late, is not cancelled by what arrived after that.
async fn what_arrived_late_cancels_nothing_that_was_due(app: &mut TestApp) {
    app.survey(&short()).await;
    let ada = app.session("ada").await;
    app.fires(&ada, "cart_updated", &json!({})).await;
    app.settle().await;
    give(app, "UPDATE timers SET node = $1", 1).await;
    app.advance(4);
    app.fires(&ada, "purchase", &json!({})).await;
    app.settle().await;
    assert_eq!(offered(app, &ada).await, 0);

    app.advance(60);
    assert_eq!(appears(app, &ada).await.as_array().unwrap().len(), 1);
}

async fn what_arrived_late_cancels_nothing_though_a_merge_lies_between(app: &mut TestApp) {
    app.survey(&short()).await;
    let backend = Backend::new(app).await;
    let phone = backend.identify(app, "phone", "e-1").await;
    app.fires(&phone, "view", &json!({})).await;
    let web = app.session("web").await;
    app.fires(&web, "cart_updated", &json!({})).await;
    app.settle().await;
    give(app, "UPDATE timers SET node = $1", 1).await;
    app.advance(4);
    let merged = backend.identify(app, "web", "e-1").await;
    assert_eq!(merged.subject_id, phone.subject_id);
    app.fires(&phone, "purchase", &json!({})).await;
    app.settle().await;

    app.advance(60);
    assert_eq!(appears(app, &merged).await.as_array().unwrap().len(), 1);
}

/// A server that was away processes at once what arrived before it was due, and after.
async fn what_arrived_late_cancels_nothing_of_its_own_batch(app: &mut TestApp) {
    app.survey(&short()).await;
    let (ada, bob) = (app.session("ada").await, app.session("bob").await);
    app.fires(&ada, "view", &json!({})).await;
    app.fires(&bob, "view", &json!({})).await;
    let room = hold(app).await;
    leave(app, &ada, "cart_updated").await;
    leave(app, &bob, "cart_updated").await;
    app.advance(2);
    leave(app, &bob, "purchase").await;
    app.advance(8);
    leave(app, &ada, "purchase").await;
    app.stop().await;
    drop(room);
    app.resume().await;
    app.settle().await;

    assert_eq!(appears(app, &ada).await.as_array().unwrap().len(), 1);
    a_while().await;
    assert_eq!(offered(app, &bob).await, 0);
}

/// More than a plugin's timers, and more than those of all campaigns of a person.
async fn as_many_firings_wait_as_there_are(app: &mut TestApp) {
    app.survey(&short()).await;
    let ada = app.session("ada").await;
    for _ in 0..3 {
        let event = || app.event(&ada, "cart_updated", &json!({}));
        let events: Vec<Value> = (0..100).map(|_| event()).collect();
        assert_eq!(app.ingest(&ada, &events).await.ok()["accepted"], 100);
    }
    app.settle().await;
    assert_eq!(app.count("timers").await, 300);
    app.advance(4);
    let all = async || app.count("instructions").await == 300;
    app.until("all fire", all).await;
    assert_eq!(app.count("timers").await, 0);
    assert_eq!(app.count("dead_letters").await, 0);
}

/// No firing takes the place of another that somebody waits for since before a merge.
async fn firings_of_two_who_merge_wait_on(app: &mut TestApp) {
    app.survey(&short()).await;
    let backend = Backend::new(app).await;
    let phone = backend.identify(app, "phone", "e-1").await;
    app.fires(&phone, "cart_updated", &json!({})).await;
    app.advance(4);
    assert_eq!(appears(app, &phone).await.as_array().unwrap().len(), 1);
    let web = app.session("web").await;
    app.fires(&web, "cart_updated", &json!({})).await;
    app.fires(&web, "cart_updated", &json!({})).await;
    let merged = backend.identify(app, "web", "e-1").await;
    app.fires(&phone, "cart_updated", &json!({})).await;
    app.settle().await;

    app.advance(4);
    let all = async || app.count("instructions").await == 4;
    app.until("all fire", all).await;
    assert_eq!(offered(app, &merged).await, 4);
}

async fn a_delay_of_a_run_is_cancelled_by_an_event(app: &mut TestApp) {
    let (ada, bob) = (app.session("ada").await, app.session("bob").await);
    let cancels = json!([{"eventName": "paid"}]);
    let trigger = json!({"kind": "schedule", "delaySeconds": 600, "cancelOn": cancels});
    scheduled(app, json!({"trigger": trigger})).await;
    over(app, 1).await;
    let paid = app.event(&ada, "paid", &json!({}));
    app.ingest(&ada, &[paid]).await.ok();
    app.until("one waits", async || app.count("timers").await == 1)
        .await;
    app.advance(601);
    let polled = app.poll(&bob, "?wait=25").await.ok();
    assert_eq!(polled["items"].as_array().unwrap().len(), 1);
    assert_eq!(issued(app).await, (1, 1));
}
