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
use nudge_plugin_runtime::halving::{self, Halving};
use nudge_plugin_runtime::statistics::{CallOutcome, Made};
use nudge_plugin_runtime::{Recorder, RolloutPeriod, logs};
use nudge_records::dead_letters::violation::Violation;
use nudge_records::events::Event;
use nudge_wasm::{Call, Failed, Plugin, validation};
use uuid::Uuid;

use crate::services::Services;
use shadow::ShadowRuns;

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
        let checks = VersionChecks::new(context, version, logs::Kind::Decision);
        found.extend(halving::ask(&checks, &declared));
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
}

impl<'c> VersionChecks<'c> {
    pub(super) fn new(context: &'c Context, version: Version, kind: logs::Kind) -> Self {
        Self {
            context,
            version,
            kind,
        }
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

impl<'d> Halving<&'d Declared> for VersionChecks<'_> {
    type Answer = (usize, Verdict);

    const FAILING_TIME: Duration = Duration::from_secs(1);
    const GIVES_UP_INCONCLUSIVE: bool = false;

    fn call(&self, declared: &[&'d Declared]) -> Result<(PlacedVerdicts, Call), Failed> {
        let outcome = self.version.plugin.validate(self.batch(declared))?;
        Ok((judge(declared, outcome.violations), outcome.call))
    }

    fn note(&self, declared: &[&'d Declared], outcome: CallOutcome, call: &Call) {
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

    fn warn(&self, failed: &Failed) {
        let period = &self.version.period;
        tracing::warn!(
            app.id = %self.context.app_id,
            plugin.name = period.name,
            plugin.version = period.version,
            error = %failed,
            "validation failed"
        );
    }

    fn give_up(&self, declared: &[&'d Declared], _failed: &Failed) -> PlacedVerdicts {
        let places = declared.iter().map(|event| event.place);
        places.map(|place| (place, Verdict::Unchecked)).collect()
    }
}

/// Takes what a plugin found over.
fn judge(declared: &[&Declared], found: Vec<validation::Violation>) -> PlacedVerdicts {
    let mut violations: HashMap<u32, Vec<Violation>> = HashMap::new();
    for violation in found {
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
    let broken = (0_u32..).zip(declared).filter_map(|(item, event)| {
        let found = violations.remove(&item)?;
        Some((event.place, Verdict::Broken(found)))
    });
    broken.collect()
}
