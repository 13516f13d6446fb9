//! What the server says of itself: its description, its error codes, its keys, its metrics (contract 14, 17).

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::{Value, json};
use tests::schema::faults;
use tests::{Credential, TestApp, client, on_both_backends};

on_both_backends!(
    every_operation_is_described,
    every_schema_that_is_named_is_there,
    the_description_is_complete_by_itself,
    what_was_json_alone_has_a_schema,
    changes_may_leave_out_all_and_remove_each,
    bodies_of_bytes_are_no_lists,
    bodies_may_be_left_out_where_the_server_needs_none,
    webhooks_are_described,
    every_code_is_listed_once,
    the_embedded_issuer_can_be_discovered,
    browsers_may_call_what_is_for_sdks,
    metrics_count_requests_and_events,
    a_stop_does_not_wait_for_long_polls,
);

async fn every_operation_is_described(app: &mut TestApp) {
    let description = app.get("/openapi.json", &Credential::none()).await.json();
    assert!(description["openapi"].as_str().unwrap().starts_with("3.1"));
    let mut ids = BTreeSet::new();
    for (path, item) in description["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let place = format!("{method} {path}");
            let id = operation["operationId"].as_str().unwrap();
            assert!(ids.insert(id.to_owned()), "{place}: {id} is taken");
            let summary = operation["summary"]
                .as_str()
                .or(operation["description"].as_str());
            assert!(
                summary.is_some_and(|summary| !summary.is_empty()),
                "{place}"
            );
            let statuses: Vec<&String> =
                operation["responses"].as_object().unwrap().keys().collect();
            assert!(
                statuses.iter().any(|status| status.starts_with('2')),
                "{place}: {statuses:?}"
            );
            for name in path
                .split('/')
                .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
            {
                let parameters = operation["parameters"].as_array().unwrap();
                assert!(
                    parameters.iter().any(|parameter| parameter["name"] == name),
                    "{place}: {name}"
                );
            }
            // A beacon has its credentials in its body.
            let is_open = ["/v1/errors", "/v1/sdk/beacon"].contains(&path.as_str())
                || path.starts_with("/v1/exports");
            assert_eq!(operation["security"].is_array(), !is_open, "{place}");
        }
    }
    for operation in [
        "POST /v1/sdk/session",
        "POST /v1/sdk/ingest",
        "GET /v1/sdk/instructions",
        "POST /v1/apps/{appId}/surveys",
    ] {
        let (method, path) = operation.split_once(' ').unwrap();
        assert!(
            description["paths"][path][method.to_lowercase()].is_object(),
            "{operation}"
        );
    }
}

async fn every_schema_that_is_named_is_there(app: &mut TestApp) {
    let description = app.get("/openapi.json", &Credential::none()).await.json();
    let mut left = vec![&description];
    let mut named = 0;
    while let Some(value) = left.pop() {
        match value {
            Value::Object(members) => {
                if let Some(Value::String(name)) = members.get("$ref") {
                    let pointer = name.strip_prefix('#').unwrap();
                    assert!(description.pointer(pointer).is_some(), "there is no {name}");
                    named += 1;
                }
                left.extend(members.values());
            }
            Value::Array(items) => left.extend(items),
            _ => {}
        }
    }
    assert!(named > 100, "{named}");
}

/// Readers have neither the contract nor the specification, and what plugins read has a shape too.
async fn the_description_is_complete_by_itself(app: &mut TestApp) {
    let answer = app.get("/openapi.json", &Credential::none()).await;
    for word in ["contract", "specification", "spec"] {
        for (place, _) in answer.text.match_indices(&format!("{word} ")) {
            let after = &answer.text[place + word.len() + 1..];
            let about: String = after.chars().take(40).collect();
            assert!(
                !after.starts_with(|after: char| after.is_ascii_digit()),
                "{word} {about}"
            );
        }
    }
    let description = answer.json();
    for text in descriptions(&description) {
        for code in ["[`", "::"] {
            assert!(!text.contains(code), "{text}");
        }
    }
    let member = |schema: &str, member: &str| {
        description["components"]["schemas"][schema]["properties"][member].to_string()
    };
    for (schema, name, shape) in [
        ("SurveyContent", "trigger", "Trigger"),
        ("SurveyContent", "audience", "Audience"),
        ("SurveyContent", "schedule", "Schedule"),
        ("SurveyContent", "frequencyCap", "FrequencyCap"),
        ("SurveyContent", "theme", "Theme"),
        ("SurveyContent", "settings", "SurveySettings"),
        ("Content", "trigger", "Trigger"),
        ("InAppContent", "audience", "Audience"),
        ("SegmentContent", "audience", "Audience"),
        ("DefinitionContent", "properties", "PropertyDefinition"),
        ("Variant", "personalization", "Personalization"),
        ("CredentialView", "identity", "CredentialIdentity"),
        ("Branch", "when", "FlowCondition"),
        ("AnswerRequest", "value", "AnswerValue"),
        ("AnswerView", "answerValue", "AnswerValue"),
        ("AttemptView", "survey", "SurveyPayload"),
        ("Case", "input", "CaseInput"),
        ("Case", "expect", "CaseExpectation"),
    ] {
        let found = member(schema, name);
        assert!(
            found.contains(&format!("#/components/schemas/{shape}\"")),
            "{schema}.{name}: {found}"
        );
    }
}

/// All texts that describe something.
fn descriptions(value: &Value) -> Vec<&str> {
    let mut found = Vec::new();
    let mut left = vec![value];
    while let Some(value) = left.pop() {
        match value {
            Value::Object(members) => {
                for (key, value) in members {
                    match value {
                        Value::String(text) if ["description", "summary"].contains(&&**key) => {
                            found.push(&**text);
                        }
                        value => left.push(value),
                    }
                }
            }
            Value::Array(items) => left.extend(items),
            _ => {}
        }
    }
    found
}

async fn what_was_json_alone_has_a_schema(app: &mut TestApp) {
    let description = app.get("/openapi.json", &Credential::none()).await.json();
    let schemas = &description["components"]["schemas"];
    let takes = |name: &str, value: Value| faults(&description, &schemas[name], &value).is_empty();
    for (value, good) in [
        (json!({"id": "q", "type": "nps", "title": "?"}), true),
        (
            json!({"id": "q", "type": "nps", "title": "?", "scale": 5}),
            false,
        ),
        (
            json!({"id": "q", "type": "rating", "title": "?", "scale": 5, "display": "star"}),
            true,
        ),
        (
            json!({"id": "q", "type": "rating", "title": "?", "scale": 8}),
            false,
        ),
        (
            json!({"id": "q", "type": "single_choice", "title": "?"}),
            false,
        ),
        (
            json!({"id": "q", "type": "number", "title": "?", "validation": {"min": 1, "message": "More."}}),
            true,
        ),
        (
            json!({"id": "q", "type": "number", "title": "?", "validation": {"minLength": 1}}),
            false,
        ),
        (
            json!({"id": "q", "type": "unheard_of", "title": "?"}),
            false,
        ),
    ] {
        assert_eq!(takes("Question", value.clone()), good, "{value}");
    }
    let equals = |operator: &str, value: Value| json!({"property": "plan", "type": "string", "operator": operator, "value": value});
    for (value, good) in [
        (json!({}), true),
        (equals("equals", json!("pro")), true),
        (equals("in", json!(["pro"])), true),
        (equals("gte", json!("pro")), false),
        (
            json!({"property": "plan", "type": "date", "operator": "within_last", "value": {"amount": 3, "unit": "days"}}),
            true,
        ),
        (
            json!({"all": [equals("equals", json!("pro")), {"any": []}]}),
            true,
        ),
        (json!({"all": [{"property": "plan"}]}), false),
    ] {
        assert_eq!(takes("Filter", value.clone()), good, "{value}");
    }
    for (value, good) in [
        (json!(9), true),
        (json!("2026-01-31"), true),
        (json!(true), true),
        (json!(false), false),
        (json!({"optionId": "a"}), true),
        (json!({"optionIds": ["a"], "other": "b"}), true),
        (json!({"row": "column"}), true),
        (json!({"row": 1}), false),
        (json!(["a"]), false),
        (json!(null), true),
    ] {
        assert_eq!(takes("AnswerValue", value.clone()), good, "{value}");
    }
    for (value, good) in [
        (
            json!({"kind": "segment", "segmentId": "0198c0de-0000-7000-8000-00000000000a", "on": "enter"}),
            true,
        ),
        (json!({"kind": "segment", "on": "sideways"}), false),
        (json!({"kind": "someday"}), false),
    ] {
        assert_eq!(takes("Trigger", value.clone()), good, "{value}");
    }
    let payloads = schemas["InstructionPayload"].to_string();
    for name in ["SurveyPayload", "MessagePayload"] {
        assert!(
            payloads.contains(&format!("schemas/{name}\"")),
            "{payloads}"
        );
    }
    for (schema, part) in [
        ("CreateRequest", "DefinitionContent"),
        ("CollectionRequest", "CollectionMessage"),
    ] {
        let text = schemas[schema].to_string();
        assert!(text.contains(&format!("schemas/{part}\"")), "{text}");
    }
}

async fn changes_may_leave_out_all_and_remove_each(app: &mut TestApp) {
    let description = app.get("/openapi.json", &Credential::none()).await.json();
    for resource in [
        "settings",
        "event-definitions/{id}",
        "segments/{segmentId}",
        "surveys/{surveyId}",
        "campaigns/{campaignId}",
        "push/webhooks/{webhookId}",
    ] {
        let path = format!("/v1/apps/{{appId}}/{resource}");
        let body = &description["paths"][&path]["patch"]["requestBody"];
        let schema = &body["content"]["application/json"]["schema"];
        assert_eq!(faults(&description, schema, &json!({})), [""; 0], "{path}");
        assert_ne!(faults(&description, schema, &json!([])), [""; 0], "{path}");
    }
    let survey = &description["components"]["schemas"]["SurveyPatch"];
    for (value, good) in [
        (json!({"name": null, "theme": null, "flow": null}), true),
        (
            json!({"trigger": {"delaySeconds": 60}, "audience": {"include": {"all": []}}}),
            true,
        ),
        (json!({"status": "unheard_of"}), false),
        (json!({"flow": {"questions": [{"id": "q"}]}}), false),
    ] {
        let wrong = faults(&description, survey, &value);
        assert_eq!(wrong.is_empty(), good, "{value}: {wrong:?}");
    }
}

async fn bodies_may_be_left_out_where_the_server_needs_none(app: &mut TestApp) {
    let description = app.get("/openapi.json", &Credential::none()).await.json();
    let operations = description["paths"].as_object().unwrap();
    let operations = operations
        .values()
        .flat_map(|item| item.as_object().unwrap().values());
    let optional: BTreeSet<&str> = operations
        .filter(|operation| operation["requestBody"].is_object())
        .filter(|operation| operation["requestBody"]["required"] != true)
        .map(|operation| operation["operationId"].as_str().unwrap())
        .collect();
    let expected = [
        "complete_attempt",
        "dismiss_attempt",
        "end_session",
        "replay_dead_letter",
        "rotate_webhook_secret",
    ];
    assert_eq!(optional, BTreeSet::from(expected));
}

async fn bodies_of_bytes_are_no_lists(app: &mut TestApp) {
    let description = app.get("/openapi.json", &Credential::none()).await.json();
    let bytes = json!({"type": "string", "format": "binary"});
    let at = |place: &str| description.pointer(place).unwrap().clone();
    let upload =
        "/paths/~1v1~1apps~1{appId}~1plugins/post/requestBody/content/application~1wasm/schema";
    assert_eq!(at(upload), bytes);
    let archive =
        "/paths/~1v1~1exports~1{exportId}~1archive/get/responses/200/content/application~1zip";
    assert_eq!(at(&format!("{archive}/schema")), bytes);
    assert!(at(&format!("{archive}/example")).is_string());
    let stream = "/paths/~1v1~1apps~1{appId}~1events~1stream/get/responses/200/content/text~1event-stream/example";
    let message = at(stream);
    let message = message.as_str().unwrap();
    let data = message.lines().find_map(|line| line.strip_prefix("data: "));
    let event: Value = serde_json::from_str(data.unwrap()).unwrap();
    let schema = &description["components"]["schemas"]["FeedEventView"];
    assert_eq!(faults(&description, schema, &event), [""; 0]);
    assert!(message.ends_with("\n\n"), "{message:?}");
}

async fn webhooks_are_described(app: &mut TestApp) {
    let description = app.get("/openapi.json", &Credential::none()).await.json();
    let told: BTreeSet<&String> = description["webhooks"]
        .as_object()
        .unwrap()
        .keys()
        .collect();
    let types: Vec<&Value> = description["components"]["schemas"]["EventType"]["enum"]
        .as_array()
        .unwrap()
        .iter()
        .collect();
    assert_eq!(told.len(), types.len());
    for name in told {
        assert!(types.iter().any(|one| **one == **name), "{name}");
        let post = &description["webhooks"][name]["post"];
        assert!(
            post["requestBody"]["content"]["application/json"]["schema"].is_object(),
            "{name}"
        );
        let headers = post["parameters"].as_array().unwrap().iter();
        assert!(
            headers
                .into_iter()
                .any(|one| one["name"] == "X-Service-Signature"),
            "{name}"
        );
    }
}

async fn every_code_is_listed_once(app: &mut TestApp) {
    let codes = app.get("/v1/errors", &Credential::none()).await.ok();
    let names: Vec<&str> = codes
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|code| code["code"].as_str())
        .collect();
    let distinct: BTreeSet<&str> = names.iter().copied().collect();
    assert_eq!(names.len(), distinct.len());
    for code in [
        "malformed_json",
        "unsupported_media_type",
        "payload_too_large",
        "not_found",
        "method_not_allowed",
        "validation_failed",
        "invalid_credentials",
        "subject_token_expired",
        "insufficient_role",
        "insufficient_scope",
        "subject_mismatch",
        "consent_required",
        "invalid_delivery",
        "client_session_invalid",
        "unavailable",
        "invalid_cursor",
        "version_mismatch",
        "invalid_flow",
        "not_activatable",
        "event_definition_exists",
        "credential_conflict",
        "limit_exceeded",
    ] {
        assert!(distinct.contains(code), "{code}");
    }
}

async fn the_embedded_issuer_can_be_discovered(app: &mut TestApp) {
    let discovery = app
        .get("/.well-known/openid-configuration", &Credential::none())
        .await
        .json();
    assert!(discovery["issuer"].is_string());
    let keys = discovery["jwks_uri"].as_str().unwrap();
    assert!(keys.starts_with(&app.access.base_url), "{keys}");
    let keys = app
        .get("/.well-known/jwks.json", &Credential::none())
        .await
        .json();
    let key = &keys["keys"][0];
    assert!(key["kid"].is_string() && key["kty"].is_string());
    assert!(key.get("d").is_none(), "only what is public");
}

async fn browsers_may_call_what_is_for_sdks(app: &mut TestApp) {
    let preflight = async |path: &str| {
        let request = app.request(Method::OPTIONS, path, &Credential::none());
        let request = request
            .header("origin", "https://shop.example")
            .header("access-control-request-method", "POST")
            .header(
                "access-control-request-headers",
                "authorization,content-type,x-service-subject-token",
            );
        client::send(request).await
    };
    let allowed = preflight("/v1/sdk/ingest").await;
    assert_eq!(allowed.status, 200);
    assert_eq!(allowed.header("access-control-allow-origin"), "*");
    let headers = allowed
        .header("access-control-allow-headers")
        .to_lowercase();
    assert!(headers.contains("x-service-subject-token") && headers.contains("authorization"));

    let managed = preflight(&app.path("/surveys")).await;
    assert_eq!(managed.header("access-control-allow-origin"), "");
    // A refusal must be readable for the page as well.
    let request = app.request(Method::POST, "/v1/sdk/ingest", &Credential::none());
    let refused = client::send(request.header("origin", "https://shop.example")).await;
    refused.refused(401, "invalid_credentials");
    assert_eq!(refused.header("access-control-allow-origin"), "*");
}

async fn metrics_count_requests_and_events(app: &mut TestApp) {
    let ada = app.session("ada").await;
    let event = app.event(&ada, "opened", &json!({}));
    app.ingest(&ada, &[event]).await.ok();
    let metrics = app.get("/metrics", &Credential::none()).await;
    assert!(metrics.header("content-type").starts_with("text/plain"));
    for metric in [
        "nudge_http_requests_total",
        "nudge_http_request_seconds_bucket",
        "nudge_events_total",
        "nudge_commit_seconds",
    ] {
        assert!(metrics.text.contains(metric), "{metric}");
    }
    assert!(
        !metrics.text.contains(&ada.subject_id),
        "no metric names a person"
    );
}

async fn a_stop_does_not_wait_for_long_polls(app: &mut TestApp) {
    let ada = app.session("ada").await;
    let url = format!("{}/v1/sdk/instructions?wait=25", app.access.base_url);
    let request = client::build()
        .get(url)
        .bearer_auth(&app.access.write_key)
        .header("x-service-subject-token", &ada.token);
    let started = Instant::now();
    let (polled, ()) = tokio::join!(client::send(request), async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        app.stop().await;
    });
    assert_eq!(polled.ok()["items"], json!([]));
    assert!(
        started.elapsed() < Duration::from_secs(15),
        "{:?}",
        started.elapsed()
    );
    app.resume().await;
    app.session("ada").await;
}
