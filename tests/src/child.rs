//! The server's program in a process of its own.
#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "test support: a test whose server fails fails where it stands"
)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::Site;
use crate::app::MASTER_KEY;

/// Longer than a start takes, plugins compiled.
const STARTS: Duration = Duration::from_mins(2);

/// A running `nudge dev`; killed when dropped.
#[derive(Debug)]
pub struct Child {
    process: std::process::Child,
    /// What `nudge dev --json` wrote: addresses, keys and tokens.
    pub access: Value,
}

/// The program, ready for arguments, with an environment that keeps it to itself.
pub fn program(site: Site) -> Command {
    let mut command = Command::new(site.program);
    command
        .env_clear()
        .env("NUDGE_SECRETS__MASTER_KEY", MASTER_KEY)
        .env("NUDGE_PLUGINS__DEADLINE_MS", "20000")
        .env("NUDGE_PLUGINS__VALIDATION_DEADLINE_MS", "20000")
        .env(
            "NUDGE_PLUGINS__CACHE_DIR",
            PathBuf::from(site.scratch).join("plugin-cache"),
        )
        .current_dir(site.scratch)
        .stdin(Stdio::null());
    if crate::pooler::forgets_statements() {
        command.env("NUDGE_DATABASE__STATEMENT_CACHE", "0");
    }
    command
}

/// Runs the program to its end.
pub fn run(site: Site, arguments: &[&str]) -> Output {
    let output = program(site).args(arguments).output();
    output.expect("the program starts")
}

/// The one line that a failed command leaves on standard error.
pub fn complaint(output: &Output) -> String {
    assert!(!output.status.success(), "the command fails: {output:?}");
    let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(complaint.trim_end().lines().count(), 1, "{complaint}");
    complaint
}

impl Child {
    /// Starts the program on SQLite and waits until it serves.
    pub fn start(site: Site, data_dir: &Path) -> Self {
        Self::start_with(site, data_dir, &[])
    }

    /// Starts the program with more variables in its environment and waits until it serves.
    pub fn start_with(site: Site, data_dir: &Path, variables: &[(&str, &str)]) -> Self {
        Self::start_at(site, "127.0.0.1:0", data_dir, variables)
    }

    /// Starts the program at an address and waits until it serves.
    pub fn start_at(
        site: Site,
        address: &str,
        data_dir: &Path,
        variables: &[(&str, &str)],
    ) -> Self {
        let shares = variables
            .iter()
            .any(|(name, _)| *name == "NUDGE_DATABASE__URL");
        // Several share a database by its URL, each with a data directory of its own.
        let app = shares.then_some("Demo");
        Self::spawn(site, address, data_dir, variables, app)
    }

    /// Starts the program on SQLite with an app that is named, and waits until it serves.
    pub fn start_of(site: Site, data_dir: &Path, app: &str) -> Self {
        Self::spawn(site, "127.0.0.1:0", data_dir, &[], Some(app))
    }

    fn spawn(
        site: Site,
        address: &str,
        data_dir: &Path,
        variables: &[(&str, &str)],
        app: Option<&str>,
    ) -> Self {
        let file = data_dir.join("access.json");
        drop(std::fs::remove_file(&file));
        let mut process = program(site)
            // Tests ask very much of it.
            .env("NUDGE_TELEMETRY__LOG_FILTER", "warn")
            .envs(variables.iter().copied())
            .args(["dev", "--listen", address, "--data-dir"])
            .arg(data_dir)
            .arg("--json")
            .arg(&file)
            .args(app.map(|app| ["--app", app]).into_iter().flatten())
            .stdout(Stdio::null())
            .stderr(Stdio::inherit())
            .spawn()
            .expect("the program starts");
        let started = Instant::now();
        while !file.exists() {
            if let Some(status) = process.try_wait().expect("the process can be asked") {
                panic!("the program ended: {status}");
            }
            assert!(started.elapsed() < STARTS, "the program does not serve");
            std::thread::sleep(Duration::from_millis(20));
        }
        let text = std::fs::read(&file).expect("the file was written whole");
        let access = serde_json::from_slice(&text).expect("the file is JSON");
        Self { process, access }
    }

    /// A text of what the program wrote.
    pub fn text(&self, key: &str) -> &str {
        self.access
            .get(key)
            .and_then(Value::as_str)
            .expect("the program writes it")
    }

    /// The process.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Kills the program as a power cut would: it can do nothing more.
    pub fn kill(mut self) {
        self.process.kill().expect("it is ours to kill");
        self.process.wait().expect("it ends");
    }

    /// Asks the program to stop and answers its exit code.
    pub fn terminate(mut self) -> Option<i32> {
        let id = self.process.id().to_string();
        let asked = Command::new("kill").args(["-TERM", &id]).status();
        assert!(asked.expect("kill is there").success());
        self.process.wait().expect("it ends").code()
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // One that has ended can't be killed, which is all that is asked here.
        drop(self.process.kill());
        drop(self.process.wait());
    }
}
