//! Which pages may read answers (contract 0, `settings.allowedOrigins`).

use nudge_apps::key::Kind;
use reqwest::Method;
use serde_json::json;
use tests::{Answer, Credential, TestApp, client, on_both_backends};

on_both_backends!(
    answers_follow_the_app_of_the_key,
    preflights_are_answered_for_what_any_app_allows,
    a_restarted_server_knows_all_origins,
);

const SHOP: &str = "https://shop.example";
const OTHER: &str = "https://other.example";

async fn allow(app: &TestApp, origins: &[&str]) {
    let body = json!({"allowedOrigins": origins});
    app.patch(&app.path("/settings"), &app.admin(), &body)
        .await
        .ok();
}

async fn session(app: &TestApp, key: &Credential, origin: &str) -> Answer {
    let request = app.request(Method::POST, "/v1/sdk/session", key);
    let body = json!({"anonymousId": "ada"});
    client::send(request.header("origin", origin).json(&body)).await
}

async fn preflight(app: &TestApp, origin: &str) -> Answer {
    let request = app.request(Method::OPTIONS, "/v1/sdk/ingest", &Credential::none());
    let request = request
        .header("origin", origin)
        .header("access-control-request-method", "POST");
    client::send(request).await
}

fn allowed(answer: &Answer) -> &str {
    answer.header("access-control-allow-origin")
}

async fn answers_follow_the_app_of_the_key(app: &mut TestApp) {
    let (_, other) = app
        .another_app(app.access.workspace_id, Kind::Write, &[])
        .await;
    let other = Credential::bearer(&other);
    assert_eq!(allowed(&session(app, &app.sdk(), SHOP).await), "*");
    allow(app, &[SHOP, "http://localhost:3000"]).await;

    let read = session(app, &app.sdk(), SHOP).await;
    assert_eq!(allowed(&read), SHOP);
    assert_eq!(read.header("vary"), "origin");
    assert!(
        read.header("access-control-expose-headers")
            .contains("retry-after")
    );
    let unread = session(app, &app.sdk(), OTHER).await;
    assert_eq!((unread.status, allowed(&unread)), (200, ""));
    assert_eq!(allowed(&session(app, &other, OTHER).await), "*");
    // A refusal of the app is for its pages, one without an app for the pages of any.
    let body = app
        .request(Method::POST, "/v1/sdk/session", &app.sdk())
        .header("origin", OTHER)
        .json(&json!({}));
    assert_eq!(allowed(&client::send(body).await), "");
    assert_eq!(
        allowed(&session(app, &Credential::none(), OTHER).await),
        "*"
    );
    let plain = app
        .post(
            "/v1/sdk/session",
            &app.sdk(),
            &json!({"anonymousId": "ada"}),
        )
        .await;
    assert_eq!((allowed(&plain), plain.header("vary")), ("", "origin"));
}

async fn preflights_are_answered_for_what_any_app_allows(app: &mut TestApp) {
    assert_eq!(allowed(&preflight(app, OTHER).await), "*");
    allow(app, &[SHOP]).await;
    let good = preflight(app, SHOP).await;
    assert_eq!((good.status, allowed(&good)), (200, SHOP));
    let headers = good.header("access-control-allow-headers");
    for name in [
        "x-service-subject-token",
        "x-retry-count",
        // RudderStack's.
        "anonymousid",
        "sentat",
        "rsa-retry-attempt",
    ] {
        assert!(headers.contains(name), "{headers}");
    }
    assert_eq!(good.header("access-control-max-age"), "3600");
    let bad = preflight(app, OTHER).await;
    assert_eq!(
        (
            bad.status,
            allowed(&bad),
            bad.header("access-control-allow-methods")
        ),
        (200, "", "")
    );

    let made = app
        .post("/v1/apps", &app.admin(), &json!({"name": "Open"}))
        .await
        .data(201);
    assert_eq!(allowed(&preflight(app, OTHER).await), "*");
    let path = format!("/v1/apps/{}", made["id"].as_str().unwrap());
    app.delete(&path, &app.admin()).await.data(204);
    assert_eq!(allowed(&preflight(app, OTHER).await), "");
}

async fn a_restarted_server_knows_all_origins(app: &mut TestApp) {
    allow(app, &[SHOP]).await;
    app.restart().await;
    assert_eq!(allowed(&preflight(app, SHOP).await), SHOP);
    assert_eq!(allowed(&preflight(app, OTHER).await), "");
}
