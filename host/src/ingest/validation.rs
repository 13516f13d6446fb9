//! Events against their definitions, by the validation plugin.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use nudge_db::Timestamp;
use nudge_wasm::{Plugin, validation};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::Event;
use crate::apps::App;
use crate::definitions::{Enforced, Enforcement};
use crate::plugins::{self, Plugins};

/// After this many failed calls the plugin counts as broken for the rest of a request.
const MOST_FAILURES: usize = 4;

/// One way in which an event breaks its definition (contract 11).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Violation {
    /// A stable reason.
    pub code: String,
    /// The property.
    pub property: String,
    /// What the definition asks for.
    pub expected: String,
    /// What the event has.
    pub actual: String,
}

/// What became of one event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It matches, or nothing is declared, or breaking is only observed.
    Pass,
    /// It breaks its definition.
    Broken(Vec<Violation>),
    /// The plugin failed on it.
    Unchecked,
}

/// Checks events of a subject, each by the plugin of its definition; the verdicts stand in the same order.
pub async fn validate(
    plugins: &Plugins,
    app: &App,
    subject: Uuid,
    events: &[&Event],
    now: Timestamp,
) -> Result<Vec<Verdict>, plugins::Lost> {
    let mut definitions: Vec<(&str, &Arc<Enforced>)> = Vec::new();
    let mut indexes: HashMap<&str, usize> = HashMap::new();
    let mut declared = Vec::new();
    for (place, event) in events.iter().enumerate() {
        let Some((name, enforced)) = app.definitions.get_key_value(&*event.name) else {
            continue;
        };
        let definition = *indexes.entry(name).or_insert_with(|| {
            definitions.push((name, enforced));
            definitions.len() - 1
        });
        declared.push(Declared {
            place,
            definition,
            event: (*event).clone(),
        });
    }
    let mut verdicts = vec![Verdict::Pass; events.len()];
    if declared.is_empty() {
        return Ok(verdicts);
    }
    let definitions: Vec<Arc<Enforced>> = definitions
        .into_iter()
        .map(|(_, enforced)| Arc::clone(enforced))
        .collect();
    let works = by_plugin(&definitions, subject, declared)
        .into_iter()
        .map(|(plugin, declared)| {
            let work = Work {
                plugin,
                definitions: definitions.clone(),
                now,
                failures: 0,
            };
            (work, declared)
        });
    let works: Vec<(Work, Vec<Declared>)> = works.collect();
    let checked = plugins.workers.run(app.id, move || {
        let verdicts = works
            .into_iter()
            .flat_map(|(work, declared)| work.run(&declared));
        verdicts.collect::<Vec<_>>()
    });
    for (place, verdict) in checked.await? {
        if let Some(slot) = verdicts.get_mut(place) {
            *slot = verdict;
        }
    }
    Ok(verdicts)
}

/// Divides events among the plugins of their definitions.
fn by_plugin(
    definitions: &[Arc<Enforced>],
    subject: Uuid,
    declared: Vec<Declared>,
) -> Vec<(Arc<Plugin>, Vec<Declared>)> {
    let mut groups: Vec<(Arc<Plugin>, Vec<Declared>)> = Vec::new();
    for event in declared {
        let Some(enforced) = definitions.get(event.definition) else {
            continue;
        };
        let (plugin, _) = enforced.accepted.for_subject(subject);
        match groups
            .iter_mut()
            .find(|(other, _)| Arc::ptr_eq(other, plugin))
        {
            Some((_, group)) => group.push(event),
            None => groups.push((Arc::clone(plugin), vec![event])),
        }
    }
    groups
}

/// An event that has a definition.
struct Declared {
    place: usize,
    definition: usize,
    event: Event,
}

struct Work {
    plugin: Arc<Plugin>,
    definitions: Vec<Arc<Enforced>>,
    now: Timestamp,
    failures: usize,
}

impl Work {
    fn run(mut self, declared: &[Declared]) -> Vec<(usize, Verdict)> {
        let mut verdicts = Vec::with_capacity(declared.len());
        self.check(declared, &mut verdicts);
        verdicts
    }

    /// Checks events together; where that fails, halves apart, so that one event spoils no other.
    fn check(&mut self, declared: &[Declared], verdicts: &mut Vec<(usize, Verdict)>) {
        if self.failures >= MOST_FAILURES {
            verdicts.extend(
                declared
                    .iter()
                    .map(|event| (event.place, Verdict::Unchecked)),
            );
            return;
        }
        let started = Instant::now();
        let outcome = self.plugin.validate(self.batch(declared));
        plugins::count(&self.plugin, outcome.as_ref().err(), started.elapsed());
        match outcome {
            Ok(outcome) => {
                plugins::log(&self.plugin, &outcome.call);
                self.judge(declared, outcome, verdicts);
            }
            Err(failed) if declared.len() == 1 => {
                tracing::warn!(plugin.name = self.plugin.description().name, error = %failed, "validation failed");
                self.failures += 1;
                verdicts.extend(
                    declared
                        .iter()
                        .map(|event| (event.place, Verdict::Unchecked)),
                );
            }
            Err(_) => {
                let (first, second) = declared.split_at(declared.len() / 2);
                self.check(first, verdicts);
                self.check(second, verdicts);
            }
        }
    }

    fn batch(&self, declared: &[Declared]) -> validation::Batch {
        let mut definitions: Vec<validation::Definition> = Vec::new();
        let mut indexes = HashMap::new();
        let mut items = Vec::with_capacity(declared.len());
        for (item, event) in (0_u32..).zip(declared) {
            let index = *indexes.entry(event.definition).or_insert_with(|| {
                if let Some(enforced) = self.definitions.get(event.definition) {
                    definitions.push(validation::Definition {
                        config: Arc::clone(&enforced.accepted.config),
                        properties: Arc::clone(
                            &enforced.accepted.reading_of(&self.plugin).properties,
                        ),
                        items: Vec::new(),
                    });
                }
                definitions.len().saturating_sub(1)
            });
            if let Some(definition) = definitions.get_mut(index) {
                definition.items.push(item);
            }
            items.push(validation::Item {
                timestamp: event.event.timestamp.0,
                properties: Arc::clone(&event.event.properties),
            });
        }
        validation::Batch {
            now: self.now.0,
            items,
            definitions,
        }
    }

    fn judge(
        &self,
        declared: &[Declared],
        outcome: validation::Outcome,
        verdicts: &mut Vec<(usize, Verdict)>,
    ) {
        let mut violations: HashMap<u32, Vec<Violation>> = HashMap::new();
        for violation in outcome.violations {
            violations
                .entry(violation.item)
                .or_default()
                .push(Violation {
                    code: violation.code,
                    property: violation.property,
                    expected: violation.expected,
                    actual: violation.actual,
                });
        }
        for (item, event) in (0_u32..).zip(declared) {
            let Some(found) = violations.remove(&item) else {
                continue;
            };
            let enforcement = self
                .definitions
                .get(event.definition)
                .map(|enforced| enforced.enforcement);
            if enforcement == Some(Enforcement::Observe) {
                metrics::counter!("nudge_events_observed_violations_total").increment(1);
            } else {
                verdicts.push((event.place, Verdict::Broken(found)));
            }
        }
    }
}
