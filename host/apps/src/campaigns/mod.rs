//! What happens to campaigns of all kinds: their end, their deletion, and the routes that all share.

pub mod ending;
pub mod http;
pub mod removal_steps;
