//! An instance that is used again and again, to measure what fresh ones cost. The host never does this.

use wasmtime::Store;

use crate::call::{self, Call, Interruption};
use crate::failure::{Failure, failure_of};
use crate::host::trigger::View;
use crate::host::wasi::Surroundings;
use crate::kind::Kind;
use crate::meter::Meter;
use crate::plugin::{Plugin, refused, trigger_allowance};
use crate::store::{State, left};
use crate::trigger;
use crate::worlds::Instance;

/// One instance of a trigger plugin.
pub struct Session<'a> {
    plugin: &'a Plugin,
    store: Store<State>,
    instance: Instance<'a>,
}

impl<'a> Session<'a> {
    /// Makes an instance.
    pub fn new(plugin: &'a Plugin) -> Result<Self, Failure> {
        let version = plugin.version();
        if plugin.kind() != Kind::Trigger {
            return Err(Failure::Trap("not a trigger plugin".to_owned()));
        }
        let limits = &version.shared.limits;
        let allowance = call::Allowance {
            deadline: limits.trigger_deadline,
            host_calls: limits.host_calls,
        };
        let state = call::state(
            &version.shared,
            limits,
            &allowance,
            Surroundings::default(),
            None,
        );
        let mut store = call::store(&version.shared, limits, &allowance, state);
        let instance = version
            .pre
            .start(&mut store)
            .map_err(|error| failure_of(&error, false))?;
        Ok(Self {
            plugin,
            store,
            instance,
        })
    }

    /// Evaluates a batch like [`Plugin::evaluate`].
    pub fn evaluate(
        &mut self,
        batch: trigger::Batch,
        facts: Box<dyn trigger::Facts>,
    ) -> Result<trigger::TriggerOutcome, Failure> {
        let version = self.plugin.version();
        let allowance = trigger_allowance(&version.shared.limits, &batch);
        let state = self.store.data_mut();
        state.meter = Meter::new(allowance.host_calls, version.shared.limits.output_bytes);
        let view = View::new(batch, facts, self.plugin.has_unlimited_timers());
        state.view = Some(Box::new(view));
        self.store
            .set_epoch_deadline(call::epochs(allowance.deadline));

        let decided = self
            .instance
            .decide(&mut self.store)
            .map_err(Interruption::from);
        match decided.and_then(|decided| decided.map_err(|refusal| refused(&refusal).into())) {
            Ok(()) => {
                let view: View = left(self.store.data_mut().view.take())?;
                Ok(view.into_outcome(Call::default()))
            }
            Err(Interruption::Failure(failure)) => Err(failure),
            Err(Interruption::Error(error)) => {
                Err(failure_of(&error, self.store.data().memory.denied))
            }
        }
    }
}
