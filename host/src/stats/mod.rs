//! An app's counts over time (contract 13).

pub mod http;
