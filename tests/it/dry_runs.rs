//! Definitions before they are enforced: dry runs and proposals (contract 11).

use serde_json::{Value, json};
use tests::session::text;
use tests::{Answer, TestApp, on_both_backends};

use crate::bulk_replays::ended;
use crate::definitions::{accepted, create, total};
use crate::enforcement::counts;

on_both_backends!(
    a_dry_run_tries_one_event,
    a_dry_run_tries_what_arrived,
    what_is_replayed_hides_nothing_that_arrived,
    a_definition_is_proposed_from_recent_events,
    bad_questions_about_definitions_are_refused,
    a_validator_of_its_own_decides_about_dry_runs_too,
);

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
    assert_eq!(now["lookedAt"], 2);
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

/// Replayed events arrived when their letters did, and come after the others nevertheless.
async fn what_is_replayed_hides_nothing_that_arrived(app: &mut TestApp) {
    let made = app
        .define("purchase", &json!({"properties": total()}))
        .await;
    let ada = app.session("ada").await;
    for _ in 0..6 {
        let broken: Vec<Value> = (0..400)
            .map(|_| app.event(&ada, "purchase", &json!({})))
            .collect();
        app.ingest(&ada, &broken).await.ok();
    }
    app.advance(5 * 3600);
    assert!(accepted(app, json!({"total": 1})).await);
    let all = json!({"filter": {}, "patch": {"total": 2}});
    let path = app.path("/dead-letters/replay");
    let queued = app.post(&path, &app.editor(), &all).await.data(202);
    let job = ended(app, &text(&queued, "jobId")).await;
    assert_eq!(job["result"]["replayed"], 2_400);
    for (hours, passed, complete) in [(2, 1, true), (6, 1_000, false)] {
        let found = dry_run(app, &made, &json!({"sinceHours": hours})).await;
        let found = found.ok();
        assert_eq!(
            (&found["passed"], &found["complete"]),
            (&json!(passed), &json!(complete))
        );
    }
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
            let properties = json!({
                "total": number, "plan": plan, "on": "2026-01-31", "at": "2026-01-31 09:30:00",
                "note": format!("note {number}"), "cart": {"items": 1},
            });
            app.event(&ada, "purchase", &properties)
        })
        .chain([app.event(
            &ada,
            "purchase",
            &json!({"total": 1, "plan": "pro", "note": null}),
        )])
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
            {"name": "at", "type": "string", "required": false},
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
