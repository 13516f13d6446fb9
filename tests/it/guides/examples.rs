//! What the examples of plugins say of their configuration: a server takes it with the plugin.

use std::path::Path;

use serde_json::{Value, json};
use tests::{Backend, TestApp, site};

use super::good;
use crate::guests::{activate_at, upload};
use crate::plugin_command;

/// The configuration in an example's README: the lines that are indented as code and no commands.
fn configuration(readme: &str) -> Value {
    let lines = readme.lines().filter_map(|line| line.strip_prefix("    "));
    let lines: Vec<&str> = lines.filter(|line| !line.starts_with("nudge ")).collect();
    serde_json::from_str(&lines.concat()).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_takes_what_the_examples_say() {
    let app = TestApp::start(site!(), Backend::Sqlite).await;
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../plugins/examples");
    for name in [
        "cart-abandonment",
        "churn-risk",
        "cross-field",
        "currency-price",
    ] {
        let folder = examples.join(name);
        let mut command = plugin_command::nudge(&["plugin", "build", "--json", "--dir"]);
        command.arg(&folder);
        let built = tokio::task::spawn_blocking(move || command.output().unwrap());
        let built: Value = serde_json::from_str(&good(&built.await.unwrap())).unwrap();
        let component = std::fs::read(built["path"].as_str().unwrap()).unwrap();
        upload(&app, component).await.data(201);
        let version = json!({"version": "0.1.0"});
        activate_at(&app, &app.path(""), &app.admin(), name, version)
            .await
            .ok();

        let readme = std::fs::read_to_string(folder.join("README.md")).unwrap();
        let configuration = configuration(&readme);
        let (path, body) = match built["kind"].as_str().unwrap() {
            "validation" => (
                "/event-definitions",
                json!({"name": name, "validator": configuration}),
            ),
            "personalization" => {
                let price = json!({"title": "{{p.price}}", "body": "Now.", "personalization": configuration});
                let preview = json!({"surface": "push", "anonymousId": "phone-1", "data": {"total": 10}, "content": price});
                app.session("phone-1").await;
                let shown = app
                    .post(
                        &app.path("/personalization/preview"),
                        &app.editor(),
                        &preview,
                    )
                    .await
                    .ok();
                assert_eq!(shown["status"], "ready", "{shown}");
                let campaign = json!({"name": name, "mode": "transactional", "variants": [price]});
                ("/campaigns", campaign)
            }
            _ => (
                "/surveys",
                json!({"name": name, "mode": "triggered", "trigger": configuration}),
            ),
        };
        app.post(&app.path(path), &app.editor(), &body)
            .await
            .data(201);
    }
    app.finish().await;
}
