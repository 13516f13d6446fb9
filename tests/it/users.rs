//! People: the list, search, profile and timeline (contract 5, specification 2.1).

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tests::session::text;
use tests::{Session, TestApp, on_both_backends};

on_both_backends!(
    a_person_is_shown_with_everything_that_is_known,
    what_a_context_leaves_empty_stays_as_it_is_known,
    pages_follow_each_other_while_people_come_and_move,
    names_and_ids_are_found_by_their_beginning,
    values_are_found_by_a_part_of_their_text,
    a_greek_word_is_found_whichever_sigma_ends_it,
    pages_of_a_search_are_the_whole_search,
    a_long_list_says_that_its_length_is_an_estimate,
    limits_and_cursors_are_checked,
    a_timeline_is_newest_first_and_its_pages_are_the_whole,
    a_timeline_is_filtered_by_name_and_time,
    a_person_of_the_servers_has_no_anonymous_id,
    an_anonymous_id_can_be_the_name_of_another_path,
    people_of_other_apps_are_not_shown,
    at_most_a_hundred_devices_are_kept,
    nobody_was_seen_in_the_future,
);

async fn users(app: &TestApp, query: &str) -> Value {
    let path = app.path(&format!("/users{query}"));
    app.get(&path, &app.viewer()).await.ok()
}

async fn detail(app: &TestApp, id: &str) -> Value {
    let path = app.path(&format!("/users/{id}"));
    app.get(&path, &app.viewer()).await.ok()
}

fn names(page: &Value) -> Vec<String> {
    let items = page["items"].as_array().unwrap();
    items.iter().map(|item| text(item, "anonymousId")).collect()
}

/// All pages of a list, one after the other.
async fn walk(app: &TestApp, path: &str, limit: usize) -> Vec<Value> {
    let separator = if path.contains('?') { '&' } else { '?' };
    let mut query = format!("{path}{separator}limit={limit}");
    let mut items = Vec::new();
    loop {
        let page = app.get(&app.path(&query), &app.viewer()).await.ok();
        let found = page["items"].as_array().unwrap();
        assert!(found.len() <= limit);
        items.extend(found.iter().cloned());
        let Some(cursor) = page["nextCursor"].as_str() else {
            return items;
        };
        query = format!("{path}{separator}limit={limit}&cursor={cursor}");
    }
}

async fn set(app: &TestApp, session: &Session, set: Value) {
    let body = json!({"anonymousId": session.anonymous_id, "mutationId": app.id(), "set": set});
    let path = "/v1/sdk/user-properties";
    let data = app.post(path, &session.credential(), &body).await.ok();
    assert_eq!(data["applied"], true);
}

async fn a_person_is_shown_with_everything_that_is_known(app: &mut TestApp) {
    let ada = app.session("ada").await;
    let started = app.time(0);
    app.advance(60);
    let mut batch = ada.batch(&[
        app.event(&ada, "opened", &json!({})),
        app.event(&ada, "purchase", &json!({"total": 3})),
    ]);
    batch["context"] = json!({"anonymousId": "ada", "platform": "ios", "locale": "de-AT", "appVersion": "1.2",
        "sdkVersion": "0.9", "deviceId": "phone", "timezone": "Europe/Vienna"});
    app.post_batch(&ada, &batch).await.ok();
    set(
        app,
        &ada,
        json!({"plan": "pro", "age": 41, "gone": null, "a long one": "x".repeat(2_000)}),
    )
    .await;
    app.settle().await;

    let page = users(app, "").await;
    assert_eq!(
        (&page["total"], &page["nextCursor"]),
        (&json!(1), &Value::Null)
    );
    assert!(page.get("totalIsEstimate").is_none());
    let item = &page["items"][0];
    assert_eq!(text(item, "subjectId"), ada.subject_id);
    assert_eq!(item["anonymousId"], "ada");
    assert_eq!(item["anonymousIds"], json!(["ada"]));
    assert!(item.get("externalId").is_none());
    assert_eq!(item["eventCount"], 2);
    assert_eq!(item["country"], "AT");
    assert_eq!(item["platform"], "ios");
    assert_eq!(
        item["topProperties"],
        json!({"plan": "pro", "age": 41, "gone": null})
    );
    assert!(text(item, "firstSeenAt") < text(item, "lastSeenAt"));
    assert!(text(item, "lastSeenAt") > started);

    let user = detail(app, "ada").await;
    for (key, value) in item.as_object().unwrap() {
        assert_eq!(&user["profile"][key], value, "{key}");
    }
    assert_eq!(user["profile"]["identified"], false);
    assert_eq!(user["profile"]["locale"], "de-AT");
    assert_eq!(user["profile"]["timezone"], "Europe/Vienna");
    let consent = json!({"analytics": true, "messaging": true, "updatedAt": null});
    assert_eq!(user["profile"]["consent"], consent);
    let device = &user["devices"][0];
    for (key, value) in [
        ("deviceId", "phone"),
        ("platform", "ios"),
        ("appVersion", "1.2"),
        ("sdkVersion", "0.9"),
        ("locale", "de-AT"),
    ] {
        assert_eq!(device[key], value);
    }
    assert_eq!(device["firstSeenAt"], device["lastSeenAt"]);
    assert_eq!(user["devices"].as_array().unwrap().len(), 1);
    assert_eq!(user["properties"].as_array().unwrap().len(), 4);
    assert_eq!(user["properties"][0]["source"], "sdk");

    app.advance(60);
    set(app, &ada, json!({"plan": "free"})).await;
    let user = detail(app, "ada").await;
    assert_eq!(user["properties"][0]["key"], "plan");
    assert_eq!(user["properties"][0]["value"], "free");
    assert!(text(&user["properties"][0], "updatedAt") > text(&user["properties"][1], "updatedAt"));
    let nobody = app.path("/users/nobody");
    app.get(&nobody, &app.viewer())
        .await
        .refused(404, "not_found");
    app.get(&app.path("/users/a%00b"), &app.viewer())
        .await
        .refused(404, "not_found");
}

async fn pages_follow_each_other_while_people_come_and_move(app: &mut TestApp) {
    let mut sessions = Vec::new();
    for number in 0..7 {
        sessions.push(app.session(&format!("p{number}")).await);
    }
    let first = users(app, "?limit=3").await;
    assert_eq!(names(&first), ["p6", "p5", "p4"]);
    assert_eq!(first["total"], 7);

    // The list neither skips nor repeats anybody, whoever is seen or made meanwhile.
    app.session("later").await;
    for session in &sessions {
        app.advance(10);
        app.ingest(session, &[app.event(session, "opened", &json!({}))])
            .await
            .ok();
    }
    app.settle().await;
    let cursor = text(&first, "nextCursor");
    let second = users(app, &format!("?limit=3&cursor={cursor}")).await;
    assert_eq!(names(&second), ["p3", "p2", "p1"]);
    let cursor = text(&second, "nextCursor");
    let third = users(app, &format!("?limit=3&cursor={cursor}")).await;
    assert_eq!(names(&third), ["p0"]);
    assert_eq!(third["nextCursor"], Value::Null);
    assert_eq!(walk(app, "/users", 2).await.len(), 8);
}

async fn names_and_ids_are_found_by_their_beginning(app: &mut TestApp) {
    let ada = app.session("Ada-Ünïcode").await;
    app.session("bob").await;
    app.session("has_ada_inside").await;
    let body = json!({"userId": "ADA@example.com", "events": [{"name": "opened", "timestamp": app.time(0)}]});
    app.post("/v1/sdk/ingest", &app.backend(), &body).await.ok();
    app.settle().await;

    let found = users(app, "?q=aDa").await;
    assert_eq!(found["total"], 2);
    assert_eq!(found["items"][0]["anonymousId"], "Ada-Ünïcode");
    assert_eq!(found["items"][1]["externalId"], "ADA@example.com");
    assert_eq!(names(&users(app, "?q=ada-%C3%9C").await), ["Ada-Ünïcode"]);
    assert_eq!(names(&users(app, "?q=bob").await), ["bob"]);
    for nothing in ["bobb", "%25", "a_a", "_", "%5C", "%F0%9F%A6%80"] {
        let found = users(app, &format!("?q={nothing}")).await;
        assert_eq!(
            (names(&found).len(), &found["total"]),
            (0, &json!(0)),
            "{nothing}"
        );
    }
    let id = ada.subject_id.to_uppercase();
    let found = users(app, &format!("?q={id}")).await;
    assert_eq!(names(&found), ["Ada-Ünïcode"]);
    let most = users(app, &format!("?q={}", &id[..9])).await;
    assert!(names(&most).contains(&"Ada-Ünïcode".to_owned()));
    // No text is everybody.
    assert_eq!(users(app, "?q=").await["total"], 4);
}

async fn values_are_found_by_a_part_of_their_text(app: &mut TestApp) {
    let ada = app.session("ada").await;
    let bob = app.session("bob").await;
    set(
        app,
        &ada,
        json!({"company": "ACME \"50%\" Österreich", "note": "acme_x", "age": 41}),
    )
    .await;
    set(app, &bob, json!({"company": "Other", "ada": true})).await;

    for (query, expected) in [
        ("acme", vec!["ada"]),
        ("%C3%B6STERR", vec!["ada"]),
        ("50%25%22", vec!["ada"]),
        ("e_x", vec!["ada"]),
        ("_th", vec![]),
        ("OTHER", vec!["bob"]),
        ("41", vec![]),
        ("company", vec![]),
        // Found by name and by value, but once.
        ("ada", vec!["ada"]),
    ] {
        let found = users(app, &format!("?q={query}")).await;
        assert_eq!(names(&found), expected, "{query}");
        assert_eq!(found["total"], expected.len(), "{query}");
    }
    let body = json!({"anonymousId": "ada", "mutationId": app.id(), "set": {"company": "Umbrella"}, "unset": ["note"]});
    app.post("/v1/sdk/user-properties", &ada.credential(), &body)
        .await
        .ok();
    assert_eq!(names(&users(app, "?q=acme").await), Vec::<String>::new());
    assert_eq!(names(&users(app, "?q=brella").await), ["ada"]);
    set(app, &ada, json!({"company": 7})).await;
    assert_eq!(names(&users(app, "?q=brella").await), Vec::<String>::new());
}

async fn a_greek_word_is_found_whichever_sigma_ends_it(app: &mut TestApp) {
    let words = ["ΟΔΥΣΣΕΥΣ", "οδυσσευς"];
    for (name, word) in [("upper", words[0]), ("lower", words[1])] {
        let person = app.session(name).await;
        set(app, &person, json!({"company": format!("{word} ΑΕ")})).await;
        app.session(word).await;
    }
    all_are_found(app, words).await;

    // As they were stored before.
    let mut tx = app.services().db.write().await.unwrap();
    for text in [
        "UPDATE aliases SET folded = 'οδυσσευς' WHERE value = 'οδυσσευς'",
        "UPDATE property_texts SET folded = 'οδυσσευς αε' WHERE subject_id = (SELECT subject_id FROM aliases WHERE value = 'lower')",
        "DELETE FROM _sqlx_migrations WHERE version = 38",
    ] {
        assert_eq!(tx.sql(text).execute().await.unwrap(), 1, "{text}");
    }
    tx.commit().await.unwrap();
    app.restart().await;
    all_are_found(app, words).await;
}

/// Either form of a word finds who is called by one, or has one in a value.
async fn all_are_found(app: &TestApp, words: [&str; 2]) {
    let all = [words[0], words[1], "upper", "lower"].map(str::to_owned);
    let all = BTreeSet::from(all);
    for word in words {
        let page = users(app, &format!("?q={word}")).await;
        let found: BTreeSet<String> = names(&page).into_iter().collect();
        assert_eq!(found, all, "{word}");
    }
}

async fn pages_of_a_search_are_the_whole_search(app: &mut TestApp) {
    // Every id of this millennium begins with a zero, so that all three parts find somebody.
    let mut all = BTreeSet::new();
    for number in 0..4 {
        let session = app.session(&format!("0name{number}")).await;
        set(app, &session, json!({"word": "a 0 b"})).await;
        all.insert(session.subject_id);
        all.insert(app.session(&format!("other{number}")).await.subject_id);
    }
    for limit in 1..=9 {
        let found = walk(app, "/users?q=0", limit).await;
        let ids: Vec<String> = found.iter().map(|item| text(item, "subjectId")).collect();
        assert_eq!(ids.len(), all.len(), "{limit}: {ids:?}");
        assert_eq!(ids.into_iter().collect::<BTreeSet<_>>(), all);
    }
    let found = walk(app, "/users?q=%200", 3).await;
    assert_eq!(found.len(), 4);
    assert_eq!(users(app, "?q=0&limit=1").await["total"], 8);
}

async fn a_long_list_says_that_its_length_is_an_estimate(app: &mut TestApp) {
    app.people(9_999).await;
    let page = users(app, "?limit=1").await;
    assert_eq!(page["total"], 9_999);
    app.session("one-more").await;
    let page = users(app, "?limit=1").await;
    assert_eq!(page["total"], 10_000);
    assert!(page.get("totalIsEstimate").is_none());
    app.session("another").await;

    let page = users(app, "?limit=1").await;
    assert_eq!(
        (&page["total"], &page["totalIsEstimate"]),
        (&json!(10_000), &json!(true))
    );
    let cursor = text(&page, "nextCursor");
    let page = users(app, &format!("?limit=1&cursor={cursor}")).await;
    assert_eq!(
        (&page["total"], &page["totalIsEstimate"]),
        (&json!(10_000), &json!(true))
    );
    // A search counts by the same rule.
    for (total, is_estimate, another) in [
        (9_999, None, "person-more"),
        (10_000, None, "person-most"),
        (10_000, Some(&json!(true)), "person-past"),
    ] {
        let found = users(app, "?q=person-&limit=1").await;
        assert_eq!(
            (&found["total"], found.get("totalIsEstimate")),
            (&json!(total), is_estimate)
        );
        app.session(another).await;
    }
}

async fn limits_and_cursors_are_checked(app: &mut TestApp) {
    app.session("ada").await;
    app.session("adb").await;
    let viewer = app.viewer();
    let get = async |path: &str| app.get(&app.path(path), &viewer).await;
    for path in [
        "/users?limit=0",
        "/users?limit=201",
        "/users/ada/events?limit=0",
        "/users/ada/events?limit=501",
        "/users/ada/events?from=yesterday",
    ] {
        get(path).await.refused(422, "validation_failed");
    }
    get("/users?limit=200").await.ok();
    get("/users/ada/events?limit=500").await.ok();
    let long = "x".repeat(256);
    get(&format!("/users?q={long}")).await.ok();
    get(&format!("/users?q={long}x"))
        .await
        .refused(422, "validation_failed");
    get("/users/nobody/events").await.refused(404, "not_found");

    let cursor = text(&get("/users?limit=1").await.ok(), "nextCursor");
    let searched = text(&get("/users?limit=1&q=ad").await.ok(), "nextCursor");
    get(&format!("/users?cursor={cursor}")).await.ok();
    for path in [
        "/users?cursor=x".to_owned(),
        format!("/users?q=ad&cursor={cursor}"),
        format!("/users?cursor={searched}"),
        format!("/users?q=a&cursor={searched}"),
        format!("/users/ada/events?cursor={cursor}"),
    ] {
        get(&path).await.refused(400, "invalid_cursor");
    }
    app.advance(24 * 3600 + 1);
    get(&format!("/users?cursor={cursor}"))
        .await
        .refused(400, "invalid_cursor");
}

fn ids(events: &[Value]) -> Vec<String> {
    events.iter().map(|event| text(event, "eventId")).collect()
}

async fn a_timeline_is_newest_first_and_its_pages_are_the_whole(app: &mut TestApp) {
    let ada = app.session("ada").await;
    let mut expected = Vec::new();
    for round in 0..4 {
        app.advance(5);
        // Several at one instant: their ids decide.
        let time = app.time(0);
        let events: Vec<Value> = (0..3)
            .map(|number| {
                let mut event = app.event(
                    &ada,
                    "opened",
                    &json!({"number": number, "round": round, "a": "é"}),
                );
                event["timestamp"] = json!(time);
                event
            })
            .collect();
        expected.extend(ids(&events));
        let mut batch = ada.batch(&events);
        batch["context"]["platform"] = json!("web");
        batch["context"]["appVersion"] = json!("7");
        app.post_batch(&ada, &batch).await.ok();
    }
    expected.reverse();
    for limit in [1, 2, 5, 12, 13] {
        let found = walk(app, "/users/ada/events", limit).await;
        assert_eq!(ids(&found), expected, "{limit}");
    }
    let newest = &walk(app, "/users/ada/events", 50).await[0];
    assert_eq!(newest["name"], "opened");
    assert_eq!(
        newest["properties"],
        json!({"number": 2, "round": 3, "a": "é"})
    );
    assert_eq!(newest["anonymousId"], "ada");
    assert_eq!(
        (&newest["platform"], &newest["appVersion"]),
        (&json!("web"), &json!("7"))
    );
    assert_eq!(newest["source"], "sdk");
    assert!(text(newest, "timestamp") <= text(newest, "receivedAt"));

    // Newer events do not disturb the pages that follow.
    let first = app
        .get(&app.path("/users/ada/events?limit=6"), &app.viewer())
        .await
        .ok();
    app.advance(5);
    app.ingest(&ada, &[app.event(&ada, "later", &json!({}))])
        .await
        .ok();
    let path = format!(
        "/users/ada/events?limit=6&cursor={}",
        text(&first, "nextCursor")
    );
    let second = app.get(&app.path(&path), &app.viewer()).await.ok();
    assert_eq!(ids(second["items"].as_array().unwrap()), expected[6..]);
    assert_eq!(second["nextCursor"], Value::Null);
}

async fn a_timeline_is_filtered_by_name_and_time(app: &mut TestApp) {
    let ada = app.session("ada").await;
    let mut times = Vec::new();
    for number in 0..6 {
        app.advance(60);
        times.push(app.time(0).replace('+', "%2B"));
        let name = if number % 2 == 0 { "even" } else { "odd" };
        let mut event = app.event(&ada, name, &json!({"number": number}));
        event["timestamp"] = json!(times[number]);
        app.ingest(&ada, &[event]).await.ok();
    }
    let numbers = async |query: String| -> Vec<i64> {
        let found = walk(app, &format!("/users/ada/events{query}"), 2).await;
        found
            .iter()
            .map(|event| event["properties"]["number"].as_i64().unwrap())
            .collect()
    };
    assert_eq!(numbers("?name=even".to_owned()).await, [4, 2, 0]);
    assert_eq!(numbers("?name=eve".to_owned()).await, [0; 0]);
    assert_eq!(numbers(format!("?from={}", times[3])).await, [5, 4, 3]);
    assert_eq!(numbers(format!("?to={}", times[3])).await, [2, 1, 0]);
    let both = format!("?from={}&to={}&name=odd", times[1], times[5]);
    assert_eq!(numbers(both).await, [3, 1]);
}

async fn a_person_of_the_servers_has_no_anonymous_id(app: &mut TestApp) {
    let events = json!([{"name": "invoice_paid", "timestamp": app.time(0)}]);
    let body = json!({"userId": "e-1", "events": events});
    app.post("/v1/sdk/ingest", &app.backend(), &body).await.ok();
    app.settle().await;

    let user = detail(app, "e-1").await;
    assert_eq!(user["profile"]["externalId"], "e-1");
    assert_eq!(user["profile"]["identified"], true);
    assert_eq!(user["profile"]["anonymousId"], Value::Null);
    assert_eq!(user["profile"]["anonymousIds"], json!([]));
    let found = walk(app, "/users/e-1/events", 50).await;
    assert_eq!(found[0]["source"], "server");
    assert_eq!(found[0]["anonymousId"], Value::Null);
}

async fn an_anonymous_id_can_be_the_name_of_another_path(app: &mut TestApp) {
    let path = app.path("/users/properties");
    app.get(&path, &app.viewer())
        .await
        .refused(404, "not_found");
    for id in ["properties", "a/b c%é"] {
        app.session(id).await;
        let encoded: Vec<String> = id.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let encoded = encoded.concat();
        for path in [encoded.as_str(), id]
            .into_iter()
            .filter(|path| !path.contains(' '))
        {
            assert_eq!(detail(app, path).await["profile"]["anonymousId"], id);
        }
        let events = app.path(&format!("/users/{encoded}/events"));
        assert_eq!(
            app.get(&events, &app.viewer()).await.ok()["items"],
            json!([])
        );
    }
}

async fn people_of_other_apps_are_not_shown(app: &mut TestApp) {
    let workspace = app.access.workspace_id;
    let (other, key) = app
        .another_app(workspace, nudge_apps::key::Kind::Write, &[])
        .await;
    let key = tests::Credential::bearer(&key);
    let body = json!({"anonymousId": "theirs"});
    app.post("/v1/sdk/session", &key, &body).await.ok();
    app.session("ours").await;

    assert_eq!(names(&users(app, "").await), ["ours"]);
    assert_eq!(names(&users(app, "?q=t").await), Vec::<String>::new());
    let path = app.path("/users/theirs");
    app.get(&path, &app.viewer())
        .await
        .refused(404, "not_found");
    let theirs = app
        .get(&format!("/v1/apps/{other}/users"), &app.viewer())
        .await
        .ok();
    assert_eq!(names(&theirs), ["theirs"]);
}

async fn at_most_a_hundred_devices_are_kept(app: &mut TestApp) {
    let ada = app.session("ada").await;
    for number in 0..102 {
        app.advance(1);
        let mut batch = ada.batch(&[app.event(&ada, "opened", &json!({}))]);
        batch["context"]["deviceId"] = json!(format!("d{number}"));
        app.post_batch(&ada, &batch).await.ok();
    }
    app.settle().await;
    let user = detail(app, "ada").await;
    let devices = user["devices"].as_array().unwrap();
    assert_eq!(devices.len(), 100);
    assert_eq!(devices[0]["deviceId"], "d101");
    assert_eq!(devices[99]["deviceId"], "d2");
    let stored: Vec<(i64,)> = app.rows("SELECT count(*) FROM devices").await;
    assert_eq!(stored, [(100,)]);
}

async fn what_a_context_leaves_empty_stays_as_it_is_known(app: &mut TestApp) {
    let ada = app.session("ada").await;
    let known = json!({"platform": "ios", "locale": "de-DE", "timezone": "Europe/Berlin", "appVersion": "1.2"});
    let empty = json!({"platform": "", "locale": "", "timezone": "", "appVersion": ""});
    for context in [&known, &empty, &json!({"timezone": "Mars/X"})] {
        let mut batch = ada.batch(&[app.event(&ada, "opened", &json!({}))]);
        let said = context.as_object().unwrap().clone();
        batch["context"].as_object_mut().unwrap().extend(said);
        app.post_batch(&ada, &batch).await.ok();
        app.settle().await;
        let profile = detail(app, "ada").await["profile"].clone();
        for key in ["platform", "locale", "timezone"] {
            assert_eq!(profile[key], known[key], "{context}: {key}");
        }
    }

    let session = json!({"anonymousId": "bob", "platform": ""});
    app.post("/v1/sdk/session", &app.sdk(), &session).await.ok();
    assert_eq!(detail(app, "bob").await["profile"]["platform"], Value::Null);

    let context = json!({"timezone": "Mars/X", "locale": "de-DE"});
    let message = json!({"anonymousId": "eve", "event": "opened", "context": context});
    app.post("/v1/compat/v1/track", &app.sdk(), &message).await;
    app.settle().await;
    let eve = detail(app, "eve").await["profile"].clone();
    assert_eq!(
        (&eve["locale"], &eve["timezone"]),
        (&json!("de-DE"), &Value::Null)
    );
}

async fn nobody_was_seen_in_the_future(app: &mut TestApp) {
    let ada = app.session("ada").await;
    let mut event = app.event(&ada, "opened", &json!({}));
    event["timestamp"] = json!(app.time(20 * 3_600));
    assert_eq!(app.ingest(&ada, &[event]).await.ok()["accepted"], 1);
    app.settle().await;
    let profile = detail(app, "ada").await["profile"].clone();
    assert_eq!(profile["eventCount"], 1);
    assert!(text(&profile, "lastSeenAt") <= app.time(0), "{profile}");
}
