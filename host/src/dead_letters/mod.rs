//! Dead letters.

pub mod bulk;
pub mod http;
pub mod replay;
mod rows;
