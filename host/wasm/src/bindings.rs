//! The contract in `wit/`, as Rust: a module for each world, all of which share `types` and `log`.

/// The world `trigger`, and what all worlds share.
pub(crate) mod trigger {
    wasmtime::component::bindgen!({
        path: "../../wit",
        world: "trigger",
        imports: { default: trappable },
        with: { "nudge:plugin/trigger-host.batch": crate::host::Batch },
    });
}

/// The world `validation`.
pub(crate) mod validation {
    wasmtime::component::bindgen!({
        path: "../../wit",
        world: "validation",
        imports: { default: trappable },
        with: {
            "nudge:plugin/types": super::trigger::nudge::plugin::types,
            "nudge:plugin/log": super::trigger::nudge::plugin::log,
            "nudge:plugin/validation-host.batch": crate::host::Batch,
        },
    });
}

/// The world `personalization`.
pub(crate) mod personalization {
    wasmtime::component::bindgen!({
        path: "../../wit",
        world: "personalization",
        imports: { default: trappable },
        with: {
            "nudge:plugin/types": super::trigger::nudge::plugin::types,
            "nudge:plugin/log": super::trigger::nudge::plugin::log,
            "nudge:plugin/personalization-host.batch": crate::host::Batch,
        },
    });
}

pub(crate) use personalization::nudge::plugin::personalization_host;
pub(crate) use trigger::nudge::plugin::{log, trigger_host, types};
pub(crate) use validation::nudge::plugin::validation_host;
