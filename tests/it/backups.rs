//! Backups of the embedded database, beside a running server, and what is restored of them.

use std::collections::BTreeSet;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;
use tests::beside::find_or_skip;
use tests::child::{self, complaint};
use tests::client::{self, Answer};
use tests::session::text;
use tests::{Child, postgres, site};

/// Longer than an erasure takes.
const ERASED: Duration = Duration::from_mins(1);
/// The key is in the data directory; deletions need not wait for other processes.
pub(crate) const VARIABLES: [(&str, &str); 3] = [
    ("NUDGE_SECRETS__MASTER_KEY", ""),
    // Compiled plugins are signed with it.
    ("NUDGE_PLUGINS__CACHE_DIR", ""),
    ("NUDGE_PRIVACY__GRACE_SECONDS", "0"),
];

pub(crate) fn start(data: &Path) -> Child {
    Child::start_with(site!(), data, &VARIABLES)
}

fn nudge(arguments: &[&str]) -> Output {
    let mut program = child::program(site!());
    program.envs(VARIABLES).args(arguments);
    program.output().unwrap()
}

pub(crate) fn succeed(arguments: &[&str]) -> String {
    let output = nudge(arguments);
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// A folder with a passphrase, and the names in it.
pub(crate) struct Place {
    pub folder: TempDir,
    passphrase: String,
}

impl Place {
    pub(crate) fn new() -> Self {
        let folder = TempDir::with_prefix("nudge-test-").unwrap();
        let file = folder.path().join("passphrase");
        std::fs::write(&file, "correct horse battery staple\n").unwrap();
        let passphrase = file.to_str().unwrap().to_owned();
        Self { folder, passphrase }
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    pub(crate) fn back_up(&self, data: &str, file: &str) {
        let key = ["--passphrase-file", &self.passphrase];
        succeed(&[&["backup", file, "--data-dir", data][..], &key].concat());
    }

    /// Restores a backup. `nudge dev` knows its app again by the keys that it keeps.
    pub(crate) fn restore(&self, file: &str, from: &str, to: &str, more: &[&str]) -> String {
        let key = ["--passphrase-file", &self.passphrase];
        let said = succeed(&[&["restore", file, "--data-dir", to][..], &key, more].concat());
        std::fs::copy(format!("{from}/dev.json"), format!("{to}/dev.json")).unwrap();
        said
    }
}

pub(crate) async fn call(
    child: &Child,
    path: &str,
    key: &str,
    token: &str,
    body: &Value,
) -> Answer {
    let url = format!("{}{path}", child.text("baseUrl"));
    let http = client::build();
    let request = if body.is_null() {
        http.get(url)
    } else {
        http.post(url).json(body)
    };
    let request = request
        .bearer_auth(child.text(key))
        .header("x-service-subject-token", token);
    client::send(request).await
}

/// What a device's requests carry.
async fn device(child: &Child, name: &str) -> String {
    let body = json!({"anonymousId": name});
    let session = call(child, "/v1/sdk/session", "writeKey", "", &body).await;
    text(&session.ok(), "subjectToken")
}

/// Sends an event; answers its id.
async fn purchase(child: &Child, name: &str, token: &str) -> String {
    let now = nudge_platform::clock::Clock::default().now();
    let id = nudge_platform::id::new(now).to_string();
    let event = json!({"eventId": id, "name": "purchase", "anonymousId": name,
        "timestamp": nudge_platform::clock::to_text(now)});
    let body = json!({"context": {"anonymousId": name}, "events": [event]});
    let data = call(child, "/v1/sdk/ingest", "writeKey", token, &body).await;
    assert_eq!(data.ok()["accepted"], 1);
    id
}

/// The ids of all events in an app's feed.
async fn feed(child: &Child) -> BTreeSet<String> {
    let mut ids = BTreeSet::new();
    let mut query = String::new();
    loop {
        let path = format!("/v1/apps/{}/events?limit=100{query}", child.text("appId"));
        let page = call(child, &path, "adminToken", "", &Value::Null)
            .await
            .ok();
        ids.extend(
            page["items"]
                .as_array()
                .unwrap()
                .iter()
                .map(|item| text(item, "eventId")),
        );
        match page["nextCursor"].as_str() {
            Some(cursor) => query = format!("&cursor={cursor}"),
            None => return ids,
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_has_all_that_was_answered_before_it() {
    let place = Place::new();
    let (data, file, restored) = (place.path("data"), place.path("backup"), place.path("new"));
    std::fs::create_dir(&data).unwrap();
    let child = start(Path::new(&data));
    let token = device(&child, "ada").await;
    let endpoint = format!("/v1/apps/{}/push/webhooks", child.text("appId"));
    let hook = json!({"url": "https://8.8.8.8/in", "eventTypes": ["opened"]});
    let hook = call(&child, &endpoint, "adminToken", "", &hook)
        .await
        .data(201);
    let mut before = BTreeSet::new();
    for _ in 0..50 {
        before.insert(purchase(&child, "ada", &token).await);
    }
    let made = {
        let (data, file, passphrase) = (data.clone(), file.clone(), place.passphrase.clone());
        tokio::task::spawn_blocking(move || {
            succeed(&[
                "backup",
                &file,
                "--data-dir",
                &data,
                "--passphrase-file",
                &passphrase,
            ])
        })
    };
    let mut meanwhile = before.clone();
    while !made.is_finished() {
        meanwhile.insert(purchase(&child, "ada", &token).await);
    }
    made.await.unwrap();
    child.kill();

    place.restore(&file, &data, &restored, &[]);
    let child = start(Path::new(&restored));
    let found = feed(&child).await;
    assert!(before.is_subset(&found));
    assert!(found.is_subset(&meanwhile));
    // The device's token is signed with the key that was restored, and the webhook's secret is sealed with it.
    purchase(&child, "ada", &token).await;
    let path = format!("{endpoint}/{}/rotate-secret", text(&hook, "id"));
    call(&child, &path, "adminToken", "", &json!({})).await.ok();
    assert_eq!(child.terminate(), Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whom_a_later_state_knows_as_deleted_is_deleted_again() {
    let place = Place::new();
    let (data, file, restored) = (place.path("data"), place.path("backup"), place.path("new"));
    std::fs::create_dir(&data).unwrap();
    let child = start(Path::new(&data));
    let (ada, grace) = (device(&child, "ada").await, device(&child, "grace").await);
    purchase(&child, "ada", &ada).await;
    let kept = purchase(&child, "grace", &grace).await;
    place.back_up(&data, &file);
    // Eve comes after the backup.
    let eve = device(&child, "eve").await;
    purchase(&child, "eve", &eve).await;
    let app = format!("/v1/apps/{}", child.text("appId"));
    for name in ["ada", "eve"] {
        let body = json!({"anonymousId": name});
        let path = format!("{app}/gdpr/delete");
        call(&child, &path, "adminToken", "", &body).await.data(202);
    }
    child.kill();

    let later = format!("sqlite:{data}/nudge.db");
    let said = place.restore(&file, &data, &restored, &["--deletions-from", &later]);
    assert!(said.contains("1 people are hidden again"), "{said}");
    assert!(said.contains("2 names"), "{said}");
    let again = [
        "repeat-deletions",
        "--from",
        &later,
        "--data-dir",
        &restored,
    ];
    assert!(succeed(&again).contains("0 people"), "done twice");

    let child = start(Path::new(&restored));
    let path = format!("{app}/users/ada");
    let found = call(&child, &path, "adminToken", "", &Value::Null).await;
    assert_eq!(found.status, 404, "hidden from the first moment");
    let started = Instant::now();
    while feed(&child).await != BTreeSet::from([kept.clone()]) {
        assert!(started.elapsed() < ERASED, "the person is not erased");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    // What is of before the deletion is not stored under the name of somebody who came after the backup.
    let eve = device(&child, "eve").await;
    let event = json!({"eventId": "0d6a1c2e-7d2f-4c58-9a55-3d0c4f1e8a01", "name": "purchase", "anonymousId": "eve",
        "timestamp": "2026-01-01T00:00:00.000Z"});
    let body = json!({"context": {"anonymousId": "eve"}, "events": [event]});
    let answer = call(&child, "/v1/sdk/ingest", "writeKey", &eve, &body).await;
    assert_eq!(feed(&child).await, BTreeSet::from([kept]), "{answer:?}");
    assert_eq!(child.terminate(), Some(0));
}

/// Makes an empty database and a key.
pub(crate) fn make(data: &str) {
    succeed(&["migrate", "--data-dir", data]);
    let key = Path::new(data).join("master.key");
    std::fs::write(&key, format!("{}\n", tests::app::MASTER_KEY)).unwrap();
    std::fs::set_permissions(&key, Permissions::from_mode(0o600)).unwrap();
}

#[test]
fn what_can_not_be_restored_is_refused_and_leaves_nothing() {
    let place = Place::new();
    let (data, file, other) = (
        place.path("data"),
        place.path("backup"),
        place.path("other"),
    );
    make(&data);
    let without = nudge(&["backup", &file, "--data-dir", &data]);
    assert!(complaint(&without).contains("--recipient"));
    place.back_up(&data, &file);
    let key = ["--passphrase-file", &place.passphrase];
    let twice = nudge(&[&["backup", &file, "--data-dir", &data][..], &key].concat());
    assert!(complaint(&twice).contains("replaces no file"));
    let (gone, folder) = (place.path("gone/backup"), place.path("gone"));
    let lost = nudge(&[&["backup", &gone, "--data-dir", &data][..], &key].concat());
    assert!(complaint(&lost).contains(&format!("there is no folder {folder}: ")));
    let there = nudge(&[&["restore", &file, "--data-dir", &data][..], &key].concat());
    assert!(complaint(&there).contains("move the database away"));

    let restore = |file: &str, key: &str| {
        let output = nudge(&[
            "restore",
            file,
            "--data-dir",
            &other,
            "--passphrase-file",
            key,
        ]);
        let complaint = complaint(&output);
        for name in ["nudge.db", "master.key", "nudge.db.restore"] {
            assert!(
                !Path::new(&other).join(name).exists(),
                "{name}: {complaint}"
            );
        }
        complaint
    };
    assert!(restore(&gone, &place.passphrase).contains("can't restore"));
    assert!(!Path::new(&other).exists());
    let wrong = place.path("wrong");
    std::fs::write(&wrong, "some other passphrase").unwrap();
    assert!(restore(&file, &wrong).contains("not for this key"));
    let whole = std::fs::read(&file).unwrap();
    let cut = place.path("cut");
    std::fs::write(&cut, &whole[..whole.len() - 100]).unwrap();
    assert!(restore(&cut, &place.passphrase).contains("ends too early"));
    std::fs::write(&cut, b"a file").unwrap();
    assert!(restore(&cut, &place.passphrase).contains("header is damaged"));
    for left in ["backup.db", "backup.db-wal"] {
        assert!(!Path::new(&data).join(left).exists(), "{left}");
    }
}

/// Gives a database the values that are sealed with its key: every server has some.
pub(crate) fn seal(data: &str, later: &str) {
    let output = nudge(&["repeat-deletions", "--from", later, "--data-dir", data]);
    assert!(complaint(&output).contains("not states of one database"));
}

#[test]
fn no_key_is_made_beside_a_database_that_was_used_with_one() {
    let place = Place::new();
    let (data, later) = (place.path("data"), place.path("later"));
    make(&data);
    make(&later);
    let later = format!("sqlite:{later}/nudge.db");
    seal(&data, &later);
    let key = Path::new(&data).join("master.key");
    std::fs::remove_file(&key).unwrap();
    for command in [
        &["secrets", "rotate"][..],
        &["secrets", "reseal"],
        &["secrets", "forget"],
        &["repeat-deletions", "--from", &later],
    ] {
        let told = complaint(&nudge(&[command, &["--data-dir", &data]].concat()));
        assert!(
            told.contains("data that is sealed") && told.contains("has no master.key"),
            "{command:?}: {told}"
        );
        assert!(!key.exists(), "{command:?}");
    }
}

#[test]
fn what_is_wrong_with_a_later_state_is_told() {
    let place = Place::new();
    let (data, other) = (place.path("data"), place.path("other"));
    make(&data);
    make(&other);
    let url = |data: &str| format!("sqlite:{data}/nudge.db");
    seal(&data, &url(&other));
    let told = |later: &str| {
        complaint(&nudge(&[
            "repeat-deletions",
            "--from",
            later,
            "--data-dir",
            &data,
        ]))
    };
    let empty = place.path("empty.db");
    std::fs::write(&empty, "").unwrap();
    let told_of_empty = told(&format!("sqlite:{empty}"));
    assert!(
        told_of_empty.contains("there is no database of Nudge at sqlite:"),
        "{told_of_empty}"
    );
    let text = place.path("text.db");
    std::fs::write(&text, "This is no database. ".repeat(1000)).unwrap();
    let told_of_text = told(&format!("sqlite:{text}"));
    assert!(!told_of_text.contains("master key"), "{told_of_text}");

    // One that another key has sealed.
    let third = place.path("third");
    make(&third);
    let new_key = "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=\n";
    std::fs::write(Path::new(&third).join("master.key"), new_key).unwrap();
    let fourth = place.path("fourth");
    make(&fourth);
    seal(&third, &url(&fourth));
    let told_of_third = told(&url(&third));
    assert!(
        told_of_third.contains("the later state has another master key"),
        "{told_of_third}"
    );
}

#[test]
fn a_restored_database_may_be_named_without_a_folder() {
    let place = Place::new();
    let (data, file) = (place.path("data"), place.path("backup"));
    make(&data);
    place.back_up(&data, &file);
    let restore = |url: &str| {
        let mut program = child::program(site!());
        program.envs(VARIABLES).current_dir(place.folder.path());
        program.args(["restore", &file, "--passphrase-file", &place.passphrase]);
        program.args(["--data-dir", "new", "--database-url", url]);
        program.output().unwrap()
    };
    let nowhere = complaint(&restore("sqlite:none/own.db"));
    assert!(nowhere.contains("none/own.db.restore"), "{nowhere}");
    let output = restore("sqlite:own.db");
    assert!(output.status.success(), "{output:?}");
    assert!(place.folder.path().join("own.db").exists());
}

#[test]
fn deletions_are_repeated_in_a_database_that_is_there() {
    let place = Place::new();
    let (data, later) = (place.path("data"), place.path("later"));
    make(&later);
    std::fs::create_dir(&data).unwrap();
    let later = format!("sqlite:{later}/nudge.db");
    let told = |from: &str| {
        let arguments = ["repeat-deletions", "--from", from, "--data-dir", &data];
        complaint(&nudge(&arguments))
    };
    assert!(told(&later).contains("there is no database at"));
    assert_eq!(std::fs::read_dir(&data).unwrap().count(), 0);

    std::fs::write(Path::new(&data).join("nudge.db"), "").unwrap();
    assert!(told(&later).contains("the database is empty"));
}

#[test]
fn a_backup_of_nothing_says_how_the_folder_is_named() {
    let place = Place::new();
    let (data, file) = (place.path("data"), place.path("backup"));
    let key = ["--passphrase-file", &place.passphrase];
    let arguments = [&["backup", &file, "--data-dir", &data][..], &key].concat();
    let told = complaint(&nudge(&arguments));
    assert!(told.contains("there is no database at"), "{told}");
    assert!(told.contains("--data-dir"), "{told}");
}

#[test]
fn no_password_of_a_later_state_is_told() {
    let place = Place::new();
    let data = place.path("data");
    make(&data);
    // Nobody listens on port 1.
    let later = "postgres://nudge:secret@127.0.0.1:1/nudge";
    let told = complaint(&nudge(&[
        "repeat-deletions",
        "--from",
        later,
        "--data-dir",
        &data,
    ]));
    assert!(
        told.contains("can't open") && !told.contains("secret"),
        "{told}"
    );
}

/// A pipeline of a shell, that has to succeed.
fn shell(script: &str, variables: &[(&str, &str)]) -> String {
    let output = Command::new("bash")
        .args(["-euo", "pipefail", "-c", script])
        .envs(variables.iter().copied())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "{script}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn age_opens_a_backup_and_nudge_opens_what_age_made() {
    if find_or_skip("age").is_none() {
        return;
    }
    let place = Place::new();
    let (data, file, restored) = (place.path("data"), place.path("backup"), place.path("new"));
    make(&data);
    let key = place.path("key");
    shell("age-keygen --output \"$KEY\"", &[("KEY", &key)]);
    let recipient = shell("age-keygen -y \"$KEY\"", &[("KEY", &key)]);
    let other = shell("age-keygen 2>/dev/null | age-keygen -y", &[]);
    succeed(&[
        "backup",
        &file,
        "--data-dir",
        &data,
        "--recipient",
        other.trim(),
        "--recipient",
        recipient.trim(),
    ]);

    let variables = [
        ("KEY", &*key),
        ("FILE", &file),
        ("RECIPIENT", recipient.trim()),
        ("AGAIN", &place.path("again")),
    ];
    let names = shell(
        "age --decrypt --identity \"$KEY\" \"$FILE\" | tar --list --gzip",
        &variables,
    );
    assert_eq!(
        names.lines().collect::<Vec<_>>(),
        ["master.key", "nudge.db"]
    );
    shell(
        "age --decrypt --identity \"$KEY\" \"$FILE\" | age --encrypt --recipient \"$RECIPIENT\" --output \"$AGAIN\"",
        &variables,
    );
    // The database may be elsewhere than the key.
    let elsewhere = format!("sqlite:{}", place.path("elsewhere.db"));
    succeed(&[
        "restore",
        &place.path("again"),
        "--database-url",
        &elsewhere,
        "--identity",
        &key,
        "--data-dir",
        &restored,
    ]);
    let keys =
        [&data, &restored].map(|folder| std::fs::read(format!("{folder}/master.key")).unwrap());
    assert_eq!(keys[0], keys[1]);
    succeed(&[
        "check",
        "--database-url",
        &elsewhere,
        "--data-dir",
        &restored,
        "--listen",
        "127.0.0.1:0",
        "--ops-listen",
        "127.0.0.1:0",
    ]);
}

const GUIDE: &str = include_str!("../../host/docs/backup.md");

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_recipe_for_postgresql_restores_and_deletes_again() {
    let recipe: Vec<&str> = GUIDE
        .split("```sh\n")
        .skip(1)
        .map(|block| block.split("```").next().unwrap())
        .collect();
    let [back_up, restore] = recipe.try_into().expect("the guide has two scripts");
    let folder = TempDir::with_prefix("nudge-test-").unwrap();
    let (present, restored) = (postgres::database().await, postgres::database().await);
    let start = |database: &str| {
        // What a process had in hand when the dump was made is released soon.
        let more = [
            ("NUDGE_DATABASE__URL", database),
            ("NUDGE_PIPELINE__NODE_TIMEOUT_SECONDS", "5"),
            ("NUDGE_PRIVACY__GRACE_SECONDS", "0"),
        ];
        Child::start_with(site!(), folder.path(), &more)
    };
    let child = start(&present);
    let (ada, grace) = (device(&child, "ada").await, device(&child, "grace").await);
    purchase(&child, "ada", &ada).await;
    let kept = purchase(&child, "grace", &grace).await;
    let file = folder.path().join("nudge.dump");
    // The program is called differently where it is tested.
    let programs = folder.path().join("programs");
    std::fs::create_dir(&programs).unwrap();
    let program = child::program(site!());
    std::os::unix::fs::symlink(program.get_program(), programs.join("nudge")).unwrap();
    let others = std::env::var("PATH").unwrap();
    let path = format!("{}:{others}", programs.display());
    let variables = [
        ("PRESENT", &*present),
        ("RESTORED", &restored),
        ("FILE", file.to_str().unwrap()),
        ("NUDGE_SECRETS__MASTER_KEY", tests::app::MASTER_KEY),
        ("PATH", &path),
    ];
    shell(back_up, &variables);
    let path = format!("/v1/apps/{}/gdpr/delete", child.text("appId"));
    call(
        &child,
        &path,
        "adminToken",
        "",
        &json!({"anonymousId": "ada"}),
    )
    .await
    .data(202);
    assert_eq!(child.terminate(), Some(0));
    // As on a standby, nobody writes there.
    shell(
        "psql --quiet --command \"ALTER DATABASE $(basename \"${PRESENT%%\\?*}\") SET default_transaction_read_only = on\" \"$PRESENT\"",
        &variables,
    );
    let said = shell(restore, &variables);
    assert!(said.contains("1 people are hidden again"), "{said}");

    let child = start(&restored);
    let started = Instant::now();
    while feed(&child).await != BTreeSet::from([kept.clone()]) {
        assert!(started.elapsed() < ERASED, "the person is not erased");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(child.terminate(), Some(0));
}
