//! What the document says of values that plugins read, of webhooks, and of the roles that operations take. The types of
//! the server know such values as JSON alone.

use nudge_campaigns::webhooks::EventType;
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// The shapes, and the members that have them wherever their type is only JSON.
#[derive(Deserialize)]
struct Shapes {
    schemas: Map<String, Value>,
    members: Map<String, Value>,
}

/// The beginnings of references to documents that readers do not have.
const REFERENCES: [&str; 2] = [" (contract ", " (specification "];

/// Routes of an app that take the role of an admin, whatever their method.
const ADMINS: [&str; 7] = [
    "/settings",
    "/keys",
    "/identity-keys",
    "/audit-log",
    "/gdpr/",
    "/push/webhooks",
    "/push/credentials",
];
/// Routes of an app of which changes take the role of an admin.
const CHANGED_BY_ADMINS: [&str; 3] = [
    "/plugins",
    "/plugin-slots",
    "/users/{anonymousId}/plugin-state",
];
/// Requests with a body that change nothing.
const QUESTIONS: [&str; 2] = ["/segments/preview", "/personalization/preview"];

/// Completes the document.
pub(super) fn add(document: &mut Value) -> serde_json::Result<()> {
    let Shapes { schemas, members } = serde_json::from_str(include_str!("shapes.json"))?;
    if let Some(all) = members_of(document, "/components/schemas") {
        for schema in all.values_mut() {
            shape(schema, &members);
        }
        all.extend(schemas);
    }
    if let Some(all) = document.as_object_mut() {
        all.insert("webhooks".to_owned(), webhooks());
    }
    for (path, item) in members_of(document, "/paths").into_iter().flatten() {
        for (method, operation) in item.as_object_mut().into_iter().flatten() {
            if let Some(roles) = operation.pointer_mut("/security/0/accessToken") {
                *roles = role(path, method).into_iter().collect();
            }
        }
    }
    without_references(document);
    mend_tests(document);
    Ok(())
}

/// The members of the object at a place.
fn members_of<'v>(value: &'v mut Value, place: &str) -> Option<&'v mut Map<String, Value>> {
    value.pointer_mut(place)?.as_object_mut()
}

/// Gives members that are only JSON their shapes.
fn shape(schema: &mut Value, members: &Map<String, Value>) {
    for (name, member) in members_of(schema, "/properties").into_iter().flatten() {
        let known = members.get(name).filter(|_| is_open(member));
        if let Some(shape) = known.and_then(Value::as_str) {
            let description = member.get("description").cloned();
            *member = json!({"oneOf": [reference(shape), {"type": "null"}]});
            if let (Some(text), Some(member)) = (description, member.as_object_mut()) {
                member.insert("description".to_owned(), text);
            }
        } else if name == "properties" && member.get("items") == Some(&json!({})) {
            if let Some(items) = member.get_mut("items") {
                *items = reference("PropertyDefinition");
            }
        } else {
            shape(member, members);
        }
    }
    if let Some(items) = schema.get_mut("items") {
        shape(items, members);
    }
    for several in ["oneOf", "allOf", "anyOf"] {
        let parts = schema.get_mut(several).and_then(Value::as_array_mut);
        for part in parts.into_iter().flatten() {
            shape(part, members);
        }
    }
}

/// Whether a schema says nothing of the value, or only that it is an object.
fn is_open(schema: &Value) -> bool {
    let says = [
        "$ref",
        "oneOf",
        "allOf",
        "anyOf",
        "enum",
        "properties",
        "additionalProperties",
    ];
    let kind = schema.get("type");
    let is_object =
        kind.is_some_and(|kind| *kind == "object" || *kind == json!(["object", "null"]));
    (kind.is_none() || is_object) && says.iter().all(|key| schema.get(key).is_none())
}

fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

/// The role that an operation takes.
fn role(path: &str, method: &str) -> Option<&'static str> {
    if path.starts_with("/v1/operator") {
        return Some("operator");
    }
    let changes = method != "get";
    if path == "/v1/apps" {
        return changes.then_some("admin");
    }
    let of_app = path.strip_prefix("/v1/apps/{appId}")?;
    let starts = |prefixes: &[&str]| prefixes.iter().any(|prefix| of_app.starts_with(prefix));
    let by_admins = of_app.is_empty() || starts(&CHANGED_BY_ADMINS);
    Some(if starts(&ADMINS) || changes && by_admins {
        "admin"
    } else if changes && !QUESTIONS.contains(&of_app) {
        "editor"
    } else {
        "viewer"
    })
}

/// What endpoints of customers are sent.
fn webhooks() -> Value {
    let header = |name: &str, description: &str| json!({"name": name, "in": "header", "required": true, "description": description, "schema": {"type": "string"}});
    let parameters = json!([
        header("X-Service-Event", "The event's type."),
        header(
            "X-Service-Signature",
            "`t=<unix seconds>,v1=<signature>`: base64url of HMAC-SHA256 with the secret's 32 bytes over `<t>.<body>`. While a secret is rotated there are two `v1`. Refuse what is more than 5 minutes from now."
        ),
        header(
            "X-Service-Delivery",
            "The message's id, the same on each retry."
        ),
        header("X-Service-Attempt", "Which attempt it is, from 1."),
        header("webhook-id", "As of Standard Webhooks: the message's id."),
        header(
            "webhook-timestamp",
            "As of Standard Webhooks: seconds since 1970."
        ),
        header(
            "webhook-signature",
            "As of Standard Webhooks: `v1,<signature>`."
        ),
    ]);
    let of_type = |event: &EventType| {
        let name = event.name();
        let data = match name.split_once('.').map_or(name, |(group, _)| group) {
            "plugin" => "WebhookPluginData",
            "dead_letter" => "WebhookDeadLetterData",
            _ => "WebhookDeliveryData",
        };
        let own = json!({"type": "object", "properties": {"event": {"const": name}, "data": reference(data)}});
        let body = json!({"allOf": [reference("WebhookMessage"), own]});
        let post = json!({
            "summary": format!("`{name}`"), "operationId": format!("webhook_{}", name.replace('.', "_")), "tags": ["webhooks"],
            "parameters": parameters, "requestBody": {"required": true, "content": {"application/json": {"schema": body}}},
            "responses": {
                "2XX": {"description": "It is taken."},
                "default": {"description": "408, 429, 5xx and no answer within 10 seconds: it is sent again, five times in all; `Retry-After` of a 429 is honoured. Any other status: it is not."},
            },
        });
        (name.to_owned(), json!({"post": post}))
    };
    EventType::ALL
        .iter()
        .map(of_type)
        .collect::<Map<_, _>>()
        .into()
}

/// Takes references to other documents out of all descriptions.
fn without_references(value: &mut Value) {
    match value {
        Value::String(text) => {
            for beginning in REFERENCES {
                while let Some(start) = text.find(beginning)
                    && let Some(length) = text[start..].find(')')
                {
                    text.replace_range(start..=start + length, "");
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(without_references),
        Value::Object(members) => members.values_mut().for_each(without_references),
        _ => {}
    }
}

/// A test of a push message fits the view of an in-app message's too, which has no member of its own that is always there.
fn mend_tests(value: &mut Value) {
    match value {
        Value::Object(members) => {
            let name = reference("InAppTestView");
            let is_test = |view: &Value| view.get("$ref") == name.get("$ref");
            let views = members.get("oneOf").and_then(Value::as_array);
            if views.is_some_and(|views| views.iter().any(is_test))
                && let Some(views) = members.remove("oneOf")
            {
                members.insert("anyOf".to_owned(), views);
            }
            members.values_mut().for_each(mend_tests);
        }
        Value::Array(items) => items.iter_mut().for_each(mend_tests),
        _ => {}
    }
}
