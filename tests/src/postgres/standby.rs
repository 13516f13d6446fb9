//! Standbys: clusters that follow another one, and take its place.

use std::fs;
use std::os::unix::fs::chown;
use std::process::Command;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::{Cluster, OwnServer, Owner, REMOVE_CLUSTER, Watchdog, program, run};

/// Longer than a standby takes to catch up.
const CATCHES_UP: Duration = Duration::from_mins(1);

impl Cluster {
    /// Makes and starts a standby of this cluster. A commit here waits from now on until the standby has it on disk: what
    /// was answered outlives this cluster.
    #[must_use]
    pub fn follow(&self) -> Self {
        let folder = TempDir::with_prefix("nudge-standby-").expect("a folder for the cluster");
        let watchdog = Watchdog::spawn(REMOVE_CLUSTER, &[folder.path()]);
        let folder = folder.keep();
        let owner = Owner::needed(&folder);
        if let Some(Owner { user, group }) = owner {
            chown(&folder, Some(user), Some(group)).expect("root may give a folder away");
        }
        let server = OwnServer {
            folder,
            owner,
            preloaded: None,
        };
        let copy = server.data();
        run(server
            .command("pg_basebackup")
            .args([
                "--checkpoint=fast",
                "--wal-method=stream",
                "--write-recovery-conf",
            ])
            .arg(format!("--dbname={}", self.maintenance))
            .arg("--pgdata")
            .arg(&copy));
        server.configure("hot_standby = on");
        let port = server.start_on_a_free_port();
        let (user, _) = self.base.rsplit_once(':').expect("a port");
        let base = format!("{user}:{port}");
        self.own().configure("synchronous_standby_names = '*'");
        self.execute("SELECT pg_reload_conf()");
        let standby = Self {
            maintenance: format!("{base}/postgres"),
            base,
            query: String::new(),
            own: Some(server),
            finished: Mutex::default(),
            watchdog,
        };
        let started = Instant::now();
        let synchronous = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'";
        while self.execute(synchronous) != "1" {
            assert!(started.elapsed() < CATCHES_UP, "{}", standby.log());
            std::thread::sleep(Duration::from_millis(50));
        }
        standby
    }

    /// Makes this standby take writes; answers once it does.
    pub fn promote(&self) {
        run(self.own().control().args(["promote", "--silent"]));
    }

    /// Kills the server as a power cut would.
    pub fn kill(&self) {
        let pid = fs::read_to_string(self.data().join("postmaster.pid")).expect("it runs");
        let pid = pid.lines().next().expect("its process").to_owned();
        // The server's processes see that it is gone, and end.
        run(Command::new("kill").args(["-KILL", &pid]));
    }

    /// Runs a statement in the database that is always there; answers the only column of its rows, a line each.
    pub fn execute(&self, sql: &str) -> String {
        execute(&self.maintenance, sql)
    }

    /// The same in another database.
    pub(super) fn execute_in(&self, database: &str, sql: &str) -> String {
        execute(&self.url(database), sql)
    }

    /// The host and port of the server.
    pub fn authority(&self) -> &str {
        self.base.rsplit_once('@').map_or("", |(_, rest)| rest)
    }
}

fn execute(url: &str, sql: &str) -> String {
    let output = Command::new(program("psql"))
        .args(["--no-psqlrc", "--tuples-only", "--no-align", "--quiet"])
        .args([url, "--command", sql])
        .output()
        .expect("psql is there");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}
