//! The description against the server: schemathesis makes requests of `/openapi.json`, good ones and bad ones,
//! with each credential. No answer may be a 5xx, nor have a status, media type, header or body that the
//! description does not know.
//!
//! A short run by default. `NUDGE_FUZZ_EXAMPLES=500` makes a long one: as many requests to each operation,
//! and all boundary values that schemathesis knows of.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use tests::{Backend, TestApp, site};

use crate::guests;

/// How many requests each operation gets in a long run, which this variable asks for.
const EXAMPLES: &str = "NUDGE_FUZZ_EXAMPLES";

/// Apps that are there to be deleted.
const SPARE_APPS: u32 = 3;

/// A credential, and what it is for: requests there get further than 403.
struct Caller {
    name: &'static str,
    headers: Vec<(&'static str, String)>,
    /// A pattern of the paths of its routes.
    routes: &'static str,
}

/// schemathesis and what it needs, pinned by `tests/api/requirements.txt`, in a folder that stays from run
/// to run. Without Python the test is skipped, except in CI, where nothing is.
fn program() -> Option<PathBuf> {
    let venv = Path::new(site!().scratch).join("schemathesis");
    let requirements = Path::new(env!("CARGO_MANIFEST_DIR")).join("api/requirements.txt");
    let wanted = std::fs::read(&requirements).unwrap();
    let installed = venv.join("requirements.txt");
    if std::fs::read(&installed).unwrap_or_default() != wanted {
        let succeeds =
            |command: &mut Command| command.output().is_ok_and(|output| output.status.success());
        let python = Command::new("python3").arg("--version").output().is_ok();
        assert!(
            python || std::env::var_os("CI").is_none(),
            "CI has python3 with venv"
        );
        if !python {
            return None;
        }
        assert!(
            succeeds(Command::new("python3").args(["-m", "venv"]).arg(&venv)),
            "python3 -m venv"
        );
        let mut install = Command::new(venv.join("bin/python"));
        install.args(["-m", "pip", "install", "--quiet", "--require-hashes"]);
        install.args(["--only-binary", ":all:", "--requirement"]);
        assert!(
            succeeds(install.arg(&requirements)),
            "pip install of tests/api/requirements.txt"
        );
        std::fs::write(installed, wanted).unwrap();
    }
    Some(venv.join("bin/schemathesis"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[expect(clippy::print_stderr, reason = "says that it is skipped")]
async fn no_answer_is_one_that_the_description_does_not_know() {
    let Some(program) = program() else {
        eprintln!("skipped: there is no python3 on this machine");
        return;
    };
    let app = TestApp::start(site!(), Backend::Sqlite).await;
    let known = furnish(&app).await;
    let examples = std::env::var(EXAMPLES).ok();
    let examples = examples.map(|text| text.parse::<u32>().unwrap());

    for caller in callers(&app).await {
        let (program, known, url) = (program.clone(), known.clone(), app.access.base_url.clone());
        // What a credential is not for is another test's subject, `matrix`, unless there is time.
        let (routes, examples, phases) = match examples {
            Some(examples) => ("", examples, "coverage,fuzzing"),
            None => (caller.routes, 6, "fuzzing"),
        };
        let mut command = Command::new(&program);
        configure(&mut command, &known);
        command.args(["run", &format!("{url}/openapi.json"), "--seed", "1"]);
        command.args(["--max-examples", &examples.to_string(), "--phases", phases]);
        for (name, value) in &caller.headers {
            command.args(["--header", &format!("{name}: {value}")]);
        }
        command.args(["--include-path-regex", routes]);
        let output = tokio::task::spawn_blocking(move || command.output())
            .await
            .unwrap()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success() && said.contains(" passed"),
            "as {}:\n{said}{}",
            caller.name,
            String::from_utf8_lossy(&output.stderr)
        );
    }
    app.finish().await;
}

fn configure(command: &mut Command, known: &Value) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("api");
    command
        .arg("--config-file")
        .arg(folder.join("schemathesis.toml"))
        .current_dir(site!().scratch)
        .env("PYTHONPATH", &folder)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("SCHEMATHESIS_HOOKS", "hooks")
        .env("NUDGE_KNOWN", known.to_string())
        .stdin(Stdio::null());
}

/// Everyone who may call something, and somebody who may call nothing. Whoever deletes comes last.
async fn callers(app: &TestApp) -> Vec<Caller> {
    let access = &app.access;
    let bearer = |token: &str| ("Authorization", format!("Bearer {token}"));
    let person = app.session("fuzzed").await;
    let caller = |name, headers, routes| Caller {
        name,
        headers,
        routes,
    };
    vec![
        caller("nobody", Vec::new(), ""),
        caller(
            "SDK",
            vec![
                bearer(&access.write_key),
                ("X-Service-Subject-Token", person.token),
            ],
            "^/v1/sdk",
        ),
        caller(
            "SDK without a subject",
            vec![bearer(&access.write_key)],
            "^/v1/sdk/session",
        ),
        caller(
            "server key",
            vec![bearer(&access.server_key)],
            "^/v1/sdk/ingest",
        ),
        caller(
            "API token",
            vec![bearer(&access.api_token)],
            "/users/properties$",
        ),
        caller("viewer", vec![bearer(&access.viewer_token)], "^/v1/apps"),
        caller("editor", vec![bearer(&access.editor_token)], "^/v1/apps"),
        caller("admin", vec![bearer(&access.admin_token)], "^/v1/apps"),
        caller(
            "operator",
            vec![bearer(&access.operator_token)],
            "^/v1/operator",
        ),
    ]
}

/// Makes one of most things, so that answers have something in them, and answers what `hooks.py` is to know:
/// ids and names, by the part of the path before them.
async fn furnish(app: &TestApp) -> Value {
    let person = app.session("ada").await;
    let survey = app
        .survey(&json!({"kind": "event", "eventName": "opened"}))
        .await;
    let definition = app
        .define(
            "paid",
            &json!({"properties": [{"name": "price", "type": "number", "required": true}]}),
        )
        .await;
    let opened = app.event(&person, "opened", &json!({"screen": "home"}));
    let broken = app.event(&person, "paid", &json!({"price": "none"}));
    app.ingest(&person, &[opened, broken]).await.ok();
    app.settle().await;
    guests::deploy(app, 1, 1).await;
    let spare = json!({"kind": "write", "name": "spare"});
    let key = app
        .post(&app.path("/keys"), &app.admin(), &spare)
        .await
        .data(201);
    let mut spare_apps = Vec::new();
    for number in 0..SPARE_APPS {
        let body = json!({ "name": format!("Spare {number}") });
        let made = app.post("/v1/apps", &app.admin(), &body).await.data(201);
        spare_apps.push(made["id"].clone());
    }
    let mut known: BTreeMap<&str, Vec<Value>> = BTreeMap::from([
        ("apps", vec![json!(app.access.app_id)]),
        ("spare-apps", spare_apps),
        ("users", vec![json!("ada")]),
        ("surveys", vec![json!(survey)]),
        ("event-definitions", vec![definition["id"].clone()]),
        ("keys", vec![key["id"].clone()]),
        (
            "plugins",
            vec![json!(guests::name(1)), json!("default-trigger")],
        ),
        ("versions", vec![json!(guests::version(1)), json!("0.1.0")]),
        ("plugin-slots", vec![json!("trigger"), json!("validation")]),
    ]);
    for (list, id) in [("dead-letters", "id"), ("decisions", "decisionId")] {
        let items = app
            .get(&app.path(&format!("/{list}")), &app.admin())
            .await
            .ok();
        let ids = items["items"].as_array().unwrap().iter();
        let ids: Vec<Value> = ids.map(|item| item[id].clone()).collect();
        assert!(
            !ids.is_empty() && ids.iter().all(Value::is_string),
            "{list}: {items}"
        );
        known.insert(list, ids);
    }
    json!(known)
}
