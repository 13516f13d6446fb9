//! A PostgreSQL server of its own, in a temporary folder.

use std::net::TcpListener;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use sqlx::Connection as _;
use sqlx::postgres::PgConnection;

const PATIENCE: Duration = Duration::from_mins(1);

/// Makes a cluster in `$1` with the programs in `$2`, runs its server on port `$3` until the pipe on standard input is
/// closed, and removes it. SIGINT is PostgreSQL's fast shutdown.
const RUN: &str = r#"
trap 'rm -rf "$1"' EXIT
"$2/initdb" --pgdata="$1" --username=nudge --auth=trust --encoding=UTF8 --locale=C --no-sync >/dev/null || exit
"$2/postgres" -D "$1" -p "$3" -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c max_connections=200 \
    -c log_min_messages=panic </dev/null &
cat >/dev/null
kill -INT $!
wait
"#;

/// Ends with the program, however that ends: a shell waits for its end.
#[derive(Debug)]
pub(super) struct Cluster {
    shell: Child,
    port: u16,
}

impl Cluster {
    pub(super) async fn start() -> anyhow::Result<Self> {
        let folder =
            std::env::temp_dir().join(format!("nudge-peers-postgres-{}", std::process::id()));
        // Nobody else takes it within a moment, or the server does not start.
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let mut command = Command::new("sh");
        command
            .args(["-c", RUN, "cluster"])
            .arg(&folder)
            .arg(programs()?)
            .arg(port.to_string())
            .env("LC_ALL", "C")
            .current_dir("/")
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null());
        // PostgreSQL refuses to be root.
        if id("-u", "")? == 0 {
            command
                .gid(id("-g", "postgres")?)
                .uid(id("-u", "postgres")?);
        }
        let mut cluster = Self {
            shell: command.spawn()?,
            port,
        };
        let started = Instant::now();
        while let Err(error) = PgConnection::connect(&cluster.url("postgres")).await {
            if cluster.shell.try_wait()?.is_some() || started.elapsed() > PATIENCE {
                bail!("PostgreSQL does not start: {error}");
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(cluster)
    }

    pub(super) fn url(&self, database: &str) -> String {
        format!("postgres://nudge@127.0.0.1:{}/{database}", self.port)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        let _ = self.shell.wait();
    }
}

/// The folder of PostgreSQL's programs: Debian's newest.
fn programs() -> anyhow::Result<PathBuf> {
    let mut found = Vec::new();
    for version in
        std::fs::read_dir("/usr/lib/postgresql").context("PostgreSQL is not installed")?
    {
        let folder = version?.path().join("bin");
        if folder.join("initdb").exists() {
            found.push(folder);
        }
    }
    found.sort();
    found.pop().context("PostgreSQL is not installed")
}

/// The number of a user or their group.
fn id(flag: &str, user: &str) -> anyhow::Result<u32> {
    let user = Some(user).filter(|user| !user.is_empty());
    let output = Command::new("id").arg(flag).args(user).output()?;
    let text = String::from_utf8(output.stdout)?;
    text.trim()
        .parse()
        .with_context(|| format!("no user {user:?}"))
}
