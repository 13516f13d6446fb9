//! Running a plugin natively, in ordinary unit tests, against a host that is only memory.
//!
//! [`TriggerTest`], [`ValidationTest`] and [`PersonalizationTest`] check a configuration as the server
//! does when it is saved, call the plugin as the server would, and let a test see what it asked for. Where
//! a plugin refuses a batch they panic, because the test has failed.
//!
//! What a server would know beyond the events of the test is set: saved properties and facts, a past
//! ([`TriggerTest::add_event`], [`PersonalizationTest::add_event`]), the end of a session
//! ([`TriggerTest::end_session`]). [`TriggerTest::derive_facts`] has facts follow from events, as on a server.

mod cells;
mod personalization;
mod subject;
mod trigger;
mod trigger_host;
mod validation;

use std::cell::RefCell;

pub use personalization::PersonalizationTest;
pub use trigger::{Explanation, Firing, TriggerTest};
pub use validation::ValidationTest;

use crate::bindings::trigger::nudge::plugin::log::Level;

thread_local! {
    static LOG: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// What the plugin has logged in this test since this was last asked, as `warn: message`.
pub fn log_lines() -> Vec<String> {
    LOG.take()
}

pub(crate) fn keep_log_line(level: Level, message: &str) {
    let level = match level {
        Level::Debug => "debug",
        Level::Info => "info",
        Level::Warn => "warn",
        Level::Error => "error",
    };
    LOG.with_borrow_mut(|lines| lines.push(format!("{level}: {message}")));
}
