//! Surveys.

pub mod http;
