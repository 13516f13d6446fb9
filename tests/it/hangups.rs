//! What becomes of a server whose terminal goes.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tests::{child, client, site};

/// How long a process may take to start, or to heed a signal.
const PATIENCE: Duration = Duration::from_mins(1);

fn signal(name: &str, process: u32) {
    let process = process.to_string();
    let sent = Command::new("kill").args([name, &process]).status();
    assert!(sent.unwrap().success());
}

/// Somebody who knows other servers by it would have the configuration read anew: nothing is cut off for that.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_goes_on_after_a_hangup() {
    let folder = TempDir::with_prefix("nudge-test-").unwrap();
    let log = folder.path().join("log");
    let mut process = child::program(site!())
        .args([
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--ops-listen",
            "127.0.0.1:0",
            "--data-dir",
        ])
        .arg(folder.path())
        .stdout(Stdio::piped())
        .stderr(std::fs::File::create(&log).unwrap())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
    let mut line = || lines.next().unwrap().unwrap();
    line();
    let operations = line();
    let address = operations.strip_prefix("operations on ").unwrap();
    signal("-HUP", process.id());
    let started = Instant::now();
    while !std::fs::read_to_string(&log).unwrap().contains("SIGHUP") {
        assert!(
            started.elapsed() < PATIENCE,
            "it says nothing of the signal"
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let http = client::build();
    let answer = client::send(http.get(format!("{address}/livez"))).await;
    assert_eq!(answer.status, 200);
    signal("-TERM", process.id());
    assert_eq!(process.wait().unwrap().code(), Some(0));
}

/// Starts `nudge dev` by a command that says what becomes of hangups, which the tests' own process may ignore, and waits until it serves.
fn dev(through: &[&str], folder: &Path) -> Child {
    let access = folder.join("access.json");
    let program = child::program(site!());
    let variables = program
        .get_envs()
        .filter_map(|(name, value)| Some((name, value?)));
    let (command, arguments) = through.split_first().unwrap();
    let process = Command::new(command)
        .args(arguments)
        .arg(program.get_program())
        .args(["dev", "--listen", "127.0.0.1:0", "--data-dir"])
        .arg(folder)
        .arg("--json")
        .arg(&access)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .envs(variables)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let started = Instant::now();
    while !access.exists() {
        assert!(started.elapsed() < PATIENCE, "it does not start");
        std::thread::sleep(Duration::from_millis(20));
    }
    process
}

#[test]
fn dev_ends_in_order_when_its_terminal_goes() {
    let folder = TempDir::with_prefix("nudge-test-").unwrap();
    let mut process = dev(&["env", "--default-signal=HUP"], folder.path());
    signal("-HUP", process.id());
    assert_eq!(process.wait().unwrap().code(), Some(0));
}

/// It is started so that it outlives its terminal.
#[test]
fn dev_goes_on_under_nohup() {
    let folder = TempDir::with_prefix("nudge-test-").unwrap();
    let mut process = dev(&["nohup"], folder.path());
    signal("-HUP", process.id());
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(process.try_wait().unwrap(), None);
    signal("-TERM", process.id());
    assert_eq!(process.wait().unwrap().code(), Some(0));
}
