//! What a validation plugin can ask the host, whoever the host is.

use crate::bindings::trigger::nudge::plugin::types::Cells;
use crate::bindings::validation::nudge::plugin::validation_host::{Batch as Wit, Violation};
use crate::trigger::host_trait;

host_trait! {
    /// The functions of `validation-host.batch`, as the contract describes them.
    #[expect(
        missing_docs,
        reason = "described in the contract, `wit/validation.wit`"
    )]
    pub trait ValidationHost for Wit {
        fn now(&self) -> i64;
        fn item_count(&self) -> u32;
        fn definition_count(&self) -> u32;
        fn definition_config(&self, definition: u32) -> String;
        fn definition_items(&self, definition: u32) -> Vec<u32>;
        fn definition_cells(&self, definition: u32) -> Cells;
        fn unread_counts(&self, definition: u32) -> Vec<u32>;
        fn unread(&self, item: u32) -> Vec<String>;
        fn event_json(&self, item: u32) -> String;
        fn timestamps(&self) -> Vec<i64>;
        fn report(&self, violations: &[Violation]);
    }
}

/// The host that a plugin has. In a component it is the server's batch itself and not the trait: what a
/// plugin never asks is then not imported, and each import makes every instance slower.
#[cfg(target_arch = "wasm32")]
pub type Host<'h> = &'h Wit;

/// The host that a plugin has.
#[cfg(not(target_arch = "wasm32"))]
pub type Host<'h> = &'h dyn ValidationHost;
