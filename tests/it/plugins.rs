//! Uploading plugins and looking after them (contract 12).

use nudge_campaigns::settings::ValidationFailure;
use serde_json::{Value, json};
use tests::session::{survey_body, text};
use tests::{TestApp, client, on_both_backends};

use crate::guests::{
    activate, deploy, name, renamed, set_slot, trigger, upload, version, versioned,
};
use crate::segments::{member, patch, plan, segment};

on_both_backends!(
    an_upload_says_what_was_checked,
    a_version_never_changes,
    what_is_no_plugin_is_refused_in_words,
    a_plugin_keeps_its_kind,
    only_components_are_uploaded_and_only_so_large,
    a_compressed_component_is_decompressed,
    plugins_are_listed_with_those_that_are_built_in,
    built_in_plugins_cannot_be_changed,
    what_is_needed_is_not_removed,
    nothing_comes_to_name_a_plugin_that_is_being_removed,
    nothing_is_accepted_unchecked,
    versions_in_force_are_not_removed,
    a_component_goes_with_its_last_version,
    plugins_of_other_apps_are_not_seen,
    every_change_is_in_the_audit_log,
    an_app_has_at_most_50_plugins,
    a_plugin_of_the_apps_own_is_told_a_segments_conditions,
);

async fn an_upload_says_what_was_checked(app: &mut TestApp) {
    let component = versioned(1, 1);
    let made = upload(app, component.clone()).await.data(201);

    assert_eq!(made["name"], json!(name(1)));
    assert_eq!(made["version"], json!(version(1)));
    assert_eq!(
        (&made["kind"], &made["state"]),
        (&json!("trigger"), &json!("ready"))
    );
    assert_eq!(made["digest"], json!(nudge_digest(&component)));
    assert_eq!(made["sizeBytes"], json!(component.len()));
    let imports = made["imports"].as_array().unwrap();
    assert!(
        imports.contains(&json!("nudge:plugin/trigger-host@1.0.0")),
        "{imports:?}"
    );
    assert!(made["description"].is_string());
    let checks = made["checks"].as_array().unwrap();
    let names: Vec<&str> = checks
        .iter()
        .map(|check| check["name"].as_str().unwrap())
        .collect();
    let expected = [
        "component",
        "world",
        "imports",
        "size",
        "compile",
        "describe",
        "self-test",
        "decision",
    ];
    let compiled = checks[4]["detail"].as_str().unwrap();
    assert!(compiled.starts_with("compiled in "), "{compiled}");
    assert_eq!(names, expected);
    assert!(checks.iter().all(|check| check["passed"] == true));

    let path = app.path(&format!("/plugins/{}/versions/{}", name(1), version(1)));
    assert_eq!(app.get(&path, &app.viewer()).await.ok(), made);
    let plugin = app
        .get(&app.path(&format!("/plugins/{}", name(1))), &app.viewer())
        .await
        .ok();
    assert_eq!(plugin["versions"], json!([made]));
    assert_eq!(plugin["scope"], "app");
    assert!(plugin.get("activeVersion").is_none() && plugin.get("rollout").is_none());
    let missing = app.get(&format!("{path}0"), &app.viewer()).await;
    let detail = missing.refused(404, "not_found")["detail"].clone();
    let said = format!(
        "the plugin `{}` has no version {}0; upload it first",
        name(1),
        version(1)
    );
    assert_eq!(detail, json!(said));
    let missing = app.get(&app.path("/plugins/none"), &app.viewer()).await;
    let detail = missing.refused(404, "not_found")["detail"].clone();
    assert_eq!(detail, "there is no plugin `none`; upload it first");
    let missing = app.get(&app.path("/dead-letters/x"), &app.viewer()).await;
    let detail = missing.refused(404, "not_found")["detail"].clone();
    assert!(
        detail.as_str().unwrap().contains("check `id` in"),
        "{detail}"
    );
}

fn nudge_digest(bytes: &[u8]) -> String {
    nudge_wasm::digest(bytes)
}

async fn a_version_never_changes(app: &mut TestApp) {
    let component = versioned(1, 1);
    let made = upload(app, component.clone()).await.data(201);
    assert_eq!(upload(app, component.clone()).await.data(200), made);

    let mut other = component;
    // A custom section that says nothing: other bytes, the same plugin.
    other.extend([0, 2, 1, b'x']);
    upload(app, other)
        .await
        .refused(409, "plugin_version_exists");
    upload(app, versioned(1, 2)).await.data(201);
    let stored: Vec<(i64,)> = app.rows("SELECT count(*) FROM plugin_components").await;
    assert_eq!(stored, [(2,)]);
}

async fn what_is_no_plugin_is_refused_in_words(app: &mut TestApp) {
    let half = test_guests::VERSIONED[..test_guests::VERSIONED.len() / 2].to_vec();
    for (component, code, words) in [
        (
            b"hello".to_vec(),
            "not_a_component",
            "not a WebAssembly component",
        ),
        (Vec::new(), "not_a_component", "not a WebAssembly component"),
        (
            b"\0asm\x01\0\0\0".to_vec(),
            "not_a_component",
            "core WebAssembly module",
        ),
        (
            b"\0asm\x0d\0\x01\0".to_vec(),
            "no_known_world",
            "it exports nothing",
        ),
        (half, "does_not_compile", "does not compile"),
        (
            renamed(b"Versioned-plugin-0000", b"1.0.1000001"),
            "bad_description",
            "lower-case letters",
        ),
        (
            renamed(b"versioned-plugin-0000", b"1.0.0100000"),
            "bad_description",
            "semantic version",
        ),
        (
            renamed(b"default-plugin-000000", b"1.0.1000001"),
            "reserved_name",
            "choose another",
        ),
        (versioned(1, 999_999), "self_test_failed", "check-config"),
        (
            versioned(1, 999_998),
            "self_test_failed",
            "the version that breaks down over events",
        ),
        (foreign_import(), "foreign_import", "wasi:http/types@0.2.0"),
    ] {
        let answer = upload(app, component).await;
        let problem = answer.refused(422, "plugin_rejected");
        assert_eq!(problem["errors"][0]["code"], code, "{problem}");
        let detail = problem["errors"][0]["detail"].as_str().unwrap();
        assert!(detail.contains(words), "{detail}");
        assert_eq!(problem["detail"], problem["errors"][0]["detail"]);
    }
    let stored: Vec<(i64,)> = app.rows("SELECT count(*) FROM plugin_components").await;
    assert_eq!(stored, [(0,)]);
}

/// A component that exports what a trigger plugin exports and imports an empty interface of another world.
fn foreign_import() -> Vec<u8> {
    // An import section with one instance type, and an export of that instance as the plugin.
    let mut component = b"\0asm\x0d\0\x01\0".to_vec();
    // type 0: an instance that exports nothing
    component.extend([7, 3, 1, 0x42, 0]);
    let import = b"wasi:http/types@0.2.0";
    let mut section = vec![1, 0, u8::try_from(import.len()).unwrap()];
    section.extend(import);
    section.extend([5, 0]);
    component.extend([10, u8::try_from(section.len()).unwrap()]);
    component.extend(section);
    let export = b"nudge:plugin/trigger-plugin@1.0.0";
    let mut section = vec![1, 0, u8::try_from(export.len()).unwrap()];
    section.extend(export);
    section.extend([5, 0, 0]);
    component.extend([11, u8::try_from(section.len()).unwrap()]);
    component.extend(section);
    component
}

async fn a_plugin_keeps_its_kind(app: &mut TestApp) {
    upload(app, renamed(b"versioned-plugin-0000", b"1.0.1000001"))
        .await
        .data(201);
    let mut tx = app.services().db.write().await.unwrap();
    // As if the name had been a validation plugin's.
    tx.sql("UPDATE plugins SET kind = 'validation'")
        .execute()
        .await
        .unwrap();
    tx.commit().await.unwrap();

    let answer = upload(app, versioned(0, 2)).await;
    let problem = answer.refused(422, "plugin_rejected");
    assert_eq!(problem["errors"][0]["code"], "kind_changed");
}

async fn only_components_are_uploaded_and_only_so_large(app: &mut TestApp) {
    let path = app.path("/plugins");
    app.post(&path, &app.admin(), &json!({}))
        .await
        .refused(415, "unsupported_media_type");
    let limit = 64 << 20;
    let large = app.upload(&path, &app.admin(), vec![0_u8; limit + 1]).await;
    let problem = large.refused(422, "plugin_rejected");
    assert_eq!(problem["errors"][0]["code"], "too_large");
    let largest = app.upload(&path, &app.admin(), vec![0_u8; limit]).await;
    let problem = largest.refused(422, "plugin_rejected");
    assert_eq!(problem["errors"][0]["code"], "not_a_component");
    // Others take no more than before.
    let body = json!({"name": "x".repeat(1 << 20)}).to_string();
    app.post_raw(&app.path("/surveys"), &app.editor(), body)
        .await
        .refused(413, "payload_too_large");
}

async fn a_compressed_component_is_decompressed(app: &mut TestApp) {
    let component = versioned(1, 1);
    let compressed = zstd::encode_all(&component[..], 3).unwrap();
    let request = app.request(reqwest::Method::POST, &app.path("/plugins"), &app.admin());
    let request = request
        .header("content-type", "application/wasm")
        .header("content-encoding", "zstd");
    let made = client::send(request.body(compressed)).await.data(201);
    assert_eq!(made["digest"], json!(nudge_digest(&component)));
}

async fn listed(app: &TestApp, query: &str) -> Value {
    let path = app.path(&format!("/plugins{query}"));
    app.get(&path, &app.viewer()).await.ok()
}

fn names(page: &Value) -> Vec<&str> {
    let items = page["items"].as_array().unwrap();
    items
        .iter()
        .map(|item| item["name"].as_str().unwrap())
        .collect()
}

async fn plugins_are_listed_with_those_that_are_built_in(app: &mut TestApp) {
    deploy(app, 1, 1).await;
    upload(app, versioned(2, 1)).await.data(201);

    let page = listed(app, "").await;
    let built_in = [
        "default-personalization",
        "default-trigger",
        "default-validation",
    ];
    let (one, two) = (name(1), name(2));
    let mut expected = built_in.to_vec();
    expected.extend([one.as_str(), two.as_str()]);
    assert_eq!(names(&page), expected);
    assert_eq!(page["nextCursor"], Value::Null);
    let default = &page["items"][1];
    assert_eq!(
        (&default["scope"], &default["slot"]),
        (&json!("builtin"), &json!(true))
    );
    assert_eq!(page["items"][3]["activeVersion"], json!(version(1)));
    assert_eq!(page["items"][3]["rollout"]["strategy"], "instant");

    let first = listed(app, "?limit=3").await;
    assert_eq!(names(&first), built_in);
    let cursor = first["nextCursor"].as_str().unwrap();
    let rest = listed(app, &format!("?limit=3&cursor={cursor}")).await;
    assert_eq!(names(&rest), [one.as_str(), two.as_str()]);
    assert_eq!(rest["nextCursor"], Value::Null);

    let path = app.path("/plugins/default-trigger");
    let default = app.get(&path, &app.viewer()).await.ok();
    assert_eq!(default["versions"][0]["version"], default["activeVersion"]);
    assert!(default["versions"][0]["configSchema"].is_object());
}

/// Whichever is first, the other is refused.
async fn nothing_comes_to_name_a_plugin_that_is_being_removed(app: &mut TestApp) {
    let (plugin, surveys) = (
        app.path(&format!("/plugins/{}", name(1))),
        app.path("/surveys"),
    );
    let mut body = survey_body();
    body["trigger"] = trigger(1, json!({"events": ["a"]}));
    for _ in 0..8 {
        deploy(app, 1, 1).await;
        let (admin, editor) = (app.admin(), app.editor());
        let (saved, removed) = tokio::join!(
            app.post(&surveys, &editor, &body),
            app.delete(&plugin, &admin)
        );
        if saved.status == 201 {
            removed.refused(409, "plugin_in_use");
            let survey = app.path(&format!("/surveys/{}", text(&saved.data(201), "id")));
            let archived = json!({"status": "archived"});
            app.patch(&survey, &editor, &archived).await.ok();
            app.delete(&plugin, &admin).await.data(204);
        } else {
            let problem = saved.refused(422, "validation_failed");
            assert_eq!(problem["errors"][0]["code"], "unknown_plugin");
            removed.data(204);
        }
    }
}

async fn built_in_plugins_cannot_be_changed(app: &mut TestApp) {
    let path = app.path("/plugins/default-trigger");
    for answer in [
        app.delete(&path, &app.admin()).await,
        app.post(
            &format!("{path}/activate"),
            &app.admin(),
            &json!({"version": "0.1.0"}),
        )
        .await,
        app.post(&format!("{path}/rollback"), &app.admin(), &json!({}))
            .await,
    ] {
        answer.refused(403, "insufficient_role");
    }
}

async fn what_is_needed_is_not_removed(app: &mut TestApp) {
    deploy(app, 1, 1).await;
    let path = app.path(&format!("/plugins/{}", name(1)));
    let in_use = async |what: &str| {
        let problem = app
            .delete(&path, &app.admin())
            .await
            .refused(409, "plugin_in_use");
        let detail = problem["detail"].as_str().unwrap().to_owned();
        assert!(detail.contains(what), "{detail}");
    };
    let slot = app.path("/plugin-slots/trigger");
    app.put(&slot, &app.admin(), &json!({"plugin": name(1)}))
        .await
        .ok();
    in_use("slot").await;
    app.delete(&slot, &app.admin()).await.data(204);
    let survey = app.survey(&trigger(1, json!({"events": ["a"]}))).await;
    let survey_path = app.path(&format!("/surveys/{survey}"));
    for status in ["active", "paused", "draft", "completed"] {
        let body = json!({"status": status});
        app.patch(&survey_path, &app.editor(), &body).await.ok();
        in_use(&survey.to_string()).await;
    }
    app.patch(&survey_path, &app.editor(), &json!({"status": "archived"}))
        .await
        .ok();

    app.delete(&path, &app.admin()).await.data(204);
    app.get(&path, &app.viewer())
        .await
        .refused(404, "not_found");
    app.delete(&path, &app.admin())
        .await
        .refused(404, "not_found");

    upload(app, test_guests::STRICT.to_vec()).await.data(201);
    let strict = app.path("/plugins/strict");
    app.post(
        &format!("{strict}/activate"),
        &app.admin(),
        &json!({"version": "0.1.0"}),
    )
    .await
    .ok();
    let validator = json!({"plugin": "strict", "config": {"forbidden": "card"}});
    let made = app.define("paid", &json!({"validator": validator})).await;
    app.delete(&strict, &app.admin())
        .await
        .refused(409, "plugin_in_use");
    let definition = app.path(&format!(
        "/event-definitions/{}",
        made["id"].as_str().unwrap()
    ));
    app.delete(&definition, &app.editor()).await.data(204);
    app.delete(&strict, &app.admin()).await.data(204);
}

/// A definition whose plugin is gone, as after a roll-back of its only version: nobody knows whether its events match
/// (contract 12, `validationFailure`).
async fn nothing_is_accepted_unchecked(app: &mut TestApp) {
    upload(app, test_guests::STRICT.to_vec()).await.data(201);
    let activate = app.path("/plugins/strict/activate");
    app.post(&activate, &app.admin(), &json!({"version": "0.1.0"}))
        .await
        .ok();
    let validator = json!({"plugin": "strict", "config": {"forbidden": "card"}});
    app.define("paid", &json!({"validator": validator})).await;
    let ada = app.session("ada").await;
    let refused = async |app: &TestApp| {
        let event = app.event(&ada, "paid", &json!({"card": "4111"}));
        let data = app.ingest(&ada, &[event]).await.ok();
        data["errors"][0].clone()
    };
    assert_eq!(refused(app).await["code"], "schema_violation");
    crate::person::execute(app, "UPDATE plugins SET active_version = NULL", &[]).await;
    app.restart().await;
    let error = refused(app).await;
    assert_eq!(
        (&error["code"], &error["retryable"]),
        (&json!("plugin_unavailable"), &json!(true))
    );
    app.set(|settings| settings.plugins.validation_failure = ValidationFailure::Open)
        .await;
    assert_eq!(refused(app).await, Value::Null);
    // What is not declared is accepted as ever.
    let event = app.event(&ada, "other", &json!({}));
    assert_eq!(app.ingest(&ada, &[event]).await.ok()["accepted"], 1);
}

async fn versions_in_force_are_not_removed(app: &mut TestApp) {
    for number in 1..=4 {
        upload(app, versioned(1, number)).await.data(201);
    }
    for parts in [
        json!({"version": version(1)}),
        json!({"version": version(2)}),
        json!({"version": version(3), "strategy": "shadow"}),
    ] {
        activate(app, 1, parts).await.ok();
    }
    for (number, status) in [(1, 409), (2, 409), (3, 409), (4, 204), (4, 404)] {
        let path = app.path(&format!(
            "/plugins/{}/versions/{}",
            name(1),
            version(number)
        ));
        let answer = app.delete(&path, &app.admin()).await;
        assert_eq!(answer.status, status, "{number}: {}", answer.text);
    }
}

async fn a_component_goes_with_its_last_version(app: &mut TestApp) {
    upload(app, versioned(1, 1)).await.data(201);
    app.upload(
        &format!("{}/plugins", crate::guests::SERVER),
        &app.operator(),
        versioned(1, 1),
    )
    .await
    .data(201);
    let count = async || -> i64 {
        let rows: Vec<(i64,)> = app.rows("SELECT count(*) FROM plugin_components").await;
        rows[0].0
    };
    assert_eq!(count().await, 1);
    let path = app.path(&format!("/plugins/{}", name(1)));
    app.delete(&path, &app.admin()).await.data(204);
    assert_eq!(count().await, 1);
    let path = format!("{}/plugins/{}", crate::guests::SERVER, name(1));
    app.delete(&path, &app.operator()).await.data(204);
    assert_eq!(count().await, 0);
}

async fn plugins_of_other_apps_are_not_seen(app: &mut TestApp) {
    deploy(app, 1, 1).await;
    let workspace_id = app.access.workspace_id;
    let kind = nudge_apps::key::Kind::Write;
    let (other, _) = app.another_app(workspace_id, kind, &[]).await;
    let path = format!("/v1/apps/{other}/plugins");
    let page = app.get(&path, &app.viewer()).await.ok();
    assert_eq!(page["items"].as_array().unwrap().len(), 3);
    app.get(&format!("{path}/{}", name(1)), &app.viewer())
        .await
        .refused(404, "not_found");
    let body = json!({"version": version(1)});
    app.post(&format!("{path}/{}/activate", name(1)), &app.admin(), &body)
        .await
        .refused(404, "not_found");
    for strange in ["%00", "A", "a%2Fb", &"a".repeat(65)] {
        app.get(&format!("{path}/{strange}"), &app.viewer())
            .await
            .refused(404, "not_found");
    }
}

async fn every_change_is_in_the_audit_log(app: &mut TestApp) {
    deploy(app, 1, 1).await;
    deploy(app, 1, 2).await;
    let plugin = app.path(&format!("/plugins/{}", name(1)));
    app.post(&format!("{plugin}/rollback"), &app.admin(), &json!({}))
        .await
        .ok();
    let path = format!("{plugin}/versions/{}", version(2));
    app.delete(&path, &app.admin()).await.data(204);
    let slot = app.path("/plugin-slots/trigger");
    app.put(&slot, &app.admin(), &json!({"plugin": name(1)}))
        .await
        .ok();
    app.delete(&slot, &app.admin()).await.data(204);
    app.delete(&plugin, &app.admin()).await.data(204);

    let entries: Vec<(String, String)> = app
        .rows("SELECT action, actor FROM audit_log ORDER BY id")
        .await;
    let actions: Vec<&str> = entries.iter().map(|entry| entry.0.as_str()).collect();
    let expected = [
        "plugin.uploaded",
        "plugin.activated",
        "plugin.uploaded",
        "plugin.activated",
        "plugin.rolled_back",
        "plugin_version.deleted",
        "plugin_slot.set",
        "plugin_slot.cleared",
        "plugin.deleted",
    ];
    assert_eq!(actions, expected);
    assert!(entries.iter().all(|entry| entry.1 == "nudge dev"));
}

async fn an_app_has_at_most_50_plugins(app: &mut TestApp) {
    let mut tx = app.services().db.write().await.unwrap();
    for number in 0..49 {
        let now = app.clock.now();
        let kind = nudge_wasm::Kind::Trigger;
        let app_id = app.access.app_id;
        nudge_plugin_runtime::store::insert(&mut tx, app_id, &format!("p{number}"), kind, now)
            .await
            .unwrap();
    }
    tx.commit().await.unwrap();
    upload(app, versioned(1, 1)).await.data(201);
    upload(app, versioned(2, 1))
        .await
        .refused(422, "limit_exceeded");
    upload(app, versioned(1, 2)).await.data(201);
}

async fn a_plugin_of_the_apps_own_is_told_a_segments_conditions(app: &mut TestApp) {
    deploy(app, 1, 1).await;
    set_slot(app, &name(1)).await.ok();
    let pros = segment(app, "pros", plan("pro")).await;
    app.survey_with(&json!({"audience": member(&pros, true)}))
        .await;
    let ada = app.session("ada").await;
    for told in [plan("pro"), plan("free")] {
        patch(app, &pros, json!({"audience": told})).await.ok();
        let event = app.event(&ada, "purchase", &json!({}));
        app.ingest(&ada, &[event]).await.ok();
        app.settle().await;
        let configs: Vec<(String,)> = app.rows("SELECT config FROM decision_configs").await;
        let leaves: Vec<Value> = configs
            .iter()
            .map(|(config,)| serde_json::from_str::<Value>(config).unwrap())
            .map(|config| config["audience"]["include"].clone())
            .collect();
        let mut leaf = member(&pros, true)["include"].clone();
        leaf["audience"] = told;
        assert!(leaves.contains(&leaf), "{leaves:?}");
    }
}
