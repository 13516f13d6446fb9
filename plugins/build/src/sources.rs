//! What the plugins were compiled from, so that cargo knows when to compile them again.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

/// Every file that the nested cargo read for the packages, and the manifests beside them.
pub(crate) fn of(root: &Path, artifacts: &Path, packages: &[&str]) -> Result<BTreeSet<PathBuf>> {
    let mut sources = BTreeSet::from([
        root.join("wit"),
        root.join("Cargo.toml"),
        root.join("Cargo.lock"),
    ]);
    for package in packages {
        let list = artifacts.join(format!("{}.d", package.replace('-', "_")));
        let text =
            fs::read_to_string(&list).with_context(|| format!("reading {}", list.display()))?;
        for path in dependencies(&text) {
            sources.extend(manifest_above(&path));
            sources.insert(path);
        }
    }
    Ok(sources)
}

/// The paths right of the colon in a makefile rule, where spaces in names are escaped.
fn dependencies(rule: &str) -> Vec<PathBuf> {
    let Some((_, list)) = rule.split_once(": ") else {
        return Vec::new();
    };
    let escaped = list.replace("\\ ", "\0");
    escaped
        .split_whitespace()
        .map(|path| PathBuf::from(path.replace('\0', " ")))
        .collect()
}

fn manifest_above(path: &Path) -> Option<PathBuf> {
    path.ancestors()
        .skip(1)
        .map(|folder| folder.join("Cargo.toml"))
        .find(|manifest| manifest.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_with_spaces_stay_whole() {
        let rule = "/t/a.wasm: /my\\ code/src/lib.rs /wit/types.wit\n";
        assert_eq!(
            dependencies(rule),
            ["/my code/src/lib.rs", "/wit/types.wit"].map(PathBuf::from)
        );
    }

    #[test]
    fn a_file_belongs_to_the_nearest_manifest() {
        let package = Path::new(env!("CARGO_MANIFEST_DIR"));
        assert_eq!(
            manifest_above(&package.join("src/lib.rs")),
            Some(package.join("Cargo.toml"))
        );
    }
}
