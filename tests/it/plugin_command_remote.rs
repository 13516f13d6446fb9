//! `nudge plugin push`, `activate`, `promote`, `rollback`, `list`, `logs` and the like, `nudge dead-letters`: what they ask of a server, and
//! what they make of its answers (contract 12, 14, 16). The server here only takes down and answers.

use std::collections::VecDeque;
use std::process::Output;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use serde_json::{Value, json};
use tempfile::TempDir;
use tests::{child, site};
use tokio::net::TcpListener;

const APP: &str = "018f2f2e-5b4a-7c3d-8e9f-0123456789ab";

/// A request, as the server got it.
#[derive(Debug)]
struct Asked {
    /// Method, path and query.
    line: String,
    token: String,
    media_type: String,
    body: Vec<u8>,
}

/// A server that answers what it is told to.
#[derive(Clone, Default)]
pub(crate) struct Script {
    answers: Arc<Mutex<VecDeque<(u16, Value)>>>,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Script {
    /// Starts a server that answers so, one request after another.
    #[expect(
        clippy::disallowed_methods,
        reason = "the server ends with the test's runtime"
    )]
    pub(crate) async fn start(answers: &[(u16, Value)]) -> (Self, String) {
        let script = Self::default();
        script
            .answers
            .lock()
            .unwrap()
            .extend(answers.iter().cloned());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new().fallback(answer).with_state(script.clone());
        drop(tokio::task::spawn(async move {
            axum::serve(listener, router).await
        }));
        (script, url)
    }

    fn asked(&self) -> Vec<Asked> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }
}

async fn answer(State(script): State<Script>, request: Request<Body>) -> Response {
    let (parts, body) = request.into_parts();
    let header = |name: &str| {
        let value = parts
            .headers
            .get(name)
            .and_then(|value| value.to_str().ok());
        value.unwrap_or_default().to_owned()
    };
    let asked = Asked {
        line: format!("{} {}", parts.method, parts.uri),
        token: header("authorization"),
        media_type: header("content-type"),
        body: to_bytes(body, 64 << 20).await.unwrap().to_vec(),
    };
    script.asked.lock().unwrap().push(asked);
    let answer = script.answers.lock().unwrap().pop_front();
    let (status, body) = answer.unwrap_or((500, json!({"code": "unexpected"})));
    (StatusCode::from_u16(status).unwrap(), axum::Json(body)).into_response()
}

/// Runs `nudge plugin` against a server, in an empty folder.
pub(crate) async fn nudge(url: &str, arguments: &[&str]) -> Output {
    run(url, "plugin", arguments).await
}

/// Runs `nudge dead-letters` against a server, in an empty folder.
pub(crate) async fn dead_letters(url: &str, arguments: &[&str]) -> Output {
    run(url, "dead-letters", arguments).await
}

async fn run(url: &str, command_name: &str, arguments: &[&str]) -> Output {
    let folder = TempDir::with_prefix("nudge-test-").unwrap();
    let mut command = child::program(site!());
    command
        .current_dir(folder.path())
        .env("NUDGE_PLUGIN__URL", url)
        .env("NUDGE_PLUGIN__TOKEN", "from-the-environment")
        .env("NUDGE_PLUGIN__APP", APP)
        .arg(command_name)
        .args(arguments);
    tokio::task::spawn_blocking(move || command.output().unwrap())
        .await
        .unwrap()
}

fn out(output: &Output) -> String {
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    assert!(
        output.status.success(),
        "{text} {}",
        String::from_utf8_lossy(&output.stderr)
    );
    text
}

pub(crate) fn complaint(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn component() -> (TempDir, String) {
    let folder = TempDir::with_prefix("nudge-test-").unwrap();
    let file = folder.path().join("plugin.wasm");
    std::fs::write(&file, test_guests::CURIOUS).unwrap();
    let path = file.to_str().unwrap().to_owned();
    (folder, path)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn push_uploads_the_bytes_as_they_are() {
    let pushed = json!({"data": {
        "name": "curious", "kind": "trigger", "version": "0.1.0", "digest": "d", "sizeBytes": 1,
        "state": "ready", "imports": [], "checks": [{"name": "world", "passed": true, "detail": "trigger"}],
    }});
    let (script, url) =
        Script::start(&[(201, pushed.clone()), (200, pushed.clone()), (201, pushed)]).await;
    let (_folder, file) = component();

    let first = out(&nudge(&url, &["push", &file]).await);
    assert!(first.contains("curious 0.1.0 is on the server"), "{first}");
    assert!(first.contains("passed  world  trigger"), "{first}");
    assert!(
        first.contains("nudge plugin activate curious --version 0.1.0"),
        "{first}"
    );
    let again = out(&nudge(&url, &["push", &file]).await);
    assert!(again.contains("already"), "{again}");
    let operator = [
        "push",
        &file,
        "--operator",
        "--token",
        "from-a-flag",
        "--json",
    ];
    let json: Value = serde_json::from_str(&out(&nudge(&url, &operator).await)).unwrap();
    assert_eq!(json["state"], "ready");

    let asked = script.asked();
    assert_eq!(asked[0].line, format!("POST /v1/apps/{APP}/plugins"));
    assert_eq!(asked[0].token, "Bearer from-the-environment");
    assert_eq!(asked[0].media_type, "application/wasm");
    assert_eq!(asked[0].body, test_guests::CURIOUS);
    assert_eq!(asked[2].line, "POST /v1/operator/plugins");
    assert_eq!(asked[2].token, "Bearer from-a-flag");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn roll_outs_are_asked_for_as_the_contract_has_them() {
    let now = |rollout: Value| json!({"data": {"name": "cart", "activeVersion": "1.0.0", "rollout": rollout}});
    let canary =
        json!({"candidateVersion": "1.1.0", "strategy": "canary", "percent": 5, "since": "x"});
    let (script, url) = Script::start(&[
        (200, now(Value::Null)),
        (200, now(canary)),
        (200, now(Value::Null)),
        (200, now(Value::Null)),
    ])
    .await;

    let plain = out(&nudge(&url, &["activate", "cart", "--version", "1.0.0"]).await);
    assert_eq!(plain, "cart: 1.0.0 is active\n");
    let arguments = [
        "activate",
        "cart",
        "--version",
        "1.1.0",
        "--strategy",
        "canary",
        "--percent",
        "5",
        "--slot",
    ];
    let rolling = out(&nudge(&url, &arguments).await);
    assert_eq!(rolling, "cart: 1.0.0 is active\n  1.1.0: canary, 5 %\n");
    out(&nudge(&url, &["promote", "cart"]).await);
    let json = out(&nudge(&url, &["rollback", "cart", "--json"]).await);
    assert_eq!(
        serde_json::from_str::<Value>(&json).unwrap()["activeVersion"],
        "1.0.0"
    );

    let asked = script.asked();
    let bodies: Vec<Value> = asked
        .iter()
        .map(|asked| serde_json::from_slice(&asked.body).unwrap())
        .collect();
    let lines: Vec<&str> = asked.iter().map(|asked| asked.line.as_str()).collect();
    let path = format!("POST /v1/apps/{APP}/plugins/cart");
    assert_eq!(
        lines,
        ["activate", "activate", "promote", "rollback"].map(|verb| format!("{path}/{verb}"))
    );
    assert_eq!(bodies[0], json!({"version": "1.0.0"}));
    assert_eq!(
        bodies[1],
        json!({"version": "1.1.0", "strategy": "canary", "percent": 5, "slot": true})
    );
    assert!(
        asked
            .iter()
            .all(|asked| asked.media_type == "application/json")
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn activating_outside_of_a_project_takes_the_newest_version() {
    let version = |version: &str, at: &str| json!({"version": version, "uploadedAt": at});
    let plugin = json!({"data": {"name": "cart", "versions": [
        version("1.0.0", "2026-01-31T09:30:00.000Z"), version("1.1.0", "2026-02-01T09:30:00.000Z"),
    ]}});
    let now = json!({"data": {"name": "cart", "activeVersion": "1.1.0", "rollout": null}});
    let (script, url) = Script::start(&[(200, plugin), (200, now)]).await;
    let told = out(&nudge(&url, &["activate", "cart"]).await);
    assert_eq!(told, "cart: 1.1.0 is active\n");
    let asked = script.asked();
    assert_eq!(asked[0].line, format!("GET /v1/apps/{APP}/plugins/cart"));
    let body: Value = serde_json::from_slice(&asked[1].body).unwrap();
    assert_eq!(body, json!({"version": "1.1.0"}));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_a_project_of_the_plugin_says_which_version_is_meant() {
    let plugin = json!({"data": {"versions": [{"version": "2.0.0", "uploadedAt": "x"}]}});
    let now = json!({"data": {"activeVersion": "2.0.0", "rollout": null}});
    let answers = [(200, plugin), (200, now.clone())];
    let (script, url) = Script::start(&[&answers[..], &answers, &[(200, now)]].concat()).await;
    let folder = TempDir::with_prefix("nudge-test-").unwrap();
    let file = |name: &str| folder.path().join(name);
    let activate = async |name: &str| {
        let dir = folder.path().to_str().unwrap();
        out(&nudge(&url, &["activate", name, "--dir", dir]).await);
        let last = script.asked().pop().unwrap();
        serde_json::from_slice::<Value>(&last.body).unwrap()["version"].take()
    };

    // A crate that is no plugin, and can't be built.
    std::fs::write(file("Cargo.toml"), "[package]").unwrap();
    assert_eq!(activate("cart").await, "2.0.0");

    // A project that is built already.
    let manifest = file("nudge-plugin.toml");
    std::fs::write(&manifest, "kind = 'trigger'\nlanguage = 'c'").unwrap();
    let manifest = std::fs::File::open(&manifest).unwrap();
    manifest.set_modified(std::time::UNIX_EPOCH).unwrap();
    std::fs::create_dir(file("build")).unwrap();
    std::fs::write(file("build/plugin.wasm"), test_guests::CURIOUS).unwrap();
    assert_eq!(activate("cart").await, "2.0.0");
    assert_eq!(activate("curious").await, "0.1.0");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_dead_letter_is_listed_and_logs_say_that_there_are_more() {
    let page = |cursor: Value| {
        let items = vec![json!({"detail": "found", "message": "line"}); 50];
        (200, json!({"data": {"items": items, "nextCursor": cursor}}))
    };
    let mut answers = vec![page(json!("c")); 59];
    answers.push(page(Value::Null));
    let (_script, url) = Script::start(&vec![answers; 3].concat()).await;
    for arguments in [&["list"][..], &["list", "--json"]] {
        let told = out(&dead_letters(&url, arguments).await);
        assert_eq!(told.matches("found").count(), 3000);
    }
    let logs = nudge(&url, &["logs", "cart", "--json"]).await;
    assert_eq!(out(&logs).matches("line").count(), 2500);
    let said = "nudge: there are older lines too; these are the newest 2500\n";
    assert_eq!(String::from_utf8(logs.stderr).unwrap(), said);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_is_asked_how_a_plugin_fares() {
    let shadow = json!({"since": "s", "calls": 3, "same": 1, "added": 2, "removed": 0, "changed": 0, "failed": 0,
        "skipped": 0, "samples": []});
    let versions = json!([
        {"version": "1.0.0", "calls": 7, "items": 9, "failures": {"trap": 2, "deadline": 0},
            "latencyMicros": {"p50": 1, "p95": 2, "p99": 3, "max": 4}, "memoryPeakBytes": 5},
        {"version": "1.1.0", "calls": 3, "items": 3, "failures": {}, "shadow": shadow},
    ]);
    let metrics = json!({"data": {"name": "cart", "from": "f", "to": "t", "versions": versions}});
    let status = json!({"data": {"name": "cart", "kind": "trigger", "activeVersion": "1.0.0", "slot": true}});
    let (script, url) = Script::start(&[
        (200, status),
        (200, metrics.clone()),
        (200, metrics.clone()),
        (200, metrics),
    ])
    .await;
    let told = out(&nudge(&url, &["status", "cart"]).await);
    assert!(
        told.starts_with("cart (trigger)\n  active        1.0.0\n"),
        "{told}"
    );
    let told = out(&nudge(&url, &["metrics", "cart"]).await);
    assert!(
        told.contains("trap 2") && !told.contains("deadline"),
        "{told}"
    );
    let told = out(&nudge(&url, &["shadow", "cart"]).await);
    assert!(
        told.starts_with("1.1.0 in the shadow since s: 3 batches"),
        "{told}"
    );
    let trials: Value =
        serde_json::from_str(&out(&nudge(&url, &["shadow", "cart", "--json"]).await)).unwrap();
    assert_eq!(trials[0]["version"], "1.1.0");
    let lines: Vec<String> = script.asked().into_iter().map(|asked| asked.line).collect();
    let path = format!("GET /v1/apps/{APP}/plugins/cart");
    let metrics = format!("{path}/metrics");
    assert_eq!(lines, [path, metrics.clone(), metrics.clone(), metrics]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backtest_is_waited_for() {
    let job = |status: &str, more: Value| {
        let mut job = json!({"jobId": "j", "status": status});
        job.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        (200, json!({"data": job}))
    };
    let result = json!({"events": 9, "same": 8, "onlyActive": 0, "onlyCandidate": 1, "failed": 0, "samples": []});
    let (script, url) = Script::start(&[
        (202, json!({"data": {"jobId": "j"}})),
        job("running", json!({})),
        job("completed", json!({"result": result})),
        (202, json!({"data": {"jobId": "j"}})),
        job("failed", json!({"error": "it took too long"})),
    ])
    .await;
    let arguments = [
        "backtest",
        "cart",
        "--version",
        "1.1.0",
        "--since",
        "2026-01-01",
        "--limit",
        "9",
    ];
    let told = out(&nudge(&url, &arguments).await);
    assert!(told.starts_with("cart 1.1.0: 9 events\n"), "{told}");
    let failed = complaint(&nudge(&url, &arguments).await);
    assert_eq!(failed, "nudge: job j failed: it took too long\n");
    let asked = script.asked();
    let body: Value = serde_json::from_slice(&asked[0].body).unwrap();
    assert_eq!(body, json!({"since": "2026-01-01", "limit": 9}));
    assert_eq!(asked[1].line, format!("GET /v1/apps/{APP}/jobs/j"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dead_letters_are_listed_and_replayed() {
    let letter = json!({"id": "l", "receivedAt": "r", "stage": "trigger", "reason": "trap", "eventName": "paid",
        "plugin": {"name": "cart", "version": "1.0.0"}, "detail": "panicked at src/lib.rs:3:5: no total"});
    let list =
        |items: Value, cursor: Value| json!({"data": {"items": items, "nextCursor": cursor}});
    let (script, url) = Script::start(&[
        (200, list(json!([letter]), json!("c"))),
        (200, list(json!([]), Value::Null)),
        (200, json!({"data": {"status": "replayed"}})),
        (
            200,
            json!({"data": {"status": "still_failing", "reason": "trap"}}),
        ),
        (202, json!({"data": {"jobId": "j"}})),
        (
            200,
            json!({"data": {"status": "completed", "result": {"replayed": 3}}}),
        ),
        (
            404,
            json!({"code": "not_found", "title": "Not found", "detail": "there is no POST /v1/x"}),
        ),
    ])
    .await;
    let told = out(&dead_letters(&url, &["list", "--event", "paid"]).await);
    assert!(
        told.contains("cart 1.0.0\n    panicked at src/lib.rs:3:5: no total\n"),
        "{told}"
    );
    let told = out(&dead_letters(&url, &["replay", "l"]).await);
    assert_eq!(told, "status: replayed\n");
    let failed = complaint(&dead_letters(&url, &["replay", "l"]).await);
    assert_eq!(failed, "nudge: the event fails still\n");
    let told = out(&dead_letters(&url, &["replay", "--reason", "trap"]).await);
    assert_eq!(told, "replayed: 3\n");
    let failed = complaint(&dead_letters(&url, &["replay"]).await);
    assert!(failed.contains("--all"), "{failed}");
    let unknown = complaint(&dead_letters(&url, &["replay", "x"]).await);
    assert_eq!(
        unknown,
        "nudge: there is no dead letter `x`; `nudge dead-letters list` has them\n"
    );
    let no_id = complaint(&dead_letters(&url, &["list", "--app", "shop"]).await);
    assert!(
        no_id.contains("`shop` is no app's id: it is a UUID"),
        "{no_id}"
    );
    assert!(!no_id.contains("invalid character"), "{no_id}");
    let nowhere = complaint(&dead_letters("", &["list"]).await);
    assert!(
        nowhere.contains("which server? Say it with --url"),
        "{nowhere}"
    );
    let asked = script.asked();
    let path = format!("/v1/apps/{APP}/dead-letters");
    let first = format!("GET {path}?eventName=paid&limit=200");
    assert_eq!(asked[0].line, first);
    assert_eq!(asked[1].line, format!("{first}&cursor=c"));
    assert_eq!(asked[2].line, format!("POST {path}/l/replay"));
    let body: Value = serde_json::from_slice(&asked[4].body).unwrap();
    assert_eq!(body, json!({"filter": {"reason": "trap"}}));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_can_not_lead_to_another_route() {
    let answer = json!({"data": {"activeVersion": "1.0.0", "rollout": null}});
    let (script, url) = Script::start(&[(200, answer)]).await;
    out(&nudge(&format!("{url}/"), &["promote", "../keys?a=b"]).await);
    assert_eq!(
        script.asked()[0].line,
        format!("POST /v1/apps/{APP}/plugins/..%2Fkeys%3Fa=b/promote")
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_are_read_page_by_page() {
    let plugin = |name: &str| json!({"name": name, "kind": "trigger", "activeVersion": "1.0.0", "scope": "server"});
    let (script, url) = Script::start(&[
        (
            200,
            json!({"data": {"items": [plugin("one")], "nextCursor": "a/b+c"}}),
        ),
        (
            200,
            json!({"data": {"items": [plugin("two")], "nextCursor": null}}),
        ),
        (200, json!({"data": [plugin("three")]})),
    ])
    .await;
    let table = out(&nudge(&url, &["list"]).await);
    assert!(table.lines().nth(1).unwrap().starts_with("one "), "{table}");
    assert!(table.lines().nth(2).unwrap().ends_with("server"), "{table}");
    let json: Value = serde_json::from_str(&out(&nudge(&url, &["list", "--json"]).await)).unwrap();
    assert_eq!(json, json!([plugin("three")]));
    assert_eq!(
        script.asked()[1].line,
        format!("GET /v1/apps/{APP}/plugins?limit=200&cursor=a%2Fb%2Bc")
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn logs_are_printed_in_the_order_of_time_and_followed_without_repeats() {
    let line = |at: &str, message: &str| json!({"at": at, "version": "1.0.0", "level": "warn", "message": message});
    let page = |lines: &[Value]| json!({"data": {"items": lines, "nextCursor": null}});
    let (one, two) = (
        line("2026-01-31T09:30:01.000Z", "one"),
        line("2026-01-31T09:30:02.000Z", "two"),
    );
    let (script, url) = Script::start(&[
        (200, page(&[two.clone(), one.clone()])),
        (200, page(std::slice::from_ref(&one))),
        (200, page(&[two, one])),
        (
            404,
            json!({"code": "not_found", "detail": "there is no plugin cart"}),
        ),
    ])
    .await;
    let all = out(&nudge(&url, &["logs", "cart"]).await);
    assert_eq!(
        all,
        "2026-01-31T09:30:01.000Z  1.0.0     warn   one\n2026-01-31T09:30:02.000Z  1.0.0     warn   two\n"
    );
    // It follows until the server says no.
    let followed = nudge(&url, &["logs", "cart", "--follow"]).await;
    assert_eq!(
        complaint(&followed),
        "nudge: 404 not_found: there is no plugin cart\n"
    );
    assert_eq!(String::from_utf8(followed.stdout).unwrap(), all);
    assert_eq!(
        script.asked()[0].line,
        format!("GET /v1/apps/{APP}/plugins/cart/logs?limit=200")
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lines_of_one_instant_stay_in_their_order_and_say_what_they_are_about() {
    let line = |id: &str, events: &[&str]| {
        json!({"id": id, "at": "2026-01-31T09:30:01.000Z", "version": "1.0.0", "level": "info",
            "message": "same", "eventIds": events, "campaignIds": ["c"], "subjectIds": ["s"]})
    };
    let newest_first = json!([line("2", &["e", "f"]), line("1", &["e"])]);
    let page = json!({"data": {"items": newest_first, "nextCursor": null}});
    let (_script, url) = Script::start(&[(200, page)]).await;
    let told = out(&nudge(&url, &["logs", "cart"]).await);
    let lines: Vec<&str> = told.lines().collect();
    assert!(
        lines[0].ends_with("same  [campaign c, event e, subject s]"),
        "{told}"
    );
    assert!(
        lines[1].ends_with("same  [campaign c, 2 events, subject s]"),
        "{told}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refusals_are_told_with_their_places() {
    let rejected = json!({
        "type": "about:blank", "title": "Plugin rejected", "status": 422, "code": "plugin_rejected",
        "detail": "this plugin imports what its world does not have:\n  wasi:http/types@0.2.0", "requestId": "r",
    });
    let invalid = json!({
        "title": "Validation failed", "code": "validation_failed", "detail": "the body breaks the contract",
        "errors": [{"pointer": "/percent", "code": "out_of_range", "detail": "must be from 1 to 100"}],
    });
    let (_script, url) = Script::start(&[(422, rejected), (422, invalid)]).await;
    let (_folder, file) = component();
    assert_eq!(
        complaint(&nudge(&url, &["push", &file]).await),
        "nudge: 422 plugin_rejected: this plugin imports what its world does not have: wasi:http/types@0.2.0\n"
    );
    let arguments = [
        "activate",
        "cart",
        "--version",
        "1.0.0",
        "--strategy",
        "canary",
        "--percent",
        "100",
    ];
    assert_eq!(
        complaint(&nudge(&url, &arguments).await),
        "nudge: 422 validation_failed: the body breaks the contract; /percent: must be from 1 to 100 (out_of_range)\n"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_missing_is_asked_for() {
    let folder = TempDir::with_prefix("nudge-test-").unwrap();
    let run = |variables: &[(&str, &str)], arguments: &[&str]| {
        let mut command = child::program(site!());
        command
            .current_dir(folder.path())
            .envs(variables.iter().copied());
        complaint(&command.arg("plugin").args(arguments).output().unwrap())
    };
    let url = ("NUDGE_PLUGIN__URL", "http://127.0.0.1:1");
    let token = ("NUDGE_PLUGIN__TOKEN", "very-secret");
    let app = ("NUDGE_PLUGIN__APP", APP);
    assert!(run(&[], &["list"]).contains("--url, NUDGE_PLUGIN__URL"));
    assert!(run(&[url], &["list"]).contains("--token, NUDGE_PLUGIN__TOKEN"));
    assert!(run(&[url, token], &["list"]).contains("--app, NUDGE_PLUGIN__APP"));
    assert!(run(&[url, token], &["list", "--app", "../x"]).contains("UUID"));
    assert!(run(&[token, app], &["list", "--url", "ftp://x"]).contains("http://"));
    let unreachable = run(&[url, token, app], &["list"]);
    assert!(
        unreachable.contains("http://127.0.0.1:1 can't be reached"),
        "{unreachable}"
    );
    assert!(!unreachable.contains("very-secret"));

    // The file says the same, and flags come first.
    let file = format!(
        "[plugin]\nurl = \"http://127.0.0.1:1\"\ntoken = \"very-secret\"\napp = \"{APP}\"\n"
    );
    std::fs::write(folder.path().join("nudge.toml"), file).unwrap();
    assert!(run(&[], &["list"]).contains("can't be reached"));
    assert!(run(&[], &["list", "--app", "x"]).contains("UUID"));
}
