//! Explanations by decisions that were kept (contract 13, `explain`): of sessions that begin, of people who became one, and where
//! nobody can be asked any longer.

use serde_json::{Value, json};
use tests::session::text;
use tests::{TestApp, on_both_backends};

use crate::explain::{details, explain, sends, trigger};
use crate::guests;

on_both_backends!(
    what_begins_a_session_is_explained_as_that_and_as_itself,
    what_was_decided_before_a_merge_is_explained_by_the_decision,
    what_fired_stays_explained_when_its_plugin_or_its_segment_is_gone,
    an_event_on_which_the_plugin_fails_is_explained_without_a_letter,
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

async fn what_fired_stays_explained_when_its_plugin_or_its_segment_is_gone(app: &mut TestApp) {
    guests::deploy(app, 1, 1).await;
    let condition = json!({"kind": "user_property",
        "filter": {"property": "plan", "type": "string", "operator": "is_not_set"}});
    let segments = app.path("/segments");
    let segment = json!({"name": "free", "audience": {"include": {"all": [condition]}}});
    let made = app.post(&segments, &app.editor(), &segment).await.data(201);
    let named =
        json!({"include": {"all": [{"kind": "segment", "segmentId": made["id"], "in": true}]}});
    let by_plugin = app
        .survey(&guests::trigger(1, json!({"events": ["purchase"]})))
        .await;
    let parts = json!({"trigger": trigger(), "audience": named});
    let by_segment = app.survey_with(&parts).await;
    let ada = app.session("ada").await;
    let event = sends(app, &ada, "purchase", json!({})).await;
    for survey in [by_plugin, by_segment] {
        let explained = explain(app, survey, &ada, &event).await;
        assert_eq!(explained["outcome"], "fired", "{explained}");
        let path = app.path(&format!("/surveys/{survey}"));
        app.patch(&path, &app.editor(), &json!({"status": "archived"}))
            .await
            .ok();
    }
    let plugin = app.path(&format!("/plugins/{}", guests::name(1)));
    app.delete(&plugin, &app.admin()).await.data(204);
    let segment = format!("{segments}/{}", text(&made, "id"));
    app.delete(&segment, &app.admin()).await.data(204);

    for (survey, what) in [
        (by_plugin, "/trigger/plugin"),
        (by_segment, "/audience/include/all/0/segmentId"),
    ] {
        let explained = explain(app, survey, &ada, &event).await;
        assert_eq!(explained["outcome"], "fired", "{explained}");
        // Nobody knows of an event that came after it.
        let later = sends(app, &ada, "purchase", json!({})).await;
        let explained = explain(app, survey, &ada, &later).await;
        assert_eq!(explained["outcome"], "not_fired", "{explained}");
        let steps = explained["steps"].as_array().unwrap();
        assert_eq!(steps[0]["check"], "event");
        let check = what.split('/').nth(1).unwrap();
        let detail = &details(&explained, check)[0];
        assert!(detail.contains(what), "{detail}");
        assert_eq!(steps.last().unwrap()["passed"], false, "{explained}");
    }
}

async fn an_event_on_which_the_plugin_fails_is_explained_without_a_letter(app: &mut TestApp) {
    guests::deploy(app, 1, 1).await;
    let ada = app.session("ada").await;
    let event = sends(app, &ada, "purchase", json!({"bad": true})).await;
    let config = json!({"events": ["purchase"], "traps": 1_000_001});
    let survey = app.survey(&guests::trigger(1, config)).await;

    let explained = explain(app, survey, &ada, &event).await;
    assert_eq!(explained["outcome"], "not_fired", "{explained}");
    let detail = &details(&explained, "trigger")[0];
    let fails = format!("{} {} fails", guests::name(1), guests::version(1));
    assert!(detail.starts_with(&fails), "{detail}");
    assert!(detail.contains("as of now"), "{detail}");
}
