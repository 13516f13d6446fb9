//! The events of a case, one batch after another, with the timers in between.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use nudge_db::Timestamp;
use nudge_platform::clock;
use nudge_platform::event_names::SESSION_BEGAN;
use nudge_wasm::limits::TIMERS_PER_SUBJECT;
use nudge_wasm::trigger::{
    Batch, Campaign, Facts, Firing, Item, Timer, TimerChange, TriggerOutcome,
};
use nudge_wasm::{FactsUnavailable, Failed, Failure, PastEvent, Plugin, Reads, Value};
use serde_json::{Map, Value as Json, json};
use uuid::Uuid;

use super::super::subject::Subject;
use super::super::{BadCase, Run};
use super::{Event, Prepared};
use crate::configuration::reads_event;

/// Most timers that may fall due in a case: more is a plugin that sets timers for ever.
const DUE_TIMERS: usize = 1000;

/// What lies between a timer and one that it sets, at the least: as on a server.
const TURN: Duration = Duration::from_secs(1);

/// How long time passes after the last event while timers are left: as far ahead as one can be set.
const AFTERWARDS: Duration = Duration::from_hours(90 * 24);

/// How long the plugin may take over all decisions of one run: a case is a small thing.
const TIME: Duration = Duration::from_secs(10);

/// One run of a case.
pub(crate) struct Simulation<'c> {
    case: &'c Prepared,
    plugin: &'c Plugin,
    reads: &'c Reads,
    config: Arc<str>,
    subjects: Arc<Vec<Subject>>,
    timers: BTreeMap<(u32, String), Pending>,
    fired: Vec<Json>,
    explanations: Vec<Json>,
    run: Run,
}

/// A timer that is not due yet.
#[derive(Clone, Debug)]
struct Pending {
    at: Timestamp,
    payload: Vec<u8>,
    event: Item,
}

/// What an item of a batch is, in the output.
enum Origin {
    Event(usize),
    Timer(String),
}

impl<'c> Simulation<'c> {
    pub(super) fn new(case: &'c Prepared, plugin: &'c Plugin, reads: &'c Reads, run: Run) -> Self {
        Self {
            case,
            plugin,
            reads,
            config: case.config.to_string().into(),
            subjects: Arc::new(case.subjects.clone()),
            timers: BTreeMap::new(),
            fired: Vec::new(),
            explanations: Vec::new(),
            run,
        }
    }

    /// Runs to the end. A call that fails ends it: on a server, nothing of that batch would take effect.
    pub(super) fn run(mut self, until: Option<Timestamp>) -> Result<Run, BadCase> {
        let events: Vec<(usize, &Event)> = self.case.events.iter().enumerate().collect();
        let mut due = 0;
        for together in events.chunk_by(|(_, one), (_, other)| one.at == other.at) {
            let Some((_, first)) = together.first() else {
                continue;
            };
            if let Err(failed) = self.pass_time(first.at, &mut due)? {
                return Ok(self.run.fail(failed));
            }
            if let Err(failed) = self.decide_events(together) {
                return Ok(self.run.fail(failed));
            }
        }
        let last = self
            .case
            .events
            .last()
            .map_or(self.case.start, |event| event.at);
        let end = until.unwrap_or_else(|| last.plus(AFTERWARDS));
        if let Err(failed) = self.pass_time(end, &mut due)? {
            return Ok(self.run.fail(failed));
        }
        Ok(self.finish())
    }

    /// Lets timers fall due, in order.
    fn pass_time(
        &mut self,
        until: Timestamp,
        due: &mut usize,
    ) -> Result<Result<(), Failed>, BadCase> {
        loop {
            let next = self
                .timers
                .iter()
                .filter(|(_, timer)| timer.at <= until)
                .min_by_key(|(key, timer)| (timer.at, *key))
                .map(|(key, _)| key.clone());
            let Some(key) = next else {
                return Ok(Ok(()));
            };
            *due += 1;
            if *due > DUE_TIMERS {
                return Err(BadCase::new(
                    "/input/until",
                    format!("more than {DUE_TIMERS} timers fell due; say `until` when time ends"),
                ));
            }
            let Some(timer) = self.timers.remove(&key) else {
                continue;
            };
            let (subject, key) = key;
            let whose = self.subjects.get(subject as usize);
            let item = Item {
                received: timer.at.0,
                session: whose.map_or(timer.event.session, Subject::session),
                timer: Some(Timer {
                    key: key.clone(),
                    payload: timer.payload,
                }),
                ..timer.event
            };
            let batch = self.batch(timer.at, vec![item], vec![0]);
            if let Err(failed) = self.decide(batch, &[Origin::Timer(key)]) {
                return Ok(Err(failed));
            }
        }
    }

    fn decide_events(&mut self, events: &[(usize, &Event)]) -> Result<(), Failed> {
        let Some((_, first)) = events.first() else {
            return Ok(());
        };
        let mut taken = (*self.subjects).clone();
        let mut items = Vec::new();
        let mut origins = Vec::new();
        let mut concerned = Vec::new();
        for (index, event) in events {
            let id = Uuid::from_u128(*index as u128 + 1);
            let past = PastEvent {
                id,
                timestamp: event.at.0,
                properties: Arc::clone(&event.properties),
            };
            let (session, begins) = taken
                .get_mut(event.subject as usize)
                .map_or((0, false), |subject| subject.take(&event.name, past));
            let item = Item {
                subject: event.subject,
                event_id: id,
                name: Arc::clone(&event.name),
                timestamp: event.at.0,
                received: event.at.0,
                session,
                properties: Arc::clone(&event.properties),
                timer: None,
            };
            let names = &self.reads.event_names;
            let reads = reads_event(names, &event.name);
            let asks = self.reads.history.iter().any(|name| *name == *event.name);
            let mut add = |item, reads: bool| {
                if reads {
                    concerned.push(u32::try_from(items.len()).unwrap_or(u32::MAX));
                }
                items.push(item);
                origins.push(Origin::Event(*index));
            };
            if begins && names.iter().any(|name| name == SESSION_BEGAN) {
                let name = SESSION_BEGAN.into();
                add(
                    Item {
                        name,
                        ..item.clone()
                    },
                    true,
                );
            }
            // Of what it neither reads nor asks the past of, a plugin knows nothing before the batch is over: as on a server.
            if reads || asks {
                add(item, reads);
            }
        }
        // The plugin is asked as of before the batch; states of the batch are written to what comes after.
        if !concerned.is_empty() {
            let batch = self.batch(first.at, items, concerned);
            self.decide(batch, &origins)?;
        }
        for (after, asked) in taken.iter_mut().zip(self.subjects.iter()) {
            after.state.clone_from(&asked.state);
        }
        self.subjects = Arc::new(taken);
        Ok(())
    }

    fn batch(&self, now: Timestamp, items: Vec<Item>, concerned: Vec<u32>) -> Batch {
        Batch {
            now: now.0,
            items,
            campaigns: vec![Campaign {
                id: Uuid::from_u128(u128::MAX),
                config: Arc::clone(&self.config),
                properties: self.reads.properties.as_slice().into(),
                items: concerned,
            }],
            explaining: true,
            seed: 0,
        }
    }

    fn decide(&mut self, batch: Batch, origins: &[Origin]) -> Result<(), Failed> {
        if self.run.cost.total >= TIME {
            return Err(Failed {
                failure: Failure::Deadline,
                call: Box::default(),
            });
        }
        let (items, now) = (batch.items.clone(), Timestamp(batch.now));
        let facts = Answers(Arc::clone(&self.subjects));
        let outcome = self.plugin.evaluate(batch, Box::new(facts))?;
        self.accept(outcome, &items, origins, now);
        Ok(())
    }

    /// Lets what the plugin asked for take effect.
    fn accept(
        &mut self,
        outcome: TriggerOutcome,
        items: &[Item],
        origins: &[Origin],
        now: Timestamp,
    ) {
        self.note_firings(&outcome.fired, items, origins, now);
        for explanation in &outcome.explanations {
            let mut why = self.entry(items, origins, explanation.item);
            why.insert("check".to_owned(), explanation.check.clone().into());
            why.insert("passed".to_owned(), explanation.passed.into());
            why.insert("detail".to_owned(), explanation.detail.clone().into());
            self.explanations.push(Json::Object(why));
        }
        let subjects = Arc::make_mut(&mut self.subjects);
        for write in outcome.states {
            if let Some(subject) = subjects.get_mut(write.subject as usize) {
                subject.state = write.state;
            }
        }
        for change in outcome.timers {
            match change {
                TimerChange::Set {
                    item,
                    key,
                    at,
                    payload,
                    ..
                } => {
                    if let Some(event) = items.get(item as usize) {
                        let at = Timestamp(at);
                        // A timer is of the event, also where it was set as the session began.
                        let name = match origins.get(item as usize) {
                            Some(Origin::Event(index)) => self.case.events.get(*index),
                            _ => None,
                        }
                        .map_or(&event.name, |event| &event.name);
                        let pending = Pending {
                            at: earliest(event).map_or(at, |earliest| earliest.max(at)),
                            payload,
                            event: Item {
                                name: Arc::clone(name),
                                ..event.clone()
                            },
                        };
                        self.timers.insert((event.subject, key), pending);
                    }
                }
                TimerChange::Cancel { subject, key, .. } => {
                    self.timers.remove(&(subject, key));
                }
                TimerChange::CancelAll { subject, .. } => {
                    self.timers.retain(|(whose, _), _| *whose != subject);
                }
            }
        }
        if !self.plugin.has_unlimited_timers() {
            let subjects: BTreeSet<u32> = items.iter().map(|item| item.subject).collect();
            for subject in subjects {
                self.remove_surplus(subject);
            }
        }
        self.run.note(outcome.call);
    }

    /// Notes what fired. An event fires once, be it as the beginning of a session, as itself, or as both: as on a server.
    fn note_firings(
        &mut self,
        firings: &[Firing],
        items: &[Item],
        origins: &[Origin],
        now: Timestamp,
    ) {
        let mut events = BTreeSet::new();
        for firing in firings {
            if let Some(Origin::Event(index)) = origins.get(firing.item as usize)
                && !events.insert(*index)
            {
                continue;
            }
            let mut fired = self.entry(items, origins, firing.item);
            fired.insert("at".to_owned(), clock::to_text(now).into());
            self.fired.push(Json::Object(fired));
        }
    }

    /// Removes the timers that a subject has too many of, those that are due last.
    fn remove_surplus(&mut self, subject: u32) {
        let own = self
            .timers
            .iter()
            .filter(|((whose, _), _)| *whose == subject);
        let mut own: Vec<(Timestamp, (u32, String))> =
            own.map(|(key, timer)| (timer.at, key.clone())).collect();
        own.sort_unstable();
        for (_, key) in own.iter().skip(TIMERS_PER_SUBJECT) {
            self.timers.remove(key);
        }
    }

    fn name(&self, subject: u32) -> Json {
        self.case.names.get(subject as usize).cloned().into()
    }

    /// What an item is: whose, and which event or timer.
    fn entry(&self, items: &[Item], origins: &[Origin], item: u32) -> Map<String, Json> {
        let mut entry = Map::new();
        match origins.get(item as usize) {
            Some(Origin::Event(index)) => entry.insert("event".to_owned(), (*index).into()),
            Some(Origin::Timer(key)) => entry.insert("timer".to_owned(), key.clone().into()),
            None => None,
        };
        if let Some(item) = items.get(item as usize) {
            entry.insert("subject".to_owned(), self.name(item.subject));
        }
        entry
    }

    fn finish(mut self) -> Run {
        let states: Map<String, Json> = self
            .case
            .names
            .iter()
            .zip(self.subjects.iter())
            .filter_map(|(name, subject)| Some((name.clone(), shown(subject.state.as_ref()?))))
            .collect();
        let timers: Vec<Json> = self
            .timers
            .iter()
            .map(|((subject, key), timer)| {
                json!({
                    "subject": self.name(*subject),
                    "key": key,
                    "at": clock::to_text(timer.at),
                    "payload": shown(&timer.payload),
                })
            })
            .collect();
        self.run.output = json!({
            "fired": self.fired,
            "states": states,
            "timers": timers,
            "explanations": self.explanations,
        });
        self.run
    }
}

/// When a timer that is set at an item may be due. One that a timer sets waits for its turn.
fn earliest(item: &Item) -> Option<Timestamp> {
    let timer = item.timer.as_ref();
    timer.map(|_| Timestamp(item.received).plus(TURN))
}

/// Bytes of a plugin: as JSON where they are JSON, else `{"base64": …}`.
fn shown(bytes: &[u8]) -> Json {
    serde_json::from_slice(bytes).unwrap_or_else(|_| json!({"base64": STANDARD.encode(bytes)}))
}

/// What the plugin may ask about the subjects.
pub(crate) struct Answers(pub Arc<Vec<Subject>>);

impl Answers {
    fn of(&self, subject: u32) -> Option<&Subject> {
        self.0.get((subject as usize).checked_rem(self.0.len())?)
    }
}

impl Facts for Answers {
    fn subject_property(
        &mut self,
        subject: u32,
        key: &str,
    ) -> Result<Option<Value>, FactsUnavailable> {
        Ok(self.of(subject).and_then(|subject| subject.property(key)))
    }

    fn subject_fact(
        &mut self,
        subject: u32,
        name: &str,
    ) -> Result<Option<Value>, FactsUnavailable> {
        Ok(self.of(subject).and_then(|subject| subject.fact(name)))
    }

    fn count_events(
        &mut self,
        subject: u32,
        name: &str,
        since: Option<i64>,
        at_most: u32,
    ) -> Result<u32, FactsUnavailable> {
        Ok(self
            .of(subject)
            .map_or(0, |subject| subject.count(name, since, at_most)))
    }

    fn recent_events(
        &mut self,
        subject: u32,
        name: &str,
        since: Option<i64>,
        limit: u32,
    ) -> Result<Vec<PastEvent>, FactsUnavailable> {
        Ok(self
            .of(subject)
            .map(|subject| subject.recent(name, since, limit))
            .unwrap_or_default())
    }

    fn state(&mut self, _: u32, subject: u32) -> Option<Vec<u8>> {
        self.of(subject)?.state.clone()
    }
}
