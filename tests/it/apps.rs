//! Apps: made, listed, changed, deleted with everything that was theirs (contract 13).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use nudge_apps::key::Kind;
use nudge_http::issuer::Role;
use nudge_platform::tables::{self, OfApp};
use serde_json::{Value, json};
use tempfile::TempDir;
use tests::{Child, Credential, TestApp, client, on_both_backends, site};
use uuid::Uuid;

use crate::guests;
use crate::two_servers::pair;

on_both_backends!(
    an_app_is_made_read_renamed_and_listed,
    a_token_with_several_workspaces_names_one,
    names_have_limits,
    a_change_expects_the_version_that_it_names,
    the_list_has_pages,
    two_do_not_both_make_the_last_app_of_a_workspace,
    a_deleted_app_stops_at_once,
    nothing_of_a_deleted_app_is_left,
    keys_of_a_deleted_app_leave_memory,
    an_upload_that_outlives_its_app_leaves_nothing,
    every_table_of_apps_is_emptied,
);

/// A token with roles in workspaces.
fn token(app: &TestApp, roles: &[(Uuid, Role)]) -> Credential {
    let roles: BTreeMap<Uuid, Role> = roles.iter().copied().collect();
    let now = app.clock.now();
    let issuer = &app.services().issuer;
    let lifetime = Duration::from_hours(1);
    Credential::bearer(&issuer.issue("ada", roles, false, now, lifetime).unwrap())
}

async fn an_app_is_made_read_renamed_and_listed(app: &mut TestApp) {
    let made = app
        .post("/v1/apps", &app.admin(), &json!({"name": "Shop"}))
        .await
        .data(201);
    assert_eq!(made["workspaceId"], json!(app.access.workspace_id));
    assert_eq!(
        (&made["name"], &made["version"]),
        (&json!("Shop"), &json!(1))
    );
    assert!(made["createdAt"].is_string() && made["updatedAt"].is_string());
    let path = format!("/v1/apps/{}", made["id"].as_str().unwrap());
    assert_eq!(app.get(&path, &app.viewer()).await.ok(), made);

    app.advance(5);
    let renamed = app
        .patch(&path, &app.admin(), &json!({"name": "Store"}))
        .await
        .ok();
    assert_eq!(
        (&renamed["name"], &renamed["version"]),
        (&json!("Store"), &json!(2))
    );
    assert_ne!(renamed["updatedAt"], made["updatedAt"]);
    app.patch(&path, &app.admin(), &json!({"nmae": "x"}))
        .await
        .refused(422, "validation_failed");

    let listed = app.get("/v1/apps", &app.viewer()).await.ok();
    assert_eq!(listed["nextCursor"], Value::Null);
    let names: Vec<(&Value, &Value)> = listed["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| (&item["name"], &item["role"]))
        .collect();
    assert_eq!(
        names,
        [
            (&json!("Store"), &json!("viewer")),
            (&json!("Demo"), &json!("viewer"))
        ]
    );
    let log = app
        .get(&format!("{path}/audit-log"), &app.admin())
        .await
        .ok();
    let actions: Vec<&Value> = log["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| &item["action"])
        .collect();
    assert_eq!(actions, ["app.updated", "app.created"]);
}

async fn a_token_with_several_workspaces_names_one(app: &mut TestApp) {
    let (home, other, watched) = (app.access.workspace_id, app.id(), app.id());
    let several = token(
        app,
        &[
            (home, Role::Admin),
            (other, Role::Admin),
            (watched, Role::Viewer),
        ],
    );
    let nowhere = token(app, &[]);

    let unnamed = app
        .post("/v1/apps", &several, &json!({"name": "Shop"}))
        .await;
    assert_eq!(unnamed.pointers(), ["/workspaceId"]);
    let named = |workspace: Uuid| json!({"name": "Shop", "workspaceId": workspace});
    let made = app
        .post("/v1/apps", &several, &named(other))
        .await
        .data(201);
    assert_eq!(made["workspaceId"], json!(other));
    app.post("/v1/apps", &several, &named(watched))
        .await
        .refused(403, "insufficient_role");
    app.post("/v1/apps", &several, &named(app.id()))
        .await
        .refused(404, "not_found");
    app.post("/v1/apps", &nowhere, &named(home))
        .await
        .refused(403, "insufficient_role");

    let listed = app.get("/v1/apps", &several).await.ok();
    assert_eq!(listed["items"].as_array().unwrap().len(), 2);
    let listed = app.get("/v1/apps", &app.viewer()).await.ok();
    assert_eq!(listed["items"].as_array().unwrap().len(), 1);
    assert_eq!(app.get("/v1/apps", &nowhere).await.ok()["items"], json!([]));
}

async fn names_have_limits(app: &mut TestApp) {
    for (name, good) in [
        ("a".to_owned(), true),
        ("é".repeat(120), true),
        (String::new(), false),
        ("é".repeat(121), false),
        ("   ".to_owned(), false),
        ("a\u{0}b".to_owned(), false),
    ] {
        let answer = app
            .post("/v1/apps", &app.admin(), &json!({"name": name}))
            .await;
        if good {
            answer.data(201);
        } else {
            answer.refused(422, "validation_failed");
            assert_eq!(answer.pointers(), ["/name"], "{name:?}");
        }
    }
    let unknown = json!({"name": "x", "colour": "red"});
    let answer = app.post("/v1/apps", &app.admin(), &unknown).await;
    assert_eq!(
        answer.refused(422, "validation_failed")["errors"][0]["code"],
        "unknown_key"
    );
}

async fn a_change_expects_the_version_that_it_names(app: &mut TestApp) {
    let rename = async |version: &str, name: &str| {
        let credential = app.admin().and("if-match", version);
        app.patch(&app.path(""), &credential, &json!({"name": name}))
            .await
    };
    assert_eq!(rename("\"1\"", "Two").await.ok()["version"], 2);
    rename("\"1\"", "Three")
        .await
        .refused(412, "version_mismatch");
    assert_eq!(rename("\"2\"", "Three").await.ok()["version"], 3);

    // Of changes at once that name no version, none is lost from the count.
    let (left, right) = tokio::join!(rename("*", "left"), rename("*", "right"));
    let mut versions = [left, right].map(|answer| {
        if answer.status == 412 {
            answer.refused(412, "version_mismatch");
            return 0;
        }
        answer.ok()["version"].as_i64().unwrap()
    });
    versions.sort_unstable();
    assert!([[4, 5], [0, 4]].contains(&versions), "{versions:?}");
}

async fn two_do_not_both_make_the_last_app_of_a_workspace(app: &mut TestApp) {
    let workspace_id = app.access.workspace_id;
    let db = app.services().db.clone();
    let now = app.clock.now();
    let mut tx = db.write().await.unwrap();
    let count = nudge_campaigns::apps::count(&mut tx, workspace_id).await;
    for _ in count.unwrap()..nudge_apps::MOST - 1 {
        nudge_apps::create(&mut tx, workspace_id, "One of many", now)
            .await
            .unwrap();
    }
    tx.commit().await.unwrap();

    let mut tx = db.write().await.unwrap();
    let count = nudge_campaigns::apps::count(&mut tx, workspace_id).await;
    assert_eq!(count.unwrap(), nudge_apps::MOST - 1);
    nudge_apps::create(&mut tx, workspace_id, "The last", now)
        .await
        .unwrap();
    let commit = async {
        // By then the request waits for this transaction.
        tokio::time::sleep(Duration::from_millis(500)).await;
        tx.commit().await.unwrap();
    };
    let body = json!({"name": "One too many"});
    let admin = app.admin();
    let (answer, ()) = tokio::join!(app.post("/v1/apps", &admin, &body), commit);
    answer.refused(422, "limit_exceeded");
}

async fn the_list_has_pages(app: &mut TestApp) {
    for number in 0..4 {
        let body = json!({"name": format!("App {number}")});
        app.post("/v1/apps", &app.admin(), &body).await.data(201);
    }
    let mut names = Vec::new();
    let mut path = "/v1/apps?limit=2".to_owned();
    loop {
        let page = app.get(&path, &app.admin()).await.ok();
        names.extend(
            page["items"]
                .as_array()
                .unwrap()
                .iter()
                .map(|item| item["name"].clone()),
        );
        let Some(cursor) = page["nextCursor"].as_str() else {
            break;
        };
        path = format!("/v1/apps?limit=2&cursor={cursor}");
    }
    assert_eq!(names, ["App 3", "App 2", "App 1", "App 0", "Demo"]);
    let other = token(app, &[(app.id(), Role::Admin)]);
    app.get(&path, &other).await.refused(400, "invalid_cursor");
    app.get("/v1/apps?limit=0", &app.admin())
        .await
        .refused(422, "validation_failed");
}

async fn a_deleted_app_stops_at_once(app: &mut TestApp) {
    app.survey(&json!({"kind": "event", "eventName": "purchase"}))
        .await;
    let ada = app.session("ada").await;
    let url = format!("{}/v1/sdk/instructions?wait=25", app.access.base_url);
    let poll = client::build()
        .get(url)
        .bearer_auth(&app.access.write_key)
        .header("x-service-subject-token", &ada.token);

    let (polled, ()) = tokio::join!(client::send(poll), async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        app.delete(&app.path(""), &app.admin()).await.data(204);
    });

    polled.refused(401, "invalid_credentials");
    let body = json!({"anonymousId": "ben"});
    app.post("/v1/sdk/session", &app.sdk(), &body)
        .await
        .refused(401, "invalid_credentials");
    let event = app.event(&ada, "purchase", &json!({}));
    app.ingest(&ada, &[event])
        .await
        .refused(401, "invalid_credentials");
    app.get(&app.path(""), &app.admin())
        .await
        .refused(404, "not_found");
    app.delete(&app.path(""), &app.admin())
        .await
        .refused(404, "not_found");
    assert_eq!(
        app.get("/v1/apps", &app.admin()).await.ok()["items"],
        json!([])
    );
}

/// Fills an app with a row of about every kind.
async fn fill(app: &TestApp) {
    app.survey(&json!({
        "kind": "event", "eventName": "purchase", "delaySeconds": 3600, "occurrence": {"mode": "every"},
    }))
    .await;
    app.survey(&json!({"kind": "event", "eventName": "visit", "occurrence": {"mode": "every_nth", "n": 2}})).await;
    app.define(
        "strict",
        &json!({"properties": [{"name": "total", "type": "number", "required": true}]}),
    )
    .await;
    app.key(Kind::Write, &[]).await;
    guests::deploy(app, 1, 1).await;
    guests::deploy(app, 2, 1).await;
    for number in 0..30 {
        let someone = app.session(&format!("someone-{number}")).await;
        let events: Vec<Value> = ["purchase", "visit", "visit", "strict"]
            .map(|name| app.event(&someone, name, &json!({})))
            .into();
        app.ingest(&someone, &events).await.ok();
    }
    let client = json!({"anonymousId": "someone-0", "clientId": app.id()});
    app.post("/v1/sdk/session", &app.sdk(), &client).await.ok();
    app.settle().await;
    let slot = app.path("/plugin-slots/trigger");
    app.put(&slot, &app.admin(), &json!({"plugin": guests::name(1)}))
        .await
        .ok();
}

/// Every value of every table that has an app's id in it, but for the entry that says that it was deleted.
async fn traces(app: &TestApp, app_id: Uuid) -> Vec<String> {
    let mut traces = Vec::new();
    for (table, column) in columns(app).await {
        let mut tx = app.services().db.read().await.unwrap();
        let text = match tx.dialect() {
            nudge_db::Dialect::Sqlite => format!(
                "SELECT '{table}.{column}' FROM {table} WHERE (\"{column}\" = $1 OR instr(CAST(\"{column}\" AS TEXT), $2) > 0)"
            ),
            nudge_db::Dialect::Postgres => format!(
                "SELECT '{table}.{column}' FROM {table} WHERE position($2 IN CAST(\"{column}\" AS TEXT)) > 0 AND $1::uuid IS NOT NULL"
            ),
        };
        let rest = if table == "audit_log" {
            " AND action <> 'app.deleted'"
        } else {
            ""
        };
        // The text lives as long as the test's process, which is not long.
        let text: &'static str = Box::leak((text + rest).into_boxed_str());
        let found: Vec<(String,)> = tx
            .sql(text)
            .bind(app_id)
            .bind(app_id.to_string())
            .fetch_all()
            .await
            .unwrap();
        traces.extend(found.into_iter().map(|(place,)| place));
    }
    traces
}

/// Every column of every table of ours.
async fn columns(app: &TestApp) -> Vec<(String, String)> {
    if app.services().db.dialect() == nudge_db::Dialect::Sqlite {
        app.rows(
            "SELECT m.name, c.name FROM sqlite_schema m JOIN pragma_table_info(m.name) c
             WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%' AND m.name NOT LIKE '_sqlx%'",
        )
        .await
    } else {
        app.rows(
            "SELECT table_name::text, column_name::text FROM information_schema.columns
             WHERE table_schema = 'public' AND table_name NOT LIKE '\\_sqlx%'",
        )
        .await
    }
}

/// A component takes longer to compile than a deletion waits for what was let in before.
async fn an_upload_that_outlives_its_app_leaves_nothing(app: &mut TestApp) {
    let loaders = &app.services().plugins.loaders;
    let turn = loaders.inspection_turn(app.access.workspace_id).await;
    let turn = turn.unwrap();
    let deleted = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        app.delete(&app.path(""), &app.admin()).await.data(204);
        app.finish_jobs().await;
        drop(turn);
    };
    let upload = guests::upload(app, guests::versioned(1, 1));
    let (uploaded, ()) = tokio::join!(upload, deleted);

    uploaded.refused(404, "not_found");
    assert_eq!(traces(app, app.access.app_id).await, Vec::<String>::new());
    let kept: Vec<(String,)> = app.rows("SELECT digest FROM plugin_components").await;
    assert!(kept.is_empty(), "{kept:?}");
}

async fn keys_of_a_deleted_app_leave_memory(app: &mut TestApp) {
    app.session("ada").await;
    let keys = || app.services().apps.key_count();
    assert_eq!(keys(), 1);
    app.delete(&app.path(""), &app.admin()).await.data(204);
    assert_eq!(keys(), 0);
}

async fn nothing_of_a_deleted_app_is_left(app: &mut TestApp) {
    let (kept, kept_key) = app
        .another_app(app.access.workspace_id, Kind::Write, &[])
        .await;
    let kept_key = Credential::bearer(&kept_key);
    let body = json!({"anonymousId": "someone-0"});
    app.post("/v1/sdk/session", &kept_key, &body).await.ok();
    fill(app).await;
    let app_id = app.access.app_id;
    assert!(traces(app, app_id).await.len() > 100);

    app.delete(&app.path(""), &app.admin()).await.data(204);
    // The job goes on after a restart as if nothing had been.
    app.restart().await;
    app.finish_jobs().await;

    assert_eq!(traces(app, app_id).await, Vec::<String>::new());
    let entries: Vec<(Uuid, String, String)> = app
        .rows("SELECT app_id, actor, resource FROM audit_log WHERE action = 'app.deleted'")
        .await;
    assert_eq!(
        entries,
        [(Uuid::nil(), "nudge dev".to_owned(), format!("app/{app_id}"))]
    );
    // What belongs to others is untouched.
    app.post("/v1/sdk/session", &kept_key, &body).await.ok();
    let left: Vec<(Uuid,)> = app.rows("SELECT DISTINCT app_id FROM subjects").await;
    assert_eq!(left, [(kept,)]);
    let names: Vec<(String,)> = app.rows("SELECT state FROM jobs").await;
    assert_eq!(names, [("completed".to_owned(),)]);
}

/// A table with rows of apps that the deletion does not know would keep them for ever.
async fn every_table_of_apps_is_emptied(app: &mut TestApp) {
    let columns: BTreeSet<(String, String)> = columns(app).await.into_iter().collect();
    for (table, _) in columns.iter().filter(|(_, column)| column == "app_id") {
        let known = tables::all().find(|known| known.name == table);
        assert!(known.is_some(), "tables.rs leaves out {table}");
        let known = known.unwrap();
        let with_plugins = ["plugins", "plugin_versions"].contains(&known.name);
        assert_eq!(known.of_app == OfApp::No, with_plugins, "{table}");
        for column in known.key.split(", ") {
            assert!(
                columns.contains(&(table.clone(), column.to_owned())),
                "{table} has no {column}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deletion_survives_a_power_cut() {
    let folder = TempDir::with_prefix("nudge-test-").unwrap();
    let data = folder.path().join("data");
    std::fs::create_dir(&data).unwrap();
    let child = Child::start(site!(), &data);
    let app_id: Uuid = child.text("appId").parse().unwrap();
    let (base, key) = (
        child.text("baseUrl").to_owned(),
        child.text("writeKey").to_owned(),
    );
    let http = client::build();
    for number in 0..50 {
        let body = json!({"anonymousId": format!("someone-{number}")});
        let request = http
            .post(format!("{base}/v1/sdk/session"))
            .bearer_auth(&key)
            .json(&body);
        client::send(request).await.ok();
    }
    let request = http
        .delete(format!("{base}/v1/apps/{app_id}"))
        .bearer_auth(child.text("adminToken"));
    client::send(request).await.data(204);
    // The job pauses before its last look: it is in the middle.
    child.kill();

    let app = TestApp::open(site!(), TestApp::config(site!(), &data))
        .await
        .unwrap();
    app.finish_jobs().await;
    assert_eq!(traces(&app, app_id).await, Vec::<String>::new());
    app.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_server_hears_of_a_deletion() {
    let (_folder, one, two) = pair().await;
    two.session("ada").await;
    one.delete(&one.path(""), &one.admin()).await.data(204);

    let body = json!({"anonymousId": "ada"});
    two.until("the other server never hears of it", async || {
        two.post("/v1/sdk/session", &two.sdk(), &body).await.status == 401
    })
    .await;
    two.get(&two.path(""), &two.admin())
        .await
        .refused(404, "not_found");
    one.finish().await;
    two.finish().await;
}
