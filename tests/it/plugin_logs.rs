//! What plugins log (contract 12): kept by version, within bounds, until a person's deletion takes it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use nudge_plugin_runtime::logs::{Kind, Topics};
use nudge_plugin_runtime::shadow::{Comparison, Difference, Sample};
use nudge_wasm::{Level, LogLine};
use serde_json::{Value, json};
use tests::{Session, TestApp, on_both_backends};
use uuid::Uuid;

use crate::deletion;
use crate::guests::{activate, deploy, name, trigger, upload, version, versioned};

on_both_backends!(
    lines_are_kept_by_version_newest_first,
    what_a_check_of_a_configuration_logs_is_kept,
    a_call_about_many_people_takes_no_other_lines_subjects,
    pages_of_lines_are_the_list,
    what_a_plugin_logs_past_the_limit_is_counted,
    a_shadow_logs_too,
    an_event_that_is_read_by_name_and_with_all_is_asked_about_once,
    versions_draw_the_same_random_numbers,
    a_persons_lines_go_with_the_person,
    nothing_is_noted_about_a_person_who_is_erased,
    questions_that_make_no_sense_are_refused,
);

/// Longer than anything takes.
const PATIENCE: Duration = Duration::from_mins(1);
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// A campaign whose plugin logs.
async fn logging(app: &TestApp) {
    deploy(app, 1, 1).await;
    app.survey(&trigger(1, json!({"events": ["a"], "logs": true})))
        .await;
}

async fn page(app: &TestApp, query: &str) -> Value {
    let path = app.path(&format!("/plugins/{}/logs{query}", name(1)));
    app.get(&path, &app.viewer()).await.ok()
}

async fn messages(app: &TestApp, query: &str) -> Vec<String> {
    let page = page(app, query).await;
    let text = |line: &Value| line["message"].as_str().unwrap().to_owned();
    page["items"].as_array().unwrap().iter().map(text).collect()
}

/// Sends an event that the plugin logs something about.
async fn note(app: &TestApp, session: &Session, note: &str) {
    app.fires(session, "a", &json!({"note": note})).await;
}

async fn lines_are_kept_by_version_newest_first(app: &mut TestApp) {
    logging(app).await;
    let ada = app.session("ada").await;
    note(app, &ada, "one").await;
    deploy(app, 1, 2).await;
    app.advance(60);
    note(app, &ada, "two").await;
    note(app, &ada, "three").await;

    assert_eq!(messages(app, "").await, ["three", "two", "one"]);
    let lines = page(app, "?limit=1").await;
    let line = &lines["items"][0];
    let parts = ["version", "level", "kind"].map(|key| line[key].as_str().unwrap());
    assert_eq!(parts, [version(2).as_str(), "info", "decision"]);
    let at = line["at"].as_str().unwrap();
    assert!(app.time(-30).as_str() < at && at <= app.time(1).as_str());
    assert!(line.get("appId").is_none());
    assert_eq!(line["subjectIds"], json!([ada.subject_id]));
    for key in ["campaignIds", "eventIds"] {
        assert_eq!(line[key].as_array().unwrap().len(), 1, "{line}");
    }
    let of_one = messages(app, &format!("?version={}", version(1))).await;
    assert_eq!(of_one, ["one"]);
    let recent = format!("?since={}", app.time(-30));
    assert_eq!(messages(app, &recent).await, ["three", "two"]);
    assert_eq!(messages(app, "?level=debug").await.len(), 3);
    assert_eq!(messages(app, "?level=info").await.len(), 3);
    assert_eq!(messages(app, "?level=warn").await.len(), 0);
    app.restart().await;
    assert_eq!(messages(app, "").await.len(), 3);
}

async fn what_a_check_of_a_configuration_logs_is_kept(app: &mut TestApp) {
    deploy(app, 1, 1).await;
    let config = json!({"events": ["a"], "checked": "it has a"});
    app.survey(&trigger(1, config)).await;
    let lines = page(app, "").await;
    let line = &lines["items"][0];
    assert_eq!(
        (&line["message"], &line["kind"], &line["version"]),
        (&json!("it has a"), &json!("check"), &json!(version(1)))
    );
    for key in ["campaignIds", "eventIds", "subjectIds"] {
        assert_eq!(line[key], json!([]), "{line}");
    }
    // Nobody saves anything where a server starts.
    let saved = messages(app, "").await.len();
    app.restart().await;
    assert_eq!(messages(app, "").await.len(), saved);

    // A version that comes is asked about what is in force; one that refuses it says why.
    deploy(app, 1, 2).await;
    let of_two = messages(app, &format!("?version={}", version(2))).await;
    assert!(of_two.contains(&"it has a".to_owned()), "{of_two:?}");
    let refused = json!({"trigger": trigger(1, json!({"since": 9_999_999, "checked": "too new"}))});
    let list = app.get(&app.path("/surveys"), &app.viewer()).await.ok();
    let path = app.path(&format!("/surveys/{}", list[0]["id"].as_str().unwrap()));
    app.patch(&path, &app.editor(), &refused)
        .await
        .refused(422, "validation_failed");
    assert_eq!(messages(app, "").await[0], "too new");
}

async fn a_call_about_many_people_takes_no_other_lines_subjects(app: &mut TestApp) {
    logging(app).await;
    let (ada, bob) = (app.session("ada").await, app.session("bob").await);
    note(app, &ada, "one").await;
    note(app, &bob, "two").await;
    assert_eq!(messages(app, "").await, ["two", "one"]);
    // As if the first call had been about a batch of many.
    let mut tx = app.services().db.write().await.unwrap();
    for number in 0..60 {
        tx.sql(
            "INSERT INTO plugin_log_subjects (app_id, subject_id, call_id, at)
             SELECT app_id, $1, call_id, at FROM plugin_log WHERE message = 'one'",
        )
        .bind(Uuid::from_u128(number))
        .execute()
        .await
        .unwrap();
    }
    tx.commit().await.unwrap();

    let lines = page(app, "").await;
    let [of_two, of_one] = [0, 1].map(|line: usize| &lines["items"][line]["subjectIds"]);
    assert_eq!(*of_two, json!([bob.subject_id]));
    assert_eq!(of_one.as_array().unwrap().len(), 20, "some of them");
}

async fn pages_of_lines_are_the_list(app: &mut TestApp) {
    logging(app).await;
    let ada = app.session("ada").await;
    for number in 0..7 {
        note(app, &ada, &format!("note {number}")).await;
    }
    let all = messages(app, "").await;
    let mut found = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = page(app, &format!("?limit=3{cursor}")).await;
        let items = page["items"].as_array().unwrap();
        found.extend(
            items
                .iter()
                .map(|line| line["message"].as_str().unwrap().to_owned()),
        );
        // What comes in meanwhile moves nothing.
        note(app, &ada, "late").await;
        let Some(next) = page["nextCursor"].as_str() else {
            break;
        };
        cursor = format!("&cursor={next}");
    }
    assert_eq!(found, all);
    let path = app.path(&format!("/plugins/{}/logs?level=warn{cursor}", name(1)));
    app.get(&path, &app.viewer())
        .await
        .refused(400, "invalid_cursor");
}

async fn what_a_plugin_logs_past_the_limit_is_counted(app: &mut TestApp) {
    logging(app).await;
    let ada = app.session("ada").await;
    // So that the minute does not end meanwhile.
    let into_minute = app.clock.now().0.rem_euclid(60_000_000) / 1_000_000;
    app.advance(60 - u64::try_from(into_minute).unwrap());
    for _ in 0..3 {
        let events: Vec<Value> = (0..400)
            .map(|_| app.event(&ada, "a", &json!({"note": "n"})))
            .collect();
        app.ingest(&ada, &events).await.ok();
    }
    app.settle().await;
    // What is logged is noted after the effects.
    app.until("as much is kept as may be", async || {
        page(app, "").await;
        let kept: Vec<(i64,)> = app
            .rows("SELECT count(*) FROM plugin_log WHERE kind = 'decision'")
            .await;
        kept == [(1000,)]
    })
    .await;
    app.advance(60);
    let lines = page(app, "?level=warn").await;
    assert_eq!(
        lines["items"].as_array().unwrap().len(),
        1,
        "one line says what is missing: {lines}"
    );
    let line = &lines["items"][0];
    assert_eq!(
        (&line["kind"], &line["level"]),
        (&json!("dropped"), &json!("warn"))
    );
    assert!(line["message"].as_str().unwrap().starts_with("200 lines"));
    note(app, &ada, "the next minute").await;
    assert_eq!(messages(app, "?limit=1").await, ["the next minute"]);
}

async fn a_shadow_logs_too(app: &mut TestApp) {
    logging(app).await;
    upload(app, versioned(1, 2)).await.data(201);
    let parts = json!({"version": version(2), "strategy": "shadow"});
    activate(app, 1, parts).await.ok();
    let ada = app.session("ada").await;
    note(app, &ada, "seen").await;
    let line = of_candidate(app).await;
    assert_eq!(
        (&line["kind"], &line["message"]),
        (&json!("shadow"), &json!("seen"))
    );
    assert_eq!(messages(app, "").await.len(), 2);
}

/// What the candidate, version 2, logged last, once it logged something.
async fn of_candidate(app: &TestApp) -> Value {
    let started = Instant::now();
    let query = format!("?version={}", version(2));
    loop {
        let mut page = page(app, &query).await;
        if page["items"]
            .as_array()
            .is_some_and(|items| !items.is_empty())
        {
            return page["items"][0].take();
        }
        assert!(started.elapsed() < PATIENCE, "the candidate logged nothing");
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

async fn an_event_that_is_read_by_name_and_with_all_is_asked_about_once(app: &mut TestApp) {
    deploy(app, 1, 1).await;
    let reads = json!({"events": ["a", "*"], "logs": true});
    app.survey(&trigger(1, reads)).await;
    let ada = app.session("ada").await;
    note(app, &ada, "one").await;
    app.fires(&ada, "b", &json!({"note": "two"})).await;
    assert_eq!(messages(app, "").await, ["two", "one"]);
}

async fn versions_draw_the_same_random_numbers(app: &mut TestApp) {
    deploy(app, 1, 1).await;
    app.survey(&trigger(1, json!({"events": ["a"], "draws": true})))
        .await;
    upload(app, versioned(1, 2)).await.data(201);
    let parts = json!({"version": version(2), "strategy": "shadow"});
    activate(app, 1, parts).await.ok();
    let ada = app.session("ada").await;
    app.fires(&ada, "a", &json!({})).await;
    let drawn = of_candidate(app).await;
    let before = messages(app, &format!("?version={}", version(1))).await;
    assert_eq!(json!(before), json!([drawn["message"]]));
}

async fn a_persons_lines_go_with_the_person(app: &mut TestApp) {
    logging(app).await;
    upload(app, versioned(1, 2)).await.data(201);
    let (ada, bob) = (app.session("ada").await, app.session("bob").await);
    note(app, &ada, "ada's address").await;
    note(app, &bob, "bob's address").await;
    assert_eq!(messages(app, "").await.len(), 2);

    let erase = async |name: &str| {
        let job = deletion::delete(app, &json!({"anonymousId": name})).await;
        deletion::deleted(app, &job).await;
    };
    erase("ada").await;
    assert_eq!(messages(app, "").await, ["bob's address"]);
    let subject = Uuid::parse_str(&bob.subject_id).unwrap();
    let left: Vec<(Uuid,)> = app.rows("SELECT subject_id FROM plugin_log_subjects").await;
    assert_eq!(left, [(subject,)]);
    erase("bob").await;
    assert_eq!(messages(app, "").await.len(), 0);
}

/// A process that the database was out of reach for writes late what it noted.
async fn nothing_is_noted_about_a_person_who_is_erased(app: &mut TestApp) {
    let sessions = [app.session("ada").await, app.session("bob").await];
    let [ada, bob] = sessions.map(|session| Uuid::parse_str(&session.subject_id).unwrap());
    let job = deletion::delete(app, &json!({"anonymousId": "ada"})).await;
    deletion::deleted(app, &job).await;

    let services = app.services();
    let recorder = &services.plugins.recorder;
    let period = Arc::clone(&services.plugins.built_in().next().unwrap().period);
    for (subjects, message) in [(vec![ada, bob], "both"), (vec![bob], "bob alone")] {
        let line = LogLine {
            level: Level::Info,
            message: message.to_owned(),
        };
        let about = || Topics {
            subjects,
            ..Topics::default()
        };
        let place = (app.access.app_id, &period);
        recorder.logged(place, Kind::Shadow, &[line], about);
    }
    let mut comparison = Comparison::default();
    for subject_id in [ada, bob] {
        comparison.differs(Sample {
            subject_id,
            event_id: app.id(),
            campaign_id: None,
            difference: Difference::Added,
            old: None,
            new: None,
        });
    }
    recorder.compared(app.access.app_id, &period, comparison);
    recorder.flush(&services.db).await.unwrap();

    let lines: Vec<(String,)> = app.rows("SELECT message FROM plugin_log").await;
    assert_eq!(lines, [("bob alone".to_owned(),)]);
    for table in [
        "SELECT subject_id FROM plugin_log_subjects",
        "SELECT subject_id FROM plugin_differences",
    ] {
        assert_eq!(app.rows::<(Uuid,)>(table).await, [(bob,)], "{table}");
    }
}

async fn questions_that_make_no_sense_are_refused(app: &mut TestApp) {
    logging(app).await;
    let path = app.path(&format!("/plugins/{}/logs", name(1)));
    for query in ["?level=loud", "?since=today", "?limit=0", "?limit=201"] {
        let answer = app.get(&format!("{path}{query}"), &app.viewer()).await;
        answer.refused(422, "validation_failed");
    }
    app.get(&format!("{path}?limit=200"), &app.viewer())
        .await
        .ok();
    let unknown = app.path("/plugins/nobody/logs");
    app.get(&unknown, &app.viewer())
        .await
        .refused(404, "not_found");
    let built_in = app.path("/plugins/default-trigger/logs");
    app.get(&built_in, &app.viewer()).await.ok();
}
