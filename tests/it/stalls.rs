//! Queues empty themselves: what a living process has forgotten, and what a clock that was ahead put off (contract 9, 17).

use std::sync::Arc;
use std::time::Duration;

use nudge_campaigns::webhooks::EventType::{Delivered, Sent};
use nudge_db::{Rows, Timestamp};
use nudge_records::events::insert::{self, NewRequest};
use nudge_records::events::{Event, Origin};
use nudge_records::scheduled_work::{self, NewOccasion};
use serde_json::{Value, json};
use tests::providers::{Providers, Reply as Answer};
use tests::session::{instruction_ids, text};
use tests::{Session, TestApp, on_both_backends};
use uuid::Uuid;

use crate::clock_jumps::backtested;
use crate::receiver::{Receiver, Reply, events};

on_both_backends!(
    deliveries_that_their_process_has_forgotten_are_sent,
    messages_to_webhooks_that_their_process_has_forgotten_are_sent,
    what_waits_for_a_message_to_a_webhook_is_due_with_it,
    jobs_that_their_process_has_forgotten_are_done,
    work_that_its_process_has_forgotten_is_given_up,
    what_a_clock_that_was_ahead_put_off_comes_once_it_is_set_back,
    what_a_clock_that_was_ahead_put_off_comes_after_a_restart,
);

const HOUR: Duration = Duration::from_hours(1);

/// Changes a row behind the server's back.
pub(crate) async fn change(app: &TestApp, change: &'static str) {
    let mut tx = app.services().db.write().await.unwrap();
    assert_eq!(tx.sql(change).execute().await.unwrap(), 1, "{change}");
    tx.commit().await.unwrap();
}

/// A message that its push service does not take yet: it waits to be sent again.
async fn put_off(app: &mut TestApp) -> (Providers, String) {
    let providers = app.with_providers().await;
    app.credential(&providers.fcm.credential()).await;
    let campaign = app.transactional_campaign().await;
    let bob = app.session("bob").await;
    app.push_token(&bob, "phone", &providers.fcm.token(1)).await;
    providers.fcm.reply_next(Answer {
        status: 503,
        ..Answer::default()
    });
    let body = json!({"campaignId": campaign, "anonymousId": "bob"});
    let id = text(&app.transactional(&body).await.data(202), "deliveryId");
    app.until("it waits to be sent again", async || {
        let waiting: Vec<(i64,)> = app
            .rows("SELECT attempts FROM deliveries WHERE due_at IS NOT NULL AND node IS NULL AND attempts = 1")
            .await;
        waiting.len() == 1
    })
    .await;
    (providers, id)
}

async fn deliveries_that_their_process_has_forgotten_are_sent(app: &mut TestApp) {
    let (providers, id) = put_off(app).await;
    change(app, "UPDATE deliveries SET node = (SELECT id FROM nodes)").await;

    app.advance(60);
    app.delivery_in(&id, "delivered").await;
    assert_eq!(providers.fcm.received().len(), 2);
}

/// The only message to a webhook was not taken, and waits.
async fn tried_once(app: &TestApp) {
    app.until("it waits to be sent again", async || {
        let waiting: Vec<(i64,)> = app
            .rows("SELECT attempts FROM webhook_messages WHERE due_at IS NOT NULL AND node IS NULL AND attempts = 1")
            .await;
        waiting.len() == 1
    })
    .await;
}

async fn messages_to_webhooks_that_their_process_has_forgotten_are_sent(app: &mut TestApp) {
    let receiver = Receiver::start().await;
    receiver.reply("/", &[Reply::Status(500), Reply::Status(200)]);
    receiver.subscribe(app, "/", &[Sent]).await;
    app.transit(Uuid::from_u128(42), app.id(), &[Sent]).await;
    tried_once(app).await;
    change(
        app,
        "UPDATE webhook_messages SET node = (SELECT id FROM nodes)",
    )
    .await;

    app.advance(60);
    receiver.wait(app, "/", 2).await;
}

async fn what_waits_for_a_message_to_a_webhook_is_due_with_it(app: &mut TestApp) {
    let receiver = Receiver::start().await;
    receiver.reply("/", &[Reply::Status(500), Reply::Status(200)]);
    receiver.subscribe(app, "/", &[Sent, Delivered]).await;
    let delivery = app.id();
    app.transit(Uuid::from_u128(42), delivery, &[Sent]).await;
    tried_once(app).await;
    // As if its host's name could not be looked up yet: it was not tried.
    change(app, "UPDATE webhook_messages SET attempts = 0").await;
    app.transit(Uuid::from_u128(42), delivery, &[Delivered])
        .await;
    app.until("both are due at once", async || {
        let due: Vec<(i64,)> = app
            .rows("SELECT due_at FROM webhook_messages WHERE due_at IS NOT NULL ORDER BY position")
            .await;
        due.len() == 2 && due.first() == due.last()
    })
    .await;

    app.advance(60);
    let got = receiver.wait(app, "/", 3).await;
    assert_eq!(events(&got), ["sent", "sent", "delivered"]);
}

async fn jobs_that_their_process_has_forgotten_are_done(app: &mut TestApp) {
    let job = backtested(app).await;
    change(
        app,
        "UPDATE jobs SET completed_at = NULL, state = 'queued', node = (SELECT id FROM nodes)",
    )
    .await;

    app.advance(60);
    app.until("the job is taken", async || {
        app.get(&job, &app.viewer()).await.ok()["status"] == "completed"
    })
    .await;
}

/// Requests as a commit leaves them whose answer got lost, and as many occasions and timers.
async fn forget(app: &TestApp, person: &Session, events: &[Arc<Event>]) {
    let aliases: Vec<(i64,)> = app.rows("SELECT number FROM aliases").await;
    let (app_id, alias) = (app.access.app_id, aliases[0].0);
    let node = Some(app.services().pipeline.node());
    let origin = Origin::default();
    let request = |event| NewRequest {
        app_id,
        alias,
        node,
        received_at: app.clock.now(),
        origin: &origin,
        events: std::slice::from_ref(event),
    };
    let requests: Vec<NewRequest<'_>> = events.iter().map(request).collect();
    let occasion = |event: &Arc<Event>| NewOccasion {
        id: event.id,
        campaign_id: app_id,
        subject_id: person.subject_id.parse().unwrap(),
        alias,
        key: event.id.to_string(),
        due_at: Timestamp(9_000_000_000_000_000),
        event_seq: 1,
        firing_id: None,
        node,
    };
    let occasions: Vec<NewOccasion> = events.iter().map(occasion).collect();
    let mut tx = app.services().db.write().await.unwrap();
    insert::insert(&mut tx, &requests, true).await.unwrap();
    scheduled_work::insert(&mut tx, app_id, &occasions)
        .await
        .unwrap();
    tx.sql(
        "INSERT INTO timers (id, app_id, campaign_id, subject_id, key, due_at, payload, event_seq, node)
         SELECT id, app_id, campaign_id, subject_id, key, due_at, $1, event_seq, node FROM occasions",
    )
    .bind(vec![7_u8])
    .execute()
    .await
    .unwrap();
    tx.commit().await.unwrap();
}

async fn work_that_its_process_has_forgotten_is_given_up(app: &mut TestApp) {
    let ada = app.session("ada").await;
    let event = |_| {
        Arc::new(Event {
            id: app.id(),
            name: "view".into(),
            timestamp: app.clock.now(),
            client_timestamp: None,
            properties: "{}".into(),
        })
    };
    // More than one statement takes.
    let events: Vec<Arc<Event>> = (0..=Rows::MOST).map(event).collect();
    forget(app, &ada, &events).await;

    app.until("all of it is given up", async || {
        app.advance(3);
        let timers = app.count("timers WHERE node IS NOT NULL").await;
        let occasions = app.count("occasions WHERE node IS NOT NULL").await;
        timers + occasions + app.count("pending").await == 0
    })
    .await;
    assert_eq!(app.stored("view").await, events.len());
    assert_eq!(app.count("timers").await, events.len());
    assert_eq!(app.count("occasions").await, events.len());
}

/// A firing that waits for ten minutes.
async fn delayed(app: &TestApp) -> Session {
    let trigger = json!({"kind": "event", "eventName": "cart_updated", "delaySeconds": 600});
    app.survey(&trigger).await;
    let ada = app.session("ada").await;
    assert_eq!(app.fires(&ada, "cart_updated", &json!({})).await, 0);
    ada
}

/// When what waits is due, in seconds from now on.
async fn due_in(app: &TestApp, sql: &'static str) -> i64 {
    let due: Vec<(i64,)> = app.rows(sql).await;
    (due[0].0 - app.clock.now().0) / 1_000_000
}

/// Both come: the firing once its delay is over, and the message.
async fn both_come(app: &TestApp, ada: &Session, delivery: &str) {
    app.until("the delay is what it was", async || {
        due_in(app, "SELECT due_at FROM timers").await <= 600
    })
    .await;
    assert!(due_in(app, "SELECT due_at FROM timers").await > 500);
    app.delivery_in(delivery, "delivered").await;
    app.advance(601);
    let polled: Value = app.poll(ada, "?wait=25").await.ok();
    assert_eq!(instruction_ids(&polled["items"]).len(), 1, "{polled}");
}

async fn what_a_clock_that_was_ahead_put_off_comes_once_it_is_set_back(app: &mut TestApp) {
    app.clock.advance(HOUR);
    let (_providers, delivery) = put_off(app).await;
    let ada = delayed(app).await;
    app.settle().await;

    app.clock.set_back(HOUR);
    let ada = app.session(&ada.anonymous_id).await;
    // Whatever is committed has the server look at once.
    assert_eq!(app.fires(&ada, "view", &json!({})).await, 0);
    both_come(app, &ada, &delivery).await;
}

async fn what_a_clock_that_was_ahead_put_off_comes_after_a_restart(app: &mut TestApp) {
    app.clock.advance(HOUR);
    let (_providers, delivery) = put_off(app).await;
    let ada = delayed(app).await;
    app.settle().await;
    app.stop().await;
    app.clock.set_back(HOUR);
    app.resume().await;
    let ada = app.session(&ada.anonymous_id).await;
    both_come(app, &ada, &delivery).await;
}
