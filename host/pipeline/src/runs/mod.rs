//! Runs of campaigns by the calendar: each is begun once, and reaches each person once.

pub mod job;
mod run_state;
mod setback;
pub mod store;
pub mod watch;
