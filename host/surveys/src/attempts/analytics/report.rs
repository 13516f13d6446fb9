//! Results as people see them (contract 7). Pure.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use nudge_campaigns::surveys::flow::condition::bucket;
use nudge_campaigns::surveys::flow::{Question, QuestionType, Spec};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

use super::Facts;
use crate::attempts::tally::{Measure, OTHER, Tally};

/// Values of a distribution that has no end of them: numbers and days, the most frequent ones.
const MOST_VALUES: usize = 100;
/// Rows times columns of a matrix up to which pairs that nobody chose are listed.
const MOST_PAIRS: usize = 400;

/// Results of a survey.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// The survey.
    pub survey_id: Uuid,
    /// All attempts.
    pub totals: Totals,
    /// How far they came, in the order of the survey.
    pub funnel: Vec<Step>,
    /// What was answered.
    pub per_question: Vec<QuestionReport>,
}

/// Results of all attempts.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Totals {
    /// How often the survey was shown.
    pub shown: i64,
    /// Attempts.
    pub started: i64,
    /// Complete ones.
    pub completed: i64,
    /// Those that were dismissed, or silent for 30 minutes.
    pub abandoned: i64,
    /// Complete ones among those that were started, 0 to 1.
    pub completion_rate: f64,
}

/// A step of the funnel.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Step {
    /// What it is.
    pub step: StepKind,
    /// The question, where it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub question_id: Option<String>,
    /// How many came to it.
    pub reached: i64,
    /// How many of them answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answered: Option<i64>,
    /// How many of them went on without.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skipped: Option<i64>,
    /// How many went no further.
    pub dropped_off: i64,
    /// Those among the ones that came to it, 0 to 1.
    pub drop_off_rate: f64,
}

/// What a step of the funnel is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum StepKind {
    Shown,
    Started,
    Question,
    Completed,
}

/// Results of a question.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct QuestionReport {
    /// The question.
    pub question_id: String,
    /// Its type.
    pub r#type: QuestionType,
    /// What it asks.
    pub title: String,
    /// How many answered.
    pub responses: i64,
    /// How many went on without.
    pub skipped: i64,
    /// How often there is which value; with several options selected, shares add up to more than 1.
    pub distribution: Vec<Bar>,
    /// The net promoter score, of questions of the type `nps`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nps: Option<Nps>,
    /// The mean of answers that are numbers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean: Option<f64>,
    /// The newest answers, of questions that are answered in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub texts: Option<Vec<String>>,
}

/// How often there is a value.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct Bar {
    /// The value.
    pub value: Value,
    /// How often.
    pub count: i64,
    /// Of all answers to the question, 0 to 1.
    pub share: f64,
}

/// A net promoter score.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, ToSchema)]
pub struct Nps {
    /// Promoters less detractors in percent, -100 to 100.
    pub score: f64,
    /// Answers 9 and 10.
    pub promoters: i64,
    /// Answers 7 and 8.
    pub passives: i64,
    /// Answers 0 to 6.
    pub detractors: i64,
}

#[expect(clippy::cast_precision_loss, reason = "no count comes near 2^53")]
fn real(count: i64) -> f64 {
    count as f64
}

fn rate(part: i64, whole: i64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        real(part) / real(whole)
    }
}

fn count(tally: &Tally, question: &str, measure: Measure) -> i64 {
    let key = (question.to_owned(), measure, String::new());
    tally.0.get(&key).copied().unwrap_or_default()
}

/// Makes results of what they are made of.
pub fn make(survey_id: Uuid, facts: &Facts) -> Report {
    let of_attempts = |measure| count(&facts.tally, "", measure);
    let (started, completed) = (
        of_attempts(Measure::Started),
        of_attempts(Measure::Completed),
    );
    let live: i64 = facts.live.iter().map(|(_, count)| count).sum();
    let totals = Totals {
        shown: facts.shown + of_attempts(Measure::Alone),
        started,
        completed,
        abandoned: (started - completed - live).max(0),
        completion_rate: rate(completed, started),
    };
    Report {
        survey_id,
        totals,
        funnel: funnel(facts, totals),
        per_question: facts
            .questions
            .iter()
            .map(|question| per_question(facts, question))
            .collect(),
    }
}

fn step(kind: StepKind, reached: i64, dropped_off: i64) -> Step {
    Step {
        step: kind,
        question_id: None,
        reached,
        answered: None,
        skipped: None,
        dropped_off,
        drop_off_rate: rate(dropped_off, reached),
    }
}

fn funnel(facts: &Facts, totals: Totals) -> Vec<Step> {
    let unstarted = (totals.shown - totals.started).max(0);
    let mut funnel = vec![
        step(StepKind::Shown, totals.shown, unstarted),
        step(StepKind::Started, totals.started, 0),
    ];
    for question in &facts.questions {
        let of_question = |measure| count(&facts.tally, &question.id, measure);
        let is_here = |(at, _): &&(Option<String>, i64)| at.as_deref() == Some(&*question.id);
        let live: i64 = facts
            .live
            .iter()
            .filter(is_here)
            .map(|(_, count)| count)
            .sum();
        let dropped_off = (of_question(Measure::At) - live).max(0);
        funnel.push(Step {
            question_id: Some(question.id.clone()),
            answered: Some(of_question(Measure::Answered)),
            skipped: Some(of_question(Measure::Skipped)),
            ..step(
                StepKind::Question,
                of_question(Measure::Reached),
                dropped_off,
            )
        });
    }
    funnel.push(step(StepKind::Completed, totals.completed, 0));
    funnel
}

fn per_question(facts: &Facts, question: &Question) -> QuestionReport {
    let responses = count(&facts.tally, &question.id, Measure::Answered);
    let mut values = BTreeMap::new();
    let from = (question.id.clone(), Measure::Value, String::new());
    let of_question = facts.tally.0.range(from..);
    for ((id, measure, value), count) in of_question {
        if *id != question.id || *measure != Measure::Value {
            break;
        }
        values.insert(value.clone(), *count);
    }
    let spec = question.spec().ok();
    let is_number = matches!(spec, Some(Spec::Scale { .. } | Spec::Number { .. }));
    let texts = facts.texts.iter().find(|(id, _)| *id == question.id);
    QuestionReport {
        question_id: question.id.clone(),
        r#type: question.r#type,
        title: question.title.clone(),
        responses,
        skipped: count(&facts.tally, &question.id, Measure::Skipped),
        nps: (question.r#type == QuestionType::Nps).then(|| nps(&values, responses)),
        mean: is_number.then(|| mean(&values)).flatten(),
        texts: texts.map(|(_, texts)| texts.clone()),
        distribution: distribution(spec.as_ref(), values, responses),
    }
}

/// Values that can be listed are, also those that nobody chose; others are, as far as there are answers.
fn distribution(
    spec: Option<&Spec>,
    mut values: BTreeMap<String, i64>,
    responses: i64,
) -> Vec<Bar> {
    let mut bars = Vec::new();
    let mut push = |value: Value, count: i64| {
        let share = rate(count, responses);
        bars.push(Bar {
            value,
            count,
            share,
        });
    };
    for value in spec.map(possible).unwrap_or_default() {
        let count = values.remove(&value.to_string()).unwrap_or(0);
        push(value, count);
    }
    // Values of earlier versions, and those that can't be listed.
    let mut rest: Vec<(Value, i64)> = values
        .into_iter()
        .filter_map(|(text, count)| Some((serde_json::from_str(&text).ok()?, count)))
        .collect();
    // Numbers that are as frequent go up; other values stay in the order of their texts.
    rest.sort_by(|(value, count), (other, other_count)| {
        let by_number = || value.as_f64().partial_cmp(&other.as_f64());
        let by_count = other_count.cmp(count);
        by_count.then_with(|| by_number().unwrap_or(Ordering::Equal))
    });
    rest.truncate(MOST_VALUES);
    for (value, count) in rest {
        push(value, count);
    }
    bars
}

fn possible(spec: &Spec) -> Vec<Value> {
    let ids = |ids: &[String]| {
        ids.iter()
            .map(|id| Value::from(id.as_str()))
            .collect::<Vec<_>>()
    };
    match spec {
        Spec::Scale { least, most } => (*least..=*most).map(Value::from).collect(),
        Spec::Thumbs => vec!["up".into(), "down".into()],
        Spec::Single { options, other } | Spec::Several { options, other, .. } => {
            let mut values = ids(options);
            let is_new = !options.iter().any(|option| option == OTHER);
            values.extend((*other && is_new).then(|| Value::from(OTHER)));
            values
        }
        Spec::Ranking(options) => ids(options),
        Spec::Consent => vec![true.into()],
        Spec::Link => vec!["clicked".into()],
        Spec::Matrix { rows, columns } if rows.len() * columns.len() <= MOST_PAIRS => {
            let pairs = rows
                .iter()
                .flat_map(|row| columns.iter().map(move |column| (row, column)));
            pairs
                .map(|(row, column)| serde_json::json!({row: column}))
                .collect()
        }
        Spec::Matrix { .. }
        | Spec::Text { .. }
        | Spec::Number { .. }
        | Spec::Date { .. }
        | Spec::Contact(_)
        | Spec::Statement => Vec::new(),
    }
}

/// The mean of the values that are numbers. What does not add up within the range of numbers is added up by shares.
fn mean(values: &BTreeMap<String, i64>) -> Option<f64> {
    let numbers = values.iter();
    let numbers = numbers.filter_map(|(text, count)| Some((text.parse().ok()?, real(*count))));
    let numbers: Vec<(f64, f64)> = numbers.collect();
    let answers: f64 = numbers.iter().map(|(_, count)| count).sum();
    let total: f64 = numbers.iter().map(|(value, count)| value * count).sum();
    let mean = if total.is_finite() {
        total / answers
    } else {
        let shares = numbers
            .iter()
            .map(|(value, count)| value * (count / answers));
        shares.sum()
    };
    mean.is_finite().then_some(mean)
}

fn nps(values: &BTreeMap<String, i64>, responses: i64) -> Nps {
    let of_bucket = |name: &str| -> i64 {
        let scores = values
            .iter()
            .filter(|(score, _)| score.parse().ok().and_then(bucket) == Some(name));
        scores.map(|(_, count)| count).sum()
    };
    let (promoters, detractors) = (of_bucket("promoter"), of_bucket("detractor"));
    Nps {
        score: rate((promoters - detractors) * 100, responses),
        promoters,
        passives: of_bucket("passive"),
        detractors,
    }
}
