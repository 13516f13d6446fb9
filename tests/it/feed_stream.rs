//! Events as they are committed: server-sent events (contract 21).

use std::time::{Duration, Instant};

use reqwest::{Method, Response};
use serde_json::{Value, json};
use tests::client::send;
use tests::session::text;
use tests::{Backend, TestApp, on_both_backends, site};
use tokio::task::JoinSet;

use crate::two_servers::pair;

on_both_backends!(
    events_are_sent_as_they_are_committed,
    a_stream_goes_on_where_another_one_ended,
    a_stream_goes_on_where_one_ended_that_had_sent_nothing,
    a_stream_that_goes_on_finds_what_was_committed_late,
    a_stream_that_began_before_a_restore_goes_on_after_it,
    more_than_fifty_a_second_are_a_sample,
    what_the_server_notes_by_itself_makes_no_sample,
    what_was_there_before_makes_no_sample,
    many_refused_events_are_sent_too,
    an_app_has_twenty_streams,
    a_stream_ends_with_its_token_and_its_app,
);

/// Longer than anything takes.
const HANGS: Duration = Duration::from_mins(1);

/// A stream and what has arrived of it.
struct Stream {
    response: Response,
    text: String,
    /// The id that it begins with.
    begun: String,
}

/// A part of a stream: its event and id, and its data.
#[derive(Debug)]
struct Part {
    event: String,
    id: String,
    data: Value,
}

impl Stream {
    async fn open(app: &TestApp, query: &str, last: Option<&str>) -> Self {
        let path = app.path(&format!("/events/stream{query}"));
        let mut request = app
            .request(Method::GET, &path, &app.viewer())
            .timeout(HANGS);
        if let Some(last) = last {
            request = request.header("last-event-id", last);
        }
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        let mut stream = Self {
            response,
            text: String::new(),
            begun: String::new(),
        };
        let begun = stream.block().await.unwrap();
        let id = begun.strip_prefix("retry: 1000\nid: ").unwrap();
        id.clone_into(&mut stream.begun);
        stream
    }

    /// The next lines up to an empty one; none: the stream has ended.
    async fn block(&mut self) -> Option<String> {
        loop {
            if let Some((block, rest)) = self.text.split_once("\n\n") {
                let (block, rest) = (block.to_owned(), rest.to_owned());
                self.text = rest;
                return Some(block);
            }
            let chunk = self.response.chunk().await.unwrap()?;
            self.text.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }

    /// The next part that is no heartbeat.
    async fn part(&mut self) -> Option<Part> {
        loop {
            let block = self.block().await?;
            let member = |name: &str| {
                let line = block.lines().find_map(|line| line.strip_prefix(name));
                line.unwrap_or_default().to_owned()
            };
            if block.starts_with(':') {
                continue;
            }
            return Some(Part {
                event: member("event: "),
                id: member("id: "),
                data: serde_json::from_str(&member("data: ")).unwrap(),
            });
        }
    }

    /// The names of the next events, and the id of the last.
    async fn names(&mut self, count: usize) -> (Vec<String>, String) {
        let (mut names, mut id) = (Vec::new(), String::new());
        while names.len() < count {
            let part = self.part().await.unwrap();
            assert_eq!(part.event, "event", "{part:?}");
            names.push(text(&part.data, "name"));
            id = part.id;
        }
        (names, id)
    }
}

async fn events_are_sent_as_they_are_committed(app: &mut TestApp) {
    let (ada, bob) = (app.session("ada").await, app.session("bob").await);
    app.ingest(&ada, &[app.event(&ada, "before", &json!({}))])
        .await
        .ok();
    let mut all = Stream::open(app, "", None).await;
    let mut opened = Stream::open(app, "?name=opened", None).await;
    let mut others = Stream::open(app, "?excludeName=opened&verdict=accepted", None).await;
    let mut refused = Stream::open(app, "?verdict=rejected", None).await;

    let mut old = app.event(&ada, "old", &json!({}));
    old["timestamp"] = json!("2020-01-01T00:00:00Z");
    let event = app.event(&ada, "opened", &json!({"n": 1, "text": "a\nb"}));
    app.ingest(&ada, &[event.clone(), old]).await.ok();
    app.ingest(&bob, &[app.event(&bob, "searched", &json!({}))])
        .await
        .ok();
    // What the server notes by itself is nobody's event.
    app.survey(&json!({"kind": "property_changed", "key": "plan"}))
        .await;
    let update = json!({"anonymousId": "ada", "mutationId": app.id(), "set": {"plan": "pro"}});
    app.post("/v1/sdk/user-properties", &ada.credential(), &update)
        .await
        .ok();
    app.ingest(&bob, &[app.event(&bob, "last", &json!({}))])
        .await
        .ok();

    let first = opened.part().await.unwrap();
    let listed = app
        .get(&app.path("/events?name=opened"), &app.viewer())
        .await
        .ok();
    assert_eq!(first.data, listed["items"][0]);
    assert_eq!(
        (&first.data["eventId"], &first.data["verdict"]),
        (&event["eventId"], &json!("accepted"))
    );
    let mut names = all.names(4).await.0;
    assert_eq!(names.pop().unwrap(), "last");
    names.sort_unstable();
    assert_eq!(names, ["old", "opened", "searched"]);
    assert_eq!(others.names(2).await.0, ["searched", "last"]);
    let part = refused.part().await.unwrap();
    assert_eq!(part.data["errors"][0]["code"], "timestamp_out_of_window");

    // Silence is told to be one.
    let begun = Instant::now();
    let silence = opened.block().await.unwrap();
    assert!(begun.elapsed() <= Duration::from_secs(20));
    let id = silence.strip_prefix(": heartbeat\nid: ").unwrap();
    Stream::open(app, "?name=opened", Some(id)).await;
}

async fn a_stream_goes_on_where_another_one_ended(app: &mut TestApp) {
    let ada = app.session("ada").await;
    let mut stream = Stream::open(app, "", None).await;
    app.ingest(&ada, &[app.event(&ada, "a", &json!({}))])
        .await
        .ok();
    let (names, last) = stream.names(1).await;
    assert_eq!(names, ["a"]);
    drop(stream);
    // More than a second may have, over a longer time.
    for number in 0..4 {
        app.advance(2);
        let name = format!("b{number}");
        let events: Vec<Value> = (0..30)
            .map(|_| app.event(&ada, &name, &json!({})))
            .collect();
        app.ingest(&ada, &events).await.ok();
    }

    let mut stream = Stream::open(app, "", Some(&last)).await;
    let (names, _) = stream.names(120).await;
    let expected: Vec<String> = (0..120).map(|number| format!("b{}", number / 30)).collect();
    assert_eq!(names, expected);
    let path = app.path("/events/stream");
    let request = app
        .request(Method::GET, &path, &app.viewer())
        .header("last-event-id", "7");
    send(request).await.refused(400, "invalid_cursor");
}

async fn a_stream_goes_on_where_one_ended_that_had_sent_nothing(app: &mut TestApp) {
    let ada = app.session("ada").await;
    let event = app.event(&ada, "before", &json!({}));
    app.ingest(&ada, &[event]).await.ok();
    let begun = Stream::open(app, "", None).await.begun;
    app.advance(1);
    let event = app.event(&ada, "meanwhile", &json!({}));
    app.ingest(&ada, &[event]).await.ok();
    app.advance(1);
    let mut refused = app.event(&ada, "refused", &json!({}));
    refused["timestamp"] = json!("2020-01-01T00:00:00Z");
    app.ingest(&ada, &[refused]).await.ok();

    let mut stream = Stream::open(app, "", Some(&begun)).await;
    // Nor does that one have to send anything.
    let begun = stream.begun.clone();
    let (names, last) = stream.names(2).await;
    assert_eq!(names, ["meanwhile", "refused"]);
    let mut again = Stream::open(app, "", Some(&begun)).await;
    assert_eq!(again.names(2).await.0, names);
    app.advance(1);
    let event = app.event(&ada, "after", &json!({}));
    app.ingest(&ada, &[event]).await.ok();
    assert_eq!(stream.names(1).await.0, ["after"]);
    let mut stream = Stream::open(app, "", Some(&last)).await;
    assert_eq!(stream.names(1).await.0, ["after"]);
}

async fn a_stream_that_goes_on_finds_what_was_committed_late(app: &mut TestApp) {
    let ada = app.session("ada").await;
    let send = async |name: &str| {
        let event = app.event(&ada, name, &json!({}));
        app.ingest(&ada, &[event]).await.ok();
    };
    send("before").await;
    let mut stream = Stream::open(app, "?excludeName=hidden", None).await;
    send("a").await;
    // To the stream this is as if it was not committed yet, and has its number already.
    send("hidden").await;
    app.advance(1);
    send("b").await;
    let (names, last) = stream.names(2).await;
    assert_eq!(names, ["a", "b"]);
    drop(stream);
    let mut tx = app.services().db.write().await.unwrap();
    let changed = tx
        .sql("UPDATE events SET name = 'late' WHERE name = 'hidden' AND app_id = $1")
        .bind(app.access.app_id)
        .execute()
        .await
        .unwrap();
    assert_eq!(changed, 1);
    tx.commit().await.unwrap();
    send("c").await;

    let mut stream = Stream::open(app, "", Some(&last)).await;
    let (names, last) = stream.names(2).await;
    assert_eq!(names, ["late", "c"]);
    drop(stream);
    send("d").await;
    let mut stream = Stream::open(app, "", Some(&last)).await;
    assert_eq!(stream.names(1).await.0, ["d"]);
}

async fn a_stream_that_began_before_a_restore_goes_on_after_it(app: &mut TestApp) {
    let ada = app.session("ada").await;
    let send = async |name: &str| {
        let event = app.event(&ada, name, &json!({}));
        app.ingest(&ada, &[event]).await.ok();
    };
    let mut stream = Stream::open(app, "", None).await;
    for name in ["a", "b", "c"] {
        send(name).await;
    }
    let (_, last) = stream.names(3).await;
    drop(stream);
    app.settle().await;
    // The state of a backup, in which numbers are given anew.
    let mut tx = app.services().db.write().await.unwrap();
    tx.sql("DELETE FROM events").execute().await.unwrap();
    tx.commit().await.unwrap();
    let mut stream = Stream::open(app, "", Some(&last)).await;
    send("d").await;
    assert_eq!(stream.names(1).await.0, ["d"]);
}

async fn more_than_fifty_a_second_are_a_sample(app: &mut TestApp) {
    let ada = app.session("ada").await;
    let mut stream = Stream::open(app, "", None).await;
    // Nobody who listens to it waits for one who does not.
    let slow = Stream::open(app, "", None).await;
    let events: Vec<Value> = (0..400)
        .map(|number| app.event(&ada, "often", &json!({"n": number})))
        .collect();
    app.ingest(&ada, &events).await.ok();

    let part = stream.part().await.unwrap();
    assert_eq!(part.event, "sampled");
    let rate = part.data["rate"].as_f64().unwrap();
    assert!((0.1..0.2).contains(&rate), "{rate}");
    let mut numbers = Vec::new();
    while numbers.last().is_none_or(|last| *last < 380) {
        let part = stream.part().await.unwrap();
        numbers.push(part.data["properties"]["n"].as_i64().unwrap());
    }
    assert!(
        (40..=70).contains(&numbers.len()) && numbers.is_sorted(),
        "{numbers:?}"
    );
    drop(slow);
}

async fn what_the_server_notes_by_itself_makes_no_sample(app: &mut TestApp) {
    let ada = app.session("ada").await;
    app.survey(&json!({"kind": "property_changed", "key": "p0"}))
        .await;
    let mut stream = Stream::open(app, "", None).await;
    for round in 0..3 {
        let set: Value = (0..64)
            .map(|key| (format!("p{key}"), json!(round)))
            .collect();
        let update = json!({"anonymousId": "ada", "mutationId": app.id(), "set": set});
        app.post("/v1/sdk/user-properties", &ada.credential(), &update)
            .await
            .ok();
    }
    app.ingest(&ada, &[app.event(&ada, "last", &json!({}))])
        .await
        .ok();
    assert_eq!(stream.names(1).await.0, ["last"]);
}

async fn what_was_there_before_makes_no_sample(app: &mut TestApp) {
    let ada = app.session("ada").await;
    let send = async |name: &str, count: usize| {
        let events: Vec<Value> = (0..count)
            .map(|number| app.event(&ada, name, &json!({"n": number})))
            .collect();
        app.ingest(&ada, &events).await.ok();
    };
    // More than one look reads, in fewer requests than are told from each other.
    for _ in 0..24 {
        send("imported", 500).await;
    }
    let mut stream = Stream::open(app, "", None).await;
    send("a", 1).await;
    let (names, last) = stream.names(1).await;
    assert_eq!(names, ["a"]);
    drop(stream);
    send("b", 1).await;
    let mut stream = Stream::open(app, "", Some(&last)).await;
    assert_eq!(stream.names(1).await.0, ["b"]);
    send("c", 1).await;
    assert_eq!(stream.names(1).await.0, ["c"]);
}

async fn many_refused_events_are_sent_too(app: &mut TestApp) {
    let ada = app.session("ada").await;
    let refuse = async |count: usize| {
        let events: Vec<Value> = (0..count)
            .map(|number| app.event(&ada, &"x".repeat(300), &json!({"n": number})))
            .collect();
        let data = app.ingest(&ada, &events).await.ok();
        assert_eq!(data["rejected"], count);
    };
    let number = |part: &Part| part.data["properties"]["n"].as_i64().unwrap();
    let mut stream = Stream::open(app, "?verdict=rejected", None).await;
    refuse(400).await;
    let part = stream.part().await.unwrap();
    assert_eq!(part.event, "sampled");
    let rate = part.data["rate"].as_f64().unwrap();
    assert!((0.1..0.2).contains(&rate), "{rate}");
    let first = stream.part().await.unwrap();
    drop(stream);

    // Who comes back is told of the rest of the request, and of what came in a long time.
    for _ in 0..3 {
        app.advance(10);
        refuse(100).await;
    }
    let mut stream = Stream::open(app, "?verdict=rejected", Some(&first.id)).await;
    let mut numbers = Vec::new();
    for _ in 0..699 {
        let part = stream.part().await.unwrap();
        assert_eq!(part.event, "event", "{part:?}");
        numbers.push(number(&part));
    }
    assert_eq!(numbers.iter().filter(|n| **n < 100).count(), 399);
    assert_eq!(numbers.iter().filter(|n| **n >= 100).count(), 300);
}

async fn an_app_has_twenty_streams(app: &mut TestApp) {
    let mut streams = Vec::new();
    for _ in 0..20 {
        streams.push(Stream::open(app, "", None).await);
    }
    let path = app.path("/events/stream");
    app.get(&path, &app.viewer())
        .await
        .refused(429, "rate_limited");
    streams.pop();
    let begun = Instant::now();
    loop {
        let response = app
            .request(Method::GET, &path, &app.viewer())
            .send()
            .await
            .unwrap();
        if response.status() == 200 {
            break;
        }
        // The server notices when it next has something to say.
        assert!(begun.elapsed() < HANGS);
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

async fn a_stream_ends_with_its_token_and_its_app(app: &mut TestApp) {
    let (app_id, token) = app
        .another_app(app.access.workspace_id, nudge_apps::key::Kind::Write, &[])
        .await;
    drop(token);
    let path = format!("/v1/apps/{app_id}/events/stream");
    let of_other = app
        .request(Method::GET, &path, &app.viewer())
        .timeout(HANGS)
        .send()
        .await
        .unwrap();
    let mut of_other = Stream {
        response: of_other,
        text: String::new(),
        begun: String::new(),
    };
    app.delete(&format!("/v1/apps/{app_id}"), &app.admin())
        .await
        .data(204);
    while of_other.block().await.is_some() {}

    let mut stream = Stream::open(app, "", None).await;
    // The demo tokens are good for a month.
    app.advance(32 * 24 * 3_600);
    while stream.block().await.is_some() {}
    // The server stops although streams are open.
    app.stop().await;
    app.resume().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_of_other_processes_are_sent_too() {
    let (_folder, one, two) = pair().await;
    let ada = two.session("ada").await;
    let mut stream = Stream::open(&one, "", None).await;
    for number in 0..20 {
        let name = format!("e{number}");
        two.ingest(&ada, &[two.event(&ada, &name, &json!({}))])
            .await
            .ok();
    }
    let expected: Vec<String> = (0..20).map(|number| format!("e{number}")).collect();
    assert_eq!(stream.names(20).await.0, expected);
    let mut stopping = JoinSet::new();
    stopping.spawn(async move { while stream.block().await.is_some() {} });
    one.finish().await;
    stopping.join_next().await.unwrap().unwrap();
    two.finish().await;
}

/// Numbers are drawn before a commit, by all processes and for all apps: a quiet app's may be overtaken by many.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_many_requests_have_overtaken_is_sent_too() {
    let app = TestApp::start(site!(), Backend::Postgres).await;
    let ada = app.session("ada").await;
    let send = async |name: &str| {
        let event = app.event(&ada, name, &json!({}));
        app.ingest(&ada, &[event]).await.ok();
    };
    let mut stream = Stream::open(&app, "?name=shown", None).await;
    // To the stream this is as if it was not committed yet.
    send("held").await;
    for _ in 0..70 {
        send("other").await;
    }
    send("shown").await;
    let (_, last) = stream.names(1).await;
    let mut tx = app.services().db.write().await.unwrap();
    tx.sql("UPDATE events SET name = 'shown' WHERE name = 'held' AND app_id = $1")
        .bind(app.access.app_id)
        .execute()
        .await
        .unwrap();
    tx.commit().await.unwrap();
    let (_, late) = stream.names(1).await;
    assert_ne!(late, last);
    // Nothing is sent twice while it is looked at again.
    send("shown").await;
    let event = app.event(&ada, "shown", &json!({"n": 1}));
    app.ingest(&ada, &[event]).await.ok();
    stream.names(1).await;
    let part = stream.part().await.unwrap();
    assert_eq!(part.data["properties"]["n"], 1);
    let mut stopping = JoinSet::new();
    stopping.spawn(async move { while stream.block().await.is_some() {} });
    app.finish().await;
    stopping.join_next().await.unwrap().unwrap();
}
