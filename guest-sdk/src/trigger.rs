//! Trigger plugins: which events fire a campaign.

mod batch;
mod campaign;
mod event;
mod host;
mod known;
mod subject;

pub use batch::Batch;
pub use campaign::Campaign;
pub use event::{Event, Timer};
pub use host::{Host, TriggerHost};
pub use subject::{Moment, Subject};

use crate::config::Config;
use crate::declaration::{Description, Problem, Reads, Refusal};

/// What becomes of an event or a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The campaign fires for the subject. Consent, caps, quiet hours and suppression still apply.
    Fire,
    /// It does not.
    Pass,
}

/// A plugin that decides which events fire a campaign.
///
/// The same calls must always give the same answers: a plugin has no clock and no randomness but those
/// that it is given here.
pub trait Trigger {
    /// A campaign's configuration.
    type Config: Config;

    /// Says what the plugin is, starting from what its package says.
    fn describe(description: Description) -> Description {
        description
    }

    /// Checks a configuration and says what decisions under it read.
    fn check(config: &Self::Config) -> Result<Reads, Vec<Problem>>;

    /// Decides about an event that the configuration reads.
    fn on_event(
        config: &Self::Config,
        event: &Event<'_>,
        subject: &Subject<'_>,
    ) -> Result<Decision, Refusal>;

    /// Decides about a timer that is due. Without timers there is nothing to write here.
    fn on_timer(
        _config: &Self::Config,
        _timer: &Timer<'_>,
        _subject: &Subject<'_>,
    ) -> Result<Decision, Refusal> {
        Ok(Decision::Pass)
    }

    /// Decides about all items of a batch that concern one campaign, in order.
    ///
    /// Calls the functions above for each; override it where columns are faster than items.
    fn on_campaign(config: &Self::Config, campaign: &Campaign<'_>) -> Result<(), Refusal> {
        for event in campaign.events() {
            let subject = event.subject();
            let decision = match event.timer() {
                Some(timer) => Self::on_timer(config, &timer, &subject)?,
                None => Self::on_event(config, &event, &subject)?,
            };
            if decision == Decision::Fire {
                campaign.fire(event.item());
            }
        }
        Ok(())
    }
}

/// Checks a configuration, as the host asks for it.
pub fn check<P: Trigger>(config: &str) -> Result<Reads, Vec<Problem>> {
    P::check(&P::Config::parse(config)?)
}

/// Decides about a batch, as the host asks for it.
pub fn evaluate<P: Trigger>(host: Host<'_>) -> Result<(), Refusal> {
    let batch = Batch::new(host);
    for number in 0..host.campaign_count() {
        let config = P::Config::parse(&host.campaign_config(number)).map_err(unreadable)?;
        let columns = || P::check(&config).map_or_else(|_| Vec::new(), |reads| reads.properties);
        let campaign = Campaign::new(&batch, number, &columns);
        P::on_campaign(&config, &campaign)?;
        campaign.send_firings();
    }
    Ok(())
}

/// The host sends configurations that were accepted, so this one was accepted by another version.
#[expect(
    clippy::needless_pass_by_value,
    reason = "what `map_err` calls it with"
)]
pub(crate) fn unreadable(problems: Vec<Problem>) -> Refusal {
    let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
    Refusal::new("invalid_config", problems.join("; "))
}
