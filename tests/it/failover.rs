//! A primary that goes away, and the standby that takes its place: what was answered is there once, and the server is
//! with the new one soon (contract 25).

use std::sync::Arc;
use std::time::{Duration, Instant};

use nudge_db::{Db, Options};
use nudge_platform::config::Config;
use serde_json::json;
use tempfile::TempDir;
use tests::postgres::{self, Cluster, Durability};
use tests::proxy::Proxy;
use tests::session::text;
use tests::{Backend, Credential, Session, TestApp, child, site};

use crate::faults::{all_once, people, send_amid};

/// How soon a server is with the new primary, at the most, once there is nothing more to wait for.
pub(crate) const SOON: Duration = Duration::from_secs(5);
/// `database.deadlineSeconds` of these tests.
pub(crate) const DEADLINE: Duration = Duration::from_secs(4);
/// Longer than anything takes to come back.
const COMES_BACK: Duration = Duration::from_mins(1);

/// A primary, a standby that has every commit before it is answered, and a database on both.
struct Pair {
    primary: Cluster,
    standby: Cluster,
    url: String,
}

impl Pair {
    async fn start() -> Arc<Self> {
        let start = tokio::task::spawn_blocking(|| {
            let primary = Cluster::start_new(Durability::Fast);
            let url = primary.create_database();
            let standby = primary.follow();
            Arc::new(Self {
                primary,
                standby,
                url,
            })
        });
        start.await.unwrap()
    }

    /// The URL that names both.
    fn both(&self) -> String {
        let (primary, standby) = (self.primary.authority(), self.standby.authority());
        let both = self.url.replace(primary, &format!("{standby},{primary}"));
        format!("{both}?target_session_attrs=read-write")
    }

    fn standby_url(&self) -> String {
        self.url
            .replace(self.primary.authority(), self.standby.authority())
    }

    async fn on<T: Send + 'static>(
        self: &Arc<Self>,
        act: impl FnOnce(&Self) -> T + Send + 'static,
    ) -> T {
        let pair = Arc::clone(self);
        let acted = tokio::task::spawn_blocking(move || act(&pair));
        acted.await.unwrap()
    }
}

/// A server with a survey that every `purchase` fires.
pub(crate) async fn server(url: String) -> TestApp {
    let app = TestApp::start_with(site!(), Backend::Sqlite, |config: &mut Config| {
        config.database.url = url;
        config.database.acquire_timeout_seconds = 2;
        config.database.deadline_seconds = DEADLINE.as_secs();
    })
    .await;
    let every = json!({"kind": "event", "eventName": "purchase", "occurrence": {"mode": "every"}});
    app.survey(&every).await;
    app
}

/// Sends an event until it is accepted; answers its id.
pub(crate) async fn first_success(app: &TestApp, person: &Session) -> String {
    let started = Instant::now();
    let event = app.event(person, "purchase", &json!({}));
    loop {
        let answer = app.ingest(person, std::slice::from_ref(&event)).await;
        if answer.status == 200 {
            return text(&event, "eventId");
        }
        answer.refused(503, "unavailable");
        assert!(started.elapsed() < COMES_BACK, "it does not come back");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// The primary is killed, the standby promoted: the URL names both.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_primary_is_replaced_within_seconds() {
    let pair = Pair::start().await;
    let app = server(pair.both()).await;
    let people = people(&app).await;
    let probe = app.session("probe").await;
    let (mut probed, mut took) = (String::new(), Duration::MAX);
    let mut sent = send_amid(&app, &people, async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        pair.on(|pair| {
            pair.primary.kill();
            pair.standby.promote();
        })
        .await;
        let promoted = Instant::now();
        probed = first_success(&app, &probe).await;
        took = promoted.elapsed();
    })
    .await;
    assert!(took <= SOON, "{took:?}");
    sent.push(probed);
    all_once(&app, sent).await;
    app.finish().await;
}

/// The primary is cut off without a word: nobody closes its connections, new ones lead to the standby.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_nobody_cuts_are_given_up_at_the_deadline() {
    let pair = Pair::start().await;
    let (proxy, url) = Proxy::of(&pair.url).await;
    let app = server(url).await;
    let people = people(&app).await;
    let probe = app.session("probe").await;
    let (mut probed, mut took) = (String::new(), Duration::MAX);
    let mut sent = send_amid(&app, &people, async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        proxy.freeze();
        pair.on(|pair| pair.standby.promote()).await;
        proxy.redirect(&pair.standby_url());
        let promoted = Instant::now();
        probed = first_success(&app, &probe).await;
        took = promoted.elapsed();
    })
    .await;
    assert!(took <= DEADLINE + SOON, "{took:?}");
    sent.push(probed);
    all_once(&app, sent).await;
    app.finish().await;
}

/// For a while all connections are to a standby: none of them is kept.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_standby_that_was_reached_for_a_while_is_forgotten() {
    let pair = Pair::start().await;
    let (proxy, url) = Proxy::of(&pair.url).await;
    let app = server(url).await;
    let people = people(&app).await;
    let probe = app.session("probe").await;
    let mut probed = Vec::new();
    let mut sent = send_amid(&app, &people, async {
        proxy.redirect(&pair.standby_url());
        proxy.cut();
        tokio::time::sleep(Duration::from_secs(2)).await;
        proxy.redirect(&pair.url);
        tokio::time::sleep(Duration::from_secs(3)).await;
        let started = Instant::now();
        while started.elapsed() < Duration::from_secs(3) {
            let event = app.event(&probe, "purchase", &json!({}));
            app.ingest(&probe, std::slice::from_ref(&event)).await.ok();
            app.poll(&probe, "").await.ok();
            app.get(&app.path("/surveys"), &app.viewer()).await.ok();
            assert_eq!(app.get("/readyz", &Credential::none()).await.status, 200);
            probed.push(text(&event, "eventId"));
        }
    })
    .await;
    sent.append(&mut probed);
    all_once(&app, sent).await;
    app.finish().await;
}

/// Connections stay, and the host behind them takes no writes from now on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_on_which_nothing_can_be_written_is_dropped() {
    let url = postgres::database().await;
    let db = Db::open(&Options::new(url, 2)).await.unwrap();
    let mut tx = db.write_each().await.unwrap();
    tx.sql("CREATE TABLE kept (n BIGINT)")
        .execute()
        .await
        .unwrap();
    tx.sql("SET default_transaction_read_only = on")
        .execute()
        .await
        .unwrap();
    let error = tx
        .sql("INSERT INTO kept VALUES (1)")
        .execute()
        .await
        .unwrap_err();
    assert!(error.is_temporary(), "{error:?}");
    drop(tx);
    let mut tx = db.write_each().await.unwrap();
    let written = tx.sql("INSERT INTO kept VALUES (1)").execute().await;
    assert_eq!(written.unwrap(), 1);
    drop(tx);
    db.close().await;
}

/// Statements, begins and commits are given up at the deadline, and what waits behind them goes on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_wait_for_the_database_is_without_end() {
    let (proxy, url) = Proxy::of(&postgres::database().await).await;
    let deadline = Duration::from_secs(1);
    let options = Options {
        deadline,
        ..Options::new(url, 1)
    };
    let db = Db::open(&options).await.unwrap();
    let mut commits = db.write().await.unwrap();
    commits.sql("SELECT 1").execute().await.unwrap();
    proxy.freeze();
    let started = Instant::now();
    let error = commits.commit().await.unwrap_err();
    assert!(error.is_temporary(), "{error:?}");
    for begins in [true, false] {
        // The frozen connection is gone; so is this one.
        let mut tx = if begins {
            db.write().await.unwrap()
        } else {
            db.read().await.unwrap()
        };
        proxy.freeze();
        let error = tx.sql("SELECT 1").execute().await.unwrap_err();
        assert!(error.is_temporary(), "{error:?}");
    }
    assert!(started.elapsed() < 3 * deadline + Duration::from_secs(10));
    db.close().await;
}

/// The command says what a standby is before a server is started on it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn check_says_that_a_database_is_a_standby() {
    let pair = Pair::start().await;
    let folder = TempDir::with_prefix("nudge-test-").unwrap();
    let check = |url: &str| {
        let mut program = child::program(site!());
        program.args(["check", "--database-url", url, "--data-dir"]);
        program.arg(folder.path()).output().unwrap()
    };
    let refused = check(&pair.standby_url());
    assert!(!refused.status.success());
    let complaint = String::from_utf8(refused.stderr).unwrap();
    assert!(complaint.contains("it is a standby"), "{complaint}");
    assert!(check(&pair.both()).status.success());
}

/// Who asks whether the server is ready hears that it can't write, though it can read.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_cannot_say_that_it_lives_is_not_ready() {
    let app = TestApp::start_with(site!(), Backend::Postgres, |config: &mut Config| {
        config.pipeline.node_timeout_seconds = 3;
    })
    .await;
    let ready = async |status: u16| {
        let what = format!("/readyz answers {status}");
        app.until(&what, async || {
            app.get("/readyz", &Credential::none()).await.status == status
        })
        .await;
    };
    ready(200).await;
    let db = Db::open(&Options::new(app.config.database.url.clone(), 1))
        .await
        .unwrap();
    let mut tx = db.write().await.unwrap();
    tx.sql("LOCK TABLE nodes IN EXCLUSIVE MODE")
        .execute()
        .await
        .unwrap();
    ready(503).await;
    tx.rollback().await.unwrap();
    ready(200).await;
    db.close().await;
    app.finish().await;
}

/// Who watches the server hears of a database that says nothing before Prometheus gives up, which is after ten seconds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn metrics_wait_for_no_database_that_is_silent() {
    let (proxy, url) = Proxy::of(&postgres::database().await).await;
    let app = TestApp::start_with(site!(), Backend::Sqlite, |config: &mut Config| {
        config.database.url = url;
    })
    .await;
    proxy.hold(true);
    let nobody = Credential::none();
    let answer = app.get("/metrics", &nobody);
    let answer = tokio::time::timeout(Duration::from_secs(10), answer).await;
    let metrics = answer.expect("metrics within ten seconds").text;
    for line in ["nudge_database_up 0", "nudge_ready 0"] {
        assert!(metrics.lines().any(|told| told == line), "{metrics}");
    }
    proxy.hold(false);
    app.until("the database is up", async || {
        let metrics = app.get("/metrics", &Credential::none()).await.text;
        metrics.lines().any(|told| told == "nudge_database_up 1")
    })
    .await;
    app.finish().await;
}

/// Who asks whether the server is ready hears that what it is connected to is a standby.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_with_a_standby_alone_is_not_ready() {
    let pair = Pair::start().await;
    let (proxy, url) = Proxy::of(&pair.url).await;
    let app = server(url).await;
    proxy.redirect(&pair.standby_url());
    proxy.cut();
    app.until("/readyz says why", async || {
        let ready = app.get("/readyz", &Credential::none()).await;
        ready.status == 503 && ready.text.contains("the database takes no writes")
    })
    .await;
    proxy.redirect(&pair.url);
    proxy.cut();
    app.until("/readyz answers 200", async || {
        app.get("/readyz", &Credential::none()).await.status == 200
    })
    .await;
    app.finish().await;
}
