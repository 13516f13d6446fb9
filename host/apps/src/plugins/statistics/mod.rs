//! How plugins fare.

pub(super) mod views;
