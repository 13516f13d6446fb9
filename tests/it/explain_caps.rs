//! Why the host suppresses what a plugin fires: caps and consent (contract 7, 13).

use nudge_campaigns::settings::Cap;
use serde_json::json;
use tests::session::{event_id, text};
use tests::{TestApp, on_both_backends};

use crate::explain::{after_the_delay, checks, delayed, details, explain, sends, trigger};

on_both_backends!(
    what_was_suppressed_says_by_what,
    what_its_own_batch_has_issued_counts,
    caps_after_a_delay_are_those_of_then,
);

async fn what_was_suppressed_says_by_what(app: &mut TestApp) {
    app.set(|settings| {
        settings.frequency.surveys = Some(Cap {
            max: 1,
            window_days: 7,
        });
    })
    .await;
    let survey = app.survey(&trigger()).await;
    let (ada, bob) = (app.session("ada").await, app.session("bob").await);
    let first = sends(app, &ada, "purchase", json!({})).await;
    let second = sends(app, &ada, "purchase", json!({})).await;
    let third = sends(app, &ada, "purchase", json!({})).await;
    let explained = explain(app, survey, &ada, &first).await;
    assert_eq!(
        (&explained["outcome"], checks(&explained, "caps")),
        (&json!("fired"), vec![true])
    );
    // The day's first is noted with its event, others follow from the decision.
    for event in [&second, &third] {
        let explained = explain(app, survey, &ada, event).await;
        assert_eq!(explained["outcome"], "suppressed", "{explained}");
        assert_eq!(checks(&explained, "caps"), [false]);
        assert_eq!(details(&explained, "caps"), ["global_cap: 1 of 1"]);
    }
    let refusal = json!({"anonymousId": "bob", "messaging": false});
    app.post("/v1/sdk/consent", &bob.credential(), &refusal)
        .await
        .ok();
    let event = sends(app, &bob, "purchase", json!({})).await;
    let explained = explain(app, survey, &bob, &event).await;
    assert_eq!(
        (&explained["outcome"], checks(&explained, "consent")),
        (&json!("suppressed"), vec![false])
    );
}

async fn what_its_own_batch_has_issued_counts(app: &mut TestApp) {
    app.set(|settings| {
        settings.frequency.surveys = Some(Cap {
            max: 1,
            window_days: 7,
        });
    })
    .await;
    let of_priority = |priority: u8| json!({"trigger": trigger(), "priority": priority});
    let winner = app.survey_with(&of_priority(9)).await;
    let loser = app.survey_with(&of_priority(1)).await;
    let (ada, bob) = (app.session("ada").await, app.session("bob").await);
    let event = sends(app, &ada, "purchase", json!({})).await;
    let explained = explain(app, winner, &ada, &event).await;
    assert_eq!(
        (&explained["outcome"], checks(&explained, "caps")),
        (&json!("fired"), vec![true])
    );
    let explained = explain(app, loser, &ada, &event).await;
    assert_eq!(explained["outcome"], "suppressed", "{explained}");
    assert_eq!(details(&explained, "caps"), ["global_cap: 1 of 1"]);
    assert_eq!(checks(&explained, "caps"), [false]);

    let events = [0, 1, 2].map(|_| app.event(&bob, "purchase", &json!({})));
    app.ingest_and_ask(&bob, &events).await;
    app.settle().await;
    // The day's first is noted with its event, others follow from the decision.
    for event in &events[1..] {
        let explained = explain(app, winner, &bob, &event_id(event)).await;
        assert_eq!(explained["outcome"], "suppressed", "{explained}");
        assert_eq!(checks(&explained, "caps"), [false], "{explained}");
    }
}

async fn caps_after_a_delay_are_those_of_then(app: &mut TestApp) {
    let ada = app.session("ada").await;
    let cap = json!({"perSubject": {"max": 1, "windowDays": "lifetime"}});
    let more = json!({"frequencyCap": cap, "audience": null});
    let (survey, first) = delayed(app, &ada, more).await;
    let second = sends(app, &ada, "purchase", json!({})).await;
    after_the_delay(app, survey, &ada, &first).await;
    // Both were due at once: either may have taken what the cap leaves.
    let mut outcomes = Vec::new();
    for event in [first, second] {
        let explained = explain(app, survey, &ada, &event).await;
        assert_eq!(checks(&explained, "delay"), [true], "{explained}");
        assert_eq!(details(&explained, "caps").len(), 1, "{explained}");
        outcomes.push(text(&explained, "outcome"));
    }
    outcomes.sort_unstable();
    assert_eq!(outcomes, ["fired", "suppressed"]);
}
