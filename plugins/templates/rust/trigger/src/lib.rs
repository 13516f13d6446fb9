//! Fires for a purchase of some size, and then not again for some time.

use std::time::Duration;

use nudge_guest::trigger::{Decision, Event, Subject, Trigger};
use nudge_guest::{Description, Instant, Problem, Reads, Refusal};

struct Plugin;

/// What a campaign says of its trigger.
#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Config {
    /// The smallest total that counts.
    minimum: f64,
    /// How long a subject is left alone, in minutes.
    #[serde(default = "an_hour")]
    quiet_minutes: u64,
}

fn an_hour() -> u64 {
    60
}

/// What is kept of a subject. Nothing stays in memory.
#[derive(serde::Deserialize, serde::Serialize)]
struct State {
    fired_at: i64,
}

impl Trigger for Plugin {
    type Config = Config;

    /// What a configuration looks like: consoles make a form of it, and servers one to try the plugin with.
    fn describe(description: Description) -> Description {
        description.with_config_schema(
            r#"{
                "type": "object",
                "required": ["minimum"],
                "properties": {
                    "minimum": {"type": "number"},
                    "quietMinutes": {"type": "integer", "minimum": 1, "maximum": 10080}
                }
            }"#,
        )
    }

    /// Says what is wrong with a configuration, and what decisions under it read.
    fn check(config: &Config) -> Result<Reads, Vec<Problem>> {
        if !(1..=10_080).contains(&config.quiet_minutes) {
            let message = "must be from 1 to 10080, a week";
            return Err(vec![Problem::new("out_of_range", "/quietMinutes", message)]);
        }
        Ok(Reads::new().events(["purchase_completed"]).properties(["total"]))
    }

    /// Says whether an event fires the campaign.
    fn on_event(config: &Config, event: &Event<'_>, subject: &Subject<'_>) -> Result<Decision, Refusal> {
        if event.number("total").is_none_or(|total| total < config.minimum) {
            return Ok(Decision::Pass);
        }
        let quiet = Duration::from_mins(config.quiet_minutes);
        let state = subject.state::<State>()?;
        if state.is_some_and(|state| subject.now() < Instant::from_micros(state.fired_at) + quiet) {
            return Ok(Decision::Pass);
        }
        subject.set_state(&State { fired_at: subject.now().micros() })?;
        Ok(Decision::Fire)
    }
}

nudge_guest::export!(Plugin: trigger);

// `cargo test` runs the plugin natively; the cases in `cases/` run the component itself.
#[cfg(test)]
mod tests {
    use super::*;
    use nudge_guest::{serde_json::json, testing::TriggerTest};

    #[test]
    fn a_subject_is_left_alone_for_an_hour() {
        let mut campaign = TriggerTest::<Plugin>::new(&json!({"minimum": 50})).unwrap();
        assert!(campaign.send("ana", "purchase_completed", json!({"total": 50})));
        campaign.advance(Duration::from_mins(59));
        assert!(!campaign.send("ana", "purchase_completed", json!({"total": 50})));
        campaign.advance(Duration::from_mins(1));
        assert!(campaign.send("ana", "purchase_completed", json!({"total": 50})));
    }
}
