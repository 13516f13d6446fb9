//! More requests than the server can take (contract 3): what it takes is on disk, what it does not is told to
//! come back, and afterwards everything is as before.

use std::collections::BTreeSet;

use nudge_db::Dialect;
use nudge_platform::config::{Bucket, Switch};
use serde_json::json;
use tests::session::event_id;
use tests::{Answer, Credential, TestApp, client, on_both_backends};
use tokio::task::JoinSet;
use uuid::Uuid;

on_both_backends!(
    what_is_too_much_is_shed_and_the_rest_is_kept,
    one_person_too_many_is_told_when_to_come_back,
);

/// Requests that wait for their commit at the most.
const QUEUE: usize = 8;
/// Requests that a person may send at once.
const BURST: u32 = 5;

/// An answer that says when to come back.
fn was_shed(answer: &Answer, status: u16, code: &str) -> bool {
    if answer.status != status {
        return false;
    }
    answer.refused(status, code);
    let seconds = answer.header("retry-after").parse::<u64>();
    seconds.is_ok_and(|seconds| seconds >= 1)
}

async fn what_is_too_much_is_shed_and_the_rest_is_kept(app: &mut TestApp) {
    app.config.ingest.queue_size = QUEUE;
    app.config.ingest.queue_wait_ms = 500;
    app.config.ingest.postgres_writers = 1;
    app.config.database.acquire_timeout_seconds = 120;
    app.restart().await;
    let ada = app.session("ada").await;
    // The database takes no events until this is dropped.
    let mut held = app.services().db.write().await.unwrap();
    if held.dialect() == Dialect::Postgres {
        held.sql("LOCK TABLE events IN SHARE ROW EXCLUSIVE MODE")
            .execute()
            .await
            .unwrap();
    }

    // Four times what waits in the queue and in the writer's hand.
    let mut requests = JoinSet::new();
    let mut sent = BTreeSet::new();
    for _ in 0..4 * 2 * QUEUE {
        let event = app.event(&ada, "bought", &json!({}));
        let id = event_id(&event);
        sent.insert(id.clone());
        let request = app
            .request(reqwest::Method::POST, "/v1/sdk/ingest", &ada.credential())
            .json(&ada.batch(&[event]));
        requests.spawn(async move { (id, client::send(request).await) });
    }
    let (mut taken, mut shed) = (BTreeSet::new(), BTreeSet::new());
    let mut held = Some(held);
    while let Some(answered) = requests.join_next().await {
        let (id, answer) = answered.unwrap();
        if answer.status == 200 {
            assert_eq!(answer.ok()["accepted"], 1);
            assert!(held.is_none(), "nothing is accepted before it is on disk");
            taken.insert(id);
        } else {
            assert!(was_shed(&answer, 503, "unavailable"), "{}", answer.text);
            shed.insert(id);
        }
        if shed.len() >= 4 * QUEUE {
            // What waited in the queue all the while is still taken.
            held.take();
        }
    }
    assert_eq!(taken.len() + shed.len(), sent.len());
    assert!(!taken.is_empty(), "what found a place is taken");
    let metrics = app.get("/metrics", &Credential::none()).await.text;
    let counted = metrics
        .lines()
        .find_map(|line| line.strip_prefix("nudge_http_shed_total{full=\"commits\"} "));
    let counted = counted.and_then(|count| count.parse::<u64>().ok());
    assert!(counted >= Some(1), "{counted:?}");

    // It works at once, also what was shed before.
    let again = app.event(&ada, "bought", &json!({}));
    app.ingest(&ada, std::slice::from_ref(&again)).await.ok();
    taken.insert(event_id(&again));
    app.settle().await;
    let stored: Vec<(Uuid,)> = app.rows("SELECT event_id FROM events").await;
    let stored: BTreeSet<String> = stored.into_iter().map(|(id,)| id.to_string()).collect();
    assert_eq!(
        stored, taken,
        "what was accepted, and nothing of what was not"
    );
}

async fn one_person_too_many_is_told_when_to_come_back(app: &mut TestApp) {
    app.config.rate_limits.enabled = Switch::On;
    // It comes back so slowly that no test sees it.
    app.config.rate_limits.subject = Bucket {
        per_second: 0.01,
        burst: BURST,
    };
    app.restart().await;
    let ada = app.session("ada").await;
    let bob = app.session("bob").await;
    let (mut taken, mut shed) = (0, 0);
    for _ in 0..4 * BURST {
        let answer = app
            .ingest(&ada, &[app.event(&ada, "bought", &json!({}))])
            .await;
        if answer.status == 200 {
            taken += 1;
        } else {
            assert!(was_shed(&answer, 429, "rate_limited"), "{}", answer.text);
            shed += 1;
        }
    }
    assert_eq!(
        (taken, shed),
        (BURST as usize, 3 * BURST as usize),
        "all that the bucket holds"
    );

    // Nobody else notices, and the one who waits is served again.
    app.ingest(&bob, &[app.event(&bob, "looked", &json!({}))])
        .await
        .ok();
    app.advance(200);
    app.ingest(&ada, &[app.event(&ada, "bought", &json!({}))])
        .await
        .ok();
    app.settle().await;
    assert_eq!(app.stored("bought").await, taken + 1);
}
