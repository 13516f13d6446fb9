//! Instances that are made ahead: while nothing waits for a thread, it ends the instance of its last call, and makes one for the
//! next call of that plugin.
//!
//! An instance that was made ahead has run nothing but its start, which has asked the host for nothing: it is as one that is made when
//! it is called. Where a start asks for anything, or takes long several times in a row, all instances are made when they are
//! called.

use std::cell::RefCell;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use wasmtime::{Store, component};

use crate::call::{self, Allowance};
use crate::host::wasi::Surroundings;
use crate::limits::Limits;
use crate::plugin::Version;
use crate::store::State;

/// How long a start may take for which no call waits. It counts as nobody's time.
const DEADLINE: Duration = Duration::from_millis(5);
/// So many starts in a row that take longer are no accident of a busy machine.
const LATE: u8 = 3;

/// The instances that wait for a call. Plugins that nobody has any longer leave theirs until there is no room.
pub(crate) struct Ahead {
    most: usize,
    ready: Mutex<Vec<(Weak<Version>, Ready)>>,
}

/// An instance that waits for a call.
struct Ready {
    store: Store<State>,
    instance: component::Instance,
}

impl Ahead {
    /// `most`: how many instances there are at the most. A plugin has one at the most.
    pub(crate) fn new(most: u32) -> Self {
        Self {
            most: usize::try_from(most).unwrap_or(usize::MAX),
            ready: Mutex::default(),
        }
    }

    /// The instance that waits for a call of this version.
    fn take(&self, version: &Arc<Version>) -> Option<Ready> {
        let mut ready = self.ready.lock();
        let place = ready.iter().position(|(of, _)| is_of(of, version))?;
        Some(ready.remove(place).1)
    }

    fn has(&self, version: &Arc<Version>) -> bool {
        self.ready.lock().iter().any(|(of, _)| is_of(of, version))
    }

    /// Keeps an instance for the next call of this version; what has waited longest makes room.
    fn keep(&self, version: &Arc<Version>, one: Ready) {
        let mut ready = self.ready.lock();
        let gone = (ready.len() >= self.most).then(|| ready.remove(0));
        ready.push((Arc::downgrade(version), one));
        drop(ready);
        // An instance ends when nobody waits for the list.
        drop(gone);
    }

    fn make(&self, version: &Arc<Version>) {
        if self.most == 0
            || version.late_starts.load(Ordering::Relaxed) >= LATE
            || self.has(version)
        {
            return;
        }
        let shared = &version.shared;
        let allowance = Allowance {
            deadline: DEADLINE,
            host_calls: 0,
        };
        let (limits, surroundings) = (&shared.limits, Surroundings::default());
        let state = call::state(shared, limits, &allowance, surroundings, None);
        let mut store = call::store(shared, limits, &allowance, state);
        let began = Instant::now();
        let started = version.pre.start(&mut store);
        let state = store.data_mut();
        state.end();
        let late = match started {
            Ok(instance) if !state.was_asked() && began.elapsed() < DEADLINE => {
                let instance = instance.into_inner();
                self.keep(version, Ready { store, instance });
                0
            }
            // Its calls say what is wrong, and it is the app's time that they take.
            _ if state.was_asked() => LATE,
            _ => version.late_starts.load(Ordering::Relaxed) + 1,
        };
        version.late_starts.store(late, Ordering::Relaxed);
    }
}

fn is_of(of: &Weak<Version>, version: &Arc<Version>) -> bool {
    std::ptr::eq(of.as_ptr(), Arc::as_ptr(version))
}

/// What a thread that calls plugins keeps between calls.
struct CallThread {
    /// Whether it ends instances between calls.
    pauses: bool,
    /// What its last call left.
    used: Option<(Arc<Version>, Store<State>)>,
}

thread_local! {
    static CALL_THREAD: RefCell<CallThread> = const { RefCell::new(CallThread { pauses: false, used: None }) };
}

/// What a thread that calls plugins does while nothing waits for it. From then on its calls leave their instances to this, and
/// answer sooner by what it takes to end one and to make one.
pub fn between_calls() {
    let used = CALL_THREAD.with_borrow_mut(|thread| {
        thread.pauses = true;
        thread.used.take()
    });
    if let Some((version, store)) = used {
        drop(store);
        version.shared.ahead.make(&version);
    }
}

/// The store of a call, with its instance if one waits for it.
pub(crate) fn begin(
    version: &Arc<Version>,
    limits: &Limits,
    allowance: &Allowance,
    state: State,
) -> (Store<State>, Option<component::Instance>) {
    end_last();
    let shared = &version.shared;
    if let Some(Ready {
        mut store,
        instance,
    }) = shared.ahead.take(version)
    {
        let bytes = store.data().memory.bytes;
        if bytes <= limits.memory_bytes {
            *store.data_mut() = state;
            store.data_mut().memory.bytes = bytes;
            call::allow(&mut store, limits, allowance);
            return (store, Some(instance));
        }
    }
    (call::store(shared, limits, allowance, state), None)
}

/// Ends the instance of a call, now or [between calls](between_calls).
pub(crate) fn end(version: &Arc<Version>, mut store: Store<State>) {
    store.data_mut().end();
    CALL_THREAD.with_borrow_mut(|thread| {
        if thread.pauses {
            thread.used = Some((Arc::clone(version), store));
        }
    });
}

/// Ends what the last call of this thread left, which has an instance's place.
fn end_last() {
    drop(CALL_THREAD.with_borrow_mut(|thread| thread.used.take()));
}
