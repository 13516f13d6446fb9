//! Servers that are restarted one after the other, behind a load balancer (contract 17).

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tests::beside::{Program, find_or_skip};
use tests::postgres::free_port;
use tests::session::text;
use tests::{Child, client, postgres, site};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::kills::events;

/// Clients that send side by side.
const CLIENTS: usize = 4;

/// Where each server listens: a Caddy asks all of them at one port whether they are ready.
const HOSTS: [&str; 2] = ["127.0.0.1", "127.0.0.2"];

/// A load balancer over two servers.
struct Balancer {
    program: &'static str,
    /// Before the file with the configuration.
    arguments: &'static [&'static str],
    /// Of the load balancer's port, the servers' addresses, and the port of their probes.
    configuration: fn(u16, &[String; 2], u16) -> String,
    /// How long it may take to notice that a server is back.
    notices: Duration,
}

/// All but an nginx that is told nothing notice within so long.
const SOON: Duration = Duration::from_secs(2);

const HAPROXY: Balancer = Balancer {
    program: "haproxy",
    arguments: &["-db", "-f"],
    configuration: haproxy,
    notices: SOON,
};

const NGINX: Balancer = Balancer {
    program: "nginx",
    arguments: &["-p", ".", "-e", "stderr", "-c"],
    configuration: nginx,
    notices: SOON,
};

const CADDY: Balancer = Balancer {
    program: "caddy",
    arguments: &["run", "--adapter", "caddyfile", "--config"],
    configuration: caddy,
    notices: SOON,
};

/// The `HAProxy` of the documents, without TLS.
fn haproxy(port: u16, servers: &[String; 2], probes: u16) -> String {
    let [one, two] = servers;
    let documented = include_str!("../../host/docs/scaling.md")
        .split("```")
        .map(str::trim_start)
        .find(|block| block.starts_with("defaults") && block.contains("frontend api"));
    documented
        .unwrap()
        // A check that takes long on a busy machine is no failure.
        .replace("    retries 3", "    timeout check 5s\n    retries 3")
        .replace(
            "bind :443 ssl crt /etc/haproxy/nudge.pem",
            &format!("bind 127.0.0.1:{port}"),
        )
        .replace("port 9464", &format!("port {probes}"))
        .replace("10.0.0.11:8480", one)
        .replace("10.0.0.12:8480", two)
}

/// The nginx of the packages, without TLS.
fn nginx(port: u16, servers: &[String; 2], _probes: u16) -> String {
    let [one, two] = servers;
    let limits = "max_fails=1 fail_timeout=1s;";
    let site = include_str!("../../host/packages/proxies/nginx.conf")
        .replace(
            &format!("server 127.0.0.1:8480 {limits}"),
            &format!("server {one} {limits} server {two} {limits}"),
        )
        .replace(
            "listen 443 ssl http2;",
            &format!("listen 127.0.0.1:{port};"),
        );
    let others = ["listen [::]:443", "ssl_certificate"];
    let site: Vec<&str> = site
        .lines()
        .filter(|line| !others.iter().any(|other| line.contains(other)))
        .collect();
    format!(
        "daemon off; master_process off; pid nginx.pid; events {{}}\nhttp {{\naccess_log off;\n{}\n}}\n",
        site.join("\n")
    )
}

/// An nginx that knows two servers and nothing else of them. It does not ask whether they are ready, and leaves one alone for
/// 10 seconds on which it found nobody.
fn bare_nginx(port: u16, [one, two]: &[String; 2], _probes: u16) -> String {
    format!(
        "daemon off; master_process off; pid nginx.pid; events {{}}\nhttp {{\naccess_log off;\nupstream nudge {{ server {one}; server {two}; }}\n\
         server {{ listen 127.0.0.1:{port}; location / {{ proxy_pass http://nudge; }} }}\n}}\n"
    )
}

/// The Caddy of the packages, without TLS.
fn caddy(port: u16, servers: &[String; 2], probes: u16) -> String {
    let site = include_str!("../../host/packages/proxies/Caddyfile")
        .replace("{$NUDGE_HOST}", &format!("http://127.0.0.1:{port}"))
        .replace("{$NUDGE_UPSTREAMS}", &servers.join(" "))
        .replace("{$NUDGE_PROBES:9464}", &probes.to_string());
    format!("{{\n\tadmin off\n}}\n{site}")
}

/// Starts a server. The load balancers ask once a second whether it is ready.
fn start(address: &str, probes: u16, folder: &Path, url: &str) -> Child {
    let (host, _) = address.split_once(':').unwrap();
    let data = folder.join(host);
    std::fs::create_dir_all(&data).unwrap();
    let variables = [
        ("NUDGE_DATABASE__URL", url),
        ("NUDGE_SERVER__OPS_LISTEN", &format!("{host}:{probes}")),
        ("NUDGE_SERVER__DRAIN_SECONDS", "2"),
        ("NUDGE_SERVER__TRUSTED_PROXIES", "1"),
    ];
    Child::start_at(site!(), address, &data, &variables)
}

/// Sends events by the load balancer until told to stop; every request is answered with success.
async fn sends(base: String, key: String, over: Arc<AtomicBool>) -> Vec<String> {
    let http = client::build();
    let session = http.post(format!("{base}/v1/sdk/session"));
    let body = json!({"anonymousId": "ada"});
    let session = client::send(session.bearer_auth(&key).json(&body))
        .await
        .ok();
    let token = text(&session, "subjectToken");
    let mut sent = Vec::new();
    while !over.load(Ordering::SeqCst) {
        let events = events(3);
        let body = json!({"context": {"anonymousId": "ada"}, "events": events});
        let request = http
            .post(format!("{base}/v1/sdk/ingest"))
            .bearer_auth(&key)
            .header("x-service-subject-token", &token)
            .json(&body);
        let data: Value = client::send(request).await.ok();
        assert_eq!(data["accepted"], 3);
        sent.extend(events.iter().map(|event| text(event, "eventId")));
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    sent
}

async fn a_rolling_restart_fails_no_request_behind(balancer: Balancer) {
    let Some(program) = find_or_skip(balancer.program) else {
        return;
    };
    let url = postgres::database().await;
    let folder = TempDir::with_prefix("nudge-test-").unwrap();
    let probes = free_port();
    let addresses = HOSTS.map(|host| format!("{host}:{}", free_port()));
    let [one, two] = addresses
        .each_ref()
        .map(|address| start(address, probes, folder.path(), &url));
    let port = free_port();
    let configuration = (balancer.configuration)(port, &addresses, probes);
    let notices = balancer.notices;
    let balancer = Program::start(&program, balancer.arguments, port, &configuration);
    let base = format!("http://127.0.0.1:{}", balancer.port);
    let key = one.text("writeKey").to_owned();

    let over = Arc::<AtomicBool>::default();
    let mut clients = JoinSet::new();
    for _ in 0..CLIENTS {
        clients.spawn(sends(base.clone(), key.clone(), Arc::clone(&over)));
    }
    let restart = |child: Child, address: String| {
        let (folder, url) = (folder.path().to_owned(), url.clone());
        tokio::task::spawn_blocking(move || {
            std::thread::sleep(Duration::from_secs(1));
            assert_eq!(child.terminate(), Some(0));
            start(&address, probes, &folder, &url)
        })
    };
    let mut servers = [Some(one), Some(two)];
    for (place, address) in addresses.into_iter().enumerate() {
        let child = servers[place].take().unwrap();
        servers[place] = Some(restart(child, address).await.unwrap());
        // The load balancer notices that it is back before the other one goes.
        tokio::time::sleep(notices).await;
    }
    over.store(true, Ordering::SeqCst);
    let sent = clients.join_all().await.concat();
    let unique: BTreeSet<&String> = sent.iter().collect();
    assert_eq!(unique.len(), sent.len());
    let db = nudge_db::Db::open(&nudge_db::Options::new(url, 1))
        .await
        .unwrap();
    let mut tx = db.read().await.unwrap();
    let stored: Vec<uuid::Uuid> = tx
        .sql("SELECT event_id FROM events WHERE name = 'purchase'")
        .fetch_values()
        .await
        .unwrap();
    let stored: BTreeSet<String> = stored.iter().map(uuid::Uuid::to_string).collect();
    assert!(sent.iter().all(|id| stored.contains(id)));
    assert_eq!(stored.len(), sent.len());
    drop(tx);
    db.close().await;
    for server in servers.into_iter().flatten() {
        assert_eq!(server.terminate(), Some(0));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rolling_restart_fails_no_request_behind_haproxy() {
    a_rolling_restart_fails_no_request_behind(HAPROXY).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rolling_restart_fails_no_request_behind_the_packages_nginx() {
    a_rolling_restart_fails_no_request_behind(NGINX).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rolling_restart_fails_no_request_behind_the_packages_caddy() {
    a_rolling_restart_fails_no_request_behind(CADDY).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rolling_restart_fails_no_request_behind_an_nginx_that_is_told_nothing() {
    a_rolling_restart_fails_no_request_behind(Balancer {
        program: "nginx",
        arguments: &["-p", ".", "-e", "stderr", "-c"],
        configuration: bare_nginx,
        notices: Duration::from_secs(11),
    })
    .await;
}

/// Two servers that say that they are ready, and hang up on all other requests, whose paths are kept.
async fn hang_up(port: u16, taken: &Arc<Mutex<Vec<String>>>) -> JoinSet<()> {
    let mut servers = JoinSet::new();
    for host in HOSTS {
        let listener = TcpListener::bind((host, port)).await.unwrap();
        let taken = Arc::clone(taken);
        servers.spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (connection, _) = listener.accept().await.unwrap();
                connections.spawn(take(connection, Arc::clone(&taken)));
            }
        });
    }
    servers
}

async fn take(mut connection: TcpStream, taken: Arc<Mutex<Vec<String>>>) {
    let (mut head, mut part) = (Vec::<u8>::new(), [0; 4096]);
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        match connection.read(&mut part).await {
            Ok(length) if length > 0 => head.extend_from_slice(&part[..length]),
            _ => return,
        }
    }
    let head = String::from_utf8_lossy(&head);
    let path = head.split(' ').nth(1).unwrap_or_default();
    if path == "/readyz" {
        let ready = b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
        let _ = connection.write_all(ready).await;
        return;
    }
    taken.lock().unwrap().push(path.to_owned());
}

/// A send without an idempotency key that a server has taken would be two messages if another server got it too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_proxy_repeats_a_send_that_a_server_has_taken() {
    for balancer in [HAPROXY, NGINX, CADDY] {
        let name = balancer.program;
        let Some(program) = find_or_skip(name) else {
            continue;
        };
        let (taken, behind) = (Arc::default(), free_port());
        let _servers = hang_up(behind, &taken).await;
        let addresses = HOSTS.map(|host| format!("{host}:{behind}"));
        let port = free_port();
        let configuration = (balancer.configuration)(port, &addresses, behind);
        let _running = Program::start(&program, balancer.arguments, port, &configuration);
        let send = "/v1/apps/a/push/transactional";
        let url = format!("http://127.0.0.1:{port}{send}");
        let answer = client::send(client::build().post(url).json(&json!({}))).await;
        assert_eq!(answer.status, 502, "{name}");
        assert_eq!(*taken.lock().unwrap(), [send], "{name}");
    }
}

/// What an SDK sends twice is stored once: a server that hangs up costs it no request.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn haproxy_gives_the_requests_of_sdks_to_the_next_server() {
    let Some(program) = find_or_skip(HAPROXY.program) else {
        return;
    };
    let (taken, behind) = (Arc::default(), free_port());
    let _servers = hang_up(behind, &taken).await;
    let addresses = HOSTS.map(|host| format!("{host}:{behind}"));
    let port = free_port();
    let configuration = haproxy(port, &addresses, behind);
    let _running = Program::start(&program, HAPROXY.arguments, port, &configuration);
    for path in ["/v1/sdk/ingest", "/v1/compat/v1/batch", "/v1/batch"] {
        let url = format!("http://127.0.0.1:{port}{path}");
        client::send(client::build().post(url).json(&json!({}))).await;
        let paths = std::mem::take(&mut *taken.lock().unwrap());
        assert!(paths.len() > 1, "{path}: {paths:?}");
        assert!(paths.iter().all(|it| it == path), "{paths:?}");
    }
}
