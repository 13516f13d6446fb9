//! Runs.

pub mod job;
mod standing;
pub mod store;
pub mod watch;
