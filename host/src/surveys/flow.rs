//! A survey's flow: its questions, branches and end screens, and whether it can be walked.

use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::http::FieldError;

/// What a survey asks, in which order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Flow {
    /// Where it begins; the first question unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_question_id: Option<String>,
    /// The questions.
    #[serde(default)]
    pub questions: Vec<Question>,
    /// Where answers lead; without one, to the next question.
    #[serde(default)]
    pub branches: Vec<Branch>,
    /// What is shown at the end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub end_screens: Vec<EndScreen>,
    /// How progress is shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress_style: Option<ProgressStyle>,
    /// Whether people can go back.
    #[serde(default)]
    pub back_navigation: bool,
}

/// How progress is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum ProgressStyle {
    Bar,
    Steps,
    Percent,
    None,
}

/// The types of questions (contract 7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the table of contract 7 describes them")]
pub enum QuestionType {
    Nps,
    Rating,
    Csat,
    Ces,
    Thumbs,
    SingleChoice,
    MultipleChoice,
    PictureChoice,
    Ranking,
    Matrix,
    ShortText,
    LongText,
    Number,
    Date,
    Consent,
    ContactInfo,
    Statement,
    Link,
}

/// A question; what its type adds is kept as it came.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Question {
    /// Its id within the flow.
    pub id: String,
    /// What kind of answer it takes.
    pub r#type: QuestionType,
    /// What it asks.
    pub title: String,
    /// Whether it can be skipped.
    #[serde(default)]
    pub required: bool,
    /// What its type adds, see [`allowed_extras`].
    #[serde(flatten)]
    pub extras: serde_json::Map<String, Value>,
}

/// A way from one question to another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Branch {
    /// Its id within the flow.
    pub id: String,
    /// The question that it leaves.
    pub from: String,
    /// When it is taken; null is always.
    #[serde(default)]
    pub when: Option<Value>,
    /// Where it leads.
    pub to: Target,
}

/// Where a branch leads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum Target {
    /// To a question.
    QuestionId(String),
    /// To an end screen.
    EndScreenId(String),
}

/// What is shown at the end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EndScreen {
    /// Its id within the flow.
    pub id: String,
    /// Its headline.
    pub title: String,
    /// Its text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// `{label, action: "close"|"url"|"deep_link", url?}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub button: Option<Value>,
}

/// The keys that a type adds to a question (contract 7).
fn allowed_extras(kind: QuestionType) -> &'static [&'static str] {
    match kind {
        QuestionType::Nps => &["lowLabel", "highLabel"],
        QuestionType::Rating => &["scale", "display", "lowLabel", "highLabel"],
        QuestionType::Csat | QuestionType::Ces => &["scale", "lowLabel", "highLabel"],
        QuestionType::Thumbs => &[],
        QuestionType::SingleChoice => &["options", "allowOther", "shuffle"],
        QuestionType::MultipleChoice => &[
            "options",
            "allowOther",
            "shuffle",
            "minSelections",
            "maxSelections",
        ],
        QuestionType::PictureChoice => &["options", "multiple"],
        QuestionType::Ranking => &["options"],
        QuestionType::Matrix => &["rows", "columns"],
        QuestionType::ShortText | QuestionType::LongText => {
            &["placeholder", "minLength", "maxLength", "format"]
        }
        QuestionType::Number => &["min", "max", "step"],
        QuestionType::Date => &["min", "max"],
        QuestionType::Consent => &["label"],
        QuestionType::ContactInfo => &["fields"],
        QuestionType::Statement | QuestionType::Link => &["body", "buttonLabel", "url"],
    }
}

/// What is wrong with a flow: unknown keys, dangling ids, questions that nothing leads to, cycles.
pub fn check(flow: &Flow) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut places = HashMap::new();
    for (index, question) in flow.questions.iter().enumerate() {
        let pointer = format!("/flow/questions/{index}");
        if question.id.is_empty() || places.insert(question.id.as_str(), index).is_some() {
            errors.push(FieldError::new(
                format!("{pointer}/id"),
                "duplicate",
                "question ids must be unique and not empty",
            ));
        }
        for key in question.extras.keys() {
            let common = ["description", "validation"].contains(&key.as_str());
            if !common && !allowed_extras(question.r#type).contains(&key.as_str()) {
                let detail = format!("a question of this type has no `{key}`");
                errors.push(FieldError::new(
                    format!("{pointer}/{key}"),
                    "unknown_key",
                    detail,
                ));
            }
        }
    }
    let screens: HashSet<&str> = flow
        .end_screens
        .iter()
        .map(|screen| screen.id.as_str())
        .collect();
    if let Some(start) = &flow.start_question_id
        && !places.contains_key(start.as_str())
    {
        errors.push(dangling("/flow/startQuestionId", start));
    }
    for (index, branch) in flow.branches.iter().enumerate() {
        let pointer = format!("/flow/branches/{index}");
        if !places.contains_key(branch.from.as_str()) {
            errors.push(dangling(format!("{pointer}/from"), &branch.from));
        }
        match &branch.to {
            Target::QuestionId(id) if !places.contains_key(id.as_str()) => {
                errors.push(dangling(format!("{pointer}/to/questionId"), id));
            }
            Target::EndScreenId(id) if !screens.contains(id.as_str()) => {
                errors.push(dangling(format!("{pointer}/to/endScreenId"), id));
            }
            _ => {}
        }
        if let Some(condition) = &branch.when {
            check_condition(condition, &format!("{pointer}/when"), &places, &mut errors);
        }
    }
    if errors.is_empty() {
        walk(flow, &places, &mut errors);
    }
    errors
}

const OPERATORS: &[&str] = &[
    "equals",
    "not_equals",
    "one_of",
    "includes_any",
    "includes_all",
    "includes_none",
    "gt",
    "gte",
    "lt",
    "lte",
    "between",
    "contains",
    "starts_with",
    "ends_with",
    "answered",
    "skipped",
    "nps_bucket",
];

fn check_condition(
    condition: &Value,
    pointer: &str,
    places: &HashMap<&str, usize>,
    errors: &mut Vec<FieldError>,
) {
    for key in ["all", "any"] {
        if let Some(parts) = condition.get(key).and_then(Value::as_array) {
            for (index, part) in parts.iter().enumerate() {
                check_condition(part, &format!("{pointer}/{key}/{index}"), places, errors);
            }
            return;
        }
    }
    match condition.get("questionId").and_then(Value::as_str) {
        Some(id) if places.contains_key(id) => {}
        Some(id) => errors.push(dangling(format!("{pointer}/questionId"), id)),
        None => errors.push(FieldError::new(
            pointer,
            "invalid",
            "a condition is {all}, {any} or {questionId, operator, value}",
        )),
    }
    let operator = condition
        .get("operator")
        .and_then(Value::as_str)
        .unwrap_or_default();
    if !OPERATORS.contains(&operator) {
        errors.push(FieldError::new(
            format!("{pointer}/operator"),
            "unknown_operator",
            format!("operators are {}", OPERATORS.join(", ")),
        ));
    }
}

fn dangling(pointer: impl Into<String>, id: &str) -> FieldError {
    FieldError::new(
        pointer,
        "unknown_id",
        format!("the flow has nothing with the id `{id}`"),
    )
}

/// Follows every way from the start. Depth first, with an explicit stack: flows come from outside.
fn walk(flow: &Flow, places: &HashMap<&str, usize>, errors: &mut Vec<FieldError>) {
    #[derive(Clone, Copy, PartialEq)]
    enum State {
        Unseen,
        Open,
        Done,
    }
    if flow.questions.is_empty() {
        return;
    }
    let mut states = vec![State::Unseen; flow.questions.len()];
    let start = flow
        .start_question_id
        .as_deref()
        .and_then(|id| places.get(id).copied())
        .unwrap_or(0);
    let mut stack = vec![(start, false)];
    while let Some((index, left)) = stack.pop() {
        let Some(state) = states.get_mut(index) else {
            continue;
        };
        if left {
            *state = State::Done;
            continue;
        }
        match *state {
            State::Done | State::Open => continue,
            State::Unseen => *state = State::Open,
        }
        stack.push((index, true));
        for next in successors(flow, index, places) {
            match states.get(next) {
                Some(State::Unseen) => stack.push((next, false)),
                Some(State::Open) => {
                    let pointer = format!("/flow/questions/{next}/id");
                    errors.push(FieldError::new(
                        pointer,
                        "cycle",
                        "the flow leads back to this question",
                    ));
                }
                _ => {}
            }
        }
    }
    for (index, state) in states.iter().enumerate() {
        if *state == State::Unseen {
            let pointer = format!("/flow/questions/{index}/id");
            errors.push(FieldError::new(
                pointer,
                "unreachable",
                "nothing leads to this question",
            ));
        }
    }
}

fn successors(flow: &Flow, index: usize, places: &HashMap<&str, usize>) -> Vec<usize> {
    let Some(question) = flow.questions.get(index) else {
        return Vec::new();
    };
    let mut next = Vec::new();
    for branch in flow
        .branches
        .iter()
        .filter(|branch| branch.from == question.id)
    {
        if let Target::QuestionId(id) = &branch.to {
            next.extend(places.get(id.as_str()).copied());
        }
        if branch.when.is_none() {
            return next;
        }
    }
    if index + 1 < flow.questions.len() {
        next.push(index + 1);
    }
    next
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn codes(flow: Value) -> Vec<String> {
        check(&serde_json::from_value(flow).unwrap())
            .into_iter()
            .map(|error| error.code)
            .collect()
    }

    fn question(id: &str) -> Value {
        json!({"id": id, "type": "nps", "title": "?"})
    }

    #[test]
    fn a_plain_flow_is_fine() {
        assert!(codes(json!({"questions": [question("a"), question("b")]})).is_empty());
    }

    #[test]
    fn ids_must_exist_and_every_question_be_reached_once() {
        let questions = [question("a"), question("b"), question("c")];
        let to =
            |id: &str| json!([{"id": "x", "from": "a", "when": null, "to": {"questionId": id}}]);
        assert_eq!(
            codes(json!({"questions": questions, "branches": to("z")})),
            ["unknown_id"]
        );
        assert_eq!(
            codes(json!({"questions": questions, "branches": to("c")})),
            ["unreachable"]
        );
        let back = json!([{"id": "x", "from": "c", "when": {"questionId": "a", "operator": "answered"}, "to": {"questionId": "a"}}]);
        assert_eq!(
            codes(json!({"questions": questions, "branches": back})),
            ["cycle"]
        );
        assert_eq!(
            codes(json!({"questions": [question("a"), question("a")]})),
            ["duplicate"]
        );
        assert_eq!(
            codes(json!({"questions": [{"id": "a", "type": "nps", "title": "?", "colour": 1}]})),
            ["unknown_key"]
        );
    }
}
