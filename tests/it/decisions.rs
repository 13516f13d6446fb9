//! Decisions that are kept and made again (contract 12).

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use nudge_http::issuer::Role;
use serde_json::{Value, json};
use tests::{Session, TestApp, on_both_backends};
use uuid::Uuid;

use crate::guests::{
    activate, deploy, deploy_misbehaving, hoard, name, save_property, set_slot, trigger, upload,
    version, versioned,
};
use crate::{deletion, segments};

on_both_backends!(
    every_kind_of_decision_is_made_again_the_same,
    decisions_are_the_same_after_the_world_has_changed,
    what_several_campaigns_hear_at_one_instant_is_made_again_the_same,
    properties_that_a_plugin_did_not_name_are_answered,
    decisions_are_found_by_campaign_event_and_subject,
    pages_are_the_whole_list,
    what_takes_no_effect_is_not_kept,
    parts_of_a_batch_that_was_taken_apart_are_made_again,
    decisions_go_with_any_of_their_subjects,
    decisions_are_removed_after_their_time,
    a_decision_whose_parts_are_gone_is_refused_in_words,
    decisions_of_another_app_are_not_found,
);

/// Longer than timers that are due take.
const SETTLES: Duration = Duration::from_mins(1);
const LOOK_AGAIN: Duration = Duration::from_millis(50);

async fn list(app: &TestApp, query: &str) -> Vec<Value> {
    app.settle().await;
    let mut items = Vec::new();
    let mut cursor = String::new();
    loop {
        let path = app.path(&format!("/decisions?limit=200&{query}{cursor}"));
        let page = app.get(&path, &app.viewer()).await.ok();
        items.extend(page["items"].as_array().unwrap().clone());
        match page["nextCursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return items,
        }
    }
}

async fn rerun(app: &TestApp, decision: &Value) -> tests::Answer {
    let id = decision["decisionId"].as_str().unwrap();
    let path = app.path(&format!("/decisions/{id}/rerun"));
    app.post(&path, &app.editor(), &json!({})).await
}

/// Makes every decision again; answers how many there are.
async fn all_are_the_same(app: &TestApp) -> usize {
    let decisions = list(app, "").await;
    for decision in &decisions {
        let data = rerun(app, decision).await.ok();
        assert_eq!(data["same"], true, "{decision} {data}");
        assert_eq!(data["differences"], json!([]));
        assert_eq!(data["newQuestions"], 0);
        assert_eq!(data["recorded"], data["rerun"]);
        let fired = data["recorded"]["fired"].as_array().unwrap().len();
        assert_eq!(decision["fired"], fired);
    }
    decisions.len()
}

/// Waits until every timer fell due and was decided about.
async fn no_timers_are_left(app: &TestApp) {
    let started = Instant::now();
    loop {
        let left: Vec<(String,)> = app.rows("SELECT key FROM timers").await;
        if left.is_empty() {
            return;
        }
        assert!(started.elapsed() < SETTLES, "timers are left: {left:?}");
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

async fn occurrences(app: &TestApp) -> Vec<Uuid> {
    let filters =
        json!({"all": [{"property": "total", "type": "number", "operator": "gt", "value": 5}]});
    let mut surveys = Vec::new();
    for trigger in [
        json!({"occurrence": {"mode": "every"}}),
        json!({"occurrence": {"mode": "first"}}),
        json!({"occurrence": {"mode": "first"}, "filters": filters}),
        json!({"occurrence": {"mode": "once"}}),
        json!({"occurrence": {"mode": "once_per_session"}}),
        json!({"occurrence": {"mode": "nth", "n": 2}}),
        json!({"occurrence": {"mode": "every_nth", "n": 2}}),
        json!({"occurrence": {"mode": "at_least", "n": 2, "withinDays": 1}}),
        json!({"delaySeconds": 60}),
        json!({"delaySeconds": 90, "occurrence": {"mode": "once"}}),
    ] {
        let mut whole = json!({"kind": "event", "eventName": "purchase"});
        whole
            .as_object_mut()
            .unwrap()
            .extend(trigger.as_object().unwrap().clone());
        surveys.push(app.survey(&whole).await);
    }
    surveys
}

async fn purchases(app: &TestApp, session: &Session, count: usize) {
    let events: Vec<Value> = (0..count)
        .map(|number| app.event(session, "purchase", &json!({"total": number * 3})))
        .collect();
    app.ingest(session, &events).await.ok();
    app.settle().await;
}

async fn every_kind_of_decision_is_made_again_the_same(app: &mut TestApp) {
    let ada = app.session("ada").await;
    purchases(app, &ada, 2).await;
    assert!(list(app, "").await.is_empty(), "nobody waited");
    occurrences(app).await;
    deploy_misbehaving(app).await;
    // It asks for history, counts, random numbers and its state, and sets a timer that sets itself again.
    let restless = app
        .survey(&json!({"kind": "plugin", "plugin": "misbehaving", "config": {"mode": "fine"}}))
        .await;

    let bob = app.session("bob").await;
    for session in [&ada, &bob] {
        purchases(app, session, 3).await;
        let amount = json!({"amount": 0.1 + 12.2});
        app.ingest(session, &[app.event(session, "order", &amount)])
            .await
            .ok();
    }
    app.advance(31 * 60);
    for session in [&ada, &bob] {
        purchases(app, session, 2).await;
        app.fires(session, "order", &json!({"amount": 20})).await;
    }
    app.advance(120);
    app.fires(&ada, "order", &json!({"amount": 1})).await;
    let path = app.path(&format!("/surveys/{restless}"));
    app.patch(&path, &app.editor(), &json!({"status": "paused"}))
        .await
        .ok();
    app.advance(10);
    no_timers_are_left(app).await;
    let made = all_are_the_same(app).await;
    assert!(made >= 10, "{made} decisions");

    let decisions = list(app, "").await;
    // What a timer fires that sets itself again has one id.
    let of_default = |decision: &&Value| decision["plugin"]["name"] == "default-trigger";
    let fired: u64 = decisions
        .iter()
        .filter(of_default)
        .map(|decision| decision["fired"].as_u64().unwrap())
        .sum();
    let instructions: Vec<(Uuid,)> = app
        .rows("SELECT id FROM instructions WHERE plugin_name = 'default-trigger'")
        .await;
    assert_eq!(fired, instructions.len() as u64);
    let plugins: Vec<&str> = decisions
        .iter()
        .map(|decision| decision["plugin"]["name"].as_str().unwrap())
        .collect();
    assert!(plugins.contains(&"misbehaving") && plugins.contains(&"default-trigger"));
}

async fn what_several_campaigns_hear_at_one_instant_is_made_again_the_same(app: &mut TestApp) {
    let pros = segments::segment(app, "pros", segments::plan("pro")).await;
    let trigger =
        json!({"kind": "segment", "segmentId": pros["id"], "on": "enter", "delaySeconds": 600});
    for _ in 0..4 {
        app.survey(&trigger).await;
    }
    let ada = app.session("ada").await;
    segments::set(app, &ada, json!({"plan": "pro"})).await;
    app.settle().await;
    app.until("four wait", async || app.count("timers").await == 4)
        .await;
    assert!(all_are_the_same(app).await > 0);
}

async fn decisions_are_the_same_after_the_world_has_changed(app: &mut TestApp) {
    let surveys = occurrences(app).await;
    deploy(app, 1, 1).await;
    app.survey(&trigger(1, json!({"events": ["purchase"]})))
        .await;
    hoard(app).await;
    let config = json!({"event": "purchase", "plan": "pro"});
    app.survey(&json!({"kind": "plugin", "plugin": "hoarder", "config": config}))
        .await;
    let ada = app.session("ada").await;
    save_property(app, &ada, "plan", json!("pro")).await;
    purchases(app, &ada, 3).await;
    let before = list(app, "").await;
    assert!(before.len() >= 3);
    save_property(app, &ada, "plan", json!("free")).await;

    purchases(app, &ada, 4).await;
    let mut tx = app.services().db.write().await.unwrap();
    for text in [
        "DELETE FROM plugin_states",
        "DELETE FROM timers",
        "UPDATE subjects SET country = 'XX', platform = 'other', event_count = 999, session_number = 77",
    ] {
        tx.sql(text).execute().await.unwrap();
    }
    tx.commit().await.unwrap();
    for survey in surveys {
        let path = app.path(&format!("/surveys/{survey}"));
        app.delete(&path, &app.editor()).await.data(204);
    }
    upload(app, versioned(1, 2)).await.data(201);
    activate(app, 1, json!({"version": version(2)})).await.ok();
    set_slot(app, &name(1)).await.ok();
    app.restart().await;

    for decision in &before {
        let data = rerun(app, decision).await.ok();
        assert_eq!(data["same"], true, "{data}");
    }
    all_are_the_same(app).await;
}

async fn properties_that_a_plugin_did_not_name_are_answered(app: &mut TestApp) {
    hoard(app).await;
    let config = json!({"event": "purchase", "plan": "pro", "unnamed": true});
    app.survey(&json!({"kind": "plugin", "plugin": "hoarder", "config": config}))
        .await;
    let (ada, bob) = (app.session("ada").await, app.session("bob").await);
    save_property(app, &ada, "plan", json!("pro")).await;
    save_property(app, &bob, "plan", json!("free")).await;
    let fires = async |session: &Session| app.fires(session, "purchase", &json!({})).await;
    assert_eq!((fires(&ada).await, fires(&bob).await), (1, 0));
    save_property(app, &ada, "plan", json!("free")).await;
    save_property(app, &bob, "plan", json!("pro")).await;
    assert_eq!((fires(&ada).await, fires(&bob).await), (0, 1));
    assert_eq!(all_are_the_same(app).await, 4);
}

async fn decisions_are_found_by_campaign_event_and_subject(app: &mut TestApp) {
    let one = app
        .survey(&json!({"kind": "event", "eventName": "a"}))
        .await;
    let two = app
        .survey(&json!({"kind": "event", "eventName": "b"}))
        .await;
    let (ada, bob) = (app.session("ada").await, app.session("bob").await);
    let mut ids = Vec::new();
    for (session, name) in [(&ada, "a"), (&ada, "b"), (&bob, "b")] {
        let event = app.event(session, name, &json!({}));
        ids.push(event["eventId"].as_str().unwrap().to_owned());
        app.ingest_and_ask(session, &[event]).await;
    }
    let count = async |query: String| list(app, &query).await.len();
    assert_eq!(count(String::new()).await, 3);
    assert_eq!(count(format!("campaignId={one}")).await, 1);
    assert_eq!(count(format!("campaignId={two}")).await, 2);
    assert_eq!(count(format!("eventId={}", ids[1])).await, 1);
    assert_eq!(count(format!("subjectId={}", ada.subject_id)).await, 2);
    let both = format!("subjectId={}&campaignId={two}", ada.subject_id);
    let found = list(app, &both).await;
    assert_eq!(found.len(), 1);
    assert_eq!(
        found[0]["campaigns"],
        json!([{"campaignId": two, "version": 1}])
    );
    assert_eq!(found[0]["plugin"]["name"], "default-trigger");
    assert_eq!(found[0]["items"], 1);
    assert_eq!(count(format!("eventId={}", app.id())).await, 0);
    assert_eq!(count(format!("subjectId={}", app.id())).await, 0);

    let path = app.path("/decisions?eventId=x");
    app.get(&path, &app.viewer())
        .await
        .refused(422, "validation_failed");
}

async fn pages_are_the_whole_list(app: &mut TestApp) {
    app.survey(&json!({"kind": "event", "eventName": "a"}))
        .await;
    let ada = app.session("ada").await;
    for _ in 0..7 {
        app.fires(&ada, "a", &json!({})).await;
    }
    let whole = list(app, "").await;
    assert_eq!(whole.len(), 7);
    let times: Vec<&str> = whole
        .iter()
        .map(|item| item["at"].as_str().unwrap())
        .collect();
    assert!(times.is_sorted_by(|one, other| one >= other), "{times:?}");
    let mut paged = Vec::new();
    let mut query = String::from("?limit=3");
    loop {
        let path = app.path(&format!("/decisions{query}"));
        let page = app.get(&path, &app.viewer()).await.ok();
        let items = page["items"].as_array().unwrap();
        assert!(items.len() <= 3);
        paged.extend(items.clone());
        let Some(next) = page["nextCursor"].as_str() else {
            break;
        };
        query = format!("?limit=3&cursor={next}");
    }
    assert_eq!(paged, whole);
    for limit in [0, 201] {
        let path = app.path(&format!("/decisions?limit={limit}"));
        app.get(&path, &app.viewer())
            .await
            .refused(422, "validation_failed");
    }
}

async fn what_takes_no_effect_is_not_kept(app: &mut TestApp) {
    deploy_misbehaving(app).await;
    app.survey(&json!({"kind": "plugin", "plugin": "misbehaving", "config": {"mode": "trap"}}))
        .await;
    let ada = app.session("ada").await;
    app.fires(&ada, "a", &json!({})).await;
    let letters: Vec<(String,)> = app.rows("SELECT reason FROM dead_letters").await;
    assert_eq!(letters, [("trap".to_owned(),)]);
    assert!(list(app, "").await.is_empty());
}

async fn parts_of_a_batch_that_was_taken_apart_are_made_again(app: &mut TestApp) {
    deploy_misbehaving(app).await;
    app.survey(&json!({"kind": "plugin", "plugin": "misbehaving", "config": {"mode": "poison"}}))
        .await;
    let ada = app.session("ada").await;
    // Later parts count what the earlier ones decided about.
    let amounts = [20, 21, 13, 22, 23, 24];
    let events: Vec<Value> = amounts
        .iter()
        .map(|amount| app.event(&ada, "order", &json!({"amount": amount})))
        .collect();
    app.ingest(&ada, &events).await.ok();
    assert!(all_are_the_same(app).await >= 3);
    let letters: Vec<(String,)> = app.rows("SELECT reason FROM dead_letters").await;
    assert_eq!(letters.len(), 1);
}

async fn decisions_go_with_any_of_their_subjects(app: &mut TestApp) {
    app.survey(&json!({"kind": "event", "eventName": "a"}))
        .await;
    let (ada, bob) = (app.session("ada").await, app.session("bob").await);
    app.fires(&ada, "a", &json!({})).await;
    app.fires(&bob, "a", &json!({})).await;
    assert_eq!(list(app, "").await.len(), 2);

    let job = deletion::delete(app, &json!({"anonymousId": "ada"})).await;
    deletion::deleted(app, &job).await;
    let left = list(app, "").await;
    assert_eq!(left.len(), 1);
    assert_eq!(
        list(app, &format!("subjectId={}", ada.subject_id)).await,
        Vec::<Value>::new()
    );
    rerun(app, &left[0]).await.ok();
    let links: Vec<(Uuid,)> = app.rows("SELECT subject_id FROM decision_subjects").await;
    assert_eq!(links, [(bob.subject_id.parse().unwrap(),)]);
}

/// Moves the clock, and gives out new tokens in place of those that expire.
fn days_pass(app: &mut TestApp, days: u64) {
    app.advance(days * 24 * 3600);
    let issue = |role| {
        let roles = BTreeMap::from([(app.access.workspace_id, role)]);
        let (now, lifetime) = (app.clock.now(), Duration::from_hours(1));
        let issuer = &app.services().issuer;
        issuer.issue("test", roles, false, now, lifetime).unwrap()
    };
    let (viewer, editor) = (issue(Role::Viewer), issue(Role::Editor));
    app.access.viewer_token = viewer;
    app.access.editor_token = editor;
}

async fn decisions_are_removed_after_their_time(app: &mut TestApp) {
    app.survey(&json!({"kind": "event", "eventName": "a"}))
        .await;
    let ada = app.session("ada").await;
    app.fires(&ada, "a", &json!({})).await;
    days_pass(app, 29);
    nudge_records::decisions::expire(app.services())
        .await
        .unwrap();
    let old = list(app, "").await;
    assert_eq!(old.len(), 1);
    assert_eq!(rerun(app, &old[0]).await.ok()["same"], true);

    let ada = app.session("ada").await;
    app.fires(&ada, "a", &json!({})).await;
    days_pass(app, 1);
    app.advance(60);
    nudge_records::decisions::expire(app.services())
        .await
        .unwrap();
    let left = list(app, "").await;
    assert_eq!(left.len(), 1);
    assert_eq!(rerun(app, &left[0]).await.ok()["same"], true);
    rerun(app, &old[0]).await.refused(404, "not_found");

    days_pass(app, 40);
    nudge_records::decisions::expire(app.services())
        .await
        .unwrap();
    for table in [
        "SELECT app_id FROM decisions",
        "SELECT app_id FROM decision_subjects",
        "SELECT app_id FROM decision_configs",
    ] {
        assert!(app.rows::<(Uuid,)>(table).await.is_empty(), "{table}");
    }
    let ada = app.session("ada").await;
    app.fires(&ada, "a", &json!({})).await;
    assert_eq!(all_are_the_same(app).await, 1);
}

async fn a_decision_whose_parts_are_gone_is_refused_in_words(app: &mut TestApp) {
    deploy(app, 1, 1).await;
    let survey = app.survey(&trigger(1, json!({"events": ["a"]}))).await;
    let ada = app.session("ada").await;
    app.fires(&ada, "a", &json!({})).await;
    let decision = list(app, "").await.remove(0);
    rerun(app, &decision).await.ok();

    let path = app.path(&format!("/surveys/{survey}"));
    app.delete(&path, &app.editor()).await.data(204);
    app.delete(&app.path(&format!("/plugins/{}", name(1))), &app.admin())
        .await
        .data(204);
    app.restart().await;
    let problem = rerun(app, &decision)
        .await
        .refused(409, "decision_not_reproducible");
    assert!(problem["detail"].as_str().unwrap().contains(&version(1)));

    upload(app, versioned(1, 1)).await.data(201);
    rerun(app, &decision).await.ok();
    let mut tx = app.services().db.write().await.unwrap();
    tx.sql("DELETE FROM events").execute().await.unwrap();
    tx.commit().await.unwrap();
    rerun(app, &decision)
        .await
        .refused(409, "decision_not_reproducible");
}

async fn decisions_of_another_app_are_not_found(app: &mut TestApp) {
    app.survey(&json!({"kind": "event", "eventName": "a"}))
        .await;
    let ada = app.session("ada").await;
    app.fires(&ada, "a", &json!({})).await;
    let decision = list(app, "").await.remove(0);
    let workspace = app.access.workspace_id;
    let (other, _) = app
        .another_app(workspace, nudge_apps::key::Kind::Write, &[])
        .await;
    let id = decision["decisionId"].as_str().unwrap();
    let path = format!("/v1/apps/{other}/decisions/{id}/rerun");
    app.post(&path, &app.editor(), &json!({}))
        .await
        .refused(404, "not_found");
    let path = format!("/v1/apps/{other}/decisions");
    let page = app.get(&path, &app.viewer()).await.ok();
    assert_eq!(page["items"], json!([]));
}
