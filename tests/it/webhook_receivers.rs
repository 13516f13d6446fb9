//! Receivers of webhooks that behave badly: what they are sent, and what others notice of them: nothing
//! (specification 6.3, contract 10).

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use nudge_campaigns::webhooks::EventType::{self, Delivered, Displayed, Opened, Sent};
use serde_json::{Value, json};
use tests::session::text;
use tests::{TestApp, on_both_backends};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use uuid::Uuid;

use crate::receiver::{Receiver, Reply};

on_both_backends!(
    a_burst_goes_on_past_a_failure_and_a_request_that_hangs,
    each_kind_of_bad_answer_is_heeded_once,
    one_dead_receiver_among_a_hundred_is_nobody_elses_trouble,
);

const SUBJECT: Uuid = Uuid::from_u128(42);
const ARRIVED: &str = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
/// The pause between two bytes of an answer that comes slowly.
const BYTE: Duration = Duration::from_millis(50);

/// What a receiver does with its first request; later ones arrive.
#[derive(Clone, Copy, Debug, PartialEq)]
enum First {
    /// It answers.
    Says(&'static str),
    /// It never answers.
    Hangs,
    /// It breaks off before it answers.
    Resets,
    /// It breaks off amid the answer.
    BreaksOff,
    /// It gives the head of an answer byte by byte.
    Dribbles,
    /// It says 200, and gives a body byte by byte and without end.
    NeverEnds,
    /// It says 200, and more than anybody reads.
    Floods,
}

/// What is behind an address: what it does first, and the ids of the messages that came.
#[derive(Clone)]
struct Raw {
    first: First,
    got: Arc<Mutex<Vec<String>>>,
}

impl Raw {
    /// Listens at a port of its own.
    async fn start(first: First, tasks: &mut JoinSet<()>) -> (String, Self) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let raw = Self {
            first,
            got: Arc::default(),
        };
        let listening = raw.clone();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let raw = listening.clone();
                connections.spawn(async move { raw.answer(stream).await });
            }
        });
        (url, raw)
    }

    /// Reads a request and answers it; whoever breaks off meanwhile is no failure of the test.
    async fn answer(&self, mut stream: TcpStream) {
        let mut request = Vec::new();
        while !request.ends_with(b"}}") {
            if stream.read_buf(&mut request).await.unwrap_or(0) == 0 {
                return;
            }
        }
        let request = String::from_utf8(request).unwrap();
        let id = request
            .lines()
            .find_map(|line| line.strip_prefix("webhook-id: "));
        let is_first = {
            let mut got = self.got.lock().unwrap();
            got.push(id.unwrap().to_owned());
            got.len() == 1
        };
        if !is_first {
            drop(stream.write_all(ARRIVED.as_bytes()).await);
            return;
        }
        match self.first {
            First::Says(answer) => drop(stream.write_all(answer.as_bytes()).await),
            First::Hangs => std::future::pending().await,
            First::Resets => drop(stream.set_zero_linger()),
            First::BreaksOff => {
                drop(
                    stream
                        .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nbeg")
                        .await,
                );
            }
            First::Dribbles => {
                let mut bytes = b"HTTP/1.1 200 OK\r\nx: ".iter().chain(b"y".iter().cycle());
                while let Some(byte) = bytes.next()
                    && stream.write_all(&[*byte]).await.is_ok()
                {
                    tokio::time::sleep(BYTE).await;
                }
            }
            First::NeverEnds => {
                drop(
                    stream
                        .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 99999\r\n\r\n")
                        .await,
                );
                while stream.write_all(b"y").await.is_ok() {
                    tokio::time::sleep(BYTE).await;
                }
            }
            First::Floods => {
                drop(
                    stream
                        .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 99999999\r\n\r\n")
                        .await,
                );
                let much = vec![b'y'; 16 * 1024];
                while stream.write_all(&much).await.is_ok() {}
            }
        }
    }
}

async fn attempts(app: &TestApp, webhook: &str) -> Vec<Value> {
    let path = app.path(&format!("/push/webhooks/{webhook}/attempts?limit=200"));
    let list = app.get(&path, &app.admin()).await.ok();
    list["items"].as_array().unwrap().clone()
}

async fn waiting(app: &TestApp) -> usize {
    let rows: Vec<(String,)> = app
        .rows("SELECT state FROM webhook_messages WHERE due_at IS NOT NULL")
        .await;
    rows.len()
}

async fn subscribe(app: &TestApp, url: &str, events: &[EventType]) -> String {
    let events: Vec<&str> = events.iter().map(|event| event.name()).collect();
    let body = json!({"url": url, "eventTypes": events});
    let path = app.path("/push/webhooks");
    text(&app.post(&path, &app.admin(), &body).await.data(201), "id")
}

async fn a_burst_goes_on_past_a_failure_and_a_request_that_hangs(app: &mut TestApp) {
    let receiver = Receiver::start().await;
    let mut replies = vec![Reply::Status(200); 150];
    replies[60] = Reply::Status(500);
    replies[100] = Reply::Hang;
    receiver.reply("/", &replies);
    receiver.subscribe(app, "/", &[Sent]).await;
    let burst: Vec<_> = (0..200)
        .map(|_| app.transition(SUBJECT, app.id(), Sent))
        .collect();
    app.enqueue(&burst, true).await;

    let got = receiver.wait(app, "/", 200).await;
    let ids: HashSet<&str> = got.iter().map(|one| one.header("webhook-id")).collect();
    assert_eq!(ids.len(), 200);
    app.until("only those two wait", async || waiting(app).await == 2)
        .await;
    receiver.release();
    app.advance(60);
    app.until("nothing waits", async || waiting(app).await == 0)
        .await;
    let got = receiver.received("/");
    let mut again: Vec<&str> = got[200..].iter().map(|one| &*one.body).collect();
    // On a busy machine the request that hangs ends by its time-out before it is released, and is sent again too.
    let timed_out: Vec<(i64,)> = app
        .rows("SELECT attempt FROM webhook_attempts WHERE status_code IS NULL")
        .await;
    let mut expected = vec![&*got[60].body];
    expected.extend(timed_out.iter().map(|_| &*got[100].body));
    again.sort_unstable();
    expected.sort_unstable();
    assert_eq!(again, expected);
    for one in &got[200..] {
        assert_eq!(one.header("x-service-attempt"), "2");
    }
    // What was claimed and not sent counts as no attempt.
    let attempts: Vec<(i64,)> = app.rows("SELECT attempts FROM webhook_messages").await;
    let attempts: i64 = attempts.iter().map(|(count,)| count).sum();
    assert_eq!(usize::try_from(attempts).unwrap(), got.len());
}

async fn each_kind_of_bad_answer_is_heeded_once(app: &mut TestApp) {
    // How it begins, the status that is noted, and whether the message is sent again.
    let table = [
        (First::Hangs, None, true),
        (First::Resets, None, true),
        (First::BreaksOff, None, true),
        (First::Dribbles, None, true),
        (First::NeverEnds, None, true),
        (First::Floods, Some(200), false),
        (First::Says("no HTTP\r\n\r\n"), None, true),
        (
            First::Says("HTTP/1.1 503 Busy\r\ncontent-length: 0\r\n\r\n"),
            Some(503),
            true,
        ),
        (
            First::Says("HTTP/1.1 429 Slowly\r\nretry-after: 40\r\ncontent-length: 0\r\n\r\n"),
            Some(429),
            true,
        ),
        (
            First::Says("HTTP/1.1 408 Late\r\ncontent-length: 0\r\n\r\n"),
            Some(408),
            true,
        ),
        (
            First::Says("HTTP/1.1 404 Gone\r\ncontent-length: 0\r\n\r\n"),
            Some(404),
            false,
        ),
        (First::Says(ARRIVED), Some(200), false),
    ];
    let mut tasks = JoinSet::new();
    let mut receivers = Vec::new();
    for (first, status, again) in table {
        let (url, raw) = Raw::start(first, &mut tasks).await;
        let id = subscribe(app, &url, &[Sent]).await;
        receivers.push((raw, id, status, again));
    }
    app.transit(SUBJECT, app.id(), &[Sent]).await;
    for (raw, webhook, status, again) in &receivers {
        let what = format!("{:?}", raw.first);
        app.until(&what, async || !attempts(app, webhook).await.is_empty())
            .await;
        let attempt = attempts(app, webhook).await.remove(0);
        assert_eq!(
            attempt.get("statusCode"),
            status.map(|it| json!(it)).as_ref(),
            "{what}"
        );
        assert_eq!(attempt.get("nextAttemptAt").is_some(), *again, "{what}");
    }

    app.advance(60);
    app.until("nothing waits", async || waiting(app).await == 0)
        .await;
    for (raw, webhook, _, again) in &receivers {
        let got = raw.got.lock().unwrap().clone();
        let times = 1 + usize::from(*again);
        assert_eq!(got.len(), times, "{:?}", raw.first);
        assert_eq!(got.iter().collect::<HashSet<_>>().len(), 1);
        assert_eq!(attempts(app, webhook).await.len(), times);
    }
}

async fn one_dead_receiver_among_a_hundred_is_nobody_elses_trouble(app: &mut TestApp) {
    let receiver = Receiver::start().await;
    // A port that nobody listens at.
    let dead = {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        format!("http://{}/", listener.local_addr().unwrap())
    };
    let told = [Sent, Delivered, Displayed, Opened];
    let dead = subscribe(app, &dead, &told).await;
    let mut webhooks = HashMap::new();
    for number in 0..99 {
        let path = format!("/{number}");
        let webhook = receiver.subscribe(app, &path, &told).await;
        webhooks.insert(path, text(&webhook, "id"));
    }
    let deliveries = [app.id(), app.id(), app.id()];
    for event in told {
        for delivery in deliveries {
            app.transit(SUBJECT, delivery, &[event]).await;
        }
    }
    for path in webhooks.keys() {
        receiver.wait(app, path, 12).await;
    }
    // Only what is for the dead one waits.
    app.until("the others' messages are noted", async || {
        waiting(app).await == 12
    })
    .await;
    let names: Vec<String> = told.iter().map(|event| event.name().to_owned()).collect();
    for (path, id) in &webhooks {
        let got = receiver.received(path);
        assert_eq!(got.len(), 12, "{path}");
        for delivery in deliveries {
            let of_delivery = got.iter().map(|one| (one, one.json()));
            let of_delivery =
                of_delivery.filter(|(_, body)| body["data"]["deliveryId"] == json!(delivery));
            let events: Vec<String> = of_delivery.map(|(_, body)| text(&body, "event")).collect();
            assert_eq!(events, names, "{path}");
        }
        assert!(got.iter().all(|one| one.header("x-service-attempt") == "1"));
        let webhook = app.path(&format!("/push/webhooks/{id}"));
        let health = app.get(&webhook, &app.admin()).await.ok()["health"].clone();
        assert_eq!(
            (&health["state"], &health["consecutiveFailures"]),
            (&json!("healthy"), &json!(0))
        );
    }
    let webhook = app.path(&format!("/push/webhooks/{dead}"));
    let health = app.get(&webhook, &app.admin()).await.ok()["health"].clone();
    assert_eq!(health["state"], "degraded");
    assert!(
        attempts(app, &dead)
            .await
            .iter()
            .all(|attempt| { attempt.get("statusCode").is_none() && attempt["error"].is_string() })
    );
}
