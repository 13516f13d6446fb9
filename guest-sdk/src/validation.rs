//! Validation plugins: whether an event matches its definition.

mod event;
mod host;

pub use event::{Definition, Event, Violation};
pub use host::{Host, ValidationHost};

use crate::config::Config;
use crate::declaration::{Description, Problem, Reads, Refusal};
use crate::trigger::unreadable;

/// A plugin that decides whether an event matches its definition.
pub trait Validator {
    /// A definition's configuration.
    type Config: Config;

    /// Says what the plugin is, starting from what its package says.
    fn describe(description: Description) -> Description {
        description
    }

    /// Checks a configuration and says which properties decisions under it read.
    fn check(config: &Self::Config) -> Result<Reads, Vec<Problem>>;

    /// Finds every violation of an event. One without any is valid.
    fn validate(
        config: &Self::Config,
        event: &Event<'_>,
        found: &mut Vec<Violation>,
    ) -> Result<(), Refusal>;
}

/// Checks a configuration, as the host asks for it.
pub fn check<P: Validator>(config: &str) -> Result<Reads, Vec<Problem>> {
    P::check(&P::Config::parse(config)?)
}

/// Validates a batch, as the host asks for it.
pub fn validate<P: Validator>(host: Host<'_>) -> Result<(), Refusal> {
    let mut reports = Vec::new();
    for number in 0..host.definition_count() {
        let config = P::Config::parse(&host.definition_config(number)).map_err(unreadable)?;
        let columns = || P::check(&config).map_or_else(|_| Vec::new(), |reads| reads.properties);
        let definition = Definition::new(host, number, &columns);
        for event in definition.events() {
            let mut found = Vec::new();
            P::validate(&config, &event, &mut found)?;
            reports.extend(
                found
                    .into_iter()
                    .map(|violation| violation.of_item(event.item())),
            );
        }
    }
    if !reports.is_empty() {
        host.report(&reports);
    }
    Ok(())
}
