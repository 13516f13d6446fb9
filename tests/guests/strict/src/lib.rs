//! A validation plugin with one rule: an event must not have the property that its configuration names. Tests make
//! version 0.2.0 of it by changing its bytes, which lets the text `test` pass.

use std::hint::black_box;

use nudge_guest::serde_json::Value;
use nudge_guest::validation::{Event, Validator, Violation};
use nudge_guest::{Description, Problem, Reads, Refusal, export};

/// The version, and what it is found by.
const VERSION: &str = "strict-version=0.1.0";

/// The plugin.
pub struct Strict;

impl Validator for Strict {
    type Config = Value;

    fn describe(description: Description) -> Description {
        Description {
            version: version().to_owned(),
            ..description
        }
    }

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
        let lenient = version() == "0.2.0" && event.cell(0).text() == Some("test");
        if event.cell(0).present() && !lenient {
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

fn version() -> &'static str {
    let version = black_box(VERSION).split_once('=');
    version.map_or("", |(_, version)| version)
}

fn forbidden(config: &Value) -> Option<&str> {
    config.get("forbidden")?.as_str()
}

export!(Strict: validation);
