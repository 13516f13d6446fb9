//! Two servers and what others left over: requests of few aliases that either could take (contract 3, 17).

use std::path::Path;

use nudge_pipeline::Size;
use nudge_platform::config::Config;
use serde_json::json;
use tempfile::TempDir;
use tests::session::{event_id, instruction_ids, text};
use tests::{Session, TestApp};
use uuid::Uuid;

use crate::bulk_replays::ended;
use crate::exports::{download, export, reaches};
use crate::person::execute;
use crate::two_servers::node_with;

/// People of whom requests are left over.
const PEOPLE: usize = 4;
/// Requests of each.
const REQUESTS: usize = 40;
/// Events of a request: the first one fires.
const EVENTS: usize = 10;
/// Events that a server has in memory at the most: no more than a few of the requests.
const MEMORY: usize = 700;
/// Seconds of silence after which a server's work is taken over: longer than the test takes to get there.
const SILENCE: u64 = 600;

/// Has whoever writes or removes pieces of an archive wait.
const HOLD_PIECES: &str = "LOCK TABLE privacy_export_chunks IN SHARE MODE";

/// Gives up the claim of an export, as for a process that is taken for dead.
const FREE: &str = "UPDATE jobs SET node = NULL WHERE kind = 'privacy.export'";

/// An export whose job a process has claimed.
async fn begun_export(app: &TestApp) -> String {
    let id = export(app, &json!({"anonymousId": "ada"})).await;
    app.until("the job is not claimed", async || {
        app.count("jobs WHERE node IS NOT NULL").await == 1
    })
    .await;
    id
}

/// A server on a shared database.
async fn node(url: &str, folder: &Path, name: &str, change: impl FnOnce(&mut Config)) -> TestApp {
    node_with(url, folder, name, |config| {
        config.pipeline.memory_events = MEMORY;
        config.pipeline.node_timeout_seconds = SILENCE;
        change(config);
    })
    .await
}

/// Sends a request that fires once; answers the event that does.
async fn order(app: &TestApp, session: &Session) -> String {
    let mut events = vec![app.event(session, "purchase", &json!({}))];
    events.extend((1..EVENTS).map(|_| app.event(session, "view", &json!({}))));
    let answer = app.ingest(session, &events).await.ok();
    assert_eq!(answer["accepted"], EVENTS);
    event_id(&events[0])
}

/// The first request of each person is in the hands of a server that ended. Until that is noticed two others take
/// what arrives, more than they have memory for; then all of it is done, each request once and in order.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_left_over_is_done_once_and_in_order_by_two_servers() {
    let url = tests::postgres::database().await;
    let folder = TempDir::with_prefix("nudge-test-").unwrap();
    // It commits, and has neither the room nor the time to process.
    let mut maker = node(&url, folder.path(), "maker", |config| {
        config.pipeline.memory_events = 1;
        config.pipeline.poll_ms = 3_600_000;
    })
    .await;
    maker
        .survey(&json!({"kind": "event", "eventName": "purchase"}))
        .await;
    let _room = maker.services().pipeline.room(Size::new(1, 0)).unwrap();
    let mut people = Vec::new();
    for number in 0..PEOPLE {
        let session = maker.session(&format!("person-{number}")).await;
        people.push((session, Vec::new()));
    }
    for _ in 0..REQUESTS {
        for (session, sent) in &mut people {
            sent.push(order(&maker, session).await);
        }
    }
    let dead = Uuid::from_u128(7);
    let mut tx = maker.services().db.write().await.unwrap();
    tx.sql("INSERT INTO nodes (id, started_at, heartbeat_at) VALUES ($1, $2, $2)")
        .bind(dead)
        .bind(maker.clock.now())
        .execute()
        .await
        .unwrap();
    tx.sql("UPDATE pending SET node = $1 WHERE id IN (SELECT min(id) FROM pending GROUP BY alias_number)")
        .bind(dead)
        .execute()
        .await
        .unwrap();
    tx.commit().await.unwrap();
    maker.stop().await;

    let one = node(&url, folder.path(), "one", |_| {}).await;
    let two = node(&url, folder.path(), "two", |_| {}).await;
    for round in 0..REQUESTS {
        let app = if round % 2 == 0 { &one } else { &two };
        for (session, sent) in &mut people {
            sent.push(order(app, session).await);
        }
    }
    for (session, _) in &people {
        assert!(instruction_ids(&one.offered(session).await).is_empty());
    }
    one.advance(SILENCE + 1);
    two.advance(SILENCE + 1);
    one.settle().await;

    for (session, sent) in &people {
        let mut tx = one.services().db.read().await.unwrap();
        let fired: Vec<(Uuid,)> = tx
            .sql(
                "SELECT trigger_event_id FROM instructions WHERE subject_id = $1 ORDER BY position",
            )
            .bind(session.subject_id.parse::<Uuid>().unwrap())
            .fetch_all()
            .await
            .unwrap();
        let fired: Vec<String> = fired.iter().map(|(id,)| id.to_string()).collect();
        assert_eq!(&fired, sent);
    }
    let counts: Vec<(i64,)> = one
        .rows("SELECT event_count FROM subjects WHERE event_count > 100")
        .await;
    let each = i64::try_from(2 * REQUESTS * EVENTS).unwrap();
    assert_eq!(counts, [(each,); PEOPLE]);
    one.finish().await;
    two.finish().await;
}

/// A process that was given up for dead may claim more before it ends: nobody would ever notice its second end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_forgotten_process_has_claimed_is_done() {
    let url = tests::postgres::database().await;
    let folder = TempDir::with_prefix("nudge-test-").unwrap();
    let app = node(&url, folder.path(), "one", |_| {}).await;
    app.survey(&json!({"kind": "event", "eventName": "purchase"}))
        .await;
    let ada = app.session("ada").await;
    let room = app.services().pipeline.room(Size::new(MEMORY, 0)).unwrap();
    let sent = [order(&app, &ada).await, order(&app, &ada).await];
    let mut tx = app.services().db.write().await.unwrap();
    let claimed = tx
        .sql("UPDATE pending SET node = $1")
        .bind(Uuid::from_u128(7))
        .execute()
        .await
        .unwrap();
    assert_eq!(claimed, 2);
    tx.commit().await.unwrap();
    drop(room);
    app.advance(SILENCE + 1);
    app.settle().await;

    let offered = app.offered(&ada).await;
    let fired = offered.as_array().unwrap().iter();
    let fired: Vec<String> = fired.map(|item| event_id(&item["trigger"])).collect();
    assert_eq!(fired, sent);
    app.finish().await;
}

/// A process stands still before it writes the last piece of an archive. Another one takes the job over and is the first to finish.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_archive_is_what_the_process_made_that_has_the_job() {
    let url = tests::postgres::database().await;
    let folder = TempDir::with_prefix("nudge-test-").unwrap();
    let mut app = node(&url, folder.path(), "one", |_| {}).await;
    app.session("ada").await;
    let mut tx = app.services().db.write().await.unwrap();
    tx.sql("INSERT INTO nodes (id, started_at, heartbeat_at) VALUES ($1, $2, $2)")
        .bind(Uuid::from_u128(7))
        .bind(app.clock.now())
        .execute()
        .await
        .unwrap();
    tx.commit().await.unwrap();
    // The job waits at its beginning, until it is to stand still at the archive's only piece.
    let mut begins = app.services().db.write().await.unwrap();
    begins.sql(HOLD_PIECES).execute().await.unwrap();
    let id = begun_export(&app).await;
    let mut theirs = app.services().db.write().await.unwrap();
    for statement in [
        "UPDATE privacy_exports SET size_bytes = 7, sha256 = 'theirs'",
        "UPDATE jobs SET node = '00000000-0000-0000-0000-000000000007' WHERE kind = 'privacy.export'",
    ] {
        let changed = theirs.sql(statement).execute().await;
        assert_eq!(changed.unwrap(), 1, "{statement}");
    }
    begins.rollback().await.unwrap();
    app.until_locked(1, "UPDATE privacy_exports%").await;
    theirs.commit().await.unwrap();
    // What it has in hand comes to its end.
    app.restart().await;
    let noted: Vec<(Option<i64>, Option<String>)> = app
        .rows("SELECT size_bytes, sha256 FROM privacy_exports")
        .await;
    assert_eq!(noted, [(Some(7), Some("theirs".to_owned()))]);

    execute(&app, FREE, &[]).await;
    app.services().jobs.wake();
    let done = reaches(&app, &id, "completed").await;
    download(&app, &done).await;
    app.finish().await;
}

/// A process stands still before it removes the pieces of an attempt. Another one takes the job over and writes pieces of its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_pieces_of_the_process_that_has_the_job_stay() {
    let url = tests::postgres::database().await;
    let folder = TempDir::with_prefix("nudge-test-").unwrap();
    let mut app = node(&url, folder.path(), "one", |_| {}).await;
    app.session("ada").await;
    let mut theirs = app.services().db.write().await.unwrap();
    theirs.sql(HOLD_PIECES).execute().await.unwrap();
    let id = begun_export(&app).await;
    app.until_locked(1, "DELETE FROM privacy_export_chunks%")
        .await;
    for statement in [
        "INSERT INTO nodes (id, started_at, heartbeat_at)
         SELECT '00000000-0000-0000-0000-000000000007'::uuid, started_at, heartbeat_at FROM nodes",
        "UPDATE jobs SET node = '00000000-0000-0000-0000-000000000007' WHERE kind = 'privacy.export'",
        "INSERT INTO privacy_export_chunks (export_id, number, app_id, subject_id, bytes)
         SELECT id, 0, app_id, subject_id, decode('07', 'hex') FROM privacy_exports",
    ] {
        let changed = theirs.sql(statement).execute().await;
        assert_eq!(changed.unwrap(), 1, "{statement}");
    }
    theirs.commit().await.unwrap();
    // What it has in hand comes to its end.
    app.restart().await;
    let pieces: Vec<(Vec<u8>,)> = app.rows("SELECT bytes FROM privacy_export_chunks").await;
    assert_eq!(pieces, [(vec![7_u8],)]);

    execute(&app, FREE, &[]).await;
    app.services().jobs.wake();
    let done = reaches(&app, &id, "completed").await;
    download(&app, &done).await;
    app.finish().await;
}

/// A process stands still, and another one gives its claims up. Its job begins anew once the run that it has in hand has ended.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_that_was_given_up_is_not_run_twice_at_a_time() {
    let url = tests::postgres::database().await;
    let folder = TempDir::with_prefix("nudge-test-").unwrap();
    let app = node(&url, folder.path(), "one", |_| {}).await;
    app.session("ada").await;
    let mut begins = app.services().db.write().await.unwrap();
    begins.sql(HOLD_PIECES).execute().await.unwrap();
    let id = begun_export(&app).await;
    app.until_locked(1, "DELETE FROM privacy_export_chunks%")
        .await;
    execute(&app, FREE, &[]).await;
    // One that is queued later runs: the process has looked for jobs.
    let path = app.path("/dead-letters/acknowledge");
    let later = app.post(&path, &app.editor(), &json!({"filter": {}})).await;
    ended(&app, &text(&later.data(202), "jobId")).await;
    assert_eq!(app.count("jobs WHERE node IS NOT NULL").await, 0);

    begins.rollback().await.unwrap();
    let done = reaches(&app, &id, "completed").await;
    download(&app, &done).await;
    app.finish().await;
}
