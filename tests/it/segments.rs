//! Segments: conditions with a name (contract 19): management, use in audiences, sizes, members, previews.

use serde_json::{Value, json};
use tests::client::Answer;
use tests::{Session, TestApp, on_both_backends};

on_both_backends!(
    a_segment_is_managed,
    what_can_not_be_a_segment_is_refused,
    an_audience_asks_the_conditions_as_of_now,
    segments_nest_and_a_change_reaches_those_who_name_them,
    who_uses_a_segment_is_known,
    members_and_sizes_are_known,
    a_preview_counts_whom_the_conditions_mean,
    a_preview_of_many_is_an_estimate,
    a_person_has_a_copy_of_its_segments,
);

/// Makes a segment and answers it.
pub(crate) async fn segment(app: &TestApp, name: &str, audience: Value) -> Value {
    post(app, &json!({"name": name, "audience": audience}))
        .await
        .data(201)
}

/// People whose saved property `plan` is this.
pub(crate) fn plan(plan: &str) -> Value {
    let filter = json!({"property": "plan", "type": "string", "operator": "equals", "value": plan});
    json!({"include": {"kind": "user_property", "filter": filter}})
}

/// People who are in a segment, or are not.
pub(crate) fn member(segment: &Value, is_in: bool) -> Value {
    json!({"include": {"kind": "segment", "segmentId": segment["id"], "in": is_in}})
}

/// Sets saved properties.
pub(crate) async fn set(app: &TestApp, session: &Session, set: Value) {
    let body = json!({"anonymousId": session.anonymous_id, "mutationId": app.id(), "set": set});
    app.post("/v1/sdk/user-properties", &session.credential(), &body)
        .await
        .ok();
}

async fn post(app: &TestApp, body: &Value) -> Answer {
    app.post(&app.path("/segments"), &app.editor(), body).await
}

fn path(app: &TestApp, segment: &Value, rest: &str) -> String {
    app.path(&format!(
        "/segments/{}{rest}",
        segment["id"].as_str().unwrap()
    ))
}

async fn get(app: &TestApp, segment: &Value, rest: &str) -> Value {
    app.get(&path(app, segment, rest), &app.viewer()).await.ok()
}

async fn patch(app: &TestApp, segment: &Value, body: Value) -> Answer {
    app.patch(&path(app, segment, ""), &app.editor(), &body)
        .await
}

async fn a_segment_is_managed(app: &mut TestApp) {
    let made = post(
        app,
        &json!({"name": "Pros", "description": "who pays", "audience": plan("pro")}),
    )
    .await
    .data(201);
    assert_eq!(made["appId"], app.access.app_id.to_string());
    assert_eq!(
        (&made["name"], &made["description"]),
        (&json!("Pros"), &json!("who pays"))
    );
    assert_eq!(
        (&made["version"], &made["audience"]),
        (&json!(1), &plan("pro"))
    );
    assert_eq!((&made["size"], &made["usedBy"]), (&json!(0), &json!([])));
    assert!(made["sizeAt"].is_string() && made["createdAt"].is_string());
    assert_eq!(get(app, &made, "").await, made);

    post(app, &json!({"name": "Pros", "audience": {}}))
        .await
        .refused(409, "segment_exists");
    let other = segment(app, "Others", json!({})).await;
    patch(app, &other, json!({"name": "Pros"}))
        .await
        .refused(409, "segment_exists");
    let changed = patch(app, &made, json!({"name": "Payers", "description": null}))
        .await
        .ok();
    assert_eq!(
        (&changed["version"], &changed["name"]),
        (&json!(2), &json!("Payers"))
    );
    assert_eq!(changed.get("description"), None);
    let stale = app.editor().and("if-match", "\"1\"");
    app.patch(&path(app, &made, ""), &stale, &json!({"name": "x"}))
        .await
        .refused(412, "version_mismatch");

    let list = app
        .get(&app.path("/segments?limit=1"), &app.viewer())
        .await
        .ok();
    assert_eq!(list["items"][0]["id"], other["id"]);
    let next = format!(
        "/segments?limit=1&cursor={}",
        list["nextCursor"].as_str().unwrap()
    );
    let list = app.get(&app.path(&next), &app.viewer()).await.ok();
    assert_eq!(
        (&list["items"][0]["id"], &list["nextCursor"]),
        (&made["id"], &Value::Null)
    );

    app.delete(&path(app, &made, ""), &app.editor())
        .await
        .data(204);
    app.get(&path(app, &made, ""), &app.viewer())
        .await
        .refused(404, "not_found");
    app.delete(&path(app, &made, ""), &app.editor())
        .await
        .refused(404, "not_found");
}

async fn what_can_not_be_a_segment_is_refused(app: &mut TestApp) {
    for (body, pointer) in [
        (json!({"name": "", "audience": {}}), "/name"),
        (json!({"name": "n".repeat(201), "audience": {}}), "/name"),
        (
            json!({"name": "n", "audience": {"samplePercent": 5}}),
            "/audience/samplePercent",
        ),
        (
            json!({"name": "n", "audience": {"include": {"kind": "platform"}}}),
            "/audience/include/in",
        ),
        (
            json!({"name": "n", "audience": {"include": {"kind": "nobody"}}}),
            "/audience/include/kind",
        ),
        (
            json!({"name": "n", "audience": {"include": {"kind": "segment", "segmentId": app.id(), "in": true}}}),
            "/audience/include/segmentId",
        ),
        (
            json!({"name": "n", "audience": {"include": {"kind": "segment", "segmentId": app.id()}}}),
            "/audience/include/in",
        ),
    ] {
        let refused = post(app, &body).await;
        refused.refused(422, "validation_failed");
        assert!(
            refused.pointers().contains(&pointer.to_owned()),
            "{body} {:?}",
            refused.pointers()
        );
    }
    post(app, &json!({"name": "n", "audience": {}, "size": 3}))
        .await
        .refused(422, "validation_failed");

    // Cycles, and what is too deep or too much.
    let first = segment(app, "first", plan("pro")).await;
    let second = segment(app, "second", member(&first, true)).await;
    patch(app, &first, json!({"audience": member(&first, true)}))
        .await
        .refused(422, "segment_cycle");
    patch(app, &first, json!({"audience": member(&second, false)}))
        .await
        .refused(422, "segment_cycle");
    let mut last = second;
    for name in ["third", "fourth"] {
        last = segment(app, name, member(&last, true)).await;
    }
    post(
        app,
        &json!({"name": "fifth", "audience": member(&last, true)}),
    )
    .await
    .refused(422, "validation_failed");
    let many: Vec<Value> = (0..30)
        .map(|_| json!({"kind": "platform", "in": ["ios"]}))
        .collect();
    let large = segment(app, "large", json!({"include": {"any": many}})).await;
    let leaf = member(&large, true)["include"].clone();
    let twice = json!({"include": {"all": [leaf.clone(), leaf]}});
    post(app, &json!({"name": "larger", "audience": twice}))
        .await
        .refused(422, "validation_failed");
    // Nor can those who name it become so by a change of it.
    segment(app, "with 30", json!({"include": {"all": [member(&large, true)["include"].clone(), json!({"kind": "platform", "in": ["web"]})]}})).await;
    let more: Vec<Value> = (0..50)
        .map(|_| json!({"kind": "platform", "in": ["ios"]}))
        .collect();
    patch(app, &large, json!({"audience": {"include": {"any": more}}}))
        .await
        .refused(422, "validation_failed");
}

async fn an_audience_asks_the_conditions_as_of_now(app: &mut TestApp) {
    let pros = segment(app, "pros", plan("pro")).await;
    app.survey_with(&json!({"audience": member(&pros, true)}))
        .await;
    app.survey_with(&json!({"audience": member(&pros, false)}))
        .await;
    let (ada, bob) = (app.session("ada").await, app.session("bob").await);
    set(app, &ada, json!({"plan": "pro"})).await;
    assert_eq!(offered_by(app, &ada).await, 1);
    assert_eq!(offered_by(app, &bob).await, 1);
    assert_ne!(
        app.offered(&ada).await[0]["campaignId"],
        app.offered(&bob).await[0]["campaignId"]
    );
    // A segment that changes is asked about as it is now, by every campaign.
    patch(app, &pros, json!({"audience": plan("free")}))
        .await
        .ok();
    set(app, &bob, json!({"plan": "free"})).await;
    assert_eq!(offered_by(app, &bob).await, 1);
    let of_bob = app.offered(&bob).await;
    let campaigns: Vec<&Value> = of_bob
        .as_array()
        .unwrap()
        .iter()
        .map(|item| &item["campaignId"])
        .collect();
    assert!(
        campaigns.iter().any(|id| **id != *campaigns[0]),
        "{campaigns:?}"
    );
}

async fn offered_by(app: &TestApp, session: &Session) -> usize {
    app.fires(session, "purchase", &json!({})).await
}

async fn segments_nest_and_a_change_reaches_those_who_name_them(app: &mut TestApp) {
    let (ada, bob) = (app.session("ada").await, app.session("bob").await);
    set(app, &ada, json!({"plan": "pro"})).await;
    set(app, &bob, json!({"plan": "free"})).await;
    let inner = segment(app, "inner", plan("pro")).await;
    let outer = segment(app, "outer", member(&inner, false)).await;
    assert_eq!((&inner["size"], &outer["size"]), (&json!(1), &json!(1)));
    app.survey_with(&json!({"audience": member(&outer, true)}))
        .await;
    assert_eq!(
        (offered_by(app, &ada).await, offered_by(app, &bob).await),
        (0, 1)
    );
    patch(app, &inner, json!({"audience": plan("free")}))
        .await
        .ok();
    assert_eq!(
        (offered_by(app, &ada).await, offered_by(app, &bob).await),
        (1, 0)
    );
    app.until(
        "the members of the segment that names it are known",
        async || {
            let members = get(app, &outer, "/members").await;
            members["items"][0]["anonymousId"] == "ada"
        },
    )
    .await;
}

async fn who_uses_a_segment_is_known(app: &mut TestApp) {
    let pros = segment(app, "pros", plan("pro")).await;
    let survey = app
        .survey_with(&json!({"name": "Asks pros", "audience": member(&pros, true)}))
        .await;
    let trigger = json!({"kind": "segment", "segmentId": pros["id"], "on": "enter"});
    let body = json!({"name": "Welcomes", "trigger": trigger});
    let campaign = app
        .post(&app.path("/campaigns"), &app.editor(), &body)
        .await
        .data(201);
    let outer = segment(app, "outer", member(&pros, true)).await;
    let used = get(app, &pros, "").await["usedBy"].clone();
    let mut used: Vec<(&str, &str)> = used
        .as_array()
        .unwrap()
        .iter()
        .map(|used| {
            (
                used["kind"].as_str().unwrap(),
                used["name"].as_str().unwrap(),
            )
        })
        .collect::<Vec<_>>();
    used.sort_unstable();
    assert_eq!(
        used,
        [
            ("campaign", "Welcomes"),
            ("segment", "outer"),
            ("survey", "Asks pros")
        ]
    );
    let refused = app.delete(&path(app, &pros, ""), &app.editor()).await;
    let problem = refused.refused(409, "segment_in_use");
    assert!(
        problem["detail"].as_str().unwrap().contains("Asks pros"),
        "{problem}"
    );

    // What is put away, removed or changed names it no longer.
    let survey = app.path(&format!("/surveys/{survey}"));
    app.patch(&survey, &app.editor(), &json!({"status": "archived"}))
        .await
        .ok();
    let campaign = app.path(&format!("/campaigns/{}", campaign["id"].as_str().unwrap()));
    app.delete(&campaign, &app.editor()).await.data(204);
    patch(app, &outer, json!({"audience": {"include": null}}))
        .await
        .ok();
    app.delete(&path(app, &pros, ""), &app.editor())
        .await
        .data(204);
    // Nor does it come back by itself.
    let back = app
        .patch(&survey, &app.editor(), &json!({"status": "draft"}))
        .await;
    back.refused(422, "validation_failed");
    assert_eq!(app.count("segment_uses").await, 0);
}

async fn members_and_sizes_are_known(app: &mut TestApp) {
    for (name, of) in [("ada", "pro"), ("bob", "free"), ("cy", "pro")] {
        let session = app.session(name).await;
        set(app, &session, json!({"plan": of})).await;
    }
    let pros = segment(app, "pros", plan("pro")).await;
    assert_eq!(pros["size"], 2);
    let first = get(app, &pros, "/members?limit=1").await;
    assert_eq!(
        (&first["items"][0]["anonymousId"], &first["asOf"]),
        (&json!("cy"), &pros["sizeAt"])
    );
    assert_eq!(first["items"][0]["topProperties"], json!({"plan": "pro"}));
    let next = format!("/members?cursor={}", first["nextCursor"].as_str().unwrap());
    let rest = get(app, &pros, &next).await;
    assert_eq!(
        (&rest["items"][0]["anonymousId"], &rest["nextCursor"]),
        (&json!("ada"), &Value::Null)
    );

    // Nobody waits for changes of this segment: a sweep finds them, within the hour.
    let bob = app.session("bob").await;
    set(app, &bob, json!({"plan": "pro"})).await;
    app.advance(24 * 3_600);
    app.until("the size is known anew", async || {
        get(app, &pros, "").await["size"] == 3
    })
    .await;
    let history = get(app, &pros, "/history").await;
    let sizes: Vec<&Value> = history
        .as_array()
        .unwrap()
        .iter()
        .map(|day| &day["size"])
        .collect();
    assert_eq!(sizes, [2, 3]);
    let none = get(app, &pros, "/history?from=2020-01-01&to=2020-01-02").await;
    assert_eq!(none, json!([]));
}

async fn a_preview_counts_whom_the_conditions_mean(app: &mut TestApp) {
    for (name, of) in [("ada", "pro"), ("bob", "free"), ("cy", "pro")] {
        let session = app.session(name).await;
        set(app, &session, json!({"plan": of})).await;
        app.ingest(
            &session,
            &[app.event(&session, "visit", &json!({"pages": 2}))],
        )
        .await
        .ok();
    }
    app.settle().await;
    let preview = async |audience: Value| {
        let body = json!({"audience": audience});
        app.post(&app.path("/segments/preview"), &app.viewer(), &body)
            .await
    };
    let found = preview(plan("pro")).await.ok();
    assert_eq!(
        (&found["count"], &found["total"], &found["isEstimate"]),
        (&json!(2), &json!(3), &json!(false))
    );
    let names: Vec<&Value> = found["sample"]
        .as_array()
        .unwrap()
        .iter()
        .map(|user| &user["anonymousId"])
        .collect();
    assert_eq!(names, ["cy", "ada"]);
    let visited = json!({"kind": "event", "eventName": "visit", "withinDays": 7});
    let both = json!({"include": {"all": [visited.clone(), plan("free")["include"].clone()]}});
    assert_eq!(preview(both).await.ok()["count"], 1);
    assert_eq!(preview(json!({"exclude": visited})).await.ok()["count"], 0);
    assert_eq!(preview(json!({})).await.ok()["count"], 3);
    let pros = segment(app, "pros", plan("pro")).await;
    assert_eq!(preview(member(&pros, false)).await.ok()["count"], 1);
    preview(json!({"samplePercent": 1}))
        .await
        .refused(422, "validation_failed");
    preview(json!({"include": {"kind": "x"}}))
        .await
        .refused(422, "validation_failed");
}

async fn a_preview_of_many_is_an_estimate(app: &mut TestApp) {
    app.people(12_000).await;
    let body = json!({"audience": {}});
    let found = app
        .post(&app.path("/segments/preview"), &app.viewer(), &body)
        .await
        .ok();
    assert_eq!(
        (&found["isEstimate"], &found["total"], &found["count"]),
        (&json!(true), &json!(12_000), &json!(12_000))
    );
    assert_eq!(found["sample"].as_array().unwrap().len(), 20);
}

async fn a_person_has_a_copy_of_its_segments(app: &mut TestApp) {
    let ada = app.session("ada").await;
    set(app, &ada, json!({"plan": "pro"})).await;
    segment(app, "pros", plan("pro")).await;
    assert_eq!(app.count("segment_members").await, 1);
    let body = json!({"anonymousId": "ada"});
    app.post(&app.path("/gdpr/delete"), &app.admin(), &body)
        .await
        .data(202);
    app.until("what is known of the person goes", async || {
        app.count("segment_members").await == 0
    })
    .await;
}
