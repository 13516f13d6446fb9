//! Campaigns.

pub mod http;
