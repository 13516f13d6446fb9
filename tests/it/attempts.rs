//! Answering surveys (contract 7): starts, answers, what is next, ends.

use serde_json::{Value, json};
use tests::session::{instruction_ids, text};
use tests::{Answer, Session, TestApp, on_both_backends};
use uuid::Uuid;

use crate::concurrency::join;

on_both_backends!(
    an_attempt_goes_from_question_to_question_to_its_end,
    a_complete_attempt_is_at_its_end_whatever_it_left_out,
    a_start_that_is_repeated_finds_the_same_attempt,
    starts_that_race_make_one_attempt,
    an_instruction_is_the_subjects_and_of_that_survey,
    a_triggered_survey_takes_an_instruction,
    a_survey_that_does_not_run_is_not_started,
    a_survey_is_started_while_its_schedule_lasts,
    a_survey_behind_a_link_waits_for_no_event,
    without_consent_nothing_is_started,
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

pub(crate) async fn next(app: &TestApp, session: &Session, attempt: &str, answers: Value) -> Value {
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
pub(crate) async fn kept(app: &TestApp, survey: Uuid, attempt: &str) -> Value {
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

async fn a_complete_attempt_is_at_its_end_whatever_it_left_out(app: &mut TestApp) {
    let survey = json!({"questions": [question("q1", true), question("q2", false)],
        "endScreens": [{"id": "thanks", "title": "Thanks"}]});
    let survey = link_survey(app, survey).await;
    let ada = app.session("ada").await;
    let key = json!({"clientAttemptId": app.id()});
    let started = try_start(app, &ada, survey, key.clone()).await.data(201);
    let attempt = text(&started, "attemptId");
    let second = next(app, &ada, &attempt, json!([["q1", 3]])).await;
    assert_eq!(second, json!({"questionId": "q2"}));
    let over = json!({"endScreenId": "thanks"});
    let done = end(app, &ada, &attempt, "complete").await.ok();
    assert_eq!(done["next"], over);

    for how in ["complete", "dismiss"] {
        assert_eq!(end(app, &ada, &attempt, how).await.ok(), done, "{how}");
    }
    // An answer that is sent again is answered as it was.
    assert_eq!(next(app, &ada, &attempt, json!([["q1", 3]])).await, second);
    let again = try_start(app, &ada, survey, key).await.data(201);
    assert_eq!(
        (&again["state"], &again["next"]),
        (&json!("completed"), &over)
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
pub(crate) async fn instruction(app: &TestApp, session: &Session, parts: Value) -> (Uuid, String) {
    let mut body = json!({"flow": forked(true)});
    body.as_object_mut()
        .unwrap()
        .extend(parts.as_object().unwrap().clone());
    let survey = app.survey_with(&body).await;
    (survey, fire(app, session).await)
}

pub(crate) async fn fire(app: &TestApp, session: &Session) -> String {
    let event = app.event(session, "purchase", &json!({}));
    let data = app.ingest_and_ask(session, &[event]).await;
    instruction_ids(&data["instructions"]).remove(0)
}

pub(crate) async fn status(app: &TestApp, id: &str) -> String {
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
    // An instruction that is no survey's causes no attempt, whatever is made of its id.
    crate::in_app::message(
        app,
        json!({"trigger": {"kind": "event", "eventName": "seen"}}),
    )
    .await;
    let data = app
        .ingest_and_ask(&ada, &[app.event(&ada, "seen", &json!({}))])
        .await;
    let message: Uuid = text(&data["instructions"][0], "instructionId")
        .parse()
        .unwrap();
    let attempt = nudge_records::instructions::counterpart::attempt_id_of(message);
    for end in ["complete", "dismiss"] {
        let path = format!("/v1/sdk/attempts/{attempt}/{end}");
        let body = json!({"anonymousId": ada.anonymous_id});
        app.post(&path, &ada.credential(), &body)
            .await
            .refused(404, "not_found");
    }
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
                      + (SELECT count(*) FROM survey_counts) + (SELECT count(*) FROM campaign_versions)",
            )
            .await;
        left == [(0,)]
    })
    .await;
}

async fn a_survey_is_started_while_its_schedule_lasts(app: &mut TestApp) {
    let ada = app.session("ada").await;
    let schedule = json!({"startAt": app.time(100), "endAt": app.time(200)});
    let mut surveys = Vec::new();
    for mode in ["link_only", "on_demand"] {
        let body = json!({"mode": mode, "trigger": null, "schedule": schedule});
        surveys.push(app.survey_with(&body).await);
    }
    for (seconds, starts) in [(0, false), (101, true), (100, false)] {
        app.advance(seconds);
        for survey in &surveys {
            let started = try_start(app, &ada, *survey, json!({})).await;
            if starts {
                started.data(201);
            } else {
                started.refused(409, "survey_not_active");
            }
        }
    }
}

async fn a_survey_behind_a_link_waits_for_no_event(app: &mut TestApp) {
    let ada = app.session("ada").await;
    let survey = app.survey_with(&json!({"mode": "link_only"})).await;
    assert_eq!(app.fires(&ada, "purchase", &json!({})).await, 0);
    try_start(app, &ada, survey, json!({})).await.data(201);
    let path = app.path(&format!("/surveys/{survey}"));
    let waits = json!({"mode": "triggered"});
    let changed = app.patch(&path, &app.editor(), &waits).await.ok();
    assert_eq!(changed["trigger"]["eventName"], "purchase", "it is kept");
    assert_eq!(app.fires(&ada, "purchase", &json!({})).await, 1);
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
    let coordinated =
        nudge_records::instructions::counterpart::attempt_id_of(Uuid::parse_str(&id).unwrap());
    answer(app, &ada, &coordinated.to_string(), json!([["q1", 9]]))
        .await
        .refused(403, "consent_required");
    let body = json!({"anonymousId": "ada", "messaging": true});
    app.post(path, &ada.credential(), &body).await.ok();
    try_start(app, &ada, survey, json!({})).await.data(201);
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
