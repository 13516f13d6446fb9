//! Segments: conditions with a name (contract 19): management, use in audiences, sizes, members, previews.

use serde_json::{Value, json};
use tests::client::Answer;
use tests::session::{event_id, text};
use tests::{Session, TestApp, on_both_backends};

use crate::exports;

on_both_backends!(
    a_segment_is_managed,
    what_can_not_be_a_segment_is_refused,
    an_audience_asks_the_conditions_as_of_now,
    segments_nest_and_a_change_reaches_those_who_name_them,
    who_uses_a_segment_is_known,
    members_and_sizes_are_known,
    pages_of_members_keep_their_order_while_others_enter,
    a_size_is_an_hour_old_at_the_most,
    an_app_has_two_hundred_segments,
    a_preview_counts_whom_the_conditions_mean,
    a_preview_of_many_is_an_estimate,
    a_preview_of_few_is_exact_however_long_it_takes,
    a_person_has_a_copy_of_its_segments,
    a_segment_is_one_condition_of_an_explanation,
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

pub(crate) async fn patch(app: &TestApp, segment: &Value, body: Value) -> Answer {
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
    for id in [json!("x"), json!(app.id())] {
        let mut body = tests::session::survey_body();
        body["trigger"] = json!({"kind": "segment", "segmentId": id, "on": "enter"});
        let answer = app.post(&app.path("/surveys"), &app.editor(), &body).await;
        answer.refused(422, "validation_failed");
        assert_eq!(answer.pointers(), ["/trigger/segmentId"]);
    }
    for (body, pointer) in [
        (json!({"name": "", "audience": {}}), "/name"),
        (json!({"name": "n".repeat(201), "audience": {}}), "/name"),
        (json!({"name": "n\u{0}", "audience": {}}), "/name"),
        (
            json!({"name": "n", "description": "\u{0}", "audience": {}}),
            "/description",
        ),
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
    assert_eq!(problem["usedBy"].as_array().unwrap().len(), 3, "{problem}");
    let detail = problem["detail"].as_str().unwrap();
    for name in ["Asks pros", "Welcomes", "outer"] {
        assert!(detail.contains(name), "{detail}");
    }

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
        .patch(&survey, &app.editor(), &json!({"status": "active"}))
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
    // The day has one size, its newest.
    let cy = app.session("cy").await;
    set(app, &cy, json!({"plan": "free"})).await;
    // The sweep before has told its sizes and may not be over: the next one would begin a minute later.
    app.finish_jobs().await;
    app.advance(3_601);
    app.until("the size is known anew", async || {
        get(app, &pros, "").await["size"] == 2
    })
    .await;
    let history = get(app, &pros, "/history").await;
    let again: Vec<String> = history
        .as_array()
        .unwrap()
        .iter()
        .map(|day| text(day, "at"))
        .collect();
    let of_today: std::collections::BTreeSet<&str> = again.iter().map(|at| &at[..10]).collect();
    assert_eq!((of_today.len(), sizes.len()), (again.len(), 2), "{again:?}");
    assert_eq!(history.as_array().unwrap().last().unwrap()["size"], 2);
}

async fn pages_of_members_keep_their_order_while_others_enter(app: &mut TestApp) {
    let name = |number: usize| format!("p{number}");
    for number in 0..5 {
        let session = app.session(&name(number)).await;
        set(app, &session, json!({"plan": "pro"})).await;
    }
    let pros = segment(app, "pros", plan("pro")).await;
    let mut page = get(app, &pros, "/members?limit=2").await;
    let later = app.session("later").await;
    set(app, &later, json!({"plan": "pro"})).await;
    app.advance(3_601);
    app.until("who came later is in", async || {
        get(app, &pros, "").await["size"] == 6
    })
    .await;
    let mut found = Vec::new();
    loop {
        let items = page["items"].as_array().unwrap().iter();
        found.extend(items.map(|item| text(item, "anonymousId")));
        let Some(cursor) = page["nextCursor"].as_str() else {
            break;
        };
        page = get(app, &pros, &format!("/members?limit=2&cursor={cursor}")).await;
    }
    found.retain(|name| name != "later");
    assert_eq!(found, ["p4", "p3", "p2", "p1", "p0"]);
    let other = segment(app, "others", plan("free")).await;
    let cursor = get(app, &pros, "/members?limit=2").await;
    let cursor = cursor["nextCursor"].as_str().unwrap();
    let of_other = path(app, &other, &format!("/members?limit=2&cursor={cursor}"));
    app.get(&of_other, &app.viewer())
        .await
        .refused(400, "invalid_cursor");
}

async fn a_size_is_an_hour_old_at_the_most(app: &mut TestApp) {
    let pros = segment(app, "pros", plan("pro")).await;
    let mut before = text(&pros, "sizeAt");
    for _ in 0..3 {
        app.finish_jobs().await;
        app.advance(3_601);
        app.until("the size is as of now", async || {
            text(&get(app, &pros, "").await, "sizeAt") > before
        })
        .await;
        let after = get(app, &pros, "").await;
        before = text(&after, "sizeAt");
        assert_eq!(get(app, &pros, "/members").await["asOf"], before);
    }
}

async fn an_app_has_two_hundred_segments(app: &mut TestApp) {
    for number in 0..200 {
        segment(app, &format!("s{number}"), json!({})).await;
    }
    post(app, &json!({"name": "one more", "audience": {}}))
        .await
        .refused(422, "limit_exceeded");
    let list = app
        .get(&app.path("/segments?limit=200"), &app.viewer())
        .await
        .ok();
    assert_eq!(list["items"].as_array().unwrap().len(), 200);
    let newest = &list["items"][0];
    app.delete(&path(app, newest, ""), &app.editor())
        .await
        .data(204);
    segment(app, "one more", json!({})).await;
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
    let preview = async |audience| preview(app, audience).await;
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

async fn preview(app: &TestApp, audience: Value) -> Answer {
    let body = json!({"audience": audience});
    app.post(&app.path("/segments/preview"), &app.viewer(), &body)
        .await
}

async fn a_preview_of_many_is_an_estimate(app: &mut TestApp) {
    app.people(12_000).await;
    let found = preview(app, json!({})).await.ok();
    assert_eq!(
        (&found["isEstimate"], &found["total"], &found["count"]),
        (&json!(true), &json!(12_000), &json!(12_000))
    );
    assert_eq!(found["sample"].as_array().unwrap().len(), 20);
}

async fn a_preview_of_few_is_exact_however_long_it_takes(app: &mut TestApp) {
    app.people(4_000).await;
    let visited = json!({"kind": "event", "eventName": "visit", "withinDays": 7});
    let found = preview(app, json!({"exclude": visited})).await.ok();
    assert_eq!(
        (&found["isEstimate"], &found["total"], &found["count"]),
        (&json!(false), &json!(4_000), &json!(4_000))
    );
}

async fn a_person_has_a_copy_of_its_segments(app: &mut TestApp) {
    let ada = app.session("ada").await;
    set(app, &ada, json!({"plan": "pro"})).await;
    segment(app, "pros", plan("pro")).await;
    assert_eq!(app.count("segment_members").await, 1);
    let body = json!({"anonymousId": "ada"});
    let export = exports::export(app, &body).await;
    let archive = exports::download(app, &exports::reaches(app, &export, "completed").await).await;
    let profile: Value = serde_json::from_str(&exports::file(&archive, "profile.json")).unwrap();
    assert_eq!(profile["segments"][0]["name"], "pros");
    app.post(&app.path("/gdpr/delete"), &app.admin(), &body)
        .await
        .data(202);
    app.until("what is known of the person goes", async || {
        app.count("segment_members").await == 0
    })
    .await;
}

async fn a_segment_is_one_condition_of_an_explanation(app: &mut TestApp) {
    let pros = segment(app, "pros", plan("pro")).await;
    // Facts are asked before events are counted; people read conditions as they wrote them.
    let visited = json!({"kind": "event", "eventName": "visit", "withinDays": 7});
    let all = json!([visited, member(&pros, true)["include"], {"kind": "platform", "in": ["ios"]}]);
    let survey = app
        .survey_with(&json!({"audience": {"include": {"all": all}}}))
        .await;
    let ada = app.session("ada").await;
    let event = app.event(&ada, "purchase", &json!({}));
    app.ingest(&ada, std::slice::from_ref(&event)).await.ok();
    app.settle().await;
    let (subject, event) = (&ada.subject_id, event_id(&event));
    let query = format!("/explain?campaignId={survey}&subjectId={subject}&eventId={event}");
    let explained = app.get(&app.path(&query), &app.viewer()).await.ok();
    let steps = explained["steps"].as_array().unwrap().iter();
    let leaves = steps.filter(|step| step["check"] == "audience_leaf");
    let leaves: Vec<String> = leaves.map(|step| text(step, "detail")).collect();
    let begins = |leaf: &str, begin: &str| assert!(leaf.starts_with(begin), "{leaf}");
    assert_eq!(leaves.len(), 3, "{explained}");
    begins(&leaves[0], "include: event visit");
    begins(&leaves[1], "include: segment with");
    assert!(
        leaves[1].ends_with("does not hold: the subject is not in the segment"),
        "{leaves:?}"
    );
    begins(&leaves[2], "include: platform in ios");
}
