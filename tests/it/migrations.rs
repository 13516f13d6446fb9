//! The schema is the same on both databases.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use tests::{Backend, TestApp, on_both_backends, site};

on_both_backends!(campaigns_are_carried_over_from_a_table_for_each_kind);

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

/// The newest migration of 0.1.0, before which nobody had to go on meanwhile.
const FIRST_RELEASE: &str = "0032";
/// What a server of the version before may not survive.
const CONTRACTS: [&str; 7] = [
    "DROP TABLE",
    "DROP COLUMN",
    "RENAME",
    "SET NOT NULL",
    "ALTER COLUMN",
    "ADD CONSTRAINT",
    "ADD CHECK",
];

#[test]
fn migrations_expand_and_contract_a_version_later() {
    for folder in ["common", "sqlite", "postgres"] {
        let folder = format!("{}/../host/migrations/{folder}", env!("CARGO_MANIFEST_DIR"));
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            let is_sql = path.extension().is_some_and(|it| it == "sql");
            if !is_sql || name.split('_').next().unwrap() <= FIRST_RELEASE {
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            let wrong = contracts_too_early(&text);
            assert!(
                wrong.is_empty(),
                "{name}: {wrong:?}; see host/docs/upgrades.md"
            );
        }
    }
}

/// The statements that take away from the schema, or may refuse what the version before writes, and do not say since when
/// nobody needs it.
fn contracts_too_early(migration: &str) -> Vec<&str> {
    let mut says = false;
    let mut wrong = Vec::new();
    for line in migration.lines() {
        let upper = line.trim().to_uppercase();
        if upper.starts_with("--") {
            says = upper.starts_with("-- CONTRACT: UNUSED SINCE ");
            continue;
        }
        let adds_required = upper.contains("ADD COLUMN")
            && upper.contains("NOT NULL")
            && !upper.contains("DEFAULT");
        let contracts = adds_required || CONTRACTS.iter().any(|words| upper.contains(words));
        if contracts && !says {
            wrong.push(line);
        }
        if upper.ends_with(';') {
            says = false;
        }
    }
    wrong
}

#[test]
fn what_takes_away_is_found() {
    let wrong = |migration| contracts_too_early(migration).len();
    assert_eq!(
        wrong("CREATE TABLE a (b TEXT NOT NULL);\nALTER TABLE c ADD COLUMN d TEXT;"),
        0
    );
    assert_eq!(
        wrong("ALTER TABLE c ADD COLUMN d BIGINT NOT NULL DEFAULT 0;"),
        0
    );
    assert_eq!(wrong("ALTER TABLE c ADD COLUMN d BIGINT NOT NULL;"), 1);
    assert_eq!(wrong("DROP TABLE a;\nALTER TABLE b RENAME TO c;"), 2);
    assert_eq!(
        wrong("-- Contract: unused since 0.2.0.\nDROP TABLE a;\nDROP TABLE b;"),
        1
    );
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

/// Which migrations were made, and when.
async fn installed(app: &TestApp) -> Vec<(i64, String)> {
    app.rows("SELECT version, CAST(installed_on AS TEXT) FROM _sqlx_migrations ORDER BY version")
        .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_start_finds_the_schema_up_to_date() {
    for backend in [Backend::Sqlite, Backend::Postgres] {
        let mut app = TestApp::start(site!(), backend).await;
        let ada = app.session("ada").await;
        let before = installed(&app).await;
        assert!(!before.is_empty());
        app.restart().await;
        assert_eq!(installed(&app).await, before);
        assert_eq!(app.session("ada").await.subject_id, ada.subject_id);
        app.finish().await;
    }
}

/// The schema before campaigns of all kinds were in one table, with the data of now.
const CAMPAIGNS_OF_BEFORE: [&str; 7] = [
    "CREATE TABLE surveys AS SELECT id, app_id, version, status, body, created_at, updated_at, activated_at, ends_at
     FROM campaigns WHERE kind = 'survey'",
    "CREATE TABLE push_campaigns AS SELECT id, app_id, version, status, body, created_at, updated_at, activated_at,
     ends_at FROM campaigns WHERE kind = 'push'",
    "CREATE TABLE survey_versions AS SELECT v.campaign_id AS survey_id, v.version, v.app_id, v.body
     FROM campaign_versions v JOIN campaigns c ON c.id = v.campaign_id WHERE c.kind = 'survey'",
    "CREATE TABLE push_campaign_versions AS SELECT v.campaign_id, v.version, v.app_id, v.body
     FROM campaign_versions v JOIN campaigns c ON c.id = v.campaign_id WHERE c.kind = 'push'",
    "DROP TABLE campaigns",
    "DROP TABLE campaign_versions",
    "DELETE FROM _sqlx_migrations WHERE version = 24",
];

async fn campaigns_are_carried_over_from_a_table_for_each_kind(app: &mut TestApp) {
    let survey = app
        .survey(&json!({"kind": "event", "eventName": "purchase"}))
        .await;
    let ends = app
        .survey_with(&json!({
            "trigger": {"kind": "event", "eventName": "other"}, "schedule": {"endAt": app.time(100)},
        }))
        .await;
    app.campaign(&json!({"mode": "transactional"})).await;
    app.campaign(&json!({"status": "draft"})).await;
    let ada = app.session("ada").await;
    assert_eq!(app.fires(&ada, "purchase", &json!({})).await, 1);
    // What is on offer is shown as of the version that fired.
    let path = app.path(&format!("/surveys/{survey}"));
    app.patch(&path, &app.editor(), &json!({"name": "another"}))
        .await
        .ok();
    let before = (all(app).await, app.offered(&ada).await);
    assert_eq!(before.1.as_array().unwrap().len(), 1);

    let mut tx = app.services().db.write().await.unwrap();
    for text in CAMPAIGNS_OF_BEFORE {
        tx.sql(text).execute().await.unwrap();
    }
    tx.commit().await.unwrap();
    app.restart().await;

    assert_eq!((all(app).await, app.offered(&ada).await), before);
    app.advance(101);
    let path = app.path(&format!("/surveys/{ends}"));
    app.until("the survey that is over is completed", async || {
        app.get(&path, &app.viewer()).await.ok()["status"] == "completed"
    })
    .await;
}

/// The lists of campaigns of all kinds.
async fn all(app: &TestApp) -> [Value; 2] {
    let list = async |path: &str| app.get(&app.path(path), &app.viewer()).await.ok();
    [list("/surveys").await, list("/campaigns").await]
}
