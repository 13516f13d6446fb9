//! What cleans up after a test run, however its process ends.
#![expect(
    clippy::expect_used,
    reason = "test support: a test without its database fails where it stands"
)]

use std::io::Write as _;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};

/// Stops the server whose folder is `$1` and removes the folder, once the pipe on standard input is closed.
/// SIGQUIT is `PostgreSQL`'s immediate shutdown.
pub(super) const REMOVE_CLUSTER: &str = r#"
cat >/dev/null
if read -r server <"$1/data/postmaster.pid"; then
    kill -QUIT "$server"
    tries=0
    while kill -0 "$server" && [ "$tries" -lt 100 ]; do sleep 0.05; tries=$((tries + 1)); done
    kill -KILL "$server"
fi
rm -rf "$1"
"#;

/// Drops the databases named on standard input, once that pipe is closed. `$1` is psql, `$2` the server's URL.
pub(super) const DROP_DATABASES: &str = r#"
names=
while read -r name; do names="$names $name"; done
for name in $names; do "$1" --no-psqlrc --quiet "$2" --command "DROP DATABASE IF EXISTS $name WITH (FORCE)"; done
"#;

/// A shell that waits for this process to end (its pipe closes, whatever the reason) and then cleans up.
#[derive(Debug)]
pub(crate) struct Watchdog(Mutex<Child>);

impl Watchdog {
    pub(crate) fn spawn(script: &str, arguments: &[&Path]) -> Self {
        let child = Command::new("sh")
            .args(["-c", script, "watchdog"])
            .args(arguments)
            // A group of its own: what interrupts the tests must not interrupt the cleaning up after them.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("a shell");
        Self(Mutex::new(child))
    }

    pub(super) fn tell(&self, line: &str) {
        let mut child = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let stdin = child.stdin.as_mut().expect("open until dropped");
        writeln!(stdin, "{line}").expect("the watchdog reads until the pipe closes");
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        let child = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        // Closes the pipe first. A shell that cannot be waited for has ended, which is all that is asked here.
        let _ = child.wait();
    }
}
