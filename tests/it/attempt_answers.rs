//! Answers of an attempt (contract 7): what is refused, what counts, ways back, ends, versions.

use nudge_db::Timestamp;
use nudge_platform::clock;
use serde_json::json;
use tests::session::text;
use tests::{TestApp, on_both_backends};
use uuid::Uuid;

use crate::attempts::{
    answer, detail, end, fire, forked, instruction, kept, link_survey, next, question, start,
    status, try_start,
};

on_both_backends!(
    answers_that_are_refused_change_nothing,
    the_last_word_counts_until_the_attempt_is_complete,
    going_back_changes_the_way_and_drops_nothing,
    without_back_navigation_nobody_goes_back,
    an_attempt_is_completed_once_what_is_required_is_answered,
    a_dismissed_attempt_goes_on_with_a_late_answer,
    silence_abandons_an_attempt_until_the_next_answer,
    the_instruction_follows_the_attempt,
    an_attempt_stays_on_its_version,
    a_coordinated_attempt_begins_with_its_first_answer,
    attempts_of_others_are_not_found,
    odd_requests_are_refused,
    nobody_answers_before_being_asked,
);

async fn answers_that_are_refused_change_nothing(app: &mut TestApp) {
    let survey = link_survey(app, forked(true)).await;
    let ada = app.session("ada").await;
    let attempt = start(app, &ada, survey).await;
    for (answers, pointers) in [
        (json!([["q1", 11]]), vec!["/answers/0/value"]),
        (json!([["q1", null]]), vec!["/answers/0/value"]),
        (
            json!([["q1", 9], ["zzz", 1]]),
            vec!["/answers/1/questionId"],
        ),
        (json!([["high", 1]]), vec!["/answers/0/questionId"]),
        (
            json!([["q1", 9], ["low", 1]]),
            vec!["/answers/1/questionId"],
        ),
        (
            json!([["q1", "x"], ["low", "y"]]),
            vec!["/answers/0/value", "/answers/1/value"],
        ),
    ] {
        let refused = answer(app, &ada, &attempt, answers.clone()).await;
        refused.refused(422, "invalid_answer");
        assert_eq!(refused.pointers(), pointers, "{answers}");
        assert_eq!(kept(app, survey, &attempt).await, json!({}));
    }
    // In whichever order: what counts is that the answers lead there.
    let both = next(app, &ada, &attempt, json!([["high", 1], ["q1", 9]])).await;
    assert_eq!(both, json!({"endScreenId": "thanks"}));
}

async fn the_last_word_counts_until_the_attempt_is_complete(app: &mut TestApp) {
    let survey = link_survey(app, forked(false)).await;
    let ada = app.session("ada").await;
    let attempt = start(app, &ada, survey).await;
    for score in [1, 9, 2, 8] {
        answer(app, &ada, &attempt, json!([["q1", score]]))
            .await
            .ok();
        assert_eq!(kept(app, survey, &attempt).await, json!({"q1": score}));
    }
    end(app, &ada, &attempt, "complete").await.ok();
    answer(app, &ada, &attempt, json!([["q1", 3]]))
        .await
        .refused(409, "attempt_completed");
    // What was lost on its way back is sent again.
    let again = next(app, &ada, &attempt, json!([["q1", 8]])).await;
    assert_eq!(again, json!({"questionId": "high"}));
    assert_eq!(kept(app, survey, &attempt).await, json!({"q1": 8}));
}

async fn going_back_changes_the_way_and_drops_nothing(app: &mut TestApp) {
    let survey = link_survey(app, forked(true)).await;
    let ada = app.session("ada").await;
    let attempt = start(app, &ada, survey).await;
    answer(app, &ada, &attempt, json!([["q1", 3], ["low", 4]]))
        .await
        .ok();
    let high = next(app, &ada, &attempt, json!([["q1", 9]])).await;
    assert_eq!(high, json!({"questionId": "high"}));
    assert_eq!(kept(app, survey, &attempt).await, json!({"q1": 9}));
    let low = next(app, &ada, &attempt, json!([["q1", 2]])).await;
    assert_eq!(
        low,
        json!({"endScreenId": "sorry"}),
        "it was answered before"
    );
    assert_eq!(
        kept(app, survey, &attempt).await,
        json!({"q1": 2, "low": 4})
    );
    answer(app, &ada, &attempt, json!([["q1", 7], ["high", 5]]))
        .await
        .ok();
    end(app, &ada, &attempt, "complete").await.ok();
    assert_eq!(
        kept(app, survey, &attempt).await,
        json!({"q1": 7, "high": 5})
    );
    let path = app.path(&format!("/surveys/{survey}/responses"));
    let responses = app.get(&path, &app.viewer()).await.ok();
    assert_eq!(responses["total"], 2, "{responses}");
}

async fn without_back_navigation_nobody_goes_back(app: &mut TestApp) {
    let survey = link_survey(app, forked(false)).await;
    let ada = app.session("ada").await;
    let attempt = start(app, &ada, survey).await;
    answer(app, &ada, &attempt, json!([["q1", 3]])).await.ok();
    answer(app, &ada, &attempt, json!([["low", 4]])).await.ok();
    let refused = answer(app, &ada, &attempt, json!([["q1", 9]])).await;
    let problem = refused.refused(422, "invalid_answer");
    assert_eq!(problem["errors"][0]["code"], "no_back_navigation");
    // What lies ahead is no way back, several questions of it neither.
    let ahead = json!({"questions": [question("a", false), question("b", true), question("c", false), question("d", true)]});
    let ahead = link_survey(app, ahead).await;
    let other = start(app, &ada, ahead).await;
    answer(app, &ada, &other, json!([["a", 1]])).await.ok();
    answer(app, &ada, &other, json!([["b", 1], ["c", 1]]))
        .await
        .ok();
    answer(app, &ada, &other, json!([["d", 1]])).await.ok();
    end(app, &ada, &other, "complete").await.ok();
    // Sent again as it was, which leads nowhere back, and the answer given last.
    answer(app, &ada, &attempt, json!([["q1", 3]])).await.ok();
    let refused = answer(app, &ada, &attempt, json!([["q1", 9]])).await;
    refused.refused(422, "invalid_answer");
    answer(app, &ada, &attempt, json!([["q1", 3], ["low", 5]]))
        .await
        .ok();
    assert_eq!(
        kept(app, survey, &attempt).await,
        json!({"q1": 3, "low": 5})
    );
}

async fn an_attempt_is_completed_once_what_is_required_is_answered(app: &mut TestApp) {
    let survey = link_survey(app, forked(false)).await;
    let ada = app.session("ada").await;
    let attempt = start(app, &ada, survey).await;
    let problem = end(app, &ada, &attempt, "complete")
        .await
        .refused(422, "invalid_answer");
    assert!(problem.to_string().contains("q1"), "{problem}");
    assert_eq!(detail(app, survey, &attempt).await["state"], "started");
    // What is not required may be left open, or passed over.
    answer(app, &ada, &attempt, json!([["q1", 9]])).await.ok();
    let over = next(app, &ada, &attempt, json!([["high", null]])).await;
    assert_eq!(over, json!({"endScreenId": "thanks"}));
    end(app, &ada, &attempt, "complete").await.ok();
    assert_eq!(kept(app, survey, &attempt).await, json!({"q1": 9}));
}

async fn a_dismissed_attempt_goes_on_with_a_late_answer(app: &mut TestApp) {
    let survey = link_survey(app, forked(false)).await;
    let ada = app.session("ada").await;
    let attempt = start(app, &ada, survey).await;
    let dismissed = end(app, &ada, &attempt, "dismiss").await.ok();
    assert_eq!(dismissed["state"], "abandoned");
    assert_eq!(end(app, &ada, &attempt, "dismiss").await.ok(), dismissed);
    answer(app, &ada, &attempt, json!([["q1", 9]])).await.ok();
    assert_eq!(detail(app, survey, &attempt).await["state"], "started");
    end(app, &ada, &attempt, "dismiss").await.ok();
    end(app, &ada, &attempt, "complete").await.ok();
    assert_eq!(detail(app, survey, &attempt).await["state"], "completed");
}

async fn silence_abandons_an_attempt_until_the_next_answer(app: &mut TestApp) {
    let survey = link_survey(app, forked(false)).await;
    let ada = app.session("ada").await;
    let attempt = start(app, &ada, survey).await;
    let totals = async || {
        let path = app.path(&format!("/surveys/{survey}/analytics"));
        app.get(&path, &app.viewer()).await.ok()["totals"].take()
    };
    app.advance(29 * 60);
    assert_eq!(detail(app, survey, &attempt).await["state"], "started");
    assert_eq!(totals().await["abandoned"], 0);
    app.advance(61);
    assert_eq!(detail(app, survey, &attempt).await["state"], "abandoned");
    assert_eq!(totals().await["abandoned"], 1);
    answer(app, &ada, &attempt, json!([["q1", 9]])).await.ok();
    assert_eq!(detail(app, survey, &attempt).await["state"], "started");
    assert_eq!(totals().await["abandoned"], 0);
    end(app, &ada, &attempt, "complete").await.ok();
    app.advance(3_600);
    assert_eq!(detail(app, survey, &attempt).await["state"], "completed");
    let totals = totals().await;
    assert_eq!(
        (&totals["abandoned"], &totals["completionRate"]),
        (&json!(0), &json!(1.0))
    );
}

async fn the_instruction_follows_the_attempt(app: &mut TestApp) {
    let ada = app.session("ada").await;
    let (survey, id) = instruction(app, &ada, json!({})).await;
    let started = try_start(app, &ada, survey, json!({"instructionId": id}))
        .await
        .data(201);
    let attempt = text(&started, "attemptId");
    assert_eq!(status(app, &id).await, "displayed");
    assert!(app.offered(&ada).await.as_array().unwrap().is_empty());
    end(app, &ada, &attempt, "dismiss").await.ok();
    assert_eq!(status(app, &id).await, "dismissed");
    answer(app, &ada, &attempt, json!([["q1", 9]])).await.ok();
    end(app, &ada, &attempt, "complete").await.ok();
    assert_eq!(status(app, &id).await, "completed");

    // The SDK may say it by itself, too.
    let second = fire(app, &ada).await;
    try_start(app, &ada, survey, json!({"instructionId": second}))
        .await
        .data(201);
    app.acknowledge(&ada, &second, "dismissed").await;
    assert_eq!(status(app, &second).await, "dismissed");
}

async fn an_attempt_stays_on_its_version(app: &mut TestApp) {
    let ada = app.session("ada").await;
    let (survey, id) = instruction(app, &ada, json!({})).await;
    let open = link_survey(app, forked(false)).await;
    let before = start(app, &ada, open).await;
    let flow = json!({"questions": [question("new", true)], "branches": null, "endScreens": null});
    for survey in [survey, open] {
        let path = app.path(&format!("/surveys/{survey}"));
        app.patch(&path, &app.editor(), &json!({"flow": flow}))
            .await
            .ok();
    }

    let low = next(app, &ada, &before, json!([["q1", 3]])).await;
    assert_eq!(low, json!({"questionId": "low"}));
    // What was shown is answered, whatever the survey says by now.
    let started = try_start(app, &ada, survey, json!({"instructionId": id}))
        .await
        .data(201);
    assert_eq!(
        (&started["surveyVersion"], &started["next"]),
        (&json!(1), &json!({"questionId": "q1"}))
    );
    let after = try_start(app, &ada, open, json!({})).await.data(201);
    assert_eq!(
        (&after["surveyVersion"], &after["next"]),
        (&json!(2), &json!({"questionId": "new"}))
    );
    let path = app.path(&format!("/surveys/{open}/analytics"));
    let results = app.get(&path, &app.viewer()).await.ok();
    let asked: Vec<&str> = results["perQuestion"]
        .as_array()
        .unwrap()
        .iter()
        .map(|question| question["questionId"].as_str().unwrap())
        .collect();
    assert_eq!(
        asked,
        ["new", "q1", "low"],
        "questions that are gone keep their answers"
    );
}

async fn a_coordinated_attempt_begins_with_its_first_answer(app: &mut TestApp) {
    let (ada, bob) = (app.session("ada").await, app.session("bob").await);
    let (survey, id) = instruction(app, &ada, json!({"settings": {"coordinated": true}})).await;
    let offered = app.offered(&ada).await;
    let payload = &offered[0]["payload"];
    let attempt = text(&payload["attempt"], "attemptId");
    assert_eq!(payload["attempt"]["expiresAt"], offered[0]["expiresAt"]);
    let of_other = answer(app, &bob, &attempt, json!([["q1", 9]])).await;
    of_other.refused(404, "not_found");
    let high = next(app, &ada, &attempt, json!([["q1", 9]])).await;
    assert_eq!(high, json!({"questionId": "high"}));
    assert_eq!(status(app, &id).await, "displayed");
    let started = try_start(app, &ada, survey, json!({"instructionId": id}))
        .await
        .data(201);
    assert_eq!(started["attemptId"], attempt);

    // Closed at once.
    let second = fire(app, &ada).await;
    let closed =
        nudge_records::instructions::counterpart::attempt_id_of(Uuid::parse_str(&second).unwrap())
            .to_string();
    end(app, &ada, &closed, "dismiss").await.ok();
    assert_eq!(detail(app, survey, &closed).await["state"], "abandoned");
    // Nobody hands out attempts of surveys that are not coordinated.
    let path = app.path(&format!("/surveys/{survey}"));
    app.patch(
        &path,
        &app.editor(),
        &json!({"settings": {"coordinated": false}}),
    )
    .await
    .ok();
    let third = fire(app, &ada).await;
    let offered = app.offered(&ada).await;
    assert!(offered[0]["payload"].get("attempt").is_none());
    let guessed =
        nudge_records::instructions::counterpart::attempt_id_of(Uuid::parse_str(&third).unwrap())
            .to_string();
    answer(app, &ada, &guessed, json!([["q1", 9]]))
        .await
        .refused(404, "not_found");
    let body = json!({"name": "x", "settings": {"coordinated": "yes"}});
    let refused = app.post(&app.path("/surveys"), &app.editor(), &body).await;
    refused.refused(422, "validation_failed");
    assert_eq!(refused.pointers(), ["/settings/coordinated"]);
}

async fn attempts_of_others_are_not_found(app: &mut TestApp) {
    let survey = link_survey(app, forked(false)).await;
    let (ada, bob) = (app.session("ada").await, app.session("bob").await);
    let attempt = start(app, &ada, survey).await;
    answer(app, &bob, &attempt, json!([["q1", 9]]))
        .await
        .refused(404, "not_found");
    for how in ["complete", "dismiss"] {
        end(app, &bob, &attempt, how)
            .await
            .refused(404, "not_found");
        // Another's name under one's own token.
        let path = format!("/v1/sdk/attempts/{attempt}/{how}");
        app.post(&path, &ada.credential(), &json!({"anonymousId": "bob"}))
            .await
            .refused(403, "subject_mismatch");
        app.post(&path, &ada.credential(), &json!({})).await;
    }
    let path = format!("/v1/sdk/surveys/{survey}/attempts");
    app.post(&path, &ada.credential(), &json!({"anonymousId": "bob"}))
        .await
        .refused(403, "subject_mismatch");
    let path = format!("/v1/sdk/attempts/{attempt}/answers");
    let body = json!({"anonymousId": "bob", "answers": [{"questionId": "q1", "value": 9}]});
    app.post(&path, &ada.credential(), &body)
        .await
        .refused(403, "subject_mismatch");
    // Under another survey it is not there.
    let other = link_survey(app, forked(false)).await;
    let path = app.path(&format!("/surveys/{other}/attempts/{attempt}"));
    app.get(&path, &app.viewer())
        .await
        .refused(404, "not_found");
}

async fn odd_requests_are_refused(app: &mut TestApp) {
    let survey = link_survey(app, forked(false)).await;
    let ada = app.session("ada").await;
    let attempt = start(app, &ada, survey).await;
    let path = format!("/v1/sdk/attempts/{attempt}/answers");
    let one = json!({"questionId": "q1", "value": 9});
    for (answers, pointer) in [
        (json!([]), "/answers"),
        (json!(vec![one.clone(); 201]), "/answers"),
        (json!([{"value": 9}]), "/answers/0/questionId"),
        (
            json!([{"questionId": "q1", "value": 9, "answeredAt": "now"}]),
            "/answers/0/answeredAt",
        ),
    ] {
        let body = json!({"anonymousId": "ada", "answers": answers});
        let refused = app.post(&path, &ada.credential(), &body).await;
        refused.refused(422, "validation_failed");
        assert_eq!(refused.pointers(), [pointer]);
    }
    let refused = try_start(app, &ada, survey, json!({"clientAttemptId": "x"})).await;
    refused.refused(422, "validation_failed");
    assert_eq!(refused.pointers(), ["/clientAttemptId"]);
    // Keys of later versions are passed over, and no answer is from the future.
    let mut later = one;
    later["colour"] = json!("red");
    later["answeredAt"] = json!(app.time(3_600));
    let body = json!({"anonymousId": "ada", "answers": [later], "more": true});
    app.post(&path, &ada.credential(), &body).await.ok();
    let shown = detail(app, survey, &attempt).await;
    assert!(text(&shown["answers"][0], "answeredAt") <= app.time(1));
    for id in ["x", "00000000-0000-0000-0000-000000000000"] {
        end(app, &ada, id, "complete")
            .await
            .refused(404, "not_found");
    }
}

async fn nobody_answers_before_being_asked(app: &mut TestApp) {
    let ada = app.session("ada").await;
    let (survey, id) = instruction(app, &ada, json!({})).await;
    let asked: Vec<(i64,)> = app.rows("SELECT created_at FROM instructions").await;
    let asked = clock::to_text(Timestamp(asked[0].0));
    // Offline until the attempt starts.
    app.advance(60);
    let offline = app.time(-30);
    let follow = json!({"instructionId": id});
    let started = try_start(app, &ada, survey, follow).await.data(201);
    let attempt = text(&started, "attemptId");
    let body = json!({"anonymousId": "ada", "answers": [
        {"questionId": "q1", "value": 9, "answeredAt": "2020-01-01T00:00:00Z"},
        {"questionId": "high", "value": 8, "answeredAt": offline},
    ]});
    let path = format!("/v1/sdk/attempts/{attempt}/answers");
    app.post(&path, &ada.credential(), &body).await.ok();
    let shown = detail(app, survey, &attempt).await;
    let answers = shown["answers"].as_array().unwrap().iter();
    let times: Vec<String> = answers.map(|one| text(one, "answeredAt")).collect();
    assert_eq!(times, [asked, offline]);
}
