//! Kept decisions: the routes that show them and make them again.

pub mod http;
mod rerun;
