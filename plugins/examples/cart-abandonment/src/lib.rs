//! Fires when a cart is left alone, a few times until something is bought: a timer that every change of the
//! cart sets anew, and a state that counts.

use std::time::Duration;

use nudge_guest::trigger::{Decision, Event, Subject, Timer, Trigger};
use nudge_guest::{Problem, Reads, Refusal};

/// The plugin.
#[derive(Debug)]
pub struct CartAbandonment;

/// What a campaign says of its trigger.
#[derive(Debug, serde::Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Config {
    /// How long a cart is left alone.
    minutes: u64,
    /// The smallest cart that counts.
    #[serde(default)]
    minimum: f64,
    /// How often the subject is reminded of one cart.
    #[serde(default = "once")]
    reminders: u32,
}

fn once() -> u32 {
    1
}

/// What is kept of a subject.
#[derive(Default, serde::Deserialize, serde::Serialize)]
struct Cart {
    total: f64,
    reminded: u32,
}

const TIMER: &str = "left";

impl Trigger for CartAbandonment {
    type Config = Config;

    fn check(config: &Config) -> Result<Reads, Vec<Problem>> {
        let mut problems = Vec::new();
        if !(1..=10_080).contains(&config.minutes) {
            let message = "must be from 1 to 10080, a week";
            problems.push(Problem::new("out_of_range", "/minutes", message));
        }
        if !(1..=5).contains(&config.reminders) {
            let message = "must be from 1 to 5";
            problems.push(Problem::new("out_of_range", "/reminders", message));
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        Ok(Reads::new()
            .events(["cart_updated", "purchase_completed"])
            .properties(["total"]))
    }

    fn on_event(
        config: &Config,
        event: &Event<'_>,
        subject: &Subject<'_>,
    ) -> Result<Decision, Refusal> {
        let total = event.number("total").unwrap_or_default();
        if event.name() == "purchase_completed" || total <= 0.0 {
            subject.cancel_timer(TIMER);
            subject.clear_state();
            return Ok(Decision::Pass);
        }
        let cart: Cart = subject.state()?.unwrap_or_default();
        subject.set_state(&Cart { total, ..cart })?;
        subject.set_timer(TIMER, Duration::from_mins(config.minutes), &[]);
        Ok(Decision::Pass)
    }

    fn on_timer(
        config: &Config,
        _timer: &Timer<'_>,
        subject: &Subject<'_>,
    ) -> Result<Decision, Refusal> {
        let cart: Cart = subject.state()?.unwrap_or_default();
        let large_enough = cart.total >= config.minimum;
        subject.explain("the cart's total", large_enough, || {
            format!("{} of at least {}", cart.total, config.minimum)
        });
        if !large_enough || cart.reminded >= config.reminders {
            return Ok(Decision::Pass);
        }
        let reminded = cart.reminded + 1;
        subject.set_state(&Cart { reminded, ..cart })?;
        if reminded < config.reminders {
            subject.set_timer(TIMER, Duration::from_mins(config.minutes), &[]);
        }
        Ok(Decision::Fire)
    }
}

nudge_guest::export!(CartAbandonment: trigger);

#[cfg(test)]
mod tests {
    use super::*;
    use nudge_guest::{serde_json::json, testing::TriggerTest};

    #[test]
    fn every_change_of_the_cart_begins_the_wait_anew() {
        let mut campaign = TriggerTest::<CartAbandonment>::new(&json!({"minutes": 30})).unwrap();
        campaign.send("ana", "cart_updated", json!({"total": 10}));
        assert!(campaign.advance(Duration::from_mins(29)).is_empty());
        campaign.send("ana", "cart_updated", json!({"total": 20}));
        assert!(campaign.advance(Duration::from_mins(29)).is_empty());
        assert_eq!(campaign.advance(Duration::from_mins(1)).len(), 1);
    }
}
