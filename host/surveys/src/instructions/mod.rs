//! Instructions.

mod feedback;
pub mod http;
pub mod of_person;
pub mod polling;
