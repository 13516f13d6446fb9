//! Poolers in front of PostgreSQL, and what `nudge check` says of a database (contract 16, 25).

use std::process::{Command, Output};

use nudge_db::{Db, Options, Tx};
use tempfile::TempDir;
use tests::pooler::Pooler;
use tests::{child, postgres, site};

/// What is run through a pooler here, in a process of its own: a part of the suite that has most kinds of transactions.
const PART: [&str; 7] = [
    "ingest_requests::on_postgres",
    "merging::on_postgres",
    "runs::on_postgres",
    "segments::on_postgres",
    "push_flow::on_postgres",
    "jobs::on_postgres",
    "retention::on_postgres",
];

#[expect(
    clippy::print_stderr,
    reason = "who runs the tests should know what they did not test"
)]
fn pooler(url: &str, mode: &str, connections: u32) -> Option<Pooler> {
    let pooler = Pooler::start(url, mode, connections);
    if pooler.is_none() {
        eprintln!("skipped: there is no pgbouncer");
    }
    pooler
}

/// Runs a command of the program on a database, which keeps so many statements prepared.
fn nudge(command: &str, url: &str, statement_cache: u32) -> Output {
    let folder = TempDir::with_prefix("nudge-test-").unwrap();
    child::program(site!())
        .env(
            "NUDGE_DATABASE__STATEMENT_CACHE",
            statement_cache.to_string(),
        )
        .args([command, "--database-url", url, "--data-dir"])
        .arg(folder.path())
        .output()
        .unwrap()
}

fn complaint(output: &Output) -> String {
    assert!(!output.status.success(), "{output:?}");
    String::from_utf8(output.stderr.clone()).unwrap()
}

async fn text(tx: &mut Tx, question: &'static str) -> String {
    tx.sql(question).fetch_scalar().await.unwrap()
}

async fn execute(url: &str, statement: &'static str) {
    let db = Db::open(&Options::new(url.to_owned(), 1)).await.unwrap();
    let mut tx = db.write_each().await.unwrap();
    tx.sql(statement).execute().await.unwrap();
    drop(tx);
    db.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn check_says_what_is_wrong_with_a_pooler() {
    let url = postgres::cluster().create_database();
    for (mode, cache, part) in [
        ("statement", 0, Some("pool_mode")),
        ("transaction", 0, None),
        ("session", 1_000, None),
        ("transaction", 1_000, Some("statementCache")),
    ] {
        let Some(pooler) = pooler(&url, mode, 3) else {
            return;
        };
        let output = nudge("check", &pooler.url(&url), cache);
        match part {
            Some(part) if cache == 0 || !pooler.keeps_statements() => {
                let complaint = complaint(&output);
                assert!(complaint.contains(part), "{mode}: {complaint}");
            }
            _ => {
                assert!(output.status.success(), "{mode}: {output:?}");
                let said = String::from_utf8(output.stdout).unwrap();
                assert!(said.contains("note: statements have no time-out"), "{said}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn check_says_when_there_are_too_few_connections() {
    let url = postgres::cluster().create_database();
    let enough = nudge("check", &url, 1_000);
    assert!(enough.status.success(), "{enough:?}");
    let said = String::from_utf8(enough.stdout).unwrap();
    assert!(!said.contains("connections"), "{said}");

    execute(
        &url,
        "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I CONNECTION LIMIT 3', current_database()); END $$",
    )
    .await;
    let complaint = complaint(&nudge("check", &url, 1_000));
    assert!(complaint.contains("takes 3 connections"), "{complaint}");
}

/// Since version 15 a role that does not own a database may make nothing in its schema `public`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn check_says_when_the_role_may_make_no_tables() {
    let url = postgres::cluster().create_database();
    execute(
        &url,
        "DO $$ BEGIN EXECUTE format('CREATE ROLE %I LOGIN PASSWORD ''guest''', current_database()); END $$",
    )
    .await;
    let (start, rest) = url.split_once("://").unwrap();
    let (_, place) = rest.rsplit_once('@').unwrap();
    let (_, database) = place.split_once('/').unwrap();
    let role = database.split('?').next().unwrap();
    let guest = format!("{start}://{role}:guest@{place}");
    let refused = complaint(&nudge("check", &guest, 1_000));
    assert!(refused.contains("may make no tables"), "{refused}");

    execute(
        &url,
        "DO $$ BEGIN EXECUTE format('ALTER DATABASE %1$I OWNER TO %1$I', current_database()); END $$",
    )
    .await;
    for command in ["check", "migrate", "check"] {
        let output = nudge(command, &guest, 1_000);
        assert!(output.status.success(), "{command}: {output:?}");
    }
    // Somebody else made the tables.
    execute(
        &url,
        "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I OWNER TO CURRENT_USER', current_database()); END $$",
    )
    .await;
    let output = nudge("check", &guest, 1_000);
    assert!(output.status.success(), "{output:?}");
}

/// The connection behind a pooler is the next one's as it was.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn migrations_leave_nothing_behind_a_pooler() {
    let url = postgres::cluster().create_database();
    execute(
        &url,
        "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET statement_timeout = 77000', current_database()); END $$",
    )
    .await;
    let Some(pooler) = pooler(&url, "transaction", 1) else {
        return;
    };
    let url = pooler.url(&url);
    for _ in 0..2 {
        let output = nudge("migrate", &url, 0);
        assert!(output.status.success(), "{output:?}");
    }
    let options = Options {
        statement_cache: 0,
        ..Options::new(url, 1)
    };
    let db = Db::open(&options).await.unwrap();
    let mut tx = db.read().await.unwrap();
    assert_eq!(text(&mut tx, "SHOW statement_timeout").await, "77s");
    for question in [
        "SELECT count(*)::text FROM pg_prepared_statements",
        "SELECT count(*)::text FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()",
    ] {
        assert_eq!(text(&mut tx, question).await, "0", "{question}");
    }
    assert_ne!(
        text(&mut tx, "SELECT count(*)::text FROM _sqlx_migrations").await,
        "0"
    );
    drop(tx);
    db.close().await;
}

/// Each transaction has another connection. `tests/README.md` says how to run all tests in that way.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_part_of_the_suite_runs_through_a_pooler() {
    if pooler(&postgres::cluster().url("postgres"), "transaction", 1).is_none() {
        return;
    }
    let run = || {
        Command::new(std::env::current_exe().unwrap())
            .args(PART)
            .env("NUDGE_TEST_POOLER", "transaction")
            .output()
            .unwrap()
    };
    let output = tokio::task::spawn_blocking(run).await.unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
    assert!(!said.contains(" 0 passed"), "{said}");
}
