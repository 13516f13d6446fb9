//! Instructions: at once, polled, acknowledged (contract 4).

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tests::session::{instruction_ids, text};
use tests::{Session, TestApp, on_both_backends};

on_both_backends!(
    an_instruction_says_what_to_show_and_why,
    an_immediate_instruction_is_polled_under_the_same_id,
    asking_again_for_the_same_events_gives_the_same_instructions,
    acknowledging_is_monotone_and_idempotent,
    acknowledgements_of_others_are_unknown,
    a_request_has_1_to_50_acknowledgements,
    a_cursor_continues_after_what_it_has_seen,
    a_cursor_is_of_its_subject_and_good_for_a_day,
    a_long_poll_wakes_when_something_is_issued,
    wait_and_limit_have_ranges,
    what_is_paused_or_deleted_is_no_longer_offered,
    what_a_pause_withheld_is_offered_after_it_whatever_the_cursor,
    instructions_expire,
    higher_priority_comes_first,
    a_running_instruction_keeps_the_version_that_fired,
);

fn purchase() -> Value {
    json!({"kind": "event", "eventName": "purchase"})
}

async fn fire(app: &TestApp, session: &Session) -> Value {
    let event = app.event(session, "purchase", &json!({}));
    app.ingest_and_ask(session, &[event]).await["instructions"].take()
}

async fn an_instruction_says_what_to_show_and_why(app: &mut TestApp) {
    let survey = app
        .survey_with(&json!({"priority": 7, "theme": {"color": "red"}}))
        .await;
    let ada = app.session("ada").await;
    let event = app.event(&ada, "purchase", &json!({}));

    let data = app.ingest_and_ask(&ada, std::slice::from_ref(&event)).await;

    let instruction = &data["instructions"][0];
    assert_eq!(instruction["kind"], "survey");
    assert_eq!(instruction["campaignId"], json!(survey));
    assert_eq!(instruction["campaignVersion"], 1);
    assert_eq!(instruction["priority"], 7);
    assert_eq!(
        instruction["trigger"],
        json!({"eventId": event["eventId"], "name": "purchase"})
    );
    assert_eq!(instruction["payload"]["survey"]["id"], json!(survey));
    assert_eq!(
        instruction["payload"]["survey"]["flow"]["questions"][0]["title"],
        "How?"
    );
    assert_eq!(instruction["payload"]["survey"]["theme"]["color"], "red");
    assert!(instruction["payload"]["survey"].get("trigger").is_none());
    for key in ["createdAt", "availableAt", "expiresAt"] {
        assert!(
            nudge_platform::clock::from_text(&text(instruction, key)).is_some(),
            "{key}"
        );
    }
    assert_eq!(&app.offered(&ada).await[0], instruction);
}

async fn an_immediate_instruction_is_polled_under_the_same_id(app: &mut TestApp) {
    app.survey(&purchase()).await;
    let ada = app.session("ada").await;
    let at_once = instruction_ids(&fire(app, &ada).await);

    assert_eq!(at_once.len(), 1);
    assert_eq!(instruction_ids(&app.offered(&ada).await), at_once);
    assert_eq!(instruction_ids(&app.offered(&ada).await), at_once);
    let bob = app.session("bob").await;
    assert_eq!(app.offered(&bob).await, json!([]));
}

async fn asking_again_for_the_same_events_gives_the_same_instructions(app: &mut TestApp) {
    app.survey(&purchase()).await;
    let ada = app.session("ada").await;
    let event = app.event(&ada, "purchase", &json!({}));
    let events = std::slice::from_ref(&event);

    let first = app.ingest_and_ask(&ada, events).await;
    let again = app.ingest_and_ask(&ada, events).await;

    assert_eq!(first["instructions"].as_array().unwrap().len(), 1);
    assert_eq!(first["instructions"], again["instructions"]);
    app.settle().await;
    assert_eq!(app.offered(&ada).await.as_array().unwrap().len(), 1);
}

async fn acknowledging_is_monotone_and_idempotent(app: &mut TestApp) {
    app.survey(&purchase()).await;
    let ada = app.session("ada").await;
    let id = instruction_ids(&fire(app, &ada).await).remove(0);
    let taken = json!({"accepted": 1, "unknown": []});

    for _ in 0..2 {
        assert_eq!(app.acknowledge(&ada, &id, "received").await, taken);
        assert_eq!(instruction_ids(&app.offered(&ada).await), [id.as_str()]);
    }
    for status in ["completed", "received", "displayed", "completed"] {
        assert_eq!(app.acknowledge(&ada, &id, status).await, taken);
        assert_eq!(app.offered(&ada).await, json!([]), "{status}");
    }
    let stored: Vec<(String,)> = app.rows("SELECT status FROM instructions").await;
    assert_eq!(stored, [("completed".to_owned(),)]);
}

async fn acknowledgements_of_others_are_unknown(app: &mut TestApp) {
    app.survey(&purchase()).await;
    let (ada, bob) = (app.session("ada").await, app.session("bob").await);
    let id = instruction_ids(&fire(app, &ada).await).remove(0);

    let answer = app.acknowledge(&bob, &id, "completed").await;
    assert_eq!(answer, json!({"accepted": 0, "unknown": [id]}));
    assert_eq!(instruction_ids(&app.offered(&ada).await), [id.as_str()]);

    let body =
        json!({"anonymousId": "ada", "acks": [{"instructionId": id, "status": "displayed"}]});
    let answer = app
        .post("/v1/sdk/instructions/ack", &bob.credential(), &body)
        .await;
    answer.refused(403, "subject_mismatch");
}

async fn a_request_has_1_to_50_acknowledgements(app: &mut TestApp) {
    let ada = app.session("ada").await;
    let acknowledge = async |acks: Value| {
        let body = json!({"anonymousId": "ada", "acks": acks});
        app.post("/v1/sdk/instructions/ack", &ada.credential(), &body)
            .await
    };
    let of = |count: usize| -> Value {
        (0..count)
            .map(|_| json!({"instructionId": app.id(), "status": "received"}))
            .collect()
    };

    assert_eq!(
        acknowledge(of(50)).await.ok()["unknown"]
            .as_array()
            .unwrap()
            .len(),
        50
    );
    for bad in [of(0), of(51)] {
        let answer = acknowledge(bad).await;
        answer.refused(422, "validation_failed");
        assert_eq!(answer.pointers(), ["/acks"]);
    }
    for (ack, pointer) in [
        (
            json!({"instructionId": app.id(), "status": "eaten"}),
            "/acks/0/status",
        ),
        (
            json!({"instructionId": "x", "status": "received"}),
            "/acks/0/instructionId",
        ),
        (
            json!({"instructionId": app.id(), "status": "received", "at": "now"}),
            "/acks/0/at",
        ),
    ] {
        let answer = acknowledge(json!([ack])).await;
        answer.refused(422, "validation_failed");
        assert_eq!(answer.pointers(), [pointer]);
    }
}

async fn a_cursor_continues_after_what_it_has_seen(app: &mut TestApp) {
    app.survey(&purchase()).await;
    let ada = app.session("ada").await;
    let mut fired = Vec::new();
    for _ in 0..3 {
        fired.extend(instruction_ids(&fire(app, &ada).await));
    }

    let page = app.poll(&ada, "?limit=2").await.ok();
    assert_eq!(instruction_ids(&page["items"]), fired[..2]);
    assert!(page["pollAfterSeconds"].is_u64());
    let cursor = text(&page, "nextCursor");
    let next = app.poll(&ada, &format!("?cursor={cursor}")).await.ok();
    assert_eq!(instruction_ids(&next["items"]), fired[2..]);

    let cursor = text(&next, "nextCursor");
    let nothing = app.poll(&ada, &format!("?cursor={cursor}")).await.ok();
    assert_eq!(nothing["items"], json!([]));
    // What an ingest response returned at once does not move the cursor.
    let at_once = instruction_ids(&fire(app, &ada).await);
    let later = app.poll(&ada, &format!("?cursor={cursor}")).await.ok();
    assert_eq!(instruction_ids(&later["items"]), at_once);
    assert_eq!(instruction_ids(&app.offered(&ada).await).len(), 4);
}

async fn a_cursor_is_of_its_subject_and_good_for_a_day(app: &mut TestApp) {
    let (ada, bob) = (app.session("ada").await, app.session("bob").await);
    let cursor = text(&app.poll(&ada, "").await.ok(), "nextCursor");

    app.poll(&bob, &format!("?cursor={cursor}"))
        .await
        .refused(400, "invalid_cursor");
    let mut changed = cursor.clone().into_bytes();
    changed[12] = if changed[12] == b'A' { b'B' } else { b'A' };
    let changed = String::from_utf8(changed).unwrap();
    for bad in [changed.as_str(), "", "x", "AAAA", &cursor[1..]] {
        app.poll(&ada, &format!("?cursor={bad}"))
            .await
            .refused(400, "invalid_cursor");
    }
    app.advance(23 * 3600);
    let ada = app.session("ada").await;
    app.poll(&ada, &format!("?cursor={cursor}")).await.ok();
    app.advance(2 * 3600);
    app.poll(&ada, &format!("?cursor={cursor}"))
        .await
        .refused(400, "invalid_cursor");
}

async fn a_long_poll_wakes_when_something_is_issued(app: &mut TestApp) {
    app.survey(&purchase()).await;
    let ada = app.session("ada").await;
    let started = Instant::now();

    let (polled, ()) = tokio::join!(app.poll(&ada, "?wait=25"), async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        let event = app.event(&ada, "purchase", &json!({}));
        app.ingest(&ada, &[event]).await.ok();
    });

    assert_eq!(instruction_ids(&polled.ok()["items"]).len(), 1);
    assert!(
        started.elapsed() < Duration::from_secs(15),
        "{:?}",
        started.elapsed()
    );

    let bob = app.session("bob").await;
    let started = Instant::now();
    assert_eq!(app.poll(&bob, "?wait=1").await.ok()["items"], json!([]));
    assert!(started.elapsed() >= Duration::from_secs(1));
}

async fn wait_and_limit_have_ranges(app: &mut TestApp) {
    let ada = app.session("ada").await;
    for good in ["?wait=0&limit=1", "?limit=20", "?unknown=1"] {
        app.poll(&ada, good).await.ok();
    }
    for bad in [
        "?limit=0",
        "?limit=21",
        "?wait=26",
        "?wait=-1",
        "?wait=x",
        "?limit=99999999999999999999",
    ] {
        app.poll(&ada, bad).await.refused(422, "validation_failed");
    }
}

async fn what_is_paused_or_deleted_is_no_longer_offered(app: &mut TestApp) {
    let survey = app.survey(&purchase()).await;
    let path = app.path(&format!("/surveys/{survey}"));
    let ada = app.session("ada").await;
    let fired = instruction_ids(&fire(app, &ada).await);

    for status in ["paused", "completed", "archived", "draft"] {
        app.patch(&path, &app.editor(), &json!({"status": status}))
            .await
            .ok();
        assert_eq!(app.offered(&ada).await, json!([]), "{status}");
        assert_eq!(fire(app, &ada).await, json!([]), "{status}");
        app.patch(&path, &app.editor(), &json!({"status": "active"}))
            .await
            .ok();
        assert_eq!(instruction_ids(&app.offered(&ada).await), fired);
    }
    app.delete(&path, &app.editor()).await.data(204);
    assert_eq!(app.offered(&ada).await, json!([]));
    assert_eq!(fire(app, &ada).await, json!([]));
}

async fn what_a_pause_withheld_is_offered_after_it_whatever_the_cursor(app: &mut TestApp) {
    let on = |name: &str| json!({"kind": "event", "eventName": name});
    let withheld = app.survey(&on("a")).await;
    app.survey(&on("b")).await;
    let ada = app.session("ada").await;
    let set = async |status: &str| {
        let path = app.path(&format!("/surveys/{withheld}"));
        app.patch(&path, &app.editor(), &json!({"status": status}))
            .await
            .ok();
    };
    let poll = async |cursor: &str| {
        let page = app.poll(&ada, &format!("?cursor={cursor}")).await.ok();
        let campaigns = page["items"].as_array().unwrap().iter();
        let campaigns: Vec<String> = campaigns.map(|it| text(it, "campaignId")).collect();
        (campaigns, text(&page, "nextCursor"))
    };
    assert_eq!(app.fires(&ada, "a", &json!({})).await, 1);
    set("paused").await;
    assert_eq!(app.fires(&ada, "b", &json!({})).await, 1);
    let page = app.poll(&ada, "").await.ok();
    assert_eq!(page["items"].as_array().unwrap().len(), 1);
    let (nothing, cursor) = poll(&text(&page, "nextCursor")).await;
    assert!(nothing.is_empty());
    // Another one that runs since then offers nothing.
    app.advance(1);
    app.survey(&on("c")).await;
    let (nothing, cursor) = poll(&cursor).await;
    assert!(nothing.is_empty());
    app.advance(1);
    set("active").await;
    let (offered, next) = poll(&cursor).await;
    assert_eq!(offered, [withheld.to_string()]);
    let (nothing, _) = poll(&next).await;
    assert!(nothing.is_empty());
}

async fn instructions_expire(app: &mut TestApp) {
    app.survey(&purchase()).await;
    let ada = app.session("ada").await;
    let expires = text(&fire(app, &ada).await[0], "expiresAt");
    let left = nudge_platform::clock::from_text(&expires).unwrap().0 - app.clock.now().0;
    let left = u64::try_from(left / 1_000_000).unwrap();

    app.advance(left - 60);
    let ada = app.session("ada").await;
    assert_eq!(app.offered(&ada).await.as_array().unwrap().len(), 1);
    app.advance(61);
    assert_eq!(app.offered(&ada).await, json!([]));
}

async fn higher_priority_comes_first(app: &mut TestApp) {
    for priority in [1, 9, -5, 4] {
        app.survey_with(&json!({"priority": priority})).await;
    }
    let ada = app.session("ada").await;
    let at_once = fire(app, &ada).await;
    let polled = app.offered(&ada).await;

    for items in [at_once, polled] {
        let priorities: Vec<i64> = items
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|item| item["priority"].as_i64())
            .collect();
        assert_eq!(priorities, [9, 4, 1, -5]);
    }
}

async fn a_running_instruction_keeps_the_version_that_fired(app: &mut TestApp) {
    let survey = app.survey(&purchase()).await;
    let ada = app.session("ada").await;
    fire(app, &ada).await;
    let path = app.path(&format!("/surveys/{survey}"));
    let flow = json!({"questions": [{"id": "q1", "type": "nps", "title": "And now?"}]});
    app.patch(&path, &app.editor(), &json!({"flow": flow}))
        .await
        .ok();
    fire(app, &ada).await;

    let offered = app.offered(&ada).await;
    let titles: Vec<(i64, &str)> = offered
        .as_array()
        .unwrap()
        .iter()
        .map(|item| {
            let title = &item["payload"]["survey"]["flow"]["questions"][0]["title"];
            (
                item["campaignVersion"].as_i64().unwrap(),
                title.as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(titles, [(1, "How?"), (2, "And now?")]);
}
