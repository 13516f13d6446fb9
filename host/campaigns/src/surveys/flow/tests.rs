//! Flows, questions, answers and conditions: tables of cases. What holds for all of them is in [`ways`].

#![expect(
    clippy::too_many_lines,
    clippy::needless_pass_by_value,
    reason = "tables of cases, and literals of JSON"
)]

mod answers;
mod conditions;
mod vectors;
mod ways;

use serde_json::{Value, json};

use super::*;

fn flow(document: Value) -> Flow {
    serde_json::from_value(document).unwrap()
}

/// Code and pointer of everything that is wrong.
fn errors(document: Value) -> Vec<(String, String)> {
    let errors = check(&flow(document)).into_iter();
    errors.map(|error| (error.code, error.pointer)).collect()
}

fn question(id: &str) -> Value {
    json!({"id": id, "type": "nps", "title": "?"})
}

fn typed(kind: &str, extra: Value) -> Value {
    let mut question = json!({"id": "q", "type": kind, "title": "?"});
    question
        .as_object_mut()
        .unwrap()
        .extend(extra.as_object().unwrap().clone());
    question
}

fn options() -> Value {
    json!([{"id": "a", "label": "A"}, {"id": "b", "label": "B"}, {"id": "c", "label": "C"}])
}

#[test]
fn ids_exist_and_every_question_is_reached_once() {
    let questions = [question("a"), question("b"), question("c")];
    let plain = json!({"questions": questions});
    assert_eq!(errors(plain), []);
    let to = |from: &str, id: &str, when: Value| json!({"questions": questions, "branches": [{"id": "x", "from": from, "when": when, "to": {"questionId": id}}]});
    let answered = json!({"questionId": "a", "operator": "answered"});
    for (document, code, pointer) in [
        (
            to("a", "z", json!(null)),
            "unknown_id",
            "/flow/branches/0/to/questionId",
        ),
        (
            to("z", "b", json!(null)),
            "unknown_id",
            "/flow/branches/0/from",
        ),
        (
            to("a", "c", json!(null)),
            "unreachable",
            "/flow/questions/1/id",
        ),
        (to("c", "a", answered), "cycle", "/flow/questions/0/id"),
        (
            json!({"questions": [question("a"), question("a")]}),
            "duplicate",
            "/flow/questions/1/id",
        ),
        (
            json!({"questions": [question("a/b")]}),
            "invalid",
            "/flow/questions/0/id",
        ),
        (
            json!({"questions": questions, "startQuestionId": "z"}),
            "unknown_id",
            "/flow/startQuestionId",
        ),
        (
            json!({"questions": questions, "startQuestionId": "c"}),
            "unreachable",
            "/flow/questions/0/id",
        ),
        (
            json!({"questions": questions, "endScreens": [{"id": "e", "title": ""}]}),
            "invalid",
            "/flow/endScreens/0/title",
        ),
        (
            json!({"questions": questions, "endScreens": [{"id": "e", "title": "t", "button": {"label": "l", "action": "url"}}]}),
            "invalid",
            "/flow/endScreens/0/button/url",
        ),
        (
            json!({"questions": questions, "endScreens": [{"id": "e", "title": "t", "button": {"label": "l", "action": "deep_link", "url": "javascript:alert(1)"}}]}),
            "invalid",
            "/flow/endScreens/0/button/url",
        ),
        (
            json!({"questions": (0..=MOST_QUESTIONS).map(|number| question(&number.to_string())).collect::<Vec<_>>()}),
            "limit_exceeded",
            "/flow/questions",
        ),
    ] {
        let found = errors(document.clone());
        assert_eq!(
            found[0],
            (code.to_owned(), pointer.to_owned()),
            "{document}"
        );
    }
}

#[test]
fn questions_are_what_their_type_takes() {
    for (question, code, pointer) in [
        (typed("nps", json!({"colour": 1})), "unknown_key", "/colour"),
        (typed("nps", json!({"scale": 10})), "unknown_key", "/scale"),
        (
            typed("rating", json!({"scale": 8})),
            "out_of_range",
            "/scale",
        ),
        (
            typed("rating", json!({"display": "cats"})),
            "invalid",
            "/display",
        ),
        (typed("csat", json!({"scale": 7})), "out_of_range", "/scale"),
        (typed("ces", json!({"scale": 6})), "out_of_range", "/scale"),
        (
            typed("thumbs", json!({"options": []})),
            "unknown_key",
            "/options",
        ),
        (typed("single_choice", json!({})), "required", "/options"),
        (
            typed("single_choice", json!({"options": []})),
            "out_of_range",
            "/options",
        ),
        (
            typed("single_choice", json!({"options": "a"})),
            "invalid",
            "/options",
        ),
        (
            typed("single_choice", json!({"options": [{"id": "a"}]})),
            "required",
            "/options/0/label",
        ),
        (
            typed(
                "ranking",
                json!({"options": [{"id": "a", "label": "A"}, {"id": "a", "label": "B"}]}),
            ),
            "duplicate",
            "/options/1/id",
        ),
        (
            typed(
                "multiple_choice",
                json!({"options": options(), "minSelections": 4}),
            ),
            "out_of_range",
            "/minSelections",
        ),
        (
            typed(
                "multiple_choice",
                json!({"options": options(), "maxSelections": 4}),
            ),
            "out_of_range",
            "/maxSelections",
        ),
        (
            typed(
                "multiple_choice",
                json!({"options": options(), "validation": {"minSelections": 3, "maxSelections": 2}}),
            ),
            "out_of_range",
            "/minSelections",
        ),
        (
            typed(
                "picture_choice",
                json!({"options": [{"id": "a", "label": "A", "imageUrl": "x"}]}),
            ),
            "invalid",
            "/options/0/imageUrl",
        ),
        (
            typed("matrix", json!({"rows": options(), "columns": []})),
            "out_of_range",
            "/columns",
        ),
        (
            typed("short_text", json!({"minLength": 5, "maxLength": 4})),
            "out_of_range",
            "/minLength",
        ),
        (
            typed("long_text", json!({"maxLength": 10_001})),
            "out_of_range",
            "/maxLength",
        ),
        (
            typed("short_text", json!({"format": "iban"})),
            "invalid",
            "/format",
        ),
        (
            typed("short_text", json!({"validation": {"min": 4}})),
            "unknown_key",
            "/validation/min",
        ),
        (
            typed(
                "short_text",
                json!({"maxLength": 5, "validation": {"maxLength": 4}}),
            ),
            "duplicate",
            "/validation/maxLength",
        ),
        (
            typed("number", json!({"min": 2, "max": 1})),
            "out_of_range",
            "/min",
        ),
        (typed("number", json!({"step": 0})), "out_of_range", "/step"),
        (
            typed("date", json!({"min": "2026-02-30"})),
            "invalid",
            "/min",
        ),
        (
            typed("date", json!({"min": "2026-03-01", "max": "2026-02-01"})),
            "out_of_range",
            "/min",
        ),
        (typed("consent", json!({})), "required", "/label"),
        (
            typed("contact_info", json!({"fields": []})),
            "out_of_range",
            "/fields",
        ),
        (
            typed("link", json!({"url": "javascript:alert(1)"})),
            "invalid",
            "/url",
        ),
        (
            typed("statement", json!({"options": []})),
            "unknown_key",
            "/options",
        ),
    ] {
        let found = errors(json!({"questions": [question]}));
        assert_eq!(
            found,
            [(code.to_owned(), format!("/flow/questions/0{pointer}"))],
            "{question}"
        );
    }
}

fn taken(
    mut question: Value,
    value: Value,
    required: bool,
) -> Result<Value, (String, &'static str)> {
    question["required"] = json!(required);
    let question: Question = serde_json::from_value(question).unwrap();
    let spec = question.spec().unwrap();
    let checked = answer::check(&question, &spec, &value);
    checked.map_err(|refusal| (refusal.pointer, refusal.code))
}

#[test]
fn what_is_next_follows_the_answer_given_last() {
    let mut questions = [question("a"), question("b"), question("c")];
    questions[2]["required"] = json!(true);
    let flow = flow(json!({"questions": questions, "endScreens": [{"id": "e", "title": "E"}]}));
    let walker = Walker::new(&flow);
    let position = |answers: &[&str], last: Option<&str>| {
        let answers = answers
            .iter()
            .map(|id| ((*id).to_owned(), json!(1)))
            .collect();
        let way = walker.way(&answers);
        way.position(last).map(|question| question.id.clone())
    };
    assert_eq!(position(&[], None).as_deref(), Some("a"));
    assert_eq!(position(&["a"], Some("a")).as_deref(), Some("b"));
    // What lies before the last answer was passed over.
    assert_eq!(position(&["b"], Some("b")).as_deref(), Some("c"));
    assert_eq!(position(&["a", "c"], Some("c")), None);
    // After going back, what is still open is asked.
    assert_eq!(position(&["a", "c"], Some("a")).as_deref(), Some("b"));
    assert_eq!(position(&["a", "b", "c"], Some("a")), None);
}
