//! Databases and disks that fail in the middle: what was answered is there, what is uncertain is not answered, and
//! nothing is there or fires twice (contract 3, 14).

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nudge_platform::config::Config;
use serde_json::{Value, json};
use tempfile::TempDir;
use tests::postgres::{self, Cluster, Durability};
use tests::proxy::Proxy;
use tests::session::text;
use tests::{Backend, Child, Session, TestApp, site};
use tokio::task::JoinSet;

use crate::kills::{Remote, events};

/// Longer than anything takes to come back.
const COMES_BACK: Duration = Duration::from_mins(2);
/// Connections of a server to its database.
const CONNECTIONS: u32 = 8;
/// Clients that send side by side, each for a person of its own.
const CLIENTS: usize = 6;
/// Requests that each has accepted at least.
const REQUESTS: usize = 25;

/// A server on PostgreSQL behind a proxy, with a survey that every `purchase` fires.
async fn behind_a_proxy(url: &str) -> (TestApp, Proxy) {
    let (proxy, url) = Proxy::of(url).await;
    let app = TestApp::start_with(site!(), Backend::Sqlite, |config: &mut Config| {
        config.database.url = url;
        config.database.connections = CONNECTIONS;
        config.database.acquire_timeout_seconds = 2;
    })
    .await;
    let every = json!({"kind": "event", "eventName": "purchase", "occurrence": {"mode": "every"}});
    app.survey(&every).await;
    (app, proxy)
}

pub(crate) async fn people(app: &TestApp) -> Vec<Session> {
    let mut people = Vec::new();
    for number in 0..CLIENTS {
        people.push(app.session(&format!("person-{number}")).await);
    }
    people
}

/// Each person sends events, every request until it is accepted, until told to stop; answers the ids of all events. With every
/// other one it waits for what it fires.
pub(crate) async fn send_amid(
    app: &TestApp,
    people: &[Session],
    fault: impl Future<Output = ()>,
) -> Vec<String> {
    let over = Arc::new(AtomicBool::new(false));
    let mut clients = JoinSet::new();
    for person in people {
        let (person, over) = (person.clone(), Arc::clone(&over));
        let (clock, ids) = (app.clock.clone(), Vec::new());
        let request = app.request(
            reqwest::Method::POST,
            "/v1/sdk/ingest",
            &person.credential(),
        );
        clients.spawn(sends(request, person, clock, over, ids));
    }
    fault.await;
    over.store(true, Ordering::SeqCst);
    clients.join_all().await.concat()
}

async fn sends(
    request: reqwest::RequestBuilder,
    person: Session,
    clock: nudge_platform::clock::Clock,
    over: Arc<AtomicBool>,
    mut ids: Vec<String>,
) -> Vec<String> {
    let started = Instant::now();
    let mut accepted = 0;
    while accepted < REQUESTS || !over.load(Ordering::SeqCst) {
        let now = clock.now();
        let event = json!({
            "eventId": nudge_platform::id::new(now), "name": "purchase", "anonymousId": person.anonymous_id,
            "timestamp": nudge_platform::clock::to_text(now),
        });
        let mut body = person.batch(std::slice::from_ref(&event));
        if accepted % 2 == 1 {
            body["delivery"] = json!({"eventIds": [event["eventId"]]});
        }
        loop {
            let request = request.try_clone().unwrap().json(&body);
            let answer = tests::client::send(request).await;
            if answer.status == 200 {
                assert_eq!(answer.ok()["accepted"], 1);
                break;
            }
            answer.refused(503, "unavailable");
            assert!(!answer.header("retry-after").is_empty());
            assert!(started.elapsed() < COMES_BACK, "it does not come back");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        accepted += 1;
        ids.push(text(&event, "eventId"));
    }
    ids
}

/// Waits until the database is back for all of the server, and nothing is left to do.
async fn recovered(app: &TestApp) {
    // Some of the server's connections may be broken yet; it has twice as many tries as it has of them.
    app.until("the database answers on every connection", async || {
        for _ in 0..2 * CONNECTIONS {
            if app.get("/readyz", &tests::Credential::none()).await.status != 200 {
                return false;
            }
        }
        true
    })
    .await;
    app.settle().await;
}

/// Every event is there once and has fired once.
pub(crate) async fn all_once(app: &TestApp, sent: Vec<String>) {
    recovered(app).await;
    let sorted = |rows: Vec<(uuid::Uuid,)>| {
        let mut ids: Vec<String> = rows.iter().map(|(id,)| id.to_string()).collect();
        ids.sort_unstable();
        ids
    };
    let mut sent = sent;
    sent.sort_unstable();
    assert_eq!(sorted(app.rows("SELECT event_id FROM events").await), sent);
    let fired = app.rows("SELECT trigger_event_id FROM instructions").await;
    assert_eq!(sorted(fired), sent);
}

/// Waits until something has happened, while clients send.
async fn wait_for(what: &str, holds: impl Fn() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < COMES_BACK, "{what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Statements and commits are carried out, and nobody hears of it: sent again, they double nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_of_the_database_that_get_lost_double_nothing() {
    let (app, proxy) = behind_a_proxy(&tests::postgres::database().await).await;
    let people = people(&app).await;
    proxy.lose_every(37);
    let sent = send_amid(&app, &people, async {
        wait_for("no answer is lost", || proxy.lost() >= 20).await;
        proxy.lose_every(0);
    })
    .await;
    all_once(&app, sent).await;
    app.finish().await;
}

/// All connections are cut, in whatever they are, again and again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_are_cut_lose_nothing_and_double_nothing() {
    let (app, proxy) = behind_a_proxy(&tests::postgres::database().await).await;
    let people = people(&app).await;
    let sent = send_amid(&app, &people, async {
        for _ in 0..12 {
            tokio::time::sleep(Duration::from_millis(70)).await;
            proxy.cut();
        }
    })
    .await;
    all_once(&app, sent).await;
    app.finish().await;
}

/// Nothing comes from the database for a while, and nothing says so.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_stalls_holds_up_nothing_for_longer() {
    let (app, proxy) = behind_a_proxy(&tests::postgres::database().await).await;
    let people = people(&app).await;
    let sent = send_amid(&app, &people, async {
        for _ in 0..2 {
            proxy.hold(true);
            tokio::time::sleep(Duration::from_secs(3)).await;
            assert_eq!(
                app.get("/livez", &tests::Credential::none()).await.status,
                200
            );
            proxy.hold(false);
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    })
    .await;
    all_once(&app, sent).await;
    app.finish().await;
}

/// The database's server is killed under load, and recovers from its log.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_crashes_under_load_loses_nothing_and_doubles_nothing() {
    let cluster = tokio::task::spawn_blocking(|| Cluster::start_new(Durability::Durable))
        .await
        .unwrap();
    let cluster = Arc::new(cluster);
    let (app, _proxy) = behind_a_proxy(&cluster.create_database()).await;
    let people = people(&app).await;
    let sent = send_amid(&app, &people, async {
        let cluster = Arc::clone(&cluster);
        let crashes = tokio::task::spawn_blocking(move || {
            for _ in 0..3 {
                std::thread::sleep(Duration::from_millis(400));
                cluster.crash();
                cluster.start();
            }
        });
        crashes.await.unwrap();
    })
    .await;
    all_once(&app, sent).await;
    app.finish().await;
}

#[expect(
    clippy::print_stderr,
    reason = "who runs the tests should know what they did not test"
)]
pub(crate) fn skipped(why: &str) {
    eprintln!("skipped: {why}");
}

/// A disk whose flushes fail or take their time, or that is full.
pub(crate) struct Disk {
    folder: TempDir,
    pub(crate) library: PathBuf,
}

impl Disk {
    /// None, where there is no C compiler.
    pub(crate) fn new() -> Option<Self> {
        let folder = TempDir::with_prefix("nudge-disk-").unwrap();
        let library = folder.path().join("disk.so");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("it/faults/disk.c");
        let compiled = Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-o"])
            .args([&library, &source])
            .arg("-ldl")
            .status();
        let compiled = compiled.is_ok_and(|status| status.success());
        assert!(compiled || std::env::var_os("CI").is_none(), "cc is needed");
        compiled.then_some(Self { folder, library })
    }

    pub(crate) fn data(&self) -> PathBuf {
        let data = self.folder.path().join("data");
        std::fs::create_dir_all(&data).unwrap();
        data
    }

    pub(crate) fn control(&self) -> PathBuf {
        self.folder.path().join("fault")
    }

    /// From now on.
    fn fault(&self, text: &str) {
        fault(&self.control(), text);
    }

    fn mend(&self) {
        std::fs::remove_file(self.control()).unwrap();
    }

    fn start(&self) -> Child {
        let control = self.control();
        let variables = [
            ("LD_PRELOAD", self.library.to_str().unwrap()),
            ("NUDGE_TEST_FAULT", control.to_str().unwrap()),
        ];
        Child::start_with(site!(), &self.data(), &variables)
    }
}

/// Writes what a disk does from now on. The change is one of the file's name, so that nobody reads half of it.
pub(crate) fn fault(control: &Path, text: &str) {
    let next = control.with_extension("next");
    std::fs::write(&next, text).unwrap();
    std::fs::rename(next, control).unwrap();
}

async fn furnish(child: &Child) -> Remote {
    let remote = Remote::open(child).await;
    let path = format!("/v1/apps/{}/surveys", text(&remote.access, "appId"));
    let mut survey = tests::session::survey_body();
    survey["trigger"]["occurrence"] = json!({"mode": "every"});
    remote.post(&path, "editorToken", &survey).await.data(201);
    remote
}

async fn ingest(remote: &Remote, events: &[Value]) -> tests::Answer {
    let body = json!({"context": {"anonymousId": "ada"}, "events": events});
    remote.post("/v1/sdk/ingest", "writeKey", &body).await
}

/// Sends events and waits for what they fire.
async fn decided(remote: &Remote, events: &[Value]) -> tests::Answer {
    let body = json!({"context": {"anonymousId": "ada"}, "events": events,
                      "delivery": {"eventIds": ids(events).collect::<Vec<_>>()}});
    remote.post("/v1/sdk/ingest", "writeKey", &body).await
}

fn ids(events: &[Value]) -> impl Iterator<Item = String> {
    events.iter().map(|event| text(event, "eventId"))
}

/// What could not be flushed is not answered; after it, the server goes on; after `kill -9`, all that was answered is
/// there, and fires once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disk_that_does_not_flush_is_not_answered_for() {
    let Some(disk) = Disk::new() else {
        skipped("there is no C compiler");
        return;
    };
    let child = disk.start();
    let remote = furnish(&child).await;
    let mut answered = BTreeSet::new();
    let mut uncertain = BTreeSet::new();
    for _ in 0..3 {
        let before = events(5);
        ingest(&remote, &before).await.ok();
        answered.extend(ids(&before));

        disk.fault("fail");
        for _ in 0..4 {
            let lost = events(5);
            let answer = ingest(&remote, &lost).await;
            answer.refused(503, "unavailable");
            assert!(!answer.header("retry-after").is_empty());
            uncertain.extend(ids(&lost));
        }
        disk.mend();

        let after = events(5);
        let started = Instant::now();
        while ingest(&remote, &after).await.status != 200 {
            assert!(started.elapsed() < COMES_BACK, "it does not come back");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        answered.extend(ids(&after));
    }
    child.kill();

    let child = disk.start();
    let remote = Remote::open(&child).await;
    let fired = remote.fired(answered.len()).await;
    let once: BTreeSet<String> = fired.iter().cloned().collect();
    assert_eq!(once.len(), fired.len(), "nothing fires twice");
    assert!(answered.is_subset(&once), "all that was answered is there");
    assert!(
        once.difference(&answered).all(|id| uncertain.contains(id)),
        "nothing else is"
    );
    assert_eq!(child.terminate(), Some(0));
}

/// Whoever waits for what an event fires waits for one flush, which is that of the effects: without it there is no answer, and
/// a request that is sent again meanwhile finds nothing that it could take for stored.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_decision_is_not_answered_for_before_the_disk_has_it() {
    let Some(disk) = Disk::new() else {
        skipped("there is no C compiler");
        return;
    };
    let child = disk.start();
    let remote = furnish(&child).await;
    decided(&remote, &events(2)).await.ok();

    disk.fault("fail");
    let uncertain = events(2);
    for _ in 0..2 {
        decided(&remote, &uncertain)
            .await
            .refused(503, "unavailable");
        ingest(&remote, &uncertain)
            .await
            .refused(503, "unavailable");
    }
    disk.mend();

    let started = Instant::now();
    while decided(&remote, &uncertain).await.status != 200 {
        assert!(started.elapsed() < COMES_BACK, "it does not come back");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    child.kill();

    let child = disk.start();
    let remote = Remote::open(&child).await;
    let mut fired = remote.fired(4).await;
    fired.dedup();
    assert_eq!(fired.len(), 4, "each event fires once");
    assert_eq!(child.terminate(), Some(0));
}

/// Flushes that take their time make answers late, not wrong.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_disk_loses_nothing() {
    let Some(disk) = Disk::new() else {
        skipped("there is no C compiler");
        return;
    };
    let child = disk.start();
    let remote = Arc::new(furnish(&child).await);
    disk.fault("slow 100");
    let mut clients = JoinSet::new();
    for _ in 0..CLIENTS {
        let remote = Arc::clone(&remote);
        clients.spawn(async move {
            let mut sent = Vec::new();
            for _ in 0..5 {
                let batch = events(3);
                assert_eq!(ingest(&remote, &batch).await.ok()["accepted"], 3);
                sent.extend(ids(&batch));
            }
            sent
        });
    }
    let mut sent = clients.join_all().await.concat();
    child.kill();

    disk.mend();
    let child = disk.start();
    let remote = Remote::open(&child).await;
    let mut fired = remote.fired(sent.len()).await;
    fired.sort_unstable();
    sent.sort_unstable();
    assert_eq!(fired, sent, "each event fires once");
    assert_eq!(child.terminate(), Some(0));
}

/// A flush of the database's log fails, again and again: its server gives up all transactions in hand and recovers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_can_not_flush_its_log_loses_nothing_and_doubles_nothing() {
    let Some((cluster, _disk)) = on_a_faulty_disk().await else {
        return;
    };
    let (app, _proxy) = behind_a_proxy(&cluster.create_database()).await;
    let people = people(&app).await;
    let sent = send_amid(&app, &people, async {
        for _ in 0..3 {
            let starts = starts(&cluster);
            fault(&cluster.fault(), "log");
            wait_for("nothing is flushed", || !cluster.fault().exists()).await;
            wait_for("it does not recover", || self::starts(&cluster) > starts).await;
        }
    })
    .await;
    assert_eq!(cluster.log().matches("PANIC:").count(), 3);
    all_once(&app, sent).await;
    app.finish().await;
}

/// Nothing can be flushed any more, until the database's server is gone for good: what was answered is there, of the
/// rest each request whole or not at all, and nothing has to be started again but the database.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_whose_disk_stays_broken_has_nothing_by_half() {
    let Some((cluster, _disk)) = on_a_faulty_disk().await else {
        return;
    };
    let (app, _proxy) = behind_a_proxy(&cluster.create_database()).await;
    let person = app.session("ada").await;
    let mut answered = Vec::new();
    let mut uncertain = Vec::new();
    let started = Instant::now();
    let mut refusals_since_it_ended = 0;
    while refusals_since_it_ended < 5 {
        assert!(started.elapsed() < COMES_BACK, "the database does not end");
        if answered.len() == 10 {
            fault(&cluster.fault(), "fail");
        }
        let ended = !cluster.is_up();
        let batch: Vec<Value> = (0..3)
            .map(|_| app.event(&person, "purchase", &json!({})))
            .collect();
        let answer = app.ingest(&person, &batch).await;
        if answer.status == 200 {
            assert_eq!(answer.ok()["accepted"], 3);
            answered.push(batch);
        } else {
            answer.refused(503, "unavailable");
            assert!(!answer.header("retry-after").is_empty());
            refusals_since_it_ended += i32::from(ended);
            uncertain.push(batch);
        }
    }
    assert!(cluster.log().contains("PANIC:"));

    std::fs::remove_file(cluster.fault()).unwrap();
    let restarted = Arc::clone(&cluster);
    tokio::task::spawn_blocking(move || restarted.start())
        .await
        .unwrap();
    recovered(&app).await;
    let rows: Vec<(uuid::Uuid,)> = app.rows("SELECT event_id FROM events").await;
    let stored: BTreeSet<String> = rows.iter().map(|(id,)| id.to_string()).collect();
    assert!(ids(&answered.concat()).all(|id| stored.contains(&id)));
    for batch in &uncertain {
        let there = ids(batch).filter(|id| stored.contains(id)).count();
        assert!([0, batch.len()].contains(&there), "{there} of a request");
        assert_eq!(app.ingest(&person, batch).await.ok()["accepted"], 3);
    }
    let sent = answered.into_iter().chain(uncertain).flatten();
    all_once(&app, sent.map(|event| text(&event, "eventId")).collect()).await;
    app.finish().await;
}

/// A database whose disk can be made to fail, if there is a C compiler.
pub(crate) async fn on_a_faulty_disk() -> Option<(Arc<Cluster>, Disk)> {
    let Some(disk) = Disk::new() else {
        skipped("there is no C compiler");
        return None;
    };
    let library = disk.library.clone();
    let cluster = tokio::task::spawn_blocking(move || Cluster::start_preloaded(&library))
        .await
        .unwrap();
    Some((Arc::new(cluster), disk))
}

/// How often the database has become ready.
fn starts(cluster: &Cluster) -> usize {
    let ready = "database system is ready to accept connections";
    cluster.log().matches(ready).count()
}

/// The server makes an update again whose commit was not answered: whoever sent it once is told that it was applied.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_update_whose_commit_is_not_answered_was_applied() {
    let (app, proxy) = behind_a_proxy(&postgres::database().await).await;
    let person = app.session("ada").await;
    for number in 0..20 {
        let body = json!({"anonymousId": "ada", "mutationId": app.id(), "set": {"number": number}});
        let update = async || {
            let path = "/v1/sdk/user-properties";
            app.post(path, &person.credential(), &body).await
        };
        proxy.lose_next_commit();
        assert_eq!(update().await.ok()["applied"], true, "{number}");
        assert_eq!(update().await.ok()["applied"], false, "{number}");
    }
    assert!(proxy.lost() >= 10, "{} answers were lost", proxy.lost());
    app.finish().await;
}

/// It ends as any other that is asked to: what it has not done is in the database, and others take over (contract 17).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_stops_while_its_database_is_away() {
    let (proxy, url) = Proxy::of(&postgres::database().await).await;
    let data = TempDir::new().unwrap();
    let variables = [
        ("NUDGE_DATABASE__URL", url.as_str()),
        ("NUDGE_DATABASE__ACQUIRE_TIMEOUT_SECONDS", "1"),
    ];
    let child = Child::start_with(site!(), data.path(), &variables);
    proxy.redirect("postgres://nobody@127.0.0.1:1/nothing");
    proxy.cut();
    assert_eq!(child.terminate(), Some(0));
}
