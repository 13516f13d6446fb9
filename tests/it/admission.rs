//! How much a server takes in hand, and what becomes of the rest (contract 14): it is refused with when to come back,
//! everything else goes on, and afterwards everything is as before.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use nudge_apps::key::Kind;
use nudge_db::{Dialect, Tx};
use serde_json::json;
use tests::{Answer, Credential, Session, TestApp, client, on_both_backends};
use tokio::task::JoinSet;

on_both_backends!(
    requests_beyond_the_limit_are_told_to_come_back,
    one_app_leaves_places_to_the_others,
    polls_beyond_the_limit_are_told_to_come_back,
    polls_and_slow_bodies_take_no_places,
    bodies_take_so_much_memory_and_no_more,
    bodies_of_an_address_leave_room_to_others,
    connections_beyond_the_limit_hear_why,
);

/// Longer than anything takes to be answered.
const HANGS: Duration = Duration::from_mins(1);

/// Has the database take no events until it is dropped.
async fn hold(app: &TestApp) -> Tx {
    let mut held = app.services().db.write().await.unwrap();
    if held.dialect() == Dialect::Postgres {
        held.sql("LOCK TABLE events IN SHARE ROW EXCLUSIVE MODE")
            .execute()
            .await
            .unwrap();
    }
    held
}

fn was_shed(answer: &Answer) -> bool {
    if answer.status != 503 {
        return false;
    }
    answer.refused(503, "unavailable");
    answer
        .header("retry-after")
        .parse::<u64>()
        .is_ok_and(|seconds| seconds >= 1)
}

/// Sends a request with one event.
fn buys(app: &TestApp, session: &Session, requests: &mut JoinSet<Answer>) {
    let event = app.event(session, "bought", &json!({}));
    let request = app
        .request(
            reqwest::Method::POST,
            "/v1/sdk/ingest",
            &session.credential(),
        )
        .json(&session.batch(&[event]));
    requests.spawn(client::send(request));
}

/// Opens a poll that waits as long as polls may.
pub(crate) fn poll(app: &TestApp, session: &Session, requests: &mut JoinSet<Answer>) {
    let path = "/v1/sdk/instructions?wait=25";
    let request = app.request(reqwest::Method::GET, path, &session.credential());
    requests.spawn(client::send(request));
}

/// Waits until so many polls are open and have looked.
pub(crate) async fn open_polls(app: &TestApp, count: usize) {
    app.until("the polls are open", async || {
        app.services().polls.count() == count && app.services().polls.looks() >= count as u64
    })
    .await;
}

async fn requests_beyond_the_limit_are_told_to_come_back(app: &mut TestApp) {
    app.config.server.max_requests = 4;
    app.config.server.app_share = 1.0;
    app.config.database.acquire_timeout_seconds = 120;
    app.restart().await;
    let ada = app.session("ada").await;
    let held = hold(app).await;
    let mut requests = JoinSet::new();
    for _ in 0..20 {
        buys(app, &ada, &mut requests);
    }
    // All but those that have the places.
    for _ in 0..16 {
        let answer = requests.join_next().await.unwrap().unwrap();
        assert!(was_shed(&answer), "{} {}", answer.status, answer.text);
    }
    assert_eq!(app.get("/livez", &Credential::none()).await.status, 200);
    let viewer = app.get(&app.path("/surveys"), &app.viewer()).await;
    assert!(was_shed(&viewer), "people wait as SDKs do");
    for page in [
        "/openapi.json",
        "/docs",
        "/console/",
        "/.well-known/jwks.json",
    ] {
        let answer = app.get(page, &Credential::none()).await;
        assert!(was_shed(&answer), "{page}: {}", answer.status);
    }

    drop(held);
    for answer in requests.join_all().await {
        assert_eq!(answer.ok()["accepted"], 1);
    }
    app.get(&app.path("/surveys"), &app.viewer()).await.ok();
    app.settle().await;
    assert_eq!(app.stored("bought").await, 4);
}

async fn one_app_leaves_places_to_the_others(app: &mut TestApp) {
    app.config.server.max_requests = 4;
    app.config.server.app_share = 0.5;
    app.config.database.acquire_timeout_seconds = 120;
    app.restart().await;
    let ada = app.session("ada").await;
    let (_, key) = app
        .another_app(app.access.workspace_id, Kind::Write, &[])
        .await;
    let other = app
        .post(
            "/v1/sdk/session",
            &Credential::bearer(&key),
            &json!({"anonymousId": "eve"}),
        )
        .await
        .ok();
    let token = tests::session::text(&other, "subjectToken");
    let eve = Credential::bearer(&key).and("x-service-subject-token", &token);
    let held = hold(app).await;
    let mut requests = JoinSet::new();
    for _ in 0..12 {
        buys(app, &ada, &mut requests);
    }
    for _ in 0..10 {
        let answer = requests.join_next().await.unwrap().unwrap();
        // Those that all came in at once met no place before they met their app's share.
        if answer.status == 429 {
            answer.refused(429, "rate_limited");
            assert_eq!(answer.header("retry-after"), "1");
        } else {
            assert!(was_shed(&answer), "{} {}", answer.status, answer.text);
        }
    }
    app.poll(&ada, "").await.refused(429, "rate_limited");
    app.get("/v1/sdk/instructions", &eve).await.ok();
    drop(held);
    for answer in requests.join_all().await {
        answer.ok();
    }
    app.poll(&ada, "").await.ok();
}

async fn polls_beyond_the_limit_are_told_to_come_back(app: &mut TestApp) {
    app.config.server.max_polls = 3;
    app.config.server.app_share = 1.0;
    app.restart().await;
    app.survey(&json!({"kind": "event", "eventName": "purchase"}))
        .await;
    let ada = app.session("ada").await;
    let bob = app.session("bob").await;
    let mut polls = JoinSet::new();
    for _ in 0..3 {
        poll(app, &ada, &mut polls);
    }
    open_polls(app, 3).await;
    assert!(was_shed(&app.poll(&bob, "?wait=25").await));
    app.poll(&bob, "").await.ok();

    assert_eq!(app.fires(&ada, "purchase", &json!({})).await, 1);
    for answer in polls.join_all().await {
        assert_eq!(answer.ok()["items"].as_array().unwrap().len(), 1);
    }
    assert_eq!(app.fires(&bob, "purchase", &json!({})).await, 1);
    app.poll(&bob, "?wait=25").await.ok();
}

/// Many more wait, for instructions and for the rest of their bodies, than may be worked on.
async fn polls_and_slow_bodies_take_no_places(app: &mut TestApp) {
    app.config.server.max_requests = 2;
    app.config.server.app_share = 1.0;
    app.restart().await;
    app.survey(&json!({"kind": "event", "eventName": "purchase"}))
        .await;
    let ada = app.session("ada").await;
    let bob = app.session("bob").await;
    let mut polls = JoinSet::new();
    for count in 1..=20 {
        poll(app, &ada, &mut polls);
        open_polls(app, count).await;
    }
    let _slow: Vec<TcpStream> = (0..5).map(|_| half_a_body(app, &bob, 10)).collect();
    app.get(&app.path("/surveys"), &app.viewer()).await.ok();
    assert_eq!(app.fires(&bob, "purchase", &json!({})).await, 1);
    assert_eq!(app.fires(&ada, "purchase", &json!({})).await, 1);
    for answer in polls.join_all().await {
        assert_eq!(answer.ok()["items"].as_array().unwrap().len(), 1);
    }
}

fn connect(app: &TestApp) -> TcpStream {
    let address = app.access.base_url.trim_start_matches("http://");
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(HANGS)).unwrap();
    stream
}

/// A connection with a request of 1 MiB of which so many bytes have been sent.
fn half_a_body(app: &TestApp, session: &Session, bytes: usize) -> TcpStream {
    let (key, token) = (&app.access.write_key, &session.token);
    let head = format!(
        "Content-Type: application/json\r\nAuthorization: Bearer {key}\r\nX-Service-Subject-Token: {token}\r\n"
    );
    part_of_a_body(app, "/v1/sdk/ingest", &head, bytes)
}

fn part_of_a_body(app: &TestApp, path: &str, headers: &str, bytes: usize) -> TcpStream {
    let mut stream = connect(app);
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1048576\r\n\
         {headers}\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(&vec![b' '; bytes]).unwrap();
    stream
}

async fn bodies_take_so_much_memory_and_no_more(app: &mut TestApp) {
    // As little as may be: four of the largest bodies.
    app.config.server.body_memory_bytes = 1;
    app.restart().await;
    let ada = app.session("ada").await;
    let bob = app.session("bob").await;
    let sent: Vec<TcpStream> = (0..4)
        .map(|_| half_a_body(app, &bob, 1024 * 1024 - 1))
        .collect();
    let buys = async || {
        let event = app.event(&ada, "bought", &json!({}));
        app.ingest(&ada, &[event]).await
    };
    let all = 4 * 1024 * 1024;
    app.until("all bodies have arrived", async || {
        app.services().admission.body_bytes() == all
    })
    .await;
    assert!(was_shed(&buys().await));
    app.poll(&ada, "").await.ok();

    drop(sent);
    app.until("there is room again", async || buys().await.status == 200)
        .await;
}

/// Nobody needs a credential for sending a body.
async fn bodies_of_an_address_leave_room_to_others(app: &mut TestApp) {
    const MIB: usize = 1024 * 1024;
    // Four of the largest bodies are a quarter of it.
    app.config.server.body_memory_bytes = 16 * MIB;
    app.config.server.trusted_proxies = 1;
    app.restart().await;
    let ada = app.session("ada").await;
    let send = |more: &str| {
        let head = format!("Content-Type: text/plain\r\n{more}");
        part_of_a_body(app, "/v1/sdk/beacon", &head, MIB - 1)
    };
    let buys = async |from: &str| {
        let event = app.event(&ada, "bought", &json!({}));
        let credential = ada.credential().and("x-forwarded-for", from);
        let body = ada.batch(&[event]);
        app.post("/v1/sdk/ingest", &credential, &body).await
    };
    // What is in one /64 of IPv6 is one address.
    let mut bodies: Vec<TcpStream> = [1, 2, 3, 4]
        .map(|host| send(&format!("X-Forwarded-For: 2001:db8::{host}\r\n")))
        .into();
    let taken = || app.services().admission.body_bytes();
    app.until("its share is taken", async || taken() == 4 * MIB)
        .await;
    assert!(was_shed(&buys("2001:db8::5").await));
    buys("2001:db8:0:1::1").await.ok();
    buys("192.0.2.1").await.ok();

    // Whom no trusted proxy names is behind one that nobody knows of: this machine is no stranger.
    bodies.extend((0..6).map(|_| send("")));
    app.until("more than a share is taken", async || taken() == 10 * MIB)
        .await;
    drop(bodies);
    app.until("there is room again", async || {
        buys("2001:db8::5").await.status == 200
    })
    .await;
}

/// Asks on a connection for a path; answers the whole answer in lower case.
fn ask(stream: &mut TcpStream, path: &str) -> String {
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let (mut answer, mut buffer) = (String::new(), [0; 4096]);
    loop {
        let whole = answer.split_once("\r\n\r\n").is_some_and(|(head, body)| {
            let lines = head
                .lines()
                .filter_map(|line| line.strip_prefix("content-length: "));
            lines.map(|length| length.parse::<usize>().unwrap()).next() == Some(body.len())
        });
        if whole {
            return answer;
        }
        let length = stream.read(&mut buffer).unwrap();
        assert_ne!(length, 0, "closed after {answer}");
        answer.push_str(
            &std::str::from_utf8(&buffer[..length])
                .unwrap()
                .to_lowercase(),
        );
    }
}

async fn connections_beyond_the_limit_hear_why(app: &mut TestApp) {
    app.config.server.max_connections = 2;
    app.restart().await;
    app.survey(&json!({"kind": "event", "eventName": "purchase"}))
        .await;
    let ada = app.session("ada").await;
    // Connections that the server works for; others would give way.
    let mut polls = JoinSet::new();
    for count in 1..=2 {
        poll(app, &ada, &mut polls);
        open_polls(app, count).await;
    }
    let refused = ask(&mut connect(app), "/v1/errors");
    assert!(refused.starts_with("http/1.1 503"), "{refused}");
    for part in [
        "\r\nretry-after: 1\r\n",
        "\r\nconnection: close\r\n",
        "\r\ncontent-type: application/problem+json\r\n",
        "\"code\":\"unavailable\"",
    ] {
        assert!(refused.contains(part), "{part} {refused}");
    }
    let alive = ask(&mut connect(app), "/livez");
    assert!(alive.starts_with("http/1.1 200"), "{alive}");
    // Those that are open notice nothing.
    assert!(polls.try_join_next().is_none());

    polls.abort_all();
    app.until("there is room again", async || {
        ask(&mut connect(app), "/v1/errors").starts_with("http/1.1 200")
    })
    .await;
}
