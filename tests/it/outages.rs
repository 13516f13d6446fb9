//! Databases that go away, and disks that fill up: refusals to try again, nothing lost (contract 3, 14).

use std::time::{Duration, Instant};

use nudge_platform::config::Config;
use serde_json::{Value, json};
use tempfile::TempDir;
use tests::postgres::{Cluster, Durability};
use tests::session::text;
use tests::{Backend, Credential, Session, TestApp, site};

/// Longer than anything takes to come back.
const COMES_BACK: Duration = Duration::from_mins(1);

/// A server whose database is in a cluster of its own, and somebody whose purchases fire.
async fn with_cluster() -> (Cluster, TestApp, Session) {
    let cluster = tokio::task::spawn_blocking(|| Cluster::start_new(Durability::Fast))
        .await
        .unwrap();
    let url = cluster.create_database();
    let app = TestApp::start_with(site!(), Backend::Sqlite, |config: &mut Config| {
        config.database.url = url;
        config.database.acquire_timeout_seconds = 2;
    })
    .await;
    app.survey(&json!({"kind": "event", "eventName": "purchase"}))
        .await;
    let ada = app.session("ada").await;
    (cluster, app, ada)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_goes_away_and_comes_back_needs_no_restart() {
    let (cluster, app, ada) = with_cluster().await;
    let before = app.event(&ada, "purchase", &json!({}));
    app.ingest(&ada, std::slice::from_ref(&before)).await.ok();

    cluster.stop();
    let event = app.event(&ada, "purchase", &json!({}));
    for _ in 0..3 {
        let answer = app.ingest(&ada, std::slice::from_ref(&event)).await;
        answer.refused(503, "unavailable");
        assert!(
            answer
                .header("retry-after")
                .parse::<u32>()
                .is_ok_and(|seconds| seconds > 0)
        );
    }
    for path in [app.path("/surveys"), app.path("/dead-letters")] {
        app.get(&path, &app.viewer())
            .await
            .refused(503, "unavailable");
    }
    app.poll(&ada, "").await.refused(503, "unavailable");
    assert_eq!(app.get("/livez", &Credential::none()).await.status, 200);
    assert_eq!(app.get("/readyz", &Credential::none()).await.status, 503);

    cluster.start();
    recovers(&app, &ada, &event).await;
    app.settle().await;
    let fired: Vec<String> = app
        .offered(&ada)
        .await
        .as_array()
        .unwrap()
        .iter()
        .map(|item| text(&item["trigger"], "eventId"))
        .collect();
    assert_eq!(fired, [text(&before, "eventId"), text(&event, "eventId")]);
    assert_eq!(app.get("/readyz", &Credential::none()).await.status, 200);
    app.finish().await;
}

/// An embedded database whose disk is full takes no writes: what balances requests sends it none.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_on_a_full_disk_is_not_ready() {
    let mut app = TestApp::start(site!(), Backend::Sqlite).await;
    let ready = async |app: &TestApp| app.get("/readyz", &Credential::none()).await;
    assert_eq!(ready(&app).await.status, 200);

    app.config.database.min_free_bytes = u64::MAX;
    app.restart().await;
    let answer = ready(&app).await;
    assert_eq!(answer.status, 503);
    assert!(answer.text.contains("the disk is full"), "{}", answer.text);
    assert_eq!(app.get("/livez", &Credential::none()).await.status, 200);
    app.finish().await;
}

/// The database is restarted under load, twice; every event is sent until it is accepted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_restarts_under_load_loses_nothing_and_doubles_nothing() {
    let (cluster, app, ada) = with_cluster().await;
    let restarts = std::thread::spawn(move || {
        for _ in 0..2 {
            std::thread::sleep(Duration::from_millis(400));
            cluster.restart();
        }
        cluster
    });

    let mut sent = Vec::new();
    while !restarts.is_finished() || sent.len() < 50 {
        let event = app.event(&ada, "purchase", &json!({}));
        recovers(&app, &ada, &event).await;
        sent.push(text(&event, "eventId"));
    }
    let _cluster = restarts.join().unwrap();
    app.settle().await;

    assert_eq!(app.stored("purchase").await, sent.len());
    let fired: Vec<(uuid::Uuid,)> = app
        .rows("SELECT trigger_event_id FROM instructions ORDER BY position")
        .await;
    let fired: Vec<String> = fired.iter().map(|(id,)| id.to_string()).collect();
    assert_eq!(fired, sent);
    app.finish().await;
}

/// Sends an event until it is accepted.
async fn recovers(app: &TestApp, session: &Session, event: &Value) {
    let started = Instant::now();
    loop {
        let answer = app.ingest(session, std::slice::from_ref(event)).await;
        if answer.status == 200 {
            assert_eq!(answer.ok()["accepted"], 1);
            return;
        }
        answer.refused(503, "unavailable");
        assert!(
            started.elapsed() < COMES_BACK,
            "it does not come back: {}",
            answer.text
        );
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

#[expect(
    clippy::print_stderr,
    reason = "who runs the tests should know what they did not test"
)]
fn skipped(why: &str) {
    eprintln!("skipped: {why}");
}

/// A small file system of its own; unmounted when dropped.
struct SmallDisk(TempDir);

impl SmallDisk {
    /// None, where the tests may not mount.
    fn mount() -> Option<Self> {
        let folder = TempDir::with_prefix("nudge-disk-").unwrap();
        let mount = std::process::Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=8m", "tmpfs"])
            .arg(folder.path())
            .output();
        mount
            .is_ok_and(|output| output.status.success())
            .then_some(Self(folder))
    }

    fn fill(&self) -> std::path::PathBuf {
        use std::io::Write as _;
        let path = self.0.path().join("ballast");
        let mut file = std::fs::File::create(&path).unwrap();
        while file.write_all(&[0; 4096]).is_ok() {}
        while file.write_all(&[0]).is_ok() {}
        path
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        drop(
            std::process::Command::new("umount")
                .arg("-l")
                .arg(self.0.path())
                .status(),
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_refuses_and_loses_nothing() {
    let Some(disk) = SmallDisk::mount() else {
        skipped("a file system to fill can't be mounted here");
        return;
    };
    let config = TestApp::config(site!(), &disk.0.path().join("data"));
    let app = TestApp::open(site!(), config).await.unwrap();
    app.survey(&json!({"kind": "event", "eventName": "purchase"}))
        .await;
    let ada = app.session("ada").await;
    let ballast = disk.fill();

    let mut accepted = 0;
    let mut refused = 0;
    let mut last = Value::Null;
    for _ in 0..200 {
        last = app.event(&ada, "purchase", &json!({"padding": "x".repeat(20_000)}));
        let answer = app.ingest(&ada, std::slice::from_ref(&last)).await;
        if answer.status == 200 {
            accepted += 1;
        } else {
            answer.refused(503, "unavailable");
            assert!(!answer.header("retry-after").is_empty());
            refused += 1;
            if refused == 5 {
                break;
            }
        }
    }
    assert_eq!(refused, 5, "the disk is full after {accepted} events");

    std::fs::remove_file(ballast).unwrap();
    recovers(&app, &ada, &last).await;
    app.settle().await;
    assert_eq!(app.stored("purchase").await, accepted + 1);
    app.finish().await;
}
