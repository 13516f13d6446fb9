//! The data directory: nobody but its owner reads what is in it.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use tempfile::TempDir;
use tests::child::{self, Child};
use tests::site;

/// The folder's files and folders with what others than the owner may do with them, if they may anything.
fn open_to_others(folder: &Path) -> Vec<(String, String)> {
    let mut found = vec![folder.to_owned()];
    let mut open = Vec::new();
    while let Some(path) = found.pop() {
        let metadata = path.symlink_metadata().unwrap();
        if metadata.is_dir() {
            found.extend(
                fs::read_dir(&path)
                    .unwrap()
                    .map(|entry| entry.unwrap().path()),
            );
        }
        let mode = metadata.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            open.push((path.display().to_string(), format!("{mode:o}")));
        }
    }
    open
}

/// As servers left it before: readable by everybody.
fn open_everything(folder: &Path) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            open_everything(&path);
        } else if path.file_name().is_some_and(|name| name != "master.key") {
            fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        }
    }
    fs::set_permissions(folder, Permissions::from_mode(0o755)).unwrap();
}

/// Its own key file and its own compiled plugins.
const OWN: [(&str, &str); 2] = [
    ("NUDGE_PLUGINS__CACHE_DIR", ""),
    ("NUDGE_SECRETS__MASTER_KEY", ""),
];

#[test]
fn the_data_directory_is_its_owners_alone_also_an_old_one() {
    let folder = TempDir::with_prefix("nudge-test-").unwrap();
    let data = folder.path().join("data");
    fs::create_dir(&data).unwrap();
    fs::set_permissions(&data, Permissions::from_mode(0o755)).unwrap();

    let server = Child::start_with(site!(), &data, &OWN);
    for name in [
        "nudge.db",
        "nudge.db-wal",
        "nudge.db-shm",
        "lock",
        "master.key",
        "plugin-cache",
    ] {
        assert!(data.join(name).exists(), "{name}");
    }
    assert_eq!(open_to_others(&data), []);
    // Nobody closes the database: its log stays.
    server.kill();
    open_everything(&data);
    assert!(data.join("nudge.db-wal").exists());
    assert!(open_to_others(&data).len() > 6);

    let server = Child::start_with(site!(), &data, &OWN);
    assert_eq!(open_to_others(&data), []);
    assert_eq!(server.terminate(), Some(0));
    assert_eq!(open_to_others(&data), []);
}

#[test]
fn a_command_that_makes_a_data_directory_makes_it_so() {
    let folder = TempDir::with_prefix("nudge-test-").unwrap();
    let data = folder.path().join("new");
    for (command, makes) in [("check", false), ("migrate", true)] {
        let output = child::run(site!(), &[command, "--data-dir", data.to_str().unwrap()]);
        assert!(output.status.success(), "{command}: {output:?}");
        assert_eq!(data.exists(), makes, "{command}");
    }
    assert_eq!(open_to_others(&data), []);
}

#[test]
fn a_database_elsewhere_is_its_owners_alone() {
    let folder = TempDir::with_prefix("nudge-test-").unwrap();
    let (data, file) = (folder.path().join("data"), folder.path().join("own.db"));
    fs::write(&file, "").unwrap();
    fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
    let url = format!("sqlite:{}", file.display());
    let arguments = ["migrate", "--database-url", &url, "--data-dir"];
    let output = child::program(site!())
        .args(arguments)
        .arg(&data)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
}
