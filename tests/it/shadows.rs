//! An anonymous id that is somebody else's external id: any client can call itself so, and it hides nobody (contract 5).

use serde_json::{Value, json};
use tests::session::text;
use tests::{TestApp, on_both_backends};

use crate::deletion::{delete, deleted};
use crate::identity::Backend;

on_both_backends!(
    an_answer_says_as_what_an_id_was_found,
    a_person_whose_external_id_is_an_anonymous_id_is_found_by_its_kind,
    an_id_that_looks_like_a_prefix_is_found_by_its_kind,
    what_cannot_be_undone_takes_the_kind,
    search_and_privacy_name_the_kind,
    a_shadow_that_is_being_deleted_hides_nobody,
);

async fn user(app: &TestApp, rest: &str) -> Value {
    let path = app.path(&format!("/users/{rest}"));
    app.get(&path, &app.viewer()).await.ok()
}

/// As what an id was found, and whom.
fn matched(user: &Value) -> (String, String) {
    (text(user, "matchedBy"), text(&user["profile"], "subjectId"))
}

fn pair(kind: &str, subject_id: &str) -> (String, String) {
    (kind.to_owned(), subject_id.to_owned())
}

async fn an_answer_says_as_what_an_id_was_found(app: &mut TestApp) {
    let backend = Backend::new(app).await;
    let ada = backend.identify(app, "phone", "e-ada").await;
    let id = ada.subject_id.as_str();
    assert_eq!(matched(&user(app, "phone").await), pair("anonymousId", id));
    assert_eq!(matched(&user(app, "e-ada").await), pair("externalId", id));
    for (rest, kind) in [
        ("phone/events", "anonymousId"),
        ("e-ada/events", "externalId"),
        ("phone/plugin-state", "anonymousId"),
        ("e-ada/plugin-state?idKind=externalId", "externalId"),
    ] {
        assert_eq!(user(app, rest).await["matchedBy"], kind, "{rest}");
    }
    for rest in [
        "externalId:phone",
        "phone?idKind=externalId",
        "e-ada?idKind=anonymousId",
        "phone/events?idKind=externalId",
    ] {
        let path = app.path(&format!("/users/{rest}"));
        app.get(&path, &app.viewer())
            .await
            .refused(404, "not_found");
    }
    let path = app.path("/users/phone?idKind=subjectId");
    let answer = app.get(&path, &app.viewer()).await;
    answer.refused(422, "validation_failed");
    assert_eq!(answer.pointers(), ["/idKind"]);
}

async fn a_person_whose_external_id_is_an_anonymous_id_is_found_by_its_kind(app: &mut TestApp) {
    let backend = Backend::new(app).await;
    let ada = backend.identify(app, "phone", "e-ada").await;
    let event = app.event(&ada, "opened", &json!({"of": "ada"}));
    app.ingest(&ada, &[event]).await.ok();
    let shadow = app.session("e-ada").await;
    let event = app.event(&shadow, "opened", &json!({"of": "shadow"}));
    app.ingest(&shadow, &[event]).await.ok();
    app.settle().await;

    let found = matched(&user(app, "e-ada").await);
    assert_eq!(found, pair("anonymousId", &shadow.subject_id));
    for rest in ["externalId:e-ada", "e-ada?idKind=externalId"] {
        let found = matched(&user(app, rest).await);
        assert_eq!(found, pair("externalId", &ada.subject_id), "{rest}");
    }
    for (rest, whose) in [
        ("e-ada/events", "shadow"),
        ("externalId:e-ada/events", "ada"),
        ("e-ada/events?idKind=externalId", "ada"),
        ("e-ada/events?idKind=anonymousId", "shadow"),
    ] {
        let events = user(app, rest).await;
        assert_eq!(events["items"][0]["properties"]["of"], whose, "{rest}");
    }
}

async fn an_id_that_looks_like_a_prefix_is_found_by_its_kind(app: &mut TestApp) {
    let backend = Backend::new(app).await;
    let ada = backend.identify(app, "phone", "e-ada").await;
    let shadow = app.session("externalId:e-ada").await;
    let found = matched(&user(app, "externalId:e-ada").await);
    assert_eq!(found, pair("externalId", &ada.subject_id));
    let found = matched(&user(app, "externalId:e-ada?idKind=anonymousId").await);
    assert_eq!(found, pair("anonymousId", &shadow.subject_id));
}

async fn what_cannot_be_undone_takes_the_kind(app: &mut TestApp) {
    let backend = Backend::new(app).await;
    let ada = backend.identify(app, "phone", "e-ada").await;
    let shadow = app.session("e-ada").await;
    app.survey(&json!({"kind": "event", "eventName": "a", "occurrence": {"mode": "nth", "n": 9}}))
        .await;
    for session in [&ada, &shadow] {
        app.fires(session, "a", &json!({})).await;
    }
    app.settle().await;
    let state = |rest: &str| app.path(&format!("/users/{rest}"));
    let answer = app.delete(&state("e-ada/plugin-state"), &app.admin()).await;
    answer.refused(422, "validation_failed");
    assert_eq!(answer.pointers(), ["/idKind"]);
    app.delete(&state("externalId:e-ada/plugin-state"), &app.admin())
        .await
        .data(204);
    let kept = user(app, "phone/plugin-state").await;
    assert_eq!(kept["campaigns"], json!([]));
    let kept = user(app, "e-ada/plugin-state").await;
    assert_eq!(kept["campaigns"].as_array().unwrap().len(), 1);
    let path = state("e-ada/plugin-state?idKind=anonymousId");
    app.delete(&path, &app.admin()).await.data(204);
    let kept = user(app, "e-ada/plugin-state").await;
    assert_eq!(kept["campaigns"], json!([]));
}

async fn search_and_privacy_name_the_kind(app: &mut TestApp) {
    let backend = Backend::new(app).await;
    let ada = backend.identify(app, "phone", "e-ada").await;
    let shadow = app.session("e-ada").await;
    // A search shows both, each with its own ids.
    let path = app.path("/users?q=e-ada");
    let found = app.get(&path, &app.viewer()).await.ok();
    assert_eq!(found["total"], 2);
    for item in found["items"].as_array().unwrap() {
        let is_ada = item["subjectId"] == json!(ada.subject_id);
        assert!(is_ada || item["subjectId"] == json!(shadow.subject_id));
        assert_eq!(item.get("externalId").is_some(), is_ada);
        assert_eq!(item["anonymousId"] == "e-ada", !is_ada);
    }
    // What is deleted is who was named, and not who is called the same.
    let job_id = delete(app, &json!({"externalId": "e-ada"})).await;
    deleted(app, &job_id).await;
    let found = matched(&user(app, "e-ada").await);
    assert_eq!(found, pair("anonymousId", &shadow.subject_id));
    let job_id = delete(app, &json!({"anonymousId": "e-ada"})).await;
    deleted(app, &job_id).await;
    app.get(&app.path("/users/e-ada"), &app.viewer())
        .await
        .refused(404, "not_found");
}

async fn a_shadow_that_is_being_deleted_hides_nobody(app: &mut TestApp) {
    let backend = Backend::new(app).await;
    let ada = backend.identify(app, "phone", "e-ada").await;
    app.session("e-ada").await;
    let job_id = delete(app, &json!({"anonymousId": "e-ada"})).await;
    let found = matched(&user(app, "e-ada").await);
    assert_eq!(found, pair("externalId", &ada.subject_id));
    deleted(app, &job_id).await;
    let found = matched(&user(app, "e-ada").await);
    assert_eq!(found, pair("externalId", &ada.subject_id));
}
