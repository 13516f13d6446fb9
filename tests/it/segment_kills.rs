//! Changes of segments are told to each person once, while everybody is gone through, events arrive, people merge, and a server is killed
//! and restarted at any moment: the only one, and one of two.

use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nudge_db::Db;
use nudge_platform::config::Config;
use serde_json::{Value, json};
use tempfile::TempDir;
use tests::client::{self, Credential};
use tests::{Backend, Child, Session, TestApp, postgres, site};

use crate::identity;
use crate::segments::{plan, segment};

/// Several pages of a sweep.
const PEOPLE: u64 = 3_000;
/// People who enter and leave.
const MOVING: usize = 8;
/// In each all of them enter or leave, and two people become one.
const ROUNDS: usize = 4;
/// After how many milliseconds a server is killed, one after the other.
const LIFETIMES: [u64; 8] = [30, 150, 400, 90, 700, 250, 1_200, 50];
/// Longer than anything takes to come back.
const COMES_BACK: Duration = Duration::from_mins(1);

/// A request that may be sent again: it says itself what it is.
struct Request {
    path: &'static str,
    credential: Credential,
    body: Value,
}

/// Two devices of somebody, of which one is known.
struct Pair {
    visits: Vec<Request>,
    merge: Request,
}

/// The server that is killed until its lifetimes are used up, and perhaps another one.
struct Servers {
    folder: TempDir,
    config: Config,
    http: reqwest::Client,
    lifetimes: std::array::IntoIter<u64, 8>,
    victim: Victim,
    other: Option<Child>,
    turn: usize,
}

struct Victim {
    access: Value,
    killer: Option<JoinHandle<()>>,
    child: Option<Child>,
}

impl Servers {
    fn start(folder: TempDir, config: Config) -> Self {
        let is_shared = config.database.url.starts_with("postgres");
        let mut lifetimes = LIFETIMES.into_iter();
        let victim = Victim::start(folder.path(), &config, lifetimes.next());
        let other = is_shared.then(|| {
            let data = folder.path().join("other");
            std::fs::create_dir(&data).unwrap();
            Child::start_with(site!(), &data, &variables(&config))
        });
        Self {
            folder,
            config,
            http: client::build(),
            lifetimes,
            victim,
            other,
            turn: 0,
        }
    }

    /// Restarts the server that was killed; the sweep is due by then.
    async fn revive(&mut self) {
        let Some(killer) = self.victim.killer.take_if(|killer| killer.is_finished()) else {
            return;
        };
        killer.join().unwrap();
        sweep_is_due(&self.config).await;
        let lifetime = self.lifetimes.next();
        self.victim = Victim::start(self.folder.path(), &self.config, lifetime);
    }

    /// The next server's address and tokens, in turns.
    fn access(&mut self) -> &Value {
        self.turn += 1;
        match &self.other {
            Some(other) if self.turn.is_multiple_of(2) => &other.access,
            _ => &self.victim.access,
        }
    }

    /// Sends a request until a server answers it.
    async fn send(
        &mut self,
        request: impl Fn(&reqwest::Client, &Value) -> reqwest::RequestBuilder,
    ) -> Value {
        let started = Instant::now();
        loop {
            self.revive().await;
            let http = self.http.clone();
            let sent = request(&http, self.access()).send().await;
            if let Ok(answer) = sent
                && answer.status() != 503
            {
                let status = answer.status();
                // An answer that breaks off was killed on its way.
                if let Ok(text) = answer.text().await {
                    assert_eq!(status, 200, "{text}");
                    let mut data: Value = serde_json::from_str(&text).unwrap();
                    return data["data"].take();
                }
            }
            assert!(started.elapsed() < COMES_BACK, "no server answers");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    async fn post(&mut self, request: &Request) -> Value {
        self.send(|http, access| {
            let url = format!("{}{}", access["baseUrl"].as_str().unwrap(), request.path);
            request.credential.sign(http.post(url)).json(&request.body)
        })
        .await
    }

    /// Waits until surveys have fired so often.
    async fn fired(&mut self, surveys: &[String], expected: &[usize]) {
        let started = Instant::now();
        loop {
            let mut found = Vec::new();
            for path in surveys {
                let page = self
                    .send(|http, access| {
                        let url = format!("{}{path}", access["baseUrl"].as_str().unwrap());
                        http.get(url)
                            .bearer_auth(access["viewerToken"].as_str().unwrap())
                    })
                    .await;
                found.push(page["items"].as_array().unwrap().len());
            }
            if found == expected {
                return;
            }
            assert!(
                started.elapsed() < COMES_BACK,
                "{found:?} instead of {expected:?}"
            );
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Lets the server live on, and stops all; those that are killed yet are started once more.
    async fn stop(mut self) -> TempDir {
        while self.victim.killer.is_some() {
            self.revive().await;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        for child in self.victim.child.into_iter().chain(self.other) {
            assert_eq!(child.terminate(), Some(0));
        }
        self.folder
    }
}

impl Victim {
    fn start(folder: &std::path::Path, config: &Config, lifetime: Option<u64>) -> Self {
        let child = Child::start_with(site!(), folder, &variables(config));
        let access = child.access.clone();
        let Some(lifetime) = lifetime else {
            return Self {
                access,
                killer: None,
                child: Some(child),
            };
        };
        let killer = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(lifetime));
            child.kill();
        });
        Self {
            access,
            killer: Some(killer),
            child: None,
        }
    }
}

fn variables(config: &Config) -> Vec<(&str, &str)> {
    if !config.database.url.starts_with("postgres") {
        return Vec::new();
    }
    vec![
        ("NUDGE_DATABASE__URL", config.database.url.as_str()),
        ("NUDGE_DATABASE__CONNECTIONS", "5"),
        ("NUDGE_PIPELINE__NODE_TIMEOUT_SECONDS", "5"),
    ]
}

async fn sweep_is_due(config: &Config) {
    let db = Db::open(&config.database_options(1)).await.unwrap();
    let mut tx = db.write().await.unwrap();
    let made = tx.sql("UPDATE segment_sweeps SET next_at = 0").execute();
    assert_eq!(made.await.unwrap(), 1);
    tx.commit().await.unwrap();
    db.close().await;
}

/// A survey that a change of a segment fires: where its recipients are listed.
async fn on(app: &TestApp, segment: &Value, change: &str) -> String {
    let trigger = json!({"kind": "segment", "segmentId": segment["id"], "on": change});
    let survey = app.survey(&trigger).await;
    app.path(&format!("/surveys/{survey}/recipients?limit=200"))
}

fn visit(app: &TestApp, session: &Session) -> Request {
    let events = [
        app.event(session, "visit", &json!({})),
        app.event(session, "visit", &json!({})),
    ];
    Request {
        path: "/v1/sdk/ingest",
        credential: session.credential(),
        body: session.batch(&events),
    }
}

async fn pair(app: &TestApp, customer: &identity::Backend, number: usize) -> Pair {
    let name = format!("e-{number}");
    let phone = customer
        .identify(app, &format!("phone-{number}"), &name)
        .await;
    let web = app.session(&format!("web-{number}")).await;
    let token = customer.token(app, &name);
    Pair {
        visits: vec![visit(app, &phone), visit(app, &web)],
        merge: Request {
            path: "/v1/sdk/session",
            credential: Credential::bearer(&app.access.write_key),
            body: json!({"anonymousId": web.anonymous_id, "identityToken": token}),
        },
    }
}

fn planned(app: &TestApp, session: &Session, plan: &str) -> Request {
    Request {
        path: "/v1/sdk/user-properties",
        credential: session.credential(),
        body: json!({"anonymousId": session.anonymous_id, "mutationId": app.id(), "set": {"plan": plan}}),
    }
}

async fn nothing_is_left(app: &TestApp) {
    app.settle().await;
    app.until("everything was looked at and told", async || {
        let left: Vec<(i64,)> = app
            .rows(
                "SELECT (SELECT count(*) FROM jobs WHERE completed_at IS NULL) + (SELECT count(*) FROM segment_checks)
                      + (SELECT count(*) FROM occasions)",
            )
            .await;
        left == [(0,)]
    })
    .await;
    app.settle().await;
}

async fn survives_kills(backend: Backend) {
    let folder = TempDir::with_prefix("nudge-test-").unwrap();
    let mut config = TestApp::config(site!(), folder.path());
    if backend == Backend::Postgres {
        config.database.url = postgres::database().await;
        config.database.connections = 5;
        config.pipeline.node_timeout_seconds = 5;
    }
    let app = TestApp::open(site!(), config.clone()).await.unwrap();
    app.people(PEOPLE).await;
    let pros = segment(&app, "pros", plan("pro")).await;
    let visitors = json!({"include": {"kind": "event", "eventName": "visit", "withinDays": 7,
        "count": {"operator": "gte", "n": 4}}});
    let regulars = segment(&app, "regulars", visitors).await;
    let surveys = [
        on(&app, &pros, "enter").await,
        on(&app, &pros, "exit").await,
        on(&app, &regulars, "enter").await,
    ];
    let customer = identity::Backend::new(&app).await;
    let mut rounds = Vec::new();
    let mut sessions = Vec::new();
    for number in 0..MOVING {
        sessions.push(app.session(&format!("mover-{number}")).await);
    }
    for number in 0..ROUNDS {
        let plan = if number % 2 == 0 { "pro" } else { "free" };
        let moves = sessions.iter().map(|session| planned(&app, session, plan));
        let moves: Vec<Request> = moves.collect();
        rounds.push((moves, pair(&app, &customer, number).await));
    }
    nothing_is_left(&app).await;
    app.finish().await;

    sweep_is_due(&config).await;
    let mut servers = Servers::start(folder, config.clone());
    let (mut entered, mut left) = (0, 0);
    for (number, (moves, pair)) in rounds.iter().enumerate() {
        for (place, request) in moves.iter().enumerate() {
            servers.post(request).await;
            if let Some(visit) = pair.visits.get(place) {
                servers.post(visit).await;
            }
        }
        servers.post(&pair.merge).await;
        if number % 2 == 0 {
            entered += MOVING;
        } else {
            left += MOVING;
        }
        // Whoever enters and leaves before anybody looks has done neither.
        servers.fired(&surveys, &[entered, left, number + 1]).await;
    }
    let folder = servers.stop().await;

    let app = TestApp::open(site!(), config).await.unwrap();
    app.advance(3_600);
    nothing_is_left(&app).await;
    let rows: Vec<(i64, i64)> = app
        .rows(
            "SELECT count(*), times FROM (SELECT count(*) AS times FROM instructions GROUP BY campaign_id, subject_id) AS told
             GROUP BY times ORDER BY times",
        )
        .await;
    let (merged, moved) = (i64::try_from(ROUNDS), i64::try_from(2 * MOVING));
    assert_eq!(rows, [(merged.unwrap(), 1), (moved.unwrap(), 2)]);
    let members: Vec<(i64,)> = app.rows("SELECT count(*) FROM segment_members").await;
    assert_eq!(members, [(merged.unwrap(),)], "regulars, and no pros");
    app.finish().await;
    drop(folder);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_survive_kills_on_sqlite() {
    Box::pin(survives_kills(Backend::Sqlite)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_survive_kills_of_one_of_two_on_postgres() {
    Box::pin(survives_kills(Backend::Postgres)).await;
}
