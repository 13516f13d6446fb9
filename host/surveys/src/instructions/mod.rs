//! Instructions.

pub mod http;
pub mod polling;
