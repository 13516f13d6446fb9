//! Events that no definition or plugin took: the routes that list, mend and replay them (contract 11).

pub mod bulk;
pub mod http;
pub mod replay;
mod rows;
