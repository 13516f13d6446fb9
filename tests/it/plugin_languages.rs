//! `nudge plugin` for projects in C and Python: what their tools make of them (contract 16).

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;
use tests::{child, site};

use crate::plugin_command::{path_with, python};

const KINDS: [&str; 3] = ["trigger", "validation", "personalization"];

/// The program, with a path of its own.
fn nudge(path: Option<&Path>, arguments: &[&str]) -> Output {
    let mut command = child::program(site!());
    let path = path.map_or_else(|| std::env::var_os("PATH"), |path| Some(path.into()));
    if let Some(path) = path {
        command.env("PATH", path);
    }
    command.args(arguments).output().unwrap()
}

fn good_json(output: &Output) -> Value {
    let errors = String::from_utf8_lossy(&output.stderr);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}\n{errors}");
    serde_json::from_str(&text).unwrap()
}

/// A new project in C.
fn project(folder: &TempDir, kind: &str) -> PathBuf {
    let name = format!("c-{kind}");
    let project = folder.path().join(&name);
    let dir = project.to_str().unwrap();
    let arguments = ["plugin", "new", &name, "--kind", kind, "--lang", "c"];
    let made = nudge(None, &[&arguments[..], &["--dir", dir]].concat());
    assert!(made.status.success(), "{made:?}");
    project
}

/// Whether clang and its linker are there. Without them a test has nothing to show: it says so, and fails where
/// everything must be tested.
#[expect(clippy::print_stderr, reason = "a test that is skipped must say so")]
fn has_clang() -> bool {
    let is_there = |program: &str| {
        Command::new(program)
            .arg("--version")
            .output()
            .is_ok_and(|output| output.status.success())
    };
    let ready = is_there("clang") && is_there("wasm-ld");
    if !ready {
        assert!(
            std::env::var_os("CI").is_none(),
            "clang and lld must be installed where CI is set"
        );
        eprintln!("SKIPPED: clang or wasm-ld is not installed");
    }
    ready
}

#[test]
fn a_new_project_in_c_of_every_kind_passes_its_cases_and_the_check() {
    if !has_clang() {
        return;
    }
    let folder = TempDir::with_prefix("nudge-test-").unwrap();
    for kind in KINDS {
        let project = project(&folder, kind);
        let dir = project.to_str().unwrap();
        let tested = good_json(&nudge(None, &["plugin", "test", "--json", "--dir", dir]));
        assert_eq!(tested["kind"], kind);
        assert_eq!(tested["failed"], 0, "{tested}");
        assert!(tested["passed"].as_u64().unwrap() >= 2, "{tested}");
        for case in tested["cases"].as_array().unwrap() {
            assert_eq!(case["nondeterministic"], serde_json::json!([]), "{case}");
        }
        let checked = good_json(&nudge(None, &["plugin", "check", "--json", "--dir", dir]));
        for import in checked["imports"].as_array().unwrap() {
            let name = import["name"].as_str().unwrap();
            assert!(name.starts_with("nudge:plugin/"), "{name}");
        }
        let size = std::fs::metadata(project.join("build/plugin.wasm"))
            .unwrap()
            .len();
        assert!(size < 100 * 1024, "{size}");
    }
}

#[test]
fn an_error_in_c_is_told_with_its_line() {
    if !has_clang() {
        return;
    }
    let folder = TempDir::with_prefix("nudge-test-").unwrap();
    let project = project(&folder, "trigger");
    let source = project.join("src/plugin.c");
    let before = std::fs::read_to_string(&source).unwrap();
    let line = before.lines().count() + 1;
    std::fs::write(&source, format!("{before}int broken = ;\n")).unwrap();
    let output = nudge(
        None,
        &["plugin", "build", "--dir", project.to_str().unwrap()],
    );
    assert!(!output.status.success());
    let complaint = String::from_utf8(output.stderr).unwrap();
    assert!(
        complaint.contains(&format!("plugin.c:{line}:")),
        "{complaint}"
    );
}

#[test]
fn without_clang_one_line_says_what_to_install() {
    let folder = TempDir::with_prefix("nudge-test-").unwrap();
    let project = project(&folder, "trigger");
    let output = nudge(
        Some(folder.path()),
        &["plugin", "build", "--dir", project.to_str().unwrap()],
    );
    let complaint = child::complaint(&output);
    assert!(
        complaint.contains("`clang` is not installed"),
        "{complaint}"
    );
    assert!(
        complaint.contains("apt-get install clang lld"),
        "{complaint}"
    );
}

/// What else this shell works with is no part of a project in Python.
#[test]
fn a_project_in_python_is_built_of_its_own_packages() {
    let Some(tools) = python() else { return };
    let folder = TempDir::with_prefix("nudge-test-").unwrap();
    let project = folder.path().join("py-alone");
    let dir = project.to_str().unwrap();
    let new = [
        "plugin", "new", "py-alone", "--kind", "trigger", "--lang", "python", "--dir", dir,
    ];
    assert!(nudge(None, &new).status.success());
    let source = project.join("src/plugin.py");
    let text = std::fs::read_to_string(&source).unwrap();
    std::fs::write(&source, format!("import stray\n{text}")).unwrap();
    let packages = folder.path().join("venv/lib/python3.11/site-packages");
    let path = folder.path().join("path");
    for place in [&packages, &path] {
        std::fs::create_dir_all(place).unwrap();
        std::fs::write(place.join("stray.py"), "").unwrap();
    }
    let built = child::program(site!())
        .env("PATH", path_with(tools))
        .env("PYTHONPATH", &path)
        .env("VIRTUAL_ENV", folder.path().join("venv"))
        .args(["plugin", "build", "--dir", dir])
        .output()
        .unwrap();
    let complaint = String::from_utf8_lossy(&built.stderr);
    assert!(!built.status.success(), "{complaint}");
    assert!(complaint.contains("stray"), "{complaint}");
}
