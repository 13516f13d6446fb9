//! Two servers on one PostgreSQL database, and on one data directory (contract 17).

use std::path::Path;
use std::time::Duration;

use nudge_apps::registry::CatchingUp;
use nudge_pipeline::Size;
use nudge_platform::config::Config;
use serde_json::json;
use tempfile::TempDir;
use tests::providers::Reply;
use tests::session::{instruction_ids, text};
use tests::{Backend, Child, TestApp, site};

use crate::attempts::{answer, forked, link_survey, try_start};
use crate::concurrency::join;
use crate::feedback::button;
use crate::identity;

/// Starts a server, which must say why it can't.
async fn does_not_start(config: Config, why: &str) {
    let second = TestApp::open(site!(), config).await;
    let error = format!("{:#}", second.err().unwrap());
    assert!(error.contains(why), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_server_on_a_data_directory_is_refused() {
    let app = TestApp::start(site!(), Backend::Sqlite).await;

    does_not_start(app.config.clone(), "another server uses the data directory").await;

    app.session("ada").await;
    app.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_server_on_an_embedded_database_is_refused_whatever_its_data_directory() {
    let app = TestApp::start(site!(), Backend::Sqlite).await;
    let folder = TempDir::with_prefix("nudge-test-").unwrap();
    let database = app.config.server.data_dir.join("nudge.db");
    let link = folder.path().join("linked.db");
    std::os::unix::fs::symlink(&database, &link).unwrap();

    for path in [&database, &link] {
        let mut config = TestApp::config(site!(), &folder.path().join("other"));
        config.database.url = format!("sqlite:{}", path.display());
        does_not_start(config, "another server uses the database").await;
    }
    app.session("ada").await;
    app.finish().await;
}

/// A node on a shared PostgreSQL database.
pub(crate) async fn node(url: &str, folder: &Path, name: &str) -> TestApp {
    node_with(url, folder, name, |_| {}).await
}

/// A node with another configuration.
pub(crate) async fn node_with(
    url: &str,
    folder: &Path,
    name: &str,
    change: impl FnOnce(&mut Config),
) -> TestApp {
    let mut config = TestApp::config(site!(), &folder.join(name));
    config.database.url = url.to_owned();
    config.database.connections = 5;
    change(&mut config);
    TestApp::open(site!(), config).await.unwrap()
}

/// Two nodes on an empty database, and the folder that they keep their data in.
pub(crate) async fn pair() -> (TempDir, TestApp, TestApp) {
    let url = tests::postgres::database().await;
    let folder = TempDir::with_prefix("nudge-test-").unwrap();
    let one = node(&url, folder.path(), "one").await;
    let two = node(&url, folder.path(), "two").await;
    (folder, one, two)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn starts_on_two_servers_make_one_attempt() {
    let (_folder, one, two) = pair().await;
    let survey = link_survey(&one, forked(false)).await;
    let ada = one.session("ada").await;
    for _ in 0..4 {
        let key = json!({"clientAttemptId": one.id()});
        let starts = (0..8).map(|number| {
            let app = if number % 2 == 0 { &one } else { &two };
            try_start(app, &ada, survey, key.clone())
        });
        let answers = join(starts).await;
        let mut ids: Vec<String> = answers
            .iter()
            .map(|answer| text(&answer.data(201), "attemptId"))
            .collect();
        ids.dedup();
        assert_eq!(ids.len(), 1);
        let ends = (0..4).map(|number| {
            let app = if number % 2 == 0 { &two } else { &one };
            answer(app, &ada, &ids[0], json!([["q1", number]]))
        });
        for answer in join(ends).await {
            answer.ok();
        }
    }
    let path = one.path(&format!("/surveys/{survey}/analytics"));
    for app in [&one, &two] {
        let results = app.get(&path, &app.viewer()).await.ok();
        assert_eq!(results["totals"]["started"], 4);
        assert_eq!(results["perQuestion"][0]["responses"], 4);
    }
    two.finish().await;
    one.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_servers_share_a_database_and_count_exactly() {
    let (_folder, one, two) = pair().await;
    assert_eq!(one.access.app_id, two.access.app_id);
    let survey = one
        .survey(&json!({"kind": "event", "eventName": "purchase", "occurrence": {"mode": "every_nth", "n": 7}}))
        .await;
    let ada = one.session("ada").await;

    let mut tries = 0;
    for round in 0..35 {
        let (app, other) = if round % 2 == 0 {
            (&one, &two)
        } else {
            (&two, &one)
        };
        let (first, second) = (
            [app.event(&ada, "purchase", &json!({}))],
            [other.event(&ada, "purchase", &json!({}))],
        );
        let (left, right) = tokio::join!(app.ingest(&ada, &first), other.ingest(&ada, &second));
        assert_eq!(
            (&left.ok()["accepted"], &right.ok()["accepted"]),
            (&json!(1), &json!(1))
        );
        tries += 2;
    }
    one.settle().await;

    assert_eq!(one.stored("purchase").await, tries);
    let counts: Vec<(i64,)> = one.rows("SELECT event_count FROM subjects").await;
    assert_eq!(counts, [(70,)]);
    let seen = [one.offered(&ada).await, two.offered(&ada).await];
    assert_eq!(instruction_ids(&seen[0]).len(), 10);
    assert_eq!(instruction_ids(&seen[0]), instruction_ids(&seen[1]));
    assert_eq!(seen[0][0]["campaignId"], json!(survey));
    one.finish().await;
    two.finish().await;
}

/// One server never asks by itself for changes of the other: what arrives after an answer is decided by it all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_after_an_activation_and_a_pause_heed_them_on_every_server() {
    let url = tests::postgres::database().await;
    let folder = TempDir::with_prefix("nudge-test-").unwrap();
    let one = node(&url, folder.path(), "one").await;
    let two = node_with(&url, folder.path(), "two", |config| {
        config.pipeline.poll_ms = 3_600_000;
    })
    .await;
    let ada = two.session("ada").await;
    let purchase = async || two.fires(&ada, "purchase", &json!({})).await;
    assert_eq!(purchase().await, 0);

    let survey = one
        .survey(&json!({"kind": "event", "eventName": "purchase"}))
        .await;
    assert_eq!(purchase().await, 1);
    assert_eq!(purchase().await, 1);

    let path = one.path(&format!("/surveys/{survey}"));
    let paused = json!({"status": "paused"});
    one.patch(&path, &one.editor(), &paused).await.ok();
    assert_eq!(purchase().await, 0);
    one.finish().await;
    two.finish().await;
}

/// Keeps a server from asking for changes by itself, as while it loads a plugin of an earlier one.
async fn hold_back(behind: &TestApp, ahead: &TestApp) -> Vec<CatchingUp> {
    let mut held = Vec::new();
    behind
        .until("it is being read anew by others", async || {
            ahead.set(|_| {}).await;
            held = behind.services().apps.changed().await.unwrap();
            !held.is_empty()
        })
        .await;
    held
}

/// What another server has set is decided by what it knew.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_timer_fires_on_a_server_that_does_not_know_its_campaign_yet() {
    let url = tests::postgres::database().await;
    let folder = TempDir::with_prefix("nudge-test-").unwrap();
    let one = node(&url, folder.path(), "one").await;
    let two = node_with(&url, folder.path(), "two", |config| {
        config.pipeline.poll_ms = 500;
    })
    .await;
    two.session("bob").await;
    let held = hold_back(&two, &one).await;
    let later = json!({"kind": "event", "eventName": "cart_updated", "delaySeconds": 3600});
    one.survey(&later).await;
    let ada = one.session("ada").await;
    assert_eq!(one.fires(&ada, "cart_updated", &json!({})).await, 0);
    assert_eq!(one.count("timers").await, 1);
    one.finish().await;

    two.advance(3601);
    two.until("the timer is due", async || two.count("timers").await == 0)
        .await;
    assert_eq!(two.count("instructions").await, 1);
    drop(held);
    two.finish().await;
}

/// A button is new, and another one opens another version: what a server that has heard of both has offered stays as it is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_poll_on_a_server_that_is_behind_leaves_buttons_as_they_are() {
    let url = tests::postgres::database().await;
    let folder = TempDir::with_prefix("nudge-test-").unwrap();
    let one = node(&url, folder.path(), "one").await;
    let two = node_with(&url, folder.path(), "two", |config| {
        config.pipeline.poll_ms = 500;
    })
    .await;
    let known = button(&one, json!({})).await;
    let ada = one.session("ada").await;
    for app in [&one, &two] {
        app.until("the button is not on offer", async || {
            instruction_ids(&app.offered(&ada).await).len() == 1
        })
        .await;
    }

    let held = hold_back(&two, &one).await;
    button(&one, json!({})).await;
    let path = one.path(&format!("/surveys/{known}"));
    let renamed = json!({"name": "Another"});
    one.patch(&path, &one.editor(), &renamed).await.ok();
    let buttons = async || {
        let found: Vec<(uuid::Uuid, i64, i64, i64)> = one
            .rows("SELECT id, campaign_version, position, expires_at FROM instructions ORDER BY position")
            .await;
        found
    };
    assert_eq!(instruction_ids(&one.offered(&ada).await).len(), 2);
    let offered = buttons().await;
    let versions: Vec<i64> = offered.iter().map(|button| button.1).collect();
    assert_eq!(versions.iter().sum::<i64>(), 3, "{offered:?}");
    // It can't show one of a survey that it has not heard of.
    assert_eq!(instruction_ids(&two.offered(&ada).await).len(), 1);
    assert_eq!(buttons().await, offered);
    drop(held);
    two.finish().await;
    one.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_has_not_heard_of_a_pause_sends_nothing_of_the_campaign() {
    let url = tests::postgres::database().await;
    let folder = TempDir::with_prefix("nudge-test-").unwrap();
    let mut one = node(&url, folder.path(), "one").await;
    let providers = one.with_providers().await;
    one.credential(&providers.fcm.credential()).await;
    let campaign = one.transactional_campaign().await;
    let two = node_with(&url, folder.path(), "two", |config| {
        config.pipeline.poll_ms = 500;
        providers.configure(config);
    })
    .await;
    two.session("bob").await;
    let ada = one.session("ada").await;
    one.push_token(&ada, "phone", &providers.fcm.token(1)).await;
    let busy = Reply {
        status: 503,
        ..Reply::default()
    };
    providers.fcm.reply_next(busy.with("retry-after", "1800"));
    let body = json!({"campaignId": campaign, "anonymousId": "ada"});
    one.transactional(&body).await.data(202);
    let waits = async |app: &TestApp| {
        let due: Vec<(Option<i64>,)> = app
            .rows("SELECT due_at FROM deliveries WHERE node IS NULL AND attempts > 0")
            .await;
        due.first().copied()
    };
    one.until("it waits to be sent again", async || {
        waits(&one).await.is_some()
    })
    .await;
    let due = waits(&one).await;

    let held = hold_back(&two, &one).await;
    let path = one.path(&format!("/campaigns/{campaign}"));
    let paused = json!({"status": "paused"});
    one.patch(&path, &one.editor(), &paused).await.ok();
    // The providers have its clock.
    one.advance(1801);
    one.stop().await;
    two.advance(1801);
    two.until("it is looked at", async || {
        waits(&two).await.is_some_and(|now| Some(now) != due)
    })
    .await;
    assert_eq!(providers.fcm.received().len(), 1);
    drop(held);
    two.finish().await;
}

/// Has whoever claims what is to be processed wait.
const HOLD_CLAIMS: &str = "LOCK TABLE pending IN EXCLUSIVE MODE";

/// Between two claims it asks what others have changed, also of an app of which nothing was left over.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_hears_of_a_change_before_it_has_claimed_all_that_was_left_over() {
    let url = tests::postgres::database().await;
    let folder = TempDir::with_prefix("nudge-test-").unwrap();
    // It commits, and has neither the room nor the time to process.
    let one = node_with(&url, folder.path(), "one", |config| {
        config.pipeline.memory_events = 1;
        config.pipeline.poll_ms = 3_600_000;
    })
    .await;
    let room = one.services().pipeline.room(Size::new(1, 0)).unwrap();
    let shop = json!({"name": "Shop"});
    let shop = one.post("/v1/apps", &one.admin(), &shop).await.data(201);
    let shop_id: uuid::Uuid = text(&shop, "id").parse().unwrap();
    let ada = one.session("ada").await;
    for _ in 0..8 {
        let event = one.event(&ada, "purchase", &json!({}));
        one.ingest(&ada, &[event]).await.ok();
    }
    let left_over = "pending WHERE node IS NULL";
    assert_eq!(one.count(left_over).await, 8);

    let db = &one.services().db;
    let mut first = db.write().await.unwrap();
    first.sql(HOLD_CLAIMS).execute().await.unwrap();
    // It claims as many requests at once as have room with 500 events each.
    let two = node_with(&url, folder.path(), "two", |config| {
        config.pipeline.memory_events = 1_500;
    })
    .await;
    let version = async || {
        let snapshot = two.services().apps.get(shop_id).await.unwrap();
        snapshot.unwrap().version
    };
    assert_eq!(version().await, 1);
    one.until_locked(1, "%pending%").await;
    let path = format!("/v1/apps/{shop_id}");
    one.patch(&path, &one.admin(), &json!({"name": "Store"}))
        .await
        .ok();
    tokio::time::sleep(Duration::from_millis(two.config.pipeline.poll_ms)).await;

    // Who waits gets the lock in turn: two's next claim waits for `second`.
    let mut second = db.write().await.unwrap();
    let (held, ()) = tokio::join!(second.sql(HOLD_CLAIMS).execute(), async {
        one.until_locked(2, "%pending%").await;
        first.rollback().await.unwrap();
    });
    held.unwrap();
    two.until("it does not hear of the change", async || {
        version().await == 2
    })
    .await;
    assert!(two.count(left_over).await > 0);
    second.rollback().await.unwrap();
    two.finish().await;
    drop(room);
    one.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_poll_on_one_server_sees_what_another_issued() {
    let (_folder, one, two) = pair().await;
    one.survey(&json!({"kind": "event", "eventName": "purchase"}))
        .await;
    let ada = one.session("ada").await;

    let (polled, ()) = tokio::join!(two.poll(&ada, "?wait=25"), async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        let event = one.event(&ada, "purchase", &json!({}));
        one.ingest(&ada, &[event]).await.ok();
    });

    assert_eq!(instruction_ids(&polled.ok()["items"]).len(), 1);
    one.finish().await;
    two.finish().await;
}

/// What a server has in hand when it is killed is done by the other one, each event once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_work_of_a_killed_server_is_taken_over() {
    let url = tests::postgres::database().await;
    let folder = TempDir::with_prefix("nudge-test-").unwrap();
    let survivor = node_with(&url, folder.path(), "survivor", |config| {
        config.pipeline.node_timeout_seconds = 5;
    })
    .await;
    survivor
        .survey(&json!({"kind": "event", "eventName": "purchase"}))
        .await;
    let ada = survivor.session("ada").await;
    let victim_data = folder.path().join("victim");
    std::fs::create_dir(&victim_data).unwrap();
    let victim = Child::start_with(site!(), &victim_data, &[("NUDGE_DATABASE__URL", &url)]);

    let events: Vec<_> = (0..200)
        .map(|_| survivor.event(&ada, "purchase", &json!({})))
        .collect();
    let path = format!("{}/v1/sdk/ingest", victim.text("baseUrl"));
    let request = tests::client::build()
        .post(path)
        .bearer_auth(&survivor.access.write_key)
        .header("x-service-subject-token", &ada.token)
        .json(&ada.batch(&events));
    assert_eq!(tests::client::send(request).await.ok()["accepted"], 200);
    victim.kill();

    survivor.settle().await;
    let fired: Vec<(uuid::Uuid,)> = survivor
        .rows("SELECT trigger_event_id FROM instructions ORDER BY position")
        .await;
    let fired: Vec<String> = fired.iter().map(|(id,)| id.to_string()).collect();
    let sent: Vec<String> = events.iter().map(|event| text(event, "eventId")).collect();
    assert_eq!(fired, sent);
    survivor.finish().await;
}

/// A poll on one server looks, stands still and goes on looking, while another server issues something to the person and
/// merges somebody who was offered something before.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_poll_amid_a_merge_passes_nothing_over() {
    let (_folder, one, two) = pair().await;
    two.survey(&json!({"kind": "event", "eventName": "purchase"}))
        .await;
    let backend = identity::Backend::new(&two).await;
    let phone = backend.identify(&two, "phone", "e-1").await;
    let web = two.session("web").await;
    assert_eq!(two.fires(&web, "purchase", &json!({})).await, 1);

    // Half of what a poll asks reads surveys, and nothing else that is asked meanwhile does: the app is read already.
    let apps = &one.services().apps;
    apps.refresh(one.access.app_id).await.unwrap();
    let mut lock = two.services().db.write().await.unwrap();
    lock.sql("LOCK TABLE campaigns IN ACCESS EXCLUSIVE MODE")
        .execute()
        .await
        .unwrap();
    let (polled, ()) = tokio::join!(one.poll(&phone, ""), async {
        two.until_locked(1, "%i.position%").await;
        let event = two.event(&phone, "purchase", &json!({}));
        two.ingest(&phone, &[event]).await.ok();
        two.until("it is issued", async || {
            two.count("instructions").await == 2
        })
        .await;
        backend.identify(&two, "web", "e-1").await;
        lock.rollback().await.unwrap();
    });

    let polled = polled.ok();
    let mut seen = instruction_ids(&polled["items"]);
    let cursor = text(&polled, "nextCursor");
    let next = one.poll(&phone, &format!("?cursor={cursor}")).await.ok();
    seen.extend(instruction_ids(&next["items"]));
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 2, "{polled} {next}");
    one.finish().await;
    two.finish().await;
}

/// What a request is told that waits for a table, and goes on once rows of another one are deleted. The three texts lock the table,
/// delete the rows, and are the pattern of the statement that waits.
async fn told_amid(
    app: &TestApp,
    path: &str,
    [holds, deletes, waiting]: [&'static str; 3],
) -> serde_json::Value {
    let mut tx = app.services().db.write().await.unwrap();
    tx.sql(holds).execute().await.unwrap();
    tx.sql(deletes).execute().await.unwrap();
    let (path, viewer) = (app.path(path), app.viewer());
    let (told, ()) = tokio::join!(app.get(&path, &viewer), async {
        app.until_locked(1, waiting).await;
        tx.commit().await.unwrap();
    });
    told.ok()
}

/// Once two people are one, nothing is left with the one who was found before.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_told_of_a_person_is_of_one_moment() {
    let app = TestApp::start(site!(), Backend::Postgres).await;
    app.survey(&json!({"kind": "event", "eventName": "opened", "delaySeconds": 3600}))
        .await;
    let ada = app.session("ada").await;
    let set = json!({"anonymousId": "ada", "mutationId": app.id(), "set": {"plan": "pro"}});
    app.post("/v1/sdk/user-properties", &ada.credential(), &set)
        .await
        .ok();
    let mut batch = ada.batch(&[app.event(&ada, "opened", &json!({}))]);
    batch["context"]["deviceId"] = json!("d1");
    app.post_batch(&ada, &batch).await.ok();
    app.settle().await;

    let statements = [
        "LOCK TABLE plugin_states IN ACCESS EXCLUSIVE MODE",
        "DELETE FROM timers",
        "SELECT campaign_id, state, updated_at FROM plugin_states%",
    ];
    let told = told_amid(&app, "/users/ada/plugin-state", statements).await;
    assert_eq!(told["timers"], 1);

    let statements = [
        "LOCK TABLE subject_properties IN ACCESS EXCLUSIVE MODE",
        "DELETE FROM devices",
        "%JOIN subject_properties p%",
    ];
    let told = told_amid(&app, "/users/ada", statements).await;
    assert_eq!(told["devices"][0]["deviceId"], "d1");

    let statements = [
        "LOCK TABLE aliases IN ACCESS EXCLUSIVE MODE",
        "DELETE FROM subject_properties",
        "%JOIN aliases a ON a.subject_id = v.id%",
    ];
    let told = told_amid(&app, "/users", statements).await;
    assert_eq!(told["items"][0]["topProperties"], json!({"plan": "pro"}));

    let statements = [
        "LOCK TABLE events IN ACCESS EXCLUSIVE MODE",
        "DELETE FROM events",
        "SELECT event_id, alias_number, name%",
    ];
    let told = told_amid(&app, "/users/ada/events", statements).await;
    assert_eq!(told["items"][0]["name"], "opened");
    app.finish().await;
}
