//! The clock behind deadlines.

use std::io;
use std::sync::Arc;
use std::thread;

use parking_lot::{Condvar, Mutex};
use wasmtime::Engine;

use crate::limits::EPOCH;

/// Moves the engine's epoch while plugins are called. Without a call its thread sleeps.
#[derive(Debug)]
pub(crate) struct Ticker(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Calls that have a deadline.
    calls: usize,
    ended: bool,
}

impl Inner {
    /// Waits for a call; answers whether the engine is still there.
    fn wait_for_calls(&self) -> bool {
        let idle = |state: &mut State| state.calls == 0 && !state.ended;
        let mut state = self.state.lock();
        self.changed.wait_while(&mut state, idle);
        !state.ended
    }
}

impl Ticker {
    /// Starts the thread. It ends with the ticker.
    ///
    /// The thread sleeps anew after each tick instead of keeping to a schedule: a machine that stood still must not
    /// catch up with a burst of ticks, which would end innocent calls.
    pub(crate) fn start(engine: &Engine) -> io::Result<Self> {
        let inner = Arc::new(Inner::default());
        let (ticking, engine) = (Arc::clone(&inner), engine.clone());
        thread::Builder::new()
            .name("plugin-epochs".to_owned())
            .spawn(move || {
                while ticking.wait_for_calls() {
                    thread::sleep(EPOCH);
                    engine.increment_epoch();
                }
            })?;
        Ok(Self(inner))
    }

    /// Deadlines pass until what this returns is dropped.
    pub(crate) fn tick(&self) -> Ticking {
        let mut state = self.0.state.lock();
        state.calls += 1;
        if state.calls == 1 {
            self.0.changed.notify_one();
        }
        Ticking(Arc::clone(&self.0))
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.0.state.lock().ended = true;
        self.0.changed.notify_one();
    }
}

/// Keeps the epoch moving.
#[derive(Debug)]
pub(crate) struct Ticking(Arc<Inner>);

impl Drop for Ticking {
    fn drop(&mut self) {
        self.0.state.lock().calls -= 1;
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use wasmtime::{Config, Module, Store};

    use super::*;

    /// A module whose function `spin` never ends.
    const SPINNING: &[u8] = b"\0asm\x01\0\0\0\
        \x01\x04\x01\x60\0\0\
        \x03\x02\x01\0\
        \x07\x08\x01\x04spin\0\0\
        \x0a\x09\x01\x07\0\x03\x40\x0c\0\x0b\x0b";

    #[test]
    fn deadlines_pass_while_there_are_calls_and_only_then() -> wasmtime::Result<()> {
        let mut config = Config::new();
        config.epoch_interruption(true);
        let engine = Engine::new(&config)?;
        let ticker = Ticker::start(&engine)?;
        let module = Module::new(&engine, SPINNING)?;
        for _ in 0..2 {
            let ticking = ticker.tick();
            let mut store = Store::new(&engine, ());
            store.set_epoch_deadline(5);
            let instance = wasmtime::Instance::new(&mut store, &module, &[])?;
            let spin = instance.get_typed_func::<(), ()>(&mut store, "spin")?;
            let began = Instant::now();
            assert!(spin.call(&mut store, ()).is_err());
            assert!(began.elapsed() < Duration::from_secs(5));
            drop(ticking);
            thread::sleep(EPOCH * 5);
            assert_eq!(ticker.0.state.lock().calls, 0);
        }
        let inner = Arc::downgrade(&ticker.0);
        drop(ticker);
        let began = Instant::now();
        while inner.strong_count() > 0 {
            assert!(
                began.elapsed() < Duration::from_secs(5),
                "the thread goes on"
            );
            thread::sleep(EPOCH);
        }
        Ok(())
    }
}
