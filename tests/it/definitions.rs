//! Event definitions and their enforcement (contract 11).

use serde_json::{Value, json};
use tests::session::text;
use tests::{Answer, TestApp, client, on_both_backends};

on_both_backends!(
    a_definition_comes_back_as_it_was_made,
    a_name_is_declared_once,
    a_patch_makes_a_new_version_and_is_enforced_at_once,
    an_archived_definition_is_no_longer_enforced,
    observed_violations_are_accepted,
    every_violation_has_a_code,
    bad_definitions_are_named_by_pointers,
    definitions_are_paged,
    definitions_of_others_are_not_found,
    an_app_has_at_most_1000_definitions,
    a_definition_has_at_most_256_properties,
    a_definition_counts_what_it_saw_in_24_hours,
    observed_violations_and_repetitions_are_counted_once,
    what_violations_say_is_bounded,
    a_dry_run_tries_one_event,
    a_dry_run_tries_what_arrived,
    a_definition_is_proposed_from_recent_events,
    bad_questions_about_definitions_are_refused,
    a_validator_of_its_own_decides_about_dry_runs_too,
);

/// The definition's counts of 24 hours.
async fn counts(app: &TestApp, definition: &Value) -> [u64; 2] {
    let path = app.path(&format!("/event-definitions/{}", text(definition, "id")));
    let stats = app.get(&path, &app.viewer()).await.ok()["stats"].clone();
    ["seen24h", "violations24h"].map(|key| stats[key].as_u64().unwrap())
}

async fn a_definition_counts_what_it_saw_in_24_hours(app: &mut TestApp) {
    let made = app
        .define("purchase", &json!({"properties": total()}))
        .await;
    assert_eq!(made["stats"], json!({"seen24h": 0, "violations24h": 0}));
    let ada = app.session("ada").await;
    let good = json!({"total": 1});
    let events: Vec<Value> = [&good, &json!({}), &good, &json!({"total": "x"}), &good]
        .map(|properties| app.event(&ada, "purchase", properties))
        .into();
    app.ingest(&ada, &events).await.ok();
    app.ingest(&ada, &[app.event(&ada, "other", &json!({}))])
        .await
        .ok();
    assert_eq!(counts(app, &made).await, [5, 2]);
    let list = app
        .get(&app.path("/event-definitions"), &app.viewer())
        .await
        .ok();
    assert_eq!(
        list["items"][0]["stats"],
        json!({"seen24h": 5, "violations24h": 2})
    );

    // Counts are in the database.
    app.restart().await;
    app.advance(12 * 3600);
    assert!(accepted(app, json!({"total": 1})).await);
    assert_eq!(counts(app, &made).await, [6, 2]);
    app.advance(11 * 3600);
    assert_eq!(counts(app, &made).await, [6, 2]);
    app.advance(3600 + 600);
    assert_eq!(
        counts(app, &made).await,
        [1, 0],
        "those of yesterday are gone"
    );
    app.until("old counts are removed", async || {
        app.advance(26 * 3600);
        let rows: Vec<(i64,)> = app.rows("SELECT begins_at FROM definition_counts").await;
        rows.is_empty()
    })
    .await;
}

async fn observed_violations_and_repetitions_are_counted_once(app: &mut TestApp) {
    let made = app
        .define(
            "purchase",
            &json!({"enforcement": "observe", "properties": total()}),
        )
        .await;
    let ada = app.session("ada").await;
    let event = app.event(&ada, "purchase", &json!({}));
    for _ in 0..3 {
        let data = app.ingest(&ada, std::slice::from_ref(&event)).await.ok();
        assert_eq!(data["accepted"], 1);
    }
    assert_eq!(
        counts(app, &made).await,
        [1, 1],
        "sent again is not seen again"
    );
}

async fn what_violations_say_is_bounded(app: &mut TestApp) {
    let values: Vec<String> = (0..1000).map(|number| format!("value-{number}")).collect();
    let properties = json!([
        {"name": "e", "type": "enum", "enumValues": values},
        {"name": "s", "type": "string", "pattern": format!("^{}$", "a".repeat(900))},
    ]);
    app.define(
        "purchase",
        &json!({"additionalProperties": "reject", "properties": properties}),
    )
    .await;
    let ada = app.session("ada").await;
    let mut sent: serde_json::Map<String, Value> = (0..200)
        .map(|number| (format!("{number}-{}", "k".repeat(250)), json!(number)))
        .collect();
    sent.insert("e".to_owned(), json!("x".repeat(5_000)));
    sent.insert("s".to_owned(), json!("y".repeat(5_000)));
    let event = app.event(&ada, "purchase", &Value::Object(sent));
    let data = app.ingest(&ada, &[event]).await.ok();
    assert_eq!(data["errors"][0]["code"], "schema_violation");
    let letters = app
        .get(&app.path("/dead-letters"), &app.viewer())
        .await
        .ok();
    let violations = letters["items"][0]["violations"].as_array().unwrap();
    assert_eq!(violations.len(), 20);
    for violation in violations {
        for key in ["property", "expected", "actual"] {
            let length = text(violation, key).chars().count();
            assert!((1..=220).contains(&length), "{key}: {violation}");
        }
    }
}

async fn dry_run(app: &TestApp, definition: &Value, body: &Value) -> Answer {
    let path = app.path(&format!(
        "/event-definitions/{}/dry-run",
        text(definition, "id")
    ));
    app.post(&path, &app.editor(), body).await
}

async fn a_dry_run_tries_one_event(app: &mut TestApp) {
    let made = app
        .define("purchase", &json!({"properties": total()}))
        .await;
    let good = dry_run(app, &made, &json!({"properties": {"total": 1}})).await;
    let good = good.ok();
    assert_eq!(
        (&good["passed"], &good["failed"], &good["samples"]),
        (&json!(1), &json!(0), &json!([]))
    );
    let bad = dry_run(app, &made, &json!({"properties": {"total": "1"}})).await;
    let bad = bad.ok();
    assert_eq!((&bad["passed"], &bad["failed"]), (&json!(0), &json!(1)));
    let violation = &bad["samples"][0]["violations"][0];
    assert_eq!(
        (&violation["code"], &violation["property"]),
        (&json!("type_mismatch"), &json!("total"))
    );
    assert_eq!(counts(app, &made).await, [0, 0]);
    assert_eq!(app.stored("purchase").await, 0);
}

async fn a_dry_run_tries_what_arrived(app: &mut TestApp) {
    let made = app
        .define("purchase", &json!({"properties": total()}))
        .await;
    let ada = app.session("ada").await;
    let send = async |properties: &Value| {
        let event = app.event(&ada, "purchase", properties);
        app.ingest(&ada, std::slice::from_ref(&event)).await.ok();
        event
    };
    send(&json!({"total": 1})).await;
    app.advance(5 * 3600);
    send(&json!({"total": 1})).await;
    let large = send(&json!({"total": 100})).await;
    let broken = send(&json!({})).await;
    app.ingest(&ada, &[app.event(&ada, "other", &json!({}))])
        .await
        .ok();
    let since = async |hours: u32| {
        dry_run(app, &made, &json!({"sinceHours": hours}))
            .await
            .ok()
    };
    let now = since(2).await;
    assert_eq!((&now["passed"], &now["failed"]), (&json!(2), &json!(1)));
    assert_eq!(now["complete"], true);
    assert!(now["lookedAt"].as_i64().unwrap() >= 3);
    let sample = &now["samples"][0];
    assert_eq!(
        (&sample["source"], &sample["eventId"]),
        (&json!("dead_letter"), &broken["eventId"])
    );
    assert_eq!(since(6).await["passed"], 3);

    // What a definition would do that is not in force.
    let path = app.path(&format!("/event-definitions/{}", text(&made, "id")));
    let bounded = json!([{"name": "total", "type": "number", "maximum": 10}]);
    let change = json!({"properties": bounded, "status": "archived"});
    app.patch(&path, &app.editor(), &change).await.ok();
    let then = since(2).await;
    assert_eq!((&then["passed"], &then["failed"]), (&json!(2), &json!(1)));
    assert_eq!(then["samples"][0]["eventId"], large["eventId"]);
    let letters = app
        .get(&app.path("/dead-letters"), &app.viewer())
        .await
        .ok();
    assert_eq!(letters["items"][0]["attempts"], 0);
}

async fn a_definition_is_proposed_from_recent_events(app: &mut TestApp) {
    let ada = app.session("ada").await;
    let old = app.event(&ada, "purchase", &json!({"old": true}));
    app.ingest(&ada, &[old]).await.ok();
    app.advance(25 * 3600);
    let ada = app.session("ada").await;
    let events: Vec<Value> = (0..30)
        .map(|number| {
            let plan = if number % 2 == 0 { "free" } else { "pro" };
            let properties = json!({"total": number, "plan": plan, "on": "2026-01-31", "note": format!("note {number}"), "cart": {"items": 1}});
            app.event(&ada, "purchase", &properties)
        })
        .chain([app.event(&ada, "purchase", &json!({"total": 1, "plan": "pro", "note": null}))])
        .collect();
    app.ingest(&ada, &events).await.ok();
    let path = app.path("/event-definitions/infer");
    let proposed = app
        .post(&path, &app.editor(), &json!({"eventName": "purchase"}))
        .await
        .ok();
    assert_eq!(
        proposed["properties"],
        json!([
            {"name": "note", "type": "string", "required": false},
            {"name": "on", "type": "date", "required": false},
            {"name": "plan", "type": "enum", "required": true, "enumValues": ["free", "pro"]},
            {"name": "total", "type": "number", "required": true},
        ])
    );
    assert_eq!(proposed["basedOn"]["events"], 31);
    assert_eq!(proposed["basedOn"]["complete"], true);
    assert_eq!(proposed["basedOn"]["leftOut"], json!(["cart"]));

    let mut body = proposed.clone();
    body.as_object_mut().unwrap().remove("basedOn");
    let made = create(app, &body).await.data(201);
    let tried = dry_run(app, &made, &json!({"sinceHours": 24})).await.ok();
    assert_eq!(
        (&tried["passed"], &tried["failed"]),
        (&json!(31), &json!(0))
    );

    let longer = json!({"eventName": "purchase", "sinceHours": 48});
    let longer = app.post(&path, &app.editor(), &longer).await.ok();
    assert_eq!(longer["basedOn"]["events"], 32);
    let nothing = json!({"eventName": "unheard_of"});
    let nothing = app.post(&path, &app.editor(), &nothing).await.ok();
    assert_eq!(nothing["properties"], json!([]));
}

async fn bad_questions_about_definitions_are_refused(app: &mut TestApp) {
    let made = app.define("purchase", &json!({})).await;
    for (body, pointer) in [
        (json!({}), ""),
        (json!({"properties": {}, "sinceHours": 1}), ""),
        (json!({"sinceHours": 0}), "/sinceHours"),
        (json!({"sinceHours": 721}), "/sinceHours"),
        (json!({"properties": {}, "more": 1}), ""),
        (
            json!({"properties": {"p": "x".repeat(70_000)}}),
            "/properties",
        ),
    ] {
        let answer = dry_run(app, &made, &body).await;
        answer.refused(422, "validation_failed");
        assert!(answer.pointers()[0].starts_with(pointer), "{body}");
    }
    dry_run(app, &json!({"id": app.id()}), &json!({"sinceHours": 1}))
        .await
        .refused(404, "not_found");
    let path = app.path("/event-definitions/infer");
    for body in [
        json!({}),
        json!({"eventName": ""}),
        json!({"eventName": "a", "sinceHours": 721}),
        json!({"eventName": "a", "since": 1}),
    ] {
        app.post(&path, &app.editor(), &body)
            .await
            .refused(422, "validation_failed");
    }
}

async fn a_validator_of_its_own_decides_about_dry_runs_too(app: &mut TestApp) {
    let config = json!({"properties": total(), "additionalProperties": "allow"});
    let validator = json!({"plugin": "default-validation", "config": config});
    let made = app
        .define("purchase", &json!({"validator": validator}))
        .await;
    assert_eq!(made["validator"], validator);
    assert!(!accepted(app, json!({})).await);
    let tried = dry_run(app, &made, &json!({"properties": {}})).await.ok();
    assert_eq!(tried["failed"], 1);
    assert_eq!(counts(app, &made).await, [1, 1]);
    let unknown = json!({"name": "other", "validator": {"plugin": "nobody"}});
    let answer = create(app, &unknown).await;
    answer.refused(422, "validation_failed");
    assert_eq!(answer.pointers(), ["/validator/plugin"]);
}

async fn create(app: &TestApp, body: &Value) -> Answer {
    app.post(&app.path("/event-definitions"), &app.editor(), body)
        .await
}

fn total() -> Value {
    json!([{"name": "total", "type": "number", "required": true}])
}

async fn accepted(app: &TestApp, properties: Value) -> bool {
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

async fn observed_violations_are_accepted(app: &mut TestApp) {
    app.define(
        "purchase",
        &json!({"enforcement": "observe", "properties": total()}),
    )
    .await;
    assert!(accepted(app, json!({})).await);
    let letters = app
        .get(&app.path("/dead-letters"), &app.viewer())
        .await
        .ok();
    assert_eq!(letters["items"], json!([]));
}

async fn every_violation_has_a_code(app: &mut TestApp) {
    let properties = json!([
        {"name": "n", "type": "number", "required": false, "minimum": 0},
        {"name": "e", "type": "enum", "required": false, "enumValues": ["a", "b"]},
        {"name": "s", "type": "string", "required": false, "pattern": "^x", "maxLength": 3},
        {"name": "d", "type": "date", "required": false},
        {"name": "r", "type": "boolean", "required": true},
    ]);
    app.define(
        "purchase",
        &json!({"additionalProperties": "reject", "properties": properties}),
    )
    .await;
    let ada = app.session("ada").await;
    for (properties, code, property) in [
        (json!({}), "missing_required_property", "r"),
        (json!({"r": null}), "missing_required_property", "r"),
        (json!({"r": "yes"}), "type_mismatch", "r"),
        (json!({"r": true, "n": "5"}), "type_mismatch", "n"),
        (json!({"r": true, "n": -1}), "out_of_range", "n"),
        (json!({"r": true, "e": "c"}), "enum_mismatch", "e"),
        (json!({"r": true, "s": "y"}), "pattern_mismatch", "s"),
        (json!({"r": true, "s": "xxxx"}), "out_of_range", "s"),
        (json!({"r": true, "d": "soon"}), "type_mismatch", "d"),
        (json!({"r": true, "more": 1}), "additional_property", "more"),
    ] {
        let event = app.event(&ada, "purchase", &properties);
        let data = app.ingest(&ada, &[event]).await.ok();
        assert_eq!(
            data["errors"][0]["code"], "schema_violation",
            "{properties}"
        );
        let id = text(&data["errors"][0], "deadLetterId");
        let letter = app
            .get(&app.path(&format!("/dead-letters/{id}")), &app.viewer())
            .await
            .ok();
        let violation = &letter["violations"][0];
        assert_eq!(
            (&violation["code"], &violation["property"]),
            (&json!(code), &json!(property)),
            "{properties}"
        );
        assert!(violation["expected"].is_string() && violation["actual"].is_string());
        assert_eq!(letter["reason"], code);
    }
    assert!(
        accepted(
            app,
            json!({"r": true, "n": 0, "e": "a", "s": "x", "d": "2026-01-31"})
        )
        .await
    );
}

async fn bad_definitions_are_named_by_pointers(app: &mut TestApp) {
    let of = |property: Value| json!({"name": "purchase", "properties": [property]});
    for (body, pointer) in [
        (json!({"name": ""}), "/name"),
        (json!({"name": "ä".repeat(201)}), "/name"),
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
        .another_app(app.access.workspace_id, nudge::apps::key::Kind::Write, &[])
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
        let definition = nudge::definitions::Definition {
            id: app.id(),
            app_id: app.access.app_id,
            name: format!("event_{number}"),
            version: 1,
            status: nudge::definitions::Status::Archived,
            content: serde_json::from_value(json!({})).unwrap(),
            created_at: now,
            updated_at: now,
        };
        nudge::definitions::store::insert(&mut tx, &definition)
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
