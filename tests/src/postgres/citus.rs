//! Distributed databases for the tests, on the Citus whose coordinator `NUDGE_TEST_CITUS_URL` names: a role that may do
//! everything, in a database in which its workers were added (`citus_add_node`). All tests on PostgreSQL use it then.
//!
//! A test that ends a worker needs one on this machine.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};

use nudge_db::{Db, Distributable, Options};
use nudge_platform::schema::migrations;
use tokio::sync::OnceCell;

use super::{Cluster, plan_as_servers_do, program, run, unique};

const URL_VARIABLE: &str = "NUDGE_TEST_CITUS_URL";
/// Fewer than in production, which a database is made with sooner, and several on each worker.
const SHARDS: &str = "8";
const WORKERS: &str =
    "SELECT nodename || ':' || nodeport FROM pg_dist_node WHERE groupid <> 0 ORDER BY groupid";

/// A coordinator and its workers.
#[derive(Debug)]
pub struct Citus {
    coordinator: Cluster,
    workers: Vec<Worker>,
    turn: Mutex<()>,
}

/// One of the workers.
#[derive(Debug)]
pub struct Worker {
    cluster: Cluster,
    /// Where the coordinator finds it: `HOST:PORT`.
    address: String,
}

/// The Citus of this machine's tests; none: tests use a PostgreSQL of one machine.
pub fn citus() -> Option<&'static Citus> {
    static SHARED: OnceLock<Option<Citus>> = OnceLock::new();
    let shared = SHARED.get_or_init(|| {
        std::env::var(URL_VARIABLE)
            .ok()
            .map(|url| Citus::connect(&url))
    });
    shared.as_ref()
}

impl Citus {
    fn connect(url: &str) -> Self {
        let coordinator = Cluster::connect(url);
        let (user, _) = coordinator.base.rsplit_once('@').expect("a user");
        let user = user.to_owned();
        let workers = coordinator.execute(WORKERS);
        let worker = |address: &str| Worker {
            cluster: Cluster::connect(&format!("{user}@{address}/postgres")),
            address: address.to_owned(),
        };
        let workers: Vec<Worker> = workers.lines().map(worker).collect();
        assert!(
            workers.len() > 1,
            "{URL_VARIABLE} names no coordinator of two workers"
        );
        for worker in &workers {
            plan_as_servers_do(&worker.cluster);
        }
        Self {
            coordinator,
            workers,
            turn: Mutex::default(),
        }
    }

    /// Makes a database whose schema is there and whose tables are distributed, and returns its URL. It is a copy, on each
    /// machine, of the process's first one: making that takes several times as long.
    pub(super) async fn create_distributed() -> String {
        static TEMPLATE: OnceCell<String> = OnceCell::const_new();
        let citus = citus().expect("it was asked for");
        let template = TEMPLATE.get_or_init(|| Self::template(citus)).await;
        let copy = tokio::task::spawn_blocking(|| citus.copy(template)).await;
        copy.expect("a database is made")
    }

    /// Makes a database to be copied, and returns its name.
    async fn template(citus: &'static Self) -> String {
        let url = tokio::task::spawn_blocking(|| citus.create()).await;
        let url = url.expect("a database is made");
        let db = Db::open(&Options::new(url.clone(), 1)).await;
        let db = db.expect("the database answers");
        db.migrate(&migrations()).await.expect("the schema is made");
        for table in Distributable::ALL {
            db.distribute(table)
                .await
                .expect("the table is distributed");
        }
        db.close().await;
        let name = database(&url).to_owned();
        // What is connected, Citus' own processes among it, would keep it from being copied.
        for cluster in citus.clusters() {
            for statement in [
                format!("ALTER DATABASE {name} ALLOW_CONNECTIONS false"),
                format!(
                    "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = '{name}'"
                ),
            ] {
                cluster.execute(&statement);
            }
        }
        name
    }

    /// Copies a database on each machine, and returns the URL of the copy.
    fn copy(&self, template: &str) -> String {
        let name = format!("nudge_test_{}", unique());
        for cluster in self.clusters() {
            cluster.create_like(&name, template);
        }
        self.coordinator.url(&name)
    }

    /// The workers', then the coordinator's.
    fn clusters(&self) -> impl Iterator<Item = &Cluster> {
        let workers = self.workers.iter().map(|worker| &worker.cluster);
        workers.chain([&self.coordinator])
    }

    /// Makes an empty database of which the workers know, and returns its URL.
    pub fn create(&self) -> String {
        // Citus notes nodes in tables that all databases of a server share, and refuses to do so twice at a time.
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let name = format!("nudge_test_{}", unique());
        for cluster in self.clusters() {
            cluster.create(&name);
            cluster.execute_in(&name, "CREATE EXTENSION citus");
        }
        let (_, here) = self.coordinator.base.rsplit_once('@').expect("a host");
        let mut nodes = vec![
            format!("ALTER DATABASE {name} SET citus.shard_count = {SHARDS}"),
            format!("SELECT citus_set_coordinator_host({})", node(here)),
        ];
        nodes.extend(
            self.workers
                .iter()
                .map(|worker| format!("SELECT citus_add_node({})", node(&worker.address))),
        );
        for statement in nodes {
            self.coordinator.execute_in(&name, &statement);
        }
        self.coordinator.url(&name)
    }

    /// The workers.
    pub fn workers(&self) -> &[Worker] {
        &self.workers
    }

    /// What a statement answers on the coordinator, in the database of a URL.
    pub fn ask(&self, url: &str, statement: &str) -> String {
        self.coordinator.execute_in(database(url), statement)
    }
}

impl Worker {
    /// What a statement answers on the worker, in the database of a URL.
    pub fn ask(&self, url: &str, statement: &str) -> String {
        self.cluster.execute_in(database(url), statement)
    }

    /// The host and the port, as functions take a node.
    pub fn node(&self) -> String {
        node(&self.address)
    }

    /// The port.
    pub fn port(&self) -> &str {
        self.address.rsplit_once(':').map_or("", |(_, port)| port)
    }

    /// Where the worker's data are, which is on this machine.
    pub fn folder(&self) -> PathBuf {
        PathBuf::from(self.cluster.execute("SHOW data_directory"))
    }
}

/// Ends the worker with its data in a folder, as a crash would.
pub fn crash(folder: &PathBuf) {
    run(control(folder).args(["stop", "--mode=immediate"]));
}

/// Starts the worker with its data in a folder again.
pub fn start(folder: &PathBuf) {
    run(control(folder).args(["start", "--silent", "--log=/dev/null"]));
}

fn control(folder: &PathBuf) -> Command {
    let owner = fs::metadata(folder).expect("the worker is on this machine");
    let mut command = Command::new(program("pg_ctl"));
    command
        .arg("--wait")
        .arg("--pgdata")
        .arg(folder)
        .current_dir(folder)
        // A worker connects to the others, and looks for a certificate at home.
        .env("HOME", folder)
        .stdin(Stdio::null())
        .uid(owner.uid())
        .gid(owner.gid());
    command
}

/// The arguments of a function that takes a node.
fn node(address: &str) -> String {
    let (host, port) = address.rsplit_once(':').expect("a port");
    format!("'{host}', {port}")
}

fn database(url: &str) -> &str {
    let (url, _) = url.split_once('?').unwrap_or((url, ""));
    let (_, name) = url.rsplit_once('/').expect("a database");
    name
}
