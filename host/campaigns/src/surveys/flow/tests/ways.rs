//! Random flows and answers, against a walk that is written as one would explain it.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{flow, options, taken, typed};
use crate::surveys::flow::*;

/// Numbers from a seed.
pub(super) struct Dice(pub(super) u64);

impl Dice {
    pub(super) fn below(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 16).unwrap() % sides
    }

    fn value(&mut self, kind: &str) -> Value {
        let ids = ["a", "b", "c"];
        match kind {
            "nps" => json!(self.below(11)),
            "single_choice" => json!({"optionId": ids[self.below(3)]}),
            "multiple_choice" => json!({"optionIds": ids[self.below(3)..]}),
            "short_text" => json!(["yes", "no", "maybe"][self.below(3)]),
            _ => json!(null),
        }
    }

    fn condition(&mut self, questions: &[Value], depth: usize) -> Value {
        if depth < 3 && self.below(3) == 0 {
            let key = ["all", "any"][self.below(2)];
            let parts: Vec<Value> = (0..=self.below(3))
                .map(|_| self.condition(questions, depth + 1))
                .collect();
            return json!({key: parts});
        }
        let question = &questions[self.below(questions.len())];
        let (id, kind) = (&question["id"], question["type"].as_str().unwrap());
        if self.below(4) == 0 || kind == "statement" {
            let operator = ["answered", "skipped"][self.below(2)];
            return json!({"questionId": id, "operator": operator});
        }
        let (operator, value) = match kind {
            "nps" => [
                ("gte", json!(self.below(11))),
                ("nps_bucket", json!("detractor")),
                ("one_of", json!([1, 3, 5, 7, 9])),
            ][self.below(3)]
            .clone(),
            "single_choice" => {
                [("equals", json!("a")), ("not_equals", json!("b"))][self.below(2)].clone()
            }
            "multiple_choice" => [
                ("includes_any", json!(["a", "c"])),
                ("includes_all", json!(["b", "c"])),
                ("includes_none", json!(["a"])),
            ][self.below(3)]
            .clone(),
            _ => [("contains", json!("e")), ("starts_with", json!("y"))][self.below(2)].clone(),
        };
        json!({"questionId": id, "operator": operator, "value": value})
    }

    /// A flow that leads forward only.
    fn flow(&mut self) -> Value {
        let kinds = [
            "nps",
            "single_choice",
            "multiple_choice",
            "short_text",
            "statement",
        ];
        let count = 1 + self.below(8);
        let questions: Vec<Value> = (0..count)
            .map(|number| {
                let mut question = json!({"id": format!("q{number}"), "type": kinds[self.below(5)], "title": "?", "required": self.below(2) == 0});
                if question["type"].as_str().unwrap().ends_with("choice") {
                    question["options"] = options();
                }
                question
            })
            .collect();
        let branches: Vec<Value> = (0..self.below(2 * count))
            .map(|number| {
                let from = self.below(count);
                let to = from + 1 + self.below(count);
                let to = if to < count { json!({"questionId": format!("q{to}")}) } else { json!({"endScreenId": format!("e{}", self.below(2))}) };
                let when = if self.below(8) == 0 { json!(null) } else { self.condition(&questions, 0) };
                json!({"id": format!("b{number}"), "from": format!("q{from}"), "when": when, "to": to})
            })
            .collect();
        let screens = if branches.is_empty() && self.below(2) == 0 {
            json!([])
        } else {
            json!([{"id": "e0", "title": "E"}, {"id": "e1", "title": "E"}])
        };
        json!({"questions": questions, "branches": branches, "endScreens": screens})
    }
}

/// Whether a condition holds, read off contract 7 for the few types and operators that random flows have.
fn reference_holds(condition: &Value, known: &BTreeMap<String, Value>) -> bool {
    if let Some(parts) = condition["all"].as_array() {
        return parts.iter().all(|part| reference_holds(part, known));
    }
    if let Some(parts) = condition["any"].as_array() {
        return parts.iter().any(|part| reference_holds(part, known));
    }
    let operator = condition["operator"].as_str().unwrap();
    let Some(answer) = known.get(condition["questionId"].as_str().unwrap()) else {
        return operator == "skipped";
    };
    let value = &condition["value"];
    let has = |id: &Value| answer["optionIds"].as_array().unwrap().contains(id);
    let ids = || value.as_array().unwrap().iter();
    match operator {
        "answered" => true,
        "skipped" => false,
        "gte" => answer.as_u64() >= value.as_u64(),
        "nps_bucket" => answer.as_u64().unwrap() <= 6,
        "one_of" => ids().any(|one| one == answer),
        "equals" => answer["optionId"] == *value,
        "not_equals" => answer["optionId"] != *value,
        "includes_any" => ids().any(has),
        "includes_all" => ids().all(has),
        "includes_none" => !ids().any(has),
        "contains" => answer.as_str().unwrap().contains(value.as_str().unwrap()),
        "starts_with" => answer
            .as_str()
            .unwrap()
            .starts_with(value.as_str().unwrap()),
        other => unreachable!("{other}"),
    }
}

/// The questions that somebody with these answers comes to, and the end.
fn reference(flow: &Value, answers: &Answers) -> (Vec<String>, String) {
    let questions = flow["questions"].as_array().unwrap();
    let (mut here, mut seen, mut known) = (0, Vec::new(), BTreeMap::new());
    loop {
        let Some(question) = questions.get(here) else {
            let first = flow["endScreens"][0]["id"].as_str();
            return (seen, first.unwrap_or("done").to_owned());
        };
        let id = question["id"].as_str().unwrap().to_owned();
        seen.push(id.clone());
        let is_statement = question["type"] == "statement";
        match answers
            .get(&id)
            .filter(|value| is_statement || !value.is_null())
        {
            Some(value) => drop(known.insert(id.clone(), value.clone())),
            None if question["required"] == true && !is_statement => {
                return (seen, "required".to_owned());
            }
            None => {}
        }
        let mut branches = flow["branches"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|branch| branch["from"] == id.as_str());
        let taken = branches
            .find(|branch| branch["when"].is_null() || reference_holds(&branch["when"], &known));
        match taken.map(|branch| &branch["to"]) {
            None => here += 1,
            Some(to) => match to["questionId"].as_str() {
                Some(id) => {
                    here = questions
                        .iter()
                        .position(|question| question["id"] == id)
                        .unwrap();
                }
                None => return (seen, to["endScreenId"].as_str().unwrap().to_owned()),
            },
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn every_way_ends_where_the_reference_says(seed in 1_u64..) {
        let mut dice = Dice(seed);
        let document = dice.flow();
        let parsed = flow(document.clone());
        let wrong = check(&parsed);
        // Nothing but questions that a branch jumps over can be wrong with such a flow.
        prop_assert!(wrong.iter().all(|error| error.code == "unreachable"), "{wrong:?}");
        prop_assume!(wrong.is_empty());
        let walker = Walker::new(&parsed);
        for _ in 0..4 {
            let mut answers = Answers::new();
            for question in document["questions"].as_array().unwrap() {
                let kind = question["type"].as_str().unwrap();
                let id = question["id"].as_str().unwrap().to_owned();
                match dice.below(4) {
                    0 => {}
                    1 if kind != "statement" && question["required"] != true => drop(answers.insert(id, json!(null))),
                    _ => {
                        let value = dice.value(kind);
                        let (question, spec) = walker.question(&id).unwrap();
                        prop_assert_eq!(answer::check(question, spec.unwrap(), &value).unwrap(), value.clone());
                        answers.insert(id, value);
                    }
                }
            }
            let way = walker.way(&answers);
            let stops: Vec<String> = way.stops.iter().map(|stop| stop.question.id.clone()).collect();
            let end = match way.end {
                End::Required => "required",
                End::Screen(id) => id,
                End::Done => "done",
            };
            prop_assert_eq!((stops, end.to_owned()), reference(&document, &answers));
        }
    }

    #[test]
    fn whoever_answers_what_is_next_comes_to_an_end(seed in 1_u64..) {
        let mut dice = Dice(seed);
        let parsed = flow(dice.flow());
        prop_assume!(check(&parsed).is_empty());
        let walker = Walker::new(&parsed);
        let (mut answers, mut last) = (Answers::new(), None::<String>);
        for _ in 0..=parsed.questions.len() {
            let way = walker.way(&answers);
            let Some(next) = way.position(last.as_deref()) else {
                prop_assert!(way.end != End::Required);
                return Ok(());
            };
            let kind = serde_json::to_value(next.r#type).unwrap();
            let pass = !next.required && dice.below(3) == 0;
            let value = if pass { json!(null) } else { dice.value(kind.as_str().unwrap()) };
            answers.insert(next.id.clone(), value);
            last = Some(next.id.clone());
        }
        prop_assert!(false, "it never ends");
    }

    #[test]
    fn no_value_is_too_odd_to_be_checked(kind in 0_usize..18, value in odd()) {
        let kinds = ["nps", "rating", "csat", "ces", "thumbs", "single_choice", "multiple_choice", "picture_choice", "ranking", "matrix", "short_text", "long_text", "number", "date", "consent", "contact_info", "statement", "link"];
        let extra = match kinds[kind] {
            "single_choice" | "multiple_choice" | "ranking" => json!({"options": options()}),
            "picture_choice" => json!({"options": [{"id": "a", "label": "A", "imageUrl": "https://a.b"}]}),
            "matrix" => json!({"rows": options(), "columns": options()}),
            "consent" => json!({"label": "yes"}),
            "contact_info" => json!({"fields": [{"id": "a", "label": "A"}]}),
            _ => json!({}),
        };
        let question = typed(kinds[kind], extra);
        if let Ok(kept) = taken(question.clone(), value, false) {
            // What is kept is taken again as it is.
            prop_assert_eq!(taken(question, kept.clone(), false), Ok(kept));
        }
    }
}

/// Any JSON that is not large.
fn odd() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (0_i64..12).prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
        "[abc]".prop_map(Value::from),
    ];
    leaf.prop_recursive(2, 12, 3, |inner| {
        let keys = prop_oneof![
            Just("optionId"),
            Just("optionIds"),
            Just("other"),
            Just("a")
        ];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map(keys.prop_map(str::to_owned), inner, 0..3)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}
