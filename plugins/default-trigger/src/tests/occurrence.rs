//! Which of the matching events fire.

use std::time::Duration;

use nudge_guest::serde_json::{Value, json};

use super::{Campaign, bought};

fn mode(occurrence: Value) -> Campaign {
    bought(&json!({"occurrence": occurrence}))
}

/// Whether each of so many events fires.
fn fired(campaign: &mut Campaign, count: usize) -> Vec<bool> {
    (0..count)
        .map(|_| campaign.send("ana", "bought", json!({})))
        .collect()
}

#[test]
fn every_needs_no_state() {
    let mut campaign = mode(json!({"mode": "every"}));
    assert_eq!(fired(&mut campaign, 3), [true, true, true]);
    assert_eq!(campaign.state("ana"), None);
}

#[test]
fn modes_are_explained_in_the_words_of_the_contract() {
    for (occurrence, expected) in [
        (json!({"mode": "every"}), "every"),
        (json!({"mode": "first"}), "first"),
        (json!({"mode": "once"}), "once"),
        (json!({"mode": "once_per_session"}), "once_per_session"),
        (json!({"mode": "nth", "n": 3}), "nth, n 3"),
        (json!({"mode": "every_nth", "n": 3}), "every_nth, n 3"),
        (
            json!({"mode": "at_least", "n": 3, "withinDays": 7}),
            "at_least, n 3, withinDays 7",
        ),
    ] {
        let mut campaign = mode(occurrence);
        campaign.send("ana", "bought", json!({}));
        let explained = campaign.explanations();
        let found = explained.iter().find(|it| it.check == "occurrence");
        assert_eq!(found.map(|it| it.detail.as_str()), Some(expected));
    }
}

#[test]
fn first_and_once_fire_once_a_subject() {
    for name in ["first", "once"] {
        let mut campaign = mode(json!({"mode": name}));
        assert_eq!(fired(&mut campaign, 3), [true, false, false], "{name}");
        assert!(campaign.send("ben", "bought", json!({})));
    }
}

#[test]
fn first_looks_at_earlier_events_through_its_filter() {
    let filters =
        json!({"all": [{"property": "total", "type": "number", "operator": "gt", "value": 10}]});
    let mut campaign = bought(&json!({"filters": filters, "occurrence": {"mode": "first"}}));
    assert!(!campaign.send("ana", "bought", json!({"total": 5})));
    assert!(campaign.send("ana", "bought", json!({"total": 15})));
    assert!(!campaign.send("ana", "bought", json!({"total": 15})));
}

#[test]
fn in_one_batch_the_earlier_event_is_the_first() {
    let mut campaign = mode(json!({"mode": "first"}));
    assert_eq!(
        campaign.send_all([("ana", "bought", json!({})), ("ana", "bought", json!({}))]),
        [true, false]
    );
}

#[test]
fn once_per_session_fires_again_in_the_next() {
    let mut campaign = mode(json!({"mode": "once_per_session"}));
    assert_eq!(fired(&mut campaign, 2), [true, false]);
    campaign.advance(Duration::from_mins(31));
    assert_eq!(fired(&mut campaign, 2), [true, false]);
}

#[test]
fn what_is_held_back_does_not_use_up_the_one_firing() {
    for name in ["once", "once_per_session"] {
        let mut campaign = mode(json!({"mode": name}));
        assert_eq!(fired(&mut campaign, 1), [true], "{name}");
        campaign.hold_back("ana");
        // Of one batch the first, and never the others.
        let batch = || [("ana", "bought", json!({})), ("ana", "bought", json!({}))];
        assert_eq!(campaign.send_all(batch()), [true, false], "{name}");
        assert_eq!(fired(&mut campaign, 1), [false], "{name}");
    }
    for counting in [json!({"mode": "first"}), json!({"mode": "nth", "n": 1})] {
        let mut campaign = mode(counting);
        assert_eq!(fired(&mut campaign, 1), [true]);
        campaign.hold_back("ana");
        assert_eq!(fired(&mut campaign, 1), [false], "these count events");
    }
}

#[test]
fn what_two_people_who_became_one_matched_counts_together() {
    let after_a_merge = |occurrence: Value, own: usize, others: usize| {
        let mut campaign = mode(occurrence);
        for (who, times) in [("ana", own), ("ben", others)] {
            for _ in 0..times {
                campaign.send(who, "bought", json!({}));
            }
        }
        campaign.merge("ana", "ben");
        let batch = || [("ana", "bought", json!({})), ("ana", "bought", json!({}))];
        let mut fired: Vec<bool> = campaign.send_all(batch());
        fired.extend(campaign.send_all(batch()));
        fired
    };
    for (occurrence, own, others, expected) in [
        (
            json!({"mode": "nth", "n": 3}),
            1,
            1,
            [true, false, false, false],
        ),
        (json!({"mode": "nth", "n": 3}), 1, 3, [false; 4]),
        (json!({"mode": "nth", "n": 3}), 3, 1, [false; 4]),
        (
            json!({"mode": "every_nth", "n": 3}),
            2,
            2,
            [false, true, false, false],
        ),
        (
            json!({"mode": "at_least", "n": 4, "withinDays": 7}),
            1,
            2,
            [true; 4],
        ),
        (json!({"mode": "first"}), 1, 1, [false; 4]),
        (json!({"mode": "once"}), 1, 1, [false; 4]),
    ] {
        let what = occurrence.to_string();
        assert_eq!(after_a_merge(occurrence, own, others), expected, "{what}");
    }
}

#[test]
fn counting_modes_count() {
    assert_eq!(
        fired(&mut mode(json!({"mode": "nth", "n": 2})), 4),
        [false, true, false, false]
    );
    assert_eq!(
        fired(&mut mode(json!({"mode": "every_nth", "n": 2})), 4),
        [false, true, false, true]
    );
}

#[test]
fn at_least_counts_within_its_days() {
    let mut campaign = mode(json!({"mode": "at_least", "n": 2, "withinDays": 7}));
    assert_eq!(fired(&mut campaign, 1), [false]);
    campaign.advance(Duration::from_hours(8 * 24));
    assert_eq!(fired(&mut campaign, 3), [false, true, true]);
}

#[test]
fn at_least_keeps_what_it_needs_and_no_more() {
    let mut campaign = mode(json!({"mode": "at_least", "n": 3, "withinDays": 365}));
    fired(&mut campaign, 50);
    assert_eq!(campaign.state("ana").map(<[u8]>::len), Some(1 + 3 * 4 + 3));
}
