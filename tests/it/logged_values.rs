//! What errors say: of the database's, nothing that anybody stored or sent.

use nudge_db::Kind;
use tests::{TestApp, on_both_backends};

on_both_backends!(errors_of_the_database_repeat_no_value);

const VALUE: &str = "ada@example.com";

/// All that a log can have of an error.
fn told(error: nudge_db::Error) -> String {
    let debug = format!("{error:?}");
    format!("{debug} {:#}", anyhow::Error::from(error))
}

async fn errors_of_the_database_repeat_no_value(app: &mut TestApp) {
    let db = &app.services().db;
    let mut tx = db.write().await.unwrap();
    tx.sql("CREATE TEMPORARY TABLE told (value TEXT CONSTRAINT told_once UNIQUE, small TEXT CHECK (small <> 'ada@example.com'))")
        .execute()
        .await
        .unwrap();
    let insert = "INSERT INTO told (value) VALUES ($1)";
    tx.sql(insert).bind(VALUE).execute().await.unwrap();
    // PostgreSQL: DETAIL: Key (value)=(ada@example.com) already exists.
    let taken = tx.sql(insert).bind(VALUE).execute().await.unwrap_err();
    assert_eq!(taken.kind(), Kind::Conflict);
    let text = told(taken);
    assert!(!text.contains("ada"), "{text}");
    // What is needed to find the defect is there.
    assert!(text.contains("told"), "{text}");
    drop(tx);

    for sql in [
        // invalid input syntax for type bigint: "ada@example.com"
        "SELECT CAST($1 AS bigint) AS number FROM apps WHERE CAST($1 AS bigint) = 1",
        // bad JSON path: 'ada@example.com'
        "SELECT json_extract('{}', $1)",
        "SELECT nothing FROM nowhere WHERE name = $1",
    ] {
        let mut tx = db.write().await.unwrap();
        if let Err(error) = tx.sql(sql).bind(VALUE).execute().await {
            let text = told(error);
            assert!(!text.contains("ada"), "{sql}: {text}");
        }
    }
    let mut tx = db.read().await.unwrap();
    let wrong: nudge_db::Result<(i64,)> = tx
        .sql("SELECT $1 AS number FROM apps")
        .bind(VALUE)
        .fetch_one()
        .await;
    let text = told(wrong.unwrap_err());
    assert!(!text.contains("ada"), "{text}");
}
