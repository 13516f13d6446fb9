//! Personalization: what the tokens of a variant stand for, for each recipient (specification 2.5; contract 9).
//!
//! The personalization plugin resolves bindings. The host checks what every resolver has in common when a variant
//! is saved ([`personalization`](nudge_campaigns::push::personalization)), hands the plugin a batch of recipients ([`mod@resolve`]), and decides by what comes back
//! whether there is a message ([`verdict`](nudge_campaigns::push::verdict)). What a shadow candidate would have resolved is compared ([`trial`]).
//! Whole numbers that plugins see rounded get the digits of their sources ([`digits`]).

mod call;
mod digits;
pub mod http;
pub mod make;
pub mod preview;
pub mod resolve;

mod trial;

pub use make::{Made, make};
pub use resolve::{Failure, Recipient, resolve};
