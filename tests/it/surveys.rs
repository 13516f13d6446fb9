//! Managing surveys (specification 4.3, contract 7).

use serde_json::{Value, json};
use tests::session::{survey_body, text};
use tests::{Answer, TestApp, client, on_both_backends};

on_both_backends!(
    a_survey_comes_back_as_it_was_made,
    surveys_are_listed_newest_first,
    a_patch_merges_and_makes_a_new_version,
    a_key_that_a_patch_leaves_over_is_explained,
    an_expected_version_is_honoured,
    a_deleted_survey_is_gone,
    unknown_keys_are_refused,
    limits_that_are_null_are_none,
    what_sdks_get_as_it_is_are_objects_within_limits,
    what_is_known_of_themes_and_settings_is_checked,
    a_name_has_1_to_200_characters,
    an_app_has_at_most_1000_surveys,
    surveys_of_others_are_not_found,
);

/// Makes a survey.
pub(crate) async fn create(app: &TestApp, body: &Value) -> Answer {
    app.post(&app.path("/surveys"), &app.editor(), body).await
}

/// The body of a survey with some parts of its own.
pub(crate) fn with(parts: Value) -> Value {
    let mut body = survey_body();
    body.as_object_mut()
        .unwrap()
        .extend(parts.as_object().unwrap().clone());
    body
}

async fn a_survey_comes_back_as_it_was_made(app: &mut TestApp) {
    let body = with(json!({
        "description": "After a purchase",
        "priority": 3,
        "theme": {"color": "red"},
        "settings": {"closable": true},
        "trigger": {"kind": "event", "eventName": "purchase", "delaySeconds": 5, "occurrence": {"mode": "every"}},
        "flow": {
            "startQuestionId": "q1",
            "questions": [
                {"id": "q1", "type": "nps", "title": "How?", "required": true, "lowLabel": "bad"},
                {"id": "q2", "type": "long_text", "title": "Why?", "required": false, "maxLength": 500},
            ],
            "branches": [{"id": "b1", "from": "q1", "when": {"questionId": "q1", "operator": "nps_bucket", "value": "promoter"}, "to": {"endScreenId": "e1"}}],
            "endScreens": [{"id": "e1", "title": "Thanks", "button": {"label": "Close", "action": "close"}}],
            "progressStyle": "bar",
            "backNavigation": true,
        },
    }));
    let made = create(app, &body).await.data(201);

    for (key, value) in body.as_object().unwrap() {
        assert_eq!(&made[key], value, "{key}");
    }
    assert_eq!(made["version"], 1);
    assert_eq!(made["appId"], json!(app.access.app_id));
    for key in ["createdAt", "updatedAt", "activatedAt"] {
        assert!(
            nudge_platform::clock::from_text(&text(&made, key)).is_some(),
            "{key}"
        );
    }
    let path = app.path(&format!("/surveys/{}", text(&made, "id")));
    assert_eq!(app.get(&path, &app.viewer()).await.ok(), made);

    let minimal = create(app, &json!({"name": "Later"})).await.data(201);
    assert_eq!(
        (&minimal["status"], &minimal["mode"]),
        (&json!("draft"), &json!("triggered"))
    );
    assert!(minimal.get("activatedAt").is_none());
}

async fn surveys_are_listed_newest_first(app: &mut TestApp) {
    for name in ["first", "second", "third"] {
        create(app, &with(json!({"name": name}))).await.data(201);
    }
    let list = app.get(&app.path("/surveys"), &app.viewer()).await.ok();
    let names: Vec<&str> = list
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|survey| survey["name"].as_str())
        .collect();
    assert_eq!(names, ["third", "second", "first"]);
}

async fn a_patch_merges_and_makes_a_new_version(app: &mut TestApp) {
    let made = create(
        app,
        &with(json!({"description": "old", "theme": {"a": 1, "b": {"c": 2}}})),
    )
    .await
    .data(201);
    let path = app.path(&format!("/surveys/{}", text(&made, "id")));
    app.advance(1);

    let change = json!({"description": null, "theme": {"a": null, "b": {"d": 3}}, "trigger": {"eventName": "refund"}});
    let changed = app.patch(&path, &app.editor(), &change).await.ok();

    assert!(changed.get("description").is_none());
    assert_eq!(changed["theme"], json!({"b": {"c": 2, "d": 3}}));
    assert_eq!(
        changed["trigger"],
        json!({"kind": "event", "eventName": "refund"})
    );
    assert_eq!(
        (&changed["name"], &changed["flow"]),
        (&made["name"], &made["flow"])
    );
    assert_eq!(changed["version"], 2);
    assert_eq!(changed["createdAt"], made["createdAt"]);
    assert_ne!(changed["updatedAt"], made["updatedAt"]);

    let questions = json!([{"id": "q9", "type": "nps", "title": "?"}]);
    let changed = app
        .patch(
            &path,
            &app.editor(),
            &json!({"flow": {"questions": questions}}),
        )
        .await
        .ok();
    assert_eq!(changed["flow"]["questions"].as_array().unwrap().len(), 1);
    assert_eq!(app.get(&path, &app.viewer()).await.ok(), changed);

    for (change, pointer) in [
        (json!({"status": "asleep"}), "/status"),
        (json!({"name": null}), ""),
        (json!({"color": "red"}), ""),
        (json!({"id": app.id()}), ""),
        (json!({"trigger": {"kind": "comet"}}), "/trigger/kind"),
    ] {
        let answer = app.patch(&path, &app.editor(), &change).await;
        answer.refused(422, "validation_failed");
        assert!(
            answer.pointers()[0].starts_with(pointer),
            "{change}: {:?}",
            answer.pointers()
        );
    }
    for change in [json!([]), json!(7), json!(null)] {
        app.patch(&path, &app.editor(), &change)
            .await
            .refused(422, "validation_failed");
    }
    assert_eq!(app.get(&path, &app.viewer()).await.ok(), changed);
}

async fn a_key_that_a_patch_leaves_over_is_explained(app: &mut TestApp) {
    let made = create(app, &survey_body()).await.data(201);
    let path = app.path(&format!("/surveys/{}", text(&made, "id")));

    let change = json!({"trigger": {"kind": "session_start"}});
    let answer = app.patch(&path, &app.editor(), &change).await;
    let problem = answer.refused(422, "validation_failed");
    assert_eq!(answer.pointers(), ["/trigger/eventName"]);
    let detail = problem["errors"][0]["detail"].as_str().unwrap();
    assert!(detail.ends_with("null removes a key"), "{detail}");

    let change = json!({"trigger": {"kind": "session_start", "eventName": null}});
    let changed = app.patch(&path, &app.editor(), &change).await.ok();
    assert_eq!(changed["trigger"], json!({"kind": "session_start"}));
}

async fn an_expected_version_is_honoured(app: &mut TestApp) {
    let made = create(app, &survey_body()).await.data(201);
    let path = app.path(&format!("/surveys/{}", text(&made, "id")));
    let rename = async |version: &str| {
        let request = app.request(reqwest::Method::PATCH, &path, &app.editor());
        client::send(
            request
                .header("if-match", version)
                .json(&json!({"name": "new"})),
        )
        .await
    };

    rename("\"2\"").await.refused(412, "version_mismatch");
    rename("\"x\"").await.refused(412, "version_mismatch");
    assert_eq!(rename("\"1\"").await.ok()["version"], 2);
    rename("\"1\"").await.refused(412, "version_mismatch");
    assert_eq!(rename("*").await.ok()["version"], 3);
}

async fn a_deleted_survey_is_gone(app: &mut TestApp) {
    let made = create(app, &survey_body()).await.data(201);
    let path = app.path(&format!("/surveys/{}", text(&made, "id")));

    app.delete(&path, &app.editor()).await.data(204);

    app.get(&path, &app.viewer())
        .await
        .refused(404, "not_found");
    app.patch(&path, &app.editor(), &json!({}))
        .await
        .refused(404, "not_found");
    app.delete(&path, &app.editor())
        .await
        .refused(404, "not_found");
    assert_eq!(
        app.get(&app.path("/surveys"), &app.viewer()).await.ok(),
        json!([])
    );
}

async fn unknown_keys_are_refused(app: &mut TestApp) {
    for (parts, pointer) in [
        (json!({"color": "red"}), "/color"),
        (json!({"flow": {"questions": [], "colour": 1}}), "/flow"),
        (
            json!({"trigger": {"kind": "event", "eventName": "a", "evntName": "b"}}),
            "/trigger/evntName",
        ),
    ] {
        let answer = create(app, &with(parts.clone())).await;
        let problem = answer.refused(422, "validation_failed");
        let pointers = answer.pointers();
        assert!(
            pointers[0].starts_with(pointer),
            "{pointers:?} instead of {pointer}"
        );
        let code = text(&problem["errors"][0], "code");
        assert_eq!(code, "unknown_key", "{parts}");
    }
}

async fn limits_that_are_null_are_none(app: &mut TestApp) {
    let text = json!({"id": "q", "type": "short_text", "title": "Why?", "maxLength": null, "format": null,
        "validation": {"minLength": null}});
    let made = create(
        app,
        &json!({"name": "n", "trigger": null, "flow": {"questions": [text]}}),
    )
    .await;
    assert_eq!(
        made.data(201)["flow"]["questions"],
        json!([{"id": "q", "type": "short_text", "title": "Why?", "required": false, "validation": {}}])
    );
}

async fn what_sdks_get_as_it_is_are_objects_within_limits(app: &mut TestApp) {
    let long = json!({"a": "x".repeat(64 * 1024)});
    for key in ["theme", "settings"] {
        for part in [json!([]), json!("red"), json!(1), json!(true), long.clone()] {
            let answer = create(app, &with(json!({key: part}))).await;
            answer.refused(422, "validation_failed");
            assert_eq!(answer.pointers(), [format!("/{key}")]);
        }
    }
    let made = create(
        app,
        &with(json!({"theme": {"a": {"b": [1]}}, "settings": null})),
    )
    .await;
    let survey = app.path(&format!("/surveys/{}", text(&made.data(201), "id")));
    let patch = json!({"theme": {"a": null, "c": "x".repeat(64 * 1024)}});
    let refused = app.patch(&survey, &app.editor(), &patch).await;
    refused.refused(422, "validation_failed");
    assert_eq!(refused.pointers(), ["/theme"]);
    let patch = json!({"theme": null});
    let patched = app.patch(&survey, &app.editor(), &patch).await.ok();
    assert_eq!(patched.get("theme"), None);
}

async fn a_name_has_1_to_200_characters(app: &mut TestApp) {
    create(app, &with(json!({"name": "ä".repeat(200)})))
        .await
        .data(201);
    for bad in [json!(""), json!("ä".repeat(201)), json!(7)] {
        let answer = create(app, &with(json!({"name": bad}))).await;
        answer.refused(422, "validation_failed");
        assert_eq!(answer.pointers(), ["/name"]);
    }
}

async fn an_app_has_at_most_1000_surveys(app: &mut TestApp) {
    let mut tx = app.services().db.write().await.unwrap();
    let now = app.clock.now();
    for _ in 0..1000 {
        let survey = nudge_campaigns::surveys::Survey {
            id: app.id(),
            app_id: app.access.app_id,
            version: 1,
            content: serde_json::from_value(json!({"name": "one of many"})).unwrap(),
            created_at: now,
            updated_at: now,
            activated_at: None,
        };
        let compiled = nudge_campaigns::lifecycle::Content::compile(&survey.content).unwrap();
        nudge_campaigns::store::insert(&mut tx, &survey, &compiled)
            .await
            .unwrap();
    }
    tx.commit().await.unwrap();

    create(app, &survey_body())
        .await
        .refused(422, "limit_exceeded");
    let list = app.get(&app.path("/surveys"), &app.viewer()).await.ok();
    let path = app.path(&format!("/surveys/{}", text(&list[0], "id")));
    app.delete(&path, &app.editor()).await.data(204);
    create(app, &survey_body()).await.data(201);
}

async fn surveys_of_others_are_not_found(app: &mut TestApp) {
    let made = create(app, &survey_body()).await.data(201);
    let workspace = app.access.workspace_id;
    let (other, _) = app
        .another_app(workspace, nudge_apps::key::Kind::Write, &[])
        .await;
    let foreign = format!("/v1/apps/{other}/surveys/{}", text(&made, "id"));

    app.get(&foreign, &app.viewer())
        .await
        .refused(404, "not_found");
    app.patch(&foreign, &app.editor(), &json!({"name": "mine"}))
        .await
        .refused(404, "not_found");
    app.delete(&foreign, &app.editor())
        .await
        .refused(404, "not_found");
    for id in ["x", "00000000-0000-0000-0000-000000000000"] {
        app.get(&app.path(&format!("/surveys/{id}")), &app.viewer())
            .await
            .refused(404, "not_found");
    }
    let list = app
        .get(&format!("/v1/apps/{other}/surveys"), &app.viewer())
        .await
        .ok();
    assert_eq!(list, json!([]));
}

async fn what_is_known_of_themes_and_settings_is_checked(app: &mut TestApp) {
    for (parts, pointer) in [
        (
            json!({"theme": {"background": "white"}}),
            "/theme/background",
        ),
        (
            json!({"theme": {"dark": {"text": "#12"}}}),
            "/theme/dark/text",
        ),
        (json!({"theme": {"radius": -1}}), "/theme/radius"),
        (
            json!({"settings": {"presentation": "tooltip"}}),
            "/settings/presentation",
        ),
        (
            json!({"settings": {"position": "left"}}),
            "/settings/position",
        ),
        (
            json!({"settings": {"delaySeconds": 601}}),
            "/settings/delaySeconds",
        ),
        (json!({"settings": {"once": 1}}), "/settings/once"),
    ] {
        let refused = create(app, &with(parts)).await;
        refused.refused(422, "validation_failed");
        assert_eq!(refused.pointers(), [pointer]);
    }
    let theme = json!({"background": "#ffffff", "text": "#777777", "primary": "#000000", "onPrimary": "#ffffff"});
    let refused = create(app, &with(json!({"theme": theme}))).await;
    let problem = refused.refused(422, "low_contrast");
    assert_eq!(refused.pointers(), ["/theme/text"]);
    let detail = text(&problem["errors"][0], "detail");
    assert!(detail.contains("4.47:1"), "{detail}");
    let mut allowed = theme;
    allowed["allowLowContrast"] = json!(true);
    allowed["mascot"] = json!({"name": "owl"});
    let settings = json!({"presentation": "popover", "position": "bottom_left", "closeable": false, "delaySeconds": 600, "x": 1});
    let made = create(app, &with(json!({"theme": allowed, "settings": settings})))
        .await
        .data(201);
    assert_eq!((&made["theme"], &made["settings"]), (&allowed, &settings));
    // Every change is checked like the first.
    let path = app.path(&format!("/surveys/{}", text(&made, "id")));
    let change = json!({"theme": {"allowLowContrast": null}});
    app.patch(&path, &app.editor(), &change)
        .await
        .refused(422, "low_contrast");
    let change = json!({"theme": {"allowLowContrast": null, "text": "#000000"}});
    app.patch(&path, &app.editor(), &change).await.ok();
}
