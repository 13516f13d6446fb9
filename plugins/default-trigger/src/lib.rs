#![doc = include_str!("../README.md")]

mod audience;
mod config;
mod explain;
mod history;
mod listens;
mod occurrence;
mod read;
pub mod rules;
mod source;
#[cfg(test)]
mod tests;
mod waiting;

use nudge_guest::trigger::{Decision, Event, Subject, Timer, Trigger};
use nudge_guest::{Description, Problem, Reads, Refusal, export};

pub use config::Config;

/// The plugin.
pub struct DefaultTrigger;

impl Trigger for DefaultTrigger {
    type Config = Config;

    fn describe(description: Description) -> Description {
        description.with_config_schema(include_str!("../config.schema.json"))
    }

    fn check(config: &Config) -> Result<Reads, Vec<Problem>> {
        Ok(config.reads())
    }

    fn on_event(
        config: &Config,
        event: &Event<'_>,
        subject: &Subject<'_>,
    ) -> Result<Decision, Refusal> {
        let cell = |column| event.cell(column);
        // One name to listen for, and it is this one: the batch's names need not be fetched. About `$scheduled` a server asks
        // only campaigns that listen for it.
        let only_name = config.only_event_name();
        let name = only_name.unwrap_or_else(|| event.name());
        let now = || event.received();
        if config.cancels(name, &now, &cell) {
            subject.cancel_timers();
        }
        let matched = config.matches(name, &now, &cell)
            && (!config.source.is_session()
                || occurrence::is_first_of_session(config, event, subject));
        explain::rule(config, event, subject, matched);
        if !matched {
            return Ok(Decision::Pass);
        }
        match config.delay() {
            Some(delay) => occurrence::delay(config, event, subject, delay),
            None => occurrence::decide(config, event, subject),
        }
    }

    fn on_timer(
        config: &Config,
        timer: &Timer<'_>,
        subject: &Subject<'_>,
    ) -> Result<Decision, Refusal> {
        Ok(occurrence::due(config, timer, subject))
    }
}

export!(DefaultTrigger: trigger);
