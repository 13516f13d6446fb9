//! Firings that wait.

use std::time::Duration;

use nudge_guest::serde_json::{Value, json};

use super::{Campaign, bought};

fn delayed(more: Value) -> Campaign {
    let mut trigger = json!({"delaySeconds": 60});
    for (key, value) in more.as_object().unwrap() {
        trigger[key] = value.clone();
    }
    bought(&trigger)
}

fn firings(campaign: &mut Campaign, seconds: u64) -> usize {
    campaign.advance(Duration::from_secs(seconds)).len()
}

#[test]
fn a_firing_waits_for_its_delay() {
    let mut campaign = delayed(json!({}));
    assert!(!campaign.send("ana", "bought", json!({})));
    assert_eq!(firings(&mut campaign, 59), 0);
    assert_eq!(firings(&mut campaign, 1), 1);
    assert_eq!(firings(&mut campaign, 3_600), 0);
}

#[test]
fn each_matching_event_waits_by_itself() {
    let mut campaign = delayed(json!({}));
    campaign.send("ana", "bought", json!({}));
    campaign.advance(Duration::from_secs(30));
    campaign.send("ana", "bought", json!({}));
    assert_eq!(firings(&mut campaign, 30), 1);
    assert_eq!(firings(&mut campaign, 30), 1);
}

#[test]
fn a_cancelling_event_cancels_what_waits_for_its_subject() {
    let filters =
        json!({"all": [{"property": "paid", "type": "boolean", "operator": "is", "value": true}]});
    let mut campaign =
        delayed(json!({"cancelOn": [{"eventName": "checked_out", "filters": filters}]}));
    assert_eq!(campaign.reads().event_names, ["bought", "checked_out"]);
    campaign.send("ana", "bought", json!({}));
    campaign.send("ben", "bought", json!({}));
    campaign.send("cleo", "bought", json!({}));
    campaign.send("ana", "checked_out", json!({"paid": true}));
    campaign.send("ben", "checked_out", json!({"paid": false}));
    let fired: Vec<String> = campaign
        .advance(Duration::from_mins(2))
        .into_iter()
        .map(|firing| firing.subject)
        .collect();
    assert_eq!(fired, ["ben", "cleo"]);
}

#[test]
fn what_was_cancelled_has_not_fired() {
    let mut campaign = delayed(
        json!({"occurrence": {"mode": "once"}, "cancelOn": [{"eventName": "checked_out"}]}),
    );
    campaign.send("ana", "bought", json!({}));
    campaign.send("ana", "checked_out", json!({}));
    campaign.send("ana", "bought", json!({}));
    campaign.send("ana", "bought", json!({}));
    assert_eq!(firings(&mut campaign, 120), 1);
}

#[test]
fn once_per_session_means_the_session_of_the_event() {
    let mut campaign =
        delayed(json!({"delaySeconds": 7_200, "occurrence": {"mode": "once_per_session"}}));
    campaign.send("ana", "bought", json!({}));
    campaign.send("ana", "bought", json!({}));
    campaign.advance(Duration::from_mins(31));
    campaign.send("ana", "bought", json!({}));
    assert_eq!(firings(&mut campaign, 7_200), 2);
}

#[test]
fn no_firing_that_waits_takes_the_place_of_another() {
    let mut campaign = delayed(json!({}));
    for _ in 0..3 {
        for _ in 0..60 {
            campaign.send("ana", "bought", json!({}));
        }
        assert_eq!(campaign.timers("ana").len(), 60);
        assert_eq!(firings(&mut campaign, 120), 60);
    }
}
