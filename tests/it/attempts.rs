//! Answering surveys (contract 7): starts, answers, what is next, ends.

use serde_json::{Value, json};
use tests::session::{instruction_ids, text};
use tests::{Answer, Session, TestApp, on_both_backends};
use uuid::Uuid;

use crate::concurrency::join;

on_both_backends!(
    an_attempt_goes_from_question_to_question_to_its_end,
    a_start_that_is_repeated_finds_the_same_attempt,
    starts_that_race_make_one_attempt,
    an_instruction_is_the_subjects_and_of_that_survey,
    a_triggered_survey_takes_an_instruction,
    a_survey_that_does_not_run_is_not_started,
    without_consent_nothing_is_started,
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
    attempts_survive_a_restart,
);

/// A survey that anybody can start, with a flow.
pub(crate) async fn link_survey(app: &TestApp, flow: Value) -> Uuid {
    let body = json!({"mode": "link_only", "trigger": null, "flow": flow});
    let mut survey = tests::session::survey_body();
    let survey = survey.as_object_mut().unwrap();
    survey.extend(body.as_object().unwrap().clone());
    survey.remove("trigger");
    let made = app
        .post(&app.path("/surveys"), &app.editor(), &json!(survey))
        .await
        .data(201);
    Uuid::parse_str(&text(&made, "id")).unwrap()
}

pub(crate) fn question(id: &str, required: bool) -> Value {
    json!({"id": id, "type": "nps", "title": "?", "required": required})
}

/// Three questions; whoever gives less than 7 to the first is asked the second, others the third.
pub(crate) fn forked(back_navigation: bool) -> Value {
    json!({
        "questions": [question("q1", true), question("low", false), question("high", false)],
        "branches": [
            {"id": "b1", "from": "q1", "when": {"questionId": "q1", "operator": "gte", "value": 7}, "to": {"questionId": "high"}},
            {"id": "b2", "from": "low", "when": null, "to": {"endScreenId": "sorry"}},
        ],
        "endScreens": [{"id": "thanks", "title": "Thanks"}, {"id": "sorry", "title": "Sorry"}],
        "backNavigation": back_navigation,
    })
}

pub(crate) async fn try_start(
    app: &TestApp,
    session: &Session,
    survey: Uuid,
    parts: Value,
) -> Answer {
    let mut body = json!({"anonymousId": session.anonymous_id});
    body.as_object_mut()
        .unwrap()
        .extend(parts.as_object().unwrap().clone());
    let path = format!("/v1/sdk/surveys/{survey}/attempts");
    app.post(&path, &session.credential(), &body).await
}

pub(crate) async fn start(app: &TestApp, session: &Session, survey: Uuid) -> String {
    let data = try_start(app, session, survey, json!({})).await.data(201);
    text(&data, "attemptId")
}

/// Sends answers: `[[questionId, value], …]`.
pub(crate) async fn answer(
    app: &TestApp,
    session: &Session,
    attempt: &str,
    answers: Value,
) -> Answer {
    let answers: Vec<Value> = answers
        .as_array()
        .unwrap()
        .iter()
        .map(|pair| json!({"questionId": pair[0], "value": pair[1]}))
        .collect();
    let body = json!({"anonymousId": session.anonymous_id, "answers": answers});
    let path = format!("/v1/sdk/attempts/{attempt}/answers");
    app.post(&path, &session.credential(), &body).await
}

async fn next(app: &TestApp, session: &Session, attempt: &str, answers: Value) -> Value {
    answer(app, session, attempt, answers).await.ok()["next"].take()
}

pub(crate) async fn end(app: &TestApp, session: &Session, attempt: &str, how: &str) -> Answer {
    let body = json!({"anonymousId": session.anonymous_id});
    let path = format!("/v1/sdk/attempts/{attempt}/{how}");
    app.post(&path, &session.credential(), &body).await
}

pub(crate) async fn detail(app: &TestApp, survey: Uuid, attempt: &str) -> Value {
    let path = app.path(&format!("/surveys/{survey}/attempts/{attempt}"));
    app.get(&path, &app.viewer()).await.ok()
}

/// The answers of an attempt that are in results, by question.
async fn kept(app: &TestApp, survey: Uuid, attempt: &str) -> Value {
    let detail = detail(app, survey, attempt).await;
    let answers = detail["answers"].as_array().unwrap().iter();
    answers
        .map(|answer| (text(answer, "questionId"), answer["answerValue"].clone()))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

async fn an_attempt_goes_from_question_to_question_to_its_end(app: &mut TestApp) {
    let survey = link_survey(app, forked(false)).await;
    let ada = app.session("ada").await;
    let started = try_start(app, &ada, survey, json!({})).await.data(201);
    assert_eq!(
        (
            &started["surveyId"],
            &started["surveyVersion"],
            &started["state"]
        ),
        (&json!(survey), &json!(1), &json!("started"))
    );
    assert_eq!(started["next"], json!({"questionId": "q1"}));
    assert_eq!(started["survey"]["flow"]["questions"][0]["id"], "q1");
    let attempt = text(&started, "attemptId");

    let low = next(app, &ada, &attempt, json!([["q1", 3]])).await;
    assert_eq!(low, json!({"questionId": "low"}));
    let over = next(app, &ada, &attempt, json!([["low", 1]])).await;
    assert_eq!(over, json!({"endScreenId": "sorry"}));
    let done = end(app, &ada, &attempt, "complete").await.ok();
    assert_eq!(
        (&done["state"], &done["next"]),
        (&json!("completed"), &json!({"endScreenId": "sorry"}))
    );
    let again = end(app, &ada, &attempt, "complete").await.ok();
    assert_eq!(again, done);
    assert_eq!(end(app, &ada, &attempt, "dismiss").await.ok(), done);

    let shown = detail(app, survey, &attempt).await;
    assert_eq!(shown["state"], "completed");
    assert_eq!(shown["subjectId"], ada.subject_id);
    assert_eq!(shown["lastQuestionId"], "low");
    assert_eq!(shown["completedAt"], done["completedAt"]);
    assert_eq!(
        kept(app, survey, &attempt).await,
        json!({"q1": 3, "low": 1})
    );
    let record = &shown["answers"][0];
    assert_eq!(record["attemptId"], attempt);
    assert_eq!(record["campaignId"], json!(survey));

    let plain = json!({"questions": [question("only", false)]});
    let plain = link_survey(app, plain).await;
    let attempt = start(app, &ada, plain).await;
    assert_eq!(
        next(app, &ada, &attempt, json!([["only", 3]])).await,
        json!(null)
    );
}

async fn a_start_that_is_repeated_finds_the_same_attempt(app: &mut TestApp) {
    let survey = link_survey(app, forked(false)).await;
    let other = link_survey(app, forked(false)).await;
    let (ada, bob) = (app.session("ada").await, app.session("bob").await);
    let key = json!({"clientAttemptId": app.id()});
    let first = try_start(app, &ada, survey, key.clone()).await.data(201);
    let again = try_start(app, &ada, survey, key.clone()).await.data(201);
    assert_eq!(first, again);
    // The key is the subject's own, for that survey.
    let of_bob = try_start(app, &bob, survey, key.clone()).await.data(201);
    let of_other = try_start(app, &ada, other, key.clone()).await.data(201);
    assert_ne!(of_bob["attemptId"], first["attemptId"]);
    assert_ne!(of_other["attemptId"], first["attemptId"]);
    // Where the person left off.
    answer(app, &ada, &text(&first, "attemptId"), json!([["q1", 9]]))
        .await
        .ok();
    let resumed = try_start(app, &ada, survey, key.clone()).await.data(201);
    assert_eq!(resumed["next"], json!({"questionId": "high"}));
    // Without a key each start is another attempt.
    assert_ne!(
        start(app, &ada, survey).await,
        start(app, &ada, survey).await
    );

    let path = app.path(&format!("/surveys/{survey}"));
    app.patch(&path, &app.editor(), &json!({"status": "paused"}))
        .await
        .ok();
    let paused = try_start(app, &ada, survey, key).await.data(201);
    assert_eq!(paused["attemptId"], first["attemptId"]);
}

async fn starts_that_race_make_one_attempt(app: &mut TestApp) {
    let survey = link_survey(app, forked(false)).await;
    let ada = app.session("ada").await;
    let key = json!({"clientAttemptId": app.id()});
    let starts = (0..16).map(|_| try_start(app, &ada, survey, key.clone()));
    let answers = join(starts).await;
    let mut ids: Vec<String> = answers
        .iter()
        .map(|answer| text(&answer.data(201), "attemptId"))
        .collect();
    ids.dedup();
    assert_eq!(ids.len(), 1);
    let answering = (0..11).map(|score| answer(app, &ada, &ids[0], json!([["q1", score]])));
    for answer in join(answering).await {
        answer.ok();
    }
    let ends = (0..8).map(|_| end(app, &ada, &ids[0], "complete"));
    for answer in join(ends).await {
        assert_eq!(answer.ok()["state"], "completed");
    }
    let path = app.path(&format!("/surveys/{survey}/analytics"));
    let results = app.get(&path, &app.viewer()).await.ok();
    assert_eq!(
        (
            &results["totals"]["started"],
            &results["totals"]["completed"]
        ),
        (&json!(1), &json!(1))
    );
    assert_eq!(results["perQuestion"][0]["responses"], 1);
}

/// Makes a survey that a purchase triggers, and an instruction of it.
async fn instruction(app: &TestApp, session: &Session, parts: Value) -> (Uuid, String) {
    let mut body = json!({"flow": forked(true)});
    body.as_object_mut()
        .unwrap()
        .extend(parts.as_object().unwrap().clone());
    let survey = app.survey_with(&body).await;
    (survey, fire(app, session).await)
}

async fn fire(app: &TestApp, session: &Session) -> String {
    let event = app.event(session, "purchase", &json!({}));
    let data = app.ingest_and_ask(session, &[event]).await;
    instruction_ids(&data["instructions"]).remove(0)
}

async fn status(app: &TestApp, id: &str) -> String {
    let stored: Vec<(Uuid, String)> = app.rows("SELECT id, status FROM instructions").await;
    let found = stored.iter().find(|(stored, _)| stored.to_string() == id);
    found.unwrap().1.clone()
}

async fn an_instruction_is_the_subjects_and_of_that_survey(app: &mut TestApp) {
    let (ada, bob) = (app.session("ada").await, app.session("bob").await);
    let (survey, id) = instruction(app, &ada, json!({})).await;
    let other = link_survey(app, forked(false)).await;
    let follow = json!({"instructionId": id});
    try_start(app, &bob, survey, follow.clone())
        .await
        .refused(404, "not_found");
    try_start(app, &ada, other, follow.clone())
        .await
        .refused(404, "not_found");
    try_start(app, &ada, survey, json!({"instructionId": app.id()}))
        .await
        .refused(404, "not_found");

    let first = try_start(app, &ada, survey, follow.clone()).await.data(201);
    assert!(first.get("survey").is_none(), "the instruction has it");
    let again = try_start(app, &ada, survey, follow.clone()).await.data(201);
    assert_eq!(first, again);
    let keyed = json!({"instructionId": id, "clientAttemptId": app.id()});
    let keyed = try_start(app, &ada, survey, keyed).await.data(201);
    assert_eq!(keyed["attemptId"], first["attemptId"]);

    let late = fire(app, &ada).await;
    app.advance(8 * 24 * 3600);
    let ada = app.session("ada").await;
    try_start(app, &ada, survey, json!({"instructionId": late}))
        .await
        .refused(404, "not_found");
    let again = try_start(app, &ada, survey, follow).await.data(201);
    assert_eq!(again["attemptId"], first["attemptId"]);
    let discarded = fire(app, &ada).await;
    app.acknowledge(&ada, &discarded, "discarded").await;
    try_start(app, &ada, survey, json!({"instructionId": discarded}))
        .await
        .refused(404, "not_found");
}

async fn a_triggered_survey_takes_an_instruction(app: &mut TestApp) {
    let ada = app.session("ada").await;
    let (triggered, _) = instruction(app, &ada, json!({})).await;
    try_start(app, &ada, triggered, json!({}))
        .await
        .refused(422, "instruction_required");
    let on_demand = app.survey_with(&json!({"mode": "on_demand"})).await;
    try_start(app, &ada, on_demand, json!({})).await.data(201);
}

async fn a_survey_that_does_not_run_is_not_started(app: &mut TestApp) {
    let ada = app.session("ada").await;
    let survey = link_survey(app, forked(false)).await;
    let running = start(app, &ada, survey).await;
    let path = app.path(&format!("/surveys/{survey}"));
    for status in ["draft", "paused", "completed", "archived"] {
        app.patch(&path, &app.editor(), &json!({"status": status}))
            .await
            .ok();
        try_start(app, &ada, survey, json!({}))
            .await
            .refused(409, "survey_not_active");
    }
    // Who is in the middle of it may go on.
    answer(app, &ada, &running, json!([["q1", 9]])).await.ok();
    end(app, &ada, &running, "complete").await.ok();
    app.delete(&path, &app.editor()).await.data(204);
    try_start(app, &ada, survey, json!({}))
        .await
        .refused(404, "not_found");
    for how in ["complete", "dismiss"] {
        end(app, &ada, &running, how)
            .await
            .refused(404, "not_found");
    }
    answer(app, &ada, &running, json!([["q1", 9]]))
        .await
        .refused(404, "not_found");
    app.until("nothing of the survey is left", async || {
        let left: Vec<(i64,)> = app
            .rows(
                "SELECT (SELECT count(*) FROM survey_attempts) + (SELECT count(*) FROM survey_answers)
                      + (SELECT count(*) FROM survey_counts) + (SELECT count(*) FROM survey_versions)",
            )
            .await;
        left == [(0,)]
    })
    .await;
}

async fn without_consent_nothing_is_started(app: &mut TestApp) {
    let ada = app.session("ada").await;
    let survey = link_survey(app, forked(false)).await;
    let (triggered, id) = instruction(app, &ada, json!({"settings": {"coordinated": true}})).await;
    let path = "/v1/sdk/consent";
    let body = json!({"anonymousId": "ada", "messaging": false});
    app.post(path, &ada.credential(), &body).await.ok();
    for (survey, parts) in [
        (survey, json!({})),
        (triggered, json!({"instructionId": id})),
    ] {
        try_start(app, &ada, survey, parts)
            .await
            .refused(403, "consent_required");
    }
    let coordinated = nudge::attempts::counterpart(Uuid::parse_str(&id).unwrap());
    answer(app, &ada, &coordinated.to_string(), json!([["q1", 9]]))
        .await
        .refused(403, "consent_required");
    let body = json!({"anonymousId": "ada", "messaging": true});
    app.post(path, &ada.credential(), &body).await.ok();
    try_start(app, &ada, survey, json!({})).await.data(201);
}

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
    // Sent again as it was, and the answer given last.
    answer(app, &ada, &attempt, json!([["q1", 3]])).await.ok();
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
    let closed = nudge::attempts::counterpart(Uuid::parse_str(&second).unwrap()).to_string();
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
    let guessed = nudge::attempts::counterpart(Uuid::parse_str(&third).unwrap()).to_string();
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

async fn attempts_survive_a_restart(app: &mut TestApp) {
    let survey = link_survey(app, forked(false)).await;
    let ada = app.session("ada").await;
    let key = json!({"clientAttemptId": app.id()});
    let started = try_start(app, &ada, survey, key.clone()).await.data(201);
    let attempt = text(&started, "attemptId");
    answer(app, &ada, &attempt, json!([["q1", 9]])).await.ok();
    app.restart().await;
    let resumed = try_start(app, &ada, survey, key).await.data(201);
    assert_eq!(resumed["attemptId"], attempt);
    assert_eq!(resumed["next"], json!({"questionId": "high"}));
    end(app, &ada, &attempt, "complete").await.ok();
    assert_eq!(kept(app, survey, &attempt).await, json!({"q1": 9}));
}
