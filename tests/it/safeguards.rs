//! What keeps unsafe code out: a lint that every package has, and a list of the few places without it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Files in which unsafe code is expected, each with the reason that its lint attribute gives: the server
/// loads machine code that it signed, and asks its allocator, which is in C, for something; in plugins, the allocator and
/// what `wit-bindgen` generates.
const UNSAFE: [&str; 7] = [
    "guest-sdk/src/allocator.rs",
    "guest-sdk/src/bindings/mod.rs",
    "host/src/memory.rs",
    "host/wasm/src/trusted.rs",
    "tests/guests/misbehaving-personalization/src/lib.rs",
    "tests/guests/misbehaving-validation/src/lib.rs",
    "tests/guests/misbehaving/src/lib.rs",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The files of the repository with an ending, by their paths in it, with their text.
fn files(folder: &Path, ending: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            if name != "target" && name != "node_modules" && !name.starts_with('.') {
                found.extend(files(&path, ending));
            }
        } else if name.ends_with(ending) {
            let text = std::fs::read_to_string(&path).unwrap();
            let place = path.strip_prefix(root()).unwrap().display().to_string();
            found.push((place, text));
        }
    }
    found
}

#[test]
fn code_without_that_lint_is_where_it_is_said_to_be() {
    // Written so that this file is none of them.
    let lint = ["unsafe", "code"].join("_");
    let places: BTreeSet<String> = files(&root(), ".rs")
        .into_iter()
        .filter(|(_, text)| text.contains(&lint))
        .map(|(place, _)| place)
        .collect();
    assert_eq!(places, UNSAFE.map(str::to_owned).into());
}

#[test]
fn every_package_has_the_lints_of_the_workspace() {
    let manifests = files(&root(), "Cargo.toml");
    assert!(manifests.len() > 10);
    for (place, text) in manifests {
        if place == "Cargo.toml" {
            let lint = ["unsafe", "code"].join("_");
            assert!(text.contains(&format!("{lint} = \"deny\"")));
        } else if text.contains("[package]") {
            assert!(text.contains("[lints]\nworkspace = true"), "{place}");
        }
    }
}
