//! Campaigns and what fires them.
#![expect(clippy::needless_pass_by_value, reason = "`json!` makes values")]

mod audience;
mod changes;
mod configuration;
mod delay;
mod occurrence;
mod sessions;

use std::time::Duration;

use nudge_guest::serde_json::{Value, json};
use nudge_guest::testing::TriggerTest;

use crate::DefaultTrigger;

type Campaign = TriggerTest<DefaultTrigger>;

fn campaign(trigger: Value) -> Campaign {
    Campaign::new(&json!({"trigger": trigger})).unwrap()
}

/// A campaign that events named `bought` fire, with more keys in its trigger.
fn bought(more: &Value) -> Campaign {
    let mut trigger = json!({"kind": "event", "eventName": "bought"});
    for (key, value) in more.as_object().unwrap() {
        trigger[key] = value.clone();
    }
    campaign(trigger)
}

#[test]
fn an_event_of_the_name_fires() {
    let mut campaign = bought(&json!({}));
    assert!(campaign.send("ana", "bought", json!({})));
    assert!(!campaign.send("ana", "looked", json!({})));
    assert_eq!(campaign.reads().event_names, ["bought"]);
}

#[test]
fn filters_are_asked() {
    let filters = json!({"all": [{"property": "cart.total", "type": "number", "operator": "gte", "value": 50}]});
    let mut campaign = bought(&json!({"filters": filters}));
    assert!(campaign.send("ana", "bought", json!({"cart": {"total": 50}})));
    assert!(!campaign.send("ana", "bought", json!({"cart": {"total": "50"}})));
    assert_eq!(campaign.reads().properties, ["cart.total"]);
    let told = "cart.total = \"50\", a string; gte 50 wants a number";
    assert!(
        campaign
            .explanations()
            .iter()
            .any(|explanation| explanation.detail == told && !explanation.passed)
    );
}

#[test]
fn a_view_of_the_screen_fires() {
    let mut campaign = campaign(json!({"kind": "screen_view", "screenName": "pricing"}));
    assert!(campaign.send("ana", "screen_viewed", json!({"screenName": "pricing"})));
    assert!(campaign.send("ana", "screen_view", json!({"name": "pricing"})));
    assert!(!campaign.send(
        "ana",
        "screen_view",
        json!({"screen_name": "home", "name": "pricing"})
    ));
}

#[test]
fn a_new_session_fires_once_whoever_says_that_it_began() {
    let mut campaign = campaign(json!({"kind": "session_start"}));
    assert!(campaign.send("ana", "bought", json!({})));
    assert!(!campaign.send("ana", "session_started", json!({})));
    campaign.advance(Duration::from_mins(30));
    assert!(!campaign.send("ana", "bought", json!({})));
    campaign.advance(Duration::from_mins(31));
    assert!(!campaign.send("ana", "session_ended", json!({})));
    assert!(campaign.send("ana", "session_started", json!({})));
    assert!(!campaign.send("ana", "session_started", json!({})));
    assert!(campaign.send("bob", "session_started", json!({})));
}

#[test]
fn modes_count_sessions() {
    for (mode, expected) in [
        (json!({"mode": "first"}), [true, false, false, false]),
        (json!({"mode": "once"}), [true, false, false, false]),
        (
            json!({"mode": "once_per_session"}),
            [true, true, true, true],
        ),
        (json!({"mode": "nth", "n": 2}), [false, true, false, false]),
        (
            json!({"mode": "every_nth", "n": 2}),
            [false, true, false, true],
        ),
        (
            json!({"mode": "at_least", "n": 2, "withinDays": 1}),
            [false, true, true, true],
        ),
    ] {
        let mut campaign = campaign(json!({"kind": "session_start", "occurrence": mode}));
        let fired = [(); 4].map(|()| {
            let fired = campaign.send("ana", "bought", json!({}));
            assert!(
                !campaign.send("ana", "session_started", json!({})),
                "{mode}"
            );
            campaign.advance(Duration::from_mins(31));
            fired
        });
        assert_eq!(fired, expected, "{mode}");
    }
}

#[test]
fn a_changed_property_fires() {
    let mut any = campaign(json!({"kind": "property_changed", "key": "plan"}));
    assert!(any.send(
        "ana",
        "$property_changed",
        json!({"key": "plan", "from": 1, "to": 2})
    ));
    assert!(!any.send(
        "ana",
        "$property_changed",
        json!({"key": "city", "from": 1, "to": 2})
    ));

    let mut new =
        campaign(json!({"kind": "property_changed", "key": "plan", "from": null, "to": "pro"}));
    assert!(new.send(
        "ana",
        "$property_changed",
        json!({"key": "plan", "to": "pro"})
    ));
    assert!(!new.send(
        "ana",
        "$property_changed",
        json!({"key": "plan", "from": "free", "to": "pro"})
    ));
    assert!(!new.send(
        "ana",
        "$property_changed",
        json!({"key": "plan", "to": "team"})
    ));
}

#[test]
fn the_campaigns_own_occasion_fires_schedules() {
    for config in [
        json!({"trigger": {"kind": "schedule"}}),
        json!({"trigger": {"kind": "schedule", "every": "day", "at": "09:00"}}),
        json!({"trigger": {"kind": "manual"}}),
        json!({}),
    ] {
        let mut campaign = Campaign::new(&config).unwrap();
        assert_eq!(campaign.reads().event_names, ["$scheduled"]);
        assert!(campaign.send("ana", "$scheduled", json!({})));
        assert!(!campaign.send("ana", "bought", json!({})));
    }
}
