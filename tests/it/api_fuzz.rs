//! The description against the server: schemathesis makes requests of `/openapi.json`, good ones and bad ones,
//! with each credential. No answer may be a 5xx, nor have a status, media type, header or body that the
//! description does not know.
//!
//! A short run by default. `NUDGE_FUZZ_EXAMPLES=100` makes a long one: as many requests to each operation,
//! and all boundary values that schemathesis knows of.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use serde_json::{Value, json};
use tests::providers::Providers;
use tests::{Backend, Session, TestApp, site};

use crate::{attempts, guests};

/// How many requests each operation gets in a long run, which this variable asks for.
const EXAMPLES: &str = "NUDGE_FUZZ_EXAMPLES";

/// How long a request may wait for the database: no 503 is to tell of a machine that has other things to do.
const PATIENCE_SECONDS: u64 = 120;

/// Apps that are there to be deleted.
const SPARE_APPS: u32 = 3;

/// The public key of RFC 8037, appendix A.2.
const ED25519: &str = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";
/// Where a webhook is sent to nobody.
const NOBODY_LISTENS: &str = "http://127.0.0.1:9/hook";

/// Ids and names of what there is, by the part of a path before them.
type Known = BTreeMap<&'static str, Vec<Value>>;
/// How often each operation answered each status.
type Answers = BTreeMap<String, BTreeMap<String, u32>>;

/// The caller of the one operation that `as_sdk` leaves out.
const ENDS_SESSION: &str = "as_sdk_that_ends_its_session";

/// A credential, and what it is for: requests there get further than 403.
struct Caller {
    headers: Vec<(&'static str, String)>,
    /// A pattern of the paths of its routes.
    routes: &'static str,
    /// An operation that lets it in, and none of less.
    opens: &'static str,
}

/// A test for each credential, on a server of its own.
macro_rules! callers {
    ($($name:ident),* $(,)?) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                no_answer_is_one_that_the_description_does_not_know(stringify!($name)).await;
            }
        )*
    };
}

callers!(
    as_nobody,
    as_sdk,
    as_sdk_that_ends_its_session,
    as_sdk_without_a_subject,
    as_server_key,
    as_api_token,
    as_viewer,
    as_editor,
    as_admin,
    as_operator,
);

/// schemathesis, installed once. Without Python the tests are skipped, except in CI, where nothing is.
fn program() -> Option<PathBuf> {
    static PROGRAM: OnceLock<Option<PathBuf>> = OnceLock::new();
    PROGRAM.get_or_init(install).clone()
}

/// schemathesis and what it needs, pinned by `tests/api/requirements.txt`, in a folder that stays from run to run.
fn install() -> Option<PathBuf> {
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

#[expect(clippy::print_stderr, reason = "says that it is skipped")]
async fn no_answer_is_one_that_the_description_does_not_know(name: &str) {
    let Some(program) = program() else {
        eprintln!("skipped: there is no python3 on this machine");
        return;
    };
    let mut app = TestApp::start_with(site!(), Backend::Sqlite, |config| {
        config.database.acquire_timeout_seconds = PATIENCE_SECONDS;
    })
    .await;
    let providers = app.with_providers().await;
    let person = app.session("ada").await;
    let mut known = furnish(&app, &person).await;
    known.extend(messages(&app, &person, &providers).await);
    let caller = caller(name, &app, &person);
    // What a credential is not for is another test's subject, `matrix`, unless there is time.
    let (routes, examples, phases) = match std::env::var(EXAMPLES) {
        Ok(examples) if name == ENDS_SESSION => {
            (caller.routes, examples.parse().unwrap(), "coverage,fuzzing")
        }
        Ok(examples) => ("", examples.parse().unwrap(), "coverage,fuzzing"),
        Err(_) => (caller.routes, 4, "fuzzing"),
    };
    let answers = Path::new(site!().scratch).join(format!("api-fuzz-{name}.json"));
    let mut command = Command::new(&program);
    configure(&mut command, &known, &person);
    let description = format!("{}/openapi.json", app.access.base_url);
    command.args(["run", &description, "--seed", "1"]);
    command.args(["--max-examples", &u32::to_string(&examples)]);
    command.args(["--phases", phases, "--include-path-regex", routes]);
    command.env("NUDGE_ANSWERS", &answers);
    // Nothing else would be let in after it.
    if name == "as_sdk" {
        command.args(["--exclude-operation-id", "end_session"]);
    }
    for (header, value) in &caller.headers {
        command.args(["--header", &format!("{header}: {value}")]);
    }
    let output = tokio::task::spawn_blocking(move || command.output())
        .await
        .unwrap()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.contains(" passed"),
        "{said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let answers: Answers = serde_json::from_slice(&std::fs::read(&answers).unwrap()).unwrap();
    let mut statuses = answers[caller.opens].keys();
    assert!(
        statuses.any(|status| !["401", "403", "405"].contains(&status.as_str())),
        "the credential is not let in: {answers:?}"
    );
    app.finish().await;
}

fn configure(command: &mut Command, known: &Known, person: &Session) {
    for (list, ids) in known {
        let named = !ids.is_empty() && ids.iter().all(Value::is_string);
        assert!(named, "{list}: {ids:?}");
    }
    let bodies = json!({"anonymousId": person.anonymous_id, "campaignId": known["campaigns"][0]});
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("api");
    command
        .arg("--config-file")
        .arg(folder.join("schemathesis.toml"))
        .current_dir(site!().scratch)
        .env("PYTHONPATH", &folder)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("SCHEMATHESIS_HOOKS", "hooks")
        .env("NUDGE_KNOWN", json!(known).to_string())
        .env("NUDGE_NAMED", bodies.to_string())
        .stdin(Stdio::null());
}

/// Everyone who may call something, and somebody who may call nothing.
fn caller(name: &str, app: &TestApp, person: &Session) -> Caller {
    let access = &app.access;
    let subject = ("X-Service-Subject-Token", person.token.clone());
    let (token, routes, opens) = match name {
        "as_nobody" => ("", "", "list_errors"),
        "as_sdk" => (&*access.write_key, "^/v1/sdk", "acknowledge_instructions"),
        ENDS_SESSION => (&*access.write_key, "^/v1/sdk/session$", "end_session"),
        "as_sdk_without_a_subject" => (&*access.write_key, "^/v1/sdk/session", "start_session"),
        "as_server_key" => (
            &*access.server_key,
            "^/v1/sdk/ingest|^/v1/compat|^/v1/batch|/transactional$",
            "send_transactional",
        ),
        "as_api_token" => (
            &*access.api_token,
            "/users/properties$",
            "update_user_properties",
        ),
        "as_viewer" => (&*access.viewer_token, "^/v1/apps", "list_surveys"),
        "as_editor" => (&*access.editor_token, "^/v1/apps", "create_survey"),
        "as_admin" => (&*access.admin_token, "^/v1/apps", "list_keys"),
        "as_operator" => (
            &*access.operator_token,
            "^/v1/operator",
            "list_server_plugins",
        ),
        other => unreachable!("{other}"),
    };
    let mut headers = Vec::new();
    if !token.is_empty() {
        headers.push(("Authorization", format!("Bearer {token}")));
    }
    if ["as_sdk", ENDS_SESSION].contains(&name) {
        headers.push(subject);
    }
    Caller {
        headers,
        routes,
        opens,
    }
}

/// Makes one of most things, so that answers have something in them.
async fn furnish(app: &TestApp, person: &Session) -> Known {
    let survey = app
        .survey(&json!({"kind": "event", "eventName": "opened"}))
        .await;
    let link = attempts::link_survey(app, attempts::forked(true)).await;
    let attempt = attempts::start(app, person, link).await;
    let definition = app
        .define(
            "paid",
            &json!({"properties": [{"name": "price", "type": "number", "required": true}]}),
        )
        .await;
    let opened = app.event(person, "opened", &json!({"screen": "home"}));
    let broken = app.event(person, "paid", &json!({"price": "none"}));
    app.ingest(person, &[opened, broken]).await.ok();
    app.settle().await;
    guests::deploy(app, 1, 1).await;
    let mut known = Known::from([
        ("apps", vec![json!(app.access.app_id)]),
        ("users", vec![json!(person.anonymous_id)]),
        ("surveys", vec![json!(survey), json!(link)]),
        ("attempts", vec![json!(attempt)]),
        ("event-definitions", vec![definition["id"].clone()]),
        (
            "plugins",
            vec![json!(guests::name(1)), json!("default-trigger")],
        ),
        ("versions", vec![json!(guests::version(1)), json!("0.1.0")]),
        ("plugin-slots", vec![json!("trigger"), json!("validation")]),
    ]);
    let made = async |list: &str, body: Value| {
        let path = app.path(&format!("/{list}"));
        app.post(&path, &app.admin(), &body).await
    };
    let key = json!({"kind": "write", "name": "spare"});
    known.insert(
        "keys",
        vec![made("keys", key).await.data(201)["id"].clone()],
    );
    let key = json!({"kid": "k", "publicKey": {"kty": "OKP", "crv": "Ed25519", "x": ED25519}});
    known.insert(
        "identity-keys",
        vec![made("identity-keys", key).await.data(201)["kid"].clone()],
    );
    let webhook = json!({"url": NOBODY_LISTENS, "eventTypes": ["failed"]});
    known.insert(
        "webhooks",
        vec![made("push/webhooks", webhook).await.data(201)["id"].clone()],
    );
    let job = made("dead-letters/replay", json!({"filter": {}}))
        .await
        .data(202);
    known.insert("jobs", vec![job["jobId"].clone()]);
    let export = made("gdpr/export", json!({"anonymousId": "ada"}))
        .await
        .data(202);
    known.insert("exports", vec![export["exportId"].clone()]);
    app.session("gone").await;
    let deletion = made("gdpr/delete", json!({"anonymousId": "gone"}))
        .await
        .data(202);
    known.insert("deletions", vec![deletion["jobId"].clone()]);
    for (list, id) in [("dead-letters", "id"), ("decisions", "decisionId")] {
        let items = app
            .get(&app.path(&format!("/{list}")), &app.admin())
            .await
            .ok();
        let ids = items["items"].as_array().unwrap().iter();
        known.insert(list, ids.map(|item| item[id].clone()).collect());
    }
    for number in 0..SPARE_APPS {
        let body = json!({ "name": format!("Spare {number}") });
        let spare = app.post("/v1/apps", &app.admin(), &body).await.data(201);
        known
            .entry("spare-apps")
            .or_default()
            .push(spare["id"].clone());
    }
    known
}

/// A device, a campaign and its message.
async fn messages(app: &TestApp, person: &Session, providers: &Providers) -> Known {
    let credential = app.credential(&providers.fcm.credential()).await;
    app.push_token(person, "phone", &providers.fcm.token(1))
        .await;
    let campaign = app.transactional_campaign().await;
    let message = json!({"campaignId": campaign, "anonymousId": "ada", "idempotencyKey": "once"});
    let message = app.transactional(&message).await.data(202);
    BTreeMap::from([
        ("campaigns", vec![json!(campaign)]),
        ("deliveries", vec![message["deliveryId"].clone()]),
        ("credentials", vec![credential["id"].clone()]),
        ("push-tokens", vec![json!("phone")]),
    ])
}
