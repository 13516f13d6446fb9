//! Webhooks.

pub mod messages;
