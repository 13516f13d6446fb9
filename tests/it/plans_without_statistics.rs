//! Nobody gives SQLite statistics: its planner believes that an app has ten rows of each table, and would walk through all of
//! them by an index of the app where another index leads to the few that are meant.

use std::collections::BTreeSet;
use std::fs::File;
use std::process::{Command, Stdio};
use std::time::Duration;

use nudge_platform::tables;
use nudge_records::dead_letters::store::Filter;
use nudge_records::events::removed;
use nudge_records::{dead_letters, decisions, deliveries, rejected};
use serde_json::{Value, json};
use tempfile::TempDir;
use tests::session::text;
use tests::{Backend, TestApp, site};
use uuid::Uuid;

use crate::{deletion, identity, retention, segments};

/// Tables that grow with people and what they do. `pending` is empty when all is processed.
const LARGE: [&str; 28] = [
    "subjects",
    "aliases",
    "events",
    "timers",
    "instructions",
    "deliveries",
    "webhook_messages",
    "webhook_attempts",
    "occasions",
    "run_firings",
    "subject_properties",
    "property_texts",
    "property_mutations",
    "dead_letters",
    "replayed_letters",
    "rejected_events",
    "removed_events",
    "segment_members",
    "survey_attempts",
    "survey_answers",
    "plugin_states",
    "decisions",
    "decision_subjects",
    "client_sessions",
    "devices",
    "push_tokens",
    "merged_subjects",
    "suppressions",
];

/// What goes by an index from one end to a limit, or is about all: a part of the plan's line, and one of the statement.
const ALLOWED: [(&str, &str); 14] = [
    // Those who are being deleted.
    ("subjects_hidden (app_id=?)", "suppressed"),
    // The newest, a number up to a limit, all of a preview.
    ("subjects_of_app (app_id=?)", "ORDER BY id"),
    ("subjects_of_app (app_id=?)", "SELECT count(*)"),
    (
        "subjects_of_app (app_id=?)",
        "WHERE app_id = $1 AND id NOT IN",
    ),
    // The first name.
    ("events_of_app (<expr>=?)", "ORDER BY name"),
    (
        "SCAN events",
        "SELECT seq FROM events ORDER BY seq DESC LIMIT 1",
    ),
    // What is due first of what no process has.
    (
        "timers_by_due_time",
        "SELECT due_at FROM timers WHERE node IS NULL",
    ),
    (
        "occasions_by_due_time",
        "SELECT due_at FROM occasions WHERE node IS NULL",
    ),
    ("webhook_messages_due", "ORDER BY webhook_id LIMIT 1"),
    // What a clock that was ahead has set, at a start.
    ("SCAN timers", "WHERE set_at > $2"),
    ("deliveries_due (app_id=?)", "due_at > $3"),
    ("webhook_messages_due", "m.due_at > $1"),
    // Gauges count up to a limit.
    ("SCAN deliveries USING INDEX deliveries_due", "LIMIT $2) w"),
    ("SCAN dead_letters", "LIMIT $1) w"),
];

/// Whether this process does the work whose statements another one reads.
const WORKS: &str = "NUDGE_TEST_WORKS";
const DAY: u64 = 24 * 3600;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_statement_of_a_server_walks_through_an_app() {
    if std::env::var_os(WORKS).is_some() {
        return Box::pin(work()).await;
    }
    let statements = tokio::task::spawn_blocking(statements_of_work)
        .await
        .unwrap();
    for part in [
        "UPDATE aliases SET subject_id",
        "SELECT number FROM aliases",
        "SELECT id FROM timers WHERE node",
        "UPDATE webhook_messages SET subject_id",
        "DELETE FROM dead_letters",
        "DELETE FROM instructions",
        "INTO subject_properties",
        "INTO deliveries",
    ] {
        let is_there = statements.iter().any(|text| text.contains(part));
        assert!(is_there, "{part}: {} statements", statements.len());
    }

    let app = TestApp::start(site!(), Backend::Sqlite).await;
    assert_eq!(
        app.count("sqlite_schema WHERE name LIKE 'sqlite_stat%'")
            .await,
        0
    );
    let mut tx = app.services().db.write().await.unwrap();
    tx.explain();
    let mut walks = Vec::new();
    for text in statements {
        let text: &'static str = text.leak();
        tx.sql(text).execute().await.unwrap();
        let plan = tx.plans();
        walks.extend(walk(text, &plan).map(|line| format!("{line}: {text}")));
    }
    assert!(walks.is_empty(), "{walks:#?}");
    drop(tx);
    app.finish().await;
}

/// What a server does with events, two people who become one, properties, a message, a deletion and retention.
async fn work() {
    let mut app = TestApp::start_with(site!(), Backend::Sqlite, |config| {
        "json".clone_into(&mut config.telemetry.log_format);
    })
    .await;
    let (_providers, ada, campaign) = app.with_phone_and_campaign().await;
    app.define(
        "strict",
        &json!({"properties": [{"name": "total", "type": "number", "required": true}]}),
    )
    .await;
    app.survey(&json!({"kind": "event", "eventName": "paid"}))
        .await;
    let pros = segments::segment(&app, "pro", segments::plan("pro")).await;
    app.survey(&json!({"kind": "segment", "segmentId": pros["id"], "on": "enter"}))
        .await;
    segments::set(&app, &ada, json!({"plan": "pro"})).await;
    let letter = app.event(&ada, "strict", &json!({}));
    app.ingest(&ada, &[letter]).await.ok();

    let customers = identity::Backend::new(&app).await;
    let phone = customers.identify(&app, "phone", "e-1").await;
    let web = app.session("web").await;
    for session in [&phone, &web] {
        segments::set(&app, session, json!({"plan": "free"})).await;
        let paid = app.event(session, "paid", &json!({}));
        app.ingest_and_ask(session, &[paid]).await;
    }
    app.settle().await;
    customers.identify(&app, "web", "e-1").await;

    let message = json!({"campaignId": campaign, "anonymousId": "ada"});
    let placed = app.transactional(&message).await.data(202);
    app.delivery_in(&text(&placed, "deliveryId"), "delivered")
        .await;
    let job_id = deletion::delete(&app, &json!({"externalId": "e-1"})).await;
    deletion::deleted(&app, &job_id).await;

    app.advance(100 * DAY);
    retention::round(&app).await;
    app.session("late").await;
    // The pipeline looks for claims without work every two seconds.
    tokio::time::sleep(Duration::from_secs(3)).await;
    app.finish().await;
}

/// The statements that a process has run which has done the work.
fn statements_of_work() -> BTreeSet<String> {
    let folder = TempDir::with_prefix("nudge-test-").unwrap();
    let log = folder.path().join("log");
    let name = "plans_without_statistics::no_statement_of_a_server_walks_through_an_app";
    let ended = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "--nocapture", name])
        .env(WORKS, "1")
        .env("NUDGE_TEST_LOG", "warn,sqlx::query=debug")
        .stdout(Stdio::null())
        .stderr(File::create(&log).unwrap())
        .status()
        .unwrap();
    let log = std::fs::read_to_string(log).unwrap();
    let end = log.len().saturating_sub(4000);
    assert!(ended.success(), "{}", log.get(end..).unwrap_or_default());

    let mut found = BTreeSet::new();
    for line in log.lines() {
        let line: Value = serde_json::from_str(line).unwrap_or_default();
        if line["target"] != "sqlx::query" {
            continue;
        }
        // A short text is a summary of itself.
        let texts = ["db.statement", "summary"].map(|name| line["fields"][name].as_str());
        let mut texts = texts.into_iter().flatten().map(str::trim);
        let sent = texts.find(|text| !text.is_empty()).unwrap_or_default();
        for statement in sent.split("; ") {
            let verb = statement.split_whitespace().next().unwrap_or_default();
            if ["SELECT", "INSERT", "UPDATE", "DELETE", "WITH"].contains(&verb) {
                found.insert(statement.to_owned());
            }
        }
    }
    found
}

#[tokio::test]
async fn what_a_person_has_is_found_by_the_person() {
    let app = TestApp::start(site!(), Backend::Sqlite).await;
    let (app_id, winner, loser) = (app.access.app_id, app.id(), app.id());
    let mut tx = app.services().db.write().await.unwrap();
    tx.explain();
    for store in tables::personal() {
        let erased = store.erase(&mut tx).bind(app_id).bind(loser);
        erased.bind(store.step).execute().await.unwrap();
        store.merge(&mut tx, app_id, winner, loser).await.unwrap();
        no_walk(store.name, &tx.plans());
    }
    decisions::store::list(&mut tx, app_id, Some(loser), winner, 50)
        .await
        .unwrap();
    decisions::store::of_subject(&mut tx, app_id, loser, winner, 50)
        .await
        .unwrap();
    no_walk("decisions", &tx.plans());
    drop(tx);
    app.finish().await;
}

/// Rows whose ids are known are looked up by these.
#[tokio::test]
async fn what_is_removed_in_steps_is_found_by_its_ids() {
    let app = TestApp::start(site!(), Backend::Sqlite).await;
    let (app_id, now) = (app.access.app_id, app.clock.now());
    let mut tx = app.services().db.write().await.unwrap();
    tx.explain();
    for length in [1, 4, 64, 512] {
        let ids: Vec<Uuid> = (0..length).map(|_| app.id()).collect();
        deliveries::store::delete_done(&mut tx, app_id, ids.iter().copied())
            .await
            .unwrap();
        deliveries::store::keep(&mut tx, app_id, ids.iter().copied())
            .await
            .unwrap();
        no_walk("deliveries", &tx.plans());
    }
    removed::forget(&mut tx, app_id, now).await.unwrap();
    rejected::delete_before(&mut tx, app_id, now).await.unwrap();
    no_walk("events", &tx.plans());
    dead_letters::store::delete_some(&mut tx, app_id, &Filter::default(), 500)
        .await
        .unwrap();
    let plan = tx.plans();
    let by_ids =
        |line: &String| line.starts_with("SEARCH dead_letters") && line.ends_with("(id=?)");
    assert!(plan.iter().any(by_ids), "{plan:#?}");
    drop(tx);
    app.finish().await;
}

/// Of a plan whose statement is not at hand: those who are being deleted are few, and found by their app.
#[track_caller]
fn no_walk(what: &str, plan: &[String]) {
    assert!(!plan.is_empty(), "{what}");
    let walks = |line: &&String| {
        let is_scan = LARGE.iter().any(|table| scans(line, table));
        is_scan || is_by_app(line) && !line.contains("subjects_hidden")
    };
    assert_eq!(plan.iter().find(walks), None, "{what}: {plan:#?}");
}

/// The line of a statement's plan that reads a large table from end to end, or all that an app has there.
fn walk<'p>(statement: &str, plan: &'p [String]) -> Option<&'p String> {
    let words: Vec<&str> = statement.split_whitespace().collect();
    let statement = words.join(" ");
    let names = names(&statement);
    plan.iter().find(|line| {
        let is_large = |name: &&str| line.split(' ').nth(1) == Some(*name);
        let is_walk = |name: &str| scans(line, name) || is_by_app(line);
        let found = names.iter().find(|name| is_large(name));
        let is_allowed =
            |(index, part): &(&str, &str)| line.contains(index) && statement.contains(part);
        found.is_some_and(|name| is_walk(name)) && !ALLOWED.iter().any(is_allowed)
    })
}

fn scans(line: &str, table: &str) -> bool {
    let mut words = line.split(' ');
    words.next() == Some("SCAN") && words.next() == Some(table)
}

/// Whether all rows of an app are read.
fn is_by_app(line: &str) -> bool {
    let by = line.trim_end_matches(" LEFT-JOIN");
    line.starts_with("SEARCH") && (by.ends_with("(app_id=?)") || by.ends_with("(<expr>=?)"))
}

/// What a plan calls the large tables of a statement: their names, or their aliases there.
fn names(statement: &str) -> BTreeSet<&str> {
    let is_apart = |c: char| c.is_whitespace() || "(),;".contains(c);
    let words: Vec<&str> = statement
        .split(is_apart)
        .filter(|word| !word.is_empty())
        .collect();
    let mut names = BTreeSet::new();
    for (at, word) in words.iter().enumerate() {
        if LARGE.contains(word) {
            names.insert(*word);
            let behind = words.iter().skip(at + 1).copied();
            let alias = behind.skip_while(|word| *word == "AS").take(1);
            names.extend(alias.filter(|word| word.starts_with(|c: char| c.is_ascii_lowercase())));
        }
    }
    names
}
