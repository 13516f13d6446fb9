//! Personalization: what the tokens of a variant stand for, for each recipient (specification 2.5; contract 9).
//!
//! What bindings stand for is resolved by the [pipeline's package](nudge_pipeline::personalization), which in-app messages need too. Here messages are made
//! of it ([`mod@make`]), and shown beforehand ([`preview`]).

pub mod http;
pub mod make;
pub mod preview;

pub use make::{Made, make, make_with};
pub use nudge_pipeline::personalization::{Failure, Recipient, resolve};
