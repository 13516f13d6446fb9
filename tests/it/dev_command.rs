//! `nudge dev` and what a server looks at before it starts: whose the database is, whose the keys are.

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use nudge_db::{Db, Options};
use nudge_platform::clock::Clock;
use serde_json::json;
use tempfile::TempDir;
use tests::child::{self, Child, complaint};
use tests::session::text;
use tests::{Credential, TestApp, client, on_both_backends, postgres, site};

on_both_backends!(what_the_shop_is_made_of_is_made_anew_once_it_is_gone);

const ANY: &str = "127.0.0.1:0";

fn folder() -> TempDir {
    TempDir::with_prefix("nudge-test-").unwrap()
}

/// Runs a command of the program to its end, with a data directory.
fn run(arguments: &[&str], data: &Path) -> std::process::Output {
    let mut program = child::program(site!());
    let program = program.args(arguments).arg("--data-dir").arg(data);
    program.output().unwrap()
}

#[test]
fn each_start_has_the_same_app_and_keys() {
    let folder = folder();
    let of = |child: &Child| {
        ["appId", "workspaceId", "writeKey", "serverKey", "apiToken"]
            .map(|key| child.text(key).to_owned())
    };
    let child = Child::start(site!(), folder.path());
    let first = of(&child);
    assert_eq!(child.terminate(), Some(0));
    let kept = folder.path().join("dev.json");
    assert_eq!(kept.metadata().unwrap().permissions().mode() & 0o777, 0o600);

    let child = Child::start(site!(), folder.path());
    assert_eq!(of(&child), first);
    assert_eq!(child.terminate(), Some(0));

    // What earlier versions left has no file: the app is found by its keys, which are made anew.
    std::fs::remove_file(&kept).unwrap();
    let child = Child::start(site!(), folder.path());
    assert_eq!(of(&child)[..2], first[..2]);
    assert_ne!(of(&child)[2..], first[2..]);
}

#[test]
fn a_link_leads_to_the_server_that_runs() {
    let folder = folder();
    let child = Child::start(site!(), folder.path());
    let workspace = child.text("workspaceId").to_owned();
    let link = |more: &[&str]| {
        let link = [
            "console-link",
            "--workspace",
            &workspace,
            "--role",
            "viewer",
        ];
        let output = run(&[&link, more].concat(), folder.path());
        assert!(output.status.success(), "{}", complaint(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    let base = format!("{}/console/#login=", child.text("baseUrl"));
    let made = link(&[]);
    assert!(made.starts_with(&base), "{made}");
    let chosen = link(&["--listen", "127.0.0.1:7"]);
    assert!(chosen.starts_with("http://127.0.0.1:7/"), "{chosen}");
    // Its URL is no running server's any longer.
    child.kill();
    let configured = link(&[]);
    assert!(!configured.starts_with(&base), "{configured}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_that_was_revoked_is_made_anew() {
    let folder = folder();
    let child = Child::start(site!(), folder.path());
    let (first, server_key) = (
        child.text("writeKey").to_owned(),
        child.text("serverKey").to_owned(),
    );
    let http = client::build();
    let keys = format!(
        "{}/v1/apps/{}/keys",
        child.text("baseUrl"),
        child.text("appId")
    );
    let admin = child.text("adminToken");
    let list = client::send(http.get(&keys).bearer_auth(admin)).await;
    let list = list.ok();
    let all = list["items"].as_array().unwrap();
    assert_eq!(all.len(), 3);
    let write = all.iter().find(|key| key["kind"] == "write").unwrap();
    let one = format!("{keys}/{}", write["id"].as_str().unwrap());
    let removed = client::send(http.delete(&one).bearer_auth(admin)).await;
    assert!(removed.status < 300, "{}", removed.text);
    assert_eq!(child.terminate(), Some(0));

    let child = Child::start(site!(), folder.path());
    assert_ne!(child.text("writeKey"), first);
    assert_eq!(child.text("serverKey"), server_key);
    let session = format!("{}/v1/sdk/session", child.text("baseUrl"));
    let session = http.post(session).bearer_auth(child.text("writeKey"));
    client::send(session.json(&json!({"anonymousId": "ada"})))
        .await
        .ok();
}

/// In a folder whose configuration names a production's database, `nudge dev` makes nothing there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_of_somebody_else_is_refused() {
    let url = postgres::database().await;
    let (mine, other) = (folder(), folder());
    // One that is empty, or has a schema and no app, may be meant for something else too.
    let dev = ["dev", "--listen", ANY, "--database-url", &url];
    let refused = complaint(&run(&dev, other.path()));
    assert!(
        refused.contains("`nudge dev` did not make this database: name the app to make with `nudge dev --app NAME`"),
        "{refused}"
    );
    let migrated = run(&["migrate", "--database-url", &url], other.path());
    assert!(migrated.status.success(), "{migrated:?}");
    let refused = complaint(&run(&dev, other.path()));
    assert!(refused.contains("--app NAME"), "{refused}");
    let variables = [("NUDGE_DATABASE__URL", url.as_str())];
    let child = Child::start_with(site!(), mine.path(), &variables);
    let app = child.text("appId").to_owned();
    assert_eq!(child.terminate(), Some(0));

    let db = Db::open(&Options::new(url.clone(), 1)).await.unwrap();
    let keys = async || -> i64 {
        let mut tx = db.read().await.unwrap();
        let keys = tx.sql("SELECT count(*) AS count FROM keys");
        keys.fetch_scalar().await.unwrap()
    };
    assert_eq!(keys().await, 3);
    let refused = complaint(&run(&dev, other.path()));
    assert!(refused.contains("`nudge dev` did not make"), "{refused}");
    assert!(refused.contains("--app"), "{refused}");
    let unknown = [&dev[..], &["--app", "Warehouse"]].concat();
    let refused = complaint(&run(&unknown, other.path()));
    assert!(refused.contains("no app `Warehouse`"), "{refused}");
    assert_eq!(keys().await, 3);

    // Told by name, it does.
    let file = other.path().join("access.json");
    let mut process = child::program(site!())
        .args(dev)
        .args(["--app", &app, "--json"])
        .arg(&file)
        .arg("--data-dir")
        .arg(other.path())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    while !file.exists() {
        assert!(process.try_wait().unwrap().is_none());
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    process.kill().unwrap();
    process.wait().unwrap();
    assert_eq!(keys().await, 6);
    db.close().await;
}

/// The shop is of the app that the command works on, of whichever workspace; its audit log says what the shop made there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_shop_is_of_the_app_that_is_named() {
    let folder = folder();
    let child = Child::start(site!(), folder.path());
    let real = child.text("appId").to_owned();
    assert_eq!(child.terminate(), Some(0));
    let url = format!("sqlite:{}", folder.path().join("nudge.db").display());
    let db = Db::open(&Options::new(url, 1)).await.unwrap();
    let now = Clock::default().now();
    let mut tx = db.write().await.unwrap();
    let workspace = nudge_platform::id::new(now);
    let made = nudge_apps::create(&mut tx, workspace, "playground", now).await;
    let playground = made.unwrap().to_string();
    tx.commit().await.unwrap();
    db.close().await;

    let child = Child::start_of(site!(), folder.path(), "playground");
    assert_eq!(child.text("appId"), playground);
    let http = client::build();
    let at = |path: &str| format!("{}{path}", child.text("baseUrl"));
    let opening = client::send(http.get(at("/demo/opening"))).await.ok();
    assert_eq!(opening["appId"], playground);
    let viewer = opening["viewerToken"].as_str().unwrap();
    let users = |app: &str| http.get(at(&format!("/v1/apps/{app}/users")));
    client::send(users(&playground).bearer_auth(viewer))
        .await
        .ok();
    client::send(users(&real).bearer_auth(viewer))
        .await
        .refused(404, "not_found");
    let app = at(&format!("/v1/apps/{playground}"));
    let admin = child.text("adminToken");
    let log = http.get(format!("{app}/audit-log")).bearer_auth(admin);
    let log = client::send(log).await.ok();
    let entries = log["items"].as_array().unwrap().iter();
    let of_shop = entries.filter(|entry| entry["actor"] == "demo shop");
    let mut actions: Vec<&str> = of_shop
        .filter_map(|entry| entry["action"].as_str())
        .collect();
    actions.sort_unstable();
    assert_eq!(
        actions,
        ["identity_key.created", "key.created", "survey.created"]
    );

    let deleted = client::send(http.delete(&app).bearer_auth(admin)).await;
    deleted.data(204);
    client::send(http.get(at("/demo/opening")))
        .await
        .refused(404, "not_found");
}

/// The owner of the app clears up while the server runs.
async fn what_the_shop_is_made_of_is_made_anew_once_it_is_gone(app: &mut TestApp) {
    let nobody = Credential::none();
    let open = async || app.get("/demo/opening", &nobody).await.ok();
    let first = open().await;
    let again = open().await;
    for part in ["writeKey", "surveyId"] {
        assert_eq!(again[part], first[part], "{part} is there");
    }
    let admin = app.admin();
    let survey = app.path(&format!("/surveys/{}", text(&first, "surveyId")));
    app.delete(&survey, &admin).await.data(204);
    for (list, id) in [("/keys", "id"), ("/identity-keys", "kid")] {
        let path = app.path(list);
        let all = app.get(&path, &admin).await.ok();
        // The newest is the shop's.
        let one = format!("{path}/{}", text(&all["items"][0], id));
        app.delete(&one, &admin).await.data(204);
    }
    // The token of the first page is no longer good.
    app.advance(25 * 60 * 60);

    let opening = open().await;
    assert_ne!(opening["surveyId"], first["surveyId"]);
    let survey = app.path(&format!("/surveys/{}", text(&opening, "surveyId")));
    let viewer = Credential::bearer(&text(&opening, "viewerToken"));
    let survey = app.get(&survey, &viewer).await.ok();
    assert_eq!(survey["status"], "active");
    let token = app
        .post("/demo/sign-in", &nobody, &json!({"name": "Ada"}))
        .await
        .ok();
    let key = Credential::bearer(&text(&opening, "writeKey"));
    let session = json!({"anonymousId": "ada", "identityToken": token["identityToken"]});
    app.post("/v1/sdk/session", &key, &session).await.ok();
}

#[test]
fn a_port_that_is_taken_is_named() {
    let (folder, taken) = (folder(), TcpListener::bind(ANY).unwrap());
    let address = taken.local_addr().unwrap().to_string();
    let output = run(&["serve", "--listen", &address], folder.path());
    assert!(!output.status.success());
    let refused = String::from_utf8(output.stderr).unwrap();
    assert!(refused.contains(&address), "{refused}");
    assert!(refused.contains("--listen"), "{refused}");
    // A server may well be running while its configuration is checked.
    let checked = run(&["check", "--listen", &address], folder.path());
    assert!(checked.status.success(), "{checked:?}");
    // What a file names is not exchanged for another one.
    let file = folder.path().join("nudge.toml");
    std::fs::write(&file, format!("[server]\nlisten = \"{address}\"")).unwrap();
    let refused = complaint(&run(
        &["dev", "--config", file.to_str().unwrap()],
        folder.path(),
    ));
    assert!(refused.contains(&address), "{refused}");
}

/// The port that `nudge dev` has unless told otherwise is exchanged for a free one, which it says.
#[test]
fn a_default_port_that_is_taken_is_said() {
    use std::io::{BufRead as _, BufReader};
    let folder = folder();
    let default = "127.0.0.1:8480";
    // Whoever has it already will do.
    let _taken = TcpListener::bind(default);
    let mut process = child::program(site!())
        .args(["dev", "--data-dir"])
        .arg(folder.path())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
    let first = lines.next().unwrap().unwrap();
    process.kill().unwrap();
    process.wait().unwrap();
    assert!(first.starts_with("127.0.0.1:8480 is taken"), "{first}");
    assert!(first.contains("--listen"), "{first}");
}

/// An address for operators that somebody chose is listened on, also where it is the default.
#[test]
fn the_default_address_for_operators_may_be_chosen() {
    let (folder, address) = (folder(), "127.0.0.1:9464");
    let file = folder.path().join("nudge.toml");
    std::fs::write(&file, format!("[server]\nopsListen = \"{address}\"")).unwrap();
    let dev = || {
        let mut program = child::program(site!());
        program.args(["dev", "--listen", address, "--data-dir"]);
        program.arg(folder.path());
        program
    };
    let by_file = dev().arg("--config").arg(&file).output();
    let by_variable = dev().env("NUDGE_SERVER__OPS_LISTEN", address).output();
    for output in [by_file, by_variable] {
        let refused = String::from_utf8(output.unwrap().stderr).unwrap();
        let twice = "`server.opsListen` is `server.listen`";
        assert!(refused.contains(twice), "{refused}");
    }
}

/// `check` fails where `serve` would.
#[test]
fn addresses_that_cannot_be_listened_on_are_refused_with_what_to_do() {
    let folder = folder();
    for command in ["check", "serve"] {
        for (flags, part) in [
            (
                &["--listen", "foo"][..],
                "write it as 127.0.0.1:8480, with --listen",
            ),
            (
                &["--listen", "192.0.2.1:8480"],
                "192.0.2.1:8480 is no address of this machine: choose another with --listen",
            ),
            (
                &["--listen", ANY, "--ops-listen", "192.0.2.1:9464"],
                "choose another with --ops-listen",
            ),
            (
                &[
                    "--listen",
                    "127.0.0.1:28480",
                    "--ops-listen",
                    "127.0.0.1:28480",
                ],
                "`server.opsListen` is `server.listen`",
            ),
        ] {
            // A server may have said something before.
            let output = run(&[&[command], flags].concat(), folder.path());
            assert!(!output.status.success(), "{command} {flags:?}");
            let refused = String::from_utf8(output.stderr).unwrap();
            assert!(refused.contains(part), "{command} {flags:?}: {refused}");
        }
    }
}

/// What is wrong with a place is said with a way out of it.
#[test]
fn places_that_cannot_be_used_are_named_with_what_to_do() {
    let folder = folder();
    let place = |name: &str| folder.path().join(name);
    let check = |data: &Path, variables: &[(&str, &str)]| {
        let mut program = child::program(site!());
        program.envs(variables.iter().copied());
        complaint(
            &program
                .args(["check", "--data-dir"])
                .arg(data)
                .output()
                .unwrap(),
        )
    };
    let url = check(&place("a"), &[("NUDGE_DATABASE__URL", "mysql://x")]);
    for part in ["sqlite:", "postgres://", "--database-url"] {
        assert!(url.contains(part), "{url}");
    }

    std::fs::create_dir(place("garbage")).unwrap();
    std::fs::write(
        place("garbage/nudge.db"),
        "no database at all\n".repeat(500),
    )
    .unwrap();
    let garbage = check(&place("garbage"), &[]);
    assert!(
        garbage.contains("nudge.db is no database of Nudge"),
        "{garbage}"
    );
    assert!(garbage.contains("--data-dir"), "{garbage}");

    std::fs::write(place("file"), "").unwrap();
    let file = check(&place("file"), &[]);
    assert!(file.contains("is a file"), "{file}");
    assert!(file.contains("--data-dir"), "{file}");

    let cache = place("file").join("cache");
    let cache = check(
        &place("b"),
        &[("NUDGE_PLUGINS__CACHE_DIR", cache.to_str().unwrap())],
    );
    assert!(cache.contains("file/cache"), "{cache}");
    assert!(cache.contains("plugins.cacheDir"), "{cache}");
}

/// `nudge dev` has its operators' routes at the API's address.
#[test]
fn the_doctor_finds_a_server_at_its_api() {
    let folder = folder();
    let child = Child::start(site!(), folder.path());
    let address = child
        .text("baseUrl")
        .trim_start_matches("http://")
        .to_owned();
    let examined = run(&["doctor", "--listen", &address, "--json"], folder.path());
    let said = String::from_utf8(examined.stdout).unwrap();
    let port = TcpListener::bind("127.0.0.1:9464");
    assert!(
        port.is_err() || said.contains(&format!("the one at http://{address} is ready")),
        "{said}"
    );
}

/// A schema that is older is no fault: the server brings it up to date.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_older_schema_is_noted() {
    let url = postgres::database().await;
    let folder = folder();
    let migrated = run(&["migrate", "--database-url", &url], folder.path());
    assert!(migrated.status.success(), "{migrated:?}");
    let note = "brings the schema up to date when it starts";
    let checked = || {
        let checked = run(&["check", "--database-url", &url], folder.path());
        assert!(checked.status.success(), "{checked:?}");
        String::from_utf8(checked.stdout).unwrap()
    };
    assert!(!checked().contains(note));
    let db = Db::open(&Options::new(url.clone(), 1)).await.unwrap();
    let mut tx = db.write().await.unwrap();
    tx.sql(
        "DELETE FROM _sqlx_migrations WHERE version = (SELECT max(version) FROM _sqlx_migrations)",
    )
    .execute()
    .await
    .unwrap();
    tx.commit().await.unwrap();
    db.close().await;
    let said = checked();
    assert!(said.contains(note), "{said}");
}

/// A program without the master key of the harness.
fn without_key(command: &[&str], data: &Path) -> std::process::Output {
    let mut program = child::program(site!());
    program
        .env_remove("NUDGE_SECRETS__MASTER_KEY")
        .args(command);
    program.arg("--data-dir").arg(data).output().unwrap()
}

/// New keys for a database that is in use would open nothing in it.
#[test]
fn a_database_whose_key_is_missing_is_refused_before_another_is_made() {
    let folder = folder();
    let child = Child::start(site!(), folder.path());
    assert_eq!(child.terminate(), Some(0));
    for command in [
        &["serve", "--listen", ANY][..],
        &["dev", "--listen", ANY],
        &["check"],
    ] {
        let refused = complaint(&without_key(command, folder.path()));
        assert!(refused.contains("master.key"), "{command:?}: {refused}");
        assert!(!folder.path().join("master.key").exists(), "{command:?}");
    }
    let mut program = child::program(site!());
    program.env(
        "NUDGE_SECRETS__MASTER_KEY",
        "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
    );
    let wrong = program.args(["check", "--data-dir"]).arg(folder.path());
    let refused = complaint(&wrong.output().unwrap());
    assert!(
        refused.contains("is the master key that of this database?"),
        "{refused}"
    );
    assert!(run(&["check"], folder.path()).status.success());
}

/// The schema alone has nothing that needs a key.
#[test]
fn a_key_is_made_for_a_database_that_was_only_migrated() {
    let folder = folder();
    let key = folder.path().join("master.key");
    for command in ["migrate", "check"] {
        let output = without_key(&[command], folder.path());
        assert!(output.status.success(), "{output:?}");
        assert!(!key.exists(), "{command}");
    }
    let mut server = child::program(site!())
        .env("NUDGE_SECRETS__MASTER_KEY", "")
        .args(["serve", "--listen", ANY, "--ops-listen", ANY, "--data-dir"])
        .arg(folder.path())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    while !key.exists() {
        assert!(server.try_wait().unwrap().is_none());
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    server.kill().unwrap();
    server.wait().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_newer_schema_is_refused() {
    let url = postgres::database().await;
    let folder = folder();
    let migrated = run(&["migrate", "--database-url", &url], folder.path());
    assert!(migrated.status.success(), "{migrated:?}");
    let db = Db::open(&Options::new(url.clone(), 1)).await.unwrap();
    let mut tx = db.write().await.unwrap();
    tx.sql("UPDATE _sqlx_migrations SET version = 9999 WHERE version = (SELECT max(version) FROM _sqlx_migrations)")
        .execute()
        .await
        .unwrap();
    tx.commit().await.unwrap();
    db.close().await;
    for command in [&["check"][..], &["migrate"], &["serve", "--listen", ANY]] {
        let command = [command, &["--database-url", &url]].concat();
        let refused = complaint(&run(&command, folder.path()));
        assert!(refused.contains("newer version of Nudge"), "{refused}");
    }
}

#[test]
fn check_reaches_issuers_and_refuses_numbers_out_of_range() {
    let folder = folder();
    let check = |variable: &str, value: &str| {
        let mut program = child::program(site!());
        program.env(variable, value).args(["check", "--data-dir"]);
        complaint(&program.arg(folder.path()).output().unwrap())
    };
    let nobody = TcpListener::bind(ANY).unwrap().local_addr().unwrap();
    let issuers = format!("[{{issuer = \"http://{nobody}\", audience = \"nudge\"}}]");
    for (variable, value, part) in [
        ("NUDGE_AUTH__ISSUERS", issuers.as_str(), "auth.issuers"),
        ("NUDGE_SERVER__APP_SHARE", "2.0", "`server.appShare` is 2"),
        ("NUDGE_DATABASE__CONNECTIONS", "0", "`database.connections`"),
        ("NUDGE_SERVER__PUBLIC_URL", "shop", "`server.publicUrl`"),
    ] {
        let complaint = check(variable, value);
        assert!(complaint.contains(part), "{variable}: {complaint}");
    }
}

/// What balances requests learns first that a server stops; requests that come in the meantime are answered.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_drains_says_so_and_answers() {
    let folder = folder();
    let variables = [("NUDGE_SERVER__DRAIN_SECONDS", "3")];
    let child = Child::start_with(site!(), folder.path(), &variables);
    let (http, base) = (client::build(), child.text("baseUrl").to_owned());
    let ready = async || client::send(http.get(format!("{base}/readyz"))).await;
    assert_eq!(ready().await.status, 200);
    let begun = std::time::Instant::now();
    let ended = tokio::task::spawn_blocking(move || child.terminate());
    let mut seen = 0;
    while begun.elapsed() < std::time::Duration::from_secs(2) {
        let answer = ready().await;
        if answer.text == "stopping\n" {
            assert_eq!(answer.status, 503);
            let event = client::send(http.get(format!("{base}/livez"))).await;
            assert_eq!(event.status, 200);
            // A connection that stays open would be cut off with the listener.
            assert_eq!(event.header("connection"), "close");
            seen += 1;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    assert!(seen > 0, "it stopped taking connections at once");
    assert_eq!(ended.await.unwrap(), Some(0));
    assert!(begun.elapsed() >= std::time::Duration::from_secs(3));
}
