//! In-app messages on two servers, and after `kill -9`.

use serde_json::json;
use tempfile::TempDir;
use tests::session::text;
use tests::{Child, site};

use super::{buys, message, message_with, of_event};
use crate::concurrency::join;
use crate::kills::{Remote, events};
use crate::two_servers::pair;

/// What `kill -9` right after the answer leaves is made by the next start: each message once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_survive_a_kill_and_are_made_once() {
    let folder = TempDir::with_prefix("nudge-test-").unwrap();
    let mut running = Child::start(site!(), folder.path());
    let remote = Remote::open(&running).await;
    let campaigns = format!("/v1/apps/{}/campaigns", text(&remote.access, "appId"));
    let spec = of_event(&[("sum", "sum", "number")]);
    let variants = json!([{"layout": "card", "title": "{{p.sum}}", "personalization": spec}]);
    let body = message_with(&json!({"variants": variants}));
    remote
        .post(&campaigns, "editorToken", &body)
        .await
        .data(201);
    let mut sent = Vec::new();
    for round in 0..3 {
        let remote = Remote::open(&running).await;
        let mut events = events(20);
        for event in &mut events {
            event["properties"] = json!({"sum": round});
        }
        let body = json!({"context": {"anonymousId": "ada"}, "events": events});
        let data = remote.post("/v1/sdk/ingest", "writeKey", &body).await.ok();
        assert_eq!(data["accepted"], 20, "round {round}");
        running.kill();
        sent.extend(events.iter().map(|event| text(event, "eventId")));
        running = Child::start(site!(), folder.path());
    }
    let remote = Remote::open(&running).await;
    assert_eq!(remote.fired(sent.len()).await, sent, "each once, in order");
    assert_eq!(running.terminate(), Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_servers_make_messages_and_buttons_once() {
    let (_folder, one, two) = pair().await;
    let cap = json!({"perSubject": {"max": 5, "windowDays": "lifetime"}});
    message(&one, json!({"frequencyCap": cap})).await;
    let ada = one.session("ada").await;
    let settings = json!({"presentation": "feedback_button"});
    one.survey_with(&json!({"mode": "on_demand", "trigger": null, "settings": settings}))
        .await;
    two.until("the other knows the button", async || {
        two.offered(&ada).await.as_array().unwrap().len() == 1
    })
    .await;
    let both = |number: usize| if number.is_multiple_of(2) { &one } else { &two };
    join((0..8).map(|number| both(number).offered(&ada))).await;
    join((0..12).map(|number| buys(both(number), &ada, json!({})))).await;
    one.settle().await;
    two.settle().await;
    let rows: Vec<(String, i64)> = one
        .rows("SELECT kind, count(*) FROM instructions WHERE status <> 'suppressed' GROUP BY kind ORDER BY kind")
        .await;
    assert_eq!(rows, [("feedback".to_owned(), 1), ("in_app".to_owned(), 5)]);
    let offered = one.offered(&ada).await;
    assert_eq!(offered, two.offered(&ada).await);
    assert_eq!(offered.as_array().unwrap().len(), 6);
    two.finish().await;
    one.finish().await;
}
