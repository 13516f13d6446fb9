//! What is kept of a subject after somebody has changed the campaign, or its plugin.

use std::time::Duration;

use nudge_guest::serde_json::{Value, json};
use nudge_guest::testing::TriggerTest;
use nudge_guest::trigger::{Decision, Event, Subject, Trigger};
use nudge_guest::{Problem, Reads, Refusal};

use super::Campaign;
use crate::DefaultTrigger;

fn config(event: &str, occurrence: &Value) -> Value {
    json!({"trigger": {"kind": "event", "eventName": event, "occurrence": occurrence}})
}

/// A campaign that events named `bought` fire.
fn of_mode(occurrence: &Value) -> Campaign {
    Campaign::new(&config("bought", occurrence)).unwrap()
}

fn edited(campaign: Campaign, config: &Value) -> Campaign {
    campaign.changed::<DefaultTrigger>(config).unwrap()
}

/// Whether each of so many events fires.
fn fired(campaign: &mut Campaign, event: &str, count: usize) -> Vec<bool> {
    (0..count)
        .map(|_| campaign.send("ana", event, json!({})))
        .collect()
}

fn once() -> Value {
    json!({"mode": "once"})
}

fn nth(n: u32) -> Value {
    json!({"mode": "nth", "n": n})
}

fn at_least(n: u32) -> Value {
    json!({"mode": "at_least", "n": n, "withinDays": 30})
}

#[test]
fn another_mode_begins_anew() {
    let per_session = || json!({"mode": "once_per_session"});
    for (before, events, after, expected) in [
        (once(), 1, at_least(2), [false, true, true]),
        (per_session(), 1, at_least(2), [false, true, true]),
        (at_least(3), 1, nth(3), [false, false, true]),
        (nth(9), 1, per_session(), [true, false, false]),
        (nth(9), 2, json!({"mode": "first"}), [false; 3]),
        (once(), 1, nth(2), [false, true, false]),
        // Both count.
        (
            nth(9),
            2,
            json!({"mode": "every_nth", "n": 3}),
            [true, false, false],
        ),
        (nth(9), 2, nth(4), [false, true, false]),
    ] {
        let what = format!("{before} to {after}");
        let mut campaign = of_mode(&before);
        fired(&mut campaign, "bought", events);
        let mut campaign = edited(campaign, &config("bought", &after));
        assert_eq!(fired(&mut campaign, "bought", 3), expected, "{what}");
    }
}

#[test]
fn other_events_are_counted_anew() {
    for (occurrence, expected) in [
        (json!({"mode": "first"}), [true, false, false]),
        (nth(2), [false, true, false]),
        (at_least(2), [false, true, true]),
    ] {
        let mut campaign = of_mode(&occurrence);
        fired(&mut campaign, "bought", 1);
        let mut campaign = edited(campaign, &config("rented", &occurrence));
        assert_eq!(fired(&mut campaign, "rented", 3), expected, "{occurrence}");
    }
}

#[test]
fn the_one_firing_of_once_stays_that_of_the_campaign() {
    // Of other events.
    let mut campaign = of_mode(&once());
    assert_eq!(fired(&mut campaign, "bought", 1), [true]);
    let mut campaign = edited(campaign, &config("rented", &once()));
    assert_eq!(fired(&mut campaign, "rented", 2), [false, false]);

    // In other modes.
    for mode in [
        json!({"mode": "first"}),
        json!({"mode": "once_per_session"}),
        nth(1),
        json!({"mode": "every_nth", "n": 1}),
        at_least(1),
    ] {
        let mut campaign = of_mode(&mode);
        assert_eq!(fired(&mut campaign, "bought", 1), [true], "{mode}");
        let campaign = edited(campaign, &config("bought", &nth(7)));
        let mut campaign = edited(campaign, &config("bought", &once()));
        assert_eq!(fired(&mut campaign, "bought", 2), [false, false], "{mode}");
    }

    // What has only counted has not fired.
    let mut campaign = of_mode(&nth(3));
    assert_eq!(fired(&mut campaign, "bought", 2), [false, false]);
    let mut campaign = edited(campaign, &config("bought", &once()));
    assert_eq!(fired(&mut campaign, "bought", 2), [true, false]);

    // Nor has what the host held back.
    let mut campaign = of_mode(&json!({"mode": "once_per_session"}));
    assert_eq!(fired(&mut campaign, "bought", 1), [true]);
    campaign.hold_back("ana");
    let mut campaign = edited(campaign, &config("bought", &once()));
    assert_eq!(fired(&mut campaign, "bought", 2), [true, false]);

    // What came after it has fired, and stays so in every mode.
    let campaign = edited(campaign, &config("bought", &nth(7)));
    let mut campaign = edited(campaign, &config("bought", &nth(8)));
    assert_eq!(fired(&mut campaign, "bought", 1), [false]);
    let mut campaign = edited(campaign, &config("bought", &once()));
    assert_eq!(fired(&mut campaign, "bought", 2), [false, false]);
}

#[test]
fn what_was_merged_counts_in_the_mode_in_which_it_was_kept() {
    let merged = |before: &Value| {
        let mut campaign = of_mode(before);
        for who in ["ana", "ben"] {
            campaign.send(who, "bought", json!({}));
        }
        campaign.merge("ana", "ben");
        campaign
    };
    let mut campaign = edited(merged(&at_least(3)), &config("bought", &nth(2)));
    assert_eq!(fired(&mut campaign, "bought", 3), [false, true, false]);
    let mut campaign = edited(merged(&nth(9)), &config("bought", &nth(3)));
    assert_eq!(fired(&mut campaign, "bought", 2), [true, false]);
}

/// Keeps a text, and sets a timer with another.
struct Other;

impl Trigger for Other {
    type Config = Value;

    fn check(_: &Value) -> Result<Reads, Vec<Problem>> {
        Ok(Reads::new().events(["bought"]))
    }

    fn on_event(config: &Value, _: &Event<'_>, subject: &Subject<'_>) -> Result<Decision, Refusal> {
        subject.set_state(&config["keeps"])?;
        subject.set_timer("reminder", Duration::from_mins(1), b"4711");
        Ok(Decision::Pass)
    }
}

/// A campaign of another plugin, which has heard of an event, with the built-in one from now on.
fn taken_over(keeps: &Value, trigger: &Value) -> Campaign {
    let mut campaign = TriggerTest::<Other>::new(&json!({"keeps": keeps})).unwrap();
    campaign.send("ana", "bought", json!({}));
    campaign
        .changed::<DefaultTrigger>(&json!({"trigger": trigger}))
        .unwrap()
}

#[test]
fn a_timer_of_another_plugin_fires_nothing() {
    let trigger = json!({"kind": "event", "eventName": "bought", "delaySeconds": 30});
    let mut campaign = taken_over(&json!(1), &trigger);
    campaign.send("ana", "bought", json!({}));
    assert_eq!(campaign.timers("ana").len(), 2);
    assert_eq!(campaign.advance(Duration::from_mins(2)).len(), 1);
    let explained = campaign.explanations();
    let of_other = explained
        .iter()
        .find(|it| it.detail == "the timer is of another plugin");
    assert!(of_other.is_some_and(|it| !it.passed), "{explained:?}");
}

#[test]
fn a_state_of_another_plugin_is_none() {
    for keeps in [
        json!({"count": 1}),
        json!({"a": 1}),
        json!([1, 2, 3, 4]),
        json!("abc"),
        json!(4711),
        json!(true),
        Value::Null,
    ] {
        for (occurrence, expected) in [
            (json!({"mode": "once"}), [true, false, false]),
            (json!({"mode": "once_per_session"}), [true, false, false]),
            (nth(2), [false, true, false]),
            (at_least(2), [false, true, true]),
        ] {
            let trigger = json!({"kind": "event", "eventName": "bought", "occurrence": occurrence});
            let mut campaign = taken_over(&keeps, &trigger);
            assert_eq!(
                fired(&mut campaign, "bought", 3),
                expected,
                "{occurrence} after {keeps}"
            );
        }
    }
}

#[test]
fn what_cancels_is_found_if_it_came_while_nobody_heard_of_it() {
    let filters =
        json!({"all": [{"property": "all", "type": "boolean", "operator": "is", "value": true}]});
    let config = |cancels: Value| {
        let trigger = json!({"kind": "event", "eventName": "bought", "delaySeconds": 60, "cancelOn": cancels});
        json!({"trigger": trigger})
    };
    let listening = config(json!([{"eventName": "refunded", "filters": filters}]));
    let mut campaign = Campaign::new(&listening).unwrap();
    campaign.send("eve", "refunded", json!({"all": true}));
    campaign.advance(Duration::from_secs(1));
    for who in ["ana", "ben", "cleo", "eve"] {
        campaign.send(who, "bought", json!({}));
    }
    let mut paused = edited(campaign, &config(json!([])));
    paused.advance(Duration::from_secs(1));
    paused.send("ana", "refunded", json!({"all": true}));
    paused.send("ben", "refunded", json!({"all": false}));
    let mut campaign = edited(paused, &listening);
    let fired: Vec<String> = campaign
        .advance(Duration::from_mins(2))
        .into_iter()
        .map(|firing| firing.subject)
        .collect();
    assert_eq!(fired, ["ben", "cleo", "eve"]);
    let explained = campaign.explanations();
    assert!(
        explained
            .iter()
            .any(|it| it.detail == "refunded came during the delay" && !it.passed)
    );
    assert!(
        campaign.reads().history.is_empty(),
        "nothing is read with each event"
    );
}
