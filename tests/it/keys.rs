//! Keys: made, used, listed, revoked (contract 1, 13).

use std::time::Duration;

use nudge_apps::key::Kind;
use nudge_db::Dialect;
use reqwest::Method;
use serde_json::{Value, json};
use tests::session::text;
use tests::{Credential, TestApp, on_both_backends};

use crate::guests::{activate, deploy, upload, version, versioned};
use crate::plugin_candidates::is_in_force;
use crate::two_servers::pair;

on_both_backends!(
    a_key_is_shown_once_and_works,
    what_is_no_key_is_refused_where_it_is_wrong,
    an_app_has_at_most_a_hundred_live_keys,
    a_revoked_key_stops_at_once,
    a_key_stops_when_it_expires,
    the_last_use_is_noted_once_a_minute,
    refused_uses_are_in_the_audit_log_once_a_minute,
    a_reader_that_goes_away_takes_no_refused_use_along,
    a_public_key_that_sends_what_a_backend_may_is_in_the_audit_log,
);

async fn starts(app: &TestApp, key: &str) -> u16 {
    let body = json!({"anonymousId": "ada"});
    app.post("/v1/sdk/session", &Credential::bearer(key), &body)
        .await
        .status
}

/// The listed key of a name.
async fn listed(app: &TestApp, name: &str) -> Option<Value> {
    let data = app
        .get(&app.path("/keys?limit=200"), &app.admin())
        .await
        .ok();
    let items = data["items"].as_array().unwrap().clone();
    items.into_iter().find(|item| item["name"] == name)
}

async fn a_key_is_shown_once_and_works(app: &mut TestApp) {
    let wanted = json!({"kind": "write", "name": "Phone", "expiresAt": app.time(3600)});
    let made = app.make_key(&wanted).await;
    let text = made["key"].as_str().unwrap();
    assert!(text.starts_with("wk_") && made["kind"] == "write" && made["scopes"] == json!([]));
    assert_eq!(made["lastUsedAt"], Value::Null);
    assert_eq!(starts(app, text).await, 200);

    let answer = app.get(&app.path("/keys"), &app.admin()).await;
    assert!(!answer.text.contains(text));
    let mut shown = listed(app, "Phone").await.unwrap();
    assert!(shown.get("key").is_none() && shown.get("hash").is_none());
    shown["lastUsedAt"] = Value::Null;
    shown["key"] = json!(text);
    assert_eq!(shown, made);

    let server = json!({"kind": "server", "name": "Backend", "scopes": ["events.write"]});
    let server = app.make_key(&server).await;
    let body = json!({"userId": "ada", "events": [{"name": "opened", "timestamp": app.time(0)}]});
    let credential = Credential::bearer(server["key"].as_str().unwrap());
    assert_eq!(
        app.post("/v1/sdk/ingest", &credential, &body).await.ok()["accepted"],
        1
    );
    assert!(server["key"].as_str().unwrap().starts_with("sk_"));
    assert!(server.get("expiresAt").is_none());
    let stored: Vec<(Vec<u8>,)> = app.rows("SELECT hash FROM keys").await;
    assert!(
        stored.iter().all(|(hash,)| hash.len() == 32),
        "only hashes are stored"
    );
}

async fn what_is_no_key_is_refused_where_it_is_wrong(app: &mut TestApp) {
    let past = app.time(0);
    for (body, pointer) in [
        (json!({"kind": "write"}), ""),
        (json!({"kind": "master", "name": "x"}), "/kind"),
        (json!({"kind": "write", "name": ""}), "/name"),
        (json!({"kind": "write", "name": "é".repeat(121)}), "/name"),
        (
            json!({"kind": "write", "name": "x", "scopes": ["events.write"]}),
            "/scopes/0",
        ),
        (
            json!({"kind": "server", "name": "x", "scopes": ["users.properties.write"]}),
            "/scopes/0",
        ),
        (
            json!({"kind": "api", "name": "x", "scopes": ["push.transactional"]}),
            "/scopes/0",
        ),
        (
            json!({"kind": "api", "name": "x", "scopes": ["users.properties.write", "users.properties.write"]}),
            "/scopes/1",
        ),
        (
            json!({"kind": "write", "name": "x", "expiresAt": past}),
            "/expiresAt",
        ),
        (
            json!({"kind": "write", "name": "x", "expiresAt": "tomorrow"}),
            "/expiresAt",
        ),
        (json!({"kind": "write", "name": "x", "expires": past}), ""),
    ] {
        let answer = app.post(&app.path("/keys"), &app.admin(), &body).await;
        answer.refused(422, "validation_failed");
        let pointers = answer.pointers();
        assert!(
            pointers[0] == pointer || pointer.is_empty(),
            "{body}: {pointers:?}"
        );
    }
    for scopes in [json!([]), json!(["users.properties.write"])] {
        app.make_key(&json!({"kind": "api", "name": "é".repeat(120), "scopes": scopes}))
            .await;
    }
}

async fn an_app_has_at_most_a_hundred_live_keys(app: &mut TestApp) {
    let path = app.path("/keys");
    let body = json!({"kind": "write", "name": "many"});
    let soon = json!({"kind": "write", "name": "soon", "expiresAt": app.time(60)});
    app.make_key(&soon).await;
    // Three of `nudge dev` and the one above.
    for _ in 4..99 {
        app.make_key(&body).await;
    }
    let admin = app.admin();
    let tries =
        futures_util::future::join_all((0..4).map(|_| app.post(&path, &admin, &body))).await;
    let made = tries.iter().filter(|answer| answer.status == 201).count();
    assert_eq!(made, 1, "two at once don't both find the last place");
    app.post(&path, &app.admin(), &body)
        .await
        .refused(422, "limit_exceeded");

    app.advance(61);
    app.make_key(&body).await;
    app.post(&path, &app.admin(), &body)
        .await
        .refused(422, "limit_exceeded");
    let one = listed(app, "many").await.unwrap();
    let path_of_one = app.path(&format!("/keys/{}", one["id"].as_str().unwrap()));
    app.delete(&path_of_one, &app.admin()).await.data(204);
    app.make_key(&body).await;
}

async fn a_revoked_key_stops_at_once(app: &mut TestApp) {
    let key = app
        .make_key(&json!({"kind": "write", "name": "Phone"}))
        .await;
    let text = key["key"].as_str().unwrap();
    let path = app.path(&format!("/keys/{}", key["id"].as_str().unwrap()));
    assert_eq!(starts(app, text).await, 200);

    app.delete(&path, &app.admin()).await.data(204);

    assert_eq!(starts(app, text).await, 401);
    assert_eq!(starts(app, &app.access.write_key).await, 200);
    app.delete(&path, &app.admin())
        .await
        .refused(404, "not_found");
    assert_eq!(listed(app, "Phone").await, None);
    app.restart().await;
    assert_eq!(starts(app, text).await, 401);
    assert_eq!(
        app.audited("key.revoked").await[0]["resource"],
        format!("key/{}", key["id"].as_str().unwrap())
    );
}

async fn a_key_stops_when_it_expires(app: &mut TestApp) {
    let wanted = json!({"kind": "write", "name": "Phone", "expiresAt": app.time(60)});
    let key = app.make_key(&wanted).await;
    let text = key["key"].as_str().unwrap();
    assert_eq!(starts(app, text).await, 200);
    app.advance(61);
    assert_eq!(starts(app, text).await, 401);
    assert!(
        listed(app, "Phone").await.is_some(),
        "it is listed until it is revoked"
    );
}

async fn the_last_use_is_noted_once_a_minute(app: &mut TestApp) {
    let key = app
        .make_key(&json!({"kind": "write", "name": "Phone"}))
        .await;
    let text = key["key"].as_str().unwrap().to_owned();
    let noted = async || listed(app, "Phone").await.unwrap()["lastUsedAt"].clone();
    assert_eq!(starts(app, &text).await, 200);
    let first = noted().await;
    assert!(first.is_string(), "whoever asks finds what was used before");

    app.advance(30);
    assert_eq!(starts(app, &text).await, 200);
    app.advance(31);
    assert_eq!(starts(app, &text).await, 200);
    let second = noted().await;
    assert!(second.as_str() > first.as_str());
    let written: Vec<(i64,)> = app
        .rows("SELECT last_used_at FROM keys WHERE name = 'Phone'")
        .await;
    assert!(
        (app.clock.now().0 - written[0].0) < 10_000_000,
        "the use after 61 s, not the one after 30"
    );
}

async fn a_reader_that_goes_away_takes_no_refused_use_along(app: &mut TestApp) {
    let server = app.key(Kind::Server, &[]).await;
    let mut held = app.services().db.write().await.unwrap();
    if held.dialect() == Dialect::Postgres {
        let lock = "LOCK TABLE audit_log IN SHARE ROW EXCLUSIVE MODE";
        held.sql(lock).execute().await.unwrap();
    }
    assert_eq!(starts(app, &server).await, 403);
    let list = app
        .request(Method::GET, &app.path("/audit-log"), &app.admin())
        .timeout(Duration::from_millis(100));
    assert!(list.send().await.unwrap_err().is_timeout());
    held.rollback().await.unwrap();
    assert_eq!(app.audited("key.refused").await.len(), 1);
}

async fn a_public_key_that_sends_what_a_backend_may_is_in_the_audit_log(app: &mut TestApp) {
    let body = json!({"userId": "ada", "events": [{"name": "opened", "timestamp": app.time(0)}]});
    for _ in 0..3 {
        app.post("/v1/sdk/ingest", &app.sdk(), &body)
            .await
            .refused(401, "subject_token_required");
    }
    let entries = app.audited("key.refused").await;
    assert_eq!(entries.len(), 1, "once a minute");
    assert_eq!(
        entries[0]["detail"],
        json!({"reason": "wrong_kind", "route": "POST /v1/sdk/ingest"})
    );
}

async fn refused_uses_are_in_the_audit_log_once_a_minute(app: &mut TestApp) {
    let server = app.key(Kind::Server, &[]).await;
    let gone = app
        .make_key(&json!({"kind": "write", "name": "gone"}))
        .await;
    let old = json!({"kind": "write", "name": "old", "expiresAt": app.time(10)});
    let old = app.make_key(&old).await;
    let path = app.path(&format!("/keys/{}", gone["id"].as_str().unwrap()));
    app.delete(&path, &app.admin()).await.data(204);
    app.advance(11);
    let abuse = async || {
        for _ in 0..5 {
            starts(app, gone["key"].as_str().unwrap()).await;
            starts(app, old["key"].as_str().unwrap()).await;
            starts(app, &server).await;
            let body = json!({"userId": "ada", "events": [{}]});
            let credential = Credential::bearer(&server);
            app.post("/v1/sdk/ingest", &credential, &body)
                .await
                .refused(403, "insufficient_scope");
            app.get(&app.path("/surveys"), &app.sdk())
                .await
                .refused(403, "insufficient_scope");
        }
    };
    let reasons = async || {
        let entries = app.audited("key.refused").await;
        let mut reasons: Vec<String> = entries
            .iter()
            .map(|entry| entry["detail"]["reason"].as_str().unwrap().to_owned())
            .collect();
        reasons.sort();
        reasons
    };
    abuse().await;
    let once = [
        "expired",
        "missing_scope",
        "revoked",
        "wrong_kind",
        "wrong_kind",
    ];
    assert_eq!(
        reasons().await,
        once,
        "whoever asks finds what was refused before"
    );
    let entries = app.audited("key.refused").await;
    for entry in entries {
        assert!(entry["actor"].as_str().unwrap().starts_with("key/"));
        assert_eq!(entry["actor"], entry["resource"]);
    }

    app.advance(60);
    abuse().await;
    app.until("a minute later they are not", async || {
        reasons().await.len() == 10
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_server_hears_of_a_revocation() {
    let (_folder, one, two) = pair().await;
    let key = one
        .make_key(&json!({"kind": "write", "name": "Phone"}))
        .await;
    let text = key["key"].as_str().unwrap();
    two.until("the other server never knows the key", async || {
        starts(&two, text).await == 200
    })
    .await;
    let path = one.path(&format!("/keys/{}", key["id"].as_str().unwrap()));
    one.delete(&path, &one.admin()).await.data(204);
    two.until("the other server never hears of it", async || {
        starts(&two, text).await == 401
    })
    .await;
    one.finish().await;
    two.finish().await;
}

/// While a server loads a plugin that another one activated, it knows nevertheless which keys there are.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_key_waits_for_a_plugin_that_another_server_loads() {
    let (_folder, one, two) = pair().await;
    deploy(&one, 1, 0).await;
    let made = one
        .make_key(&json!({"kind": "write", "name": "Phone"}))
        .await;
    let key = text(&made, "key");
    assert_eq!(starts(&two, &key).await, 200);
    upload(&one, versioned(1, 1)).await.data(201);
    let (db, plugins) = (&one.services().db, &one.services().plugins);
    let digest = nudge_wasm::digest(&versioned(1, 1));
    let loaded = plugins.loaders.load(db, &digest).await.unwrap();
    let mut lock = db.write().await.unwrap();
    lock.sql("LOCK TABLE plugin_components IN ACCESS EXCLUSIVE MODE")
        .execute()
        .await
        .unwrap();
    let second = json!({"version": version(1)});
    activate(&one, 1, second).await.ok();
    two.until_locked(1, "%FROM plugin_components%").await;

    let path = one.path(&format!("/keys/{}", text(&made, "id")));
    assert_eq!(one.delete(&path, &one.admin()).await.status, 204);
    two.until("the revoked key works", async || {
        assert!(!is_in_force(&two).await, "the version is loaded");
        starts(&two, &key).await == 401
    })
    .await;
    let other = one
        .make_key(&json!({"kind": "write", "name": "Tablet"}))
        .await;
    let other = text(&other, "key");
    assert_eq!(starts(&two, &other).await, 200);
    assert!(!is_in_force(&two).await, "the version is loaded");

    lock.rollback().await.unwrap();
    two.until("the version is not loaded", async || {
        is_in_force(&two).await
    })
    .await;
    assert_eq!(starts(&two, &key).await, 401);
    assert_eq!(starts(&two, &other).await, 200);
    drop(loaded);
    one.finish().await;
    two.finish().await;
}
