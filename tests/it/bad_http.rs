//! Requests that are odd before their body is looked at (contract 0, 14).

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use reqwest::Method;
use serde_json::json;
use tests::client;
use tests::{Credential, TestApp, on_both_backends};

on_both_backends!(
    unknown_routes_and_wrong_methods,
    request_ids_come_back,
    bad_text_in_paths_and_queries_is_refused,
    broken_http_does_not_stop_the_server,
    a_client_that_never_finishes_holds_up_no_shutdown,
);

async fn unknown_routes_and_wrong_methods(app: &mut TestApp) {
    for path in [
        "/v1",
        "/v2/sdk/ingest",
        "/v1/sdk/ingest/",
        "/v1/sdk/../../etc/passwd",
        "/%2e%2e/%00",
        &format!("/{}", "x".repeat(5000)),
    ] {
        app.get(path, &Credential::none())
            .await
            .refused(404, "not_found");
    }
    for (method, path) in [
        (Method::PUT, "/v1/sdk/ingest".to_owned()),
        (Method::GET, "/v1/sdk/ingest".to_owned()),
        (Method::DELETE, "/v1/errors".to_owned()),
        (Method::POST, "/openapi.json".to_owned()),
        (Method::PUT, app.path("/surveys")),
    ] {
        let answer = client::send(app.request(method.clone(), &path, &Credential::none())).await;
        answer.refused(405, "method_not_allowed");
        assert!(!answer.header("allow").is_empty(), "{method} {path}");
    }
}

async fn request_ids_come_back(app: &mut TestApp) {
    let send = async |id: &str| {
        client::send(
            app.request(Method::GET, "/v1/nothing", &Credential::none())
                .header("x-request-id", id),
        )
        .await
    };
    for sane in ["abc-123", "a.b:c_d", &"x".repeat(128)] {
        assert_eq!(
            send(sane).await.refused(404, "not_found")["requestId"],
            json!(sane)
        );
    }
    for odd in ["", "a b", "a\"b", "<script>", &"x".repeat(129)] {
        let own = send(odd).await.refused(404, "not_found")["requestId"].clone();
        assert_ne!(own, json!(odd));
    }
}

async fn bad_text_in_paths_and_queries_is_refused(app: &mut TestApp) {
    let ada = app.session("ada").await;
    for query in [
        "?limit=%ff",
        "?cursor=%ff%fe",
        "?wait=%00",
        "?limit=1&limit=2",
        "?%ff=1",
        "?limit=",
    ] {
        let answer = app.poll(&ada, query).await;
        assert!(
            answer.status == 200 || (400..500).contains(&answer.status),
            "{query}: {}",
            answer.text
        );
    }
    for query in [
        "?eventName=%00",
        "?eventName=%ff",
        "?reason=%27%3B%20DROP%20TABLE%20events",
        "?from=2026-01-01T00:00:00%2B99:99",
        "?from=9999999-01-01T00:00:00Z",
        "?to=%00",
    ] {
        let answer = app
            .get(&app.path(&format!("/dead-letters{query}")), &app.viewer())
            .await;
        assert!(
            answer.status == 200 || (400..500).contains(&answer.status),
            "{query}: {}",
            answer.text
        );
    }
    for id in ["%00", "%ff", "..", "'", "%2e%2e"] {
        let answer = app
            .get(&app.path(&format!("/surveys/{id}")), &app.viewer())
            .await;
        assert_eq!(answer.status, 404, "{id}: {}", answer.text);
    }
}

async fn broken_http_does_not_stop_the_server(app: &mut TestApp) {
    let address = app.access.base_url.trim_start_matches("http://").to_owned();
    let requests: [&[u8]; 6] = [
        b"\r\n\r\n",
        b"GET\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01",
        b"POST /v1/sdk/ingest HTTP/1.1\r\nhost: x\r\ncontent-length: -5\r\n\r\n",
        b"POST /v1/sdk/ingest HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nabcdef",
        b"POST /v1/sdk/ingest HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
    ];
    for request in requests {
        let address = address.clone();
        let request = request.to_vec();
        let answered = tokio::task::spawn_blocking(move || {
            let mut stream = TcpStream::connect(address).unwrap();
            stream
                .set_read_timeout(Some(Duration::from_secs(20)))
                .unwrap();
            stream.write_all(&request).unwrap();
            stream.shutdown(std::net::Shutdown::Write).unwrap();
            let mut answer = Vec::new();
            // A connection that is cut is an answer as well.
            drop(stream.read_to_end(&mut answer));
            String::from_utf8_lossy(&answer).into_owned()
        })
        .await
        .unwrap();
        assert!(
            answered.is_empty() || answered.starts_with("HTTP/1.1 4"),
            "{answered}"
        );
    }
    app.session("ada").await;
}

async fn a_client_that_never_finishes_holds_up_no_shutdown(app: &mut TestApp) {
    app.config.server.shutdown_seconds = 2;
    app.restart().await;
    let address = app.access.base_url.trim_start_matches("http://").to_owned();
    let _idle = TcpStream::connect(&address).unwrap();
    let mut slow = TcpStream::connect(&address).unwrap();
    slow.write_all(b"POST /v1/sdk/ingest HTTP/1.1\r\nhost: x\r\ncontent-")
        .unwrap();
    app.session("ada").await;

    let started = std::time::Instant::now();
    app.restart().await;

    assert!(
        started.elapsed() < Duration::from_secs(15),
        "{:?}",
        started.elapsed()
    );
    app.session("ada").await;
}
