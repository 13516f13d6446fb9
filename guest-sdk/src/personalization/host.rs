//! What a personalization plugin can ask the host, whoever the host is.

use crate::bindings::personalization::nudge::plugin::personalization_host::Batch as Wit;
pub use crate::bindings::personalization::nudge::plugin::personalization_host::Resolution as Resolved;
use crate::bindings::trigger::nudge::plugin::types::{Cells, History, Value};
use crate::trigger::host_trait;

host_trait! {
    /// The functions of `personalization-host.batch`, as the contract describes them.
    #[expect(
        missing_docs,
        reason = "described in the contract, `wit/personalization.wit`"
    )]
    pub trait PersonalizationHost for Wit {
        fn now(&self) -> i64;
        fn item_count(&self) -> u32;
        fn message_count(&self) -> u32;
        fn message_config(&self, message: u32) -> String;
        fn message_items(&self, message: u32) -> Vec<u32>;
        fn subject_cells(&self, message: u32) -> Cells;
        fn data_cells(&self, message: u32, keys: &[String]) -> Cells;
        fn trigger_cells(&self, message: u32) -> Cells;
        fn trigger_event(&self, item: u32) -> Option<(String, i64)>;
        fn recent_events(
            &self,
            item: u32,
            name: &str,
            since: Option<i64>,
            limit: u32,
            properties: &[String],
        ) -> History;
        fn subject_fact(&self, item: u32, name: &str) -> Option<Value>;
        fn random(&self, item: u32, n: u32) -> u64;
        fn resolve(&self, resolutions: &[Resolved]);
    }
}

/// The host that a plugin has. In a component it is the server's batch itself and not the trait: what a
/// plugin never asks is then not imported, and each import makes every instance slower.
#[cfg(target_arch = "wasm32")]
pub type Host<'h> = &'h Wit;

/// The host that a plugin has.
#[cfg(not(target_arch = "wasm32"))]
pub type Host<'h> = &'h dyn PersonalizationHost;
