//! What an attempt adds to the counts that results are made of. Pure: results are sums of this over attempts.

use std::collections::{BTreeMap, BTreeSet};
use strum::{EnumString, IntoStaticStr};

use nudge_campaigns::surveys::flow::way::{Fate, Stop, Way};
use nudge_campaigns::surveys::flow::{Answers, End, Spec, Walker};
use serde_json::{Value, json};

/// What is counted of a question, or of attempts as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, EnumString, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Measure {
    /// Attempts that began.
    Started,
    /// Those among them that no instruction caused.
    Alone,
    /// Attempts that are complete.
    Completed,
    /// Attempts that came to the question.
    Reached,
    /// Those among them with an answer.
    Answered,
    /// Those that went on without.
    Skipped,
    /// Those that are at the question.
    At,
    /// Answers with a value, or with an option among others.
    Value,
}

impl Measure {
    /// The measure's name in the database.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The measure of a name.
    pub fn parse(name: &str) -> Option<Self> {
        name.parse().ok()
    }
}

/// What is counted: of which question (none: of the attempt), what, and which value (a JSON text, or empty).
pub type Key = (String, Measure, String);

/// Numbers of attempts by what is counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally(pub BTreeMap<Key, i64>);

/// How an attempt stands, as far as counting goes.
#[derive(Clone, Copy, Debug)]
pub struct AttemptState<'a> {
    /// Whether it is complete.
    pub completed: bool,
    /// Whether no instruction caused it.
    pub alone: bool,
    /// The question answered last.
    pub last: Option<&'a str>,
}

impl Tally {
    fn add(&mut self, question: &str, measure: Measure) {
        self.add_value(question, measure, String::new());
    }

    fn add_value(&mut self, question: &str, measure: Measure, value: String) {
        let key = (question.to_owned(), measure, value);
        *self.0.entry(key).or_default() += 1;
    }

    /// Adds another tally.
    pub fn merge(&mut self, other: &Self) {
        for (key, count) in &other.0 {
            *self.0.entry(key.clone()).or_default() += count;
        }
    }

    /// What leads from an earlier tally to this one: only what is different.
    #[must_use]
    pub fn since(mut self, before: &Self) -> Self {
        for (key, count) in &before.0 {
            *self.0.entry(key.clone()).or_default() -= count;
        }
        self.0.retain(|_, change| *change != 0);
        self
    }
}

/// The questions of a way that were come to, each with what became of it and whether the person is at it.
fn reached<'w, 'f>(
    way: &'w Way<'f>,
    standing: AttemptState<'_>,
) -> impl Iterator<Item = (&'w Stop<'f>, bool)> {
    let position = way.position(standing.last).filter(|_| !standing.completed);
    let at = position.and_then(|question| way.place(&question.id));
    let farthest = way.stops.iter().rposition(|stop| stop.fate != Fate::Open);
    let last = match (standing.completed, at, farthest) {
        (true, ..) => way.stops.len(),
        (false, Some(at), farthest) => at.max(farthest.unwrap_or(0)) + 1,
        (false, None, farthest) => farthest.map_or(0, |farthest| farthest + 1),
    };
    let stops = way.stops.iter().take(last).enumerate();
    stops.map(move |(place, stop)| (stop, at == Some(place)))
}

/// Counts one attempt.
pub fn tally(walker: &Walker<'_>, answers: &Answers, standing: AttemptState<'_>) -> Tally {
    let mut tally = Tally::default();
    tally.add("", Measure::Started);
    if standing.alone {
        tally.add("", Measure::Alone);
    }
    if standing.completed {
        tally.add("", Measure::Completed);
    }
    let way = walker.way(answers);
    for (stop, is_at) in reached(&way, standing) {
        let id = &stop.question.id;
        tally.add(id, Measure::Reached);
        let spec = walker.question(id).and_then(|(_, spec)| spec);
        match (stop.fate, spec, answers.get(id)) {
            (Fate::Answered, Some(spec), Some(value)) => {
                tally.add(id, Measure::Answered);
                for value in values(spec, value) {
                    tally.add_value(id, Measure::Value, value.to_string());
                }
            }
            _ if is_at => tally.add(id, Measure::At),
            // Whoever is past a statement has seen it, whether or not the SDK says so.
            (_, Some(Spec::Statement), _) => tally.add(id, Measure::Answered),
            _ => tally.add(id, Measure::Skipped),
        }
    }
    tally
}

/// The questions whose answers are in results: the way leads by.
pub fn counted(way: &Way<'_>) -> BTreeSet<String> {
    let answered = way.stops.iter().filter(|stop| stop.fate == Fate::Answered);
    answered.map(|stop| stop.question.id.clone()).collect()
}

/// Whether an attempt with these answers can be complete; otherwise the question that is missing.
pub fn missing<'f>(way: &Way<'f>) -> Option<&'f str> {
    let last = way.stops.last().filter(|_| way.end == End::Required);
    last.map(|stop| stop.question.id.as_str())
}

/// What a distribution counts of an answer: the value, each option, the option ranked first, each row with its
/// column. Words are in no distribution.
pub fn values(spec: &Spec, value: &Value) -> Vec<Value> {
    let other = || Value::from(OTHER);
    match spec {
        Spec::Scale { .. }
        | Spec::Thumbs
        | Spec::Number { .. }
        | Spec::Date { .. }
        | Spec::Consent
        | Spec::Link => vec![value.clone()],
        Spec::Single { .. } => vec![value.get("optionId").cloned().unwrap_or_else(other)],
        Spec::Several { .. } => {
            let ids = value.get("optionIds").and_then(Value::as_array);
            let mut values = ids.cloned().unwrap_or_default();
            // An option may be called so, too: both are one answer with the same value.
            if value.get("other").is_some() && !values.contains(&other()) {
                values.push(other());
            }
            values
        }
        Spec::Ranking(_) => {
            let first = value.pointer("/optionIds/0").cloned();
            first.into_iter().collect()
        }
        Spec::Matrix { .. } => {
            let pairs = value.as_object().into_iter().flatten();
            pairs.map(|(row, column)| json!({row: column})).collect()
        }
        Spec::Text { .. } | Spec::Contact(_) | Spec::Statement => Vec::new(),
    }
}

/// What words of one's own are called in a distribution.
pub const OTHER: &str = "other";
