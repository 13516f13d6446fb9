//! What a caller says of the version that it has seen (contract 0).

use std::time::Duration;

use nudge_db::Tx;
use serde_json::json;
use tests::session::text;
use tests::{TestApp, on_both_backends};

on_both_backends!(
    only_the_version_that_was_seen_is_deleted,
    what_is_changed_amid_a_deletion_stays,
    an_app_that_is_changed_amid_its_deletion_stays,
);

async fn only_the_version_that_was_seen_is_deleted(app: &mut TestApp) {
    let hook = json!({"url": "http://127.0.0.1:9/hook", "eventTypes": ["sent"]});
    let resources = [
        (app.path("/surveys"), json!({"name": "n"})),
        (app.path("/campaigns"), json!({"name": "n"})),
        (app.path("/event-definitions"), json!({"name": "n"})),
        (app.path("/push/webhooks"), hook),
        ("/v1/apps".to_owned(), json!({"name": "n"})),
    ];
    for (list, body) in resources {
        let made = app.post(&list, &app.admin(), &body).await.data(201);
        let path = format!("{list}/{}", text(&made, "id"));
        let expecting = |version: &str| app.admin().and("if-match", version);

        for other in ["\"2\"", "\"x\"", "\"2\", \"3\"", "W/\"1\""] {
            app.delete(&path, &expecting(other))
                .await
                .refused(412, "version_mismatch");
        }
        assert_eq!(app.get(&path, &app.admin()).await.ok()["version"], 1);
        app.delete(&path, &expecting("\"7\", \"1\""))
            .await
            .data(204);
        let unknown = format!("{list}/{}", uuid::Uuid::from_u128(7));
        app.delete(&unknown, &expecting("\"1\""))
            .await
            .refused(404, "not_found");
    }
}

async fn what_is_changed_amid_a_deletion_stays(app: &mut TestApp) {
    let variants = json!([{"layout": "banner", "title": "Hello"}]);
    let hook = json!({"url": "http://127.0.0.1:9/hook", "eventTypes": ["sent"]});
    for (list, table, body) in [
        ("/push/webhooks", "webhooks", hook),
        ("/surveys", "campaigns", json!({"name": "n"})),
        ("/campaigns", "campaigns", json!({"name": "n"})),
        (
            "/campaigns",
            "campaigns",
            json!({"name": "n", "type": "in_app", "variants": variants}),
        ),
        (
            "/segments",
            "segments",
            json!({"name": "n", "audience": {}}),
        ),
    ] {
        let list = app.path(list);
        let made = app.post(&list, &app.admin(), &body).await.data(201);
        let path = format!("{list}/{}", text(&made, "id"));
        let id: uuid::Uuid = text(&made, "id").parse().unwrap();
        let mut tx = app.services().db.write().await.unwrap();
        let changed = tx
            .sql("UPDATE ")
            .push(table)
            .push(" SET version = version + 1 WHERE app_id = $1 AND id = $2")
            .bind(app.access.app_id)
            .bind(id)
            .execute()
            .await
            .unwrap();
        assert_eq!(changed, 1);
        stays(app, &path, tx).await;
    }
}

/// What a transaction changes to version 2, which commits amid a deletion of version 1, is not deleted.
async fn stays(app: &TestApp, path: &str, tx: Tx) {
    let expecting = app.admin().and("if-match", "\"1\"");
    let commit = async {
        // By then the request waits for this transaction.
        tokio::time::sleep(Duration::from_millis(500)).await;
        tx.commit().await.unwrap();
    };
    let (answer, ()) = tokio::join!(app.delete(path, &expecting), commit);
    answer.refused(412, "version_mismatch");
    assert_eq!(app.get(path, &app.admin()).await.ok()["version"], 2);
}

async fn an_app_that_is_changed_amid_its_deletion_stays(app: &mut TestApp) {
    let path = app.path("");
    let mut tx = app.services().db.write().await.unwrap();
    let changed = tx
        .sql("UPDATE apps SET revision = revision + 1 WHERE id = $1")
        .bind(app.access.app_id)
        .execute()
        .await
        .unwrap();
    assert_eq!(changed, 1);
    stays(app, &path, tx).await;
    let jobs: Vec<(String,)> = app.rows("SELECT kind FROM jobs").await;
    assert!(jobs.is_empty(), "{jobs:?}");
}
