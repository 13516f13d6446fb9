//! Fires when somebody does much less than in the days before: counts of two windows, compared when a timer
//! falls due.

use std::time::Duration;

use nudge_guest::trigger::{Decision, Event, Subject, Timer, Trigger};
use nudge_guest::{Problem, Reads, Refusal};

/// The plugin.
#[derive(Debug)]
pub struct ChurnRisk;

/// What a campaign says of its trigger.
#[derive(Debug, serde::Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Config {
    /// What somebody does who stays.
    event_name: String,
    /// Length of each of the two windows.
    #[serde(default = "a_week")]
    days: u64,
    /// How often it happened in the earlier window at least: who never came does not leave. The host counts up to 1,000
    /// events of both windows together.
    #[serde(default = "a_few")]
    minimum: u32,
    /// How much less it is now, in percent.
    drop_percent: u32,
}

fn a_week() -> u64 {
    7
}

fn a_few() -> u32 {
    3
}

const TIMER: &str = "compare";

/// The most that the host counts.
const MOST: u32 = 1_000;

impl Config {
    fn window(&self) -> Duration {
        Duration::from_hours(24 * self.days)
    }
}

impl Trigger for ChurnRisk {
    type Config = Config;

    fn check(config: &Config) -> Result<Reads, Vec<Problem>> {
        let mut problems = Vec::new();
        if config.event_name.is_empty() || config.event_name == "*" {
            let message = "must name an event";
            problems.push(Problem::new("required", "/eventName", message));
        }
        if !(1..=45).contains(&config.days) {
            problems.push(Problem::new(
                "out_of_range",
                "/days",
                "must be from 1 to 45",
            ));
        }
        if !(1..=MOST).contains(&config.minimum) {
            let message = "must be from 1 to 1000";
            problems.push(Problem::new("out_of_range", "/minimum", message));
        }
        if !(1..=100).contains(&config.drop_percent) {
            let message = "must be from 1 to 100";
            problems.push(Problem::new("out_of_range", "/dropPercent", message));
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        Ok(Reads::new().events([&config.event_name]))
    }

    /// The first event begins the watch; later ones only count.
    fn on_event(
        config: &Config,
        _event: &Event<'_>,
        subject: &Subject<'_>,
    ) -> Result<Decision, Refusal> {
        if subject.state_bytes().is_none() {
            subject.set_state(&true)?;
            subject.set_timer(TIMER, config.window(), &[]);
        }
        Ok(Decision::Pass)
    }

    fn on_timer(
        config: &Config,
        _timer: &Timer<'_>,
        subject: &Subject<'_>,
    ) -> Result<Decision, Refusal> {
        let (name, window) = (&config.event_name, config.window());
        let now = subject.count_events(name, window);
        let before = subject.count_events(name, window * 2).saturating_sub(now);
        if now > 0 || before > 0 {
            subject.set_timer(TIMER, window, &[]);
        } else {
            // Nobody to watch until the next event.
            subject.clear_state();
        }
        let kept = 100_u32.saturating_sub(config.drop_percent);
        let dropped = u64::from(now) * 100 <= u64::from(before) * u64::from(kept);
        let at_risk = before >= config.minimum && dropped;
        subject.explain("less_than_before", at_risk, || {
            format!("{now} in {} days, {before} in the {0} before", config.days)
        });
        Ok(if at_risk {
            Decision::Fire
        } else {
            Decision::Pass
        })
    }
}

nudge_guest::export!(ChurnRisk: trigger);

#[cfg(test)]
mod tests {
    use super::*;
    use nudge_guest::{serde_json::json, testing::TriggerTest};

    #[test]
    fn who_comes_as_often_as_before_is_not_at_risk() {
        let config = json!({"eventName": "visited", "dropPercent": 50});
        let mut campaign = TriggerTest::<ChurnRisk>::new(&config).unwrap();
        for _ in 0..28 {
            campaign.send("ana", "visited", json!({}));
            assert!(campaign.advance(Duration::from_hours(24)).is_empty());
        }
        let fired = campaign.advance(Duration::from_hours(14 * 24));
        assert_eq!(fired.len(), 1);
    }

    #[test]
    fn who_came_before_the_campaign_began_is_compared_with_that() {
        let config = json!({"eventName": "visited", "dropPercent": 50});
        let mut campaign = TriggerTest::<ChurnRisk>::new(&config).unwrap();
        let days_ago = |campaign: &TriggerTest<ChurnRisk>, days: u64| {
            campaign.now() - Duration::from_hours(24 * days)
        };
        for days in [3, 2, 1] {
            let at = days_ago(&campaign, days);
            campaign.add_event("ana", "visited", at, json!({}));
        }
        campaign.send("ana", "visited", json!({}));
        campaign.send("ben", "visited", json!({}));
        let fired = campaign.advance(Duration::from_hours(7 * 24));
        assert_eq!(fired.len(), 1);
        assert_eq!(fired[0].subject, "ana");
    }
}
