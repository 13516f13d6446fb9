//! Explanations by decisions that were kept (contract 13, `explain`): of sessions that begin, and of people who became one.

use serde_json::{Value, json};
use tests::{TestApp, on_both_backends};

use crate::explain::{details, explain, sends, trigger};

on_both_backends!(
    what_begins_a_session_is_explained_as_that_and_as_itself,
    what_was_decided_before_a_merge_is_explained_by_the_decision,
);

#[track_caller]
fn every_step_passed(explained: &Value) {
    assert_eq!(explained["outcome"], "fired");
    let steps = explained["steps"].as_array().unwrap();
    assert!(
        steps.iter().all(|step| step["passed"] == true),
        "{explained}"
    );
}

async fn what_begins_a_session_is_explained_as_that_and_as_itself(app: &mut TestApp) {
    let session = app.survey(&json!({"kind": "session_start"})).await;
    let occurrence = json!({"mode": "first"});
    let first = app
        .survey(&json!({"kind": "event", "eventName": "seen", "occurrence": occurrence}))
        .await;
    let ada = app.session("ada").await;
    let event = sends(app, &ada, "seen", json!({})).await;
    for campaign in [session, first] {
        let explained = explain(app, campaign, &ada, &event).await;
        every_step_passed(&explained);
        let decided = &details(&explained, "trigger")[0];
        assert!(decided.contains("as it was decided"), "{decided}");
    }
}

async fn what_was_decided_before_a_merge_is_explained_by_the_decision(app: &mut TestApp) {
    let backend = crate::identity::Backend::new(app).await;
    let mut once = trigger();
    once["occurrence"] = json!({"mode": "once"});
    let survey = app.survey(&once).await;
    backend.identify(app, "phone", "e-1").await;
    let tablet = app.session("tablet").await;
    let event = sends(app, &tablet, "purchase", json!({})).await;
    let both = backend.identify(app, "tablet", "e-1").await;
    let explained = explain(app, survey, &both, &event).await;
    every_step_passed(&explained);
    let list = app.path(&format!("/decisions?subjectId={}", both.subject_id));
    let list = app.get(&list, &app.viewer()).await.ok();
    assert_eq!(list["items"].as_array().unwrap().len(), 1);
}
