//! pgbouncer in front of the tests' cluster.
//!
//! With `NUDGE_TEST_POOLER=transaction` all tests on PostgreSQL that use the shared cluster go through one. The program is
//! the one on this machine, or the one that `NUDGE_TEST_PGBOUNCER` names.
#![expect(
    clippy::expect_used,
    reason = "test support: a pooler that fails fails the test where it stands"
)]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::beside::{Program, find};
use crate::postgres::{self, free_port};

/// The mode of the pooler that all tests go through.
const MODE_VARIABLE: &str = "NUDGE_TEST_POOLER";
/// The program to use in place of the one on this machine.
const PROGRAM_VARIABLE: &str = "NUDGE_TEST_PGBOUNCER";
/// The first version that knows prepared statements.
const KEEPS_STATEMENTS: (u32, u32) = (1, 21);

/// A running pgbouncer; it ends with this process.
#[derive(Debug)]
pub struct Pooler {
    program: Program,
    keeps_statements: bool,
}

impl Pooler {
    /// Starts one with a mode and so many connections for each database of the server of a URL. None: there is no pgbouncer.
    pub fn start(url: &str, mode: &str, connections: u32) -> Option<Self> {
        let program = match std::env::var_os(PROGRAM_VARIABLE) {
            Some(program) => PathBuf::from(program),
            None => find("pgbouncer")?,
        };
        let keeps_statements = keeps_statements(&program);
        let (user, host) = url
            .strip_prefix("postgres://")
            .and_then(|url| url.split_once('@'))
            .expect("a user");
        let (user, password) = user.split_once(':').expect("a password");
        let (host, _) = host.split_once('/').expect("a database");
        let (host, server) = host.split_once(':').expect("a port");
        let port = free_port();
        let prepared = if keeps_statements {
            "max_prepared_statements = 200"
        } else {
            ""
        };
        let configuration = format!(
            "[databases]
            * = host={host} port={server} user={user} password={password}
            [pgbouncer]
            listen_addr = 127.0.0.1
            listen_port = {port}
            unix_socket_dir =
            auth_type = any
            pool_mode = {mode}
            default_pool_size = {connections}
            max_client_conn = 1000
            server_idle_timeout = 10
            {prepared}
            "
        );
        let lines: Vec<&str> = configuration.lines().map(str::trim).collect();
        let configuration = lines.join("\n");
        // It refuses to run as root.
        let arguments: &[&str] = if postgres::is_root() {
            &["-u", "nobody"]
        } else {
            &[]
        };
        Some(Self {
            program: Program::start(&program, arguments, port, &configuration),
            keeps_statements,
        })
    }

    /// The URL that leads to a database by this pooler.
    pub fn url(&self, url: &str) -> String {
        let (user, rest) = url.rsplit_once('@').expect("a user");
        let (_, database) = rest.split_once('/').expect("a database");
        format!("{user}@127.0.0.1:{}/{database}", self.program.port)
    }

    /// Whether the pooler knows prepared statements.
    pub fn keeps_statements(&self) -> bool {
        self.keeps_statements
    }
}

/// The pooler that all tests go through, if they do.
pub fn shared() -> Option<&'static Pooler> {
    static SHARED: OnceLock<Option<Pooler>> = OnceLock::new();
    let shared = SHARED.get_or_init(|| {
        let mode = std::env::var(MODE_VARIABLE).ok()?;
        let cluster = postgres::cluster();
        postgres::plan_as_servers_do(cluster);
        let pooler = Pooler::start(&cluster.url("postgres"), &mode, 5);
        Some(pooler.expect("pgbouncer is needed"))
    });
    shared.as_ref()
}

/// Whether all tests go through a pooler that knows no prepared statements.
pub(crate) fn forgets_statements() -> bool {
    shared().is_some_and(|pooler| !pooler.keeps_statements())
}

/// Whether a pgbouncer knows prepared statements.
pub fn keeps_statements(program: &Path) -> bool {
    version(program) >= KEEPS_STATEMENTS
}

/// The version as its first two numbers.
fn version(program: &Path) -> (u32, u32) {
    let output = Command::new(program).arg("--version").output();
    let text = String::from_utf8(output.expect("it runs").stdout).expect("text");
    let version = text.split_whitespace().nth(1).expect("a version");
    let mut numbers = version.split('.').map(|number| number.parse().ok());
    let mut next = || numbers.next().flatten().expect("a number");
    (next(), next())
}
