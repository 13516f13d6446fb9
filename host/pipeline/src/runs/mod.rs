//! Runs.

pub mod job;
mod kinds;
pub mod store;
pub mod watch;
