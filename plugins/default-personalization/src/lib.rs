#![doc = include_str!("../README.md")]

mod config;
mod format;
mod read;
mod read_format;
mod resolve;
#[cfg(test)]
mod tests;

use nudge_guest::personalization::{Personalizer, Recipient, Resolution};
use nudge_guest::{Description, Problem, Reads, Refusal, export};

pub use config::Config;

/// The plugin.
pub struct DefaultPersonalization;

impl Personalizer for DefaultPersonalization {
    type Config = Config;

    fn describe(description: Description) -> Description {
        description.with_config_schema(include_str!("../config.schema.json"))
    }

    fn check(config: &Config) -> Result<Reads, Vec<Problem>> {
        Ok(config.reads())
    }

    fn data_keys(config: &Config) -> Vec<String> {
        config.data_keys()
    }

    fn resolve(
        config: &Config,
        recipient: &Recipient<'_>,
        resolutions: &mut Vec<Resolution>,
    ) -> Result<(), Refusal> {
        resolve::bindings(config, recipient, resolutions);
        Ok(())
    }
}

export!(DefaultPersonalization: personalization);
