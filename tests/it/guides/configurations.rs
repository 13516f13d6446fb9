//! Configurations of other programs in the documents: those programs take them as they are written.

use std::path::Path;
use std::process::Command;

use tempfile::TempDir;
use tests::beside::{Program, find_or_skip};
use tests::pooler::keeps_statements;
use tests::postgres::{self, free_port};

use super::{blocks, good};

const RUNBOOK: &str = include_str!("../../../host/docs/runbook.md");
const SCALING: &str = include_str!("../../../host/docs/scaling.md");

/// Runs a program's own check of a file.
fn check(program: &Path, arguments: &[&str], folder: &TempDir, file: &str) {
    let mut check = Command::new(program);
    check.args(arguments).arg(file).current_dir(folder.path());
    good(&check.output().unwrap());
}

#[test]
fn haproxy_takes_its_configurations() {
    let Some(haproxy) = find_or_skip("haproxy") else {
        return;
    };
    let folder = TempDir::with_prefix("nudge-test-").unwrap();
    let all = blocks(SCALING, "");
    let all: Vec<&str> = all
        .into_iter()
        .filter(|block| block.starts_with("defaults"))
        .collect();
    assert_eq!(all.len(), 2, "configurations of HAProxy");
    for configuration in all {
        // The certificate is the reader's.
        let configuration = configuration.replace(" ssl crt /etc/haproxy/nudge.pem", "");
        std::fs::write(folder.path().join("haproxy.cfg"), configuration).unwrap();
        check(&haproxy, &["-c", "-f"], &folder, "haproxy.cfg");
    }
}

#[test]
fn pgbouncer_takes_its_configuration() {
    let Some(pgbouncer) = find_or_skip("pgbouncer") else {
        return;
    };
    let all = blocks(SCALING, "ini");
    let [configuration] = all[..] else {
        panic!("one configuration of pgbouncer: {all:?}")
    };
    let keeps = keeps_statements(&pgbouncer);
    let known = |line: &&str| keeps || !line.starts_with("max_prepared_statements");
    let mut lines: Vec<&str> = configuration.lines().filter(known).collect();
    let port = free_port();
    let listen = format!("listen_port = {port}");
    // Where it listens, and whom it lets in, is the reader's.
    lines.extend([
        "listen_addr = 127.0.0.1",
        &listen,
        "unix_socket_dir =",
        "auth_type = any",
    ]);
    let arguments: &[&str] = if postgres::is_root() {
        &["-u", "nobody"]
    } else {
        &[]
    };
    let running = Program::start(&pgbouncer, arguments, port, &lines.join("\n"));
    assert_eq!(running.port, port);
}

#[test]
fn prometheus_takes_its_configuration() {
    let Some(promtool) = find_or_skip("promtool") else {
        return;
    };
    let all = blocks(RUNBOOK, "yaml");
    let [configuration] = all[..] else {
        panic!("one configuration of Prometheus: {all:?}")
    };
    let folder = TempDir::with_prefix("nudge-test-").unwrap();
    std::fs::write(folder.path().join("prometheus.yml"), configuration).unwrap();
    let rules = include_str!("../../../host/ops/alerts.yml");
    std::fs::write(folder.path().join("alerts.yml"), rules).unwrap();
    check(&promtool, &["check", "config"], &folder, "prometheus.yml");
}
