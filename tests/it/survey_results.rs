//! What became of surveys (specification 4.3, contract 7): analytics, responses, recipients, attempts.

use std::collections::BTreeMap;

use nudge_db::Timestamp;
use nudge_surveys::attempts::analytics::{self, Range};
use nudge_surveys::attempts::edges;
use serde_json::{Value, json};
use tests::session::text;
use tests::{Session, TestApp, on_both_backends};
use uuid::Uuid;

use crate::attempts::{answer, end, forked, link_survey, question, start, try_start};
use crate::deletion::{delete, deleted};
use crate::identity::Backend;

on_both_backends!(
    results_are_what_the_attempts_add_up_to,
    results_follow_deletion_and_merging,
    a_survey_without_attempts_has_results,
    a_mean_is_that_of_the_numbers_that_are_there,
    numbers_that_are_as_frequent_are_in_their_order,
    an_option_called_other_counts_an_answer_once,
    what_was_shown_stays_shown,
);

pub(crate) async fn results(app: &TestApp, survey: Uuid, query: &str) -> Value {
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

/// What comes of something seen does not make it unseen, whatever the SDK says (contract 4: acks are monotone).
async fn what_was_shown_stays_shown(app: &mut TestApp) {
    let trigger = json!({"kind": "event", "eventName": "purchase"});
    let survey = app.survey(&trigger).await;
    for (name, then) in [("ada", "discarded"), ("bob", "clicked")] {
        let session = app.session(name).await;
        let event = app.event(&session, "purchase", &json!({}));
        let data = app.ingest_and_ask(&session, &[event]).await;
        let id = tests::session::instruction_ids(&data["instructions"]).remove(0);
        app.acknowledge(&session, &id, "displayed").await;
        app.acknowledge(&session, &id, then).await;
    }
    assert_eq!(results(app, survey, "").await["totals"]["shown"], 2);
    let path = app.path(&format!("/surveys/{survey}/recipients"));
    let page = app.get(&path, &app.viewer()).await.ok();
    let states = page["items"].as_array().unwrap().iter();
    let states: Vec<&Value> = states.map(|item| &item["state"]).collect();
    assert_eq!(states, ["displayed", "displayed"]);
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
                .filter(|change| **change != 0)
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

async fn a_mean_is_that_of_the_numbers_that_are_there(app: &mut TestApp) {
    let number = json!({"id": "n", "type": "number", "title": "?", "required": true});
    let survey = link_survey(app, json!({"questions": [number], "backNavigation": true})).await;
    let ada = app.session("ada").await;
    let of_question = async || results(app, survey, "").await["perQuestion"][0].take();
    let mut attempts = Vec::new();
    for (value, mean) in [
        (7.0, 7.0),
        (1.7e308, 0.85e308),
        (1.7e308, 1.7e308 / 3.0 * 2.0),
    ] {
        let attempt = start(app, &ada, survey).await;
        for value in [1e17, value] {
            answer(app, &ada, &attempt, json!([["n", value]]))
                .await
                .ok();
        }
        attempts.push(attempt);
        let shown = of_question().await;
        assert_eq!(shown["responses"], attempts.len());
        let of_expected = shown["mean"].as_f64().unwrap() / mean;
        assert!((of_expected - 1.0).abs() < 1e-9, "{shown}");
    }
    for attempt in &attempts[1..] {
        answer(app, &ada, attempt, json!([["n", 1]])).await.ok();
    }
    assert_eq!(of_question().await["mean"], 3.0);
    check_counts(app, survey).await;
}

async fn numbers_that_are_as_frequent_are_in_their_order(app: &mut TestApp) {
    let number = json!({"id": "n", "type": "number", "title": "?", "required": true});
    let survey = link_survey(app, json!({"questions": [number]})).await;
    let ada = app.session("ada").await;
    for value in [json!(100), json!(9), json!(20), json!(7.5), json!(9)] {
        let attempt = start(app, &ada, survey).await;
        answer(app, &ada, &attempt, json!([["n", value]]))
            .await
            .ok();
    }
    let bars = results(app, survey, "").await["perQuestion"][0]["distribution"].take();
    let bars = bars.as_array().unwrap();
    let values: Vec<f64> = bars
        .iter()
        .map(|bar| bar["value"].as_f64().unwrap())
        .collect();
    assert_eq!(values, [9.0, 7.5, 20.0, 100.0]);
}

async fn an_option_called_other_counts_an_answer_once(app: &mut TestApp) {
    let options = json!([{"id": "a", "label": "A"}, {"id": "other", "label": "Other"}]);
    let many = json!({"id": "many", "type": "multiple_choice", "title": "?", "options": options, "allowOther": true});
    let survey = link_survey(app, json!({"questions": [many], "backNavigation": true})).await;
    let ada = app.session("ada").await;
    let attempt = start(app, &ada, survey).await;
    for (value, counts) in [
        (json!({"optionIds": ["other"], "other": "words"}), [0, 1]),
        (json!({"optionIds": ["a"], "other": "words"}), [1, 1]),
        (json!({"optionIds": ["a", "other"]}), [1, 1]),
    ] {
        answer(app, &ada, &attempt, json!([["many", value]]))
            .await
            .ok();
        let bars = results(app, survey, "").await["perQuestion"][0]["distribution"].take();
        let [a, other] = counts;
        assert_eq!(
            bars,
            json!([
                {"value": "a", "count": a, "share": f64::from(a)},
                {"value": "other", "count": other, "share": f64::from(other)},
            ])
        );
    }
    check_counts(app, survey).await;
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
