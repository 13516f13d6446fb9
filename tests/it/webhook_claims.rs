//! Messages to webhooks that are written as claimed by the process that sends them: they go to the sender without a look at the
//! database, and to whoever looks where they do not get there.

use std::collections::HashSet;
use std::time::Duration;

use nudge_campaigns::webhooks::EventType::{Delivered, Sent};
use serde_json::{Value, json};
use tempfile::TempDir;
use tests::{TestApp, on_both_backends, postgres};
use uuid::Uuid;

use crate::receiver::{Receiver, Reply};
use crate::two_servers::node;
use crate::webhook_delivery::noted;
use crate::webhook_health::recover;

on_both_backends!(
    a_message_is_written_as_claimed,
    claims_that_nobody_told_the_sender_of_are_given_up,
    many_at_once_arrive_once_each,
    a_message_behind_one_that_failed_is_claimed_by_nobody,
    an_endpoint_is_disabled_as_the_database_says,
    nothing_is_recovered_about_somebody_who_is_being_deleted,
);

const SUBJECT: Uuid = Uuid::from_u128(42);

/// Messages, and whether a process has each.
async fn claims(app: &TestApp) -> Vec<bool> {
    let rows: Vec<(Option<Uuid>,)> = app
        .rows("SELECT node FROM webhook_messages ORDER BY position")
        .await;
    rows.iter().map(|row| row.0.is_some()).collect()
}

async fn states(app: &TestApp) -> Vec<String> {
    let rows: Vec<(String,)> = app
        .rows("SELECT state FROM webhook_messages ORDER BY position")
        .await;
    rows.into_iter().map(|row| row.0).collect()
}

async fn change(app: &TestApp, sql: &'static str) {
    let mut tx = app.services().db.write().await.unwrap();
    tx.sql(sql).execute().await.unwrap();
    tx.commit().await.unwrap();
}

async fn a_message_is_written_as_claimed(app: &mut TestApp) {
    let receiver = Receiver::start().await;
    let webhook = receiver.subscribe(app, "/", &[Sent, Delivered]).await;
    let delivery = app.id();
    let transitions = [Sent, Delivered].map(|event| app.transition(SUBJECT, delivery, event));
    let mut tx = app.services().db.write().await.unwrap();
    let queued = app.write_messages(&mut tx, &transitions).await;
    tx.commit().await.unwrap();
    // The second one waits for the first one, in the database.
    assert_eq!(claims(app).await, [true, false]);
    assert_eq!(receiver.received("/").len(), 0);
    app.services().push.webhooks.wake(queued);
    noted(app, &webhook, 2).await;
    assert_eq!(claims(app).await, [false, false]);
    let got = receiver.received("/");
    let told: Vec<&str> = got
        .iter()
        .map(|one| one.header("x-service-event"))
        .collect();
    assert_eq!(told, ["sent", "delivered"]);
    assert!(app.services().push.webhooks.in_hand.is_empty());
}

/// As when a client goes away between the commit and the answer.
async fn claims_that_nobody_told_the_sender_of_are_given_up(app: &mut TestApp) {
    let receiver = Receiver::start().await;
    let webhook = receiver.subscribe(app, "/", &[Sent]).await;
    let transition = [app.transition(SUBJECT, app.id(), Sent)];
    let mut tx = app.services().db.write().await.unwrap();
    let queued = app.write_messages(&mut tx, &transition).await;
    tx.commit().await.unwrap();
    assert_eq!(claims(app).await, [true]);
    drop(queued);
    noted(app, &webhook, 1).await;
    assert_eq!(receiver.received("/").len(), 1);
    // What was rolled back is nowhere.
    app.enqueue(&[app.transition(SUBJECT, app.id(), Sent)], false)
        .await;
    assert_eq!(claims(app).await.len(), 1);
    assert!(app.services().push.webhooks.in_hand.is_empty());
}

/// More than one process may have in hand of an endpoint.
async fn many_at_once_arrive_once_each(app: &mut TestApp) {
    const MANY: usize = 1_500;
    let receiver = Receiver::start().await;
    receiver.subscribe(app, "/", &[Sent]).await;
    let transitions: Vec<_> = (0..MANY)
        .map(|_| app.transition(SUBJECT, app.id(), Sent))
        .collect();
    app.enqueue(&transitions, true).await;
    app.until("all have arrived", async || {
        let states = states(app).await;
        states.len() == MANY && states.iter().all(|state| state == "succeeded")
    })
    .await;
    let got = receiver.received("/");
    let ids: HashSet<&str> = got.iter().map(|one| one.header("webhook-id")).collect();
    assert_eq!((got.len(), ids.len()), (MANY, MANY));
}

async fn a_message_behind_one_that_failed_is_claimed_by_nobody(app: &mut TestApp) {
    let receiver = Receiver::start().await;
    receiver.reply("/", &[Reply::Status(500), Reply::Status(200)]);
    let webhook = receiver.subscribe(app, "/", &[Sent, Delivered]).await;
    let delivery = app.id();
    app.transit(SUBJECT, delivery, &[Sent]).await;
    noted(app, &webhook, 1).await;
    let transition = [app.transition(SUBJECT, delivery, Delivered)];
    let mut tx = app.services().db.write().await.unwrap();
    let queued = app.write_messages(&mut tx, &transition).await;
    tx.commit().await.unwrap();
    assert_eq!(claims(app).await, [false, false]);
    app.services().push.webhooks.wake(queued);
    app.advance(60);
    let got = receiver.wait(app, "/", 3).await;
    let told: Vec<&str> = got
        .iter()
        .map(|one| one.header("x-service-event"))
        .collect();
    assert_eq!(told, ["sent", "sent", "delivered"]);
}

/// A snapshot of the app may be a moment old.
async fn an_endpoint_is_disabled_as_the_database_says(app: &mut TestApp) {
    let receiver = Receiver::start().await;
    let webhook = receiver.subscribe(app, "/", &[Sent]).await;
    change(app, "UPDATE webhooks SET disabled_at = 1").await;
    app.transit(SUBJECT, app.id(), &[Sent]).await;
    assert_eq!(states(app).await, ["held"]);
    change(app, "UPDATE webhooks SET disabled_at = NULL").await;
    app.transit(SUBJECT, app.id(), &[Sent]).await;
    noted(app, &webhook, 1).await;
    assert_eq!(states(app).await, ["held", "succeeded"]);
}

async fn nothing_is_recovered_about_somebody_who_is_being_deleted(app: &mut TestApp) {
    let receiver = Receiver::start().await;
    receiver.reply("/", &[Reply::Status(404)]);
    let webhook = receiver.subscribe(app, "/", &[Sent]).await;
    let ada = app.session("ada").await;
    let seen = app.event(&ada, "seen", &json!({}));
    app.ingest(&ada, &[seen]).await.ok();
    let ada = Uuid::parse_str(&ada.subject_id).unwrap();
    for subject in [ada, SUBJECT] {
        app.transit(subject, app.id(), &[Sent]).await;
    }
    noted(app, &webhook, 2).await;
    receiver.reply("/", &[Reply::Status(200)]);
    change(app, "UPDATE subjects SET suppressed = NOT suppressed").await;
    let job: Value = recover(app, &webhook, 60).await;
    assert_eq!(job["result"]["messages"], json!(1));
    noted(app, &webhook, 2).await;
    let got = receiver.wait(app, "/", 3).await;
    assert_eq!(got[2].json()["data"]["subjectId"], json!(SUBJECT));
}

/// As while a disk is full. A sequence counts the tries: it is not rolled back with them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_can_not_be_noted_is_tried_again_after_a_pause() {
    let url = postgres::database().await;
    let folder = TempDir::with_prefix("nudge-test-").unwrap();
    let app = node(&url, folder.path(), "one").await;
    let receiver = Receiver::start().await;
    let webhook = receiver.subscribe(&app, "/", &[Sent]).await;
    for statement in [
        "CREATE SEQUENCE tries",
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
         'BEGIN PERFORM nextval(''tries''); RAISE EXCEPTION ''refused''; END'",
        "CREATE TRIGGER refuse BEFORE UPDATE ON webhook_messages EXECUTE FUNCTION refuse()",
    ] {
        change(&app, statement).await;
    }
    let transitions: Vec<_> = (0..1_000)
        .map(|_| app.transition(SUBJECT, app.id(), Sent))
        .collect();
    app.enqueue(&transitions, true).await;
    let tries = async || app.rows::<(i64,)>("SELECT last_value FROM tries").await[0].0;
    app.until("it is tried", async || tries().await > 1).await;
    // By now more wait to be noted than are noted together.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let before = tries().await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let tries = tries().await - before;
    // One every 50 ms.
    assert!((1..=60).contains(&tries), "{tries}");

    change(&app, "DROP TRIGGER refuse ON webhook_messages").await;
    receiver.wait(&app, "/", 1_000).await;
    noted(&app, &webhook, 200).await;
    app.finish().await;
    assert_eq!(receiver.received("/").len(), 1_000);
}
