//! Panics, which would otherwise reach the host as a mere `unreachable executed`.

use std::cell::Cell;
use std::panic;

/// Sends the message and place of every panic to the log, from the first call on.
pub fn log_panics() {
    thread_local! {
        static LOGGED: Cell<bool> = const { Cell::new(false) };
    }
    if !LOGGED.replace(true) {
        panic::set_hook(Box::new(|info| crate::log::error(info.to_string())));
    }
}
