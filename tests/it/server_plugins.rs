//! The server's own plugins, which operators look after and every app has (contract 12).

use serde_json::{Value, json};
use tests::{TestApp, on_both_backends};
use uuid::Uuid;

use crate::guests::{
    SERVER, activate, activate_at, by, decides, name, set_slot, trigger, upload, version, versioned,
};

on_both_backends!(
    the_servers_plugins_are_every_apps_until_it_has_its_own,
    the_servers_slot_is_every_apps_until_it_has_its_own,
    an_operator_removes_what_nobody_uses_and_hears_who_does,
    a_plugin_of_a_file_can_be_named,
);

async fn deploy_server(app: &TestApp, plugin: u32, number: u32, slot: bool) {
    let path = format!("{SERVER}/plugins");
    app.upload(&path, &app.operator(), versioned(plugin, number))
        .await
        .data(201);
    let parts = json!({"version": version(number), "slot": slot});
    activate_at(app, SERVER, &app.operator(), &name(plugin), parts)
        .await
        .ok();
}

async fn the_servers_plugins_are_every_apps_until_it_has_its_own(app: &mut TestApp) {
    deploy_server(app, 1, 1, false).await;
    app.survey(&trigger(1, json!({"events": ["a"]}))).await;
    let ada = app.session("ada").await;
    assert_eq!(decides(app, &ada, "a").await, by(1, 1));
    let path = app.path(&format!("/plugins/{}", name(1)));
    let shown = app.get(&path, &app.viewer()).await.ok();
    assert_eq!(shown["scope"], "server");
    deploy_server(app, 1, 2, false).await;
    assert_eq!(decides(app, &ada, "a").await, by(1, 2));

    app.delete(&path, &app.admin())
        .await
        .refused(403, "insufficient_role");
    let server_path = format!("{SERVER}/plugins/{}", name(1));
    app.delete(&server_path, &app.operator())
        .await
        .refused(409, "plugin_in_use");
    app.get(&server_path, &app.admin())
        .await
        .refused(403, "insufficient_role");
    let seen = app.get(&server_path, &app.operator()).await.ok();
    assert_eq!(seen["versions"].as_array().unwrap().len(), 2);

    upload(app, versioned(1, 9)).await.data(201);
    assert_eq!(decides(app, &ada, "a").await, by(1, 2), "not active yet");
    activate(app, 1, json!({"version": version(9)})).await.ok();
    assert_eq!(decides(app, &ada, "a").await, by(1, 9));
    deploy_server(app, 1, 3, false).await;
    assert_eq!(decides(app, &ada, "a").await, by(1, 9));
    assert_eq!(app.get(&path, &app.viewer()).await.ok()["scope"], "app");
    let entries: Vec<(Uuid,)> = app
        .rows("SELECT app_id FROM audit_log WHERE action = 'plugin.activated' ORDER BY id")
        .await;
    let own = app.access.app_id;
    let nil = Uuid::nil();
    assert_eq!(entries, [(nil,), (nil,), (own,), (nil,)]);

    let log = "/v1/operator/audit-log?action=plugin.activated&limit=2";
    let page = app.get(log, &app.operator()).await.ok();
    let of = |page: &Value| {
        let items = page["items"].as_array().unwrap().iter();
        items
            .map(|it| it["detail"]["version"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(of(&page), [version(3), version(2)]);
    let cursor = page["nextCursor"].as_str().unwrap();
    let next = format!("{log}&cursor={cursor}");
    let page = app.get(&next, &app.operator()).await.ok();
    assert_eq!(
        (of(&page), &page["nextCursor"]),
        (vec![version(1).into()], &Value::Null)
    );
    app.get(log, &app.admin())
        .await
        .refused(403, "insufficient_role");
}

async fn the_servers_slot_is_every_apps_until_it_has_its_own(app: &mut TestApp) {
    let survey = app
        .survey(&json!({"kind": "event", "eventName": "a"}))
        .await;
    deploy_server(app, 1, 1, true).await;
    let ada = app.session("ada").await;
    assert_eq!(decides(app, &ada, "a").await, by(1, 1));
    set_slot(app, "default-trigger").await.ok();
    let built_in = decides(app, &ada, "a").await.unwrap();
    assert_eq!(built_in.0, "default-trigger");
    app.delete(&app.path("/plugin-slots/trigger"), &app.admin())
        .await
        .data(204);
    assert_eq!(decides(app, &ada, "a").await, by(1, 1));

    // What the built-in plugin would refuse keeps operators from emptying the slot, too.
    let path = app.path(&format!("/surveys/{survey}"));
    let body = json!({"trigger": {"eventName": "a", "mine": true}});
    app.patch(&path, &app.editor(), &body).await.ok();
    let slot = format!("{SERVER}/plugin-slots/trigger");
    let answer = app.delete(&slot, &app.operator()).await;
    answer.refused(422, "plugin_rejected");
    let below = format!("/apps/{}/surveys/{survey}", app.access.app_id);
    assert!(answer.pointers()[0].starts_with(&below), "{}", answer.text);
    let body = json!({"status": "paused"});
    app.patch(&path, &app.editor(), &body).await.ok();
    app.delete(&slot, &app.operator()).await.data(204);
}

async fn an_operator_removes_what_nobody_uses_and_hears_who_does(app: &mut TestApp) {
    deploy_server(app, 1, 1, false).await;
    let plugin = format!("{SERVER}/plugins/{}", name(1));
    let own = app.access.app_id;
    let refused = async |path: &str, words: &[&str]| {
        let answer = app.delete(path, &app.operator()).await;
        answer.refused(409, "plugin_in_use");
        let detail = answer.problem()["detail"].as_str().unwrap().to_owned();
        for word in words {
            assert!(detail.contains(word), "{detail}");
        }
    };
    let survey = app.survey(&trigger(1, json!({"events": ["a"]}))).await;
    refused(&plugin, &["survey", &survey.to_string(), &own.to_string()]).await;
    set_slot(app, &name(1)).await.ok();
    refused(&plugin, &["slot", &own.to_string()]).await;
    app.delete(&app.path("/plugin-slots/trigger"), &app.admin())
        .await
        .data(204);

    // To an app that has its own plugin of the name it is another one.
    upload(app, versioned(1, 9)).await.data(201);
    activate(app, 1, json!({"version": version(9)})).await.ok();
    set_slot(app, &name(1)).await.ok();
    deploy_server(app, 1, 2, false).await;
    let of_version = |number: u32| format!("{plugin}/versions/{}", version(number));
    refused(&of_version(2), &["is active"]).await;
    refused(&of_version(1), &["roll-back"]).await;
    deploy_server(app, 1, 3, false).await;
    app.delete(&of_version(1), &app.operator()).await.data(204);
    app.delete(&plugin, &app.operator()).await.data(204);
    app.get(&plugin, &app.operator())
        .await
        .refused(404, "not_found");
    let ada = app.session("ada").await;
    assert_eq!(decides(app, &ada, "a").await, by(1, 9));

    // One that is active, and that nothing names, goes as a whole.
    deploy_server(app, 2, 1, false).await;
    let survey = app.survey(&trigger(2, json!({"events": ["b"]}))).await;
    let plugin = format!("{SERVER}/plugins/{}", name(2));
    refused(&plugin, &[&survey.to_string()]).await;
    let path = app.path(&format!("/surveys/{survey}"));
    app.delete(&path, &app.editor()).await.data(204);
    app.delete(&plugin, &app.operator()).await.data(204);
}

async fn a_plugin_of_a_file_can_be_named(app: &mut TestApp) {
    let folder = tempfile::tempdir().unwrap();
    let components = [test_guests::MISBEHAVING, test_guests::STRICT];
    let files = ["trigger", "validation"].map(|file| folder.path().join(file));
    for (file, component) in files.iter().zip(components) {
        std::fs::write(file, component).unwrap();
    }
    app.config.plugins.files = files.to_vec();
    app.restart().await;
    let named = json!({"kind": "plugin", "plugin": "misbehaving", "config": {"mode": "trap"}});
    let survey = app.survey(&named).await;
    let path = app.path(&format!("/surveys/{survey}"));
    let renamed = json!({"name": "another"});
    app.patch(&path, &app.editor(), &renamed).await.ok();
    let validator = json!({"plugin": "strict", "config": {"forbidden": "card"}});
    app.define("paid", &json!({"validator": validator})).await;
}
