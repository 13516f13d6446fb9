//! Who may call what (contract 1, 13): every operation of the server's description with every kind of
//! credential. An operation that is not in the table fails the test.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use nudge_apps::key::Kind;
use nudge_http::issuer::Role;
use reqwest::Method;
use serde_json::{Value, json};
use tests::client::{self, Answer};
use tests::{Credential, TestApp, on_both_backends};
use uuid::Uuid;

on_both_backends!(
    every_operation_answers_every_credential_as_the_table_says,
    the_description_names_the_credential_that_each_operation_takes,
    other_workspaces_look_like_nothing,
);

/// What a route asks of its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    /// Nothing.
    Open,
    /// An access token.
    Member,
    /// An access token with the role of an admin in some workspace.
    Administrator,
    /// A role in the app's workspace, at least this one.
    Viewer,
    Editor,
    Admin,
    /// An access token that looks after the server.
    Operator,
    /// A write key.
    Sdk,
    /// A write key and a subject token of its app.
    Subject,
    /// A server key with the scope `events.write`.
    Events,
    /// An API token with the scope `users.properties.write`, of the app's workspace.
    Properties,
    /// A server key with the scope `push.transactional`, of the app.
    Transactional,
    /// A write key, or a server key with the scope `events.write`.
    Collector,
}
use Class::{
    Admin, Administrator, Collector, Editor, Events, Member, Open, Operator, Properties, Sdk,
    Subject, Transactional, Viewer,
};

/// Let in: neither 401 nor 403. Whether the rest of the request is good is another test's subject.
const IN: u16 = 0;

/// A row for each operation: method, path, class, and a body where `{}` would not do.
#[rustfmt::skip]
const OPERATIONS: &[(&str, &str, Class, &str)] = &[
    // Its credentials are in its body, which is plain text.
    ("POST",   "/v1/sdk/beacon",                              Open, ""),
    ("GET",    "/v1/errors",                                  Open, ""),
    ("GET",    "/v1/apps",                                    Member, ""),
    ("POST",   "/v1/apps",                                    Administrator, ""),
    ("GET",    "/v1/apps/{appId}",                            Viewer, ""),
    ("PATCH",  "/v1/apps/{appId}",                            Admin, ""),
    ("DELETE", "/v1/apps/{appId}",                            Admin, ""),
    ("GET",    "/v1/apps/{appId}/settings",                   Admin, ""),
    ("PATCH",  "/v1/apps/{appId}/settings",                   Admin, ""),
    ("GET",    "/v1/apps/{appId}/keys",                       Admin, ""),
    ("POST",   "/v1/apps/{appId}/keys",                       Admin, ""),
    ("DELETE", "/v1/apps/{appId}/keys/{keyId}",               Admin, ""),
    ("GET",    "/v1/apps/{appId}/identity-keys",              Admin, ""),
    ("POST",   "/v1/apps/{appId}/identity-keys",              Admin, ""),
    ("DELETE", "/v1/apps/{appId}/identity-keys/{kid}",        Admin, ""),
    ("GET",    "/v1/apps/{appId}/audit-log",                  Admin, ""),
    ("GET",    "/v1/apps/{appId}/surveys",                    Viewer, ""),
    ("POST",   "/v1/apps/{appId}/surveys",                    Editor, ""),
    ("GET",    "/v1/apps/{appId}/surveys/{surveyId}",         Viewer, ""),
    ("PATCH",  "/v1/apps/{appId}/surveys/{surveyId}",         Editor, ""),
    ("DELETE", "/v1/apps/{appId}/surveys/{surveyId}",         Editor, ""),
    ("GET",    "/v1/apps/{appId}/surveys/{surveyId}/analytics",    Viewer, ""),
    ("GET",    "/v1/apps/{appId}/surveys/{surveyId}/responses",    Viewer, ""),
    ("GET",    "/v1/apps/{appId}/surveys/{surveyId}/recipients",   Viewer, ""),
    ("GET",    "/v1/apps/{appId}/surveys/{surveyId}/attempts",     Viewer, ""),
    ("GET",    "/v1/apps/{appId}/surveys/{surveyId}/attempts/{attemptId}",  Viewer, ""),
    ("GET",    "/v1/apps/{appId}/segments",                   Viewer, ""),
    ("POST",   "/v1/apps/{appId}/segments",                   Editor, ""),
    ("POST",   "/v1/apps/{appId}/segments/preview",           Viewer, ""),
    ("GET",    "/v1/apps/{appId}/segments/{segmentId}",       Viewer, ""),
    ("PATCH",  "/v1/apps/{appId}/segments/{segmentId}",       Editor, ""),
    ("DELETE", "/v1/apps/{appId}/segments/{segmentId}",       Editor, ""),
    ("GET",    "/v1/apps/{appId}/segments/{segmentId}/members",  Viewer, ""),
    ("GET",    "/v1/apps/{appId}/segments/{segmentId}/history",  Viewer, ""),
    ("GET",    "/v1/apps/{appId}/events",                     Viewer, ""),
    ("GET",    "/v1/apps/{appId}/events/stream",              Viewer, ""),
    ("GET",    "/v1/apps/{appId}/event-definitions",          Viewer, ""),
    ("POST",   "/v1/apps/{appId}/event-definitions",          Editor, ""),
    ("GET",    "/v1/apps/{appId}/event-definitions/{id}",     Viewer, ""),
    ("PATCH",  "/v1/apps/{appId}/event-definitions/{id}",     Editor, ""),
    ("DELETE", "/v1/apps/{appId}/event-definitions/{id}",     Editor, ""),
    ("GET",    "/v1/apps/{appId}/dead-letters",               Viewer, ""),
    ("GET",    "/v1/apps/{appId}/dead-letters/{id}",          Viewer, ""),
    ("DELETE", "/v1/apps/{appId}/dead-letters/{id}",          Editor, ""),
    ("POST",   "/v1/apps/{appId}/dead-letters/{id}/replay",   Editor, ""),
    ("POST",   "/v1/apps/{appId}/event-definitions/{id}/dry-run",  Editor, ""),
    ("POST",   "/v1/apps/{appId}/event-definitions/infer",    Editor, ""),
    ("GET",    "/v1/apps/{appId}/dead-letters/summary",       Viewer, ""),
    ("POST",   "/v1/apps/{appId}/dead-letters/replay",        Editor, ""),
    ("POST",   "/v1/apps/{appId}/dead-letters/acknowledge",   Editor, ""),
    ("GET",    "/v1/apps/{appId}/stats",                      Viewer, ""),
    ("GET",    "/v1/apps/{appId}/jobs/{id}",                  Viewer, ""),
    ("GET",    "/v1/apps/{appId}/plugins",                         Viewer, ""),
    ("POST",   "/v1/apps/{appId}/plugins",                         Admin, ""),
    ("GET",    "/v1/apps/{appId}/plugins/{name}",                  Viewer, ""),
    ("DELETE", "/v1/apps/{appId}/plugins/{name}",                  Admin, ""),
    ("GET",    "/v1/apps/{appId}/plugins/{name}/versions/{version}",  Viewer, ""),
    ("DELETE", "/v1/apps/{appId}/plugins/{name}/versions/{version}",  Admin, ""),
    ("POST",   "/v1/apps/{appId}/plugins/{name}/activate",         Admin, ""),
    ("POST",   "/v1/apps/{appId}/plugins/{name}/promote",          Admin, ""),
    ("POST",   "/v1/apps/{appId}/plugins/{name}/rollback",         Admin, ""),
    ("GET",    "/v1/apps/{appId}/plugin-slots",                    Viewer, ""),
    ("PUT",    "/v1/apps/{appId}/plugin-slots/{kind}",             Admin, ""),
    ("DELETE", "/v1/apps/{appId}/plugin-slots/{kind}",             Admin, ""),
    ("GET",    "/v1/operator/audit-log",                           Operator, ""),
    ("GET",    "/v1/operator/plugins",                             Operator, ""),
    ("POST",   "/v1/operator/plugins",                             Operator, ""),
    ("GET",    "/v1/operator/plugins/{name}",                      Operator, ""),
    ("DELETE", "/v1/operator/plugins/{name}",                      Operator, ""),
    ("GET",    "/v1/operator/plugins/{name}/versions/{version}",   Operator, ""),
    ("DELETE", "/v1/operator/plugins/{name}/versions/{version}",   Operator, ""),
    ("POST",   "/v1/operator/plugins/{name}/activate",             Operator, ""),
    ("POST",   "/v1/operator/plugins/{name}/promote",              Operator, ""),
    ("POST",   "/v1/operator/plugins/{name}/rollback",             Operator, ""),
    ("GET",    "/v1/operator/plugin-slots",                        Operator, ""),
    ("PUT",    "/v1/operator/plugin-slots/{kind}",                 Operator, ""),
    ("DELETE", "/v1/operator/plugin-slots/{kind}",                 Operator, ""),
    ("GET",    "/v1/apps/{appId}/plugins/{name}/metrics",          Viewer, ""),
    ("GET",    "/v1/apps/{appId}/plugins/{name}/logs",             Viewer, ""),
    ("GET",    "/v1/operator/plugins/{name}/metrics",              Operator, ""),
    ("GET",    "/v1/operator/plugins/{name}/logs",                 Operator, ""),
    ("GET",    "/v1/apps/{appId}/users",                      Viewer, ""),
    ("GET",    "/v1/apps/{appId}/users/{anonymousId}",        Viewer, ""),
    ("GET",    "/v1/apps/{appId}/users/properties",           Viewer, ""),
    ("GET",    "/v1/apps/{appId}/users/{anonymousId}/events", Viewer, ""),
    ("PATCH",  "/v1/apps/{appId}/users/properties",           Properties, ""),
    ("POST",   "/v1/sdk/user-properties",                     Subject, ""),
    ("POST",   "/v1/apps/{appId}/gdpr/delete",                Admin, ""),
    ("GET",    "/v1/apps/{appId}/gdpr/deletions/{jobId}",     Admin, ""),
    ("GET",    "/v1/apps/{appId}/gdpr/jobs",                  Admin, ""),
    ("POST",   "/v1/apps/{appId}/gdpr/export",                Admin, ""),
    ("GET",    "/v1/apps/{appId}/gdpr/exports/{exportId}",    Admin, ""),
    ("GET",    "/v1/exports/{exportId}/archive",              Open, ""),
    ("GET",    "/v1/apps/{appId}/decisions",                       Viewer, ""),
    ("GET",    "/v1/apps/{appId}/instructions",                    Viewer, ""),
    ("GET",    "/v1/apps/{appId}/attempts",                        Viewer, ""),
    ("POST",   "/v1/apps/{appId}/decisions/{id}/rerun",            Editor, ""),
    ("GET",    "/v1/apps/{appId}/explain",                         Viewer, ""),
    ("POST",   "/v1/apps/{appId}/plugins/{name}/versions/{version}/test",  Admin, ""),
    ("POST",   "/v1/operator/plugins/{name}/versions/{version}/test",  Operator, ""),
    ("POST",   "/v1/apps/{appId}/plugins/{name}/versions/{version}/backtest",  Admin, ""),
    ("POST",   "/v1/operator/plugins/{name}/versions/{version}/backtest",  Operator, ""),
    ("GET",    "/v1/apps/{appId}/users/{anonymousId}/plugin-state",  Viewer, ""),
    ("DELETE", "/v1/apps/{appId}/users/{anonymousId}/plugin-state",  Admin, ""),
    ("GET",    "/v1/apps/{appId}/push/webhooks",                             Admin, ""),
    ("POST",   "/v1/apps/{appId}/push/webhooks",                             Admin, ""),
    ("GET",    "/v1/apps/{appId}/push/webhooks/{webhookId}",                 Admin, ""),
    ("PATCH",  "/v1/apps/{appId}/push/webhooks/{webhookId}",                 Admin, ""),
    ("DELETE", "/v1/apps/{appId}/push/webhooks/{webhookId}",                 Admin, ""),
    ("POST",   "/v1/apps/{appId}/push/webhooks/{webhookId}/rotate-secret",   Admin, ""),
    ("POST",   "/v1/apps/{appId}/push/webhooks/{webhookId}/test",            Admin, ""),
    ("POST",   "/v1/apps/{appId}/push/webhooks/{webhookId}/enable",          Admin, ""),
    ("GET",    "/v1/apps/{appId}/push/webhooks/{webhookId}/attempts",        Admin, ""),
    ("POST",   "/v1/apps/{appId}/push/webhooks/{webhookId}/recover",         Admin, ""),
    ("POST",   "/v1/apps/{appId}/push/webhooks/{webhookId}/messages/{messageId}/retry", Admin, ""),
    ("GET",    "/v1/apps/{appId}/campaigns",                  Viewer, ""),
    ("POST",   "/v1/apps/{appId}/campaigns",                  Editor, ""),
    ("GET",    "/v1/apps/{appId}/campaigns/{campaignId}",     Viewer, ""),
    ("PATCH",  "/v1/apps/{appId}/campaigns/{campaignId}",     Editor, ""),
    ("DELETE", "/v1/apps/{appId}/campaigns/{campaignId}",     Editor, ""),
    ("GET",    "/v1/apps/{appId}/campaigns/{campaignId}/analytics",  Viewer, ""),
    ("GET",    "/v1/apps/{appId}/campaigns/{campaignId}/recipients", Viewer, ""),
    ("POST",   "/v1/apps/{appId}/campaigns/{campaignId}/test-send",  Editor, ""),
    ("POST",   "/v1/apps/{appId}/personalization/preview",    Viewer, ""),
    ("POST",   "/v1/apps/{appId}/push/transactional",         Transactional, ""),
    ("GET",    "/v1/apps/{appId}/push/deliveries",            Viewer, ""),
    ("GET",    "/v1/apps/{appId}/push/deliveries/{deliveryId}",  Viewer, ""),
    ("POST",   "/v1/sdk/push/receipts",                       Subject, ""),
    ("GET",    "/v1/apps/{appId}/push/credentials",           Admin, ""),
    ("POST",   "/v1/apps/{appId}/push/credentials",           Admin, ""),
    ("DELETE", "/v1/apps/{appId}/push/credentials/{credId}",  Admin, ""),
    ("POST",   "/v1/sdk/push-tokens",                         Subject, ""),
    ("DELETE", "/v1/sdk/push-tokens/{deviceId}",              Subject, ""),
    ("POST",   "/v1/sdk/session",                             Sdk, ""),
    ("DELETE", "/v1/sdk/session",                             Subject, ""),
    ("POST",   "/v1/sdk/consent",                             Subject, ""),
    ("POST",   "/v1/sdk/ingest",                              Subject, r#"{"context": {"anonymousId": "x"}, "events": [{}]}"#),
    ("POST",   "/v1/sdk/ingest",                              Events, r#"{"userId": "ada", "events": [{}]}"#),
    ("POST",   "/v1/compat/v1/{kind}",                        Collector, ""),
    ("POST",   "/v1/batch",                                   Collector, ""),
    ("GET",    "/v1/sdk/instructions",                        Subject, ""),
    ("POST",   "/v1/sdk/instructions/ack",                    Subject, ""),
    ("POST",   "/v1/sdk/surveys/{surveyId}/attempts",         Subject, ""),
    ("POST",   "/v1/sdk/attempts/{attemptId}/answers",        Subject, ""),
    ("POST",   "/v1/sdk/attempts/{attemptId}/complete",       Subject, ""),
    ("POST",   "/v1/sdk/attempts/{attemptId}/dismiss",        Subject, ""),
];

/// The credentials, in the order of the columns below. The first three of access tokens are of no use to
/// anybody; `operator` has no role in any workspace, `stranger` is the admin of another one, and `foreign` is
/// the write key of another app with a subject token of this one.
const CREDENTIALS: [&str; 16] = [
    "none",
    "garbage",
    "expired token",
    "revoked key",
    "expired key",
    "write key",
    "write key and subject",
    "server key",
    "server key without scopes",
    "api token",
    "viewer",
    "editor",
    "admin",
    "operator",
    "stranger",
    "foreign",
];

#[rustfmt::skip]
const EXPECTED: &[(Class, [u16; 16])] = &[
    //               none garb exp  rev  expk wk   wk+s sk   sk-  at   view edit adm  oper stra fore
    (Open,          [ IN,  IN,  IN,  IN,  IN,  IN,  IN,  IN,  IN,  IN,  IN,  IN,  IN,  IN,  IN,  IN]),
    (Member,        [401, 401, 401, 401, 401, 403, 403, 403, 403, 403,  IN,  IN,  IN,  IN,  IN, 403]),
    (Administrator, [401, 401, 401, 401, 401, 403, 403, 403, 403, 403, 403, 403,  IN, 403,  IN, 403]),
    (Viewer,        [401, 401, 401, 401, 401, 403, 403, 403, 403, 403,  IN,  IN,  IN, 404, 404, 403]),
    (Editor,        [401, 401, 401, 401, 401, 403, 403, 403, 403, 403, 403,  IN,  IN, 404, 404, 403]),
    (Admin,         [401, 401, 401, 401, 401, 403, 403, 403, 403, 403, 403, 403,  IN, 404, 404, 403]),
    (Operator,      [401, 401, 401, 401, 401, 403, 403, 403, 403, 403, 403, 403, 403,  IN, 403, 403]),
    (Sdk,           [401, 401, 401, 401, 401,  IN,  IN, 403, 403, 403, 403, 403, 403, 403, 403,  IN]),
    (Subject,       [401, 401, 401, 401, 401, 401,  IN, 403, 403, 403, 403, 403, 403, 403, 403, 401]),
    (Events,        [401, 401, 401, 401, 401, 401, 401,  IN, 403, 403, 403, 403, 403, 403, 403, 401]),
    (Transactional, [401, 401, 401, 401, 401, 403, 403,  IN, 403, 403, 403, 403, 403, 403, 403, 403]),
    (Collector,     [401, 401, 401, 401, 401,  IN,  IN,  IN, 403, 403, 403, 403, 403, 403, 403,  IN]),
    (Properties,    [401, 401, 401, 401, 401, 403, 403, 403, 403,  IN, 403, 403, 403, 403, 403, 403]),
];

/// Texts that are no credential.
const GARBAGE: [&str; 6] = [
    "garbage",
    "a.b.c",
    "wk_",
    "sk_0000",
    "",
    "eyJhbGciOiJub25lIn0.e30.",
];

/// One of each kind of credential.
struct Credentials {
    sessions: BTreeMap<&'static str, Credential>,
    expired_token: String,
    revoked: String,
    expired_key: String,
    scopeless: String,
    operator: String,
    stranger: String,
    foreign: String,
}

impl Credentials {
    async fn new(app: &TestApp) -> Self {
        let (_, foreign) = app
            .another_app(app.access.workspace_id, Kind::Write, &[])
            .await;
        let revoked = app
            .make_key(&json!({"kind": "server", "name": "r", "scopes": ["events.write"]}))
            .await;
        let expiring = json!({"kind": "write", "name": "e", "expiresAt": app.time(1)});
        let expiring = app.make_key(&expiring).await;
        let path = app.path(&format!("/keys/{}", revoked["id"].as_str().unwrap()));
        app.delete(&path, &app.admin()).await.data(204);
        let expired_token = issue(app, &[(app.access.workspace_id, Role::Admin)], false, 1);
        // Both have expired, tokens with their leeway; the tokens of the demo app are good for a month.
        app.advance(120);
        let workspace = app.access.workspace_id;
        let mut sessions = BTreeMap::new();
        for (column, roles, operator) in [
            ("viewer", &[(workspace, Role::Viewer)][..], false),
            ("editor", &[(workspace, Role::Editor)], false),
            ("admin", &[(workspace, Role::Admin)], false),
            ("operator", &[], true),
            ("stranger", &[(app.id(), Role::Admin)], false),
        ] {
            let code = app.console_link(roles, operator).await;
            sessions.insert(column, app.signed_in_by(&code).await);
        }
        let text = |key: Value| key["key"].as_str().unwrap().to_owned();
        Self {
            sessions,
            expired_token,
            revoked: text(revoked),
            expired_key: text(expiring),
            scopeless: app.key(Kind::Server, &[]).await,
            operator: issue(app, &[], true, 3600),
            stranger: issue(app, &[(app.id(), Role::Admin)], false, 3600),
            foreign,
        }
    }

    /// The credentials of a column: one, or several that are alike. A session of its own where one is needed,
    /// since routes end sessions.
    async fn of(&self, app: &TestApp, column: &str) -> Vec<Credential> {
        let access = &app.access;
        let one = |token: &str| vec![Credential::bearer(token)];
        match column {
            "none" => vec![Credential::none()],
            "garbage" => {
                let mut garbage: Vec<Credential> = GARBAGE.map(Credential::bearer).into();
                garbage.push(Credential::none().and("authorization", "Basic dXNlcjpwYXNz"));
                garbage.push(Credential::none().and("authorization", &access.write_key));
                garbage.push(Credential::none().and("x-write-key", "garbage"));
                garbage
            }
            "expired token" => one(&self.expired_token),
            "revoked key" => one(&self.revoked),
            "expired key" => one(&self.expired_key),
            "write key" => one(&access.write_key),
            "write key and subject" => {
                let session = app.session(&app.id().to_string()).await;
                vec![session.credential()]
            }
            "server key" => one(&access.server_key),
            "server key without scopes" => one(&self.scopeless),
            "api token" => one(&access.api_token),
            "viewer" => one(&access.viewer_token),
            "editor" => one(&access.editor_token),
            "admin" => one(&access.admin_token),
            "operator" => one(&self.operator),
            "stranger" => one(&self.stranger),
            "foreign" => {
                let session = app.session("ada").await;
                let foreign = Credential::bearer(&self.foreign);
                vec![foreign.and("x-service-subject-token", &session.token)]
            }
            other => unreachable!("{other}"),
        }
    }
}

fn issue(app: &TestApp, roles: &[(Uuid, Role)], operator: bool, seconds: u64) -> String {
    let roles: BTreeMap<Uuid, Role> = roles.iter().copied().collect();
    let lifetime = Duration::from_secs(seconds);
    let now = app.clock.now();
    let issuer = &app.services().issuer;
    issuer
        .issue("matrix", roles, operator, now, lifetime)
        .unwrap()
}

async fn call(app: &TestApp, row: &(&str, &str, Class, &str), credential: &Credential) -> Answer {
    let (method, path, _, body) = *row;
    // Each caller gets an app of its own to delete.
    let app_id = if (method, path) == ("DELETE", "/v1/apps/{appId}") {
        let workspace_id = app.access.workspace_id;
        app.another_app(workspace_id, Kind::Write, &[]).await.0
    } else {
        app.access.app_id
    };
    let filled: Vec<String> = path
        .split('/')
        .map(|part| match part {
            "{appId}" => app_id.to_string(),
            part if part.starts_with('{') => Uuid::nil().to_string(),
            part => part.to_owned(),
        })
        .collect();
    let method = Method::from_bytes(method.as_bytes()).unwrap();
    let request = app.request(method.clone(), &filled.join("/"), credential);
    let body = if body.is_empty() { "{}" } else { body };
    client::send(match method {
        // It would not end; what it can't go on from, it refuses.
        Method::GET if path.ends_with("/stream") => request.header("last-event-id", "none"),
        Method::GET | Method::DELETE => request,
        _ => request
            .header("content-type", "application/json")
            .body(body.to_owned()),
    })
    .await
}

/// The alternatives of credentials that together open the routes of a class, as the description names them.
fn declared(class: Class) -> Vec<Value> {
    let token = |roles: &[&str]| vec![json!({"accessToken": roles})];
    match class {
        Open => Vec::new(),
        Member => token(&[]),
        Administrator | Admin => token(&["admin"]),
        Viewer => token(&["viewer"]),
        Editor => token(&["editor"]),
        Operator => token(&["operator"]),
        Sdk => vec![
            json!({"writeKey": []}),
            json!({"writeKey": [], "subjectToken": []}),
        ],
        Subject => vec![json!({"writeKey": [], "subjectToken": []})],
        Events => vec![json!({"serverKey": ["events.write"]})],
        Transactional => vec![json!({"serverKey": ["push.transactional"]})],
        Properties => vec![json!({"apiToken": ["users.properties.write"]})],
        Collector => vec![
            json!({"writeKey": []}),
            json!({"serverKey": ["events.write"]}),
        ],
    }
}

/// The table is what the test before this one finds true of the routes.
async fn the_description_names_the_credential_that_each_operation_takes(app: &mut TestApp) {
    let description = app.get("/openapi.json", &Credential::none()).await.json();
    let mut taken: BTreeMap<(&str, &str), Vec<Value>> = BTreeMap::new();
    for (method, path, class, _) in OPERATIONS {
        taken
            .entry((method, path))
            .or_default()
            .extend(declared(*class));
    }
    for ((method, path), taken) in taken {
        let operation = &description["paths"][path][method.to_lowercase()];
        let declared = operation["security"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let both = [&declared, &taken]
            .map(|all| all.iter().map(Value::to_string).collect::<BTreeSet<_>>());
        assert_eq!(both[0], both[1], "{method} {path}");
        for scheme in declared
            .iter()
            .filter_map(Value::as_object)
            .flat_map(|one| one.keys())
        {
            let scheme = &description["components"]["securitySchemes"][scheme];
            assert!(scheme.is_object(), "{method} {path}");
        }
    }
    let fields = |schema: &str| {
        let properties = description["components"]["schemas"][schema]["properties"].as_object();
        properties.unwrap().keys().cloned().collect::<BTreeSet<_>>()
    };
    for (schema, field) in [
        ("IngestContext", "deviceId"),
        ("IngestContext", "sessionId"),
        ("SessionRequest", "sdkVersion"),
    ] {
        assert!(fields(schema).contains(field), "{schema}.{field}");
    }
}

/// The operations of the server's description.
async fn described(app: &TestApp) -> BTreeSet<(String, String)> {
    let description = app.get("/openapi.json", &Credential::none()).await.json();
    let mut operations = BTreeSet::new();
    for (path, item) in description["paths"].as_object().unwrap() {
        for method in item.as_object().unwrap().keys() {
            operations.insert((method.to_uppercase(), path.clone()));
        }
    }
    operations
}

/// A session opens what the token of its column does; the routes of SDKs and servers look at no cookie.
async fn check_session(
    app: &TestApp,
    row: &(&str, &str, Class, &str),
    column: &str,
    session: &Credential,
    expected: u16,
) {
    let (method, path, class, _) = row;
    let answer = call(app, row, session).await;
    let place = format!(
        "{method} {path} with a session of {column}: {}",
        answer.text
    );
    let looks_at_cookies = matches!(
        class,
        Open | Member
            | Administrator
            | Viewer
            | Editor
            | Admin
            | Operator
            | Properties
            | Transactional
    );
    let expected = if looks_at_cookies { expected } else { 401 };
    if expected == IN {
        assert!(![401, 403, 421].contains(&answer.status), "{place}");
        assert!(answer.status < 500, "{place}");
    } else {
        assert_eq!(answer.status, expected, "{place}");
    }
}

async fn every_operation_answers_every_credential_as_the_table_says(app: &mut TestApp) {
    let listed: BTreeSet<(String, String)> = OPERATIONS
        .iter()
        .map(|(method, path, ..)| ((*method).to_owned(), (*path).to_owned()))
        .collect();
    assert_eq!(
        described(app).await,
        listed,
        "the table has a row for each operation"
    );

    let credentials = Credentials::new(app).await;
    for row in OPERATIONS {
        let (method, path, class, _) = row;
        let (_, expected) = EXPECTED.iter().find(|(listed, _)| listed == class).unwrap();
        for (column, expected) in CREDENTIALS.iter().zip(expected) {
            if let Some(session) = credentials.sessions.get(column) {
                check_session(app, row, column, session, *expected).await;
            }
            for credential in credentials.of(app, column).await {
                let answer = call(app, row, &credential).await;
                let place = format!("{method} {path} with {column}: {}", answer.text);
                if *expected == IN {
                    assert!(![401, 403].contains(&answer.status), "{place}");
                    assert!(answer.status < 500, "{place}");
                    continue;
                }
                assert_eq!(answer.status, *expected, "{place}");
                let code = answer.problem()["code"].as_str().unwrap().to_owned();
                let codes: &[&str] = match expected {
                    401 => &["invalid_credentials", "subject_token_required"],
                    403 => &["insufficient_role", "insufficient_scope"],
                    _ => &["not_found"],
                };
                assert!(codes.contains(&code.as_str()), "{place}");
                let problem = answer.problem();
                let says = problem["detail"]
                    .as_str()
                    .unwrap()
                    .starts_with("this takes ");
                assert!(says || *expected != 403, "{place}");
                if *expected == 401 {
                    assert_eq!(answer.header("www-authenticate"), "Bearer", "{place}");
                }
            }
        }
    }
}

/// What is in another workspace answers as what is nowhere, to the letter.
async fn other_workspaces_look_like_nothing(app: &mut TestApp) {
    let without_id = |answer: &Answer| {
        let mut problem = answer.problem();
        problem.as_object_mut().unwrap().remove("requestId");
        problem
    };
    let unknown = format!("/v1/apps/{}/surveys", app.id());
    let expected = without_id(&app.get(&unknown, &app.admin()).await);
    let stranger = issue(app, &[(app.id(), Role::Admin)], true, 3600);
    let stranger = Credential::bearer(&stranger);
    let managed = |row: &&(&str, &str, Class, &str)| {
        row.1.contains("{appId}") && !matches!(row.2, Properties | Transactional)
    };
    for row in OPERATIONS.iter().filter(managed) {
        let answer = call(app, row, &stranger).await;
        assert_eq!(without_id(&answer), expected, "{} {}", row.0, row.1);
    }
    let malformed = app.get("/v1/apps/x/surveys", &app.admin()).await;
    assert_eq!(without_id(&malformed), expected);
}
