//! Servers that are restarted one after the other, behind a load balancer (contract 17).

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use tempfile::TempDir;
use tests::beside::{Program, find};
use tests::postgres::free_port;
use tests::session::text;
use tests::{Child, client, postgres, site};
use tokio::task::JoinSet;

use crate::kills::events;

/// Clients that send side by side.
const CLIENTS: usize = 4;

/// The load balancer over two servers: it asks each whether it is ready, and gives a request on which a server has hung up to the
/// other one. A request that is made twice is stored once.
fn configuration(port: u16, servers: [u16; 2]) -> String {
    let [one, two] = servers;
    let lines = [
        "defaults".to_owned(),
        "    mode http".to_owned(),
        "    timeout connect 2s".to_owned(),
        "    timeout client 60s".to_owned(),
        "    timeout server 60s".to_owned(),
        "    retries 3".to_owned(),
        "    option redispatch 1".to_owned(),
        "    retry-on conn-failure empty-response".to_owned(),
        "frontend api".to_owned(),
        format!("    bind 127.0.0.1:{port}"),
        "    default_backend nudge".to_owned(),
        "backend nudge".to_owned(),
        "    option httpchk GET /readyz".to_owned(),
        "    http-check expect status 200".to_owned(),
        "    default-server inter 200ms fall 1 rise 1".to_owned(),
        format!("    server one 127.0.0.1:{one} check"),
        format!("    server two 127.0.0.1:{two} check"),
        String::new(),
    ];
    lines.join("\n")
}

fn start(port: u16, folder: &Path, url: &str) -> Child {
    let data = folder.join(port.to_string());
    std::fs::create_dir_all(&data).unwrap();
    let address = format!("127.0.0.1:{port}");
    Child::start_at(site!(), &address, &data, &[("NUDGE_DATABASE__URL", url)])
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
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    sent
}

#[expect(
    clippy::print_stderr,
    reason = "who runs the tests should know what they did not test"
)]
fn haproxy() -> Option<std::path::PathBuf> {
    let found = find("haproxy");
    if found.is_none() {
        eprintln!("skipped: there is no HAProxy");
    }
    found
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rolling_restart_fails_no_request() {
    let Some(haproxy) = haproxy() else {
        return;
    };
    let url = postgres::database().await;
    let folder = TempDir::with_prefix("nudge-test-").unwrap();
    let ports = [free_port(), free_port()];
    let one = start(ports[0], folder.path(), &url);
    let two = start(ports[1], folder.path(), &url);
    let port = free_port();
    let balancer = Program::start(&haproxy, &["-db", "-f"], port, &configuration(port, ports));
    let base = format!("http://127.0.0.1:{}", balancer.port);
    let key = one.text("writeKey").to_owned();

    let over = Arc::<AtomicBool>::default();
    let mut clients = JoinSet::new();
    for _ in 0..CLIENTS {
        clients.spawn(sends(base.clone(), key.clone(), Arc::clone(&over)));
    }
    let restart = |child: Child, port: u16| {
        let (folder, url) = (folder.path().to_owned(), url.clone());
        tokio::task::spawn_blocking(move || {
            std::thread::sleep(std::time::Duration::from_secs(1));
            assert_eq!(child.terminate(), Some(0));
            start(port, &folder, &url)
        })
    };
    let mut servers = [Some(one), Some(two)];
    for (place, port) in ports.into_iter().enumerate() {
        let child = servers[place].take().unwrap();
        servers[place] = Some(restart(child, port).await.unwrap());
        // The load balancer notices that it is back before the other one goes.
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
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
