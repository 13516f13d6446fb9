//! The clock behind deadlines.

use std::io;
use std::thread;

use wasmtime::Engine;

use crate::limits::EPOCH;

/// Starts the thread that moves the engine's epoch. It ends when the engine is gone.
///
/// It sleeps anew after each tick instead of keeping to a schedule: a machine that stood still must not
/// catch up with a burst of ticks, which would end innocent calls.
pub(crate) fn start(engine: &Engine) -> io::Result<()> {
    let engine = engine.weak();
    thread::Builder::new()
        .name("plugin-epochs".to_owned())
        .spawn(move || {
            while let Some(engine) = engine.upgrade() {
                engine.increment_epoch();
                drop(engine);
                thread::sleep(EPOCH);
            }
        })?;
    Ok(())
}
