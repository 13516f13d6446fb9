//! Push messages (specification 2.7, 4.4; contract 9).

pub mod credentials;
pub mod providers;
pub mod tokens;
