//! The audit log: every change has an entry, refusals have none but those of keys (contract 13). What the entry of each
//! operation is stands in `host/src/openapi/operations.json`; `examples.rs` makes each change and has its entry checked here.

use std::collections::BTreeSet;

use nudge::openapi::operations::Operation;
use serde_json::{Value, json};
use tests::{Credential, TestApp, on_both_backends};

on_both_backends!(
    entries_are_filtered_and_paged,
    a_refused_change_leaves_none,
    a_backends_update_of_properties_leaves_one_without_the_person,
    a_refused_key_leaves_one_for_each_route,
);

/// Secrets begin like this.
const SECRETS: [&str; 5] = ["wk_", "sk_", "at_", "eyJ", "whsec_"];

/// Whether an operation is a change that people make: what SDKs do is none.
fn is_change(row: &Operation) -> bool {
    let (method, path) = row.route.split_once(' ').unwrap();
    let mut managed = ["/v1/apps", "/v1/operator"].iter();
    method != "GET" && managed.any(|prefix| path.starts_with(prefix))
}

#[test]
fn every_change_leaves_an_entry_or_says_why_not() {
    for row in Operation::all().unwrap() {
        let says = usize::from(row.audit.is_some()) + usize::from(row.unaudited.is_some());
        assert_eq!(
            says,
            usize::from(is_change(&row)),
            "{}: `audit` has the action of its entry, or `unaudited` the reason why there is none",
            row.operation
        );
        assert_ne!(row.unaudited.as_deref(), Some(""), "{}", row.operation);
    }
}

/// The entries of a change's action, newest first, in the log of the app or the server.
pub(crate) async fn entries(app: &TestApp, change: &Operation) -> Vec<Value> {
    match &change.audit {
        Some(action) => of_log(app, change, &format!("action={action}")).await,
        None => Vec::new(),
    }
}

async fn of_log(app: &TestApp, change: &Operation, filter: &str) -> Vec<Value> {
    // An operator's change of one app is in that app's log.
    let names_app = change
        .body
        .as_ref()
        .is_some_and(|body| !body["appId"].is_null());
    let log = if change.route.contains(" /v1/operator/") && !names_app {
        "/v1/operator/audit-log".to_owned()
    } else {
        app.path("/audit-log")
    };
    let path = format!("{log}?{filter}&limit=200");
    let data = app.get(&path, &app.operator()).await.ok();
    data["items"].as_array().unwrap().clone()
}

/// Checks the entry of a change that succeeded. `before`: the entries of its action before it.
pub(crate) async fn has_left_an_entry(
    app: &TestApp,
    change: &Operation,
    body: Option<&Value>,
    before: &[Value],
) {
    let place = &change.operation;
    let after = entries(app, change).await;
    assert_eq!(after.len(), before.len() + 1, "{place}");
    let entry = &after[0];
    assert_eq!(
        (entry["action"].as_str(), &entry["actor"]),
        (change.audit.as_deref(), &json!("nudge dev")),
        "{place}"
    );
    assert!(
        entry["at"].is_string() && entry["id"].is_string(),
        "{place}"
    );
    assert!(entry["detail"].is_object(), "{place}: {entry}");
    let resource = entry["resource"].as_str().unwrap();
    assert!(!resource.is_empty(), "{place}");
    // A change of what people write says what was changed; a webhook's address may hold a secret.
    if change.route.starts_with("PATCH ") && place != "update_webhook" {
        let detail = &entry["detail"];
        let is_told =
            |name: &String| detail["patch"].get(name).is_some() || detail.get(name).is_some();
        let sent = body.unwrap().as_object().unwrap();
        assert!(sent.keys().all(is_told), "{place}: {entry}");
    }
    let of_resource = of_log(app, change, &format!("resource={resource}")).await;
    assert!(of_resource.contains(entry), "{place}");
    for other in &of_resource {
        assert_eq!(other["resource"], resource, "{place}");
        let has = |secret: &&&str| other.to_string().contains(**secret);
        assert_eq!(SECRETS.iter().find(has), None, "{place}: {other}");
    }
}

async fn entries_are_filtered_and_paged(app: &mut TestApp) {
    for number in 0..5 {
        app.patch(
            &app.path(""),
            &app.admin(),
            &json!({"name": format!("Name {number}")}),
        )
        .await
        .ok();
        app.advance(60);
    }
    app.define("purchase", &json!({})).await;
    let list = async |query: &str| {
        app.get(&app.path(&format!("/audit-log{query}")), &app.admin())
            .await
    };
    let names = |page: &Value| -> Vec<Value> {
        let items = page["items"].as_array().unwrap();
        items
            .iter()
            .map(|item| item["detail"]["name"].clone())
            .collect()
    };
    let mut seen = Vec::new();
    let mut query = "?action=app.updated&limit=2".to_owned();
    let mut newest_cursor = String::new();
    loop {
        let page = list(&query).await.ok();
        seen.extend(names(&page));
        let Some(cursor) = page["nextCursor"].as_str() else {
            break;
        };
        cursor.clone_into(&mut newest_cursor);
        query = format!("?action=app.updated&limit=2&cursor={cursor}");
    }
    assert_eq!(seen, ["Name 4", "Name 3", "Name 2", "Name 1", "Name 0"]);
    list(&format!("?limit=2&cursor={newest_cursor}"))
        .await
        .refused(400, "invalid_cursor");

    assert_eq!(
        list("?actor=nudge%20dev").await.ok()["items"]
            .as_array()
            .unwrap()
            .len(),
        6
    );
    assert_eq!(list("?actor=nobody").await.ok()["items"], json!([]));
    let (from, to) = (app.time(-250), app.time(-130));
    let between = list(&format!("?action=app.updated&from={from}&to={to}"))
        .await
        .ok();
    assert_eq!(names(&between), ["Name 2", "Name 1"]);
    assert_eq!(list("?from=yesterday").await.pointers(), ["/from"]);
    list("?limit=201").await.refused(422, "validation_failed");
}

async fn a_backends_update_of_properties_leaves_one_without_the_person(app: &mut TestApp) {
    let ada = app.session("zoe-x").await;
    let token = Credential::bearer(&app.access.api_token);
    let path = app.path("/users/properties");
    let entries = async || app.audited("person.properties_updated").await;
    let mut update = json!({"subject": {"anonymousId": "zoe-x"},
        "update": {"mutationId": app.id(), "set": {"plan": "gold-needle", "age": 7}, "unset": ["old"]}});
    for applied in [true, false] {
        let data = app.patch(&path, &token, &update).await.ok();
        assert_eq!(data["applied"], applied);
        let entries = entries().await;
        assert_eq!(entries.len(), 1, "a repetition changes nothing");
        assert!(entries[0]["actor"].as_str().unwrap().starts_with("key/"));
        assert!(
            entries[0]["resource"]
                .as_str()
                .unwrap()
                .starts_with("person/")
        );
        assert_eq!(entries[0]["detail"], json!({"set": 2, "unset": 1}));
        for secret in ["zoe-x", &ada.subject_id, "plan", "gold-needle"] {
            assert!(!entries[0].to_string().contains(secret), "{secret}");
        }
    }
    update["subject"] = json!({"externalId": "nobody"});
    update["update"]["mutationId"] = json!(app.id());
    app.patch(&path, &token, &update)
        .await
        .refused(404, "subject_not_found");
    let settings = json!({"privacy": {"denyKeys": ["plan"]}});
    app.patch(&app.path("/settings"), &app.admin(), &settings)
        .await
        .ok();
    let filtered = json!({"subject": {"anonymousId": "zoe-x"},
        "update": {"mutationId": app.id(), "set": {"plan": "x"}}});
    assert_eq!(
        app.patch(&path, &token, &filtered).await.ok()["applied"],
        false
    );
    let own = json!({"anonymousId": "zoe-x", "mutationId": app.id(), "set": {"a": 1}});
    app.post("/v1/sdk/user-properties", &ada.credential(), &own)
        .await
        .ok();
    assert_eq!(entries().await.len(), 1);
}

async fn a_refused_key_leaves_one_for_each_route(app: &mut TestApp) {
    let push = app.path("/push/transactional");
    let body = json!({});
    let in_header = Credential::none().and("x-write-key", &app.access.write_key);
    for _ in 0..3 {
        app.get(&app.path("/surveys"), &app.sdk())
            .await
            .refused(403, "insufficient_scope");
        app.post(&push, &app.sdk(), &body)
            .await
            .refused(403, "insufficient_scope");
        app.post(&push, &in_header, &body)
            .await
            .refused(401, "invalid_credentials");
        app.get(&app.path("/surveys"), &in_header)
            .await
            .refused(401, "invalid_credentials");
    }
    let of = async || {
        let entries = app.audited("key.refused").await;
        let detail = |entry: &Value, name: &str| entry["detail"][name].as_str().unwrap().to_owned();
        let entries = entries.iter();
        entries
            .map(|it| (detail(it, "reason"), detail(it, "route")))
            .collect::<BTreeSet<_>>()
    };
    let expected = ["wrong_header", "wrong_kind"]
        .into_iter()
        .flat_map(|reason| {
            let routes = [
                "GET /v1/apps/{appId}/surveys",
                "POST /v1/apps/{appId}/push/transactional",
            ];
            routes.map(|route| (reason.to_owned(), route.to_owned()))
        });
    let expected: BTreeSet<_> = expected.collect();
    app.until("refusals are not audited", async || of().await == expected)
        .await;
    assert_eq!(app.audited("key.refused").await.len(), 4, "once a minute");
}

async fn a_refused_change_leaves_none(app: &mut TestApp) {
    let settings = app.path("/settings");
    app.patch(&settings, &app.admin(), &json!({"typo": 1}))
        .await
        .refused(422, "validation_failed");
    app.patch(&settings, &app.editor(), &json!({}))
        .await
        .refused(403, "insufficient_role");
    app.post(&app.path("/surveys"), &app.editor(), &json!({}))
        .await
        .refused(422, "validation_failed");
    let missing = app.path(&format!("/dead-letters/{}/replay", app.id()));
    app.post(&missing, &app.editor(), &json!({}))
        .await
        .refused(404, "not_found");
    let gone = app.path(&format!("/keys/{}", app.id()));
    app.delete(&gone, &app.admin())
        .await
        .refused(404, "not_found");
    let log = app.get(&app.path("/audit-log"), &app.admin()).await.ok();
    assert_eq!(log["items"], json!([]));
}
