//! What a plugin's calls cost, measured with the events of a case.

use std::sync::Arc;
use std::time::{Duration, Instant};

use nudge_wasm::trigger::{Batch, Campaign, Item};
use nudge_wasm::{Call, Failed, Kind, Plugin, Reads};
use serde_json::Value as Json;
use uuid::Uuid;

use super::{BadCase, Case, object, personalization, read, trigger, validation};
use crate::configuration::reads_event;

/// Calls that are not counted: the first ones find cold caches.
const WARM_UP: u32 = 3;

/// Fewest calls that are measured, however long they take.
const CALLS: usize = 10;

/// What calls with batches of one size cost.
#[derive(Clone, Debug)]
pub struct Measured {
    /// Items of a batch.
    pub items: usize,
    /// Every call, the quickest first.
    pub calls: Vec<Call>,
}

/// What became of a measurement.
#[derive(Debug)]
pub enum Bench {
    /// The calls.
    Measured(Measured),
    /// The case's configuration is refused, or no event of it is read: there is nothing to measure.
    Nothing,
    /// A call failed.
    Failed(Failed),
}

/// Measures calls with `items` items each, taken from a case over and over, for about `time`.
pub fn bench(plugin: &Plugin, case: &Case, items: usize, time: Duration) -> Result<Bench, BadCase> {
    let config = case.input.get("config").unwrap_or(&Json::Null);
    let reads = match plugin.check_config(&config.to_string()) {
        Ok(Ok(reads)) => reads,
        Ok(Err(_)) => return Ok(Bench::Nothing),
        Err(failed) => return Ok(Bench::Failed(failed)),
    };
    match plugin.kind() {
        Kind::Trigger => {
            let case = trigger::Prepared::new(read(&case.input)?)?;
            let Some(batch) = trigger_batch(&case, &reads, items) else {
                return Ok(Bench::Nothing);
            };
            let subjects = Arc::new(case.subjects);
            Ok(measure(items, time, || {
                let facts = trigger::Answers(Arc::clone(&subjects));
                let outcome = plugin.evaluate(batch.clone(), Box::new(facts))?;
                Ok(outcome.call)
            }))
        }
        Kind::Validation => {
            let case: validation::Input = read(&case.input)?;
            let events = vec![object(&case.properties); items];
            let batch = validation::batch(&case.config, &reads.properties, case.now()?, events);
            Ok(measure(items, time, || {
                Ok(plugin.validate(batch.clone())?.call)
            }))
        }
        Kind::Personalization => {
            let case: personalization::Input = read(&case.input)?;
            let subjects = case.subjects()?;
            let batch = case.batch(&reads, case.now()?, items);
            Ok(measure(items, time, || {
                let facts = personalization::Answers(subjects.clone());
                Ok(plugin.resolve(batch.clone(), Box::new(facts))?.call)
            }))
        }
    }
}

/// The events that the configuration reads, each of a subject of its own.
fn trigger_batch(case: &trigger::Prepared, reads: &Reads, size: usize) -> Option<Batch> {
    let read: Vec<&trigger::Event> = case
        .events
        .iter()
        .filter(|event| reads_event(&reads.event_names, &event.name))
        .collect();
    if read.is_empty() {
        return None;
    }
    let now = case.events.last().map_or(case.start, |event| event.at);
    let item = |(number, event): (u32, &&trigger::Event)| Item {
        subject: number,
        event_id: Uuid::from_u128(u128::from(number) + 1),
        name: Arc::clone(&event.name),
        timestamp: event.at.0,
        received: now.0,
        session: 1,
        properties: Arc::clone(&event.properties),
        timer: None,
    };
    Some(Batch {
        now: now.0,
        items: (0..)
            .zip(read.iter().cycle())
            .take(size)
            .map(item)
            .collect(),
        campaigns: vec![Campaign {
            id: Uuid::from_u128(u128::MAX),
            config: case.config.to_string().into(),
            properties: reads.properties.as_slice().into(),
            items: (0..).take(size).collect(),
        }],
        explaining: false,
        seed: 0,
    })
}

fn measure(items: usize, time: Duration, mut call: impl FnMut() -> Result<Call, Failed>) -> Bench {
    for _ in 0..WARM_UP {
        if let Err(failed) = call() {
            return Bench::Failed(failed);
        }
    }
    let start = Instant::now();
    let mut calls = Vec::new();
    while calls.len() < CALLS || start.elapsed() < time {
        match call() {
            Ok(call) => calls.push(call),
            Err(failed) => return Bench::Failed(failed),
        }
    }
    calls.sort_by_key(|call| call.elapsed);
    Bench::Measured(Measured { items, calls })
}
