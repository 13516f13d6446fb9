//! The routes of surveys.

pub mod http;
