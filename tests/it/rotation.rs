//! Changing the master key: what earlier keys signed stays good for its time, what they sealed is sealed anew.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Output;

use nudge_platform::sealed;
use nudge_push::credentials;
use nudge_push::providers::Environment;
use nudge_push::tokens;
use nudge_records::deliveries::provider::Platform;
use serde_json::json;
use tempfile::TempDir;
use tests::app::MASTER_KEY;
use tests::child::{self, Child};
use tests::session::text;
use tests::{Backend, TestApp, client, site};
use uuid::Uuid;

use crate::deletion::{delete, deleted};
use crate::two_servers::node_with;

const NEW_KEY: &str = "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=";

async fn rotates(backend: Backend) {
    let cache = TempDir::with_prefix("nudge-test-").unwrap();
    let own_cache = |config: &mut nudge_platform::config::Config| {
        // Compiled plugins are authenticated with the key too; other tests share theirs.
        cache.path().clone_into(&mut config.plugins.cache_dir);
    };
    let mut app = TestApp::start_with(site!(), backend, own_cache).await;
    let ada = app.session("ada").await;
    app.session("eve").await;
    let job_id = delete(&app, &json!({"anonymousId": "eve"})).await;
    deleted(&app, &job_id).await;
    app.credential(&json!({"platform": "web", "vapid": {"generate": true}}))
        .await;
    let token = json!({"provider": "fcm", "token": "a-token"});
    app.push_token(&ada, "phone", &token).await;
    for name in ["a", "b"] {
        app.make_key(&json!({"kind": "write", "name": name})).await;
    }
    let page = app.get(&app.path("/keys?limit=1"), &app.admin()).await.ok();
    let cursor = app.path(&format!(
        "/keys?limit=1&cursor={}",
        text(&page, "nextCursor")
    ));

    app.stop().await;
    NEW_KEY.clone_into(&mut app.config.secrets.master_key);
    let refused = TestApp::open(site!(), app.config.clone())
        .await
        .err()
        .unwrap();
    assert!(format!("{refused:#}").contains("master key"), "{refused:#}");
    *app.config.secrets.previous_keys = vec![MASTER_KEY.to_owned()];
    app.resume().await;
    app.poll(&ada, "").await.ok();
    app.get(&cursor, &app.admin()).await.ok();
    let new = app.session("bob").await;
    let services = app.services();
    let mut told = 0;
    let sealed = sealed::reseal(&services.db, &services.secrets, |_, _| told += 1)
        .await
        .unwrap();
    // Two keys of the server's own, a credential and a token, in three tables.
    assert_eq!((sealed, told), (4, 3));
    let again = sealed::reseal(&services.db, &services.secrets, |_, _| {})
        .await
        .unwrap();
    assert_eq!(again, 0, "nothing is left to do");

    app.stop().await;
    app.config.secrets.previous_keys.clear();
    app.resume().await;
    app.poll(&new, "").await.ok();
    app.poll(&ada, "").await.refused(401, "invalid_credentials");
    let services = app.services();
    let mut tx = services.db.read().await.unwrap();
    let ids = [Uuid::parse_str(&ada.subject_id).unwrap()];
    let id = app.access.app_id;
    let targets = tokens::store::active_of(&mut tx, &services.secrets, id, &ids).await;
    assert_eq!(targets.unwrap().targets.len(), 1);
    let key = credentials::store::used(&mut tx, id, Platform::Web, Environment::Production).await;
    let key = key.unwrap().unwrap();
    key.open(&services.secrets).unwrap();
    drop(tx);
    // The list of suppressed names is still known.
    let eve = app.session("eve").await;
    let data = app
        .ingest(&eve, &[app.event(&eve, "purchase", &json!({}))])
        .await
        .ok();
    assert_eq!(data["errors"][0]["code"], "suppressed_subject");
    app.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_key_changes_on_sqlite() {
    rotates(Backend::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_key_changes_on_postgres() {
    rotates(Backend::Postgres).await;
}

/// What the four steps of `nudge secrets status` do to two servers that are restarted one after the other: whatever one
/// of them has signed, the other accepts.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_servers_change_the_key_and_refuse_nobody() {
    let url = tests::postgres::database().await;
    let folder = TempDir::with_prefix("nudge-test-").unwrap();
    let mut servers = Vec::new();
    for name in ["one", "two"] {
        let node = node_with(&url, folder.path(), name, |config| {
            config.plugins.cache_dir = folder.path().join(format!("cache of {name}"));
        });
        servers.push(node.await);
    }
    let steps = [(MASTER_KEY, vec![NEW_KEY]), (NEW_KEY, vec![MASTER_KEY])];
    let mut people = vec![servers[0].session("somebody").await];
    for (step, (master, previous)) in steps.into_iter().enumerate() {
        for number in 0..servers.len() {
            let restarted = &mut servers[number];
            restarted.stop().await;
            master.clone_into(&mut restarted.config.secrets.master_key);
            *restarted.config.secrets.previous_keys =
                previous.iter().map(|key| (*key).to_owned()).collect();
            restarted.resume().await;
            for (at, server) in servers.iter().enumerate() {
                let name = format!("person-{step}-{number}-{at}");
                people.push(server.session(&name).await);
            }
            for server in &servers {
                for person in &people {
                    server.poll(person, "").await.ok();
                }
            }
        }
    }
    let counts = async |server: &TestApp| {
        let services = server.services();
        sealed::count_by_key(&services.db, &services.secrets)
            .await
            .unwrap()
    };
    let before = counts(&servers[0]).await;
    assert!(before.known[1] > 0, "{before:?}");
    let services = servers[0].services();
    sealed::reseal(&services.db, &services.secrets, |_, _| {})
        .await
        .unwrap();
    let after = counts(&servers[1]).await;
    let total: u64 = before.known.iter().sum();
    assert_eq!((after.known, after.unknown), (vec![total, 0], 0));
    for server in servers {
        server.finish().await;
    }
}

fn secrets(data: &Path, command: &[&str]) -> Output {
    child::program(site!())
        .env("NUDGE_SECRETS__MASTER_KEY", "")
        .arg("secrets")
        .args(command)
        .arg("--data-dir")
        .arg(data)
        .output()
        .unwrap()
}

async fn polls(child: &Child, token: &str) -> u16 {
    let url = format!("{}/v1/sdk/instructions", child.text("baseUrl"));
    let request = client::build()
        .get(url)
        .bearer_auth(child.text("writeKey"))
        .header("x-service-subject-token", token);
    client::send(request).await.status
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_key_file_changes_by_a_command() {
    let folder = TempDir::with_prefix("nudge-test-").unwrap();
    let data = folder.path();
    let cache = data.join("plugin-cache").display().to_string();
    let variables = [
        ("NUDGE_SECRETS__MASTER_KEY", ""),
        ("NUDGE_PLUGINS__CACHE_DIR", cache.as_str()),
    ];
    let key_file = data.join("master.key");
    let keys = || std::fs::read_to_string(&key_file).unwrap().lines().count();
    let child = Child::start_with(site!(), data, &variables);
    let url = format!("{}/v1/sdk/session", child.text("baseUrl"));
    let request = client::build()
        .post(url)
        .bearer_auth(child.text("writeKey"))
        .json(&json!({"anonymousId": "ada"}));
    let token = text(&client::send(request).await.ok(), "subjectToken");
    let status = || String::from_utf8(secrets(data, &["status"]).stdout).unwrap();
    let said = status();
    assert!(
        said.contains("seals 2 values") && said.contains("`nudge secrets rotate`"),
        "{said}"
    );
    let running = secrets(data, &["rotate"]);
    assert!(
        String::from_utf8(running.stderr)
            .unwrap()
            .contains("another server")
    );
    assert_eq!(child.terminate(), Some(0));

    assert!(
        !secrets(data, &["rotate", "--new-key", "short"])
            .status
            .success()
    );
    assert_eq!(keys(), 1);
    let rotated = secrets(data, &["rotate", "--new-key", NEW_KEY]);
    assert!(rotated.status.success());
    let said = String::from_utf8(rotated.stdout).unwrap();
    assert!(said.contains("server_secrets: 2 sealed anew"), "{said}");
    assert!(!said.contains(NEW_KEY));
    assert_eq!(keys(), 2);
    let said = status();
    assert!(
        said.contains("seals 0 values") && said.contains("`nudge secrets forget`"),
        "{said}"
    );
    assert_eq!(
        std::fs::metadata(&key_file).unwrap().permissions().mode() & 0o777,
        0o600
    );
    let child = Child::start_with(site!(), data, &variables);
    assert_eq!(polls(&child, &token).await, 200);
    assert_eq!(child.terminate(), Some(0));

    assert!(secrets(data, &["forget"]).status.success());
    assert_eq!(keys(), 1);
    let child = Child::start_with(site!(), data, &variables);
    assert_eq!(polls(&child, &token).await, 401);
    assert_eq!(child.terminate(), Some(0));

    std::fs::set_permissions(&key_file, std::fs::Permissions::from_mode(0o644)).unwrap();
    let refused = secrets(data, &["reseal"]);
    assert!(
        String::from_utf8(refused.stderr)
            .unwrap()
            .contains("chmod 600")
    );
}
