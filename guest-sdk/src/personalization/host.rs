//! What a personalization plugin can ask the host, whoever the host is.

pub use crate::bindings::personalization::host::PersonalizationHost;
#[cfg(target_arch = "wasm32")]
use crate::bindings::personalization::nudge::plugin::personalization_host::Batch as Wit;
pub use crate::bindings::personalization::nudge::plugin::personalization_host::Resolution as Resolved;

/// The host that a plugin has. In a component it is the server's batch itself and not the trait: what a
/// plugin never asks is then not imported, and each import makes every instance slower.
#[cfg(target_arch = "wasm32")]
pub type Host<'h> = &'h Wit;

/// The host that a plugin has.
#[cfg(not(target_arch = "wasm32"))]
pub type Host<'h> = &'h dyn PersonalizationHost;
