//! A personalization plugin that breaks every rule on request: a message with `{"mode": "not_json"}` gets
//! values that are none, and so on.

#[path = "../../../../guest-sdk/src/bindings/mod.rs"]
#[doc(hidden)]
pub mod bindings;

use bindings::personalization::exports::nudge::plugin::personalization_plugin::{
    Description, Guest, Problem, Reads, Refusal,
};
use bindings::personalization::nudge::plugin::personalization_host::{Batch, Resolution};
use bindings::trigger::nudge::plugin::types::Value;

/// The plugin.
pub struct Misbehaving;

// The names of the exports are no names for the linkers of other targets.
#[cfg(target_arch = "wasm32")]
#[expect(unsafe_code, reason = "generated code")]
mod exports {
    use super::{Misbehaving, bindings};

    bindings::personalization::export_personalization!(Misbehaving with_types_in bindings::personalization);
}

impl Guest for Misbehaving {
    fn describe() -> Description {
        Description {
            name: "misbehaving-personalization".to_owned(),
            version: "1.0.0".to_owned(),
            summary: "Breaks every rule on request.".to_owned(),
            config_schema: String::new(),
            more: Vec::new(),
        }
    }

    fn check_config(_: String) -> Result<Reads, Vec<Problem>> {
        Ok(Reads {
            event_names: Vec::new(),
            properties: Vec::new(),
            subject_properties: Vec::new(),
            more: Vec::new(),
        })
    }

    fn resolve(batch: &Batch) -> Result<(), Refusal> {
        for message in 0..batch.message_count() {
            run(&batch.message_config(message), batch);
        }
        Ok(())
    }
}

fn run(mode: &str, batch: &Batch) {
    if mode.contains(r#""label":"far_item""#) {
        // A variant of a campaign has a configuration of the contract's shape.
        return run("far_item", batch);
    }
    let (mode, number) = mode.split_once(':').unwrap_or((mode, "0"));
    let size: usize = number.parse().unwrap_or(0);
    let resolve = |value: Value| batch.resolve(&[resolution(0, Some(value), 0)]);
    match mode {
        "number" => resolve(Value::Number(number.parse().unwrap_or(f64::NAN))),
        "json" => resolve(Value::Json(number.to_owned())),
        "deep_json" => resolve(Value::Json("[".repeat(size) + &"]".repeat(size))),
        "resolutions" => batch.resolve(&vec![resolution(0, None, 0); size]),
        "more" => batch.resolve(&[resolution(0, None, size)]),
        "more_and_more" => loop {
            batch.resolve(&[resolution(0, None, size)]);
        },
        "far_item" => batch.resolve(&[resolution(batch.item_count(), None, 0)]),
        "outside_item" => batch.resolve(&[resolution(u32::MAX, None, 0)]),
        "far_message" => drop(batch.subject_cells(batch.message_count())),
        "outside_message" => drop(batch.data_cells(u32::MAX, &[])),
        "many_paths" => drop(batch.data_cells(0, &vec![String::new(); 257])),
        "deep_path" => drop(batch.data_cells(0, &[".".repeat(size)])),
        "nul_name" => {
            let history = batch.recent_events(0, "or\0der", None, 200, &[]);
            assert!(history.ids.is_empty(), "there is no such name");
        }
        _ => {}
    }
}

fn resolution(item: u32, value: Option<Value>, more: usize) -> Resolution {
    Resolution {
        item,
        binding: String::new(),
        value,
        text: String::new(),
        used_fallback: false,
        issue: String::new(),
        detail: String::new(),
        more: vec![(String::new(), String::new()); more],
    }
}
