//! Identity keys: registered, listed, removed, in the app's snapshot (contract 2, 13).

use serde_json::{Value, json};
use tests::{TestApp, on_both_backends};

on_both_backends!(
    a_key_is_registered_listed_and_removed,
    what_is_no_public_key_is_refused_with_a_reason,
    an_app_has_at_most_five,
    the_list_has_pages,
);

/// The public key of RFC 8037, appendix A.2.
const ED25519: &str = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";

fn jwk() -> Value {
    json!({"kty": "OKP", "crv": "Ed25519", "x": ED25519})
}

/// The same key as PEM: the prefix of RFC 8410 and the key.
const PEM: &str = "-----BEGIN PUBLIC KEY-----\n\
    MCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=\n\
    -----END PUBLIC KEY-----\n";

async fn a_key_is_registered_listed_and_removed(app: &mut TestApp) {
    let path = app.path("/identity-keys");
    let body = json!({"kid": "2026/a+b=", "publicKey": jwk()});
    let made = app.post(&path, &app.admin(), &body).await.data(201);
    assert_eq!(
        (&made["kid"], &made["algorithm"]),
        (&json!("2026/a+b="), &json!("EdDSA"))
    );
    assert_eq!(made["fingerprint"].as_str().unwrap().len(), 64);

    let pem = json!({"kid": "pem", "publicKey": PEM});
    let same = app.post(&path, &app.admin(), &pem).await.data(201);
    assert_eq!(same["fingerprint"], made["fingerprint"]);
    app.post(&path, &app.admin(), &pem)
        .await
        .refused(409, "identity_key_exists");
    let listed = app.get(&path, &app.admin()).await.ok();
    let mut kids: Vec<&Value> = listed["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|key| &key["kid"])
        .collect();
    kids.sort_by_key(|kid| kid.as_str());
    assert_eq!(kids, ["2026/a+b=", "pem"]);
    let snapshot = app
        .services()
        .apps
        .get(app.access.app_id)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(snapshot.identity_keys.len(), 2);
    assert_eq!(snapshot.identity_keys[0].key.algorithm(), "EdDSA");

    let one = format!("{path}/2026%2Fa%2Bb%3D");
    app.delete(&one, &app.admin()).await.data(204);
    app.delete(&one, &app.admin())
        .await
        .refused(404, "not_found");
    let snapshot = app
        .services()
        .apps
        .get(app.access.app_id)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(snapshot.identity_keys.len(), 1);
    assert_eq!(app.audited("identity_key.created").await.len(), 2);
    assert_eq!(app.audited("identity_key.deleted").await.len(), 1);
}

async fn what_is_no_public_key_is_refused_with_a_reason(app: &mut TestApp) {
    let path = app.path("/identity-keys");
    let private = json!({"kty": "OKP", "crv": "Ed25519", "x": ED25519, "d": ED25519});
    for (body, pointer, hint) in [
        (
            json!({"kid": "k", "publicKey": private}),
            "/publicKey",
            "private",
        ),
        (
            json!({"kid": "k", "publicKey": "-----BEGIN EC PRIVATE KEY-----\n"}),
            "/publicKey",
            "private",
        ),
        (
            json!({"kid": "k", "publicKey": {"kty": "oct", "k": "c2VjcmV0"}}),
            "/publicKey",
            "private",
        ),
        (
            json!({"kid": "k", "publicKey": {"kty": "EC", "crv": "P-521"}}),
            "/publicKey",
            "ES256",
        ),
        (
            json!({"kid": "k", "publicKey": "hello"}),
            "/publicKey",
            "PEM",
        ),
        (json!({"kid": "", "publicKey": jwk()}), "/kid", "128"),
        (json!({"kid": "a b", "publicKey": jwk()}), "/kid", "128"),
        (
            json!({"kid": "k".repeat(129), "publicKey": jwk()}),
            "/kid",
            "128",
        ),
    ] {
        let answer = app.post(&path, &app.admin(), &body).await;
        let problem = answer.refused(422, "validation_failed");
        assert_eq!(answer.pointers(), [pointer], "{body}");
        assert!(
            problem["errors"][0]["detail"]
                .as_str()
                .unwrap()
                .contains(hint),
            "{problem}"
        );
        assert!(!answer.text.contains(ED25519), "a key is not repeated");
    }
    let longest = json!({"kid": "k".repeat(128), "publicKey": jwk()});
    app.post(&path, &app.admin(), &longest).await.data(201);
}

async fn an_app_has_at_most_five(app: &mut TestApp) {
    let path = app.path("/identity-keys");
    for number in 0..5 {
        let body = json!({"kid": format!("k{number}"), "publicKey": jwk()});
        app.post(&path, &app.admin(), &body).await.data(201);
    }
    let sixth = json!({"kid": "k5", "publicKey": jwk()});
    app.post(&path, &app.admin(), &sixth)
        .await
        .refused(422, "limit_exceeded");
    app.delete(&format!("{path}/k0"), &app.admin())
        .await
        .data(204);
    app.post(&path, &app.admin(), &sixth).await.data(201);
}

async fn the_list_has_pages(app: &mut TestApp) {
    let path = app.path("/identity-keys");
    for number in 0..5 {
        let body = json!({"kid": format!("k{number}"), "publicKey": jwk()});
        app.post(&path, &app.admin(), &body).await.data(201);
        // Two of each instant at the least.
        app.advance(number % 2);
    }
    let whole = app.get(&path, &app.admin()).await.ok();
    assert_eq!(whole["nextCursor"], json!(null));
    let mut pages: Vec<Value> = Vec::new();
    let mut query = "?limit=2".to_owned();
    loop {
        let page = app.get(&format!("{path}{query}"), &app.admin()).await.ok();
        let items = page["items"].as_array().unwrap();
        assert!((1..=2).contains(&items.len()), "{page}");
        pages.extend(items.iter().cloned());
        let Some(cursor) = page["nextCursor"].as_str() else {
            break;
        };
        query = format!("?limit=2&cursor={cursor}");
    }
    assert_eq!(&json!(pages), &whole["items"]);
    for query in ["?limit=0", "?limit=201"] {
        app.get(&format!("{path}{query}"), &app.admin())
            .await
            .refused(422, "validation_failed");
    }
    app.get(&format!("{path}?cursor=x"), &app.admin())
        .await
        .refused(400, "invalid_cursor");
}
