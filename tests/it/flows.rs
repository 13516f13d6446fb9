//! What a survey must be to be saved, and to run (contract 7).

use serde_json::{Value, json};
use tests::session::{survey_body, text};
use tests::{TestApp, on_both_backends};

use crate::surveys::{create, with};

on_both_backends!(
    a_flow_that_cannot_be_walked_is_refused,
    every_type_of_question_is_taken,
    what_cannot_run_is_not_activated,
    every_status_can_follow_every_other,
);

async fn a_flow_that_cannot_be_walked_is_refused(app: &mut TestApp) {
    let question = |id: &str| json!({"id": id, "type": "nps", "title": "?"});
    let three = json!([question("a"), question("b"), question("c")]);
    let branch = |from: &str, to: Value| json!([{"id": "x", "from": from, "when": {"questionId": "a", "operator": "answered"}, "to": to}]);
    for (flow, pointer) in [
        (
            json!({"questions": [question("a"), question("a")]}),
            "/flow/questions/1/id",
        ),
        (
            json!({"questions": three, "startQuestionId": "z"}),
            "/flow/startQuestionId",
        ),
        (
            json!({"questions": three, "branches": branch("z", json!({"questionId": "b"}))}),
            "/flow/branches/0/from",
        ),
        (
            json!({"questions": three, "branches": branch("a", json!({"questionId": "z"}))}),
            "/flow/branches/0/to/questionId",
        ),
        (
            json!({"questions": three, "branches": branch("a", json!({"endScreenId": "z"}))}),
            "/flow/branches/0/to/endScreenId",
        ),
        (
            json!({"questions": three, "branches": branch("c", json!({"questionId": "a"}))}),
            "/flow/questions/0/id",
        ),
        (
            json!({"questions": three, "startQuestionId": "b"}),
            "/flow/questions/0/id",
        ),
    ] {
        let answer = create(app, &with(json!({"flow": flow}))).await;
        answer.refused(422, "invalid_flow");
        assert_eq!(answer.pointers(), [pointer], "{flow}");
    }
    // A typo is one wherever it is.
    let mut typo = question("a");
    typo["lowLable"] = json!("bad");
    let answer = create(app, &with(json!({"flow": {"questions": [typo]}}))).await;
    answer.refused(422, "validation_failed");
    assert_eq!(answer.pointers(), ["/flow/questions/0/lowLable"]);
}

async fn every_type_of_question_is_taken(app: &mut TestApp) {
    let options = json!([{"id": "a", "label": "A"}, {"id": "b", "label": "B"}]);
    let questions: Vec<Value> = [
        ("nps", json!({"lowLabel": "bad", "highLabel": "good"})),
        ("rating", json!({"scale": 5, "display": "star"})),
        ("csat", json!({"scale": 5})),
        ("ces", json!({"scale": 7})),
        ("thumbs", json!({})),
        ("single_choice", json!({"options": options, "allowOther": true, "shuffle": true})),
        ("multiple_choice", json!({"options": options, "minSelections": 1, "maxSelections": 2})),
        ("picture_choice", json!({"options": [{"id": "a", "label": "A", "imageUrl": "https://example.com/a.png"}], "multiple": false})),
        ("ranking", json!({"options": options})),
        ("matrix", json!({"rows": options, "columns": options})),
        ("short_text", json!({"placeholder": "…", "minLength": 1, "maxLength": 10, "format": "email"})),
        ("long_text", json!({"maxLength": 1000})),
        ("number", json!({"min": 0, "max": 10, "step": 1})),
        ("date", json!({"min": "2026-01-01", "max": "2026-12-31"})),
        ("consent", json!({"label": "I agree"})),
        ("contact_info", json!({"fields": [{"id": "mail", "label": "Mail", "required": true}]})),
        ("statement", json!({"body": "Read this", "buttonLabel": "Next"})),
        ("link", json!({"url": "https://example.com"})),
    ]
    .into_iter()
    .map(|(kind, extra)| {
        let mut question = json!({"id": kind, "type": kind, "title": "?", "required": false});
        question.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        question
    })
    .collect();

    let made = create(app, &with(json!({"flow": {"questions": questions}})))
        .await
        .data(201);
    assert_eq!(made["flow"]["questions"], json!(questions));

    let bad = json!({"questions": [{"id": "q", "type": "telepathy", "title": "?"}]});
    let answer = create(app, &with(json!({"flow": bad}))).await;
    answer.refused(422, "validation_failed");
    assert_eq!(answer.pointers(), ["/flow/questions/0/type"]);
}

async fn what_cannot_run_is_not_activated(app: &mut TestApp) {
    for (missing, pointer) in [("flow", "/flow/questions"), ("trigger", "/trigger")] {
        let mut body = survey_body();
        body.as_object_mut().unwrap().remove(missing);
        let answer = create(app, &body).await;
        answer.refused(422, "not_activatable");
        assert_eq!(answer.pointers(), [pointer]);

        body["status"] = json!("draft");
        let made = create(app, &body).await.data(201);
        let path = app.path(&format!("/surveys/{}", text(&made, "id")));
        let answer = app
            .patch(&path, &app.editor(), &json!({"status": "active"}))
            .await;
        answer.refused(422, "not_activatable");
        assert_eq!(app.get(&path, &app.viewer()).await.ok()["status"], "draft");
    }
}

async fn every_status_can_follow_every_other(app: &mut TestApp) {
    let statuses = ["draft", "active", "paused", "completed", "archived"];
    let made = create(app, &with(json!({"status": "draft"})))
        .await
        .data(201);
    let path = app.path(&format!("/surveys/{}", text(&made, "id")));
    for from in statuses {
        for to in statuses {
            app.patch(&path, &app.editor(), &json!({"status": from}))
                .await
                .ok();
            let changed = app
                .patch(&path, &app.editor(), &json!({"status": to}))
                .await
                .ok();
            assert_eq!(changed["status"], to, "from {from}");
        }
    }
}
