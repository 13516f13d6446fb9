//! Explanations by decisions that were kept (contract 13, `explain`): of sessions that begin, of people who became one, and where
//! nobody can be asked any longer.

use nudge_db::Rows;
use serde_json::{Value, json};
use tests::session::text;
use tests::{TestApp, on_both_backends};
use uuid::Uuid;

use crate::explain::{details, explain, sends, trigger};
use crate::guests;

on_both_backends!(
    what_begins_a_session_is_explained_as_that_and_as_itself,
    what_was_decided_before_a_merge_is_explained_by_the_decision,
    what_fired_stays_explained_when_its_plugin_or_its_segment_is_gone,
    an_event_on_which_the_plugin_fails_is_explained_without_a_letter,
    the_status_of_then_is_known_whatever_was_noted_after_it,
);

/// Statements, each of as many rows as fit, that leave more than 10,000 entries.
const STATEMENTS: usize = 20;

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

async fn the_status_of_then_is_known_whatever_was_noted_after_it(app: &mut TestApp) {
    let draft = json!({"trigger": trigger(), "status": "draft"});
    let campaign = app.campaign(&draft).await;
    let path = app.path(&format!("/campaigns/{campaign}"));
    let ada = app.session("ada").await;
    let set = async |status: &str| {
        // Changes and events are told apart by their times.
        app.advance(1);
        let change = json!({"status": status});
        app.patch(&path, &app.editor(), &change).await.ok();
    };
    let tried = async || {
        app.advance(1);
        let (test, to_ada) = (format!("{path}/test-send"), json!({"anonymousId": "ada"}));
        app.post(&test, &app.editor(), &to_ada).await.data(202);
        app.advance(1);
        sends(app, &ada, "purchase", json!({})).await
    };
    let of_draft = tried().await;
    set("active").await;
    set("paused").await;
    let of_paused = tried().await;
    app.advance(1);
    others_are_noted(app).await;
    app.advance(1);
    let behind_others = sends(app, &ada, "purchase", json!({})).await;
    set("active").await;

    let campaign = Uuid::parse_str(&campaign).unwrap();
    for (event, status) in [
        (of_draft, "draft"),
        (of_paused, "paused"),
        (behind_others, "paused"),
    ] {
        let explained = explain(app, campaign, &ada, &event).await;
        assert_eq!(explained["outcome"], "not_fired", "{explained}");
        let was = format!("the campaign was {status}, in version ");
        let detail = &details(&explained, "status")[0];
        assert!(detail.starts_with(&was), "{detail}");
    }
}

/// What backends' updates of people leave in the audit log.
async fn others_are_noted(app: &TestApp) {
    let mut tx = app.services().db.write().await.unwrap();
    for _ in 0..STATEMENTS {
        let ids = (0..Rows::MOST).map(|_| app.id());
        tx.with_rows("v(id)", Rows::new().uuids(ids))
            .push(" INSERT INTO audit_log (id, app_id, at, actor, action, resource, detail) SELECT v.id, ")
            .push_bind(app.access.app_id)
            .push(", ")
            .push_bind(app.clock.now())
            .push(", 'key/k', 'person.properties_updated', 'person/p', '{}' FROM v")
            .execute()
            .await
            .unwrap();
    }
    tx.commit().await.unwrap();
}
