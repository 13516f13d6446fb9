//! One version of a plugin, ready to be called.

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU8;

use wasmtime::Store;

use crate::ahead;
use crate::bindings::types;
use crate::call::{self, Allowance, Call, Interruption};
use crate::engine::Shared;
use crate::failure::{Failed, Failure};
use crate::host::wasi::Surroundings;
use crate::kind::Kind;
use crate::limits::{
    ELEMENT_BYTES, Limits, Lowered, PATHS, REFUSAL_CODE_CHARACTERS, REFUSAL_MESSAGE_CHARACTERS,
};
use crate::store::{AnyView, State, left};
use crate::worlds::{Instance, Pre};
use crate::{host, personalization, text, trigger, validation};

/// One version of a plugin. Cheap to clone; each call has an instance of its own.
#[derive(Clone)]
pub struct Plugin {
    version: Arc<Version>,
    description: Arc<Description>,
    /// Of its decisions.
    limits: Arc<Limits>,
    unlimited_timers: bool,
    withdrawn: Option<Arc<Withdrawal>>,
}

/// Why a version decides nothing any longer.
#[derive(Debug)]
struct Withdrawal {
    code: &'static str,
    message: String,
}

/// What a plugin says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Description {
    /// Lower-case letters, digits and hyphens.
    pub name: String,
    /// A semantic version.
    pub version: String,
    /// For the people who choose plugins.
    pub summary: String,
    /// A JSON Schema of the configuration, or an empty string.
    pub config_schema: String,
}

/// What decisions under a configuration read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reads {
    /// Names of the events to be called for; `*` alone is every event.
    pub event_names: Vec<String>,
    /// Event properties, as dotted paths.
    pub properties: Vec<String>,
    /// Saved properties of the subject.
    pub subject_properties: Vec<String>,
    /// Names of events that decisions ask the past of without being called for them.
    pub history: Vec<String>,
}

/// One thing that is wrong with a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// A stable code in snake case.
    pub code: String,
    /// A JSON pointer into the configuration.
    pub pointer: String,
    /// A sentence for a person.
    pub message: String,
}

/// A plugin that has not said yet what it is.
pub(crate) struct Version {
    pub(crate) shared: Arc<Shared>,
    pub(crate) kind: Kind,
    pub(crate) pre: Pre,
    pub(crate) digest: String,
    pub(crate) imports: Vec<String>,
    pub(crate) exports: Vec<String>,
    /// How many of its starts ahead took long in a row; from a number on, no instance of it is made ahead.
    pub(crate) late_starts: AtomicU8,
}

impl Plugin {
    pub(crate) fn new(version: Version, description: Description) -> Self {
        Self {
            limits: Arc::new(version.shared.limits.clone()),
            version: Arc::new(version),
            description: Arc::new(description),
            unlimited_timers: false,
            withdrawn: None,
        }
    }

    /// The same version, which decides nothing any longer: it fails on all that it is asked, without being called. What it
    /// says of configurations holds.
    #[must_use]
    pub fn withdrawn(&self) -> Self {
        let message = "the version was rolled back, and no other is active";
        self.without_decisions("rolled_back", message.to_owned())
    }

    /// The same version, which decides nothing under a configuration that it refuses: it fails on all that it is asked, without
    /// being called. `what` is wrong with the configuration.
    #[must_use]
    pub fn refusing(&self, what: &str) -> Self {
        self.without_decisions(
            "config_refused",
            format!("the version that is active refuses the configuration: {what}"),
        )
    }

    fn without_decisions(&self, code: &'static str, message: String) -> Self {
        Self {
            withdrawn: Some(Arc::new(Withdrawal { code, message })),
            ..self.clone()
        }
    }

    /// Whether it decides nothing any longer.
    pub fn is_withdrawn(&self) -> bool {
        self.withdrawn.is_some()
    }

    /// The same version, whose decisions may use no more than this either.
    #[must_use]
    pub fn within(&self, lowered: &Lowered) -> Self {
        Self {
            limits: Arc::new(self.version.shared.limits.lowered(lowered)),
            ..self.clone()
        }
    }

    /// What decisions may use.
    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The same version with other limits of its decisions.
    pub(crate) fn limited(&self, limits: Limits) -> Self {
        Self {
            limits: Arc::new(limits),
            ..self.clone()
        }
    }

    /// The plugin as a part of the server: each of its timers stands for an event that is stored anyway, so that it
    /// sets as many as it takes.
    #[must_use]
    pub fn with_unlimited_timers(self) -> Self {
        Self {
            unlimited_timers: true,
            ..self
        }
    }

    /// Whether no limit on numbers of timers holds for it.
    pub fn has_unlimited_timers(&self) -> bool {
        self.unlimited_timers
    }

    pub(crate) fn version(&self) -> &Version {
        &self.version
    }

    /// What it decides.
    pub fn kind(&self) -> Kind {
        self.version.kind
    }

    /// The SHA-256 of the component, in hexadecimal.
    pub fn digest(&self) -> &str {
        &self.version.digest
    }

    /// What it says of itself.
    pub fn description(&self) -> &Description {
        &self.description
    }

    /// Asks it once more what it is. The answer must be [`description`](Self::description).
    pub fn describe(&self) -> Result<Description, Failed> {
        self.version.describe().map(|(description, _)| description)
    }

    /// The interfaces that it imports.
    pub fn imports(&self) -> &[String] {
        &self.version.imports
    }

    /// The interfaces that it exports.
    pub fn exports(&self) -> &[String] {
        &self.version.exports
    }

    /// Starts an instance and asks it what it is, for what that costs: the least of any call.
    pub fn start_up(&self) -> Result<Call, Failed> {
        self.version.describe().map(|(_, call)| call)
    }

    /// Checks a configuration, and says what decisions under it read.
    pub fn check_config(&self, config: &str) -> Result<Result<Reads, Vec<Problem>>, Failed> {
        self.check_config_call(config).map(|(checked, _)| checked)
    }

    /// The same, with what the call cost and logged.
    pub fn check_config_call(
        &self,
        config: &str,
    ) -> Result<(Result<Reads, Vec<Problem>>, Call), Failed> {
        self.version.check_config(config)
    }

    /// Decides which items fire which campaigns. A plugin of another kind traps.
    pub fn evaluate(
        &self,
        batch: trigger::Batch,
        facts: Box<dyn trigger::Facts>,
    ) -> Result<trigger::TriggerOutcome, Failed> {
        self.decides(Kind::Trigger)?;
        let allowance = trigger_allowance(&self.limits, &batch);
        let surroundings = Surroundings {
            now: batch.now,
            seed: batch.seed,
        };
        let view = host::trigger::View::new(batch, facts, self.unlimited_timers);
        let (view, call) = self
            .version
            .decide(&self.limits, &allowance, surroundings, view)?;
        Ok(view.into_outcome(call))
    }

    /// Reports the violations in a batch. A plugin of another kind traps.
    pub fn validate(
        &self,
        batch: validation::Batch,
    ) -> Result<validation::ValidationOutcome, Failed> {
        self.decides(Kind::Validation)?;
        let limits = &self.limits;
        let allowance = Allowance {
            deadline: limits.validation_deadline,
            host_calls: limits.host_calls_for(batch.items.len(), batch.definitions.len()),
        };
        let surroundings = Surroundings {
            now: batch.now,
            seed: 0,
        };
        let view = host::validation::View::new(batch);
        let (view, call) = self
            .version
            .decide(&self.limits, &allowance, surroundings, view)?;
        Ok(view.into_outcome(call))
    }

    /// Resolves every binding for every recipient. A plugin of another kind traps.
    pub fn resolve(
        &self,
        batch: personalization::Batch,
        facts: Box<dyn personalization::Facts>,
    ) -> Result<personalization::PersonalizationOutcome, Failed> {
        self.decides(Kind::Personalization)?;
        let limits = &self.limits;
        let allowance = Allowance {
            deadline: limits.personalization_deadline,
            host_calls: limits.host_calls_for(batch.items.len(), batch.messages.len()),
        };
        let surroundings = Surroundings {
            now: batch.now,
            seed: batch.seed,
        };
        let view = host::personalization::View::new(batch, facts);
        let (view, call) = self
            .version
            .decide(&self.limits, &allowance, surroundings, view)?;
        Ok(view.into_outcome(call))
    }

    fn decides(&self, wanted: Kind) -> Result<(), Failed> {
        let failure = if self.kind() != wanted {
            let reason = format!("a {} plugin was called as a {wanted} plugin", self.kind());
            Failure::Trap(reason)
        } else if let Some(withdrawal) = &self.withdrawn {
            Failure::Refused {
                code: withdrawal.code.to_owned(),
                message: withdrawal.message.clone(),
            }
        } else {
            return Ok(());
        };
        Err(Failed {
            failure,
            call: Box::default(),
        })
    }
}

impl fmt::Debug for Plugin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Plugin")
            .field("kind", &self.kind())
            .field("digest", &self.digest())
            .field("description", &self.description)
            .finish_non_exhaustive()
    }
}

/// What a decision of a trigger plugin may use.
pub(crate) fn trigger_allowance(limits: &Limits, batch: &trigger::Batch) -> Allowance {
    Allowance {
        deadline: limits.trigger_deadline,
        host_calls: limits.host_calls_for(batch.items.len(), batch.campaigns.len()),
    }
}

impl Version {
    pub(crate) fn describe(&self) -> Result<(Description, Call), Failed> {
        self.outside_batch(|instance, store| {
            let described = instance.describe(store)?;
            let types::Description {
                name,
                version,
                summary,
                config_schema,
                more: _,
            } = described;
            let bytes = name.len() + version.len() + summary.len() + config_schema.len();
            store
                .data_mut()
                .meter
                .output(bytes)
                .map_err(wasmtime::Error::from)?;
            Ok(Description {
                name,
                version,
                summary,
                config_schema,
            })
        })
    }

    fn check_config(&self, config: &str) -> Result<(Result<Reads, Vec<Problem>>, Call), Failed> {
        self.outside_batch(|instance, store| {
            let checked = instance.check_config(store, config)?;
            let bytes = match &checked {
                Ok(reads) => {
                    let lists = [
                        &reads.event_names,
                        &reads.properties,
                        &reads.subject_properties,
                    ];
                    if lists.iter().any(|list| list.len() > PATHS) {
                        let reason = format!("a configuration reads more than {PATHS} names");
                        return Err(Failure::Trap(reason).into());
                    }
                    if reads.more.len() > PATHS {
                        let reason = format!("a configuration says more than {PATHS} things");
                        return Err(Failure::Trap(reason).into());
                    }
                    let more = reads.more.iter().map(|(key, text)| key.len() + text.len());
                    let names = lists.into_iter().flatten().map(String::len);
                    names.chain(more).sum::<usize>()
                }
                Err(problems) => problems.iter().map(problem_bytes).sum(),
            };
            store
                .data_mut()
                .meter
                .output(bytes)
                .map_err(wasmtime::Error::from)?;
            Ok(checked
                .map(Reads::from)
                .map_err(|list| list.into_iter().map(Problem::from).collect()))
        })
    }

    /// Runs a function that has no batch.
    fn outside_batch<R>(
        &self,
        body: impl FnOnce(&Instance<'_>, &mut Store<State>) -> Result<R, Interruption>,
    ) -> Result<(R, Call), Failed> {
        let limits = &self.shared.limits;
        let allowance = Allowance {
            deadline: limits.describe_deadline,
            host_calls: limits.host_calls,
        };
        let surroundings = Surroundings::default();
        let state = call::state(&self.shared, limits, &allowance, surroundings, None);
        let mut store = call::store(&self.shared, limits, &allowance, state);
        call::run(&mut store, None, &self.pre, allowance.deadline, body)
            .map(|(result, _, call)| (result, call))
    }

    /// Runs a decision, and gives what is left of its view: what it asked for.
    fn decide<V: Any + Send>(
        self: &Arc<Self>,
        limits: &Limits,
        allowance: &Allowance,
        surroundings: Surroundings,
        view: V,
    ) -> Result<(V, Call), Failed> {
        let view: AnyView = Box::new(view);
        let state = call::state(&self.shared, limits, allowance, surroundings, Some(view));
        let (mut store, made) = ahead::begin(self, limits, allowance, state);
        let deadline = allowance.deadline;
        let decided = call::run(&mut store, made, &self.pre, deadline, |instance, store| {
            let Err(refusal) = instance.decide(store)? else {
                return Ok(());
            };
            let bytes = refusal.code.len() + refusal.message.len();
            let counted = store.data_mut().meter.output(bytes);
            counted.map_err(wasmtime::Error::from)?;
            Err(refused(&refusal).into())
        });
        ahead::end(self, store);
        let ((), view, call) = decided?;
        match left(view) {
            Ok(view) => Ok((view, call)),
            Err(failure) => Err(Failed {
                failure,
                call: Box::new(call),
            }),
        }
    }
}

/// A refusal as others may see it: short, and without control characters.
pub(crate) fn refused(refusal: &types::Refusal) -> Failure {
    Failure::Refused {
        code: text::shown(&refusal.code, REFUSAL_CODE_CHARACTERS),
        message: text::shown(&refusal.message, REFUSAL_MESSAGE_CHARACTERS),
    }
}

fn problem_bytes(problem: &types::Problem) -> usize {
    ELEMENT_BYTES + problem.code.len() + problem.pointer.len() + problem.message.len()
}

/// What `reads.more` names the past of events by.
const HISTORY: &str = "history";

impl From<types::Reads> for Reads {
    fn from(reads: types::Reads) -> Self {
        let types::Reads {
            event_names,
            properties,
            subject_properties,
            more,
        } = reads;
        let history = more.into_iter().filter(|(key, _)| key == HISTORY);
        Self {
            event_names,
            properties,
            subject_properties,
            history: history.map(|(_, name)| name).collect(),
        }
    }
}

impl From<types::Problem> for Problem {
    fn from(problem: types::Problem) -> Self {
        let types::Problem {
            code,
            pointer,
            message,
            more: _,
        } = problem;
        Self {
            code,
            pointer,
            message,
        }
    }
}
