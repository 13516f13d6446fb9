//! How versions fare: counts, and the roll-back of what fails (contract 12).

use std::time::{Duration, Instant};

use nudge_db::Dialect;
use serde_json::{Value, json};
use tests::{Session, TestApp, on_both_backends};

use crate::guests::{
    SERVER, activate, activate_at, decided, decides, deploy, name, trigger, upload, version,
    versioned,
};
use crate::plugin_shadows::{shadow, shown_to};
use crate::two_servers::pair;

on_both_backends!(
    calls_are_counted_by_version,
    counts_are_those_of_the_time_that_is_asked_about,
    a_failing_canary_is_given_up_and_loses_nothing,
    an_active_version_gives_way_at_the_twentieth_call,
    a_version_without_one_before_gives_way_to_the_built_in_one,
    what_names_a_plugin_of_which_nothing_is_active_can_be_replayed,
    a_failing_version_that_has_been_active_for_long_stays,
    a_rate_that_the_app_allows_is_allowed,
    one_event_in_many_does_not_take_a_version_back,
    what_is_decided_again_for_the_databases_sake_is_held_against_nobody,
    a_version_that_is_activated_again_begins_anew,
    a_plugin_of_the_server_is_judged_by_all_apps_calls,
    what_is_old_is_forgotten,
);

/// Longer than anything takes.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);
pub(crate) const LOOK_AGAIN: Duration = Duration::from_millis(50);

pub(crate) async fn get(app: &TestApp, rest: &str) -> Value {
    app.get(&app.path(rest), &app.viewer()).await.ok()
}

pub(crate) async fn plugin(app: &TestApp, number: u32) -> Value {
    get(app, &format!("/plugins/{}", name(number))).await
}

/// What a configuration says for this version and later ones.
pub(crate) fn from(number: u32) -> u32 {
    1_000_000 + number
}

/// How a version of plugin 1 fares; null when nothing is known of it.
pub(crate) async fn fares(app: &TestApp, number: u32) -> Value {
    let metrics = get(app, &format!("/plugins/{}/metrics", name(1))).await;
    let mut versions = metrics["versions"].as_array().unwrap().iter();
    let found = versions.find(|entry| entry["version"] == version(number));
    found.cloned().unwrap_or_default()
}

/// Whether this server decides by what the database says: a roll-back is there a moment before it is in force.
pub(crate) async fn is_in_force(app: &TestApp) -> bool {
    let versions: Vec<(uuid::Uuid, i64)> = app.rows("SELECT id, version FROM apps").await;
    for (id, version) in versions {
        let snapshot = app.services().apps.get(id).await.unwrap().unwrap();
        if snapshot.version < version {
            return false;
        }
    }
    true
}

/// Waits until something is so of a plugin, and in force.
pub(crate) async fn until(app: &TestApp, number: u32, is_so: impl Fn(&Value) -> bool) -> Value {
    let started = Instant::now();
    loop {
        let plugin = plugin(app, number).await;
        if is_so(&plugin) && is_in_force(app).await {
            return plugin;
        }
        assert!(started.elapsed() < PATIENCE, "{plugin}");
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

/// Sends events one by one, so that each is a call.
pub(crate) async fn send(
    app: &TestApp,
    session: &Session,
    count: usize,
    event: &str,
    bad: bool,
) -> Vec<Value> {
    let mut sent = Vec::new();
    for _ in 0..count {
        let properties = if bad { json!({"bad": true}) } else { json!({}) };
        let event = app.event(session, event, &properties);
        app.ingest_and_ask(session, std::slice::from_ref(&event))
            .await;
        sent.push(event);
    }
    sent
}

/// What the server rolled back by itself: the version and how often it was called.
pub(crate) async fn rolled_back(app: &TestApp) -> Vec<(String, i64, String)> {
    let rows: Vec<(String, String, String)> = app
        .rows("SELECT actor, resource, detail FROM audit_log WHERE action = 'plugin.rolled_back' ORDER BY id")
        .await;
    let entry = |(actor, resource, detail): (String, String, String)| {
        assert_eq!(actor, "server");
        assert!(
            resource.starts_with("plugin/versioned-plugin-"),
            "{resource}"
        );
        let detail: Value = serde_json::from_str(&detail).unwrap();
        let text = |key: &str| detail[key].as_str().unwrap_or_default().to_owned();
        (
            text("version"),
            detail["calls"].as_i64().unwrap(),
            text("role"),
        )
    };
    rows.into_iter().map(entry).collect()
}

async fn calls_are_counted_by_version(app: &mut TestApp) {
    deploy(app, 1, 1).await;
    app.survey(&trigger(1, json!({"events": ["a"], "traps": from(1)})))
        .await;
    assert_eq!(plugin(app, 1).await["health"]["state"], "idle");
    let ada = app.session("ada").await;
    send(app, &ada, 3, "a", false).await;
    get(app, &format!("/plugins/{}/metrics", name(1))).await;
    assert_eq!(plugin(app, 1).await["health"]["state"], "healthy");
    send(app, &ada, 1, "a", true).await;

    let one = fares(app, 1).await;
    assert_eq!((&one["calls"], &one["items"]), (&json!(4), &json!(4)));
    let failures =
        json!({"trap": 1, "deadline": 0, "memory": 0, "output_too_large": 0, "refused": 0});
    assert_eq!(one["failures"], failures);
    assert_eq!(one["failureRate"], 0.25);
    let latency = |key: &str| one["latencyMicros"][key].as_u64().unwrap();
    assert!(0 < latency("p50") && latency("p50") <= latency("p95"));
    assert!(latency("p95") <= latency("p99") && latency("p99") <= latency("max"));
    assert!(one["memoryPeakBytes"].as_u64().unwrap() >= 65_536);
    assert!(one.get("shadow").is_none());
    let health = &plugin(app, 1).await["health"];
    let expected = json!({"state": "degraded", "calls": 4, "failures": 1, "failureRate": 0.25});
    assert_eq!(*health, expected);

    // Parts of a batch are calls, the batch is not; every event is an item once.
    let events: Vec<Value> = [false, false, false, true]
        .map(|bad| if bad { json!({"bad": true}) } else { json!({}) })
        .iter()
        .map(|properties| app.event(&ada, "a", properties))
        .collect();
    app.ingest_and_ask(&ada, &events).await;
    let one = fares(app, 1).await;
    assert_eq!((&one["calls"], &one["items"]), (&json!(7), &json!(8)));
    assert_eq!(
        (&one["takenApart"], &one["failures"]["trap"]),
        (&json!(2), &json!(2))
    );

    deploy(app, 1, 2).await;
    send(app, &ada, 2, "a", false).await;
    assert_eq!(fares(app, 2).await["calls"], 2);
    assert_eq!(fares(app, 1).await["calls"], 7);
    let operators = "/v1/operator/plugins/default-trigger/metrics";
    app.get(operators, &app.operator()).await.ok();
    app.restart().await;
    assert_eq!(fares(app, 1).await["calls"], 7, "a stop loses nothing");
}

async fn counts_are_those_of_the_time_that_is_asked_about(app: &mut TestApp) {
    app.survey(&json!({"kind": "event", "eventName": "a"}))
        .await;
    let ada = app.session("ada").await;
    send(app, &ada, 2, "a", false).await;
    let calls = async |query: String| {
        let path = format!("/plugins/default-trigger/metrics{query}");
        let versions = get(app, &path).await["versions"].clone();
        versions[0]["calls"].as_u64().unwrap_or(0)
    };
    assert_eq!(calls(String::new()).await, 2);
    app.advance(120);
    send(app, &ada, 1, "a", false).await;
    assert_eq!(calls(String::new()).await, 3);
    assert_eq!(calls(format!("?from={}", app.time(-1))).await, 1);
    assert_eq!(calls(format!("?to={}", app.time(-60))).await, 2);
    let past = format!("?from={}&to={}", app.time(-900), app.time(-600));
    assert_eq!(calls(past).await, 0);
    // Of before what is kept.
    let long_ago = get(app, "/plugins/default-trigger/metrics?to=2020-01-01").await;
    assert_eq!(long_ago["from"], long_ago["to"], "{long_ago}");

    let path = app.path("/plugins/default-trigger/metrics");
    let backwards = format!("?from={}&to={}", app.time(0), app.time(-1));
    for query in [backwards.as_str(), "?from=yesterday", "?to=1"] {
        let answer = app.get(&format!("{path}{query}"), &app.viewer()).await;
        answer.refused(422, "validation_failed");
    }
    let unknown = app.path("/plugins/nobody/metrics");
    app.get(&unknown, &app.viewer())
        .await
        .refused(404, "not_found");
}

async fn a_failing_canary_is_given_up_and_loses_nothing(app: &mut TestApp) {
    deploy(app, 1, 1).await;
    app.survey(&trigger(1, json!({"events": ["a"], "traps": from(2)})))
        .await;
    upload(app, versioned(1, 2)).await.data(201);
    let parts = json!({"version": version(2), "strategy": "canary", "percent": 50});
    activate(app, 1, parts).await.ok();

    let mut letters: Vec<(String, String, String)> = Vec::new();
    let mut people = 0;
    let mut sent = 0;
    while letters.len() < 20 {
        assert!(people < 500, "{} of {people}", letters.len());
        let person = app.session(&format!("person {people}")).await;
        people += 1;
        // Twice, so that the last person's second event is perhaps decided by the version that stays.
        sent += send(app, &person, 1, "a", true).await.len();
        letters = app
            .rows("SELECT stage, reason, plugin_version FROM dead_letters")
            .await;
    }
    let shown = until(app, 1, |plugin| plugin["rollout"]["strategy"] == "instant").await;
    assert_eq!(shown["activeVersion"], json!(version(1)));
    assert!(shown["rollout"].get("candidateVersion").is_none());
    let expected = ("trigger".to_owned(), "trap".to_owned(), version(2));
    assert!(
        letters.iter().all(|letter| *letter == expected),
        "{letters:?}"
    );
    assert_eq!(decided(app).await.len() + letters.len(), sent);
    assert_eq!(
        rolled_back(app).await,
        [(version(2), 20, "candidate".to_owned())]
    );

    let late = app.session("late").await;
    for _ in 0..4 {
        let by = decides(app, &late, "a").await;
        assert_eq!(by, Some((name(1), version(1))));
    }
}

async fn an_active_version_gives_way_at_the_twentieth_call(app: &mut TestApp) {
    let config = json!({"events": ["a"], "traps": from(2)});
    for plugin in [1, 2] {
        deploy(app, plugin, 1).await;
        let mut config = config.clone();
        config["events"] = json!([format!("event {plugin}")]);
        app.survey(&trigger(plugin, config)).await;
        deploy(app, plugin, 2).await;
    }
    let ada = app.session("ada").await;
    send(app, &ada, 19, "event 1", true).await;
    assert_eq!(fares(app, 2).await["failures"]["trap"], 19);
    // Once the other plugin was looked at, this one was.
    send(app, &ada, 20, "event 2", true).await;
    until(app, 2, |plugin| plugin["activeVersion"] == version(1)).await;
    assert_eq!(plugin(app, 1).await["activeVersion"], json!(version(2)));

    // Whatever the twentieth call comes to.
    send(app, &ada, 1, "event 1", false).await;
    let shown = until(app, 1, |plugin| plugin["activeVersion"] == version(1)).await;
    assert!(shown["rollout"].get("previousVersion").is_none());
    let active = |version: String| (version, 20, "active".to_owned());
    assert_eq!(
        rolled_back(app).await,
        [active(version(2)), active(version(2))]
    );
    assert_eq!(
        decides(app, &ada, "event 1").await,
        Some((name(1), version(1)))
    );
    let page = get(app, "/dead-letters?stage=trigger&limit=200").await;
    assert_eq!(page["items"].as_array().unwrap().len(), 39);
}

async fn a_version_without_one_before_gives_way_to_the_built_in_one(app: &mut TestApp) {
    let failing = 900_000;
    upload(app, versioned(1, failing)).await.data(201);
    let parts = json!({"version": version(failing), "slot": true});
    activate(app, 1, parts).await.ok();
    app.survey(&json!({"kind": "event", "eventName": "a"}))
        .await;
    let ada = app.session("ada").await;
    send(app, &ada, 20, "a", true).await;
    let shown = until(app, 1, |plugin| plugin["activeVersion"].is_null()).await;
    assert!(shown.get("rollout").is_none(), "{shown}");
    let by = decides(app, &ada, "a").await.unwrap();
    assert_eq!(by.0, "default-trigger");
    assert_eq!(rolled_back(app).await.len(), 1);
}

/// A version that is rolled back with none before it: what names the plugin loses nothing (contract 11).
async fn what_names_a_plugin_of_which_nothing_is_active_can_be_replayed(app: &mut TestApp) {
    deploy(app, 1, 1).await;
    app.survey(&trigger(1, json!({"events": ["a"], "traps": from(1)})))
        .await;
    let ada = app.session("ada").await;
    send(app, &ada, 20, "a", true).await;
    until(app, 1, |plugin| plugin["activeVersion"].is_null()).await;
    app.restart().await;
    let ada = app.session("ada").await;
    // Nothing more can name it.
    let mut body = tests::session::survey_body();
    body["trigger"] = trigger(1, json!({"events": ["a"]}));
    let answer = app.post(&app.path("/surveys"), &app.editor(), &body).await;
    answer.refused(422, "validation_failed");
    assert_eq!(answer.pointers(), ["/trigger/plugin"]);
    // Nothing is wrong with it but that nobody decides.
    let sent = send(app, &ada, 1, "a", false).await.remove(0);
    send(app, &ada, 1, "b", false).await;
    let page = get(app, "/dead-letters?stage=trigger&limit=200").await;
    let letters = page["items"].as_array().unwrap();
    assert_eq!(letters.len(), 21);
    assert_eq!(letters[0]["eventId"], sent["eventId"]);
    let detail = letters[0]["detail"].as_str().unwrap();
    assert!(detail.contains("rolled back"), "{detail}");
    let path = app.path(&format!(
        "/dead-letters/{}/replay",
        letters[0]["id"].as_str().unwrap()
    ));
    let answer = app.post(&path, &app.editor(), &json!({})).await.ok();
    assert_eq!(answer["status"], "still_failing");
    activate(app, 1, json!({"version": version(1)})).await.ok();
    let answer = app.post(&path, &app.editor(), &json!({})).await.ok();
    assert_eq!(answer["status"], "replayed");
    let offered = tests::session::instruction_ids(&app.offered(&ada).await);
    assert_eq!(offered.len(), 1);
}

async fn a_failing_version_that_has_been_active_for_long_stays(app: &mut TestApp) {
    deploy(app, 1, 1).await;
    app.survey(&trigger(1, json!({"events": ["a"], "traps": from(1)})))
        .await;
    app.advance(600);
    deploy(app, 2, 1).await;
    app.survey(&trigger(2, json!({"events": ["b"], "traps": from(1)})))
        .await;
    let ada = app.session("ada").await;
    send(app, &ada, 25, "a", true).await;
    assert_eq!(fares(app, 1).await["failureRate"], 1.0);
    send(app, &ada, 20, "b", true).await;
    until(app, 2, |plugin| plugin["activeVersion"].is_null()).await;
    let shown = plugin(app, 1).await;
    assert_eq!(shown["activeVersion"], json!(version(1)));
    assert_eq!(shown["health"]["state"], "failing");
    assert_eq!(rolled_back(app).await.len(), 1);
}

async fn a_rate_that_the_app_allows_is_allowed(app: &mut TestApp) {
    app.set(|settings| settings.plugins.max_failure_rate = 0.9)
        .await;
    deploy(app, 1, 1).await;
    app.survey(&trigger(1, json!({"events": ["a"], "traps": from(1)})))
        .await;
    let ada = app.session("ada").await;
    send(app, &ada, 5, "a", false).await;
    send(app, &ada, 20, "a", true).await;
    // What could not be written at once is decided again, and that is a call too.
    let rate = fares(app, 1).await["failureRate"].as_f64().unwrap();
    assert!((0.8..0.9).contains(&rate), "{rate}");
    assert_eq!(rolled_back(app).await, []);
    // 46 of 51 pass the rate.
    send(app, &ada, 26, "a", true).await;
    until(app, 1, |plugin| plugin["activeVersion"].is_null()).await;
    let entries = rolled_back(app).await;
    assert_eq!(entries.len(), 1, "{entries:?}");
    let (of, calls, slot) = &entries[0];
    assert_eq!((of, slot.as_str()), (&version(1), "active"));
    assert!(*calls > 45, "it passes the rate: {calls}");
}

async fn one_event_in_many_does_not_take_a_version_back(app: &mut TestApp) {
    deploy(app, 1, 1).await;
    app.survey(&trigger(1, json!({"events": ["a"], "traps": from(1)})))
        .await;
    let ada = app.session("ada").await;
    for _ in 0..6 {
        let properties = |bad: bool| if bad { json!({"bad": 1}) } else { json!({}) };
        let events: Vec<Value> = (0..64)
            .map(|number| app.event(&ada, "a", &properties(number == 20)))
            .collect();
        app.ingest(&ada, &events).await.ok();
    }
    app.settle().await;
    let one = fares(app, 1).await;
    assert!(one["calls"].as_u64().unwrap() >= 20, "{one}");
    assert_eq!(one["failures"]["trap"], 6);
    assert!(one["takenApart"].as_u64().unwrap() >= 6, "{one}");
    assert!(one["failureRate"].as_f64().unwrap() < 0.25, "{one}");
    assert_eq!(plugin(app, 1).await["activeVersion"], json!(version(1)));
    assert_eq!(decided(app).await.len(), 6 * 63);
}

async fn what_is_decided_again_for_the_databases_sake_is_held_against_nobody(app: &mut TestApp) {
    deploy(app, 1, 1).await;
    app.survey(&trigger(1, json!({"events": ["a"], "traps": from(1)})))
        .await;
    let ada = app.session("ada").await;
    dead_letters_have_room(app, false).await;
    let event = app.event(&ada, "a", &json!({"bad": true}));
    app.ingest(&ada, std::slice::from_ref(&event)).await.ok();
    app.until("the event is not decided again", async || {
        fares(app, 1).await["retried"].as_i64() >= Some(3)
    })
    .await;
    assert_eq!(fares(app, 1).await["calls"], 0);

    dead_letters_have_room(app, true).await;
    app.settle().await;
    let one = fares(app, 1).await;
    assert_eq!(
        (&one["calls"], &one["failures"]["trap"]),
        (&json!(1), &json!(1))
    );
    assert_eq!(app.count("dead_letters").await, 1);
}

/// Has the database take dead letters, or refuse them as a full one does.
async fn dead_letters_have_room(app: &TestApp, room: bool) {
    let statements: &[&str] = match (app.services().db.dialect(), room) {
        (Dialect::Sqlite, false) => &[
            "CREATE TRIGGER no_room BEFORE INSERT ON dead_letters BEGIN SELECT RAISE(ABORT, 'no room'); END",
        ],
        (Dialect::Sqlite, true) => &["DROP TRIGGER no_room"],
        (Dialect::Postgres, false) => &[
            "CREATE FUNCTION no_room() RETURNS trigger LANGUAGE plpgsql AS
             $$ BEGIN RAISE EXCEPTION 'no room' USING ERRCODE = 'disk_full'; END $$",
            "CREATE TRIGGER no_room BEFORE INSERT ON dead_letters FOR EACH STATEMENT EXECUTE FUNCTION no_room()",
        ],
        (Dialect::Postgres, true) => &["DROP TRIGGER no_room ON dead_letters"],
    };
    let mut tx = app.services().db.write().await.unwrap();
    for statement in statements {
        tx.sql(statement).execute().await.unwrap();
    }
    tx.commit().await.unwrap();
}

async fn a_version_that_is_activated_again_begins_anew(app: &mut TestApp) {
    deploy(app, 1, 1).await;
    app.survey(&trigger(1, json!({"events": ["a"], "traps": from(2)})))
        .await;
    deploy(app, 1, 2).await;
    let ada = app.session("ada").await;
    send(app, &ada, 20, "a", true).await;
    until(app, 1, |plugin| plugin["activeVersion"] == version(1)).await;

    let again = json!({"version": version(2)});
    activate(app, 1, again).await.ok();
    send(app, &ada, 19, "a", true).await;
    let two = fares(app, 2).await;
    assert_eq!(two["failures"]["trap"], 39, "both times are shown");
    assert_eq!(plugin(app, 1).await["activeVersion"], json!(version(2)));
    assert_eq!(rolled_back(app).await.len(), 1);
    send(app, &ada, 1, "a", true).await;
    until(app, 1, |plugin| plugin["activeVersion"] == version(1)).await;
    assert_eq!(rolled_back(app).await.len(), 2);
}

async fn a_plugin_of_the_server_is_judged_by_all_apps_calls(app: &mut TestApp) {
    // What one app thinks of failures does not count.
    app.set(|settings| settings.plugins.max_failure_rate = 1.0)
        .await;
    for number in [1, 2] {
        let path = format!("{SERVER}/plugins");
        app.upload(&path, &app.operator(), versioned(1, number))
            .await
            .data(201);
        let parts = json!({"version": version(number)});
        activate_at(app, SERVER, &app.operator(), &name(1), parts)
            .await
            .ok();
    }
    app.survey(&trigger(1, json!({"events": ["a"], "traps": from(2)})))
        .await;
    let ada = app.session("ada").await;
    send(app, &ada, 20, "a", true).await;
    until(app, 1, |plugin| plugin["activeVersion"] == version(1)).await;
    assert_eq!(decides(app, &ada, "a").await, Some((name(1), version(1))));
    let entries: Vec<(uuid::Uuid,)> = app
        .rows("SELECT app_id FROM audit_log WHERE action = 'plugin.rolled_back'")
        .await;
    assert_eq!(entries, [(uuid::Uuid::nil(),)]);
    for root in [SERVER.to_owned(), app.path("")] {
        let path = format!("{root}/plugins/{}/metrics", name(1));
        let metrics = app.get(&path, &app.operator()).await.ok();
        let two = &metrics["versions"][1];
        assert_eq!(
            (&two["version"], &two["calls"]),
            (&json!(version(2)), &json!(20))
        );
    }
    let path = format!("{SERVER}/plugins/{}/logs", name(1));
    let lines = app.get(&path, &app.operator()).await.ok();
    assert_eq!(lines["items"][0]["appId"], json!(app.access.app_id));
}

async fn what_is_old_is_forgotten(app: &mut TestApp) {
    deploy(app, 1, 1).await;
    let config = json!({"events": ["a"], "passes": from(2), "logs": true});
    app.survey(&trigger(1, config)).await;
    shadow(app, 2).await;
    let ada = app.session("ada").await;
    send(app, &ada, 1, "a", true).await;
    shown_to(app, 2, 1).await;
    let count = async |sql: &'static str| app.rows::<(i64,)>(sql).await[0].0;
    let lines = "SELECT count(*) FROM plugin_log";
    let others =
        "SELECT (SELECT count(*) FROM plugin_calls) + (SELECT count(*) FROM plugin_comparisons)
        + (SELECT count(*) FROM plugin_differences)";
    let until_none = async |sql: &'static str| {
        let started = Instant::now();
        while count(sql).await > 0 {
            assert!(started.elapsed() < PATIENCE, "{sql}");
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    };
    let before = (count(lines).await, count(others).await);
    assert!(before.0 == 2 && before.1 >= 4, "{before:?}");
    app.advance(3 * 24 * 3600);
    until_none(lines).await;
    until_none("SELECT count(*) FROM plugin_log_subjects").await;
    assert_eq!(count(others).await, before.1);
    app.advance(4 * 24 * 3600 + 60);
    until_none(others).await;
}

/// Neither process sees twenty calls, both together do; one of them acts.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_calls_of_two_servers_count_together() {
    let (_folder, one, two) = pair().await;
    deploy(&one, 1, 1).await;
    one.survey(&trigger(1, json!({"events": ["a"], "traps": from(2)})))
        .await;
    deploy(&one, 1, 2).await;
    let ada = one.session("ada").await;
    let started = Instant::now();
    let expected = Some((name(1), version(2)));
    // Good events, so that both decide by the version.
    while decides(&two, &ada, "a").await != expected {
        assert!(
            started.elapsed() < PATIENCE,
            "the other server does not follow"
        );
    }
    for app in [&one, &two] {
        send(app, &ada, 12, "a", true).await;
    }
    for app in [&one, &two] {
        until(app, 1, |plugin| plugin["activeVersion"] == version(1)).await;
        let started = Instant::now();
        while decides(app, &ada, "a").await != Some((name(1), version(1))) {
            assert!(
                started.elapsed() < PATIENCE,
                "the version before does not come back"
            );
        }
    }
    assert_eq!(rolled_back(&one).await.len(), 1);
    one.finish().await;
    two.finish().await;
}
