//! Taking answers: whether each is what its question takes, and whether the way leads by it.

use std::collections::BTreeMap;

use nudge_apps::App;
use nudge_campaigns::surveys::flow::way::Way;
use nudge_campaigns::surveys::flow::{Answers, Walker, answer};
use nudge_db::{Timestamp, Tx};
use nudge_platform::field_error::FieldError;
use nudge_records::instructions;
use nudge_records::subjects::AliasView;
use serde_json::Value;
use serde_json::value::RawValue;
use uuid::Uuid;

use super::starting::find_or_open;
use super::{
    Answer, Attempt, AttemptStep, Error, Given, State, Whole, next, save, tally, unchanged,
};

/// Takes answers: all of them, or none. The subject is locked.
pub async fn take_answers(
    tx: &mut Tx,
    app: &App,
    subject: &AliasView,
    id: Uuid,
    given: &[Given],
    now: Timestamp,
) -> Result<AttemptStep, Error> {
    let attempt = find_or_open(tx, app, subject, id, now).await?;
    let whole = Whole::read(tx, attempt).await?;
    let walker = Walker::new(&whole.flow);
    let before = whole.values();
    let checked = check_values(&walker, given)?;
    if whole.attempt.state == State::Completed {
        let repeats = |(id, value): (&String, &Value)| before.get(id) == Some(value);
        if !checked.iter().all(repeats) {
            return Err(Error::Completed);
        }
        // The answer that got lost: what followed then.
        let last = whole.attempt.last_question_id.as_deref();
        let next = next(&walker.way(&before), last);
        return Ok(unchanged(next, whole.attempt));
    }
    let mut after = before.clone();
    after.extend(checked.clone());
    let way = walker.way(&after);
    check_places(&way, given)?;
    if !whole.flow.back_navigation {
        check_direction(&whole, &walker.way(&before), &checked, given)?;
    }

    let mut attempt = whole.attempt.clone();
    // Where nobody goes back, an answer that is sent again late does not either.
    let furthest = attempt.last_question_id.as_ref();
    let furthest = furthest.filter(|_| !whole.flow.back_navigation);
    let answered = checked.keys().chain(furthest);
    let places = answered.filter_map(|id| Some((way.place(id)?, id)));
    attempt.last_question_id = places.max().map(|(_, id)| id.clone());
    let last = attempt.last_question_id.as_deref();
    attempt.position_question_id = way.position(last).map(|question| question.id.clone());
    attempt.state = State::Started;
    attempt.active_at = now;
    let next = next(&way, last);
    let asked_at = asked_at(tx, &attempt, given).await?;
    let answers = merged(&whole, &checked, given, asked_at, &way);
    save(tx, &whole, &walker, &attempt, &answers).await?;
    Ok(AttemptStep {
        attempt,
        next,
        survey_ended: false,
    })
}

/// Checks each answer against its question; answers the values as they are kept.
fn check_values(walker: &Walker<'_>, given: &[Given]) -> Result<Answers, Error> {
    let mut errors = Vec::new();
    let mut checked = Answers::new();
    for (index, given) in given.iter().enumerate() {
        let Some((question, Some(spec))) = walker.question(&given.question_id) else {
            let pointer = format!("/answers/{index}/questionId");
            let detail = "the survey has no question with this id";
            errors.push(FieldError::new(pointer, "unknown_id", detail));
            continue;
        };
        let value = given.value.as_deref().map_or("null", RawValue::get);
        // One at a time, and nothing of it is kept but what its question takes.
        let Ok(value) = serde_json::from_str::<Value>(value) else {
            let pointer = format!("/answers/{index}/value");
            let detail = "a number within reach, or a text of Unicode";
            errors.push(FieldError::new(pointer, "invalid", detail));
            continue;
        };
        match answer::check(question, spec, &value) {
            Ok(value) => drop(checked.insert(question.id.clone(), value)),
            Err(refusal) => {
                let pointer = format!("/answers/{index}/value{}", refusal.pointer);
                errors.push(FieldError::new(pointer, refusal.code, refusal.detail));
            }
        }
    }
    if errors.is_empty() {
        Ok(checked)
    } else {
        Err(Error::Invalid(errors))
    }
}

/// Every answer is to a question that the way leads by.
fn check_places(way: &Way<'_>, given: &[Given]) -> Result<(), Error> {
    let mut errors = Vec::new();
    for (index, given) in given.iter().enumerate() {
        if way.place(&given.question_id).is_none() {
            let pointer = format!("/answers/{index}/questionId");
            let detail = "the answers do not lead to this question";
            errors.push(FieldError::new(pointer, "not_reached", detail));
        }
    }
    if errors.is_empty() {
        Ok(())
    } else {
        Err(Error::Invalid(errors))
    }
}

/// Without back navigation nobody answers a question again, and otherwise, that lies behind the one answered last.
/// What was answered together with that may be sent again together.
fn check_direction(
    whole: &Whole,
    way: &Way<'_>,
    checked: &Answers,
    given: &[Given],
) -> Result<(), Error> {
    let last = whole.attempt.last_question_id.as_deref();
    let Some(last) = last.filter(|last| !checked.contains_key(*last)) else {
        return Ok(());
    };
    let here = way.place(last);
    let mut errors = Vec::new();
    for (index, given) in given.iter().enumerate() {
        let known = whole.answers.get(&given.question_id);
        let changes =
            known.is_some_and(|known| checked.get(&given.question_id) != Some(&known.value));
        let place = way.place(&given.question_id);
        if changes && place.is_some_and(|place| Some(place) < here) {
            let pointer = format!("/answers/{index}/questionId");
            let detail = "this survey does not allow going back to earlier questions";
            errors.push(FieldError::new(pointer, "no_back_navigation", detail));
        }
    }
    if errors.is_empty() {
        Ok(())
    } else {
        Err(Error::Invalid(errors))
    }
}

/// The time before which nobody has answered, whatever the device's clock says: when the instruction of the attempt was
/// made. Who was offline has answered before the attempt's start. Only answers that claim so need to be checked.
async fn asked_at(
    tx: &mut Tx,
    attempt: &Attempt,
    given: &[Given],
) -> Result<Option<Timestamp>, Error> {
    let started_at = attempt.started_at;
    let Some(id) = attempt.instruction_id else {
        return Ok(None);
    };
    if given.iter().all(|given| given.answered_at >= started_at) {
        return Ok(None);
    }
    let found = instructions::store::find(tx, attempt.app_id, attempt.subject_id, id).await?;
    Ok(found.map(|found| found.created_at))
}

/// All answers after some were given. Those of other ways are kept, and not counted.
fn merged(
    whole: &Whole,
    checked: &Answers,
    given: &[Given],
    asked_at: Option<Timestamp>,
    way: &Way<'_>,
) -> BTreeMap<String, Answer> {
    let mut answers = whole.answers.clone();
    // Of several answers to one question the last counts.
    let last: BTreeMap<&str, &Given> = given
        .iter()
        .map(|given| (given.question_id.as_str(), given))
        .collect();
    for given in last.into_values() {
        let Some(value) = checked.get(&given.question_id) else {
            continue;
        };
        let answer = Answer {
            value: value.clone(),
            counted: false,
            answered_at: asked_at.map_or(given.answered_at, |at| at.max(given.answered_at)),
        };
        let id = given.question_id.clone();
        // Saying the same again does not make it newer.
        if answers
            .get(&id)
            .is_none_or(|known| known.value != answer.value)
        {
            answers.insert(id, answer);
        }
    }
    let counted = tally::counted(way);
    for (id, answer) in &mut answers {
        answer.counted = counted.contains(id);
    }
    answers
}
