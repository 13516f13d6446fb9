//! A trigger plugin that breaks every rule on request: `{"mode": "loop"}` never ends, and so on. It uses
//! the contract as it is, without the SDK, so that it can do what the SDK prevents.

#[path = "../../../../guest-sdk/src/bindings/mod.rs"]
#[doc(hidden)]
pub mod bindings;
mod modes;

use bindings::trigger::exports::nudge::plugin::trigger_plugin::{
    Description, Guest, Problem, Reads, Refusal,
};
use bindings::trigger::nudge::plugin::trigger_host::Batch;

/// The plugin.
pub struct Misbehaving;

// The names of the exports are no names for the linkers of other targets.
#[cfg(target_arch = "wasm32")]
#[expect(unsafe_code, reason = "generated code")]
mod exports {
    use super::{Misbehaving, bindings};

    bindings::trigger::export_trigger!(Misbehaving with_types_in bindings::trigger);
}

impl Guest for Misbehaving {
    fn describe() -> Description {
        Description {
            name: "misbehaving".to_owned(),
            version: "1.0.0".to_owned(),
            summary: "Breaks every rule on request.".to_owned(),
            config_schema: r#"{"type":"object","required":["mode"]}"#.to_owned(),
            more: Vec::new(),
        }
    }

    fn check_config(config: String) -> Result<Reads, Vec<Problem>> {
        match mode(&config) {
            Some(mode) if modes::NAMES.contains(&name(&mode)) => Ok(Reads {
                event_names: vec!["*".to_owned()],
                properties: vec!["amount".to_owned(), "cart.items".to_owned()],
                subject_properties: Vec::new(),
                more: Vec::new(),
            }),
            Some(mode) if mode == "loop_in_check" => modes::run_forever(),
            Some(mode) if name(&mode) == "deep_reads" => Ok(Reads {
                event_names: vec!["*".to_owned()],
                properties: vec![".".repeat(number(&mode))],
                subject_properties: Vec::new(),
                more: Vec::new(),
            }),
            Some(mode) if name(&mode) == "many_problems" => Err(vec![
                Problem {
                    code: String::new(),
                    pointer: String::new(),
                    message: String::new(),
                    more: Vec::new(),
                };
                number(&mode)
            ]),
            _ => Err(vec![Problem {
                code: "unknown_mode".to_owned(),
                pointer: "/mode".to_owned(),
                message: "Name one of the modes.".to_owned(),
                more: Vec::new(),
            }]),
        }
    }

    fn evaluate(batch: &Batch) -> Result<(), Refusal> {
        for campaign in 0..batch.campaign_count() {
            let config = batch.campaign_config(campaign);
            modes::run(mode(&config).as_deref().unwrap_or("fine"), batch, campaign)?;
        }
        Ok(())
    }
}

/// A mode without its number.
fn name(mode: &str) -> &str {
    mode.split(':').next().unwrap_or(mode)
}

fn number(mode: &str) -> usize {
    let number = mode.split(':').nth(1);
    number.and_then(|number| number.parse().ok()).unwrap_or(0)
}

fn mode(config: &str) -> Option<String> {
    let config: serde_json::Value = serde_json::from_str(config).ok()?;
    // In the place of the built-in plugin, the configuration is a campaign's `trigger`.
    let mode = config
        .get("mode")
        .or_else(|| config.get("trigger")?.get("mode"));
    Some(mode?.as_str()?.to_owned())
}
