//! What operators ask a server: is it alive, is it ready, how does it fare (contract 17).

pub mod disk;
pub mod http;
mod measures;
mod readiness;
pub mod store;
