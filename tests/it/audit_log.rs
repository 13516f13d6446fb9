//! The audit log: every change has an entry, refusals have none but those of keys (contract 13).

use std::collections::BTreeSet;

use nudge_campaigns::webhooks::EventType::Sent;
use reqwest::Method;
use serde_json::{Value, json};
use tests::{Credential, TestApp, client, on_both_backends};
use uuid::Uuid;

on_both_backends!(
    every_change_leaves_an_entry,
    entries_are_filtered_and_paged,
    a_refused_change_leaves_none,
    a_backends_update_of_properties_leaves_one_without_the_person,
    a_refused_key_leaves_one_for_each_route,
);

/// A change that succeeds: its operation, its path below the app, a body, and the entry that it leaves.
struct Change {
    operation: (&'static str, &'static str),
    path: String,
    body: Value,
    action: &'static str,
}

/// A change for each operation of the description that changes something, in an order in which each succeeds.
async fn changes(app: &TestApp) -> Vec<Change> {
    let survey = app
        .survey(&json!({"kind": "event", "eventName": "purchase"}))
        .await;
    let definition = app
        .define(
            "strict",
            &json!({"properties": [{"name": "total", "type": "number", "required": true}]}),
        )
        .await;
    let definition = definition["id"].as_str().unwrap();
    let ada = app.session("ada").await;
    let events = [
        app.event(&ada, "strict", &json!({})),
        app.event(&ada, "strict", &json!({})),
    ];
    let refused = app.ingest(&ada, &events).await.ok();
    let letter = |index: usize| {
        refused["errors"][index]["deadLetterId"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let key = app
        .make_key(&json!({"kind": "write", "name": "gone"}))
        .await;
    let key = key["id"].as_str().unwrap();
    let body = json!({"url": "http://127.0.0.1:9/", "eventTypes": ["sent"]});
    let made = app
        .post(&app.path("/push/webhooks"), &app.admin(), &body)
        .await
        .data(201);
    let webhook = |rest: &str| format!("/push/webhooks/{}{rest}", made["id"].as_str().unwrap());
    app.transit(Uuid::from_u128(42), app.id(), &[Sent]).await;
    let messages: Vec<(Uuid,)> = app.rows("SELECT id FROM webhook_messages").await;
    let campaign = app.campaign(&json!({"mode": "transactional"})).await;
    let jwk =
        json!({"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"});
    let credential = app
        .credential(&json!({"platform": "web", "vapid": {"generate": true}}))
        .await;
    let credential = credential["id"].as_str().unwrap();
    let segment = crate::segments::segment(app, "s", json!({})).await;
    let segment = segment["id"].as_str().unwrap();
    let change = |method, template, path: &str, body: Value, action| Change {
        operation: (method, template),
        path: path.to_owned(),
        body,
        action,
    };
    vec![
        change("PATCH", "", "", json!({"name": "Shop"}), "app.updated"),
        change(
            "PATCH",
            "/settings",
            "/settings",
            json!({"lifecycleEvents": false}),
            "settings.updated",
        ),
        change(
            "POST",
            "/keys",
            "/keys",
            json!({"kind": "write", "name": "new"}),
            "key.created",
        ),
        change(
            "DELETE",
            "/keys/{keyId}",
            &format!("/keys/{key}"),
            Value::Null,
            "key.revoked",
        ),
        change(
            "POST",
            "/identity-keys",
            "/identity-keys",
            json!({"kid": "k", "publicKey": jwk}),
            "identity_key.created",
        ),
        change(
            "DELETE",
            "/identity-keys/{kid}",
            "/identity-keys/k",
            Value::Null,
            "identity_key.deleted",
        ),
        change(
            "POST",
            "/push/credentials",
            "/push/credentials",
            json!({"platform": "web", "vapid": {"generate": true}}),
            "push_credential.created",
        ),
        change(
            "DELETE",
            "/push/credentials/{credId}",
            &format!("/push/credentials/{credential}"),
            Value::Null,
            "push_credential.deleted",
        ),
        change(
            "POST",
            "/campaigns",
            "/campaigns",
            json!({"name": "n", "mode": "transactional"}),
            "campaign.created",
        ),
        change(
            "PATCH",
            "/campaigns/{campaignId}",
            &format!("/campaigns/{campaign}"),
            json!({"name": "m"}),
            "campaign.updated",
        ),
        change(
            "POST",
            "/campaigns/{campaignId}/test-send",
            &format!("/campaigns/{campaign}/test-send"),
            json!({"anonymousId": "ada"}),
            "campaign.test_sent",
        ),
        change(
            "DELETE",
            "/campaigns/{campaignId}",
            &format!("/campaigns/{campaign}"),
            Value::Null,
            "campaign.deleted",
        ),
        change(
            "POST",
            "/segments",
            "/segments",
            json!({"name": "new", "audience": {}}),
            "segment.created",
        ),
        change(
            "PATCH",
            "/segments/{segmentId}",
            &format!("/segments/{segment}"),
            json!({"name": "changed"}),
            "segment.updated",
        ),
        change(
            "DELETE",
            "/segments/{segmentId}",
            &format!("/segments/{segment}"),
            Value::Null,
            "segment.deleted",
        ),
        change(
            "POST",
            "/surveys",
            "/surveys",
            json!({"name": "n", "mode": "on_demand", "status": "draft"}),
            "survey.created",
        ),
        change(
            "PATCH",
            "/surveys/{surveyId}",
            &format!("/surveys/{survey}"),
            json!({"name": "m"}),
            "survey.updated",
        ),
        change(
            "DELETE",
            "/surveys/{surveyId}",
            &format!("/surveys/{survey}"),
            Value::Null,
            "survey.deleted",
        ),
        change(
            "POST",
            "/event-definitions",
            "/event-definitions",
            json!({"name": "x"}),
            "event_definition.created",
        ),
        change(
            "POST",
            "/dead-letters/{id}/replay",
            &format!("/dead-letters/{}/replay", letter(0)),
            json!({"patch": {"total": 1}}),
            "dead_letter.replay_started",
        ),
        change(
            "DELETE",
            "/dead-letters/{id}",
            &format!("/dead-letters/{}", letter(1)),
            Value::Null,
            "dead_letter.acknowledged",
        ),
        change(
            "POST",
            "/dead-letters/replay",
            "/dead-letters/replay",
            json!({"filter": {"eventName": "strict"}, "patch": {"total": 1}}),
            "dead_letters.replay_queued",
        ),
        change(
            "POST",
            "/dead-letters/acknowledge",
            "/dead-letters/acknowledge",
            json!({"filter": {}}),
            "dead_letters.acknowledgement_queued",
        ),
        change(
            "PATCH",
            "/event-definitions/{id}",
            &format!("/event-definitions/{definition}"),
            json!({"enforcement": "observe"}),
            "event_definition.updated",
        ),
        change(
            "DELETE",
            "/event-definitions/{id}",
            &format!("/event-definitions/{definition}"),
            Value::Null,
            "event_definition.archived",
        ),
        change(
            "POST",
            "/push/webhooks",
            "/push/webhooks",
            json!({"url": "http://127.0.0.1:9/", "eventTypes": ["sent"]}),
            "webhook.created",
        ),
        change(
            "POST",
            "/push/webhooks/{webhookId}/messages/{messageId}/retry",
            &webhook(&format!("/messages/{}/retry", messages[0].0)),
            Value::Null,
            "webhook.message_retried",
        ),
        change(
            "PATCH",
            "/push/webhooks/{webhookId}",
            &webhook(""),
            json!({"active": false}),
            "webhook.updated",
        ),
        change(
            "POST",
            "/push/webhooks/{webhookId}/rotate-secret",
            &webhook("/rotate-secret"),
            Value::Null,
            "webhook.secret_rotated",
        ),
        change(
            "POST",
            "/push/webhooks/{webhookId}/test",
            &webhook("/test"),
            Value::Null,
            "webhook.tested",
        ),
        change(
            "POST",
            "/push/webhooks/{webhookId}/enable",
            &webhook("/enable"),
            Value::Null,
            "webhook.enabled",
        ),
        change(
            "POST",
            "/push/webhooks/{webhookId}/recover",
            &webhook("/recover"),
            json!({"since": app.time(0)}),
            "webhook.recovered",
        ),
        change(
            "DELETE",
            "/push/webhooks/{webhookId}",
            &webhook(""),
            Value::Null,
            "webhook.deleted",
        ),
        change(
            "POST",
            "/gdpr/export",
            "/gdpr/export",
            json!({"anonymousId": "ada"}),
            "person.export_queued",
        ),
        change(
            "POST",
            "/gdpr/delete",
            "/gdpr/delete",
            json!({"anonymousId": "ada"}),
            "person.deletion_queued",
        ),
    ]
}

/// What is tested elsewhere: apps as a whole, whose entries are in `apps.rs`, and what plugins keep of a person,
/// in `plugin_state.rs`. Making a decision again changes nothing, nor does trying or proposing a definition.
const ELSEWHERE: [(&str, &str); 6] = [
    ("POST", "/v1/apps/{appId}/event-definitions/{id}/dry-run"),
    ("POST", "/v1/apps/{appId}/event-definitions/infer"),
    ("POST", "/v1/apps"),
    ("DELETE", "/v1/apps/{appId}"),
    (
        "DELETE",
        "/v1/apps/{appId}/users/{anonymousId}/plugin-state",
    ),
    ("POST", "/v1/apps/{appId}/decisions/{id}/rerun"),
];

/// Plugins, whose entries are in `plugins.rs` and `server_plugins.rs`; and what SDKs do, which is no change of
/// a person's.
const ELSEWHERE_BELOW: [&str; 5] = [
    "/v1/apps/{appId}/plugin",
    "/v1/operator/",
    "/v1/sdk/",
    "/v1/compat/",
    "/v1/batch",
];

/// What a backend does with an API token to people's own data; the entry is in a test of its own.
const OF_PEOPLE: (&str, &str) = ("PATCH", "/v1/apps/{appId}/users/properties");
/// Messages are on record as deliveries; a preview changes nothing.
const OF_MESSAGES: [(&str, &str); 3] = [
    ("POST", "/v1/apps/{appId}/push/transactional"),
    ("POST", "/v1/apps/{appId}/segments/preview"),
    ("POST", "/v1/apps/{appId}/personalization/preview"),
];

async fn every_change_leaves_an_entry(app: &mut TestApp) {
    let changes = changes(app).await;
    let mut known: BTreeSet<(String, String)> = changes
        .iter()
        .map(|change| {
            (
                change.operation.0.to_owned(),
                format!("/v1/apps/{{appId}}{}", change.operation.1),
            )
        })
        .collect();
    let others = ELSEWHERE.into_iter().chain([OF_PEOPLE]).chain(OF_MESSAGES);
    known.extend(others.map(|(method, path)| (method.to_owned(), path.to_owned())));
    let description = app.get("/openapi.json", &Credential::none()).await.json();
    for (path, item) in description["paths"].as_object().unwrap() {
        for method in item
            .as_object()
            .unwrap()
            .keys()
            .filter(|method| *method != "get")
        {
            let operation = (method.to_uppercase(), path.clone());
            let is_known = known.contains(&operation)
                || ELSEWHERE_BELOW
                    .iter()
                    .any(|prefix| path.starts_with(prefix));
            assert!(is_known, "{operation:?} has no row here");
        }
    }

    for change in changes {
        let before = app.audited(change.action).await;
        let method = Method::from_bytes(change.operation.0.as_bytes()).unwrap();
        let request = app.request(method, &app.path(&change.path), &app.admin());
        let request = if change.body.is_null() {
            request
        } else {
            request.json(&change.body)
        };
        let answer = client::send(request).await;
        let place = format!("{:?}: {}", change.operation, answer.text);
        assert!((200..300).contains(&answer.status), "{place}");
        let after = app.audited(change.action).await;
        assert_eq!(after.len(), before.len() + 1, "{place}");
        let entry = &after[0];
        assert_eq!(
            (&entry["action"], &entry["actor"]),
            (&json!(change.action), &json!("nudge dev")),
            "{place}"
        );
        assert!(entry["at"].is_string() && entry["id"].is_string() && entry["detail"].is_object());
        assert!(!entry["resource"].as_str().unwrap().is_empty());
        // A change of what people write says what was changed; a webhook's address may hold a secret.
        if change.operation.0 == "PATCH" && change.action != "webhook.updated" {
            let patch = &entry["detail"]["patch"];
            let sent = change.body.as_object().unwrap().keys();
            let is_told =
                |name: &String| patch.get(name).is_some() || entry["detail"].get(name).is_some();
            assert!(sent.clone().all(is_told), "{place}: {entry}");
        }
        let resource = entry["resource"].as_str().unwrap();
        let path = app.path(&format!("/audit-log?resource={resource}&limit=200"));
        let of_resource = app.get(&path, &app.admin()).await.ok();
        let of_resource = of_resource["items"].as_array().unwrap().clone();
        assert!(of_resource.contains(entry), "{place}");
        assert!(
            of_resource.iter().all(|it| it["resource"] == resource),
            "{place}"
        );
    }
    let everything = app
        .get(&app.path("/audit-log?limit=200"), &app.admin())
        .await;
    for secret in ["wk_", "sk_", "at_", "eyJ", "whsec_"] {
        let found = everything.text.find(secret);
        let around = found.map(|at| &everything.text[at.saturating_sub(60)..]);
        let around = around.map(|text| text.chars().take(120).collect::<String>());
        assert_eq!(around, None, "no secret is in the log");
    }
}

async fn entries_are_filtered_and_paged(app: &mut TestApp) {
    for number in 0..5 {
        app.patch(
            &app.path(""),
            &app.admin(),
            &json!({"name": format!("Name {number}")}),
        )
        .await
        .ok();
        app.advance(60);
    }
    app.define("purchase", &json!({})).await;
    let list = async |query: &str| {
        app.get(&app.path(&format!("/audit-log{query}")), &app.admin())
            .await
    };
    let names = |page: &Value| -> Vec<Value> {
        let items = page["items"].as_array().unwrap();
        items
            .iter()
            .map(|item| item["detail"]["name"].clone())
            .collect()
    };
    let mut seen = Vec::new();
    let mut query = "?action=app.updated&limit=2".to_owned();
    let mut newest_cursor = String::new();
    loop {
        let page = list(&query).await.ok();
        seen.extend(names(&page));
        let Some(cursor) = page["nextCursor"].as_str() else {
            break;
        };
        cursor.clone_into(&mut newest_cursor);
        query = format!("?action=app.updated&limit=2&cursor={cursor}");
    }
    assert_eq!(seen, ["Name 4", "Name 3", "Name 2", "Name 1", "Name 0"]);
    list(&format!("?limit=2&cursor={newest_cursor}"))
        .await
        .refused(400, "invalid_cursor");

    assert_eq!(
        list("?actor=nudge%20dev").await.ok()["items"]
            .as_array()
            .unwrap()
            .len(),
        6
    );
    assert_eq!(list("?actor=nobody").await.ok()["items"], json!([]));
    let (from, to) = (app.time(-250), app.time(-130));
    let between = list(&format!("?action=app.updated&from={from}&to={to}"))
        .await
        .ok();
    assert_eq!(names(&between), ["Name 2", "Name 1"]);
    assert_eq!(list("?from=yesterday").await.pointers(), ["/from"]);
    list("?limit=201").await.refused(422, "validation_failed");
}

async fn a_backends_update_of_properties_leaves_one_without_the_person(app: &mut TestApp) {
    let ada = app.session("zoe-x").await;
    let token = Credential::bearer(&app.access.api_token);
    let path = app.path("/users/properties");
    let entries = async || app.audited("person.properties_updated").await;
    let mut update = json!({"subject": {"anonymousId": "zoe-x"},
        "update": {"mutationId": app.id(), "set": {"plan": "gold-needle", "age": 7}, "unset": ["old"]}});
    for applied in [true, false] {
        let data = app.patch(&path, &token, &update).await.ok();
        assert_eq!(data["applied"], applied);
        let entries = entries().await;
        assert_eq!(entries.len(), 1, "a repetition changes nothing");
        assert!(entries[0]["actor"].as_str().unwrap().starts_with("key/"));
        assert!(
            entries[0]["resource"]
                .as_str()
                .unwrap()
                .starts_with("person/")
        );
        assert_eq!(entries[0]["detail"], json!({"set": 2, "unset": 1}));
        for secret in ["zoe-x", &ada.subject_id, "plan", "gold-needle"] {
            assert!(!entries[0].to_string().contains(secret), "{secret}");
        }
    }
    update["subject"] = json!({"externalId": "nobody"});
    update["update"]["mutationId"] = json!(app.id());
    app.patch(&path, &token, &update)
        .await
        .refused(404, "subject_not_found");
    let settings = json!({"privacy": {"denyKeys": ["plan"]}});
    app.patch(&app.path("/settings"), &app.admin(), &settings)
        .await
        .ok();
    let filtered = json!({"subject": {"anonymousId": "zoe-x"},
        "update": {"mutationId": app.id(), "set": {"plan": "x"}}});
    assert_eq!(
        app.patch(&path, &token, &filtered).await.ok()["applied"],
        false
    );
    let own = json!({"anonymousId": "zoe-x", "mutationId": app.id(), "set": {"a": 1}});
    app.post("/v1/sdk/user-properties", &ada.credential(), &own)
        .await
        .ok();
    assert_eq!(entries().await.len(), 1);
}

async fn a_refused_key_leaves_one_for_each_route(app: &mut TestApp) {
    let push = app.path("/push/transactional");
    let body = json!({});
    let in_header = Credential::none().and("x-write-key", &app.access.write_key);
    for _ in 0..3 {
        app.get(&app.path("/surveys"), &app.sdk())
            .await
            .refused(403, "insufficient_scope");
        app.post(&push, &app.sdk(), &body)
            .await
            .refused(403, "insufficient_scope");
        app.post(&push, &in_header, &body)
            .await
            .refused(401, "invalid_credentials");
        app.get(&app.path("/surveys"), &in_header)
            .await
            .refused(401, "invalid_credentials");
    }
    let of = async || {
        let entries = app.audited("key.refused").await;
        let detail = |entry: &Value, name: &str| entry["detail"][name].as_str().unwrap().to_owned();
        let entries = entries.iter();
        entries
            .map(|it| (detail(it, "reason"), detail(it, "route")))
            .collect::<BTreeSet<_>>()
    };
    let expected = ["wrong_header", "wrong_kind"]
        .into_iter()
        .flat_map(|reason| {
            let routes = [
                "GET /v1/apps/{appId}/surveys",
                "POST /v1/apps/{appId}/push/transactional",
            ];
            routes.map(|route| (reason.to_owned(), route.to_owned()))
        });
    let expected: BTreeSet<_> = expected.collect();
    app.until("refusals are not audited", async || of().await == expected)
        .await;
    assert_eq!(app.audited("key.refused").await.len(), 4, "once a minute");
}

async fn a_refused_change_leaves_none(app: &mut TestApp) {
    let settings = app.path("/settings");
    app.patch(&settings, &app.admin(), &json!({"typo": 1}))
        .await
        .refused(422, "validation_failed");
    app.patch(&settings, &app.editor(), &json!({}))
        .await
        .refused(403, "insufficient_role");
    app.post(&app.path("/surveys"), &app.editor(), &json!({}))
        .await
        .refused(422, "validation_failed");
    let missing = app.path(&format!("/dead-letters/{}/replay", app.id()));
    app.post(&missing, &app.editor(), &json!({}))
        .await
        .refused(404, "not_found");
    let gone = app.path(&format!("/keys/{}", app.id()));
    app.delete(&gone, &app.admin())
        .await
        .refused(404, "not_found");
    let log = app.get(&app.path("/audit-log"), &app.admin()).await.ok();
    assert_eq!(log["items"], json!([]));
}
