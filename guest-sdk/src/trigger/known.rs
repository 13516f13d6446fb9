//! Answers of the host that hold for a whole batch, so that a hundred campaigns ask no more than one.

use std::cell::RefCell;
use std::collections::BTreeMap;

use crate::value::Value;

/// A subject and what was asked about it.
type About = BTreeMap<u32, BTreeMap<String, Option<Value>>>;
/// An item, since when, and up to which number.
type Question = (u32, Option<i64>, u32);

/// What the host has answered.
#[derive(Debug, Default)]
pub(super) struct Known {
    properties: RefCell<About>,
    facts: RefCell<About>,
    counts: RefCell<BTreeMap<String, BTreeMap<Question, u32>>>,
}

impl Known {
    /// A saved property of a subject.
    pub(super) fn property(
        &self,
        subject: u32,
        key: &str,
        ask: impl FnOnce() -> Option<Value>,
    ) -> Option<Value> {
        about(&self.properties, subject, key, ask)
    }

    /// A fact about a subject.
    pub(super) fn fact(
        &self,
        subject: u32,
        name: &str,
        ask: impl FnOnce() -> Option<Value>,
    ) -> Option<Value> {
        about(&self.facts, subject, name, ask)
    }

    /// How many events of a name an item's subject has.
    pub(super) fn count(&self, question: Question, name: &str, ask: impl FnOnce() -> u32) -> u32 {
        let known = self
            .counts
            .borrow()
            .get(name)
            .and_then(|of| of.get(&question).copied());
        if let Some(known) = known {
            return known;
        }
        let count = ask();
        let mut counts = self.counts.borrow_mut();
        counts
            .entry(name.to_owned())
            .or_default()
            .insert(question, count);
        count
    }
}

fn about(
    known: &RefCell<About>,
    subject: u32,
    name: &str,
    ask: impl FnOnce() -> Option<Value>,
) -> Option<Value> {
    let answer = known
        .borrow()
        .get(&subject)
        .and_then(|of| of.get(name).cloned());
    if let Some(answer) = answer {
        return answer;
    }
    let answer = ask();
    let mut known = known.borrow_mut();
    known
        .entry(subject)
        .or_default()
        .insert(name.to_owned(), answer.clone());
    answer
}
