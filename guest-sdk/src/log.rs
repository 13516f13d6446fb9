//! The plugin's log: lines for its author and for operators, up to 8 KiB a call.
//!
//! In a unit test the lines are kept for [`testing::log_lines`](crate::testing::log_lines).

use crate::bindings::trigger::nudge::plugin::log::Level;

/// Writes a line that matters while a plugin is being written.
pub fn debug(message: impl AsRef<str>) {
    write(Level::Debug, message.as_ref());
}

/// Writes a line that is good to know.
pub fn info(message: impl AsRef<str>) {
    write(Level::Info, message.as_ref());
}

/// Writes a line that somebody should look at.
pub fn warn(message: impl AsRef<str>) {
    write(Level::Warn, message.as_ref());
}

/// Writes a line about something that went wrong.
pub fn error(message: impl AsRef<str>) {
    write(Level::Error, message.as_ref());
}

#[cfg(target_arch = "wasm32")]
fn write(level: Level, message: &str) {
    crate::bindings::trigger::nudge::plugin::log::write(level, message);
}

#[cfg(not(target_arch = "wasm32"))]
fn write(level: Level, message: &str) {
    crate::testing::keep_log_line(level, message);
}
