//! Counts over time (contract 13).

use nudge_records::stats::Kind;
use serde_json::{Value, json};
use tests::{TestApp, on_both_backends};

on_both_backends!(
    what_happens_is_counted_by_the_hour_and_the_day,
    a_reader_that_goes_away_loses_no_counts,
    bad_ranges_are_refused,
);

async fn stats(app: &TestApp, query: &str) -> Value {
    let path = app.path(&format!("/stats{query}"));
    app.get(&path, &app.viewer()).await.ok()
}

async fn what_happens_is_counted_by_the_hour_and_the_day(app: &mut TestApp) {
    app.survey(&json!({"kind": "event", "eventName": "purchase"}))
        .await;
    app.define(
        "checked",
        &json!({"properties": [{"name": "a", "type": "string", "required": true}]}),
    )
    .await;
    let begin = app.time(0);
    let ada = app.session("ada").await;
    let events = [
        app.event(&ada, "purchase", &json!({})),
        app.event(&ada, "purchase", &json!({})),
        app.event(&ada, "checked", &json!({})),
        app.event(&ada, "", &json!({})),
    ];
    app.ingest_and_ask(&ada, &events).await;
    // Sent again, nothing is counted but what is rejected again.
    app.ingest(&ada, &events[..2]).await.ok();
    app.settle().await;

    let now = stats(app, "").await;
    let expected = json!({"events": 4, "accepted": 2, "rejected": 2, "ignored": 0, "instructions": 2, "inAppViews": 0, "deliveries": {}});
    assert_eq!(now["totals"], expected);
    assert_eq!(now["interval"], "hour");
    let items = now["items"].as_array().unwrap();
    assert!((24..=25).contains(&items.len()), "{}", items.len());
    assert!(items.iter().map(|item| item["at"].as_str()).is_sorted());

    app.restart().await;
    app.advance(2 * 3600);
    let ada = app.session("ada").await;
    app.ingest(&ada, &[app.event(&ada, "other", &json!({}))])
        .await
        .ok();
    let hours = stats(app, &format!("?from={begin}&interval=hour")).await;
    let items = hours["items"].as_array().unwrap();
    assert_eq!(items[0]["events"], 4);
    assert_eq!(items[items.len() - 1]["accepted"], 1);
    assert_eq!(hours["totals"]["accepted"], 3);
    let days = stats(app, "?interval=day").await;
    assert_eq!(days["totals"], hours["totals"]);
    assert!((30..=31).contains(&days["items"].as_array().unwrap().len()));
    let before = stats(
        app,
        &format!("?to={}&from={}", app.time(-90_000), app.time(-100_000)),
    )
    .await;
    assert_eq!(before["totals"]["events"], 0);
}

/// Counts are written for who asks for them. Who goes away meanwhile takes none along.
async fn a_reader_that_goes_away_loses_no_counts(app: &mut TestApp) {
    let ada = app.session("ada").await;
    app.ingest_and_ask(&ada, &[app.event(&ada, "purchase", &json!({}))])
        .await;
    stats(app, "").await;
    let services = app.services();
    let (app_id, now) = (app.access.app_id, services.clock.now());
    for _ in 0..20 {
        services.stats.count(app_id, now, Kind::Accepted, 1);
        let flush = services.stats.flush(&services.db);
        assert!(futures_util::poll!(std::pin::pin!(flush)).is_pending());
    }
    assert_eq!(stats(app, "").await["totals"]["accepted"], 21);
}

async fn bad_ranges_are_refused(app: &mut TestApp) {
    let (early, late) = (app.time(-1_001 * 3600), app.time(0));
    for (query, pointer) in [
        ("?interval=week".to_owned(), "/interval"),
        ("?from=yesterday".to_owned(), "/from"),
        ("?to=1".to_owned(), "/to"),
        ("?from=-200000-01-01".to_owned(), "/from"),
        ("?to=%2B200000-01-01".to_owned(), "/to"),
        ("?to=%2B200000-01-01T00:00Z".to_owned(), "/to"),
        (format!("?from={late}&to={early}"), "/from"),
        (format!("?from={early}"), "/from"),
    ] {
        let path = app.path(&format!("/stats{query}"));
        let answer = app.get(&path, &app.viewer()).await;
        answer.refused(422, "validation_failed");
        assert_eq!(answer.pointers(), [pointer], "{query}");
    }
    stats(app, &format!("?from={early}&interval=day")).await;
}
