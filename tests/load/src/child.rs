//! The server under test, in a process of its own, so that its processor time is its own.

use std::io::Read as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use clap::Args;
use nudge::server::{Server as NudgeServer, Start};
use nudge_apps as apps;
use nudge_db::Db;
use nudge_platform::config::Config;
use serde_json::Value;
use tempfile::TempDir;

use crate::database::{Databases, Fresh};

/// Base64 of 32 bytes: all servers share the compiled plugins, which are signed with this key.
pub(crate) const MASTER_KEY: &str = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
/// Servers log to standard error only where this says what.
const LOG_VARIABLE: &str = "NUDGE_TELEMETRY__LOG_FILTER";
const START_TIMEOUT: Duration = Duration::from_mins(2);

/// How the server is started.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[arg(long)]
    database_url: String,
    #[arg(long)]
    data_dir: PathBuf,
    #[arg(long)]
    cache_dir: PathBuf,
    /// Where to write the access data.
    #[arg(long)]
    json: PathBuf,
    /// Apps besides the one that is used.
    #[arg(long)]
    other_apps: u32,
}

/// Runs the server until standard input is closed.
pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<()> {
    // The environment can change any key, to find out what it does.
    let mut config = Config::load(None)?;
    if std::env::var_os(LOG_VARIABLE).is_some() {
        nudge_platform::telemetry::Logs::new(&config.telemetry)?.start()?;
    }
    "127.0.0.1:0".clone_into(&mut config.server.listen);
    config.server.ops_listen = String::new();
    config.server.data_dir = arguments.data_dir;
    config.database.url = arguments.database_url;
    MASTER_KEY.clone_into(&mut config.secrets.master_key);
    config.plugins.cache_dir = arguments.cache_dir;
    let start = Start {
        embedded: true,
        ..Start::default()
    };
    let server = NudgeServer::start(config, start).await?;
    let access = nudge::cli::dev::access(&server).await?;
    let services = server.services();
    let now = services.clock.now();
    let mut tx = services.db.write().await?;
    for number in 0..arguments.other_apps {
        apps::create(
            &mut tx,
            access.workspace_id,
            &format!("Other {number}"),
            now,
        )
        .await?;
    }
    tx.commit().await?;
    let temporary = arguments.json.with_extension("tmp");
    std::fs::write(&temporary, serde_json::to_vec(&access)?)?;
    std::fs::rename(&temporary, &arguments.json)?;

    let closed = tokio::task::spawn_blocking(|| std::io::stdin().read(&mut [0]));
    closed.await??;
    server.stop().await;
    Ok(())
}

/// Variables of an environment as [`Process::start`] takes them.
pub(crate) fn borrowed<'v>(variables: &'v [(&'static str, String)]) -> Vec<(&'v str, &'v str)> {
    let variables = variables.iter();
    variables
        .map(|(name, value)| (*name, value.as_str()))
        .collect()
}

/// A server's process.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    address: SocketAddr,
    access: Value,
}

impl Process {
    /// Starts a server on a database and waits until it serves.
    pub(crate) async fn start(
        databases: &Databases,
        url: &str,
        data_dir: &Path,
        other_apps: u32,
        variables: &[(&str, &str)],
    ) -> anyhow::Result<Self> {
        let json = data_dir.join("access.json");
        if json.exists() {
            std::fs::remove_file(&json)?;
        }
        let child = Command::new(std::env::current_exe()?)
            .arg("server")
            .envs(variables.iter().copied())
            .args(["--database-url", url])
            .arg("--data-dir")
            .arg(data_dir)
            .arg("--cache-dir")
            .arg(databases.folder().join("plugin-cache"))
            .arg("--json")
            .arg(&json)
            .args(["--other-apps", &other_apps.to_string()])
            .stdin(Stdio::piped())
            .spawn()?;
        let mut process = Self {
            child,
            address: SocketAddr::from(([127, 0, 0, 1], 0)),
            access: Value::Null,
        };
        let started = Instant::now();
        while process.access.is_null() {
            if let Ok(bytes) = std::fs::read(&json) {
                process.access = serde_json::from_slice(&bytes)?;
            } else if let Some(status) = process.child.try_wait()? {
                bail!("the server ended with {status}");
            } else if started.elapsed() > START_TIMEOUT {
                bail!("the server does not start");
            } else {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
        let base = text(&process.access, "baseUrl")?;
        process.address = base.trim_start_matches("http://").parse()?;
        Ok(process)
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// An id, key or token of the access data.
    pub(crate) fn access(&self, name: &str) -> anyhow::Result<&str> {
        text(&self.access, name)
    }

    /// The processor time that the server has used.
    pub(crate) fn cpu(&self) -> anyhow::Result<Duration> {
        cpu(self.child.id())
    }

    /// Kills the server as a power cut would.
    pub(crate) fn kill(mut self) -> anyhow::Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Sends a signal, such as `-STOP`.
    pub(crate) fn signal(&self, signal: &str) -> anyhow::Result<()> {
        let id = self.child.id().to_string();
        let status = Command::new("kill").args([signal, &id]).status()?;
        if !status.success() {
            bail!("kill {signal}: {status}");
        }
        Ok(())
    }

    /// Asks the server to stop.
    pub(crate) fn stop(mut self) -> anyhow::Result<()> {
        drop(self.child.stdin.take());
        let status = self.child.wait()?;
        if !status.success() {
            bail!("the server ended with {status}");
        }
        Ok(())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Ends by itself when its standard input is closed; a run that failed does not wait for that.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A running server on a database of its own.
#[derive(Debug)]
pub(crate) struct Server {
    process: Process,
    db: Db,
    // After the process: what it uses is removed last.
    database: Fresh,
}

impl Server {
    /// Starts a server on a fresh database.
    pub(crate) async fn start(databases: &Databases, other_apps: u32) -> anyhow::Result<Self> {
        Self::start_with(databases, other_apps, &[]).await
    }

    /// Starts a server on a fresh database, with more variables in its environment.
    pub(crate) async fn start_with(
        databases: &Databases,
        other_apps: u32,
        variables: &[(&str, &str)],
    ) -> anyhow::Result<Self> {
        let database = databases.fresh()?;
        let (url, folder) = (&database.url, database.directory.path());
        let process = Process::start(databases, url, folder, other_apps, variables).await?;
        let db = database.open(1).await?;
        Ok(Self {
            process,
            db,
            database,
        })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.process.address()
    }

    /// Address, ids, keys and tokens.
    pub(crate) fn access_data(&self) -> &Value {
        &self.process.access
    }

    /// Where its data is.
    pub(crate) fn folder(&self) -> &Path {
        self.database.directory.path()
    }

    /// An id, key or token of the access data.
    pub(crate) fn access(&self, name: &str) -> anyhow::Result<&str> {
        self.process.access(name)
    }

    /// The server's database.
    pub(crate) fn db(&self) -> &Db {
        &self.db
    }

    pub(crate) fn process(&self) -> &Process {
        &self.process
    }

    /// Starts another server on the same database.
    pub(crate) async fn another(&self, databases: &Databases) -> anyhow::Result<Process> {
        let folder = TempDir::with_prefix_in("server-", self.database.directory.path())?.keep();
        Process::start(databases, &self.database.url, &folder, 0, &[]).await
    }

    /// The processor time that the threads which are there now have used, to the nanosecond.
    pub(crate) fn threads_cpu(&self) -> anyhow::Result<Duration> {
        let mut nanoseconds = 0;
        for thread in std::fs::read_dir(format!("/proc/{}/task", self.process.child.id()))? {
            let schedstat = std::fs::read_to_string(thread?.path().join("schedstat"))?;
            let used = schedstat.split_whitespace().next();
            nanoseconds += used.context("an unknown /proc format")?.parse::<u64>()?;
        }
        Ok(Duration::from_nanos(nanoseconds))
    }

    /// The memory of the server's own that is in use, in bytes.
    pub(crate) fn memory(&self) -> anyhow::Result<u64> {
        self.status("RssAnon:")
    }

    /// All memory that the server has, with the parts of its program that were read, in bytes.
    pub(crate) fn resident(&self) -> anyhow::Result<u64> {
        self.status("VmRSS:")
    }

    /// The most memory that the server has had since [`reset_peak`](Self::reset_peak), in bytes.
    pub(crate) fn peak(&self) -> anyhow::Result<u64> {
        self.status("VmHWM:")
    }

    fn status(&self, name: &str) -> anyhow::Result<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB"));
        Ok(kilobytes
            .context("an unknown /proc format")?
            .parse::<u64>()?
            << 10)
    }

    /// Forgets the most memory that the server has had.
    pub(crate) fn reset_peak(&self) -> anyhow::Result<()> {
        let file = format!("/proc/{}/clear_refs", self.process.child.id());
        Ok(std::fs::write(file, "5")?)
    }

    /// Waits until the pipeline has processed everything.
    pub(crate) async fn drained(&self) -> anyhow::Result<()> {
        loop {
            let mut tx = self.db.read().await?;
            let waiting: Waiting = tx
                .sql("SELECT count(*) AS number FROM (SELECT 1 AS one FROM pending LIMIT 1) AS first")
                .fetch_one()
                .await?;
            tx.rollback().await?;
            if waiting.number == 0 {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Stops it and starts one on the same database, with so many apps more.
    pub(crate) async fn restart(
        self,
        databases: &Databases,
        other_apps: u32,
    ) -> anyhow::Result<Self> {
        self.process.stop()?;
        let (url, folder) = (&self.database.url, self.database.directory.path());
        let process = Process::start(databases, url, folder, other_apps, &[]).await?;
        Ok(Self { process, ..self })
    }

    pub(crate) async fn stop(self) -> anyhow::Result<()> {
        self.db.close().await;
        self.process.stop()
    }
}

#[derive(nudge_db::FromRow)]
struct Waiting {
    number: i64,
}

fn text<'a>(access: &'a Value, name: &str) -> anyhow::Result<&'a str> {
    access
        .get(name)
        .and_then(Value::as_str)
        .with_context(|| format!("the access data has no {name}"))
}

/// The processor time of a process, in the kernel's ticks of 10 ms.
fn cpu(process: u32) -> anyhow::Result<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat"))?;
    // The program's name, in parentheses, may have spaces in it.
    let (_, fields) = stat.rsplit_once(')').context("an unknown /proc format")?;
    let ticks = fields.split_whitespace().skip(11).take(2);
    let ticks: u64 = ticks.map(str::parse::<u64>).sum::<Result<_, _>>()?;
    Ok(Duration::from_millis(ticks * 10))
}
