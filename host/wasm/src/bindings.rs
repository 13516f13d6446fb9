//! The interfaces that plugins import, as Rust. What they export is in `worlds`.

mod generated {
    wasmtime::component::bindgen!({
        path: "../../wit",
        interfaces: "
            import nudge:plugin/log@1.0.0;
            import nudge:plugin/trigger-host@1.0.0;
            import nudge:plugin/validation-host@1.0.0;
            import nudge:plugin/personalization-host@1.0.0;
        ",
        imports: { default: trappable },
        with: {
            "nudge:plugin/trigger-host.batch": crate::host::Batch,
            "nudge:plugin/validation-host.batch": crate::host::Batch,
            "nudge:plugin/personalization-host.batch": crate::host::Batch,
        },
    });
}

pub(crate) use generated::nudge::plugin::{
    log, personalization_host, trigger_host, types, validation_host,
};
