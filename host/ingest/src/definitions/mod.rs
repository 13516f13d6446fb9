//! Definitions.

pub mod dry_run;
pub mod http;
pub mod infer;
mod recent;
