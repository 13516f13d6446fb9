//! Conditions of branches (contract 7): `{all: […]}`, `{any: […]}` or `{questionId, operator, value?}`.

use nudge_platform::field_error::FieldError;
use nudge_platform::json::escaped;
use serde_json::{Map, Value, json};

use super::question::{Question, QuestionType, Spec, is_date};

/// How deeply conditions nest, as filters do (contract 8).
pub const MOST_DEPTH: usize = 4;
/// Comparisons of one condition, as of filters (contract 15).
pub const MOST_LEAVES: usize = 50;
/// Values of one comparison.
const MOST_VALUES: usize = 100;

/// How an answer is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// The same.
    Equals,
    /// Another one.
    NotEquals,
    /// One of several.
    OneOf,
    /// At least one of several is selected.
    IncludesAny,
    /// All of several are selected.
    IncludesAll,
    /// None of several is selected.
    IncludesNone,
    /// More.
    Gt,
    /// More, or the same.
    Gte,
    /// Less.
    Lt,
    /// Less, or the same.
    Lte,
    /// Within two bounds, both included.
    Between,
    /// Has a part.
    Contains,
    /// Begins with a part.
    StartsWith,
    /// Ends with a part.
    EndsWith,
    /// There is an answer.
    Answered,
    /// There is none.
    Skipped,
    /// Promoter (9, 10), passive (7, 8) or detractor.
    NpsBucket,
}

use Operator::{
    Answered, Between, Contains, EndsWith, Equals, Gt, Gte, IncludesAll, IncludesAny, IncludesNone,
    Lt, Lte, NotEquals, NpsBucket, OneOf, Skipped, StartsWith,
};

const NAMES: [(&str, Operator); 17] = [
    ("equals", Equals),
    ("not_equals", NotEquals),
    ("one_of", OneOf),
    ("includes_any", IncludesAny),
    ("includes_all", IncludesAll),
    ("includes_none", IncludesNone),
    ("gt", Gt),
    ("gte", Gte),
    ("lt", Lt),
    ("lte", Lte),
    ("between", Between),
    ("contains", Contains),
    ("starts_with", StartsWith),
    ("ends_with", EndsWith),
    ("answered", Answered),
    ("skipped", Skipped),
    ("nps_bucket", NpsBucket),
];

/// Buckets of a net promoter score, with the answers that fall into each.
const BUCKETS: [(&str, std::ops::RangeInclusive<i64>); 3] = [
    ("promoter", 9..=10),
    ("passive", 7..=8),
    ("detractor", 0..=6),
];

/// The bucket of an answer to a question of the type `nps`.
pub fn bucket(score: i64) -> Option<&'static str> {
    BUCKETS
        .iter()
        .find(|(_, scores)| scores.contains(&score))
        .map(|(name, _)| *name)
}

/// The operator of a name.
fn operator(name: &str) -> Option<Operator> {
    NAMES
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, operator)| *operator)
}

/// The operators that make sense for a question's answers.
fn suits(question: &Question, spec: &Spec, operator: Operator) -> bool {
    if matches!(operator, Answered | Skipped) {
        return true;
    }
    match spec {
        Spec::Scale { .. } | Spec::Number { .. } | Spec::Date { .. } => {
            let is_nps = question.r#type == QuestionType::Nps;
            matches!(
                operator,
                Equals | NotEquals | OneOf | Gt | Gte | Lt | Lte | Between
            ) || (is_nps && operator == NpsBucket)
        }
        Spec::Text { .. } => {
            matches!(
                operator,
                Equals | NotEquals | OneOf | Contains | StartsWith | EndsWith
            )
        }
        Spec::Thumbs | Spec::Link | Spec::Consent => {
            matches!(operator, Equals | NotEquals | OneOf)
        }
        Spec::Single { .. } | Spec::Several { most: 1, .. } => matches!(
            operator,
            Equals | NotEquals | OneOf | IncludesAny | IncludesAll | IncludesNone
        ),
        Spec::Several { .. } | Spec::Ranking(_) | Spec::Matrix { .. } => matches!(
            operator,
            Equals | NotEquals | IncludesAny | IncludesAll | IncludesNone
        ),
        Spec::Contact(_) | Spec::Statement => false,
    }
}

/// A value in the one form in which values of a question are compared; none: it is no value of such a question.
fn comparable(spec: &Spec, value: &Value) -> Option<Value> {
    match spec {
        Spec::Scale { .. } | Spec::Number { .. } => value.as_f64().map(|number| json!(number)),
        Spec::Date { .. } => value.as_str().filter(|day| is_date(day)).map(Value::from),
        Spec::Text { .. } => value.as_str().map(Value::from),
        Spec::Thumbs => value
            .as_str()
            .filter(|word| ["up", "down"].contains(word))
            .map(Value::from),
        Spec::Link => value
            .as_str()
            .filter(|word| *word == "clicked")
            .map(Value::from),
        Spec::Consent => value.as_bool().map(Value::from),
        Spec::Ranking(_) => selected(value).map(Value::from),
        Spec::Single { .. } | Spec::Several { .. } => {
            let mut ids = selected(value)?;
            ids.sort_unstable();
            Some(Value::from(ids))
        }
        Spec::Matrix { .. } => value.as_object().cloned().map(Value::from),
        Spec::Contact(_) | Spec::Statement => None,
    }
}

/// The options that a value names: an id, a list of ids, or an answer.
fn selected(value: &Value) -> Option<Vec<String>> {
    match value {
        Value::String(id) => Some(vec![id.clone()]),
        Value::Array(ids) => ids
            .iter()
            .map(|id| id.as_str().map(str::to_owned))
            .collect(),
        Value::Object(answer) => match (answer.get("optionId"), answer.get("optionIds")) {
            (Some(id), None) => id.as_str().map(|id| vec![id.to_owned()]),
            (None, Some(ids)) if ids.is_array() => selected(ids),
            (None, None) if answer.contains_key("other") => Some(Vec::new()),
            _ => None,
        },
        _ => None,
    }
}

/// What can be included: ids of options, or pairs of row and column.
fn parts(spec: &Spec, value: &Value) -> Option<Vec<Value>> {
    match spec {
        Spec::Matrix { .. } => {
            let pairs = value.as_object()?.iter();
            Some(pairs.map(|(row, column)| json!([row, column])).collect())
        }
        _ => Some(selected(value)?.into_iter().map(Value::from).collect()),
    }
}

/// Whether what a comparison names exists in the question.
fn known(spec: &Spec, value: &Value) -> bool {
    let among = |ids: &[String]| {
        let named = selected(value).unwrap_or_default();
        named.iter().all(|id| ids.contains(id))
    };
    match spec {
        Spec::Single { options, .. } | Spec::Several { options, .. } | Spec::Ranking(options) => {
            among(options)
        }
        Spec::Matrix { rows, columns } => {
            value
                .as_object()
                .into_iter()
                .flatten()
                .all(|(row, column)| {
                    let column = column.as_str();
                    rows.contains(row) && columns.iter().any(|known| Some(known.as_str()) == column)
                })
        }
        _ => true,
    }
}

/// Two bounds: `[least, most]`.
fn bounds(value: &Value) -> Option<(&Value, &Value)> {
    match value.as_array()?.as_slice() {
        [least, most] => Some((least, most)),
        _ => None,
    }
}

fn order(one: &Value, other: &Value) -> Option<std::cmp::Ordering> {
    match (one, other) {
        (Value::Number(_), Value::Number(_)) => one.as_f64()?.partial_cmp(&other.as_f64()?),
        (Value::String(one), Value::String(other)) => Some(one.cmp(other)),
        _ => None,
    }
}

/// The questions of a flow, as conditions are checked against them.
pub(super) trait Questions {
    /// A question and what its answers are made of, which is unknown where the question itself is wrong.
    fn find(&self, id: &str) -> Option<(&Question, Option<&Spec>)>;
}

/// Says what is wrong with a condition.
pub(super) struct Check<'a, Q> {
    pub questions: &'a Q,
    pub errors: &'a mut Vec<FieldError>,
    leaves: usize,
}

impl<'a, Q: Questions> Check<'a, Q> {
    pub(super) fn new(questions: &'a Q, errors: &'a mut Vec<FieldError>) -> Self {
        Self {
            questions,
            errors,
            leaves: 0,
        }
    }

    pub(super) fn condition(&mut self, condition: &Value, pointer: &str) {
        self.part(condition, pointer, 1);
        if self.leaves > MOST_LEAVES {
            let detail = format!("a condition has at most {MOST_LEAVES} comparisons");
            self.refuse(pointer, "limit_exceeded", &detail);
        }
    }

    fn part(&mut self, condition: &Value, pointer: &str, depth: usize) {
        let Some(object) = condition.as_object() else {
            return self.malformed(pointer);
        };
        for key in ["all", "any"] {
            let Some(parts) = object.get(key) else {
                continue;
            };
            let pointer = format!("{pointer}/{key}");
            if object.len() != 1 {
                return self.malformed(&pointer);
            }
            match parts.as_array() {
                Some(parts) if !parts.is_empty() => {
                    if depth >= MOST_DEPTH {
                        let detail = format!("conditions nest at most {MOST_DEPTH} deep");
                        return self.refuse(&pointer, "limit_exceeded", &detail);
                    }
                    for (index, part) in parts.iter().enumerate() {
                        self.part(part, &format!("{pointer}/{index}"), depth + 1);
                    }
                }
                _ => self.refuse(&pointer, "invalid", "a list of conditions, not empty"),
            }
            return;
        }
        self.leaves += 1;
        if self.leaves <= MOST_LEAVES {
            self.leaf(object, pointer);
        }
    }

    fn leaf(&mut self, leaf: &Map<String, Value>, pointer: &str) {
        for key in leaf.keys() {
            if !["questionId", "operator", "value"].contains(&key.as_str()) {
                let at = format!("{pointer}/{}", escaped(key));
                self.refuse(
                    &at,
                    "unknown_key",
                    "a comparison has questionId, operator, value",
                );
            }
        }
        let Some(id) = leaf.get("questionId").and_then(Value::as_str) else {
            return self.malformed(pointer);
        };
        let question = self.questions.find(id);
        if question.is_none() {
            let detail = format!("the flow has nothing with the id `{id}`");
            self.refuse(&format!("{pointer}/questionId"), "unknown_id", &detail);
        }
        let name = leaf.get("operator").and_then(Value::as_str);
        let Some(operator) = name.and_then(operator) else {
            let names: Vec<&str> = NAMES.iter().map(|(name, _)| *name).collect();
            let detail = format!("operators are {}", names.join(", "));
            return self.refuse(&format!("{pointer}/operator"), "unknown_operator", &detail);
        };
        let Some((question, Some(spec))) = question else {
            return;
        };
        if !suits(question, spec, operator) {
            let detail = "the operator does not suit answers of this question's type";
            return self.refuse(
                &format!("{pointer}/operator"),
                "unsuitable_operator",
                detail,
            );
        }
        let value = leaf.get("value").unwrap_or(&Value::Null);
        if let Err((code, detail)) = check_value(spec, operator, value) {
            self.refuse(&format!("{pointer}/value"), code, detail);
        }
    }

    fn malformed(&mut self, pointer: &str) {
        let detail = "a condition is {all}, {any} or {questionId, operator, value}";
        self.refuse(pointer, "invalid", detail);
    }

    fn refuse(&mut self, pointer: &str, code: &str, detail: &str) {
        self.errors.push(FieldError::new(pointer, code, detail));
    }
}

/// Whether a comparison's value is one that its operator can use.
fn check_value(
    spec: &Spec,
    operator: Operator,
    value: &Value,
) -> Result<(), (&'static str, &'static str)> {
    let comparable = |value: &Value| comparable(spec, value).is_some();
    let known_ids = |value: &Value| {
        if known(spec, value) {
            Ok(())
        } else {
            Err(("unknown_id", "the question has nothing with such an id"))
        }
    };
    let fits = match operator {
        Equals | NotEquals => {
            known_ids(value)?;
            (comparable(value), "a value that an answer can have")
        }
        OneOf => {
            let values = value.as_array().map(Vec::as_slice).unwrap_or_default();
            for value in values {
                known_ids(value)?;
            }
            let fits = (1..=MOST_VALUES).contains(&values.len()) && values.iter().all(comparable);
            (fits, "a list of values that an answer can have, 1 to 100")
        }
        IncludesAny | IncludesAll | IncludesNone => {
            known_ids(value)?;
            let parts = parts(spec, value).map_or(0, |parts| parts.len());
            let fits = (1..=MOST_VALUES).contains(&parts);
            (fits, "ids that an answer can include, 1 to 100")
        }
        Gt | Gte | Lt | Lte => (comparable(value), "a value that an answer can have"),
        Between => {
            let fits = bounds(value).is_some_and(|(least, most)| {
                let ordered = order(least, most).is_some_and(std::cmp::Ordering::is_le);
                comparable(least) && comparable(most) && ordered
            });
            (fits, "two bounds, [least, most]")
        }
        Contains | StartsWith | EndsWith => {
            let part = value.as_str().unwrap_or_default();
            (!part.is_empty(), "a text, not empty")
        }
        Answered | Skipped => (value.is_null(), "this operator takes no value"),
        NpsBucket => {
            let fits = BUCKETS.iter().any(|(name, _)| value.as_str() == Some(name));
            (fits, "promoter, passive or detractor")
        }
    };
    if fits.0 {
        Ok(())
    } else {
        Err(("invalid", fits.1))
    }
}

/// The answer to a question, with what it is made of; none: unanswered.
pub type MaybeAnswer<'a> = Option<(&'a Spec, &'a Value)>;

/// Whether a condition holds. A comparison with a question that is not answered holds only as `skipped`.
pub fn holds<'a>(condition: &Value, answer: &impl Fn(&str) -> MaybeAnswer<'a>) -> bool {
    if let Some(parts) = condition.get("all").and_then(Value::as_array) {
        return parts.iter().all(|part| holds(part, answer));
    }
    if let Some(parts) = condition.get("any").and_then(Value::as_array) {
        return parts.iter().any(|part| holds(part, answer));
    }
    let text = |key| condition.get(key).and_then(Value::as_str);
    let (Some(id), Some(operator)) = (text("questionId"), text("operator").and_then(operator))
    else {
        return false;
    };
    let value = condition.get("value").unwrap_or(&Value::Null);
    match answer(id) {
        None => operator == Skipped,
        Some((spec, answer)) => compare(spec, operator, answer, value),
    }
}

fn compare(spec: &Spec, operator: Operator, answer: &Value, value: &Value) -> bool {
    let same = |value: &Value| {
        let of_answer = comparable(spec, answer);
        of_answer.is_some() && of_answer == comparable(spec, value)
    };
    let included = |all: bool| {
        let (Some(has), Some(wanted)) = (parts(spec, answer), parts(spec, value)) else {
            return false;
        };
        if all {
            wanted.iter().all(|part| has.contains(part))
        } else {
            wanted.iter().any(|part| has.contains(part))
        }
    };
    let ordered = |value: &Value, fits: fn(std::cmp::Ordering) -> bool| {
        order(answer, value).is_some_and(fits)
    };
    let words = || answer.as_str().zip(value.as_str());
    match operator {
        Equals => same(value),
        NotEquals => !same(value),
        OneOf => value.as_array().into_iter().flatten().any(same),
        IncludesAny => included(false),
        IncludesAll => included(true),
        IncludesNone => !included(false),
        Gt => ordered(value, std::cmp::Ordering::is_gt),
        Gte => ordered(value, std::cmp::Ordering::is_ge),
        Lt => ordered(value, std::cmp::Ordering::is_lt),
        Lte => ordered(value, std::cmp::Ordering::is_le),
        Between => bounds(value).is_some_and(|(least, most)| {
            ordered(least, std::cmp::Ordering::is_ge) && ordered(most, std::cmp::Ordering::is_le)
        }),
        Contains => words().is_some_and(|(text, part)| text.contains(part)),
        StartsWith => words().is_some_and(|(text, part)| text.starts_with(part)),
        EndsWith => words().is_some_and(|(text, part)| text.ends_with(part)),
        Answered => true,
        Skipped => false,
        NpsBucket => answer.as_i64().and_then(bucket) == value.as_str(),
    }
}
