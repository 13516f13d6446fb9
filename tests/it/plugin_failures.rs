//! Plugins that fail: nothing is lost, and what failed can be run again (contract 11, 12).

use nudge_records::dead_letters::{self, Letter, Stage};
use nudge_records::events;
use serde_json::{Value, json};
use tests::session::text;
use tests::{TestApp, on_both_backends};
use uuid::Uuid;

use crate::bulk_replays::ended;
use crate::explain::{details, explain, sends};
use crate::guests::{
    activate, decided, deploy, name, set_slot, trigger, upload, version, versioned,
};
use crate::identity::Backend;
use crate::plugin_candidates::{send, until};

on_both_backends!(
    an_event_that_the_trigger_fails_on_is_kept_and_can_be_replayed,
    a_letter_is_decided_about_as_of_its_event_and_waits_for_its_campaign,
    a_letter_whose_campaign_is_paused_amid_its_replay_waits,
    letters_of_one_person_are_decided_about_apart,
    events_that_cannot_be_validated_are_refused_for_now,
    events_that_cannot_be_validated_pass_where_the_app_says_so,
    events_that_are_only_observed_pass_unvalidated,
    a_campaign_that_a_roll_back_refuses_loses_no_event,
    a_campaign_that_the_built_in_plugin_refuses_loses_no_event,
    a_rolled_back_version_that_says_what_is_kept_is_not_removed,
    a_candidate_that_is_given_up_after_a_roll_back_loses_no_event,
);

/// Takes a regular expression far longer than [`IMPATIENCE_MS`], and matches in the end.
const SLOW_PATTERN: &str = "x{0,300}y";
/// What a call may take so that the pattern above is too slow.
const IMPATIENCE_MS: u64 = 1;

/// A text on which [`SLOW_PATTERN`] is slow.
fn slow_text() -> Value {
    json!({"text": format!("{}y", "x".repeat(40_000))})
}

/// A trigger that is slow to decide about such a text.
fn slow_trigger() -> Value {
    let leaf =
        json!({"property": "text", "type": "string", "operator": "matches", "value": SLOW_PATTERN});
    json!({"kind": "event", "eventName": "purchase", "filters": {"all": [leaf]}})
}

async fn letters(app: &TestApp) -> Vec<Value> {
    let page = app
        .get(&app.path("/dead-letters"), &app.viewer())
        .await
        .ok();
    page["items"].as_array().unwrap().clone()
}

/// Restarts the server with other deadlines; answers those before.
async fn restart_with(app: &mut TestApp, deadline_ms: u64) -> u64 {
    let plugins = &mut app.config.plugins;
    let before = std::mem::replace(&mut plugins.deadline_ms, deadline_ms);
    plugins.validation_deadline_ms = deadline_ms;
    app.restart().await;
    before
}

async fn an_event_that_the_trigger_fails_on_is_kept_and_can_be_replayed(app: &mut TestApp) {
    let survey = app.survey(&slow_trigger()).await;
    let ada = app.session("ada").await;
    let patience = restart_with(app, IMPATIENCE_MS).await;
    let event = app.event(&ada, "purchase", &slow_text());
    assert_eq!(
        app.ingest(&ada, std::slice::from_ref(&event)).await.ok()["accepted"],
        1
    );
    app.settle().await;

    let kept = letters(app).await;
    assert_eq!(kept.len(), 1);
    assert_eq!(
        (&kept[0]["stage"], &kept[0]["reason"]),
        (&json!("trigger"), &json!("deadline"))
    );
    assert_eq!(kept[0]["eventId"], event["eventId"]);
    assert_eq!(kept[0]["campaignId"], json!(survey));
    assert_eq!(kept[0]["plugin"]["name"], "default-trigger");
    assert_eq!(app.stored("purchase").await, 1);
    let path = app.path(&format!("/dead-letters/{}/replay", text(&kept[0], "id")));
    let replayed = app.post(&path, &app.editor(), &json!({})).await.ok();
    assert_eq!(replayed["status"], "still_failing");
    assert_eq!(letters(app).await.len(), 1);
    let answer = app
        .post(&path, &app.editor(), &json!({"patch": {"a": 1}}))
        .await;
    answer.refused(422, "validation_failed");

    restart_with(app, patience).await;
    let replayed = app.post(&path, &app.editor(), &json!({})).await.ok();
    assert_eq!(replayed["status"], "replayed");
    assert_eq!(letters(app).await, Vec::<Value>::new());
    let offered = app.offered(&ada).await;
    assert_eq!(offered.as_array().unwrap().len(), 1);
    assert_eq!(offered[0]["trigger"]["eventId"], event["eventId"]);
    let again = app.post(&path, &app.editor(), &json!({})).await.ok();
    assert_eq!(again["status"], "replayed");
    assert_eq!(app.offered(&ada).await, offered);
}

/// Sends an event that the validation plugin is too slow for, and one that it does not see.
async fn break_validation(app: &mut TestApp, enforcement: &str) -> Value {
    let slow =
        json!([{"name": "text", "type": "string", "required": true, "pattern": SLOW_PATTERN}]);
    let definition = json!({"enforcement": enforcement, "properties": slow});
    app.define("purchase", &definition).await;
    let ada = app.session("ada").await;
    restart_with(app, IMPATIENCE_MS).await;
    let events = [
        app.event(&ada, "purchase", &slow_text()),
        app.event(&ada, "other", &json!({})),
    ];
    app.ingest(&ada, &events).await.ok()
}

/// The event itself is none of its past, and a campaign that does not run decides about nothing.
async fn a_letter_is_decided_about_as_of_its_event_and_waits_for_its_campaign(app: &mut TestApp) {
    let mut trigger = slow_trigger();
    trigger["occurrence"] = json!({"mode": "first"});
    let survey = app.survey(&trigger).await;
    let ada = app.session("ada").await;
    let patience = restart_with(app, IMPATIENCE_MS).await;
    let first = app.event(&ada, "purchase", &slow_text());
    app.ingest(&ada, std::slice::from_ref(&first)).await.ok();
    app.settle().await;
    restart_with(app, patience).await;
    let letter = letters(app).await.remove(0);
    let replay = app.path(&format!("/dead-letters/{}/replay", text(&letter, "id")));
    let path = app.path(&format!("/surveys/{survey}"));
    let set = async |app: &TestApp, status: &str| {
        let change = json!({"status": status});
        app.patch(&path, &app.editor(), &change).await.ok();
    };
    set(app, "paused").await;
    let answer = app.post(&replay, &app.editor(), &json!({})).await.ok();
    assert_eq!(answer["status"], "still_failing");
    assert_eq!(letters(app).await[0]["reason"], "campaign_not_active");
    set(app, "active").await;
    let answer = app.post(&replay, &app.editor(), &json!({})).await.ok();
    assert_eq!(answer["status"], "replayed");
    let offered = app.offered(&ada).await;
    assert_eq!(offered[0]["trigger"]["eventId"], first["eventId"]);
    assert_eq!(letters(app).await, Vec::<Value>::new());
    let second = json!({"text": "y"});
    assert_eq!(app.fires(&ada, "purchase", &second).await, 0);
}

/// Whichever is first: no letter goes without its event being decided about.
async fn a_letter_whose_campaign_is_paused_amid_its_replay_waits(app: &mut TestApp) {
    let survey = app.survey(&slow_trigger()).await;
    let mut people = Vec::new();
    for number in 0..8 {
        people.push(app.session(&format!("person-{number}")).await);
    }
    let patience = restart_with(app, IMPATIENCE_MS).await;
    for person in &people {
        let event = app.event(person, "purchase", &slow_text());
        app.ingest(person, &[event]).await.ok();
    }
    app.settle().await;
    restart_with(app, patience).await;
    let path = app.path(&format!("/surveys/{survey}"));
    let (paused, active) = (json!({"status": "paused"}), json!({"status": "active"}));
    let (editor, nothing) = (app.editor(), json!({}));
    let kept = letters(app).await;
    assert_eq!(kept.len(), people.len());
    for letter in kept {
        let replay = app.path(&format!("/dead-letters/{}/replay", text(&letter, "id")));
        let (change, answer) = tokio::join!(
            app.patch(&path, &editor, &paused),
            app.post(&replay, &editor, &nothing)
        );
        change.ok();
        app.patch(&path, &editor, &active).await.ok();
        if answer.ok()["status"] == "still_failing" {
            let again = app.post(&replay, &editor, &nothing).await.ok();
            assert_eq!(again["status"], "replayed");
        }
    }
    for person in &people {
        assert_eq!(app.offered(person).await.as_array().unwrap().len(), 1);
    }
}

/// Keeps a letter for every other purchase, as if the plugin had failed on it.
async fn keep_letters(app: &TestApp, survey: Uuid) {
    let services = app.services();
    let app_id = app.access.app_id;
    let snapshot = services.apps.get(app_id).await.unwrap().unwrap();
    let (plugin, _) = snapshot.campaigns[0].accepted.for_subject(Uuid::nil());
    let events: Vec<(i64, Uuid)> = app
        .rows("SELECT alias_number, event_id FROM events WHERE name = 'purchase' ORDER BY seq")
        .await;
    let mut tx = services.db.write().await.unwrap();
    for (alias, event_id) in events.into_iter().step_by(2) {
        let found = events::store::find_by_id(&mut tx, app_id, alias, event_id).await;
        let stored = found.unwrap().unwrap();
        let letter = Letter::new(
            app_id,
            alias,
            stored.received_at,
            &stored.event,
            Stage::Trigger,
            Some(survey),
            "trap".to_owned(),
            Some(plugin.description()),
        )
        .unwrap();
        dead_letters::store::insert(&mut tx, &[&letter], stored.received_at)
            .await
            .unwrap();
    }
    tx.commit().await.unwrap();
}

/// Each is decided about as of its own time, whichever alias of the person it came under.
async fn letters_of_one_person_are_decided_about_apart(app: &mut TestApp) {
    let backend = Backend::new(app).await;
    let phone = backend.identify(app, "phone", "e-1").await;
    let web = backend.identify(app, "web", "e-1").await;
    for device in [&phone, &web].into_iter().cycle().take(20) {
        let purchase = || app.event(device, "purchase", &json!({}));
        app.ingest(device, &[purchase(), purchase()]).await.ok();
    }
    app.settle().await;
    let after = |n: u32| json!({"kind": "event", "eventName": "purchase", "withinDays": 1, "count": {"operator": "eq", "n": n}});
    let odd: Vec<Value> = (1..40).step_by(2).map(after).collect();
    let survey = app
        .survey_with(&json!({
            "trigger": {"kind": "event", "eventName": "purchase"},
            "audience": {"include": {"any": odd}},
        }))
        .await;
    keep_letters(app, survey).await;
    assert_eq!(letters(app).await.len(), 20);
    let path = app.path("/dead-letters/replay");
    let all = json!({"filter": {}});
    let queued = app.post(&path, &app.editor(), &all).await.data(202);
    let job = ended(app, &text(&queued, "jobId")).await;
    assert_eq!(job["result"]["replayed"], 20);
    assert_eq!(letters(app).await, Vec::<Value>::new());
    let fired = app.offered(&phone).await;
    assert_eq!(fired, json!([]), "each comes after an even number");
}

async fn events_that_cannot_be_validated_are_refused_for_now(app: &mut TestApp) {
    let data = break_validation(app, "enforce").await;
    assert_eq!(
        (&data["accepted"], &data["rejected"]),
        (&json!(1), &json!(1))
    );
    let error = &data["errors"][0];
    assert_eq!(
        (&error["code"], &error["retryable"]),
        (&json!("plugin_unavailable"), &json!(true))
    );
    assert!(error.get("deadLetterId").is_none());
    assert_eq!(letters(app).await, Vec::<Value>::new());
    assert_eq!(app.stored("purchase").await, 0);
}

async fn events_that_cannot_be_validated_pass_where_the_app_says_so(app: &mut TestApp) {
    app.set(|settings| {
        settings.plugins.validation_failure = nudge_campaigns::settings::ValidationFailure::Open;
    })
    .await;
    let data = break_validation(app, "enforce").await;
    assert_eq!(
        (&data["accepted"], &data["errors"]),
        (&json!(2), &json!([]))
    );
}

/// What is only observed is accepted, whether or not the plugin can tell (contract 11).
async fn events_that_are_only_observed_pass_unvalidated(app: &mut TestApp) {
    let data = break_validation(app, "observe").await;
    assert_eq!(
        (&data["accepted"], &data["errors"]),
        (&json!(2), &json!([]))
    );
}

/// A configuration that version 2 of plugin 1 accepts and version 1 refuses.
fn newer() -> Value {
    trigger(1, json!({"events": ["a"], "since": 1_000_002}))
}

/// Contract 11: a broken plugin loses nothing, and a version that came back and refuses a campaign is none that decides.
async fn a_campaign_that_a_roll_back_refuses_loses_no_event(app: &mut TestApp) {
    deploy(app, 1, 1).await;
    let old = app.survey(&trigger(1, json!({"events": ["b"]}))).await;
    deploy(app, 1, 2).await;
    let survey = app.survey(&newer()).await;
    let ada = app.session("ada").await;
    let path = app.path(&format!("/plugins/{}/rollback", name(1)));
    app.post(&path, &app.admin(), &json!({})).await.ok();

    // More than would take a version back that fails, before and after a restart.
    let first = sends(app, &ada, "a", json!({})).await;
    send(app, &ada, 20, "a", false).await;
    app.restart().await;
    let ada = app.session("ada").await;
    let last = sends(app, &ada, "a", json!({})).await;
    send(app, &ada, 2, "b", false).await;
    let shown = until(app, 1, |_| true).await;
    assert_eq!(shown["activeVersion"], json!(version(1)));
    let by = decided(app).await;
    assert_eq!(by, [(name(1), version(1)), (name(1), version(1))]);

    let kept = letters(app).await;
    assert_eq!(kept.len(), 22);
    for (letter, event) in [(&kept[21], &first), (&kept[0], &last)] {
        assert_eq!(letter["eventId"], json!(event));
        assert_eq!(letter["reason"], "refused");
        assert_eq!(letter["campaignId"], json!(survey));
        assert_eq!(letter["plugin"]["version"], json!(version(1)));
        let detail = text(letter, "detail");
        assert!(detail.contains("/trigger/config/since"), "{detail}");
        let explained = explain(app, survey, &ada, event).await;
        assert_eq!(explained["outcome"], "not_fired", "{explained}");
        assert!(details(&explained, "trigger")[0].contains("dead letter"));
    }
    let replay = async |app: &TestApp, letter: &Value| {
        let id = text(letter, "id");
        let path = app.path(&format!("/dead-letters/{id}/replay"));
        let answer = app.post(&path, &app.editor(), &json!({})).await.ok();
        answer["status"].clone()
    };
    assert_eq!(replay(app, &kept[0]).await, "still_failing");

    // Once the version is back, and once the campaign is mended.
    activate(app, 1, json!({"version": version(2)})).await.ok();
    assert_eq!(replay(app, &kept[0]).await, "replayed");
    app.post(&path, &app.admin(), &json!({})).await.ok();
    assert_eq!(replay(app, &kept[21]).await, "still_failing");
    let mended = json!({"trigger": {"config": {"since": null}}});
    let path = app.path(&format!("/surveys/{survey}"));
    app.patch(&path, &app.editor(), &mended).await.ok();
    assert_eq!(replay(app, &kept[21]).await, "replayed");
    assert_eq!(explain(app, old, &ada, &last).await["outcome"], "not_fired");
}

async fn a_campaign_that_the_built_in_plugin_refuses_loses_no_event(app: &mut TestApp) {
    deploy(app, 1, 900_000).await;
    set_slot(app, &name(1)).await.ok();
    // Nothing that the built-in plugin would accept.
    app.survey(&json!({"eventName": "a", "mine": true})).await;
    let ada = app.session("ada").await;
    send(app, &ada, 20, "a", true).await;
    until(app, 1, |plugin| plugin["activeVersion"].is_null()).await;

    let event = sends(app, &ada, "a", json!({})).await;
    assert_eq!(letters(app).await[0]["eventId"], json!(event));
    app.restart().await;
    let ada = app.session("ada").await;
    let event = sends(app, &ada, "a", json!({})).await;
    let kept = letters(app).await;
    assert_eq!(kept.len(), 22);
    assert_eq!(kept[0]["eventId"], json!(event));
    assert_eq!(kept[0]["plugin"]["name"], "default-trigger");
}

async fn a_rolled_back_version_that_says_what_is_kept_is_not_removed(app: &mut TestApp) {
    let remove = async |app: &TestApp, plugin: u32, number: u32| {
        let path = format!("/plugins/{}/versions/{}", name(plugin), version(number));
        app.delete(&app.path(&path), &app.admin()).await
    };
    let archive = async |app: &TestApp, survey: uuid::Uuid| {
        let path = app.path(&format!("/surveys/{survey}"));
        let archived = json!({"status": "archived"});
        app.patch(&path, &app.editor(), &archived).await.ok();
    };
    // Nothing is active any longer.
    deploy(app, 2, 900_000).await;
    let withdrawn = app.survey(&trigger(2, json!({"events": ["b"]}))).await;
    let ada = app.session("ada").await;
    send(app, &ada, 20, "b", true).await;
    until(app, 2, |plugin| plugin["activeVersion"].is_null()).await;
    let problem = remove(app, 2, 900_000).await.refused(409, "plugin_in_use");
    assert!(text(&problem, "detail").contains(&withdrawn.to_string()));
    archive(app, withdrawn).await;
    remove(app, 2, 900_000).await.data(204);

    // What is active refuses a campaign.
    deploy(app, 1, 1).await;
    deploy(app, 1, 2).await;
    let refused = app.survey(&newer()).await;
    let path = app.path(&format!("/plugins/{}/rollback", name(1)));
    app.post(&path, &app.admin(), &json!({})).await.ok();
    let problem = remove(app, 1, 2).await.refused(409, "plugin_in_use");
    assert!(text(&problem, "detail").contains(&refused.to_string()));
    archive(app, refused).await;
    remove(app, 1, 2).await.data(204);
}

/// The version that was rolled back says which events are kept, whatever candidate is rolled back after it.
async fn a_candidate_that_is_given_up_after_a_roll_back_loses_no_event(app: &mut TestApp) {
    deploy(app, 1, 1).await;
    deploy(app, 1, 2).await;
    let survey = app.survey(&newer()).await;
    let plugin = app.path(&format!("/plugins/{}", name(1)));
    let roll_back = format!("{plugin}/rollback");
    app.post(&roll_back, &app.admin(), &json!({})).await.ok();
    upload(app, versioned(1, 3)).await.data(201);
    let shadow = json!({"version": version(3), "strategy": "shadow"});
    activate(app, 1, shadow).await.ok();
    app.post(&roll_back, &app.admin(), &json!({})).await.ok();
    let shown = app.get(&plugin, &app.viewer()).await.ok();
    assert_eq!(shown["lastRollback"]["version"], json!(version(3)));
    assert_eq!(shown["lastRollback"].get("earlier"), None);

    app.restart().await;
    let ada = app.session("ada").await;
    let event = sends(app, &ada, "a", json!({})).await;
    let kept = letters(app).await;
    assert_eq!(kept.len(), 1, "{kept:?}");
    assert_eq!(
        (&kept[0]["eventId"], &kept[0]["campaignId"]),
        (&json!(event), &json!(survey))
    );
    let path = format!("{plugin}/versions/{}", version(2));
    let removed = app.delete(&path, &app.admin()).await;
    removed.refused(409, "plugin_in_use");
}
