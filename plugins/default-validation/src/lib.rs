#![doc = include_str!("../README.md")]

mod config;
mod read;
mod rule;
#[cfg(test)]
mod tests;

use nudge_guest::validation::{Event, Validator, Violation};
use nudge_guest::{Description, Problem, Reads, Refusal, export};

pub use config::Config;

/// The plugin.
pub struct DefaultValidation;

impl Validator for DefaultValidation {
    type Config = Config;

    fn describe(description: Description) -> Description {
        description.with_config_schema(include_str!("../config.schema.json"))
    }

    fn check(config: &Config) -> Result<Reads, Vec<Problem>> {
        Ok(Reads::new().properties(
            config
                .properties
                .iter()
                .map(|property| property.name.as_str()),
        ))
    }

    fn validate(
        config: &Config,
        event: &Event<'_>,
        found: &mut Vec<Violation>,
    ) -> Result<(), Refusal> {
        for (column, property) in config.properties.iter().enumerate() {
            found.extend(rule::violation(property, event.cell(column)));
        }
        if !config.additional_properties {
            found.extend(event.unread().into_iter().map(rule::additional));
        }
        Ok(())
    }
}

export!(DefaultValidation: validation);
