//! What operators see: metrics, alerts, dashboard, runbook, `nudge doctor`.
#![expect(
    clippy::panic,
    reason = "a test that finds nothing fails where it stands, with what there was"
)]

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use nudge_platform::telemetry::families::{FAMILIES, Kind};
use serde_json::{Value, json};
use tempfile::TempDir;
use tests::session::text;
use tests::{
    Backend, Child, Credential, TestApp, child, client, on_both_backends, pooler, postgres, site,
};

use crate::kills::events;

on_both_backends!(
    metrics_are_as_prometheus_wants_them,
    what_waits_and_what_failed_is_measured,
    the_doctor_looks_at_a_server_and_its_database,
);

/// A server that answers, if there is one: one that does not has no page to show.
const ANOTHER_SERVER: &str = "{{ with query `up{job=\"nudge\"} == 1` }}{{ . | first | label \"instance\" }}{{ else }}{{ $labels.instance }}{{ end }}";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../host")
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap()
}

/// Words that look like names of our metrics.
fn names(text: &str) -> BTreeSet<String> {
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let words = text.split(|letter: char| !is_name(letter));
    let ours = words.filter(|word| word.starts_with("nudge_") || word.starts_with("process_"));
    ours.map(family).collect()
}

/// A sample's family: those of a histogram have suffixes.
fn family(sample: &str) -> String {
    let suffixes = ["_bucket", "_sum", "_count"];
    let histogram = suffixes.iter().find_map(|suffix| {
        let family = sample.strip_suffix(suffix)?;
        let is_histogram = |it: &nudge_platform::telemetry::families::Family| {
            it.name == family && matches!(it.kind, Kind::Histogram(_))
        };
        FAMILIES.iter().any(is_histogram).then_some(family)
    });
    histogram.unwrap_or(sample).to_owned()
}

fn families() -> BTreeSet<String> {
    FAMILIES.iter().map(|it| it.name.to_owned()).collect()
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("node_modules") {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn the_list_of_metrics_is_that_of_the_code() {
    let mut files = Vec::new();
    sources(&root(), &mut files);
    let mut used = BTreeSet::new();
    for file in files.iter().filter(|file| !file.ends_with("families.rs")) {
        let text = fs::read_to_string(file).unwrap();
        let literals = text.split('"').skip(1).step_by(2);
        used.extend(literals.filter(|it| it.starts_with("nudge_")).map(family));
    }
    let process = |name: &&String| !name.starts_with("process_");
    let listed: BTreeSet<String> = families().iter().filter(process).cloned().collect();
    let unlisted: Vec<_> = used
        .difference(&listed)
        .filter(|it| is_metric(it))
        .collect();
    assert!(unlisted.is_empty(), "not in families.rs: {unlisted:?}");
    let unused: Vec<_> = listed.difference(&used).collect();
    assert!(unused.is_empty(), "nothing measures {unused:?}");
}

/// Whether a literal is a name: others only begin like one.
fn is_metric(literal: &str) -> bool {
    literal
        .bytes()
        .all(|byte| byte.is_ascii_lowercase() || byte == b'_')
}

/// The alerts with their expressions.
fn alerts() -> Vec<(String, String)> {
    let rules = read("ops/alerts.yml");
    let alerts = rules.split("- alert: ").skip(1).map(|rule| {
        let (name, rest) = rule.split_once('\n').unwrap();
        let expression = rest.trim_start().strip_prefix("expr: ").unwrap();
        (
            name.to_owned(),
            expression.lines().next().unwrap().to_owned(),
        )
    });
    alerts.collect()
}

#[test]
fn alerts_and_dashboard_name_metrics_that_there_are() {
    let known = families();
    let alerts = alerts();
    assert!(alerts.len() >= 15, "{} alerts", alerts.len());
    for (alert, expression) in alerts {
        let named = names(&expression);
        // Whether a target answers is Prometheus' own metric.
        assert!(
            !named.is_empty() || expression.contains("up{"),
            "{alert} names none"
        );
        assert!(named.is_subset(&known), "{alert}: {named:?}");
    }
    let dashboard: Value = serde_json::from_str(&read("ops/grafana-dashboard.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let mut shown = BTreeSet::new();
    for panel in panels {
        for target in panel["targets"].as_array().unwrap() {
            let named = names(target["expr"].as_str().unwrap());
            assert!(!named.is_empty() && named.is_subset(&known), "{panel}");
            shown.extend(named);
        }
    }
    let hidden: Vec<_> = known.difference(&shown).collect();
    assert!(hidden.is_empty(), "no panel shows {hidden:?}");
}

#[test]
fn each_alert_has_its_section_in_the_runbook_and_no_other_has_one() {
    let runbook = read("docs/runbook.md");
    let rules = read("ops/alerts.yml");
    let sections = runbook.lines().filter_map(|line| line.strip_prefix("## "));
    let sections: Vec<&str> = sections.collect();
    let alerts = alerts();
    let named: Vec<&str> = alerts.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(sections, named, "in the order of the rules");
    for (name, expression) in &alerts {
        let host = if name == "NudgeDown" {
            ANOTHER_SERVER
        } else {
            "{{ $labels.instance }}"
        };
        let anchor = format!(
            "runbook: 'http://{host}/docs/book/runbook.html#{}'",
            name.to_lowercase()
        );
        assert!(rules.contains(&anchor), "{name} leads to its section");
        let section = runbook
            .split("\n## ")
            .find(|it| it.starts_with(&format!("{name}\n")));
        let section = section.unwrap();
        assert!(
            section.contains(expression.trim_matches('\'')),
            "{name} says when it fires"
        );
        assert!(
            section.contains("**Meaning.**") && section.contains("**Remedy.**"),
            "{name}"
        );
    }
    // What the doctor and other sections lead to is there.
    let doctor = ["database", "server"].map(|it| read(&format!("src/cli/doctor/{it}.rs")));
    for word in doctor
        .iter()
        .chain([&runbook])
        .flat_map(|text| text.split(|it: char| !it.is_alphanumeric()))
    {
        let is_alert = word.starts_with("Nudge") && word.len() > "Nudge".len();
        assert!(!is_alert || named.contains(&word), "{word} is no alert");
    }
}

/// A label that an expression drops is empty in what the alert says, and so is the host of its link.
#[test]
fn expressions_keep_the_labels_that_their_alerts_name() {
    let rules = read("ops/alerts.yml");
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    for (name, expression) in alerts() {
        let rule = rules
            .split("- alert: ")
            .find(|rule| rule.starts_with(&format!("{name}\n")));
        let named = rule.unwrap().split("$labels.").skip(1);
        let named: BTreeSet<&str> = named
            .map(|text| {
                text.split(|letter: char| !is_letter(letter))
                    .next()
                    .unwrap()
            })
            .collect();
        assert!(named.contains("instance"), "{name} has a link");
        // What stands behind `and` says when, and not of what.
        let shown = expression.split(" and ").next().unwrap();
        for function in ["avg", "count", "max", "min", "sum"] {
            let called = format!("{function}(");
            let mut calls = shown.match_indices(&called);
            let drops_all = calls.any(|(start, _)| !shown[..start].ends_with(is_letter));
            assert!(!drops_all, "{name}: {function} drops all labels");
        }
        for kept in shown.split(" by (").skip(1) {
            let kept = kept.split(')').next().unwrap();
            let kept: BTreeSet<&str> = kept.split(", ").collect();
            assert!(named.is_subset(&kept), "{name} keeps {kept:?} of {named:?}");
        }
    }
}

/// Runs promtool, unless there is none; it must be there in the continuous integration.
fn promtool(arguments: &[&str], input: &str) -> Option<Output> {
    let process = Command::new("promtool")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let Ok(mut process) = process else {
        assert!(
            std::env::var_os("CI").is_none(),
            "promtool is not installed"
        );
        skipped("promtool is not installed (Debian's package prometheus)");
        return None;
    };
    process
        .stdin
        .take()
        .unwrap()
        .write_all(input.as_bytes())
        .unwrap();
    Some(process.wait_with_output().unwrap())
}

#[expect(
    clippy::print_stderr,
    reason = "who runs the tests should know what they did not test"
)]
fn skipped(why: &str) {
    eprintln!("skipped: {why}");
}

#[test]
fn promtool_takes_the_rules() {
    let rules = root().join("ops/alerts.yml").display().to_string();
    if let Some(output) = promtool(&["check", "rules", &rules], "") {
        assert!(output.status.success(), "{output:?}");
    }
}

#[test]
fn a_server_that_is_down_leads_to_the_book_of_another_one() {
    let rules = read("ops/alerts.yml");
    let described = rules
        .lines()
        .find_map(|line| line.trim().strip_prefix("description: '"));
    let description = described
        .unwrap()
        .trim_end_matches('\'')
        .replace("{{ $labels.instance }}", "dead:9464");
    let series = |instance: &str, values: &str| {
        let series = format!("up{{job=\"nudge\",instance=\"{instance}\"}}");
        json!({"series": series, "values": values})
    };
    let case = |others: &[&str], host: &str| {
        let mut input = vec![series("dead:9464", "0x5")];
        input.extend(others.iter().map(|other| series(other, "1x5")));
        let alert = json!({
            "exp_labels": {"job": "nudge", "instance": "dead:9464", "severity": "critical"},
            "exp_annotations": {
                "summary": "No answer from dead:9464",
                "description": description,
                "runbook": format!("http://{host}/docs/book/runbook.html#nudgedown"),
            },
        });
        let expected = json!({"eval_time": "3m", "alertname": "NudgeDown", "exp_alerts": [alert]});
        json!({"interval": "1m", "input_series": input, "alert_rule_test": [expected]})
    };
    let tests = json!({
        "rule_files": [root().join("ops/alerts.yml").display().to_string()],
        "evaluation_interval": "1m",
        "tests": [case(&["alive:9464"], "alive:9464"), case(&[], "dead:9464")],
    });
    let folder = TempDir::with_prefix("nudge-test-").unwrap();
    let file = folder.path().join("tests.yml").display().to_string();
    fs::write(&file, tests.to_string()).unwrap();
    if let Some(output) = promtool(&["test", "rules", &file], "") {
        assert!(output.status.success(), "{output:?}");
    }
}

async fn metrics(app: &TestApp) -> String {
    app.get("/metrics", &Credential::none()).await.text
}

async fn metrics_are_as_prometheus_wants_them(app: &mut TestApp) {
    let ada = app.session("ada").await;
    app.survey(&json!({"kind": "event", "eventName": "purchase"}))
        .await;
    let event = app.event(&ada, "purchase", &json!({}));
    app.ingest(&ada, &[event]).await.ok();
    app.settle().await;
    let metrics = metrics(app).await;
    let known = families();
    for line in metrics
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty())
    {
        let sample = line.split(['{', ' ']).next().unwrap();
        let family = family(sample);
        assert!(known.contains(&family), "{line}");
        assert!(
            metrics.contains(&format!("# HELP {family} ")),
            "{family} has no HELP"
        );
        assert!(
            metrics.contains(&format!("# TYPE {family} ")),
            "{family} has no TYPE"
        );
    }
    assert!(metrics.contains(concat!("version=\"", env!("CARGO_PKG_VERSION"), "\"")));
    if let Some(output) = promtool(&["check", "metrics"], &metrics) {
        assert!(
            output.status.success() && output.stderr.is_empty(),
            "{output:?}"
        );
    }
}

async fn what_waits_and_what_failed_is_measured(app: &mut TestApp) {
    let properties = json!([{"name": "total", "type": "number", "required": true}]);
    app.define("purchase", &json!({"properties": properties}))
        .await;
    let ada = app.session("ada").await;
    let event = app.event(&ada, "purchase", &json!({}));
    let refused = app.ingest(&ada, &[event]).await.ok();
    assert_eq!(refused["errors"][0]["code"], "schema_violation");

    let metrics = metrics(app).await;

    // Counters are the whole process's, which other tests share; gauges of the database are set by whoever reads last.
    let value = |sample: &str| -> f64 {
        let line = metrics.lines().find_map(|line| line.strip_prefix(sample));
        line.unwrap_or_else(|| panic!("{sample} is missing"))
            .trim()
            .parse()
            .unwrap()
    };
    assert!(value("nudge_dead_letters_total{stage=\"validation\"} ") >= 1.0);
    for there in [
        "nudge_dead_letters ",
        "nudge_push_due ",
        "nudge_webhooks_oldest_due_seconds ",
        "nudge_timers_due ",
        "nudge_jobs_due ",
        "nudge_database_connections{state=\"in_use\"} ",
        "nudge_plugin_rollbacks_total{cause=\"failures\"} ",
        "nudge_http_shed_total{full=\"commits\"} ",
        "nudge_database_acquire_timeouts_total ",
    ] {
        assert!(value(there) >= 0.0);
    }
    for positive in [
        "nudge_database_connections_max ",
        "nudge_disk_size_bytes ",
        "process_cpu_seconds_total ",
        "process_start_time_seconds ",
    ] {
        assert!(value(positive) > 0.0, "{positive}");
    }
    let cleared = app.path("/dead-letters");
    let letters = app.get(&cleared, &app.viewer()).await.ok();
    assert_eq!(letters["items"].as_array().unwrap().len(), 1);
}

/// In a process of its own, whose counters no other test shares.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_letter_is_counted_once_however_often_its_event_is_sent() {
    let url = postgres::database().await;
    for variables in [&[][..], &[("NUDGE_DATABASE__URL", url.as_str())]] {
        let folder = TempDir::with_prefix("nudge-test-").unwrap();
        let child = Child::start_with(site!(), folder.path(), variables);
        let http = client::build();
        let at = |path: &str| format!("{}{path}", child.text("baseUrl"));
        let definitions = at(&format!(
            "/v1/apps/{}/event-definitions",
            child.text("appId")
        ));
        let properties = json!([{"name": "total", "type": "number", "required": true}]);
        let body = json!({"name": "purchase", "properties": properties});
        let define = http.post(definitions).bearer_auth(child.text("adminToken"));
        client::send(define.json(&body)).await.data(201);
        let key = child.text("writeKey");
        let session = http.post(at("/v1/sdk/session")).bearer_auth(key);
        let session = client::send(session.json(&json!({"anonymousId": "ada"}))).await;
        let token = text(&session.ok(), "subjectToken");
        let event = |number: usize| {
            let mut event = events(1).remove(0);
            event["properties"] = json!({"number": number});
            event
        };
        let (first, second) = (event(1), event(2));
        for sent in [&[&first][..], &[&first], &[&first, &second]] {
            let body = json!({"context": {"anonymousId": "ada"}, "events": sent});
            let send = http.post(at("/v1/sdk/ingest")).bearer_auth(key);
            let send = send.header("x-service-subject-token", &token).json(&body);
            let answer = client::send(send).await.ok();
            assert_eq!(answer["errors"].as_array().unwrap().len(), sent.len());
        }

        let metrics = client::send(http.get(at("/metrics"))).await.text;
        for sample in [
            "nudge_dead_letters 2",
            "nudge_dead_letters_total{stage=\"validation\"} 2",
        ] {
            assert!(
                metrics.lines().any(|line| line == sample),
                "{sample}: {metrics}"
            );
        }
    }
}

/// What the doctor says of the database of an app.
fn doctor(app: &TestApp, operations: &str) -> (bool, Vec<Value>) {
    let mut command = child::program(site!());
    if !app.config.database.url.is_empty() {
        command.env("NUDGE_DATABASE__URL", &app.config.database.url);
    }
    let output = command
        .args(["doctor", "--json", "--operations", operations, "--data-dir"])
        .arg(&app.config.server.data_dir)
        .output()
        .unwrap();
    let findings = serde_json::from_slice(&output.stdout);
    (
        output.status.success(),
        findings.unwrap_or_else(|_| panic!("{output:?}")),
    )
}

fn of<'f>(findings: &'f [Value], subject: &str) -> &'f Value {
    let found = findings.iter().find(|it| it["subject"] == subject);
    found.unwrap_or_else(|| panic!("nothing is said of {subject}: {findings:?}"))
}

async fn the_doctor_looks_at_a_server_and_its_database(app: &mut TestApp) {
    let base = app.access.base_url.clone();
    let (well, findings) = doctor(app, &base);
    assert!(well, "{findings:?}");
    for subject in [
        "configuration",
        "database",
        "master key",
        "events",
        "processes",
        "dead letters",
        "plugins",
        "server",
        "version",
    ] {
        let finding = of(&findings, subject);
        if finding["level"] == "warning" && subject == "database" && pooler::shared().is_some() {
            let detail = text(finding, "detail");
            assert!(detail.contains("as a pooler takes no"), "{finding}");
            continue;
        }
        // Counters of a process that other tests share may say more of the server.
        assert_eq!(finding["level"], "good", "{finding}");
        assert!(finding.get("next").is_none());
    }

    let properties = json!([{"name": "total", "type": "number", "required": true}]);
    app.define("purchase", &json!({"properties": properties}))
        .await;
    let ada = app.session("ada").await;
    let event = app.event(&ada, "purchase", &json!({}));
    app.ingest(&ada, &[event]).await.ok();
    let (well, findings) = doctor(app, &base);
    assert!(well, "a warning is no failure: {findings:?}");
    let letters = of(&findings, "dead letters");
    assert_eq!(letters["level"], "warning");
    assert!(
        text(letters, "detail").contains(&app.access.app_id.to_string()),
        "{letters}"
    );
    assert!(text(letters, "next").contains("NudgeDeadLetters"));

    // Nobody listens on port 1. An address is taken as a URL is.
    let (well, findings) = doctor(app, "127.0.0.1:1");
    assert!(!well);
    let server = of(&findings, "server");
    assert_eq!(server["level"], "problem");
    let detail = text(server, "detail");
    let expected = "no server answers at http://127.0.0.1:1: Connection refused";
    assert!(detail.starts_with(expected), "{detail}");
    assert!(text(server, "next").contains("--operations"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_doctor_makes_nothing_where_there_is_nothing() {
    let folder = TempDir::with_prefix("nudge-test-").unwrap();
    let output = child::program(site!())
        .args(["doctor", "--operations", "http://127.0.0.1:1", "--data-dir"])
        .arg(folder.path())
        .output()
        .unwrap();
    assert!(!output.status.success());
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(
        said.contains("PROBLEM  database: there is none at"),
        "{said}"
    );
    assert!(said.contains("Name the server's folder"), "{said}");
    assert!(
        said.contains("PROBLEM  server: no server answers"),
        "{said}"
    );
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_doctor_looks_at_the_disk_that_has_the_database() {
    let app = TestApp::start(site!(), Backend::Sqlite).await;
    let database = app.config.server.data_dir.join("nudge.db");
    let output = child::program(site!())
        .args(["doctor", "--operations", &app.access.base_url])
        .args(["--data-dir", "/nowhere", "--database-url"])
        .arg(format!("sqlite:{}", database.display()))
        .output()
        .unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{said}");
    let folder = app.config.server.data_dir.display().to_string();
    let disk = said.lines().find(|line| line.contains("  disk: "));
    assert!(disk.is_some_and(|line| line.contains(&folder)), "{said}");
    app.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_doctor_says_that_a_key_is_another_databases() {
    let app = TestApp::start(site!(), Backend::Sqlite).await;
    let output = child::program(site!())
        .env(
            "NUDGE_SECRETS__MASTER_KEY",
            "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=",
        )
        .args(["doctor", "--operations", &app.access.base_url, "--data-dir"])
        .arg(&app.config.server.data_dir)
        .output()
        .unwrap();
    assert!(!output.status.success());
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("PROBLEM  master key:"), "{said}");
    assert!(said.contains("`nudge secrets status`"), "{said}");
    app.finish().await;
}
