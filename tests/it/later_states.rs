//! Later states of a database, whose deletions are done again on one that was restored.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use nudge_db::{Db, Options};
use nudge_platform::clock::{self, Clock};
use nudge_platform::id;
use serde_json::{Value, json};
use tests::{Child, child, client, site};
use uuid::Uuid;

use crate::backups::{Place, VARIABLES, call, make, seal, start, succeed};

/// Longer than an erasure takes.
const ERASED: Duration = Duration::from_mins(1);
/// Somebody who is not root, whom nothing keeps from writing.
const NOBODY: u32 = 65_534;

/// Waits until all deletions are completed.
async fn are_completed(child: &Child) {
    let path = format!("/v1/apps/{}/gdpr/jobs", child.text("appId"));
    let started = Instant::now();
    loop {
        let jobs = call(child, &path, "adminToken", "", &Value::Null)
            .await
            .ok();
        let jobs = jobs["items"].as_array().unwrap().clone();
        if !jobs.is_empty() && jobs.iter().all(|job| job["status"] == "completed") {
            return;
        }
        assert!(started.elapsed() < ERASED, "{jobs:?}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// What a server tells of a person, now.
fn event() -> Value {
    let now = Clock::default().now();
    let event =
        json!({"eventId": id::new(now), "name": "shipped", "timestamp": clock::to_text(now)});
    json!({"userId": "e-ada", "events": [event]})
}

/// Tells of an event; answers how many were taken.
async fn tell(child: &Child, event: &Value) -> Value {
    let url = format!("{}/v1/sdk/ingest", child.text("baseUrl"));
    let request = client::build().post(url).json(event);
    let answer = client::send(request.bearer_auth(child.text("serverKey"))).await;
    answer.ok()["accepted"].clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_came_back_after_a_deletion_is_taken_again_after_a_restore() {
    let place = Place::new();
    let (data, file, restored) = (place.path("data"), place.path("backup"), place.path("new"));
    fs::create_dir(&data).unwrap();
    let child = start(Path::new(&data));
    assert_eq!(tell(&child, &event()).await, 1);
    place.back_up(&data, &file);
    let before = event();
    tokio::time::sleep(Duration::from_millis(10)).await;
    let path = format!("/v1/apps/{}/gdpr/delete", child.text("appId"));
    let ada = json!({"externalId": "e-ada"});
    call(&child, &path, "adminToken", "", &ada).await.data(202);
    are_completed(&child).await;
    let after = event();
    assert_eq!(tell(&child, &after).await, 1, "a new person");
    child.kill();

    let later = format!("sqlite:{data}/nudge.db");
    let said = place.restore(&file, &data, &restored, &["--deletions-from", &later]);
    assert!(said.contains("1 people are hidden again"), "{said}");
    let child = start(Path::new(&restored));
    are_completed(&child).await;
    assert_eq!(tell(&child, &before).await, 0, "of before the deletion");
    assert_eq!(tell(&child, &after).await, 1, "a new person again");
    assert_eq!(child.terminate(), Some(0));
    let again = ["repeat-deletions", "--from", &later, "--data-dir"];
    let said = succeed(&[&again[..], &[&restored]].concat());
    assert!(said.contains("0 people"), "{said}");
}

/// Copies the files of a folder.
fn copy(from: &str, to: &str) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        if entry.path().is_file() {
            fs::copy(entry.path(), Path::new(to).join(entry.file_name())).unwrap();
        }
    }
}

/// Gives a folder and its files modes, and to somebody.
fn give(folder: &str, (folder_mode, file_mode): (u32, u32)) {
    let is_root = fs::metadata("/proc/self").unwrap().uid() == 0;
    let files = fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().path());
    let files = files.map(|file| (file, file_mode));
    let all = files.chain([(folder.into(), folder_mode)]);
    for (path, mode) in all {
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        if is_root {
            chown(&path, Some(NOBODY), Some(NOBODY)).unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_later_state_that_takes_no_writes_is_read() {
    let place = Place::new();
    let folder = place.folder.path();
    fs::set_permissions(folder, Permissions::from_mode(0o755)).unwrap();
    let (data, closed, open) = (place.path("data"), place.path("closed"), place.path("open"));
    let url = |folder: &str| format!("sqlite:{folder}/nudge.db");
    let other = place.path("other");
    make(&data);
    make(&other);
    seal(&data, &url(&other));
    copy(&data, &closed);
    let db = Db::open(&Options::new(url(&closed), 1)).await.unwrap();
    let mut tx = db.write().await.unwrap();
    let add =
        "INSERT INTO suppressions (app_id, hash, job_id, created_at) VALUES ($1, 'hash', $1, 1)";
    tx.sql(add).bind(Uuid::max()).execute().await.unwrap();
    tx.commit().await.unwrap();
    // The name is in the log only.
    copy(&closed, &open);
    db.close().await;

    for later in [&closed, &open] {
        let earlier = format!("{later}-earlier");
        copy(&data, &earlier);
        give(&earlier, (0o700, 0o600));
        give(later, (0o555, 0o444));
        let mut program = child::program(site!());
        program.envs(VARIABLES).current_dir(folder);
        program.args([
            "repeat-deletions",
            "--from",
            &url(later),
            "--data-dir",
            &earlier,
        ]);
        if fs::metadata("/proc/self").unwrap().uid() == 0 {
            program.uid(NOBODY).gid(NOBODY);
        }
        let output = program.output().unwrap();
        give(later, (0o755, 0o644));
        assert!(output.status.success(), "{later}: {output:?}");
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(said.contains("1 names"), "{later}: {said}");
    }
}
