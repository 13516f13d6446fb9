//! Programs that stand between a server and its database or its clients: found on this machine, run until dropped.
#![expect(
    clippy::expect_used,
    reason = "test support: a program that does not start fails the test where it stands"
)]

use std::fs;
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::postgres::Watchdog;

/// Longer than any of them takes to listen.
const LISTENS: Duration = Duration::from_secs(30);

/// Runs the program of `$2` and what follows, in the folder `$1`, which is its home, until the pipe on standard input is closed.
const RUN: &str = r#"
folder=$1
shift
cd "$folder"
env -u XDG_CONFIG_HOME -u XDG_DATA_HOME HOME="$folder" "$@" </dev/null >"$folder/output" 2>&1 &
program=$!
cat >/dev/null
kill -KILL "$program"
rm -rf "$folder"
"#;

/// A running program; it ends with this process, however that ends.
#[derive(Debug)]
pub struct Program {
    /// Its port of 127.0.0.1.
    pub port: u16,
    _watchdog: Watchdog,
}

impl Program {
    /// Writes a program's configuration, starts the program with that file as its last argument, and waits until it listens.
    pub fn start(program: &Path, arguments: &[&str], port: u16, configuration: &str) -> Self {
        let folder = TempDir::with_prefix("nudge-beside-").expect("a folder");
        let file = folder.path().join("configuration");
        fs::write(&file, configuration).expect("the folder is ours");
        let mut words: Vec<&Path> = vec![folder.path(), program];
        words.extend(arguments.iter().map(Path::new));
        words.push(&file);
        let watchdog = Watchdog::spawn(RUN, &words);
        // Who may read it is whom the program runs as.
        let readable = fs::Permissions::from_mode(0o755);
        fs::set_permissions(folder.path(), readable).expect("the folder is ours");
        let folder = folder.keep();
        let started = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            let output = || fs::read_to_string(folder.join("output")).unwrap_or_default();
            assert!(
                started.elapsed() < LISTENS,
                "{}: {}",
                program.display(),
                output()
            );
            std::thread::sleep(Duration::from_millis(20));
        }
        Self {
            port,
            _watchdog: watchdog,
        }
    }
}

/// Where a program is. None: the test that needs it is skipped, which `.ci/run` does not allow.
pub fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path)
        .chain([PathBuf::from("/usr/sbin")])
        .map(|folder| folder.join(name))
        .find(|program| program.is_file());
    assert!(
        found.is_some() || std::env::var_os("CI").is_none(),
        "{name} is needed: apt-get install {name}"
    );
    found
}

/// Where a program is. None: the test's reader is told that it is skipped.
#[expect(
    clippy::print_stderr,
    reason = "who runs the tests should know what they did not test"
)]
pub fn find_or_skip(name: &str) -> Option<PathBuf> {
    let found = find(name);
    if found.is_none() {
        eprintln!("skipped: there is no {name}");
    }
    found
}
