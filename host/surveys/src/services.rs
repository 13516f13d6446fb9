//! The state of this package's handlers, which is that of the pipeline: whom a button is for is its trigger plugins' decision.

pub use nudge_pipeline::services::{Services, Shared};
