//! What is kept of a call, so that it can be made again.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use nudge_records::decisions::record::{Campaign, Decided, Decider, Item, Record};
use nudge_records::decisions::transcript::Transcript;
use nudge_records::decisions::{Config, Recorded};
use nudge_wasm::trigger;
use uuid::Uuid;

use super::evaluate::{Evaluation, Routes};

impl Evaluation {
    /// Keeps a call that is about to take effect.
    pub(super) fn record(
        &mut self,
        items: &[usize],
        routes: &Routes,
        outcome: &trigger::TriggerOutcome,
        transcript: Transcript,
    ) {
        if !self.recording {
            return;
        }
        let (campaigns, configs) = self.campaigns(items, routes);
        let description = self.plugin.description();
        let batch: Vec<trigger::Item> = self.trigger_items(items).collect();
        let record = Record {
            plugin: Decider {
                name: description.name.clone(),
                version: description.version.clone(),
                digest: self.plugin.digest().to_owned(),
            },
            now: trigger::Batch::time(&batch),
            seed: self.seed,
            campaigns,
            subjects: self.numbered(&batch),
            beginnings: self.beginnings(items),
            not_to_message: Some(self.not_to_message(&batch)),
            items: self.kept_items(items, batch),
            heard: transcript.finish(),
            decided: Decided::of(outcome),
        };
        match record.encode() {
            Ok(encoded) => self.decisions.recorded.push(Recorded {
                subjects: distinct(&record),
                record: encoded,
                configs,
            }),
            // The decision stands; that it can't be made again is the lesser harm.
            Err(error) => tracing::error!(error = %error, "a decision can't be kept"),
        }
    }

    fn campaigns(&self, items: &[usize], routes: &Routes) -> (Vec<Campaign>, Vec<Config>) {
        let numbers: HashMap<usize, u32> = items.iter().copied().zip(0..).collect();
        let mut configs: BTreeMap<[u8; 32], Config> = BTreeMap::new();
        let mut campaigns = Vec::with_capacity(routes.len());
        for (number, routed) in routes {
            let Some(running) = self.app.campaigns.get(*number) else {
                continue;
            };
            let accepted = &running.accepted;
            let reading = accepted.reading_of(&self.plugin);
            let digest = reading.digest_with(&accepted.config);
            configs.entry(digest).or_insert_with(|| Config {
                digest,
                text: Arc::clone(&accepted.config),
                properties: Arc::clone(&reading.properties),
            });
            campaigns.push(Campaign {
                id: running.id,
                version: running.version,
                config: digest,
                items: routed
                    .iter()
                    .filter_map(|item| numbers.get(item).copied())
                    .collect(),
            });
        }
        (campaigns, configs.into_values().collect())
    }

    /// The subjects of a batch with their numbers in it.
    fn numbered(&self, batch: &[trigger::Item]) -> Vec<(u32, Uuid)> {
        let ledger = self.ledger.lock();
        let mut numbers: Vec<u32> = batch.iter().map(|item| item.subject).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let of = |number: u32| Some((number, ledger.subjects.get(number as usize)?.id));
        numbers.into_iter().filter_map(of).collect()
    }

    /// The numbers of the subjects that can't be messaged.
    fn not_to_message(&self, batch: &[trigger::Item]) -> Vec<u32> {
        let mut numbered = self.numbered(batch);
        let ledger = self.ledger.lock();
        numbered.retain(|(number, _)| {
            let subject = ledger.subjects.get(*number as usize);
            subject.is_some_and(|subject| !subject.may_message(&self.app))
        });
        numbered.into_iter().map(|(number, _)| number).collect()
    }

    /// Which of the items stand for the beginning of a session.
    fn beginnings(&self, items: &[usize]) -> Vec<u32> {
        let begins = |item: &usize| self.items.get(*item).is_some_and(|item| item.begins);
        let numbered = (0..).zip(items).filter(|(_, item)| begins(item));
        numbered.map(|(number, _)| number).collect()
    }

    fn kept_items(&self, items: &[usize], batch: Vec<trigger::Item>) -> Vec<Item> {
        let stored = items.iter().filter_map(|item| self.items.get(*item));
        let kept = stored.zip(batch).map(|(item, given)| Item {
            seq: item.stored.seq,
            event_id: given.event_id,
            subject: given.subject,
            session: given.session,
            received: given.received,
            timer: given.timer.map(|timer| (timer.key, timer.payload)),
        });
        kept.collect()
    }
}

fn distinct(record: &Record) -> Vec<Uuid> {
    let mut subjects: Vec<Uuid> = record.subjects.iter().map(|(_, id)| *id).collect();
    subjects.sort_unstable();
    subjects.dedup();
    subjects
}
