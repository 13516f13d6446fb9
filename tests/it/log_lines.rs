//! What the log says, and how often (contract 17).

use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use nudge_db::{Db, Options};
use nudge_platform::clock::{self, Clock};
use serde_json::{Value, json};
use tempfile::TempDir;
use tests::postgres::{self, Cluster, Durability};
use tests::{child, client, site};

/// Longer than a server takes to start, or to notice that its database is back.
const PATIENCE: Duration = Duration::from_mins(2);
const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

/// A server whose log is in a file.
struct Logged {
    process: Child,
    log: PathBuf,
    access: Value,
}

impl Logged {
    async fn start(folder: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        let (log, file) = (folder.join("log"), folder.join("access.json"));
        let process = child::program(site!())
            .env("NUDGE_TELEMETRY__LOG_FORMAT", "json")
            .env("NUDGE_TELEMETRY__LOG_FILTER", "info,nudge=info")
            .envs(variables.iter().copied())
            .args(["dev", "--listen", "127.0.0.1:0", "--data-dir"])
            .arg(folder)
            .arg("--json")
            .arg(&file)
            .args(arguments)
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(&log).unwrap())
            .spawn()
            .unwrap();
        let started = Instant::now();
        while !file.exists() {
            assert!(started.elapsed() < PATIENCE, "it does not start");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let access = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        Self {
            process,
            log,
            access,
        }
    }

    fn url(&self, path: &str) -> String {
        format!("{}{path}", self.access["baseUrl"].as_str().unwrap())
    }

    /// The lines so far: what is in each, with its level.
    fn lines(&self) -> Vec<(String, Value)> {
        let text = std::fs::read_to_string(&self.log).unwrap();
        let whole = text
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok());
        whole
            .map(|line| {
                (
                    line["level"].as_str().unwrap().to_owned(),
                    line["fields"].clone(),
                )
            })
            .collect()
    }

    /// How often something is said at a level.
    fn count(&self, level: &str, part: &str) -> usize {
        let lines = self.lines();
        let said = lines.iter().filter(|(of, line)| {
            of == level
                && line["message"]
                    .as_str()
                    .is_some_and(|text| text.contains(part))
        });
        said.count()
    }
}

impl Drop for Logged {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_has_its_callers_trace_and_probes_have_no_line() {
    let folder = TempDir::with_prefix("nudge-test-").unwrap();
    let server = Logged::start(folder.path(), &[], &[]).await;
    let http = client::build();
    for probe in ["/livez", "/readyz", "/metrics"] {
        assert_eq!(client::send(http.get(server.url(probe))).await.status, 200);
    }
    for (parent, id) in [
        (format!("00-{TRACE}-00f067aa0ba902b7-01"), "told"),
        (format!("00-{TRACE}"), "broken"),
    ] {
        let request = http.get(server.url("/v1/errors"));
        let request = request
            .header("traceparent", parent)
            .header("x-request-id", id);
        client::send(request).await.ok();
    }
    let lines = server.lines();
    let of = |id: &str| {
        let line = lines.iter().find(|(_, line)| line["request.id"] == id);
        &line.unwrap().1["trace.id"]
    };
    assert_eq!(of("told"), TRACE);
    assert_eq!(*of("broken"), Value::Null);
    let probed = lines.iter().any(|(_, line)| {
        ["/livez", "/readyz", "/metrics"]
            .iter()
            .any(|probe| line["http.route"] == *probe)
    });
    assert!(!probed, "{lines:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_failed_log_ins_are_one_warning() {
    let folder = TempDir::with_prefix("nudge-test-").unwrap();
    let limits = [
        ("NUDGE_RATE_LIMITS__ENABLED", "true"),
        ("NUDGE_RATE_LIMITS__ADDRESS", "{perSecond = 1, burst = 3}"),
    ];
    let server = Logged::start(folder.path(), &[], &limits).await;
    let http = client::build();
    let mut refused = 0;
    for _ in 0..40 {
        let guess = http.get(server.url("/v1/apps")).bearer_auth("guess");
        refused += usize::from(client::send(guess).await.status == 429);
    }
    assert!(refused > 10, "{refused}");
    assert_eq!(
        server.count("WARN", "authentication has failed too often"),
        1
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_outage_of_the_database_is_told_once_and_its_end_too() {
    let cluster = tokio::task::spawn_blocking(|| Cluster::start_new(Durability::Fast))
        .await
        .unwrap();
    let url = cluster.create_database();
    let folder = TempDir::with_prefix("nudge-test-").unwrap();
    let variables = [
        ("NUDGE_DATABASE__URL", &*url),
        ("NUDGE_DATABASE__ACQUIRE_TIMEOUT_SECONDS", "4"),
    ];
    let server = Logged::start(folder.path(), &["--app", "Demo"], &variables).await;
    let http = client::build();
    let ready = async || client::send(http.get(server.url("/readyz"))).await.status;
    let until = async |status: u16| {
        let started = Instant::now();
        while ready().await != status {
            assert!(started.elapsed() < PATIENCE, "it is not {status}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    until(200).await;
    let session = http
        .post(server.url("/v1/sdk/session"))
        .bearer_auth(server.access["writeKey"].as_str().unwrap());
    client::send(session.json(&json!({"anonymousId": "ada"})))
        .await
        .ok();
    // A key of the wrong kind is noted, also during the outage.
    let misused = async |path: &str| {
        let request = http.post(server.url(path));
        let request = request.bearer_auth(server.access["serverKey"].as_str().unwrap());
        client::send(request.json(&json!({}))).await.status
    };
    assert_eq!(misused("/v1/sdk/session").await, 403);
    let told = || {
        let begun = server.count("WARN", "the database is away");
        (begun, server.count("INFO", "the database works again"))
    };
    // On a machine that is busy enough the database may have been away for a while already.
    let (begun, ended) = told();
    cluster.stop();
    until(503).await;
    assert_eq!(misused("/v1/sdk/consent").await, 403);
    tokio::time::sleep(Duration::from_secs(8)).await;
    cluster.start();
    until(200).await;
    let started = Instant::now();
    while told().1 == ended {
        assert!(started.elapsed() < PATIENCE, "{:#?}", server.lines());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    tokio::time::sleep(Duration::from_secs(2)).await;
    let lines = server.lines();
    assert_eq!(told(), (begun + 1, ended + 1), "{lines:#?}");
    assert_eq!(
        server.count("WARN", "fails, and is tried again"),
        0,
        "{lines:#?}"
    );
    assert_eq!(server.count("WARN", "uses of keys"), 0, "{lines:#?}");
}

/// Whoever sends events that can't be committed is told to come again; by the answer's id the log says why they can't be.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_defect_that_is_answered_503_is_found_by_the_answers_id() {
    let url = postgres::database().await;
    let folder = TempDir::with_prefix("nudge-test-").unwrap();
    let variables = [("NUDGE_DATABASE__URL", &*url)];
    let server = Logged::start(folder.path(), &["--app", "Demo"], &variables).await;
    let http = client::build();
    let post = |path: &str| {
        let request = http.post(server.url(path));
        request.bearer_auth(server.access["writeKey"].as_str().unwrap())
    };
    let session = post("/v1/sdk/session").json(&json!({"anonymousId": "ada"}));
    let session = client::send(session).await.ok();
    let db = Db::open(&Options::new(url.clone(), 1)).await.unwrap();
    let mut tx = db.write().await.unwrap();
    for statement in [
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''refused''; END'",
        "CREATE TRIGGER refuse BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION refuse()",
    ] {
        tx.sql(statement).execute().await.unwrap();
    }
    tx.commit().await.unwrap();
    db.close().await;

    let now = clock::to_text(Clock::default().now());
    let ingest = post("/v1/sdk/ingest")
        .header(
            "x-service-subject-token",
            session["subjectToken"].as_str().unwrap(),
        )
        .json(&json!({
            "context": {"anonymousId": "ada"},
            "events": [{"name": "a", "anonymousId": "ada", "timestamp": now, "properties": {}}],
        }));
    let problem = client::send(ingest).await.refused(503, "unavailable");
    let id = &problem["requestId"];
    let lines = server.lines();
    let of_request = lines
        .iter()
        .filter(|(_, line)| line["request.id"] == *id && line.get("error").is_some());
    let levels: Vec<&String> = of_request.map(|(level, _)| level).collect();
    assert_eq!(levels, ["ERROR"], "{lines:#?}");
}

/// A developer sees what requests come to, and not what open pages of the console read.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dev_says_which_requests_change_something_or_fail() {
    let folder = TempDir::with_prefix("nudge-test-").unwrap();
    let defaults = nudge_platform::config::Config::defaults()
        .unwrap()
        .telemetry;
    let variables = [
        ("NUDGE_TELEMETRY__LOG_FORMAT", &*defaults.log_format),
        ("NUDGE_TELEMETRY__LOG_FILTER", &*defaults.log_filter),
    ];
    let server = Logged::start(folder.path(), &[], &variables).await;
    let http = client::build();
    for path in ["/v1/errors", "/livez", "/v1/nothing"] {
        client::send(http.get(server.url(path))).await;
    }
    let key = server.access["writeKey"].as_str().unwrap();
    for body in [json!({"anonymousId": "ada"}), json!({})] {
        let session = http.post(server.url("/v1/sdk/session"));
        client::send(session.bearer_auth(key).json(&body)).await;
    }
    let expected = [
        "GET unmatched 404 not_found ",
        "POST /v1/sdk/session 200 ",
        "POST /v1/sdk/session 422 validation_failed ",
    ];
    // A slow machine has warnings between them.
    let is_request = |line: &&str| line.starts_with("GET ") || line.starts_with("POST ");
    let log = std::fs::read_to_string(&server.log).unwrap();
    let lines: Vec<&str> = log.lines().filter(is_request).collect();
    assert_eq!(lines.len(), expected.len(), "{log}");
    for (line, start) in lines.iter().zip(expected) {
        assert!(line.starts_with(start) && line.ends_with(" ms"), "{log}");
    }
}

/// Whoever chooses what is logged gets whole lines, whatever they choose.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dev_logs_what_a_filter_of_somebodys_own_says() {
    let folder = TempDir::with_prefix("nudge-test-").unwrap();
    let variables = [
        ("NUDGE_TELEMETRY__LOG_FORMAT", "text"),
        (
            "NUDGE_TELEMETRY__LOG_FILTER",
            "warn,nudge_http::request=info",
        ),
    ];
    let server = Logged::start(folder.path(), &[], &variables).await;
    client::send(client::build().get(server.url("/v1/errors"))).await;
    let log = std::fs::read_to_string(&server.log).unwrap();
    let mut lines = log.lines();
    let found =
        lines.any(|line| line.contains("nudge_http::request") && line.contains("/v1/errors"));
    assert!(found, "{log}");
}
