//! What tests look up in the database, where no route shows it.
#![expect(
    clippy::expect_used,
    reason = "test support: a test whose database fails fails where it stands"
)]

use std::time::{Duration, Instant};

use nudge_apps as apps;
use nudge_apps::key::Kind;
use nudge_campaigns::settings::Settings;
use nudge_db::{Dialect, Record};
use nudge_records::subjects::{self, AliasKind};
use serde_json::Value;
use uuid::Uuid;

use crate::TestApp;

/// Longer than the pipeline needs for anything, also where the disk is busy with something else for some seconds.
const SETTLES: Duration = Duration::from_mins(1);
const LOOK_AGAIN: Duration = Duration::from_millis(20);

impl TestApp {
    /// Waits until everything committed is processed, and this server has counted it; fails if that never comes.
    pub async fn settle(&self) {
        let started = Instant::now();
        loop {
            let left: Vec<(i64,)> = self.rows("SELECT id FROM pending").await;
            let people: Vec<(Uuid,)> = self.rows("SELECT subject_id FROM segment_checks").await;
            // A batch is counted a moment after it is committed.
            if left.is_empty() && people.is_empty() && self.services().pipeline.is_idle() {
                return;
            }
            assert!(
                started.elapsed() < SETTLES,
                "{} requests were never processed, segments of {} people never looked at",
                left.len(),
                people.len()
            );
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    /// The rows of a query.
    pub async fn rows<T: Record>(&self, sql: &'static str) -> Vec<T> {
        let mut tx = self
            .services()
            .db
            .read()
            .await
            .expect("the database answers");
        let rows = tx.sql(sql).fetch_all().await;
        rows.expect("the database answers")
    }

    /// How many rows a table has; behind its name, `WHERE` may say which ones.
    pub async fn count(&self, table: &'static str) -> usize {
        let mut tx = self
            .services()
            .db
            .read()
            .await
            .expect("the database answers");
        let statement = tx.sql("SELECT count(*) FROM ").push(table);
        let count: Result<(i64,), _> = statement.fetch_one().await;
        let (count,) = count.expect("the database answers");
        usize::try_from(count).expect("a count")
    }

    /// How many events of a name are in the timelines.
    pub async fn stored(&self, name: &str) -> usize {
        let names: Vec<(String,)> = self.rows("SELECT name FROM events").await;
        names.iter().filter(|(stored,)| stored == name).count()
    }

    /// Changes the app's settings.
    pub async fn set(&self, change: impl FnOnce(&mut Settings)) {
        let services = self.services();
        let app_id = self.access.app_id;
        let now = self.clock.now();
        let mut tx = services.db.write().await.expect("the database answers");
        let row = nudge_campaigns::apps::find(&mut tx, app_id).await;
        let row = row.expect("the database answers").expect("the demo app");
        let mut settings = serde_json::from_str(&row.settings).expect("settings");
        change(&mut settings);
        let revision = row.settings_revision;
        nudge_campaigns::apps::replace_settings(&mut tx, app_id, &settings, revision, now)
            .await
            .expect("the settings are stored");
        tx.commit().await.expect("the database commits");
        services
            .apps
            .refresh(app_id)
            .await
            .expect("the app is read");
    }

    /// Makes another app, and a key of it with scopes.
    pub async fn another_app(
        &self,
        workspace_id: Uuid,
        kind: Kind,
        scopes: &[&str],
    ) -> (Uuid, String) {
        let now = self.clock.now();
        let mut tx = self
            .services()
            .db
            .write()
            .await
            .expect("the database answers");
        let app_id = apps::create(&mut tx, workspace_id, "Another", now)
            .await
            .expect("an app is made");
        let key = apps::create_key(&mut tx, app_id, workspace_id, kind, "test", scopes, now)
            .await
            .expect("a key is made");
        tx.commit().await.expect("the database commits");
        (app_id, key.text)
    }

    /// Makes people of the demo app, `person-0` and so on, without events.
    pub async fn people(&self, count: u64) {
        let now = self.clock.now();
        let app_id = self.access.app_id;
        let mut tx = self
            .services()
            .db
            .write()
            .await
            .expect("the database answers");
        for number in 0..count {
            let name = format!("person-{number}");
            let kind = AliasKind::Anonymous;
            subjects::store::insert(&mut tx, app_id, kind, &name, None, now)
                .await
                .expect("a person is made");
        }
        tx.commit().await.expect("the database commits");
    }

    /// Makes a key of the demo app.
    pub async fn key(&self, kind: Kind, scopes: &[&str]) -> String {
        let now = self.clock.now();
        let (app_id, workspace_id) = (self.access.app_id, self.access.workspace_id);
        let mut tx = self
            .services()
            .db
            .write()
            .await
            .expect("the database answers");
        let key = apps::create_key(&mut tx, app_id, workspace_id, kind, "test", scopes, now)
            .await
            .expect("a key is made");
        tx.commit().await.expect("the database commits");
        let refreshed = self.services().apps.refresh(app_id).await;
        refreshed.expect("the app is read");
        key.text
    }

    /// Makes a key of the demo app by its route, and answers what that answers.
    pub async fn make_key(&self, body: &Value) -> Value {
        let path = self.path("/keys");
        self.post(&path, &self.admin(), body).await.data(201)
    }

    /// The demo app's entries in the audit log with an action, newest first.
    pub async fn audited(&self, action: &str) -> Vec<Value> {
        let path = self.path(&format!("/audit-log?action={action}"));
        let data = self.get(&path, &self.admin()).await.ok();
        let items = data.get("items").and_then(Value::as_array);
        items.cloned().unwrap_or_default()
    }

    /// Waits until something holds that the server does by itself; fails if that never comes.
    pub async fn until(&self, what: &str, mut holds: impl AsyncFnMut() -> bool) {
        let started = Instant::now();
        while !holds().await {
            assert!(started.elapsed() < SETTLES, "{what}");
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    /// Waits until at least so many statements, whose texts are like a pattern, wait for a lock of PostgreSQL's; fails if that never comes.
    pub async fn until_locked(&self, count: i64, pattern: &str) {
        let what = format!("fewer than {count} statements like {pattern} wait for a lock");
        self.until(&what, async || {
            let mut tx = self
                .services()
                .db
                .read()
                .await
                .expect("the database answers");
            let waiting: Result<i64, _> = tx
                .sql(
                    "SELECT count(*) FROM pg_stat_activity
                     WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE $1",
                )
                .bind(pattern.to_owned())
                .fetch_scalar()
                .await;
            waiting.expect("the database answers") >= count
        })
        .await;
    }

    /// Waits until no job is left to do; fails if that never comes.
    pub async fn finish_jobs(&self) {
        self.until("a job never ends", async || {
            self.count("jobs WHERE completed_at IS NULL").await == 0
        })
        .await;
    }

    /// The columns of a table: name, type, and whether a row needs a value.
    pub async fn columns(&self, table: &str) -> Vec<(String, String, bool)> {
        let columns: Vec<(String, String, i64)> = match self.services().db.dialect() {
            Dialect::Sqlite => {
                self.rows(leak(format!(
                    "SELECT name, type, \"notnull\" AND dflt_value IS NULL FROM pragma_table_info('{table}')"
                )))
                .await
            }
            Dialect::Postgres => {
                self.rows(leak(format!(
                    "SELECT column_name::text, data_type::text,
                            CASE WHEN is_nullable = 'NO' AND column_default IS NULL AND is_identity = 'NO' THEN 1::bigint ELSE 0::bigint END
                     FROM information_schema.columns WHERE table_schema = 'public' AND table_name = '{table}'"
                )))
                .await
            }
        };
        let columns = columns.into_iter();
        columns
            .map(|(name, kind, required)| (name, kind, required == 1))
            .collect()
    }

    /// Every table of the schema with all its rows, each row as one text in lower case: bytes in hexadecimal.
    pub async fn dump(&self) -> Vec<(String, Vec<String>)> {
        let dialect = self.services().db.dialect();
        let tables: Vec<(String,)> = match dialect {
            Dialect::Sqlite => {
                self.rows("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND name NOT LIKE '_sqlx%'").await
            }
            Dialect::Postgres => {
                self.rows("SELECT table_name::text FROM information_schema.tables WHERE table_schema = 'public' AND table_type = 'BASE TABLE' AND table_name NOT LIKE '\\_sqlx%'").await
            }
        };
        let mut dump = Vec::new();
        for (table,) in tables {
            let sql = match dialect {
                Dialect::Sqlite => {
                    let columns: Vec<(String,)> = self
                        .rows(leak(format!(
                            "SELECT name FROM pragma_table_info('{table}')"
                        )))
                        .await;
                    let columns: Vec<String> = columns
                        .iter()
                        .map(|(column,)| format!("quote(\"{column}\")"))
                        .collect();
                    format!("SELECT {} FROM \"{table}\"", columns.join(" || ' ' || "))
                }
                Dialect::Postgres => format!("SELECT t::text FROM \"{table}\" t"),
            };
            let rows: Vec<(String,)> = self.rows(leak(sql)).await;
            let rows = rows.into_iter().map(|(row,)| row.to_lowercase());
            dump.push((table, rows.collect()));
        }
        dump
    }
}

/// Statements are literals; a test's may be made of names that the schema has.
fn leak(sql: String) -> &'static str {
    Box::leak(sql.into_boxed_str())
}
