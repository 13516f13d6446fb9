//! How large surveys and campaigns may be, each and all of an app; lists of them, which are sent as they are stored.

use serde_json::{Value, json};
use tests::campaigns::campaign_with;
use tests::session::{survey_body, text};
use tests::{Answer, TestApp, on_both_backends};
use uuid::Uuid;

on_both_backends!(
    a_survey_and_a_campaign_have_at_most_256_kib,
    an_app_has_a_limit_on_all_of_them,
    what_is_larger_from_before_stays_readable_and_can_be_stopped,
    lists_show_what_is_stored,
);

const MOST: usize = 256 * 1024;

fn survey_of(bytes: usize) -> Value {
    let mut body = survey_body();
    body["description"] = json!("x".repeat(bytes));
    body
}

fn campaign_of(bytes: usize) -> Value {
    // The personalization of a campaign that is not in use is not limited otherwise.
    campaign_with(
        &json!({"status": "draft", "trigger": {"kind": "plugin", "plugin": "default-trigger",
        "config": {"text": "x".repeat(bytes)}}}),
    )
}

async fn create(app: &TestApp, path: &str, body: &Value) -> Answer {
    app.post(&app.path(path), &app.editor(), body).await
}

async fn a_survey_and_a_campaign_have_at_most_256_kib(app: &mut TestApp) {
    create(app, "/surveys", &survey_of(MOST))
        .await
        .refused(422, "limit_exceeded");
    let made = create(app, "/surveys", &survey_of(MOST - 4096))
        .await
        .data(201);
    let path = app.path(&format!("/surveys/{}", text(&made, "id")));
    let change = async |body: Value| app.patch(&path, &app.editor(), &body).await;
    change(json!({"theme": {"a": "x".repeat(8192)}}))
        .await
        .refused(422, "limit_exceeded");
    assert_eq!(app.get(&path, &app.viewer()).await.ok(), made);
    change(json!({"theme": {"a": "x".repeat(1024)}})).await.ok();

    create(app, "/campaigns", &campaign_of(MOST))
        .await
        .refused(422, "limit_exceeded");
    let definition = |bytes: usize| json!({"name": "bought", "description": "x".repeat(bytes), "properties": []});
    create(app, "/event-definitions", &definition(MOST))
        .await
        .refused(422, "limit_exceeded");
    create(app, "/event-definitions", &definition(MOST - 4096))
        .await
        .data(201);
}

/// Makes a stored survey so large, past all limits.
async fn inflate(app: &TestApp, id: Uuid, bytes: usize) {
    let mut body = survey_body();
    body["description"] = json!("x".repeat(bytes));
    let mut tx = app.services().db.write().await.unwrap();
    for statement in [
        "UPDATE campaigns SET body = $2 WHERE id = $1",
        "UPDATE campaign_versions SET body = $2 WHERE campaign_id = $1",
    ] {
        let changed = tx
            .sql(statement)
            .bind(id)
            .bind(body.to_string())
            .execute()
            .await;
        assert_eq!(changed.unwrap(), 1);
    }
    tx.commit().await.unwrap();
}

async fn an_app_has_a_limit_on_all_of_them(app: &mut TestApp) {
    let id = app.survey_with(&json!({"status": "draft"})).await;
    inflate(app, id, 64 * 1024 * 1024).await;
    for (path, body) in [
        ("/surveys", survey_of(10)),
        ("/campaigns", campaign_with(&json!({}))),
    ] {
        let answer = create(app, path, &body).await;
        answer.refused(422, "limit_exceeded");
        assert!(answer.text.contains("together"), "{}", answer.text);
    }
    let path = app.path(&format!("/surveys/{id}"));
    app.delete(&path, &app.editor()).await;
    create(app, "/surveys", &survey_of(10)).await.data(201);
    assert_eq!(app.count("campaigns").await, 1);
}

async fn what_is_larger_from_before_stays_readable_and_can_be_stopped(app: &mut TestApp) {
    let id = app.survey_with(&json!({})).await;
    inflate(app, id, 2 * MOST).await;
    let path = app.path(&format!("/surveys/{id}"));
    let read = app.get(&path, &app.viewer()).await.ok();
    assert_eq!(text(&read, "description").len(), 2 * MOST);
    let list = app.get(&app.path("/surveys"), &app.viewer()).await.ok();
    assert_eq!(list[0]["description"], read["description"]);

    let change = async |body: Value| app.patch(&path, &app.editor(), &body).await;
    assert_eq!(
        change(json!({"status": "paused"})).await.ok()["status"],
        "paused"
    );
    change(json!({"name": "much longer than it was"}))
        .await
        .refused(422, "limit_exceeded");
    change(json!({"description": "short"})).await.ok();
    change(json!({"name": "much longer than it was"}))
        .await
        .ok();
}

async fn lists_show_what_is_stored(app: &mut TestApp) {
    for path in ["/surveys", "/campaigns"] {
        let list = app.get(&app.path(path), &app.viewer()).await;
        assert_eq!(list.ok(), json!([]));
        assert_eq!(list.header("content-type"), "application/json");
    }
    // Several pages of rows, small ones and large ones.
    let mut ids = Vec::new();
    for number in 0..30 {
        let bytes = if number % 7 == 0 { 200 * 1024 } else { number };
        let made = create(app, "/surveys", &survey_of(bytes)).await.data(201);
        ids.push(text(&made, "id"));
        create(
            app,
            "/campaigns",
            &campaign_with(&json!({"name": format!("campaign {number}")})),
        )
        .await
        .data(201);
    }
    for path in ["/surveys", "/campaigns"] {
        let list = app.get(&app.path(path), &app.viewer()).await.ok();
        let list = list.as_array().unwrap();
        assert_eq!(list.len(), 30);
        for item in list {
            let one = app.path(&format!("{path}/{}", text(item, "id")));
            assert_eq!(&app.get(&one, &app.viewer()).await.ok(), item);
        }
    }
    let list = app.get(&app.path("/surveys"), &app.viewer()).await.ok();
    let listed = list
        .as_array()
        .unwrap()
        .iter()
        .map(|survey| text(survey, "id"));
    ids.reverse();
    assert_eq!(listed.collect::<Vec<_>>(), ids);

    // What an older server wrote, before members had names.
    let id: Uuid = ids[0].parse().unwrap();
    let mut tx = app.services().db.write().await.unwrap();
    let statement = tx
        .sql("UPDATE campaigns SET body = $2 WHERE id = $1")
        .bind(id);
    statement
        .bind(r#"{"name": "old"}"#.to_owned())
        .execute()
        .await
        .unwrap();
    tx.commit().await.unwrap();
    let list = app.get(&app.path("/surveys"), &app.viewer()).await.ok();
    let one = app
        .get(&app.path(&format!("/surveys/{id}")), &app.viewer())
        .await
        .ok();
    assert_eq!(list[0], one);
}
