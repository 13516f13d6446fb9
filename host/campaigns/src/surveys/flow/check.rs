//! Whether a flow can be walked, whatever the answers (contract 7).

use std::collections::{HashMap, HashSet};

use nudge_platform::field_error::FieldError;

use super::condition::{Check, Questions};
use super::question::{TEXT, TITLE, check_id, check_text};
use super::{Flow, MOST_BRANCHES, MOST_END_SCREENS, MOST_QUESTIONS, Question, Spec, Target};

type Places<'f> = HashMap<&'f str, usize>;

/// What is wrong with a flow: questions that are not what their type takes, ids that are taken or lead nowhere,
/// conditions that can't hold, questions that nothing leads to, cycles.
pub fn check(flow: &Flow) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if !check_counts(flow, &mut errors) {
        return errors;
    }
    let (places, specs) = check_questions(flow, &mut errors);
    check_screens(flow, &mut errors);
    let questions = FlowQuestions {
        flow,
        places: &places,
        specs: &specs,
    };
    check_branches(flow, &questions, &mut errors);
    if errors.is_empty() {
        walk(flow, &places, &mut errors);
    }
    errors
}

fn check_counts(flow: &Flow, errors: &mut Vec<FieldError>) -> bool {
    for (key, count, most) in [
        ("questions", flow.questions.len(), MOST_QUESTIONS),
        ("branches", flow.branches.len(), MOST_BRANCHES),
        ("endScreens", flow.end_screens.len(), MOST_END_SCREENS),
    ] {
        if count > most {
            let detail = format!("a flow has at most {most} of them");
            errors.push(FieldError::new(
                format!("/flow/{key}"),
                "limit_exceeded",
                detail,
            ));
        }
    }
    errors.is_empty()
}

fn check_questions<'f>(
    flow: &'f Flow,
    errors: &mut Vec<FieldError>,
) -> (Places<'f>, Vec<Option<Spec>>) {
    let mut places = HashMap::new();
    let mut specs = Vec::with_capacity(flow.questions.len());
    for (index, question) in flow.questions.iter().enumerate() {
        let pointer = format!("/flow/questions/{index}");
        let id = format!("{pointer}/id");
        check_id(&id, &question.id, errors);
        if places.insert(question.id.as_str(), index).is_some() {
            errors.push(FieldError::new(
                id,
                "duplicate",
                "another question has this id",
            ));
        }
        check_text(&format!("{pointer}/title"), &question.title, TITLE, errors);
        if let Some(description) = &question.description {
            check_text(&format!("{pointer}/description"), description, TEXT, errors);
        }
        specs.push(match question.spec() {
            Ok(spec) => Some(spec),
            Err(found) => {
                errors.extend(found.into_iter().map(|error| FieldError {
                    pointer: format!("{pointer}{}", error.pointer),
                    ..error
                }));
                None
            }
        });
    }
    (places, specs)
}

fn check_screens(flow: &Flow, errors: &mut Vec<FieldError>) {
    let mut ids = HashSet::new();
    for (index, screen) in flow.end_screens.iter().enumerate() {
        let pointer = format!("/flow/endScreens/{index}");
        let id = format!("{pointer}/id");
        check_id(&id, &screen.id, errors);
        if !ids.insert(screen.id.as_str()) {
            errors.push(FieldError::new(
                id,
                "duplicate",
                "another end screen has this id",
            ));
        }
        screen.check(&pointer, errors);
    }
}

/// The questions of a flow, for its conditions.
struct FlowQuestions<'f> {
    flow: &'f Flow,
    places: &'f Places<'f>,
    specs: &'f [Option<Spec>],
}

impl Questions for FlowQuestions<'_> {
    fn find(&self, id: &str) -> Option<(&Question, Option<&Spec>)> {
        let place = *self.places.get(id)?;
        let spec = self.specs.get(place).and_then(Option::as_ref);
        Some((self.flow.questions.get(place)?, spec))
    }
}

fn check_branches(flow: &Flow, questions: &FlowQuestions<'_>, errors: &mut Vec<FieldError>) {
    let screens: HashSet<&str> = flow
        .end_screens
        .iter()
        .map(|screen| screen.id.as_str())
        .collect();
    if let Some(start) = &flow.start_question_id
        && !questions.places.contains_key(start.as_str())
    {
        errors.push(dangling("/flow/startQuestionId", start));
    }
    let mut ids = HashSet::new();
    for (index, branch) in flow.branches.iter().enumerate() {
        let pointer = format!("/flow/branches/{index}");
        let id = format!("{pointer}/id");
        check_id(&id, &branch.id, errors);
        if !ids.insert(branch.id.as_str()) {
            errors.push(FieldError::new(
                id,
                "duplicate",
                "another branch has this id",
            ));
        }
        if !questions.places.contains_key(branch.from.as_str()) {
            errors.push(dangling(format!("{pointer}/from"), &branch.from));
        }
        match &branch.to {
            Target::QuestionId(id) if !questions.places.contains_key(id.as_str()) => {
                errors.push(dangling(format!("{pointer}/to/questionId"), id));
            }
            Target::EndScreenId(id) if !screens.contains(id.as_str()) => {
                errors.push(dangling(format!("{pointer}/to/endScreenId"), id));
            }
            _ => {}
        }
        if let Some(condition) = &branch.when {
            Check::new(questions, errors).condition(condition, &format!("{pointer}/when"));
        }
    }
}

fn dangling(pointer: impl Into<String>, id: &str) -> FieldError {
    let detail = format!("the flow has nothing with the id `{id}`");
    FieldError::new(pointer, "unknown_id", detail)
}

/// Follows every way from the start. Depth first, with an explicit stack: flows come from outside.
fn walk(flow: &Flow, places: &Places<'_>, errors: &mut Vec<FieldError>) {
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
    let start = flow.start_question_id.as_deref();
    let start = start.and_then(|id| places.get(id).copied()).unwrap_or(0);
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
                    let detail = "the flow leads back to this question";
                    errors.push(FieldError::new(pointer, "cycle", detail));
                }
                _ => {}
            }
        }
    }
    for (index, state) in states.iter().enumerate() {
        if *state == State::Unseen {
            let pointer = format!("/flow/questions/{index}/id");
            let detail = "nothing leads to this question";
            errors.push(FieldError::new(pointer, "unreachable", detail));
        }
    }
}

fn successors(flow: &Flow, index: usize, places: &Places<'_>) -> Vec<usize> {
    let Some(question) = flow.questions.get(index) else {
        return Vec::new();
    };
    let mut next = Vec::new();
    let branches = flow.branches.iter();
    for branch in branches.filter(|branch| branch.from == question.id) {
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
