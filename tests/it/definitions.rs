//! Event definitions (contract 11).

use serde_json::{Value, json};
use tests::session::text;
use tests::{Answer, TestApp, client, on_both_backends};

on_both_backends!(
    a_definition_comes_back_as_it_was_made,
    a_name_is_declared_once,
    a_patch_makes_a_new_version_and_is_enforced_at_once,
    an_archived_definition_is_no_longer_enforced,
    bad_definitions_are_named_by_pointers,
    definitions_are_paged,
    definitions_of_others_are_not_found,
    an_app_has_at_most_1000_definitions,
    a_definition_has_at_most_256_properties,
);

pub(crate) async fn create(app: &TestApp, body: &Value) -> Answer {
    app.post(&app.path("/event-definitions"), &app.editor(), body)
        .await
}

pub(crate) fn total() -> Value {
    json!([{"name": "total", "type": "number", "required": true}])
}

pub(crate) async fn accepted(app: &TestApp, properties: Value) -> bool {
    let ada = app.session("ada").await;
    let event = app.event(&ada, "purchase", &properties);
    app.ingest(&ada, &[event]).await.ok()["accepted"] == 1
}

async fn a_definition_comes_back_as_it_was_made(app: &mut TestApp) {
    let body = json!({
        "name": "purchase",
        "description": "Money changes hands",
        "enforcement": "observe",
        "additionalProperties": "reject",
        "properties": [
            {"name": "total", "type": "number", "required": true, "minimum": 0, "maximum": 10, "description": "in euros"},
            {"name": "currency", "type": "enum", "required": false, "enumValues": ["EUR", "USD"]},
            {"name": "code", "type": "string", "required": false, "minLength": 1, "maxLength": 9, "pattern": "^[a-z]+$"},
            {"name": "gift", "type": "boolean", "required": false},
            {"name": "on", "type": "date", "required": false},
        ],
    });
    let made = create(app, &body).await.data(201);
    for (key, value) in body.as_object().unwrap() {
        assert_eq!(&made[key], value, "{key}");
    }
    assert_eq!(
        (&made["version"], &made["status"]),
        (&json!(1), &json!("active"))
    );
    let path = app.path(&format!("/event-definitions/{}", text(&made, "id")));
    assert_eq!(app.get(&path, &app.viewer()).await.ok(), made);

    let plain = create(app, &json!({"name": "opened"})).await.data(201);
    assert_eq!(plain["enforcement"], "enforce");
    assert_eq!(plain["additionalProperties"], "allow");
    assert_eq!(plain["properties"], json!([]));

    let short = json!({"name": "closed", "status": "archived", "properties": [{"name": "on", "type": "date"}]});
    let made = create(app, &short).await.data(201);
    assert_eq!(made["status"], "archived");
    assert_eq!(made["properties"][0]["required"], false);
    let answer = create(app, &json!({"name": "other", "status": "draft"})).await;
    answer.refused(422, "validation_failed");
}

async fn a_name_is_declared_once(app: &mut TestApp) {
    let body = json!({"name": "purchase", "properties": total()});
    create(app, &body).await.data(201);
    create(app, &body)
        .await
        .refused(409, "event_definition_exists");
    create(app, &json!({"name": "Purchase"})).await.data(201);
}

async fn a_patch_makes_a_new_version_and_is_enforced_at_once(app: &mut TestApp) {
    let made = app.define("purchase", &json!({"description": "d"})).await;
    let path = app.path(&format!("/event-definitions/{}", text(&made, "id")));
    assert!(accepted(app, json!({})).await);

    let changed = app
        .patch(&path, &app.editor(), &json!({"properties": total()}))
        .await
        .ok();
    assert_eq!(
        (&changed["version"], &changed["description"]),
        (&json!(2), &json!("d"))
    );
    assert!(!accepted(app, json!({})).await);
    assert!(accepted(app, json!({"total": 1})).await);

    let request = app.request(reqwest::Method::PATCH, &path, &app.editor());
    let stale = client::send(request.header("if-match", "\"1\"").json(&json!({}))).await;
    stale.refused(412, "version_mismatch");
    let answer = app
        .patch(&path, &app.editor(), &json!({"name": "other"}))
        .await;
    answer.refused(422, "validation_failed");
    assert_eq!(answer.pointers(), ["/name"]);
    let answer = app.patch(&path, &app.editor(), &json!({"colour": 1})).await;
    answer.refused(422, "validation_failed");
}

async fn an_archived_definition_is_no_longer_enforced(app: &mut TestApp) {
    let made = app
        .define("purchase", &json!({"properties": total()}))
        .await;
    let path = app.path(&format!("/event-definitions/{}", text(&made, "id")));
    assert!(!accepted(app, json!({})).await);

    app.delete(&path, &app.editor()).await.data(204);
    assert!(accepted(app, json!({})).await);
    assert_eq!(
        app.get(&path, &app.viewer()).await.ok()["status"],
        "archived"
    );

    let back = app
        .patch(&path, &app.editor(), &json!({"status": "active"}))
        .await
        .ok();
    assert_eq!(back["version"], 3);
    assert!(!accepted(app, json!({})).await);
}

async fn bad_definitions_are_named_by_pointers(app: &mut TestApp) {
    let of = |property: Value| json!({"name": "purchase", "properties": [property]});
    for (body, pointer) in [
        (json!({"name": ""}), "/name"),
        (json!({"name": "ä".repeat(201)}), "/name"),
        (json!({"name": "$scheduled"}), "/name"),
        (json!({}), ""),
        (json!({"name": "a", "colour": 1}), ""),
        (json!({"name": "a", "enforcement": "hope"}), "/enforcement"),
        (
            of(json!({"name": "p", "type": "money"})),
            "/properties/0/type",
        ),
        (of(json!({"type": "string"})), "/properties/0"),
        (
            of(json!({"name": "p", "type": "string", "minimum": 1})),
            "/properties/0/minimum",
        ),
        (
            of(json!({"name": "p", "type": "number", "minimum": 2, "maximum": 1})),
            "/properties/0/minimum",
        ),
        (
            of(json!({"name": "p", "type": "string", "pattern": "("})),
            "/properties/0/pattern",
        ),
        (of(json!({"name": "p", "type": "enum"})), "/properties/0"),
        (
            of(json!({"name": "p", "type": "string", "requird": true})),
            "/properties/0/requird",
        ),
        (of(json!(7)), "/properties/0"),
    ] {
        let answer = create(app, &body).await;
        answer.refused(422, "validation_failed");
        let pointers = answer.pointers();
        assert!(pointers[0].starts_with(pointer), "{body}: {pointers:?}");
    }
    let list = app
        .get(&app.path("/event-definitions"), &app.viewer())
        .await
        .ok();
    assert_eq!(list["items"], json!([]));
}

async fn definitions_are_paged(app: &mut TestApp) {
    for number in 0..5 {
        app.define(&format!("event_{number}"), &json!({})).await;
    }
    let path = app.path("/event-definitions");
    let mut seen = Vec::new();
    let mut query = "?limit=2".to_owned();
    loop {
        let page = app.get(&format!("{path}{query}"), &app.viewer()).await.ok();
        seen.extend(
            page["items"]
                .as_array()
                .unwrap()
                .iter()
                .map(|item| text(item, "name")),
        );
        // Pages are stable while rows are inserted.
        app.define(&format!("later_{}", seen.len()), &json!({}))
            .await;
        match page["nextCursor"].as_str() {
            Some(cursor) => query = format!("?limit=2&cursor={cursor}"),
            None => break,
        }
    }
    assert_eq!(
        seen,
        ["event_4", "event_3", "event_2", "event_1", "event_0"]
    );
}

async fn definitions_of_others_are_not_found(app: &mut TestApp) {
    let made = app.define("purchase", &json!({})).await;
    let (other, _) = app
        .another_app(app.access.workspace_id, nudge_apps::key::Kind::Write, &[])
        .await;
    let foreign = format!("/v1/apps/{other}/event-definitions/{}", text(&made, "id"));

    app.get(&foreign, &app.viewer())
        .await
        .refused(404, "not_found");
    app.patch(&foreign, &app.editor(), &json!({}))
        .await
        .refused(404, "not_found");
    app.delete(&foreign, &app.editor())
        .await
        .refused(404, "not_found");
}

async fn an_app_has_at_most_1000_definitions(app: &mut TestApp) {
    let mut tx = app.services().db.write().await.unwrap();
    let now = app.clock.now();
    for number in 0..1000 {
        let definition = nudge_campaigns::definitions::Definition {
            id: app.id(),
            app_id: app.access.app_id,
            name: format!("event_{number}"),
            version: 1,
            status: nudge_campaigns::definitions::Status::Archived,
            content: serde_json::from_value(json!({})).unwrap(),
            created_at: now,
            updated_at: now,
        };
        nudge_campaigns::definitions::store::insert(&mut tx, &definition)
            .await
            .unwrap();
    }
    tx.commit().await.unwrap();

    create(app, &json!({"name": "one_more"}))
        .await
        .refused(422, "limit_exceeded");
}

async fn a_definition_has_at_most_256_properties(app: &mut TestApp) {
    let of = |count: usize| -> Value {
        let properties: Value = (0..count)
            .map(|n| json!({"name": format!("p{n}"), "type": "string"}))
            .collect();
        json!({"name": "wide", "properties": properties})
    };
    create(app, &of(257))
        .await
        .refused(422, "validation_failed");
    create(app, &of(256)).await.data(201);
}
