//! The web SDK in a real Chromium: runs `tests/browser`, whose tests start the server's program themselves.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use tests::app::MASTER_KEY;
use tests::site;

use crate::console_operations;

/// Debian's Chromium. The tests download no browser.
const CHROMIUM: &str = "/usr/bin/chromium";

/// Whether a browser can be driven. Without one the tests are skipped, except in CI, where nothing is.
#[expect(clippy::print_stderr, reason = "says that it is skipped")]
fn has_browser() -> bool {
    let there = [CHROMIUM, "node", "npm"].iter().all(|program| {
        let version = Command::new(program).arg("--version").output();
        version.is_ok_and(|output| output.status.success())
    });
    assert!(
        there || std::env::var_os("CI").is_none(),
        "CI has node, npm and {CHROMIUM}"
    );
    if !there {
        eprintln!("skipped: there is no node, npm or {CHROMIUM} on this machine");
    }
    there
}

/// A folder of the repository, with the packages that its lock file names.
pub(crate) fn installed(folder: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("..")
        .join(folder);
    let scratch = Path::new(site!().scratch);
    let name = folder.file_name().unwrap().to_string_lossy().into_owned();
    let lock = std::fs::File::create(scratch.join(format!("{name}.lock"))).unwrap();
    lock.lock().unwrap();
    // npm notes there what it has installed.
    let note = folder.join("node_modules/.nudge-lock.json");
    let wanted = std::fs::read(folder.join("package-lock.json")).unwrap();
    if std::fs::read(&note).unwrap_or_default() != wanted {
        let install = Command::new("npm")
            .args(["ci", "--no-audit", "--no-fund", "--ignore-scripts"])
            .current_dir(&folder)
            .output()
            .unwrap();
        let complaint = String::from_utf8_lossy(&install.stderr);
        assert!(install.status.success(), "{complaint}");
        std::fs::write(&note, wanted).unwrap();
    }
    folder
}

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

/// The SDK's own tests, which need no browser: surveys' ways by the vectors of the server's code.
const WAYS_OF_SURVEYS: &str = "../../host/web-sdk/test/surveys.test.mjs";

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
    if !has_browser() {
        return;
    }
    installed("host/web-sdk");
    installed("tests/oidc");
    let folder = installed("tests/browser");
    // A plugin to upload.
    let plugin = Path::new(site!().scratch).join("versioned.wasm");
    std::fs::write(&plugin, test_guests::VERSIONED).unwrap();
    let mut complaints = Vec::new();
    for file in files().iter().map(String::as_str).chain([WAYS_OF_SURVEYS]) {
        let begun = Instant::now();
        complaints.extend(run(&folder, &plugin, file).err());
        eprintln!("{file}: {} s", begun.elapsed().as_secs());
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}
