//! Personalization plugins: what the bindings of a message stand for.

mod host;
mod message;
mod recipient;

pub use host::{Host, PersonalizationHost, Resolved};
pub use message::Message;
pub use recipient::{Recipient, Resolution};

use crate::config::Config;
use crate::declaration::{Description, Problem, Reads, Refusal};
use crate::trigger::unreadable;

/// A plugin that resolves what personalization bindings stand for.
pub trait Personalizer {
    /// A variant's `personalization`.
    type Config: Config;

    /// Says what the plugin is, starting from what its package says.
    fn describe(description: Description) -> Description {
        description
    }

    /// Checks a configuration and says what decisions under it read: `properties` are those of the
    /// triggering event.
    fn check(config: &Self::Config) -> Result<Reads, Vec<Problem>>;

    /// The keys of the request's data that [`Recipient::data`] will ask for.
    fn data_keys(_config: &Self::Config) -> Vec<String> {
        Vec::new()
    }

    /// Resolves the bindings for one recipient. A binding that is not resolved is missing.
    fn resolve(
        config: &Self::Config,
        recipient: &Recipient<'_>,
        resolutions: &mut Vec<Resolution>,
    ) -> Result<(), Refusal>;
}

/// Checks a configuration, as the host asks for it.
pub fn check<P: Personalizer>(config: &str) -> Result<Reads, Vec<Problem>> {
    P::check(&P::Config::parse(config)?)
}

/// Resolves a batch, as the host asks for it.
pub fn resolve<P: Personalizer>(host: Host<'_>) -> Result<(), Refusal> {
    for number in 0..host.message_count() {
        let config = P::Config::parse(&host.message_config(number)).map_err(unreadable)?;
        let reads = || P::check(&config).unwrap_or_default();
        let data_keys = || P::data_keys(&config);
        let message = Message::new(host, number, &reads, &data_keys);
        let mut resolved = Vec::new();
        for recipient in message.recipients() {
            let mut resolutions = Vec::new();
            P::resolve(&config, &recipient, &mut resolutions)?;
            resolved.extend(
                resolutions
                    .into_iter()
                    .map(|resolution| resolution.of_item(recipient.item())),
            );
        }
        if !resolved.is_empty() {
            host.resolve(&resolved);
        }
    }
    Ok(())
}
