//! What fails always, for a defect or a row that can't be read: it waits, and nobody else with it (contract 9).

use std::time::{Duration, Instant};

use nudge_db::Dialect;
use serde_json::json;
use tests::campaigns::personalization;
use tests::session::text;
use tests::{TestApp, on_both_backends};

on_both_backends!(
    work_that_fails_always_holds_up_nobody_else,
    a_message_whose_data_cannot_be_read_waits_alone,
);

/// Far more than the requests take, and less than they would in a lane that pauses after each failure.
const QUICK: Duration = Duration::from_secs(40);

/// Changes the database behind the server's back.
async fn change(app: &TestApp, statements: &[&'static str]) {
    let mut tx = app.services().db.write().await.unwrap();
    for statement in statements {
        tx.sql(statement).execute().await.unwrap();
    }
    tx.commit().await.unwrap();
}

async fn work_that_fails_always_holds_up_nobody_else(app: &mut TestApp) {
    // Everybody's work comes to one lane.
    app.config.pipeline.lanes_per_app = 1;
    app.restart().await;
    app.survey(&json!({"kind": "event", "eventName": "purchase"}))
        .await;
    let ada = app.session("ada").await;
    change(app, &["UPDATE subjects SET country = 'XX'"]).await;
    let (refuse, allow): (&[&str], &str) = match app.services().db.dialect() {
        Dialect::Sqlite => (
            &["CREATE TRIGGER refuse BEFORE UPDATE ON subjects WHEN old.country = 'XX'
               BEGIN SELECT RAISE(ABORT, 'refused'); END"],
            "DROP TRIGGER refuse",
        ),
        Dialect::Postgres => (
            &[
                "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''refused''; END'",
                "CREATE TRIGGER refuse BEFORE UPDATE ON subjects FOR EACH ROW WHEN (old.country = 'XX')
                 EXECUTE FUNCTION refuse()",
            ],
            "DROP TRIGGER refuse ON subjects",
        ),
    };
    change(app, refuse).await;
    for _ in 0..3 {
        let purchase = app.event(&ada, "purchase", &json!({}));
        app.ingest(&ada, &[purchase]).await.ok();
    }

    let bob = app.session("bob").await;
    let started = Instant::now();
    for _ in 0..12 {
        app.fires(&bob, "purchase", &json!({})).await;
    }
    let took = started.elapsed();
    assert!(took < QUICK, "{took:?}");
    assert_eq!(app.count("pending").await, 3);
    assert_eq!(app.offered(&ada).await, json!([]));

    change(app, &[allow]).await;
    app.settle().await;
    let counts: Vec<(i64,)> = app
        .rows("SELECT event_count FROM subjects ORDER BY event_count")
        .await;
    assert_eq!(counts, [(3,), (12,)]);
    // The events were taken in their order.
    assert_eq!(
        app.count("subjects s WHERE s.event_count = 3 AND s.last_seq =
                   (SELECT max(e.seq) FROM events e JOIN aliases a ON a.number = e.alias_number WHERE a.subject_id = s.id)")
            .await,
        1
    );
    assert_ne!(app.offered(&ada).await, json!([]));
}

async fn a_message_whose_data_cannot_be_read_waits_alone(app: &mut TestApp) {
    let providers = app.with_providers().await;
    app.credential(&providers.fcm.credential()).await;
    let mut spec = personalization(&json!({"kind": "send_data"}), &[("code", "code", "string")]);
    spec["bindings"][0]["fallback"] = json!("none");
    let variants = json!([{"title": "{{p.code}}", "body": "b", "personalization": spec}]);
    let parts = json!({"mode": "transactional", "trigger": null, "variants": variants});
    let campaign = app.campaign(&parts).await;
    let mut ids = Vec::new();
    for (whom, number) in [("ada", 1), ("bob", 2)] {
        let session = app.session(whom).await;
        let token = providers.fcm.token(number);
        app.push_token(&session, &format!("of {whom}"), &token)
            .await;
        // It is sealed for another registration: the message waits, and is not made yet.
        change(
            app,
            &["UPDATE push_tokens SET registration = registration || '-' WHERE registration NOT LIKE '%-'"],
        )
        .await;
        let body = json!({"campaignId": campaign, "anonymousId": whom, "data": {"code": whom}});
        ids.push(text(
            &app.transactional(&body).await.data(202),
            "deliveryId",
        ));
    }
    app.until("both wait", async || {
        let waiting = "deliveries WHERE status = 'queued' AND node IS NULL AND due_at IS NOT NULL";
        app.count(waiting).await == 2
    })
    .await;
    let (unread, read) = (&ids[0], &ids[1]);
    change(
        app,
        &[
            "UPDATE deliveries SET data = '{' WHERE data LIKE '%ada%'",
            "UPDATE push_tokens SET registration = rtrim(registration, '-')",
        ],
    )
    .await;
    app.advance(120);
    app.delivery_in(read, "delivered").await;
    app.delivery_in(unread, "queued").await;
    assert_eq!(providers.fcm.received().len(), 1);

    change(
        app,
        &["UPDATE deliveries SET data = '{\"code\":\"ada\"}' WHERE data = '{'"],
    )
    .await;
    app.advance(120);
    let sent = app.delivery_in(unread, "delivered").await;
    assert_eq!(sent["content"]["title"], "ada");
}
