//! A trigger plugin that fires on every event that it is asked about, whose name and version stand in its bytes
//! once, at a fixed width: tests make others of it without compiling.
//!
//! Its configuration is `{"events": […], "since": N}`, or a campaign's `trigger` with an `eventName`. Versions
//! whose last number is smaller than `since` refuse it. Version 1.0.1999999 breaks down over every one.

use std::hint::black_box;

use nudge_guest::serde_json::Value;
use nudge_guest::trigger::{Decision, Event, Subject, Trigger};
use nudge_guest::{Description, Problem, Reads, Refusal, export};

/// The name, which tests replace by one of the same length.
const NAME: &str = "versioned-plugin-0000";
/// The version, of which tests replace the last number.
const VERSION: &str = "1.0.1000000";

/// The plugin.
pub struct Versioned;

impl Trigger for Versioned {
    type Config = Value;

    fn describe(description: Description) -> Description {
        Description {
            // Opaque, so that the text stays in one piece where it is.
            name: black_box(NAME).to_owned(),
            version: black_box(VERSION).to_owned(),
            ..description
        }
    }

    fn check(config: &Value) -> Result<Reads, Vec<Problem>> {
        assert_ne!(number(), 1_999_999, "the version that breaks down");
        if let Some(since) = config.get("since").and_then(Value::as_u64)
            && number() < since
        {
            let message = "This version is older than the configuration.";
            return Err(vec![Problem::new("too_old", "/since", message)]);
        }
        let names = config.get("events").and_then(Value::as_array);
        let event_name = config
            .get("trigger")
            .and_then(|trigger| trigger.get("eventName"));
        let names = names.into_iter().flatten().chain(event_name);
        Ok(Reads::new().events(names.filter_map(Value::as_str)))
    }

    fn on_event(_: &Value, _: &Event<'_>, _: &Subject<'_>) -> Result<Decision, Refusal> {
        Ok(Decision::Fire)
    }
}

/// The last number of the version.
fn number() -> u64 {
    let version = black_box(VERSION);
    let last = version.rsplit('.').next();
    last.and_then(|last| last.parse().ok()).unwrap_or_default()
}

export!(Versioned: trigger);
