//! Campaigns of both types: push messages and in-app messages.

pub mod analytics;
pub mod http;
pub mod in_app;
