//! Disks that are full and databases that are damaged: a server says so, and what to do (runbook).

use std::process::Output;

use nudge_platform::config::Config;
use serde_json::json;
use tempfile::TempDir;
use tests::child::{self, complaint};
use tests::{Backend, Credential, TestApp, postgres, site};

use crate::faults::{Disk, fault, on_a_faulty_disk, skipped};

/// Events that take more room than a page has left.
async fn send(app: &TestApp, person: &tests::Session) -> tests::Answer {
    let filler = || (0..20).map(|_| app.id().to_string()).collect::<String>();
    let events = (0..20).map(|_| app.event(person, "view", &json!({"filler": filler()})));
    app.ingest(person, &events.collect::<Vec<_>>()).await
}

/// A sign of life finds room where it is. Who asks whether the server is ready hears that nothing else does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_whose_database_has_no_room_is_not_ready() {
    let Some((cluster, _disk)) = on_a_faulty_disk().await else {
        return;
    };
    let url = cluster.create_database();
    let app = TestApp::start_with(site!(), Backend::Sqlite, |config: &mut Config| {
        config.database.url = url;
        config.pipeline.node_timeout_seconds = 3;
    })
    .await;
    let person = app.session("ada").await;
    send(&app, &person).await.ok();
    app.settle().await;
    let ready = async || app.get("/readyz", &Credential::none()).await;
    assert_eq!(ready().await.status, 200);

    fault(&cluster.fault(), "full");
    app.until("it is not ready", async || {
        let refused = send(&app, &person).await;
        refused.refused(503, "unavailable");
        ready().await.status == 503
    })
    .await;
    let said = ready().await.text;
    assert_eq!(said, "the database takes no writes: its disk is full\n");

    std::fs::remove_file(cluster.fault()).unwrap();
    send(&app, &person).await.ok();
    app.until("it is ready again", async || ready().await.status == 200)
        .await;
    app.finish().await;
}

/// A data directory with a database.
fn migrated() -> TempDir {
    let folder = TempDir::with_prefix("nudge-test-").unwrap();
    let migrated = run(&["migrate"], &folder);
    assert!(migrated.status.success(), "{migrated:?}");
    folder
}

fn run(command: &[&str], folder: &TempDir) -> Output {
    let mut program = child::program(site!());
    let program = program.args(command).arg("--data-dir").arg(folder.path());
    program.output().unwrap()
}

#[test]
fn check_finds_that_the_embedded_databases_disk_is_full() {
    let Some(disk) = Disk::new() else {
        skipped("there is no C compiler");
        return;
    };
    let check = || {
        let mut program = child::program(site!());
        program
            .env("LD_PRELOAD", &disk.library)
            .env("NUDGE_TEST_FAULT", disk.control())
            .args(["check", "--data-dir"])
            .arg(disk.data());
        program.output().unwrap()
    };
    let data = disk.data();
    let made = child::run(site!(), &["migrate", "--data-dir", data.to_str().unwrap()]);
    assert!(made.status.success(), "{made:?}");
    let checked = check();
    assert!(checked.status.success(), "{checked:?}");
    fault(&disk.control(), "full");
    let refused = complaint(&check());
    assert!(refused.contains("Make room"), "{refused}");
}

#[test]
fn check_finds_that_the_embedded_database_is_damaged() {
    use std::os::unix::fs::FileExt as _;
    let folder = migrated();
    let file = std::fs::OpenOptions::new()
        .write(true)
        .open(folder.path().join("nudge.db"))
        .unwrap();
    // Each page begins with what is in it.
    let pages = file.metadata().unwrap().len() / 4_096;
    for page in pages - 3..pages {
        file.write_all_at(&[0xA5; 64], page * 4_096).unwrap();
    }
    let refused = complaint(&run(&["check"], &folder)).to_lowercase();
    assert!(
        refused.contains("damaged") && refused.contains("restore a backup"),
        "{refused}"
    );
}

/// The doctor and the check name the step that helps.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_is_not_there_is_to_be_made() {
    let url = postgres::database().await;
    let (name, query) = url.split_once('?').unwrap_or((&url, ""));
    let url = format!("{name}_missing?{query}");
    let folder = TempDir::with_prefix("nudge-test-").unwrap();
    let run = |command: &[&str]| {
        let mut program = child::program(site!());
        program.args(command).args(["--database-url", &url]);
        program.arg("--data-dir").arg(folder.path());
        program.output().unwrap()
    };
    let refused = complaint(&run(&["check"]));
    assert!(refused.contains("CREATE DATABASE"), "{refused}");
    let doctor = run(&["doctor", "--operations", "http://127.0.0.1:1"]);
    let said = String::from_utf8(doctor.stdout).unwrap();
    assert!(said.contains("CREATE DATABASE"), "{said}");
}
