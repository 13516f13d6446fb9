//! How webhooks fare (contract 10): health, disabling of what only fails, enabling, sending again.

use nudge::operations::store::backlog;
use nudge_campaigns::webhooks::EventType::{Delivered, Opened, Sent};
use nudge_db::Tx;
use serde_json::{Value, json};
use tests::{Session, TestApp, on_both_backends};
use uuid::Uuid;

use crate::identity::Backend;
use crate::receiver::{Receiver, Reply};

on_both_backends!(
    health_follows_what_was_answered_last,
    what_only_fails_is_disabled_and_keeps_its_messages,
    a_webhook_that_is_changed_is_given_the_whole_time_anew,
    what_never_arrived_is_sent_again,
    one_message_is_sent_again,
    a_message_that_waits_is_sent_at_once,
    messages_kept_before_an_instant_stay,
    what_waits_for_a_webhook_that_is_switched_off_is_no_backlog,
    a_merged_person_is_erased_with_what_was_told,
);

const SUBJECT: Uuid = Uuid::from_u128(42);
const DAY: u64 = 86_400;

fn path(app: &TestApp, webhook: &Value, rest: &str) -> String {
    let id = webhook["id"].as_str().unwrap();
    app.path(&format!("/push/webhooks/{id}{rest}"))
}

async fn health(app: &TestApp, webhook: &Value) -> Value {
    let shown = app.get(&path(app, webhook, ""), &app.admin()).await.ok();
    shown["health"].clone()
}

async fn count(app: &TestApp, state: &str) -> usize {
    let rows: Vec<(String,)> = app.rows("SELECT state FROM webhook_messages").await;
    rows.iter().filter(|(stored,)| stored == state).count()
}

/// A transition, and the attempt at telling it.
async fn tell(app: &TestApp, receiver: &Receiver, webhook: &Value) {
    let before = receiver.received("/").len();
    let attempts = path(app, webhook, "/attempts?limit=200");
    let noted = async || {
        let list = app.get(&attempts, &app.admin()).await.ok();
        list["items"].as_array().unwrap().len()
    };
    let noted_before = noted().await;
    app.transit(SUBJECT, app.id(), &[Sent]).await;
    receiver.wait(app, "/", before + 1).await;
    app.until("the attempt is noted", async || {
        noted().await > noted_before
    })
    .await;
}

async fn health_follows_what_was_answered_last(app: &mut TestApp) {
    let receiver = Receiver::start().await;
    let webhook = receiver.subscribe(app, "/", &[Sent]).await;
    tell(app, &receiver, &webhook).await;
    let healthy = health(app, &webhook).await;
    assert_eq!(
        (
            &healthy["state"],
            &healthy["consecutiveFailures"],
            &healthy["lastStatusCode"]
        ),
        (&json!("healthy"), &json!(0), &json!(200))
    );
    assert!(healthy["lastSuccessAt"].is_string() && healthy.get("lastFailureAt").is_none());

    receiver.reply("/", &[Reply::Status(404)]);
    tell(app, &receiver, &webhook).await;
    tell(app, &receiver, &webhook).await;
    let degraded = health(app, &webhook).await;
    assert_eq!(
        (
            &degraded["state"],
            &degraded["consecutiveFailures"],
            &degraded["lastStatusCode"]
        ),
        (&json!("degraded"), &json!(2), &json!(404))
    );
    assert!(degraded["lastFailureAt"].is_string() && degraded["lastError"].is_string());
    assert_eq!(degraded["lastSuccessAt"], healthy["lastSuccessAt"]);

    receiver.reply("/", &[Reply::Status(204)]);
    tell(app, &receiver, &webhook).await;
    let healthy = health(app, &webhook).await;
    assert_eq!(
        (
            &healthy["state"],
            &healthy["consecutiveFailures"],
            &healthy["lastStatusCode"]
        ),
        (&json!("healthy"), &json!(0), &json!(204))
    );
    assert!(healthy["lastFailureAt"].is_string());
}

async fn a_webhook_that_is_changed_is_given_the_whole_time_anew(app: &mut TestApp) {
    let receiver = Receiver::start().await;
    receiver.reply("/", &[Reply::Status(404)]);
    let webhook = receiver.subscribe(app, "/", &[Sent]).await;
    let resting = [json!({"active": false}), json!({"active": true})];
    let moved = [json!({"url": receiver.url("/?moved")})];
    for changes in [&resting[..], &moved] {
        tell(app, &receiver, &webhook).await;
        app.advance(6 * DAY);
        for change in changes {
            let webhook = path(app, &webhook, "");
            app.patch(&webhook, &app.admin(), change).await.ok();
        }
        assert_eq!(health(app, &webhook).await["consecutiveFailures"], 0);
        tell(app, &receiver, &webhook).await;
        let after = health(app, &webhook).await;
        assert_eq!(
            (&after["state"], &after["consecutiveFailures"]),
            (&json!("degraded"), &json!(1))
        );
    }
}

async fn what_only_fails_is_disabled_and_keeps_its_messages(app: &mut TestApp) {
    let receiver = Receiver::start().await;
    receiver.reply("/", &[Reply::Status(200), Reply::Status(404)]);
    let webhook = receiver.subscribe(app, "/", &[Sent]).await;
    tell(app, &receiver, &webhook).await;
    // The days count from the first failure on, not from the last success.
    app.advance(4 * DAY);
    tell(app, &receiver, &webhook).await;
    app.advance(5 * DAY - 60);
    tell(app, &receiver, &webhook).await;
    assert_eq!(health(app, &webhook).await["state"], json!("degraded"));
    app.advance(120);
    tell(app, &receiver, &webhook).await;
    let disabled = health(app, &webhook).await;
    assert_eq!(
        (&disabled["state"], &disabled["consecutiveFailures"]),
        (&json!("disabled"), &json!(3))
    );
    let entries = app.audited("webhook.disabled").await;
    assert_eq!((entries.len(), &entries[0]["actor"]), (1, &json!("server")));
    receiver.reply("/", &[Reply::Status(200)]);
    for _ in 0..3 {
        app.transit(SUBJECT, app.id(), &[Sent]).await;
    }
    assert_eq!(
        (count(app, "held").await, receiver.received("/").len()),
        (3, 4)
    );
    let enabled = app
        .post(&path(app, &webhook, "/enable"), &app.admin(), &json!({}))
        .await
        .ok();
    assert_eq!(
        (
            &enabled["health"]["state"],
            &enabled["health"]["consecutiveFailures"]
        ),
        (&json!("healthy"), &json!(0))
    );
    assert!(enabled.get("secret").is_none());
    // What comes from now on is sent; what was kept is, when it is asked for.
    tell(app, &receiver, &webhook).await;
    assert_eq!(
        (count(app, "held").await, receiver.received("/").len()),
        (3, 5)
    );
    recover(app, &webhook, 14 * DAY - 60).await;
    // Three that failed, three that were kept.
    receiver.wait(app, "/", 11).await;
    app.until("all have arrived", async || {
        count(app, "succeeded").await == 8
    })
    .await;
    assert_eq!(receiver.received("/").len(), 11);
}

/// Has everything since so many seconds ago sent again.
pub(crate) async fn recover(app: &TestApp, webhook: &Value, seconds: u64) -> Value {
    let since = app.time(-i64::try_from(seconds).unwrap());
    let recover = path(app, webhook, "/recover");
    let queued = app
        .post(&recover, &app.admin(), &json!({"since": since}))
        .await
        .data(202);
    assert_eq!(queued["status"], json!("queued"));
    let job = app.path(&format!("/jobs/{}", queued["jobId"].as_str().unwrap()));
    let mut shown = Value::Null;
    app.until("the recovery ends", async || {
        shown = app.get(&job, &app.admin()).await.ok();
        shown["status"] == json!("completed")
    })
    .await;
    shown
}

async fn what_never_arrived_is_sent_again(app: &mut TestApp) {
    let receiver = Receiver::start().await;
    receiver.reply("/", &[Reply::Status(200), Reply::Status(404)]);
    let webhook = receiver.subscribe(app, "/", &[Sent, Delivered]).await;
    let (arrives, fails) = (app.id(), app.id());
    app.transit(SUBJECT, arrives, &[Sent]).await;
    receiver.wait(app, "/", 1).await;
    app.transit(SUBJECT, fails, &[Sent, Delivered]).await;
    app.until("two have failed", async || count(app, "failed").await == 2)
        .await;

    // It fails again: each is sent once, whatever becomes of it.
    let job = recover(app, &webhook, 60).await;
    assert_eq!(job["result"]["messages"], json!(2));
    app.until("two have failed again", async || {
        count(app, "failed").await == 2
    })
    .await;
    let got = receiver.wait(app, "/", 5).await;
    assert_eq!(got.len(), 5);
    assert_eq!(got[3].header("webhook-id"), got[1].header("webhook-id"));
    assert_eq!(got[3].body, got[1].body);

    receiver.reply("/", &[Reply::Status(200)]);
    recover(app, &webhook, 60).await;
    app.until("all have arrived", async || {
        count(app, "succeeded").await == 3
    })
    .await;
    let nothing = recover(app, &webhook, 60).await;
    assert_eq!(nothing["result"]["messages"], json!(0));
    assert_eq!(receiver.received("/").len(), 7);
}

async fn one_message_is_sent_again(app: &mut TestApp) {
    let receiver = Receiver::start().await;
    receiver.reply("/", &[Reply::Status(404)]);
    let webhook = receiver.subscribe(app, "/", &[Sent]).await;
    for _ in 0..2 {
        tell(app, &receiver, &webhook).await;
    }
    let attempts = path(app, &webhook, "/attempts");
    let list = app.get(&attempts, &app.admin()).await.ok();
    let message = list["items"][1]["messageId"].as_str().unwrap();
    let retry = |id: &str| path(app, &webhook, &format!("/messages/{id}/retry"));
    let again = async |id: &str| app.post(&retry(id), &app.admin(), &json!({})).await;

    // It fails again, and may be sent once more; the other one is left alone.
    let queued = again(message).await.data(202);
    assert_eq!(queued, json!({"messageId": message, "status": "queued"}));
    receiver.wait(app, "/", 3).await;
    app.until("it has failed again", async || {
        count(app, "failed").await == 2
    })
    .await;
    receiver.reply("/", &[Reply::Status(200)]);
    again(message).await.data(202);
    let got = receiver.wait(app, "/", 4).await;
    let id = |place: usize| got[place].header("webhook-id");
    assert_eq!((id(2), id(3)), (id(0), id(0)));
    app.until("it has arrived", async || {
        count(app, "succeeded").await == 1
    })
    .await;

    again(message).await.refused(409, "message_arrived");
    again(&app.id().to_string()).await.refused(404, "not_found");
    let other = receiver.subscribe(app, "/other", &[Opened]).await;
    let elsewhere = path(app, &other, &format!("/messages/{message}/retry"));
    app.post(&elsewhere, &app.admin(), &json!({}))
        .await
        .refused(404, "not_found");
    assert_eq!(
        (count(app, "failed").await, receiver.received("/").len()),
        (1, 4)
    );
    assert_eq!(app.audited("webhook.message_retried").await.len(), 2);
}

/// What waits for its next attempt is sent now, as the attempt that it is.
async fn a_message_that_waits_is_sent_at_once(app: &mut TestApp) {
    let receiver = Receiver::start().await;
    receiver.reply("/", &[Reply::Status(500)]);
    let webhook = receiver.subscribe(app, "/", &[Sent]).await;
    tell(app, &receiver, &webhook).await;
    receiver.reply("/", &[Reply::Status(200)]);
    let messages: Vec<(Uuid,)> = app.rows("SELECT id FROM webhook_messages").await;
    let retry = format!("/messages/{}/retry", messages[0].0);
    app.post(&path(app, &webhook, &retry), &app.admin(), &json!({}))
        .await
        .data(202);
    let got = receiver.wait(app, "/", 2).await;
    assert_eq!(got[1].header("x-service-attempt"), "2");
    app.until("it has arrived", async || {
        count(app, "succeeded").await == 1
    })
    .await;
}

async fn messages_kept_before_an_instant_stay(app: &mut TestApp) {
    let receiver = Receiver::start().await;
    receiver.reply("/", &[Reply::Status(404)]);
    let webhook = receiver.subscribe(app, "/", &[Sent]).await;
    let mut sent = Vec::new();
    for _ in 0..2 {
        tell(app, &receiver, &webhook).await;
        sent = receiver.received("/");
        app.advance(100);
    }
    receiver.reply("/", &[Reply::Status(200)]);

    let job = recover(app, &webhook, 150).await;

    assert_eq!(job["result"]["messages"], json!(1));
    let got = receiver.wait(app, "/", 3).await;
    assert_eq!(got[2].header("webhook-id"), sent[1].header("webhook-id"));
    assert_eq!(count(app, "failed").await, 1);
}

/// The webhook messages that are due, as the metrics and the doctor say.
async fn due(app: &TestApp, tx: &mut Tx) -> i64 {
    let found = backlog(tx, app.clock.now()).await.unwrap();
    found.webhooks.number
}

async fn what_waits_for_a_webhook_that_is_switched_off_is_no_backlog(app: &mut TestApp) {
    let receiver = Receiver::start().await;
    receiver.reply("/", &[Reply::Status(503)]);
    let webhook = receiver.subscribe(app, "/", &[Sent]).await;
    tell(app, &receiver, &webhook).await;
    app.patch(
        &path(app, &webhook, ""),
        &app.admin(),
        &json!({"active": false}),
    )
    .await
    .ok();
    app.advance(3600);

    let mut tx = app.services().db.write().await.unwrap();
    assert_eq!(due(app, &mut tx).await, 0);
    // It is kept, and late once it is to be sent again. Nobody sees that before the end of the transaction.
    for (is_disabled, number) in [(false, 1), (true, 0)] {
        let disabled_at = is_disabled.then(|| app.clock.now());
        tx.sql("UPDATE webhooks SET active = $1, disabled_at = $2")
            .bind(true)
            .bind(disabled_at)
            .execute()
            .await
            .unwrap();
        assert_eq!(due(app, &mut tx).await, number);
    }
    tx.rollback().await.unwrap();
}

/// Messages of the one who goes are found by the one who stays.
async fn a_merged_person_is_erased_with_what_was_told(app: &mut TestApp) {
    let receiver = Receiver::start().await;
    receiver.subscribe(app, "/", &[Opened]).await;
    let backend = Backend::new(app).await;
    let subject = |session: &Session| Uuid::parse_str(&session.subject_id).unwrap();
    let phone = backend.identify(app, "phone", "e-1").await;
    let web = app.session("web").await;
    let other = app.session("other").await;
    for session in [&phone, &web, &other] {
        app.transit(subject(session), app.id(), &[Opened]).await;
    }
    app.until("all have arrived", async || {
        count(app, "succeeded").await == 3
    })
    .await;
    let merged = backend.identify(app, "web", "e-1").await;
    assert_eq!(merged.subject_id, phone.subject_id);

    let body = json!({"externalId": "e-1"});
    let queued = app
        .post(&app.path("/gdpr/delete"), &app.admin(), &body)
        .await
        .data(202);
    let job = app.path(&format!(
        "/gdpr/deletions/{}",
        queued["jobId"].as_str().unwrap()
    ));
    let mut ended = Value::Null;
    app.until("the deletion ends", async || {
        ended = app.get(&job, &app.admin()).await.ok();
        ended["status"] == json!("completed")
    })
    .await;

    let left: Vec<(Uuid,)> = app.rows("SELECT subject_id FROM webhook_messages").await;
    assert_eq!(left, [(subject(&other),)]);
    let left: Vec<(i64,)> = app.rows("SELECT attempt FROM webhook_attempts").await;
    assert_eq!(left, [(1,)]);
    let steps = ended["steps"].as_array().unwrap();
    for store in ["webhook_messages", "webhook_attempts"] {
        let step = steps
            .iter()
            .find(|step| step["store"] == json!(store))
            .unwrap();
        assert_eq!(step["deletedCount"], json!(2), "{step}");
    }
}
