//! What SDKs are to show: how they ask for it, and what they say became of it.

pub(crate) mod feedback;
pub mod http;
pub mod of_person;
pub mod polling;
