//! Copies of what is stored of a person (specification 2.10, contract 6).

use std::collections::BTreeSet;
use std::io::{Cursor, Read as _};

use aws_lc_rs::digest;
use reqwest::Method;
use serde_json::{Value, json};
use tests::client::send;
use tests::session::{hex, text};
use tests::{Credential, TestApp, on_both_backends};
use uuid::Uuid;

use crate::attempts::{answer, forked, link_survey, start};
use crate::deletion::{delete, deleted};

on_both_backends!(
    an_export_has_everything_of_the_person_and_nothing_of_others,
    exactly_one_reference_of_a_known_person,
    names_of_the_servers_own_are_left_out,
    what_plugins_keep_of_the_person_is_copied,
    a_link_is_good_for_a_quarter_of_an_hour_and_an_archive_for_a_week,
    a_link_that_was_changed_is_that_of_nothing,
    a_link_ends_with_its_app,
    large_exports_are_made_in_pieces_and_survive_restarts,
    the_export_of_a_deleted_person_is_gone,
    an_export_that_runs_while_the_person_is_deleted_leaves_nothing,
    an_export_that_runs_while_the_person_is_merged_is_of_both,
);

pub(crate) async fn export(app: &TestApp, reference: &Value) -> String {
    let path = app.path("/gdpr/export");
    let data = app.post(&path, &app.admin(), reference).await.data(202);
    assert_eq!(data["status"], "queued");
    text(&data, "exportId")
}

async fn view(app: &TestApp, id: &str) -> Value {
    let path = app.path(&format!("/gdpr/exports/{id}"));
    app.get(&path, &app.admin()).await.ok()
}

pub(crate) async fn reaches(app: &TestApp, id: &str, status: &str) -> Value {
    app.until(&format!("the export is {status}"), async || {
        view(app, id).await["status"] == status
    })
    .await;
    view(app, id).await
}

/// The path of a download, since the server's address changes with a restart.
fn path_of(view: &Value) -> String {
    let url = text(view, "downloadUrl");
    url[url.find("/v1/").unwrap()..].to_owned()
}

pub(crate) async fn download(app: &TestApp, view: &Value) -> Vec<u8> {
    let request = app.request(Method::GET, &path_of(view), &Credential::none());
    let response = request.send().await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-type"], "application/zip");
    let bytes = response.bytes().await.unwrap().to_vec();
    assert_eq!(view["sizeBytes"], bytes.len());
    let hash = digest::digest(&digest::SHA256, &bytes);
    let digest = hex(hash.as_ref());
    assert_eq!(view["sha256"], digest);
    bytes
}

pub(crate) fn file(archive: &[u8], name: &str) -> String {
    let mut zip = zip::ZipArchive::new(Cursor::new(archive)).unwrap();
    let mut text = String::new();
    zip.by_name(name)
        .unwrap()
        .read_to_string(&mut text)
        .unwrap();
    text
}

pub(crate) fn lines(archive: &[u8], name: &str) -> Vec<Value> {
    let text = file(archive, name);
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

async fn an_export_has_everything_of_the_person_and_nothing_of_others(app: &mut TestApp) {
    app.survey(&json!({"kind": "event", "eventName": "purchase"}))
        .await;
    app.define(
        "checked",
        &json!({"properties": [{"name": "a", "type": "string", "required": true}]}),
    )
    .await;
    let client_id = app.id();
    let body = json!({"anonymousId": "ada", "clientId": client_id});
    app.post("/v1/sdk/session", &app.sdk(), &body).await.ok();
    let (ada, bob) = (app.session("ada").await, app.session("bob").await);
    let events = [
        app.event(
            &ada,
            "purchase",
            &json!({"total": 7, "note": "größe \"L\"\n"}),
        ),
        app.event(&ada, "checked", &json!({"b": 1})),
    ];
    app.ingest(&ada, &events).await.ok();
    let token = json!({"provider": "fcm", "token": "adas-own-very-long-push-token"});
    app.push_token(&ada, "phone", &token).await;
    app.ingest(
        &bob,
        &[app.event(&bob, "purchase", &json!({"note": "of bob"}))],
    )
    .await
    .ok();
    app.settle().await;
    let survey = link_survey(app, forked(true)).await;
    for session in [&ada, &bob] {
        let attempt = start(app, session, survey).await;
        answer(app, session, &attempt, json!([["q1", 3], ["low", 4]]))
            .await
            .ok();
        answer(app, session, &attempt, json!([["q1", 9]]))
            .await
            .ok();
    }
    let mut tx = app.services().db.write().await.unwrap();
    tx.sql("INSERT INTO subject_properties (subject_id, key, app_id, value, source, updated_at)
            SELECT subject_id, 'plan', app_id, '\"pro\"', 'api', 0 FROM aliases WHERE value = 'ada'").execute().await.unwrap();
    tx.commit().await.unwrap();

    let id = export(app, &json!({"anonymousId": "ada"})).await;
    let done = reaches(app, &id, "completed").await;
    assert_eq!(done["subject"], json!({"anonymousId": "ada"}));
    assert_eq!(
        app.audited("person.export_queued").await[0]["resource"],
        format!("export/{id}")
    );
    let archive = download(app, &done).await;

    let zip = zip::ZipArchive::new(Cursor::new(&archive)).unwrap();
    let names: BTreeSet<String> = zip
        .file_names()
        .map(|name| name.unwrap().into_owned())
        .collect();
    assert_eq!(
        names.iter().map(String::as_str).collect::<BTreeSet<_>>(),
        BTreeSet::from([
            "deliveries.ndjson",
            "devices.json",
            "events.ndjson",
            "manifest.json",
            "profile.json",
            "survey-answers.ndjson"
        ])
    );
    for name in &names {
        assert!(!file(&archive, name).contains("bob"), "{name}");
    }
    let written = lines(&archive, "events.ndjson");
    assert_eq!(written.len(), 1);
    assert_eq!(
        (
            &written[0]["eventId"],
            &written[0]["properties"],
            &written[0]["anonymousId"]
        ),
        (
            &events[0]["eventId"],
            &events[0]["properties"],
            &json!("ada")
        )
    );
    let profile: Value = serde_json::from_str(&file(&archive, "profile.json")).unwrap();
    assert_eq!(profile["profile"]["subjectId"], ada.subject_id);
    assert_eq!(profile["aliases"][0]["value"], "ada");
    assert_eq!(
        (
            &profile["properties"][0]["key"],
            &profile["properties"][0]["value"]
        ),
        (&json!("plan"), &json!("pro"))
    );
    assert_eq!(profile["clientSessions"][0]["clientId"], json!(client_id));
    assert_eq!(
        profile["instructions"][0]["trigger"]["eventId"],
        events[0]["eventId"]
    );
    assert_eq!(profile["deadLetters"][0]["eventName"], "checked");
    assert_eq!(profile["deadLetters"][0]["origin"]["source"], "sdk");
    let devices: Value = serde_json::from_str(&file(&archive, "devices.json")).unwrap();
    let push = json!({"provider": "fcm", "environment": "production", "tokenSuffix": "-token", "status": "active"});
    assert_eq!(devices[0]["push"], push);
    assert!(!file(&archive, "devices.json").contains("adas-own"));
    // Of the way that was left too.
    let answers = lines(&archive, "survey-answers.ndjson");
    let answers: BTreeSet<(String, i64)> = answers
        .iter()
        .map(|answer| {
            (
                text(answer, "questionId"),
                answer["answerValue"].as_i64().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        answers,
        BTreeSet::from([("q1".to_owned(), 9), ("low".to_owned(), 4)])
    );
    assert_eq!(profile["surveyAttempts"][0]["campaignId"], json!(survey));
    assert!(lines(&archive, "deliveries.ndjson").is_empty());
    let manifest: Value = serde_json::from_str(&file(&archive, "manifest.json")).unwrap();
    assert_eq!(manifest["exportId"], id);
    let listed: BTreeSet<&str> = manifest["files"]
        .as_array()
        .unwrap()
        .iter()
        .map(|file| file["name"].as_str().unwrap())
        .collect();
    assert_eq!(listed.len() + 1, names.len());
}

async fn names_of_the_servers_own_are_left_out(app: &mut TestApp) {
    app.survey(&json!({"kind": "property_changed", "key": "plan"}))
        .await;
    let ada = app.session("ada").await;
    let set = json!({"anonymousId": "ada", "mutationId": app.id(), "set": {"plan": "pro"}});
    app.post("/v1/sdk/user-properties", &ada.credential(), &set)
        .await
        .ok();
    let event = app.event(&ada, "purchase", &json!({}));
    app.ingest(&ada, &[event]).await.ok();
    app.settle().await;
    let kinds: Vec<(String,)> = app.rows("SELECT kind FROM aliases ORDER BY number").await;
    assert_eq!(kinds.len(), 2, "the server has made one: {kinds:?}");

    let id = export(app, &json!({"anonymousId": "ada"})).await;
    let done = reaches(app, &id, "completed").await;
    let archive = download(app, &done).await;

    let profile: Value = serde_json::from_str(&file(&archive, "profile.json")).unwrap();
    let aliases = profile["aliases"].as_array().unwrap();
    assert_eq!(aliases.len(), 1, "{profile}");
    assert_eq!(
        (&aliases[0]["kind"], &aliases[0]["value"]),
        (&json!("anonymous"), &json!("ada"))
    );
    let events = lines(&archive, "events.ndjson");
    let owners: Vec<(String, Value)> = events
        .iter()
        .map(|event| (text(event, "name"), event["anonymousId"].clone()))
        .collect();
    let expected = [
        ("purchase", json!("ada")),
        ("$property_changed", Value::Null),
    ];
    assert_eq!(owners.len(), expected.len(), "{events:?}");
    for (name, owner) in expected {
        assert!(owners.contains(&(name.to_owned(), owner)), "{events:?}");
    }
}

async fn what_plugins_keep_of_the_person_is_copied(app: &mut TestApp) {
    let counts =
        json!({"kind": "event", "eventName": "purchase", "occurrence": {"mode": "nth", "n": 9}});
    let counting = app.survey(&counts).await;
    let waits = json!({"kind": "event", "eventName": "purchase", "delaySeconds": 86_400});
    let waiting = app.survey(&waits).await;
    let (ada, bob) = (app.session("ada").await, app.session("bob").await);
    for session in [&ada, &ada, &bob] {
        let event = app.event(session, "purchase", &json!({}));
        app.ingest(session, &[event]).await.ok();
    }
    app.settle().await;
    let path = app.path("/users/ada/plugin-state");
    let kept = app.get(&path, &app.admin()).await.ok();
    let of = |campaign: Uuid| {
        let campaigns = kept["campaigns"].as_array().unwrap();
        let campaign = json!(campaign);
        let found = campaigns.iter().find(|kept| kept["campaignId"] == campaign);
        found.unwrap().clone()
    };

    let id = export(app, &json!({"anonymousId": "ada"})).await;
    let done = reaches(app, &id, "completed").await;
    let archive = download(app, &done).await;

    let profile: Value = serde_json::from_str(&file(&archive, "profile.json")).unwrap();
    let states = profile["pluginStates"].as_array().unwrap();
    let counted = of(counting);
    let state = states
        .iter()
        .find(|state| state["campaignId"] == counted["campaignId"]);
    for member in ["campaignId", "state", "stateJson", "updatedAt"] {
        assert_eq!(state.unwrap().get(member), counted.get(member), "{profile}");
    }
    let waited = of(waiting);
    let (timers, shown) = (&profile["pluginTimers"], &waited["timers"]);
    let timers = timers.as_array().unwrap();
    assert_eq!(timers.len(), shown.as_array().unwrap().len());
    for shown in shown.as_array().unwrap() {
        let timer = timers.iter().find(|timer| timer["key"] == shown["key"]);
        let timer = timer.unwrap();
        assert_eq!(timer["campaignId"], json!(waiting));
        assert!(shown["dueAt"].is_string() && timer["payload"].is_string());
        for member in ["dueAt", "payloadJson"] {
            assert_eq!(timer.get(member), shown.get(member), "{profile}");
        }
    }

    // Timers that are put off, and what is no JSON.
    let mut tx = app.services().db.write().await.unwrap();
    let updated = tx.sql("UPDATE timers SET due_at = $1, payload = $2");
    let updated = updated.bind(i64::MAX).bind(vec![0xFF_u8]);
    updated.execute().await.unwrap();
    tx.commit().await.unwrap();
    let id = export(app, &json!({"anonymousId": "ada"})).await;
    let done = reaches(app, &id, "completed").await;
    let archive = download(app, &done).await;
    let profile: Value = serde_json::from_str(&file(&archive, "profile.json")).unwrap();
    let timer = &profile["pluginTimers"][0];
    assert_eq!(
        (&timer["dueAt"], &timer["payload"], timer.get("payloadJson")),
        (&Value::Null, &json!("/w=="), None)
    );
}

async fn exactly_one_reference_of_a_known_person(app: &mut TestApp) {
    app.session("ada").await;
    let path = app.path("/gdpr/export");
    for body in [
        json!({}),
        json!({"anonymousId": "ada", "externalId": "e"}),
        json!({"anonymousId": "ada", "x": 1}),
    ] {
        app.post(&path, &app.admin(), &body)
            .await
            .refused(422, "validation_failed");
    }
    app.post(&path, &app.admin(), &json!({"anonymousId": "eve"}))
        .await
        .refused(404, "not_found");
    let unknown = app.path(&format!("/gdpr/exports/{}", app.id()));
    app.get(&unknown, &app.admin())
        .await
        .refused(404, "not_found");
    let job_id = delete(app, &json!({"anonymousId": "ada"})).await;
    let job = app.path(&format!("/jobs/{job_id}"));
    app.get(&job, &app.admin()).await.ok();
    app.get(&job, &app.editor())
        .await
        .refused(403, "insufficient_role");
    let deletion = app.path(&format!("/gdpr/exports/{job_id}"));
    app.get(&deletion, &app.admin())
        .await
        .refused(404, "not_found");
    app.post(&path, &app.admin(), &json!({"anonymousId": "ada"}))
        .await
        .refused(404, "not_found");
    deleted(app, &job_id).await;
}

async fn a_link_is_good_for_a_quarter_of_an_hour_and_an_archive_for_a_week(app: &mut TestApp) {
    app.session("ada").await;
    let id = export(app, &json!({"anonymousId": "ada"})).await;
    let first = reaches(app, &id, "completed").await;
    app.advance(14 * 60);
    download(app, &first).await;
    app.advance(61);
    let expired = app.get(&path_of(&first), &Credential::none()).await;
    expired.refused(404, "not_found");
    let renewed = view(app, &id).await;
    download(app, &renewed).await;

    app.advance(7 * 24 * 3600 - 16 * 60);
    let last = view(app, &id).await;
    assert_eq!(last["status"], "completed");
    download(app, &last).await;
    app.advance(16 * 60);
    let over = view(app, &id).await;
    assert_eq!(
        (&over["status"], over.get("downloadUrl")),
        (&json!("expired"), None)
    );
    app.get(&path_of(&last), &Credential::none())
        .await
        .refused(404, "not_found");
    // Retention looks once an hour.
    app.advance(3_601);
    app.until("the archive is removed", async || {
        let chunks: Vec<(i64,)> = app.rows("SELECT number FROM privacy_export_chunks").await;
        chunks.is_empty()
    })
    .await;
}

async fn a_link_that_was_changed_is_that_of_nothing(app: &mut TestApp) {
    app.session("ada").await;
    let id = export(app, &json!({"anonymousId": "ada"})).await;
    let path = path_of(&reaches(app, &id, "completed").await);
    let (head, query) = path.split_once('?').unwrap();
    let part = |name: &str| {
        query
            .split('&')
            .find_map(|part| part.strip_prefix(&format!("{name}=")))
            .unwrap()
            .to_owned()
    };
    let (owner, expires, signature) = (part("app"), part("expires"), part("signature"));
    let later = expires.parse::<i64>().unwrap() + 1_000_000;
    let other = app.id();
    for changed in [
        head.to_owned(),
        format!("{head}?app={owner}&expires={expires}&signature="),
        format!("{head}?app={owner}&expires={expires}&signature=x"),
        format!("{head}?app={owner}&expires={later}&signature={signature}"),
        format!("{head}?app={other}&expires={expires}&signature={signature}"),
        format!(
            "{head}?app={owner}&expires={expires}&signature={}",
            &signature[..20]
        ),
        format!("/v1/exports/{other}/archive?{query}"),
    ] {
        app.get(&changed, &app.admin())
            .await
            .refused(404, "not_found");
    }
    assert_eq!(
        send(app.request(Method::HEAD, &path, &Credential::none()))
            .await
            .status,
        200
    );
}

async fn a_link_ends_with_its_app(app: &mut TestApp) {
    app.session("ada").await;
    let id = export(app, &json!({"anonymousId": "ada"})).await;
    let path = path_of(&reaches(app, &id, "completed").await);
    let app_id = app.access.app_id;
    // As a deletion leaves it before its job has begun: the rows are there, the app is not.
    let services = app.services();
    let mut tx = services.db.write().await.unwrap();
    assert!(
        nudge_campaigns::apps::delete(&mut tx, app_id, 1)
            .await
            .unwrap()
    );
    tx.commit().await.unwrap();
    services.apps.refresh(app_id).await.unwrap();
    app.get(&path, &Credential::none())
        .await
        .refused(404, "not_found");
}

/// Properties that compress to nearly what they are.
fn noise(seed: u64) -> String {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    (0..2_000)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            char::from(b'!' + u8::try_from(state % 90).unwrap())
        })
        .filter(|letter| *letter != '"' && *letter != '\\')
        .collect()
}

async fn large_exports_are_made_in_pieces_and_survive_restarts(app: &mut TestApp) {
    let ada = app.session("ada").await;
    let mut sent = BTreeSet::new();
    for batch in 0..6 {
        let events: Vec<Value> = (0..400)
            .map(|number| {
                app.event(
                    &ada,
                    "purchase",
                    &json!({"noise": noise(batch * 400 + number + 1)}),
                )
            })
            .collect();
        sent.extend(events.iter().map(|event| text(event, "eventId")));
        assert_eq!(app.ingest(&ada, &events).await.ok()["accepted"], 400);
    }
    app.settle().await;
    let id = export(app, &json!({"anonymousId": "ada"})).await;
    app.restart().await;

    let done = reaches(app, &id, "completed").await;
    let archive = download(app, &done).await;
    let sizes: Vec<(i64,)> = app
        .rows("SELECT CAST(length(bytes) AS BIGINT) FROM privacy_export_chunks")
        .await;
    assert!(sizes.len() > 2, "{sizes:?}");
    assert!(sizes.iter().all(|(size,)| *size <= 1024 * 1024));
    let written: BTreeSet<String> = lines(&archive, "events.ndjson")
        .iter()
        .map(|event| text(event, "eventId"))
        .collect();
    assert_eq!(written, sent);
}

async fn the_export_of_a_deleted_person_is_gone(app: &mut TestApp) {
    app.session("ada").await;
    let id = export(app, &json!({"anonymousId": "ada"})).await;
    let done = reaches(app, &id, "completed").await;
    let job_id = delete(app, &json!({"anonymousId": "ada"})).await;
    deleted(app, &job_id).await;

    let gone = view(app, &id).await;
    assert_eq!(
        (&gone["status"], &gone["subject"], gone.get("downloadUrl")),
        (&json!("expired"), &Value::Null, None)
    );
    app.get(&path_of(&done), &Credential::none())
        .await
        .refused(404, "not_found");
    let chunks: Vec<(i64,)> = app.rows("SELECT number FROM privacy_export_chunks").await;
    assert_eq!(chunks, []);
}

async fn an_export_that_runs_while_the_person_is_deleted_leaves_nothing(app: &mut TestApp) {
    for round in 0..4 {
        let name = format!("ada-{round}");
        let ada = app.session(&name).await;
        let events: Vec<Value> = (0..400)
            .map(|number| app.event(&ada, "purchase", &json!({"noise": noise(number + 1)})))
            .collect();
        app.ingest(&ada, &events).await.ok();
        app.settle().await;
        let reference = json!({"anonymousId": name});
        let id = export(app, &reference).await;
        let job_id = delete(app, &reference).await;
        deleted(app, &job_id).await;
        app.until("the export ended", async || {
            ["failed", "expired"].contains(&view(app, &id).await["status"].as_str().unwrap())
        })
        .await;

        let ended = view(app, &id).await;
        assert_eq!(ended["subject"], Value::Null);
        assert_eq!(
            ended["status"] == "failed",
            ended["error"] == "the person's data was deleted",
            "{ended}"
        );
        let chunks: Vec<(i64,)> = app.rows("SELECT number FROM privacy_export_chunks").await;
        assert_eq!(chunks, []);
    }
}

async fn an_export_that_runs_while_the_person_is_merged_is_of_both(app: &mut TestApp) {
    let backend = crate::identity::Backend::new(app).await;
    let phone = backend.identify(app, "phone", "e-1").await;
    app.ingest(&phone, &[app.event(&phone, "here", &json!({}))])
        .await
        .ok();
    let tablet = app.session("tablet").await;
    let note = "x".repeat(20_000);
    for _ in 0..10 {
        let event = || app.event(&tablet, "there", &json!({"note": note}));
        let events: Vec<Value> = (0..20).map(|_| event()).collect();
        app.ingest(&tablet, &events).await.ok();
    }
    let id = export(app, &json!({"anonymousId": "tablet"})).await;
    backend.identify(app, "tablet", "e-1").await;
    let view = reaches(app, &id, "completed").await;
    let archive = download(app, &view).await;
    let events = lines(&archive, "events.ndjson");
    let there = events.iter().filter(|event| event["name"] == "there");
    assert_eq!(there.count(), 200);
}
