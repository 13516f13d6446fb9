//! What candidates would have decided.

pub(super) mod views;
