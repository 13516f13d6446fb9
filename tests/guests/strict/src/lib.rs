//! A validation plugin with one rule: an event must not have the property that its configuration names.

use nudge_guest::serde_json::Value;
use nudge_guest::validation::{Event, Validator, Violation};
use nudge_guest::{Problem, Reads, Refusal, export};

/// The plugin.
pub struct Strict;

impl Validator for Strict {
    type Config = Value;

    fn check(config: &Value) -> Result<Reads, Vec<Problem>> {
        match forbidden(config) {
            Some(property) => Ok(Reads::new().properties([property])),
            None => Err(vec![Problem::new(
                "required",
                "/forbidden",
                "Name the property that events must not have.",
            )]),
        }
    }

    fn validate(
        config: &Value,
        event: &Event<'_>,
        found: &mut Vec<Violation>,
    ) -> Result<(), Refusal> {
        let property = forbidden(config).unwrap_or_default();
        if event.cell(0).present() {
            found.push(Violation {
                code: "forbidden_property".to_owned(),
                property: property.to_owned(),
                expected: "no such property".to_owned(),
                actual: "one".to_owned(),
            });
        }
        Ok(())
    }
}

fn forbidden(config: &Value) -> Option<&str> {
    config.get("forbidden")?.as_str()
}

export!(Strict: validation);
