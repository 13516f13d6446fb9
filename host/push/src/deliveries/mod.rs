//! The routes of deliveries.

pub mod http;
