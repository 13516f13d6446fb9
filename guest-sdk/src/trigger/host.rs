//! What a trigger plugin can ask the host, whoever the host is.

use crate::bindings::trigger::nudge::plugin::trigger_host::Batch as Wit;
use crate::bindings::trigger::nudge::plugin::types::{Cells, History, Value};

/// Declares a host trait, and implements it by the functions of the same names that wit-bindgen made.
macro_rules! host_trait {
    (
        $(#[$about:meta])*
        pub trait $trait:ident for $batch:ident {
            $(fn $name:ident(&self $(, $argument:ident: $type:ty)* $(,)?) $(-> $result:ty)?;)*
        }
    ) => {
        $(#[$about])*
        pub trait $trait {
            $(fn $name(&self $(, $argument: $type)*) $(-> $result)?;)*
        }

        impl $trait for $batch {
            $(fn $name(&self $(, $argument: $type)*) $(-> $result)? {
                $batch::$name(self $(, $argument)*)
            })*
        }
    };
}
pub(crate) use host_trait;

host_trait! {
    /// The functions of `trigger-host.batch`, as the contract describes them.
    ///
    /// Plugins use [`Event`](super::Event), [`Subject`](super::Subject) and [`Campaign`](super::Campaign).
    /// This is what they rest on: the server's batch in a component, and a
    /// [`TriggerTest`](crate::testing::TriggerTest) in a unit test.
    #[expect(missing_docs, reason = "described in the contract, `wit/trigger.wit`")]
    pub trait TriggerHost for Wit {
        fn now(&self) -> i64;
        fn item_count(&self) -> u32;
        fn campaign_count(&self) -> u32;
        fn campaign_id(&self, campaign: u32) -> String;
        fn campaign_config(&self, campaign: u32) -> String;
        fn campaign_items(&self, campaign: u32) -> Vec<u32>;
        fn campaign_cells(&self, campaign: u32) -> Cells;
        fn names(&self) -> Vec<String>;
        fn name_indexes(&self) -> Vec<u32>;
        fn subjects(&self) -> Vec<u32>;
        fn timestamps(&self) -> Vec<i64>;
        fn received(&self) -> Vec<i64>;
        fn sessions(&self) -> Vec<u32>;
        fn event_id(&self, item: u32) -> String;
        fn event_json(&self, item: u32) -> String;
        fn timer_items(&self) -> Vec<u32>;
        fn timer_key(&self, item: u32) -> Option<String>;
        fn timer_payload(&self, item: u32) -> Option<Vec<u8>>;
        fn subject_property(&self, item: u32, key: &str) -> Option<Value>;
        fn subject_fact(&self, item: u32, name: &str) -> Option<Value>;
        fn count_events(&self, item: u32, name: &str, since: Option<i64>, at_most: u32) -> u32;
        fn recent_events(
            &self,
            item: u32,
            name: &str,
            since: Option<i64>,
            limit: u32,
            properties: &[String],
        ) -> History;
        fn random(&self, item: u32, campaign: u32, n: u32) -> u64;
        fn get_state(&self, campaign: u32, item: u32) -> Option<Vec<u8>>;
        fn set_state(&self, campaign: u32, item: u32, state: &[u8]);
        fn clear_state(&self, campaign: u32, item: u32);
        fn set_timer(&self, campaign: u32, item: u32, key: &str, at: i64, payload: &[u8]);
        fn cancel_timer(&self, campaign: u32, item: u32, key: &str);
        fn cancel_timers(&self, campaign: u32, item: u32);
        fn fire(&self, campaign: u32, items: &[u32]);
        fn explain(&self, campaign: u32, item: u32, check: &str, passed: bool, detail: &str);
        fn explaining(&self) -> bool;
    }
}

/// The host that a plugin has. In a component it is the server's batch itself and not the trait: what a
/// plugin never asks is then not imported, and each import makes every instance slower.
#[cfg(target_arch = "wasm32")]
pub type Host<'h> = &'h Wit;

/// The host that a plugin has.
#[cfg(not(target_arch = "wasm32"))]
pub type Host<'h> = &'h dyn TriggerHost;
