//! Bodies that are not what they should be: not JSON, too deep, of the wrong shape (contract 0, 14, 15).

use serde_json::json;
use tests::{TestApp, on_both_backends};

use crate::bodies::{ingest, with_properties};

on_both_backends!(
    what_is_not_json_is_malformed,
    json_nests_at_most_64_deep,
    values_that_no_database_keeps_are_refused,
    a_number_out_of_range_is_json_of_the_wrong_shape,
    a_nul_character_anywhere_does_no_harm,
    bodies_of_the_wrong_shape_are_refused,
    an_array_is_no_object_wherever_it_stands,
    what_is_missing_or_unknown_is_named,
    text_of_every_script_comes_back,
);

const MIB: usize = 1024 * 1024;

async fn what_is_not_json_is_malformed(app: &mut TestApp) {
    let ada = app.session("ada").await;
    let good = with_properties(app, "{}");
    let mut bodies: Vec<Vec<u8>> = [
        "",
        " ",
        "{",
        "nul",
        "{\"a\":}",
        "{'a': 1}",
        "[1,]",
        "{} {}",
        "\u{feff}{}",
        "NaN",
        "\0",
        "\"\u{1}\"",
    ]
    .map(|text| text.as_bytes().to_vec())
    .to_vec();
    bodies.push(good.as_bytes()[..good.len() / 2].to_vec());
    bodies.push(b"{\"name\": \"\xff\xfe\"}".to_vec());
    bodies.push(b"\xed\xa0\x80".to_vec());
    bodies.push(vec![0xff; 1000]);
    for body in bodies {
        let shown = String::from_utf8_lossy(&body).into_owned();
        let answer = ingest(app, &ada, body.clone()).await;
        assert_eq!(answer.status, 400, "{shown:?}: {}", answer.text);
        answer.refused(400, "malformed_json");
        for path in ["/surveys", "/event-definitions"] {
            let answer = app
                .post_raw(&app.path(path), &app.editor(), body.clone())
                .await;
            assert_eq!(answer.status, 400, "{path} {shown:?}: {}", answer.text);
        }
    }
}

async fn json_nests_at_most_64_deep(app: &mut TestApp) {
    let ada = app.session("ada").await;
    // The request, its events, the event and its properties are four levels.
    let nested = |depth: usize| {
        let levels = depth - 4;
        with_properties(
            app,
            &format!(r#"{{"a": {}{}}}"#, "[".repeat(levels), "]".repeat(levels)),
        )
    };
    assert_eq!(ingest(app, &ada, nested(64)).await.ok()["accepted"], 1);
    ingest(app, &ada, nested(65))
        .await
        .refused(400, "malformed_json");
    ingest(app, &ada, "[".repeat(MIB))
        .await
        .refused(400, "malformed_json");
    ingest(app, &ada, "{\"a\":".repeat(MIB / 5))
        .await
        .refused(400, "malformed_json");
    let deep = format!(
        r#"{{"name": "x", "theme": {{"a": {}{}}}}}"#,
        "[".repeat(62),
        "]".repeat(62)
    );
    app.post_raw(&app.path("/surveys"), &app.editor(), deep)
        .await
        .data(201);
    let deep = format!(
        r#"{{"name": "x", "theme": {{"a": {}{}}}}}"#,
        "[".repeat(63),
        "]".repeat(63)
    );
    app.post_raw(&app.path("/surveys"), &app.editor(), deep)
        .await
        .refused(400, "malformed_json");
}

async fn values_that_no_database_keeps_are_refused(app: &mut TestApp) {
    let ada = app.session("ada").await;
    for properties in [
        r#"{"n": 1e999}"#,
        r#"{"n": -1e999}"#,
        r#"{"s": "\ud800"}"#,
        r#"{"s": "\udc00\ud800"}"#,
        r#"{"\ud800": 1}"#,
        r#"{"a": 1, "a": 2}"#,
        r#"{"deep": {"a": 1, "\u0061": 2}}"#,
    ] {
        let answer = ingest(app, &ada, with_properties(app, properties)).await;
        if answer.status == 200 {
            let data = answer.ok();
            assert_eq!(
                data["errors"][0]["code"], "invalid_properties",
                "{properties}: {data}"
            );
        } else {
            answer.refused(400, "malformed_json");
        }
    }
    for properties in [
        r#"{"s": "a\u0000b"}"#,
        r#"{"a\u0000b": 1}"#,
        r#"{"n": 123456789012345678901234567890}"#,
        r#"{"n": 1e-999}"#,
        r#"{"": ""}"#,
    ] {
        let answer = ingest(app, &ada, with_properties(app, properties)).await;
        let data = answer.ok();
        let decided = data["accepted"] == 1 || data["errors"][0]["code"] == "invalid_properties";
        assert!(decided, "{properties}: {data}");
    }
    app.settle().await;
    for body in [
        r#"{"name": "a\u0000b"}"#,
        r#"{"name": "\ud800"}"#,
        r#"{"name": "x", "priority": 1e999}"#,
        r#"{"name": "x", "priority": 99999999999}"#,
        r#"{"name": "x", "name": "y"}"#,
        r#"{"name": "x", "description": "\u0000"}"#,
        r#"{"name": "x", "theme": {"a": "\u0000"}}"#,
    ] {
        let answer = app
            .post_raw(&app.path("/surveys"), &app.editor(), body)
            .await;
        assert!(
            (400..500).contains(&answer.status) || answer.status == 201,
            "{body}: {}",
            answer.text
        );
    }
    app.get(&app.path("/surveys"), &app.viewer()).await.ok();
}

async fn a_number_out_of_range_is_json_of_the_wrong_shape(app: &mut TestApp) {
    let (editor, admin, backend) = (app.editor(), app.admin(), app.backend());
    let send = format!(
        r#"{{"campaignId": "{}", "anonymousId": "ada", "data": {{"total": 1e400}}}}"#,
        app.id()
    );
    for (path, credential, body, pointer) in [
        (
            "/surveys",
            &editor,
            r#"{"name": "x", "priority": 1e400}"#,
            "/priority",
        ),
        (
            "/surveys",
            &editor,
            r#"{"name": "x", "theme": {"a": [1, -1e400]}}"#,
            "/theme/a/1",
        ),
        ("/surveys", &editor, r#"{"name": 1e400}"#, "/name"),
        (
            "/push/webhooks",
            &admin,
            r#"{"url": 1e400, "eventTypes": []}"#,
            "/url",
        ),
        (
            "/push/transactional",
            &backend,
            send.as_str(),
            "/data/total",
        ),
    ] {
        let path = app.path(path);
        let answer = app.post_raw(&path, credential, body.to_owned()).await;
        let problem = answer.refused(422, "validation_failed");
        assert_eq!(answer.pointers(), [pointer], "{body}");
        assert_eq!(problem["errors"][0]["detail"], "number out of range");
        let cut = body[..body.len() - 1].to_owned();
        app.post_raw(&path, credential, cut)
            .await
            .refused(400, "malformed_json");
    }
}

async fn a_nul_character_anywhere_does_no_harm(app: &mut TestApp) {
    let ada = app.session("ada").await;
    let (sdk, token, editor) = (app.sdk(), ada.credential(), app.editor());
    let nul = "a\u{0}b";
    let ack = json!([{"instructionId": app.id(), "status": "received"}]);
    let surveys = app.path("/surveys");
    let definitions = app.path("/event-definitions");
    for (path, credential, body) in [
        ("/v1/sdk/session", &sdk, json!({"anonymousId": nul})),
        (
            "/v1/sdk/session",
            &sdk,
            json!({"anonymousId": "new", "platform": nul}),
        ),
        (
            "/v1/sdk/session",
            &sdk,
            json!({"anonymousId": "new", "sdkVersion": nul}),
        ),
        (
            "/v1/sdk/session",
            &sdk,
            json!({"anonymousId": "new", "identityToken": nul}),
        ),
        (
            "/v1/sdk/consent",
            &token,
            json!({"anonymousId": nul, "messaging": true}),
        ),
        (
            "/v1/sdk/instructions/ack",
            &token,
            json!({"anonymousId": nul, "acks": ack}),
        ),
        (
            "/v1/sdk/ingest",
            &token,
            json!({"context": {"anonymousId": nul}, "events": [{}]}),
        ),
        (
            "/v1/sdk/ingest",
            &token,
            json!({"context": {"anonymousId": "ada", "platform": nul}, "events": [{}]}),
        ),
        (
            "/v1/sdk/ingest",
            &token,
            json!({"context": {"anonymousId": "ada", "sentAt": nul, "deviceId": nul}, "events": [{"name": nul}]}),
        ),
        (
            surveys.as_str(),
            &editor,
            json!({"name": nul, "description": nul, "theme": {nul: nul}}),
        ),
        (definitions.as_str(), &editor, json!({"name": nul})),
        (
            definitions.as_str(),
            &editor,
            json!({"name": "a", "description": nul, "properties": [{"name": nul, "type": "string", "pattern": nul}]}),
        ),
    ] {
        let answer = app.post(path, credential, &body).await;
        assert!(answer.status < 500, "{path} {body}: {}", answer.text);
    }
    app.settle().await;
    app.get(&surveys, &app.viewer()).await.ok();
    app.get(&definitions, &app.viewer()).await.ok();
}

async fn bodies_of_the_wrong_shape_are_refused(app: &mut TestApp) {
    let ada = app.session("ada").await;
    let (sdk, token, editor) = (app.sdk(), ada.credential(), app.editor());
    let surveys = app.path("/surveys");
    let definitions = app.path("/event-definitions");
    for (path, credential) in [
        ("/v1/sdk/session", &sdk),
        ("/v1/sdk/consent", &token),
        ("/v1/sdk/ingest", &token),
        ("/v1/sdk/instructions/ack", &token),
        (surveys.as_str(), &editor),
        (definitions.as_str(), &editor),
    ] {
        for body in [
            json!(null),
            json!(7),
            json!("text"),
            json!([]),
            json!([1, 2]),
            json!(true),
            json!(["ada", null, null, null]),
            json!(["ada"]),
        ] {
            let answer = app.post(path, credential, &body).await;
            assert_eq!(answer.status, 422, "{path} {body}: {}", answer.text);
            answer.refused(422, "validation_failed");
        }
    }
}

/// As long as what stands for them has a place in it, an array could be read as the fields of an object.
async fn an_array_is_no_object_wherever_it_stands(app: &mut TestApp) {
    let ada = app.session("ada").await;
    let (token, editor, admin) = (ada.credential(), app.editor(), app.admin());
    let event = app.event(&ada, "opened", &json!({}));
    let context: Vec<serde_json::Value> = vec![serde_json::Value::Null; 10];
    let surveys = app.path("/surveys");
    let campaigns = app.path("/campaigns");
    for (path, credential, body, pointer) in [
        (
            "/v1/sdk/ingest",
            &token,
            json!([{"anonymousId": "ada"}, null, [event], null]),
            "",
        ),
        (
            "/v1/sdk/ingest",
            &token,
            json!({"context": context, "events": [event]}),
            "/context",
        ),
        (
            "/v1/sdk/push/receipts",
            &token,
            json!({"receipts": [[app.id(), "opened", null, null]]}),
            "/receipts/0",
        ),
        (&surveys, &editor, json!({"name": "n", "flow": []}), "/flow"),
        (
            &surveys,
            &editor,
            json!({"name": "n", "flow": {"questions": [{"id": "q", "type": "single_choice", "title": "t",
                "options": [["a", "A"]]}]}}),
            "/flow/questions/0/options/0",
        ),
        (
            &campaigns,
            &editor,
            json!({"name": "n", "variants": [[]]}),
            "/variants/0",
        ),
    ] {
        let answer = app.post(path, credential, &body).await;
        assert_eq!(answer.status, 422, "{body}: {}", answer.text);
        assert_eq!(answer.pointers(), [pointer], "{body}");
        assert!(!answer.text.contains("struct"), "{}", answer.text);
    }
    assert_eq!(app.stored("opened").await, 0);
    let settings = app.path("/settings");
    let before = app.get(&settings, &app.admin()).await.ok();
    for (patch, pointer) in [
        (json!({"ingest": []}), "/ingest"),
        (json!({"frequency": {"push": [1, 1]}}), "/frequency/push"),
    ] {
        let answer = app.patch(&settings, &admin, &patch).await;
        answer.refused(422, "validation_failed");
        assert_eq!(answer.pointers(), [pointer], "{patch}");
    }
    assert_eq!(app.get(&settings, &app.admin()).await.ok(), before);
}

async fn what_is_missing_or_unknown_is_named(app: &mut TestApp) {
    let ada = app.session("ada").await;
    let (token, editor) = (ada.credential(), app.editor());
    let event = app.event(&ada, "opened", &json!({}));
    for (path, credential, body, pointer, code) in [
        (
            "/v1/sdk/session".to_owned(),
            &app.sdk(),
            json!({}),
            "/anonymousId",
            "required",
        ),
        (
            "/v1/sdk/ingest".to_owned(),
            &token,
            json!({"context": {"anonymousId": "ada", "locale": 5}, "events": [event]}),
            "/context/locale",
            "invalid",
        ),
        (
            app.path("/surveys"),
            &editor,
            json!({}),
            "/name",
            "required",
        ),
        (
            app.path("/surveys"),
            &editor,
            json!({"name": "n", "flow": {"questions": [{"id": "q", "type": "nps"}]}}),
            "/flow/questions/0/title",
            "required",
        ),
        (
            app.path("/surveys"),
            &editor,
            json!({"name": "n", "flow": {"questions": [], "a/b": 1}}),
            "/flow/a~1b",
            "unknown_key",
        ),
        (
            app.path("/campaigns"),
            &editor,
            json!({"name": "n", "variants": [{"openAction": {}}]}),
            "/variants/0/openAction/action",
            "required",
        ),
        (
            app.path("/campaigns"),
            &editor,
            json!({"name": "n", "options": {"priority": 10}}),
            "/options/priority",
            "invalid",
        ),
        (
            app.path("/surveys"),
            &editor,
            json!({"name": "n", "status": null}),
            "/status",
            "invalid",
        ),
    ] {
        let answer = app.post(&path, credential, &body).await;
        let problem = answer.refused(422, "validation_failed");
        let error = &problem["errors"][0];
        assert_eq!(
            (&error["pointer"], &error["code"]),
            (&json!(pointer), &json!(code)),
            "{body}"
        );
    }
}

async fn text_of_every_script_comes_back(app: &mut TestApp) {
    let name = "Ünïcödé 日本語 😀 \u{202e}rtl\u{202c} a\u{301} '\"; DROP TABLE surveys; --";
    let made = app
        .post(&app.path("/surveys"), &app.editor(), &json!({"name": name}))
        .await
        .data(201);
    let path = app.path(&format!("/surveys/{}", made["id"].as_str().unwrap()));
    assert_eq!(app.get(&path, &app.viewer()).await.ok()["name"], name);
    let ada = app.session(name).await;
    let event = app.event(&ada, name, &json!({name: name}));
    assert_eq!(app.ingest(&ada, &[event]).await.ok()["accepted"], 1);
    assert_eq!(app.stored(name).await, 1);
}
