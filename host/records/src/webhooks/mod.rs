//! Webhooks.

pub mod message;
pub mod messages;
