//! Programs and packages that tests run beside the server.

use std::path::{Path, PathBuf};
use std::process::Command;

use tests::beside::find_or_skip;
use tests::site;

/// Whether programs are there, by names or paths. Without one a test is skipped, except in CI, where nothing is.
pub(crate) fn has(programs: &[&str]) -> bool {
    programs.iter().all(|name| find_or_skip(name).is_some())
}

/// A folder of the repository, with the packages of npm that its lock file names.
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
