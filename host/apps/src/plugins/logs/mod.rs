//! Logs.

pub(super) mod views;
