//! How bodies come: their size, compression and media type (contract 0, 15).

use std::io::Write as _;

use reqwest::Method;
use serde_json::json;
use tests::client::{self, Answer};
use tests::{Session, TestApp, on_both_backends};

on_both_backends!(
    a_body_has_at_most_1_mib,
    compressed_bodies_are_read,
    broken_compression_is_refused,
    only_json_is_taken,
);

const MIB: usize = 1024 * 1024;

/// Sends a body to ingest as it is.
pub(crate) async fn ingest(app: &TestApp, ada: &Session, body: impl Into<reqwest::Body>) -> Answer {
    app.post_raw("/v1/sdk/ingest", &ada.credential(), body)
        .await
}

/// A request of one event with these properties, as text.
pub(crate) fn with_properties(app: &TestApp, properties: &str) -> String {
    format!(
        r#"{{"context": {{"anonymousId": "ada"}}, "events": [{{"name": "opened", "timestamp": "{}", "anonymousId": "ada", "properties": {properties}}}]}}"#,
        app.time(0)
    )
}

/// A request of exactly so many bytes, with an event that is not too large.
fn of_size(app: &TestApp, bytes: usize) -> String {
    let body = with_properties(app, "{}");
    format!("{}{}", body, " ".repeat(bytes - body.len()))
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn brotli(text: &[u8]) -> Vec<u8> {
    let mut compressed = Vec::new();
    let mut encoder = brotli::CompressorWriter::new(&mut compressed, 4096, 5, 20);
    encoder.write_all(text).unwrap();
    drop(encoder);
    compressed
}

fn large_brotli(text: &[u8]) -> Vec<u8> {
    let params = brotli::enc::BrotliEncoderParams {
        quality: 5,
        large_window: true,
        lgwin: 30,
        ..Default::default()
    };
    let mut compressed = Vec::new();
    let mut encoder = brotli::CompressorWriter::with_params(&mut compressed, 4096, &params);
    encoder.write_all(text).unwrap();
    drop(encoder);
    compressed
}

async fn post_compressed(app: &TestApp, ada: &Session, encoding: &str, body: Vec<u8>) -> Answer {
    let request = app.request(Method::POST, "/v1/sdk/ingest", &ada.credential());
    let request = request
        .header("content-type", "application/json")
        .header("content-encoding", encoding);
    client::send(request.body(body)).await
}

async fn a_body_has_at_most_1_mib(app: &mut TestApp) {
    let ada = app.session("ada").await;
    assert_eq!(
        ingest(app, &ada, of_size(app, MIB)).await.ok()["accepted"],
        1
    );
    ingest(app, &ada, of_size(app, MIB + 1))
        .await
        .refused(413, "payload_too_large");

    let compress = async |bytes: usize| {
        post_compressed(app, &ada, "gzip", gzip(of_size(app, bytes).as_bytes())).await
    };
    assert_eq!(compress(MIB).await.ok()["accepted"], 1);
    compress(MIB + 1).await.refused(413, "payload_too_large");
    // What is not compressed at all is somewhat longer than what it stands for.
    let stored = async |bytes: usize| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
        encoder.write_all(of_size(app, bytes).as_bytes()).unwrap();
        post_compressed(app, &ada, "gzip", encoder.finish().unwrap()).await
    };
    assert_eq!(stored(MIB).await.ok()["accepted"], 1);
    stored(MIB + 1).await.refused(413, "payload_too_large");
    // A bomb: a megabyte that would become a gigabyte.
    let mut bomb = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let zeros = vec![b' '; MIB];
    for _ in 0..64 {
        bomb.write_all(&zeros).unwrap();
    }
    let bomb = bomb.finish().unwrap();
    post_compressed(app, &ada, "gzip", bomb)
        .await
        .refused(413, "payload_too_large");
    let blanks = vec![b' '; 64 * MIB];
    let bomb = zstd::bulk::compress(&blanks, 1).unwrap();
    post_compressed(app, &ada, "zstd", bomb)
        .await
        .refused(413, "payload_too_large");
    post_compressed(app, &ada, "br", brotli(&blanks))
        .await
        .refused(413, "payload_too_large");
    // One with a window that HTTP's `br` does not have (RFC 7932, 9.1).
    post_compressed(app, &ada, "br", large_brotli(&blanks))
        .await
        .refused(400, "invalid_encoding");

    let name = "x".repeat(MIB);
    let answer = app
        .post(&app.path("/surveys"), &app.editor(), &json!({"name": name}))
        .await;
    answer.refused(413, "payload_too_large");
}

async fn compressed_bodies_are_read(app: &mut TestApp) {
    let ada = app.session("ada").await;
    let body = with_properties(app, "{}");
    let text = body.as_bytes();
    for (encoding, compressed) in [
        ("gzip", gzip(text)),
        ("GZIP", gzip(text)),
        ("zstd", zstd::bulk::compress(text, 3).unwrap()),
        ("br", brotli(text)),
        ("identity", text.to_vec()),
    ] {
        let answer = post_compressed(app, &ada, encoding, compressed).await;
        assert_eq!(answer.ok()["accepted"], 1, "{encoding}");
    }
}

async fn broken_compression_is_refused(app: &mut TestApp) {
    let ada = app.session("ada").await;
    let body = of_size(app, 5000);
    let text = body.as_bytes();
    for (encoding, whole) in [
        ("gzip", gzip(text)),
        ("zstd", zstd::bulk::compress(text, 3).unwrap()),
        ("br", brotli(text)),
    ] {
        for broken in [
            whole[..whole.len() / 2].to_vec(),
            whole[..whole.len() - 1].to_vec(),
            text.to_vec(),
            Vec::new(),
            vec![0; 100],
        ] {
            let answer = post_compressed(app, &ada, encoding, broken.clone()).await;
            let code = answer.problem()["code"].as_str().unwrap().to_owned();
            assert!(
                answer.status == 400
                    && ["invalid_encoding", "malformed_json"].contains(&code.as_str()),
                "{encoding}, {} bytes: {}",
                broken.len(),
                answer.text
            );
        }
    }
    for unknown in ["deflate", "gzip, gzip", "rot13"] {
        post_compressed(app, &ada, unknown, text.to_vec())
            .await
            .refused(415, "unsupported_media_type");
    }
    assert_eq!(app.stored("opened").await, 0);
}

async fn only_json_is_taken(app: &mut TestApp) {
    let ada = app.session("ada").await;
    let send = async |content_type: &str| {
        let request = app.request(Method::POST, "/v1/sdk/ingest", &ada.credential());
        let request = if content_type.is_empty() {
            request
        } else {
            request.header("content-type", content_type)
        };
        client::send(request.body(with_properties(app, "{}"))).await
    };
    for good in [
        "application/json",
        "application/json; charset=utf-8",
        "Application/JSON",
    ] {
        send(good).await.ok();
    }
    for bad in [
        "",
        "text/plain",
        "application/x-www-form-urlencoded",
        "application/xml",
        "json",
        ";",
        "multipart/form-data; boundary=x",
    ] {
        send(bad).await.refused(415, "unsupported_media_type");
    }
}
