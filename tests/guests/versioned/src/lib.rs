//! A trigger plugin that fires on every event that it is asked about, whose name and version stand in its bytes
//! once, at a fixed width: tests make others of it without compiling.
//!
//! Its configuration is `{"events": […], "since": N}`, or a campaign's `trigger` with an `eventName`. Versions
//! whose last number is smaller than `since` refuse it. Version 1.0.1999999 breaks down over every one, version 1.0.1999998 over every event.
//!
//! Events with the property `bad` are special where the configuration says so: versions from `traps` on break down
//! over them, those from `loops` on never end, those from `passes` on do not fire. With `logs` each event's property
//! `note` is logged, with `draws` a random number; what `checked` says is logged where the configuration is checked. Versions from `keeps` on leave their number as a state and in a timer,
//! and so do versions 1.0.18xxxxx and 1.0.195xxxx whatever the configuration. Versions from
//! 1.0.1900000 on break down over `bad` events, whatever the configuration. With `asks` the session of each event and timer
//! is logged, and how many events of the name that it says there were before.

use std::hint::black_box;
use std::time::Duration;

use nudge_guest::serde_json::Value;
use nudge_guest::trigger::{Decision, Event, Subject, Timer, Trigger};
use nudge_guest::{Description, Problem, Reads, Refusal, export, log};

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
        if let Some(line) = config.get("checked").and_then(Value::as_str) {
            log::info(line);
        }
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
        Ok(Reads::new()
            .events(names.filter_map(Value::as_str))
            .properties(["bad", "note"]))
    }

    fn on_event(
        config: &Value,
        event: &Event<'_>,
        subject: &Subject<'_>,
    ) -> Result<Decision, Refusal> {
        assert_ne!(
            number(),
            1_999_998,
            "the version that breaks down over events"
        );
        let says = |key: &str| {
            let from = config.get(key).and_then(Value::as_u64);
            from.is_some_and(|from| number() >= from)
        };
        if config.get("logs").is_some() {
            log::info(event.text("note").unwrap_or("nothing"));
        }
        if config.get("draws").is_some() {
            log::info(subject.random().to_string());
        }
        ask(config, event, subject);
        let keeps = matches!(number(), 1_800_000..1_900_000 | 1_950_000..1_960_000);
        if keeps || says("keeps") {
            subject.set_state(&number())?;
            let payload = number().to_le_bytes();
            subject.set_timer("later", Duration::from_hours(1), &payload);
        }
        let bad = event.cell(0).present();
        if bad && says("loops") {
            let mut number = 0_u64;
            loop {
                number = black_box(number.wrapping_add(1));
            }
        }
        let traps = says("traps") || number() >= 1_900_000;
        assert!(!(bad && traps), "this version can't stand the event");
        if bad && says("passes") {
            return Ok(Decision::Pass);
        }
        Ok(Decision::Fire)
    }

    fn on_timer(
        config: &Value,
        timer: &Timer<'_>,
        subject: &Subject<'_>,
    ) -> Result<Decision, Refusal> {
        ask(config, timer.event(), subject);
        Ok(Decision::Pass)
    }
}

fn ask(config: &Value, event: &Event<'_>, subject: &Subject<'_>) {
    if let Some(name) = config.get("asks").and_then(Value::as_str) {
        let before = subject.count_events(name, None);
        log::info(format!("session {}, {before} before", event.session()));
    }
}

/// The last number of the version.
fn number() -> u64 {
    let version = black_box(VERSION);
    let last = version.rsplit('.').next();
    last.and_then(|last| last.parse().ok()).unwrap_or_default()
}

export!(Versioned: trigger);
