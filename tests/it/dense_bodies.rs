//! Short bodies that would become large in memory (contract 15): they are refused before they are parsed, and whatever is
//! taken stays in proportion.

use std::io::Write as _;

use reqwest::Method;
use serde_json::{Value, json};
use tests::client::{self, Answer};
use tests::{Child, Credential, TestApp, on_both_backends, site};
use tokio::task::JoinSet;

use crate::attempts::{answer, link_survey, start};

on_both_backends!(
    no_route_parses_a_body_out_of_proportion,
    dense_requests_of_events_are_refused_as_what_they_are,
    answers_have_a_limit_and_all_that_questions_take_fits,
    a_survey_that_many_requests_build_stays_in_proportion,
    pages_of_large_items_end_early_and_go_on,
);

const MIB: usize = 1024 * 1024;

/// A list of so many bytes, each item of which takes a hundred times its text in memory.
fn dense(bytes: usize) -> String {
    let piece = "{\"\":0},";
    format!("[{}0]", piece.repeat(bytes / piece.len()))
}

fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

async fn send(app: &TestApp, method: &str, path: &str, who: &Credential, text: &str) -> Answer {
    let method = Method::from_bytes(method.to_uppercase().as_bytes()).unwrap();
    let request = app.request(method, path, who);
    let request = request
        .header("content-type", "application/json")
        .header("content-encoding", "gzip");
    client::send(request.body(gzip(text))).await
}

/// The credentials with which each operation lets somebody in, tried one after another.
async fn credentials(app: &TestApp) -> Vec<Credential> {
    let server = app.key(
        nudge_apps::key::Kind::Server,
        &["events.write", "push.transactional"],
    );
    let api = app.key(nudge_apps::key::Kind::Api, &["users.properties.write"]);
    vec![
        app.session("ada").await.credential(),
        app.admin(),
        app.operator(),
        Credential::bearer(&server.await),
        Credential::bearer(&api.await),
    ]
}

/// Every operation that the server's description gives a JSON body.
async fn no_route_parses_a_body_out_of_proportion(app: &mut TestApp) {
    let description = app.get("/openapi.json", &Credential::none()).await;
    let description: Value = serde_json::from_str(&description.text).unwrap();
    let body = format!(
        "{{\"anonymousId\": \"ada\", \"more\": {}}}",
        dense(MIB - 100)
    );
    let credentials = credentials(app).await;
    let mut tried = 0;
    for (path, operations) in description["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            let takes_json = operation.pointer("/requestBody/content/application~1json");
            // Events and messages stay text.
            let stays_text = [
                "/v1/sdk/ingest",
                "/v1/compat/v1/{kind}",
                "/v1/compat/beacon/v1/batch",
                "/v1/batch",
            ];
            if takes_json.is_none() || stays_text.contains(&path.as_str()) {
                continue;
            }
            let path = path.replace("{kind}", "trigger");
            let mut path = path.replace("{appId}", &app.access.app_id.to_string());
            while let (Some(from), Some(to)) = (path.find('{'), path.find('}')) {
                path.replace_range(from..=to, &uuid::Uuid::nil().to_string());
            }
            let mut last = None;
            for credential in &credentials {
                let answer = send(app, method, &path, credential, &body).await;
                let shut_out = [401, 403].contains(&answer.status);
                last = Some(answer);
                if !shut_out {
                    break;
                }
            }
            let answer = last.unwrap();
            assert_eq!(answer.status, 413, "{method} {path}: {}", answer.text);
            answer.refused(413, "payload_too_large");
            tried += 1;
        }
    }
    assert!(tried > 40, "{tried}");
    // Nothing of it is kept.
    app.until("the room is free", async || {
        app.services().admission.body_bytes() == 0
    })
    .await;
}

async fn dense_requests_of_events_are_refused_as_what_they_are(app: &mut TestApp) {
    let ada = app.session("ada").await;
    let ingest =
        async |text: &str| send(app, "post", "/v1/sdk/ingest", &ada.credential(), text).await;
    let context = "\"context\": {\"anonymousId\": \"ada\"}";
    for piece in ["{},", "0,", "[],", "{\"\":0},"] {
        for bytes in [60 * 1024, MIB - 200] {
            let events = piece.repeat(bytes / piece.len());
            let answer = ingest(&format!("{{{context}, \"events\": [{events}0]}}")).await;
            answer.refused(422, "validation_failed");
            assert_eq!(answer.pointers(), ["/events"], "{piece}");
        }
    }
    let event = app.event(&ada, "bought", &json!({}));
    let more = dense(MIB / 2);
    let answer = ingest(&format!(
        "{{{context}, \"events\": [{event}], \"delivery\": {{\"eventIds\": {more}}}}}"
    ))
    .await;
    answer.refused(422, "invalid_delivery");
    // What nobody reads is gone over.
    let answer = ingest(&format!(
        "{{{context}, \"events\": [{event}], \"more\": {more}}}"
    ))
    .await;
    assert_eq!(answer.ok()["accepted"], 1);
    // An event without an id, of which one is made from all that it says.
    let dense = dense(60 * 1024);
    let event =
        json!({"name": "bought", "timestamp": app.time(0), "anonymousId": "ada"}).to_string();
    let event = event.replacen('{', &format!("{{\"properties\": {{\"all\": {dense}}},"), 1);
    for _ in 0..2 {
        let answer = ingest(&format!("{{{context}, \"events\": [{event}]}}")).await;
        assert_eq!(answer.ok()["accepted"], 1);
    }
    app.settle().await;
    assert_eq!(app.stored("bought").await, 2);
}

async fn answers_have_a_limit_and_all_that_questions_take_fits(app: &mut TestApp) {
    let flow = json!({"questions": [
        {"id": "q1", "type": "long_text", "title": "Why?", "required": true},
        {"id": "q2", "type": "contact_info", "title": "Who?", "fields": (0..100).map(|number| {
            json!({"id": format!("field-{number}"), "label": "Name"})
        }).collect::<Vec<_>>()},
    ]});
    let survey = link_survey(app, flow).await;
    let ada = app.session("ada").await;
    let attempt = start(app, &ada, survey).await;

    // The longest words, each letter as two escapes.
    let words = "\\ud83d\\ude00".repeat(10_000);
    let body = format!(
        r#"{{"anonymousId": "ada", "answers": [{{"questionId": "q1", "value": "{words}"}}]}}"#
    );
    let path = format!("/v1/sdk/attempts/{attempt}/answers");
    app.post_raw(&path, &ada.credential(), body).await.ok();
    let contact: serde_json::Map<String, Value> = (0..100)
        .map(|number| (format!("field-{number}"), json!("😀".repeat(500))))
        .collect();
    answer(app, &ada, &attempt, json!([["q2", contact]]))
        .await
        .ok();

    for value in [
        json!("x".repeat(256 * 1024)),
        json!({"other": "x".repeat(300 * 1024)}),
    ] {
        let refused = answer(app, &ada, &attempt, json!([["q2", contact], ["q1", value]])).await;
        refused.refused(422, "invalid_answer");
        assert_eq!(refused.pointers(), ["/answers/1/value"]);
    }
    // What is JSON, but nothing that can be kept.
    for value in ["1e400", "\"\\ud800\""] {
        let body = format!(
            r#"{{"anonymousId": "ada", "answers": [{{"questionId": "q1", "value": {value}}}]}}"#
        );
        let refused = app.post_raw(&path, &ada.credential(), body).await;
        refused.refused(422, "invalid_answer");
        assert_eq!(refused.pointers(), ["/answers/0/value"], "{value}");
    }
}

/// Each patch is in proportion, all of them together are not.
async fn a_survey_that_many_requests_build_stays_in_proportion(app: &mut TestApp) {
    let made = app
        .post(&app.path("/surveys"), &app.editor(), &json!({"name": "x"}))
        .await
        .data(201);
    let path = app.path(&format!("/surveys/{}", tests::session::text(&made, "id")));
    let part: Value = serde_json::from_str(&dense(4 * 1024)).unwrap();
    let mut refused = 0;
    for number in 0..40 {
        let place = if number % 2 == 0 { "theme" } else { "settings" };
        let change = json!({place: {format!("part-{number}"): part}});
        let answer = app.patch(&path, &app.editor(), &change).await;
        if answer.status == 422 {
            refused += 1;
        } else {
            answer.ok();
        }
    }
    assert!(refused > 20, "{refused}");
    app.patch(
        &path,
        &app.editor(),
        &json!({"theme": null, "settings": null}),
    )
    .await
    .ok();
}

/// All items of a list of large pages, and how many pages they took.
async fn all(app: &TestApp, path: &str) -> (Vec<Value>, usize) {
    let (mut items, mut pages, mut more) = (Vec::new(), 0, String::new());
    loop {
        let page = app.get(&format!("{path}{more}"), &app.viewer()).await;
        assert!(page.text.len() < 8 * MIB, "{} bytes", page.text.len());
        let page = page.ok();
        items.extend(page["items"].as_array().unwrap().clone());
        pages += 1;
        match page["nextCursor"].as_str() {
            Some(next) => more = format!("&cursor={next}"),
            None => return (items, pages),
        }
    }
}

async fn pages_of_large_items_end_early_and_go_on(app: &mut TestApp) {
    app.define(
        "broken",
        &json!({"properties": [{"name": "price", "type": "number", "required": true}]}),
    )
    .await;
    let ada = app.session("ada").await;
    let large = json!({"text": "x".repeat(60 * 1024)});
    for _ in 0..10 {
        for name in ["opened", "broken"] {
            let events: Vec<Value> = (0..15).map(|_| app.event(&ada, name, &large)).collect();
            app.ingest(&ada, &events).await.ok();
        }
    }
    app.settle().await;
    for (path, id) in [
        (app.path("/users/ada/events?limit=500"), "eventId"),
        (app.path("/dead-letters?limit=200"), "id"),
    ] {
        let (items, pages) = all(app, &path).await;
        let ids: std::collections::BTreeSet<&str> = items
            .iter()
            .map(|item| item[id].as_str().unwrap())
            .collect();
        assert_eq!((items.len(), ids.len()), (150, 150), "{path}");
        assert!(pages > 1, "{path}");
    }
}

/// The most memory that a process had, in bytes.
fn peak(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.unwrap().trim().strip_suffix(" kB").unwrap();
    kilobytes.parse::<u64>().unwrap() * 1024
}

/// With 32 bodies of 1 MiB, which a public key sends as some kilobytes each, on routes that keep them in different ways.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bodies_of_strangers_do_not_fill_memory() {
    let folder = tempfile::tempdir().unwrap();
    let child = Child::start(site!(), folder.path());
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let base = child.text("baseUrl").to_owned();
    let key = child.text("writeKey").to_owned();
    let request = |path: &str, body: &str| {
        http.post(format!("{base}{path}"))
            .bearer_auth(&key)
            .header("content-type", "application/json")
            .header("content-encoding", "gzip")
            .body(gzip(body))
    };
    let opened = request("/v1/sdk/session", r#"{"anonymousId": "ada"}"#);
    let opened: Value = opened.send().await.unwrap().json().await.unwrap();
    let token = tests::session::text(&opened["data"], "subjectToken");
    let dense = dense(MIB - 200);
    let events = "{},".repeat((MIB - 200) / 3);
    let answers = format!(
        r#"{{"anonymousId": "ada", "answers": [{{"questionId": "q1", "value": {dense}}}]}}"#
    );
    let events = format!(r#"{{"context": {{"anonymousId": "ada"}}, "events": [{events}0]}}"#);
    let properties = format!(r#"{{"anonymousId": "ada", "set": {{"a": {dense}}}}}"#);
    let attempt = format!("/v1/sdk/attempts/{}/answers", uuid::Uuid::nil());
    let before = peak(child.id());
    for (path, body) in [
        (&*attempt, &answers),
        ("/v1/sdk/ingest", &events),
        ("/v1/sdk/user-properties", &properties),
    ] {
        let mut requests = JoinSet::new();
        for _ in 0..32 {
            let request = request(path, body).header("x-service-subject-token", &token);
            requests.spawn(async move { request.send().await.unwrap().status().as_u16() });
        }
        for status in requests.join_all().await {
            assert!([413, 422, 503].contains(&status), "{path}: {status}");
        }
    }
    // As text they are 32 MiB, there at most three times; parsed they would be 3 GiB.
    let grown = peak(child.id()) - before;
    assert!(grown < 160 * 1024 * 1024, "{} MiB", grown >> 20);
    child.kill();
}

/// Of what names many segments, a list of segments has the name alone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_of_segments_does_not_hold_all_that_names_them() {
    let folder = tempfile::tempdir().unwrap();
    let child = Child::start(site!(), folder.path());
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let path = format!("{}/v1/apps/{}", child.text("baseUrl"), child.text("appId"));
    let send = async |method: Method, rest: &str, body: &Value| -> Value {
        let request = http.request(method, format!("{path}{rest}"));
        let request = request.bearer_auth(child.text("editorToken")).json(body);
        let answer = request.send().await.unwrap().error_for_status().unwrap();
        answer.json().await.unwrap()
    };
    let mut leaves = Vec::new();
    for number in 0..45 {
        let segment = json!({"name": format!("Segment {number}"), "audience": {}});
        let made = send(Method::POST, "/segments", &segment).await;
        leaves.push(json!({"kind": "segment", "segmentId": made["data"]["id"], "in": true}));
    }
    for number in 0..30 {
        let survey = json!({"name": format!("Survey {number}"), "description": "x".repeat(200 * 1024),
            "audience": {"include": {"any": leaves}}});
        send(Method::POST, "/surveys", &survey).await;
    }
    let before = peak(child.id());
    let listed = send(Method::GET, "/segments?limit=200", &json!({})).await;
    let users = listed["data"]["items"][0]["usedBy"].as_array().unwrap();
    assert_eq!(users.len(), 30);
    assert!(
        users
            .iter()
            .all(|user| user["name"].as_str().unwrap().starts_with("Survey "))
    );
    // The surveys have 6 MiB; once for each segment they would be 260.
    let grown = peak(child.id()) - before;
    assert!(grown < 64 * 1024 * 1024, "{} MiB", grown >> 20);
    child.kill();
}
