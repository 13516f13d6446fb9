//! What becomes of two subjects that turn out to be one person (contract 2).

use serde_json::{Value, json};
use tests::session::{instruction_ids, text};
use tests::{Credential, Session, TestApp, on_both_backends};

use crate::attempts;
use crate::identity::Backend;

on_both_backends!(
    everything_of_both_is_the_persons,
    an_event_is_there_once_whichever_alias_it_comes_under,
    properties_of_the_identified_win_and_gaps_are_filled,
    a_merge_says_what_it_drops,
    what_fired_once_does_not_fire_again,
    what_both_did_counts_together,
    timers_go_on_to_wait,
    instructions_stay_on_offer,
    what_one_person_has_had_is_offered_no_more,
    attempts_and_firings_that_wait_keep_their_ids,
    old_tokens_are_revoked_and_old_ids_lead_to_the_person,
    the_history_of_both_counts,
    merging_amid_events_loses_and_doubles_nothing,
    a_merge_survives_a_restart,
);

async fn set(app: &TestApp, session: &Session, set: Value) {
    let body = json!({"anonymousId": session.anonymous_id, "mutationId": app.id(), "set": set});
    app.post("/v1/sdk/user-properties", &session.credential(), &body)
        .await
        .ok();
}

async fn user(app: &TestApp, id: &str) -> Value {
    app.get(&app.path(&format!("/users/{id}")), &app.viewer())
        .await
        .ok()
}

async fn send(app: &TestApp, session: &Session, name: &str, device: &str) {
    let mut batch = session.batch(&[app.event(session, name, &json!({}))]);
    batch["context"]["deviceId"] = json!(device);
    app.post_batch(session, &batch).await.ok();
}

async fn an_event_is_there_once_whichever_alias_it_comes_under(app: &mut TestApp) {
    app.survey(&json!({"kind": "event", "eventName": "paid", "occurrence": {"mode": "every"}}))
        .await;
    app.define(
        "paid",
        &json!({"properties": [{"name": "total", "type": "number", "required": true}]}),
    )
    .await;
    let backend = Backend::new(app).await;
    let phone = backend.identify(app, "phone", "e-1").await;
    let web = backend.identify(app, "web", "e-1").await;
    let first = app.event(&phone, "paid", &json!({"total": 1}));
    let told = app
        .ingest_and_ask(&phone, std::slice::from_ref(&first))
        .await;
    app.settle().await;

    let again = |session: &Session, total: Value| {
        let mut event = app.event(session, "paid", &json!({"total": total}));
        event["eventId"] = first["eventId"].clone();
        event
    };
    for total in [json!(2), json!("broken")] {
        let events = [again(&web, total)];
        let data = app.ingest_and_ask(&web, &events).await;
        assert_eq!(
            (&data["accepted"], &data["errors"]),
            (&json!(1), &json!([]))
        );
        assert_eq!(data["instructions"], told["instructions"]);
    }
    let more = [
        again(&web, json!(3)),
        app.event(&web, "paid", &json!({"total": 4})),
    ];
    assert_eq!(app.ingest(&web, &more).await.ok()["accepted"], 2);
    let mut event = again(&phone, json!(5));
    event.as_object_mut().unwrap().remove("anonymousId");
    let body = json!({"userId": "e-1", "events": [event]});
    let data = app.post("/v1/sdk/ingest", &app.backend(), &body).await.ok();
    assert_eq!(data["accepted"], 1);

    app.settle().await;
    let mut stored: Vec<(String,)> = app.rows("SELECT properties FROM events").await;
    stored.sort();
    let expected = [r#"{"total":1}"#, r#"{"total":4}"#];
    assert_eq!(stored, expected.map(|it| (it.to_owned(),)));
    let profile = &user(app, "e-1").await["profile"];
    assert_eq!(profile["eventCount"], 2);
    let letters: Vec<(i64,)> = app.rows("SELECT count(*) FROM dead_letters").await;
    assert_eq!(letters, [(0,)]);
}

async fn everything_of_both_is_the_persons(app: &mut TestApp) {
    let backend = Backend::new(app).await;
    let phone = backend.identify(app, "phone", "e-1").await;
    send(app, &phone, "opened", "d1").await;
    app.settle().await;
    app.advance(60);
    let web = app.session("web").await;
    send(app, &web, "opened", "d1").await;
    send(app, &web, "searched", "d2").await;
    app.settle().await;
    let (one, other) = (user(app, "phone").await, user(app, "web").await);
    assert_ne!(phone.subject_id, web.subject_id);

    let merged = backend.identify(app, "web", "e-1").await;
    assert_eq!(merged.subject_id, phone.subject_id);
    let both = user(app, "web").await;
    let profile = &both["profile"];
    assert_eq!(profile, &user(app, "phone").await["profile"]);
    assert_eq!(profile["eventCount"], 3);
    assert_eq!(profile["anonymousId"], "phone");
    assert_eq!(profile["anonymousIds"], json!(["phone", "web"]));
    assert_eq!(profile["firstSeenAt"], one["profile"]["firstSeenAt"]);
    assert_eq!(profile["lastSeenAt"], other["profile"]["lastSeenAt"]);
    let devices = both["devices"].as_array().unwrap();
    assert_eq!(devices.len(), 2);
    let first = devices
        .iter()
        .find(|device| device["deviceId"] == "d1")
        .unwrap();
    assert_eq!(first["firstSeenAt"], one["devices"][0]["firstSeenAt"]);
    assert!(text(first, "lastSeenAt") > text(first, "firstSeenAt"));
    let events = app
        .get(&app.path("/users/e-1/events"), &app.viewer())
        .await
        .ok();
    assert_eq!(events["items"].as_array().unwrap().len(), 3);
    assert_eq!(events["items"][0]["name"], "searched");
    let page = app.get(&app.path("/users"), &app.viewer()).await.ok();
    assert_eq!(page["total"], 1);
    // Nothing refers to who is no more.
    let left: Vec<(i64,)> = app
        .rows(
            "SELECT (SELECT count(*) FROM aliases WHERE subject_id NOT IN (SELECT id FROM subjects))
                  + (SELECT count(*) FROM devices WHERE subject_id NOT IN (SELECT id FROM subjects))",
        )
        .await;
    assert_eq!(left, [(0,)]);
}

async fn a_merge_says_what_it_drops(app: &mut TestApp) {
    let backend = Backend::new(app).await;
    let phone = backend.identify(app, "phone", "e-1").await;
    let (web, tv) = (app.session("web").await, app.session("tv").await);
    set(app, &phone, json!({"plan": "needle-pro", "same": "x"})).await;
    let mut tx = app.services().db.write().await.unwrap();
    for number in 0..997 {
        let property =
            "INSERT INTO subject_properties (subject_id, key, app_id, value, source, updated_at)
             SELECT subject_id, $1, app_id, '1', 'api', 0 FROM aliases WHERE value = 'phone'";
        let statement = tx.sql(property).bind(format!("p{number}"));
        assert_eq!(statement.execute().await.unwrap(), 1);
    }
    tx.commit().await.unwrap();
    let others = json!({"plan": "needle-free", "same": "x", "a": 1, "b": 2, "c": 3});
    set(app, &web, others).await;
    set(app, &tv, json!({"same": "x"})).await;
    let token = |token: &str| json!({"provider": "fcm", "token": token});
    app.push_token(&phone, "device", &token("needle-of-the-phone"))
        .await;
    app.push_token(&web, "device", &token("needle-of-the-web"))
        .await;

    backend.identify(app, "tv", "e-1").await;
    assert!(app.audited("person.merged").await.is_empty());
    backend.identify(app, "web", "e-1").await;

    let entries = app.audited("person.merged").await;
    assert_eq!(entries.len(), 1);
    assert_eq!(entries[0]["actor"], "server");
    assert_eq!(
        entries[0]["detail"],
        json!({"dropped": {"propertyValues": 1, "propertiesOverLimit": 2, "pushRegistrations": 1,
            "pluginStates": 0, "pluginTimers": 0, "waitingFirings": 0}})
    );
    let told = entries[0].to_string();
    assert!(text(&entries[0], "resource").starts_with("person/"));
    for secret in ["needle", "e-1", &phone.subject_id, &web.subject_id] {
        assert!(!told.contains(secret), "{told}");
    }
    let person = user(app, "web").await;
    let kept = person["properties"].as_array().unwrap().len();
    assert_eq!(kept, 100, "the newest");
    let stored: Vec<(i64,)> = app.rows("SELECT count(*) FROM subject_properties").await;
    assert_eq!(stored, [(1_000,)]);
}

async fn properties_of_the_identified_win_and_gaps_are_filled(app: &mut TestApp) {
    let backend = Backend::new(app).await;
    let phone = backend.identify(app, "phone", "e-1").await;
    let web = app.session("web").await;
    set(app, &phone, json!({"plan": "pro", "same": "x"})).await;
    let mutation = app.id();
    let update = json!({"anonymousId": "web", "mutationId": mutation, "set": {"plan": "free", "city": "Graz", "same": "x"}});
    app.post("/v1/sdk/user-properties", &web.credential(), &update)
        .await
        .ok();

    let merged = backend.identify(app, "web", "e-1").await;
    let person = user(app, "web").await;
    assert_eq!(
        person["profile"]["topProperties"],
        json!({"plan": "pro", "same": "x", "city": "Graz"})
    );
    for (query, total) in [("gra", 1), ("fre", 0), ("pro", 1)] {
        let found = app
            .get(&app.path(&format!("/users?q={query}")), &app.viewer())
            .await
            .ok();
        assert_eq!(found["total"], total, "{query}");
    }
    // The memory of updates is the person's too.
    let again = app
        .post("/v1/sdk/user-properties", &merged.credential(), &update)
        .await
        .ok();
    assert_eq!(again["applied"], false);
    set(app, &merged, json!({"city": "Wien"})).await;
    let found = app.get(&app.path("/users?q=gra"), &app.viewer()).await.ok();
    assert_eq!(found["total"], 0);
}

async fn what_fired_once_does_not_fire_again(app: &mut TestApp) {
    app.survey(&json!({"kind": "event", "eventName": "purchase", "occurrence": {"mode": "once"}}))
        .await;
    let backend = Backend::new(app).await;
    backend.identify(app, "phone", "e-1").await;
    let web = app.session("web").await;
    assert_eq!(app.fires(&web, "purchase", &json!({})).await, 1);

    let merged = backend.identify(app, "web", "e-1").await;
    assert_eq!(app.fires(&merged, "purchase", &json!({})).await, 0);
    let phone = backend.identify(app, "phone", "e-1").await;
    assert_eq!(app.fires(&phone, "purchase", &json!({})).await, 0);
}

async fn what_both_did_counts_together(app: &mut TestApp) {
    for (name, occurrence) in [
        ("third", json!({"mode": "nth", "n": 3})),
        ("gone", json!({"mode": "nth", "n": 2})),
        ("thirds", json!({"mode": "every_nth", "n": 3})),
        (
            "lately",
            json!({"mode": "at_least", "n": 3, "withinDays": 7}),
        ),
    ] {
        let trigger = json!({"kind": "event", "eventName": name, "occurrence": occurrence});
        app.survey(&trigger).await;
    }
    let backend = Backend::new(app).await;
    let phone = backend.identify(app, "phone", "e-1").await;
    let web = app.session("web").await;
    for session in [&phone, &web] {
        for name in ["third", "thirds", "lately", "gone"] {
            assert_eq!(app.fires(session, name, &json!({})).await, 0, "{name}");
        }
    }
    assert_eq!(app.fires(&web, "gone", &json!({})).await, 1);

    let merged = backend.identify(app, "web", "e-1").await;
    for (name, expected) in [
        ("third", [1, 0, 0, 0]),
        ("thirds", [1, 0, 0, 1]),
        ("lately", [1, 1, 1, 1]),
        ("gone", [0, 0, 0, 0]),
    ] {
        for (place, fires) in expected.into_iter().enumerate() {
            if place == 1 {
                app.restart().await;
            }
            let fired = app.fires(&merged, name, &json!({})).await;
            assert_eq!(fired, fires, "{name}, {place}");
        }
    }
}

async fn timers_go_on_to_wait(app: &mut TestApp) {
    let trigger = json!({"kind": "event", "eventName": "purchase", "delaySeconds": 600});
    app.survey(&trigger).await;
    let backend = Backend::new(app).await;
    let phone = backend.identify(app, "phone", "e-1").await;
    let web = app.session("web").await;
    for session in [&phone, &web] {
        assert_eq!(app.fires(session, "purchase", &json!({})).await, 0);
    }
    let merged = backend.identify(app, "web", "e-1").await;
    let waiting: Vec<(i64,)> = app.rows("SELECT count(*) FROM timers").await;
    assert_eq!(waiting, [(2,)]);

    app.advance(601);
    // Two polls: the timers are two pieces of work.
    for wanted in 1..=2 {
        let mut query = "?wait=25".to_owned();
        let mut items = Vec::new();
        while items.len() < wanted {
            let page = app.poll(&merged, &query).await.ok();
            items.extend(instruction_ids(&page["items"]));
            assert!(!instruction_ids(&page["items"]).is_empty(), "{page}");
            query = format!("?wait=25&cursor={}", text(&page, "nextCursor"));
        }
    }
}

async fn instructions_stay_on_offer(app: &mut TestApp) {
    app.survey(&json!({"kind": "event", "eventName": "purchase"}))
        .await;
    let backend = Backend::new(app).await;
    let phone = backend.identify(app, "phone", "e-1").await;
    let web = app.session("web").await;
    for session in [&phone, &phone, &web] {
        assert_eq!(app.fires(session, "purchase", &json!({})).await, 1);
    }
    let before = app.poll(&phone, "").await.ok();
    let cursor = text(&before, "nextCursor");
    let theirs = instruction_ids(&app.offered(&web).await);

    let merged = backend.identify(app, "web", "e-1").await;
    // A cursor from before is not past what came by the merge.
    let after = app.poll(&phone, &format!("?cursor={cursor}")).await.ok();
    assert_eq!(instruction_ids(&after["items"]), theirs);
    assert_eq!(app.offered(&merged).await.as_array().unwrap().len(), 3);
    assert_eq!(
        app.acknowledge(&merged, &theirs[0], "completed").await["accepted"],
        1
    );
    assert_eq!(app.fires(&merged, "purchase", &json!({})).await, 1);
    let positions: Vec<(i64,)> = app
        .rows("SELECT position FROM instructions ORDER BY position")
        .await;
    assert_eq!(positions, [(1,), (2,), (3,), (4,)]);
}

async fn what_one_person_has_had_is_offered_no_more(app: &mut TestApp) {
    let twice = json!({"perSubject": {"max": 2, "windowDays": "lifetime"}});
    let mut surveys = Vec::new();
    for (name, occurrence, cap) in [
        ("once", json!({"mode": "once"}), json!({})),
        ("capped", json!({"mode": "every"}), twice),
        ("free", json!({"mode": "every"}), json!({})),
    ] {
        let trigger = json!({"kind": "event", "eventName": name, "occurrence": occurrence});
        let survey = json!({"trigger": trigger, "frequencyCap": cap});
        surveys.push(app.survey_with(&survey).await);
    }
    let backend = Backend::new(app).await;
    let phone = backend.identify(app, "phone", "e-1").await;
    let web = app.session("web").await;
    for name in ["once", "capped", "free"] {
        assert_eq!(app.fires(&phone, name, &json!({})).await, 1);
    }
    for seen in instruction_ids(&app.offered(&phone).await) {
        app.acknowledge(&phone, &seen, "completed").await;
    }
    for name in ["once", "capped", "capped", "free"] {
        assert_eq!(app.fires(&web, name, &json!({})).await, 1, "{name}");
    }
    let held = instruction_ids(&app.offered(&web).await);

    let merged = backend.identify(app, "web", "e-1").await;
    let offered = app.offered(&merged).await;
    let mut names: Vec<&str> = offered
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|item| item["trigger"]["name"].as_str())
        .collect();
    names.sort_unstable();
    assert_eq!(names, ["capped", "free"]);
    let suppressed: Vec<(String, i64)> = app
        .rows("SELECT suppressed_by, count(*) FROM instructions WHERE suppressed_by IS NOT NULL GROUP BY suppressed_by")
        .await;
    assert_eq!(suppressed, [("frequency_cap".to_owned(), 2)]);

    // An SDK that has them already shows them: they are the person's, and count.
    let left = instruction_ids(&offered);
    let withdrawn: Vec<&String> = held.iter().filter(|id| !left.contains(id)).collect();
    let taken = app.acknowledge(&merged, withdrawn[1], "displayed").await;
    assert_eq!(taken, json!({"accepted": 1, "unknown": []}));
    let follow = json!({"instructionId": withdrawn[0]});
    let attempt = attempts::try_start(app, &merged, surveys[0], follow).await;
    attempt.data(201);
    let seen = "instructions WHERE suppressed_by IS NULL AND displayed_at IS NOT NULL AND counted_at IS NOT NULL";
    assert_eq!(app.count(seen).await, 3 + 2);
    assert_eq!(instruction_ids(&app.offered(&merged).await), left);
}

async fn attempts_and_firings_that_wait_keep_their_ids(app: &mut TestApp) {
    let backend = Backend::new(app).await;
    backend.identify(app, "phone", "e-1").await;
    let web = app.session("web").await;
    let coordinated = json!({"settings": {"coordinated": true}});
    let (survey, offered) = attempts::instruction(app, &web, coordinated).await;
    let kept = attempts::fire(app, &web).await;
    let follow = json!({"instructionId": offered});
    let attempt = attempts::try_start(app, &web, survey, follow).await;
    let attempt = text(&attempt.data(201), "attemptId");
    let low = json!({"questionId": "low"});
    let answers = json!([["q1", 3]]);
    assert_eq!(attempts::next(app, &web, &attempt, answers).await, low);
    // One more waits for its delay, and one for the app's pause between presentations.
    app.survey(&json!({"kind": "event", "eventName": "left", "delaySeconds": 600}))
        .await;
    app.fires(&web, "left", &json!({})).await;
    app.set(|settings| settings.frequency.min_seconds_between_presentations = 60)
        .await;
    app.survey(&json!({"kind": "event", "eventName": "returned"}))
        .await;
    assert_eq!(app.fires(&web, "returned", &json!({})).await, 0);
    let waiting: Vec<(uuid::Uuid,)> = app.rows("SELECT firing_id FROM occasions").await;
    let waiting = waiting[0].0.to_string();

    let merged = backend.identify(app, "web", "e-1").await;
    let ids = instruction_ids(&app.offered(&merged).await);
    assert!(ids.contains(&kept) && !ids.contains(&waiting), "{ids:?}");
    attempts::answer(app, &merged, &attempt, json!([["low", 2]]))
        .await
        .ok();
    attempts::end(app, &merged, &attempt, "complete").await.ok();
    let detail = attempts::detail(app, survey, &attempt).await;
    let whose = (&detail["state"], &detail["subjectId"]);
    assert_eq!(whose, (&json!("completed"), &json!(merged.subject_id)));
    assert_eq!(detail["answers"].as_array().unwrap().len(), 2);
    for seconds in [61, 600] {
        let before = app.offered(&merged).await.as_array().unwrap().len();
        app.advance(seconds);
        app.until("what waited is offered", async || {
            let offered = app.offered(&merged).await;
            offered.as_array().unwrap().len() == before + 1
        })
        .await;
    }
    let ids = instruction_ids(&app.offered(&merged).await);
    assert!(ids.contains(&kept) && ids.contains(&waiting), "{ids:?}");
}

async fn old_tokens_are_revoked_and_old_ids_lead_to_the_person(app: &mut TestApp) {
    let backend = Backend::new(app).await;
    let phone = backend.identify(app, "phone", "e-1").await;
    let web = app.session("web").await;
    app.survey(&json!({"kind": "event", "eventName": "opened"}))
        .await;
    let merged = backend.identify(app, "web", "e-1").await;

    app.poll(&web, "")
        .await
        .refused(401, "subject_token_expired");
    let event = app.event(&web, "opened", &json!({}));
    app.ingest(&web, &[event])
        .await
        .refused(401, "subject_token_expired");
    let body = json!({"anonymousId": "web", "analytics": false});
    app.post("/v1/sdk/consent", &web.credential(), &body)
        .await
        .refused(401, "subject_token_expired");
    for session in [&phone, &merged] {
        let event = app.event(session, "opened", &json!({}));
        assert_eq!(app.ingest(session, &[event]).await.ok()["accepted"], 1);
        app.settle().await;
    }
    for subject_id in [&web.subject_id, &phone.subject_id] {
        let path = app.path(&format!("/decisions?subjectId={subject_id}"));
        let list = app.get(&path, &app.viewer()).await.ok();
        assert_eq!(list["items"].as_array().map(Vec::len), Some(2));
    }
    let token = Credential::bearer(&app.access.api_token);
    let path = app.path("/users/properties");
    for (number, subject) in [
        json!({"subjectId": web.subject_id}),
        json!({"anonymousId": "web"}),
        json!({"externalId": "e-1"}),
        json!({"subjectId": phone.subject_id}),
    ]
    .into_iter()
    .enumerate()
    {
        let update = json!({"mutationId": app.id(), "set": {"n": number}});
        let body = json!({"subject": subject, "update": update});
        app.patch(&path, &token, &body).await.ok();
        assert_eq!(user(app, "phone").await["properties"][0]["value"], number);
    }
}

async fn the_history_of_both_counts(app: &mut TestApp) {
    let trigger =
        json!({"kind": "event", "eventName": "purchase", "occurrence": {"mode": "first"}});
    let backend = Backend::new(app).await;
    let phone = backend.identify(app, "phone", "e-1").await;
    let event = app.event(&phone, "purchase", &json!({}));
    app.ingest(&phone, &[event]).await.ok();
    app.settle().await;
    app.session("web").await;
    let new = backend.identify(app, "tablet", "e-2").await;
    let merged = backend.identify(app, "web", "e-1").await;
    app.survey(&trigger).await;
    // The first purchase was on the phone, before anybody asked.
    assert_eq!(app.fires(&merged, "purchase", &json!({})).await, 0);
    assert_eq!(app.fires(&new, "purchase", &json!({})).await, 1);
}

async fn merging_amid_events_loses_and_doubles_nothing(app: &mut TestApp) {
    app.survey(&json!({"kind": "event", "eventName": "purchase"}))
        .await;
    let backend = Backend::new(app).await;
    let phone = backend.identify(app, "phone", "e-1").await;
    let devices: Vec<String> = (0..6).map(|number| format!("web-{number}")).collect();
    let mut webs = Vec::new();
    for device in &devices {
        webs.push(app.session(device).await);
    }
    let app_ = &*app;
    // Each device sends, is linked meanwhile, asks for a session where it is told to, and goes on.
    let sending = webs.iter().map(|web| {
        let backend = &backend;
        async move {
            let mut session = web.clone();
            for number in 0..12 {
                let events = [
                    app_.event(&session, "purchase", &json!({})),
                    app_.event(&session, "opened", &json!({})),
                ];
                let key = format!("{}-{number}", session.anonymous_id);
                let update = json!({"anonymousId": session.anonymous_id, "mutationId": app_.id(), "set": {key: number}});
                loop {
                    let credential = session.credential();
                    let (sent, updated) = tokio::join!(
                        app_.ingest(&session, &events),
                        app_.post("/v1/sdk/user-properties", &credential, &update),
                    );
                    if (sent.status, updated.status) == (200, 200) {
                        break;
                    }
                    // What was taken before the other was refused, is taken for what it is: sent again.
                    for answer in [sent, updated] {
                        if answer.status != 200 {
                            answer.refused(401, "subject_token_expired");
                        }
                    }
                    session = backend.identify(app_, &session.anonymous_id, "e-1").await;
                }
            }
        }
    });
    let own = async {
        for _ in 0..12 {
            let event = app_.event(&phone, "purchase", &json!({}));
            app_.ingest(&phone, &[event]).await.ok();
        }
    };
    let linking = async {
        for device in &devices {
            backend.identify(app_, device, "e-1").await;
        }
    };
    tokio::join!(futures_util::future::join_all(sending), own, linking);
    app.settle().await;

    let person = user(app, "e-1").await;
    assert_eq!(person["profile"]["eventCount"], 6 * 24 + 12);
    assert_eq!(
        person["profile"]["anonymousIds"].as_array().unwrap().len(),
        7
    );
    let saved: Vec<(i64,)> = app.rows("SELECT count(*) FROM subject_properties").await;
    assert_eq!(saved, [(6 * 12,)]);
    let rows: Vec<(i64, i64)> = app
        .rows("SELECT count(*), count(DISTINCT trigger_event_id) FROM instructions")
        .await;
    assert_eq!(rows, [(6 * 12 + 12, 6 * 12 + 12)]);
    let positions: Vec<(i64, i64, i64)> = app
        .rows("SELECT count(DISTINCT position), max(position), max(s.instruction_count) FROM instructions i JOIN subjects s ON s.id = i.subject_id")
        .await;
    assert_eq!(positions, [(84, 84, 84)]);
    assert_eq!(app.stored("purchase").await, 84);
}

async fn a_merge_survives_a_restart(app: &mut TestApp) {
    let backend = Backend::new(app).await;
    backend.identify(app, "phone", "e-1").await;
    let web = app.session("web").await;
    set(app, &web, json!({"city": "Graz"})).await;
    let merged = backend.identify(app, "web", "e-1").await;
    app.restart().await;
    app.poll(&merged, "").await.ok();
    app.poll(&web, "")
        .await
        .refused(401, "subject_token_expired");
    assert_eq!(
        user(app, "web").await["profile"]["topProperties"],
        json!({"city": "Graz"})
    );
}
