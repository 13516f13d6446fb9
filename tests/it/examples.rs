//! The examples of the description: each request is sent to a server, each answer fits its schema, and each change leaves the
//! entry in the audit log that its row names.
//!
//! `NUDGE_WRITE_EXAMPLES=1 cargo test -p tests --test it -- examples::on_sqlite` writes the answers of the description anew.

use std::collections::BTreeSet;
use std::path::Path;

use nudge::openapi::examples::{RecordedAnswers, fill, first_success};
use nudge::openapi::operations::Operation;
use nudge_campaigns::webhooks::EventType::Opened;
use reqwest::Method;
use serde_json::{Value, json};
use tests::client::{self, Answer};
use tests::schema::faults;
use tests::{Credential, TestApp, on_both_backends};
use uuid::Uuid;

use crate::audit_log::{entries, has_left_an_entry};
use crate::guests::{version, versioned};

on_both_backends!(every_operation_has_an_example_that_works);

/// Asks that the answers be written.
const WRITES: &str = "NUDGE_WRITE_EXAMPLES";
/// Where a webhook is sent to nobody, and how the description calls it.
const NOBODY_LISTENS: &str = "http://127.0.0.1:9/hook";
const WEBHOOK: &str = "https://hooks.example.com/nudge";
/// How the description calls the server.
const SERVER: &str = "https://nudge.example.com";
/// So many items of a list are shown.
const SHOWN: usize = 2;
/// Members that are secrets or signed.
const SECRETS: [&str; 4] = ["key", "secret", "subjectToken", "signature"];

async fn every_operation_has_an_example_that_works(app: &mut TestApp) {
    let document = app.get("/openapi.json", &Credential::none()).await.json();
    let examples = Operation::all().unwrap();
    let named: Vec<&str> = examples.iter().map(|example| &*example.operation).collect();
    let distinct: BTreeSet<&str> = named.iter().copied().collect();
    assert_eq!(named.len(), distinct.len(), "an operation has one example");
    let described: BTreeSet<&str> = operations(&document)
        .filter_map(|(_, _, operation)| operation["operationId"].as_str())
        .collect();
    assert_eq!(
        described, distinct,
        "each operation has its row in host/src/openapi/operations.json"
    );

    for (name, item) in document["webhooks"].as_object().unwrap() {
        let content = &item["post"]["requestBody"]["content"]["application/json"];
        let wrong = faults(&document, &content["schema"], &content["example"]);
        assert!(wrong.is_empty(), "{name}: {wrong:#?}");
        let at = format!("{}At", name.split('.').next_back().unwrap());
        let data = content["example"]["data"].as_object().unwrap();
        let tells = ["created", "rolled_back"]
            .iter()
            .any(|it| name.ends_with(it));
        assert!(tells || data.contains_key(&at), "{name}: {data:?}");
    }

    let mut known = facts(app);
    let mut recorded = known.clone();
    for (name, text) in [
        ("webhookUrl", WEBHOOK),
        ("writeKey", "wk_…"),
        ("plugin", "The bytes of plugin.wasm."),
        ("serverPlugin", "The bytes of plugin.wasm."),
    ] {
        recorded.insert(name.to_owned(), json!(text));
    }
    let mut wrong = Vec::new();
    for example in &examples {
        prepare(app, &example.operation, &mut known).await;
        let (path, method, operation) = operations(&document)
            .find(|(_, _, operation)| operation["operationId"] == *example.operation)
            .unwrap();
        let address = address(app, example, path, &known);
        if address.contains('{') {
            wrong.push(format!("{}: {address} is not known", example.operation));
            continue;
        }
        let before = entries(app, example).await;
        let answer = send(app, example, &address, method, operation, &known).await;
        let expected = match example.status {
            Some(status) => status.to_string(),
            None => first_success(operation).unwrap(),
        };
        if answer.status.to_string() != expected {
            wrong.push(format!(
                "{}: {} {}",
                example.operation, answer.status, answer.text
            ));
            continue;
        }
        if example.audit.is_some() {
            let body = example.body.as_ref();
            has_left_an_entry(app, example, body, &before).await;
        }
        let content = &operation["responses"][&expected]["content"];
        let Some(schema) = content["application/json"].get("schema") else {
            continue;
        };
        let body = answer.json();
        for fault in faults(&document, schema, &body) {
            wrong.push(format!("{}: {fault}", example.operation));
        }
        if let (Some(body), Some(schema)) = (
            &example.body,
            operation.pointer("/requestBody/content/application~1json/schema"),
        ) {
            for fault in faults(&document, schema, &fill(body, &known)) {
                wrong.push(format!("{}, its request: {fault}", example.operation));
            }
        }
        recorded.insert(example.operation.clone(), shown(&body, app));
        known.insert(example.operation.clone(), body);
        app.settle().await;
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    if std::env::var_os(WRITES).is_some() {
        for made in ["canary", "serverCanary", "letter", "message"] {
            recorded.insert(made.to_owned(), known[made].clone());
        }
        let text = serde_json::to_string_pretty(&recorded).unwrap() + "\n";
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../host/src/openapi/answers.json");
        std::fs::write(file, text).unwrap();
        return;
    }
    for (_, _, operation) in operations(&document) {
        has_its_example(operation, &recorded);
    }
}

/// The operations of the description: path, method, and the operation.
fn operations(document: &Value) -> impl Iterator<Item = (&str, &str, &Value)> {
    let paths = document["paths"].as_object().unwrap().iter();
    paths.flat_map(|(path, item)| {
        let operations = item.as_object().unwrap().iter();
        operations.map(move |(method, operation)| (&**path, &**method, operation))
    })
}

/// What a request can't know from answers.
fn facts(app: &TestApp) -> RecordedAnswers {
    let facts = json!({
        "appId": app.access.app_id, "workspaceId": app.access.workspace_id, "now": app.time(0),
        "webhookUrl": NOBODY_LISTENS, "writeKey": app.access.write_key,
        "plugin": "1", "serverPlugin": "2",
    });
    facts.as_object().cloned().unwrap()
}

/// Makes what an operation needs and no operation before it has made.
async fn prepare(app: &TestApp, operation: &str, known: &mut RecordedAnswers) {
    let (plugin, root, fact) = match operation {
        "promote_plugin" => (1, app.path("/plugins"), "canary"),
        "promote_server_plugin" => (2, "/v1/operator/plugins".to_owned(), "serverCanary"),
        "get_export" => {
            let id = fill(&json!("{{export_person.exportId}}"), known);
            let path = app.path(&format!("/gdpr/exports/{}", id.as_str().unwrap()));
            app.until("the export does not end", async || {
                app.get(&path, &app.admin()).await.ok()["status"] == "completed"
            })
            .await;
            return;
        }
        "get_user_called_properties" => {
            app.session("properties").await;
            return;
        }
        "acknowledge_dead_letter" => {
            let person = app.session("bob").await;
            let event = app.event(&person, "order_completed", &json!({"total": "80"}));
            let data = app.ingest(&person, &[event]).await.ok();
            let letter = json!({"id": data["errors"][0]["deadLetterId"]});
            known.insert("letter".to_owned(), letter);
            return;
        }
        "retry_webhook_message" => {
            app.transit(Uuid::from_u128(42), app.id(), &[Opened]).await;
            let messages: Vec<(Uuid,)> = app.rows("SELECT id FROM webhook_messages").await;
            known.insert("message".to_owned(), json!({"id": messages[0].0}));
            return;
        }
        _ => return,
    };
    let by = app.operator();
    app.upload(&root, &by, versioned(plugin, 2)).await.data(201);
    let path = format!("{root}/{}/activate", crate::guests::name(plugin));
    let body = json!({"version": version(2), "strategy": "canary", "percent": 5});
    app.post(&path, &by, &body).await.ok();
    known.insert(fact.to_owned(), json!({"version": version(2)}));
}

/// Where a request goes: its path, filled in, and its query.
fn address(app: &TestApp, example: &Operation, path: &str, known: &RecordedAnswers) -> String {
    let mut path = path.to_owned();
    for (name, value) in &example.path {
        let value = fill(value, known);
        path = path.replace(&format!("{{{name}}}"), value.as_str().unwrap());
    }
    path = path.replace("{appId}", &app.access.app_id.to_string());
    if let Some(url) = &example.url {
        let url = fill(url, known);
        url.as_str()
            .unwrap()
            .trim_start_matches(&app.access.base_url)
            .clone_into(&mut path);
    }
    // Nothing in them is to be encoded.
    let query: Vec<String> = example
        .query
        .iter()
        .map(|(name, value)| format!("{name}={}", fill(value, known).as_str().unwrap()))
        .collect();
    if query.is_empty() {
        path
    } else {
        format!("{path}?{}", query.join("&"))
    }
}

async fn send(
    app: &TestApp,
    example: &Operation,
    address: &str,
    method: &str,
    operation: &Value,
    known: &RecordedAnswers,
) -> Answer {
    let by = credential(app, &operation["security"][0], known);
    let method = Method::from_bytes(method.to_uppercase().as_bytes()).unwrap();
    let mut request = app.request(method, address, &by);
    let content = &operation["requestBody"]["content"];
    let body = example.body.as_ref().map(|body| fill(body, known));
    if let Some(text) = example.text(known) {
        request = request.header("content-type", "text/plain").body(text);
    } else if let (Some(body), Some(_)) = (&body, content.get("application/wasm")) {
        let plugin = body.as_str().unwrap().parse().unwrap();
        request = request
            .header("content-type", "application/wasm")
            .body(versioned(plugin, 1));
    } else if let Some(body) = &body {
        request = request.json(body);
    }
    if operation["responses"]["200"]["content"]
        .get("text/event-stream")
        .is_some()
    {
        // It never ends.
        let response = request.send().await.unwrap();
        return Answer {
            status: response.status().as_u16(),
            headers: response.headers().clone(),
            text: String::new(),
        };
    }
    client::send(request).await
}

/// The first credential that an operation takes.
fn credential(app: &TestApp, security: &Value, known: &RecordedAnswers) -> Credential {
    let takes = |scheme: &str| security.get(scheme).is_some();
    if takes("accessToken") {
        app.operator()
    } else if takes("subjectToken") {
        let token = fill(&json!("{{start_session.subjectToken}}"), known);
        app.sdk()
            .and("x-service-subject-token", token.as_str().unwrap())
    } else if takes("writeKey") {
        app.sdk()
    } else if takes("serverKey") {
        app.backend()
    } else if takes("apiToken") {
        Credential::bearer(&app.access.api_token)
    } else {
        Credential::none()
    }
}

/// An answer as the description shows it: short, and without secrets.
fn shown(value: &Value, app: &TestApp) -> Value {
    match value {
        Value::Array(items) => items
            .iter()
            .take(SHOWN)
            .map(|item| shown(item, app))
            .collect(),
        Value::Object(members) => {
            let show = |(key, value): (&String, &Value)| {
                let hidden = value.as_str().filter(|_| SECRETS.contains(&&**key));
                let value = match hidden {
                    Some(text) => text
                        .split_once('_')
                        .map_or("…".to_owned(), |(kind, _)| format!("{kind}_…"))
                        .into(),
                    None => shown(value, app),
                };
                (key.clone(), value)
            };
            members
                .iter()
                .map(show)
                .collect::<serde_json::Map<_, _>>()
                .into()
        }
        Value::String(text) => {
            let text = text
                .replace(&app.access.base_url, SERVER)
                .replace(NOBODY_LISTENS, WEBHOOK);
            let (text, signature) = text.split_once("signature=").unwrap_or((&text, ""));
            let end = if signature.is_empty() {
                ""
            } else {
                "signature=…"
            };
            format!("{text}{end}").into()
        }
        other => other.clone(),
    }
}

/// Whether something in an example is not filled in. `{{p.…}}` is a token of a message.
fn has_names(example: &Value) -> bool {
    example.to_string().replace("{{p.", "").contains("{{")
}

/// The description shows the request, and the answer that is a body of JSON.
fn has_its_example(operation: &Value, recorded: &RecordedAnswers) {
    let id = operation["operationId"].as_str().unwrap();
    if let Some(content) = operation.pointer("/requestBody/content") {
        for (media_type, described) in content.as_object().unwrap() {
            let example = &described["example"];
            assert!(!example.is_null(), "{id}: {media_type}");
            assert!(
                !has_names(example),
                "{id}: {example}; {WRITES}=1 writes the answers anew"
            );
        }
    }
    for parameter in operation["parameters"].as_array().into_iter().flatten() {
        let is_in_path = parameter["in"] == "path" && id != "download_export";
        assert!(
            !is_in_path || parameter.get("example").is_some(),
            "{id}: {parameter}"
        );
        let example = parameter.get("example").unwrap_or(&Value::Null);
        assert!(!has_names(example), "{id}: {parameter}");
    }
    if recorded.contains_key(id) {
        let responses = operation["responses"].as_object().unwrap();
        let shows = |response: &Value| {
            response
                .pointer("/content/application~1json/example")
                .is_some()
        };
        assert!(
            responses.values().any(shows),
            "{id}: there is no answer; {WRITES}=1 writes them"
        );
    }
}
