//! The way that answers lead through a flow (contract 7): first match wins; without one, the next question;
//! after the last, the first end screen.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

use super::question::{Question, Spec};
use super::{Branch, Flow, Target, condition};

/// Answers by question. Null is a question that was passed over, except for a statement, whose answer it is.
pub type Answers = BTreeMap<String, Value>;

/// A flow made ready to be walked. One that was refused by [`super::check()`] ends somewhere all the same.
#[derive(Debug)]
pub struct Walker<'f> {
    flow: &'f Flow,
    places: HashMap<&'f str, usize>,
    specs: Vec<Option<Spec>>,
    branches: Vec<Vec<&'f Branch>>,
}

/// What became of a question on a way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It was answered.
    Answered,
    /// The person passed over it.
    Passed,
    /// There is no word of it yet.
    Open,
}

/// A question on a way.
#[derive(Clone, Copy, Debug)]
pub struct Stop<'f> {
    /// The question.
    pub question: &'f Question,
    /// What became of it.
    pub fate: Fate,
}

/// Where a way ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End<'f> {
    /// At its last question, which must be answered first.
    Required,
    /// At an end screen.
    Screen(&'f str),
    /// After the last question of a flow without end screens.
    Done,
}

/// A way through a flow.
#[derive(Clone, Debug)]
pub struct Way<'f> {
    /// The questions that it leads by, in order.
    pub stops: Vec<Stop<'f>>,
    /// Where it ends.
    pub end: End<'f>,
}

impl<'f> Walker<'f> {
    /// Makes a flow ready.
    pub fn new(flow: &'f Flow) -> Self {
        let numbered = flow.questions.iter().enumerate();
        let places: HashMap<&str, usize> = numbered
            .map(|(index, question)| (question.id.as_str(), index))
            .collect();
        let mut branches = vec![Vec::new(); flow.questions.len()];
        for branch in &flow.branches {
            let place = places.get(branch.from.as_str());
            if let Some(from) = place.and_then(|index| branches.get_mut(*index)) {
                from.push(branch);
            }
        }
        let specs = flow.questions.iter().map(|question| question.spec().ok());
        Self {
            flow,
            places,
            specs: specs.collect(),
            branches,
        }
    }

    /// A question, and what its answers are made of.
    pub fn question(&self, id: &str) -> Option<(&'f Question, Option<&Spec>)> {
        let place = *self.places.get(id)?;
        let question = self.flow.questions.get(place)?;
        Some((question, self.specs.get(place)?.as_ref()))
    }

    /// The way that answers lead. Conditions know the answers of what the way has led by; whatever was answered
    /// on another way counts as skipped.
    pub fn way(&self, answers: &Answers) -> Way<'f> {
        let mut stops: Vec<Stop<'f>> = Vec::new();
        let mut behind: HashMap<&str, (&Spec, &Value)> = HashMap::new();
        let start = self.flow.start_question_id.as_deref();
        let mut place = start
            .and_then(|id| self.places.get(id).copied())
            .unwrap_or(0);
        let end = loop {
            let Some(question) = self.flow.questions.get(place) else {
                break self.first_screen();
            };
            let spec = self.specs.get(place).and_then(Option::as_ref);
            let fate = fate(spec, answers.get(&question.id));
            stops.push(Stop { question, fate });
            if let (Fate::Answered, Some(spec), Some(value)) =
                (fate, spec, answers.get(&question.id))
            {
                behind.insert(&question.id, (spec, value));
            }
            let may_be_left = !question.required || spec == Some(&Spec::Statement);
            if fate != Fate::Answered && !may_be_left {
                break End::Required;
            }
            // A flow with a cycle can't be saved; this ends whatever was.
            if stops.len() > self.flow.questions.len() {
                break End::Done;
            }
            match self.next(place, &behind) {
                Ok(next) => place = next,
                Err(end) => break end,
            }
        };
        Way { stops, end }
    }

    fn next(
        &self,
        place: usize,
        behind: &HashMap<&str, (&Spec, &Value)>,
    ) -> Result<usize, End<'f>> {
        let answer = |id: &str| behind.get(id).copied();
        let branches = self.branches.get(place).into_iter().flatten();
        for branch in branches {
            let taken = branch.when.as_ref();
            if taken.is_none_or(|condition| condition::holds(condition, &answer)) {
                return match &branch.to {
                    Target::QuestionId(id) => {
                        self.places.get(id.as_str()).copied().ok_or(End::Done)
                    }
                    Target::EndScreenId(id) => Err(End::Screen(id)),
                };
            }
        }
        if place + 1 < self.flow.questions.len() {
            Ok(place + 1)
        } else {
            Err(self.first_screen())
        }
    }

    fn first_screen(&self) -> End<'f> {
        let first = self.flow.end_screens.first();
        first.map_or(End::Done, |screen| End::Screen(&screen.id))
    }
}

fn fate(spec: Option<&Spec>, answer: Option<&Value>) -> Fate {
    match answer {
        None => Fate::Open,
        Some(Value::Null) if spec != Some(&Spec::Statement) => Fate::Passed,
        Some(_) => Fate::Answered,
    }
}

impl<'f> Way<'f> {
    /// Where a question is on the way.
    pub fn place(&self, id: &str) -> Option<usize> {
        self.stops.iter().position(|stop| stop.question.id == id)
    }

    /// The question to be asked next: after the one answered last, the first that there is no word of. None: the
    /// end is reached.
    pub fn position(&self, last: Option<&str>) -> Option<&'f Question> {
        let from = last
            .and_then(|id| self.place(id))
            .map_or(0, |place| place + 1);
        let open = |stop: &&Stop<'f>| stop.fate == Fate::Open;
        let next = self.stops.iter().skip(from).find(open);
        // Nothing is past a question that must be answered.
        let required = || {
            (self.end == End::Required)
                .then(|| self.stops.last())
                .flatten()
        };
        next.or_else(required).map(|stop| stop.question)
    }
}
