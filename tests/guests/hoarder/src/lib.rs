//! A trigger plugin that keeps as much of a subject as events tell it to, and fires.
//!
//! Its configuration is `{"event": name, "plan"?: text, "unnamed"?: true}`: it listens for events of the name, and with a plan fires
//! only for subjects whose saved property `plan` is this one. With `unnamed` it doesn't say beforehand that it asks for that.
//!
//! An event's `state` is how many bytes it stores, `timers` how many timers it sets, for a day later. With `drops` it gives its
//! state up, and cancels so many of its timers, one by one.

use std::time::Duration;

use nudge_guest::serde_json::Value;
use nudge_guest::trigger::{Decision, Event, Subject, Trigger};
use nudge_guest::{Problem, Reads, Refusal, export};

const DAY: Duration = Duration::from_hours(24);

/// The plugin.
pub struct Hoarder;

impl Trigger for Hoarder {
    type Config = Value;

    fn check(config: &Value) -> Result<Reads, Vec<Problem>> {
        let Some(name) = config.get("event").and_then(Value::as_str) else {
            let message = "Name the event.";
            return Err(vec![Problem::new("required", "/event", message)]);
        };
        let reads = Reads::new()
            .events([name])
            .properties(["state", "timers", "drops"]);
        Ok(match config.get("plan") {
            Some(_) if config.get("unnamed").is_none() => reads.subject_properties(["plan"]),
            _ => reads,
        })
    }

    fn on_event(
        config: &Value,
        event: &Event<'_>,
        subject: &Subject<'_>,
    ) -> Result<Decision, Refusal> {
        if let Some(bytes) = count(event, 0) {
            subject.set_state_bytes(&vec![1; bytes]);
        }
        for number in 0..count(event, 1).unwrap_or_default() {
            subject.set_timer(&number.to_string(), DAY, &[]);
        }
        if let Some(drops) = count(event, 2) {
            subject.clear_state();
            for number in 0..drops {
                subject.cancel_timer(&number.to_string());
            }
        }
        let wanted = config.get("plan").and_then(Value::as_str);
        let Some(wanted) = wanted else {
            return Ok(Decision::Fire);
        };
        let found = subject.property("plan");
        let fires = matches!(found, Some(nudge_guest::Value::Text(plan)) if plan == wanted);
        Ok(if fires {
            Decision::Fire
        } else {
            Decision::Pass
        })
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "tests send small whole numbers"
)]
fn count(event: &Event<'_>, column: usize) -> Option<usize> {
    event.cell(column).number().map(|number| number as usize)
}

export!(Hoarder: trigger);
