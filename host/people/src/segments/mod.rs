//! Segments, their sizes and members (contract 19).

pub mod http;
