//! What wit-bindgen makes of the contract: one module a world, all with the types of the first.

#![expect(clippy::pedantic, reason = "generated code")]

pub mod trigger {
    wit_bindgen::generate!({
        path: "../wit",
        world: "trigger",
        pub_export_macro: true,
        export_macro_name: "export_trigger",
        additional_derives: [PartialEq],
    });
}

pub mod validation {
    wit_bindgen::generate!({
        path: "../wit",
        world: "validation",
        pub_export_macro: true,
        export_macro_name: "export_validation",
        additional_derives: [PartialEq],
        with: {
            "nudge:plugin/types@1.0.0": super::trigger::nudge::plugin::types,
            "nudge:plugin/log@1.0.0": super::trigger::nudge::plugin::log,
        },
    });
}

pub mod personalization {
    wit_bindgen::generate!({
        path: "../wit",
        world: "personalization",
        pub_export_macro: true,
        export_macro_name: "export_personalization",
        additional_derives: [PartialEq],
        with: {
            "nudge:plugin/types@1.0.0": super::trigger::nudge::plugin::types,
            "nudge:plugin/log@1.0.0": super::trigger::nudge::plugin::log,
        },
    });
}
