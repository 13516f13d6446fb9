//! Who may call what (contract 1, 13): every operation of the server's description with every kind of
//! credential. An operation that has no row in `host/src/openapi/operations.json` fails the test.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use nudge::openapi::operations::Caller::{
    self, Admin, Administrator, Anyone, Collector, Editor, Events, Member, Operator, Properties,
    Sdk, Subject, SubjectOrEvents, Transactional, Viewer,
};
use nudge::openapi::operations::Operation;
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

/// Let in: neither 401 nor 403. Whether the rest of the request is good is another test's subject.
const IN: u16 = 0;

/// An operation of the table, as one of its callers asks it.
struct Row {
    method: Method,
    path: String,
    by: Caller,
    body: &'static str,
}

/// Bodies of `ingest_events`, of which each takes a credential of its own.
const OF_SUBJECTS: &str = r#"{"context": {"anonymousId": "x"}, "events": [{}]}"#;
const OF_BACKENDS: &str = r#"{"userId": "ada", "events": [{}]}"#;

/// The rows of `openapi/operations.json`.
fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for operation in Operation::all().unwrap() {
        let (method, path) = operation.route.split_once(' ').unwrap();
        let ways: &[(Caller, &str)] = match operation.by {
            Caller::SubjectOrEvents => &[(Subject, OF_SUBJECTS), (Events, OF_BACKENDS)],
            by => &[(by, "{}")],
        };
        rows.extend(ways.iter().map(|(by, body)| Row {
            method: Method::from_bytes(method.as_bytes()).unwrap(),
            path: path.to_owned(),
            by: *by,
            body,
        }));
    }
    rows
}

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
const EXPECTED: &[(Caller, [u16; 16])] = &[
    //               none garb exp  rev  expk wk   wk+s sk   sk-  at   view edit adm  oper stra fore
    (Anyone,        [ IN,  IN,  IN,  IN,  IN,  IN,  IN,  IN,  IN,  IN,  IN,  IN,  IN,  IN,  IN,  IN]),
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

async fn call(app: &TestApp, row: &Row, credential: &Credential) -> Answer {
    let Row {
        method, path, body, ..
    } = row;
    // Each caller gets an app of its own to delete.
    let app_id = if (method, &**path) == (&Method::DELETE, "/v1/apps/{appId}") {
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
    let request = app.request(method.clone(), &filled.join("/"), credential);
    client::send(match *method {
        // It would not end; what it can't go on from, it refuses.
        Method::GET if path.ends_with("/stream") => request.header("last-event-id", "none"),
        Method::GET | Method::DELETE => request,
        _ => request
            .header("content-type", "application/json")
            .body(*body),
    })
    .await
}

/// The alternatives of credentials that together open the routes of a class, as the description names them.
fn declared(by: Caller) -> Vec<Value> {
    let token = |roles: &[&str]| vec![json!({"accessToken": roles})];
    match by {
        Anyone => Vec::new(),
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
        SubjectOrEvents => [declared(Subject), declared(Events)].concat(),
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
    for row in Operation::all().unwrap() {
        let (method, path) = row.route.split_once(' ').unwrap();
        let taken = declared(row.by);
        let operation = &description["paths"][path][method.to_lowercase()];
        assert_eq!(operation["operationId"], *row.operation, "{}", row.route);
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
    row: &Row,
    column: &str,
    session: &Credential,
    expected: u16,
) {
    let Row {
        method, path, by, ..
    } = row;
    let answer = call(app, row, session).await;
    let place = format!(
        "{method} {path} with a session of {column}: {}",
        answer.text
    );
    let looks_at_cookies = matches!(
        by,
        Anyone
            | Member
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
    let rows = rows();
    let listed: BTreeSet<(String, String)> = rows
        .iter()
        .map(|row| (row.method.to_string(), row.path.clone()))
        .collect();
    assert_eq!(
        described(app).await,
        listed,
        "the table has a row for each operation"
    );

    let credentials = Credentials::new(app).await;
    for row in &rows {
        let Row {
            method, path, by, ..
        } = row;
        let (_, expected) = EXPECTED.iter().find(|(listed, _)| listed == by).unwrap();
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
    let managed =
        |row: &&Row| row.path.contains("{appId}") && !matches!(row.by, Properties | Transactional);
    for row in rows().iter().filter(managed) {
        let answer = call(app, row, &stranger).await;
        assert_eq!(without_id(&answer), expected, "{} {}", row.method, row.path);
    }
    let malformed = app.get("/v1/apps/x/surveys", &app.admin()).await;
    assert_eq!(without_id(&malformed), expected);
}
