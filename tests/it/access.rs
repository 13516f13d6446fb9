//! Who may call what (contract 1). The operations are those of the server's own description: one that is
//! added there is tested here.

use std::collections::BTreeMap;

use nudge::issuer::Role;
use reqwest::Method;
use serde_json::{Value, json};
use tests::client::{self, Answer};
use tests::{Credential, TestApp, on_both_backends};
use uuid::Uuid;

on_both_backends!(
    nobody_gets_in_without_a_good_credential,
    keys_do_not_manage_and_tokens_are_no_keys,
    other_workspaces_are_not_found,
    viewers_read_and_do_not_write,
    only_operators_look_after_the_server,
    tokens_expire,
    revoked_and_mistyped_keys_are_refused,
    everything_that_needs_no_credential_is_known,
);

/// Operations that take no credential.
const OPEN: &[(&str, &str)] = &[("GET", "/v1/errors")];

/// An operation of the description, its path filled in.
struct Operation {
    method: Method,
    path: String,
    manages: bool,
    operates: bool,
    is_for_admins: bool,
}

impl Operation {
    fn name(&self) -> String {
        format!("{} {}", self.method, self.path)
    }

    async fn call(&self, app: &TestApp, credential: &Credential) -> Answer {
        let request = app.request(self.method.clone(), &self.path, credential);
        // A body that could be good: a refusal is for the credential.
        let request = match self.method {
            Method::GET | Method::DELETE => request,
            _ => request.json(&json!({})),
        };
        client::send(request).await
    }
}

/// All operations but the open ones, with the demo app's id and ids that are nobody's.
async fn operations(app: &TestApp) -> Vec<Operation> {
    let description = app.get("/openapi.json", &Credential::none()).await.json();
    let mut operations = Vec::new();
    for (path, item) in description["paths"].as_object().unwrap() {
        for method in item.as_object().unwrap().keys() {
            let Ok(method) = Method::from_bytes(method.to_uppercase().as_bytes()) else {
                continue;
            };
            if OPEN.contains(&(method.as_str(), path)) {
                continue;
            }
            let filled = path.replace("{appId}", &app.access.app_id.to_string());
            let filled: String = filled
                .split('/')
                .map(|part| {
                    if part.starts_with('{') {
                        Uuid::nil().to_string()
                    } else {
                        part.to_owned()
                    }
                })
                .collect::<Vec<_>>()
                .join("/");
            operations.push(Operation {
                method,
                path: filled,
                manages: path.starts_with("/v1/apps"),
                operates: path.starts_with("/v1/operator"),
                // Plugins decide about people: editors choose what is decided, admins who decides it.
                is_for_admins: path.contains("/plugin"),
            });
        }
    }
    assert!(operations.len() >= 19, "{} operations", operations.len());
    operations
}

async fn nobody_gets_in_without_a_good_credential(app: &mut TestApp) {
    let key = &app.access.write_key;
    let garbage = [
        "garbage",
        "a.b.c",
        "wk_",
        "sk_0000",
        "",
        "eyJhbGciOiJub25lIn0.e30.",
    ];
    let mut bad = vec![
        Credential::none(),
        Credential::none().and("authorization", "Basic dXNlcjpwYXNz"),
        Credential::none().and("authorization", "Bearer"),
        Credential::none().and("authorization", key),
        Credential::none().and("x-write-key", "garbage"),
    ];
    bad.extend(garbage.map(Credential::bearer));
    for operation in operations(app).await {
        for credential in &bad {
            let answer = operation.call(app, credential).await;
            assert_eq!(
                answer.status,
                401,
                "{} {credential:?}: {}",
                operation.name(),
                answer.text
            );
            answer.refused(401, "invalid_credentials");
            assert_eq!(answer.header("www-authenticate"), "Bearer");
        }
    }
}

async fn keys_do_not_manage_and_tokens_are_no_keys(app: &mut TestApp) {
    let access = &app.access;
    for operation in operations(app).await {
        let wrong = if operation.manages || operation.operates {
            [&access.write_key, &access.server_key, &access.api_token]
        } else {
            [&access.admin_token, &access.viewer_token, &access.api_token]
        };
        for token in wrong {
            let answer = operation.call(app, &Credential::bearer(token)).await;
            if answer.status == 422 && operation.path == "/v1/sdk/ingest" {
                // An API token could have a scope for the server-side shape: the body decides.
                continue;
            }
            assert_eq!(
                answer.status,
                403,
                "{} {token}: {}",
                operation.name(),
                answer.text
            );
            answer.refused(403, "insufficient_scope");
        }
    }
}

fn token(app: &TestApp, roles: &[(Uuid, Role)], lifetime: u64) -> String {
    let roles: BTreeMap<Uuid, Role> = roles.iter().copied().collect();
    let lifetime = std::time::Duration::from_secs(lifetime);
    let services = app.services();
    services
        .issuer
        .issue("test", roles, false, app.clock.now(), lifetime)
        .unwrap()
}

async fn other_workspaces_are_not_found(app: &mut TestApp) {
    let stranger = Credential::bearer(&token(app, &[(app.id(), Role::Admin)], 3600));
    let homeless = Credential::bearer(&token(app, &[], 3600));
    let unknown = app
        .path("")
        .replace(&app.access.app_id.to_string(), &app.id().to_string());
    let expected = without_id(&app.get(&format!("{unknown}/surveys"), &app.admin()).await);
    for operation in operations(app)
        .await
        .iter()
        .filter(|operation| operation.manages)
    {
        for credential in [&stranger, &homeless] {
            let answer = operation.call(app, credential).await;
            answer.refused(404, "not_found");
            assert_eq!(without_id(&answer), expected, "{}", operation.name());
        }
    }
    assert_eq!(
        app.get("/v1/apps/x/surveys", &app.admin()).await.status,
        404
    );
}

/// A refusal's body but for the request's id.
fn without_id(answer: &Answer) -> Value {
    let mut problem = answer.problem();
    problem.as_object_mut().unwrap().remove("requestId");
    problem
}

async fn viewers_read_and_do_not_write(app: &mut TestApp) {
    for operation in operations(app)
        .await
        .iter()
        .filter(|operation| operation.manages)
    {
        let answer = operation.call(app, &app.viewer()).await;
        if operation.method == Method::GET {
            assert!(
                [200, 404].contains(&answer.status),
                "{}: {}",
                operation.name(),
                answer.text
            );
        } else {
            assert_eq!(answer.status, 403, "{}: {}", operation.name(), answer.text);
            answer.refused(403, "insufficient_role");
        }
        let reads = operation.method == Method::GET;
        let editor = app.editor();
        let editors = (!operation.is_for_admins || reads).then_some(&editor);
        if editors.is_none() {
            let answer = operation.call(app, &editor).await;
            answer.refused(403, "insufficient_role");
        }
        for token in editors.into_iter().chain([&app.admin()]) {
            let answer = operation.call(app, token).await;
            assert!(
                ![401, 403].contains(&answer.status),
                "{}: {}",
                operation.name(),
                answer.text
            );
        }
    }
}

async fn only_operators_look_after_the_server(app: &mut TestApp) {
    let operations = operations(app).await;
    let operations = operations.iter().filter(|operation| operation.operates);
    let mut seen = 0;
    for operation in operations {
        seen += 1;
        for token in [app.viewer(), app.admin()] {
            let answer = operation.call(app, &token).await;
            answer.refused(403, "insufficient_role");
        }
        let answer = operation.call(app, &app.operator()).await;
        assert!(
            ![401, 403].contains(&answer.status),
            "{}: {}",
            operation.name(),
            answer.text
        );
    }
    assert!(seen >= 11, "{seen} operations");
}

async fn tokens_expire(app: &mut TestApp) {
    let short = Credential::bearer(&token(app, &[(app.access.workspace_id, Role::Viewer)], 600));
    let path = app.path("/surveys");
    app.get(&path, &short).await.ok();
    app.advance(600 + 59);
    app.get(&path, &short).await.ok();
    app.advance(5);
    app.get(&path, &short)
        .await
        .refused(401, "invalid_credentials");
}

async fn revoked_and_mistyped_keys_are_refused(app: &mut TestApp) {
    let key = app.key(nudge::apps::key::Kind::Write, &[]).await;
    let start = async |key: &str| {
        let body = json!({"anonymousId": "ada"});
        app.post("/v1/sdk/session", &Credential::bearer(key), &body)
            .await
    };
    start(&key).await.ok();

    for position in [3, key.len() / 2, key.len() - 1] {
        let mut mistyped = key.clone().into_bytes();
        mistyped[position] = if mistyped[position] == b'7' {
            b'8'
        } else {
            b'7'
        };
        let mistyped = String::from_utf8(mistyped).unwrap();
        start(&mistyped).await.refused(401, "invalid_credentials");
    }
    let now = app.clock.now();
    let mut tx = app.services().db.write().await.unwrap();
    tx.sql("UPDATE keys SET revoked_at = $1 WHERE name = 'test'")
        .bind(now)
        .execute()
        .await
        .unwrap();
    nudge::apps::store::touch(&mut tx, app.access.app_id, now)
        .await
        .unwrap();
    tx.commit().await.unwrap();
    app.services()
        .apps
        .refresh(app.access.app_id)
        .await
        .unwrap();
    start(&key).await.refused(401, "invalid_credentials");
    start(&app.access.write_key).await.ok();
}

async fn everything_that_needs_no_credential_is_known(app: &mut TestApp) {
    for path in [
        "/openapi.json",
        "/docs",
        "/.well-known/openid-configuration",
        "/.well-known/jwks.json",
        "/livez",
        "/readyz",
        "/metrics",
        "/v1/errors",
    ] {
        let answer = app.get(path, &Credential::none()).await;
        assert_eq!(answer.status, 200, "{path}");
        assert!(!answer.header("x-request-id").is_empty(), "{path}");
        assert_eq!(answer.header("x-content-type-options"), "nosniff", "{path}");
    }
    let codes = app.get("/v1/errors", &Credential::none()).await.ok();
    for code in codes.as_array().unwrap() {
        assert!(code["code"].is_string() && code["status"].is_u64() && code["meaning"].is_string());
    }
    app.get("/console", &Credential::none())
        .await
        .refused(404, "not_found");
}
