//! Asking the default trigger plugin who meets conditions.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::sync::Arc;

use nudge_apps::registry::Registry;
use nudge_apps::segments::ActiveSegment;
use nudge_apps::services::Services;
use nudge_db::{Db, Error, Result, Timestamp};
use nudge_platform::clock::Clock;
use nudge_platform::event_names::SCHEDULED;
use nudge_platform::turns::Turn;
use nudge_plugin_runtime::{Accepted, Plugins};
use nudge_records::scheduled_work;
use nudge_wasm::{Value, trigger};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use uuid::Uuid;

use crate::Inner;
use crate::facts::{Ledger, Read, View};
use crate::groups::seed;
use crate::projection::Subject;
use crate::store;

/// Conditions that are asked about in one call, each of one person, at the most: a call's time is short.
const PAIRS: usize = 256;
/// People of one call at the most.
const PEOPLE: usize = 64;

/// Conditions and what they are called.
#[derive(Clone, Debug)]
pub struct SegmentConditions {
    /// The segment, or nil for conditions that are none's.
    pub id: Uuid,
    /// The configuration by which the plugin decides.
    pub accepted: Accepted,
}

impl From<&Arc<ActiveSegment>> for SegmentConditions {
    fn from(segment: &Arc<ActiveSegment>) -> Self {
        Self {
            id: segment.id,
            accepted: segment.accepted.clone(),
        }
    }
}

/// Whether somebody meets each of some conditions; none: the plugin can't say.
pub(super) type Answers = Vec<Option<bool>>;

/// Answers for each person in their order.
pub(super) async fn decide(
    by: Means<'_>,
    app_id: Uuid,
    conditions: &[SegmentConditions],
    people: &[Subject],
) -> Result<Vec<Answers>> {
    let Some(first) = conditions.first() else {
        return Ok(people.iter().map(|_| Vec::new()).collect());
    };
    let plugin = Arc::clone(&first.accepted.decider.plugin);
    let ids: Vec<Uuid> = people.iter().map(|person| person.id).collect();
    let mut tx = by.db.read().await?;
    let reads_properties = conditions
        .iter()
        .any(|asked| asked.accepted.reads_subject());
    let mut properties = if reads_properties {
        by_person(store::properties(&mut tx, app_id, &ids).await?)
    } else {
        HashMap::new()
    };
    let names: BTreeSet<&str> = conditions
        .iter()
        .flat_map(|asked| asked.accepted.history())
        .map(String::as_str)
        .collect();
    let now = by.clock.now();
    let mut ledgers = Vec::new();
    for chunk in people.chunks((PAIRS / conditions.len()).clamp(1, PEOPLE)) {
        let mut ledger = ledger(by.db, app_id, chunk, now);
        ledger.properties = chunk
            .iter()
            .flat_map(|person| properties.remove(&person.id).unwrap_or_default())
            .collect();
        if !reads_properties {
            ledger.read.without_properties = (0..).take(chunk.len()).collect();
        }
        let asked: BTreeSet<(u32, &str)> = (0..)
            .take(chunk.len())
            .flat_map(|person| names.iter().map(move |name| (person, *name)))
            .collect();
        ledger.read_ahead(&mut tx, &asked).await?;
        ledgers.push(ledger);
    }
    drop(tx);
    let mut answers = Vec::with_capacity(people.len());
    for ledger in ledgers {
        let call = Call {
            plugin: Arc::clone(&plugin),
            app_id,
            conditions: conditions.to_vec(),
            answers: vec![vec![None; conditions.len()]; ledger.subjects.len()],
            ledger: Arc::new(Mutex::new(ledger)),
            now,
            _turn: by.turn.map(Arc::clone),
        };
        let asked = by.plugins.workers.run(app_id, move || call.run());
        let decided = asked
            .await
            .map_err(|lost| Error::unavailable(std::io::Error::other(lost)))?;
        answers.extend(decided?);
    }
    Ok(answers)
}

/// What asking takes.
#[derive(Clone, Copy)]
pub(crate) struct Means<'a> {
    pub db: &'a Db,
    pub apps: &'a Registry,
    pub plugins: &'a Plugins,
    pub clock: &'a Clock,
    /// The turn in which is asked; each call holds it, also when nobody waits for its answer any more.
    pub turn: Option<&'a Arc<Turn>>,
}

impl<'a> Means<'a> {
    pub(crate) fn of(services: &'a Services) -> Self {
        Self {
            db: &services.db,
            apps: &services.apps,
            plugins: &services.plugins,
            clock: &services.clock,
            turn: None,
        }
    }

    pub(crate) fn of_pipeline(inner: &'a Inner) -> Self {
        Self {
            db: &inner.db,
            apps: &inner.apps,
            plugins: &inner.plugins,
            clock: &inner.clock,
            turn: None,
        }
    }
}

type Properties = HashMap<(Uuid, String), Value>;

/// Properties by whose they are.
fn by_person(properties: Properties) -> HashMap<Uuid, Properties> {
    let mut by_person: HashMap<Uuid, Properties> = HashMap::new();
    for ((person, key), value) in properties {
        by_person
            .entry(person)
            .or_default()
            .insert((person, key), value);
    }
    by_person
}

fn ledger(db: &Db, app_id: Uuid, people: &[Subject], now: Timestamp) -> Ledger {
    Ledger {
        app_id,
        db: db.clone(),
        runtime: Handle::current(),
        subjects: people.to_vec(),
        properties: HashMap::new(),
        states: HashMap::new(),
        earlier: Vec::new(),
        aliases: HashMap::new(),
        until: now,
        read: Read::default(),
    }
}

/// A question about some people, on a plugin's thread.
struct Call {
    plugin: Arc<nudge_wasm::Plugin>,
    app_id: Uuid,
    conditions: Vec<SegmentConditions>,
    ledger: Arc<Mutex<Ledger>>,
    now: Timestamp,
    answers: Vec<Answers>,
    _turn: Option<Arc<Turn>>,
}

impl Call {
    fn run(mut self) -> Result<Vec<Answers>> {
        let (people, conditions) = (0..self.answers.len(), 0..self.conditions.len());
        self.ask(people, conditions)?;
        Ok(self.answers)
    }

    /// Asks about some people and conditions; where that fails, about halves, down to one of each.
    fn ask(&mut self, people: Range<usize>, conditions: Range<usize>) -> Result<()> {
        let view = View {
            ledger: Arc::clone(&self.ledger),
            campaigns: conditions.clone().collect(),
            transcript: None,
        };
        let batch = self.batch(&people, &conditions);
        let failed = match self.plugin.evaluate(batch, Box::new(view)) {
            Ok(outcome) => {
                self.accept(&people, &conditions, &outcome);
                return Ok(());
            }
            Err(failed) => failed,
        };
        if failed.is_the_hosts() {
            return Err(self.ledger.lock().take_failure());
        }
        if people.len() > 1 {
            let middle = people.start + people.len() / 2;
            self.ask(people.start..middle, conditions.clone())?;
            return self.ask(middle..people.end, conditions);
        }
        if conditions.len() > 1 {
            let middle = conditions.start + conditions.len() / 2;
            self.ask(people.clone(), conditions.start..middle)?;
            return self.ask(people, middle..conditions.end);
        }
        if failed.was_starved() {
            // The machine was busy: nothing is known of the plugin.
            return Err(Error::unavailable(std::io::Error::other(
                "no time for a plugin",
            )));
        }
        let segment = self.conditions.get(conditions.start).map(|asked| asked.id);
        tracing::warn!(app.id = %self.app_id, segment.id = ?segment, error = %failed, "a segment can't be decided for somebody");
        Ok(())
    }

    fn batch(&self, people: &Range<usize>, conditions: &Range<usize>) -> trigger::Batch {
        let event = scheduled_work::event(self.app_id, self.now).event;
        let items = people.clone().map(|person| trigger::Item {
            subject: u32::try_from(person).unwrap_or(u32::MAX),
            event_id: event.id,
            name: SCHEDULED.into(),
            timestamp: self.now.0,
            received: self.now.0,
            session: 0,
            properties: Arc::clone(&event.properties),
            timer: None,
        });
        let items: Vec<trigger::Item> = items.collect();
        let numbers: Vec<u32> = (0..).take(items.len()).collect();
        let asked = self.conditions.get(conditions.clone()).unwrap_or_default();
        let campaigns = asked.iter().map(|asked| trigger::Campaign {
            id: asked.id,
            config: Arc::clone(&asked.accepted.config),
            properties: Arc::clone(&asked.accepted.reading.properties),
            items: numbers.clone(),
        });
        trigger::Batch {
            now: self.now.0,
            campaigns: campaigns.collect(),
            items,
            explaining: false,
            seed: seed(self.app_id, &self.plugin),
        }
    }

    fn accept(
        &mut self,
        people: &Range<usize>,
        conditions: &Range<usize>,
        outcome: &trigger::TriggerOutcome,
    ) {
        let asked = self.answers.get_mut(people.clone()).unwrap_or_default();
        for answers in asked.iter_mut() {
            let answers = answers.get_mut(conditions.clone()).unwrap_or_default();
            answers.fill(Some(false));
        }
        for fired in &outcome.fired {
            let condition = conditions.start + fired.campaign as usize;
            let person = asked.get_mut(fired.item as usize);
            if let Some(answer) = person.and_then(|answers| answers.get_mut(condition)) {
                *answer = Some(true);
            }
        }
    }
}
