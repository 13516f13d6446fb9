//! One call of a plugin: a store and an instance of its own, limits, and what is left afterwards.

use std::time::{Duration, Instant};

use wasmtime::{Store, component};

use crate::engine::Shared;
use crate::failure::{Failed, Failure, failure_of};
use crate::host::wasi::{Surroundings, Wasi};
use crate::limits::{COPY_FACTOR, EPOCH, Limits};
use crate::log::{Level, Log, LogLine};
use crate::meter::Meter;
use crate::processor;
use crate::store::{AnyView, MemoryAccount, State};
use crate::worlds::{Instance, Pre};

/// What a call cost, and what it logged.
#[derive(Debug, Clone, Default)]
pub struct Call {
    /// Wall-clock time, instantiation included.
    pub elapsed: Duration,
    /// Of that, until the instance was ready; none, where it was made ahead.
    pub instantiation: Duration,
    /// Whether a call that failed had less than a quarter of the deadline of processor time, host functions included.
    /// Where the deadline passed nevertheless, the machine had other things to do, or a question waited for the
    /// database: guests can't sleep.
    pub hardly_ran: bool,
    /// The instance's linear memory.
    pub memory_bytes: usize,
    /// Host functions that the plugin called.
    pub host_calls: u32,
    /// What it gave to the host, in bytes as they count against the limit.
    pub output_bytes: u32,
    /// What the plugin logged, standard output and standard error included.
    pub logs: Vec<LogLine>,
}

/// What a call may use.
pub(crate) struct Allowance {
    pub(crate) deadline: Duration,
    pub(crate) host_calls: u32,
}

/// What a call has, whose deadline begins to pass.
pub(crate) fn state(
    shared: &Shared,
    limits: &Limits,
    allowance: &Allowance,
    surroundings: Surroundings,
    view: Option<AnyView>,
) -> State {
    State {
        view,
        meter: Meter::new(allowance.host_calls, limits.output_bytes),
        log: Log::new(limits.log_bytes),
        memory: MemoryAccount::new(limits),
        wasi: Wasi::new(surroundings, limits.log_bytes),
        ticking: Some(shared.ticker.tick()),
    }
}

/// Makes the store of a call.
pub(crate) fn store(
    shared: &Shared,
    limits: &Limits,
    allowance: &Allowance,
    state: State,
) -> Store<State> {
    let mut store = Store::new(&shared.engine, state);
    store.limiter(|state| &mut state.memory);
    allow(&mut store, limits, allowance);
    store
}

/// Says what a call may use from now on.
pub(crate) fn allow(store: &mut Store<State>, limits: &Limits, allowance: &Allowance) {
    store.set_epoch_deadline(epochs(allowance.deadline));
    store.set_hostcall_fuel(limits.output_bytes.saturating_mul(COPY_FACTOR));
}

/// A deadline in epochs, rounded up; one more, because the current epoch is under way.
pub(crate) fn epochs(deadline: Duration) -> u64 {
    u64::try_from(deadline.as_micros().div_ceil(EPOCH.as_micros())).unwrap_or(u64::MAX / 2) + 1
}

/// Whether so much processor time is no reason to miss a deadline.
fn is_little(processor: Duration, deadline: Duration) -> bool {
    processor < deadline / 4
}

/// Runs `body` on the instance that was made ahead, or on a fresh one. `deadline` is what the store was made with.
pub(crate) fn run<R>(
    store: &mut Store<State>,
    made: Option<component::Instance>,
    pre: &Pre,
    deadline: Duration,
    body: impl FnOnce(&Instance<'_>, &mut Store<State>) -> Result<R, Interruption>,
) -> Result<(R, Option<AnyView>, Call), Failed> {
    let start = Instant::now();
    let processor = processor::used_about(start);
    let mut instantiation = Duration::ZERO;
    let result = match made {
        Some(made) => body(&pre.around(made), store),
        None => pre
            .start(store)
            .map_err(Interruption::Error)
            .and_then(|instance| {
                instantiation = start.elapsed();
                body(&instance, store)
            }),
    };
    let elapsed = start.elapsed();
    let state = store.data_mut();
    let hardly_ran =
        result.is_err() && is_little(processor::used().saturating_sub(processor), deadline);

    state.wasi.flush_into(&mut state.log);
    let call = Call {
        elapsed,
        instantiation,
        hardly_ran,
        memory_bytes: state.memory.bytes,
        host_calls: state.meter.host_calls_made(),
        output_bytes: u32::try_from(state.meter.output_bytes_given()).unwrap_or(u32::MAX),
        logs: state.log.take_lines(),
    };
    match result {
        Ok(result) => Ok((result, state.view.take(), call)),
        Err(Interruption::Failure(failure)) => Err(Failed {
            failure,
            call: Box::new(call),
        }),
        Err(Interruption::Error(error)) => {
            let mut failure = failure_of(&error, state.memory.denied);
            // A panic has logged its place.
            if !call.logs.iter().any(|line| line.level == Level::Error) {
                failure = failure.located(&error);
            }
            Err(Failed {
                failure,
                call: Box::new(call),
            })
        }
    }
}

/// Why the body of a call came to an early end.
pub(crate) enum Interruption {
    /// The engine says that something broke.
    Error(wasmtime::Error),
    /// It is known already what the failure is.
    Failure(Failure),
}

impl From<wasmtime::Error> for Interruption {
    fn from(error: wasmtime::Error) -> Self {
        Self::Error(error)
    }
}

impl From<Failure> for Interruption {
    fn from(failure: Failure) -> Self {
        Self::Failure(failure)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn less_than_a_quarter_of_the_deadline_is_little() {
        let deadline = Duration::from_millis(40);
        assert!(is_little(Duration::from_micros(9_999), deadline));
        assert!(!is_little(Duration::from_millis(10), deadline));
    }
}
