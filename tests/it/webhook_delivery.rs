//! What webhooks are sent (specification 6.2, 6.3; contract 10): once for each transition, again until it arrives,
//! in order, whatever other endpoints do.

use std::collections::HashSet;

use nudge_campaigns::webhooks::EventType::{self, Clicked, Delivered, Failed, Opened, Sent};
use nudge_db::Timestamp;
use serde_json::{Value, json};
use tempfile::TempDir;
use tests::{Backend, Child, TestApp, on_both_backends, site};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use uuid::Uuid;

use crate::receiver::{Received, Receiver, Reply};
use crate::two_servers::{node, pair};
use crate::webhook_signatures;

on_both_backends!(
    a_transition_is_told_to_whoever_listens,
    a_transition_that_never_was_is_told_to_nobody,
    a_message_is_sent_five_times_at_the_most,
    what_is_refused_is_not_sent_again,
    a_receiver_may_ask_for_a_pause,
    messages_of_a_delivery_arrive_in_order,
    a_receiver_that_hangs_delays_no_other,
    many_endpoints_of_which_each_second_one_fails,
    what_waits_is_sent_after_a_restart,
    a_request_that_is_under_way_ends_before_the_server,
    what_a_dead_process_had_in_hand_is_sent_by_another,
    what_waits_goes_to_the_new_url,
    what_is_kept_ends_after_a_fortnight,
);

const SUBJECT: Uuid = Uuid::from_u128(42);

fn ids(got: &[Received]) -> Vec<String> {
    let ids = got.iter().map(|one| one.header("webhook-id").to_owned());
    ids.collect()
}

fn of_delivery(got: &[Received], delivery: Uuid) -> Vec<String> {
    got.iter()
        .filter(|one| one.json()["data"]["deliveryId"] == json!(delivery))
        .map(|one| one.header("x-service-event").to_owned())
        .collect()
}

/// The attempts at a webhook, the oldest first.
async fn attempts(app: &TestApp, webhook: &Value) -> Vec<Value> {
    let id = webhook["id"].as_str().unwrap();
    let path = app.path(&format!("/push/webhooks/{id}/attempts?limit=200"));
    let list = app.get(&path, &app.admin()).await.ok();
    let mut items = list["items"].as_array().unwrap().clone();
    items.reverse();
    items
}

/// The attempts, once there are so many.
pub(crate) async fn noted(app: &TestApp, webhook: &Value, count: usize) -> Vec<Value> {
    app.until(&format!("{count} attempts are noted"), async || {
        attempts(app, webhook).await.len() >= count
    })
    .await;
    attempts(app, webhook).await
}

async fn waiting(app: &TestApp) -> usize {
    let rows: Vec<(String,)> = app
        .rows("SELECT state FROM webhook_messages WHERE due_at IS NOT NULL")
        .await;
    rows.len()
}

async fn a_transition_is_told_to_whoever_listens(app: &mut TestApp) {
    let receiver = Receiver::start().await;
    let all = receiver.subscribe(app, "/all", EventType::ALL).await;
    receiver.subscribe(app, "/opened", &[Opened]).await;
    let inactive =
        json!({"url": receiver.url("/inactive"), "eventTypes": ["opened"], "active": false});
    app.post(&app.path("/push/webhooks"), &app.admin(), &inactive)
        .await
        .data(201);
    let delivery = app.id();
    let at = nudge_platform::clock::to_text(app.clock.now());

    app.transit(SUBJECT, delivery, EventType::ALL).await;
    // Told again, they are told to nobody.
    app.transit(SUBJECT, delivery, &[Opened, Sent]).await;

    let all_types = EventType::ALL.len();
    let got = receiver.wait(app, "/all", all_types).await;
    app.until("nothing waits", async || waiting(app).await == 0)
        .await;
    assert_eq!(receiver.received("/all").len(), all_types);
    assert_eq!(receiver.received("/opened").len(), 1);
    assert_eq!(receiver.received("/inactive").len(), 0);
    let names: Vec<String> = EventType::ALL
        .iter()
        .map(|event| event.name().to_owned())
        .collect();
    assert_eq!(of_delivery(&got, delivery), names);
    assert_eq!(ids(&got).iter().collect::<HashSet<_>>().len(), all_types);
    for one in &got {
        let body = one.json();
        let keys: Vec<&String> = body.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["app_id", "data", "event", "fired_at", "id"]);
        assert_eq!(body["event"], json!(one.header("x-service-event")));
        assert_eq!(body["app_id"], json!(app.access.app_id));
        assert!(body["fired_at"].as_str().unwrap() >= at.as_str());
        assert_eq!(body["data"]["subjectId"], json!(SUBJECT));
        assert_eq!(one.header("content-type"), "application/json");
        assert_eq!(one.header("x-service-attempt"), "1");
        webhook_signatures::verify(one, &[&all]);
    }
    for attempt in noted(app, &all, all_types).await {
        assert_eq!(
            (&attempt["attempt"], &attempt["statusCode"]),
            (&json!(1), &json!(200))
        );
        assert!(attempt["latencyMs"].is_u64() && attempt["at"].is_string());
        assert!(attempt.get("error").is_none() && attempt.get("nextAttemptAt").is_none());
    }
}

async fn a_transition_that_never_was_is_told_to_nobody(app: &mut TestApp) {
    let receiver = Receiver::start().await;
    receiver.subscribe(app, "/", &[Sent]).await;
    let (never, once) = (app.id(), app.id());

    let transition = app.transition(SUBJECT, never, Sent);
    app.enqueue(&[transition], false).await;
    app.transit(SUBJECT, once, &[Sent]).await;

    let got = receiver.wait(app, "/", 1).await;
    assert_eq!(of_delivery(&got, once), ["sent"]);
    app.until("nothing waits", async || waiting(app).await == 0)
        .await;
    assert_eq!(receiver.received("/").len(), 1);
}

async fn a_message_is_sent_five_times_at_the_most(app: &mut TestApp) {
    let receiver = Receiver::start().await;
    receiver.reply(
        "/",
        &[
            Reply::Status(500),
            Reply::Status(408),
            Reply::Status(503),
            Reply::Status(599),
        ],
    );
    let webhook = receiver.subscribe(app, "/", &[Sent]).await;
    app.transit(SUBJECT, app.id(), &[Sent]).await;

    for (number, (least, most)) in [(24.0, 36.0), (96.0, 144.0), (216.0, 324.0), (384.0, 576.0)]
        .into_iter()
        .enumerate()
    {
        let attempt = noted(app, &webhook, number + 1).await.remove(number);
        let instant = |key: &str| {
            let text = attempt[key].as_str().unwrap();
            nudge_platform::clock::from_text(text).unwrap()
        };
        let pause = instant("nextAttemptAt").since(instant("at"));
        // The pause begins when the answer is there.
        let seconds = pause.as_secs_f64();
        assert!(seconds > least - 0.1 && seconds < most + 20.0, "{seconds}");
        assert_eq!(attempt["attempt"], json!(number + 1));
        assert!(attempt["error"].is_string());
        assert_eq!(receiver.received("/").len(), number + 1);
        app.advance(pause.as_secs() + 1);
    }
    let last = noted(app, &webhook, 5).await.remove(4);
    assert!(last.get("nextAttemptAt").is_none());
    app.advance(86_400);
    app.transit(SUBJECT, app.id(), &[Sent]).await;
    let got = receiver.wait(app, "/", 6).await;
    assert_eq!(got.len(), 6);
    assert_eq!(ids(&got[..5]), vec![ids(&got[..1]).remove(0); 5]);
    for (number, one) in got[..5].iter().enumerate() {
        assert_eq!(one.body, got[0].body, "the same bytes each time");
        assert_eq!(one.header("x-service-attempt"), (number + 1).to_string());
        webhook_signatures::verify(one, &[&webhook]);
    }
    let stamps: HashSet<&str> = got[..5]
        .iter()
        .map(|one| one.header("webhook-timestamp"))
        .collect();
    assert_eq!(stamps.len(), 5, "each is signed when it is sent");
    assert_ne!(ids(&got[5..]), ids(&got[..1]));
}

async fn what_is_refused_is_not_sent_again(app: &mut TestApp) {
    let receiver = Receiver::start().await;
    let refusals = [400, 401, 404, 409, 410, 422, 300, 304];
    let mut webhooks = Vec::new();
    for status in refusals {
        let path = format!("/{status}");
        receiver.reply(&path, &[Reply::Status(status)]);
        webhooks.push(receiver.subscribe(app, &path, &[Sent]).await);
    }
    let elsewhere = receiver.url("/elsewhere");
    receiver.reply("/307", &[Reply::With(307, "location", elsewhere)]);
    webhooks.push(receiver.subscribe(app, "/307", &[Sent]).await);

    app.transit(SUBJECT, app.id(), &[Sent]).await;

    for webhook in &webhooks {
        let attempt = noted(app, webhook, 1).await.remove(0);
        assert!(attempt.get("nextAttemptAt").is_none(), "{attempt}");
    }
    assert_eq!(waiting(app).await, 0);
    assert!(receiver.received("/elsewhere").is_empty());
}

async fn a_receiver_may_ask_for_a_pause(app: &mut TestApp) {
    let receiver = Receiver::start().await;
    for (path, status, seconds) in [
        ("/429", 429, "7200"),
        ("/503", 503, "600"),
        ("/500", 500, "7200"),
    ] {
        receiver.reply(
            path,
            &[Reply::With(status, "retry-after", seconds.to_owned())],
        );
    }
    for (path, least, most) in [
        ("/429", 7_199.0, 7_260.0),
        ("/503", 599.0, 660.0),
        ("/500", 23.0, 96.0),
    ] {
        let webhook = receiver.subscribe(app, path, &[Sent]).await;
        app.transit(SUBJECT, app.id(), &[Sent]).await;
        let attempt = noted(app, &webhook, 1).await.remove(0);
        let instant =
            |key: &str| nudge_platform::clock::from_text(attempt[key].as_str().unwrap()).unwrap();
        let pause = instant("nextAttemptAt").since(instant("at")).as_secs_f64();
        assert!(pause >= least && pause < most, "{path}: {pause}");
    }
}

async fn messages_of_a_delivery_arrive_in_order(app: &mut TestApp) {
    let receiver = Receiver::start().await;
    receiver.reply("/", &[Reply::Status(500), Reply::Status(200)]);
    let webhook = receiver.subscribe(app, "/", EventType::ALL).await;
    let (first, second) = (app.id(), app.id());
    app.transit(SUBJECT, first, &[Sent, Delivered]).await;
    noted(app, &webhook, 1).await;
    app.transit(SUBJECT, first, &[Opened]).await;
    app.transit(SUBJECT, second, &[Sent, Delivered, Opened])
        .await;

    let got = receiver.wait(app, "/", 4).await;
    assert_eq!(of_delivery(&got, second), ["sent", "delivered", "opened"]);
    assert_eq!(of_delivery(&got, first), ["sent"]);
    app.advance(60);
    receiver.wait(app, "/", 7).await;
    app.transit(SUBJECT, first, &[Clicked]).await;
    let got = receiver.wait(app, "/", 8).await;
    assert_eq!(
        of_delivery(&got, first),
        ["sent", "sent", "delivered", "opened", "clicked"]
    );

    // What failed for good is waited for no longer.
    receiver.reply("/", &[Reply::Status(404), Reply::Status(200)]);
    let third = app.id();
    app.transit(SUBJECT, third, &[Sent, Failed]).await;
    let got = receiver.wait(app, "/", 10).await;
    assert_eq!(of_delivery(&got, third), ["sent", "failed"]);
    app.until("nothing waits", async || waiting(app).await == 0)
        .await;
}

async fn a_receiver_that_hangs_delays_no_other(app: &mut TestApp) {
    app.config.webhooks.concurrency = 8;
    app.restart().await;
    let receiver = Receiver::start().await;
    receiver.reply("/hangs", &[Reply::Hang]);
    receiver.subscribe(app, "/hangs", &[Sent]).await;
    for number in 0..10 {
        receiver
            .subscribe(app, &format!("/{number}"), &[Sent])
            .await;
    }
    for _ in 0..20 {
        app.transit(SUBJECT, app.id(), &[Sent]).await;
    }

    for number in 0..10 {
        let got = receiver.wait(app, &format!("/{number}"), 20).await;
        assert_eq!(got.len(), 20);
    }
    let hanging = receiver.received("/hangs").len();
    // None of these has been answered, and there are no more at a time. On a machine so busy that some end by their time-out,
    // as many others take their places.
    let ended: Vec<(i64,)> = app
        .rows("SELECT attempt FROM webhook_attempts WHERE status_code IS NULL")
        .await;
    assert!((1..=4 + ended.len()).contains(&hanging));
    receiver.release();
    app.advance(60);
    app.until("nothing waits", async || waiting(app).await == 0)
        .await;
    let got = receiver.received("/hangs");
    assert!(ids(&got).iter().collect::<HashSet<_>>().len() == 20);
}

async fn many_endpoints_of_which_each_second_one_fails(app: &mut TestApp) {
    app.config.webhooks.concurrency = 4;
    app.restart().await;
    let receiver = Receiver::start().await;
    let paths: Vec<String> = (0..20).map(|number| format!("/{number}")).collect();
    for (number, path) in paths.iter().enumerate() {
        if number % 2 == 1 {
            receiver.reply(path, &[Reply::Status(500)]);
        }
        receiver.subscribe(app, path, &[Sent]).await;
    }
    for _ in 0..5 {
        app.transit(SUBJECT, app.id(), &[Sent]).await;
    }
    for path in &paths {
        receiver.wait(app, path, 5).await;
    }
    for path in paths.iter().step_by(2) {
        assert_eq!(receiver.received(path).len(), 5);
    }
    app.until("only failures wait", async || waiting(app).await == 50)
        .await;
}

async fn what_waits_is_sent_after_a_restart(app: &mut TestApp) {
    let receiver = Receiver::start().await;
    receiver.reply("/", &[Reply::Status(500), Reply::Status(200)]);
    let webhook = receiver.subscribe(app, "/", &[Sent]).await;
    let delivery = app.id();
    app.transit(SUBJECT, delivery, &[Sent]).await;
    noted(app, &webhook, 1).await;

    app.restart().await;
    app.advance(60);

    let got = receiver.wait(app, "/", 2).await;
    assert_eq!(got[1].header("x-service-attempt"), "2");
    assert_eq!(got[1].body, got[0].body);
}

async fn a_request_that_is_under_way_ends_before_the_server(app: &mut TestApp) {
    let receiver = Receiver::start().await;
    receiver.reply("/", &[Reply::Hang]);
    let webhook = receiver.subscribe(app, "/", &[Sent]).await;
    app.transit(SUBJECT, app.id(), &[Sent]).await;
    receiver.wait(app, "/", 1).await;
    let stopping = app.services().stop.clone();
    let release = async {
        stopping.cancelled().await;
        receiver.release();
    };

    tokio::join!(app.stop(), release);
    app.resume().await;

    let attempts = noted(app, &webhook, 1).await;
    assert_eq!(
        (attempts.len(), &attempts[0]["statusCode"]),
        (1, &json!(200))
    );
    assert_eq!(receiver.received("/").len(), 1);
}

async fn what_a_dead_process_had_in_hand_is_sent_by_another(app: &mut TestApp) {
    let receiver = Receiver::start().await;
    receiver.reply("/", &[Reply::Status(500), Reply::Status(200)]);
    let webhook = receiver.subscribe(app, "/", &[Sent]).await;
    app.transit(SUBJECT, app.id(), &[Sent]).await;
    noted(app, &webhook, 1).await;
    let services = app.services();
    let mut tx = services.db.write().await.unwrap();
    // A process that lived a moment ago, and has the message in hand.
    tx.sql("INSERT INTO nodes (id, started_at, heartbeat_at) VALUES ($1, $2, $2)")
        .bind(Uuid::nil())
        .bind(app.clock.now())
        .execute()
        .await
        .unwrap();
    tx.sql("UPDATE webhook_messages SET node = $1, due_at = $2")
        .bind(Uuid::nil())
        .bind(Timestamp::default())
        .execute()
        .await
        .unwrap();
    tx.commit().await.unwrap();

    app.advance(services.config.pipeline.node_timeout_seconds + 3);

    let got = receiver.wait(app, "/", 2).await;
    assert_eq!(ids(&got), vec![ids(&got[..1]).remove(0); 2]);
}

async fn what_waits_goes_to_the_new_url(app: &mut TestApp) {
    let receiver = Receiver::start().await;
    receiver.reply("/old", &[Reply::Status(500)]);
    let webhook = receiver.subscribe(app, "/old", &[Sent]).await;
    app.transit(SUBJECT, app.id(), &[Sent]).await;
    noted(app, &webhook, 1).await;
    let id = webhook["id"].as_str().unwrap();
    let one = app.path(&format!("/push/webhooks/{id}"));
    let patch = json!({"url": receiver.url("/new"), "active": false});
    app.patch(&one, &app.admin(), &patch).await.ok();

    app.advance(60);
    // While it is not active, nothing is sent, and nothing is kept.
    app.transit(SUBJECT, app.id(), &[Sent]).await;
    assert_eq!(waiting(app).await, 1);
    app.patch(&one, &app.admin(), &json!({"active": true}))
        .await
        .ok();

    let got = receiver.wait(app, "/new", 1).await;
    assert_eq!(got[0].header("x-service-attempt"), "2");
    assert_eq!(receiver.received("/old").len(), 1);
    app.until("nothing waits", async || waiting(app).await == 0)
        .await;
    assert_eq!(receiver.received("/new").len(), 1);
}

async fn what_is_kept_ends_after_a_fortnight(app: &mut TestApp) {
    let receiver = Receiver::start().await;
    let webhook = receiver.subscribe(app, "/", &[Sent]).await;
    app.transit(SUBJECT, app.id(), &[Sent]).await;
    noted(app, &webhook, 1).await;
    app.advance(13 * 86_400);
    app.transit(SUBJECT, app.id(), &[Sent]).await;
    noted(app, &webhook, 2).await;

    app.advance(86_400 + 3_600);

    app.until("the older one is removed", async || {
        attempts(app, &webhook).await.len() == 1
    })
    .await;
    let left: Vec<(String,)> = app.rows("SELECT state FROM webhook_messages").await;
    assert_eq!(left.len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_servers_send_each_message_once() {
    let (_folder, one, two) = pair().await;
    let receiver = Receiver::start().await;
    receiver.subscribe(&one, "/", &[Sent, Delivered]).await;
    // The other server hears of it within a second.
    two.until("the other server knows the webhook", async || {
        let app = two.services().apps.get(two.access.app_id).await;
        !app.unwrap().unwrap().webhooks.is_empty()
    })
    .await;

    let deliveries: Vec<Uuid> = (0..60).map(|_| one.id()).collect();
    for (index, delivery) in deliveries.iter().enumerate() {
        let (here, there) = if index % 2 == 0 {
            (&one, &two)
        } else {
            (&two, &one)
        };
        here.transit(SUBJECT, *delivery, &[Sent]).await;
        there.transit(SUBJECT, *delivery, &[Sent, Delivered]).await;
    }

    let got = receiver.wait(&one, "/", 120).await;
    one.until("nothing waits", async || waiting(&one).await == 0)
        .await;
    assert_eq!(receiver.received("/").len(), 120);
    assert_eq!(ids(&got).iter().collect::<HashSet<_>>().len(), 120);
    for delivery in deliveries {
        assert_eq!(of_delivery(&got, delivery), ["sent", "delivered"]);
    }
    one.finish().await;
    two.finish().await;
}

/// A process is killed with requests under way: the receiver has them, and nobody knows.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_process_loses_no_message() {
    let url = tests::postgres::database().await;
    let folder = TempDir::with_prefix("nudge-test-").unwrap();
    let one = node(&url, folder.path(), "one").await;
    let receiver = Receiver::start().await;
    receiver.reply("/", &[Reply::Hang]);
    receiver.subscribe(&one, "/", &[Sent]).await;
    let other = Child::start_with(
        site!(),
        folder.path(),
        &[
            ("NUDGE_DATABASE__URL", &url),
            ("NUDGE_DATABASE__CONNECTIONS", "5"),
            ("NUDGE_WEBHOOKS__ALLOW_HTTP", "true"),
            ("NUDGE_WEBHOOKS__ALLOW_PRIVATE_NETWORKS", "true"),
        ],
    );
    for _ in 0..20 {
        one.transit(SUBJECT, one.id(), &[Sent]).await;
    }
    // Four of each.
    let under_way = receiver.wait(&one, "/", 8).await;

    other.kill();
    receiver.release();
    // Longer than the pause after a time-out, should the machine be that slow.
    one.advance(one.config.pipeline.node_timeout_seconds + 60);

    one.until("nothing waits", async || waiting(&one).await == 0)
        .await;
    let got = receiver.received("/");
    assert_eq!(ids(&got).iter().collect::<HashSet<_>>().len(), 20);
    let again: HashSet<String> = ids(&got[8..]).into_iter().collect();
    let twice = under_way
        .iter()
        .filter(|sent| again.contains(sent.header("webhook-id")));
    assert!(twice.count() >= 4, "what the dead process had in hand");
    one.finish().await;
}

/// A receiver that writes bytes as they are, the second ones again and again, and then nothing.
async fn raw(head: &'static str, endless: &'static str) -> (String, JoinSet<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        // What comes before the whole request is an answer to nothing.
        let mut request = Vec::new();
        while !request.ends_with(b"}}") {
            stream.read_buf(&mut request).await.unwrap();
        }
        stream.write_all(head.as_bytes()).await.unwrap();
        while !endless.is_empty() && stream.write_all(endless.as_bytes()).await.is_ok() {}
        std::future::pending::<()>().await;
    });
    (url, tasks)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_is_given_up_after_a_while_and_read_to_a_length() {
    let app = TestApp::start(site!(), Backend::Sqlite).await;
    let test = async |(url, _tasks): (String, JoinSet<()>)| {
        let body = json!({"url": url, "eventTypes": ["sent"]});
        let all = app.path("/push/webhooks");
        let webhook = app.post(&all, &app.admin(), &body).await.data(201);
        let test = format!("{all}/{}/test", webhook["id"].as_str().unwrap());
        app.post(&test, &app.admin(), &json!({})).await.ok()
    };
    let silent = raw("", "").await;
    let unfinished = raw("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nbegun", "").await;
    let flood = raw(
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n",
        "8\r\nnonsense\r\n",
    )
    .await;
    let headers = raw("HTTP/1.1 200 OK\r\n", "x: y\r\n").await;
    let garbage = raw("SSH-2.0-OpenSSH\r\n\r\n", "").await;

    let (silent, unfinished, flood, headers, garbage) = tokio::join!(
        test(silent),
        test(unfinished),
        test(flood),
        test(headers),
        test(garbage)
    );

    assert_eq!(flood["statusCode"], json!(200), "{flood}");
    assert!(flood.get("error").is_none());
    for answer in [&silent, &unfinished, &headers, &garbage] {
        assert!(answer.get("statusCode").is_none(), "{answer}");
        assert!(answer["error"].is_string(), "{answer}");
    }
    for answer in [&silent, &unfinished] {
        let error = answer["error"].as_str().unwrap();
        assert!(error.contains("10 seconds"), "{answer}");
    }
    app.finish().await;
}
