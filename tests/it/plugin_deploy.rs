//! The author's commands against a real server: from a component to something that fires (contract 12, 16).

use std::process::Output;

use serde_json::{Value, json};
use tempfile::TempDir;
use tests::{TestApp, child, on_both_backends, site};

use crate::guests::{name, trigger, version, versioned};

on_both_backends!(a_component_is_pushed_activated_and_fires);

/// Runs the program as an admin of the demo app.
async fn nudge(app: &TestApp, arguments: &[&str]) -> Output {
    let folder = TempDir::with_prefix("nudge-test-").unwrap();
    let mut command = child::program(site!());
    command
        .current_dir(folder.path())
        .env("NUDGE_PLUGIN__URL", &app.access.base_url)
        .env("NUDGE_PLUGIN__TOKEN", &app.access.admin_token)
        .env("NUDGE_PLUGIN__APP", app.access.app_id.to_string())
        .arg("plugin")
        .args(arguments);
    tokio::task::spawn_blocking(move || command.output().unwrap())
        .await
        .unwrap()
}

fn good(output: &Output) -> Value {
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

async fn a_component_is_pushed_activated_and_fires(app: &mut TestApp) {
    let folder = TempDir::with_prefix("nudge-test-").unwrap();
    let mut files = Vec::new();
    for number in [1, 2] {
        let file = folder.path().join(format!("{number}.wasm"));
        std::fs::write(&file, versioned(1, number)).unwrap();
        files.push(file.to_str().unwrap().to_owned());
    }

    let pushed = good(&nudge(app, &["push", &files[0], "--json"]).await);
    assert_eq!(pushed["version"], version(1), "{pushed}");
    let refused = nudge(app, &["activate", &name(1), "--version", "9.9.9"]).await;
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    let activate = ["activate", &name(1), "--version", &version(1), "--json"];
    assert_eq!(
        good(&nudge(app, &activate).await)["activeVersion"],
        version(1)
    );
    app.survey(&trigger(1, json!({"events": ["purchase"]})))
        .await;
    let ada = app.session("ada").await;
    assert_eq!(app.fires(&ada, "purchase", &json!({})).await, 1);

    good(&nudge(app, &["push", &files[1], "--json"]).await);
    let canary = [
        "activate",
        &name(1),
        "--version",
        &version(2),
        "--strategy",
        "canary",
        "--percent",
        "50",
        "--json",
    ];
    let rollout = good(&nudge(app, &canary).await)["rollout"].clone();
    assert_eq!(rollout["candidateVersion"], version(2), "{rollout}");
    let promoted = good(&nudge(app, &["promote", &name(1), "--json"]).await);
    assert_eq!(promoted["activeVersion"], version(2));
    let back = good(&nudge(app, &["rollback", &name(1), "--json"]).await);
    assert_eq!(back["activeVersion"], version(1));

    let listed = good(&nudge(app, &["list", "--json"]).await);
    let own = listed.as_array().unwrap().iter();
    let own: Vec<&Value> = own.filter(|plugin| plugin["scope"] == "app").collect();
    assert_eq!(own.len(), 1, "{listed}");
    let logs = nudge(app, &["logs", &name(1), "--json"]).await;
    assert!(logs.status.success(), "{logs:?}");
}
