//! Events against their definitions, by the validation plugin.

pub mod batcher;
mod shadow;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use nudge_apps::App;
use nudge_campaigns::definitions::{Enforced, Enforcement};
use nudge_db::Timestamp;
use nudge_platform::traces::{self, NewSpan};
use nudge_plugin_runtime as plugins;
use nudge_plugin_runtime::statistics::{CallOutcome, Made};
use nudge_plugin_runtime::{Recorder, RolloutPeriod, logs};
use nudge_records::dead_letters::violation::Violation;
use nudge_records::events::Event;
use nudge_wasm::{Call, Plugin, validation};
use uuid::Uuid;

use crate::services::Services;
use shadow::ShadowRuns;

/// After so many events that the plugin failed on, and so much time in failing calls, what is left of a request is asked
/// about as it is and no further taken apart.
const MOST_FAILURES: usize = 4;
const FAILING_TIME: Duration = Duration::from_secs(1);

/// What became of one event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It matches, or nothing is declared.
    Pass,
    /// It breaks its definition.
    Broken(Vec<Violation>),
    /// It breaks its definition, which only observes.
    Observed,
    /// The plugin failed on it.
    Unchecked,
}

/// Whether somebody waits for verdicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Urgency {
    /// A request does. Candidates of plugins are compared on such events alone.
    Awaited,
    /// Nobody does: the calls give way to others.
    Aside,
}

/// Checks events, each with its subject, by the plugins of their definitions; the verdicts stand in the same order.
pub async fn validate(
    services: &Services,
    app: &App,
    events: &[(Uuid, &Event)],
    now: Timestamp,
    urgency: Urgency,
) -> Result<Vec<Verdict>, plugins::Lost> {
    let declared: Arc<[Declared]> = declare(app, events);
    let verdict = |(_, event): &(Uuid, &Event)| {
        if app.unchecked.contains(&*event.name) {
            Verdict::Unchecked
        } else {
            Verdict::Pass
        }
    };
    let mut verdicts: Vec<Verdict> = events.iter().map(verdict).collect();
    if declared.is_empty() {
        return Ok(verdicts);
    }
    let plugins = &services.plugins;
    let context = Context {
        app_id: app.id,
        now,
        recorder: Some(Arc::clone(&plugins.recorder)),
    };
    let found = match urgency {
        Urgency::Aside => {
            let checked = plugins.aside(app.id, move || check(&context, &declared));
            checked.await?
        }
        Urgency::Awaited => {
            let shadow_runs = ShadowRuns::of(&declared);
            let checked = services
                .validations
                .check(&plugins.workers, &context, &declared);
            let span = || NewSpan::internal("plugin validation", Vec::new());
            let found = traces::within(span, checked).await?;
            if let Some(shadow_runs) = shadow_runs {
                shadow_runs.offer(plugins, context, found.clone());
            }
            found
        }
    };
    enter(app, events, found, &mut verdicts);
    Ok(verdicts)
}

/// The events that have a definition.
fn declare<D: FromIterator<Declared>>(app: &App, events: &[(Uuid, &Event)]) -> D {
    let declared = events
        .iter()
        .enumerate()
        .filter_map(|(place, (subject, event))| {
            let enforced = app.definitions.get(&*event.name)?;
            Some(Declared {
                place,
                subject: *subject,
                enforced: Arc::clone(enforced),
                event: (*event).clone(),
            })
        });
    declared.collect()
}

/// Enters what was found at the events' places.
fn enter(app: &App, events: &[(Uuid, &Event)], found: PlacedVerdicts, verdicts: &mut [Verdict]) {
    for (place, verdict) in found {
        let enforced = events
            .get(place)
            .and_then(|(_, event)| app.definitions.get(&*event.name));
        let observes = enforced.is_some_and(|it| it.enforcement == Enforcement::Observe);
        if let Some(slot) = verdicts.get_mut(place) {
            *slot = match verdict {
                Verdict::Broken(_) if observes => Verdict::Observed,
                // Whatever the plugin had found, the event would be accepted.
                Verdict::Unchecked if observes => Verdict::Pass,
                other => other,
            };
        }
    }
}

/// Says what a definition would make of events, each with its subject. Nothing of it counts. Blocks: to be run on
/// a plugin thread.
pub fn dry_run(
    app_id: Uuid,
    enforced: &Arc<Enforced>,
    events: Vec<(Uuid, Event)>,
    now: Timestamp,
) -> Vec<Verdict> {
    let mut verdicts = vec![Verdict::Pass; events.len()];
    let context = Context {
        app_id,
        now,
        recorder: None,
    };
    let declared = events
        .into_iter()
        .enumerate()
        .map(|(place, (subject, event))| Declared {
            place,
            subject,
            enforced: Arc::clone(enforced),
            event,
        });
    for (place, verdict) in check(&context, &declared.collect::<Vec<_>>()) {
        if let Some(slot) = verdicts.get_mut(place) {
            *slot = verdict;
        }
    }
    verdicts
}

/// Checks events by the versions of their definitions' plugins. Blocks.
pub(super) fn check(context: &Context, declared: &[Declared]) -> PlacedVerdicts {
    let mut found = PlacedVerdicts::new();
    for (version, declared) in by_version(declared) {
        found.extend(VersionChecks::new(context, version, logs::Kind::Decision).run(&declared));
    }
    found
}

/// Divides events among the versions that check them.
pub(super) fn by_version(declared: &[Declared]) -> Vec<(Version, Vec<&Declared>)> {
    let mut groups: Vec<(Version, Vec<&Declared>)> = Vec::new();
    for event in declared {
        let accepted = &event.enforced.accepted;
        let (plugin, _) = accepted.for_subject(event.subject);
        let same = |(version, _): &&mut (Version, _)| Arc::ptr_eq(&version.plugin, plugin);
        if let Some((_, group)) = groups.iter_mut().find(same) {
            group.push(event);
        } else {
            let period = Arc::clone(accepted.decider.period_of(plugin));
            let plugin = Arc::clone(plugin);
            groups.push((Version { plugin, period }, vec![event]));
        }
    }
    groups
}

/// An event that has a definition.
#[derive(Clone, Debug)]
pub struct Declared {
    /// Its place among the events that were asked about.
    pub(super) place: usize,
    pub(super) subject: Uuid,
    pub(super) enforced: Arc<Enforced>,
    pub(super) event: Event,
}

/// A version that checks.
pub(super) struct Version {
    pub plugin: Arc<Plugin>,
    pub period: Arc<RolloutPeriod>,
}

/// What all versions that check some events have in common.
#[derive(Clone, Debug)]
pub struct Context {
    pub(super) app_id: Uuid,
    pub(super) now: Timestamp,
    /// Counts the calls; none: nobody does.
    pub(super) recorder: Option<Arc<Recorder>>,
}

/// Verdicts but those of events that pass, each with its event's place.
pub type PlacedVerdicts = Vec<(usize, Verdict)>;

/// Checks events with one version.
pub(super) struct VersionChecks<'c> {
    context: &'c Context,
    version: Version,
    kind: logs::Kind,
    failures: usize,
    failing: Duration,
}

impl<'c> VersionChecks<'c> {
    pub(super) fn new(context: &'c Context, version: Version, kind: logs::Kind) -> Self {
        Self {
            context,
            version,
            kind,
            failures: 0,
            failing: Duration::ZERO,
        }
    }

    /// Checks the events of one request.
    pub(super) fn run(&mut self, declared: &[&Declared]) -> PlacedVerdicts {
        let mut verdicts = Vec::with_capacity(declared.len());
        self.failures = 0;
        self.failing = Duration::ZERO;
        self.check(declared, &mut verdicts);
        verdicts
    }

    /// Checks events in one call; none: the call failed.
    pub(super) fn together(&mut self, declared: &[&Declared]) -> Option<PlacedVerdicts> {
        match self.call(declared) {
            Ok(outcome) => {
                self.note(declared, CallOutcome::Decided, &outcome.call);
                let mut verdicts = Vec::with_capacity(declared.len());
                judge(declared, outcome, &mut verdicts);
                Some(verdicts)
            }
            Err(failed) => {
                self.note(declared, CallOutcome::TakenApart, &failed.call);
                None
            }
        }
    }

    /// Checks events together; where that fails, halves apart, so that one event spoils no other.
    fn check(&mut self, declared: &[&Declared], verdicts: &mut PlacedVerdicts) {
        match self.call(declared) {
            Ok(outcome) => {
                self.note(declared, CallOutcome::Decided, &outcome.call);
                judge(declared, outcome, verdicts);
            }
            Err(failed) if declared.len() == 1 || self.has_failed_enough() => {
                self.note(declared, CallOutcome::settled(&failed), &failed.call);
                // Of a thousand bad events the log has a few.
                if self.failures < MOST_FAILURES {
                    let period = &self.version.period;
                    tracing::warn!(
                        app.id = %self.context.app_id,
                        plugin.name = period.name,
                        plugin.version = period.version,
                        error = %failed,
                        "validation failed"
                    );
                }
                self.failures += 1;
                let places = declared.iter().map(|event| event.place);
                verdicts.extend(places.map(|place| (place, Verdict::Unchecked)));
            }
            Err(failed) => {
                self.note(declared, CallOutcome::TakenApart, &failed.call);
                let (first, second) = declared.split_at(declared.len() / 2);
                self.check(first, verdicts);
                self.check(second, verdicts);
            }
        }
    }

    fn has_failed_enough(&self) -> bool {
        self.failures >= MOST_FAILURES && self.failing >= FAILING_TIME
    }

    /// Calls the plugin; once more if the machine let it starve.
    fn call(
        &mut self,
        declared: &[&Declared],
    ) -> Result<validation::ValidationOutcome, nudge_wasm::Failed> {
        let mut outcome = self.version.plugin.validate(self.batch(declared));
        if let Err(failed) = &outcome
            && failed.was_starved()
        {
            self.failing += failed.call.elapsed;
            self.note(declared, CallOutcome::Retried, &failed.call);
            outcome = self.version.plugin.validate(self.batch(declared));
        }
        if let Err(failed) = &outcome {
            self.failing += failed.call.elapsed;
        }
        outcome
    }

    fn note(&self, declared: &[&Declared], outcome: CallOutcome, call: &Call) {
        let Some(recorder) = &self.context.recorder else {
            return;
        };
        let made = Made {
            app_id: self.context.app_id,
            period: &self.version.period,
            items: declared.len(),
            outcome,
            call,
        };
        let topics = || {
            let mut subjects: Vec<Uuid> = declared.iter().map(|event| event.subject).collect();
            subjects.sort_unstable();
            subjects.dedup();
            logs::Topics {
                subjects,
                campaigns: Vec::new(),
                events: declared.iter().map(|event| event.event.id).collect(),
            }
        };
        recorder.made(&made, self.kind, topics);
    }

    fn batch(&self, declared: &[&Declared]) -> validation::Batch {
        let mut definitions: Vec<validation::Definition> = Vec::new();
        let mut indexes: HashMap<*const Enforced, usize> = HashMap::new();
        let mut items = Vec::with_capacity(declared.len());
        for (item, event) in (0_u32..).zip(declared) {
            let index = *indexes
                .entry(Arc::as_ptr(&event.enforced))
                .or_insert_with(|| {
                    let accepted = &event.enforced.accepted;
                    let reading = accepted.reading_of(&self.version.plugin);
                    definitions.push(validation::Definition {
                        config: Arc::clone(&accepted.config),
                        properties: Arc::clone(&reading.properties),
                        items: Vec::new(),
                    });
                    definitions.len() - 1
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
fn judge(
    declared: &[&Declared],
    outcome: validation::ValidationOutcome,
    verdicts: &mut PlacedVerdicts,
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
        if let Some(found) = violations.remove(&item) {
            verdicts.push((event.place, Verdict::Broken(found)));
        }
    }
}
