//! Events and waiting requests in shards on several workers, by Citus.
//!
//! These tests, and all others on PostgreSQL beside them, run where `NUDGE_TEST_CITUS_URL` names a coordinator
//! (`tests/src/postgres/citus.rs`); elsewhere they say that they are skipped. The two that end workers or move shards disturb
//! whatever runs beside them: they run where `NUDGE_TEST_CITUS_ALONE` is set as well, one at a time.

use std::collections::HashMap;
use std::time::Duration;

use nudge_db::{Db, Distributable, Options, Shards};
use serde_json::json;
use tempfile::TempDir;
use tests::postgres::{self, Citus, citus, crash, start};
use tests::{Session, TestApp, child, site};

use crate::failover::server;
use crate::faults::{all_once, people, send_amid};

/// The Citus of this machine; none: the test is skipped, and says so.
#[expect(clippy::print_stderr, reason = "says what is skipped")]
fn cluster() -> Option<&'static Citus> {
    let found = citus();
    if found.is_none() {
        eprintln!("skipped: NUDGE_TEST_CITUS_URL names no coordinator of Citus");
    }
    found
}

/// The same, where nothing else runs beside the test.
#[expect(clippy::print_stderr, reason = "says what is skipped")]
fn cluster_alone() -> Option<&'static Citus> {
    let found = cluster()?;
    if std::env::var_os("NUDGE_TEST_CITUS_ALONE").is_none() {
        eprintln!("skipped: NUDGE_TEST_CITUS_ALONE is not set");
        return None;
    }
    Some(found)
}

/// Does something that takes its time beside the server.
async fn beside<T: Send + 'static>(act: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(act).await.unwrap()
}

fn shards(app: &TestApp) -> Shards {
    app.services().db.shards().unwrap()
}

/// The worker with each person's rows.
async fn workers_of(app: &TestApp, people: &[Session]) -> HashMap<String, i32> {
    let shards = shards(app);
    let aliases: Vec<(i64, String)> = app.rows("SELECT number, value FROM aliases").await;
    let aliases: HashMap<String, i64> = aliases
        .into_iter()
        .map(|(number, value)| (value, number))
        .collect();
    let worker = |person: &Session| {
        let worker = shards.worker_of(aliases[&person.anonymous_id]);
        (person.anonymous_id.clone(), worker.unwrap())
    };
    people.iter().map(worker).collect()
}

/// Waits until no node has a transaction that is prepared and not ended.
async fn nothing_is_prepared(app: &TestApp, citus: &'static Citus, url: &str) {
    let url = url.to_owned();
    let left = "SELECT count(*) FROM pg_prepared_xacts WHERE database = current_database()";
    app.until("prepared transactions are left", async || {
        let url = url.clone();
        beside(move || {
            citus.ask(&url, "SELECT recover_prepared_transactions()");
            let mut workers = citus.workers().iter();
            citus.ask(&url, left) == "0" && workers.all(|worker| worker.ask(&url, left) == "0")
        })
        .await
    })
    .await;
}

/// While a worker is away, what it has is refused for now; the rest is accepted and decided about.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_crashes_holds_up_nobody_elsewhere_and_loses_nothing() {
    let Some(citus) = cluster_alone() else { return };
    let url = postgres::database().await;
    let app = server(url.clone()).await;
    let senders = people(&app).await;
    let mut probes = Vec::new();
    for number in 0..12 {
        probes.push(app.session(&format!("probe-{number}")).await);
    }
    let (workers, database) = (workers_of(&app, &probes).await, url.clone());
    let (folder, away) = beside(move || {
        let worker = &citus.workers()[0];
        let group = format!(
            "SELECT groupid FROM pg_dist_node WHERE nodeport = {}",
            worker.port()
        );
        (
            worker.folder(),
            citus.ask(&database, &group).parse::<i32>().unwrap(),
        )
    })
    .await;
    let mut accepted_ids = Vec::new();
    let mut sent = send_amid(&app, &senders, async {
        for _ in 0..3 {
            tokio::time::sleep(Duration::from_millis(500)).await;
            let ending = folder.clone();
            beside(move || crash(&ending)).await;
            let (mut accepted, mut refused) = (0, 0);
            for probe in &probes {
                let event = app.event(probe, "purchase", &json!({}));
                let answer = app.ingest(probe, std::slice::from_ref(&event)).await;
                if workers[&probe.anonymous_id] == away {
                    answer.refused(503, "unavailable");
                    refused += 1;
                } else {
                    answer.ok();
                    accepted_ids.push(tests::session::text(&event, "eventId"));
                    accepted += 1;
                }
            }
            assert!(accepted > 0 && refused > 0, "{accepted} and {refused}");
            let fired = "SELECT trigger_event_id FROM instructions";
            app.until("what another worker has waits", async || {
                let fired: Vec<(uuid::Uuid,)> = app.rows(fired).await;
                let fired: Vec<String> = fired.iter().map(|(id,)| id.to_string()).collect();
                accepted_ids.iter().all(|id| fired.contains(id))
            })
            .await;
            let starting = folder.clone();
            beside(move || start(&starting)).await;
        }
    })
    .await;
    sent.append(&mut accepted_ids);
    // What the worker had prepared when it crashed is seen once its transaction is ended.
    nothing_is_prepared(&app, citus, &url).await;
    all_once(&app, sent).await;
    app.finish().await;
}

/// All shards of one worker are moved to another one, while people send.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shards_move_under_load() {
    let Some(citus) = cluster_alone() else { return };
    let url = postgres::database().await;
    let app = server(url.clone()).await;
    let senders = people(&app).await;
    let before = shards(&app);
    let database = url.clone();
    let sent = send_amid(&app, &senders, async {
        beside(move || {
            let [from, to] = [&citus.workers()[0], &citus.workers()[1]];
            let moved =
                "SELECT shardid FROM pg_dist_shard_placement JOIN pg_dist_shard USING (shardid)
                         WHERE logicalrelid = 'pending'::regclass AND nodeport = ";
            let moved = citus.ask(&database, &format!("{moved}{}", from.port()));
            for shard in moved.lines() {
                citus.ask(
                    &database,
                    &format!(
                        "SELECT citus_move_shard_placement({shard}, {}, {})",
                        from.node(),
                        to.node()
                    ),
                );
            }
        })
        .await;
    })
    .await;
    all_once(&app, sent).await;
    app.until("the server does not see where the shards are", async || {
        shards(&app).workers() == before.workers() - 1
    })
    .await;
    nothing_is_prepared(&app, citus, &url).await;
    app.finish().await;
}

/// One command distributes a database with data in it, goes on where it was interrupted, and `check` says how it stands.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_command_distributes_a_database() {
    let Some(citus) = cluster() else { return };
    let url = beside(|| citus.create()).await;
    let app = server(url.clone()).await;
    let senders = people(&app).await;
    let sent = send_amid(&app, &senders, async {}).await;
    all_once(&app, sent.clone()).await;
    let folder = TempDir::new().unwrap();
    let command = |name: &'static str, more: &'static [&'static str]| {
        let (url, folder) = (url.clone(), folder.path().to_owned());
        beside(move || {
            let data_dir = folder.to_str().unwrap().to_owned();
            let mut arguments = vec![name, "--database-url", &url, "--data-dir", &data_dir];
            arguments.extend(["--listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0"]);
            arguments.extend(more);
            child::run(site!(), &arguments)
        })
    };
    let distribute: &[&str] = &["--distribute", "--yes"];
    let complaint = child::complaint(&command("migrate", distribute).await);
    assert!(complaint.contains("1 servers run"), "{complaint}");
    app.finish().await;
    let complaint = child::complaint(&command("migrate", &["--distribute"]).await);
    assert!(complaint.contains("--yes"), "{complaint}");

    // As if it had been interrupted between the tables.
    let db = Db::open(&Options::new(url.clone(), 1)).await.unwrap();
    db.distribute(Distributable::Pending).await.unwrap();
    db.close().await;
    let complaint = child::complaint(&command("check", &[]).await);
    assert!(complaint.contains("only a part"), "{complaint}");
    for _ in 0..2 {
        let output = command("migrate", distribute).await;
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{text}");
        assert!(text.contains("in 8 shards on 2 workers"), "{text}");
    }
    let output = command("check", &[]).await;
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.contains("are distributed: 8 shards on 2 workers"),
        "{text}"
    );

    let app = server(url).await;
    let stored: Vec<(uuid::Uuid,)> = app.rows("SELECT event_id FROM events").await;
    assert_eq!(stored.len(), sent.len());
    let local: Vec<(i64,)> = app.rows("SELECT pg_relation_size('events')").await;
    assert_eq!(local, [(0,)], "the coordinator's copy is gone");
    assert_eq!(shards(&app).count(), 8);
    let sender = app.session("person-0").await;
    app.ingest(&sender, &[app.event(&sender, "purchase", &json!({}))])
        .await
        .ok();
    app.settle().await;
    app.finish().await;
}

/// Numbers are in the shard that Citus says, and hash as PostgreSQL has it.
#[tokio::test]
async fn numbers_are_where_citus_says() {
    let Some(citus) = cluster() else { return };
    let url = postgres::database().await;
    let db = Db::open(&Options::new(url.clone(), 1)).await.unwrap();
    let shards = db.shards().unwrap();
    let theirs = beside(move || {
        citus.ask(&url, "SELECT string_agg((SELECT groupid FROM pg_dist_placement
            WHERE shardid = get_shard_id_for_distribution_column('pending', n::bigint))::text, ',' ORDER BY n)
            FROM generate_series(-100, 1000) n")
    })
    .await;
    let ours: Vec<String> = (-100..=1000)
        .map(|number| shards.worker_of(number).unwrap().to_string())
        .collect();
    assert_eq!(ours.join(","), theirs);
    db.close().await;
}
