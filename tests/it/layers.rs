//! Packages depend on each other as the table in `host/ARCHITECTURE.md` allows, and in no other way.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// A row of the table.
struct Row {
    package: String,
    folder: String,
    may: BTreeSet<String>,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The names between backticks.
fn names(cell: &str) -> Vec<String> {
    cell.split('`')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect()
}

/// The table: each package may depend on the packages that its row names, on all above it, or on all.
fn table() -> Vec<Row> {
    let page = fs::read_to_string(root().join("host/ARCHITECTURE.md")).unwrap();
    let mut rows: Vec<Row> = Vec::new();
    let lines = page
        .lines()
        .skip_while(|line| !line.starts_with("| package | folder |"))
        .skip(2)
        .take_while(|line| line.starts_with('|'));
    for line in lines {
        let cells: Vec<&str> = line.trim_matches('|').split('|').collect();
        assert_eq!(cells.len(), 3, "three columns: {line}");
        let [package, folder, may] = [cells[0], cells[1], cells[2]];
        let above: BTreeSet<String> = rows.iter().map(|row| row.package.clone()).collect();
        let may = may.trim();
        let may = if may == "all" || may == "the above" {
            above
        } else if let Some(but) = may.strip_prefix("the above but ") {
            let but: BTreeSet<String> = names(but).into_iter().collect();
            assert!(but.is_subset(&above), "unknown packages in {line}");
            &above - &but
        } else {
            names(may).into_iter().collect()
        };
        rows.push(Row {
            package: names(package).remove(0),
            folder: names(folder).remove(0),
            may,
        });
    }
    rows
}

/// The packages of ours that a manifest names under `[dependencies]`.
fn dependencies(manifest: &str, ours: &BTreeSet<String>) -> BTreeSet<String> {
    let section = manifest
        .split("\n[")
        .find_map(|section| section.strip_prefix("dependencies]"))
        .unwrap_or_default();
    let keys = section
        .lines()
        .filter_map(|line| line.split(['.', '=', ' ']).next());
    keys.map(str::to_owned)
        .filter(|key| ours.contains(key))
        .collect()
}

#[test]
fn packages_depend_as_the_table_allows() {
    let rows = table();
    assert!((10..=14).contains(&rows.len()), "{} packages", rows.len());
    let ours: BTreeSet<String> = rows.iter().map(|row| row.package.clone()).collect();
    for row in &rows {
        let manifest = root().join(&row.folder).join("Cargo.toml");
        let manifest = fs::read_to_string(&manifest).unwrap();
        let name = format!("name = \"{}\"", row.package);
        assert!(
            manifest.contains(&name),
            "{} is not in {}",
            row.package,
            row.folder
        );
        let beyond = &dependencies(&manifest, &ours) - &row.may;
        assert!(
            beyond.is_empty(),
            "{} may not depend on {beyond:?}",
            row.package
        );
    }
}

#[test]
fn every_package_of_the_server_is_in_the_table() {
    let rows = table();
    let listed: BTreeMap<&str, &str> = rows
        .iter()
        .map(|row| (row.folder.as_str(), row.package.as_str()))
        .collect();
    for entry in fs::read_dir(root().join("host")).unwrap() {
        let path = entry.unwrap().path();
        if path.join("Cargo.toml").exists() {
            let folder = format!("host/{}", path.file_name().unwrap().to_str().unwrap());
            assert!(
                listed.contains_key(folder.as_str()),
                "{folder} is not in the table"
            );
        }
    }
}

#[test]
fn every_package_says_what_it_is_and_its_invariants() {
    for row in table() {
        let lib = root().join(&row.folder).join("src/lib.rs");
        let lib = fs::read_to_string(lib).unwrap();
        assert!(
            lib.starts_with("//! "),
            "{} does not say what it is",
            row.package
        );
        assert!(
            lib.contains("//! # Invariants"),
            "{} names no invariants",
            row.package
        );
    }
}
