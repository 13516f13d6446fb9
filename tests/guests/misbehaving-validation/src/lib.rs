//! A validation plugin that breaks every rule on request. Its modes stand in the events, because what can
//! stand in a definition is for the host to say: `{"mode": "flood"}` reports without end, and so on.

#[path = "../../../../guest-sdk/src/bindings/mod.rs"]
#[doc(hidden)]
pub mod bindings;

use std::hint::black_box;

use bindings::validation::exports::nudge::plugin::validation_plugin::{
    Description, Guest, Problem, Reads, Refusal,
};
use bindings::validation::nudge::plugin::validation_host::{Batch, Violation};

/// The plugin.
pub struct Misbehaving;

// The names of the exports are no names for the linkers of other targets.
#[cfg(target_arch = "wasm32")]
#[expect(unsafe_code, reason = "generated code")]
mod exports {
    use super::{Misbehaving, bindings};

    bindings::validation::export_validation!(Misbehaving with_types_in bindings::validation);
}

impl Guest for Misbehaving {
    fn describe() -> Description {
        Description {
            name: "misbehaving-validation".to_owned(),
            version: "1.0.0".to_owned(),
            summary: "Breaks every rule on request.".to_owned(),
            config_schema: String::new(),
            more: Vec::new(),
        }
    }

    fn check_config(_: String) -> Result<Reads, Vec<Problem>> {
        Ok(Reads {
            event_names: Vec::new(),
            properties: vec!["mode".to_owned()],
            subject_properties: Vec::new(),
            more: Vec::new(),
        })
    }

    fn validate(batch: &Batch) -> Result<(), Refusal> {
        for item in 0..batch.item_count() {
            let event: serde_json::Value =
                serde_json::from_str(&batch.event_json(item)).unwrap_or_default();
            let mode = event.get("mode").and_then(|mode| mode.as_str());
            run(mode.unwrap_or_default(), batch, item);
        }
        Ok(())
    }
}

fn run(mode: &str, batch: &Batch, item: u32) {
    let (mode, number) = mode.split_once(':').unwrap_or((mode, "0"));
    let number: usize = number.parse().unwrap_or(0);
    match mode {
        "report" => batch.report(&vec![violation(item, ""); number]),
        "flood" => loop {
            batch.report(&[violation(item, "")]);
        },
        "long" => batch.report(&[violation(item, &"é".repeat(number))]),
        "far_item" => batch.report(&[violation(batch.item_count(), "")]),
        "outside_item" => batch.report(&[violation(u32::MAX, "")]),
        "far_definition" => drop(batch.definition_cells(batch.definition_count())),
        "outside_definition" => drop(batch.definition_config(u32::MAX)),
        "nul" => batch.report(&[violation(item, "\0")]),
        "nul_code" => batch.report(&[Violation {
            code: "one\0two".to_owned(),
            ..violation(item, "")
        }]),
        "loop" => loop {
            black_box(item);
        },
        _ => {}
    }
}

fn violation(item: u32, actual: &str) -> Violation {
    Violation {
        item,
        code: String::new(),
        property: String::new(),
        expected: String::new(),
        actual: actual.to_owned(),
        more: Vec::new(),
    }
}
