//! `kill -9` at any moment of a run, and two servers that begin it: everybody gets it once.

use std::time::Duration;

use nudge_platform::config::Config;
use serde_json::{Value, json};
use tempfile::TempDir;
use tests::client;
use tests::{Backend, Child, TestApp, postgres, site};
use uuid::Uuid;

use crate::two_servers::pair;

/// Several pages, and several times what the pipeline has in memory of a run.
const PEOPLE: u64 = 4_000;

async fn scheduled(app: &TestApp, status: &str) -> Uuid {
    let parts = json!({"mode": "scheduled", "trigger": null, "status": status});
    app.survey_with(&parts).await
}

/// Waits until the run is through with everybody.
async fn over(app: &TestApp) {
    app.until("the run begins and ends", async || {
        let runs: Vec<(i64, i64)> = app
            .rows(
                "SELECT (SELECT count(*) FROM jobs WHERE kind = 'campaign.run'),
                        (SELECT count(*) FROM jobs WHERE kind = 'campaign.run' AND completed_at IS NULL)
                      + (SELECT count(*) FROM occasions)",
            )
            .await;
        matches!(runs[..], [(1.., 0)])
    })
    .await;
    let begun: Vec<(i64,)> = app
        .rows("SELECT count(*) FROM jobs WHERE kind = 'campaign.run'")
        .await;
    assert_eq!(begun, [(1,)]);
    let counts: Vec<(i64, i64)> = app
        .rows("SELECT count(*), count(DISTINCT subject_id) FROM instructions")
        .await;
    let people = i64::try_from(PEOPLE).unwrap();
    assert_eq!(counts, [(people, people)]);
    let positions: Vec<(i64, i64)> = app
        .rows("SELECT min(position), max(position) FROM instructions")
        .await;
    assert_eq!(positions, [(1, 1)]);
}

async fn survives_kills(backend: Backend) {
    let folder = TempDir::with_prefix("nudge-test-").unwrap();
    let mut config: Config = TestApp::config(site!(), folder.path());
    let mut variables = vec![("NUDGE_PIPELINE__NODE_TIMEOUT_SECONDS", "5")];
    if backend == Backend::Postgres {
        config.database.url = postgres::database().await;
        config.database.connections = 5;
        config.pipeline.node_timeout_seconds = 5;
    }
    let url = config.database.url.clone();
    if backend == Backend::Postgres {
        variables.push(("NUDGE_DATABASE__URL", &url));
    }
    let app = TestApp::open(site!(), config.clone()).await.unwrap();
    app.people(PEOPLE).await;
    let survey = scheduled(&app, "draft").await;
    let path = app.path(&format!("/surveys/{survey}"));
    app.finish().await;

    let start = || Child::start_with(site!(), folder.path(), &variables);
    let mut child = start();
    let request = client::build()
        .patch(format!("{}{path}", child.text("baseUrl")))
        .bearer_auth(child.text("editorToken"))
        .json(&json!({"status": "active"}));
    let answer: Value = client::send(request).await.ok();
    assert_eq!(answer["status"], "active");
    for lifetime in [40, 150, 300, 450, 600] {
        std::thread::sleep(Duration::from_millis(lifetime));
        child.kill();
        child = start();
    }
    assert_eq!(child.terminate(), Some(0));

    let app = TestApp::open(site!(), config).await.unwrap();
    over(&app).await;
    app.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_survives_kills_on_sqlite() {
    survives_kills(Backend::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_survives_kills_on_postgres() {
    survives_kills(Backend::Postgres).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_servers_begin_a_run_once() {
    let (_folder, one, two) = pair().await;
    one.people(PEOPLE).await;

    scheduled(&one, "active").await;

    over(&two).await;
    // Both have had a hand in it, or could have: what one claimed, the other did not do.
    one.finish().await;
    two.finish().await;
}
