//! Uploads, activations and removals of plugins: routes, and what they announce.

mod announcement;
pub mod changes;
pub mod http;
mod in_force_check;
mod lists;
pub mod logs;
pub mod operator;
mod references;
pub mod requests;
pub mod shadow;
pub mod statistics;
pub mod testing;
mod views;
pub mod watch;
