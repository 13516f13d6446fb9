//! Deliveries.

pub mod http;
