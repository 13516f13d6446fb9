//! Instructions.

mod feedback;
pub mod http;
pub mod polling;
