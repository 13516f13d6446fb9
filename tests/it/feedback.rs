//! Buttons that open surveys: offered for as long as the survey is active and its audience holds (contract 20).

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tests::session::{instruction_ids, text};
use tests::{Session, TestApp, on_both_backends};
use uuid::Uuid;

use crate::attempts::{answer, end, link_survey, question, start, try_start};
use crate::guests::save_property;
use crate::identity::Backend;

on_both_backends!(
    a_button_stands_until_the_survey_rests,
    the_last_button_goes_and_polls_wait,
    a_button_is_there_for_its_audience,
    each_of_many_buttons_is_there_for_its_own_audience,
    a_button_opens_a_survey_as_often_as_it_is_pressed,
    an_open_survey_is_answered_as_it_is_shown,
    a_survey_that_is_open_may_begin_to_wait_for_a_trigger,
    who_opens_a_button_is_counted_once,
    who_has_opened_a_survey_has_seen_it,
    a_button_that_is_there_once_goes_when_the_survey_is_complete,
    a_cursor_sees_a_button_when_it_comes,
    a_cursor_sees_a_button_that_is_on_offer_for_longer,
    a_button_that_comes_while_a_poll_waits_is_in_its_answer,
    a_waiting_poll_sees_when_an_audience_holds,
    a_waiting_poll_sees_a_wider_audience,
    a_waiting_poll_sees_what_the_end_of_a_survey_brings,
    a_waiting_poll_looks_for_no_buttons_while_nothing_changes,
    two_buttons_of_one_person_become_one,
    nothing_else_fires_a_button,
);

/// A survey that a button opens, with parts of its own.
pub(crate) async fn button(app: &TestApp, parts: Value) -> Uuid {
    let mut body = json!({"mode": "on_demand", "trigger": null, "settings": {"presentation": "feedback_button"}});
    body.as_object_mut()
        .unwrap()
        .extend(parts.as_object().unwrap().clone());
    app.survey_with(&body).await
}

async fn set(app: &TestApp, survey: Uuid, change: Value) {
    let path = app.path(&format!("/surveys/{survey}"));
    app.patch(&path, &app.editor(), &change).await.ok();
}

async fn one(app: &TestApp, session: &Session) -> Value {
    let offered = app.offered(session).await;
    assert_eq!(offered.as_array().unwrap().len(), 1, "{offered}");
    offered[0].clone()
}

async fn a_button_stands_until_the_survey_rests(app: &mut TestApp) {
    let survey = button(app, json!({"priority": 3})).await;
    let ada = app.session("ada").await;
    let offered = one(app, &ada).await;
    assert_eq!(offered["kind"], "feedback");
    assert_eq!(offered["campaignId"], json!(survey));
    assert_eq!(offered["priority"], 3);
    assert_eq!(
        offered["payload"]["survey"]["settings"]["presentation"],
        "feedback_button"
    );
    let id = text(&offered, "instructionId");
    for status in [
        "received",
        "displayed",
        "dismissed",
        "completed",
        "discarded",
    ] {
        let taken = app.acknowledge(&ada, &id, status).await;
        assert_eq!(taken["accepted"], 1);
        assert_eq!(text(&one(app, &ada).await, "instructionId"), id, "{status}");
    }
    // Weeks later it is there as it was.
    for _ in 0..4 {
        app.advance(6 * 86_400);
        let ada = app.session("ada").await;
        assert_eq!(text(&one(app, &ada).await, "instructionId"), id);
    }
    let ada = app.session("ada").await;
    set(app, survey, json!({"status": "paused"})).await;
    assert_eq!(app.offered(&ada).await, json!([]));
    set(app, survey, json!({"status": "active"})).await;
    let again = one(app, &ada).await;
    assert_eq!(text(&again, "instructionId"), id);
    assert_eq!(again["campaignVersion"], 3);
    // As a survey that pops up it is no button any longer.
    set(app, survey, json!({"settings": {"presentation": "modal"}})).await;
    assert_eq!(app.offered(&ada).await, json!([]));
}

/// Nothing is on offer, so that a poll waits, and the page has room for what comes.
async fn the_last_button_goes_and_polls_wait(app: &mut TestApp) {
    let survey = button(app, json!({"priority": 3})).await;
    let ada = app.session("ada").await;
    one(app, &ada).await;
    set(app, survey, json!({"settings": {"presentation": "modal"}})).await;
    app.survey(&json!({"kind": "event", "eventName": "visit"}))
        .await;
    let begun = Instant::now();
    let (polled, ()) = tokio::join!(app.poll(&ada, "?wait=20&limit=1"), async {
        tokio::time::sleep(Duration::from_millis(600)).await;
        app.fires(&ada, "visit", &json!({})).await;
    });
    let polled = polled.ok();
    assert_eq!(polled["items"][0]["kind"], "survey", "{polled}");
    let waited = begun.elapsed();
    assert!(waited >= Duration::from_millis(600), "{waited:?}");
}

async fn a_button_is_there_for_its_audience(app: &mut TestApp) {
    let filter = json!({"all": [{"property": "plan", "type": "string", "operator": "equals", "value": "pro"}]});
    button(
        app,
        json!({"audience": {"include": {"kind": "user_property", "filter": filter}}}),
    )
    .await;
    let (ada, bob) = (app.session("ada").await, app.session("bob").await);
    save_property(app, &ada, "plan", json!("pro")).await;
    let id = text(&one(app, &ada).await, "instructionId");
    assert_eq!(app.offered(&bob).await, json!([]));
    save_property(app, &ada, "plan", json!("free")).await;
    assert_eq!(app.offered(&ada).await, json!([]));
    save_property(app, &ada, "plan", json!("pro")).await;
    assert_eq!(text(&one(app, &ada).await, "instructionId"), id);
    // Whoever may not be messaged sees no button.
    let body = json!({"anonymousId": "ada", "messaging": false});
    app.post("/v1/sdk/consent", &ada.credential(), &body)
        .await
        .ok();
    assert_eq!(app.offered(&ada).await, json!([]));
}

async fn each_of_many_buttons_is_there_for_its_own_audience(app: &mut TestApp) {
    let of = |plan: &str| {
        let filter =
            json!({"property": "plan", "type": "string", "operator": "equals", "value": plan});
        json!({"audience": {"include": {"kind": "user_property", "filter": filter}}})
    };
    let mut buttons = Vec::new();
    for parts in [of("pro"), of("free"), json!({}), of("pro")] {
        buttons.push(button(app, parts).await.to_string());
    }
    let ada = app.session("ada").await;
    for (plan, expected) in [("pro", vec![0, 2, 3]), ("free", vec![1, 2])] {
        save_property(app, &ada, "plan", json!(plan)).await;
        let offered = app.offered(&ada).await;
        let offered = offered.as_array().unwrap().iter();
        let mut offered: Vec<String> = offered.map(|item| text(item, "campaignId")).collect();
        offered.sort();
        let expected = expected
            .into_iter()
            .map(|number: usize| buttons[number].clone());
        let mut expected: Vec<String> = expected.collect();
        expected.sort();
        assert_eq!(offered, expected, "{plan}");
    }
}

async fn a_button_opens_a_survey_as_often_as_it_is_pressed(app: &mut TestApp) {
    let survey = button(app, json!({})).await;
    let ada = app.session("ada").await;
    let id = text(&one(app, &ada).await, "instructionId");
    let mut attempts = std::collections::HashSet::new();
    for parts in [
        json!({"instructionId": id}),
        json!({}),
        json!({"instructionId": id}),
    ] {
        let data = try_start(app, &ada, survey, parts).await.data(201);
        let attempt = text(&data, "attemptId");
        answer(app, &ada, &attempt, json!([["q1", 9]])).await.ok();
        end(app, &ada, &attempt, "complete").await.ok();
        assert!(attempts.insert(attempt));
        assert_eq!(text(&one(app, &ada).await, "instructionId"), id);
    }
    let own = json!({"instructionId": id, "clientAttemptId": Uuid::from_u128(7)});
    let first = try_start(app, &ada, survey, own.clone()).await.data(201);
    let again = try_start(app, &ada, survey, own).await.data(201);
    assert_eq!(first["attemptId"], again["attemptId"]);
    let bob = app.session("bob").await;
    let theirs = try_start(app, &bob, Uuid::from_u128(1), json!({"instructionId": id})).await;
    theirs.refused(404, "not_found");
}

fn asking(id: &str) -> Value {
    json!({"questions": [question(id, true)]})
}

async fn an_open_survey_is_answered_as_it_is_shown(app: &mut TestApp) {
    let survey = button(app, json!({"flow": asking("old")})).await;
    let ada = app.session("ada").await;
    let open = one(app, &ada).await;
    let (id, seen) = (&open["instructionId"], &open["campaignVersion"]);
    set(app, survey, json!({"flow": asking("new")})).await;
    for parts in [
        json!({"surveyVersion": seen}),
        json!({"surveyVersion": seen, "instructionId": id}),
        // The button shows which.
        json!({"instructionId": id}),
    ] {
        let started = try_start(app, &ada, survey, parts).await.data(201);
        assert_eq!(&started["surveyVersion"], seen);
        assert_eq!(started["next"], json!({"questionId": "old"}));
        assert_eq!(&started["survey"]["version"], seen);
        let attempt = text(&started, "attemptId");
        answer(app, &ada, &attempt, json!([["old", 9]])).await.ok();
        end(app, &ada, &attempt, "complete").await.ok();
    }
    set(app, survey, json!({"status": "paused"})).await;
    set(app, survey, json!({"status": "active"})).await;
    let current = one(app, &ada).await["campaignVersion"].as_i64().unwrap();
    // Versions that there are not, or that did not run, are none that anybody sees.
    for seen in [json!(null), json!(current - 1), json!(current + 1)] {
        let parts = json!({"surveyVersion": seen, "instructionId": id});
        let started = try_start(app, &ada, survey, parts).await.data(201);
        assert_eq!(started["surveyVersion"], current);
        assert_eq!(started["next"], json!({"questionId": "new"}));
        assert_eq!(started["survey"]["flow"]["questions"][0]["id"], "new");
    }
}

async fn a_survey_that_is_open_may_begin_to_wait_for_a_trigger(app: &mut TestApp) {
    let survey = button(app, json!({"flow": asking("old")})).await;
    let ada = app.session("ada").await;
    let seen = one(app, &ada).await["campaignVersion"].clone();
    set(
        app,
        survey,
        json!({"mode": "triggered", "trigger": {"kind": "event", "eventName": "bought"}, "settings": null}),
    )
    .await;
    let started = try_start(app, &ada, survey, json!({"surveyVersion": seen})).await;
    let started = started.data(201);
    assert_eq!(started["next"], json!({"questionId": "old"}));
    let attempt = text(&started, "attemptId");
    answer(app, &ada, &attempt, json!([["old", 9]])).await.ok();
    end(app, &ada, &attempt, "complete").await.ok();
    // Of who sees no version that is open to all an instruction is asked.
    let newest = json!(seen.as_i64().unwrap() + 1);
    for seen in [json!(null), newest] {
        let parts = json!({"surveyVersion": seen});
        let answer = try_start(app, &ada, survey, parts).await;
        answer.refused(422, "instruction_required");
    }
}

async fn who_opens_a_button_is_counted_once(app: &mut TestApp) {
    let survey = button(app, json!({})).await;
    for (name, answers) in [("ada", true), ("bob", false)] {
        let session = app.session(name).await;
        let id = text(&one(app, &session).await, "instructionId");
        app.acknowledge(&session, &id, "displayed").await;
        if answers {
            let parts = json!({"instructionId": id});
            let started = try_start(app, &session, survey, parts).await.data(201);
            let attempt = text(&started, "attemptId");
            answer(app, &session, &attempt, json!([["q1", 9]]))
                .await
                .ok();
            end(app, &session, &attempt, "complete").await.ok();
            app.acknowledge(&session, &id, "completed").await;
        }
    }
    one(app, &app.session("eve").await).await;
    let read = async |rest: &str| {
        let path = app.path(&format!("/surveys/{survey}/{rest}"));
        app.get(&path, &app.viewer()).await.ok()
    };
    let counts = async || {
        let data = read("analytics").await;
        let (totals, shown) = (&data["totals"], &data["funnel"][0]);
        json!([totals["shown"], totals["started"], shown["droppedOff"]])
    };
    assert_eq!(counts().await, json!([2, 1, 1]));
    let page = read("recipients").await;
    let items = page["items"].as_array().unwrap().iter();
    let mut states: Vec<String> = items
        .map(|item| format!("{} {}", text(item, "anonymousId"), text(item, "state")))
        .collect();
    states.sort();
    assert_eq!(states, ["ada completed", "bob displayed", "eve issued"]);
    // As of those who are being deleted nothing is counted, nor taken away twice.
    let mut tx = app.services().db.write().await.unwrap();
    tx.sql(
        "UPDATE subjects SET suppressed = $1 WHERE id IN (SELECT subject_id FROM survey_attempts)",
    )
    .bind(true)
    .execute()
    .await
    .unwrap();
    tx.commit().await.unwrap();
    assert_eq!(counts().await, json!([1, 0, 1]));
}

async fn who_has_opened_a_survey_has_seen_it(app: &mut TestApp) {
    let opened = button(app, json!({})).await;
    let answered = button(app, json!({})).await;
    let linked = link_survey(app, asking("q1")).await;
    let ada = app.session("ada").await;
    let offered = app.offered(&ada).await;
    let offered = offered.as_array().unwrap().iter();
    let ids: Vec<String> = offered
        .filter(|item| item["campaignId"] == json!(opened))
        .map(|item| text(item, "instructionId"))
        .collect();
    let seen = async |survey: Uuid| {
        let did = |interaction: &str| json!({"kind": "survey_interaction", "surveyIds": [survey], "interaction": interaction});
        let mut counts = Vec::new();
        for interaction in ["shown", "displayed"] {
            let body = json!({"audience": {"include": did(interaction)}});
            let path = app.path("/segments/preview");
            let found = app.post(&path, &app.viewer(), &body).await.ok();
            counts.push(found["count"].as_i64().unwrap());
        }
        counts
    };
    for survey in [opened, answered, linked] {
        assert_eq!(seen(survey).await, [0, 0]);
    }
    app.acknowledge(&ada, &ids[0], "displayed").await;
    start(app, &ada, answered).await;
    start(app, &ada, linked).await;
    for survey in [opened, answered, linked] {
        assert_eq!(seen(survey).await, [1, 1]);
    }
}

async fn a_button_that_is_there_once_goes_when_the_survey_is_complete(app: &mut TestApp) {
    let settings = json!({"presentation": "feedback_button", "once": true});
    let survey = button(app, json!({"settings": settings})).await;
    for (name, by_attempt) in [("ada", true), ("bob", false)] {
        let session = app.session(name).await;
        let id = text(&one(app, &session).await, "instructionId");
        app.acknowledge(&session, &id, "displayed").await;
        one(app, &session).await;
        if by_attempt {
            let data = try_start(app, &session, survey, json!({"instructionId": id})).await;
            let attempt = text(&data.data(201), "attemptId");
            one(app, &session).await;
            answer(app, &session, &attempt, json!([["q1", 9]]))
                .await
                .ok();
            end(app, &session, &attempt, "complete").await.ok();
        } else {
            app.acknowledge(&session, &id, "completed").await;
        }
        assert_eq!(app.offered(&session).await, json!([]));
    }
}

async fn a_cursor_sees_a_button_when_it_comes(app: &mut TestApp) {
    let filter = json!({"all": [{"property": "plan", "type": "string", "operator": "equals", "value": "pro"}]});
    let audience = json!({"include": {"kind": "user_property", "filter": filter}});
    let survey = button(app, json!({"audience": audience})).await;
    let ada = app.session("ada").await;
    let next = async |cursor: Option<&str>| {
        let query = cursor.map_or_else(String::new, |cursor| format!("?cursor={cursor}"));
        let data = app.poll(&ada, &query).await.ok();
        (
            instruction_ids(&data["items"]).len(),
            text(&data, "nextCursor"),
        )
    };
    let (none, cursor) = next(None).await;
    assert_eq!(none, 0);
    save_property(app, &ada, "plan", json!("pro")).await;
    let (came, cursor) = next(Some(&cursor)).await;
    assert_eq!(came, 1);
    let (none, cursor) = next(Some(&cursor)).await;
    assert_eq!(none, 0);
    // It goes and comes back.
    save_property(app, &ada, "plan", json!("free")).await;
    let (none, cursor) = next(Some(&cursor)).await;
    assert_eq!(none, 0);
    save_property(app, &ada, "plan", json!("pro")).await;
    let (back, cursor) = next(Some(&cursor)).await;
    assert_eq!(back, 1);
    // It opens another version.
    set(app, survey, json!({"name": "Other"})).await;
    let (new, _) = next(Some(&cursor)).await;
    assert_eq!(new, 1);
}

async fn a_cursor_sees_a_button_that_is_on_offer_for_longer(app: &mut TestApp) {
    let survey = button(app, json!({})).await;
    let ada = app.session("ada").await;
    let first = app.poll(&ada, "").await.ok();
    let mut known = first["items"][0].clone();
    let id = text(&known, "instructionId");
    app.acknowledge(&ada, &id, "displayed").await;
    let mut cursor = text(&first, "nextCursor");
    let mut heard = Vec::new();
    // Neither a cursor nor a session lasts longer than a day.
    for hours in (16..=192).step_by(16) {
        app.advance(16 * 3_600);
        let ada = app.session("ada").await;
        let polled = app.poll(&ada, &format!("?cursor={cursor}")).await.ok();
        cursor = text(&polled, "nextCursor");
        for item in polled["items"].as_array().unwrap() {
            assert_eq!(text(item, "instructionId"), id);
            assert!(text(item, "expiresAt") > text(&known, "expiresAt"));
            known = item.clone();
            heard.push(hours);
        }
    }
    assert_eq!(heard, [96, 192]);
    // It is still the one that was shown.
    let subject = &ada.subject_id;
    let path = app.path(&format!("/instructions?subjectId={subject}"));
    let listed = app.get(&path, &app.viewer()).await.ok();
    assert_eq!(instruction_ids(&listed["items"]), [id]);
    assert_eq!(listed["items"][0]["status"], "displayed");
    let path = app.path(&format!("/surveys/{survey}/analytics"));
    let results = app.get(&path, &app.viewer()).await.ok();
    assert_eq!(results["totals"]["shown"], 1);
}

/// The answer's cursor has the button behind it, so it must be in that answer.
async fn a_button_that_comes_while_a_poll_waits_is_in_its_answer(app: &mut TestApp) {
    let ada = app.session("ada").await;
    let first = app.poll(&ada, "").await.ok();
    let waiting = format!("?wait=2&cursor={}", text(&first, "nextCursor"));
    let (polled, survey) = tokio::join!(app.poll(&ada, &waiting), async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        button(app, json!({})).await
    });
    let polled = polled.ok();
    assert_eq!(polled["items"][0]["campaignId"], json!(survey), "{polled}");
}

/// A button for whoever is on the plan `pro`.
async fn button_of_pro(app: &TestApp) -> Uuid {
    let filter =
        json!({"property": "plan", "type": "string", "operator": "equals", "value": "pro"});
    let audience = json!({"include": {"kind": "user_property", "filter": filter}});
    button(app, json!({"audience": audience})).await
}

/// Puts somebody on the plan `pro`, as their page does it.
async fn buy_pro(app: &TestApp, session: &Session) {
    let id = &session.anonymous_id;
    let body = json!({"anonymousId": id, "mutationId": app.id(), "set": {"plan": "pro"}});
    app.post("/v1/sdk/user-properties", &session.credential(), &body)
        .await
        .ok();
}

async fn a_waiting_poll_sees_when_an_audience_holds(app: &mut TestApp) {
    let survey = button_of_pro(app).await;
    let ada = app.session("ada").await;
    let begun = Instant::now();
    let (polled, ()) = tokio::join!(app.poll(&ada, "?wait=25"), async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        buy_pro(app, &ada).await;
    });
    let polled = polled.ok();
    assert_eq!(polled["items"][0]["campaignId"], json!(survey), "{polled}");
    assert!(
        begun.elapsed() < Duration::from_secs(20),
        "it waited to its end"
    );
}

async fn a_waiting_poll_sees_a_wider_audience(app: &mut TestApp) {
    let survey = button_of_pro(app).await;
    let ada = app.session("ada").await;
    let begun = Instant::now();
    let (polled, ()) = tokio::join!(app.poll(&ada, "?wait=25"), async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        set(app, survey, json!({"audience": null})).await;
    });
    let polled = polled.ok();
    assert_eq!(polled["items"][0]["campaignId"], json!(survey), "{polled}");
    assert!(
        begun.elapsed() < Duration::from_secs(20),
        "it waited to its end"
    );
}

async fn a_waiting_poll_sees_what_the_end_of_a_survey_brings(app: &mut TestApp) {
    let asked = link_survey(app, json!({"questions": [question("q1", true)]})).await;
    let completed =
        json!({"kind": "survey_interaction", "surveyIds": [asked], "interaction": "completed"});
    let survey = button(app, json!({"audience": {"include": completed}})).await;
    let ada = app.session("ada").await;
    let attempt = start(app, &ada, asked).await;
    answer(app, &ada, &attempt, json!([["q1", 9]])).await.ok();
    let begun = Instant::now();
    let (polled, ()) = tokio::join!(app.poll(&ada, "?wait=25"), async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        end(app, &ada, &attempt, "complete").await.ok();
    });
    let polled = polled.ok();
    assert_eq!(polled["items"][0]["campaignId"], json!(survey), "{polled}");
    assert!(
        begun.elapsed() < Duration::from_secs(20),
        "it waited to its end"
    );
}

/// One look when the poll is opened and one when its time is over: what others do is nothing to it.
async fn a_waiting_poll_looks_for_no_buttons_while_nothing_changes(app: &mut TestApp) {
    button_of_pro(app).await;
    let (ada, bob) = (app.session("ada").await, app.session("bob").await);
    let looks = || app.services().polls.looks();
    let before = looks();
    let (polled, ()) = tokio::join!(app.poll(&ada, "?wait=12"), async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        buy_pro(app, &bob).await;
    });
    assert_eq!(polled.ok()["items"], json!([]));
    assert_eq!(looks() - before, 2);
}

async fn two_buttons_of_one_person_become_one(app: &mut TestApp) {
    button(app, json!({})).await;
    let backend = Backend::new(app).await;
    let phone = app.session("phone").await;
    one(app, &phone).await;
    let web = backend.identify(app, "web", "e-1").await;
    one(app, &web).await;
    let phone = backend.identify(app, "phone", "e-1").await;
    one(app, &phone).await;
    one(app, &phone).await;
}

async fn nothing_else_fires_a_button(app: &mut TestApp) {
    let trigger = json!({"kind": "event", "eventName": "purchase"});
    button(app, json!({"mode": "triggered", "trigger": trigger})).await;
    let ada = app.session("ada").await;
    assert_eq!(app.fires(&ada, "purchase", &json!({})).await, 0);
    assert_eq!(one(app, &ada).await["kind"], "feedback");
    // It counts towards no cap of surveys.
    let cap = json!({"frequency": {"surveys": {"max": 1, "windowDays": 1}}});
    app.patch(&app.path("/settings"), &app.admin(), &cap)
        .await
        .ok();
    app.survey(&json!({"kind": "event", "eventName": "visit"}))
        .await;
    assert_eq!(app.fires(&ada, "visit", &json!({})).await, 1);
}
