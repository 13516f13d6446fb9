//! Shadow.

pub(super) mod views;
