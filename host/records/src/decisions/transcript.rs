//! What a plugin asked in a call, and what it was told.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use nudge_wasm::trigger::Facts;
use nudge_wasm::{FactsUnavailable, PastEvent, Value};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

/// What is kept of one call's questions and answers, in bytes. A call that asks for more can't be made again.
const MOST_BYTES: usize = 4 << 20;
/// What a question takes besides its texts, about.
const QUESTION_BYTES: usize = 32;

/// A subject and the name of something about it.
type About = (u32, String);

/// A question about a subject's earlier events of a name.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct HistoryQuestion {
    /// The subject's number in the batch.
    pub subject: u32,
    /// The events' name.
    pub name: String,
    /// The instant from which on events count, in microseconds since 1970.
    pub since: Option<i64>,
    /// How many of them are answered at the most.
    pub at_most: u32,
}

impl HistoryQuestion {
    /// A plugin's question.
    pub fn new(subject: u32, name: &str, since: Option<i64>, at_most: u32) -> Self {
        Self {
            subject,
            name: name.to_owned(),
            since,
            at_most,
        }
    }
}

/// Questions with their answers. Within a call the same question has the same answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Heard {
    /// Saved properties.
    pub properties: BTreeMap<About, Option<Value>>,
    /// Facts.
    pub facts: BTreeMap<About, Option<Value>>,
    /// Counts of events.
    pub counts: BTreeMap<HistoryQuestion, u32>,
    /// Events of the past, by their numbers.
    pub histories: BTreeMap<HistoryQuestion, Vec<i64>>,
    /// States by campaign and subject.
    pub states: BTreeMap<(u32, u32), Option<Vec<u8>>>,
}

/// Takes down what a plugin asks in a call. Cheap to clone; all clones are one transcript.
#[derive(Clone, Debug, Default)]
pub struct Transcript(Arc<Mutex<Taken>>);

#[derive(Debug, Default)]
struct Taken {
    heard: Heard,
    bytes: usize,
}

impl Transcript {
    fn take(&self, bytes: usize, note: impl FnOnce(&mut Heard)) {
        let mut taken = self.0.lock();
        if taken.bytes > MOST_BYTES {
            return;
        }
        taken.bytes += QUESTION_BYTES + bytes;
        if taken.bytes > MOST_BYTES {
            taken.heard = Heard::default();
        } else {
            note(&mut taken.heard);
        }
    }

    /// A saved property was asked for.
    pub fn property(&self, subject: u32, key: &str, answer: Option<&Value>) {
        self.take(key.len() + size(answer), |heard| {
            heard
                .properties
                .insert((subject, key.to_owned()), answer.cloned());
        });
    }

    /// A fact was asked for.
    pub fn fact(&self, subject: u32, name: &str, answer: Option<&Value>) {
        self.take(name.len() + size(answer), |heard| {
            heard
                .facts
                .insert((subject, name.to_owned()), answer.cloned());
        });
    }

    /// Events were counted.
    pub fn count(&self, question: HistoryQuestion, answer: u32) {
        self.take(question.name.len(), |heard| {
            heard.counts.insert(question, answer);
        });
    }

    /// Events of the past were asked for; `answer` are their numbers.
    pub fn history(&self, question: HistoryQuestion, answer: Vec<i64>) {
        let bytes = question.name.len() + answer.len() * size_of::<i64>();
        self.take(bytes, |heard| {
            heard.histories.insert(question, answer);
        });
    }

    /// A state was asked for.
    pub fn state(&self, campaign: u32, subject: u32, answer: Option<&[u8]>) {
        self.take(answer.map_or(0, <[u8]>::len), |heard| {
            heard
                .states
                .insert((campaign, subject), answer.map(<[u8]>::to_vec));
        });
    }

    /// Everything, once the call is over. None: it was too much.
    pub fn finish(self) -> Option<Heard> {
        let mut taken = self.0.lock();
        (taken.bytes <= MOST_BYTES).then(|| std::mem::take(&mut taken.heard))
    }
}

fn size(value: Option<&Value>) -> usize {
    match value {
        Some(Value::Text(text) | Value::Json(text)) => text.len(),
        _ => 0,
    }
}

/// Answers a plugin's questions as they were answered before.
pub struct Replay {
    /// The questions and answers.
    pub heard: Heard,
    /// The events that the histories name, by number.
    pub events: HashMap<i64, PastEvent>,
    /// Counts the questions that were not asked before.
    pub new_questions: Arc<AtomicU32>,
}

impl Replay {
    fn known<T>(&self, answer: Option<&T>) -> Option<T>
    where
        T: Clone,
    {
        if answer.is_none() {
            self.new_questions.fetch_add(1, Ordering::Relaxed);
        }
        answer.cloned()
    }
}

impl Facts for Replay {
    fn subject_property(
        &mut self,
        subject: u32,
        key: &str,
    ) -> Result<Option<Value>, FactsUnavailable> {
        let answer = self.heard.properties.get(&(subject, key.to_owned()));
        Ok(self.known(answer).flatten())
    }

    fn subject_fact(
        &mut self,
        subject: u32,
        name: &str,
    ) -> Result<Option<Value>, FactsUnavailable> {
        let answer = self.heard.facts.get(&(subject, name.to_owned()));
        Ok(self.known(answer).flatten())
    }

    fn count_events(
        &mut self,
        subject: u32,
        name: &str,
        since: Option<i64>,
        at_most: u32,
    ) -> Result<u32, FactsUnavailable> {
        let question = HistoryQuestion::new(subject, name, since, at_most);
        let answer = self.heard.counts.get(&question);
        Ok(self.known(answer).unwrap_or_default())
    }

    fn recent_events(
        &mut self,
        subject: u32,
        name: &str,
        since: Option<i64>,
        limit: u32,
    ) -> Result<Vec<PastEvent>, FactsUnavailable> {
        let question = HistoryQuestion::new(subject, name, since, limit);
        let answer = self.heard.histories.get(&question);
        let seqs = self.known(answer).unwrap_or_default();
        let events = seqs.iter().filter_map(|seq| self.events.get(seq).cloned());
        Ok(events.collect())
    }

    fn state(&mut self, campaign: u32, subject: u32) -> Option<Vec<u8>> {
        let answer = self.heard.states.get(&(campaign, subject));
        self.known(answer).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transcript_answers_as_it_heard() {
        let transcript = Transcript::default();
        let plan = Value::Text("pro".to_owned());
        transcript.property(1, "plan", Some(&plan));
        transcript.property(1, "age", None);
        transcript.count(HistoryQuestion::new(1, "purchase", None, 10), 4);
        transcript.state(0, 1, Some(b"s"));
        let new_questions = Arc::<AtomicU32>::default();
        let mut replay = Replay {
            heard: transcript.finish().unwrap(),
            events: HashMap::new(),
            new_questions: Arc::clone(&new_questions),
        };
        assert_eq!(replay.subject_property(1, "plan"), Ok(Some(plan)));
        assert_eq!(replay.subject_property(1, "age"), Ok(None));
        assert_eq!(replay.count_events(1, "purchase", None, 10), Ok(4));
        assert_eq!(replay.state(0, 1), Some(b"s".to_vec()));
        assert_eq!(new_questions.load(Ordering::Relaxed), 0);
        assert_eq!(replay.count_events(1, "purchase", None, 9), Ok(0));
        assert_eq!(new_questions.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn a_transcript_of_the_largest_size_is_kept_and_one_past_it_is_not() {
        let keep = |bytes: usize| {
            let transcript = Transcript::default();
            transcript.state(0, 0, Some(&vec![0; bytes]));
            transcript.finish().is_some()
        };
        assert!(keep(MOST_BYTES - QUESTION_BYTES));
        assert!(!keep(MOST_BYTES - QUESTION_BYTES + 1));
    }
}
