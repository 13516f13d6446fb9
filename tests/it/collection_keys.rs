//! Keys of existing SDKs (contract 24): where clients send them, what a public one may say, and from which pages.

use nudge_apps::key::Kind;
use reqwest::Method;
use serde_json::{Value, json};
use tests::client::send;
use tests::session::text;
use tests::{Credential, TestApp, on_both_backends};

use crate::collection::{basic, errors, events, names, person, publicly, say, taken};

on_both_backends!(
    a_public_key_speaks_for_nobody,
    what_a_public_key_says_of_somebody_is_a_clients,
    keys_come_as_clients_send_them,
    a_beacon_has_its_key_in_the_url,
    pages_of_allowed_origins_may_send_messages,
);

async fn a_public_key_speaks_for_nobody(app: &mut TestApp) {
    let identify = json!({"anonymousId": "device", "userId": "ada", "traits": {"plan": "pro"}});
    taken(&publicly(app, "identify", &identify).await);
    taken(
        &publicly(
            app,
            "track",
            &json!({"anonymousId": "device", "userId": "ada", "event": "seen"}),
        )
        .await,
    );
    let all = events(app).await;
    assert_eq!(
        (&all[0]["anonymousId"], &all[0]["source"]),
        (&json!("device"), &json!("sdk"))
    );
    let (profile, properties) = person(app, "device").await;
    assert_eq!(
        (&profile["identified"], properties),
        (&json!(false), json!({"plan": "pro"}))
    );
    app.get(&app.path("/users/ada"), &app.viewer())
        .await
        .refused(404, "not_found");
    let nobody = publicly(app, "track", &json!({"userId": "ada", "event": "seen"})).await;
    assert_eq!(
        errors(&nobody),
        [("/anonymousId".to_owned(), "required".to_owned())]
    );

    // Once a server has said who it is, the public key says nothing more about them.
    taken(&say(app, "identify", &identify).await);
    for (kind, message) in [
        ("track", json!({"event": "seen"})),
        ("identify", json!({"traits": {"plan": "free"}})),
    ] {
        let mut message = message;
        message["anonymousId"] = json!("device");
        let refused = publicly(app, kind, &message).await;
        assert_eq!(
            errors(&refused),
            [(String::new(), "identity_required".to_owned())]
        );
    }
    assert_eq!(person(app, "ada").await.1, json!({"plan": "pro"}));
    // A user id, which is ignored, makes no one person of them.
    for user_id in [Value::Null, json!("eve")] {
        let one = |number| json!({"type": "track", "event": "x", "anonymousId": number, "userId": user_id});
        let many: Vec<Value> = (0..51).map(one).collect();
        let refused = publicly(app, "batch", &json!({"batch": many})).await;
        assert_eq!(
            errors(&refused),
            [("/batch".to_owned(), "too_many_people".to_owned())]
        );
    }

    app.set(|settings| settings.ingest.allow_unverified_server_events = true)
        .await;
    let message = json!({"anonymousId": "other", "userId": "eve", "event": "seen", "traits": {"plan": "free"}});
    taken(&publicly(app, "track", &message).await);
    taken(&publicly(app, "identify", &message).await);
    assert_eq!(person(app, "eve").await.1, json!({"plan": "free"}));
    // What is not verified links nobody.
    app.get(&app.path("/users/other"), &app.viewer())
        .await
        .refused(404, "not_found");
}

/// A server's properties are those that the privacy policy allows; a client's are not.
async fn what_a_public_key_says_of_somebody_is_a_clients(app: &mut TestApp) {
    app.set(|settings| {
        settings.privacy.allow_keys = Some(vec!["plan".to_owned()]);
        settings.privacy.deny_keys = vec!["ssn".to_owned()];
    })
    .await;
    let traits = json!({"plan": "pro", "colour": "red", "ssn": "1"});
    let message = |name: &str| json!({"anonymousId": name, "traits": traits});
    taken(&publicly(app, "identify", &message("client")).await);
    taken(&say(app, "identify", &message("server")).await);
    for (name, source, keys) in [
        ("client", "sdk", vec!["colour", "plan"]),
        ("server", "api", vec!["plan"]),
    ] {
        let path = app.path(&format!("/users/{name}"));
        let shown = app.get(&path, &app.viewer()).await.ok();
        let properties = shown["properties"].as_array().unwrap();
        let mut found: Vec<String> = properties.iter().map(|one| text(one, "key")).collect();
        found.sort_unstable();
        assert_eq!(found, keys, "{name}");
        assert!(
            properties.iter().all(|one| one["source"] == source),
            "{shown}"
        );
    }
}

async fn keys_come_as_clients_send_them(app: &mut TestApp) {
    let server = app.access.server_key.clone();
    let message = |key: Option<&str>| json!({"type": "track", "event": "x", "userId": "ada", "writeKey": key});
    let track = "/v1/compat/v1/track";
    taken(
        &app.post(track, &basic(&server), &message(Some(&server)))
            .await,
    );
    taken(
        &app.post(track, &Credential::none(), &message(Some(&server)))
            .await,
    );
    taken(&app.post(track, &app.backend(), &message(None)).await);
    let header = Credential::none().and("x-write-key", &server);
    taken(&app.post(track, &header, &message(None)).await);
    let batch = json!({"batch": [message(None)], "writeKey": server});
    taken(&app.post("/v1/batch", &Credential::none(), &batch).await);
    // Browsers send plain text, or nothing that says what it is.
    for media_type in [Some("text/plain"), Some("text/plain;charset=UTF-8"), None] {
        let mut request = app.request(Method::POST, track, &Credential::none());
        if let Some(media_type) = media_type {
            request = request.header("content-type", media_type);
        }
        taken(&send(request.body(message(Some(&server)).to_string())).await);
    }
    let form = app
        .request(Method::POST, track, &basic(&server))
        .header("content-type", "text/html");
    send(form.body("{}"))
        .await
        .refused(415, "unsupported_media_type");

    let write = app.access.write_key.clone();
    let different = app
        .post(track, &basic(&server), &message(Some(&write)))
        .await;
    different.refused(400, "credential_conflict");
    for key in [&write, "nonsense"] {
        let both = basic(&server).and("x-write-key", key);
        let answer = app.post(track, &both, &message(None)).await;
        answer.refused(400, "credential_conflict");
    }
    let same = basic(&server).and("x-write-key", &server);
    taken(&app.post(track, &same, &message(None)).await);
    let scopeless = app.key(Kind::Server, &[]).await;
    for key in [scopeless, app.access.api_token.clone()] {
        app.post(track, &basic(&key), &message(None))
            .await
            .refused(403, "insufficient_scope");
        app.post(track, &Credential::none(), &message(Some(&key)))
            .await
            .refused(403, "insufficient_scope");
    }
    app.post(track, &Credential::none(), &message(None))
        .await
        .refused(401, "invalid_credentials");
    app.post(track, &basic("wk_nobody"), &message(None))
        .await
        .refused(401, "invalid_credentials");
    app.post_raw(track, &Credential::none(), "{")
        .await
        .refused(401, "invalid_credentials");
}

async fn a_beacon_has_its_key_in_the_url(app: &mut TestApp) {
    let beacon = async |key: &str, credential: &Credential| {
        let path = format!("/v1/compat/beacon/v1/batch?writeKey={key}");
        let page = json!({"type": "page", "anonymousId": "browser", "name": "Home"});
        let request = app.request(Method::POST, &path, credential);
        let request = request.header("content-type", "text/plain");
        send(request.body(json!({"batch": [page]}).to_string())).await
    };
    let (write, server) = (&*app.access.write_key, &*app.access.server_key);
    taken(&beacon(write, &Credential::none()).await);
    assert_eq!(names(&events(app).await), ["page_viewed"]);
    for (key, credential, status, code) in [
        (write, basic(server), 400, "credential_conflict"),
        ("wk_nobody", Credential::none(), 401, "invalid_credentials"),
        ("", Credential::none(), 401, "invalid_credentials"),
        // Proxies log URLs.
        (server, Credential::none(), 403, "insufficient_scope"),
    ] {
        beacon(key, &credential).await.refused(status, code);
    }
}

async fn pages_of_allowed_origins_may_send_messages(app: &mut TestApp) {
    app.patch(
        &app.path("/settings"),
        &app.admin(),
        &json!({"allowedOrigins": ["https://shop.example"]}),
    )
    .await
    .ok();
    let body =
        json!({"anonymousId": "a", "event": "x", "writeKey": app.access.write_key}).to_string();
    for (origin, allowed) in [
        ("https://shop.example", "https://shop.example"),
        ("https://other.example", ""),
    ] {
        let credential = Credential::none().and("origin", origin);
        let request = app.request(Method::POST, "/v1/compat/v1/t", &credential);
        let answer = send(
            request
                .header("content-type", "text/plain")
                .body(body.clone()),
        )
        .await;
        taken(&answer);
        assert_eq!(answer.header("access-control-allow-origin"), allowed);
        let ask = credential.and("access-control-request-method", "POST");
        let answer = send(app.request(Method::OPTIONS, "/v1/compat/v1/t", &ask)).await;
        assert_eq!(
            (answer.status, answer.header("access-control-allow-origin")),
            (200, allowed)
        );
    }
}
