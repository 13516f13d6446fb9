//! The server's own plugins, which operators look after and every app has (contract 12).

use std::collections::BTreeMap;
use std::time::Duration;

use nudge_apps::key::Kind;
use nudge_http::issuer::Role;
use serde_json::{Value, json};
use tests::{Credential, TestApp, on_both_backends};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use uuid::Uuid;

use crate::guests::{
    SERVER, activate, activate_at, by, decides, name, set_slot, trigger, upload, version, versioned,
};

on_both_backends!(
    the_servers_plugins_are_every_apps_until_it_has_its_own,
    the_servers_slot_is_every_apps_until_it_has_its_own,
    an_operator_removes_what_nobody_uses_and_hears_who_does,
    a_plugin_of_a_file_can_be_named,
    a_plugin_of_a_flag_goes_before_one_of_the_configuration,
    slow_uploads_of_a_workspace_leave_room_for_others,
    slow_components_of_a_workspace_keep_no_others_waiting,
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
    // What names it means the server's: the app's own can go.
    assert_eq!(app.get(&path, &app.viewer()).await.ok()["scope"], "app");
    assert_eq!(app.delete(&path, &app.admin()).await.status, 204);
    assert_eq!(app.get(&path, &app.viewer()).await.ok()["scope"], "server");
    assert_eq!(decides(app, &ada, "a").await, by(1, 2));
    upload(app, versioned(1, 9)).await.data(201);
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

async fn a_plugin_of_a_flag_goes_before_one_of_the_configuration(app: &mut TestApp) {
    let folder = tempfile::tempdir().unwrap();
    let [configured, flag] = ["configured", "flag"].map(|file| folder.path().join(file));
    std::fs::write(&configured, test_guests::MISBEHAVING).unwrap();
    std::fs::write(&flag, versioned(1, 1)).unwrap();
    app.config.plugins.files = vec![configured];
    app.config.plugins.flags = vec![flag];
    app.restart().await;
    app.survey(&json!({"kind": "event", "eventName": "a"}))
        .await;
    let ada = app.session("ada").await;
    assert_eq!(decides(app, &ada, "a").await, by(1, 1));
}

/// Begins an upload to the demo app, whose client waits until it is asked for the component.
async fn begin_upload(app: &TestApp) -> TcpStream {
    let address = app.access.base_url.trim_start_matches("http://");
    let mut upload = TcpStream::connect(address).await.unwrap();
    let (path, token) = (app.path("/plugins"), &app.access.admin_token);
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\
         Content-Type: application/wasm\r\nContent-Length: 1000\r\nExpect: 100-continue\r\n\r\n"
    );
    upload.write_all(head.as_bytes()).await.unwrap();
    upload
}

/// Whether the server asks for the component within some time, as it does when the upload has its turn.
async fn is_asked(upload: &mut TcpStream, within: Duration) -> bool {
    let mut answer = [0; 12];
    let read = tokio::time::timeout(within, upload.read_exact(&mut answer)).await;
    read.is_ok_and(|read| read.is_ok()) && answer == *b"HTTP/1.1 100"
}

/// An app of a workspace of its own, and a token that takes uploads for it.
async fn stranger(app: &TestApp) -> (String, Credential) {
    let workspace = app.id();
    let (other, _) = app.another_app(workspace, Kind::Write, &[]).await;
    let roles = BTreeMap::from([(workspace, Role::Admin)]);
    let (now, hour) = (app.clock.now(), Duration::from_hours(1));
    let issuer = &app.services().issuer;
    let token = issuer.issue("bob", roles, false, now, hour).unwrap();
    (
        format!("/v1/apps/{other}/plugins"),
        Credential::bearer(&token),
    )
}

async fn slow_components_of_a_workspace_keep_no_others_waiting(app: &mut TestApp) {
    let loaders = app.services().plugins.loaders.clone();
    // A component of the workspace takes as long as this is there.
    let slow = loaders.inspection_turn(app.access.workspace_id).await;
    assert!(slow.is_some());
    let (path, credential) = (app.path("/plugins"), app.admin());
    let mut own = std::pin::pin!(app.upload(&path, &credential, versioned(1, 1)));
    let waits = tokio::time::timeout(Duration::from_secs(2), &mut own).await;
    assert!(waits.is_err(), "the workspace has one at a time");

    let (path, credential) = stranger(app).await;
    app.upload(&path, &credential, versioned(2, 1))
        .await
        .data(201);
    drop(slow);
    own.await.data(201);
}

async fn slow_uploads_of_a_workspace_leave_room_for_others(app: &mut TestApp) {
    /// Longer than a turn takes to come.
    const COMES: Duration = Duration::from_secs(25);
    let mut slow = Vec::new();
    for _ in 0..2 {
        let mut upload = begin_upload(app).await;
        assert!(is_asked(&mut upload, COMES).await);
        slow.push(upload);
    }
    let mut third = begin_upload(app).await;
    assert!(!is_asked(&mut third, Duration::from_secs(1)).await);

    app.upload(
        &format!("{SERVER}/plugins"),
        &app.operator(),
        versioned(1, 1),
    )
    .await
    .data(201);
    let (path, credential) = stranger(app).await;
    app.upload(&path, &credential, versioned(2, 1))
        .await
        .data(201);

    drop(slow.pop());
    assert!(is_asked(&mut third, COMES).await);
}
