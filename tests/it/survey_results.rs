//! What became of surveys (specification 4.3, contract 7): analytics, responses, recipients, attempts.

use std::collections::BTreeMap;

use nudge::attempts::analytics::{self, Range};
use nudge::attempts::edges;
use nudge_db::Timestamp;
use serde_json::{Value, json};
use tests::session::{instruction_ids, text};
use tests::{Session, TestApp, on_both_backends};
use uuid::Uuid;

use crate::attempts::{answer, end, forked, link_survey, question, start, try_start};
use crate::deletion::{delete, deleted};
use crate::identity::Backend;

on_both_backends!(
    results_are_what_the_attempts_add_up_to,
    results_follow_deletion_and_merging,
    a_survey_without_attempts_has_results,
    responses_are_paged_newest_first,
    recipients_are_whoever_was_to_get_it,
    attempts_are_listed_newest_first,
    a_range_is_of_days_or_instants,
    a_survey_ends_with_as_many_answers_as_it_was_to_get,
);

async fn results(app: &TestApp, survey: Uuid, query: &str) -> Value {
    let path = app.path(&format!("/surveys/{survey}/analytics{query}"));
    app.get(&path, &app.viewer()).await.ok()
}

/// Questions of most types, and a fork.
fn flow() -> Value {
    let options =
        json!([{"id": "a", "label": "A"}, {"id": "b", "label": "B"}, {"id": "c", "label": "C"}]);
    json!({
        "questions": [
            question("nps", true),
            {"id": "one", "type": "single_choice", "title": "?", "options": options, "allowOther": true},
            {"id": "many", "type": "multiple_choice", "title": "?", "options": options},
            {"id": "rate", "type": "rating", "title": "?", "scale": 5},
            {"id": "why", "type": "long_text", "title": "?"},
            {"id": "size", "type": "number", "title": "?"},
        ],
        "branches": [
            {"id": "b1", "from": "nps", "when": {"questionId": "nps", "operator": "nps_bucket", "value": "detractor"}, "to": {"questionId": "rate"}},
            {"id": "b2", "from": "many", "when": {"questionId": "one", "operator": "equals", "value": "c"}, "to": {"endScreenId": "e"}},
        ],
        "endScreens": [{"id": "e", "title": "E"}],
        "backNavigation": true,
    })
}

/// Numbers from a seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) % sides
    }

    fn value(&mut self, question: &str) -> Value {
        let id = |number: u64| ["a", "b", "c"][usize::try_from(number).unwrap()];
        match question {
            "nps" => json!(self.below(11)),
            "one" if self.below(5) == 0 => json!({"other": "something else"}),
            "one" => json!({"optionId": id(self.below(3))}),
            "many" if self.below(2) == 0 => json!({"optionIds": [id(self.below(3))]}),
            "many" => json!({"optionIds": ["c", "a"]}),
            "rate" => json!(1 + self.below(5)),
            "why" => json!(format!("because {}", self.below(1_000))),
            _ => json!(f64::from(u32::try_from(self.below(40)).unwrap()) / 4.0),
        }
    }
}

/// Goes through the survey at random: passes over questions, goes back, gives up.
async fn attempt(app: &TestApp, session: &Session, survey: Uuid, dice: &mut Dice) {
    let started = try_start(app, session, survey, json!({})).await.data(201);
    let id = text(&started, "attemptId");
    let mut next = started["next"].clone();
    while let Some(question) = next["questionId"].as_str().map(str::to_owned) {
        match dice.below(12) {
            0 => return,
            1 => {
                end(app, session, &id, "dismiss").await.ok();
                return;
            }
            2 if question != "nps" => {
                let value = dice.value("nps");
                next = answer(app, session, &id, json!([["nps", value]]))
                    .await
                    .ok()["next"]
                    .take();
                continue;
            }
            3 if question != "nps" => {
                next = answer(app, session, &id, json!([[question, null]]))
                    .await
                    .ok()["next"]
                    .take();
                continue;
            }
            _ => {}
        }
        let value = dice.value(&question);
        next = answer(app, session, &id, json!([[question, value]]))
            .await
            .ok()["next"]
            .take();
    }
    if dice.below(10) > 0 {
        end(app, session, &id, "complete").await.ok();
    }
}

/// All attempts, as the API lists them.
async fn listed(app: &TestApp, survey: Uuid) -> Vec<Value> {
    let (mut all, mut query) = (Vec::new(), "?limit=200".to_owned());
    loop {
        let path = app.path(&format!("/surveys/{survey}/attempts{query}"));
        let page = app.get(&path, &app.viewer()).await.ok();
        all.extend(page["items"].as_array().unwrap().iter().cloned());
        match page["nextCursor"].as_str() {
            Some(cursor) => query = format!("?limit=200&cursor={cursor}"),
            None => return all,
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "no test counts that far")]
fn real(count: usize) -> f64 {
    count as f64
}

fn close(one: &Value, other: f64) -> bool {
    (one.as_f64().unwrap() - other).abs() < 1e-9
}

/// Counts again what is in the list of attempts, with nothing of the server's own.
async fn check(app: &TestApp, survey: Uuid) {
    let attempts = listed(app, survey).await;
    let results = results(app, survey, "").await;
    let in_state = |state: &str| {
        attempts
            .iter()
            .filter(|attempt| attempt["state"] == state)
            .count()
    };
    let totals = &results["totals"];
    assert_eq!(totals["started"], attempts.len());
    assert_eq!(totals["shown"], attempts.len());
    assert_eq!(totals["completed"], in_state("completed"));
    assert_eq!(totals["abandoned"], in_state("abandoned"));
    if !attempts.is_empty() {
        let rate = real(in_state("completed")) / real(attempts.len());
        assert!(close(&totals["completionRate"], rate), "{totals}");
    }
    let funnel = results["funnel"].as_array().unwrap();
    assert_eq!(
        (&funnel[0]["step"], &funnel[1]["step"]),
        (&json!("shown"), &json!("started"))
    );
    for (place, reported) in results["perQuestion"]
        .as_array()
        .unwrap()
        .iter()
        .enumerate()
    {
        let id = text(reported, "questionId");
        let answers = attempts
            .iter()
            .flat_map(|attempt| attempt["answers"].as_array().unwrap());
        let mut values: Vec<(String, Value)> = answers
            .filter(|answer| answer["questionId"] == id.as_str())
            .map(|answer| (text(answer, "answeredAt"), answer["answerValue"].clone()))
            .collect();
        values.sort_by(|one, other| other.0.cmp(&one.0));
        let values: Vec<Value> = values.into_iter().map(|(_, value)| value).collect();
        assert_eq!(reported["responses"], values.len(), "{id}");

        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for value in &values {
            let parts = match id.as_str() {
                "one" => vec![value.get("optionId").cloned().unwrap_or(json!("other"))],
                "many" => value["optionIds"].as_array().unwrap().clone(),
                "why" => vec![],
                _ => vec![value.clone()],
            };
            for part in parts {
                *counts.entry(part.to_string()).or_default() += 1;
            }
        }
        for bar in reported["distribution"].as_array().unwrap() {
            let count = counts.remove(&bar["value"].to_string()).unwrap_or(0);
            assert_eq!(bar["count"], count, "{id}: {bar}");
            let share = if values.is_empty() {
                0.0
            } else {
                real(count) / real(values.len())
            };
            assert!(close(&bar["share"], share), "{id}: {bar}");
        }
        assert_eq!(counts, BTreeMap::new(), "{id}");

        let numbers: Vec<f64> = values.iter().filter_map(Value::as_f64).collect();
        if numbers.is_empty() {
            assert!(reported.get("mean").is_none(), "{reported}");
        } else {
            let mean = numbers.iter().sum::<f64>() / real(numbers.len());
            assert!(close(&reported["mean"], mean), "{reported}");
        }
        if id == "nps" && !values.is_empty() {
            let within = |low: f64, high: f64| {
                numbers
                    .iter()
                    .filter(|score| (low..=high).contains(*score))
                    .count()
            };
            let (promoters, detractors) = (within(9.0, 10.0), within(0.0, 6.0));
            let nps = &reported["nps"];
            assert_eq!(
                (&nps["promoters"], &nps["detractors"]),
                (&json!(promoters), &json!(detractors))
            );
            assert_eq!(nps["passives"], within(7.0, 8.0));
            let score = (real(promoters) - real(detractors)) / real(values.len()) * 100.0;
            assert!(close(&nps["score"], score), "{nps}");
        }
        if id == "why" {
            let newest: Vec<&Value> = values.iter().take(20).collect();
            assert_eq!(
                reported["texts"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .collect::<Vec<_>>(),
                newest
            );
        }
        let step = &funnel[2 + place];
        assert_eq!(
            (&step["questionId"], &step["answered"]),
            (&json!(id), &reported["responses"])
        );
        assert_eq!(step["skipped"], reported["skipped"]);
        let [reached, answered, skipped, dropped] =
            ["reached", "answered", "skipped", "droppedOff"].map(|key| step[key].as_i64().unwrap());
        assert!(reached >= answered + skipped + dropped, "{step}");
        if in_state("started") == 0 {
            assert_eq!(reached, answered + skipped + dropped, "{step}");
        }
    }
    let last = funnel.last().unwrap();
    assert_eq!(
        (&last["step"], &last["reached"]),
        (&json!("completed"), &totals["completed"])
    );
    check_counts(app, survey).await;
}

/// The counts of days are what the attempts add up to, and so is every part of time.
async fn check_counts(app: &TestApp, survey: Uuid) {
    let key = (app.access.app_id, survey);
    let now = app.clock.now();
    let mut tx = app.services().db.read().await.unwrap();
    let hour = |hours: i64| Timestamp(now.0 - hours * 3_600_000_000);
    for (from, to) in [
        (Range::ALL.from, Range::ALL.to),
        (hour(60), now),
        (hour(47), hour(1)),
        (hour(3), hour(2)),
        (hour(30), Range::ALL.to),
        (Range::ALL.from, hour(20)),
    ] {
        let counted = analytics::tally(&mut tx, key, Range { from, to })
            .await
            .unwrap();
        let again = edges::tally(&mut tx, key, (from, to)).await.unwrap();
        assert_eq!(
            counted
                .since(&again)
                .0
                .values()
                .filter(|change| change.count != 0 || change.total.abs() > 1e-6)
                .count(),
            0
        );
    }
    let empty: Vec<(i64,)> = app
        .rows("SELECT count FROM survey_counts WHERE count <= 0")
        .await;
    assert_eq!(empty, []);
}

async fn results_are_what_the_attempts_add_up_to(app: &mut TestApp) {
    let survey = link_survey(app, flow()).await;
    let mut dice = Dice(0x5eed);
    for round in 0..5 {
        let name = format!("person-{round}");
        for _ in 0..50 {
            let session = app.session(&name).await;
            attempt(app, &session, survey, &mut dice).await;
        }
        check(app, survey).await;
        // Attempts of several days.
        app.advance(11 * 3_600 + 60 * dice.below(60));
    }
    assert_eq!(listed(app, survey).await.len(), 250);
    check(app, survey).await;
}

async fn results_follow_deletion_and_merging(app: &mut TestApp) {
    let survey = link_survey(app, flow()).await;
    let mut dice = Dice(0xfeed);
    let backend = Backend::new(app).await;
    let phone = backend.identify(app, "phone", "e-1").await;
    let (web, bob) = (app.session("web").await, app.session("bob").await);
    let key = json!({"clientAttemptId": app.id()});
    for session in [&phone, &web] {
        try_start(app, session, survey, key.clone()).await.data(201);
    }
    for session in [&phone, &web, &bob, &bob] {
        for _ in 0..8 {
            attempt(app, session, survey, &mut dice).await;
        }
    }
    let before = results(app, survey, "").await;
    let person = backend.identify(app, "web", "e-1").await;
    assert_eq!(person.subject_id, phone.subject_id);
    assert_eq!(
        results(app, survey, "").await,
        before,
        "nothing is counted twice"
    );
    check(app, survey).await;
    let of_person = |attempt: &&Value| attempt["subjectId"] == person.subject_id.as_str();
    assert_eq!(
        listed(app, survey).await.iter().filter(of_person).count(),
        18
    );

    let job_id = delete(app, &json!({"externalId": "e-1"})).await;
    deleted(app, &job_id).await;
    let left = listed(app, survey).await;
    assert_eq!(left.len(), 16);
    assert!(
        left.iter()
            .all(|attempt| attempt["subjectId"] == bob.subject_id.as_str())
    );
    check(app, survey).await;
    let nobody = app.session("web").await;
    try_start(app, &nobody, survey, json!({}))
        .await
        .refused(403, "consent_required");
    check(app, survey).await;
}

async fn a_survey_without_attempts_has_results(app: &mut TestApp) {
    let survey = link_survey(app, forked(false)).await;
    let results = results(app, survey, "").await;
    assert_eq!(
        results["totals"],
        json!({"shown": 0, "started": 0, "completed": 0, "abandoned": 0, "completionRate": 0.0})
    );
    assert_eq!(results["funnel"].as_array().unwrap().len(), 6);
    assert_eq!(results["perQuestion"].as_array().unwrap().len(), 3);
    let draft = app
        .post(
            &app.path("/surveys"),
            &app.editor(),
            &json!({"name": "draft"}),
        )
        .await
        .data(201);
    let path = app.path(&format!("/surveys/{}/analytics", text(&draft, "id")));
    assert_eq!(
        app.get(&path, &app.viewer()).await.ok()["perQuestion"],
        json!([])
    );
    for rest in ["analytics", "responses", "recipients", "attempts"] {
        let path = app.path(&format!("/surveys/{}/{rest}", app.id()));
        app.get(&path, &app.viewer())
            .await
            .refused(404, "not_found");
    }
}

async fn responses(app: &TestApp, survey: Uuid, query: &str) -> Value {
    let path = app.path(&format!("/surveys/{survey}/responses{query}"));
    app.get(&path, &app.viewer()).await.ok()
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
            assert!(nudge::clock::from_text(&text(item, "at")).is_some());
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
    let entry = app.audited("survey.completed").await.remove(0);
    assert_eq!(entry["actor"], "server");
    assert_eq!(entry["detail"]["because"], "maxResponses");
}
