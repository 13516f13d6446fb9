//! What became of surveys besides results (contract 7): responses, recipients, attempts; ranges, ends.

use serde_json::{Value, json};
use tests::session::{instruction_ids, text};
use tests::{TestApp, on_both_backends};
use uuid::Uuid;

use crate::attempts::{answer, end, forked, link_survey, start, try_start};
use crate::survey_results::results;

on_both_backends!(
    responses_are_paged_newest_first,
    the_number_of_answers_is_exact_up_to_ten_thousand,
    recipients_are_whoever_was_to_get_it,
    attempts_are_listed_newest_first,
    a_persons_instructions_and_attempts_are_listed_newest_first,
    a_range_is_of_days_or_instants,
    a_survey_ends_with_as_many_answers_as_it_was_to_get,
);

async fn responses(app: &TestApp, survey: Uuid, query: &str) -> Value {
    let path = app.path(&format!("/surveys/{survey}/responses{query}"));
    app.get(&path, &app.viewer()).await.ok()
}

async fn the_number_of_answers_is_exact_up_to_ten_thousand(app: &mut TestApp) {
    let survey = link_survey(app, forked(false)).await;
    app.people(9_999).await;
    let (app_id, now) = (app.access.app_id, app.clock.now());
    let mut tx = app.services().db.write().await.unwrap();
    let answered = tx.sql(
        "INSERT INTO survey_answers (attempt_id, question_id, app_id, survey_id, value, counted, started_at, answered_at)
         SELECT id, 'q1', app_id, $2, '7', TRUE, $3, $3 FROM subjects WHERE app_id = $1",
    );
    answered
        .bind(app_id)
        .bind(survey)
        .bind(now)
        .execute()
        .await
        .unwrap();
    tx.commit().await.unwrap();
    for (total, is_estimate, another) in [
        (9_999, None, "ada"),
        (10_000, None, "bob"),
        (10_000, Some(&json!(true)), "carl"),
    ] {
        let page = responses(app, survey, "?limit=1").await;
        assert_eq!(
            (&page["total"], page.get("totalIsEstimate")),
            (&json!(total), is_estimate)
        );
        let session = app.session(another).await;
        let attempt = start(app, &session, survey).await;
        answer(app, &session, &attempt, json!([["q1", 5]]))
            .await
            .ok();
    }
}

async fn responses_are_paged_newest_first(app: &mut TestApp) {
    let survey = link_survey(app, forked(false)).await;
    let ada = app.session("ada").await;
    let mut expected = Vec::new();
    for score in 0..7 {
        let attempt = start(app, &ada, survey).await;
        answer(app, &ada, &attempt, json!([["q1", score]]))
            .await
            .ok();
        expected.insert(0, json!(score));
        app.advance(60);
    }
    let mut found = Vec::new();
    for page in 1..=4 {
        let data = responses(app, survey, &format!("?page={page}&limit=2")).await;
        assert_eq!(
            (&data["page"], &data["limit"], &data["total"]),
            (&json!(page), &json!(2), &json!(7))
        );
        found.extend(
            data["items"]
                .as_array()
                .unwrap()
                .iter()
                .map(|item| item["answerValue"].clone()),
        );
    }
    assert_eq!(found, expected);
    assert_eq!(
        responses(app, survey, "?page=5&limit=2").await["items"],
        json!([])
    );
    let first = &responses(app, survey, "").await["items"][0];
    assert_eq!(
        (&first["campaignId"], &first["questionId"]),
        (&json!(survey), &json!("q1"))
    );

    let (from, to) = (app.time(-5 * 60 - 30), app.time(-3 * 60 - 30));
    let some = responses(app, survey, &format!("?from={from}&to={to}")).await;
    assert_eq!(some["total"], 2, "{some}");
    for (query, pointer) in [
        ("?page=0", "/page"),
        ("?limit=0", "/limit"),
        ("?limit=201", "/limit"),
        ("?from=yesterday", "/from"),
        ("?to=2026-02-30", "/to"),
    ] {
        let path = app.path(&format!("/surveys/{survey}/responses{query}"));
        let refused = app.get(&path, &app.viewer()).await;
        refused.refused(422, "validation_failed");
        assert_eq!(refused.pointers(), [pointer]);
    }
}

async fn recipients(app: &TestApp, survey: Uuid, query: &str) -> Vec<(String, String)> {
    let (mut all, mut rest) = (Vec::new(), query.to_owned());
    loop {
        let path = app.path(&format!("/surveys/{survey}/recipients{rest}"));
        let page = app.get(&path, &app.viewer()).await.ok();
        for item in page["items"].as_array().unwrap() {
            assert!(nudge_platform::clock::from_text(&text(item, "at")).is_some());
            assert!(!text(item, "subjectId").is_empty());
            all.push((text(item, "anonymousId"), text(item, "state")));
        }
        match page["nextCursor"].as_str() {
            Some(cursor) => rest = format!("{query}&cursor={cursor}"),
            None => return all,
        }
    }
}

async fn recipients_are_whoever_was_to_get_it(app: &mut TestApp) {
    let survey = app
        .survey_with(&json!({"mode": "on_demand", "flow": forked(false)}))
        .await;
    let mut expected = Vec::new();
    for name in [
        "expired",
        "issued",
        "displayed",
        "discarded",
        "closed",
        "started",
        "dismissed",
        "completed",
    ] {
        let session = app.session(name).await;
        let event = app.event(&session, "purchase", &json!({}));
        let data = app.ingest_and_ask(&session, &[event]).await;
        let id = instruction_ids(&data["instructions"]).remove(0);
        let follow = json!({"instructionId": id});
        let state = match name {
            "expired" => {
                app.advance(8 * 24 * 3600);
                "expired"
            }
            "displayed" => {
                app.acknowledge(&session, &id, "displayed").await;
                "displayed"
            }
            "discarded" => {
                app.acknowledge(&session, &id, "discarded").await;
                "suppressed"
            }
            "closed" => {
                app.acknowledge(&session, &id, "dismissed").await;
                "dismissed"
            }
            "issued" => "issued",
            _ => {
                let started = try_start(app, &session, survey, follow).await.data(201);
                let attempt = text(&started, "attemptId");
                answer(app, &session, &attempt, json!([["q1", 9]]))
                    .await
                    .ok();
                match name {
                    "dismissed" => drop(end(app, &session, &attempt, "dismiss").await.ok()),
                    "completed" => drop(end(app, &session, &attempt, "complete").await.ok()),
                    _ => {}
                }
                name
            }
        };
        expected.insert(0, (name.to_owned(), state.to_owned()));
        app.advance(1);
    }
    let alone = app.session("alone").await;
    start(app, &alone, survey).await;
    expected.insert(0, ("alone".to_owned(), "started".to_owned()));
    for limit in [1, 2, 3, 200] {
        assert_eq!(
            recipients(app, survey, &format!("?limit={limit}")).await,
            expected,
            "{limit}"
        );
        for state in [
            "issued",
            "displayed",
            "started",
            "completed",
            "dismissed",
            "expired",
            "suppressed",
        ] {
            let of_state: Vec<_> = expected
                .iter()
                .filter(|(_, known)| known == state)
                .cloned()
                .collect();
            let found = recipients(app, survey, &format!("?limit={limit}&state={state}")).await;
            assert_eq!(found, of_state, "{state}");
        }
    }
    let results = results(app, survey, "").await;
    assert_eq!(
        results["totals"]["shown"], 6,
        "displayed, closed, three with attempts, one alone"
    );
    assert_eq!(results["funnel"][0]["droppedOff"], 2);
    let path = app.path(&format!("/surveys/{survey}/recipients"));
    app.get(&format!("{path}?state=lost"), &app.viewer())
        .await
        .refused(422, "validation_failed");
    let page = app
        .get(&format!("{path}?limit=1"), &app.viewer())
        .await
        .ok();
    let foreign = format!("{path}?state=started&cursor={}", text(&page, "nextCursor"));
    app.get(&foreign, &app.viewer())
        .await
        .refused(400, "invalid_cursor");
}

async fn attempts_are_listed_newest_first(app: &mut TestApp) {
    let survey = link_survey(app, forked(false)).await;
    let ada = app.session("ada").await;
    let mut expected = Vec::new();
    for _ in 0..5 {
        expected.insert(0, start(app, &ada, survey).await);
        app.advance(1);
    }
    let mut found = Vec::new();
    let mut query = "?limit=2".to_owned();
    loop {
        let path = app.path(&format!("/surveys/{survey}/attempts{query}"));
        let page = app.get(&path, &app.viewer()).await.ok();
        found.extend(
            page["items"]
                .as_array()
                .unwrap()
                .iter()
                .map(|item| text(item, "attemptId")),
        );
        let Some(cursor) = page["nextCursor"].as_str() else {
            break;
        };
        query = format!("?limit=2&cursor={cursor}");
        // Nobody moves when others come.
        start(app, &ada, survey).await;
    }
    assert_eq!(found, expected);
}

/// Of one person alone, of all surveys, page by page.
async fn a_persons_instructions_and_attempts_are_listed_newest_first(app: &mut TestApp) {
    let mut surveys = Vec::new();
    for _ in 0..3 {
        let survey = json!({"mode": "on_demand", "flow": forked(false)});
        surveys.push(app.survey_with(&survey).await);
    }
    let (ada, bob) = (app.session("ada").await, app.session("bob").await);
    let (mut instructions, mut attempts) = (Vec::new(), Vec::new());
    for session in [&ada, &bob] {
        let event = app.event(session, "purchase", &json!({}));
        let data = app.ingest_and_ask(session, &[event]).await;
        let issued = instruction_ids(&data["instructions"]);
        assert_eq!(issued.len(), 3, "{data}");
        if session.subject_id == ada.subject_id {
            for survey in &surveys {
                attempts.insert(0, start(app, session, *survey).await);
                app.advance(1);
            }
            app.acknowledge(session, &issued[0], "displayed").await;
            instructions = issued;
        }
    }
    let subject = ada.subject_id;
    for (list, id, mut expected) in [
        ("instructions", "instructionId", instructions.clone()),
        ("attempts", "attemptId", attempts),
    ] {
        let (mut found, mut cursor) = (Vec::new(), String::new());
        loop {
            let path = app.path(&format!("/{list}?subjectId={subject}&limit=2{cursor}"));
            let page = app.get(&path, &app.viewer()).await.ok();
            for item in page["items"].as_array().unwrap() {
                found.push(text(item, id));
                if found.last() == instructions.first() {
                    assert_eq!(
                        (&item["status"], &item["kind"]),
                        (&json!("displayed"), &json!("survey"))
                    );
                    assert!(item["displayedAt"].is_string(), "{item}");
                }
            }
            let Some(next) = page["nextCursor"].as_str() else {
                break;
            };
            cursor = format!("&cursor={next}");
        }
        if list == "instructions" {
            // All of them came with one event.
            found.sort_unstable();
            expected.sort_unstable();
        }
        assert_eq!(found, expected, "{list}");
        let whose = app.get(&app.path(&format!("/{list}")), &app.viewer()).await;
        whose.refused(422, "validation_failed");
    }
}

async fn a_range_is_of_days_or_instants(app: &mut TestApp) {
    let survey = link_survey(app, forked(false)).await;
    let day = |text: &str| text[..10].to_owned();
    let first = day(&app.time(0));
    for _ in 0..3 {
        let ada = app.session("ada").await;
        start(app, &ada, survey).await;
        app.advance(24 * 3_600);
    }
    let last = day(&app.time(-24 * 3_600));
    let started =
        async |query: String| results(app, survey, &query).await["totals"]["started"].clone();
    assert_eq!(started(String::new()).await, 3);
    assert_eq!(started(format!("?from={first}&to={last}")).await, 3);
    assert_eq!(started(format!("?from={first}&to={first}")).await, 1);
    assert_eq!(started(format!("?from={last}")).await, 1);
    assert_eq!(
        started(format!(
            "?from={}&to={}",
            app.time(-49 * 3_600),
            app.time(-23 * 3_600)
        ))
        .await,
        2
    );
    assert_eq!(started(format!("?from={}", app.time(0))).await, 0);
}

async fn a_survey_ends_with_as_many_answers_as_it_was_to_get(app: &mut TestApp) {
    let survey = link_survey(app, forked(false)).await;
    let path = app.path(&format!("/surveys/{survey}"));
    let change = json!({"schedule": {"maxResponses": 2}});
    app.patch(&path, &app.editor(), &change).await.ok();
    let ada = app.session("ada").await;
    for status in ["active", "completed"] {
        let attempt = start(app, &ada, survey).await;
        answer(app, &ada, &attempt, json!([["q1", 9]])).await.ok();
        end(app, &ada, &attempt, "complete").await.ok();
        assert_eq!(app.get(&path, &app.viewer()).await.ok()["status"], status);
    }
    try_start(app, &ada, survey, json!({}))
        .await
        .refused(409, "survey_not_active");
    // It has them already, however often it is begun again.
    for (change, status) in [
        (json!({"status": "active"}), "completed"),
        (
            json!({"status": "active", "schedule": {"maxResponses": 3}}),
            "active",
        ),
        (json!({"schedule": {"maxResponses": 1}}), "completed"),
    ] {
        let changed = app.patch(&path, &app.editor(), &change).await.ok();
        assert_eq!(changed["status"], status, "{change}");
    }
    let entry = app.audited("survey.completed").await.remove(0);
    assert_eq!(entry["actor"], "server");
    assert_eq!(entry["detail"]["because"], "maxResponses");
}
