//! Two servers under Patroni, which promotes one where the other has gone.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::{Owner, Watchdog, free_port, program, run, unique};
use crate::beside::{Program, find_or_skip};

/// Longer than the servers take to start, or one of them to take over: a leader may be silent for 20 seconds.
const TAKES_OVER: Duration = Duration::from_mins(2);
/// The longest wait for an answer of Patroni's.
const ANSWERS: Duration = Duration::from_secs(1);

/// Runs `$2` and what follows until the pipe on standard input is closed; then ends it and its server, and removes the folder
/// `$1`. What was stopped goes on, to be ended.
const RUN: &str = r#"
folder=$1
shift
"$@" </dev/null >"$folder/output" 2>&1 &
program=$!
echo "$program" >"$folder/pid"
cat >/dev/null
kill -KILL "$program"
if read -r server <"$folder/data/postmaster.pid"; then
    for process in $server $(ps -o pid= --ppid "$server"); do kill -KILL "$process"; done
fi
rm -rf "$folder"
"#;

/// A leader and a synchronous standby, which Patroni and etcd watch.
#[derive(Debug)]
pub struct Patroni {
    nodes: [Node; 2],
    password: String,
    database: String,
    _etcd: Program,
    _etcd_data: TempDir,
}

#[derive(Debug)]
struct Node {
    folder: PathBuf,
    port: u16,
    api: u16,
    _watchdog: Watchdog,
}

impl Patroni {
    /// Starts both and makes a database. None: a program is not on this machine.
    pub fn start() -> Option<Self> {
        let (patroni, etcd) = (find_or_skip("patroni")?, find_or_skip("etcd")?);
        let etcd_data = TempDir::with_prefix("nudge-etcd-").expect("a folder for etcd");
        let (clients, peers) = (free_port(), free_port());
        let configuration = format!(
            "data-dir: {}\nlisten-client-urls: http://127.0.0.1:{clients}\nadvertise-client-urls: http://127.0.0.1:{clients}\n\
             listen-peer-urls: http://127.0.0.1:{peers}\ninitial-advertise-peer-urls: http://127.0.0.1:{peers}\n\
             initial-cluster: default=http://127.0.0.1:{peers}\nenable-grpc-gateway: true\n",
            etcd_data.path().join("data").display()
        );
        let etcd = Program::start(&etcd, &["--config-file"], clients, &configuration);
        let password = unique();
        let node = |name| Node::start(&patroni, name, clients, &password);
        let cluster = Self {
            nodes: [node("n1"), node("n2")],
            database: format!("nudge_test_{}", unique()),
            password: password.clone(),
            _etcd: etcd,
            _etcd_data: etcd_data,
        };
        let standby = |node: &Node| {
            let cluster = node.ask("/cluster");
            cluster.is_some_and(|cluster| cluster.contains("sync_standby"))
        };
        cluster.wait(|| cluster.nodes.iter().all(standby));
        let leader = cluster.leader().expect("a standby follows one");
        let mut psql = Command::new(program("psql"));
        psql.args(["--no-psqlrc", "--quiet"])
            .arg(cluster.url_of(&cluster.authority(leader), "postgres"))
            .arg(format!("--command=CREATE DATABASE {}", cluster.database));
        run(&mut psql);
        Some(cluster)
    }

    /// The URL that names both servers.
    pub fn url(&self) -> String {
        let both = format!("{},{}", self.authority(0), self.authority(1));
        let url = self.url_of(&both, &self.database);
        format!("{url}?target_session_attrs=read-write")
    }

    /// Which server leads; none: neither says that it does.
    pub fn leader(&self) -> Option<usize> {
        let leads = |node: &Node| node.ask("/primary").is_some();
        self.nodes.iter().position(leads)
    }

    /// Kills a server and what watches it.
    pub fn kill(&self, node: usize) {
        self.signal(node, "-KILL");
    }

    /// Stops a server and what watches it: nobody answers, nobody closes a connection.
    pub fn freeze(&self, node: usize) {
        self.signal(node, "-STOP");
    }

    /// Waits until the other server leads.
    pub fn wait_for_other(&self, node: usize) {
        self.wait(|| self.leader().is_some_and(|leader| leader != node));
    }

    fn signal(&self, node: usize, signal: &str) {
        let Some(node) = self.nodes.get(node) else {
            return;
        };
        let first_line = |file: &Path| {
            let text = fs::read_to_string(file).expect("it runs");
            text.lines().next().expect("a process").to_owned()
        };
        let server = first_line(&node.folder.join("data/postmaster.pid"));
        let children = Command::new("ps")
            .args(["-o", "pid=", "--ppid", &server])
            .output()
            .expect("ps is there");
        let children = String::from_utf8(children.stdout).expect("numbers");
        let mut kill = Command::new("kill");
        kill.arg(signal)
            .arg(first_line(&node.folder.join("pid")))
            .arg(server)
            .args(children.split_whitespace());
        // Some of the server's processes may have ended meanwhile.
        kill.output().expect("kill is there");
    }

    fn wait(&self, holds: impl Fn() -> bool) {
        let started = Instant::now();
        while !holds() {
            assert!(started.elapsed() < TAKES_OVER, "{}", self.log());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn log(&self) -> String {
        let log = |node: &Node| fs::read_to_string(node.folder.join("output")).unwrap_or_default();
        self.nodes.iter().map(log).collect()
    }

    fn authority(&self, node: usize) -> String {
        let port = self.nodes.get(node).map_or(0, |node| node.port);
        format!("127.0.0.1:{port}")
    }

    fn url_of(&self, authority: &str, database: &str) -> String {
        format!("postgres://nudge:{}@{authority}/{database}", self.password)
    }
}

impl Node {
    fn start(patroni: &Path, name: &str, etcd: u16, password: &str) -> Self {
        let folder = TempDir::with_prefix("nudge-patroni-").expect("a folder for the server");
        let (port, api) = (free_port(), free_port());
        let (path, bin) = (folder.path().display(), program("pg_ctl"));
        let bin = bin.parent().unwrap_or(Path::new("/")).display();
        let configuration = format!(
            "scope: nudge
name: {name}
restapi: {{listen: '127.0.0.1:{api}', connect_address: '127.0.0.1:{api}'}}
etcd3: {{host: '127.0.0.1:{etcd}'}}
bootstrap:
  dcs:
    ttl: 20
    loop_wait: 1
    retry_timeout: 3
    synchronous_mode: true
    postgresql:
      use_pg_rewind: false
      parameters: {{max_connections: 100, fsync: 'off'}}
  initdb: [{{encoding: UTF8}}, {{locale: C}}, no-sync]
postgresql:
  listen: 127.0.0.1:{port}
  connect_address: 127.0.0.1:{port}
  data_dir: {path}/data
  bin_dir: {bin}
  pgpass: {path}/pgpass
  parameters: {{unix_socket_directories: '{path}'}}
  pg_hba: ['local all all trust', 'host all all 127.0.0.1/32 md5', 'host replication all 127.0.0.1/32 md5']
  authentication:
    superuser: {{username: nudge, password: '{password}'}}
    replication: {{username: follower, password: '{password}'}}
"
        );
        let file = folder.path().join("patroni.yml");
        fs::write(&file, configuration).expect("the folder is ours");
        let mut words: Vec<PathBuf> = vec![folder.path().to_owned()];
        let owner = Owner::needed(folder.path());
        if let Some(Owner { user, group }) = owner {
            for path in [folder.path(), &file] {
                chown(path, Some(user), Some(group)).expect("root may give a folder away");
            }
            words.push("setpriv".into());
            words.push(format!("--reuid={user}").into());
            words.push(format!("--regid={group}").into());
            words.push("--clear-groups".into());
        }
        words.extend([patroni.to_owned(), file]);
        let words: Vec<&Path> = words.iter().map(PathBuf::as_path).collect();
        let watchdog = Watchdog::spawn(RUN, &words);
        Self {
            folder: folder.keep(),
            port,
            api,
            _watchdog: watchdog,
        }
    }

    /// What Patroni answers to a request with 200; none: another status, or no answer.
    fn ask(&self, path: &str) -> Option<String> {
        let address = SocketAddr::from(([127, 0, 0, 1], self.api));
        let mut stream = TcpStream::connect_timeout(&address, ANSWERS).ok()?;
        stream.set_read_timeout(Some(ANSWERS)).ok()?;
        write!(stream, "GET {path} HTTP/1.0\r\n\r\n").ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let (status, _) = answer.split_once('\n')?;
        status.contains(" 200 ").then_some(answer)
    }
}
