//! Vectors for the web SDK, which walks flows by itself: what this code answers, in a file that the SDK's tests read.

mod answers;

use std::path::PathBuf;

use serde_json::{Value, json};

use super::ways::Dice;
use super::{flow, options};
use crate::surveys::flow::way::Fate;
use crate::surveys::flow::*;

/// Flows of the file.
const FLOWS: usize = 160;
/// Walks through each of them.
const WALKS: usize = 4;
/// Set to anything, the test writes the file instead of comparing it.
const WRITE: &str = "NUDGE_WRITE_VECTORS";

/// A type of questions: what it adds, answers to it, comparisons with it.
struct Kind {
    name: &'static str,
    extra: Value,
    answers: Value,
    comparisons: Value,
}

fn kind(name: &'static str, extra: Value, answers: Value, comparisons: Value) -> Kind {
    Kind {
        name,
        extra,
        answers,
        comparisons,
    }
}

fn kinds() -> Vec<Kind> {
    let several = json!({"options": options(), "allowOther": true});
    let pictures: Vec<Value> = ["a", "b", "c"]
        .iter()
        .map(|id| json!({"id": id, "label": id, "imageUrl": "https://a.b/c"}))
        .collect();
    let any = json!([
        ["equals", ["a", "b"]], ["not_equals", ["b", "a"]], ["includes_any", ["a", "c"]],
        ["includes_all", ["b", "c"]], ["includes_none", ["a"]], ["equals", {"optionIds": ["a"]}],
    ]);
    let number = json!([
        ["equals", 3.0],
        ["not_equals", 4],
        ["one_of", [1, 3, 5]],
        ["gt", 3],
        ["gte", 3],
        ["lt", 2.5],
        ["lte", 2],
        ["between", [2, 4.0]],
    ]);
    let words = json!([
        ["equals", "yes"],
        ["not_equals", "no"],
        ["one_of", ["maybe", "no"]],
        ["contains", "ä"],
        ["contains", "e"],
        ["starts_with", "ma"],
        ["ends_with", "s"],
    ]);
    let texts = json!(["yes", "no", "maybe", "yes and no", "Käse 🧀"]);
    vec![
        kind(
            "nps",
            json!({}),
            json!([0, 3, 6, 7, 8, 9, 10]),
            json!([
                ["gte", 9],
                ["one_of", [0, 7, 10]],
                ["nps_bucket", "promoter"],
                ["nps_bucket", "passive"],
                ["nps_bucket", "detractor"],
                ["between", [7, 8]],
            ]),
        ),
        kind(
            "rating",
            json!({"scale": 5}),
            json!([1, 2, 3, 4, 5]),
            number.clone(),
        ),
        kind("csat", json!({}), json!([1, 3, 5]), number.clone()),
        kind("ces", json!({"scale": 7}), json!([1, 4, 7]), number.clone()),
        kind(
            "thumbs",
            json!({}),
            json!(["up", "down"]),
            json!([["equals", "up"], ["not_equals", "up"], ["one_of", ["down"]]]),
        ),
        kind(
            "single_choice",
            several.clone(),
            json!([{"optionId": "a"}, {"optionId": "b"}, {"optionId": "c"}, {"other": "a"}]),
            json!([
                ["equals", "a"], ["not_equals", {"optionId": "b"}], ["one_of", ["a", "c"]],
                ["includes_any", ["a", "b"]], ["includes_all", ["b"]], ["includes_none", ["c"]],
            ]),
        ),
        kind(
            "multiple_choice",
            several,
            json!([
                {"optionIds": ["a"]}, {"optionIds": ["b", "a"]}, {"optionIds": ["c", "b", "a"]},
                {"optionIds": ["a"], "other": "b"}, {"optionIds": [], "other": "a"},
            ]),
            any.clone(),
        ),
        kind(
            "picture_choice",
            json!({"options": pictures, "multiple": true}),
            json!([{"optionIds": ["a"]}, {"optionIds": ["b", "c"]}]),
            any,
        ),
        kind(
            "ranking",
            json!({"options": options()}),
            json!([{"optionIds": ["a", "b", "c"]}, {"optionIds": ["c", "a", "b"]}]),
            json!([
                ["equals", ["c", "a", "b"]],
                ["not_equals", ["a", "b", "c"]],
                ["includes_all", ["a", "c"]]
            ]),
        ),
        kind(
            "matrix",
            json!({"rows": options(), "columns": options()}),
            json!([{"a": "b", "b": "b", "c": "a"}, {"c": "a", "b": "c", "a": "a"}]),
            json!([
                ["equals", {"b": "b", "a": "b", "c": "a"}], ["not_equals", {"a": "a"}],
                ["includes_any", {"a": "b", "b": "a"}], ["includes_all", {"c": "a", "b": "c"}],
                ["includes_none", {"a": "b"}],
            ]),
        ),
        kind("short_text", json!({}), texts.clone(), words.clone()),
        kind("long_text", json!({}), texts, words),
        kind(
            "number",
            json!({}),
            json!([-1.5, 0, 2, 2.5, 3, 1_000_000]),
            number,
        ),
        kind(
            "date",
            json!({}),
            json!(["2025-12-01", "2026-01-31", "2026-06-15"]),
            json!([
                ["equals", "2026-01-31"],
                ["gt", "2026-01-01"],
                ["lte", "2026-01-31"],
                ["between", ["2026-01-01", "2026-03-01"]],
                ["one_of", ["2025-12-01", "2026-06-15"]],
            ]),
        ),
        kind(
            "consent",
            json!({"label": "yes"}),
            json!([true]),
            json!([["equals", true], ["not_equals", true]]),
        ),
        kind(
            "contact_info",
            json!({"fields": [{"id": "m", "label": "M", "required": true}]}),
            json!([{"m": "x"}]),
            json!([["answered", null]]),
        ),
        kind(
            "statement",
            json!({}),
            json!([null]),
            json!([["answered", null]]),
        ),
        kind(
            "link",
            json!({}),
            json!(["clicked"]),
            json!([["equals", "clicked"]]),
        ),
    ]
}

fn pick(dice: &mut Dice, list: &Value) -> Value {
    let list = list.as_array().unwrap();
    list[dice.below(list.len())].clone()
}

/// A condition about questions of these types.
fn condition(dice: &mut Dice, kinds: &[Kind], used: &[usize], depth: usize) -> Value {
    if depth < 3 && dice.below(3) == 0 {
        let key = ["all", "any"][dice.below(2)];
        let parts: Vec<Value> = (0..=dice.below(3))
            .map(|_| condition(dice, kinds, used, depth + 1))
            .collect();
        return json!({key: parts});
    }
    let place = dice.below(used.len());
    let id = format!("q{place}");
    if dice.below(5) == 0 {
        let operator = ["answered", "skipped"][dice.below(2)];
        return json!({"questionId": id, "operator": operator});
    }
    let comparison = pick(dice, &kinds[used[place]].comparisons);
    let mut leaf = json!({"questionId": id, "operator": comparison[0]});
    if !comparison[1].is_null() {
        leaf["value"] = comparison[1].clone();
    }
    leaf
}

/// A flow that leads forward only, and the types of its questions.
fn random(dice: &mut Dice, kinds: &[Kind]) -> (Value, Vec<usize>) {
    let count = 1 + dice.below(6);
    let used: Vec<usize> = (0..count).map(|_| dice.below(kinds.len())).collect();
    let questions: Vec<Value> = used
        .iter()
        .enumerate()
        .map(|(number, place)| {
            let kind = &kinds[*place];
            let mut question = json!({"id": format!("q{number}"), "type": kind.name, "title": "?", "required": dice.below(2) == 0});
            let extra = kind.extra.as_object().unwrap().clone();
            question.as_object_mut().unwrap().extend(extra);
            question
        })
        .collect();
    let branches: Vec<Value> = (0..dice.below(2 * count + 1))
        .map(|number| {
            let from = dice.below(count);
            let to = from + 1 + dice.below(count);
            let to = if to < count {
                json!({"questionId": format!("q{to}")})
            } else {
                json!({"endScreenId": format!("e{}", dice.below(2))})
            };
            let when = if dice.below(8) == 0 {
                json!(null)
            } else {
                condition(dice, kinds, &used, 0)
            };
            json!({"id": format!("b{number}"), "from": format!("q{from}"), "when": when, "to": to})
        })
        .collect();
    let mut flow = json!({"questions": questions, "branches": branches});
    if !branches.is_empty() || dice.below(2) == 0 {
        flow["endScreens"] = json!([{"id": "e0", "title": "E"}, {"id": "e1", "title": "E"}]);
    }
    (flow, used)
}

/// A walk: some answers, and where this code says that they lead.
fn walk(dice: &mut Dice, walker: &Walker<'_>, kinds: &[Kind], used: &[usize]) -> Value {
    let mut answers = Answers::new();
    for (number, place) in used.iter().enumerate() {
        let id = format!("q{number}");
        let (question, spec) = walker.question(&id).unwrap();
        let may_be_left = !question.required && kinds[*place].name != "statement";
        match dice.below(5) {
            0 => {}
            1 if may_be_left => drop(answers.insert(id, json!(null))),
            _ => {
                let value = pick(dice, &kinds[*place].answers);
                let kept = answer::check(question, spec.unwrap(), &value);
                assert_eq!(kept.as_ref(), Ok(&value), "{}", kinds[*place].name);
                answers.insert(id, value);
            }
        }
    }
    let way = walker.way(&answers);
    let last =
        (dice.below(3) > 0).then(|| way.stops[dice.below(way.stops.len())].question.id.as_str());
    let fate = |fate| match fate {
        Fate::Answered => "answered",
        Fate::Passed => "passed",
        Fate::Open => "open",
    };
    let stops: Vec<Value> = way
        .stops
        .iter()
        .map(|stop| json!([stop.question.id, fate(stop.fate)]))
        .collect();
    let end = match way.end {
        End::Required => json!("required"),
        End::Screen(id) => json!({"endScreenId": id}),
        End::Done => json!(null),
    };
    let next = way.position(last).map(|question| question.id.as_str());
    json!({"answers": answers, "last": last, "stops": stops, "end": end, "next": next})
}

/// The file: a line for each flow and each answer, so that differences can be read.
fn file() -> String {
    let kinds = kinds();
    let mut flows = Vec::new();
    for seed in 1_u64.. {
        let mut dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let (document, used) = random(&mut dice, &kinds);
        let parsed = flow(document.clone());
        let wrong = check(&parsed);
        // Nothing but questions that a branch jumps over can be wrong with such a flow.
        assert!(
            wrong.iter().all(|error| error.code == "unreachable"),
            "{wrong:?}"
        );
        if !wrong.is_empty() {
            continue;
        }
        let walker = Walker::new(&parsed);
        let walks: Vec<Value> = (0..WALKS)
            .map(|_| walk(&mut dice, &walker, &kinds, &used))
            .collect();
        flows.push(json!({"flow": document, "walks": walks}).to_string());
        if flows.len() == FLOWS {
            break;
        }
    }
    let answers: Vec<String> = answers::vectors().iter().map(Value::to_string).collect();
    let (flows, answers) = (flows.join(",\n"), answers.join(",\n"));
    format!("{{\"flows\":[\n{flows}\n],\"answers\":[\n{answers}\n]}}\n")
}

#[test]
fn the_web_sdk_has_the_vectors_of_this_code() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../web-sdk/test/flow-vectors.json");
    let made = file();
    if std::env::var_os(WRITE).is_some() {
        std::fs::write(&path, made).unwrap();
        return;
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == made,
        "{} is out of date: run this test with {WRITE}=1, then the SDK's tests",
        path.display()
    );
}
