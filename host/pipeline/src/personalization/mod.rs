//! What the bindings of a message stand for, for each recipient (specification 2.5; contract 9).
//!
//! The personalization plugin resolves bindings. The host hands it a batch of recipients ([`mod@resolve`]) and decides by what comes back whether there
//! is a message ([`verdict`](nudge_campaigns::push::verdict)). What a shadow candidate would have resolved is compared (`shadow`). Whole numbers that plugins
//! see rounded get the digits of their sources (`digits`). Push messages ask when they are sent, in-app messages when their instruction is made.

mod call;
mod digits;
pub mod resolve;
mod shadow;

pub(crate) use resolve::resolve_for;
pub use resolve::{Failure, Recipient, Resolver, resolve};
