//! When a campaign is over that the calendar begins once (contract 7, `mode: scheduled`).

use serde_json::json;
use tests::session::text;
use tests::{TestApp, on_both_backends};
use uuid::Uuid;

use crate::attempts;
use crate::runs::{over, scheduled};
use crate::schedules::status;

on_both_backends!(
    a_campaign_is_completed_when_nothing_of_it_is_on_offer,
    whoever_looks_at_a_survey_answers_it,
);

const MINUTE: u64 = 60;

/// Lets time pass, and waits until the server has looked at the run.
async fn looked_at_after(app: &TestApp, seconds: u64) {
    app.advance(seconds);
    app.until("the run is looked at", async || {
        let looks: Vec<(Option<i64>,)> = app.rows("SELECT look_at FROM campaign_runs").await;
        looks[0]
            .0
            .is_some_and(|at| at > app.clock.now().0 + 30_000_000)
    })
    .await;
}

async fn completed(app: &TestApp, survey: Uuid) {
    app.until("it is completed", async || {
        status(app, survey).await == "completed"
    })
    .await;
}

async fn a_campaign_is_completed_when_nothing_of_it_is_on_offer(app: &mut TestApp) {
    let (ada, bob) = (app.session("ada").await, app.session("bob").await);
    let survey = scheduled(app, json!({})).await;
    over(app, 1).await;
    for session in [&ada, &bob] {
        looked_at_after(app, MINUTE + 1).await;
        assert_eq!(status(app, survey).await, "active");
        let offered = app.offered(session).await;
        let id = text(&offered[0], "instructionId");
        app.acknowledge(session, &id, "displayed").await;
    }
    looked_at_after(app, 29 * MINUTE).await;
    assert_eq!(status(app, survey).await, "active", "they look at it still");
    app.advance(2 * MINUTE);
    completed(app, survey).await;
    let entries = app.audited("survey.completed").await;
    assert_eq!(entries.len(), 1);
    assert_eq!(entries[0]["actor"], "server");
    assert_eq!(entries[0]["resource"], format!("survey/{survey}"));
    app.until("it is looked at no more", async || {
        let looks: Vec<(Option<i64>,)> = app.rows("SELECT look_at FROM campaign_runs").await;
        looks == [(None,)]
    })
    .await;
}

async fn whoever_looks_at_a_survey_answers_it(app: &mut TestApp) {
    let ada = app.session("ada").await;
    let survey = scheduled(app, json!({})).await;
    over(app, 1).await;
    let offered = app.offered(&ada).await;
    let id = text(&offered[0], "instructionId");
    app.acknowledge(&ada, &id, "displayed").await;
    // Nothing is on offer any longer.
    looked_at_after(app, 20 * MINUTE).await;
    let follow = json!({"instructionId": id});
    let started = attempts::try_start(app, &ada, survey, follow).await;
    let attempt = text(&started.data(201), "attemptId");

    // Whoever has begun goes on, whatever becomes of the survey.
    app.advance(12 * MINUTE);
    completed(app, survey).await;
    let next = attempts::next(app, &ada, &attempt, json!([["q1", 9]])).await;
    assert_eq!(next, json!(null));
    attempts::end(app, &ada, &attempt, "complete").await.ok();
    let detail = attempts::detail(app, survey, &attempt).await;
    assert_eq!(detail["state"], "completed");
}
