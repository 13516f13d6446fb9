//! The program of the version before: built from the commit that it was released from.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Version 0.1.0, as of when its libraries were last made otherwise. The next release puts its own commit here, and so does a
/// change of features or profiles: what cargo can't lend is compiled once more, which takes longer than all else.
const COMMIT: &str = "6a58d8a16feb899f9cdf89d33a89f0f0c47a5ed9";
/// Names the program of the version before, which is not built then.
const PROGRAM: &str = "NUDGE_TEST_PREVIOUS";
/// Asks for the test where `CI` is not set: the build takes minutes.
const WANTED: &str = "NUDGE_TEST_UPGRADES";

/// The program; none, and a line that says why, where there is nothing to be tested.
#[expect(clippy::print_stderr, reason = "a test that is skipped must say so")]
pub(super) fn program() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os(PROGRAM) {
        return Some(named.into());
    }
    if std::env::var_os("CI").is_none() && std::env::var_os(WANTED).is_none() {
        eprintln!("SKIPPED: {WANTED}=1 builds the version before, {PROGRAM} names its program");
        return None;
    }
    let commit = format!("{COMMIT}^{{commit}}");
    if !git(&["cat-file", "-e", &commit])
        .output()
        .is_ok_and(|output| output.status.success())
    {
        eprintln!("SKIPPED: the commit of the version before, {COMMIT}, is not in this checkout");
        return None;
    }
    Some(build())
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

fn git(arguments: &[&str]) -> Command {
    let mut command = Command::new("git");
    command.arg("-C").arg(root()).args(arguments);
    command
}

fn run(command: &mut Command) -> Vec<u8> {
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {errors}");
    output.stdout
}

/// Unpacks the commit and builds it below the target folder, with the libraries of others that this build has.
fn build() -> PathBuf {
    // A test is in `deps` of the folder of its profile.
    let test = std::env::current_exe().unwrap();
    let profile = test.ancestors().nth(2).unwrap();
    let folder = profile.parent().unwrap().join("previous").join(COMMIT);
    let (source, target) = (folder.join("source"), folder.join("target"));
    if !source.exists() {
        let unpacked = folder.join("unpacked");
        drop(std::fs::remove_dir_all(&unpacked));
        std::fs::create_dir_all(&unpacked).unwrap();
        let archive = folder.join("source.tar");
        run(git(&["archive", "--output"]).arg(&archive).arg(COMMIT));
        run(Command::new("tar")
            .arg("-xf")
            .arg(&archive)
            .arg("-C")
            .arg(&unpacked));
        std::fs::rename(unpacked, &source).unwrap();
    }
    let built = target.join("debug");
    if !built.exists() {
        lend_libraries(profile, &built, &own_packages());
    }
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--locked", "--package", "nudge", "--bin", "nudge"]);
    cargo.arg("--target-dir").arg(&target).current_dir(&source);
    // What cargo says of this package is not that one's.
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("CARGO_PKG_") {
            cargo.env_remove(name);
        }
    }
    run(&mut cargo);
    built.join("nudge")
}

/// The packages of the workspace, as cargo writes them in the names of files.
fn own_packages() -> BTreeSet<String> {
    let mut metadata = Command::new(env!("CARGO"));
    metadata.args([
        "metadata",
        "--no-deps",
        "--offline",
        "--format-version",
        "1",
    ]);
    let metadata: Value = serde_json::from_slice(&run(metadata.current_dir(root()))).unwrap();
    let packages = metadata["packages"].as_array().unwrap().iter();
    packages
        .map(|package| package["name"].as_str().unwrap().replace('-', "_"))
        .collect()
}

/// Links what cargo made of all packages but our own, so that the build compiles only those.
fn lend_libraries(from: &Path, to: &Path, own: &BTreeSet<String>) {
    for (part, copies) in [("deps", "-al"), ("build", "-al"), (".fingerprint", "-a")] {
        let target = to.join(part);
        std::fs::create_dir_all(&target).unwrap();
        let entries = std::fs::read_dir(from.join(part)).unwrap();
        let lent: Vec<PathBuf> = entries
            .map(|entry| entry.unwrap().path())
            .filter(|path| !own.contains(&package_of(path)))
            .collect();
        for some in lent.chunks(200) {
            run(Command::new("cp").arg(copies).args(some).arg(&target));
        }
    }
}

/// The package that a file is of: `libserde_json-0a1b.rlib` is of `serde_json`.
fn package_of(path: &Path) -> String {
    let name = path.file_name().unwrap().to_string_lossy();
    let name = name
        .rsplit_once('-')
        .map_or(&*name, |(name, _)| name)
        .replace('-', "_");
    let is_library = path
        .extension()
        .is_some_and(|end| end == "rlib" || end == "rmeta" || end == "so");
    let name = if is_library {
        name.trim_start_matches("lib")
    } else {
        &name
    };
    name.to_owned()
}
