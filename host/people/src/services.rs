//! The state of this package's handlers, which is that of the records.

pub use nudge_records::services::{Services, Shared};
