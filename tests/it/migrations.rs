//! The schema is the same on both databases.

use std::collections::{BTreeMap, BTreeSet};

use tests::{Backend, TestApp, site};

/// Columns by table and name, with whether they take null.
type Columns = BTreeMap<(String, String), bool>;

#[test]
fn every_migration_has_a_twin_of_the_same_name() {
    let names = |folder: &str| -> BTreeSet<String> {
        let folder = format!("{}/../host/migrations/{folder}", env!("CARGO_MANIFEST_DIR"));
        std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect()
    };
    let sqlite = names("sqlite");
    assert!(!sqlite.is_empty());
    assert_eq!(sqlite, names("postgres"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tables_and_columns_agree_between_the_databases() {
    let app = TestApp::start(site!(), Backend::Sqlite).await;
    let sqlite: Vec<(String, String, i64)> = app
        .rows(
            "SELECT m.name, c.name, c.\"notnull\" FROM sqlite_schema m JOIN pragma_table_info(m.name) c
             WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%' AND m.name NOT LIKE '_sqlx%'",
        )
        .await;
    app.finish().await;
    let app = TestApp::start(site!(), Backend::Postgres).await;
    let postgres: Vec<(String, String, i64)> = app
        .rows(
            "SELECT table_name::text, column_name::text, CASE is_nullable WHEN 'NO' THEN 1::bigint ELSE 0::bigint END
             FROM information_schema.columns WHERE table_schema = 'public' AND table_name NOT LIKE '\\_sqlx%'",
        )
        .await;
    app.finish().await;

    let columns = |rows: Vec<(String, String, i64)>| -> Columns {
        rows.into_iter()
            .map(|(table, column, required)| ((table, column), required == 0))
            .collect()
    };
    let (sqlite, postgres) = (columns(sqlite), columns(postgres));
    assert!(sqlite.len() > 50, "{sqlite:?}");
    assert_eq!(sqlite, postgres);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_start_finds_the_schema_up_to_date() {
    for backend in [Backend::Sqlite, Backend::Postgres] {
        let mut app = TestApp::start(site!(), backend).await;
        app.session("ada").await;
        app.restart().await;
        app.session("ada").await;
        app.finish().await;
    }
}
