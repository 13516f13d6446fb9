//! `PostgreSQL` for the tests: one cluster a test process, one database a test, empty or with the schema.
//!
//! The cluster is made by `initdb` in a temporary folder, in memory if there is room, and is removed with the process that made it,
//! however that process ends. With `NUDGE_TEST_POSTGRES_URL` set (a role that may create databases), that server is used
//! instead, and only the databases are removed.
#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "test support: a test without its database fails where it stands"
)]

mod citus;
mod patroni;
mod standby;
mod watchdog;

use std::{
    fs,
    io::Write,
    net::TcpListener,
    os::unix::{
        fs::{MetadataExt, chown},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{Mutex, OnceLock, PoisonError},
};

use nudge_db::{Db, Options};
use nudge_platform::schema::migrations;
use tempfile::TempDir;
use tokio::sync::OnceCell;
use uuid::Uuid;

use crate::pooler;

pub use citus::{Citus, citus, crash, start};
pub use patroni::Patroni;
pub(crate) use watchdog::Watchdog;
use watchdog::{DROP_DATABASES, REMOVE_CLUSTER};

/// Names the server to use in place of a cluster of our own.
const URL_VARIABLE: &str = "NUDGE_TEST_POSTGRES_URL";

/// The server picks no port by itself, so another process can take the free one first.
const PORT_ATTEMPTS: u32 = 5;

/// A file system in memory. A database has a thousand files: on a disk, to make them takes as long as the rest of a test.
const MEMORY: &str = "/dev/shm";
/// Free bytes that a cluster needs there.
const ROOM: u64 = 4 << 30;

/// How many databases wait before they are dropped: each time the server writes all that it has not written yet.
const DROPPED_TOGETHER: usize = 16;

/// Whether a commit waits for the disk.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Durability {
    /// Nothing waits: a crash of the machine loses the cluster, a crash of the server does not.
    Fast,
    /// As in production.
    Durable,
}

/// A `PostgreSQL` server for tests; dropping it removes what it made.
#[derive(Debug)]
pub struct Cluster {
    /// The URL of a database that is always there.
    maintenance: String,
    /// What stands before and after a database's name in a URL.
    base: String,
    query: String,
    own: Option<OwnServer>,
    /// Databases that nobody needs any longer.
    finished: Mutex<Vec<String>>,
    watchdog: Watchdog,
}

/// What it takes to start and stop a server of our own.
#[derive(Debug)]
struct OwnServer {
    folder: PathBuf,
    owner: Option<Owner>,
    /// A library that the server loads before all others.
    preloaded: Option<PathBuf>,
}

/// Whom the server runs as when the tests run as root, which `PostgreSQL` refuses to be.
#[derive(Clone, Copy, Debug)]
struct Owner {
    user: u32,
    group: u32,
}

/// The URL of a new empty database in the shared cluster, by way of a pooler where all tests go through one.
pub async fn database() -> String {
    if citus().is_some() {
        return Citus::create_distributed().await;
    }
    by_way_of_pooler(blocking(|| cluster().create_database()).await).await
}

/// The same with the schema: a copy of the process's first one, which costs half of what making the schema does.
pub async fn migrated_database() -> String {
    static TEMPLATE: OnceCell<String> = OnceCell::const_new();
    if citus().is_some() {
        return Citus::create_distributed().await;
    }
    let template = TEMPLATE.get_or_init(migrated_template).await;
    let copy = || {
        let name = format!("nudge_test_{}", unique());
        cluster().create_like(&name, template);
        cluster().url(&name)
    };
    by_way_of_pooler(blocking(copy).await).await
}

/// Has a database dropped that [`migrated_database`] made, some time later.
pub fn finish(url: &str) {
    if citus().is_some() {
        return;
    }
    let path = url.rsplit_once('/').map_or("", |(_, path)| path);
    let name = path.split('?').next().unwrap_or_default();
    let finished = &cluster().finished;
    let mut finished = finished.lock().unwrap_or_else(PoisonError::into_inner);
    finished.push(name.to_owned());
}

/// Makes a database to be copied, which nobody may be connected to meanwhile, and returns its name.
async fn migrated_template() -> String {
    let name = format!("nudge_test_{}", unique());
    let named = name.clone();
    let create = move || {
        cluster().create(&named);
        cluster().url(&named)
    };
    let url = blocking(create).await;
    let db = Db::open(&Options::new(url, 1)).await;
    let db = db.expect("the database answers");
    db.migrate(&migrations()).await.expect("the schema is made");
    db.close().await;
    let closed = format!("ALTER DATABASE {name} ALLOW_CONNECTIONS false");
    blocking(move || cluster().execute(&closed)).await;
    name
}

async fn by_way_of_pooler(url: String) -> String {
    blocking(move || pooler::shared().map_or(url.clone(), |pooler| pooler.url(&url))).await
}

/// What waits for other programs, on a thread that may.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

/// The cluster that the tests of this process share. A test that stops its server starts one of its own with
/// [`Cluster::start_new`].
pub fn cluster() -> &'static Cluster {
    static SHARED: OnceLock<Cluster> = OnceLock::new();
    SHARED.get_or_init(|| match std::env::var(URL_VARIABLE) {
        Ok(url) => Cluster::connect(&url),
        Err(_) => Cluster::start_new(Durability::Fast),
    })
}

/// Has the planner of every session see costs as a server tells it to: where a pooler or Citus stands between, nothing
/// that a server says at the start of a session arrives.
pub(crate) fn plan_as_servers_do(cluster: &Cluster) {
    cluster.execute("ALTER ROLE CURRENT_USER SET random_page_cost = 1.1");
}

impl Cluster {
    /// Makes and starts a cluster of its own, on a free port of 127.0.0.1.
    pub fn start_new(durability: Durability) -> Self {
        Self::start_with(durability, None)
    }

    /// Makes and starts a cluster of its own that loads a library before all others, which finds the path of
    /// [`Cluster::fault`] in `NUDGE_TEST_FAULT`.
    pub fn start_preloaded(library: &Path) -> Self {
        Self::start_with(Durability::Durable, Some(library))
    }

    fn start_with(durability: Durability, library: Option<&Path>) -> Self {
        let folder = TempDir::with_prefix_in("nudge-postgres-", place(durability));
        let folder = folder.expect("a folder for the cluster");
        // Only a folder that the watchdog knows about may outlive its guard.
        let watchdog = Watchdog::spawn(REMOVE_CLUSTER, &[folder.path()]);
        let folder = folder.keep();
        let owner = Owner::needed(&folder);
        if let Some(Owner { user, group }) = owner {
            chown(&folder, Some(user), Some(group)).expect("root may give a folder away");
        }
        // Whom the server runs as may not enter the folder that the library is in.
        let preloaded = library.map(|library| {
            let copy = folder.join("preloaded.so");
            fs::copy(library, &copy).expect("the library was built");
            copy
        });
        let server = OwnServer {
            folder,
            owner,
            preloaded,
        };
        let password = unique();
        server.initialize(&password, durability);
        let port = server.start_on_a_free_port();
        let base = format!("postgres://nudge:{password}@127.0.0.1:{port}");
        Self {
            maintenance: format!("{base}/postgres"),
            base,
            query: String::new(),
            own: Some(server),
            finished: Mutex::default(),
            watchdog,
        }
    }

    /// Uses a server that someone else runs: `url` with its database's name replaced.
    fn connect(url: &str) -> Self {
        let (location, query) = match url.split_once('?') {
            Some((location, query)) => (location, format!("?{query}")),
            None => (url, String::new()),
        };
        let authority = location.find("://").map_or(0, |scheme| scheme + 3);
        let base = match location.rsplit_once('/') {
            Some((base, _)) if base.len() >= authority => base,
            _ => location,
        };
        let psql = program("psql");
        Self {
            maintenance: url.to_owned(),
            base: base.to_owned(),
            query,
            own: None,
            finished: Mutex::default(),
            watchdog: Watchdog::spawn(DROP_DATABASES, &[&psql, Path::new(url)]),
        }
    }

    /// The URL of a database in this cluster.
    pub fn url(&self, database: &str) -> String {
        format!("{}/{database}{}", self.base, self.query)
    }

    /// Makes an empty database and returns its URL.
    pub fn create_database(&self) -> String {
        let name = format!("nudge_test_{}", unique());
        self.create(&name);
        self.url(&name)
    }

    fn create(&self, name: &str) {
        self.create_like(name, "template0");
    }

    /// Makes a database that is the copy of one that nobody is connected to.
    fn create_like(&self, name: &str, template: &str) {
        if self.own.is_none() {
            self.watchdog.tell(name);
        }
        let mut psql = Command::new(program("psql"));
        psql.args(["--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1"])
            .arg(&self.maintenance)
            .arg(format!(
                "--command=CREATE DATABASE {name} TEMPLATE {template}"
            ));
        for name in self.finished() {
            psql.arg(format!("--command=DROP DATABASE {name} WITH (FORCE)"));
        }
        run(&mut psql);
    }

    /// The databases to drop now.
    fn finished(&self) -> Vec<String> {
        let mut finished = self.finished.lock().unwrap_or_else(PoisonError::into_inner);
        if finished.len() < DROPPED_TOGETHER {
            return Vec::new();
        }
        std::mem::take(&mut *finished)
    }

    /// The folder of the server's data.
    pub fn data(&self) -> PathBuf {
        self.own().data()
    }

    /// The file that tells the preloaded library what to do; the server may remove it.
    pub fn fault(&self) -> PathBuf {
        self.own().fault()
    }

    /// Whether a server runs, or is about to.
    pub fn is_up(&self) -> bool {
        self.data().join("postmaster.pid").exists()
    }

    /// What the server has logged.
    pub fn log(&self) -> String {
        self.own().log()
    }

    /// Stops the server; connections are cut, transactions in hand are rolled back.
    pub fn stop(&self) {
        run(self.own().control().args(["stop", "--mode=fast"]));
    }

    /// Ends the server as a crash would: the next start goes through its log.
    pub fn crash(&self) {
        run(self.own().control().args(["stop", "--mode=immediate"]));
    }

    /// Starts the server again, on the same port, with its data.
    pub fn start(&self) {
        let server = self.own();
        assert!(server.start(), "{}", server.log());
    }

    /// Stops and starts the server.
    pub fn restart(&self) {
        self.stop();
        self.start();
    }

    fn own(&self) -> &OwnServer {
        let Some(server) = &self.own else {
            panic!(
                "the server of {URL_VARIABLE} is not ours to stop: this test needs Cluster::start_new"
            );
        };
        server
    }
}

impl OwnServer {
    fn initialize(&self, password: &str, durability: Durability) {
        let password_file = self.folder.join("password");
        fs::write(&password_file, password).expect("the folder is ours");
        run(self
            .command("initdb")
            // md5: scram hashes for milliseconds at every connection, which buys a test nothing.
            .args(["--auth=md5", "--encoding=UTF8", "--locale=C", "--no-sync"])
            .arg("--username=nudge")
            .arg(format!("--pwfile={}", password_file.display()))
            .arg(self.data()));
        self.configure("listen_addresses = '127.0.0.1'");
        self.configure("unix_socket_directories = ''");
        self.configure("max_connections = 200");
        if durability == Durability::Fast {
            self.configure("fsync = off");
            self.configure("full_page_writes = off");
            // With a database for each test, its workers would never rest.
            self.configure("autovacuum = off");
        }
    }

    fn start_on_a_free_port(&self) -> u16 {
        for _ in 0..PORT_ATTEMPTS {
            let port = free_port();
            self.configure(&format!("port = {port}"));
            if self.start() {
                return port;
            }
        }
        panic!("PostgreSQL does not start:\n{}", self.log());
    }

    /// Adds a line to the configuration, where the last one of a key counts.
    fn configure(&self, line: &str) {
        fs::OpenOptions::new()
            .append(true)
            .open(self.data().join("postgresql.conf"))
            .and_then(|mut file| writeln!(file, "{line}"))
            .expect("initdb wrote a configuration");
    }

    fn start(&self) -> bool {
        self.control()
            .args(["start", "--silent"])
            .arg(format!("--log={}", self.log_file().display()))
            .status()
            .expect("pg_ctl is there")
            .success()
    }

    fn control(&self) -> Command {
        let mut command = self.command("pg_ctl");
        command.arg("--wait").arg("--pgdata").arg(self.data());
        command
    }

    /// A program of the server, run as the server's owner in a folder that the owner may enter.
    fn command(&self, name: &str) -> Command {
        let mut command = Command::new(program(name));
        command
            .current_dir(&self.folder)
            .env("LC_ALL", "C")
            .stdin(Stdio::null());
        if let Some(Owner { user, group }) = self.owner {
            command.uid(user).gid(group);
        }
        if let Some(library) = &self.preloaded {
            command
                .env("LD_PRELOAD", library)
                .env("NUDGE_TEST_FAULT", self.fault());
        }
        command
    }

    fn fault(&self) -> PathBuf {
        self.folder.join("fault")
    }

    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    fn log_file(&self) -> PathBuf {
        self.folder.join("server.log")
    }

    fn log(&self) -> String {
        fs::read_to_string(self.log_file()).unwrap_or_else(|error| format!("no log: {error}"))
    }
}

impl Owner {
    /// `None` where this process is not root: the server then runs as the same user.
    fn needed(folder: &Path) -> Option<Self> {
        let creator = fs::metadata(folder)
            .expect("the folder was just made")
            .uid();
        if creator != 0 {
            return None;
        }
        let owner = ["postgres", "nobody"].into_iter().find_map(Self::named);
        Some(owner.expect("a user `postgres` or `nobody` to run PostgreSQL as"))
    }

    fn named(name: &str) -> Option<Self> {
        let id = |flag| -> Option<u32> {
            let output = Command::new("id").args([flag, name]).output().ok()?;
            String::from_utf8(output.stdout).ok()?.trim().parse().ok()
        };
        Some(Self {
            user: id("-u")?,
            group: id("-g")?,
        })
    }
}

/// Where a cluster's files are.
fn place(durability: Durability) -> PathBuf {
    let free = rustix::fs::statvfs(MEMORY).map_or(0, |found| found.f_bavail * found.f_frsize);
    if durability == Durability::Fast && free >= ROOM {
        return PathBuf::from(MEMORY);
    }
    std::env::temp_dir()
}

/// A program of `PostgreSQL`: from the newest version that Debian's packages installed, or from the `PATH`.
fn program(name: &str) -> PathBuf {
    let mut packaged: Vec<PathBuf> = fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    packaged.sort_by_key(|path| {
        let version = path.file_name().and_then(|version| version.to_str());
        version.and_then(|version| version.parse::<u32>().ok())
    });
    let packaged = packaged.into_iter().rev().map(|path| path.join("bin"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    packaged
        .chain(std::env::split_paths(&path))
        .map(|folder| folder.join(name))
        .find(|program| program.is_file())
        .unwrap_or_else(|| panic!("{name} not found: apt-get install postgresql"))
}

fn run(command: &mut Command) {
    let output = command.output().expect("the program was found");
    assert!(
        output.status.success(),
        "{command:?}: {}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
}

/// Whether this process is root, which neither `PostgreSQL` nor pgbouncer may be.
pub fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

/// A port of 127.0.0.1 that nobody listens on now.
pub fn free_port() -> u16 {
    TcpListener::bind(("127.0.0.1", 0))
        .and_then(|listener| listener.local_addr())
        .expect("a free port")
        .port()
}

#[expect(
    clippy::disallowed_methods,
    reason = "no other test run, on any machine, may share it"
)]
fn unique() -> String {
    Uuid::new_v4().simple().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(url: &str, sql: &str) -> String {
        let output = Command::new(program("psql"))
            .args([
                "--no-psqlrc",
                "--tuples-only",
                "--no-align",
                url,
                "--command",
                sql,
            ])
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    #[tokio::test]
    async fn each_database_is_empty_and_its_own() {
        let (first, second) = tokio::join!(database(), database());

        query(&first, "CREATE TABLE one (n int)");

        let tables = "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'";
        assert_eq!(query(&first, tables), "1");
        assert_eq!(query(&second, tables), "0");
    }

    #[test]
    fn a_cluster_keeps_its_data_over_a_restart_and_goes_with_its_owner() {
        let cluster = Cluster::start_new(Durability::Durable);
        let folder = cluster.own().folder.clone();
        let url = cluster.create_database();
        assert_eq!(query(&url, "SHOW fsync"), "on");

        query(
            &url,
            "CREATE TABLE kept (n int); INSERT INTO kept VALUES (7)",
        );
        cluster.restart();
        assert_eq!(query(&url, "SELECT n FROM kept"), "7");

        drop(cluster);
        assert!(!folder.exists());
    }

    #[test]
    fn a_foreign_server_keeps_its_host_and_its_options() {
        let full = Cluster::connect("postgres://me@db.test/postgres?sslmode=require");
        let bare = Cluster::connect("postgres://db.test");

        assert_eq!(full.url("a"), "postgres://me@db.test/a?sslmode=require");
        assert_eq!(bare.url("a"), "postgres://db.test/a");
    }
}
