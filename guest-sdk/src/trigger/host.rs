//! What a trigger plugin can ask the host, whoever the host is.

pub use crate::bindings::trigger::host::TriggerHost;
#[cfg(target_arch = "wasm32")]
use crate::bindings::trigger::nudge::plugin::trigger_host::Batch as Wit;

/// The host that a plugin has. In a component it is the server's batch itself and not the trait: what a
/// plugin never asks is then not imported, and each import makes every instance slower.
#[cfg(target_arch = "wasm32")]
pub type Host<'h> = &'h Wit;

/// The host that a plugin has.
#[cfg(not(target_arch = "wasm32"))]
pub type Host<'h> = &'h dyn TriggerHost;
