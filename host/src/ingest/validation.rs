//! Events against their definitions, by the validation plugin.

use std::collections::HashMap;
use std::sync::Arc;

use nudge_db::Timestamp;
use nudge_wasm::{Call, Plugin, validation};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::Event;
use super::trials::Trials;
use crate::apps::App;
use crate::definitions::{Enforced, Enforcement};
use crate::plugins::statistics::{Made, Outcome};
use crate::plugins::{self, Plugins, Recorder, Term, logs};

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
    let context = Context {
        app_id: app.id,
        subject,
        definitions,
        now,
        recorder: Arc::clone(&plugins.recorder),
    };
    let trials = Trials::of(&context, &declared);
    let works = by_version(&context.definitions, subject, declared);
    let checking = context.clone();
    let checked = plugins.workers.run(app.id, move || {
        let found = works.into_iter().flat_map(|(version, declared)| {
            Work::new(&checking, version, logs::Kind::Decision).run(&declared)
        });
        found.collect::<Vec<_>>()
    });
    let found = checked.await?;
    if let Some(trials) = trials {
        trials.offer(plugins, context.clone(), found.clone());
    }
    for (place, verdict) in found {
        let observed = matches!(verdict, Verdict::Broken(_)) && {
            let name = events.get(place).map(|event| &*event.name);
            let enforced = name.and_then(|name| app.definitions.get(name));
            enforced.is_some_and(|enforced| enforced.enforcement == Enforcement::Observe)
        };
        if observed {
            metrics::counter!("nudge_events_observed_violations_total").increment(1);
        } else if let Some(slot) = verdicts.get_mut(place) {
            *slot = verdict;
        }
    }
    Ok(verdicts)
}

/// Divides events among the versions that check them.
fn by_version(
    definitions: &[Arc<Enforced>],
    subject: Uuid,
    declared: Vec<Declared>,
) -> Vec<(Version, Vec<Declared>)> {
    let mut groups: Vec<(Version, Vec<Declared>)> = Vec::new();
    for event in declared {
        let Some(enforced) = definitions.get(event.definition) else {
            continue;
        };
        let (plugin, _) = enforced.accepted.for_subject(subject);
        let same = |(version, _): &&mut (Version, _)| Arc::ptr_eq(&version.plugin, plugin);
        if let Some((_, group)) = groups.iter_mut().find(same) {
            group.push(event);
        } else {
            let term = Arc::clone(enforced.accepted.decider.term_of(plugin));
            let plugin = Arc::clone(plugin);
            groups.push((Version { plugin, term }, vec![event]));
        }
    }
    groups
}

/// An event that has a definition.
#[derive(Clone)]
pub(super) struct Declared {
    pub place: usize,
    pub definition: usize,
    pub event: Event,
}

/// A version that checks.
pub(super) struct Version {
    pub plugin: Arc<Plugin>,
    pub term: Arc<Term>,
}

/// What all versions that check a request's events have in common.
#[derive(Clone)]
pub(super) struct Context {
    pub app_id: Uuid,
    pub subject: Uuid,
    pub definitions: Vec<Arc<Enforced>>,
    pub now: Timestamp,
    pub recorder: Arc<Recorder>,
}

/// Verdicts but those of events that pass, each with its event's place.
pub(super) type Found = Vec<(usize, Verdict)>;

/// Checks events with one version.
pub(super) struct Work<'c> {
    context: &'c Context,
    version: Version,
    kind: logs::Kind,
    failures: usize,
}

impl<'c> Work<'c> {
    pub(super) fn new(context: &'c Context, version: Version, kind: logs::Kind) -> Self {
        Self {
            context,
            version,
            kind,
            failures: 0,
        }
    }

    pub(super) fn run(mut self, declared: &[Declared]) -> Found {
        let mut verdicts = Vec::with_capacity(declared.len());
        self.check(declared, &mut verdicts);
        verdicts
    }

    /// Checks events together; where that fails, halves apart, so that one event spoils no other.
    fn check(&mut self, declared: &[Declared], verdicts: &mut Found) {
        let unchecked = || {
            let places = declared.iter().map(|event| event.place);
            places.map(|place| (place, Verdict::Unchecked))
        };
        if self.failures >= MOST_FAILURES {
            verdicts.extend(unchecked());
            return;
        }
        let mut outcome = self.version.plugin.validate(self.batch(declared));
        if let Err(failed) = &outcome
            && failed.was_starved()
        {
            self.note(declared, Outcome::Retried, &failed.call);
            outcome = self.version.plugin.validate(self.batch(declared));
        }
        match outcome {
            Ok(outcome) => {
                self.note(declared, Outcome::Decided, &outcome.call);
                judge(declared, outcome, verdicts);
            }
            Err(failed) if declared.len() == 1 => {
                self.note(declared, Outcome::settled(&failed), &failed.call);
                let name = &self.version.term.name;
                tracing::warn!(plugin.name = name, error = %failed, "validation failed");
                self.failures += 1;
                verdicts.extend(unchecked());
            }
            Err(failed) => {
                self.note(declared, Outcome::TakenApart, &failed.call);
                let (first, second) = declared.split_at(declared.len() / 2);
                self.check(first, verdicts);
                self.check(second, verdicts);
            }
        }
    }

    fn note(&self, declared: &[Declared], outcome: Outcome, call: &Call) {
        let made = Made {
            app_id: self.context.app_id,
            term: &self.version.term,
            items: declared.len(),
            outcome,
            call,
        };
        let subjects = || vec![self.context.subject];
        self.context.recorder.made(&made, self.kind, subjects);
    }

    fn batch(&self, declared: &[Declared]) -> validation::Batch {
        let mut definitions: Vec<validation::Definition> = Vec::new();
        let mut indexes = HashMap::new();
        let mut items = Vec::with_capacity(declared.len());
        for (item, event) in (0_u32..).zip(declared) {
            let index = *indexes.entry(event.definition).or_insert_with(|| {
                if let Some(enforced) = self.context.definitions.get(event.definition) {
                    definitions.push(validation::Definition {
                        config: Arc::clone(&enforced.accepted.config),
                        properties: Arc::clone(
                            &enforced
                                .accepted
                                .reading_of(&self.version.plugin)
                                .properties,
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
            now: self.context.now.0,
            items,
            definitions,
        }
    }
}

/// Takes what a plugin found over.
fn judge(declared: &[Declared], outcome: validation::Outcome, verdicts: &mut Found) {
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
        if let Some(found) = violations.remove(&item) {
            verdicts.push((event.place, Verdict::Broken(found)));
        }
    }
}
