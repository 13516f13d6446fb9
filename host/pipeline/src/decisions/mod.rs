//! Decisions.

pub mod http;
mod rerun;
