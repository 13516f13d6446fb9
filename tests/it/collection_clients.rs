//! Collection by the real clients of Segment and `RudderStack`, as npm and `PyPI` have them (`tests/collection`), through a
//! proxy that answers 503 to some requests: to one before it was sent on, to one after.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use serde_json::{Value, json};
use tests::session::text;
use tests::{Backend, TestApp, site};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::collection::{events, person};
use crate::programs::has;

/// A proxy before a server.
struct Proxy {
    base: String,
    seen: Arc<Seen>,
    _tasks: JoinSet<()>,
}

struct Seen {
    server: String,
    http: reqwest::Client,
    /// Content encodings of requests, and whether they were sent on and answered.
    requests: Mutex<Vec<(String, String)>>,
}

impl Proxy {
    async fn start(app: &TestApp) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let seen = Arc::new(Seen {
            server: app.access.base_url.clone(),
            http: tests::client::build(),
            requests: Mutex::default(),
        });
        let router = Router::new()
            .fallback(pass_on)
            .with_state(Arc::clone(&seen));
        let mut tasks = JoinSet::new();
        tasks.spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self {
            base,
            seen,
            _tasks: tasks,
        }
    }

    fn requests(&self) -> Vec<(String, String)> {
        self.seen.requests.lock().unwrap().clone()
    }
}

async fn pass_on(
    State(seen): State<Arc<Seen>>,
    method: Method,
    uri: Uri,
    mut headers: HeaderMap,
    body: Bytes,
) -> (StatusCode, String) {
    let place = {
        let mut requests = seen.requests.lock().unwrap();
        let encoding = headers.get("content-encoding");
        let encoding = encoding.map_or("", |value| value.to_str().unwrap());
        requests.push((uri.path().to_owned(), encoding.to_owned()));
        requests.len()
    };
    if place == 1 {
        return (StatusCode::SERVICE_UNAVAILABLE, "before".to_owned());
    }
    headers.remove("host");
    let url = format!("{}{uri}", seen.server);
    let sent = seen.http.request(method, url).headers(headers).body(body);
    let answer = sent.send().await.unwrap();
    let status = answer.status();
    let text = answer.text().await.unwrap();
    if place == 2 {
        return (StatusCode::SERVICE_UNAVAILABLE, "after".to_owned());
    }
    (status, text)
}

/// Runs a client; answers what it says went wrong.
async fn run(program: &Path, argument: &Path, asked: Value) -> Vec<String> {
    let (program, argument) = (program.to_owned(), argument.to_owned());
    let output = tokio::task::spawn_blocking(move || {
        let mut process = Command::new(program)
            .arg(&argument)
            .current_dir(argument.parent().unwrap())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = process.stdin.take().unwrap();
        std::io::Write::write_all(&mut input, asked.to_string().as_bytes()).unwrap();
        drop(input);
        process.wait_with_output().unwrap()
    });
    let output = output.await.unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said} {complaint}");
    serde_json::from_str(said.lines().last().unwrap()).unwrap()
}

#[track_caller]
fn succeeds(command: &mut Command) {
    let output = command.output().unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {complaint}");
}

/// A folder that stays from run to run, with what lock files name, and whether it is to be installed (again).
fn folder(name: &str, files: &[&str]) -> (PathBuf, bool, std::fs::File) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("collection");
    let target = Path::new(site!().scratch).join(name);
    std::fs::create_dir_all(&target).unwrap();
    let lock = std::fs::File::create(target.join(".lock")).unwrap();
    lock.lock().unwrap();
    let mut changed = !target.join(".installed").exists();
    for name in files {
        let text = std::fs::read(source.join(name)).unwrap();
        let before = std::fs::read(target.join(name)).unwrap_or_default();
        changed |= !name.starts_with("client.") && before != text;
        std::fs::write(target.join(name), text).unwrap();
    }
    (target, changed, lock)
}

/// Node's clients, pinned by their lock file.
fn node() -> PathBuf {
    let files = ["package.json", "package-lock.json", "client.mjs"];
    let (target, changed, _lock) = folder("collection", &files);
    if changed {
        // Not `ci`, which takes no lock file without packages for systems that the registry at hand does not have.
        let mut install = Command::new("npm");
        install.args([
            "install",
            "--no-save",
            "--ignore-scripts",
            "--no-audit",
            "--no-fund",
        ]);
        succeeds(install.current_dir(&target));
        std::fs::write(target.join(".installed"), "").unwrap();
    }
    target.join("client.mjs")
}

/// Python's client, pinned by its requirements: the interpreter that has it, and the script.
fn python() -> (PathBuf, PathBuf) {
    let (target, changed, _lock) = folder("collection-python", &["requirements.txt", "client.py"]);
    let interpreter = target.join("bin/python");
    if changed {
        succeeds(Command::new("python3").args(["-m", "venv"]).arg(&target));
        let mut install = Command::new(&interpreter);
        install.args(["-m", "pip", "install", "--quiet", "--require-hashes"]);
        install.args([
            "--only-binary",
            ":all:",
            "--requirement",
            "requirements.txt",
        ]);
        succeeds(install.current_dir(&target));
        std::fs::write(target.join(".installed"), "").unwrap();
    }
    (interpreter, target.join("client.py"))
}

/// What somebody does, before and after it is known who they are.
fn messages() -> Vec<Value> {
    let mut messages = vec![
        json!({"call": "track", "anonymousId": "device", "event": "Product Viewed", "properties": {"n": 0}}),
        json!({"call": "identify", "anonymousId": "device", "userId": "ada", "traits": {"plan": "pro", "address": {"city": "Graz"}}}),
        json!({"call": "page", "userId": "ada", "name": "Home", "properties": {"path": "/"}}),
        json!({"call": "screen", "userId": "ada", "name": "Cart"}),
        json!({"call": "group", "userId": "ada", "groupId": "acme", "traits": {"size": 3}}),
        json!({"call": "alias", "userId": "ada", "previousId": "former"}),
    ];
    messages.extend((1..=45).map(|number| {
        json!({"call": "track", "userId": "ada", "event": "Order Completed", "properties": {"n": number}})
    }));
    messages
}

/// Messages come once each, in order, whatever requests fail, and one that is too large spoils no other.
async fn check(client: &str, program: &Path, script: &Path) {
    for backend in [Backend::Sqlite, Backend::Postgres] {
        check_on(backend, client, program, script).await;
    }
}

async fn check_on(backend: Backend, client: &str, program: &Path, script: &Path) {
    let app = TestApp::start(site!(), backend).await;
    let proxy = Proxy::start(&app).await;
    let asked = |messages: Vec<Value>, flush_at: usize| {
        // Segment's client for Node drops the path of its host.
        json!({
            "client": client, "host": format!("{}/v1/compat", proxy.base), "path": "/v1/compat/v1/batch",
            "key": app.access.server_key, "flushAt": flush_at, "messages": messages,
        })
    };
    let wrong = run(program, script, asked(messages(), 100)).await;
    assert_eq!(wrong, [""; 0]);

    let all = events(&app).await;
    let names: Vec<String> = all.iter().map(|event| text(event, "name")).collect();
    let mut expected = vec![
        "product_viewed",
        "page_viewed",
        "screen_viewed",
        "group",
        "alias",
    ];
    expected.extend(["order_completed"; 45]);
    assert_eq!(names, expected);
    let numbers: Vec<i64> = all
        .iter()
        .filter_map(|event| event["properties"]["n"].as_i64())
        .collect();
    assert_eq!(numbers, (0..=45).collect::<Vec<i64>>());
    let subject = |event: &Value| text(event, "subjectId");
    assert!(all.iter().all(|event| subject(event) == subject(&all[0])));
    assert_eq!(all[5]["properties"]["$original_name"], "Order Completed");
    app.settle().await;
    let (profile, properties) = person(&app, "device").await;
    assert_eq!(
        (&profile["externalId"], &profile["eventCount"]),
        (&json!("ada"), &json!(50))
    );
    assert_eq!(properties, json!({"plan": "pro", "address.city": "Graz"}));
    let requests = proxy.requests();
    assert!(requests.len() >= 3, "{requests:?}");
    assert!(
        requests
            .iter()
            .all(|(path, _)| path == "/v1/compat/v1/batch"),
        "{requests:?}"
    );
    let encoding = if client == "segment" { "" } else { "gzip" };
    assert!(
        requests.iter().all(|(_, found)| found == encoding),
        "{requests:?}"
    );

    // In several batches, of which one has a message that is too large.
    let mut more: Vec<Value> = (46..=90)
        .map(|number| json!({"call": "track", "userId": "ada", "event": "more", "properties": {"n": number}}))
        .collect();
    // The client of RudderStack sends traits twice: of a million characters no body would have room for them.
    let length = if client == "rudder" {
        400_000
    } else {
        1_000_000
    };
    let bio = json!({"call": "identify", "userId": "ada", "traits": {"bio": "x".repeat(length)}});
    more.insert(20, bio);
    let wrong = run(program, script, asked(more, 15)).await;
    assert!(
        !wrong.is_empty(),
        "the client says that something went wrong"
    );
    let all = events(&app).await;
    let mut numbers: Vec<i64> = all
        .iter()
        .filter_map(|event| event["properties"]["n"].as_i64())
        .collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (0..=90).collect::<Vec<i64>>());
    assert_eq!(
        person(&app, "ada").await.1,
        json!({"plan": "pro", "address.city": "Graz"})
    );
    app.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn segments_client_for_node_is_understood() {
    if !has(&["node", "npm"]) {
        return;
    }
    check("segment", Path::new("node"), &node()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rudderstacks_client_for_node_is_understood() {
    if !has(&["node", "npm"]) {
        return;
    }
    check("rudder", Path::new("node"), &node()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn segments_client_for_python_is_understood() {
    if !has(&["python3"]) {
        return;
    }
    let (interpreter, script) = python();
    check("python", &interpreter, &script).await;
}
