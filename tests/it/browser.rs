//! The web SDK in a real Chromium: runs `tests/browser`, whose tests start the server's program themselves.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use tests::app::MASTER_KEY;
use tests::site;

use crate::console_operations;
use crate::programs::{has, installed};

/// Debian's Chromium. The tests download no browser.
const CHROMIUM: &str = "/usr/bin/chromium";

/// Runs a file of tests. The error is what it printed.
fn run(folder: &Path, plugin: &Path, file: &str) -> Result<(), String> {
    // What the console asks the server in it.
    let asked = Path::new(site!().scratch).join("asked");
    std::fs::write(&asked, "").unwrap();
    let output = Command::new("node")
        .args(["--test", "--test-reporter=spec", file])
        .current_dir(folder)
        .env("NUDGE_PROGRAM", site!().program)
        .env("NUDGE_CHROMIUM", CHROMIUM)
        .env("NUDGE_PLUGIN", plugin)
        .env("NUDGE_ASKED", &asked)
        .env("NUDGE_SECRETS__MASTER_KEY", MASTER_KEY)
        .env(
            "NUDGE_PLUGINS__CACHE_DIR",
            Path::new(site!().scratch).join("plugin-cache"),
        )
        .output()
        .unwrap();
    if !output.status.success() {
        let report = String::from_utf8_lossy(&output.stdout);
        let complaints = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{file}:\n{report}\n{complaints}"));
    }
    if file.starts_with("console-") {
        console_operations::check(file, &std::fs::read_to_string(&asked).unwrap())?;
    }
    Ok(())
}

/// The SDK's own tests, which need no browser: surveys' ways by the vectors of the server's code, and what requests leave behind.
const OF_SDK: [&str; 2] = [
    "../../host/web-sdk/test/surveys.test.mjs",
    "../../host/web-sdk/test/requests.test.mjs",
];

/// The files of `tests/browser`.
pub(crate) fn files() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("browser");
    let mut files: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".test.mjs"))
        .collect();
    files.sort();
    files
}

/// One test, and one file after the other: a browser has more processes than machines have cores, and tests that
/// wait for their turn would hold the threads of all others.
#[test]
#[expect(clippy::print_stderr, reason = "says how long each file takes")]
fn every_file_passes() {
    if !has(&[CHROMIUM, "node", "npm"]) {
        return;
    }
    installed("host/web-sdk");
    installed("tests/oidc");
    let folder = installed("tests/browser");
    // A plugin to upload.
    let plugin = Path::new(site!().scratch).join("versioned.wasm");
    std::fs::write(&plugin, test_guests::VERSIONED).unwrap();
    // The ones that failed, where they are tried again. They are named as is said below.
    let chosen = std::env::var("NUDGE_BROWSER_FILES").unwrap_or_default();
    let chosen: Vec<&str> = chosen.split_whitespace().collect();
    let files = files();
    let all = files.iter().map(String::as_str).chain(OF_SDK);
    let mut complaints = Vec::new();
    for file in all.filter(|file| chosen.is_empty() || chosen.contains(file)) {
        let begun = Instant::now();
        let complaint = run(&folder, &plugin, file).err();
        let verdict = if complaint.is_some() {
            "failed"
        } else {
            "passed"
        };
        eprintln!("{file} {verdict} after {} s", begun.elapsed().as_secs());
        complaints.extend(complaint);
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}
