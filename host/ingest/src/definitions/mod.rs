//! Event definitions: their routes, what they would have refused, and what of them can be inferred from events.

pub mod dry_run;
pub mod http;
pub mod infer;
mod recent;
