//! What a plugin is told that is asked once more.

use std::collections::HashMap;
use std::sync::Arc;

use nudge_db::Tx;
use nudge_records::decisions::transcript::{Heard, HistoryQuestion};
use nudge_records::events;
use nudge_records::events::store::Stored;
use nudge_wasm::trigger::Facts;
use nudge_wasm::{FactsUnavailable, PastEvent, Value};
use uuid::Uuid;

use crate::facts::View;

/// Answers of then, and where there are none, as of the event.
pub(super) struct Recalled {
    /// The answers of then.
    pub heard: Heard,
    /// The numbers that the campaign and the subject had in the decision.
    pub places: (u32, u32),
    /// The events that histories name.
    pub past: HashMap<i64, PastEvent>,
    /// Answers the rest.
    pub now: View,
}

/// Events of an app by their numbers.
pub(super) async fn events_at(
    tx: &mut Tx,
    app_id: Uuid,
    seqs: &[i64],
) -> nudge_db::Result<HashMap<i64, Stored>> {
    let found = events::store::at(tx, seqs).await?.into_iter();
    Ok(found
        .filter(|(of, _, _)| *of == app_id)
        .map(|(_, _, stored)| (stored.seq, stored))
        .collect())
}

/// An event as plugins are told of it, by its number.
pub(super) fn past((seq, stored): (i64, Stored)) -> (i64, PastEvent) {
    let event = &stored.event;
    let past = PastEvent {
        id: event.id,
        timestamp: event.timestamp.0,
        properties: Arc::clone(&event.properties),
    };
    (seq, past)
}

impl Facts for Recalled {
    fn subject_property(
        &mut self,
        subject: u32,
        key: &str,
    ) -> Result<Option<Value>, FactsUnavailable> {
        let heard = self.heard.properties.get(&(self.places.1, key.to_owned()));
        match heard {
            Some(answer) => Ok(answer.clone()),
            None => self.now.subject_property(subject, key),
        }
    }

    fn subject_fact(
        &mut self,
        subject: u32,
        name: &str,
    ) -> Result<Option<Value>, FactsUnavailable> {
        let heard = self.heard.facts.get(&(self.places.1, name.to_owned()));
        match heard {
            Some(answer) => Ok(answer.clone()),
            None => self.now.subject_fact(subject, name),
        }
    }

    fn count_events(
        &mut self,
        subject: u32,
        name: &str,
        since: Option<i64>,
        at_most: u32,
    ) -> Result<u32, FactsUnavailable> {
        let question = HistoryQuestion::new(self.places.1, name, since, at_most);
        match self.heard.counts.get(&question) {
            Some(answer) => Ok(*answer),
            None => self.now.count_events(subject, name, since, at_most),
        }
    }

    fn recent_events(
        &mut self,
        subject: u32,
        name: &str,
        since: Option<i64>,
        limit: u32,
    ) -> Result<Vec<PastEvent>, FactsUnavailable> {
        let question = HistoryQuestion::new(self.places.1, name, since, limit);
        match self.heard.histories.get(&question) {
            Some(seqs) => {
                let known = seqs.iter().filter_map(|seq| self.past.get(seq).cloned());
                Ok(known.collect())
            }
            None => self.now.recent_events(subject, name, since, limit),
        }
    }

    fn state(&mut self, campaign: u32, subject: u32) -> Option<Vec<u8>> {
        match self.heard.states.get(&self.places) {
            Some(answer) => answer.clone(),
            None => self.now.state(campaign, subject),
        }
    }
}
