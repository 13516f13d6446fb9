//! A real OpenID provider: the npm package `oidc-provider` in a process of its own (`tests/oidc`).

use std::io::{BufRead as _, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};

use reqwest::Client;
use serde_json::{Value, json};
use tests::{Credential, TestApp, client};

use super::{configured, folder, list, open};
use crate::programs::{has, installed};

pub(crate) const SECRET: &str = "a-secret-of-this-test-and-no-other";

/// The provider; it ends when its standard input is closed.
pub(crate) struct Provider {
    process: Child,
    /// Its identifier.
    pub(crate) issuer: String,
    // It warns there now and then, and ends if nobody listens.
    _output: BufReader<ChildStdout>,
}

impl Provider {
    pub(crate) fn start(workspace: &str) -> Self {
        let mut process = Command::new("node")
            .arg("provider.mjs")
            .current_dir(installed("tests/oidc"))
            .env("WORKSPACE_ID", workspace)
            .env("CLIENT_SECRET", SECRET)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut output = BufReader::new(process.stdout.take().unwrap());
        output.read_line(&mut line).unwrap();
        let said: Value = serde_json::from_str(&line).unwrap();
        let issuer = said["issuer"].as_str().unwrap().to_owned();
        Self {
            process,
            issuer,
            _output: output,
        }
    }

    /// A token of a client, signed with an algorithm.
    async fn token(&self, http: &Client, client: &str, algorithm: &str) -> String {
        let body = format!("grant_type=client_credentials&resource=urn:nudge:{algorithm}");
        let request = http
            .post(format!("{}/token", self.issuer))
            .basic_auth(client, Some(SECRET))
            .header("content-type", "application/x-www-form-urlencoded")
            .body(body);
        let answer = client::send(request).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        answer.json()["access_token"].as_str().unwrap().to_owned()
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        drop(self.process.wait());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_real_provider_and_the_server_understand_each_other() {
    if !has(&["node", "npm"]) {
        return;
    }
    let folder = folder();
    // The workspace is made with the first start, and known to the provider from then on.
    let first = open(folder.path(), |_| {}).await.unwrap();
    let workspace = first.access.workspace_id.to_string();
    first.finish().await;
    let provider = Provider::start(&workspace);
    let app: TestApp = open(folder.path(), |config| {
        config.auth.issuers = vec![configured(&provider.issuer)];
    })
    .await
    .unwrap();
    assert_eq!(app.access.workspace_id.to_string(), workspace);
    let http = client::build();

    for algorithm in ["RS256", "ES256", "EdDSA"] {
        let admin = provider.token(&http, "admin", algorithm).await;
        list(&app, &admin).await.ok();
        app.get(&app.path("/keys"), &Credential::bearer(&admin))
            .await
            .ok();
        let viewer = provider.token(&http, "viewer", algorithm).await;
        list(&app, &viewer).await.ok();
        app.post(
            &app.path("/surveys"),
            &Credential::bearer(&viewer),
            &json!({}),
        )
        .await
        .refused(403, "insufficient_role");
        let (unsigned, _) = admin.rsplit_once('.').unwrap();
        let (_, signature) = viewer.rsplit_once('.').unwrap();
        list(&app, &format!("{unsigned}.{signature}"))
            .await
            .refused(401, "invalid_credentials");
    }
    app.finish().await;
}
