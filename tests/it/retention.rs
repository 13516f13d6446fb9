//! What is removed when its time is over (contract 13, `retention`).

use serde_json::json;
use tests::{TestApp, on_both_backends};

on_both_backends!(
    dead_letters_go_after_their_days,
    events_go_only_where_an_app_says_so,
    an_event_that_a_timer_needs_stays,
);

const DAY: u64 = 24 * 3600;

async fn set(app: &TestApp, body: serde_json::Value) {
    app.patch(
        &app.path("/settings"),
        &app.admin(),
        &json!({"retention": body}),
    )
    .await
    .ok();
}

/// Read from the database: the demo app's access tokens last for thirty days.
async fn letters(app: &TestApp) -> usize {
    let rows: Vec<(String,)> = app.rows("SELECT event_name FROM dead_letters").await;
    rows.len()
}

async fn dead_letters_go_after_their_days(app: &mut TestApp) {
    app.define(
        "strict",
        &json!({"properties": [{"name": "total", "type": "number", "required": true}]}),
    )
    .await;
    let ada = app.session("ada").await;
    let event = app.event(&ada, "strict", &json!({}));
    assert_eq!(app.ingest(&ada, &[event]).await.ok()["rejected"], 1);
    assert_eq!(letters(app).await, 1);
    app.advance(29 * DAY);
    let ben = app.session("ben").await;
    let event = app.event(&ben, "strict", &json!({}));
    app.ingest(&ben, &[event]).await.ok();
    app.advance(DAY + 3600);
    app.until("the older letter stays", async || letters(app).await == 1)
        .await;

    app.set(|settings| settings.retention.dead_letters_days = 1)
        .await;
    app.advance(3600);
    app.until("the letter outlives its days", async || {
        letters(app).await == 0
    })
    .await;
}

async fn events_go_only_where_an_app_says_so(app: &mut TestApp) {
    for number in 0..250 {
        let someone = app.session(&format!("someone-{number}")).await;
        let events = [
            app.event(&someone, "old", &json!({})),
            app.event(&someone, "old", &json!({})),
        ];
        app.ingest(&someone, &events).await.ok();
    }
    app.settle().await;
    app.advance(10 * DAY);
    let ada = app.session("ada").await;
    let young = app.event(&ada, "young", &json!({}));
    app.ingest(&ada, &[young]).await.ok();
    app.settle().await;
    app.advance(3600);
    app.settle().await;
    assert_eq!(
        app.stored("old").await,
        500,
        "without a setting nothing goes"
    );

    set(app, json!({"eventsDays": 10})).await;
    app.advance(3600);
    app.until("old events stay", async || app.stored("old").await == 0)
        .await;
    assert_eq!(app.stored("young").await, 1);
}

async fn an_event_that_a_timer_needs_stays(app: &mut TestApp) {
    app.survey(&json!({
        "kind": "event", "eventName": "purchase", "occurrence": {"mode": "every"}, "delaySeconds": 3 * DAY,
    }))
    .await;
    set(app, json!({"eventsDays": 1})).await;
    let ada = app.session("ada").await;
    let events = [
        app.event(&ada, "purchase", &json!({})),
        app.event(&ada, "visit", &json!({})),
    ];
    app.ingest(&ada, &events).await.ok();
    app.settle().await;
    app.advance(DAY + 3600);
    app.until("the other event stays", async || {
        app.stored("visit").await == 0
    })
    .await;
    assert_eq!(app.stored("purchase").await, 1);

    app.advance(2 * DAY);
    let ada = app.session("ada").await;
    app.until("the timer never fires", async || {
        app.offered(&ada).await.as_array().unwrap().len() == 1
    })
    .await;
}
