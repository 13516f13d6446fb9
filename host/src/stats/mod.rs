//! Stats.

pub mod http;
