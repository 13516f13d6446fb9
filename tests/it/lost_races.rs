//! Transactions that the database ends because they wait for each other: no client hears of them.

use serde_json::json;
use tests::session::survey_body;
use tests::{Backend, TestApp, site};

/// A change locks its survey and then the app. Somebody else has the app and asks for the survey: PostgreSQL ends
/// the change, since it was the first to wait.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_that_loses_against_another_one_is_made_again() {
    let app = TestApp::start(site!(), Backend::Postgres).await;
    let path = app.path("/surveys");
    let made = app
        .post(&path, &app.editor(), &survey_body())
        .await
        .data(201);
    let id = tests::session::text(&made, "id");
    let survey = format!("{path}/{id}");
    let deadlocks = || async {
        let found: Vec<(i64,)> = app
            .rows("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")
            .await;
        found[0].0
    };
    let before = deadlocks().await;

    let mut other = app.services().db.write().await.unwrap();
    // It has all the patience in the world, so that the change is the one to give way.
    other
        .sql("SET LOCAL deadlock_timeout = '10min'")
        .execute()
        .await
        .unwrap();
    let locked: Vec<(uuid::Uuid,)> = other
        .sql("SELECT id FROM campaigns WHERE app_id = $1 FOR UPDATE")
        .bind(app.access.app_id)
        .fetch_all()
        .await
        .unwrap();
    assert_eq!(locked.len(), 1);
    let body = json!({"name": "Renamed"});
    let editor = app.editor();
    let change = app.patch(&survey, &editor, &body);
    let conflict = async {
        app.until("the change does not wait for the survey", async || {
            let waiting: Vec<(i64,)> = app
                .rows("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'")
                .await;
            waiting[0].0 > 0
        })
        .await;
        let locked: Vec<(uuid::Uuid,)> = other
            .sql("SELECT id FROM apps WHERE id = $1 FOR UPDATE")
            .bind(app.access.app_id)
            .fetch_all()
            .await
            .unwrap();
        assert_eq!(locked.len(), 1);
        other.rollback().await.unwrap();
    };
    let (changed, ()) = tokio::join!(change, conflict);

    assert_eq!(changed.ok()["name"], "Renamed");
    app.until("there was no deadlock", async || deadlocks().await > before)
        .await;
    let entries = app.audited("survey.updated").await;
    assert_eq!(entries.len(), 1);
    app.finish().await;
}
