//! Dead letters: list, replay, acknowledge (contract 11).

use nudge::dead_letters::bulk;
use nudge_platform::jobs::{self, NewJob};
use serde_json::{Value, json};
use tests::session::{event_id, text};
use tests::{Session, TestApp, on_both_backends};

use crate::bulk_replays::ended;

on_both_backends!(
    a_letter_says_what_is_wrong_with_which_event,
    a_replay_that_still_fails_is_counted,
    a_patched_replay_is_accepted_and_fires,
    a_replay_works_once_the_definition_is_changed,
    a_replay_ignores_the_past_window,
    a_replayed_event_is_what_it_would_have_been,
    a_replayed_number_keeps_its_digits,
    a_letter_that_cannot_be_read_is_not_replayed_without_its_properties,
    replaying_what_was_accepted_meanwhile_stores_nothing_twice,
    an_acknowledged_letter_is_gone,
    a_letter_is_replayed_or_acknowledged_not_both,
    letters_are_paged_and_filtered,
    bad_pages_are_refused,
    the_summary_has_pages,
    a_bad_replay_is_refused,
    a_job_that_no_letter_can_be_found_for_fails,
    letters_of_others_are_not_found,
);

/// Sends an event that breaks its definition; answers the event and the letter's id.
async fn breaks(app: &TestApp, properties: Value) -> (Value, String) {
    let ada = app.session("ada").await;
    let event = app.event(&ada, "purchase", &properties);
    let data = app.ingest(&ada, std::slice::from_ref(&event)).await.ok();
    (event, text(&data["errors"][0], "deadLetterId"))
}

async fn define(app: &TestApp) -> Value {
    app.define(
        "purchase",
        &json!({"properties": [{"name": "total", "type": "number", "required": true}]}),
    )
    .await
}

fn letter(app: &TestApp, id: &str) -> String {
    app.path(&format!("/dead-letters/{id}"))
}

async fn replay(app: &TestApp, id: &str, body: &Value) -> Value {
    let path = format!("{}/replay", letter(app, id));
    app.post(&path, &app.editor(), body).await.ok()
}

/// Of two letters one can't be read. It stays as it is, the other one is replayed.
async fn a_letter_that_cannot_be_read_is_not_replayed_without_its_properties(app: &mut TestApp) {
    let definition = define(app).await;
    let (_, unread) = breaks(app, json!({"number": 1})).await;
    breaks(app, json!({"number": 2})).await;
    let mut tx = app.services().db.write().await.unwrap();
    let spoil = "UPDATE dead_letters SET event = '{' WHERE event LIKE '%\"number\":1%'";
    assert_eq!(tx.sql(spoil).execute().await.unwrap(), 1);
    tx.commit().await.unwrap();
    // Any event will do now.
    let defined = app.path(&format!("/event-definitions/{}", text(&definition, "id")));
    app.delete(&defined, &app.editor()).await.data(204);

    let path = format!("{}/replay", letter(app, &unread));
    app.post(&path, &app.editor(), &json!({}))
        .await
        .refused(500, "internal");
    let all = app.path("/dead-letters/replay");
    let queued = app.post(&all, &app.editor(), &json!({"filter": {}})).await;
    let job = ended(app, &text(&queued.data(202), "jobId")).await;
    assert_eq!(
        job["result"],
        json!({"replayed": 1, "stillFailing": 1, "skipped": 0})
    );
    assert_eq!(app.stored("purchase").await, 1);
    assert_eq!(app.count("dead_letters").await, 1);
}

/// A number of more than 64 bits keeps its digits, patched beside or not.
async fn a_replayed_number_keeps_its_digits(app: &mut TestApp) {
    const LONG: &str = "12345678901234567890123";
    let definition = define(app).await;
    let ada = app.session("ada").await;
    let mut ids = Vec::new();
    for _ in 0..2 {
        let properties = json!({"long": "LONG", "in": {"long": "LONG"}});
        let event = app.event(&ada, "purchase", &properties);
        let request = app
            .request(reqwest::Method::POST, "/v1/sdk/ingest", &ada.credential())
            .header("content-type", "application/json")
            .body(ada.batch(&[event]).to_string().replace("\"LONG\"", LONG));
        let data = tests::client::send(request).await.ok();
        ids.push(text(&data["errors"][0], "deadLetterId"));
    }
    let patch = json!({"total": 1, "in": {"more": true}});
    let patched = replay(app, &ids[0], &json!({"patch": patch})).await;
    assert_eq!(patched["status"], "replayed");
    let defined = app.path(&format!("/event-definitions/{}", text(&definition, "id")));
    app.delete(&defined, &app.editor()).await.data(204);
    let unpatched = replay(app, &ids[1], &json!({})).await;
    assert_eq!(unpatched["status"], "replayed");
    let timeline = app.path("/users/ada/events");
    let shown = app.get(&timeline, &app.viewer()).await.text;
    assert_eq!(shown.matches(LONG).count(), 4, "{shown}");
}

async fn the_summary_has_pages(app: &mut TestApp) {
    define(app).await;
    for properties in [json!({}), json!({}), json!({"total": "x"})] {
        breaks(app, properties).await;
    }
    let get = async |query: &str| {
        let path = app.path(&format!("/dead-letters/summary{query}"));
        app.get(&path, &app.viewer()).await
    };
    let whole = get("").await.ok();
    assert_eq!(whole["items"].as_array().unwrap().len(), 2);
    assert_eq!(whole["nextCursor"], json!(null));

    let first = get("?limit=1").await.ok();
    assert_eq!(first["items"], json!([whole["items"][0]]));
    let cursor = text(&first, "nextCursor");
    // What comes meanwhile would change the order.
    for _ in 0..3 {
        breaks(app, json!({"total": "y"})).await;
    }
    let second = get(&format!("?limit=1&cursor={cursor}")).await.ok();
    assert_eq!(second["items"], json!([whole["items"][1]]));
    assert_eq!(second["nextCursor"], json!(null));
    assert_eq!(get("").await.ok()["items"][0]["count"], 4);

    for query in ["?limit=0", "?limit=201"] {
        get(query).await.refused(422, "validation_failed");
    }
    for query in [
        "?cursor=x".to_owned(),
        format!("?stage=trigger&cursor={cursor}"),
    ] {
        get(&query).await.refused(400, "invalid_cursor");
    }
}

async fn a_letter_says_what_is_wrong_with_which_event(app: &mut TestApp) {
    define(app).await;
    let (event, id) = breaks(app, json!({"total": "much", "kept": [1, {"deep": null}]})).await;

    let found = app.get(&letter(app, &id), &app.viewer()).await.ok();

    let ada = app.session("ada").await;
    assert_eq!(found["id"], json!(id));
    assert_eq!(found["eventId"], event["eventId"]);
    assert_eq!(found["eventName"], "purchase");
    assert_eq!(found["anonymousId"], "ada");
    assert_eq!(found["subjectId"], json!(ada.subject_id));
    assert_eq!(found["timestamp"], event["timestamp"]);
    assert_eq!(found["stage"], "validation");
    assert_eq!(found["reason"], "type_mismatch");
    assert_eq!(found["violations"].as_array().unwrap().len(), 1);
    assert_eq!(found["plugin"]["name"], "default-validation");
    assert_eq!(found["event"]["properties"], event["properties"]);
    assert_eq!(found["attempts"], 0);
    assert!(found["receivedAt"].is_string() && found["state"].is_string());
    assert_eq!(app.stored("purchase").await, 0);
}

async fn a_replay_that_still_fails_is_counted(app: &mut TestApp) {
    define(app).await;
    let (_, id) = breaks(app, json!({})).await;

    let replayed = replay(app, &id, &json!({})).await;
    assert_eq!(replayed["status"], "still_failing");
    assert_eq!(
        replayed["violations"][0]["code"],
        "missing_required_property"
    );
    let replayed = replay(app, &id, &json!({"patch": {"total": "x"}})).await;
    assert_eq!(replayed["violations"][0]["code"], "type_mismatch");

    // What is kept of it is as wrong as before.
    let found = app.get(&letter(app, &id), &app.viewer()).await.ok();
    assert_eq!(found["attempts"], 2);
    assert_eq!(found["reason"], "missing_required_property");
    assert_eq!(found["violations"][0]["actual"], "missing");
    assert_eq!(found["event"]["properties"], json!({}));
    assert_eq!(app.stored("purchase").await, 0);
}

async fn a_patched_replay_is_accepted_and_fires(app: &mut TestApp) {
    define(app).await;
    app.survey(&json!({"kind": "event", "eventName": "purchase"}))
        .await;
    let (event, id) = breaks(app, json!({"total": "x", "old": 1})).await;

    let replayed = replay(app, &id, &json!({"patch": {"total": 5, "old": null}})).await;

    assert_eq!(replayed, json!({"status": "replayed"}));
    app.get(&letter(app, &id), &app.viewer())
        .await
        .refused(404, "not_found");
    let stored: Vec<(uuid::Uuid, String)> =
        app.rows("SELECT event_id, properties FROM events").await;
    assert_eq!(stored.len(), 1);
    assert_eq!(
        (stored[0].0.to_string(), stored[0].1.as_str()),
        (event_id(&event), r#"{"total":5}"#)
    );
    app.settle().await;
    let ada = app.session("ada").await;
    assert_eq!(
        app.offered(&ada).await[0]["trigger"]["eventId"],
        event["eventId"]
    );

    // Whoever has lost the answer asks again.
    for patch in [json!({}), json!({"patch": {"total": 9}})] {
        let again = self::replay(app, &id, &patch).await;
        assert_eq!(again, json!({"status": "replayed"}));
    }
    assert_eq!(app.stored("purchase").await, 1);
    assert_eq!(app.count("replayed_letters").await, 1);
    app.delete(&letter(app, &id), &app.editor())
        .await
        .refused(404, "not_found");
}

async fn a_replay_works_once_the_definition_is_changed(app: &mut TestApp) {
    let definition = define(app).await;
    let (_, id) = breaks(app, json!({})).await;
    let path = app.path(&format!("/event-definitions/{}", text(&definition, "id")));
    app.patch(&path, &app.editor(), &json!({"properties": []}))
        .await
        .ok();

    // Without a body at all.
    let path = format!("{}/replay", letter(app, &id));
    let request = app.request(reqwest::Method::POST, &path, &app.editor());
    assert_eq!(
        tests::client::send(request).await.ok(),
        json!({"status": "replayed"})
    );
    assert_eq!(app.stored("purchase").await, 1);
}

async fn a_replay_ignores_the_past_window(app: &mut TestApp) {
    define(app).await;
    let (event, id) = breaks(app, json!({})).await;
    app.advance(29 * 24 * 3600);
    app.set(|settings| settings.ingest.past_window_seconds = 60)
        .await;

    assert_eq!(
        replay(app, &id, &json!({"patch": {"total": 1}})).await["status"],
        "replayed"
    );
    let times: Vec<(i64,)> = app.rows("SELECT timestamp FROM events").await;
    let sent = nudge_platform::clock::from_text(&text(&event, "timestamp")).unwrap();
    assert_eq!(times, [(sent.0,)]);
}

/// What is stored of an event besides its id, name and properties.
type Stored = (
    i64,
    Option<i64>,
    i64,
    Option<String>,
    Option<String>,
    Option<String>,
    Option<String>,
    String,
);

async fn a_replayed_event_is_what_it_would_have_been(app: &mut TestApp) {
    define(app).await;
    let (ada, bob) = (app.session("ada").await, app.session("bob").await);
    // Of each request one event matches, and one, of the same instant, does not.
    let pair = |session: &Session| -> Value {
        let good = app.event(session, "purchase", &json!({"total": 1}));
        let mut wrong = good.clone();
        wrong["eventId"] = json!(app.id());
        wrong["properties"] = json!({});
        json!([good, wrong])
    };
    let phone = json!({
        "anonymousId": "ada", "platform": "ios", "appVersion": "4.2.0", "locale": "de-AT",
        "timezone": "Europe/Vienna", "deviceId": "phone", "sdkVersion": "2.1.0", "sentAt": app.time(-7_200),
    });
    let browser = json!({"anonymousId": "ada", "platform": "web", "locale": "en-US"});
    let bare = json!({"anonymousId": "bob"});
    for (session, context) in [(&ada, phone), (&ada, browser), (&bob, bare)] {
        let body = json!({"context": context, "events": pair(session)});
        let data = app.post_batch(session, &body).await.ok();
        assert_eq!(
            (&data["accepted"], &data["rejected"]),
            (&json!(1), &json!(1))
        );
        app.advance(5);
    }
    let sent = app.time(-9);
    let body = json!({"userId": "u-1", "events": [
        {"name": "purchase", "timestamp": sent, "properties": {"total": 1}},
        {"name": "purchase", "timestamp": sent, "properties": {}},
    ]});
    let data = app.post("/v1/sdk/ingest", &app.backend(), &body).await.ok();
    assert_eq!(
        (&data["accepted"], &data["rejected"]),
        (&json!(1), &json!(1))
    );
    app.settle().await;
    app.advance(3_600);

    // One by itself, the others by a job.
    let list = app.path("/dead-letters");
    let letters = app.get(&list, &app.viewer()).await.ok()["items"].clone();
    assert_eq!(letters.as_array().unwrap().len(), 4);
    // The phone's clock was two hours behind, the others' were right.
    let own = |letter: &Value| letter.get("clientTimestamp").cloned();
    let corrected = letters.as_array().unwrap().iter();
    let corrected: Vec<&Value> = corrected.filter(|letter| own(letter).is_some()).collect();
    assert_eq!(corrected.len(), 1, "{letters}");
    assert!(own(corrected[0]).unwrap().as_str() < corrected[0]["timestamp"].as_str());
    let patch = json!({"patch": {"total": 1}});
    assert_eq!(
        replay(app, &text(&letters[0], "id"), &patch).await["status"],
        "replayed"
    );
    let body = json!({"filter": {}, "patch": {"total": 1}});
    let all = app.path("/dead-letters/replay");
    let queued = app.post(&all, &app.editor(), &body).await.data(202);
    let job = ended(app, &text(&queued, "jobId")).await;
    assert_eq!(job["result"]["replayed"], 3);
    app.settle().await;

    let mut stored: Vec<Stored> = app
        .rows(
            "SELECT timestamp, client_timestamp, received_at, platform, app_version, locale, timezone, source
             FROM events ORDER BY received_at, timestamp",
        )
        .await;
    assert_eq!(stored.len(), 8);
    let sources: Vec<&str> = stored.iter().map(|event| event.7.as_str()).collect();
    assert_eq!(
        sources,
        ["sdk", "sdk", "sdk", "sdk", "sdk", "sdk", "server", "server"]
    );
    assert_eq!(stored[0].3.as_deref(), Some("ios"));
    assert!(stored[0].1.is_some(), "the client's clock was wrong");
    stored.dedup();
    assert_eq!(stored.len(), 4, "each is like the one that matched at once");
    let devices: Vec<(String, Option<String>)> =
        app.rows("SELECT device_id, sdk_version FROM devices").await;
    assert_eq!(devices, [("phone".to_owned(), Some("2.1.0".to_owned()))]);
}

async fn replaying_what_was_accepted_meanwhile_stores_nothing_twice(app: &mut TestApp) {
    define(app).await;
    let (mut event, id) = breaks(app, json!({})).await;
    event["properties"] = json!({"total": 7});
    let ada = app.session("ada").await;
    app.ingest(&ada, &[event]).await.ok();

    assert_eq!(
        replay(app, &id, &json!({"patch": {"total": 1}})).await["status"],
        "replayed"
    );

    let stored: Vec<(String,)> = app.rows("SELECT properties FROM events").await;
    assert_eq!(stored, [(r#"{"total":7}"#.to_owned(),)]);
    app.get(&letter(app, &id), &app.viewer())
        .await
        .refused(404, "not_found");
}

async fn an_acknowledged_letter_is_gone(app: &mut TestApp) {
    define(app).await;
    let (_, id) = breaks(app, json!({})).await;

    app.delete(&letter(app, &id), &app.editor()).await.data(204);
    app.get(&letter(app, &id), &app.viewer())
        .await
        .refused(404, "not_found");
    app.delete(&letter(app, &id), &app.editor())
        .await
        .refused(404, "not_found");
    let path = format!("{}/replay", letter(app, &id));
    app.post(&path, &app.editor(), &json!({}))
        .await
        .refused(404, "not_found");
}

async fn a_letter_is_replayed_or_acknowledged_not_both(app: &mut TestApp) {
    define(app).await;
    let mut brought_in = 0;
    for _ in 0..10 {
        let (_, id) = breaks(app, json!({})).await;
        let path = letter(app, &id);
        let (replay, editor) = (format!("{path}/replay"), app.editor());
        let mended = json!({"patch": {"total": 1}});
        let (replayed, acknowledged) = tokio::join!(
            app.post(&replay, &editor, &mended),
            app.delete(&path, &editor)
        );
        let statuses = (replayed.status, acknowledged.status);
        assert!([(200, 404), (404, 204)].contains(&statuses), "{statuses:?}");
        brought_in += usize::from(replayed.status == 200);
    }
    assert_eq!(app.stored("purchase").await, brought_in);
}

async fn letters_are_paged_and_filtered(app: &mut TestApp) {
    define(app).await;
    let mut made = Vec::new();
    for number in 0..5 {
        let properties = if number % 2 == 0 {
            json!({})
        } else {
            json!({"total": "x"})
        };
        made.insert(0, breaks(app, properties).await.1);
    }
    let list = async |query: String| {
        app.get(&app.path(&format!("/dead-letters{query}")), &app.viewer())
            .await
            .ok()
    };
    let ids = |page: &Value| -> Vec<String> {
        page["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|item| text(item, "id"))
            .collect()
    };

    let first = list("?limit=2".to_owned()).await;
    assert_eq!(ids(&first), made[..2]);
    let second = list(format!("?limit=2&cursor={}", text(&first, "nextCursor"))).await;
    assert_eq!(ids(&second), made[2..4]);
    let third = list(format!("?limit=2&cursor={}", text(&second, "nextCursor"))).await;
    assert_eq!(ids(&third), made[4..]);
    assert_eq!(third["nextCursor"], Value::Null);

    assert_eq!(
        ids(&list("?reason=type_mismatch".to_owned()).await),
        [made[1].clone(), made[3].clone()]
    );
    assert_eq!(
        ids(&list("?eventName=purchase&stage=validation".to_owned()).await),
        made
    );
    assert_eq!(
        list("?eventName=other".to_owned()).await["items"],
        json!([])
    );
    assert_eq!(list("?stage=trigger".to_owned()).await["items"], json!([]));
    let (past, future) = (app.time(-3600), app.time(3600));
    assert_eq!(ids(&list(format!("?from={past}&to={future}")).await), made);
    assert_eq!(list(format!("?from={future}")).await["items"], json!([]));
    assert_eq!(list(format!("?to={past}")).await["items"], json!([]));
}

async fn bad_pages_are_refused(app: &mut TestApp) {
    define(app).await;
    for _ in 0..2 {
        breaks(app, json!({})).await;
    }
    let list = async |query: &str| {
        app.get(&app.path(&format!("/dead-letters{query}")), &app.viewer())
            .await
    };
    let cursor = text(&list("?limit=1").await.ok(), "nextCursor");

    let mut changed = cursor.clone().into_bytes();
    changed[20] = if changed[20] == b'A' { b'B' } else { b'A' };
    let changed = String::from_utf8(changed).unwrap();
    for bad in [
        format!("?cursor={changed}"),
        "?cursor=x".to_owned(),
        format!("?reason=type_mismatch&cursor={cursor}"),
    ] {
        list(&bad).await.refused(400, "invalid_cursor");
    }
    let definitions = app.path(&format!("/event-definitions?cursor={cursor}"));
    app.get(&definitions, &app.viewer())
        .await
        .refused(400, "invalid_cursor");
    for bad in [
        "?limit=0",
        "?limit=201",
        "?limit=x",
        "?limit=-1",
        "?stage=nowhere",
        "?from=yesterday",
    ] {
        list(bad).await.refused(422, "validation_failed");
    }
    list("?limit=200").await.ok();
    app.advance(24 * 3600 + 1);
    list(&format!("?cursor={cursor}"))
        .await
        .refused(400, "invalid_cursor");
}

async fn a_bad_replay_is_refused(app: &mut TestApp) {
    define(app).await;
    let (_, id) = breaks(app, json!({})).await;
    let path = format!("{}/replay", letter(app, &id));
    let many: serde_json::Map<String, Value> =
        (0..257).map(|n| (format!("k{n}"), json!(n))).collect();
    for body in [
        json!([]),
        json!({"ptch": {}}),
        json!({"patch": 7}),
        json!({"patch": [1]}),
        json!({"patch": {"total": 1, "padding": "x".repeat(70_000)}}),
        json!({"patch": many}),
    ] {
        let answer = app.post(&path, &app.editor(), &body).await;
        answer.refused(422, "validation_failed");
    }
    let found = app.get(&letter(app, &id), &app.viewer()).await.ok();
    assert_eq!(found["event"]["properties"], json!({}));
}

async fn a_job_that_no_letter_can_be_found_for_fails(app: &mut TestApp) {
    for kind in [bulk::REPLAY, bulk::ACKNOWLEDGE] {
        let job = NewJob {
            app_id: app.access.app_id,
            kind,
            input: json!({"filter": {"reason": "a\0b"}, "patch": null}),
            requested_by: "an older server",
        };
        let mut tx = app.services().db.write().await.unwrap();
        let id = jobs::queue(&mut tx, &job, app.clock.now()).await.unwrap();
        tx.commit().await.unwrap();
        app.services().jobs.wake();
        let path = app.path(&format!("/jobs/{id}"));
        let failed = async || app.get(&path, &app.viewer()).await.ok()["status"] == "failed";
        app.until("the job fails", failed).await;
    }
}

async fn letters_of_others_are_not_found(app: &mut TestApp) {
    define(app).await;
    let (_, id) = breaks(app, json!({})).await;
    let (other, _) = app
        .another_app(app.access.workspace_id, nudge_apps::key::Kind::Write, &[])
        .await;
    let foreign = format!("/v1/apps/{other}/dead-letters/{id}");

    app.get(&foreign, &app.viewer())
        .await
        .refused(404, "not_found");
    app.delete(&foreign, &app.editor())
        .await
        .refused(404, "not_found");
    app.post(&format!("{foreign}/replay"), &app.editor(), &json!({}))
        .await
        .refused(404, "not_found");
}
