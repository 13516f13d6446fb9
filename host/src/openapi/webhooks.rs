//! What endpoints of customers are sent.

use nudge_campaigns::webhooks::EventType;
use serde_json::{Map, Value, json};

use super::shapes::reference;

/// The webhooks of the document: one for each type.
pub(super) fn all() -> serde_json::Result<Value> {
    let examples: Map<String, Value> = serde_json::from_str(include_str!("webhooks.json"))?;
    let parameters = parameters();
    let of_type = |event: &EventType| {
        let name = event.name();
        let data = match group(name) {
            "plugin" => "WebhookPluginData",
            "dead_letter" => "WebhookDeadLetterData",
            _ => "WebhookDeliveryData",
        };
        let own = json!({"type": "object", "properties": {"event": {"const": name}, "data": reference(data)}});
        let body = json!({"allOf": [reference("WebhookMessage"), own]});
        let post = json!({
            "summary": format!("`{name}`"), "operationId": format!("webhook_{}", name.replace('.', "_")), "tags": ["webhooks"],
            "parameters": parameters,
            "requestBody": {"required": true, "content": {"application/json": {"schema": body, "example": example(name, examples.get(name))}}},
            "responses": {
                "2XX": {"description": "It is taken."},
                "default": {"description": "408, 429, 5xx and no answer within 10 seconds: it is sent again, five times in all; `Retry-After` of a 429 is honoured. Any other status: it is not."},
            },
        });
        (name.to_owned(), json!({"post": post}))
    };
    let all: Map<String, Value> = EventType::ALL.iter().map(of_type).collect();
    Ok(all.into())
}

/// What a type is about: `plugin` of `plugin.degraded`.
fn group(name: &str) -> &str {
    name.split_once('.').map_or(name, |(group, _)| group)
}

/// The message of a type. `own`: what its data has that others have not.
fn example(name: &str, own: Option<&Value>) -> Value {
    let id = |number: u8| format!("01a2102e-4b00-7000-8000-00000000000{number}");
    let mut data = if name.contains('.') {
        json!({})
    } else {
        json!({
            "campaignId": id(2), "variantId": id(3), "deliveryId": id(4), "subjectId": id(5), "externalId": "customer-4711",
            "anonymousId": "phone-of-ada", "platform": "ios", "test": false,
        })
    };
    if let (Some(data), Some(own)) = (data.as_object_mut(), own.and_then(Value::as_object)) {
        data.extend(own.clone());
    }
    json!({"id": id(1), "event": name, "app_id": id(0), "fired_at": "2026-01-31T12:01:00.000Z", "data": data})
}

/// The headers of each message.
fn parameters() -> Value {
    let header = |name: &str, description: &str| json!({"name": name, "in": "header", "required": true, "description": description, "schema": {"type": "string"}});
    json!([
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
    ])
}
