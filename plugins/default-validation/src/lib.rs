#![doc = include_str!("../README.md")]

mod config;
mod read;
mod rule;
#[cfg(test)]
mod tests;

use nudge_guest::validation::{Event, Validator, Violation};
use nudge_guest::{Description, Problem, Reads, Refusal, export};

pub use config::Config;

/// Violations of one event that are reported. A batch of events that are all wrong fits into one answer then.
const MOST_VIOLATIONS: usize = 20;
/// What the server adds to an event whose name it has put into snake case: the name as it was sent (contract 24). No caller adds it.
const ORIGINAL_NAME: &str = "$original_name";

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
        let declared = config.properties.iter().zip(event.cells());
        let violations = declared.filter_map(|(property, cell)| rule::violation(property, cell));
        found.extend(violations.take(MOST_VIOLATIONS));
        if !config.additional_properties && found.len() < MOST_VIOLATIONS {
            let additional = event
                .unread()
                .into_iter()
                .filter(|name| name != ORIGINAL_NAME)
                .map(|name| rule::additional(&name));
            found.extend(additional.take(MOST_VIOLATIONS - found.len()));
        }
        Ok(())
    }
}

export!(DefaultValidation: validation);
