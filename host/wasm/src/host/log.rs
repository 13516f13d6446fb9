//! `nudge:plugin/log`: the plugin's log.

use crate::bindings::{log, types};
use crate::log::Level;
use crate::store::State;

impl log::Host for State {
    fn write(&mut self, level: log::Level, message: String) -> wasmtime::Result<()> {
        self.meter.host_call()?;
        let level = match level {
            log::Level::Debug => Level::Debug,
            log::Level::Info => Level::Info,
            log::Level::Warn => Level::Warn,
            log::Level::Error => Level::Error,
        };
        self.log.write(level, &message);
        Ok(())
    }
}

impl types::Host for State {}
