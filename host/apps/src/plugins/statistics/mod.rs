//! Statistics.

pub(super) mod views;
