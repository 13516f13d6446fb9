//! The messages that webhooks send, as they are stored.

pub mod messages;
