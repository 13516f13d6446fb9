//! What plugins write to their logs.

pub(super) mod views;
